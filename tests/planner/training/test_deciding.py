"""What decides an estimate is measured: another value has the figures of the estimate of its own plan."""

from __future__ import annotations

from typing import Any

import pytest

from estimator.plan.schema import merge
from pages.blocks import Prose
from pages.results.deciding import sentence
from planner.change import OPEN_LAYOUT
from planner.requests import PlanRequest
from planner.results import TrainingEstimate
from planner.training.deciding import decides
from planner.training.neighbours import neighbour, other_frameworks
from planner.training.planned import plan_training, throughput_of
from planner.training.programs import has_program
from tools.registry import find, parsed

TRAINING: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "stage": "sft", "dataset_tokens": 1e9},
    {"model": "llama-3.1-8b", "accelerator": "rtx-4090", "count": 1, "stage": "sft", "method": "lora"},
    {"model": "llama-3.1-70b", "accelerator": "h100", "count": 64, "stage": "pretrain", "dataset_tokens": 1e11},
)
SERVING: tuple[dict[str, Any], ...] = (
    {"model": "llama-3.3-70b", "accelerator": "h100", "count": 2},
    {"model": "llama-3.1-8b", "accelerator": "l40s", "count": 1, "concurrency": 8},
)


def estimate(tool: str, arguments: dict[str, Any]) -> Any:
    return find(tool).run(arguments)


@pytest.mark.parametrize("arguments", TRAINING)
def test_what_decides_training_is_what_an_estimate_of_it_says(arguments: dict[str, Any]) -> None:
    found = estimate("estimate_training", arguments)
    assert found.decides
    named = {item.field for item in found.assumptions}
    for row in found.decides:
        assert row.field in named
        assert row.field.rpartition(".")[2] not in arguments
        # Held as it is, or laid out anew.
        changes = {row.field: row.other} | ({"layout": None, "workload.micro_batch": None} if row.relaid else {})
        plan = merge(found.plan, changes) if not row.relaid else _open(found.plan, row.field, row.other)
        other = estimate("estimate_training", {"plan": plan, "offload": "none"} if row.relaid else {"plan": plan})
        assert other.throughput.tokens_per_s == pytest.approx(row.after.tokens_per_s)
        assert other.memory.per_device_bytes == pytest.approx(row.after.per_device_bytes)
        assert other.memory.fits == row.fits
        assert found.throughput.tokens_per_s == pytest.approx(row.before.tokens_per_s)


def _open(plan: dict[str, Any], field: str, other: Any) -> dict[str, Any]:
    whole = merge({name: part for name, part in plan.items() if name != "layout"}, {field: other})
    whole["workload"] = {name: value for name, value in whole["workload"].items() if name != "micro_batch"}
    return whole


@pytest.mark.parametrize("arguments", SERVING)
def test_what_decides_serving_is_what_an_estimate_of_it_says(arguments: dict[str, Any]) -> None:
    found = estimate("estimate_inference", arguments)
    assert found.decides
    for row in found.decides:
        assert row.field.rpartition(".")[2] not in arguments
        other = estimate("estimate_inference", {"plan": merge(found.plan, {row.field: row.other})})
        assert other.latency.tpot_s == pytest.approx(row.after.tpot_s)
        assert other.throughput.output_tokens_per_s == pytest.approx(row.after.output_tokens_per_s)
        assert other.memory.fits == row.fits


@pytest.mark.parametrize("arguments", TRAINING)
def test_a_plan_that_names_everything_has_nothing_left_to_decide(arguments: dict[str, Any]) -> None:
    whole = estimate("estimate_training", arguments).plan
    assert estimate("estimate_training", {"plan": whole}).decides == []


def test_a_better_choice_is_better_and_what_loses_the_fit_comes_first() -> None:
    for arguments in TRAINING:
        found = estimate("estimate_training", arguments)
        for row in found.decides:
            if row.field == "workload.framework":
                assert row.fits
                assert row.after.tokens_per_s > row.before.tokens_per_s
        flips = [row.fits != found.memory.fits for row in found.decides]
        assert flips == sorted(flips, reverse=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8},
        {"model": "qwen2.5-7b", "accelerator": "a100", "count": 8, "seq_len": 16384},
        {"model": "mixtral-8x7b", "accelerator": "h100", "count": 32},
        {"model": "llama-3.1-70b", "accelerator": "h100", "count": 16, "method": "lora"},
        {"model": "llama-3.1-70b", "accelerator": "h200", "count": 64, "stage": "pretrain"},
        {"model": "qwen3-30b-a3b", "accelerator": "b200", "count": 64, "stage": "pretrain"},
        {"model": "llama-3.1-8b", "accelerator": "mi300x", "count": 8, "objective": "memory"},
        {"model": "bloom-7b1", "accelerator": "h100", "count": 8, "stage": "pretrain"},
    ],
)
def test_the_fastest_framework_with_launch_files_is_told_and_the_fastest_of_all(
    arguments: dict[str, Any],
) -> None:
    planned = plan_training(parsed(PlanRequest, arguments).to_plan())
    usual = throughput_of(planned).tokens_per_s
    rates = {}
    for name in other_frameworks(planned.job):
        other = neighbour(planned, {"workload.framework": name} | OPEN_LAYOUT)
        if other is not None and other.fits:
            rates[name] = throughput_of(other).tokens_per_s
    assert rates
    best = {}
    for started in (True, False):
        of_these = {name: rate for name, rate in rates.items() if has_program(planned.plan, name) == started}
        least = 1.03 * max([usual, *best.values()])
        best |= {name: rate for name, rate in of_these.items() if rate == max(of_these.values()) >= least}
    rows = [row for row in decides(planned) if row.field == "workload.framework"]
    assert {row.other: row.after.tokens_per_s for row in rows} == best
    assert all(row.started == has_program(planned.plan, row.other) for row in rows)
    if arguments["model"] == "bloom-7b1":
        assert {row.started for row in rows} == {True, False}


def test_a_deadline_that_decides_is_told_with_what_twice_as_much_brings() -> None:
    base = {"model": "llama-3.1-70b", "dataset_tokens": 1e10, "objective": "cost", "accelerators": ["h100", "b200"]}
    tight = estimate("recommend_cluster", base | {"deadline_h": 24})
    (row,) = tight.looser
    again = estimate("recommend_cluster", base | {"deadline_h": 48})
    first = again.options[0]
    assert (row.accelerator, row.count, row.usd, row.hours) == (first.accelerator, first.count, first.usd, first.hours)
    assert estimate("recommend_cluster", base | {"deadline_h": 24 * 365}).looser == []


@pytest.mark.parametrize("arguments", [{}, {"accelerator": "mi300x"}, {"stage": "dpo"}, {"method": "lora", "count": 1}])
def test_whatever_moves_an_answer_by_15_percent_is_in_its_first_lines(arguments: dict[str, Any]) -> None:
    asked = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8} | arguments
    result = TrainingEstimate.model_validate(estimate("estimate_training", asked))
    (block,) = sentence(result.decides, (), result.memory.fits)
    assert isinstance(block, Prose)
    words = {"framework": "framework", "method": "method (", "compile": "torch.compile", "attention": "attention"}
    words |= {"seq_len": "sequence length", "global_batch": "global batch"}
    for place, row in enumerate(result.decides):
        much = not row.fits or abs(row.change(row.figure)) >= 0.15
        assert (words[row.field.rpartition(".")[2]] in block.markdown) == (place == 0 or much), (row, block.markdown)
