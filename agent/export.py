"""A conversation as a document: Markdown to read, JSON for programs."""

from __future__ import annotations

import json
import re

from agent.store import KeptCall, KeptTurn, find_session, last_plan, transcript
from estimator.errors import PlanError
from pages.rendering.clean import plain, plain_data

FORMATS = ("markdown", "json")
_ENDINGS = {
    "open": "This answer is not finished.",
    "waiting": "It waits for approval to write files.",
    "stopped": "This answer was stopped.",
    "failed": "This answer failed.",
}


def export_session(session_id: str, format: str = "markdown") -> str:
    """The whole conversation. Raises PlanError for an unknown session or format."""
    if format not in FORMATS:
        raise PlanError("format", f"{format!r} is not a format of conversations", FORMATS)
    session, turns = find_session(session_id), transcript(session_id)
    plan = last_plan(turns)
    if format == "json":
        head = {"id": session.id, "title": session.title, "created": session.created, "last_used": session.last_used}
        data = {**head, "plan": plan, "turns": [turn.model_dump(exclude_unset=True) for turn in turns]}
        return json.dumps(plain_data(data), indent=2, ensure_ascii=False) + "\n"
    parts = [f"# {plain(session.title)}", f"Session {session_id}, {session.created} to {session.last_used}."]
    for turn in turns:
        parts.append(f"## {turn.number}. {turn.moment}")
        parts.append("\n".join(f"> {line}".rstrip() for line in plain(turn.said).splitlines()))
        parts += _told(turn)
    if plan:
        parts += ["## The plan", _fenced(json.dumps(plan, indent=2, ensure_ascii=False), "json")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _told(turn: KeptTurn) -> list[str]:
    parts = [plain(turn.answer).strip()]
    if note := _ENDINGS.get(turn.state):
        parts.append(f"*{note}*")
    if turn.ungrounded:
        parts.append(f"*Figures that no tool gave: {plain(', '.join(turn.ungrounded))}*")
    if turn.files:
        parts.append("Files written:\n\n" + "\n".join(f"- `{plain(file.path)}`" for file in turn.files))
    if turn.calls:
        parts.append("Tools called:\n\n" + _fenced("\n".join(map(_call_line, turn.calls)), ""))
    return parts


def _call_line(call: KeptCall) -> str:
    line = plain(f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}")
    return f"{line}  # {plain(call.error)}" if call.error else line


def _fenced(text: str, language: str) -> str:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{plain(text)}\n{fence}"
