"""Earlier conversations: search what was said in them, go on with one, rename, fork, delete, export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from agent.export import export_session
from agent.store import SessionRow, delete_session, fork_session, last_plan, list_sessions, rename_session, transcript
from knowledge.figures import whole
from knowledge.own.files import write_file
from knowledge.own.home import expanded
from pages.blocks import Block, Figures, Headline, Note, Prose
from pages.results.plan import plan_lines
from tui.screens import ScreenResult
from tui.screens.dialogs import Confirm
from tui.screens.listing import Column, Listing, text
from tui.screens.table_screen import TableScreen

_MOST_TURNS = 6
_MOST_CHARACTERS = 1200

COLUMNS = (
    text("TITLE", "title"),
    Column("TURNS", lambda row: row.turns, whole, right=True),
    Column("LAST USED", lambda row: row.last_used, lambda moment: moment[:16].replace("T", " ")),
    text("ID", "id"),
)


class SessionsScreen(TableScreen):
    heading = "Sessions"
    placeholder = "Search titles and what was said; Enter goes on with it"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "rename", "Rename"),
        Binding("f", "fork", "Fork"),
        Binding("d,delete", "delete", "Delete"),
        Binding("e", "give_out", "Export"),
    ]

    def __init__(self, plan: Mapping[str, Any]) -> None:
        # What is found has been found by the store, in all that was said.
        super().__init__(plan, Listing(COLUMNS, words=lambda row: ""))
        self.asked = ""

    def load(self) -> Sequence[SessionRow]:
        return list_sessions(self.asked)

    def searched(self, words: str) -> None:
        self.asked = words
        self.reload()

    def state(self) -> str:
        nothing = "No conversation yet." if self.started and not self.listing.rows and not self.asked else ""
        return nothing or super().state()

    def details(self, row: SessionRow) -> Sequence[Block]:
        turns = transcript(row.id)
        plan = last_plan(turns)
        blocks: list[Block] = [Headline(row.title or "(no title)")]
        blocks += [Figures(plan_lines(plan), "Plan")] if plan else []
        for turn in turns[-_MOST_TURNS:]:
            # An answer in a glance; the whole is a key away.
            blocks.append(Note(f"{turn.number}. {turn.said}", []))
            if turn.answer:
                blocks.append(Prose(_start(turn.answer)))
        return blocks

    def choose(self, row: SessionRow) -> None:
        self.dismiss(ScreenResult(session=row.id))

    def action_rename(self) -> None:
        row = self.row
        if row is not None:
            self.ask(
                "New title",
                row.title,
                lambda title: self.change(lambda: rename_session(row.id, title), lambda kept: f"Renamed: {kept}"),
            )

    def action_fork(self) -> None:
        row = self.row
        if row is not None:
            self.change(lambda: fork_session(row.id), lambda copy: f"{copy} is a copy of {row.id}")

    def action_delete(self) -> None:
        rows = self.chosen_rows()
        if not rows:
            return
        titles = "\n".join(f"{row.id}  {row.title}" for row in rows)

        def answered(yes: bool | None) -> None:
            if yes:
                self.change(
                    lambda: [delete_session(row.id) for row in rows],
                    lambda _: f"Deleted {', '.join(row.id for row in rows)}",
                )

        self.app.push_screen(Confirm(f"Delete for good?\n{titles}"), answered)

    def action_give_out(self) -> None:
        row = self.row
        if row is not None:
            suggested = f"session-{row.id}.md"
            self.ask("Write it to (.md or .json)", suggested, lambda file: self._give_out(row.id, file))

    def _give_out(self, id: str, typed: str) -> None:
        def change() -> Path:
            path = expanded(typed)
            text = export_session(id, "json" if path.suffix.lower() == ".json" else "markdown")
            write_file(path, text, False, "file")
            return path

        self.change(change, lambda path: f"Written: {path}")


def _start(answer: str) -> str:
    """Its first paragraphs; a table cut in the middle would be none."""
    kept = answer[:_MOST_CHARACTERS]
    return answer if kept == answer else f"{kept[: kept.rfind(chr(10) * 2)] if chr(10) * 2 in kept else kept}\n\n…"
