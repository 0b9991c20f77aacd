"""Pipeline schedules: how many micro-batches a stage holds, and which layers a device has, by the published tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_jobs import make_job, with_layout
from hypothesis import given
from hypothesis import strategies as st
from memory_jobs import kept, layouts_of

from estimator.plan.layouts import SCHEDULES, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import stage_shape
from estimator.training.activations_held import in_flight
from estimator.training.memory import stage_memory

MANY = 64


def pipeline(
    pp: int, schedule: str = "1f1b", vpp: int = 1, grad_accum: int = MANY, **changes: Any
) -> tuple[Job, Layouts]:
    """Llama-3.1-8B (untied) in `pp` stages."""
    job = make_job({"layout": {"tp": 1, "pp": pp, "dp": 1}, "cluster.count": pp} | changes)
    layouts = with_layout(layouts_of(job), vpp=vpp, schedule=SCHEDULES.index(schedule), grad_accum=grad_accum)
    return job, with_layout(layouts, zero_stage=0)


def held(pp: int, schedule: str = "1f1b", vpp: int = 1, grad_accum: int = MANY) -> list[float]:
    """Micro-batches in flight on each stage, in units of all its layers."""
    _, layouts = pipeline(pp, schedule, vpp, grad_accum)
    return [float(in_flight(layouts, np.array([stage]))[0]) for stage in range(pp)]


@pytest.mark.parametrize("schedule", ["1f1b", "zero-bubble"])
def test_one_forward_one_backward_holds_one_per_stage_behind(schedule: str) -> None:
    # Narayanan et al. 2021, section 2.2.1; ZB-H1 has the same peak (Qi et al. 2023, table 2).
    assert held(4, schedule) == [4, 3, 2, 1]
    assert held(8, schedule) == [8, 7, 6, 5, 4, 3, 2, 1]


def test_gpipe_holds_all() -> None:
    assert held(4, "gpipe") == [MANY] * 4
    assert held(4, "gpipe", grad_accum=6) == [6] * 4


@pytest.mark.parametrize(("pp", "vpp"), [(4, 2), (8, 2), (8, 4), (2, 8)])
def test_interleaving_holds_more_on_the_first_stage_by_a_known_factor(pp: int, vpp: int) -> None:
    # Korthikanti et al. 2022, section 4.2.3: 1 + (p - 1) / (p m) times the activations of 1F1B.
    stages = held(pp, "interleaved", vpp)
    assert stages[0] == pytest.approx(pp * (1 + (pp - 1) / (pp * vpp)))
    # Each stage behind warms up two chunks fewer (Megatron, forward_backward_pipelining_with_interleaving).
    assert np.diff(stages) == pytest.approx([-2 / vpp] * (pp - 1))


@pytest.mark.parametrize(("pp", "micro_batches"), [(2, 2), (4, 3), (8, 5), (16, 9)])
def test_v_half_holds_half_and_the_same_on_every_stage(pp: int, micro_batches: int) -> None:
    assert held(pp, "v-half") == [micro_batches] * pp  # Qi et al. 2024, table 1: (p + 2) / 2 micro-batches


@pytest.mark.parametrize("pp", [2, 4, 8, 16])
def test_dualpipe_holds_one_more_than_there_are_stages(pp: int) -> None:
    # DeepSeek-V3 report, table 2: PP + 1 activations, each of half of what a device has.
    job, layouts = pipeline(pp, "dualpipe")
    for stage in range(pp):
        at = np.array([stage])
        layers = stage_shape(job.architecture, layouts, at).layer_count[0]
        assert in_flight(layouts, at)[0] * layers == (pp + 1) * job.architecture.layers / pp


@given(
    st.sampled_from(SCHEDULES), st.sampled_from([2, 4, 8]), st.sampled_from([1, 2, 4]), st.integers(1, 20)
)  # fmt: skip
def test_no_more_are_in_flight_than_there_are(schedule: str, pp: int, vpp: int, grad_accum: int) -> None:
    now, more = (held(pp, schedule, vpp, count) for count in (grad_accum, grad_accum + 1))
    assert all(0 < size <= grad_accum for size in now)
    assert all(size <= later for size, later in zip(now, more, strict=True))


def weights(pp: int, schedule: str) -> list[float]:
    job, layouts = pipeline(pp, schedule)
    return [float(stage_memory(job, layouts, np.array([stage])).component_peaks["weights"][0]) for stage in range(pp)]


@pytest.mark.parametrize("pp", [2, 4, 8])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_only_dualpipe_holds_the_weights_twice(pp: int, schedule: str) -> None:
    parameters = pipeline(pp)[0].architecture.parameters
    assert sum(weights(pp, schedule)) == pytest.approx(2 * parameters * (2 if schedule == "dualpipe" else 1))


def test_dualpipe_is_symmetric_and_v_half_has_both_ends_on_the_first_device() -> None:
    dual = weights(4, "dualpipe")
    assert dual == pytest.approx(dual[::-1])
    job, layouts = pipeline(4, "v-half")
    shapes = [stage_shape(job.architecture, layouts, np.array([stage])) for stage in range(4)]
    assert [shape.has_embedding[0] for shape in shapes] == [1, 0, 0, 0]
    assert [shape.has_head[0] for shape in shapes] == [1, 0, 0, 0]
    assert sum(float(shape.layer_count[0]) for shape in shapes) == job.architecture.layers


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_kept_activations_are_those_of_the_micro_batches_in_flight(schedule: str) -> None:
    vpp = 2 if schedule == "interleaved" else 1
    found = []
    for grad_accum in (1, MANY):
        job, layouts = pipeline(4, schedule, vpp, grad_accum)
        found.append(kept(job, layouts, 1))
    expected = held(4, schedule, vpp)[1] / held(4, schedule, vpp, 1)[1]
    assert found[1] / found[0] == pytest.approx(expected, rel=1e-9)


def test_the_fullest_stage_keeps_less_where_fewer_are_in_flight() -> None:
    # In all, V-half may still take more: its first device has the embedding, the head and the logits.
    most = {}
    for schedule in ("v-half", "1f1b", "gpipe"):
        job, layouts = pipeline(8, schedule)
        most[schedule] = max(kept(job, layouts, stage) for stage in range(8))
    assert most["v-half"] == pytest.approx(5 / 8 * most["1f1b"], rel=0.02)
    assert most["gpipe"] == pytest.approx(MANY / 8 * most["1f1b"], rel=0.02)
