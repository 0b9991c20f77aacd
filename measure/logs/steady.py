"""From the lines of steps to a run's series and figures: start-up and checkpoints apart from the steady steps."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any

from measure.history.run import PeakKind, StepSeries, quartiles
from measure.logs.lines import Row
from measure.logs.scan import Bar

# A step that takes so many times the usual is none of the steady ones: it compiles, saves or evaluates.
_SLOW = 1.5
# Progress bars show whole seconds: what is between two of them is known to a twentieth from this many on.
_LEAST_BAR_S = 20.0
_COUNTERS: tuple[tuple[str, PeakKind], ...] = (
    ("allocated_bytes", "allocated"),
    ("reserved_bytes", "reserved"),
    ("device_bytes", "nvidia-smi"),
)  # fmt: skip
# What makes a line without a number one of a step, and what such a line says of the numbered one that follows.
_OWN = frozenset(("loss", "step_s"))
_OF_THE_NEXT = ("loss", "learning_rate", "gradient_norm", "allocated_bytes", "reserved_bytes")
# Of times that grow from line to line so many do not, since a run was begun again or an epoch has a clock of its own.
_FEW = 0.1
# Clocks of lines show whole seconds, or parts of one: what is between two of them is known to a twentieth from here on.
_LEAST_CLOCK_S = 0.02
# Lines of so many steps back may be those of a rank that is behind.
_RANKS_APART = 4
_COLUMNS = ("step_s", "loss", "learning_rate", "gradient_norm", "tokens_per_s_per_device", "tflops_per_device")


@dataclass
class SteadySteps:
    """What the steady steps of a run come to."""

    series: StepSeries
    figures: dict[str, float] = field(default_factory=dict)
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)
    peak_kind: PeakKind = "unknown"
    steps: int = 0
    start_s: float | None = None
    slow: int = 0
    """Steps after the start that took far longer than the others."""
    slow_s: float = 0.0
    facts: dict[str, float] = field(default_factory=dict)
    """Of every step: global_batch, seq_len, samples_per_s, tokens_per_s, step_tokens, consumed_per_step (tokens that
    were seen); clock_step_s is the time between lines."""


def by_step(
    rows: Iterable[tuple[int, Row]], bars: Sequence[tuple[int, Bar]] = (), steps_per_epoch: float = 0.0
) -> list[Row]:
    """The rows as one a step, in their order. Lines of one step (of several ranks, or of loss and time apart) are put
    together, the first that names a quantity counting; where lines do not number their steps they are those of their
    epochs, whose steps a log's head or end says, else they are counted, and say so."""
    numbered = _numbered(rows)
    if not any("step" in row for _, row in numbered):
        own = [row for _, row in numbered if _OWN & row.keys()]
        # What sums up a run is no step of it.
        own = [row for row in own if "runtime_s" not in row] or own
        if places := _of_epochs(own, steps_per_epoch or _steps_per_epoch(numbered, bars)):
            return [{"step": place, **row} for place, row in zip(places, own, strict=True)]
        return [{"step": place + 1.0, "counted": 1.0, **row} for place, row in enumerate(own)]
    steps: dict[float, Row] = {}
    before: Row = {}
    for _, row in numbered:
        step = row.get("step")
        if step is None:
            # The Trainer's loss stands before the line of DeepSpeed that has the step.
            before |= {name: value for name, value in row.items() if name in _OF_THE_NEXT}
        elif math.isfinite(step):
            steps.setdefault(step, {"step": step})
            for name, value in {**before, **row}.items():
                steps[step].setdefault(name, value)
            before = {}
    # What stands behind the last step: the memory of the whole run.
    last = next(reversed(steps.values()), {})
    for name, _ in _COUNTERS:
        if name in before:
            last[name] = max(before[name], last.get(name, 0.0))
    return list(steps.values())


def _numbered(rows: Iterable[tuple[int, Row]]) -> list[tuple[int, Row]]:
    return _through_epochs(_of_times_told(_of_passes(list(rows))))


def _through_epochs(rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """Of programs that begin each epoch at its first step again, the steps counted through."""
    told: list[tuple[int, Row]] = []
    done, most, epoch = 0.0, 0.0, math.inf
    for at, row in rows:
        if "step" in row and "epoch" in row:
            if row["epoch"] > epoch and row["step"] < most - done:
                done = most + (row["step"] == 0.0)
            epoch, most = row["epoch"], max(most, row["step"] + done)
            row = {**row, "step": row["step"] + done}
        told.append((at, row))
    return told


def restarts(rows: Sequence[tuple[int, Row]]) -> list[float]:
    """The steps from which a run went on that was begun again: those that are lower than the last few."""
    again: list[float] = []
    last: list[float] = []
    for _, row in _numbered(rows):
        step = row.get("step")
        if step is None or not math.isfinite(step):
            continue
        if len(last) == _RANKS_APART and step < min(last):
            again.append(step)
            last = []
        last = [*last[1 - _RANKS_APART :], step]
    return again


def _steps_per_epoch(rows: Sequence[tuple[int, Row]], bars: Sequence[tuple[int, Bar]]) -> float:
    """From what the bar of a run that came to its end counted; 0 where that is not known."""
    last = next((row.get("epoch", 0.0) for _, row in reversed(rows) if "runtime_s" in row), 0.0)
    total = max(((seconds, total) for _, (done, total, seconds, _) in bars if done == total), default=(0.0, 0.0))[1]
    return total / last if last else 0.0


def _of_epochs(own: Sequence[Row], steps_per_epoch: float) -> list[float]:
    """The steps of rows by their epochs. [] where how many those have is not known, or where epochs are printed too
    roughly to tell steps apart."""
    if not steps_per_epoch or not all(_positive(row.get("epoch")) for row in own):
        return []
    places = [float(round(row["epoch"] * steps_per_epoch)) for row in own]
    return places if all(after > before for before, after in pairwise(places)) else []


def _of_passes(rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """Of lines that number their passes: a step is one, or as many as lines that number both say. It takes as long as
    so many of its passes at their mean."""
    passes, taken = _passes_of_a_step(rows), defaultdict[float | None, list[float]](list)
    for _, row in rows:
        if "pass_s" in row:
            taken[row.get("step")].append(row["pass_s"])
    told: list[tuple[int, Row]] = []
    for at, row in rows:
        if "pass" in row or "pass_s" in row:
            row = dict(row)
            number, seconds = row.pop("pass", None), row.pop("pass_s", None)
            if seconds is not None and not math.isnan(passes):
                mean_s = fmean(taken[row["step"]]) if "step" in row else seconds
                row.setdefault("step_s", mean_s * passes)
            if number is not None:
                row.setdefault("step", number)
        told.append((at, row))
    return told


def _of_times_told(rows: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """What programs call the time is that since the start where it grows from line to line, else that of a step; of
    neither where the clocks of numbered lines leave a step far less, as it is that of many steps then."""
    times = [row["time_s"] for _, row in rows if "time_s" in row]
    falls = sum(after <= before for before, after in pairwise(times))
    name = "clock_s" if len(times) > 2 and falls <= _FEW * len(times) else "step_s"
    told = [(at, dict(row)) for at, row in rows]
    for _, row in told:
        row.pop("time_s", None)
    clock_step_s = _clock_step_s([row for _, row in told]) if times and name == "step_s" else None
    of_many = clock_step_s is not None and quartiles(times)[1] > _SLOW * clock_step_s
    for (_, row), (_, before) in zip(told, rows, strict=True):
        if "time_s" in before and not of_many and (name == "step_s" or "clock_s" not in row):
            row.setdefault(name, before["time_s"])
    return told


def _passes_of_a_step(rows: Sequence[tuple[int, Row]]) -> float:
    """From one pass that updates the weights to the next, lines between which may have been cut, or from the first of
    a step to that of the next; nan where a step has several and no whole one is shown."""
    updates = sorted({row["pass"] for _, row in rows if "pass" in row and "updates" in row})
    if len(updates) > 1:
        return max(1.0, min(after - before for before, after in pairwise(updates)))
    first, passes = dict[float, float](), 0
    for _, row in rows:
        if "step" in row and "pass" in row:
            first.setdefault(row["step"], row["pass"])
            passes += 1
    # A log may begin in the middle of a step.
    numbers = sorted(first)
    if numbers and first[numbers[0]] > 1.0:
        numbers = numbers[1:]
    if len(numbers) < 2:
        return math.nan if passes > max(1, len(first)) else 1.0
    return max(1.0, (first[numbers[-1]] - first[numbers[0]]) / (numbers[-1] - numbers[0]))


def steady(
    steps: Sequence[Row],
    saves: Sequence[int] = (),
    bars: Sequence[tuple[int, Bar]] = (),
    rows: Sequence[tuple[int, Row]] = (),
) -> SteadySteps:
    """The figures of a run from its steps; of one whose lines, `rows` in the log, have no times, from its progress
    bar."""
    result = SteadySteps(_series(steps))
    times = [(place, row["step_s"]) for place, row in enumerate(steps) if _positive(row.get("step_s"))]
    first = 0
    if times:
        first = _of_times(result, times)
    elif rates := [1.0 / row["tokens_per_s_per_device"] for row in steps
                   if _positive(row.get("tokens_per_s_per_device"))]:  # fmt: skip
        first = _first_usual(rates)
        result.steps = len(rates) - first
    if not times:
        _of_bars(result, _own_bars(bars, rows), saves)
    _of_clocks(result, steps)
    usual = steps[first:]
    for name in ("tokens_per_s_per_device", "tflops_per_device", "mfu"):
        _middle(result, name, usual)
    for name in ("global_batch", "seq_len", "samples_per_s", "tokens_per_s", "step_tokens"):
        values = [row[name] for row in usual if _positive(row.get(name)) and "runtime_s" not in row]
        if values:
            result.facts[name] = quartiles(values)[1]
    _batch(result, steps)
    _tokens(result, steps)
    _peak(result, steps)
    return result


def _positive(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0.0


def _first_usual(times: Sequence[float]) -> int:
    """The first step that takes no longer than usual; the first of several never counts."""
    if len(times) < 3:
        return len(times) - 1
    usual = quartiles(times[len(times) // 5 :])[1]
    most = max(1, len(times) // 2)
    return next((place for place in range(1, most) if times[place] <= _SLOW * usual), most)


def _of_times(result: SteadySteps, times: Sequence[tuple[int, float]]) -> int:
    seconds = [value for _, value in times]
    first = _first_usual(seconds)
    low, middle, high = quartiles(seconds[first:])
    result.figures["step_s"], result.spread["step_s"] = middle, (low, high)
    if first:
        result.start_s = max(0.0, sum(value - middle for value in seconds[:first]))
    slow = [value - middle for value in seconds[first:] if value > _SLOW * middle]
    result.slow, result.slow_s = len(slow), sum(slow)
    result.steps = len(seconds) - first - len(slow)
    return times[first][0]


def _own_bars(bars: Sequence[tuple[int, Bar]], rows: Sequence[tuple[int, Row]]) -> Iterable[list[tuple[int, Bar]]]:
    """The progress bars, each from its beginning on, without those that begin after the last line of a step: these are
    of something else, unless they stand at that step or took as long as the run says that it did."""
    bars_by_name: dict[tuple[float, str], list[tuple[int, Bar]]] = defaultdict(list)
    for at, bar in bars:
        bars_by_name[bar[1], _without_numbers(bar[3])].append((at, bar))
    last, number = (rows[-1][0], rows[-1][1].get("step")) if rows else (math.inf, None)
    run_s = next((row["runtime_s"] for _, row in reversed(rows) if "runtime_s" in row), math.nan)
    for each in bars_by_name.values():
        if each[0][0] <= last or each[0][1][0] == number or abs(each[-1][1][2] - run_s) <= max(2.0, 0.02 * run_s):
            yield each


def _of_bars(result: SteadySteps, bars: Iterable[list[tuple[int, Bar]]], saves: Sequence[int]) -> None:
    """Seconds a step from a progress bar: the middle of its parts, those with a checkpoint in them left out."""
    runs = ([(at, done, seconds) for at, (done, _, seconds, _) in each] for each in bars)
    best = max(runs, key=lambda points: points[-1][2] - points[0][2], default=[])
    parts = _parts(best, saves, _LEAST_BAR_S)
    if not parts and best and best[-1][1] > 1 and best[-1][2] > _LEAST_BAR_S:
        parts = [best[-1][2] / best[-1][1]]
    if parts:
        low, middle, high = quartiles(parts)
        result.figures["step_s"], result.spread["step_s"] = middle, (low, high)
        result.steps = result.steps or int(best[-1][1] - best[0][1])


def _of_clocks(result: SteadySteps, steps: Sequence[Row]) -> None:
    """Seconds a step from when its lines were printed, for programs that tell no time."""
    if (seconds := _clock_step_s(steps)) is not None:
        clocked = [row["step"] for row in steps if "clock_s" in row]
        result.facts["clock_step_s"] = seconds
        result.steps = result.steps or int(clocked[-1] - clocked[0])


def _clock_step_s(rows: Sequence[Row]) -> float | None:
    """The middle of the seconds a step between rows that have a number and a clock; None where they show too few."""
    clocked = [(row["step"], row["clock_s"]) for row in rows if row.keys() >= {"step", "clock_s"}]
    if len(clocked) < 2:
        return None
    whole = all(clock == int(clock) for _, clock in clocked)
    points = [(place, step, clock - clocked[0][1]) for place, (step, clock) in enumerate(clocked)]
    parts = _parts(points, (), _LEAST_BAR_S if whole else _LEAST_CLOCK_S)
    return quartiles(parts)[1] if parts else None


def _parts(points: Sequence[tuple[int, float, float]], saves: Sequence[int], least_s: float) -> list[float]:
    """Seconds a step of each part of (place in the log, steps done, seconds) that is as long as `least_s`."""
    parts: list[float] = []
    start: tuple[int, float, float] | None = None
    for point in points:
        if start is None or point[1] < start[1] or point[2] < start[2]:
            # The first step compiles; a bar that goes back is a new one.
            start = point if point[1] >= 1 else None
            continue
        done, seconds = point[1] - start[1], point[2] - start[2]
        if done >= 1 and seconds >= least_s:
            if bisect_right(saves, point[0]) == bisect_left(saves, start[0]):
                parts.append(seconds / done)
            start = point
    return parts


def _without_numbers(name: str) -> str:
    return "".join(sign for sign in name if not sign.isdigit())


def _middle(result: SteadySteps, name: str, steps: Sequence[Row]) -> None:
    values = [row[name] for row in steps if _positive(row.get(name))]
    if values:
        low, middle, high = quartiles(values)
        result.figures[name], result.spread[name] = middle, (low, high)


def _batch(result: SteadySteps, steps: Sequence[Row]) -> None:
    """The global batch from the samples that steps consumed, where no line says it."""
    if "global_batch" in result.facts:
        return
    counts = [(row["step"], row["consumed_samples"]) for row in steps if _positive(row.get("consumed_samples"))]
    pairs = pairwise(counts)
    sizes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs if b[0] > a[0] and b[1] > a[1]]
    if sizes:
        result.facts["global_batch"] = quartiles(sizes)[1]
    elif counts and counts[0][0] > 0:
        result.facts["global_batch"] = counts[0][1] / counts[0][0]


def _tokens(result: SteadySteps, steps: Sequence[Row]) -> None:
    """The tokens of a step from those that all have consumed; not where they are rounded to fewer digits than a step
    adds."""
    counts = [(row["step"], row["consumed_tokens"]) for row in steps if _positive(row.get("consumed_tokens"))]
    if len(counts) > 1 and all(b[0] > a[0] and b[1] > a[1] for a, b in pairwise(counts)):
        (first, before), (last, after) = counts[0], counts[-1]
        result.facts["consumed_per_step"] = (after - before) / (last - first)


def _peak(result: SteadySteps, steps: Sequence[Row]) -> None:
    """The highest memory, by the counter that says most of what a device needs."""
    for name, kind in _COUNTERS:
        values = [row[name] for row in steps if _positive(row.get(name))]
        if values:
            result.figures["peak_bytes"], result.peak_kind = max(values), kind
            return


def _series(steps: Sequence[Row]) -> StepSeries:
    columns: dict[str, list[Any]] = {"step": [int(min(row["step"], 1e15)) for row in steps]}
    for name in _COLUMNS:
        column = [_number(row, name) for row in steps]
        if any(value is not None for value in column):
            columns[name] = column
    for name, _ in _COUNTERS:
        column = [_number(row, name) for row in steps]
        if any(value is not None for value in column):
            columns["memory_bytes"] = column
            break
    return StepSeries.model_validate(columns).thinned()


def _number(row: Mapping[str, float], name: str) -> float | None:
    value = row.get(name)
    return value if value is not None and math.isfinite(value) else None
