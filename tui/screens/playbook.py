"""The playbook: search it, go through its topics, and see what of it is worth something for the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from estimator.errors import PlanError
from pages.blocks import Block, Facts, Notes, Verdict
from tools.registry import find
from tui.screens import Outcome
from tui.screens.listing import Column, Data, Listing, text
from tui.screens.table_screen import TableScreen

_MOST = 200

COLUMNS = (
    text("TITLE", "title"),
    Column("GAIN", lambda row: row.get("gain"), lambda gain: f"{gain:+.0%}", right=True),
    Column("OF", lambda row: row.get("objective"), lambda name: str(name).replace("_per_s", "/s").replace("_", " ")),
    text("TOPIC", "topic"),
)


class PlaybookScreen(TableScreen):
    """Searched by the playbook's own full-text search, the nearest entries first. An entry that changes the plan for
    the better can be taken into it."""

    heading = "Playbook"
    placeholder = "Search, e.g. nccl hangs or oom; Enter takes advice into the plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "filter('topic')", "Topic"),
        Binding("T", "filter('topic', -1)", "Topic before", show=False),
        Binding("p", "advice", "For the plan"),
    ]

    def __init__(self, plan: Data) -> None:
        # What is found has been found by the playbook: nothing is searched here again.
        super().__init__(plan, Listing(COLUMNS, words=lambda row: ""))
        self.asked = ""
        self.advising = False

    def load(self) -> Sequence[Data]:
        search = find("search_playbook")
        if self.asked.strip():
            return search({"query": self.asked, "limit": _MOST})["entries"]
        topics = search({})["topics"]
        return [row for topic in topics for row in search({"topic": topic["id"], "limit": _MOST})["entries"]]

    def searched(self, words: str) -> None:
        self.asked, self.advising = words, False
        self.reload()

    def state(self) -> str:
        listed = super().state()
        return " · ".join(part for part in (listed, "what is worth it for the plan" if self.advising else "") if part)

    def details(self, row: Data) -> Sequence[Block]:
        settings = list((row.get("settings") or {}).items())
        patch = row.get("patch") or {}
        return [
            Verdict(str(row["title"])),
            Notes("", [str(row["advice"])]),
            *([Facts([(name, str(value)) for name, value in patch.items()], "Would change the plan")] if patch else []),
            *([Facts(settings, "Settings")] if settings else []),
            Notes("Source", [str(row["source"])], quiet=True),
        ]

    def choose(self, row: Data) -> None:
        patch = row.get("patch")
        if patch:
            self.dismiss(Outcome(changes=patch))
        else:
            self.failed("This one changes nothing of the plan; p shows those that may.")

    def action_advice(self) -> None:
        def advised(advice: Data) -> None:
            self.advising = True
            self.take(advice["entries"])
            self.look(replace(self.listing, filters={}))

        self.do(self._advise, advised, "trying what the playbook advises", group="load")

    def _advise(self) -> Data:
        if not self.plan.get("model"):
            raise PlanError("plan", "there is none yet to advise on", ["/plan"])
        return find("advise")({"plan": self.plan})
