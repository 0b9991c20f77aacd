"""Plots as SVG that stands in a page: text stays text, and colours are the page's own variables (light and dark).

Written as elements of its own: a page has up to nine plots, and a plotting library takes longer for each of them than
the plan took to search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from pages.rendering.palette import PALETTE
from planner.plots import Plot, Series

# Lengths are points, of which an inch has 72; letters are about so wide.
_WIDTH, _HEIGHT, _ROW, _FONT, _LETTER, _LINE = 590.4, 237.6, 24.5, 10.5, 5.9, 13.0
_TICK, _GAP, _LEGEND_ROW, _SWATCH = 3.5, 4.0, 16.0, 20.0
# Part of the data's range that stays free beyond it, the most intervals of an axis, most ticks of a logarithmic one.
_FREE, _INTERVALS, _MOST_TICKS = 0.05, 6, 9
# No figure of ours is less and not 0.
_LEAST = 1e-15
_LEGEND_CHARACTERS, _LONGEST = 96, 60
# Names that have no room side by side slant by so much.
_SLANT = 25.0


@dataclass(frozen=True)
class _Ink:
    """Colours of text and whiskers, of grid and edges, of a limit."""

    text: str
    line: str
    limit: str


_IN_PAGE = _Ink("var(--ink)", "var(--line)", "var(--limit)")
# Where it stands alone: grey enough to be read on white and on black.
_ALONE = _Ink("#7a828c", "#b4bac2", "#d1483a")


def svg(plot: Plot, alone: bool = False, places: Sequence[int] = ()) -> str:
    """One <svg> element with the plot's title for readers that see no picture: for a page, or `alone` as a file of its
    own; `places` of its series in the palette, where they are not those in the plot. The same plot gives the same
    text."""
    ink = _ALONE if alone else _IN_PAGE
    colours = [PALETTE[place % len(PALETTE)] for place in places or range(len(plot.series))]
    drawn = _lying(plot, colours, ink) if plot.kind == "stacked" else _standing(plot, colours, ink)
    body = "\n".join([*drawn.elements, *_legend(plot, colours, drawn.foot)])
    height = drawn.foot + _legend_height(plot)
    font = "sans-serif" if alone else "inherit"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_short(height)}" role="img" '
        f'aria-label="{escape(plot.title)}" font-family="{font}" font-size="{_FONT}" fill="{ink.text}">\n'
        f"{body}\n</svg>"
    )


@dataclass(frozen=True)
class _Drawn:
    """What is drawn, down to `foot`."""

    elements: list[str]
    foot: float


@dataclass(frozen=True)
class _Axis:
    """Values from `low` to `high` on lengths from `start` to `end`; `log` where they grow by factors."""

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value lies; one beyond the ends at the nearer of them."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (self.end - self.start) * (value - low) / (high - low)


def _lying(plot: Plot, colours: Sequence[str], ink: _Ink) -> _Drawn:
    """Lying bars built of the series, the first name on top."""
    names = [_named(name) for name in plot.series[0].x] if plot.series else []
    sums = [sum(series.y[row] or 0.0 for series in plot.series) for row in range(len(names))]
    most = max([*sums, plot.limit or 0.0, _LEAST])
    high = most * (1.0 + (_FREE if plot.limit is None else 0.04))
    left = max(map(_wide, names), default=0.0) + _TICK + 2 * _GAP
    top = _LINE + _GAP if plot.limit_name else _GAP
    row_height = _ROW if len(names) > 1 else 1.4 * _ROW
    bottom = top + max(1, len(names)) * row_height
    across = _Axis(0.0, high, left, _WIDTH - 2 * _GAP, _linear(0.0, high))
    elements = [_path(f"M{_short(across.at(at))} {_short(top)}V{_short(bottom)}", ink.line, 0.5)
                for at, _ in across.ticks]  # fmt: skip
    for row, name in enumerate(names):
        middle = top + (row + 0.5) * row_height
        start = 0.0
        for series, colour in zip(plot.series, colours, strict=True):
            size = series.y[row] or 0.0
            if size > 0.0:
                elements.append(_bar(across.at(start), middle - 0.275 * row_height, across.at(start + size),
                                     middle + 0.275 * row_height, colour))  # fmt: skip
            start += size
        elements.append(_text(left - _TICK - _GAP, middle + 0.35 * _FONT, name, "end"))
        elements.append(_path(f"M{_short(left - _TICK)} {_short(middle)}H{_short(left)}", ink.line, 0.8))
    elements += _edges(left, top, bottom, ink)
    elements += _ticks_below(across, bottom, ink)
    elements.append(_text((left + across.end) / 2, bottom + _TICK + 2 * _LINE, plot.y_label, "middle"))
    if plot.limit is not None:
        elements.append(_dashed(f"M{_short(across.at(plot.limit))} {_short(top)}V{_short(bottom)}", ink.limit))
        if plot.limit_name:
            elements.append(
                _text(across.at(plot.limit) - _GAP, top - _GAP, plot.limit_name, "end", ink.limit, size=9.0)
            )
    return _Drawn(elements, bottom + _TICK + 2 * _LINE + _GAP)


def _standing(plot: Plot, colours: Sequence[str], ink: _Ink) -> _Drawn:
    """Bars, lines or points over x."""
    names = list(dict.fromkeys(_named(x) for series in plot.series for x in series.x if isinstance(x, str)))
    if plot.kind == "bar":
        names = [_named(x) for x in plot.series[0].x] if plot.series else []
    low, high, ticks, log = _upright(plot)
    labels = max((_wide(label) for _, label in ticks), default=0.0)
    left = labels + _TICK + 2 * _GAP + (_LINE if plot.y_label else 0.0)
    right = _WIDTH - 2 * _GAP - (0.0 if names else 2 * _GAP)
    crowded = sum(_wide(name) + _LETTER for name in names) > right - left
    if crowded:
        # The first name begins left of its place.
        share = 0.5 / len(names)
        left = max(left, (_wide(names[0]) * math.cos(math.radians(_SLANT)) - share * right) / (1.0 - share))
    slanting = max(map(_wide, names), default=0.0) * math.sin(math.radians(_SLANT)) if crowded else 0.0
    top, bottom = 2 * _GAP, _HEIGHT - 2 * _LINE - 2 * _GAP - min(slanting, 0.3 * _HEIGHT)
    up = _Axis(low, high, bottom, top, ticks, log)
    along = _along(plot, names, left, right)
    elements = [_path(f"M{_short(left)} {_short(up.at(at))}H{_short(right)}", ink.line, 0.5) for at, _ in up.ticks]
    elements += _edges(left, top, bottom, ink, right)
    for at, label in up.ticks:
        elements.append(_text(left - _TICK - _GAP, up.at(at) + 0.35 * _FONT, label, "end"))
        elements.append(_path(f"M{_short(left - _TICK)} {_short(up.at(at))}H{_short(left)}", ink.line, 0.8))
    draw = _bars if plot.kind == "bar" else _curves
    elements += draw(plot, names, along, up, colours, ink)
    elements += _ticks_below(along, bottom, ink, crowded)
    elements.append(_text((left + right) / 2, _HEIGHT - _GAP, plot.x_label, "middle"))
    elements.append(_text(_LINE - _GAP, (top + bottom) / 2, plot.y_label, "middle", turn=-90.0))
    if plot.limit is not None:
        elements.append(_dashed(f"M{_short(left)} {_short(up.at(plot.limit))}H{_short(right)}", ink.limit))
        if plot.limit_name:
            elements.append(_text(right - 2.0, up.at(plot.limit) - _GAP, plot.limit_name, "end", ink.limit, size=9.0))
    return _Drawn(elements, _HEIGHT)


def _upright(plot: Plot) -> tuple[float, float, list[tuple[float, str]], bool]:
    """(Lowest, highest, ticks, whether logarithmic) of y, with the intervals and the limit inside."""
    values = [value for series in plot.series for part in (series.y, *_ends(series)) for value in part
              if value is not None and math.isfinite(value)]  # fmt: skip
    values += [] if plot.limit is None else [plot.limit]
    if plot.y_log and (above := [value for value in values if value > _LEAST]):
        low, high = _by_factor(min(above), max(above))
        return low, high, _powers_of_ten(low, high), True
    least, most = min(values, default=0.0), max(values, default=1.0)
    if plot.kind == "scatter":
        margin = max(_FREE * (most - least), _FREE * abs(most), _LEAST)
        low, high = least - margin, most + margin
    else:
        low, high = min(0.0, least), max((1.0 + _FREE) * most, _LEAST)
    return low, high, _linear(low, high), False


def _along(plot: Plot, names: Sequence[str], left: float, right: float) -> _Axis:
    """The x axis: names are spread evenly, numbers lie where they are."""
    if names:
        ends = 0.5 if plot.kind == "bar" else 0.5 * (len(names) - 1 or 1) * _FREE * 2
        return _Axis(-ends, len(names) - 1 + ends, left, right, [(float(at), name) for at, name in enumerate(names)])
    xs = [float(x) for series in plot.series for x in series.x if not isinstance(x, str)] or [0.0, 1.0]
    if plot.x_log and min(xs) > _LEAST:
        low, high = _by_factor(min(xs), max(xs))
        powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
        every = -(-len(powers) // _MOST_TICKS) or 1
        return _Axis(low, high, left, right, [(2.0**power, f"{2.0**power:g}") for power in powers[::every]], log=True)
    margin = _FREE * (max(xs) - min(xs)) or 0.5
    low, high = min(xs) - margin, max(xs) + margin
    return _Axis(low, high, left, right, _linear(low, high, all(x.is_integer() for x in xs)))


def _bars(plot: Plot, names: Sequence[str], along: _Axis, up: _Axis, colours: Sequence[str],
          ink: _Ink) -> Iterator[str]:  # fmt: skip
    wide = 0.7 / max(1, len(plot.series))
    for number, (series, colour) in enumerate(zip(plot.series, colours, strict=True)):
        for place, value in zip(range(len(names)), series.y, strict=False):
            middle = place + (number - (len(plot.series) - 1) / 2) * wide
            if value is not None:
                yield _bar(along.at(middle - 0.46 * wide), up.at(value), along.at(middle + 0.46 * wide),
                           up.at(max(0.0, up.low)), colour)  # fmt: skip
                yield from _whisker(series, place, along.at(middle), up, ink)


def _whisker(series: Series, place: int, x: float, up: _Axis, ink: _Ink) -> Iterator[str]:
    low, high = (part[place] if place < len(part) else None for part in (series.low or (), series.high or ()))
    if low is not None and high is not None:
        ends = [up.at(max(low, up.low)), up.at(high)]
        caps = "".join(f"M{_short(x - 3.5)} {_short(y)}h7" for y in ends)
        yield _path(f"M{_short(x)} {_short(ends[0])}V{_short(ends[1])}{caps}", ink.text, 1.1)


def _curves(plot: Plot, names: Sequence[str], along: _Axis, up: _Axis, colours: Sequence[str],
            ink: _Ink) -> Iterator[str]:  # fmt: skip
    """Lines or points; intervals are bands."""
    order = {name: float(at) for at, name in enumerate(names)}
    for series, colour in zip(plot.series, colours, strict=True):
        xs = [order[_named(x)] if isinstance(x, str) else float(x) for x in series.x]
        if series.low and series.high and plot.kind == "line":
            band = [(x, low, high) for x, low, high in zip(xs, series.low, series.high, strict=True)
                    if low is not None and high is not None and (low >= up.low or not up.log)]  # fmt: skip
            around = [*((x, high) for x, _, high in band), *((x, low) for x, low, _ in reversed(band))]
            if around:
                yield f'<path d="{_line(around, along, up)}Z" fill="{colour}" fill-opacity="0.15"/>'
        for run in _runs(xs, series.y, up):
            if plot.kind == "line":
                yield _path(_line(run, along, up), colour, 1.8)
            for x, y in run:
                yield f'<circle cx="{_short(along.at(x))}" cy="{_short(up.at(y))}" r="2.3" fill="{colour}"/>'


def _runs(xs: Sequence[float], ys: Sequence[float | None], up: _Axis) -> Iterator[list[tuple[float, float]]]:
    """Neighbours that have a figure: what has none parts a line."""
    run: list[tuple[float, float]] = []
    for x, y in zip(xs, ys, strict=True):
        if y is not None and math.isfinite(y) and (y >= up.low or not up.log):
            run.append((x, y))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _line(points: Iterable[tuple[float, float]], along: _Axis, up: _Axis) -> str:
    return "M" + "L".join(f"{_short(along.at(x))} {_short(up.at(y))}" for x, y in points)


def _ends(series: Series) -> tuple[Sequence[float | None], ...]:
    return (series.low, series.high) if series.low and series.high else ()


def _by_factor(least: float, most: float) -> tuple[float, float]:
    """The range of a logarithmic axis, some of it free on either side."""
    free = (most / least) ** _FREE if most > least else 1.5
    return least / free, most * free


def _linear(low: float, high: float, whole: bool = False) -> list[tuple[float, str]]:
    """Ticks at multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / _INTERVALS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1.0, 2.0, 5.0, 10.0) if times * power >= rough * (1.0 - 1e-9))
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(number * step, f"{number * step:,.10g}") for number in range(first, last + 1)]


def _powers_of_ten(low: float, high: float) -> list[tuple[float, str]]:
    """1, 2 and 5 times powers of ten; over many of them the powers alone."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [times * 10.0**power for power in powers for times in ((1, 2, 5) if len(powers) <= 4 else (1,))]
    inside = [value for value in values if low <= value <= high]
    every = -(-len(inside) // _MOST_TICKS) or 1
    return [(value, f"{value:,.10g}") for value in inside[::every]]


def _edges(left: float, top: float, bottom: float, ink: _Ink, right: float = _WIDTH - 8.0) -> list[str]:
    return [_path(f"M{_short(left)} {_short(top)}V{_short(bottom)}H{_short(right)}", ink.line, 0.8)]


def _ticks_below(axis: _Axis, bottom: float, ink: _Ink, slanting: bool = False) -> Iterator[str]:
    for at, label in axis.ticks:
        x = axis.at(at)
        yield _path(f"M{_short(x)} {_short(bottom)}v{_TICK}", ink.line, 0.8)
        y = bottom + _TICK + _LINE - 2.0
        yield _text(x, y, label, "end", turn=-_SLANT) if slanting else _text(x, y, label, "middle")


def _legend(plot: Plot, colours: Sequence[str], top: float) -> Iterator[str]:
    """Names of the series below, in as many columns as there is room for."""
    if len(plot.series) < 2:
        return
    columns = _columns(plot)
    wide = max(_wide(series.name) for series in plot.series) + _SWATCH + 4 * _GAP
    rows = -(-len(plot.series) // columns)
    left = max(_GAP, (_WIDTH - columns * wide) / 2)
    for number, (series, colour) in enumerate(zip(plot.series, colours, strict=True)):
        column, row = divmod(number, rows)
        x, y = left + column * wide, top + (row + 0.5) * _LEGEND_ROW
        if plot.kind in ("line", "scatter"):
            line = _path(f"M{_short(x)} {_short(y)}h{_SWATCH}", colour, 1.8) if plot.kind == "line" else ""
            yield f'{line}<circle cx="{_short(x + _SWATCH / 2)}" cy="{_short(y)}" r="2.3" fill="{colour}"/>'
        else:
            yield _bar(x, y - 3.5, x + _SWATCH, y + 3.5, colour)
        yield _text(x + _SWATCH + 2 * _GAP, y + 0.35 * _FONT, series.name, "start")


def _legend_height(plot: Plot) -> float:
    return _LEGEND_ROW * -(-len(plot.series) // _columns(plot)) + _GAP if len(plot.series) > 1 else 0.0


def _columns(plot: Plot) -> int:
    """How many names of series stand side by side: as many as the longest of them leave room for."""
    widest = max(len(series.name) for series in plot.series) + 6
    return max(1, min(len(plot.series), _LEGEND_CHARACTERS // widest))


def _named(name: float | str) -> str:
    """A name on an axis, cut where it is no name."""
    text = str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _wide(text: str) -> float:
    return _LETTER * len(text)


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _path(way: str, colour: str, wide: float) -> str:
    return f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="{wide}"/>'


def _dashed(way: str, colour: str) -> str:
    return f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="1.3" stroke-dasharray="5 3"/>'


def _bar(left: float, top: float, right: float, bottom: float, colour: str) -> str:
    top, bottom = min(top, bottom), max(top, bottom)
    return (
        f'<rect x="{_short(left)}" y="{_short(top)}" width="{_short(right - left)}" height="{_short(bottom - top)}" '
        f'fill="{colour}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "", turn: float = 0.0, size: float = _FONT) -> str:
    where = f'x="{_short(x)}" y="{_short(y)}"'
    turned = f' transform="rotate({_short(turn)} {_short(x)} {_short(y)})"' if turn else ""
    ink = f' fill="{colour}" font-size="{size}"' if colour else ""
    return f'<text {where} text-anchor="{anchor}"{ink}{turned}>{escape(text)}</text>' if text else ""
