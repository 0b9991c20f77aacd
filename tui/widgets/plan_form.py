"""The plan as a form: a row a field, what was chosen where nothing is given, and why a value cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive
from textual.suggester import Suggester
from textual.widgets import Input, Static

from estimator.errors import PlanError
from pages.rendering.clean import clean, one_line
from tui.catalogue_names import names_of, starting
from tui.plan_fields import PlanField, find_field, main_fields, matching, shown, value_at

_MOST_FOUND = 16


class _Known(Suggester):
    """Completes a value from those that the field is known to take."""

    def __init__(self, field: PlanField) -> None:
        super().__init__(use_cache=False, case_sensitive=False)
        self.field = field

    async def get_suggestion(self, value: str) -> str | None:
        words = self.field.choices or await asyncio.to_thread(names_of, self.field.name)
        return next((word for word in words if word.casefold().startswith(value.casefold())), None)


class FieldInput(Input):
    """The value of one field."""

    # Of one line and as wide as there is room: how much of it is typed moves nothing else.
    virtual_size = Reactive(Size(0, 0), layout=False)

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, field: PlanField, value: str, placeholder: str) -> None:
        super().__init__(value, placeholder, suggester=_Known(field), compact=True, select_on_focus=True)
        self.field = field
        # What was said of it last: a new row says its first value, too, which nobody typed.
        self.known = value

    def on_key(self, event: events.Key) -> None:
        """Ctrl+Up and Ctrl+Down go through a closed list."""
        if event.key not in ("ctrl+up", "ctrl+down") or not self.field.choices:
            return
        event.stop()
        choices = ["", *self.field.choices]
        place = choices.index(self.value) if self.value in choices else 0
        self.value = choices[(place + (1 if event.key == "ctrl+down" else -1)) % len(choices)]


class PlanForm(Vertical):
    """Edits a partial plan. `Changed` says what is typed; the pane answers with `tell` and `fill`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "done", "Done")]

    class Changed(Message):
        def __init__(self, field: PlanField, text: str) -> None:
            super().__init__()
            self.field = field
            self.text = text

    class Done(Message):
        """The form is to be closed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.plan: Mapping[str, Any] = {}
        self.whole: Mapping[str, Any] = {}
        self.problem: PlanError | None = None

    def compose(self) -> ComposeResult:
        yield Input(placeholder="find a field… (↑↓ move, Esc done)", compact=True, id="find-field")
        # Names are one text beside the inputs: a row of widgets for each field is three times as much to lay out.
        with VerticalScroll(id="fields", can_focus=False), Horizontal():
            yield Static(id="field-names", markup=False)
            yield Vertical(id="field-inputs")
        yield Static("", id="field-note", markup=False)

    async def open(self, plan: Mapping[str, Any], whole: Mapping[str, Any], focus: str = "model") -> None:
        """Shows the fields of `plan`; of those left out, what `whole` says was chosen."""
        self.plan, self.whole, self.problem = plan, whole, None
        self.query_one("#find-field", Input).clear()
        await self._rebuild()
        self._focus(focus)

    async def fill(self, plan: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        """The plan is this now, and comes to `whole`. What is being typed stays as it is."""
        again = {field.path for field in main_fields(plan)} != {field.path for field in main_fields(self.plan)}
        self.plan, self.whole = plan, whole
        if again and not self.query_one("#find-field", Input).value:
            typing = self._focused
            if typing is None or find_field("kind", plan).name == typing.name:
                await self._rebuild()
        for row in self.query(FieldInput):
            row.placeholder = self._placeholder(row.field)
            if not row.has_focus and row.value != (value := shown(value_at(plan, row.field.path))):
                row.known = value
                row.value = value
        self.tell(None)

    def tell(self, problem: PlanError | None) -> None:
        """Why the plan as typed cannot be, or None."""
        self.problem = problem
        wrong = problem.field.rpartition(".")[2] if problem else None
        for row in self.query(FieldInput):
            row.set_class(problem is not None and wrong in (row.field.name, row.field.path), "-wrong")
        self._note()

    async def _rebuild(self) -> None:
        words = self.query_one("#find-field", Input).value
        fields = matching(self.plan, words)[:_MOST_FOUND] if words.strip() else main_fields(self.plan)
        rows = [FieldInput(field, shown(value_at(self.plan, field.path)), self._placeholder(field)) for field in fields]
        place = self.query_one("#field-inputs", Vertical)
        focused = self._focused
        with self.app.batch_update():
            await place.remove_children()
            await place.mount_all(rows)
        if focused is not None:
            self._focus(focused.name)
        self._name_fields(layout=True)
        self._note()

    def _focus(self, name: str) -> None:
        for row in self.query(FieldInput):
            if row.field.name == name:
                row.focus(scroll_visible=False)
                # It has no place before the rows are laid out.
                self.call_after_refresh(row.scroll_visible, animate=False)

    @property
    def _focused(self) -> PlanField | None:
        focused = self.screen.focused
        return focused.field if isinstance(focused, FieldInput) else None

    def _name_fields(self, *, layout: bool = False) -> None:
        """The names, with that of the focused one marked."""
        focused = self._focused
        fields = [row.field for row in self.query(FieldInput)]
        lines = [
            Content.assemble((f"› {field.name}", "bold") if field is focused else f"  {field.name}") for field in fields
        ]
        self.query_one("#field-names", Static).update(Content("\n").join(lines), layout=layout)

    def _placeholder(self, field: PlanField) -> str:
        return shown(value_at(self.whole, field.path)) or "–"

    @on(Input.Changed, "#find-field")
    async def _find(self, event: Input.Changed) -> None:
        event.stop()
        await self._rebuild()

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        event.stop()
        self.screen.focus_next()

    @on(Input.Changed, "FieldInput")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        row = event.input
        # As it is now: the event may be of what stood there before the row was filled anew.
        if isinstance(row, FieldInput) and row.value != row.known:
            row.known = row.value
            self.post_message(self.Changed(row.field, row.value))

    def on_descendant_focus(self) -> None:
        self._name_fields()
        self._note()

    def action_done(self) -> None:
        self.post_message(self.Done())

    def _note(self) -> None:
        """The problem if there is one, else what the focused field is."""
        note = self.query_one("#field-note", Static)
        note.set_class(self.problem is not None, "-wrong")
        focused = self._focused
        text = ""
        if self.problem is not None:
            text = clean(str(self.problem))
        elif focused is not None:
            choices = f"  ({' '.join(focused.choices)})" if focused.choices else ""
            text = one_line(focused.meaning + choices, 240)
        # Said again at every key, it would have the whole screen laid out again.
        if note.content != text:
            note.update(text)
            if isinstance(self.screen.focused, FieldInput):
                # A longer note leaves the rows less room.
                self.call_after_refresh(self.screen.focused.scroll_visible, animate=False)


def suggestions(field: PlanField, typed: str) -> list[str]:
    """The values that a field is known to take, nearest to what was typed."""
    return starting(field.choices or names_of(field.name), typed)
