"""A plan as something whose figures can be explained: its results by key, and the account of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from estimator.account import Account, Accounts, Term, over, product, times, total
from estimator.errors import PlanError
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from estimator.serving.account import serving_accounts
from estimator.training.memory_account import memory_accounts
from estimator.training.time_account import StepParts, time_accounts
from knowledge.prices.energy import Fact
from planner.evidence import evidence_of
from planner.explain.cost import cost_accounts, flattened, price_source, run_accounts
from planner.fit.serving import headroom
from planner.money.bill import energy_facts
from planner.money.cost import bill_of
from planner.money.results import CostEstimate
from planner.money.terms import CostTerms
from planner.result import Assumption, Evidence
from planner.serving.estimate import estimate_of
from planner.serving.planned import plan_serving
from planner.training.planned import memory_of, plan_training, run_of, throughput_of, time_of, warnings_of

COST = (
    "hours", "low_hours", "high_hours", "device_hours", "usd", "low_usd", "high_usd", "usd_total", "usd_per_hour",
    "usd_per_device_hour", "usd_per_step", "usd_per_epoch", "usd_per_month", "usd_per_million_tokens",
    "usd_per_million_output_tokens", "usd_per_million_requests", "kwh", "co2_kg", "tokens",
)  # fmt: skip
"""Figures of `estimate_cost`; some need the size of the data, or a price."""
# Figures of other results that are the same under another name.
ALIASES = {
    "best.step_s": "time.step_s", "best.tokens_per_s": "throughput.tokens_per_s", "best.mfu": "throughput.mfu",
    "best.per_device_bytes": "memory.per_device_bytes", "best.headroom_bytes": "headroom_bytes",
    "fits": "memory.fits", "steps": "run.steps",
}  # fmt: skip


@dataclass(frozen=True)
class Spread:
    """Half widths of an interval, as fractions, and what they come from."""

    below: float
    above: float
    runs: int
    how: str


@dataclass(frozen=True)
class Subject:
    """`values` are the numbers of the results by key; `spreads` the intervals of figures that have one."""

    kind: Literal["training", "serving"]
    job: Job | ServingJob
    asked: Plan
    plan: Plan
    assumptions: list[Assumption]
    warnings: list[str]
    evidence: list[Evidence]
    values: Mapping[str, float | bool | None]
    accounts: Accounts
    spreads: Mapping[str, Spread]
    price: str | None
    facts: Mapping[str, Fact]
    step: StepParts | None = None
    refused: Mapping[str, PlanError] = field(default_factory=dict)

    @property
    def offered(self) -> list[str]:
        """Every key that can be asked for, or whose absence has a reason."""
        return [*self.accounts, *(key for key in self.refused if key not in self.accounts)]


def training_subject(asked: Plan, terms: CostTerms, every_framework: bool = False) -> Subject:
    planned = plan_training(asked, every_framework=every_framework)
    job, estimates = planned.job, planned.estimates.of(planned.index)
    step = StepParts(job, estimates.layouts, estimates.step)
    memory = memory_of(planned)
    values: dict[str, float | bool | None] = {}
    parts: dict[str, Any] = {"memory": memory, "time": time_of(planned), "throughput": throughput_of(planned)}
    for name, part in parts.items():
        values |= flattened(part.model_dump(), name)
    run = run_of(planned)
    values |= flattened(run.model_dump(), "run") if run else {}
    values |= flattened(asdict(planned.diagnosis.roofline), "roofline")
    values["headroom_bytes"] = memory.capacity_bytes - memory.high_bytes
    accounts: dict[str, Callable[[], Account]] = {}
    accounts |= memory_accounts(job, estimates.layouts, int(estimates.fullest_stage[0]))
    accounts["memory.fits"] = lambda: Account(
        "inputs",
        (Term("memory.high_bytes", memory.high_bytes), Term("memory.capacity_bytes", memory.capacity_bytes)),
        note="it fits where the upper end of the interval is no more than what the device can allocate",
    )
    accounts |= time_accounts(step)
    accounts |= run_accounts(job, float(estimates.step.seconds[0]))
    accounts |= _roofline(values, float(estimates.step.hardware_flop[0]), job)
    host = memory.host
    accounts["memory.host.per_node_bytes"] = lambda: total(
        *(Term(f"memory.host.components.{name}", size) for name, size in host.components.items()),
        note=f"the worst phase is {host.phase}",
    )
    facts = energy_facts(terms)
    bill: CostEstimate | None = None
    refused: PlanError | None = None
    try:
        bill = bill_of(Plan.parse(planned.complete_plan), terms)
    except PlanError as error:
        refused = error
    if bill is not None and run is not None:
        values |= _of_bill(bill)
        undisturbed = (run.hours, run.low_hours, run.high_hours)
        accounts |= cost_accounts(job, bill, terms.usd_per_device_hour, undisturbed, {}, facts)
    return Subject(
        kind="training",
        job=job,
        asked=asked,
        plan=planned.plan,
        assumptions=_with_price(planned.assumptions, bill),
        warnings=warnings_of(planned),
        evidence=evidence_of(planned.job),
        values=values,
        accounts=accounts,
        spreads=_training_spreads(job, accounts),
        price=None if bill is None else price_source(bill),
        facts=facts,
        step=step,
        refused=_unpriced(accounts, refused, job),
    )


def _roofline(values: Mapping[str, Any], flop: float, job: Job) -> dict[str, Callable[[], Account]]:
    traffic, peak = float(values["roofline.traffic_bytes"]), float(job.peak_flops)
    bandwidth = job.machine.accelerator.memory_bandwidth
    return {
        "roofline.arithmetic_intensity_flop_per_byte": lambda: product(
            times("work.hardware_flop", flop), over("roofline.traffic_bytes", max(traffic, 1.0))
        ),
        "roofline.ridge_flop_per_byte": lambda: product(times("peak_flops", peak), over("bandwidth", bandwidth)),
        "roofline.achieved_flops": lambda: product(
            times("work.hardware_flop", flop), over("time.step_s", float(values["time.step_s"]))
        ),
        "roofline.attainable_flops": lambda: Account(
            "least",
            (Term("peak_flops", peak), Term("roofline.memory_roof", flop / max(traffic, 1.0) * bandwidth)),
        ),
    }


def _of_bill(bill: CostEstimate) -> dict[str, float | bool | None]:
    return {name: getattr(bill, name) for name in COST}


def _with_price(assumptions: list[Assumption], bill: CostEstimate | None) -> list[Assumption]:
    """What the cost assumes besides what the plan does."""
    said = {item.field for item in assumptions}
    more = [] if bill is None else bill.assumptions
    wanted = ("goal.provider", "instance", "hours")
    return [*assumptions, *(item for item in more if item.field in wanted and item.field not in said)]


def _unpriced(accounts: Accounts, refused: PlanError | None, job: Job | ServingJob) -> dict[str, PlanError]:
    """Why figures of cost are not there."""
    name = job.machine.accelerator.name
    other = PlanError("usd_per_device_hour", f"the price book has no price of {name} for this choice; give your own")
    missing = [key for key in COST if key not in accounts]
    if isinstance(job, Job):
        serving = ("usd_per_epoch", "usd_per_month", "usd_per_million_output_tokens", "usd_per_million_requests")
        missing = [key for key in missing if key not in serving]
    else:
        missing = [key for key in missing if key not in ("usd_per_step", "usd_per_epoch")]
    energy = PlanError("cluster.accelerator", f"no power limit of {name} is known")
    found = {key: energy if key in ("kwh", "co2_kg") else other for key in missing}
    return {key: refused or error for key, error in found.items()}


def _training_spreads(job: Job, accounts: Accounts) -> dict[str, Spread]:
    factors, calibration = job.calibration.framework, job.calibration
    of = factors.framework
    memory = "half of the interval that holds 80 % of measured peaks when they are left out of the fit"
    if job.unmeasured_memory:
        memory += f"; wider for what no peak was measured of: {', '.join(job.unmeasured_memory)}"
    time = f"half of the interval that holds 80 % of the runs of {of} when they are left out of the fit"
    if not (calibration.device_measured and calibration.time_measured):
        time = "from sources that were left out of the fit whole, as nothing was measured of this framework or device"
    fast = Spread(calibration.time_spread, calibration.time_spread, factors.runs, time)
    timed = ("time.step_s", "run.hours", "hours", "device_hours", "usd", "usd_per_million_tokens", "kwh", "co2_kg")
    rates = [key for key in accounts if key.startswith("throughput.")]
    found = dict.fromkeys([*timed, *rates], fast)
    return found | {"memory.per_device_bytes": Spread(job.memory_below, job.memory_above, factors.memory_runs, memory)}


def serving_subject(asked: Plan, terms: CostTerms) -> Subject:

    served = plan_serving(asked, own_usd=terms.usd_per_device_hour)
    job, result = served.job, estimate_of(served)
    values: dict[str, float | bool | None] = dict(flattened(result.model_dump(exclude={"plan", "assumptions"})))
    values["headroom_bytes"], values["max_concurrency"] = headroom(served), float(result.memory.max_concurrency)
    accounts: dict[str, Callable[[], Account]] = dict(serving_accounts(job, served.estimates, served.entry))
    accounts["memory.fits"] = lambda: Account(
        "inputs",
        (Term("request_bytes", float(accounts["request_bytes"]().value or 0.0)),
         Term("cache_room_bytes", float(accounts["cache_room_bytes"]().value or 0.0))),
        note="it fits where at least one request of the longest length wanted has room in the cache",
    )  # fmt: skip
    accounts["time.step_s"] = lambda: total(
        *(Term(f"limit.{name.replace(' ', '_')}", seconds) for name, seconds in served.limits.items())
    )
    accounts["headroom_bytes"] = lambda: _headroom(
        served.estimates.memory, served.entry, float(values["headroom_bytes"] or 0.0)
    )
    rates = {key: float(values[key] or 0.0) for key in values if key.startswith("throughput.")}
    facts = energy_facts(terms)
    bill: CostEstimate | None = None
    refused: PlanError | None = None
    try:
        bill = bill_of(served.plan, terms)
    except PlanError as error:
        refused = error
    if bill is not None:
        values |= _of_bill(bill)
        accounts |= cost_accounts(job, bill, terms.usd_per_device_hour, None, rates, facts)
    for name in ("usd_per_hour", "usd_per_month", "usd_per_million_tokens", "usd_per_million_output_tokens"):
        values.pop(f"cost.{name}", None)
    return Subject(
        kind="serving",
        job=job,
        asked=asked,
        plan=served.plan,
        assumptions=_with_price(served.assumptions, bill),
        warnings=result.warnings,
        evidence=evidence_of(job),
        values=values,
        accounts=accounts,
        spreads=_serving_spreads(job, accounts, values),
        price=None if bill is None else price_source(bill),
        facts=facts,
        refused=_unpriced(accounts, refused, job),
    )


def _headroom(memory: Any, entry: int, value: float) -> Account:
    room, total_bytes = float(memory.room[entry]), float(memory.total[entry])
    if value < 0.0 and np.isclose(value, memory.capacity - total_bytes, rtol=1e-9):
        return total(
            Term("memory.capacity_bytes", float(memory.capacity)), Term("memory.per_device_bytes", total_bytes, "-")
        )
    return total(Term("cache_room_bytes", room), Term("largest_request_bytes", room - value, "-"))


def _serving_spreads(job: ServingJob, accounts: Accounts, values: Mapping[str, Any]) -> dict[str, Spread]:
    factors = job.factors
    how = f"half of the interval that holds 80 % of the configurations of {job.engine.name} left out of the fit"
    if not (factors.engine_measured and factors.device_measured):
        how = "from sources that were left out of the fit whole, as nothing was measured of this engine or device"

    def of(spread: float) -> Spread:
        return Spread(spread, spread, factors.runs, how)

    found = {"latency.ttft_s": of(factors.ttft_spread), "latency.tpot_s": of(factors.tpot_spread)}
    found["throughput.tokens_per_s_per_user"] = of(factors.tpot_spread)
    # What comes at a rate and is served leaves at it.
    if values.get("throughput.output_tokens_low_per_s") != values.get("throughput.output_tokens_per_s"):
        rates = [key for key in accounts if key.startswith(("throughput.", "usd_per_million"))]
        found = dict.fromkeys(rates, of(factors.throughput_spread)) | found
    if job.inference.requests is not None:
        found |= dict.fromkeys(("hours", "usd", "device_hours", "kwh", "co2_kg"), of(factors.throughput_spread))
    return found
