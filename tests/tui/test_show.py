"""What the faces are made of: cleaning, units, tables, JSON, and the overview that tool results are folded into."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from fake_session import COST, ESTIMATE, GIB, PLAN
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from knowledge import figures
from knowledge.own.files import parsed
from launchers.reading.documents import plain_data
from pages.rendering.clean import arguments_line, clean, one_line
from pages.rendering.table import table
from pages.results.overview import FIGURE_LABELS, Overview, fold
from pages.results.plan import plan_lines
from tui.commands.call import parse_value
from tui.jsonout import to_json

# Unicode's classes of the marks that turn round the order in which a line is read.
REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(st.characters(exclude_categories=[])))
def test_cleaned_text_holds_no_control_character(text: str) -> None:
    shown = clean(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert clean(shown) == shown
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07safe", "safe"),
        ("a\r\nb", "a\nb"),
        ("a\rb", "a\nb"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("\x9b31mx", "31mx"),
        ("tab\tnew\nline", "tab\tnew\nline"),
    ],
)
def test_control_sequences_go_whole(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_one_line_is_cut_to_its_width() -> None:
    assert one_line("a\n b   c") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_arguments_are_short() -> None:
    arguments = {"model": "m", "count": 8, "lr": 1e-5, "packing": True, "plan": {"a": 1}, "targets": ["x", "y"]}
    assert arguments_line(arguments) == "model=m count=8 lr=1e-05 packing=true plan={…} targets=x,y"
    assert arguments_line({"list": [{"a": 1}, {}], "none": {}}) == "list=[2] none={}"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (figures.gib(65 * GIB), "65.0 GiB"),
        (figures.gib(1.5 * GIB), "1.5 GiB"),
        (figures.gib(300 * 2**20), "300 MiB"),
        (figures.seconds(0.0853), "85.3 ms"),
        (figures.seconds(12.34), "12.34 s"),
        (figures.seconds(1800), "30.0 min"),
        (figures.hours(6.54), "6.5 hours"),
        (figures.hours(12 * 24), "12.0 days"),
        (figures.count(8.03e9), "8.03B"),
        (figures.count(1e9), "1B"),
        (figures.count(512), "512"),
        (figures.usd(1234.4), "$1,234"),
        (figures.usd(12.345), "$12.35"),
        (figures.usd(0.00345), "$0.00345"),
        (figures.percent(0.4166), "42 %"),
        (figures.file_size(1), "1 byte"),
        (figures.file_size(1234), "1,234 bytes"),
        (figures.shown("time.step_s", 12.34), "12.34 s"),
        (figures.shown("mfu", 0.4166), "42 %"),
        (figures.shown("memory.components.optimizer", 2.0**30), "1.0 GiB"),
        (figures.shown("usd", None), "–"),
        (figures.label("per_device_bytes"), "per device"),
        (figures.label("no_figure"), "no figure"),
        (figures.better("step_s"), "lower"),
        (figures.between("step_s", 11, 13.5), "11.00–13.50 s"),
        (figures.between("step_s", 525, 780, 642), "8.8–13.0 min"),
        (figures.between("step_s", 60.34, 197, 109), "60–197 s"),
        (figures.between("usd", 1, 1), ""),
        (figures.held(ESTIMATE.time, "step_s"), "12.34 s (11.00–13.50)"),
    ],
)
def test_figures(written: str, expected: str) -> None:
    assert written == expected


@given(st.floats(min_value=0, max_value=1e12))
def test_durations_read_back_to_what_they_say(seconds: float) -> None:
    number, unit = figures.seconds(seconds).replace(",", "").split()
    size = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "hours": 3600.0, "days": 86400.0}[unit]
    assert float(number) * size == pytest.approx(seconds, rel=0.006, abs=5e-7)


def test_tables_align() -> None:
    text = table(("NAME", "SIZE"), [("a", "1"), ("long\x1b[1mer", "200")], right=("SIZE",))
    assert text.splitlines() == ["NAME    SIZE", "a          1", "longer   200"]
    assert table(("NAME",), []) == "NAME"


@given(json_values, st.booleans())
def test_json_is_always_valid_and_harmless(value: Any, ascii_only: bool) -> None:
    def finite(item: Any) -> Any:
        match item:
            case float():
                return item if math.isfinite(item) else None
            case dict():
                return {key: finite(inner) for key, inner in item.items()}
            case list():
                return [finite(inner) for inner in item]
        return item

    text = to_json(value, ascii_only=ascii_only)
    assert json.loads(text) == finite(value)
    assert not [c for c in text if unicodedata.category(c) == "Cc" or unicodedata.bidirectional(c) in REORDERING]
    assert text.isascii() or not ascii_only


@pytest.mark.parametrize("odd", ["1" * 5000, "[" * 100_000])
@pytest.mark.parametrize("read", [parse_value, parsed, lambda text, name: plain_data(f"{name}.json", text)])
def test_what_cannot_be_read_is_told_to_its_writer(odd: str, read: Callable[[str, str], Any]) -> None:
    with pytest.raises(PlanError) as refused:
        read(f'{{"a": {odd}', "config")
    assert not re.search("set_int_max|recursion", str(refused.value))


class TestOverview:
    def test_results_for_one_plan_add_up(self) -> None:
        overview = fold(fold(Overview(), ESTIMATE), COST)
        assert overview.fits is True
        assert overview.figures["step"] == "12.34 s (11.00–13.50)"
        assert overview.figures["cost"] == "$131 ($118–144)"
        assert overview.figures["run"] == "6.5 hours (5.9–7.2)"
        assert overview.bottleneck == "compute"
        assert set(overview.figures) <= set(FIGURE_LABELS)

    def test_another_plan_drops_what_belonged_to_the_first(self) -> None:
        other = PLAN | {"cluster": PLAN["cluster"] | {"count": 16}}
        overview = fold(fold(Overview(), ESTIMATE), COST.model_copy(update={"plan": other}))
        assert overview.memory is None
        assert set(overview.figures) == {"run", "cost"}
        assert overview.plan == other

    def test_links_that_the_user_set_have_units_of_their_own(self) -> None:
        given = {"usable_gib": 60.0, "scaleup_gb_per_s": 450.0, "network_gb_per_s": 400.0, "network_latency_us": 2.5}
        line = dict(plan_lines(PLAN | {"overrides": given}))["set"]
        assert line == "usable 60 GiB; scaleup 450, network 400 GB/s; network latency 2.5 µs"

    def test_memory_figures_that_the_user_set_are_in_the_plan_and_change_its_figures(self) -> None:
        other = PLAN | {"overrides": {"usable_gib": 60.0, "reserve_gib": None, "weights_gib": 2.5}}
        assert dict(plan_lines(other))["set"] == "usable 60, weights 2.5 GiB"
        assert "set" not in dict(plan_lines(PLAN))
        assert fold(fold(Overview(), ESTIMATE), COST.model_copy(update={"plan": other})).memory is None

    def test_name_and_goal_change_no_figure(self) -> None:
        renamed = PLAN | {"name": "x", "goal": {"objective": "cost"}}
        assert fold(fold(Overview(), ESTIMATE), COST.model_copy(update={"plan": renamed})).memory is not None

    def test_a_result_without_a_plan_changes_nothing(self) -> None:
        before = fold(Overview(), ESTIMATE)
        assert fold(before, ESTIMATE.throughput) is before

    def test_missing_figures_are_left_out(self) -> None:
        overview = fold(Overview(), COST.model_copy(update={"usd": None}))
        assert "cost" not in overview.figures
        assert overview.fits is None

    def test_the_plan_reads_in_a_few_lines(self) -> None:
        lines = dict(plan_lines(PLAN))
        assert lines["cluster"] == "8 × h100-sxm"
        assert lines["layout"] == "DP 8, ZeRO-3, selective recompute"
        assert lines["training"] == "sft full bf16 adamw deepspeed"
        assert lines["data"] == "1B tokens × 1"

    def test_a_serving_plan_reads_too(self) -> None:
        workload = {"kind": "inference", "engine": "vllm", "weight_dtype": "fp8", "input_len": 1024, "output_len": 256}
        lines = dict(plan_lines({"model": "m", "workload": workload}))
        assert lines["serving"] == "vllm fp8"
        assert lines["requests"] == "1,024 tokens in, 256 out"
