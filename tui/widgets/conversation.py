"""The conversation: it follows what comes, but never past the first line of an answer, which holds the verdict."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from agent.events import Discard, Done, Event, Remark, TextPiece, ToolCall, ToolResult
from agent.store import KeptTurn
from pages.rendering.clean import clean, one_line
from tui.widgets.approval import ApprovalCard
from tui.widgets.ground import Ground, ground
from tui.widgets.messages import Answer, Notice, Question, Queued
from tui.widgets.thinking import Thinking
from tui.widgets.tool_card import ToolCard
from tui.widgets.welcome import Welcome

_FENCED = re.compile(r"^(`{3,}|~{3,})[ \t]*([^\n]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
# Earlier turns drawn at once; older ones follow while the person reads.
_AT_ONCE = 4
_ENDINGS = {"stopped": "Stopped.", "failed": "This answer failed.", "open": "This answer was not finished."}


class Conversation(VerticalScroll, can_focus=False):
    """Turns a session's events into widgets, in the order in which they come."""

    def __init__(self) -> None:
        # As tall as the view at least: an anchored container would push a short conversation to the bottom.
        self.turns = Ground(Welcome(), classes="turns")
        super().__init__(self.turns)
        self.cards: dict[str, ToolCard] = {}
        self.answer: Answer | None = None
        self.thinking: Thinking | None = None
        # What was said since the last tool call: a check may take it back.
        self.unsure: list[Answer] = []
        self.unsure_text = ""
        self.turn_text = ""
        self.last_answer = ""
        # Files and blocks of code by their name, in the order in which they came, to be copied.
        self.blocks: list[tuple[str, str]] = []
        # The answer or card whose first line is to stay in view.
        self.reading: Widget | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        return ground(self, crop)

    async def add(self, widget: Widget) -> None:
        """At the end; what goes on stays the last, and behind it what waits for its turn."""
        await self.query(Welcome).remove()
        await self.turns.mount(widget, before=self.thinking or self._waiting())

    def _waiting(self) -> Queued | None:
        return next(iter(self.query(Queued)), None)

    async def ask(self, question: str) -> None:
        await self.add(Question(question))
        await self.work()
        self.turn_text = self.unsure_text = ""
        self.unsure = []
        self.follow()

    async def work(self) -> None:
        """Something is worked on, which the end of the conversation says until there is a word of it."""
        await self.rest()
        self.thinking = Thinking()
        await self.turns.mount(self.thinking, before=self._waiting())

    async def rest(self) -> None:
        thinking, self.thinking = self.thinking, None
        if thinking is not None:
            await thinking.remove()

    def follow(self) -> None:
        """What comes is in sight from here on, whatever was being read."""
        self.reading = None
        self.anchor()

    async def show(self, event: Event) -> None:
        match event:
            case TextPiece(text, draft):
                await self.rest()
                self.unsure_text += text
                (await self._current_answer(draft)).add(text)
            case Discard():
                await self._discard()
            case ToolCall(call, opened):
                if self.thinking is not None:
                    self.thinking.does(call.name)
                await self.settle()
                self.turn_text, self.unsure_text, self.unsure = self.turn_text + self.unsure_text, "", []
                card = self.cards[call.id] = ToolCard(call.name, call.arguments, opened=opened)
                await self.add(card)
            case ToolResult(outcome, seconds):
                if card := self.cards.get(outcome.call.id):
                    card.finish(outcome.error, seconds, outcome.result)
                    # What a command asked for is read from its first line, as an answer is.
                    self.reading = card if card.opened else self.reading
                self._keep_files(outcome.result)
            case Remark(text, bad):
                await self.settle()
                await self.add(Notice(text, bad=bad))
            case Done():
                await self._conclude(event)

    async def _conclude(self, done: Done) -> None:
        """The last word on the turn is the checked answer, wherever it differs from what was streamed."""
        checked = clean(done.answer).strip()
        if checked and not clean(self.turn_text + self.unsure_text).strip().endswith(checked):
            await (await self._current_answer(False)).replace(checked)
        await self.settle()
        for answer in self.unsure:
            answer.set_draft(False)
        for notice in _notices(done):
            await self.add(notice)
        self._keep_answer(checked)

    async def redraw(self, turns: Sequence[KeptTurn]) -> None:
        """Earlier turns as they were: the last ones now, those before them bit by bit."""
        await self.query(Welcome).remove()
        for turn in turns:
            self._keep_answer(clean(turn.answer).strip())
        now, before = turns[-_AT_ONCE:], turns[:-_AT_ONCE]
        with self.app.batch_update():
            await self.turns.mount_all([widget for turn in now for widget in _drawn(turn)])
        self.anchor()
        if before:
            self.run_worker(self._redraw_earlier(before), group="redraw", exit_on_error=False)

    async def _redraw_earlier(self, turns: Sequence[KeptTurn]) -> None:
        for end in range(len(turns), 0, -_AT_ONCE):
            await asyncio.sleep(0.02)
            some = turns[max(end - _AT_ONCE, 0) : end]
            await self.turns.mount_all([widget for turn in some for widget in _drawn(turn)], before=0)

    def watch_virtual_size(self) -> None:
        self.call_after_refresh(self._hold_start)

    def _hold_start(self) -> None:
        """Once the first line of the last answer would leave at the top, the view stays; reading on is the reader's."""
        answer = self.reading
        if answer is not None and answer.is_attached and answer.region and answer.region.y < self.region.y:
            self.reading = None
            self.release_anchor()
            self.scroll_to_widget(answer, top=True, animate=False, immediate=True)

    def on_approval_card_opened(self, event: ApprovalCard.Opened) -> None:
        event.stop()
        self.reading = event.card

    async def _current_answer(self, draft: bool) -> Answer:
        if self.answer is None:
            self.answer = self.reading = Answer(draft=draft)
            self.unsure.append(self.answer)
            await self.add(self.answer)
        return self.answer

    async def _discard(self) -> None:
        self.answer, answers = None, self.unsure
        self.unsure, self.unsure_text = [], ""
        for answer in answers:
            await answer.finish()
            await answer.remove()

    async def settle(self) -> None:
        """What is being streamed is whole; the next text starts a new answer."""
        answer, self.answer = self.answer, None
        if answer is not None:
            await answer.finish()

    async def stop(self) -> None:
        await self.settle()
        for card in self.cards.values():
            card.stop()

    def to_copy(self, which: str) -> tuple[str | None, str]:
        """What is to be copied, None where it is not there, and what to tell of it: the last answer for '', the last
        block for 'config', else a block by number or by (a part of) its name."""
        if not which:
            answer = self.last_answer
            return (answer, "The answer is copied as Markdown.") if answer else (None, "There is no answer yet.")
        block = self._block(which)
        if block is not None:
            return block[1], f"{block[0]} is copied."
        names = ", ".join(f"{place} {name}" for place, (name, _) in enumerate(self.blocks, start=1))
        return None, f"There is no block {which!r}. Blocks: {names}" if names else "There is no block of code yet."

    def _block(self, which: str) -> tuple[str, str] | None:
        if not self.blocks:
            return None
        if which == "config":
            return self.blocks[-1]
        if which.isdigit():
            return self.blocks[int(which) - 1] if 1 <= int(which) <= len(self.blocks) else None
        return next((block for block in reversed(self.blocks) if which.casefold() in block[0].casefold()), None)

    def _keep_answer(self, text: str) -> None:
        self.last_answer = text or self.last_answer
        for place, match in enumerate(_FENCED.finditer(text), start=1):
            self.blocks.append((match[2].strip() or f"block {place}", match[3]))

    def _keep_files(self, result: BaseModel | None) -> None:
        """The texts of rendered files, to be copied."""
        for file in getattr(result, "files", ()):
            if text := getattr(file, "text", None):
                self.blocks.append((one_line(file.path), clean(text)))


def _drawn(turn: KeptTurn) -> list[Widget]:
    """The widgets of an earlier turn."""
    widgets: list[Widget] = [Question(turn.said)]
    for call in turn.calls:
        card = ToolCard(call.name, call.arguments)
        card.finish(call.error, call.seconds, text=call.figures)
        widgets.append(card)
    if answer := clean(turn.answer).strip():
        widgets.append(Answer(answer))
    widgets += _notices(turn)
    if note := _ENDINGS.get(turn.state):
        widgets.append(Notice(note, bad=turn.state == "failed"))
    return widgets


def _notices(turn: Done | KeptTurn) -> Iterator[Notice]:
    """What a turn wrote, and what its answer had that no tool gave."""
    if turn.files:
        yield Notice("Written:\n" + "\n".join(f"  {one_line(file.path)}" for file in turn.files))
    if turn.ungrounded:
        numbers = ", ".join(map(one_line, turn.ungrounded))
        yield Notice(f"No tool result backs these numbers: {numbers}", bad=True)
