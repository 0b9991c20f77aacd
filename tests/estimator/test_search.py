"""The search: every candidate could run, everything asked for is kept, and the best is the best of what fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimator_jobs import MODELS, make_job, make_plan, open_job
from hypothesis import given
from hypothesis import strategies as st

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, SCHEDULES, Layouts, recompute_code
from estimator.plan.schema import Plan
from estimator.search.layouts import candidates, divisors, neighbours, objective_order, pareto, search, valid_tp
from knowledge.fitted.training import framework
from knowledge.jobs.training import job_of
from knowledge.models.catalogue import architecture

FRAMEWORKS = ("megatron-lm", "torchtitan", "deepspeed", "fsdp2", "hf-trainer", "nanotron", "torchtune", "llmboost")


def refusal(**flat: Any) -> PlanError | None:
    """Why a plan has no candidates; None when it has some."""
    try:
        return None if len(candidates(open_job(**flat))) else PlanError("layout", "there are no candidates")
    except PlanError as error:
        return error


def error_of(**flat: Any) -> PlanError:
    error = refusal(**flat)
    assert error is not None
    return error


@given(st.integers(1, 5000))
def test_divisors_are_all_divisors_in_order(number: int) -> None:
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


@given(
    st.sampled_from(MODELS), st.sampled_from(FRAMEWORKS), st.sampled_from([1, 2, 6, 8, 24, 64]),
    st.sampled_from([1, 2, 5, 16, 96, 480]), st.sampled_from([1024, 16384]),
)  # fmt: skip
def test_every_candidate_could_run(model: str, name: str, count: int, samples: int, seq_len: int) -> None:
    job = open_job(
        model=model, cluster_count=count, workload_framework=name, workload_seq_len=seq_len,
        workload_global_batch=samples * count,
    )  # fmt: skip
    if name == "hf-trainer" and count > 64:
        return
    found = candidates(job)
    assert len(found) > 0
    check_runnable(job.plan, found, model, count)


def check_runnable(plan: Plan, found: Layouts, model: str, count: int) -> None:
    profile, described = framework(plan.training.framework), architecture(model)
    batch, seq_len = plan.training.global_batch, plan.training.seq_len
    assert batch is not None
    assert seq_len is not None
    assert (found.tp * found.pp * found.cp * found.dp == count).all()
    assert (found.micro_batch * found.grad_accum * found.dp == batch).all()
    assert (described.heads % found.tp == 0).all()
    assert set(np.unique(found.tp).tolist()) <= set(valid_tp(described))
    assert (found.pp <= described.layers).all()
    assert (found.pp * found.vpp <= described.layers).all()
    assert (found.vpp[found.pp == 1] == 1).all()
    assert (found.grad_accum[found.vpp > 1] % found.pp[found.vpp > 1] == 0).all()
    assert (seq_len % (2 * found.cp)[found.cp > 1] == 0).all()
    assert ((found.tp * found.cp * found.dp) % (found.ep * found.etp) == 0).all() or not described.experts
    assert (max(1, described.experts) % found.ep == 0).all()
    assert (found.dp * found.cp % found.shard_group == 0).all()
    assert set(np.unique(found.zero_stage).tolist()) <= set(profile.limits.zero_stages)
    for field in ("tp", "pp", "cp", "ep"):
        assert getattr(profile.limits, field) or (getattr(found, field) == 1).all(), field
    rows = {(found.summary(index), found.row(index)["schedule"]) for index in range(len(found))}
    assert len(rows) >= len(found) / 2  # etp is not in the summary; nothing else may repeat


GIVEN: list[tuple[str, Any]] = [
    ("layout.tp", 2), ("layout.pp", 4), ("layout.cp", 2), ("layout.dp", 4), ("layout.dp", 16), ("layout.ep", 4),
    ("layout.etp", 2), ("layout.vpp", 2), ("layout.schedule", "zero-bubble"), ("layout.schedule", "interleaved"),
    ("layout.zero_stage", 0), ("layout.shard_group", 4), ("layout.recompute", "block:2"), ("layout.recompute", "full"),
    ("layout.offload", "optimizer"), ("layout.sequence_parallel", False), ("workload.micro_batch", 2),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), GIVEN, ids=str)
def test_what_is_given_is_kept(field: str, value: Any) -> None:
    job = make_job({"model": "Qwen/Qwen3-30B-A3B", "layout": None, "workload.micro_batch": None})
    job = job_of(job.plan.patch({field: value}))
    found = candidates(job)
    name = field.partition(".")[2]
    values = getattr(found, name)
    if name == "recompute":
        code, layers = recompute_code(value)
        assert (values == code).all()
        assert (found.recompute_layers == layers).all()
    elif name == "schedule" and value == "interleaved":
        assert (values == SCHEDULES.index(value)).all()
        assert (found.vpp > 1).any()
    else:
        names = {"offload": OFFLOAD, "schedule": SCHEDULES}.get(name)
        wanted = names.index(value) if names else value
        assert (values == wanted).all()


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.sampled_from([0, 1]))
def test_a_layout_named_whole_is_one_candidate(tp: int, pp: int, cp: int, zero: int) -> None:
    if 16 % (tp * pp * cp):
        return
    layout = {"tp": tp, "pp": pp, "cp": cp, "vpp": 1, "zero_stage": zero, "recompute": "full", "dp": None}
    found = candidates(make_job({"layout": layout, "workload.seq_len": 8192}))
    assert len(found) == 1
    row = found.row(0)
    assert (row["tp"], row["pp"], row["cp"], row["dp"]) == (tp, pp, cp, 16 // (tp * pp * cp))
    assert (row["zero_stage"], row["recompute"]) == (zero, "full")


def test_weights_are_sharded_over_all_or_over_nodes_unless_the_plan_says() -> None:
    base = {"workload_framework": "fsdp2", "workload_global_batch": 64}
    for more in ({}, {"layout_zero_stage": 3}):
        opened = candidates(open_job(**base, **more))
        assert set(opened.shard_group[opened.zero_stage == 3].tolist()) == {8, 16}
    for group in (8, 16):
        named = candidates(open_job(**base, layout_zero_stage=3, layout_shard_group=group))
        assert set(named.shard_group.tolist()) == {group}
        assert named.row(0)["shard_group"] == group


@pytest.mark.parametrize("objective", ["throughput", "cost", "time", "memory"])
@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"])
def test_the_best_fits_if_anything_does_and_is_best_at_its_goal(model: str, objective: str) -> None:
    job = open_job(
        model=model, workload_framework="megatron-lm", workload_global_batch=64, goal_objective=objective,
        cluster_count=32,
    )  # fmt: skip
    estimates, order = search(job)
    assert sorted(order.tolist()) == list(range(len(estimates.layouts)))
    fits = estimates.fits[order]
    assert fits[0]
    assert not (np.diff(fits.astype(int)) > 0).any()  # all that fit come before all that do not
    values = estimates.high_bytes if objective == "memory" else estimates.step.seconds
    assert values[order[0]] <= values[estimates.fits].min() * (1 + 1e-9)


def test_when_nothing_fits_the_least_memory_comes_first() -> None:
    job = open_job(model="meta-llama/Llama-3.1-405B", cluster_count=8, workload_framework="deepspeed",
                   workload_global_batch=8)  # fmt: skip
    estimates, order = search(job)
    assert not estimates.fits.any()
    assert estimates.memory.total[order[0]] == estimates.memory.total.min()
    assert len(pareto(estimates)) == 0
    assert all("does not fit" in rule for _, rule in neighbours(estimates, int(order[0])))


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1"])
def test_the_pareto_front_is_what_nothing_beats_in_both(model: str) -> None:
    estimates, order = search(open_job(model=model, workload_framework="megatron-lm", workload_global_batch=64))
    front = pareto(estimates)
    seconds, memory = estimates.step.seconds, estimates.memory.total
    assert estimates.fits[front].all()
    assert (np.diff(seconds[front]) >= 0).all()
    assert (np.diff(memory[front]) < 0).all()
    for index in np.flatnonzero(estimates.fits):
        assert ((seconds[front] <= seconds[index]) & (memory[front] <= memory[index])).any()
    for index in front:
        better = estimates.fits & (seconds < seconds[index]) & (memory < memory[index])
        assert not better.any()
    assert seconds[front[0]] == seconds[estimates.fits].min()
    assert seconds[order[0]] == seconds[front[0]]


@pytest.mark.parametrize("objective", ["throughput", "memory"])
def test_each_neighbour_differs_in_its_field_and_has_a_rule(objective: str) -> None:
    job = open_job(workload_framework="megatron-lm", workload_global_batch=64, goal_objective=objective)
    estimates, order = search(job)
    best = int(order[0])
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    found = neighbours(estimates, best)
    assert found
    for index, rule in found:
        assert index != best
        assert rank[index] > 0
        assert rule.startswith("does not fit") != bool(estimates.fits[index])
        if "slower" in rule:
            assert estimates.step.seconds[index] > estimates.step.seconds[best]
        if "more" in rule:
            assert estimates.memory.total[index] > estimates.memory.total[best]
        if objective == "memory":
            assert "slower" not in rule
    fields = ("tp", "pp", "cp", "ep", "zero_stage", "recompute", "micro_batch", "vpp")
    columns = [getattr(estimates.layouts, name) for name in fields]
    different = [any(column[index] != column[best] for column in columns) for index, _ in found]
    assert all(different)


def test_the_order_is_the_same_every_time() -> None:
    estimates, order = search(open_job(workload_framework="megatron-lm", workload_global_batch=64))
    assert (objective_order(estimates) == order).all()


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("Qwen/Qwen2.5-7B", [1, 2, 4, 28]),  # 28 heads, 4 key/value heads: 7 and 14 fit neither way
        ("meta-llama/Llama-3.1-8B", [1, 2, 4, 8, 16, 32]),
        ("gpt2", [1, 2, 3, 4, 6, 12]),
        ("tiiuae/falcon-7b", [1, 71]),
    ],
)
def test_tensor_parallel_sizes_go_with_both_kinds_of_heads(model: str, sizes: list[int]) -> None:
    assert valid_tp(architecture(model)) == sizes


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"model": "Qwen/Qwen2.5-7B", "layout_tp": 8}, "layout.tp",
     "layout.tp: tp=8 does not divide the 28 attention heads of Qwen/Qwen2.5-7B; valid: 1 2 4 28"),
    ({"model": "Qwen/Qwen2.5-7B", "layout_tp": 7}, "layout.tp", "the 4 key/value heads"),
    ({"layout_tp": 3}, "layout.tp", "valid: 1 2 4 8 16 32"),
    ({"layout_tp": 2, "workload_framework": "deepspeed"}, "layout.tp", "deepspeed has no tensor parallelism"),
    ({"layout_pp": 2, "workload_framework": "fsdp2"}, "layout.pp", "fsdp2 has no pipeline parallelism"),
    ({"layout_cp": 2, "workload_framework": "nanotron", "layout_dp": 3}, "layout.dp", "does not divide the 16 devices"),
    ({"layout_pp": 5}, "layout.pp", "valid: 1 2 4 8 16"),
    ({"layout_pp": 64, "cluster_count": 64}, "layout.pp", "more than the 32 layers"),
    ({"layout_pp": 16, "layout_vpp": 4}, "layout.pp", "valid: up to 8"),
    ({"layout_pp": 1, "layout_vpp": 2}, "layout.vpp", "valid: 1"),
    ({"layout_vpp": 2, "workload_framework": "deepspeed"}, "layout.vpp", "needs pipeline stages"),
    ({"layout_schedule": "dualpipe", "workload_framework": "fsdp2"}, "layout.schedule", "valid: 1f1b"),
    ({"layout_ep": 2}, "layout.ep", "has no experts; valid: 1"),
    ({"layout_etp": 2}, "layout.etp", "has no experts; valid: 1"),
    ({"model": "mistralai/Mixtral-8x7B-v0.1", "layout_ep": 3}, "layout.ep", "valid: 1 2 4 8"),
    ({"layout_tp": 2, "layout_pp": 2, "layout_cp": 1, "layout_dp": 8}, "layout.dp", "dp must be 4; valid: 4"),
    ({"layout_tp": 8, "layout_dp": 4}, "layout.dp", "valid: 1 2"),
    ({"layout_cp": 2, "workload_seq_len": 4099}, "layout.cp", "valid: 1"),
    ({"layout_zero_stage": 3, "workload_framework": "nanotron"}, "layout.zero_stage", "valid: 0 1"),
    ({"layout_offload": "params"}, "layout.offload", "valid: none, optimizer"),
    ({"layout_shard_group": 3}, "layout.shard_group", "valid: 1 2 4 8 16"),
    ({"layout_tp": 2, "layout_shard_group": 16}, "layout.shard_group", "valid: 1 2 4 8"),
    ({"layout_dp": 16, "workload_global_batch": 24}, "workload.global_batch", "valid: 16 32"),
    ({"workload_framework": "deepspeed", "workload_global_batch": 8}, "workload.global_batch", "valid: 16"),
    ({"workload_framework": "deepspeed", "workload_global_batch": 40}, "workload.global_batch", "valid: 32 48"),
    ({"workload_framework": "deepspeed", "workload_global_batch": 16, "workload_micro_batch": 2},
     "workload.global_batch", "valid: 32"),
    ({"workload_micro_batch": 3, "workload_global_batch": 64}, "workload.micro_batch", "valid: 1 2 4 8 16 32 64"),
]  # fmt: skip


@pytest.mark.parametrize(("flat", "field", "says"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_is_refused_with_what_can(flat: dict[str, Any], field: str, says: str) -> None:
    error = error_of(**({"workload_framework": "megatron-lm", "workload_global_batch": 64} | flat))
    assert error.field == field
    assert says in str(error)


@pytest.mark.parametrize(("flat", "field", "says"), REFUSED, ids=range(len(REFUSED)))
def test_a_value_named_as_valid_is_valid(flat: dict[str, Any], field: str, says: str) -> None:
    """Following the advice of an error gets past that error (what the model allows may still not suit the devices)."""
    flat = {"workload_framework": "megatron-lm", "workload_global_batch": 64} | flat
    first = error_of(**flat)
    section, _, name = field.partition(".")
    for value in first.valid:
        if value.isdigit():
            second = refusal(**(flat | {f"{section}_{name}": int(value)}))
            assert second is None or second.field != field or ("heads" in first.problem) > ("heads" in second.problem)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "deepspeed"),
        ({"workload.stage": "pretrain"}, "megatron-bridge"),
        ({"layout.tp": 8}, "megatron-bridge"),
        ({"layout.tp": 8, "layout.zero_stage": 3}, "fsdp2"),
        ({"workload.stage": "pretrain", "layout.tp": 8, "layout.zero_stage": 3}, "torchtitan"),
        ({"workload.stage": "pretrain", "layout.zero_stage": 3}, "deepspeed"),
        ({"cluster.accelerator": "mi300x", "layout.pp": 2}, "primus"),
        ({"cluster.accelerator": "tpu-v5p"}, "maxtext"),
        ({"cluster.count": 1}, "hf-trainer"),
        ({"cluster.count": 1, "layout.offload": "optimizer"}, "deepspeed"),
        ({"cluster.count": 1, "layout.zero_stage": 2}, "deepspeed"),
    ],
)
def test_the_framework_chosen_can_run_the_plan(changes: dict[str, Any], name: str) -> None:
    plan = make_plan({"layout": None, "workload.framework": None, "workload.global_batch": None}).patch(changes)
    job = job_of(plan)
    assert job.framework.name == name
    assert "workload.framework" in {assumption.field for assumption in job.assumptions}
    assert len(candidates(job)) > 0
