"""What is told of a choice of clusters beside it: its knee, what would change the winner, and where nothing meets the
limits the nearest plans that do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.money.cost import HOURS_PER_MONTH
from estimator.plan.schema import Inference
from estimator.search.fleet import knee as knee_of
from knowledge.figures import count, hours, percent, usd
from planner.asked.clusters import Sort
from planner.clusters.candidates import ClusterChoice, missed
from planner.clusters.request import Asked
from planner.clusters.results import ClusterOption, NearPlan, WinnerChange, from_whom
from planner.money.purchase import purchase
from planner.training.neighbours import family_sizes

# The nearest plans, and the devices that they are looked for on: those that come nearest to the limits.
_NEAREST, _TRIED_DEVICES = 3, 4
# A change of price or speed by more than this is no uncertainty: a doubling.
_MOST_CHANGE = 1.0
# Written in whole percent this is all of it.
_ALMOST_ALL = 0.995
Best = Callable[[Asked], ClusterChoice | None]


def knee(options: Sequence[ClusterOption], cost: Callable[[ClusterOption], float],
         took: Callable[[ClusterOption], float]) -> ClusterOption | None:  # fmt: skip
    """Of the options that nothing beats in both the one from where less time costs most; where no such
    one is, that with the best balance. None where no price is known."""
    money, time = (np.array([of(option) for option in options]) for of in (cost, took))
    place = knee_of(money, time)
    if place is None and np.isfinite(money * time).any():
        place = int(np.argmin(money * time))
    return None if place is None else options[place]


def named(option: ClusterOption) -> str:
    return f"{option.count} x {option.accelerator}" + from_whom(option.provider)


def winner_changes(
    choices: Sequence[ClusterChoice], sort: Sort, value: Callable[[ClusterOption], float]
) -> Iterator[WinnerChange]:
    """What would have to be otherwise for another device or provider to come first; `value` is what was ranked by."""
    if len(choices) < 2 or not math.isfinite(value(choices[0].option)):
        return
    first = choices[0].option
    # What can be launched goes first, whatever else changes: only another that can be takes its place.
    able = [each for each in choices[1:] if _differs(first, each.option)]

    def launched(of: Callable[[ClusterOption], bool]) -> ClusterOption | None:
        return next(
            (each.option for each in able if of(each.option) and each.is_launched >= choices[0].is_launched), None
        )

    # One that is better and stands behind wins nothing by a change of figures; nor does one that was never measured
    # win against one that was.
    second = launched(lambda each: each.measured >= first.measured and value(first) <= value(each) < math.inf)
    if second is not None and value(first) > 0.0:
        times = value(second) / value(first)
        if sort != "time" and first.usd_per_hour is not None and 0.0 < times - 1.0 <= _MOST_CHANGE:
            text = f"{named(first)} costs {percent(times - 1.0)} more an hour"
            yield WinnerChange(assumption="price", what=text, winner=named(second), within=False)
        slower = math.sqrt(times) if sort == "balanced" else times
        if 0.0 < slower - 1.0 <= _MOST_CHANGE:
            room = first.high_hours / first.hours - 1.0 if first.hours and first.high_hours else 0.0
            text = f"{named(first)} is {percent(slower - 1.0)} slower"
            yield WinnerChange(assumption="speed", what=text, winner=named(second), within=slower - 1.0 <= room)
    fresh = launched(lambda each: each.stale is False) if first.stale else None
    if fresh is not None:
        text = "only prices of the last 90 days count"
        yield WinnerChange(assumption="price date", what=text, winner=named(fresh), within=True)
    measured = None if first.measured else launched(lambda each: each.measured)
    if measured is not None:
        text = "only devices with measured runs count"
        yield WinnerChange(assumption="measurements", what=text, winner=named(measured), within=True)


def _differs(first: ClusterOption, other: ClusterOption) -> bool:
    return (first.accelerator, first.provider) != (other.accelerator, other.provider)


@dataclass(frozen=True)
class _Change:
    """`share` of the data that it keeps, which is told beside what else changes; `whole` tokens use up the limits, as
    far as these go by the token."""

    what: str
    gives_up: str
    patch: dict[str, Any]
    share: float = 1.0
    whole: float = 0.0

    @property
    def told(self) -> tuple[str, str]:
        """What is planned instead, and what that gives up."""
        if self.share == 1.0:
            return self.what, self.gives_up
        tokens = f"{count(self.patch['workload.dataset_tokens'])} tokens"
        lost = f"{percent(1.0 - self.share) if 1.0 - self.share < _ALMOST_ALL else 'almost all'} of the data"
        return ", ".join(filter(None, (self.what, tokens))), "; ".join(filter(None, (self.gives_up, lost)))


def nearest(ask: Asked, options: Sequence[ClusterOption], best: Best) -> list[NearPlan]:
    """Plans that meet the limits, what gives up least first: changes that are enough alone, then those that take fewer
    tokens too. `best` is the cheapest cluster of a question, whether it keeps to the limits or not."""
    names = list(dict.fromkeys(option.accelerator for option in options))[:_TRIED_DEVICES]
    devices = [device for device in ask.devices if not names or device.id in names or _affordable(ask, device)]
    asking, plans, beyond = replace(ask, devices=devices, rejected=[]), [], []
    for change in _changes(ask):
        choice = _tried(asking, change, best)
        if choice is not None and choice.within:
            plans.append(_near(change, choice.option))
        elif choice is not None:
            beyond.append((change, choice.option))
        if len(plans) == _NEAREST:
            return plans
    plain = _Change("", "", {})
    if options:
        beyond.append((plain, options[0]))
    fewer = [(change, option) for each, option in beyond if (change := _fewer_tokens(ask, each, option))]
    # Where too few changes can be, as much of the data as other clusters leave.
    others = {option.accelerator: option for option in reversed(options[1:]) if option.accelerator != names[0]}
    elsewhere = [(each, option) for option in others.values() if (each := _fewer_tokens(ask, plain, option))]
    for change, option in [*_most_first(fewer), *_most_first(elsewhere)]:
        device = next(device for device in ask.devices if device.id == option.accelerator)
        there = replace(asking, devices=[device], count=option.count)
        choice = _tried(there, change, best)
        if choice is not None and not choice.within and (less := _still_fewer(ask, change, choice.option)):
            change, choice = less, _tried(there, less, best)
        if choice is not None and choice.within:
            plans.append(_near(change, choice.option))
        if len(plans) == _NEAREST:
            return plans
    for option in options[: _NEAREST - len(plans)]:
        if over := "; ".join(_beyond(ask, option)):
            plans.append(_near(_Change("the limits raised", over, {}), option))
    return plans


def _most_first(fewer: list[tuple[_Change, ClusterOption]]) -> list[tuple[_Change, ClusterOption]]:
    return sorted(fewer, key=lambda row: -row[0].share)


def _tried(ask: Asked, change: _Change, best: Best) -> ClusterChoice | None:
    try:
        return best(replace(ask, plan=ask.plan.patch(change.patch)))
    except PlanError:
        return None


def _affordable(ask: Asked, device: Accelerator) -> bool:
    """Whether a smaller plan may do with machines of it that the budget buys, or rents for a month to serve."""
    if ask.max_usd is None:
        return False
    if ask.buys:
        sold = purchase(device)
        return sold is not None and sold.unit * sold.device_usd <= ask.max_usd
    workload = ask.plan.workload
    if not isinstance(workload, Inference) or workload.requests is not None:
        return False
    return any(price.usd_per_hour and price.usd_per_hour * HOURS_PER_MONTH <= ask.max_usd
               for price in ask.offered(device.id))  # fmt: skip


def _near(change: _Change, option: ClusterOption) -> NearPlan:
    what, gives_up = change.told
    return NearPlan(
        what=what, gives_up=gives_up, patch=change.patch | option.patch, accelerator=option.accelerator,
        count=option.count, provider=option.provider, hours=option.hours, usd=option.usd,
        usd_per_hour=option.usd_per_hour,
    )  # fmt: skip


def _changes(ask: Asked) -> Iterator[_Change]:
    workload = ask.plan.workload
    if isinstance(workload, Inference):
        if workload.weight_dtype not in ("fp8", "awq"):
            yield _Change("weights in fp8", "usually little of the quality", {"workload.weight_dtype": "fp8"})
            yield _Change("weights in 4 bits", "some of the quality", {"workload.weight_dtype": "awq"})
    else:
        if workload.precision == "bf16" and workload.method != "qlora":
            yield _Change("fp8", "exact matmuls: watch the loss", {"workload.precision": "fp8"})
        if workload.stage != "pretrain" and workload.method == "full":
            yield _Change("LoRA", "what adapters cannot learn", {"workload.method": "lora"})
        if workload.stage != "pretrain" and workload.method != "qlora":
            yield _Change("QLoRA", "what adapters cannot learn; steps take longer", {"workload.method": "qlora"})
    model = ask.plan.model
    for id in reversed(family_sizes(model, larger=False) if isinstance(model, str) else []):
        yield _Change(id, "a smaller model", {"model": id})


def _fewer_tokens(ask: Asked, change: _Change, option: ClusterOption) -> _Change | None:
    """The change with as many tokens, to two digits, as the limits leave on this cluster; None where the data is not
    given, not even a step of it is paid for, or the machines themselves are beyond the budget."""
    workload = ask.plan.workload
    if isinstance(workload, Inference) or not workload.dataset_tokens or option.capex_usd is not None:
        return None
    times = missed(ask, option.spent_usd, option.hours)
    if not 1.0 < times < math.inf:
        return None
    return _with_tokens(replace(change, whole=workload.dataset_tokens / times), workload.dataset_tokens, option)


def _still_fewer(ask: Asked, change: _Change, option: ClusterOption) -> _Change | None:
    """A change that takes fewer tokens, as `option` has it, and still misses the limits: what does not go by the token
    (starting, the last checkpoint) leaves so many less. None where it leaves none."""
    beyond = missed(ask, option.spent_usd, option.hours) - 1.0
    tokens = ask.plan.training.dataset_tokens
    if not tokens or not 0.0 < beyond < change.share * tokens / change.whole:
        return None
    return _with_tokens(replace(change, whole=change.share * tokens - beyond * change.whole), tokens, option)


def _with_tokens(change: _Change, dataset: float, option: ClusterOption) -> _Change | None:
    """A little below `whole` tokens, as the layouts that fit are estimated exactly only afterwards, in whole steps, as
    one that is begun is paid whole."""
    step = (option.tokens_per_s or 0.0) * (option.step_s or 0.0)
    tokens = math.floor(0.99 * change.whole / step) * step if step else 0.0
    if not tokens:
        return None
    digit = 10.0 ** (math.floor(math.log10(tokens)) - 1)
    tokens = math.floor(tokens / digit) * digit
    return replace(change, share=tokens / dataset, patch=change.patch | {"workload.dataset_tokens": tokens})


def _beyond(ask: Asked, option: ClusterOption) -> Iterator[str]:
    if option.fits_budget is False and option.spent_usd is not None and ask.max_usd:
        yield f"{usd(option.spent_usd - ask.max_usd)} over the budget"
    allowed_h = ask.plan.goal.hours_on(option.count)
    if option.fits_deadline is False and option.hours is not None and allowed_h:
        yield f"{hours(option.hours - allowed_h)} too long"
