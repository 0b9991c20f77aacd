"""What a comparison, advice, an explanation and a search without an answer tell at first, and what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from pages.answers import advice, choice, comparison, files
from pages.answers.page import page_of
from pages.blocks import Headline, Steps, Table
from pages.results import many
from tools.registry import find

_R1 = {"model": "deepseek-r1", "accelerator": "h200-sxm", "count": 8, "concurrency": 200}
_8B = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "stage": "sft", "method": "full"}


def _run(tool: str, arguments: dict[str, Any]) -> Any:
    return find(tool).run(arguments)


def _table(blocks: Any) -> Table:
    return next(block for block in blocks if isinstance(block, Table))


def _text(head: Any) -> str:
    assert isinstance(head, Headline)
    return f"{head.text} {head.more}"


def _plan(accelerator: str, workload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"workload": workload, "cluster": {"accelerator": accelerator, "count": 8}} | more


def test_what_does_not_fit_has_no_speed_and_no_cost() -> None:
    plan = _plan("h200-sxm", {"kind": "inference", "concurrency": 200}, model="deepseek-r1")
    result = _run("compare", {"plan": plan, "over": {"accelerator": ["h100-sxm", "h200-sxm"]}})
    fits = {row.name: row.fits for row in result.rows}
    assert sorted(fits.values()) == [False, True]
    table = _table(many.side_by_side(result))
    first = table.head.index("first token") if "first token" in table.head else table.head.index("TTFT")
    for row in table.rows:
        name = row[0].strip("*")
        assert (row[first] == many.NONE) is not fits[name]
    assert "speed" not in table.head  # set against what does not run


@pytest.mark.parametrize(("deadline_h", "late"), [(4, True), (400, False)])
def test_every_face_of_a_comparison_tells_its_limits_first(deadline_h: float, late: bool) -> None:
    workload = {"kind": "training", "stage": "sft", "dataset_tokens": 1e9}
    plan = _plan("h100-sxm", workload, model="llama-3.1-8b", goal={"deadline_h": deadline_h, "budget_usd": 5000})
    result = _run("compare", {"plan": plan, "over": {"method": ["full", "lora"]}})
    for head in (comparison.compared(result)[0], page_of(result, 100)[0]):
        text = _text(head).lower()
        assert ("full: late by" in text) is late
        assert ("both: in time and within budget" in text) is not late


def test_a_search_without_an_answer_names_the_limit_that_is_missed() -> None:
    result = _run("best_serving", _R1)
    assert result.meets_slo is False
    head = _text(choice.best(result, False)[0])
    for told in ("assumed latency limits", "TPOT", "output tokens/s"):
        assert told in head
    # Which one it is goes by the deployment that comes closest.
    assert any(f"over {limit}" in head for limit in ("50.0 ms", "2.00 s"))


def test_advice_and_explanations_end_in_a_next_step() -> None:
    tips = _run("advise", _8B)
    told = advice.advice(tips)
    gains = [row for row in tips.entries if row.gain]
    assert len(gains) > 1
    assert len(_table(told).rows) == len(gains)
    assert isinstance(told[-1], Steps)
    for figure in ("step time", "activation memory", "MFU"):
        explained = _run("explain", _8B | {"figure": figure})
        assert isinstance(files.explanation(explained)[-1], Steps)
        assert explained.text.splitlines()[1].startswith("- In numbers")
