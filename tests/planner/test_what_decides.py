"""What decides an answer comes in the order in which it moves it, and neighbours are those that the tables offer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.deciding import ranked, size
from planner.result import Decisive, NeighbourFigures
from tools import call


def row(field: str, factor: float, fits: bool) -> Decisive:
    before, after = (NeighbourFigures(per_device_bytes=1.0, tokens_per_s=rate) for rate in (100.0, 100.0 * factor))
    return Decisive(field=field, value=1, other=2, before=before, after=after, figure="tokens_per_s", fits=fits)


ROWS = st.lists(st.builds(row, st.sampled_from("abcdef"), st.floats(0.1, 10.0), st.booleans()), max_size=20)


@given(ROWS, st.booleans(), st.floats(0.0, 0.5))
def test_lost_fits_come_first_then_the_largest_change_and_each_field_once(rows, fits, least) -> None:
    told = ranked(rows, fits, least)
    assert len(told) <= 4
    assert len({each.field for each in told}) == len(told)
    assert all(not each.fits or size(each.change("tokens_per_s")) >= least for each in told)
    weights = [(each.fits != fits, size(each.change("tokens_per_s")) if each.fits else 1e6) for each in told]
    assert weights == sorted(weights, reverse=True)


@given(st.floats(0.01, 100.0))
def test_twice_as_much_is_as_large_a_change_as_half(factor: float) -> None:
    assert size(factor - 1.0) == pytest.approx(size(1.0 / factor - 1.0), rel=1e-6, abs=1e-9)


def test_an_engine_is_not_its_own_neighbour() -> None:
    asked = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 1}
    for engine in ("vllm", "sglang", "trtllm"):
        found = call("estimate_inference", asked | ({"engine": engine} if engine != "vllm" else {}))
        assert all(each["other"] != each["value"] for each in found["decides"])
        assert all(
            each["other"] in ("vllm", "sglang", "trtllm") for each in found["decides"] if "engine" in each["field"]
        )
