"""Clusters for a training plan: every size screened with the usual layouts, the best estimated exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from estimator.bounds import least_step_s
from estimator.defaults import framework_choices
from estimator.errors import PlanError
from estimator.fleet import Quick, quickest, sizes
from estimator.hardware import Accelerator
from estimator.job import Job
from estimator.plan import Plan
from knowledge.jobs import job as look_up
from knowledge.training_devices import no_training
from tools.cluster_candidates import (
    MISFIT,
    NO_HOURLY,
    OVER_HOURLY,
    Candidate,
    Hourly,
    Refusal,
    Refused,
    Shape,
    hourly_rows,
    network_of,
    node_sizes,
    notes_of,
    others,
    unpriced,
)
from tools.cluster_request import Asked, finite
from tools.cluster_results import ClusterOption
from tools.offers import offers
from tools.planning import Planned, memory_of, planned, run_of

# Devices up to which sizes are tried at the least, and the most; fewer than a 64th of the most are not tried.
_USUAL_MOST, _MOST, _RANGE = 64, 16_384, 64
# Without a deadline, sizes are tried until the run takes a month, at this share of the rate that is the most.
_HORIZON_H, _USUAL_SHARE = 720.0, 0.5
# How far beyond the most devices the least number that would fit is looked for.
_BEYOND = 16
# A run of less than an hour is not split further where nobody says how far: starting it takes as long.
_LEAST_H = 1.0
# Layouts from which on the whole space is left to a single estimate.
_FEW = 200


def screened(ask: Asked, enough: int) -> tuple[list[Candidate], Refused, int]:
    """(What fits, what is left out and why, how many sizes were estimated). What `enough` others beat in money and in
    time even at the most that it reaches is left out. Raises PlanError where the plan itself cannot be."""
    found: list[Candidate] = []
    refused: Refused = []
    errors: list[PlanError] = []
    tried = 0
    for device in sorted(ask.devices, key=lambda one: _usd_per_flop(ask, one)):
        if why := no_training(device):
            refused.append(Refusal(device.id, "no_framework", why))
            continue
        if not ask.estimates(device.id):
            refused.append(unpriced(device.id))
            continue
        walk = _Walk(ask, device, found, enough)
        here = list(walk.candidates())
        tried += walk.tried
        if not here:
            errors += [walk.error] if walk.error and not walk.misfits else []
            refused.append(walk.refusal())
    if errors and not found and len({str(error) for error in errors}) == 1:
        raise errors[0]
    return found, refused, tried


def _usd_per_flop(ask: Asked, device: Accelerator) -> float:
    """USD an hour for its peak rate, of the cheapest offer: the best are estimated first."""
    usd = [price.usd_per_hour / price.count for price in ask.offered(device.id) if price.usd_per_hour is not None]
    peak = device.peak_flops.get("bf16") or device.peak_flops.get("fp16") or 1.0
    return min(usd, default=math.inf) / peak


class _Walk:
    """One accelerator through its sizes, and what was met on the way; what fits goes to `found`."""

    def __init__(self, ask: Asked, device: Accelerator, found: list[Candidate], enough: int) -> None:
        self.ask, self.device, self.found, self.enough = ask, device, found, enough
        self.outdone = False
        self.error: PlanError | None = None
        self.misfits: list[int] = []
        self.dear: list[float] = []
        self.tried = 0
        self.most_is_open = ask.count is None and ask.max_devices is None and ask.max_nodes is None

    def candidates(self) -> Iterator[Candidate]:
        for per_node, sellers in node_sizes(self.ask, self.device):
            for count in self._counts(per_node):
                if sellers is not None and count <= (per_node or 1):
                    continue  # as in the usual node
                shape = Shape(self.device, count, per_node, sellers)
                candidate = self._candidate(shape)
                if candidate:
                    self.found.append(candidate)
                    yield candidate
                    if self.most_is_open and candidate.hours is not None and candidate.hours < _LEAST_H:
                        break

    def _counts(self, per_node: int | None) -> list[int]:
        if self.ask.count is not None:
            return [self.ask.count]
        node = per_node or self.device.per_node
        most = self.ask.most(node)
        usual = self._usual_most(node)
        return sizes(node, max(1, min(usual, most or usual) // _RANGE), most or usual)

    def _usual_most(self, node: int) -> int:
        """Devices with which the run takes no longer than the deadline, or a month."""
        try:
            job = look_up(_with(self.ask.plan, Shape(self.device, node)))
        except PlanError:
            return _USUAL_MOST
        hours = (job.steps or 0) * least_step_s(job) * job.machine.count / _USUAL_SHARE / 3600.0
        needed = hours / (self.ask.deadline_h or _HORIZON_H)
        return int(min(_MOST, max(_USUAL_MOST, 2 ** math.ceil(math.log2(max(1.0, needed))))))

    def _candidate(self, shape: Shape) -> Candidate | None:
        rows = hourly_rows(self.ask, shape, shape.node, shape.count > shape.node)
        best = rows[0] if rows else None
        if best is None and (shape.sellers is not None or self._waits_for_price(shape)):
            return None
        try:
            first = look_up(_with(self.ask.plan, shape))
            if self._is_outdone(first, best):
                self.outdone = True
                return None
            quick, job = _quick(self.ask.plan, first)
        except PlanError as error:
            self.error = error
            return None
        self.tried += 1
        if quick is None:
            self.misfits.append(shape.count)
            return None
        limit = self.ask.max_usd_per_hour
        if limit is not None and (best is None or best.usd > limit):
            self.dear.append(best.usd if best else math.inf)
            return None
        money, took = _ranked(job, quick.step_s, best)
        return Candidate(
            shape=shape,
            changes=shape.changes | _chosen(job, quick.layout, quick.micro_batch),
            best=best,
            hours=None if job.steps is None else took,
            money=money,
            time=took,
            tried=quick.tried,
        )

    def _waits_for_price(self, shape: Shape) -> bool:
        """Devices that can be rented are only tried in numbers in which they can, unless a number was asked for."""
        rented = any(price.usd_per_hour is not None for price in self.ask.offered(self.device.id))
        return rented and self.ask.count is None and shape.count > 1

    def _is_outdone(self, job: Job, best: Hourly | None) -> bool:
        """Whether enough others beat it in money and time even at the most that it reaches: then it is among the first
        by no order, nor on the front."""
        money, took = _ranked(job, least_step_s(job), best)
        return sum(other.money <= money and other.time <= took for other in self.found) >= self.enough

    def refusal(self) -> Refusal:
        name = self.device.id
        if self.dear:
            least = finite(min(self.dear))
            return Refusal(name, "over_hourly", OVER_HOURLY, least) if least else Refusal(name, "no_price", NO_HOURLY)
        if self.misfits:
            return Refusal(name, "does_not_fit", MISFIT, self._least_devices(max(self.misfits)))
        if self.outdone:
            return Refusal(name, "outdone", "others cost and take less, even at the highest rate that it can reach")
        if self.error:
            return Refusal(name, "no_layout", " ".join(str(self.error).split()))
        return Refusal(name, "not_offered", "it is not rented in any number within the limits")

    def _least_devices(self, most: int) -> int | None:
        """The next doubling beyond the most on which it would fit."""
        node = self.ask.plan.cluster.per_node or self.device.per_node
        for count in sizes(node, most + 1, most * _BEYOND):
            try:
                if _quick(self.ask.plan, look_up(_with(self.ask.plan, Shape(self.device, count))))[0]:
                    return count
            except PlanError:
                continue
        return None


def _with(plan: Plan, shape: Shape) -> Plan:
    return plan.patch(shape.changes)


def _ranked(job: Job, step_s: float, best: Hourly | None) -> tuple[float, float]:
    """(USD, hours) of the run; without data (USD per million tokens, seconds per token). inf: no price is known."""
    usd = math.inf if best is None else best.usd
    if job.steps is not None:
        hours = job.steps * step_s / 3600.0
        return usd * hours, hours
    per_token = step_s / job.tokens_per_step
    return usd / 3600.0 * per_token * 1e6, per_token


def _quick(plan: Plan, first: Job) -> tuple[Quick | None, Job]:
    """The best usual layout, on the usual framework or, where that does not fit, on another: as in an estimate.
    `first` is the job on the usual one."""
    found, job = quickest(first), first
    if found or plan.training.framework != "auto":
        return found, job
    machine = first.machine
    plan = plan.patch({"cluster.accelerator": machine.accelerator.id, "cluster.count": machine.count})
    for choice in framework_choices(plan, first.machine.accelerator, first.machine.count)[1:]:
        try:
            job = look_up(plan, choice)
            if found := quickest(job):
                return found, job
        except PlanError:
            continue
    return None, first


def _chosen(job: Job, layout: Mapping[str, Any], micro_batch: int) -> dict[str, Any]:
    """What a plan has to say for these very figures to come out again."""
    return {
        "layout": dict(layout),
        "workload.micro_batch": micro_batch,
        "workload.global_batch": job.global_batch,
        "workload.framework": job.framework.name,
    }


def few_layouts(candidates: list[Candidate]) -> bool:
    """Whether the whole space of layouts can be searched for each of them in little time."""
    return all(candidate.tried <= _FEW for candidate in candidates)


def exact(ask: Asked, candidate: Candidate, whole: bool) -> tuple[ClusterOption, Planned] | None:
    """The option as an estimate of the very plan that its patch makes; None where it does not fit after all."""
    shape = candidate.shape
    joined = shape.count > shape.node
    rows = hourly_rows(ask, shape, shape.node, joined)
    price = candidate.best.price if candidate.best else None
    changes = dict(candidate.changes)
    usual = look_up(_with(ask.plan, shape)).machine.network.bandwidth_per_node
    network = network_of(ask, price, shape, usual)
    if whole or network:
        searched = planned(ask.plan.patch(shape.changes | network), whole=whole)
        layouts, index = searched.estimates.layouts, searched.index
        chosen = _chosen(searched.job, layouts.row(index), int(layouts.micro_batch[index]))
        changes = shape.changes | network | chosen
    if price is not None:
        changes["goal.provider"] = price.provider
    found = planned(ask.plan.patch(changes))
    if not found.fits:
        return None
    job, memory, run = found.job, memory_of(found), run_of(found)
    step_s = float(found.estimates.step.seconds[found.index])
    listed = offers(found, run.hours if run else 1.0)
    offer = next((row for row in listed if row.usd is not None), None) if price else None
    hourly = offer.usd_per_hour if offer else None
    tokens_per_s = job.tokens_per_step / step_s
    usd = offer.usd if offer and run else None
    limits = ask.plan.goal
    option = ClusterOption(
        accelerator=shape.accelerator.id,
        count=shape.count,
        per_node=job.machine.per_node,
        nodes=job.machine.nodes,
        provider=offer.provider if offer else None,
        instance=offer.instance if offer else None,
        instances=offer.instances if offer else None,
        price_date=offer.price_date if offer else None,
        usd_per_hour=hourly,
        hours=run.hours if run else None,
        low_hours=run.low_hours if run else None,
        high_hours=run.high_hours if run else None,
        usd=usd,
        low_usd=hourly * run.low_hours if run and hourly is not None else None,
        high_usd=hourly * run.high_hours if run and hourly is not None else None,
        usd_per_million_tokens=_per_million(usd, hourly, tokens_per_s, run.tokens if run else None),
        tokens_per_s=tokens_per_s,
        framework=job.framework.name,
        layout=found.estimates.layouts.row(found.index),
        summary=found.estimates.layouts.summary(found.index),
        micro_batch=int(found.estimates.layouts.micro_batch[found.index]),
        global_batch=job.global_batch,
        step_s=step_s,
        mfu=float(found.estimates.mfu[found.index]),
        per_device_bytes=memory.per_device_bytes,
        headroom_bytes=memory.capacity_bytes - memory.high_bytes,
        fits_deadline=None if limits.deadline_h is None or run is None else run.hours <= limits.deadline_h,
        fits_budget=None if limits.budget_usd is None or usd is None else usd <= limits.budget_usd,
        measured=job.calibration.device_measured,
        other_offers=others(rows),
        notes=notes_of(price, shape.node, shape.count, joined),
        patch=changes,
    )
    return option, found


def _per_million(usd: float | None, hourly: float | None, tokens_per_s: float, tokens: float | None) -> float | None:
    """USD per million tokens: of the run's, as its last step may be partly empty, or at the rate."""
    if tokens and usd is not None:
        return usd / (tokens / 1e6)
    return None if hourly is None else hourly / (tokens_per_s * 3600.0 / 1e6)
