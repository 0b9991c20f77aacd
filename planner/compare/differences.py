"""What tells compared rows apart: settings, what each is against the baseline, and that in sentences and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from knowledge.figures import gib, number, percent, rate, seconds, usd
from planner.compare.doubt import Row, device_s_per_million, faster_by, is_sure, speed
from planner.compare.rows import ComparedServing, ComparedTraining
from planner.estimates import PlanEstimate, component_bytes
from planner.fields import leaves
from planner.plots import Plot, bars, stacked
from planner.result import Result
from planner.serving.planned import Served
from planner.training.planned import Planned

GIB = 2.0**30
# Rows up to which each is told against the baseline; beyond, only the best.
_TOLD = 8
# More of a lead is told as so many times.
_TIMES = 1.0
# A ratio nearer to 1 than this is no difference that matters.
_MATTERS = 0.01


class Setting(Result):
    """A field in which plans differ, with the value of each row by its name; null where a plan has none."""

    field: str
    values: dict[str, Any]
    chosen: bool = Field(description="Whether nobody gave it: a default or the search decided.")


def relate(rows: Sequence[Row], estimates: Sequence[PlanEstimate | None], base: int | None) -> None:
    """Fills what each row is against the baseline."""
    if base is None:
        return
    first = rows[base]
    for row, estimate in zip(rows, estimates, strict=True):
        ratio = faster_by(row, first, estimate, estimates[base])
        if ratio is None:
            continue
        row.speedup = ratio[0]
        if row is not first:
            _, row.speedup_low, row.speedup_high = ratio
        row.apart = row is not first and is_sure(ratio)
        if row.usd_per_million_tokens is not None and first.usd_per_million_tokens:
            row.cost_ratio = row.usd_per_million_tokens / first.usd_per_million_tokens
        if row.per_device_bytes is not None and first.per_device_bytes:
            row.memory_ratio = row.per_device_bytes / first.per_device_bytes
            row.memory_difference_bytes = row.per_device_bytes - first.per_device_bytes


def winners(rows: Sequence[Row]) -> dict[str, str | None]:
    """Names of the best rows of those that fit (and, of serving, keep up with the requests and meet the limits of
    latency, where any does)."""
    able = [row for row in rows if row.fits]
    able = [row for row in able if not row.is_part] or able
    able = [row for row in able if not row.falls_behind] or able
    able = [row for row in able if not isinstance(row, ComparedServing) or row.meets_slo is not False] or able

    def least(values: Mapping[str, float | None]) -> str | None:
        known = {name: value for name, value in values.items() if value is not None}
        return min(known, key=lambda name: known[name]) if known else None

    rates = {row.name: speed(row) for row in able}
    fastest = least({name: None if rate is None else -rate[0] for name, rate in rates.items()})
    best = {
        "time": fastest,
        "cost": least({row.name: row.usd_per_million_tokens for row in able}),
        "memory": least({row.name: row.per_device_bytes for row in able}),
    }
    if any(isinstance(row, ComparedServing) for row in rows):
        latency = {row.name: row.e2e_s for row in able if isinstance(row, ComparedServing)}
        best |= {"time": least(latency), "throughput": fastest}
    return best


def leader(rows: Sequence[Row], best: Mapping[str, str | None]) -> str | None:
    """Name of the fastest of those that fit; None where all are equally fast."""
    rates = {row.name: rate[0] for row in rows if row.fits and (rate := speed(row))}
    first = best["throughput" if "throughput" in best else "time"]
    alike = len(rates) > 1 and max(rates.values()) < (1.0 + _MATTERS) * min(rates.values())
    return None if alike else first


def settings(rows: Sequence[Row], estimates: Sequence[PlanEstimate | None]) -> list[Setting]:
    """What the user set first, then what was chosen; fields that are alike in all plans are left out."""
    plans = {row.name: _settings_of(row.plan) for row in rows if row.plan}
    assumed = [{item.field for item in estimate.assumptions} for estimate in estimates if estimate]
    differing: list[Setting] = []
    for path in dict.fromkeys(path for plan in plans.values() for path in plan if path != "name"):
        values = {name: plan.get(path) for name, plan in plans.items()}
        if any(value != next(iter(values.values())) for value in values.values()):
            chosen = all(path in fields for fields in assumed)
            differing.append(Setting(field=path, values=values, chosen=chosen))
    return sorted(differing, key=lambda setting: setting.chosen)


def _settings_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """By dotted name; an inline model is its name, or its fields where it has none."""
    values = dict(leaves(plan))
    if isinstance(model := values.get("model"), Mapping):
        values["model"] = model.get("_name_or_path") or model.get("name") or dict(model)
    return {path: value for path, value in values.items() if value is not None}


def conclusions(
    rows: Sequence[Row], estimates: Sequence[PlanEstimate | None], base: int | None, best: Mapping[str, str | None]
) -> list[str]:
    """The best of each kind, then each row against the baseline; of many rows only the best of them."""
    texts = list(_of_the_best(rows, estimates, best))
    if base is None:
        return texts
    told = set(best.values()) if len(rows) > _TOLD else {row.name for row in rows}
    first, behind = rows[base], estimates[base]
    for row, estimate in zip(rows, estimates, strict=True):
        if row is first or row.name not in told or row.is_part != first.is_part or estimate is None or behind is None:
            continue
        texts += [*_speed(row, first, estimate, behind), *_latency(row, first), *_memory(row, first, estimate, behind)]
        texts += _cost(row, first)
    return texts


def _of_the_best(
    rows: Sequence[Row], estimates: Sequence[PlanEstimate | None], best: Mapping[str, str | None]
) -> Iterator[str]:
    named = {row.name: row for row in rows}
    able = [row for row in rows if row.error is None]
    missing = [row.name for row in able if not row.fits]
    if able and len(missing) == len(able):
        yield "None of the scenarios fits." if len(able) > 1 else f"{able[0].name} does not fit."
    elif missing:
        yield f"{_listed(missing)} {'does' if len(missing) == 1 else 'do'} not fit."
    key = "throughput" if "throughput" in best else "time"
    fastest = named.get(best[key] or "")
    fitting = [row for row in able if row.fits]
    parts = [row for row in fitting if row.is_part]
    if 0 < len(parts) < len(fitting):
        fitting = [row for row in fitting if row not in parts]
        yield f"{_listed([row.name for row in parts])} leaves out the devices that generate its samples."
    fitting, told = _of_a_rate(fitting, estimates)
    if told:
        yield told
    reached = speed(fastest) if fastest else None
    if fastest is None or reached is None:
        return
    if len(fitting) == 1:
        # Beside what does not fit, or alone, there is nothing to be faster than.
        unit = "output tokens/s" if isinstance(fastest, ComparedServing) else "tokens/s"
        yield f"{fastest.name} fits: {rate(reached[0])} {unit}."
        return
    others = {row.name: other for row in fitting if row is not fastest and (other := speed(row))}
    leads = [reached[0] / other[0] - 1.0 for other in others.values()]
    if others and max(leads) < _MATTERS:
        yield from _where_speed_is_alike(fitting, best)
        return
    behind = {row.name: estimate for row, estimate in zip(rows, estimates, strict=True)}
    near = [name for name in others if not _surely_faster(fastest, named[name], behind)]
    text = f"{'Of those that fit ' if missing else ''}{fastest.name} is the fastest"
    if others and min(leads) >= _MATTERS:
        than, lead = list(others)[leads.index(min(leads))], min(leads)
        text += f": {percent(lead)} more tokens/s than {than}" if lead < _TIMES else f": {1 + lead:.1f} times {than}"
    if near:
        text += f", but {_listed(near)} {'is' if len(near) == 1 else 'are'} within its interval: the estimate cannot "
        text += "tell them apart"
    own, moved = _chosen_apart(rows, estimates)
    yield f"{text}{own * moved}."
    for kind, words in (("cost", "costs the least per token"), ("memory", f"needs the least memory per device{own}")):
        if name := best[kind]:
            yield f"{name} {'also ' if name == fastest.name else ''}{words}."


def _of_a_rate(fitting: Sequence[Row], estimates: Sequence[PlanEstimate | None]) -> tuple[Sequence[Row], str]:
    """(The rows that keep up with the rate of requests, all where none does; what is to be said of that)."""
    rates = [each.job.inference.request_rate for each in estimates if isinstance(each, Served)]
    late = [row for row in fitting if row.falls_behind]
    able = [row for row in fitting if row not in late]
    if not late:
        return able, ""
    wanted = f"{number(rates[0])} requests/s" if rates[0] and len(set(rates)) == 1 else "their requests"
    if not able:
        most = max(late, key=_requests_per_s)
        return late, f"None keeps up with {wanted}: {most.name} serves at most {number(_requests_per_s(most))}."
    if len(able) == 1:
        return able, f"Only {able[0].name} keeps up with {wanted}."
    names = _listed([row.name for row in late])
    return able, f"{names} {'does' if len(late) == 1 else 'do'} not keep up with {wanted}."


def _requests_per_s(row: Row) -> float:
    return row.requests_per_s or 0.0 if isinstance(row, ComparedServing) else 0.0


def _chosen_apart(rows: Sequence[Row], estimates: Sequence[PlanEstimate | None]) -> tuple[str, bool]:
    """(What to say where the search chose other splits or frameworks for some of them: memory then tells of those, too;
    whether it is frameworks, of which speed tells as much)."""
    differing = [setting.field for setting in settings(rows, estimates) if setting.chosen]
    if "workload.framework" in differing:
        return ", each in the framework that suits it", True
    split = any(field.startswith(("layout.", "workload.micro_batch")) for field in differing)
    return ", each in its own best layout" * split, False


def _where_speed_is_alike(fitting: Sequence[Row], best: Mapping[str, str | None]) -> Iterator[str]:
    """What tells apart rows of one speed, the larger difference first: cost or memory."""
    costs = [row.usd_per_million_tokens for row in fitting if row.usd_per_million_tokens]
    sizes = [row.per_device_bytes for row in fitting if row.per_device_bytes]
    spread = {
        ("cost", "costs the least per token"): max(costs) / min(costs) if costs else 1.0,
        ("memory", "needs the least memory per device"): max(sizes) / min(sizes) if sizes else 1.0,
    }
    apart = [
        f"{name} {words}"
        for (kind, words), ratio in sorted(spread.items(), key=lambda row: -row[1])
        if ratio >= 1.0 + _MATTERS and (name := best[kind])
    ]
    yield f"{'; '.join([f'{_listed([row.name for row in fitting])} are equally fast', *apart])}."


def _surely_faster(row: Row, other: Row, estimates: Mapping[str, PlanEstimate | None]) -> bool:
    return is_sure(faster_by(row, other, estimates[row.name], estimates[other.name]))


def _speed(row: Row, first: Row, estimate: PlanEstimate, behind: PlanEstimate) -> Iterator[str]:
    mine, other = speed(row), speed(first)
    if mine is None or other is None or row.speedup is None or abs(row.speedup - 1.0) < _MATTERS:
        return
    rates = f"{rate(mine[0])} against {rate(other[0])} tokens/s"
    if row.devices != first.devices:
        rates += f", on {row.devices} against {first.devices} devices"
    doubt = "" if row.apart else "; that is within the interval, so the estimate cannot tell which is faster"
    why = _why_faster(estimate, behind, row.speedup)
    yield f"{row.name} is {_times(row.speedup, 'faster', 'slower')} than {first.name} ({rates}){why}{doubt}."


def _times(ratio: float, more: str, less: str) -> str:
    """'26 % faster', '20 % slower'."""
    return f"{percent(ratio - 1.0)} {more}" if ratio > 1.0 else f"{percent(1.0 - ratio)} {less}"


def _why_faster(estimate: PlanEstimate, behind: PlanEstimate, ratio: float) -> str:
    """What most of the difference in device time per token goes to; nothing for serving, whose load shapes it."""
    if not isinstance(estimate, Planned) or not isinstance(behind, Planned):
        return ""
    mine, other = device_s_per_million(estimate), device_s_per_million(behind)
    kinds = dict.fromkeys((*mine, *other))
    growth = {kind: mine.get(kind, 0.0) - other.get(kind, 0.0) for kind in kinds}
    if not growth:
        return ""
    change = sum(growth.values())
    kind = min(growth, key=lambda name: growth[name]) if change < 0 else max(growth, key=lambda name: growth[name])
    if growth[kind] * change <= 0 or (ratio > 1.0) != (change < 0):
        return ""
    now, before = mine.get(kind, 0.0), other.get(kind, 0.0)
    return f", most of it {kind}: {number(now)} instead of {number(before)} device-seconds per million tokens"


def _latency(row: Row, first: Row) -> Iterator[str]:
    if not isinstance(row, ComparedServing) or not isinstance(first, ComparedServing):
        return
    for kind, words in (("ttft", "time to first token"), ("tpot", "time per token")):
        mine, other = getattr(row, f"{kind}_s"), getattr(first, f"{kind}_s")
        if not mine or not other or abs(mine / other - 1.0) < _MATTERS:
            continue
        ends = [getattr(side, f"{kind}_{end}_s") for side in (row, first) for end in ("low", "high")]
        apart = None not in ends and (ends[0] > ends[3] or ends[1] < ends[2])
        doubt = "" if apart else ", within the interval"
        yield (f"{row.name}: {words} {seconds(mine)} instead of {seconds(other)} of {first.name}{doubt}.")


def _memory(row: Row, first: Row, estimate: PlanEstimate, behind: PlanEstimate) -> Iterator[str]:
    mine, other, ratio = row.per_device_bytes, first.per_device_bytes, row.memory_ratio
    if not mine or not other or ratio is None or abs(ratio - 1.0) < _MATTERS:
        return
    parts, others = component_bytes(estimate), component_bytes(behind)
    growth = {name: parts.get(name, 0.0) - others.get(name, 0.0) for name in {**parts, **others}}
    kind = (max if ratio > 1.0 else min)(growth, key=lambda name: growth[name])
    sizes = f"{gib(mine)} against {gib(other)} per device{_memory_doubt(row, first)}"
    apart, _ = _chosen_apart((row, first), (estimate, behind))
    splits = f"; it is {row.summary}, not {first.summary}" if apart else ""
    yield (
        f"{row.name} needs {_times(ratio, 'more', 'less')} memory than {first.name} ({sizes}), "
        f"most of it {kind.replace('_', ' ')}: {gib(parts.get(kind, 0.0))} instead of "
        f"{gib(others.get(kind, 0.0))}{splits}."
    )


def _memory_doubt(row: Row, first: Row) -> str:
    if not isinstance(row, ComparedTraining) or not isinstance(first, ComparedTraining):
        return ""
    ends = [end for side in (row, first) for end in (side.low_bytes, side.high_bytes) if end is not None]
    return ", within the interval" if len(ends) == 4 and ends[0] <= ends[3] and ends[2] <= ends[1] else ""


def _cost(row: Row, first: Row) -> Iterator[str]:
    mine, other, ratio = row.usd_per_million_tokens, first.usd_per_million_tokens, row.cost_ratio
    if mine is None or other is None or ratio is None or abs(ratio - 1.0) < _MATTERS:
        return
    hourly = ""
    if row.usd_per_hour and first.usd_per_hour and abs(row.usd_per_hour / first.usd_per_hour - 1.0) > _MATTERS:
        hourly = f"; an hour costs {usd(row.usd_per_hour)} instead of {usd(first.usd_per_hour)}"
    paid = f"{usd(mine)} against {usd(other)} per million tokens{_cost_doubt(row, ratio)}"
    yield f"{row.name} costs {_times(ratio, 'more', 'less')} than {first.name} ({paid}){hourly}."


def _cost_doubt(row: Row, ratio: float) -> str:
    """Prices are as they are; what they buy has the interval of the speed."""
    if row.speedup is None or row.speedup_low is None or row.speedup_high is None:
        return ""
    hourly = ratio * row.speedup
    return ", within the interval" if hourly / row.speedup_high <= 1.0 <= hourly / row.speedup_low else ""


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plots_of(rows: Sequence[Row], estimates: Sequence[PlanEstimate | None]) -> list[Plot]:
    """Speed with its interval, memory by component, and cost; of serving the latencies too."""
    names, rates = [row.name for row in rows], [speed(row) for row in rows]
    value, low, high = ([None if rate is None else rate[place] for rate in rates] for place in range(3))
    serving = any(isinstance(row, ComparedServing) for row in rows)
    plots = bars("Speed", "scenario", f"{'output ' if serving else ''}tokens/s", names, value, low, high)
    capacities = {row.capacity_bytes for row in rows if row.capacity_bytes is not None}
    parts = [None if estimate is None else component_bytes(estimate) for estimate in estimates]
    limit = capacities.pop() / GIB if len(capacities) == 1 else None
    plots += stacked("Memory per device", "scenario", "GiB", names, parts, GIB, limit, "usable memory")
    plots += bars("Cost", "scenario", "USD per million tokens", names, [row.usd_per_million_tokens for row in rows])
    for kind, title in (("ttft", "Time to first token"), ("tpot", "Time per token")) if serving else ():
        ends = [[_ms(row, f"{kind}{end}") for row in rows] for end in ("_s", "_low_s", "_high_s")]
        plots += bars(title, "scenario", "ms", names, *ends)
    return plots


def _ms(row: Row, name: str) -> float | None:
    seconds = getattr(row, name, None)
    return None if seconds is None else 1e3 * seconds
