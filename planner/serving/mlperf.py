"""Projections of MLPerf Inference: what a machine would score in a benchmark's scenario, on one node and on several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.layouts import Floats
from estimator.plan.schema import CacheDtype, Engine, Plan, WeightDtype, merge
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, estimate, loads_of
from estimator.serving.space import deployments
from knowledge.engines import engine, runs_on
from knowledge.figures import percent
from knowledge.machines.counted import find_devices
from knowledge.mlperf import Benchmark, LatencyLimits, benchmark, loadgen_name, samples_of_run
from planner.evidence import evidence_of
from planner.named import how_read
from planner.result import Assumption
from planner.serving.options import SearchLists, joined_devices, options
from planner.serving.planned import Served, choice, chosen_of, finite, settled
from planner.serving.pool import EQUAL, Pool, Slo, goal_order, pool_of
from planner.serving.results import MlperfNodes, MlperfProjection, ServingChoice
from planner.serving.sizing import most_rate
from planner.serving.warnings import kinds_of, warnings_of

_NO_LIMIT = Slo(np.inf, np.inf, "p99")
# A rate at which nothing is served, and requests of a run whose ends do not count.
_NOTHING, _ENDLESS = 1e-9, 1e9
# Devices of a replica at the most, where fewer hold it: a rack.
_MOST_JOINED = 72


class MlperfRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
    benchmark: str = Field(
        description="llama2-70b, llama3.1-8b, llama3.1-405b, mixtral-8x7b, deepseek-r1 …",
        examples=["llama2-70b", "llama3.1-8b", "llama3.1-405b", "mixtral-8x7b", "deepseek-r1"],
    )
    accelerator: str = Field(description="Accelerator id or name, e.g. h100-sxm.", examples=["h100-sxm", "8xb200"])
    scenario: Literal["offline", "server", "interactive", "single-stream"] = Field(
        "offline", description="offline: all samples at once; server and interactive: the most within the p99 limits."
    )
    nodes: int | None = Field(None, ge=1, le=100_000, description="Nodes; one unless given.")
    count: int | None = Field(None, ge=1, le=1_000_000, description="Accelerators in all, instead of nodes.")
    per_node: int | None = Field(None, ge=1, le=4096, description="Accelerators per node, as usual unless given.")
    engine: Engine | None = Field(None, description="Serving engine; that of most submissions unless given.")
    software_version: str | None = Field(None, description="Version of the engine, where known.")
    weight_dtype: WeightDtype | None = Field(None, description="Weight format; the usual of submissions unless given.")
    kv_dtype: CacheDtype | None = Field(None, description="Format of the KV cache.")
    tp: int | None = Field(None, ge=1, le=4096, description="Tensor parallel size; searched unless given.")
    pp: int | None = Field(None, ge=1, le=4096, description="Pipeline parallel size; searched unless given.")
    ep: int | None = Field(None, ge=1, le=4096, description="Expert parallel size; searched unless given.")
    dp: int | None = Field(None, ge=1, le=1_000_000, description="Data-parallel attention; searched unless given.")
    plan: dict[str, Any] | None = Field(None, description="Other fields of a serving Plan; they win over the above.")


def project_mlperf(request: MlperfRequest) -> MlperfProjection:
    """Project an MLPerf Inference result."""
    bench, scenario = benchmark(request.benchmark), request.scenario
    loadgen_name(bench, scenario)
    if bench.beams > 1:
        raise PlanError("benchmark", f"{bench.id} searches with {bench.beams} beams, which is not estimated")
    plan, nodes = _plan(request, bench)
    limits = bench.limits.get(scenario)
    slo = _slo(limits) if scenario in ("server", "interactive") else _NO_LIMIT
    served, assumptions, fastest = _chosen(plan, request, bench, nodes, slo)
    pool, best = served.pool, served.index
    estimates, entry = pool.of(best)
    steady = estimates.steady
    rows = list(_by_nodes(bench, scenario, pool, best, nodes))
    last, factor = rows[-1], 1.0 + served.job.factors.throughput_spread
    rate = last.samples_per_s
    return MlperfProjection(
        plan=served.complete_plan,
        assumptions=_assumptions(request, assumptions, served.plan, nodes),
        benchmark=bench.id,
        model=served.job.architecture.id,
        scenario=scenario,
        accelerator=served.job.machine.accelerator.id,
        devices=int(pool.devices[best]),
        nodes=nodes,
        samples=bench.samples,
        mean_input_tokens=bench.input.mean,
        mean_output_tokens=bench.output.mean,
        limits_ms=_limits_ms(limits),
        samples_per_s=last.samples_per_s,
        samples_low_per_s=last.samples_per_s / factor,
        samples_high_per_s=last.samples_per_s * factor,
        tokens_per_s=last.tokens_per_s,
        tokens_per_s_per_device=last.tokens_per_s / float(pool.devices[best]),
        dataset_s=last.dataset_s,
        run_s=last.run_s,
        offline_tokens_per_s=fastest * bench.output.mean,
        share_of_offline=rate / fastest if fastest else 0.0,
        ttft_p99_s=None if scenario == "offline" else finite(steady.ttft_p99_s[entry]),
        tpot_p99_s=None if scenario == "offline" else finite(steady.tpot_p99_s[entry]),
        limited_by=_limited_by(served.bottleneck, pool, best, slo),
        choice=_told(choice(pool, best, slo), scenario, bench, last),
        by_nodes=rows,
        why=list(_why(bench, scenario, rate, fastest, served.bottleneck)),
        warnings=[*_closed(bench, rate, scenario), *warnings_of(served)],
        warning_kinds=kinds_of(served),
        evidence=evidence_of(served.job),
    )


def _told(deployment: ServingChoice, scenario: str, bench: Benchmark, run: MlperfNodes) -> ServingChoice:
    """The deployment at the speed of the run, and without times of single requests where all are sent at once: they say
    how many these are."""
    times = ("ttft_s", "ttft_p99_s", "e2e_s") if scenario == "offline" else ()
    rates: dict[str, Any] = {
        "requests_per_s": run.samples_per_s,
        "output_tokens_per_s": run.tokens_per_s,
        "output_tokens_per_s_per_device": run.tokens_per_s / deployment.devices,
        "total_tokens_per_s": run.samples_per_s * (bench.input.mean + bench.output.mean),
    }
    return deployment.model_copy(update=rates | dict.fromkeys(times))


@dataclass(frozen=True)
class _Trial:
    """Deployments on a part of the nodes, of which there are `times`: the best of them, and samples/s of all parts in
    the scenario and offline."""

    pool: Pool
    best: int
    times: int
    devices: int
    rate: float
    fastest: float
    tried: list[Assumption]

    @property
    def fits(self) -> bool:
        return bool(self.pool.fits[self.best])


def _chosen(
    plan: Plan, request: MlperfRequest, bench: Benchmark, nodes: int, slo: Slo
) -> tuple[Served, list[Assumption], float]:
    """(The best deployment on all nodes, what was assumed, samples/s offline). A replica takes a node at most, or as
    many as fast links join, or as few as hold it; replicas are the same on one node and on many."""
    scenario, count = request.scenario, plan.cluster.count or 1
    joined = min(joined_devices(find_devices(request.accelerator).match.value), _MOST_JOINED)
    trials: list[_Trial] = []
    for width in (width for width in range(1, nodes + 1) if nodes % width == 0):
        if any(trial.fits for trial in trials) and count * width // nodes > joined:
            break
        trials.append(_trial(plan, request, bench, (nodes, width), slo))
    able = [trial for trial in trials if trial.fits] or trials
    most = max(trial.rate for trial in able)
    chosen = next(trial for trial in able if trial.rate >= (1.0 - EQUAL) * most)
    rate = float(chosen.pool.requests_per_s[chosen.best]) * chosen.times
    changes: dict[str, Any] = {"cluster.count": chosen.devices}
    if scenario in ("server", "interactive") and rate > 2.0 * _NOTHING:
        changes["workload.request_rate"] = rate
    served = settled(plan, chosen.pool, chosen.best, slo, None, changes)
    whole = replace(served, pool=_pool([served.job], slo, scenario), index=0)
    return whole, chosen_of(served, chosen.tried, []), max(trial.fastest for trial in trials)


def _trial(plan: Plan, request: MlperfRequest, bench: Benchmark, of: tuple[int, int], slo: Slo) -> _Trial:
    """The best replicas on the devices of (so many nodes, so many of them)."""
    (nodes, width), scenario = of, request.scenario
    devices = (plan.cluster.count or 1) // nodes * width
    times = nodes // width
    tried = options(plan.patch({"cluster.count": devices}), SearchLists(weight_dtypes=_formats(request, plan)))
    pool = offline = _pool(tried.jobs, _NO_LIMIT, "offline")
    score = at_once = _scored(bench, "offline", offline, times)
    if scenario != "offline":
        pool = _pool(tried.jobs, slo, scenario)
        score = _scored(bench, scenario, pool, times)
    if scenario == "single-stream":
        best = int(goal_order(pool, "latency", slo)[0])
    else:
        best = int(np.lexsort((pool.complexity, -score, pool.excess_bytes, ~pool.fits))[0])
    fastest = float(np.max(np.where(offline.fits, at_once, 0.0))) * times
    return _Trial(pool, best, times, devices * times, float(score[best]) * times, fastest, tried.assumptions)


def _plan(request: MlperfRequest, bench: Benchmark) -> tuple[Plan, int]:
    """The plan of the benchmark on the machine that was asked for, and its nodes."""
    named = find_devices(request.accelerator)
    device = named.match.value
    node = request.per_node or named.per_node or device.per_node
    count = request.count or (request.nodes * node if request.nodes else named.count or node)
    if request.count and request.nodes and request.count != request.nodes * min(node, request.count):
        raise PlanError("nodes", f"{request.count} devices are no {request.nodes} nodes of {node}", ["nodes or count"])
    spread = bench.output.sd / bench.output.mean if bench.output.sd else 0.0
    scenario = {"interactive": "interactive", "server": "server"}.get(request.scenario, request.scenario)
    workload: dict[str, Any] = {
        "kind": "inference",
        "input_len": bench.input.mean,
        "output_len": bench.output.mean,
        "output_spread": spread,
        "scenario": scenario,
        "max_context": bench.input.most + bench.output.most,
    }
    for name, value in (
        ("engine", request.engine or _usual_engine(device)),
        ("weight_dtype", request.weight_dtype),
        ("kv_dtype", request.kv_dtype),
        ("software_version", request.software_version),
    ):
        if value is not None:
            workload[name] = value
    limits = bench.limits.get(request.scenario)
    if limits:
        workload |= {"ttft_slo_ms": limits.ttft_ms, "tpot_slo_ms": limits.tpot_ms, "slo_statistic": "p99"}
    data = {
        "model": bench.model,
        "workload": workload,
        "cluster": {"accelerator": device.id, "count": count, "per_node": request.per_node},
        "layout": {name: getattr(request, name) for name in ("tp", "pp", "ep", "dp")},
    }
    return Plan.parse(merge(data, request.plan or {})), -(-count // min(node, count))


def _usual_engine(device: Accelerator) -> str:
    """That of most submissions on a vendor's devices, or the next one where it has no kernels for this one."""
    names = ("trtllm", "vllm", "llamacpp") if device.vendor == "NVIDIA" else ("vllm", "llamacpp")
    return next((name for name in names if runs_on(engine(name, None, device), device)), names[0])


def _formats(request: MlperfRequest, plan: Plan) -> list[str] | None:
    """What submissions run: the fewest bits that the device computes in, 4 and 8, where nothing else is asked for."""
    if request.weight_dtype or "weight_dtype" in plan.inference.model_fields_set:
        return None
    peaks = find_devices(request.accelerator).match.value.peak_flops
    if "gpt-oss" in plan.model:
        return ["mxfp4"]
    four = next((name for name in ("nvfp4", "mxfp4") if name in peaks), "")
    names = [name for name in (four, "fp8") if name in peaks]
    # Where neither is there, what the engine reads of these.
    return names or [name for name in ("int8", "bf16", "fp16") if name in peaks]


def _slo(limits: LatencyLimits | None) -> Slo:
    def seconds(limit_ms: float | None) -> float:
        return np.inf if limit_ms is None else limit_ms / 1e3

    return Slo(seconds(limits.ttft_ms), seconds(limits.tpot_ms), "p99") if limits else _NO_LIMIT


def _pool(jobs: Sequence[ServingJob], slo: Slo, scenario: str) -> Pool:
    """Every deployment as fast as the scenario lets it run: all at once, one at a time, or at its highest rate."""
    rows: list[tuple[ServingJob, ServingEstimates, Floats]] = []
    refused: list[PlanError] = []
    for job in jobs:
        job_there = replace(job, plan=job.plan.patch({"workload.scenario": scenario}))
        try:
            candidates = deployments(job_there)
        except PlanError as error:
            refused.append(error)
            continue
        if scenario in ("server", "interactive"):
            single = replace(candidates, replicas=np.ones(len(candidates), dtype=np.int64))
            rate = most_rate(job_there, single, slo, loads_of(job_there, single))[0] * candidates.replicas
            candidates = replace(
                candidates, request_rate=np.maximum(rate, _NOTHING), concurrency=np.full(len(candidates), np.inf)
            )
        elif scenario == "offline":
            candidates = replace(
                candidates, concurrency=np.full(len(candidates), np.inf), request_rate=np.zeros(len(candidates))
            )
        candidates = replace(candidates, requests=np.full(len(candidates), _ENDLESS))
        estimates = estimate(job_there, candidates)
        rows.append((job_there, estimates, np.full(len(candidates), np.nan)))
    if not rows:
        raise refused[0]
    return pool_of(rows)


def _scored(bench: Benchmark, scenario: str, pool: Pool, times: int) -> Floats:
    """Samples/s of each deployment in a run of the benchmark on so many of it."""
    rates = [
        _run(job, estimates.deployments, bench, scenario, times)[1]
        for job, estimates in zip(pool.jobs, pool.estimates, strict=True)
    ]
    starts = np.cumsum([0, *map(len, rates)])
    return np.concatenate(rates)[starts[pool.option] + pool.entry]


def _run(job: ServingJob, these: Deployments, bench: Benchmark, scenario: str, times: int = 1) -> tuple[Floats, Floats]:
    """(Samples that LoadGen sends to each deployment, of which there are `times`, samples/s at which it answers)."""
    endless = _speed(job, these, np.full(len(these), _ENDLESS), scenario)
    samples = np.array([samples_of_run(bench, scenario, float(rate) * times) / times for rate in endless])
    return samples, _speed(job, these, samples, scenario)


def _speed(job: ServingJob, these: Deployments, samples: Floats, scenario: str) -> Floats:
    """Samples/s over a run of so many of them, whose end is with the last answer."""
    rate = estimate(job, replace(these, requests=samples)).requests_per_s
    if scenario in ("server", "interactive"):
        # A run at a rate ends as one that sends everything at once does, and is no faster.
        together = replace(
            these,
            requests=samples,
            request_rate=np.zeros(len(these)),
            concurrency=np.full(len(these), np.inf),
        )
        at_once = replace(job, plan=job.plan.patch({"workload.scenario": "offline"}))
        rate = np.minimum(rate, estimate(at_once, together).requests_per_s)
    return np.maximum(rate, _NOTHING)


def _by_nodes(bench: Benchmark, scenario: str, pool: Pool, best: int, nodes: int) -> Iterator[MlperfNodes]:
    """One node (or as many as a replica spans), twice as many, and so on up to all. Replicas are independent, but a run
    ends for all with the last answer."""
    job, (estimates, entry) = pool.job(best), pool.of(best)
    deployment = estimates.deployments.take(np.array([entry]))
    replicas = int(deployment.replicas[0])
    counts = [2**power for power in range(nodes.bit_length()) if 2**power < nodes]
    first = 0.0
    for count in [*counts, nodes]:
        if replicas * count % nodes:
            continue
        share = count / nodes
        part = replace(
            deployment, replicas=np.array([replicas * count // nodes]), request_rate=deployment.request_rate * share
        )

        run, speed = _run(job, part, bench, scenario)
        rate = float(speed[0])
        whole = float(_speed(job, part, np.array([float(bench.samples)]), scenario)[0])
        first = first or rate / count
        yield MlperfNodes(
            nodes=count,
            devices=round(float(deployment.devices[0]) * share),
            samples_per_s=rate,
            tokens_per_s=rate * bench.output.mean,
            dataset_s=bench.samples / whole,
            run_s=float(run[0]) / rate,
            scaling_efficiency=rate / count / first,
        )


def _limits_ms(limits: LatencyLimits | None) -> dict[str, float]:
    limits_ms = {"ttft": limits.ttft_ms, "tpot": limits.tpot_ms, "e2e": limits.e2e_ms} if limits else {}
    return {name: value for name, value in limits_ms.items() if value is not None}


def _limited_by(bottleneck: str, pool: Pool, best: int, slo: Slo) -> str:
    """The limit of latency that is nearest, where one is near; else what a step waits for."""
    near = {"ttft": pool.ttft_p99_s[best] / slo.ttft_s, "tpot": pool.tpot_p99_s[best] / slo.tpot_s}
    name = max(near, key=lambda name: near[name])
    return name if near[name] > 0.9 else bottleneck


def _closed(bench: Benchmark, rate: float, scenario: str) -> list[str]:
    if rate > 2.0 * _NOTHING:
        return []
    return [f"no deployment meets the limits of {bench.id} in scenario {scenario} on these devices, at any rate"]


def _assumptions(request: MlperfRequest, assumptions: list[Assumption], plan: Plan, nodes: int) -> list[Assumption]:
    """The benchmark's own facts are no assumptions; what stands for submissions is."""
    facts = {"workload.input_len", "workload.output_len", "workload.scenario", "workload.request_rate"}
    by_field = {item.field: item for item in assumptions if item.field not in facts}
    rows: list[tuple[str, Any, str]] = []
    if request.engine is None:
        rows.append(("workload.engine", plan.inference.engine, "the engine of most submissions on these devices"))
    if request.weight_dtype is None:
        why = "the fewest bits that the device computes in, of those that submissions run"
        rows.append(("workload.weight_dtype", plan.inference.weight_dtype, why))
    if request.count is None and request.nodes is None:
        rows.append(("nodes", nodes, "one node unless a number is given"))
    by_field |= {field: Assumption(field=field, value=value, why=why) for field, value, why in rows}
    return [*how_read(find_devices(request.accelerator).match), *by_field.values()]


def _why(bench: Benchmark, scenario: str, rate: float, fastest: float, bottleneck: str) -> Iterator[str]:
    lengths = f"{bench.input.mean:.0f} tokens in and {bench.output.mean:.0f} out on average"
    yield f"{bench.id}: {bench.dataset}; {bench.samples:,} samples, {lengths}."
    if scenario in ("server", "interactive") and fastest > 0:
        yield f"Within the limits it serves {percent(rate / fastest)} of what it does offline."
    yield f"Bottleneck: {bottleneck}."
