"""The side pane: the current plan and what it comes to, and the form to change it.

The pane owns the plan as the person sees it. What it comes to is worked out in a thread, one plan at a time; while one
is worked on only the last of those that follow is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Static
from textual.worker import Worker, WorkerError

from estimator.errors import PlanError
from knowledge.figures import gib, gib_range, label, seconds
from pages.rendering.clean import clean
from pages.results.estimate import component, step_parts, step_place
from pages.results.overview import FIGURE_LABELS, MINOR_LABELS, Overview, fold, plan_told, same_run
from pages.results.plan import plan_lines
from planner.found import chosen
from planner.money.results import CostEstimate
from planner.partial import get
from planner.results import BestParallelism, MemoryEstimate
from planner.serving.results import BestServing
from tui.live import Rates, results_of
from tui.plan_fields import checked, laid_over, read
from tui.widgets.plan_form import PlanForm
from tui.widgets.rows import Rows
from tui.widgets.stack import Bar, Part, Stack, parts_of

if TYPE_CHECKING:
    from tui.widgets.plan_form import PlanForm

Data = Mapping[str, Any]
Estimator = Callable[[Data], list[BaseModel]]

_SHOW_PROGRESS_S = 0.5
_MOST_UNDONE = 50
# Text of that length, or less, takes one line of the pane, before as after.
_SAME_LINE = 40
# A layout is found for a model on a device: changed, it is looked for anew.
_SEARCHED_FOR = ("model", "cluster.accelerator", "workload.kind")
_WELL, _BARELY, _BADLY = "bold $text-success", "bold $text-warning", "bold $text-error"
_IN_A_LINE = tuple(map(label, ("tokens_per_s", "output_tokens_per_s", "mfu", "ttft_s", "hours", "usd")))


@dataclass(frozen=True)
class _Wanted:
    """A plan to be estimated: whether the person edited it, and results that told of it already."""

    plan: Data
    edited: bool
    heard: tuple[BaseModel, ...]


def _of_plan(wanted: _Wanted) -> list[BaseModel]:
    """Those of the results that are of that very plan: an answer may have tried others on the way."""
    return [result for result in wanted.heard if same_run(plan_told([result]) or {}, wanted.plan)]


def _estimator() -> Estimator:

    return results_of


class PlanPane(Vertical):
    """Shows an `Overview`; set `overview` and it redraws."""

    # Drawn by what it is set to, below; the pane itself, form and all, stays as it is.
    overview: var[Overview] = var(Overview, init=False)

    class Edited(Message):
        """The person changed the plan, and it can be estimated: `told` is what it comes to, in a line."""

        def __init__(self, plan: dict[str, Any], told: str) -> None:
            super().__init__()
            self.plan = plan
            self.told = told

    class Refused(Message):
        """The plan cannot be as it was changed. `typed` says that the form shows why."""

        def __init__(self, error: PlanError, typed: bool) -> None:
            super().__init__()
            self.error = error
            self.typed = typed

    class FormClosed(Message):
        """The person is done with the form."""

    def __init__(self, estimator: Estimator | None = None, *, id: str) -> None:
        """`estimator` gives the results that say what a plan comes to; tui.live.results_of by default."""
        super().__init__(id=id)
        self.estimator = estimator
        self.plan: dict[str, Any] = {}
        self.earlier: list[dict[str, Any]] = []
        # As typed, valid or not.
        self.draft: dict[str, Any] = {}
        self.form: PlanForm | None = None
        # The field that is being typed into, and the plan before that.
        self._typing = ""
        self._before: dict[str, Any] = {}
        # What a search chose of the plan, by path.
        self.chosen: dict[str, Any] = {}
        self._wanted: _Wanted | None = None
        self._heard: list[BaseModel] = []
        # The last that was told in the conversation, which says at what kind of price.
        self._bill: CostEstimate | None = None
        self._working = False
        self._worker: Worker[None] | None = None
        # An edit is on its way, or the session has not been told of one: what it says of the plan is older.
        self.pending = False
        self.unkept = False

    def compose(self) -> ComposeResult:
        yield Static("Plan", id="pane-title", classes="heading", markup=False)
        with VerticalScroll(id="pane-body"):
            yield Static("Nothing planned yet. F3 fills it in.", id="no-plan", classes="hint", markup=False)

    # What the plan is

    @property
    def editing(self) -> bool:
        return self.form is not None and bool(self.form.display)

    def begin(self) -> None:
        """A turn begins: what results say from here on belongs to one answer."""
        self._heard = []

    def hear(self, result: BaseModel) -> None:
        """A tool's result, which may say something of the plan."""
        self._heard.append(result)
        self._bill = result if isinstance(result, CostEstimate) else self._bill
        self.overview = fold(self.overview, result)

    def take(self, plan: Data) -> None:
        """The session's plan is this now. Shown is the plan that the answer is about, which may only be supposed or
        recommended, with the answer's own figures; where it was about none, the session's."""
        before, self.plan = self.plan, dict(plan)
        self.draft = dict(plan)
        told = plan_told(self._heard)
        if told is not None:
            self._estimate(told, edited=False, heard=self._heard)
        elif plan.get("model") and (plan != before or self.overview.memory is None):
            self._estimate(plan, edited=False)

    def work_out(self) -> None:
        """What results have not said yet of the plan that they are about, where the session says no more of it now; not
        in place of what is being edited."""
        if self.overview.plan is not None and not self.pending:
            self._estimate(self.overview.plan, edited=False, heard=self._heard)

    def show(self, plan: Data) -> None:
        """Another plan, of which nothing is known yet."""
        self.plan = self.draft = dict(plan)
        self.overview, self._bill = Overview(), None
        if plan.get("model"):
            self._estimate(plan, edited=False)

    def edit(self, changes: Mapping[str, Any], typing: str = "") -> None:
        """Changes by dotted path; `Edited` or `Refused` follows. What is typed into one field (`typing`) is one change,
        however many keys it takes."""

        if not typing or typing != self._typing:
            self._typing, self._before = typing, dict(self.plan)
        anew = any(path in changes and changes[path] != get(self.plan, path) for path in _SEARCHED_FOR)
        self.draft = laid_over(self.unsearched(self.draft) if anew else self.draft, changes)
        self._estimate(self.draft, edited=True)

    def unsearched(self, plan: Data | None = None) -> dict[str, Any]:
        """The plan, or the one given, with what a search chose of it open again."""
        plan = self.plan if plan is None else plan
        return laid_over(plan, {path: None for path, value in self.chosen.items() if get(plan, path) == value})

    def adopt(self, asked: Data) -> None:
        """What a search of `asked` found, among the results of this turn, is the plan."""
        search = next((each for each in self._heard if isinstance(each, BestParallelism | BestServing)), None)
        best = chosen(search) if search is not None else {}
        if best:
            self.chosen = {path: value for path, value in best.items() if get(asked, path) is None}
            self.replace(laid_over(asked, best))

    def replace(self, plan: Data) -> None:
        self._typing, self._before = "", dict(self.plan)
        self.draft = dict(plan)
        self._estimate(self.draft, edited=True)

    def undo(self) -> bool:
        """Takes the last edit back; False when there is none."""
        if not self.earlier:
            return False
        self.draft = self._before = self.earlier.pop()
        if self.draft:
            self._estimate(self.draft, edited=True)
        else:
            self.show({})
            self.unkept = True
            self.post_message(self.Edited({}, "The plan is empty again."))
        return True

    async def open_form(self, focus: str = "model") -> None:
        if self.form is None:
            # Its fields are read from the Plan's schema, which the first picture of the app need not wait for.

            self.form = PlanForm(id="plan-form")
            await self.mount(self.form, after=self.query_one("#pane-title"))
        self.form.display = True
        self.add_class("-editing")
        await self.form.open(self.draft, self.overview.plan or {}, focus)

    def close_form(self) -> None:
        if self.form is not None:
            self.form.display = False
        self.remove_class("-editing")
        wrong, self._typing = self.has_class("-stale"), ""
        self.draft = dict(self.plan)
        self.remove_class("-stale")
        if wrong and self._before != self.plan:
            # Of a value that cannot be, its first digits are not what was meant either.
            self.show(self._before)
        self.post_message(self.FormClosed())

    def on_plan_form_changed(self, message: PlanForm.Changed) -> None:

        message.stop()
        path = message.field.path
        self.edit({path: read(message.field, message.text)}, typing=path)

    def on_plan_form_done(self, message: PlanForm.Done) -> None:
        message.stop()
        self.close_form()

    # What it comes to

    def _estimate(self, plan: Data, *, edited: bool, heard: Sequence[BaseModel] = ()) -> None:
        """`heard` are results that told of the plan already: what they say counts."""
        self._wanted = _Wanted(plan, edited, tuple(heard))
        self.pending = self.pending or edited
        if not self._working:
            self._working = True
            self._worker = self.run_worker(self._estimates(), group="estimate", exit_on_error=False)

    async def rests(self) -> None:
        """Until what was edited is estimated, or refused."""
        if self.pending and self._worker is not None:
            with suppress(WorkerError):
                await self._worker.wait()

    async def _estimates(self) -> None:
        title = self.query_one("#pane-title", Static)
        timer = self.set_timer(_SHOW_PROGRESS_S, self._tell_working)
        try:
            while self._wanted is not None:
                wanted, self._wanted = self._wanted, None
                try:
                    plan, results = await asyncio.to_thread(self._come_to, wanted.plan, wanted.edited)
                except PlanError as error:
                    # Overtaken by what was typed since, it says nothing any more.
                    if self._wanted is None:
                        self._refuse(error, wanted.edited)
                    continue
                await self._arrive(plan, [*self._at_its_price(results), *_of_plan(wanted)], wanted.edited)
        finally:
            self._working = self.pending = False
            timer.stop()
            if title.content != "Plan":
                title.update("Plan", layout=False)

    def _tell_working(self) -> None:
        # A timer that is stopped may have rung already, and is heard afterwards.
        if self._working:
            self.query_one("#pane-title", Static).update("Plan   estimating…", layout=False)

    def _come_to(self, data: Data, edited: bool) -> tuple[dict[str, Any], list[BaseModel]]:
        """In a thread. What comes from the session is whole; what was typed is checked first."""

        plan = checked(data) if edited else dict(data)
        return plan, (self.estimator or _estimator())(plan)

    def _at_its_price(self, results: Sequence[BaseModel]) -> list[BaseModel]:
        """What the pane worked out itself, on demand, without money where the conversation is about another kind of
        price: with the bill that was told of the same run, else with none."""
        bill = self._bill
        if bill is None or bill.price == "on_demand":
            return list(results)
        others = [result for result in results if not isinstance(result, CostEstimate | Rates)]
        told = same_run(plan_told(others) or {}, bill.plan)
        return [*others, *([bill] if told else [])]

    async def _arrive(self, plan: dict[str, Any], results: list[BaseModel], edited: bool) -> None:
        overview = Overview()
        for result in results:
            overview = fold(overview, result)
        self.remove_class("-stale")
        self.overview = overview
        if edited and plan != self.plan:
            if self._before != plan and self.earlier[-1:] != [self._before]:
                self.earlier = [*self.earlier, self._before][-_MOST_UNDONE:]
            self.plan = plan
            self.unkept = True
            if self._wanted is None:
                self.draft = dict(plan)
            self.post_message(self.Edited(plan, _told(overview)))
        if self.form is not None and self.editing:
            await self.form.fill(self.plan, overview.plan or {})

    def _refuse(self, error: PlanError, edited: bool) -> None:
        if not edited:
            # Not whole yet: what there is of it is shown.
            self.overview = self.overview if self.overview.plan is not None else Overview(plan=self.plan)
            return
        if self.form is not None and self.editing:
            self.add_class("-stale")
            self.form.tell(error)
        else:
            self.draft = dict(self.plan)
        self.post_message(self.Refused(error, self.editing))

    # How it is shown

    def watch_overview(self, overview: Overview) -> None:
        # Not before there is a plan: the first picture of the app comes sooner.

        self.query_one("#no-plan").display = overview.plan is None
        if not self.query(Rows):
            self.query_one("#pane-body").mount_all(
                [
                    Rows(id="plan-lines"),
                    Static("", id="fit", markup=False),
                    Rows(id="figures"),
                    Stack(id="memory-bar"),
                    Static("", id="time-title", markup=False),
                    Stack(id="time-bar"),
                    Static("", id="bottleneck", markup=False),
                    Rows(id="more-figures"),
                    Static("", id="warnings", markup=False),
                ]
            )
        lines = plan_lines(overview.plan) if overview.plan is not None else []
        self.query_one("#plan-lines", Rows).rows = tuple(lines)
        self._line("#fit", _verdict(overview))
        figures = [(label, overview.figures[label]) for label in FIGURE_LABELS if label in overview.figures]
        self.query_one("#figures", Rows).rows = tuple(row for row in figures if row[0] not in MINOR_LABELS)
        self.query_one("#more-figures", Rows).rows = tuple(row for row in figures if row[0] in MINOR_LABELS)
        for rows in self.query(Rows):
            rows.doubtful = overview.old
        memory, time = overview.memory, overview.time
        held = {component(name): size for name, size in memory.components.items()} if memory else {}
        self.query_one("#memory-bar", Stack).bar = Bar(parts_of(held), memory.capacity_bytes, gib) if memory else None
        self.query_one("#time-bar", Stack).bar = (
            Bar(_coloured(parts_of(step_parts(time))), 0.0, seconds) if time else None
        )
        step = f"Time of a step: {overview.figures['step']}" if "step" in overview.figures else "Time of a step"
        self._line("#time-title", step if overview.time else "")
        self._line("#bottleneck", f"Bottleneck: {overview.bottleneck.replace('_', ' ')}" if overview.bottleneck else "")
        self._line("#warnings", clean("\n".join(f"! {text}" for text in overview.warnings)))

    def _line(self, selector: str, content: str | Content) -> None:
        line = self.query_one(selector, Static)
        before, text = str(line.content), str(content)
        if line.content != content:
            # The screen is laid out anew only where that moves something.
            line.update(content, layout=len(text) > _SAME_LINE or text.count("\n") != before.count("\n"))
        line.display = bool(text)


def _coloured(parts: Sequence[Part]) -> list[Part]:
    """Parts of a step in the colours that they have in plots."""
    return [replace(part, place=step_place(part.name, part.place)) for part in parts]


def _told(overview: Overview) -> str:
    """The plan in a line: what runs on what, whether it fits, and its first figures."""
    lines = dict(plan_lines(overview.plan or {}))
    about = " on ".join(lines[label] for label in ("model", "cluster") if label in lines)
    figures = [f"{label} {overview.figures[label]}" for label in _IN_A_LINE if label in overview.figures]
    verdict, _, peak = _fit_text(overview).partition("\n")[0].partition("  ")
    fit = f"{verdict.lower()}, {peak}" if peak else ""
    told = (f"The plan is now {about}", lines.get("training", lines.get("serving", "")), lines.get("layout", ""), fit)
    return f"{'; '.join(part for part in (*told, *figures) if part)}."


def _verdict(overview: Overview) -> Content:
    """Whether it fits and keeps its limits: red what it does not, amber what it hardly does."""
    limits, fits = overview.limits, _fit_text(overview)
    colour = {True: _BARELY if overview.tight else _WELL, False: _BADLY, None: ""}[overview.fits]
    rows = [
        (fits, colour),
        *((text, _BADLY) for text in limits.broken),
        *((text, _BARELY) for text in limits.doubtful),
        *((text, "$text-muted") for text in limits.kept),
    ]
    return Content("\n").join(Content.styled(text, style) for text, style in rows if text)


def _fit_text(overview: Overview) -> str:
    """The verdict and the peak with its interval against the capacity."""
    memory = overview.memory
    if memory is None:
        return ""
    verdict = {True: "FITS" + " TIGHTLY" * overview.tight, False: "DOES NOT FIT", None: "MEMORY"}[overview.fits]
    peak = f"{gib(memory.per_device_bytes)} of {gib(memory.capacity_bytes)}"
    if isinstance(memory, MemoryEstimate):
        return f"{verdict}  {peak}\n80 % interval {gib_range(memory.low_bytes, memory.high_bytes)}"
    # Of serving the engine takes its whole share, whatever the requests need.
    return f"{verdict}  {peak}" + (f"\n{label('claimed_bytes')} {gib(memory.claimed_bytes)}" if overview.fits else "")
