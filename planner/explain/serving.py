"""A serving plan as something whose figures can be explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from estimator.account import Account, Accounts, Term, total
from estimator.plan.schema import Plan
from estimator.plan.serving.job import ServingJob
from estimator.serving.account import serving_accounts
from planner.asked.money import CostTerms
from planner.evidence import evidence_of
from planner.explain.cost import cost_accounts, flattened, price_source
from planner.explain.subject import Spread, Subject, bill_figures, billed, unpriced, with_price
from planner.fit.serving import headroom
from planner.money.bill import energy_facts
from planner.serving.estimate import estimate_of
from planner.serving.planned import plan_serving


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
    billing = billed(served.plan, terms)
    bill = billing.bill
    if bill is not None:
        values |= bill_figures(bill)
        accounts |= cost_accounts(job, bill, terms.usd_per_device_hour, None, rates, facts)
    for name in ("usd_per_hour", "usd_per_month", "usd_per_million_tokens", "usd_per_million_output_tokens"):
        values.pop(f"cost.{name}", None)
    return Subject(
        kind="serving",
        job=job,
        asked=asked,
        plan=served.plan,
        assumptions=with_price(served.assumptions, bill),
        warnings=result.warnings,
        evidence=evidence_of(job),
        values=values,
        accounts=accounts,
        spreads=_spreads(job, accounts, values),
        price=None if bill is None else price_source(bill),
        facts=facts,
        refused=unpriced(accounts, billing.refusal, job),
    )


def _headroom(memory: Any, entry: int, value: float) -> Account:
    room, total_bytes = float(memory.room[entry]), float(memory.total[entry])
    if value < 0.0 and np.isclose(value, memory.capacity - total_bytes, rtol=1e-9):
        return total(
            Term("memory.capacity_bytes", float(memory.capacity)), Term("memory.per_device_bytes", total_bytes, "-")
        )
    return total(Term("cache_room_bytes", room), Term("largest_request_bytes", room - value, "-"))


def _spreads(job: ServingJob, accounts: Accounts, values: Mapping[str, Any]) -> dict[str, Spread]:
    factors = job.factors
    how = f"which holds 80 % of the configurations of {job.engine.name} when they are left out of the fit"
    if not (factors.engine_measured and factors.device_measured):
        how = "from sources left out of the fit as a whole, as nothing was measured of this engine or device"

    def of(spread: float) -> Spread:
        return Spread(spread, spread, factors.runs, how)

    spreads = {"latency.ttft_s": of(factors.ttft_spread), "latency.tpot_s": of(factors.tpot_spread)}
    spreads["throughput.tokens_per_s_per_user"] = of(factors.tpot_spread)
    # What comes at a rate and is served leaves at it.
    if values.get("throughput.output_tokens_low_per_s") != values.get("throughput.output_tokens_per_s"):
        rates = [key for key in accounts if key.startswith(("throughput.", "usd_per_million"))]
        spreads = dict.fromkeys(rates, of(factors.throughput_spread)) | spreads
    if job.inference.requests is not None:
        spreads |= dict.fromkeys(("hours", "usd", "device_hours", "kwh", "co2_kg"), of(factors.throughput_spread))
    return spreads
