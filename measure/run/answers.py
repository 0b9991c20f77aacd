"""What the answers to a load come to: latencies by percentile, rates, of all of it and of its steady part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from measure.run.load import Answered

PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True)
class Latencies:
    """Seconds: mean and percentiles, None where nothing was answered."""

    mean: float | None
    percentiles: dict[int, float]


@dataclass(frozen=True)
class LoadFigures:
    """Of the requests that began in a part of a load; rates are over its seconds."""

    requests: int
    failed: int
    seconds: float
    ttft: Latencies
    tpot: Latencies
    e2e: Latencies
    requests_per_s: float
    output_tokens_per_s: float
    input_tokens: float | None
    output_tokens: float | None


def percentile(values: Sequence[float], share: float) -> float:
    """Between the two nearest ranks, as numpy does."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share / 100.0
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def latencies(values: Sequence[float]) -> Latencies:
    if not values:
        return Latencies(None, {})
    return Latencies(sum(values) / len(values), {share: percentile(values, share) for share in PERCENTILES})


def steady_span(answers: Sequence[Answered]) -> tuple[float, float]:
    """From when half of what was ever in flight at once was first there, to when the last request was sent: what comes
    before fills up, what comes after runs dry."""
    events = sorted([(row.sent_s, 1) for row in answers] + [(row.ended_s, -1) for row in answers])
    flying, most, levels = 0, 0, list[tuple[float, int]]()
    for at, change in events:
        flying += change
        most = max(most, flying)
        levels.append((at, flying))
    start = next((at for at, level in levels if 2 * level >= most), 0.0)
    return start, max((row.sent_s for row in answers), default=0.0)


def figures_of(answers: Sequence[Answered], start: float, end: float) -> LoadFigures:
    """Latencies of the requests sent from `start` to `end`, and what was answered in that time, by second."""
    inside = [row for row in answers if start <= row.sent_s <= end]
    good = [row for row in inside if row.problem is None]
    seconds = max(max((row.ended_s for row in good), default=end) - start, 1e-9)
    first = [row.first_s - row.sent_s for row in good if row.first_s is not None]
    between = [
        (row.ended_s - row.first_s) / (row.output_tokens - 1)
        for row in good
        if row.first_s is not None and row.output_tokens > 1
    ]
    known = [row.input_tokens for row in good if row.input_tokens is not None]
    return LoadFigures(
        requests=len(inside),
        failed=len(inside) - len(good),
        seconds=seconds,
        ttft=latencies(first),
        tpot=latencies(between),
        e2e=latencies([row.ended_s - row.sent_s for row in good]),
        requests_per_s=len(good) / seconds,
        output_tokens_per_s=sum(row.output_tokens for row in good) / seconds,
        input_tokens=sum(known) / len(known) if known else None,
        output_tokens=sum(row.output_tokens for row in good) / len(good) if good else None,
    )
