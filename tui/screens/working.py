"""What the screens have in common: work in threads that never blocks a key, a line that says what goes on, and the way
back."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from estimator.errors import PlanError
from pages.rendering.clean import clean, one_line
from tui.screens import ScreenResult

T = TypeVar("T")
Data = Mapping[str, Any]

_SHOW_PROGRESS_S = 0.3


class WorkingScreen(ModalScreen[ScreenResult | None]):
    """Covers the app, so that its keys for the conversation rest; F1 and Ctrl+Q go on working.

    `plan` is the plan as it stands, a partial Plan.
    """

    CSS_PATH = "screens.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("f1", "app.keys", "Keys"),
        Binding("ctrl+q", "app.quit", "Quit", show=False),
    ]
    heading = ""

    def __init__(self, plan: Data) -> None:
        super().__init__()
        self.plan = dict(plan)
        self._state = ""

    def action_leave(self) -> None:
        self.dismiss(None)

    def need_model(self) -> None:
        """Raises PlanError where the plan names no model."""
        if not self.plan.get("model"):
            raise PlanError("plan", "there is none yet; choose a model first", ["/plan", "/models"])

    # What goes on

    def do(self, call: Callable[[], T], then: Callable[[T], Any], doing: str, group: str = "work") -> None:
        """Calls `call` in a thread, then `then` with what it gave, here; a later call of the same group overtakes it.

        What cannot be done is told. `doing` is shown where it takes long.
        """
        self.run_worker(self._do(call, then, doing), group=group, exclusive=True, exit_on_error=False)

    async def _do(self, call: Callable[[], T], then: Callable[[T], Any], doing: str) -> None:
        waiting = True
        timer = self.set_timer(_SHOW_PROGRESS_S, lambda: self._line(f"{doing}…") if waiting else None)
        try:
            result = await asyncio.to_thread(call)
            # The timer may have rung already, and its turn come once the result is drawn.
            waiting = False
            self._line(self._state)
            drawing = then(result)
            if inspect.isawaitable(drawing):
                await drawing
        except PlanError as error:
            self.failed(str(error))
        except Exception as error:
            self.failed(f"This should not have happened: {type(error).__name__}: {error}")
        finally:
            waiting = False
            timer.stop()

    def failed(self, text: str) -> None:
        self._line(f"! {text}", bad=True)

    def tell(self, text: str) -> None:
        """The line that stands at rest."""
        self._state = text
        self._line(text)

    def _line(self, text: str, bad: bool = False) -> None:
        for line in self.query("#state").results(Static):
            # Of one line but for what is wrong: only that moves the rest of the screen.
            line.update(clean(text), layout=bad or line.has_class("-bad"))
            line.set_class(bad, "-bad")

    def title_line(self, rest: str = "") -> None:
        for line in self.query("#heading").results(Static):
            line.update(one_line(f"{self.heading}{' · ' if rest else ''}{rest}"), layout=False)


def top(heading: str) -> Static:
    return Static(heading, id="heading", markup=False)


def state_line() -> Static:
    return Static("", id="state", markup=False)
