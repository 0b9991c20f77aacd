"""The side pane: the current plan and what it comes to."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.reactive import reactive
from textual.widgets import Static

from tui import units
from tui.overview import FIGURE_LABELS, Overview, plan_lines
from tui.widgets.memory_bar import MemoryBar
from tui.widgets.rows import Rows


class PlanPane(VerticalScroll):
    """Shows an `Overview`; set `overview` and it redraws."""

    overview: reactive[Overview] = reactive(Overview, init=False)

    def compose(self) -> ComposeResult:
        yield Static("Plan", classes="heading", markup=False)
        yield Static("Nothing planned yet.", id="no-plan", classes="hint", markup=False)
        yield Rows(id="plan-lines")
        yield Static("", id="fit", markup=False)
        yield MemoryBar(id="memory-bar")
        yield Rows(id="figures")
        yield Static("", id="latency-limits", markup=False)
        yield Static("", id="bottleneck", markup=False)

    def watch_overview(self, overview: Overview) -> None:
        self.query_one("#no-plan").display = overview.plan is None
        lines = plan_lines(overview.plan) if overview.plan is not None else []
        self.query_one("#plan-lines", Rows).rows = tuple(lines)
        fit = self.query_one("#fit", Static)
        fit.update(_fit_text(overview))
        fit.set_class(overview.fits is True, "-fits")
        fit.set_class(overview.fits is False, "-too-big")
        bar = self.query_one(MemoryBar)
        bar.memory = overview.memory
        bar.display = overview.memory is not None
        figures = ((label, overview.figures[label]) for label in FIGURE_LABELS if label in overview.figures)
        self.query_one("#figures", Rows).rows = tuple(figures)
        limits = self.query_one("#latency-limits", Static)
        limits.update("\n".join(overview.limits))
        limits.display = bool(overview.limits)
        limited = f"Limited by: {overview.bottleneck.replace('_', ' ')}" if overview.bottleneck else ""
        self.query_one("#bottleneck", Static).update(limited)

    def on_mount(self) -> None:
        self.watch_overview(self.overview)


def _fit_text(overview: Overview) -> str:
    """The verdict and the peak with its interval against the capacity."""
    memory = overview.memory
    if memory is None:
        return ""
    verdict = {True: "FITS", False: "DOES NOT FIT", None: "MEMORY"}[overview.fits]
    peak = f"{units.memory(memory['per_device_bytes'])} of {units.memory(memory['capacity_bytes'])}"
    if "low_bytes" in memory and "high_bytes" in memory:
        return f"{verdict}  {peak}\n80 % interval {units.memory_range(memory['low_bytes'], memory['high_bytes'])}"
    # Of serving the engine takes its whole share, whatever the requests need.
    claimed = memory.get("claimed_bytes")
    return f"{verdict}  {peak}" + (f"\nengine claims {units.memory(claimed)}" if overview.fits and claimed else "")
