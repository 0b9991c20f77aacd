"""`shardwise ask`: one question, one answer.

The answer and the list of files written go to standard output; the tools called, notices, the question for approval
and the session go to standard error, so that a pipe or a file gets the answer alone. What a language model writes is
printed once its figures are checked.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import datetime

from agent import session, settings
from agent.budget import words
from agent.events import Approval, Done, Event, Remark, ShownFile, TextPiece, ToolCall, ToolResult
from agent.store import is_kept
from agent.wire import DECLINED
from estimator.errors import PlanError
from knowledge.figures import file_size
from knowledge.figures import seconds as written_seconds
from knowledge.own.files import read_stream
from pages.rendering import fold
from pages.rendering.clean import arguments_line, clean, one_line
from pages.rendering.prose import BlockPrinter
from tui.asides import say
from tui.commands.sessions import chosen
from tui.jsonout import write_json
from tui.progress import working

_MODEL_FAILED = 3


def run(arguments: argparse.Namespace) -> int:
    question = _question(arguments.question)
    now = _time(arguments.now)
    session_id = chosen(arguments)
    if arguments.json:
        how = {"session_id": session_id, "model": arguments.model, "now": now, "output": arguments.output}
        answer = session.ask(question, approve=arguments.yes, told=lambda remark: say(one_line(remark)), **how)
        write_json(answer)
        return _code(answer["failed"], arguments.model)
    conversation = session.open_session(session_id, arguments.model, now=now, output=arguments.output)
    # One loop for the whole turn, entered anew after the approval: while the person thinks, Ctrl-C must work as usual.
    with asyncio.Runner() as runner:
        turn = _Turn(arguments)
        runner.run(turn.follow(conversation.send(question)))
        while turn.approval is not None:
            approved = _approved(turn.approval, arguments.yes)
            runner.run(turn.follow(conversation.resume(approved)))
    turn.finish()
    return _code(turn.done.failed if turn.done else "", arguments.model)


def _code(failed: str, model: str) -> int:
    """The exit code: a model that was asked for by name and did not answer is a failure, whatever stands in for it."""
    return _MODEL_FAILED if failed and {model, settings.value("model")} & {"gemini", "openai"} else 0


class _Turn:
    """Shows the events of a turn as they come, and keeps the last approval asked for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.why, self.md, self.brief = arguments.why, arguments.md, arguments.brief
        self.approval: Approval | None = None
        self.streamed: list[str] = []
        self.drafting = False
        self.done: Done | None = None
        self.printer = None
        if sys.stdout.isatty() and not (self.md or self.brief):
            self.printer = BlockPrinter(details=self.why)

    async def follow(self, events: AsyncIterator[Event]) -> None:
        self.approval = None
        with ExitStack() as waits:
            await self._shown(events, waits)

    async def _shown(self, events: AsyncIterator[Event], waits: ExitStack) -> None:
        """`waits` tells how long a tool takes, until it has answered."""
        async for event in events:
            match event:
                case TextPiece(draft=True):
                    if not self.drafting and sys.stderr.isatty():
                        say("Writing …")
                    self.drafting = True
                case TextPiece(text):
                    self.streamed.append(text)
                    if self.printer:
                        self.printer.feed(text)
                case ToolCall(call):
                    self.drafting = False
                    waits.close()
                    waits.enter_context(working(one_line(call.name)))
                case ToolResult():
                    waits.close()
                    self._flush()
                    say(_tool_line(event))
                case Remark(text):
                    self._flush()
                    say(one_line(text))
                case Approval():
                    self._flush()
                    self.approval = event
                case Done():
                    self.done = event

    def _flush(self) -> None:
        if self.printer:
            self.printer.finish()

    def finish(self) -> None:
        """The answer where it was not streamed, the files written, and how to go on."""
        self._flush()
        done = self.done
        if done is None:
            raise RuntimeError("the turn ended without an answer")
        answer, streamed = clean(done.answer).strip(), clean("".join(self.streamed)).strip()
        if self.brief:
            print(fold.folded(answer).lead.partition("\n\n")[0])
        elif not self.printer:
            parts = fold.folded(answer)
            print(parts.whole if self.why else parts.lead)
        elif not streamed or not streamed.endswith(answer):
            self.printer.feed(answer)
            self.printer.finish()
        if done.files:
            print("\nWritten:" + "".join(f"\n- {one_line(file.path)}" for file in done.files))
        if done.ungrounded:
            numbers = ", ".join(map(one_line, done.ungrounded))
            say(f"No tool result backs these numbers, which the first answer had: {numbers}")
        more = "" if self.why or not fold.folded(answer).details else " How so: --why."
        if done.turn_usage.requests:
            say(f"The language model used {words(done.turn_usage)}.")
        goes_on = f'Session {done.session}. To go on: shardwise ask --session {done.session} "…".' if is_kept() else ""
        if goes_on or more:
            say(f"{goes_on}{more}".strip())


def _tool_line(result: ToolResult) -> str:
    """One line a tool: its name, short arguments and time, or why it failed."""
    outcome = result.outcome
    name, seconds = one_line(outcome.call.name), written_seconds(result.seconds)
    if outcome.error == DECLINED:
        return f"– {name}: {DECLINED}"
    if outcome.error is not None:
        return f"✗ {name}: {one_line(outcome.error)}"
    room = max(shutil.get_terminal_size((100, 24)).columns - len(name) - len(seconds) - 6, 20)
    return f"✓ {name}  {arguments_line(outcome.call.arguments, room)}  {seconds}"


def _approved(approval: Approval, yes: bool) -> bool:
    """Shows exactly what would be written and asks. Without a person to ask, only --yes approves."""
    for call in approval.calls:
        does = "delete from" if call.deletes else "write to"
        say(f"{one_line(call.name)} would {does} {one_line(call.preview.folder)}:")
        for file in call.preview.files:
            say(f"  {one_line(file.path)}  {file_size(file.bytes)}  {'deleted' if call.deletes else _change(file)}")
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("Nothing was written: nobody here can approve. To agree to this, ask again with --yes.")
        return False
    say("(s shows them)")
    while True:
        sys.stderr.write(f"{'Delete' if all(call.deletes for call in approval.calls) else 'Write'} them? [y/N] ")
        sys.stderr.flush()
        reply = sys.stdin.readline().strip().lower()
        if reply not in ("s", "show"):
            return reply in ("y", "yes")
        for call in approval.calls:
            for file in call.preview.files:
                say(f"--- {one_line(file.path)}")
                sys.stderr.write("".join(_shown(file)))


def _change(file: ShownFile) -> str:
    """What a file would change: nothing there yet, the same, or how many lines come and go."""
    if file.before is None:
        return "new"
    lines = _shown(file)
    added, gone = (sum(line.startswith(mark) for line in lines) for mark in "+-")
    return f"+{added} -{gone} lines" if added or gone else "unchanged"


def _shown(file: ShownFile) -> list[str]:
    """The text of a new file; of one that is there already, the difference line by line."""
    new = [f"{line}\n" for line in clean(file.text).splitlines()]
    if file.before is None:
        return new
    old = [f"{line}\n" for line in clean(file.before).splitlines()]
    return [line for line in difflib.unified_diff(old, new, n=2) if not line.startswith(("---", "+++"))]


def _question(words: list[str]) -> str:
    text = clean(read_stream(sys.stdin, "question") if words == ["-"] else " ".join(words)).strip()
    if not text:
        raise PlanError("question", "is empty", ['shardwise ask "Does Llama-3.1-8B fit on one H100?"'])
    return text


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise PlanError("--now", f"{text!r} is not an ISO time", ["2026-01-05T09:00", "2026-01-05"]) from None
