"""Plots as pictures for readers that know no page: letters are outlines for a PDF, and several stand on one sheet.

Uses matplotlib without pyplot; its settings are global all the same, so that threads draw one after the other.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pages.rendering.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from planner.plots import Plot, Series

# Grey enough to be read on white and on black.
_INK, _LINE, _LIMIT = "#7a828c", "#b4bac2", "#d1483a"
_WIDTH_IN, _HEIGHT_IN, _ROW_IN = 8.2, 3.3, 0.34
# A point is what an SVG counts in; that many stay free around what is drawn.
_POINTS_PER_IN, _PAD = 72, 3.0
_LEGEND_CHARACTERS = 96
# Of a sheet.
_IN_A_ROW, _PANEL_IN, _DOTS_PER_IN = 3, (5.6, 3.6), 110
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "shardwise",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _LINE,
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "text.parse_math": False,
}
_one_at_a_time = threading.Lock()


# For readers of SVG that know no text and no cuts.
_OUTLINED: dict[Any, Any] = {"svg.fonttype": "path", "font.sans-serif": ["DejaVu Sans"]}


def outlined(plot: Plot, places: Sequence[int] = ()) -> str:
    """One <svg> element with the plot's title for readers that see no picture; `places` of its series in the palette,
    where they are not those in the plot. The same plot gives the same text."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import AutoLocator, MaxNLocator

    lying = plot.kind == "stacked"
    rows = len(plot.series[0].x) if plot.series else 1
    legend = 0.22 * -(-len(plot.series) // _columns(plot)) if len(plot.series) > 1 else 0.0
    height = legend + (max(1.25, 0.9 + _ROW_IN * rows) if lying else _HEIGHT_IN)
    with _one_at_a_time, mpl.rc_context(_STYLE | _OUTLINED):
        figure = Figure(figsize=(_WIDTH_IN, height), dpi=_POINTS_PER_IN)
        canvas = FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes: Axes = figure.subplots()
        axes.patch.set_alpha(0)
        _DRAWN[plot.kind](axes, plot, _colours(plot, places))
        for axis, log in ((axes.xaxis, plot.x_log), (axes.yaxis, plot.y_log)):
            if isinstance(axis.get_major_locator(), AutoLocator) and not log:
                whole = axis is axes.xaxis and _is_whole(plot)
                axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=whole))
                axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        if len(plot.series) > 1:
            figure.legend(loc="lower center", ncols=_columns(plot), frameon=False, borderpad=0.0)
        _filled(axes, legend)
        text = io.StringIO()
        # Not savefig, which draws all of it once more to find its layout.
        canvas.print_svg(text, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return re.sub(r' clip-path="[^"]*"', "", _element(text.getvalue(), plot.title))


def _filled(axes: Axes, legend_in: float) -> None:
    """Gives the axes what the labels around them leave of the figure, with `legend_in` inches at its foot. Labels are
    measured once: a constrained layout does so twice, which takes longer than all the rest of a drawing."""
    around, inside, whole = axes.get_tightbbox(for_layout_only=True), axes.get_window_extent(), axes.figure.bbox
    if around is None:
        return
    foot = legend_in * _POINTS_PER_IN + 2.0 * _PAD * (legend_in > 0.0)
    axes.figure.subplots_adjust(
        left=(inside.x0 - around.x0 + _PAD) / whole.width,
        bottom=(inside.y0 - around.y0 + _PAD + foot) / whole.height,
        right=1.0 - (around.x1 - inside.x1 + _PAD) / whole.width,
        top=1.0 - (around.y1 - inside.y1 + _PAD) / whole.height,
    )


def sheet(plots: Sequence[Plot], form: Literal["svg", "png"]) -> bytes:
    """Several plots as one picture on white, three in a row."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = -(-len(plots) // _IN_A_ROW)
    with _one_at_a_time, mpl.rc_context(_STYLE):
        size = (_PANEL_IN[0] * _IN_A_ROW, _PANEL_IN[1] * rows)
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        panels = list(figure.subplots(rows, _IN_A_ROW, squeeze=False).flat)
        for axes, plot in zip(panels, plots, strict=False):
            _DRAWN[plot.kind](axes, plot, _colours(plot, ()))
            axes.set_title(plot.title)
            if len(plot.series) > 1:
                axes.legend(frameon=False, fontsize=8)
        for axes in panels[len(plots) :]:
            axes.set_axis_off()
        picture = io.BytesIO()
        # No date in it: the same plots give the same picture.
        figure.savefig(picture, format=form, dpi=_DOTS_PER_IN, metadata={"Date": None} if form == "svg" else None)
    return picture.getvalue()


def _stacked(axes: Axes, plot: Plot, colours: Sequence[str]) -> None:
    """Lying bars, the first on top."""
    names = [str(name) for name in plot.series[0].x]
    left = [0.0] * len(names)
    for number, series in enumerate(plot.series):
        widths = [value or 0.0 for value in series.y]
        axes.barh(range(len(names)), widths, left=left, height=0.55, color=colours[number], label=series.name)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(plot.y_label)
    axes.grid(axis="x")
    if plot.limit is not None:
        axes.axvline(plot.limit, color=_LIMIT, linestyle="--")
        axes.set_xlim(0, max(plot.limit, max(left, default=0.0)) * 1.04)
        if plot.limit_name:
            axes.annotate(plot.limit_name, (plot.limit, 1.0), xycoords=("data", "axes fraction"), color=_LIMIT,
                          xytext=(-4, 3), textcoords="offset points", ha="right", fontsize=9)  # fmt: skip


def _bars(axes: Axes, plot: Plot, colours: Sequence[str]) -> None:
    names = [str(name) for name in plot.series[0].x]
    groups = len(plot.series)
    width = 0.7 / groups
    for number, series in enumerate(plot.series):
        places = [place + (number - (groups - 1) / 2) * width for place in range(len(names))]
        heights = [float("nan") if value is None else value for value in series.y]
        axes.bar(places, heights, width=width * 0.92, color=colours[number], label=series.name)
        _whiskers(axes, places, series)
    _named_ticks(axes, names)
    _finish(axes, plot)


def _named_ticks(axes: Axes, names: Sequence[str]) -> None:
    """Names along x, one at each whole number; slanting where they have no room side by side."""
    # Letters of ticks are about 6 points wide.
    crowded = 6 * sum(len(name) + 1 for name in names) > axes.get_window_extent().width / axes.figure.dpi * 72
    axes.set_xticks(range(len(names)), names, rotation=25 if crowded else 0, ha="right" if crowded else "center")


def _curves(axes: Axes, plot: Plot, colours: Sequence[str]) -> None:
    """Lines or points; text on the x axis is spread evenly. Intervals are bands."""
    texts = [str(x) for series in plot.series for x in series.x if isinstance(x, str)]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    for number, series in enumerate(plot.series):
        x: list[Any] = [places[value] if isinstance(value, str) else value for value in series.x]
        y = [float("nan") if value is None else value for value in series.y]
        line = "none" if plot.kind == "scatter" else "-"
        axes.plot(
            x, y, linestyle=line, marker="o", markersize=4.5, linewidth=1.8, color=colours[number], label=series.name
        )
        if series.low and series.high and plot.kind == "line":
            low = [float("nan") if value is None else value for value in series.low]
            high = [float("nan") if value is None else value for value in series.high]
            axes.fill_between(x, low, high, color=colours[number], alpha=0.15, linewidth=0)
    if places:
        _named_ticks(axes, list(places))
    elif plot.x_log:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _finish(axes, plot)


_DRAWN = {"stacked": _stacked, "bar": _bars, "line": _curves, "scatter": _curves}


def _whiskers(axes: Axes, places: list[float], series: Series) -> None:
    for place, value, low, high in zip(places, series.y, series.low or (), series.high or (), strict=False):
        if value is not None and low is not None and high is not None:
            axes.errorbar(place, value, yerr=[[max(0.0, value - low)], [max(0.0, high - value)]], color=_INK,
                          capsize=3.5, linewidth=1.1)  # fmt: skip


def _finish(axes: Axes, plot: Plot) -> None:
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.grid(axis="y")
    if plot.y_log:
        axes.set_yscale("log")
        for axis_format in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            axis_format(lambda value, _: _round_number(value))
    if plot.limit is not None:
        axes.axhline(plot.limit, color=_LIMIT, linestyle="--", linewidth=1.2)
        if plot.limit_name:
            axes.annotate(plot.limit_name, (1.0, plot.limit), xycoords=("axes fraction", "data"), color=_LIMIT,
                          xytext=(-2, 3), textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    if not plot.y_log and plot.kind != "scatter":
        # After all that is drawn: it fixes the upper end, which keeps its distance from the highest.
        axes.set_ylim(0, max(axes.get_ylim()[1], 1.05 * axes.dataLim.y1))


def _round_number(value: float) -> str:
    """A tick of a logarithmic axis: 1, 2 and 5 times powers of ten, the others bare."""
    digits = f"{value:.0e}".split("e")[0]
    return f"{value:,g}" if digits in ("1", "2", "5") else ""


def _is_whole(plot: Plot) -> bool:
    """Whether all that lies along x are whole numbers, of which there are no halves."""
    xs = [x for series in plot.series for x in series.x]
    return plot.kind != "stacked" and all(isinstance(x, int | float) and float(x).is_integer() for x in xs)


def _columns(plot: Plot) -> int:
    """How many names of series stand side by side: as many as the longest of them leave room for."""
    widest = max(len(series.name) for series in plot.series) + 6
    return max(1, min(len(plot.series), _LEGEND_CHARACTERS // widest))


def _colours(plot: Plot, places: Sequence[int]) -> list[str]:
    """Of each series, as the app's pane has them."""
    return [PALETTE[place % len(PALETTE)] for place in places or range(len(plot.series))]


def _element(text: str, title: str) -> str:
    """The element alone: no XML head, no document type, no fixed size, identifiers that no other plot has."""
    from html import escape
    from zlib import crc32

    body = text[text.index("<svg") :]
    body = re.sub(r'<svg [^>]*viewBox="([^"]*)"[^>]*>',
                  rf'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="\1" '
                  rf'role="img" aria-label="{_replacement(escape(title))}">', body, count=1)  # fmt: skip
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    tag = f"p{crc32(text.encode()):08x}"
    body = re.sub(r'\bid="([^"]+)"', rf'id="{tag}-\1"', body)
    return re.sub(r'(xlink:href="#|url\(#)', rf"\1{tag}-", body).strip()


def _replacement(text: str) -> str:
    return text.replace("\\", "\\\\")
