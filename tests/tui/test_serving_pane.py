"""The plan pane with a serving plan: its figures in place of those of training, from what the tools really give."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fake_session import COST, ESTIMATE
from pydantic import BaseModel
from textual.app import App, ComposeResult
from textual.widgets import Static

from pages.results.overview import FIGURE_LABELS, Overview, fold
from pages.results.plan import plan_lines
from planner.serving.results import ServingEstimate
from tools.registry import registry
from tui.widgets.plan_pane import PlanPane
from tui.widgets.rows import Rows
from tui.widgets.stack import Stack

ARGUMENTS: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 1, "engine": "vllm"}
LOAD: dict[str, Any] = {"concurrency": 64, "input_len": 2048, "output_len": 500, "kv_dtype": "fp8"}
EITHER: dict[str, Any] = {"plan": {"workload": {"kind": "inference"}}}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("estimate_inference", LOAD | {"ttft_slo_ms": 1.0, "tpot_slo_ms": 1000.0}),
    ("check_fit", LOAD),
    ("estimate_cost", LOAD),
    ("best_serving", LOAD | {"weight_dtypes": ["bf16"]}),
    ("size_serving", {"request_rate": 10.0, "count": None}),
    ("find_limit", {"goal": "concurrency"}),
    ("find_limit", {"goal": "context"} | EITHER),
    ("sweep", {"field": "concurrency", "values": [1, 8]}),
    ("project_mlperf", {"benchmark": "llama3.1-8b", "model": None}),
]


def result(name: str, more: dict[str, Any]) -> BaseModel:
    given = {field: value for field, value in (ARGUMENTS | more).items() if value is not None}
    return registry()[name].run(given)


@pytest.fixture(scope="module")
def estimate() -> ServingEstimate:
    found = result(*CALLS[0])
    assert isinstance(found, ServingEstimate)
    return found


class PaneApp(App[None]):
    def compose(self) -> ComposeResult:
        yield PlanPane(id="plan")


def test_the_figures_are_those_of_serving(estimate: ServingEstimate) -> None:
    overview = fold(Overview(), estimate)
    assert overview.fits is True
    assert {"first token", "per token", "request", "output tok/s", "users at once", "per 1M output"} <= set(
        overview.figures
    )
    assert not {"step", "MFU", "TFLOP/s", "run", "host per node"} & set(overview.figures)
    assert re.search(r"\d+ ms \(.*–.*\)", overview.figures["first token"])
    assert overview.bottleneck == estimate.bottleneck
    assert overview.limits.broken[0].startswith("TTFT ")
    assert overview.limits.broken[0].endswith("over 1.0 ms.")
    assert "within 1.00 s" in " ".join([*overview.limits.kept, *overview.limits.doubtful])


def test_the_plan_reads_in_a_few_lines(estimate: ServingEstimate) -> None:
    lines = dict(plan_lines(estimate.plan))
    assert lines["serving"] == "vllm bf16 server"
    assert lines["requests"] == "2,048 tokens in, 500 out, 64 clients at once"
    assert lines["cache"] == "fp8"
    assert lines["limits"] == "TTFT 1 ms, TPOT 1,000 ms"
    assert lines["layout"] == "DP 1"


def test_a_bill_of_a_month_is_no_length_of_a_run(estimate: ServingEstimate) -> None:
    month = fold(Overview(), result("estimate_cost", LOAD))
    assert {"per hour", "per month", "per 1M tokens"} <= set(month.figures)
    assert not {"run", "cost", "energy"} & set(month.figures)
    run = fold(Overview(), result("estimate_cost", {"requests": 1000, "scenario": "offline"}))
    assert {"run", "cost"} <= set(run.figures)


def test_training_and_serving_replace_each_other(estimate: ServingEstimate) -> None:
    overview = fold(fold(Overview(), ESTIMATE), estimate)
    assert "MFU" not in overview.figures
    back = fold(overview, COST)
    assert "first token" not in back.figures
    assert back.latency == ()


@pytest.mark.parametrize(("name", "more"), CALLS, ids=[f"{name}-{place}" for place, (name, _) in enumerate(CALLS)])
async def test_every_result_about_serving_is_shown(name: str, more: dict[str, Any]) -> None:
    app = PaneApp()
    async with app.run_test(size=(60, 50)) as pilot:
        pane = app.query_one(PlanPane)
        pane.overview = overview = fold(Overview(), result(name, more))
        await pilot.pause()
        assert set(overview.figures) <= set(FIGURE_LABELS)
        shown = [*app.query_one("#figures", Rows).rows, *app.query_one("#more-figures", Rows).rows]
        assert dict(shown) == dict(overview.figures)
        assert overview.figures
        assert app.query_one("#memory-bar", Stack).display is (overview.memory is not None)
        fit = str(app.query_one("#fit", Static).content)
        if overview.memory is not None:
            assert fit.startswith("FITS")
            assert "engine claims" in fit
            assert "KV cache" in app.query_one("#memory-bar", Stack).render().plain
