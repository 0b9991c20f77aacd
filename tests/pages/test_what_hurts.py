"""What hurts stands in the first line, in red or amber, on every face: a limit that is broken, a fit that is tight,
what was never measured or is not modelled, and what no program here can start."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel

from pages.answers import lead
from pages.answers.clusters import recommended
from pages.answers.page import page_of
from pages.answers.plan import complete
from pages.answers.serving import verdict
from pages.blocks import Headline
from pages.rendering import fold, html, markdown, terminal
from pages.report import serving, training
from pages.results.estimate import fit_verdict, lacking
from pages.results.of_results import blocks_of
from planner.clusters.results import RecommendedCluster
from planner.results import TrainingEstimate
from planner.serving.results import ServingEstimate
from server.mcp.brief import _text
from tools.registry import find

RUN = {"model": "llama-3-8b", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": "10B"}
TIGHT = {
    "model": "llama-3-8b", "accelerator": "h100-sxm", "count": 8, "dp": 8, "zero_stage": 3, "recompute": "full",
    "offload": "none", "framework": "fsdp2", "seq_len": 4096, "micro_batch": 1, "global_batch": 64,
}  # fmt: skip
GRPO = {"model": "qwen2.5-7b", "accelerator": "h100-sxm", "count": 8, "stage": "grpo"}
KINDS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "late": ("estimate_training", RUN | {"deadline_h": 10}, "Late by", "bad"),
    "perhaps late": ("estimate_training", RUN | {"deadline_h": 50}, "Probably in time by", "beware"),
    "over budget": ("estimate_cost", RUN | {"budget_usd": 10}, "Over budget by", "bad"),
    "tight": ("estimate_training", TIGHT, "tightly", "beware"),
    "tight at a limit": ("find_limit", {"model": "yi-34b", "accelerator": "a100-sxm-80gb", "method": "full",
                                        "offload": "none", "goal": "devices"}, "tightly", "beware"),
    "extrapolated": ("estimate_training", GRPO, "timing is less certain", "beware"),
    "extrapolated cost": ("estimate_cost", GRPO | {"dataset_tokens": "1B"}, "timing is less certain", "beware"),
    "extrapolated range": ("sweep", GRPO | {"field": "seq_len", "values": [2048, 4096]}, "timing is less certain",
                           "beware"),
    "extrapolated search": ("best_parallelism", GRPO, "timing is less certain", "beware"),
    "extrapolated cluster": ("recommend_cluster", {name: GRPO[name] for name in ("model", "stage")} | {
        "accelerators": ["h100-sxm"], "dataset_tokens": "1B", "limit": 1}, "timing is less certain", "beware"),
    "not modelled": ("estimate_training", GRPO | {"rollout": "separate"}, "not in this estimate", "beware"),
    "engine not measured": ("estimate_inference", {"model": "llama-3-8b", "accelerator": "rtx-a6000", "count": 1,
                            "engine": "vllm", "concurrency": 4}, "No vllm runs on Ampere measured", "beware"),
    "too slow": ("estimate_inference", {"model": "llama-3-70b", "accelerator": "h100-sxm", "count": 4,
                                        "concurrency": 200, "ttft_slo_ms": 20}, "TTFT", "bad"),
    "no score": ("project_mlperf", {"benchmark": "deepseek-r1", "accelerator": "h100-sxm", "count": 8},
                 "does not fit", "bad"),
    "announced": ("project_mlperf", {"benchmark": "llama2-70b", "accelerator": "rubin"}, "is announced", "beware"),
    "not launched": ("recommend_cluster", {"model": "llama-3-8b", "dataset_tokens": "1B", "accelerators": ["h100-sxm"],
                                           "limit": 1}, "no launch files", "beware"),
}  # fmt: skip


@cache
def result(kind: str) -> BaseModel:
    name, arguments, _, _ = KINDS[kind]
    if kind == "tight":
        short: Any = find(name).run(arguments | {"overrides": {"usable_gib": 1}})
        usable = short.memory.high_bytes / 2**30 / 0.985
        arguments = arguments | {"overrides": {"usable_gib": usable}}
    told = find(name).run(arguments)
    if isinstance(told, RecommendedCluster):
        told.options[0].launch_targets = []
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_it_stands_in_the_first_line_of_commands_pages_and_answers_to_assistants(kind: str) -> None:
    _, _, words, tone = KINDS[kind]
    for blocks in (page_of(result(kind), 100), blocks_of(result(kind))):
        head = blocks[0]
        assert isinstance(head, Headline)
        assert words in f"{head.text} {head.more}"
        assert head.tone == tone
        in_terminal = terminal.render(blocks, 1000, colour=True).split("\n")[0]
        assert words in in_terminal
        assert in_terminal.startswith({"bad": "\x1b[1;31m", "beware": "\x1b[1;33m"}[tone])
        in_markdown = markdown.render(blocks).split("\n")[0]
        assert words in in_markdown
        assert fold.tone_of(in_markdown) == tone
        assert words in html.render(blocks)[: html.render(blocks).index("</p>") + 400]
        assert f'class="verdict {tone}"' in html.render(blocks)
    assert words in _text(page_of(result(kind), 100)).split("\n")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_it_stands_in_the_first_line_of_answers_and_reports(kind: str) -> None:
    _, _, words, tone = KINDS[kind]
    told = result(kind)
    match told:
        case TrainingEstimate():
            heads = [lead.training(told, None, None, ())[0], training._verdict(told, None, [])]
        case ServingEstimate():
            heads = [lead.serving(told, verdict(told, None), None)[0], serving._verdict(told, None, [])]
        case RecommendedCluster():
            heads = [recommended(told)[0]]
        case _:
            heads = []
    for head in heads:
        assert isinstance(head, Headline)
        assert words in f"{head.text} {head.more}"
        assert head.tone == tone


@pytest.mark.parametrize("weights", ["bf16", "fp8"])
def test_what_does_not_fit_never_needs_less_than_there_is(weights: str) -> None:
    """An engine takes a part of a device: what is more than that is told as more than that."""
    plan = {"model": "mixtral-8x22b", "accelerator": "h200-sxm", "count": 2, "weight_dtype": weights, "concurrency": 1}
    capacity: Any = find("estimate_inference").run(plan)
    for usable in (capacity.memory.per_device_bytes * factor / 2**30 for factor in (0.9, 1.01, 1.05)):
        told: Any = find("estimate_inference").run(plan | {"overrides": {"usable_gib": usable}})
        if told.memory.fits:
            continue
        words = lacking(told.memory, complete(told.plan))
        small = told.memory.per_device_bytes < told.memory.capacity_bytes
        assert ("more than vllm takes of" in words) == small
        heads = (fit_verdict(told), verdict(told, None), serving._verdict(told, None, []))
        assert all(words in f"{head.text} {head.more}" for head in heads)
