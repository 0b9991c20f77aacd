"""The conversation: it follows what comes, but never past the first line of an answer, which holds the verdict."""

from __future__ import annotations

from typing import Any

from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget

from tui.clean import clean
from tui.widgets.messages import Answer, Notice, Question
from tui.widgets.tool_card import ToolCard
from tui.widgets.welcome import Welcome


class Conversation(VerticalScroll, can_focus=False):
    """Turns a session's events into widgets, in the order in which they come."""

    def __init__(self) -> None:
        # As tall as the view at least: an anchored container would push a short conversation to the bottom.
        self.turns = Vertical(Welcome(), classes="turns")
        super().__init__(self.turns)
        self.cards: dict[str, ToolCard] = {}
        self.answer: Answer | None = None
        self.turn_text = ""
        self.last_answer = ""
        # The answer whose first line is to stay in view.
        self.reading: Answer | None = None

    async def add(self, widget: Widget) -> None:
        await self.turns.mount(widget)

    async def ask(self, question: str) -> None:
        await self.query(Welcome).remove()
        await self.add(Question(question))
        self.turn_text = ""
        self.reading = None
        self.anchor()

    async def show(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "text":
                self.turn_text += event["text"]
                await (await self._current_answer()).add(event["text"])
            case "tool_call":
                await self.settle()
                card = self.cards[event["id"]] = ToolCard(event["name"], event["arguments"])
                await self.add(card)
            case "tool_result":
                if card := self.cards.get(event["id"]):
                    card.finish(event.get("error"), event.get("seconds"))
            case "notice":
                await self.settle()
                await self.add(Notice(event["text"]))
            case "done":
                await self._conclude(event)

    async def _conclude(self, event: dict[str, Any]) -> None:
        """The last word on the turn is the checked answer, wherever it differs from what was streamed."""
        checked = clean(event["answer"]).strip()
        if checked and not clean(self.turn_text).strip().endswith(checked):
            await (await self._current_answer()).replace(checked)
        await self.settle()
        if event.get("files"):
            await self.add(Notice("Written:\n" + "\n".join(f"  {file['path']}" for file in event["files"])))
        if event.get("ungrounded"):
            numbers = ", ".join(str(number) for number in event["ungrounded"])
            await self.add(Notice(f"No tool result backs these numbers: {numbers}", bad=True))
        self.last_answer = checked

    def watch_virtual_size(self) -> None:
        self.call_after_refresh(self._hold_start)

    def _hold_start(self) -> None:
        """Once the first line of the last answer would leave at the top, the view stays; reading on is the reader's."""
        answer = self.reading
        if answer is not None and answer.is_attached and answer.region and answer.region.y < self.region.y:
            self.reading = None
            self.release_anchor()
            self.scroll_to_widget(answer, top=True, animate=False, immediate=True)

    async def _current_answer(self) -> Answer:
        if self.answer is None:
            self.answer = self.reading = Answer()
            await self.add(self.answer)
        return self.answer

    async def settle(self) -> None:
        """What is being streamed is whole; the next text starts a new answer."""
        answer, self.answer = self.answer, None
        if answer is not None:
            await answer.finish()

    async def stop(self) -> None:
        await self.settle()
        for card in self.cards.values():
            card.stop()
