"""Every number that an answer may rest on, with its kind of unit: leaves of results, derivations, words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agent.grounding.figures import bounded, figures_in
from agent.grounding.spelled import spelled
from agent.grounding.units import UNITS
from knowledge.figures import length_in_tokens
from pages.results.limits import HELD

# Kinds: bytes, seconds, usd, fraction, rate (1/s), bytes_per_s, count (anything without a unit), and single units by
# name.
_HOUR_S, _DAY_S = 3600.0, 86400.0
_SPANS = {name: UNITS[name][1] for name in ("minutes", "days", "months", "years")}
# Parts of results that no answer tells figures of: they would lend theirs to wrong ones.
_NEVER_TOLD = frozenset({"plots", "pareto"})
_RATES = ("tokens_per_s", "samples_per_s", "replica_limit")
_PARTS_OF_MEMORY = frozenset({"components", "own_peaks", "phases"})
_SIZES = ("per_device_bytes", "low_bytes", "high_bytes")
# What follows from the figures of one result, by their dotted keys: (kind, factors, divisors).
_QUOTIENTS = (
    *(("fraction", (f"memory.{size}",), ("memory.capacity_bytes",)) for size in _SIZES),
    ("usd", ("usd",), ("hours",)),
    ("usd", ("usd",), ("device_hours",)),
    ("rate", ("throughput.output_tokens_per_s",), ("replicas",)),
    ("count", ("throughput.output_tokens_per_s",), ("replicas",)),
    ("count", ("plan.workload.global_batch", "plan.workload.seq_len"), ()),
    ("count", ("plan.workload.global_batch",), ("plan.workload.micro_batch", "plan.layout.dp")),
)
_DIFFERENCES = tuple(("memory.capacity_bytes", f"memory.{size}") for size in _SIZES)
_SHARES_OF = {"memory.components.": "memory.per_device_bytes", "time.components.": "time.step_s"}
_HEADROOM = "headroom_bytes"
_NODES = ("plan.cluster.count", "plan.cluster.per_node")
_LIMITED = ("value_s", "limit_s")
_NEIGHBOURS = ("before", "after")
# What the rows of a list are told apart by.
_APART = ("tokens_per_s", "step_s", "usd", "usd_per_million_tokens", "kwh", "ttft_s", "tpot_s", "per_device_bytes")
# Parts of memory whose share of what clients take is told beside what is kept free for them.
_OF_CLIENTS = {"kv_cache": ("clients_cache_bytes", "clients_bytes")}
_RATIOS = frozenset({"ratio", "slowdown", "speedup", "speedup_low", "speedup_high"})
_SHARES = frozenset({"gain", "efficiency", "scaling_efficiency", "reserved_discount", "utilisation"})
_OWN_UNITS = {
    **dict.fromkeys(("kwh", "kwh_per_billion_tokens", "kwh_per_million_output_tokens"), ("kwh", 1.0)),
    "co2_kg": ("kg", 1.0), "tdp_w": ("w", 1.0), "kw": ("w", 1e3), "max_kw": ("w", 1e3),
}  # fmt: skip


@dataclass(frozen=True)
class Origin:
    kind: str
    value: float


def origins(responses: Iterable[Mapping[str, Any]], words: Iterable[str]) -> set[Origin]:
    """What this turn's results and the user's `words` give, derivations included."""
    results = list(responses)
    known: set[Origin] = set()
    for result in results:
        known.update(_leaves(result, ()))
        known.update(_derived(result))
    known.update(_between(results))
    for text in words:
        known.update(in_text(text))
        for digits, scale in re.findall(r"(\d+(?:\.\d+)?)\s?([kKmM])\b", bounded(text)):
            known.add(Origin("count", length_in_tokens(float(digits), scale.lower())))
    return known


@lru_cache(maxsize=4096)
def in_text(text: str) -> tuple[Origin, ...]:
    """Figures written in a string, and every bare number in it (of names, versions and dates) as a count. Kept, since
    results say the same sentences again and again."""
    text = bounded(text)
    figures = (Origin(figure.kind, figure.value) for figure in figures_in(text))
    bare = re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)
    # A small number in words counts things here, as whoever says "two nodes" may be told of 2.
    small = (Origin("count", each.value) for each in spelled(text, 0.0) if not each.unit)
    return (*figures, *small, *(Origin("count", float(number.replace(",", ""))) for number in bare))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[Origin]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield from _number(float(value), path)
    elif isinstance(value, str):
        yield from in_text(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key in _NEVER_TOLD:
                continue
            yield from in_text(key)
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        yield Origin("count", float(len(value)))
        for item in value:
            yield from _leaves(item, path)


def parts(responses: Iterable[Mapping[str, Any]]) -> dict[str, list[Origin]]:
    """What each part of memory or time is, by its name: 'optimizer' for both its memory and its time; and what a step
    waits for."""
    origins_of: dict[str, list[Origin]] = {}
    for result in responses:
        for row in result.get("limits") or ():
            known = row if isinstance(row, Mapping) else {}
            seconds, share, limit = (known.get(name) for name in ("seconds", "share", "limit"))
            if isinstance(seconds, int | float):
                name = str(limit).lower().replace(" ", "_")
                own = [Origin("seconds", seconds), Origin("fraction", float(share or 0.0))]
                origins_of.setdefault(name, []).extend(own)
        for whole in ("memory", "time"):
            part = result.get(whole)
            holders = [part.get(name) for name in ("components", "own_peaks")] if isinstance(part, Mapping) else []
            for values in holders:
                sizes = values if isinstance(values, Mapping) else {}
                known = {name: float(size) for name, size in sizes.items() if isinstance(size, int | float)}
                total = sum(known.values())
                for name, value in known.items():
                    share = Origin("fraction", value / total if total else 0.0)
                    origins_of.setdefault(name, []).extend([*_number(value, (whole, "components", name)), share])
            known = part if isinstance(part, Mapping) else {}
            for name, keys in _OF_CLIENTS.items():
                own, all_bytes = map(known.get, keys)
                if own and all_bytes:
                    sizes = [Origin("bytes", float(own)), Origin("fraction", own / all_bytes)]
                    origins_of.setdefault(name, []).extend(sizes)
    return origins_of


def keyed(result: Mapping[str, Any]) -> Iterator[tuple[str, Origin]]:
    """(dotted key, figure) of every number of a result outside its plan and its lists."""
    for path, value in _scalars({key: item for key, item in result.items() if key != "plan"}, ()):
        for origin in _number(value, path):
            yield ".".join(path), origin


def _number(value: float, path: tuple[str, ...]) -> Iterator[Origin]:
    """A number by the name of its field; inside `memory` and `time` the components carry no suffix."""
    key = path[-1] if path else ""
    if len(path) > 1 and path[-2].startswith("least_"):
        # The least of each device, by its name.
        key = path[-2]
    # What a text prints of a number below zero stands behind its sign, or behind "less".
    value = abs(value)
    yield from _size_or_time(value, key, path) or _share_or_own_unit(value, key, path) or _plain(value)


def _size_or_time(value: float, key: str, path: tuple[str, ...]) -> Sequence[Origin]:
    """Sizes, rates and times; none where the number is something else."""
    if key.endswith("bytes_per_s"):
        return [Origin("bytes_per_s", value)]
    if key.endswith(("_per_s", "_per_s_per_device", "_per_s_per_user", "_flop_per_byte")) or key.startswith(_RATES):
        return [Origin("rate", value), Origin("count", value), Origin("count", value * _DAY_S)]
    in_memory = "memory" in path and not _PARTS_OF_MEMORY.isdisjoint(path)
    if in_memory or "bytes" in key.split("_"):
        return [Origin("bytes", value)]
    if ("components" in path and "time" in path) or key.endswith("_s") or key == "seconds":
        return [Origin("seconds", value)]
    if key.endswith("_ms") or (len(path) > 1 and path[-2].endswith("_ms")):
        return [Origin("seconds", value / 1e3)]
    if key == "device_hours":
        return [Origin("device_hours", value), Origin("count", value)]
    if "hours" in key or key.endswith("_h"):
        return [Origin("seconds", value * _HOUR_S), Origin("count", value)]
    span = next((span for name, span in _SPANS.items() if name in key.split("_")), None)
    return () if span is None else [Origin("seconds", value * span), Origin("count", value)]


def _share_or_own_unit(value: float, key: str, path: tuple[str, ...]) -> Sequence[Origin]:
    """Money, shares, ratios, and what has a unit of its own; none where the number is something else."""
    if "usd" in key.split("_"):
        return [Origin("usd", value)]
    if key == "interruptions":
        return [Origin("count", value), Origin("count", float(round(value)))]
    if key in ("mfu", "hfu", "spread"):
        return [Origin("fraction", value)]
    if key in _SHARES or key.startswith(("mfu_", "measured_mfu_")):
        return [
            Origin("fraction", value),
            Origin("count", value),
            *([Origin("ratio", 1 + value)] if key == "gain" else []),
        ]
    if key in _RATIOS:
        return _apart_by(value)
    if "tflops" in key or "peak_tflops" in path:
        return [Origin("tflops", value), Origin("count", value)]
    if key not in _OWN_UNITS:
        return ()
    unit, size = _OWN_UNITS[key]
    return [Origin(unit, value * size)]


def _apart_by(ratio: float) -> Sequence[Origin]:
    """What a figure is to another, however it is said: 1.5 x, 50 % more, as a number alone."""
    return [Origin("ratio", ratio), Origin("fraction", abs(ratio - 1)), Origin("count", ratio)]


def _plain(value: float) -> Sequence[Origin]:
    return [Origin("count", value), *([Origin("fraction", value)] if 0 <= value <= 1 else [])]


_RUNS_OF = ("run", "option")


def _derived(result: Mapping[str, Any]) -> Iterator[Origin]:
    """Figures that follow from one result: headroom, shares of a whole, batch arithmetic, hourly prices."""
    figures = {".".join(path): value for path, value in _scalars(result, ())}
    for kind, factors, divisors in _QUOTIENTS:
        if all(map(figures.get, (*factors, *divisors))):
            yield Origin(
                kind, math.prod(figures[name] for name in factors) / math.prod(figures[name] for name in divisors)
            )
    for first, second in _DIFFERENCES:
        if first in figures and second in figures:
            yield Origin("bytes", abs(figures[first] - figures[second]))
    for parts, whole in _SHARES_OF.items():
        sizes = [value for name, value in figures.items() if name.startswith(parts)]
        yield from (Origin("fraction", size / figures[whole]) for size in sizes if figures.get(whole))
    if _HEADROOM in figures:
        yield Origin("bytes", -figures[_HEADROOM])
    count, per_node = map(figures.get, _NODES)
    if count and per_node:
        yield Origin("count", -(-count // per_node))
    yield from _listed(result)
    yield from _apart(result)
    yield from _to_spare(result, figures)


def _to_spare(result: Mapping[str, Any], known: Mapping[str, float]) -> Iterator[Origin]:
    """How far a run, or each of several, is from the limits of the plan's goal; `known` are the result's figures."""
    listed = (row for rows in result.values() if isinstance(rows, list) for row in rows)
    rows = (result, *map(result.get, _RUNS_OF), *listed)
    for row in (row for row in rows if isinstance(row, Mapping)):
        for figure, limit in HELD:
            value, most = row.get(figure), known.get(f"plan.goal.{limit}")
            if isinstance(value, int | float) and most:
                yield from _number(abs(value - most), (figure,))


def _listed(result: Mapping[str, Any]) -> Iterator[Origin]:
    """How many rows of a list are so and how many are not ('3 of 5 fit', 'you have saved 2'), and how far each latency
    is from its limit, and what an assumption set otherwise does."""
    for rows in result.values():
        if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
            for name in (name for name, value in rows[0].items() if isinstance(value, bool)):
                true = sum(row.get(name) is True for row in rows)
                yield from (Origin("count", float(true)), Origin("count", float(len(rows) - true)))
            for value, limit in ([row.get(name) for name in _LIMITED] for row in rows):
                if value and limit:
                    yield from _apart_by(value / limit)
            for before, after in ([row.get(name) or {} for name in _NEIGHBOURS] for row in rows):
                ratios = [after[name] / before[name] for name in after if after[name] and before.get(name)]
                yield from (origin for ratio in ratios for origin in _apart_by(ratio))


def _apart(result: Mapping[str, Any]) -> Iterator[Origin]:
    """How far each row of a list is from the first and from the least of them ('2.4 x the tokens/s of 8')."""
    for rows in result.values():
        listed = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        for name in _APART:
            values = [value for row in listed if isinstance(value := row.get(name), int | float) and value]
            ratios = {value / base for value in values for base in (values[0], min(values)) if value != base}
            for ratio in ratios:
                yield from _apart_by(ratio)


def _between(results: list[Mapping[str, Any]]) -> Iterator[Origin]:
    """Differences and ratios of the same figure in two results of the turn ('1.8x faster', '$300 less')."""
    named: dict[tuple[str, ...], list[float]] = {}
    for result in results:
        for path, value in _scalars(result, ()):
            if value not in named.setdefault(path, []):
                named[path].append(value)
    for path, values in named.items():
        if not 1 < len(values) <= 8 or path[0] == "plan":
            continue
        for first in values:
            for other in values:
                if first != other and other:
                    yield from _number(abs(first - other), path)
                    yield from _apart_by(first / other)


def _scalars(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, Mapping | int | float) and not isinstance(item, bool):
                yield from _scalars(item, (*path, str(key)))
    elif isinstance(value, int | float):
        yield path, float(value)
