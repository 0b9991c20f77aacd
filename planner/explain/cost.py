"""Accounts of the length of a run, of money and of energy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from estimator.account import Account, Accounts, Term, over, product, rest, times, total
from estimator.machine.hardware import Machine
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.job import Job
from knowledge.prices.energy import Fact
from planner.money.results import CostEstimate
from planner.result import ProviderCost
from planner.results import Goodput, RunLength
from planner.serving.prices import HOURS_PER_MONTH

_NO_STEPS = ("checkpoint_hours", "redone_hours", "restart_hours")
HOUR = over("second_per_hour", 3600.0)


def run_accounts(job: Job, step_s: float, length: RunLength | None) -> Accounts:
    """Of the length of a training run; empty where the plan names neither data nor steps."""
    training, run = job.training, job.run
    if run is None or length is None:
        return {}
    told, step_tokens = times("run.steps", float(run.steps)), float(job.tokens_per_step)
    by_steps = training.dataset_tokens is None

    def tokens() -> Account:
        data, epochs = float(training.dataset_tokens or 0.0), float(training.epochs)
        if not by_steps and math.isclose(data * epochs, run.tokens, rel_tol=1e-9):
            return product(times("workload.dataset_tokens", data), times("workload.epochs", epochs))
        if math.isclose(run.steps * step_tokens, run.tokens, rel_tol=1e-9):
            return product(told, times("work.tokens_per_step", step_tokens))
        return Account("inputs", (told, times("work.tokens_per_step", step_tokens)))

    def steps() -> Account:
        if training.steps is not None:
            return Account("sum", (Term("wanted_steps", float(run.steps)),))
        terms = (times("run.tokens", run.tokens), over("work.tokens_per_step", step_tokens))
        if math.ceil(run.tokens / step_tokens - 1e-9) == run.steps:
            return Account("rounded_up", terms)
        return Account("inputs", terms, note="every sample has a row of its own, padded to the sequence length")

    return {
        "run.tokens": tokens,
        "run.steps": steps,
        "run.step_hours": lambda: product(told, times("time.step_s", step_s), HOUR),
        "run.hours": lambda: total(Term("run.step_hours", length.step_hours), *_failures(length.goodput)),
        "run.device_hours": lambda: product(
            times("run.hours", length.hours), times("cluster.count", float(job.machine.count))
        ),
    }


def _failures(goodput: Goodput | None) -> list[Term]:
    """Hours by the clock that are no steps."""
    if goodput is None:
        return []
    return [Term(f"run.goodput.{name}", getattr(goodput, name)) for name in _NO_STEPS]


def cost_accounts(
    job: Job | ServingJob,
    bill: CostEstimate,
    own_usd: float | None,
    run: RunLength | None,
    rates: Mapping[str, float],
    facts: Mapping[str, Fact],
) -> Accounts:
    """Of what `estimate_cost` returns.

    `run` is the length of a training run before spot instances are taken away, `rates` output tokens,
    tokens and requests per second of serving, `facts` the assumptions about energy.
    """
    accounts: dict[str, Callable[[], Account]] = {}
    hours = times("hours", bill.hours)
    accounts |= _hours(job, bill, run, rates)
    accounts["device_hours"] = lambda: product(hours, times("cluster.count", float(job.machine.count)))
    accounts |= _energy(job.machine, bill, facts)
    hourly, usd = bill.usd_per_hour, bill.usd
    if hourly is None or usd is None:
        return accounts
    hour_usd, paid = times("usd_per_hour", hourly), times("usd", usd)
    accounts["usd_per_hour"] = lambda: _hourly(bill, own_usd, job.machine, hourly)
    accounts["usd_per_device_hour"] = lambda: product(hour_usd, over("cluster.count", float(job.machine.count)))
    accounts["usd"] = lambda: product(hour_usd, hours)
    accounts["low_usd"] = lambda: product(hour_usd, times("low_hours", bill.low_hours))
    accounts["high_usd"] = lambda: product(hour_usd, times("high_hours", bill.high_hours))
    accounts["usd_total"] = lambda: total(*(Term(f"cost_part.{part.part}", part.usd) for part in bill.parts))
    accounts["usd_per_million_tokens"] = lambda: product(paid, over("tokens", bill.tokens), times("million", 1e6))
    if bill.steps is not None:
        accounts["usd_per_step"] = lambda: product(paid, over("run.steps", float(bill.steps or 1)))
        if bill.epochs:
            accounts["usd_per_epoch"] = lambda: product(paid, over("run.epochs", float(bill.epochs or 1)))
        return accounts
    accounts["usd_per_month"] = lambda: product(hour_usd, *_month(bill))
    slower = times("interruption_slowdown", _slower(bill, rates))
    for name, key in (("output_tokens", "throughput.output_tokens_per_s"), ("requests", "throughput.requests_per_s")):
        accounts[f"usd_per_million_{name}"] = lambda key=key: product(
            hour_usd, over(key, rates[key]), HOUR, times("million", 1e6), slower
        )
    return accounts


def _month(bill: CostEstimate) -> list[Term]:
    """The hours of a month in which it serves."""
    share = (bill.usd_per_month or 0.0) / ((bill.usd_per_hour or 1.0) * HOURS_PER_MONTH)
    return [
        times("hours_per_month", HOURS_PER_MONTH),
        *([] if math.isclose(share, 1.0) else [times("served_share", share)]),
    ]


def _slower(bill: CostEstimate, rates: Mapping[str, float]) -> float:
    """How many times longer serving takes with interruptions."""
    return rates["throughput.total_tokens_per_s"] * bill.hours * 3600.0 / bill.tokens


def _hours(
    job: Job | ServingJob,
    bill: CostEstimate,
    run: RunLength | None,
    rates: Mapping[str, float],
) -> dict[str, Callable[[], Account]]:
    names = ("hours", "low_hours", "high_hours")
    ends = dict(zip(names, (bill.hours, bill.low_hours, bill.high_hours), strict=True))
    if run is not None:
        plain = {name: getattr(run, name) for name in names}
        made: dict[str, Callable[[], Account]] = {
            name: lambda name=name: total(*rest(ends[name], [Term(f"run.{name}", plain[name])], "interruption_hours"))
            for name in names
        }
        return made | {"tokens": lambda: total(Term("run.tokens", bill.tokens))}
    assert isinstance(job, ServingJob)
    requests, spread = job.inference.requests, 1.0 + job.factors.throughput_spread
    slower = _slower(bill, rates)
    made = {
        "tokens": lambda: product(
            times("throughput.total_tokens_per_s", rates["throughput.total_tokens_per_s"]),
            times("hours", bill.hours), times("second_per_hour", 3600.0), over("interruption_slowdown", slower),
        )
    }  # fmt: skip
    if requests is None:
        return made | {name: lambda: product(*_month(bill)) for name in names}
    told = times("hours", bill.hours)
    return made | {
        "hours": lambda: product(
            times("workload.requests", float(requests)),
            over("throughput.requests_per_s", rates["throughput.requests_per_s"]),
            HOUR,
            times("interruption_slowdown", slower),
        ),
        "low_hours": lambda: product(told, over("interval_factor.throughput", spread)),
        "high_hours": lambda: product(told, times("interval_factor.throughput", spread)),
    }


def _row(bill: CostEstimate) -> ProviderCost | None:
    """The offer that the cost goes by."""
    return next(
        (row for row in bill.by_provider if (row.provider, row.instance) == (bill.provider, bill.instance)), None
    )


def price_source(bill: CostEstimate) -> str | None:
    """Where the price comes from."""
    if bill.price == "own":
        return "your own price"
    if bill.price == "owned":
        return bill.owned.source if bill.owned else None
    row = _row(bill)
    if row is None:
        return None
    dated = f"of {row.price_date}" if row.price_date else "undated"
    return f"{row.provider} {row.instance}, {bill.price.replace('_', '-')} price {dated} ({row.source})"


def _hourly(bill: CostEstimate, own_usd: float | None, machine: Machine, hourly: float) -> Account:
    count = times("cluster.count", float(machine.count))
    if bill.price == "own" and own_usd is not None:
        return product(times("own_usd_per_device_hour", own_usd), count)
    row = _row(bill)
    if row is None:
        parts = [Term(f"cost_part.{part.part}", part.usd / bill.hours) for part in bill.parts]
        owned = [part for part in parts if not part.name.endswith(("_storage", "_transfer"))]
        return total(*(owned or [Term("cost_part.devices", hourly)]), note="of one hour of use")
    return product(
        times("offer.instances", float(row.instances)),
        times("offer.usd_per_hour", hourly / row.instances),
        note=f"the cheapest {bill.price.replace('_', '-')} offer: {row.provider} {row.instance}",
    )


def _energy(machine: Machine, bill: CostEstimate, facts: Mapping[str, Fact]) -> dict[str, Callable[[], Account]]:
    watts, co2 = machine.accelerator.tdp_w, facts["kg_co2_per_kwh"].value
    if bill.kwh is None:
        return {}
    host, pue = 1.0 + facts["host_share"].value, facts["pue"].value
    weight = {"co2_kg": lambda: product(times("kwh", bill.kwh or 0.0), times("energy.kg_co2_per_kwh", co2))}
    if bill.price == "owned" and bill.owned is not None:
        kw = times("owned_kw", bill.owned.kw)
        return weight | {"kwh": lambda: product(kw, times("energy.pue", pue), times("hours", bill.hours))}
    if watts is None:
        return {}
    device_watts = watts * host * pue
    return weight | {
        "kwh": lambda: product(
            times("cluster.count", float(machine.count)), times("device_watts", device_watts),
            times("hours", bill.hours), over("watts_per_kilowatt", 1000.0),
        ),
        "device_watts": lambda: product(
            times("energy.tdp", watts), times("energy.with_host", host), times("energy.pue", pue), value=device_watts
        ),
    }  # fmt: skip


def flattened(value: Any, path: str = "") -> dict[str, float | bool]:
    """Every number of a result by its dotted key, rows of lists by their place."""
    if isinstance(value, bool | int | float):
        return {path: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    numbers: dict[str, float | bool] = {}
    for key, inner in pairs:
        numbers |= flattened(inner, f"{path}.{key}" if path else str(key))
    return numbers
