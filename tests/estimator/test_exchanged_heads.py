"""Sequences that are split by exchanging pieces of them for heads (DeepSpeed Ulysses, Jacobs et al. 2023)."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.search.layouts import search
from estimator.training.estimates import Estimates
from knowledge.jobs.training import job_of


def split(cp: int, framework: str = "deepspeed", **workload: object) -> Estimates:
    """All weights of an 8B (32 heads, 8 of keys and values) over `cp` H100, a sequence at a time."""
    run = {"framework": framework, "seq_len": 262_144, "micro_batch": 1, "global_batch": 1, "attention": "sdpa"}
    plan = {
        "model": "Qwen/Qwen3-8B",
        "workload": run | workload,
        "cluster": {"accelerator": "h100-sxm", "count": cp},
        "layout": {"cp": cp, "dp": 1, "zero_stage": 3, "recompute": "full", "offload": "none"},
    }
    estimates, order = search(job_of(Plan.parse(plan)))
    return estimates.of(int(order[0]))


def test_activations_are_dealt_and_more_ranks_move_less() -> None:
    few, many = split(4), split(8)
    kept = [float(each.memory.components["activations"][0]) for each in (few, many)]
    assert kept[1] == pytest.approx(kept[0] / 2, rel=0.05)
    assert float(many.step.components["context_parallel"][0]) < float(few.step.components["context_parallel"][0])


def test_keys_of_fewer_heads_than_ranks_are_copied() -> None:
    tiled = [split(ranks, tiled_mlp=True, fused_loss=True) for ranks in (8, 16)]
    eight, sixteen = (float(each.memory.components["activations"][0]) for each in tiled)
    assert sixteen > 1.03 * eight / 2


@pytest.mark.parametrize(("cp", "tokens"), [(3, 262_143), (64, 262_144), (8, 262_140)])
def test_what_cannot_be_dealt_is_refused(cp: int, tokens: int) -> None:
    with pytest.raises(PlanError, match=r"^layout\.cp: .*deals neither"):
        split(cp, seq_len=tokens)


def test_a_version_without_it_says_so() -> None:
    with pytest.raises(PlanError, match="no context parallelism"):
        split(8, software_version="0.17")
