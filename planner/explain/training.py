"""A training plan as something whose figures can be explained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from estimator.account import Account, Accounts, Term, over, product, times, total
from estimator.plan.schema import Plan
from estimator.plan.training.job import Job
from estimator.training.memory_account import memory_accounts
from estimator.training.time_account import StepParts, time_accounts
from planner.asked.money import CostTerms
from planner.evidence import evidence_of
from planner.explain.cost import cost_accounts, flattened, price_source, run_accounts
from planner.explain.subject import Spread, Subject, bill_figures, billed, unpriced, with_price
from planner.money.bill import energy_facts
from planner.money.results import CostEstimate
from planner.result import Result
from planner.results import RunLength
from planner.training.memory import memory_of
from planner.training.planned import plan_training, throughput_of, time_of, warnings_of
from planner.training.run import run_of

# Rows of a picture, of which the figures are parts.
_PICTURED = {"memory": {"moments"}, "time": {"stages"}}

_BY_HOURS = ("run.hours", "hours", "run.device_hours", "device_hours", "usd", "usd_total", "usd_per_step",
             "usd_per_epoch", "usd_per_million_tokens", "kwh", "co2_kg")  # fmt: skip


def training_subject(asked: Plan, terms: CostTerms, every_framework: bool = False) -> Subject:
    planned = plan_training(asked, every_framework=every_framework)
    job, estimates = planned.job, planned.estimates.of(planned.index)
    step = StepParts(job, estimates.layouts, estimates.step)
    memory = memory_of(planned)
    values: dict[str, float | bool | None] = {}
    parts: dict[str, Result] = {"memory": memory, "time": time_of(planned), "throughput": throughput_of(planned)}
    for name, part in parts.items():
        values |= flattened(part.model_dump(exclude=_PICTURED.get(name)), name)
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
    accounts |= run_accounts(job, float(estimates.step.seconds[0]), run)
    accounts |= _roofline(values, float(estimates.step.hardware_flop[0]), job)
    accounts |= planned.host_needs.saving
    host = memory.host
    accounts["memory.host.per_node_bytes"] = lambda: total(
        *(Term(f"memory.host.components.{name}", size) for name, size in host.components.items()),
        note=f"the worst phase is {host.phase}",
    )
    facts = energy_facts(terms)
    billing = billed(Plan.parse(planned.complete_plan), terms)
    bill = billing.bill
    if bill is not None and run is not None:
        values |= bill_figures(bill)
        accounts |= cost_accounts(job, bill, terms.usd_per_device_hour, run, {}, facts)
    return Subject(
        kind="training",
        job=job,
        asked=asked,
        plan=planned.plan,
        assumptions=with_price(planned.assumptions, bill),
        warnings=warnings_of(planned),
        evidence=evidence_of(planned.job),
        values=values,
        accounts=accounts,
        spreads=_spreads(job, accounts, run if bill is None else bill),
        price=None if bill is None else price_source(bill),
        facts=facts,
        step=step,
        refused=unpriced(accounts, billing.refusal, job),
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


def _spreads(job: Job, accounts: Accounts, run: RunLength | CostEstimate | None) -> dict[str, Spread]:
    """`run` is what the hours of the run are told by."""
    factors, calibration = job.calibration.framework, job.calibration
    of = factors.framework
    memory = "which holds 80 % of measured peaks when they are left out of the fit"
    if job.unmeasured_memory:
        memory += f"; wider for what no peak was measured of: {', '.join(job.unmeasured_memory)}"
    time = f"which holds 80 % of the runs of {of} when they are left out of the fit"
    if not (calibration.device_measured and calibration.time_measured):
        time = "from sources left out of the fit as a whole, as nothing was measured of this framework or device"
    if job.plan.overrides.mfu is not None:
        time = "as the MFU is your own"
    fast = Spread(job.time_spread, job.time_spread, factors.runs, time)
    rates = [key for key in accounts if key.startswith("throughput.")]
    spreads = dict.fromkeys(["time.step_s", *rates], fast) | dict.fromkeys(_BY_HOURS, _of_hours(run, fast))
    return spreads | {
        "memory.per_device_bytes": Spread(job.memory_below, job.memory_above, factors.memory_runs, memory)
    }


def _of_hours(run: RunLength | CostEstimate | None, steps: Spread) -> Spread:
    """Of what goes by the hours of a run: that of its steps, and where machines fail that of failures with it."""
    if run is None or not run.hours:
        return steps
    below, above = run.hours / run.low_hours - 1.0, run.high_hours / run.hours - 1.0
    if math.isclose(below, steps.below, rel_tol=1e-6) and math.isclose(above, steps.above, rel_tol=1e-6):
        return steps
    return replace(steps, below=below, above=above, how=f"of steps, {steps.how}, with the range of published failures")
