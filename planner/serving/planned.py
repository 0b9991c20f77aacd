"""What tools for serving share: a Plan looked up, estimated under its load, and put into the shape of the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.serving.arrivals import Loads
from estimator.serving.estimates import ServingEstimates, estimate
from estimator.serving.memory import cache_bytes, request_bytes
from estimator.serving.space import Deployments, deployments
from knowledge.evidence import served_before
from knowledge.jobs.serving import serving_job
from knowledge.jobs.unlike import usual_processor
from planner.money.offers import old_prices
from planner.result import Assumption, TimeLimit
from planner.serving.pool import Goal, Pool, Slo, goal_order, pool_of, slo_of
from planner.serving.prices import cheapest_hour, cost_of
from planner.serving.results import (
    LatencyLimit,
    PassSplit,
    ServingChoice,
    ServingCost,
    ServingLatency,
    ServingMemoryEstimate,
    ServingThroughput,
    ServingTime,
)
from planner.serving.step import bottleneck, queue, step_limits

_GOALS: dict[str, Goal] = {"throughput": "throughput", "cost": "cost", "time": "latency", "memory": "throughput"}
_SEARCHED = "the best of the layouts searched"
# What prompts have beside text; how large images are is told where there are some.
_PICTURES = frozenset({"images", "video_frames"})


@dataclass(frozen=True)
class Served:
    """The estimate of the plan `asked`: entry `index` of `pool` is the deployment that the answer is about."""

    asked: Plan
    pool: Pool
    index: int
    slo: Slo
    own_usd: float | None

    @property
    def job(self) -> ServingJob:
        return self.pool.job(self.index)

    @property
    def estimates(self) -> ServingEstimates:
        return self.pool.of(self.index)[0]

    @property
    def entry(self) -> int:
        return self.pool.of(self.index)[1]

    @property
    def searched(self) -> bool:
        return len(self.pool) > 1

    @property
    def fits(self) -> bool:
        return bool(self.pool.fits[self.index])

    @property
    def score(self) -> float:
        """What is to be small: seconds per token."""
        return float(self.estimates.steady.tpot_s[self.entry])

    @property
    def meets_slo(self) -> bool | None:
        """None where no limit of latency was set."""
        return bool(self.pool.missed(self.slo)[self.index] <= 1.0) if self.slo.limits_any else None

    @cached_property
    def layout(self) -> dict[str, int]:
        return self.estimates.deployments.row(self.entry)

    @cached_property
    def plan(self) -> Plan:
        """The complete plan, with the chosen layout."""
        return self.job.plan.patch({"layout": self.layout} | self.exchange | self.raised)

    @cached_property
    def exchange(self) -> dict[str, Any]:
        """How tokens reach their experts, where the engine has to be told so."""
        job, these = self.job, self.estimates.deployments.take(np.array([self.entry]))
        if job.engine.all_to_all_from <= 2 or not (job.exchanges_directly(these) & (these.dp > 1.0)).any():
            return {}
        overlap = {"workload.two_batch_overlap": True} if job.overlaps_batches(these).any() else {}
        return {"workload.expert_exchange": "all_to_all"} | overlap

    @cached_property
    def raised(self) -> dict[str, Any]:
        """The share of a device that the engine has to be told to claim, where its default leaves no room."""
        share = float(self.estimates.memory.share[self.entry])
        return {} if math.isnan(share) else {"workload.memory_share": share}

    @property
    def complete_plan(self) -> dict[str, Any]:
        """The same as plain data."""
        return self.plan.model_dump(mode="json")

    @cached_property
    def limits(self) -> dict[str, float]:
        return step_limits(self.job, self.estimates, self.entry)

    @cached_property
    def bottleneck(self) -> str:
        return bottleneck(self.estimates, self.entry, self.limits, self.queue)

    @cached_property
    def queue(self) -> tuple[float, float | None, bool]:
        return queue(self.job, self.estimates, self.entry)

    @property
    def assumptions(self) -> list[Assumption]:
        """What was filled in by look-up, by defaults and by the search."""
        filled_in = [Assumption(**asdict(filled)) for filled in self.job.assumptions]
        named = {item.field for item in filled_in}
        named_fields = self.asked.layout.model_fields_set
        why = _SEARCHED if self.searched else "follows from the other sizes"
        rows = [(f"layout.{name}", value, why) for name, value in self.layout.items() if name not in named_fields]
        why = f"what {self.job.engine.name} claims by default leaves too little room for the cache"
        rows += [(field, value, why) for field, value in self.raised.items()]
        for field, value, reason in (*_settings(self), *rows):
            if field not in named:
                filled_in.append(Assumption(field=field, value=value, why=reason))
        if self.slo.limits_any and "slo_statistic" not in self.asked.inference.model_fields_set:
            why = "limits are of the mean unless slo_statistic is p99"
            filled_in.append(Assumption(field="workload.slo_statistic", value="mean", why=why))
        return filled_in


def _settings(served: Served) -> Iterator[tuple[str, Any, str]]:
    """Fields with a default of their own that the user left open, as far as the engine has a use for them."""
    job, workload = served.job, served.job.inference
    candidates, entry = served.estimates.deployments, served.entry
    of = f"the default of {job.engine.name}"
    why = {
        "prefix_hit": "no prompt begins like an earlier one",
        "output_spread": "answers are equally long",
        "chunked_prefill": f"{of}: prompts {'beside' if job.mixes else 'before'} generation",
        "cuda_graph": f"{of}: {'on' if job.graphs else 'off'}",
        "max_batch": of,
        "max_batched_tokens": of,
        "images": "prompts of text alone",
        "video_frames": "prompts of text alone",
    }
    sees = job.architecture.multimodal or job.architecture.vision is not None
    unused = {"image_size"} if sees else _PICTURES | {"image_size"}
    filled = {
        "max_batch": int(min(candidates.max_batch[entry], 1e9)),
        "max_batched_tokens": int(min(candidates.max_tokens[entry], 1e9)),
    }
    for name in (name for name in type(workload).model_fields if name not in unused):
        value = filled.get(name, getattr(workload, name))
        drafts = name != "acceptance" or bool(workload.speculative_tokens)
        if value is not None and drafts and name not in served.asked.inference.model_fields_set | {"kind"}:
            yield f"workload.{name}", value, why.get(name, "as usual")
    if "objective" not in (served.asked.goal.model_fields_set | job.plan.goal.model_fields_set):
        yield "goal.objective", job.plan.goal.objective, "deployments are ranked by speed unless another goal is named"


def goal_of(plan: Plan) -> Goal:
    return _GOALS[plan.goal.objective]


def plan_serving(
    plan: Plan,
    own_usd: float | None = None,
    known: Callable[[ServingJob, Deployments], Loads | None] | None = None,
) -> Served:
    """The estimate of a serving plan: of its layout where it names one whole, else of the best that agrees with it.

    `own_usd` is the user's own price per device and hour; `known` finds loads that are at hand. Raises PlanError for
    what cannot be served at all.
    """
    job = serving_job(plan)
    slo = slo_of(job.inference)
    candidates = deployments(job)
    estimates = estimate(job, candidates, known and known(job, candidates))
    pool = pool_of([(job, estimates, np.full(len(candidates), np.nan))])
    goal = goal_of(plan)
    # At a given number of devices the cheapest is the fastest.
    order = goal_order(pool, "throughput" if goal == "cost" else goal, slo)
    served = Served(plan, pool, int(order[0]), slo, own_usd)
    return served if served.fits else _beside_host(served, own_usd) or served


def _beside_host(served: Served, own_usd: float | None) -> Served | None:
    """The same with what cards have no room for in the memory of their host, where the engine lays it there itself and
    that holds it: experts first, then whole layers (llama.cpp, common/fit.cpp: --fit is on unless turned off)."""
    job, plan = served.job, served.asked
    one_memory = job.machine.accelerator.family == "CPU" or job.machine.accelerator.form_factor == "SoC"
    if not job.engine.lends_from or plan.cluster.beside is not None or one_memory:
        return None
    host = usual_processor(job.machine.accelerator)
    try:
        beside = plan_serving(plan.patch({"cluster.beside": [host]}), own_usd)
    except PlanError:
        return None
    return replace(beside, asked=plan) if beside.fits else None


def settled(asked: Plan, pool: Pool, index: int, slo: Slo, own_usd: float | None, changes: Mapping[str, Any]) -> Served:
    """Deployment `index` as the estimate of a plan of its own, so that every figure can be had again from that.

    `changes` are what was chosen besides engine, format and layout.
    """
    tried, (estimates, entry) = pool.job(index), pool.of(index)
    chosen = {"workload.engine": tried.engine.name, "workload.weight_dtype": tried.inference.weight_dtype}
    if tried.inference.kv_dtype != asked.inference.kv_dtype:
        chosen |= {"workload.kv_dtype": tried.inference.kv_dtype}
    plan = asked.patch(chosen | {"layout": estimates.deployments.row(entry)} | dict(changes))
    chosen_pool = pool.take(np.array([index]))
    job = serving_job(plan)
    return Served(
        asked,
        replace(chosen_pool, jobs=tuple(job if job_there is tried else job_there for job_there in pool.jobs)),
        0,
        slo,
        own_usd,
    )


def chosen_of(
    served: Served, tried: Sequence[Assumption], more: Sequence[tuple[str, Any, str]] = ()
) -> list[Assumption]:
    """The assumptions of a settled plan, with those about what was tried and the reasons of `more` (field, value, why);
    a field that is told twice is told by the last."""
    by_field = {item.field: item for item in served.assumptions}
    for item in tried:
        name = item.field.removesuffix("s")
        value, why = getattr(served.plan.inference, name), "the best of those tried"
        if value != "auto":
            by_field[f"workload.{name}"] = Assumption(field=f"workload.{name}", value=value, why=why)
    for field, value, why in more:
        by_field[field] = Assumption(field=field, value=value, why=why)
    return [*tried, *by_field.values()]


def finite(value: Any) -> float | None:
    """A float, None where a queue grows without end."""
    return float(value) if math.isfinite(float(value)) else None


def whole(value: Any) -> int | None:
    return int(value) if math.isfinite(float(value)) else None


def memory_of(served: Served) -> ServingMemoryEstimate:
    job, entry = served.job, served.entry
    memory, candidates = served.estimates.memory, served.estimates.deployments
    components = {name: float(values[entry]) for name, values in memory.components.items()}
    per_token, state = cache_bytes(job, candidates)
    request = float(request_bytes(job, per_token, state, candidates.input_len + candidates.output_len)[entry])
    model_per_token, part = job.architecture.cache_bytes_per_token(job.kv_bytes), float(per_token[entry])
    clients = job.inference.concurrency
    of_clients = request * math.ceil(clients / float(candidates.lanes[entry])) if clients else None
    others = sum(components.values()) - components["kv_cache"]
    return ServingMemoryEstimate(
        per_device_bytes=float(memory.total[entry]),
        claimed_bytes=float(memory.claimed[entry]),
        capacity_bytes=float(memory.capacity),
        fits=served.fits,
        components=components,
        decided_by=max(components, key=lambda name: components[name]),
        kv_tokens=whole(memory.room_tokens[entry] * candidates.lanes[entry]),
        kv_bytes_per_token=model_per_token,
        kv_bytes_per_token_per_device=part,
        request_bytes=request,
        request_model_bytes=request * model_per_token / part if part else request,
        clients_bytes=None if of_clients is None else others + of_clients,
        clients_cache_bytes=of_clients,
        max_concurrency=most_requests(served.estimates, entry),
        longest_request=whole(memory.longest[entry]),
    )


def most_requests(estimates: ServingEstimates, entry: int) -> int:
    """Whole requests that fit at once over all devices."""
    return int(min(float(estimates.memory.max_concurrency[entry]), 1e12))


def latency_of(served: Served) -> ServingLatency:
    steady, entry, factors = served.estimates.steady, served.entry, served.job.factors
    ttft, tpot, e2e = steady.ttft_s[entry], float(steady.tpot_s[entry]), steady.e2e_s[entry]
    # The whole is as sure as its parts are, in proportion.
    first, between = 1.0 + factors.ttft_spread, 1.0 + factors.tpot_spread
    return ServingLatency(
        ttft_s=finite(ttft),
        ttft_low_s=finite(ttft / first),
        ttft_high_s=finite(ttft * first),
        ttft_p99_s=finite(steady.ttft_p99_s[entry]),
        tpot_s=tpot,
        tpot_low_s=tpot / between,
        tpot_high_s=tpot * between,
        tpot_p99_s=float(steady.tpot_p99_s[entry]),
        e2e_s=finite(e2e),
        e2e_low_s=finite(ttft / first + (e2e - ttft) / between) if np.isfinite(e2e) else None,
        e2e_high_s=finite(ttft * first + (e2e - ttft) * between) if np.isfinite(e2e) else None,
    )


def throughput_of(served: Served) -> ServingThroughput:
    estimates, entry = served.estimates, served.entry
    output, total = float(estimates.output_tokens_per_s[entry]), float(estimates.total_tokens_per_s[entry])
    devices = float(served.pool.devices[served.index])
    factor = 1.0 + served.job.factors.throughput_spread
    # What comes at a rate and is served leaves at it, however fast the devices are.
    asked = served.job.inference.request_rate is not None and not bool(estimates.steady.saturated[entry])
    return ServingThroughput(
        output_tokens_per_s=output,
        output_tokens_low_per_s=output if asked else output / factor,
        output_tokens_high_per_s=output if asked else output * factor,
        total_tokens_per_s=total,
        requests_per_s=float(estimates.requests_per_s[entry]),
        output_tokens_per_s_per_device=output / devices,
        total_tokens_per_s_per_device=total / devices,
        tokens_per_s_per_user=1.0 / float(estimates.steady.tpot_s[entry]),
    )


def time_of(served: Served) -> ServingTime:
    steady, entry = served.estimates.steady, served.entry

    def split(passes: Any) -> PassSplit:
        parts = {
            f"{name}_s": float(getattr(passes, name)[entry])
            for name in ("matmul", "attention", "memory", "collective", "host")
        }
        return PassSplit(**parts, total_s=sum(parts.values()))

    generating, reading = split(steady.generating), split(steady.reading)
    step, share = sum(served.limits.values()), float(steady.reading_share[entry])
    return ServingTime(
        step_s=step,
        generating=generating,
        reading=reading,
        reading_share=share,
        prompt_utilisation=min(1.0, share * reading.total_s / step),
    )


def time_limits(served: Served) -> list[TimeLimit]:
    step = sum(served.limits.values())
    return [
        TimeLimit(limit=name, seconds=seconds, share=seconds / step)
        for name, seconds in served.limits.items()
        if seconds > 0
    ]


def slo_rows(served: Served) -> list[LatencyLimit]:
    """Each limit that was set, and whether it is met by the estimate and by its whole interval."""
    steady, entry, factors, slo = served.estimates.steady, served.entry, served.job.factors, served.slo
    tail = "_p99" if slo.statistic == "p99" else ""
    rows = []
    for name, limit, spread in (
        ("ttft", slo.ttft_s, factors.ttft_spread), ("tpot", slo.tpot_s, factors.tpot_spread),
    ):  # fmt: skip
        if np.isfinite(limit):
            value = float(getattr(steady, f"{name}{tail}_s")[entry])
            met = value <= limit
            sure = value * (1.0 + spread) <= limit if met else value / (1.0 + spread) > limit
            rows.append(
                LatencyLimit(
                    limit=name, statistic=slo.statistic, limit_s=limit, value_s=finite(value), met=met, sure=sure
                )
            )
    return rows


def money_of(served: Served) -> ServingCost | None:
    """At the user's own price, or at the cheapest offer; None where there is none."""
    job, estimates, entry = served.job, served.estimates, served.entry
    devices = int(served.pool.devices[served.index])
    rates = (estimates.output_tokens_per_s[entry], estimates.total_tokens_per_s[entry], estimates.requests_per_s[entry])
    output, total, requests = (float(rate) for rate in rates)
    share = job.plan.goal.free_share
    if served.own_usd is not None:
        return cost_of(served.own_usd * devices, output, total, requests, None, share)
    together = min(job.machine.per_node, per_replica(estimates, entry))
    best = cheapest_hour(job.machine.accelerator.id, job.plan.goal.provider, together, devices)
    return cost_of(best[1], output, total, requests, best[0], share) if best else None


def old_price(served: Served) -> list[str]:
    """What to beware of in the price of a deployment."""
    money = money_of(served)
    return old_prices([money.price_date]) if money and money.stale else []


def per_replica(estimates: ServingEstimates, entry: int) -> int:
    candidates = estimates.deployments
    return int(candidates.tp[entry] * candidates.pp[entry] * candidates.dp[entry])


def choice(pool: Pool, index: int, slo: Slo) -> ServingChoice:
    job = pool.job(index)
    estimates, entry = pool.of(index)
    candidates = estimates.deployments
    output, total = float(estimates.output_tokens_per_s[entry]), float(estimates.total_tokens_per_s[entry])
    usd = finite(pool.usd_per_hour[index])
    clients, rate = float(candidates.concurrency[entry]), _rate(candidates, entry)
    devices = int(pool.devices[index])
    return ServingChoice(
        accelerator=job.machine.accelerator.id,
        devices=devices,
        replicas=int(candidates.replicas[entry]),
        engine=job.engine.name,
        weight_dtype=job.inference.weight_dtype,
        kv_dtype=job.kv_dtype,
        layout=candidates.row(entry),
        concurrency=whole(clients),
        request_rate=rate or None,
        running=float(estimates.steady.running[entry] * candidates.lanes[entry]),
        per_device_bytes=float(estimates.memory.total[entry]),
        fits=bool(pool.fits[index]),
        max_concurrency=most_requests(estimates, entry),
        ttft_s=finite(pool.ttft_s[index]),
        tpot_s=float(pool.tpot_s[index]),
        e2e_s=finite(pool.e2e_s[index]),
        ttft_p99_s=finite(pool.ttft_p99_s[index]),
        tpot_p99_s=float(pool.tpot_p99_s[index]),
        output_tokens_per_s=output,
        output_tokens_per_s_per_device=output / devices,
        total_tokens_per_s=total,
        requests_per_s=float(estimates.requests_per_s[entry]),
        tokens_per_s_per_user=1.0 / float(pool.tpot_s[index]),
        meets_slo=bool(pool.missed(slo)[index] <= 1.0) if slo.limits_any else None,
        usd_per_hour=usd,
        usd_per_million_output_tokens=None if usd is None else usd / (output * 3600.0 / 1e6),
        usd_per_million_tokens=None if usd is None else usd / (total * 3600.0 / 1e6),
        measured=served_before(job.engine.name, job.machine.accelerator.family) > 0,
        summary=summary(pool, index),
    )


def _rate(candidates: Deployments, entry: int) -> float:
    """Requests per second; 0 where the load is a number of clients."""
    return finite(candidates.request_rate[entry]) or 0.0


def summary(pool: Pool, index: int) -> str:
    """'2 x TP 4, fp8, vllm, 64 in flight'."""
    estimates, entry = pool.of(index)
    candidates = estimates.deployments
    split = " ".join(f"{name.upper()} {size}" for name, size in candidates.row(entry).items() if size > 1)
    replicas = int(candidates.replicas[entry])
    names = f"{replicas} x {split or 'TP 1'}" if replicas > 1 else split or "TP 1"
    clients, rate = float(candidates.concurrency[entry]), _rate(candidates, entry)
    load = (
        f"{rate:.3g} requests/s"
        if rate
        else "all requests at once"
        if math.isinf(clients)
        else f"{clients:.0f} in flight"
    )
    job = pool.job(index)
    return f"{names}, {job.inference.weight_dtype}, {job.engine.name}, {load}"
