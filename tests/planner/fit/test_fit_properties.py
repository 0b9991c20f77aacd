"""What gives a plan more room never takes its fit away, over random plans."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from samples import part

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from pages.results.estimate import fit_verdict
from planner.fit.training import fit_of
from planner.training.planned import Planned, plan_training

_PLANS = part(80, 200)
_ZERO = {"fsdp2": (2, 3), "deepspeed": (1, 2, 3), "hf-trainer": (0,), "torchtitan": (2, 3), "megatron-lm": (0, 1)}
_MODELS = ("gpt2", "qwen2.5-0.5b", "llama-3-8b", "qwen3-8b", "mistral-7b", "llama-3.2-1b", "llama-3-70b")
_DEVICES = ("h100-sxm", "a100-sxm-80gb", "rtx-4090", "l4", "mi300x")
_STRONGER = {"none": ("selective", "full"), "selective": ("full",), "full": ()}


def planned(plan: dict[str, Any]) -> Planned | None:
    """None where the framework lacks what is asked for."""
    try:
        return plan_training(Plan.parse(plan), offload=False)
    except PlanError:
        return None


def with_(plan: dict[str, Any], section: str, **values: Any) -> dict[str, Any]:
    return plan | {section: plan.get(section, {}) | values}


def random_plan(draw: random.Random) -> dict[str, Any]:
    framework, count, micro = draw.choice(list(_ZERO)), draw.choice([1, 2, 4, 8, 16]), draw.choice([1, 2, 4, 8])
    whole = dict.fromkeys(("tp", "pp", "cp", "ep"), 1)
    return {
        "model": draw.choice(_MODELS),
        "cluster": {"accelerator": draw.choice(_DEVICES), "count": count},
        "layout": whole
        | {
            "dp": count,
            "zero_stage": draw.choice(_ZERO[framework]),
            "recompute": draw.choice(list(_STRONGER)),
            "offload": "none",
        },
        "workload": {
            "kind": "training",
            "framework": framework,
            "stage": draw.choice(["sft", "pretrain", "dpo", "simpo", "kto", "orpo"]),
            "method": draw.choice(["full", "lora", "qlora"]),
            "seq_len": draw.choice([512, 2048, 4096, 16384]),
            "micro_batch": micro,
            "global_batch": micro * count * 2,
        },
    }


@cache
def plans() -> list[tuple[dict[str, Any], Planned]]:
    draw, found = random.Random(7), []
    while len(found) < _PLANS:
        plan = random_plan(draw)
        if base := planned(plan):
            found.append((plan, base))
    return found


def more_devices(plan: dict[str, Any], _: Planned) -> Iterator[dict[str, Any]]:
    """Twice as many, each with the same work."""
    count = plan["cluster"]["count"]
    more = with_(with_(plan, "cluster", count=2 * count), "layout", dp=2 * count)
    yield with_(more, "workload", global_batch=2 * plan["workload"]["global_batch"])


def more_memory(plan: dict[str, Any], base: Planned) -> Iterator[dict[str, Any]]:
    for times in (1.01, 1.5):
        yield with_(plan, "overrides", usable_gib=base.job.usable_bytes / 2**30 * times)


def offloaded(plan: dict[str, Any], _: Planned) -> Iterator[dict[str, Any]]:
    for kind in ("optimizer", "params", "activations"):
        yield with_(plan, "layout", offload=kind)


def recomputed(plan: dict[str, Any], _: Planned) -> Iterator[dict[str, Any]]:
    for mode in _STRONGER[plan["layout"]["recompute"]]:
        yield with_(plan, "layout", recompute=mode)


def smaller(plan: dict[str, Any], _: Planned) -> Iterator[dict[str, Any]]:
    if (micro := plan["workload"]["micro_batch"]) > 1:
        yield with_(plan, "workload", micro_batch=micro // 2)


@pytest.mark.parametrize("change", [more_devices, more_memory, offloaded, recomputed, smaller])
def test_what_gives_room_never_takes_a_fit_away(change: Any):
    tried = 0
    for plan, base in plans():
        for changed in change(plan, base):
            if other := planned(changed):
                tried += 1
                assert other.fits >= base.fits, changed
                # What an allocator holds back grows with the memory, and some buffers with the devices.
                if change not in (more_devices, more_memory):
                    high, before = (float(each.estimates.high_bytes[each.index]) for each in (other, base))
                    assert high <= before * 1.0001, changed
    assert tried > _PLANS // 2


def test_a_reference_model_never_needs_less_than_none():
    for plan, _ in plans():
        dpo, simpo = (planned(with_(plan, "workload", stage=stage)) for stage in ("dpo", "simpo"))
        if dpo and simpo:
            assert dpo.estimates.memory.total[dpo.index] >= simpo.estimates.memory.total[simpo.index] * 0.9999, plan


def test_offloading_never_shortens_the_longest_context():
    """Whatever fits without it fits with it, at every length; the lengths that fit are those up to one."""
    for plan, _ in plans()[::4]:
        for seq_len in (1024, 8192, 32768, 131072):
            base = planned(with_(plan, "workload", seq_len=seq_len))
            if base and base.fits:
                others = (planned(each) for each in offloaded(with_(plan, "workload", seq_len=seq_len), base))
                assert all(other.fits for other in others if other), plan


def test_what_is_offloaded_by_name_is_completed_where_that_alone_does_not_fit():
    """A plan that fits with its layout left open fits with any part of its states offloaded by name, and has that in
    host memory whatever else is there; where nodes have as much memory as it takes."""
    more, tried = 0, 0
    for plan, _ in plans():
        free = with_(plan, "overrides", host_gib=1e6) | {"layout": {}}
        base = plan_training(Plan.parse(free))
        for kind in base.job.framework.limits.offloads if base.fits else ():
            named = plan_training(Plan.parse(with_(free, "layout", offload=kind)))
            chosen = named.plan.layout.offload or ""
            held = kind in chosen or (kind == "optimizer" and "params" in chosen)
            assert named.fits, (free, kind)
            assert held, (free, kind)
            assert (chosen != kind) == any(item.why == named.offloads_more for item in named.assumptions)
            more, tried = more + (chosen != kind), tried + 1
    assert tried > _PLANS // 2
    assert more


def test_a_named_framework_gives_up_what_it_can_as_an_open_one_does():
    """Where a plan fits with a loss by chunks named on a framework, it fits with the loss left open, which says so; and
    a run that is named whole is that run, whose remedies tell of its own framework first."""
    asked = {"model": "qwen3-8b", "cluster": {"accelerator": "h100-sxm", "count": 8}}
    workload = {"stage": "sft", "seq_len": 1_048_576, "global_batch": 1}
    for framework in ("fsdp2", "torchtitan", "nemo-automodel"):
        found = fit_of(Plan.parse(asked | {"workload": workload | {"framework": framework}}))
        assert found.fits, framework
        assert found.plan["workload"]["framework"] == framework
        assert any(item.field == "workload.fused_loss" for item in found.assumptions)
    whole = {"cp": 8, "recompute": "full", "offload": "none"}
    as_it_is = fit_of(Plan.parse(asked | {"workload": workload | {"framework": "fsdp2"}, "layout": whole}))
    assert not as_it_is.fits
    assert any(remedy.fits and remedy.what.startswith("fsdp2: ") for remedy in as_it_is.remedies)


def test_a_verdict_says_what_it_needs_that_nobody_named():
    asked = {"model": "qwen3-8b", "cluster": {"accelerator": "h100-sxm", "count": 8}}
    workload = {"stage": "sft", "seq_len": 1_048_576, "global_batch": 1, "framework": "fsdp2"}
    verdict = fit_verdict(fit_of(Plan.parse(asked | {"workload": workload})))
    assert "It needs fsdp2 with chunked loss and activations in host memory." in verdict.text
    named = {"workload": workload | {"fused_loss": True}, "layout": {"offload": "activations"}}
    assert "needs" not in fit_verdict(fit_of(Plan.parse(asked | named))).text
