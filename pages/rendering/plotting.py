"""Plots of tool results (planner/plots.py) as text for a terminal.

Curves and points are drawn by plotext. Bars lie, so that their names can be read and their values stand beside them;
parts of a bar differ by colour where there is any, and by pattern where there is none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from knowledge.figures import count
from pages.rendering.clean import one_line
from pages.rendering.palette import rgb
from planner.plots import Plot, Series

_HEIGHT = 18
# Below this a value is told as less than it.
_LEAST = 0.001
_LIMIT = (209, 72, 58)
_PATTERNS = "█▒#░=▓+:*-%o"
# Without colours curves are told apart by what they are drawn with.
_MARKERS = ("●", "x", "+", "o", "*", "#")
_TICKS, _MOST_TRIED = 6, 24
# Values nearer to each other than this lie at one place; a logarithmic axis does not go over more than this.
_NEAR, _WIDEST = 1e-9, 1e12
_PAINT = re.compile(r"\x1b\[[0-9;]*m")


def draw(plot: Plot, width: int, colour: bool = False, places: Sequence[int] = ()) -> str:
    """The plot in `width` columns; `places` of the parts in the palette, where they are not those in the plot. A figure
    that is missing leaves a gap; a plot without any says so."""
    if not any(_number(value) is not None for series in plot.series for value in series.y):
        return f"{one_line(plot.title)}: nothing to draw"
    match plot.kind:
        case "bar":
            return _bars(plot, width, colour)
        case "stacked":
            return _stacked(plot, width, colour, places or range(len(plot.series)))
    return _curves(plot, width, colour)


# ---------------------------------------------------------------------------------------------------------- bars


def _bars(plot: Plot, width: int, colour: bool) -> str:
    """A bar for each name and series, with its value and interval."""
    series = plot.series
    names = _names(series)
    ends = [f" {line.name}" if len(series) > 1 else "" for line in series]
    left = min(max(len(name) + len(end) for name in names for end in ends), max(width // 3, 8))
    rows: list[tuple[str, int, float | None, str]] = []
    for place, name in enumerate(names):
        for which, line in enumerate(series):
            value = _at(line.y, place)
            # Of a long name its beginning is left, and of which series it is.
            label = f"{one_line(name, max(left - len(ends[which]), 1))}{ends[which]}".strip()
            rows.append((label, which, value, _interval(value, _at(line.low, place), _at(line.high, place))))
    most = max([*(value for _, _, value, _ in rows if value is not None), plot.limit or 0.0]) or 1.0
    right = max(len(told) for *_, told in rows)
    room = max(width - left - right - 2, 4)
    lines = [_title(plot, colour)]
    for label, which, value, told in rows:
        bar = "" if value is None else "█" * max(round(max(value, 0.0) / most * room), 1 if value > 0 else 0)
        painted = _painted(bar, which, colour) + " " * (room - len(bar))
        lines.append(f"{one_line(label, left):<{left}} {painted} {told}".rstrip())
    return "\n".join([*lines, *_limit_line(plot)])


def _stacked(plot: Plot, width: int, colour: bool, places: Sequence[int]) -> str:
    """A bar for each name, built of its parts; the parts and their values stand below."""
    series = plot.series
    names = _names(series)
    totals = [sum(_at(line.y, place) or 0.0 for line in series) for place in range(len(names))]
    limit = plot.limit
    most = max([*totals, limit or 0.0]) or 1.0
    left = min(max(map(len, names)), max(width // 3, 8))
    right = max(len(_short(total)) for total in totals)
    room = max(width - left - right - 3, 4)
    mark = None if limit is None else round(limit / most * room)
    lines = [_title(plot, colour)]
    for place, (name, total) in enumerate(zip(names, totals, strict=True)):
        cells, reached = [" "] * (room + 1), 0.0
        for which, line in enumerate(series):
            value = _at(line.y, place) or 0.0
            start, end = round(reached / most * room), round((reached + value) / most * room)
            reached += value
            glyph = "█" if colour else _PATTERNS[which % len(_PATTERNS)]
            cells[start:end] = [_painted(glyph, places[which], colour)] * (end - start)
        if mark is not None:
            cells[mark] = "|"
        shown = _short(total) if total else "–"
        lines.append(f"{one_line(name, left):<{left}} {''.join(cells)} {shown}")
    lines += _legend(series, places if colour else (), width, values=len(names) == 1)
    return "\n".join([*lines, *_limit_line(plot)])


def _legend(series: Sequence[Series], places: Sequence[int], width: int, values: bool) -> list[str]:
    """Without `places` there are no colours."""
    entries = []
    for which, line in enumerate(series):
        mark = _painted("█", places[which], True) if places else _PATTERNS[which % len(_PATTERNS)]
        value = _at(line.y, 0)
        text = one_line(str(line.name).replace("_", " ")) + (f" {_short(value)}" if values and value else "")
        entries.append(f"{mark} {text}")
    return _side_by_side(entries, width)


def _side_by_side(entries: Sequence[str], width: int) -> list[str]:
    """In as many lines as they take; what paints a mark takes no room."""
    lines = [""]
    for entry in entries:
        longer = f"{lines[-1]}  {entry}" if lines[-1] else entry
        if lines[-1] and len(_PAINT.sub("", longer)) > width:
            lines.append(entry)
        else:
            lines[-1] = longer
    return lines


def _limit_line(plot: Plot) -> list[str]:
    limit = plot.limit
    return [] if limit is None else [f"| {one_line(plot.limit_name or 'limit')}: {_short(limit)}"]


def _title(plot: Plot, colour: bool) -> str:
    text = f"{one_line(plot.title)} ({one_line(plot.y_label)})"
    return f"\x1b[1m{text}\x1b[0m" if colour else text


def _painted(text: str, which: int, colour: bool) -> str:
    red, green, blue = rgb(which)
    return f"\x1b[38;2;{red};{green};{blue}m{text}\x1b[0m" if colour and text else text


# -------------------------------------------------------------------------------------------------------- curves


def _curves(plot: Plot, width: int, colour: bool) -> str:
    import plotext

    words = _words(plot.series)
    x_log = plot.x_log and not words and _spans([float(x) for line in plot.series for x in line.x])
    values = [value for line in plot.series for value in map(_number, line.y) if value is not None]
    y_log = plot.y_log and _spans(values)
    plotext.clear_figure()
    try:
        plotext.theme("clear")
        plotext.limitsize(False, False)
        plotext.plotsize(width, _HEIGHT)
        drawn: list[float] = []
        legend: list[str] = []
        spans = ""
        for which, curve in enumerate(plot.series):
            xs = [words.index(str(x)) if words else float(x) for x in curve.x]
            pairs = [(x, y) for x, y in zip(xs, map(_number, curve.y), strict=True) if y is not None]
            if not pairs:
                continue
            drawn += [x for x, _ in pairs]
            place, heights = [x for x, _ in pairs], [y for _, y in pairs]
            style: dict[str, Any] = {"color": rgb(which)} if colour else {}
            marker = _MARKERS[which % len(_MARKERS)]
            if plot.kind == "scatter" or len(pairs) == 1:
                plotext.scatter(place, heights, marker=marker, **style)
            else:
                fine = colour or len(plot.series) == 1
                plotext.plot(place, heights, marker="braille" if fine else marker, **style)
                marker = "─" if fine else marker
            # plotext's own legend lies over the curves.
            legend.append(f"{_painted(marker, which, colour)} {one_line(curve.name)}")
            for end in ("low", "high"):
                edge = [
                    (x, y) for x, y in zip(xs, map(_number, getattr(curve, end) or ()), strict=False) if y is not None
                ]
                if edge and (not y_log or min(y for _, y in edge) > 0):
                    plotext.scatter([x for x, _ in edge], [y for _, y in edge], marker="-", **style)
                    values += [y for _, y in edge]
                    spans = "- ends of the 80 % interval"
        limit = _number(plot.limit)
        if limit is not None and (limit > 0 or not y_log):
            plotext.plot([min(drawn), max(drawn)], [limit, limit], marker=".", **({"color": _LIMIT} if colour else {}))
            legend.append(f". {one_line(plot.limit_name or 'limit')} {_short(limit)}")
            values.append(limit)
        _axes(plotext, plot, words, drawn, values, x_log, y_log)
        text = plotext.build()
        text = text if colour else plotext.uncolorize(text)
        lines = [line.rstrip() for line in text.rstrip("\n").splitlines()]
        return "\n".join([*lines, *_side_by_side([*legend, *filter(None, [spans])], width)])
    finally:
        plotext.clear_figure()


def _axes(
    plotext: Any, plot: Plot, words: list[str], xs: list[float], ys: list[float], x_log: bool, y_log: bool
) -> None:
    plotext.title(one_line(plot.title))
    plotext.xlabel(one_line(plot.x_label))
    plotext.ylabel(one_line(plot.y_label))
    if words:
        plotext.xticks(list(range(len(words))), [one_line(word, 16) for word in words])
    else:
        known = sorted(set(xs))
        # Values that were tried, or round ones.
        tried = len(known) <= _MOST_TRIED and all(value == int(value) for value in known)
        ticks = known[:: -(-len(known) // _TICKS)] if tried else _ticks(min(xs), max(xs), x_log)
        plotext.xticks(ticks, [count(tick) for tick in ticks])
    if x_log:
        plotext.xscale("log")
    if y_log:
        plotext.yscale("log")
    if y_log:
        ticks = _ticks(min(ys), max(ys), y_log)
        plotext.ylim(math.log10(min(*ys, ticks[0])), math.log10(max(*ys, ticks[-1])))
    else:
        low, high = min(0.0, *ys), max(0.0, *ys)
        ticks = _ticks(low, high if high - low > _NEAR else low + 1.0, y_log)
        plotext.ylim(ticks[0], ticks[-1])
    if max(xs) - min(xs) <= _NEAR:
        plotext.xlim(min(xs) - 1.0, max(xs) + 1.0)
    plotext.yticks(ticks, [_tick(tick) for tick in ticks])


def _spans(values: Sequence[float]) -> bool:
    """Whether values can be shown on a logarithmic axis, and differ enough for one."""
    return min(values) > 0 and 1.001 < max(values) / min(values) < _WIDEST


def _ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Round numbers for ticks from `low` to `high`: 1, 2 and 5 times powers of ten, and of an even axis the multiples
    of such a one that take in both ends."""
    if low == high:
        return [low]
    if not logarithmic:
        least = (high - low) / (_TICKS - 1)
        step = next(number for number in _round_from(least) if number >= least * (1 - _NEAR))
        first, last = math.floor(low / step + _NEAR), math.ceil(high / step - _NEAR)
        return [place * step for place in range(first, last + 1)]
    numbers: list[float] = []
    for number in _round_from(low):
        if number > high:
            break
        if number >= low:
            numbers.append(number)
    decades = [number for number in numbers if math.log10(number) % 1 < _NEAR]
    kept = numbers if len(numbers) <= _TICKS + 2 or len(decades) < 2 else decades[:: -(-len(decades) // _TICKS)]
    return kept if len(kept) > 1 else _around(low, high)


def _around(low: float, high: float) -> list[float]:
    """The round numbers that take in both ends, where fewer than two lie between them."""
    numbers: list[float] = []
    for number in _round_from(low):
        if number <= low:
            numbers = []
        numbers.append(number)
        if number >= high and len(numbers) > 1:
            break
    return numbers


def _round_from(low: float) -> Iterator[float]:
    """1, 2 and 5 times powers of ten, from the power at or below a number on."""
    power = math.floor(math.log10(low))
    while True:
        yield from (10.0**power, 2 * 10.0**power, 5 * 10.0**power)
        power += 1


def _words(series: Sequence[Series]) -> list[str]:
    """The names along x, in order, where x is not of numbers alone."""
    xs = [x for line in series for x in line.x]
    return list(dict.fromkeys(map(str, xs))) if any(isinstance(x, str) for x in xs) else []


# ------------------------------------------------------------------------------------------------------- figures


def _names(series: Sequence[Series]) -> list[str]:
    return [x if isinstance(x, str) else count(x) for x in series[0].x]


def _at(values: Sequence[Any] | None, place: int) -> float | None:
    return _number(values[place]) if values is not None and place < len(values) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "–"
    return _short(value) if low is None or high is None else f"{_short(value)} ({_short(low)}–{_short(high)})"


def _tick(value: float) -> str:
    """Ticks of small values (learning rates) are told apart."""
    return f"{value:.1g}" if 0.0 < abs(value) < _LEAST else _short(value)


def _short(value: float) -> str:
    """Three digits, as there is little room: tables have the rest."""
    if abs(value) >= 1e6:
        return count(value)
    if 0 < abs(value) < _LEAST:
        return f"<{_LEAST}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.{2 if 0 < abs(value) < 0.1 else 3}g}"
