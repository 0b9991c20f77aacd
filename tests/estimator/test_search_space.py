"""The whole space: what is enumerated is what an independent, slow enumeration finds, and leaving out loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from estimator_jobs import make_job, open_job
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, RECOMPUTE, SCHEDULES, Layouts, recompute_code
from estimator.plan.training.job import Job
from estimator.search import layouts as search_module
from estimator.search.layouts import least_bytes, neighbours, objective_order, pareto, search, search_whole
from estimator.search.ranking import alternatives
from estimator.search.space import USUAL, WHOLE, Space, candidates, enumerated
from estimator.training.estimates import Estimates, estimate, step_seconds
from knowledge.jobs.training import job_of

NAMES = [field.name for field in fields(Layouts)]


def rows_of(layouts: Layouts) -> list[tuple[int, ...]]:
    return list(zip(*[getattr(layouts, name).tolist() for name in NAMES], strict=True))


def micro_batches(replica: int, whole: bool) -> list[int]:
    some = {1, 2, 4, 8, 16, 32, 64, 128} | ({3, 5, 6, 7, 10, 12, 24, 48, 96} if whole else set())
    return [size for size in sorted(some) if replica % size == 0]


def splits(job: Job, whole: bool) -> Iterator[tuple[int, int, int, int, int, int]]:
    """(tp, pp, cp, dp, ep, etp) one by one, each rule a plain sentence."""
    described, framework, count = job.architecture, job.framework, job.machine.count
    sizes = range(1, count + 1)
    tensors = framework.limits.tp and framework.limits.searches_splits
    for tp, pp, cp in product(sizes if tensors else [1], sizes if framework.limits.pp else [1], sizes):
        if count % (tp * pp * cp) or pp > described.layers or tp > job.machine.fast_domain:
            continue
        if described.heads % tp or (described.kv_heads % tp and tp % described.kv_heads):
            continue
        usual = cp in (2, 4, 8, 16, 32, 64) and job.seq_len // cp >= 4096
        tried = usual or (whole and cp <= 128 and job.seq_len // cp >= 1024)
        searched = framework.limits.cp and framework.limits.searches_splits and tried
        if cp > 1 and not (searched and job.seq_len % (2 * cp) == 0):
            continue
        dp = count // (tp * pp * cp)
        if job.global_batch % dp:
            continue
        if not described.experts:
            yield tp, pp, cp, dp, 1, 1
        elif not framework.limits.ep:
            yield tp, pp, cp, dp, 1, tp
        else:
            for etp, ep in product(range(1, tp + 1), range(1, described.experts + 1)):
                fits = described.experts % ep == 0 and (tp * cp * dp) % (ep * etp) == 0
                only = {"tp": tp, "none": 1, "unspread": tp if ep == 1 else 1}.get(job.framework.limits.etp, etp)
                fits = fits and etp == only
                if fits and (tp % etp == 0 if whole else etp in (1, tp)):
                    yield tp, pp, cp, dp, ep, etp


def groups(job: Job, tp: int, everyone: int, stage: int, whole: bool) -> set[int]:
    found = {everyone}
    if stage != 3:
        return found
    spans = {job.machine.per_node}
    if whole:
        spans |= {size * 2**power for size in (job.machine.per_node, job.machine.fast_domain) for power in range(20)}
    for span in spans:
        group = span // tp
        if (span % tp == 0 or span == job.machine.per_node) and 1 < group < everyone and everyone % group == 0:
            found.add(group)
    return found


def kinds(job: Job, chunks: list[int], pp: int, whole: bool) -> list[tuple[int, int]]:
    """(Virtual stages, schedule): 1F1B, interleaved, and in the whole space what can be better on one chunk."""
    better = {"zero-bubble", "v-half", "dualpipe"} & set(job.framework.limits.schedules if whole and pp > 1 else ())
    return [(vpp, int(vpp > 1)) for vpp in chunks] + [(1, SCHEDULES.index(name)) for name in better]


def quarters(job: Job, layers: int, vpp: int) -> set[tuple[int, int]]:
    """block:N for a quarter, half and three quarters of a stage; Megatron recomputes as many in each virtual stage."""
    each = vpp if job.framework.recompute.by_virtual_stage else 1
    return {(3, blocks) for k in (1, 2, 3) if 0 < (blocks := -(-(layers * k // 4) // each) * each) < layers}


def slow(job: Job, whole: bool) -> set[tuple[int, ...]]:
    """All layouts by loops alone."""
    found, layers = set(), job.architecture.layers
    partly = job.framework.recompute.selective != "none"
    for tp, pp, cp, dp, ep, etp in splits(job, whole):
        replica = job.global_batch // dp
        modes = {(0, 0), (2, 0)} | ({(1, 0)} if partly else set())
        stage_layers = -(-layers // pp)
        for micro in micro_batches(replica, whole):
            chunks = [1]
            for vpp in range(2, 17 if whole else 9):
                even = any((layers + more) % (pp * vpp) == 0 for more in ((0, 1, 2) if whole else (0,)))
                if pp > 1 and (replica // micro) % pp == 0 and pp * vpp <= layers and even:
                    chunks.append(vpp)
            for (vpp, kind), stage in product(kinds(job, chunks, pp, whole), job.framework.limits.zero_stages):
                blocks = quarters(job, stage_layers, vpp) if whole and partly else set[tuple[int, int]]()
                for mode, group in product(modes | blocks, groups(job, tp, dp * cp, stage, whole)):
                    for sequence in {int(tp > 1), 0 if whole else int(tp > 1)}:
                        found.add((tp, sequence, pp, vpp, kind, cp, ep, etp, dp, stage, group, *mode, 0, micro,
                                   replica // micro))  # fmt: skip
    return found


SMALL = [
    ("meta-llama/Llama-3.1-8B", "megatron-lm", 16, 64, 4096),
    ("meta-llama/Llama-3.1-8B", "torchtitan", 12, 36, 16384),
    ("meta-llama/Llama-3.1-8B", "fsdp2", 32, 96, 4096),
    ("meta-llama/Llama-3.1-8B", "deepspeed", 6, 30, 8192),
    ("Qwen/Qwen2.5-7B", "nanotron", 8, 8, 4096),
    ("mistralai/Mixtral-8x7B-v0.1", "megatron-lm", 8, 24, 4096),
    ("mistralai/Mixtral-8x7B-v0.1", "torchtitan", 16, 16, 4096),
    ("mistralai/Mixtral-8x7B-v0.1", "deepspeed", 16, 32, 4096),
    ("Qwen/Qwen3-30B-A3B", "maxtext", 8, 16, 8192),
    ("gpt2", "megatron-lm", 6, 12, 1024),
]


def small_job(model: str, framework: str, count: int, batch: int, seq_len: int, **more: Any) -> Job:
    return open_job(
        model=model, workload_framework=framework, cluster_count=count, workload_global_batch=batch,
        workload_seq_len=seq_len, **more,
    )  # fmt: skip


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
@pytest.mark.parametrize("space", [USUAL, WHOLE], ids=["usual", "whole"])
def test_the_space_is_what_a_slow_enumeration_finds(case: tuple[str, str, int, int, int], space: Space) -> None:
    job = small_job(*case)
    found = rows_of(candidates(job, space))
    assert len(found) == len(set(found))
    assert set(found) == slow(job, space.whole)


def test_a_base_and_a_group_are_what_they_say() -> None:
    every = enumerated(small_job(*SMALL[5]), WHOLE)
    layouts, base, group = every.layouts(), every.rows["base"], every.rows["group"]
    assert (np.diff(base) >= 0).all()
    assert (np.diff(group) >= 0).all()
    for numbers, names in ((base, ("tp", "pp", "cp", "ep", "etp", "zero_stage", "shard_group", "offload")),
                           (group, ("micro_batch", "vpp", "sequence_parallel"))):  # fmt: skip
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        place = np.cumsum(np.diff(numbers, prepend=-1) > 0) - 1
        for name in names:
            values = getattr(layouts, name)
            assert (values == values[starts][place]).all(), name
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    assert (layouts.recompute[heads] == RECOMPUTE.index("none")).all()


@pytest.mark.parametrize("kind", ["zero-bubble", "v-half"])
def test_schedules_of_a_space_are_tried_where_there_is_a_pipeline(kind: str) -> None:
    job = small_job(*SMALL[0])
    found = candidates(job, replace(WHOLE, schedules=("1f1b", kind)))
    other = found.schedule == SCHEDULES.index(kind)
    assert other.any()
    assert (found.pp[other] > 1).all()
    assert (found.vpp[other] == 1).all()
    assert rows_of(found.take(~other)) == rows_of(candidates(job, WHOLE))


def kinds_found(framework: str, **more: Any) -> set[str]:
    job = small_job("meta-llama/Llama-3.1-8B", framework, 8, 32, 4096, **more)
    return {SCHEDULES[kind] for kind in candidates(job, WHOLE).schedule.tolist()}


def test_the_whole_space_has_the_schedules_of_the_framework() -> None:
    """GPipe is never better than 1F1B, and a compiled backward pass cannot be split."""
    assert kinds_found("megatron-lm") == {"1f1b", "interleaved"}
    assert kinds_found("torchtitan") == {"1f1b", "interleaved", "zero-bubble"}
    assert kinds_found("torchtitan", workload_compile=True) == {"1f1b", "interleaved"}
    assert kinds_found("primus") == {"1f1b", "interleaved", "zero-bubble", "v-half"}
    assert kinds_found("megatron-deepspeed") == {"1f1b"}
    usual = candidates(small_job("meta-llama/Llama-3.1-8B", "primus", 8, 32, 4096))
    assert set(usual.schedule.tolist()) == {SCHEDULES.index("1f1b"), SCHEDULES.index("interleaved")}


def fields_of(index: int, estimates: Estimates) -> dict[str, Any]:
    layouts = estimates.layouts
    return {"layout": layouts.row(index), "workload.micro_batch": int(layouts.micro_batch[index])}


WHOLES = [search_whole(small_job(*case)) for case in SMALL]


@settings(max_examples=examples(80))
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 10**6))
def test_what_the_search_returns_is_valid_and_the_same_alone(which: int, draw: int) -> None:
    """Named whole in a plan it is accepted as the one candidate, and its estimate is that of the batch."""
    estimates = WHOLES[which].estimates
    index = draw % len(estimates.layouts)
    job = job_of(estimates.job.plan.patch(fields_of(index, estimates)))
    named = candidates(job)
    assert rows_of(named) == [rows_of(estimates.layouts.take(np.array([index])))[0]]
    alone = estimate(job, named)
    assert alone.memory.total[0] == estimates.memory.total[index]
    assert alone.fits[0] == estimates.fits[index]
    if estimates.fits[index]:
        assert alone.step.seconds[0] == estimates.step.seconds[index]


TRIMMED = [(*SMALL[0], {}), (*SMALL[1], {}), ("mistralai/Mixtral-8x7B-v0.1", "megatron-lm", 16, 16, 4096, {}),
           (*SMALL[8], {}),
           ("meta-llama/Llama-3.1-70B", "megatron-lm", 32, 64, 4096, {}),
           ("meta-llama/Llama-3.1-70B", "fsdp2", 64, 64, 4096, {}),
           ("meta-llama/Llama-3.1-70B", "torchtitan", 16, 32, 4096, {"workload_method": "lora"}),
           ("meta-llama/Llama-3.1-8B", "megatron-lm", 8, 64, 4096, {"layout_schedule": "interleaved"}),
           ("meta-llama/Llama-3.1-8B", "megatron-lm", 8, 64, 4096, {"layout_recompute": "full"})]  # fmt: skip


@pytest.mark.parametrize("objective", ["throughput", "memory"])
@pytest.mark.parametrize("case", TRIMMED, ids=lambda case: f"{case[0]}-{case[1]}-{case[5]}")
def test_leaving_out_early_loses_nothing(case: Any, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same best, and the same of all that is within a quarter of it, as where everything is estimated."""
    job = small_job(*case[:5], **case[5], goal_objective=objective)
    every = enumerated(job, WHOLE)
    all_of_them = estimate(job, every.layouts())
    monkeypatch.setattr(search_module, "_MANY", 0)
    hopeful, lean = search_module._hopeful(job, every)
    kept = np.zeros(len(every), dtype=bool)
    kept[hopeful] = True
    assert all_of_them.fits.any()
    assert kept[all_of_them.fits].all()
    assert all_of_them.memory.total[lean].min() == all_of_them.memory.total.min()
    monkeypatch.setattr(search_module, "_TOO_MANY", 0)
    monkeypatch.setattr(search_module, "_FIRST", 20)
    monkeypatch.setattr(search_module, "_OF_EACH", 2)
    monkeypatch.setattr(search_module, "_LEAN", 5)
    found = search_whole(job)
    seconds, fits = found.estimates.step.seconds, found.estimates.fits
    rows = rows_of(found.estimates.layouts)
    assert len(rows) == len(set(rows))
    assert found.valid >= len(every) >= len(hopeful)
    if objective == "memory":
        assert found.estimates.memory.total[found.order[0]] <= all_of_them.memory.total[all_of_them.fits].min()
        return
    best = all_of_them.step.seconds[all_of_them.fits].min()
    assert seconds[found.order[0]] == seconds[fits].min() <= best
    near = all_of_them.fits & (all_of_them.step.seconds <= 1.25 * best)
    assert {row for row, is_near in zip(rows_of(all_of_them.layouts), near, strict=True) if is_near} <= set(rows)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_no_recompute_is_the_fastest_of_its_group(case: tuple[str, str, int, int, int]) -> None:
    job = small_job(*case)
    every = enumerated(job, WHOLE)
    pick = np.flatnonzero(every.rows["group"] % 7 == 0)
    group = every.rows["group"][pick]
    seconds = step_seconds(job, every.layouts(pick))
    heads = np.flatnonzero(np.diff(group, prepend=-1))
    place = np.cumsum(np.diff(group, prepend=-1) > 0) - 1
    assert (seconds >= seconds[heads][place] * (1 - 1e-12)).all()


@pytest.mark.parametrize("given", [{}, {"layout_recompute": "block:2"}, {"workload_moe_overlap": True}])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_groups_written_out_by_and_by_are_those_of_the_whole(case: Any, given: dict[str, Any]) -> None:
    try:
        every = enumerated(small_job(*case, **given), WHOLE)
    except PlanError:
        return
    rows, groups = every.rows, np.unique(every.rows["group"])
    assert (np.diff(rows["place"]) > 0).all()
    assert (np.diff(rows["group"]) >= 0).all()
    assert (np.diff(rows["base"]) >= 0).all()
    starts = np.flatnonzero(np.diff(rows["group"], prepend=-1))
    for name, values in every.heads().items():
        assert (values == rows[name][starts]).all()
    some = groups[::3][::-1]
    parts = [np.flatnonzero(rows["group"] == group) for group in some[:50]]
    for name, values in every.rows_of(some[:50]).items():
        assert (values == rows[name][np.concatenate(parts)]).all()


PLANS = [*SMALL, ("meta-llama/Llama-3.1-405B", "megatron-lm", 1024, 1024, 8192),
         ("deepseek-ai/DeepSeek-V3", "megatron-lm", 256, 512, 4096),
         ("meta-llama/Llama-3.1-70B", "torchtitan", 64, 128, 8192)]  # fmt: skip


@pytest.mark.parametrize("objective", ["throughput", "memory"])
@pytest.mark.parametrize("case", PLANS, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_the_whole_space_is_never_worse_than_the_usual_one(case: Any, objective: str) -> None:
    job = small_job(*case, goal_objective=objective)
    usual, order = search(job)
    found = search_whole(job)
    new = found.estimates
    if not usual.fits.any():
        assert new.fits.any() or new.memory.total[found.order[0]] <= usual.memory.total[order[0]]
        return
    assert new.fits[found.order[0]]
    for values, best in (
        ((new.step.seconds, usual.step.seconds),)
        if objective == "throughput"
        else ((new.memory.total, usual.memory.total),)
    ):
        assert values[found.order[0]] <= best[order[0]]


@pytest.mark.parametrize("offload", [False, True])
@pytest.mark.parametrize(
    "case", [*SMALL, ("meta-llama/Llama-3.1-70B", "deepspeed", 8, 64, 4096)], ids=lambda case: f"{case[0]}-{case[1]}"
)
def test_the_least_memory_is_that_of_the_search_for_it(case: Any, offload: bool) -> None:
    job = small_job(*case, goal_objective="memory")
    found = search_whole(job, offload=offload)
    least = least_bytes(job, offload=offload)
    best = int(found.order[0])
    assert least.bytes == pytest.approx(found.estimates.memory.total[best], rel=1e-12)
    assert least.offloads == (found.estimates.fits[best] and OFFLOAD[found.estimates.layouts.offload[best]] != "none")


def test_offloading_is_tried_only_where_nothing_fits_without() -> None:
    roomy = small_job("meta-llama/Llama-3.1-8B", "deepspeed", 8, 64, 4096)
    assert (search_whole(roomy).estimates.layouts.offload == 0).all()
    tight = small_job("meta-llama/Llama-3.1-70B", "deepspeed", 8, 64, 4096)
    without = search_whole(small_job("meta-llama/Llama-3.1-70B", "deepspeed", 8, 64, 4096, layout_offload="none"))
    found = search_whole(tight)
    assert not without.estimates.fits.any()
    assert found.estimates.fits[found.order[0]]
    assert OFFLOAD[found.estimates.layouts.offload[found.order[0]]] != "none"
    assert found.valid > without.valid
    weights = found.estimates.layouts.offload == OFFLOAD.index("params")
    assert (found.estimates.layouts.zero_stage[weights] == 3).all()


def test_the_fewest_blocks_that_fit_are_recomputed() -> None:
    job = small_job("meta-llama/Llama-3.1-70B", "fsdp2", 64, 64, 4096)
    found = search_whole(job)
    best = int(found.order[0])
    assert found.estimates.layouts.recompute[best] == RECOMPUTE.index("block")
    one = found.estimates.layouts.take(np.array([best]))
    blocks = int(one.recompute_layers[0])
    assert found.estimates.fits[best]
    fewer = replace(one, recompute_layers=one.recompute_layers - 1)
    if blocks == 1:
        fewer = replace(fewer, recompute=one.recompute * 0 + recompute_code("none")[0])
    assert not estimate(job, fewer).fits[0]


@pytest.mark.parametrize("which", range(len(SMALL)))
def test_alternatives_differ_in_kind_before_they_differ_in_detail(which: int) -> None:
    found = WHOLES[which]
    estimates, layouts = found.estimates, found.estimates.layouts
    chosen = alternatives(estimates, found.order, 6)
    assert len(set(chosen)) == len(chosen) == max(0, min(6, int(estimates.fits.sum()) - 1))
    assert int(found.order[0]) not in chosen
    assert estimates.fits[chosen].all()
    assert alternatives(estimates, found.order, 2) == chosen[:2]

    def kind(index: int) -> tuple[Any, ...]:
        values = [int(getattr(layouts, name)[index]) for name in ("tp", "pp", "cp", "ep", "offload")]
        return (*values, bool(layouts.zero_stage[index] >= 3))

    kinds = {kind(int(index)) for index in np.flatnonzero(estimates.fits)} or {kind(int(found.order[0]))}
    assert len({kind(index) for index in [int(found.order[0]), *chosen]}) == min(7, len(kinds))


@pytest.mark.parametrize("objective", ["throughput", "memory"])
@pytest.mark.parametrize("which", [0, 5, 6])
def test_a_rule_names_what_grew_or_what_is_short(which: int, objective: str) -> None:
    found = search_whole(small_job(*SMALL[which], goal_objective=objective))
    estimates, best = found.estimates, int(found.order[0])
    rules = neighbours(estimates, best, found.order)
    assert {int(estimates.layouts.tp[index]) for index, _ in rules} >= {1, 2, 4, 8} - {int(estimates.layouts.tp[best])}
    for index, rule in rules:
        if rule.startswith("fits"):
            assert estimates.fits[index]
            assert "instead of" in rule
        elif rule.startswith("does not"):
            assert "GiB short at" in rule
            assert "instead of" in rule or "alone" in rule
        else:
            assert rule.startswith("equal")


def test_a_large_batch_keeps_totals_and_makes_details_when_asked() -> None:
    job = small_job(*SMALL[5])
    few = estimate(job, candidates(job))
    index = np.resize(np.arange(len(few.layouts)), 40_000)
    many = estimate(job, few.layouts.take(index))
    assert many.memory.components == many.memory.component_peaks == many.step.components == {}
    assert np.array_equal(many.memory.total, few.memory.total[index])
    detail = many.of(3, 39_999)
    for place, at in enumerate((index[3], index[39_999])):
        for name, values in few.memory.components.items():
            assert detail.memory.components[name][place] == values[at], name
        for name, values in few.step.components.items():
            assert detail.step.components[name][place] == values[at], name
    one = estimate(job, few.layouts.take(np.array([0])))
    assert one.of(0) is one


def test_times_of_what_does_not_fit_can_be_left_out() -> None:
    job = small_job("meta-llama/Llama-3.1-70B", "megatron-lm", 32, 64, 4096)
    everything = estimate(job, candidates(job))
    some = estimate(job, candidates(job), misfit_times=False)
    assert 0 < everything.fits.sum() < len(everything.layouts)
    assert np.array_equal(some.fits, everything.fits)
    assert np.isnan(some.step.seconds[~some.fits]).all()
    assert np.array_equal(some.step.seconds[some.fits], everything.step.seconds[some.fits])
    count = int(some.fits.sum())
    assert np.array_equal(objective_order(some)[:count], objective_order(everything)[:count])
    assert (np.diff(some.memory.total[objective_order(some)[count:]]) >= 0).all()
    assert np.array_equal(pareto(some), pareto(everything))


def test_a_plan_that_cannot_be_is_refused_in_either_space() -> None:
    job = make_job({"layout": {"tp": 3}})
    for space in (USUAL, WHOLE):
        with pytest.raises(PlanError, match="tp=3"):
            candidates(job, space)


@pytest.mark.parametrize(("accelerator", "offloads"), [("apple-m4-pro", {"none"}), ("rtx-4090", {"none", "params"})])
def test_nothing_is_offloaded_where_device_and_host_have_one_memory(accelerator: str, offloads: set[str]) -> None:
    job = open_job(
        model="meta-llama/Llama-3.2-3B",
        workload_framework="torchtune",
        cluster_accelerator=accelerator,
        cluster_count=1,
    )
    tried = candidates(job, replace(WHOLE, offloads=("none", "params"))).offload
    assert {OFFLOAD[index] for index in set(tried.tolist())} == offloads
