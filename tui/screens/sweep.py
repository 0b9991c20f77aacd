"""The plan drawn: how it scales, what its memory and its speed do over any field, and one step of it: its memory from
moment to moment, its time part by part, and where it is under the roof."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from estimator.errors import PlanError
from pages.blocks import Block, Chart, Figures, Table
from pages.results.of_results import blocks_of
from tools.registry import find
from tui.plan_fields import find_field, kind_of
from tui.screens.page_view import PageView
from tui.screens.working import WorkingScreen, state_line, top
from tui.widgets.key_bar import KeyBar

Data = Mapping[str, Any]

_LENGTHS, _CLIENTS = "1024..131072 doubling", "1..256 doubling"


@dataclass(frozen=True)
class Drawing:
    key: str
    title: str
    draw: Callable[[Data], Sequence[Block]]


def _scaling(plan: Data) -> Sequence[Block]:
    """Over more nodes; a deployment over more clients, who come to the same devices."""
    if kind_of(plan) == "inference":
        return swept(plan, "concurrency", _CLIENTS)
    blocks = blocks_of(find("project_scaling").run({"plan": plan}))
    charts: list[Chart] = [block for block in blocks if isinstance(block, Chart)]
    return [*charts, *(block for block in blocks if not isinstance(block, Chart | Figures))]


def _lengths(plan: Data) -> Sequence[Block]:
    return swept(plan, "input_len" if kind_of(plan) == "inference" else "seq_len", _LENGTHS, memory_first=True)


def _one_step(plan: Data) -> Sequence[Block]:

    estimate = find("estimate_inference" if kind_of(plan) == "inference" else "estimate_training").run({"plan": plan})
    return [block for block in blocks_of(estimate) if isinstance(block, Chart)]


DRAWINGS = (
    Drawing("1", "scaling", _scaling),
    Drawing("2", "memory", _lengths),
    Drawing("3", "one step", _one_step),
)


def swept(plan: Data, field: str, values: Any, *, memory_first: bool = False) -> Sequence[Block]:
    """The plan over the values of a field: curves, and the table behind them."""

    blocks = blocks_of(find("sweep").run({"plan": plan, "field": field, "values": values}))
    charts: list[Chart] = [block for block in blocks if isinstance(block, Chart)]
    if memory_first:
        charts = sorted(charts, key=lambda chart: "GiB" not in chart.plot.y_label)
    return [*charts, *(block for block in blocks if isinstance(block, Table))]


class SweepScreen(WorkingScreen):
    heading = "Plots of the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(each.key, f"draw({place})", each.title) for place, each in enumerate(DRAWINGS)),
        Binding("slash", "field", "Any field"),
    ]

    def __init__(self, plan: Data) -> None:
        super().__init__(plan)
        self.drawn: dict[int, Sequence[Block]] = {}

    def compose(self) -> ComposeResult:
        yield top(self.heading)
        yield Input(placeholder="A field and its values, e.g. micro_batch 1..32 doubling, or tp 1,2,4,8", id="field")
        yield PageView(id="page")
        yield state_line()
        yield KeyBar()

    def on_mount(self) -> None:
        self.query_one(PageView).focus()
        try:
            self.need_model()
        except PlanError as error:
            self.failed(str(error))
        else:
            self.action_draw(0)

    def action_field(self) -> None:
        self.query_one(Input).focus()

    def action_draw(self, place: int) -> None:
        """What was drawn once stays drawn: the plan does not change here."""
        if not self.plan.get("model"):
            return
        drawing = DRAWINGS[place]
        self.title_line(drawing.title)

        def show(blocks: Sequence[Block]) -> None:
            self.drawn[place] = blocks
            self._show(blocks)

        if place in self.drawn:
            self._show(self.drawn[place])
        else:
            self.do(lambda: drawing.draw(self.plan), show, f"drawing {drawing.title}", group="draw")

    @on(Input.Submitted, "#field")
    def _other(self, event: Input.Submitted) -> None:
        event.stop()
        words = event.value.split()
        if len(words) < 2:
            self.failed("Say a field and its values: seq_len 1024..65536 doubling, or tp 1,2,4,8")
            return

        def draw() -> Sequence[Block]:
            self.need_model()
            values: Any = " ".join(words[1:])
            if ".." not in values:
                values = values.replace(",", " ").split()
            return swept(self.plan, find_field(words[0], self.plan).name, values)

        def show(blocks: Sequence[Block]) -> None:
            self.title_line(" ".join(words))
            self._show(blocks)
            self.query_one(PageView).focus()

        self.do(draw, show, f"sweeping {words[0]}", group="draw")

    def _show(self, blocks: Sequence[Block]) -> None:
        self.query_one(PageView).show(blocks or [Figures([("nothing to draw", "")])])
        self.tell("")
