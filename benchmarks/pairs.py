"""How well the ratio of two estimates holds: pairs of measured runs of one source that differ in one setting.

    python -m benchmarks.pairs

Prints, by the setting, the pairs, how many of the measured ratios lie within the interval of the estimated one, and of
those pairs of which the estimate says which is faster, how many are; beside it the same by intervals that do not touch.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from estimator.errors import PlanError
from estimator.pairs import ratio_spread
from estimator.training.bottleneck import diagnosis
from measure.history.scores import estimated
from measure.history.training import Case, training_cases
from planner.fields import leaves

# What follows from a change, or is chosen with it.
_FOLLOW = {"layout.dp", "workload.global_batch", "workload.micro_batch", "layout.grad_accum"}
# What is no one setting: the kernels are others.
_KERNELS = ("model", "cluster.accelerator", "workload.framework")
_TIE = 0.01


@dataclass(frozen=True)
class Run:
    case: Case
    settings: Mapping[str, Any]
    seconds: Mapping[str, float]  # A token and device, by what they wait for.
    spread: float  # As a log.


@dataclass(frozen=True)
class Pair:
    source: str
    setting: str
    estimated: float  # Logs of one over the other.
    measured: float
    width: float
    apart: float  # Of two intervals that touch.


def runs() -> Iterator[Run]:
    for case in training_cases():
        if case.reason_unscored is not None or case.plan is None or not case.observed["tokens_per_s_per_device"]:
            continue
        try:
            found = estimated(case)
        except PlanError:
            continue
        whole, best = found.all, found.best
        tokens = whole.job.tokens_per_step / whole.job.machine.count
        limits = diagnosis(whole.job, whole.layouts, whole.step, best).limits
        settings = {name: str(value) for name, value in leaves(case.plan.given()) if value is not None}
        spread = math.log1p(whole.job.calibration.time_spread)
        yield Run(case, settings, {name: value / tokens for name, value in limits.items()}, spread)


def pairs(of: list[Run]) -> Iterator[Pair]:
    for one, other in combinations(of, 2):
        names = one.settings.keys() | other.settings.keys()
        differ = {name for name in names if one.settings.get(name) != other.settings.get(name)} - {"name"}
        changed = differ - _FOLLOW or differ
        if not differ or len(differ - _FOLLOW) > 1 or changed & {*_KERNELS}:
            continue
        spread = max(one.spread, other.spread)
        speeds = [run.case.observed["tokens_per_s_per_device"] or 1.0 for run in (one, other)]
        yield Pair(
            one.case.source, min(changed), math.log(sum(other.seconds.values()) / sum(one.seconds.values())),
            math.log(speeds[0] / speeds[1]), ratio_spread(one.seconds, other.seconds, spread),
            one.spread + other.spread,
        )  # fmt: skip


def told(name: str, of: list[Pair]) -> str:
    """A source counts by the root of its pairs."""
    sources = Counter(pair.source for pair in of)

    def share(over: list[Pair], that: list[bool]) -> float:
        weights = [sources[pair.source] ** -0.5 for pair in over]
        whole = sum(weights)
        return sum(weight for weight, is_so in zip(weights, that, strict=True) if is_so) / whole if whole else math.nan

    cells = [name, f"{len(of)}", f"{len(sources)}"]
    cells.append(f"{share(of, [abs(pair.estimated - pair.measured) <= pair.width for pair in of]):.0%}")
    for width in ("width", "apart"):
        sure = [pair for pair in of if abs(pair.estimated) > max(_TIE, getattr(pair, width))]
        cells.append(f"{share(of, [abs(pair.estimated) > max(_TIE, getattr(pair, width)) for pair in of]):.0%}")
        cells.append(f"{share(sure, [pair.estimated * pair.measured > 0.0 for pair in sure]):.1%}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    by_source: dict[str, list[Run]] = defaultdict(list)
    for run in runs():
        by_source[run.case.source].append(run)
    found = [pair for of in by_source.values() for pair in pairs(of)]
    print("| setting | pairs | sources | ratio held | told apart | rightly | apart before | rightly |")
    print("| --- |" + " ---: |" * 7)
    print(told("all", found))
    for name, count in Counter(pair.setting for pair in found).most_common():
        if count >= 5:
            print(told(name, [pair for pair in found if pair.setting == name]))


if __name__ == "__main__":
    main()
