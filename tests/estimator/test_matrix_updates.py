"""What Muon and SOAP add to a step, by hand from the sizes of Llama-3.1-8B's matrices."""

from __future__ import annotations

from typing import Any

import pytest
from estimator_jobs import estimate_of
from memory_jobs import LLAMA_8B_MATRICES

from estimator.training.optimizers import optimizer_memory
from estimator.training.time_account import StepParts, time_accounts

LAYERS, STEPS = 32, 5


def iterations_flop() -> float:
    """A = X X', A A and (b A + c A A) X, on the shorter side of each matrix."""
    sides = [sorted(shape) for shape in LLAMA_8B_MATRICES]
    return LAYERS * STEPS * sum(4.0 * short * short * long + 2.0 * short**3 for short, long in sides)


def optimizer_s(optimizer: str = "muon", **layout: int) -> float:
    sizes = {"tp": 1, "pp": 1, "dp": 16, "zero_stage": 1} | layout
    changes: dict[str, Any] = {f"layout.{name}": value for name, value in sizes.items()}
    return float(estimate_of(changes | {"workload.optimizer": optimizer}).step.components["optimizer"][0])


def more_s(**layout: int) -> float:
    return optimizer_s("muon", **layout) - optimizer_s("adamw", **layout)


def test_every_replica_that_shards_nothing_does_all_of_it() -> None:
    rate = iterations_flop() / more_s(zero_stage=0)
    assert 0.5e15 < rate < 0.99e15  # of the H100's 989 TFLOP/s in 16 bits


def test_owners_share_it_where_states_are_sharded() -> None:
    alone = more_s(zero_stage=0)
    assert more_s() == pytest.approx(alone / 16, rel=0.3)


def test_no_owner_has_less_than_the_largest_matrix() -> None:
    short, long = sorted(max(LLAMA_8B_MATRICES, key=lambda shape: shape[0] * shape[1]))
    largest = STEPS * (4.0 * short * short * long + 2.0 * short**3) / iterations_flop()
    few, many = more_s(dp=16), optimizer_of(1024) - optimizer_of(1024, "adamw")
    assert many < few
    assert many > 0.9 * largest * more_s(zero_stage=0)


def optimizer_of(devices: int, optimizer: str = "muon") -> float:
    sizes: dict[str, Any] = {"layout.tp": 1, "layout.pp": 1, "layout.dp": devices, "cluster.count": devices}
    changes = {"workload.optimizer": optimizer, "workload.global_batch": devices}
    return float(estimate_of(sizes | changes).step.components["optimizer"][0])


def test_tensor_parallel_ranks_each_do_the_same_work() -> None:
    assert more_s(tp=4, dp=4, zero_stage=0) == pytest.approx(more_s(zero_stage=0), rel=0.1)


def test_soap_multiplies_in_fp32_and_tf32_by_the_squares_of_both_sides() -> None:
    """A product of an m x n matrix with one of its sides' squares is 2 m m n or 2 m n n FLOP, of two squares 2 m^3."""
    # Megatron's linear_qkv, linear_proj, linear_fc1 and linear_fc2.
    shapes = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
    mixed = LAYERS * sum(m * n * (m + n) for m, n in shapes)
    cubes = LAYERS * sum(m**3 + n**3 for m, n in shapes)
    # H100: 67 TFLOP/s in fp32, 494.5 in TF32.
    least = (8 * mixed + 2 * cubes) / 67e12 + (4 * mixed + 20 / 3 * cubes) / 494.5e12
    alone = optimizer_s("soap", zero_stage=0) - optimizer_s("adamw", zero_stage=0)
    assert least < alone < 2.0 * least
    assert optimizer_s("soap") < 0.3 * optimizer_s("soap", zero_stage=0)


@pytest.mark.parametrize(("optimizer", "term"), [("muon", "newton_schulz"), ("soap", "eigenbases")])
def test_the_account_of_a_step_adds_up_to_it(optimizer: str, term: str) -> None:
    estimates = estimate_of({"workload.optimizer": optimizer})
    parts = StepParts(estimates.job, estimates.layouts, estimates.step)
    account = time_accounts(parts)["time.components.optimizer"]()
    assert f"optimizer_seconds.{term}" in [term.name for term in account.terms]
    assert sum(term.value for term in account.terms) == pytest.approx(parts.component("optimizer"))


def test_adapters_have_no_temporaries_of_frozen_matrices() -> None:
    estimates = estimate_of({"workload.method": "lora", "workload.optimizer": "muon"})
    parts = StepParts(estimates.job, estimates.layouts, estimates.step)
    _, temporaries = optimizer_memory(parts.job, parts.layout, parts.first, parts.held)
    assert float(temporaries[0]) < 4.0 * max(rows * columns for rows, columns in LLAMA_8B_MATRICES)
