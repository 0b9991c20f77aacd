"""MLPs that are computed tile by tile, and activations in host memory beside states there."""

from __future__ import annotations

import pytest

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.search.layouts import search
from estimator.training.estimates import Estimates
from knowledge.jobs.training import job_of
from planner.training.planned import plan_training

GIB = 2**30


def alst(offload: str, seq_len: int, **workload: object) -> Plan:
    """Llama-3.1-8B on one H200 as in ArcticTraining's recipes of long sequences (projects/sequence-parallelism)."""
    usual = {"framework": "deepspeed", "fused_loss": True, "seq_len": seq_len, "global_batch": 1, "micro_batch": 1}
    return Plan.parse({
        "model": "meta-llama/Llama-3.1-8B", "workload": usual | workload,
        "cluster": {"accelerator": "h200-sxm", "count": 1},
        "layout": {"zero_stage": 3, "recompute": "full", "offload": offload},
    })  # fmt: skip


def estimated(plan: Plan) -> Estimates:
    estimates, order = search(job_of(plan))
    return estimates.of(int(order[0]))


def test_published_peaks_of_sequences_in_tiles() -> None:
    # ArcticTraining run-h200-sp1-llama-8b-liger-offload-tiled-mlp.yml: 136.15 GiB at 1,200,000 tokens.
    whole, tiles = (
        estimated(alst("params+activations", 1_200_000, tiled_mlp=tiled)).memory.total[0] for tiled in (False, True)
    )
    assert tiles / GIB == pytest.approx(136.15, rel=0.15)
    assert whole > 1.5 * tiles


def test_both_kinds_of_offload_are_those_of_each() -> None:
    memory = {
        offload: estimated(alst(offload, 262_144)).memory.component_peaks
        for offload in ("none", "params", "activations", "params+activations")
    }
    for states in ("weights", "gradients", "optimizer"):
        assert memory["params+activations"][states] == memory["params"][states] < memory["none"][states]
    both, alone = memory["params+activations"]["activations"], memory["activations"]["activations"]
    assert both == alone < memory["params"]["activations"]


def test_tiles_cost_another_forward_pass_of_the_mlp() -> None:
    whole, tiles = (estimated(alst("params", 65_536, tiled_mlp=tiled)).step.components for tiled in (False, True))
    assert tiles["forward"] == whole["forward"]
    assert whole["recompute"] < tiles["recompute"] < 2 * whole["recompute"]


def test_short_sequences_are_one_tile() -> None:
    plans = [alst("none", 2048, tiled_mlp=tiled) for tiled in (False, True)]
    whole, tiles = (estimated(plan.patch({"layout.recompute": "full"})).memory.total[0] for plan in plans)
    assert tiles == pytest.approx(whole, rel=0.01)


def test_a_framework_without_tiles_says_who_has_them() -> None:
    plan = alst("none", 4096, tiled_mlp=True).patch({"workload.framework": "torchtune", "layout": None})
    with pytest.raises(PlanError, match=r"workload\.tiled_mlp: torchtune has no MLP in tiles.*axolotl"):
        plan_training(plan)
