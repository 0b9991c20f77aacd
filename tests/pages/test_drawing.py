"""Plots of a page: whatever the figures, all that is drawn is there to be seen."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pages.rendering.drawing import svg
from planner.plots import Plot, Series

NUMBERS = st.one_of(st.none(), st.floats(-1e12, 1e15), st.sampled_from([0.0, 1.0, 1e-12]))


@given(
    st.sampled_from(["line", "bar", "stacked", "scatter"]),
    st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=4),
    st.sampled_from([[1, 2, 4], [5, 5, 5], [0.5, 1e6, 3], ["a", "b", "<c> & d"], ["x" * 200, "y" * 60, "z" * 60]]),
    st.booleans(), st.booleans(), st.one_of(st.none(), st.floats(1e-3, 1e9)),
)  # fmt: skip
def test_all_that_is_drawn_lies_in_the_picture(
    kind: Any, rows: list[Any], x: list[Any], x_log: bool, y_log: bool, limit: float | None
) -> None:
    series = [Series(name=f"s{at}", x=x, y=y, low=y, high=y) for at, y in enumerate(rows)]
    plot = Plot(title="<t>", kind=kind, x_label="x", y_label="y & y", series=series, x_log=x_log, y_log=y_log,
                limit=limit, limit_name=None if limit is None else "limit")  # fmt: skip
    root = ET.fromstring(svg(plot))
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    for element in root.iter():
        for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            assert -1.0 <= float(element.attrib.get(name, 0)) <= most
        assert float(element.attrib.get("width", 0)) >= 0.0
        assert not re.search("nan|inf", element.attrib.get("d", ""))
