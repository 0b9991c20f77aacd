"""The playbook: search it, go through its topics, and see what of it is worth something for the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from knowledge.figures import change, label, plain
from pages.blocks import Block, Figures, Headline, Note
from planner.advice.advise import Advice, Advised
from planner.advice.playbook import PlaybookEntry, PlaybookFound
from tools.registry import find
from tui.screens import ScreenResult
from tui.screens.listing import Column, Listing, text
from tui.screens.table_screen import TableScreen

Data = Mapping[str, Any]
Entry = PlaybookEntry | Advised
_MOST = 200

COLUMNS = (text("TITLE", "title"), text("TOPIC", "topic"))
# Of what was tried on the plan.
_TRIED = (
    COLUMNS[0],
    Column("GAIN", lambda row: getattr(row, "gain", None), change, right=True),
    Column("IN", lambda row: getattr(row, "objective", None), label),
    COLUMNS[1],
)


class PlaybookScreen(TableScreen):
    """Searched by the playbook's own full-text search, the nearest entries first. An entry that changes the plan for
    the better can be taken into it."""

    heading = "Playbook"
    placeholder = "Search, e.g. nccl hangs or oom; Enter takes advice into the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "filter('topic')", "Topic"),
        Binding("T", "filter('topic', -1)", "Previous topic", show=False),
        Binding("p", "advice", "For the plan"),
    ]

    def __init__(self, plan: Data) -> None:
        # What is found has been found by the playbook: nothing is searched here again.
        super().__init__(plan, Listing(COLUMNS, words=lambda row: ""))
        self.asked = ""
        self.advising = False

    def load(self) -> Sequence[Entry]:
        if self.asked.strip():
            return _search({"query": self.asked, "limit": _MOST}).entries
        topics = _search({}).topics
        return [row for topic in topics for row in _search({"topic": topic.id, "limit": _MOST}).entries]

    def searched(self, words: str) -> None:
        self.asked, self.advising, self.columns = words, False, COLUMNS
        self.reload()

    def state(self) -> str:
        listed = super().state()
        return " · ".join(part for part in (listed, "what is worth it for the plan" if self.advising else "") if part)

    def details(self, row: Entry) -> Sequence[Block]:
        patch = _patch(row)
        return [
            Headline(row.title),
            Note("", [row.advice]),
            *(
                [Figures([(name, plain(value)) for name, value in patch.items()], "Would change the plan")]
                if patch
                else []
            ),
            *([Figures(list(row.settings.items()), "Settings")] if row.settings else []),
            Note("Source", [row.source], quiet=True),
        ]

    def choose(self, row: Entry) -> None:
        patch = _patch(row)
        if patch:
            self.dismiss(ScreenResult(changes=patch))
        else:
            self.failed("This one changes nothing in the plan; p shows those that do.")

    def action_advice(self) -> None:
        def advised(advice: Advice) -> None:
            self.advising, self.columns = True, _TRIED
            self.take(advice.entries)
            self.look(replace(self.listing, filters={}))

        self.do(self._advise, advised, "trying what the playbook advises", group="load")

    def _advise(self) -> Advice:
        self.need_model()
        advice = find("advise").run({"plan": self.plan})
        assert isinstance(advice, Advice)
        return advice


def _search(arguments: Data) -> PlaybookFound:
    entries = find("search_playbook").run(arguments)
    assert isinstance(entries, PlaybookFound)
    return entries


def _patch(row: Entry) -> Data:
    return (row.patch if isinstance(row, Advised) else None) or {}
