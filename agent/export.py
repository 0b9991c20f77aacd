"""A conversation as a document: Markdown to read, JSON for programs."""

from __future__ import annotations

import json
import re
from typing import Any

from agent.store import find_session, transcript
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
    plan = next((turn["plan"] for turn in reversed(turns) if turn["plan"]), {})
    if format == "json":
        return json.dumps(plain_data({**session, "plan": plan, "turns": turns}), indent=2, ensure_ascii=False) + "\n"
    parts = [f"# {plain(session['title'])}", f"Session {session_id}, {session['created']} to {session['last_used']}."]
    for turn in turns:
        parts.append(f"## {turn['number']}. {turn['moment']}")
        parts.append("\n".join(f"> {line}".rstrip() for line in plain(turn["said"]).splitlines()))
        parts += _told(turn)
    if plan:
        parts += ["## The plan", _fenced(json.dumps(plan, indent=2, ensure_ascii=False), "json")]
    return "\n\n".join(part for part in parts if part) + "\n"


def _told(turn: dict[str, Any]) -> list[str]:
    parts = [plain(turn["answer"]).strip()]
    if note := _ENDINGS.get(turn["state"]):
        parts.append(f"*{note}*")
    if turn["ungrounded"]:
        parts.append(f"*Figures that no tool gave: {plain(', '.join(map(str, turn['ungrounded'])))}*")
    if turn["files"]:
        parts.append("Files written:\n\n" + "\n".join(f"- `{plain(str(file['path']))}`" for file in turn["files"]))
    if turn["calls"]:
        lines = [_call_line(call) for call in turn["calls"]]
        parts.append("Tools called:\n\n" + _fenced("\n".join(lines), ""))
    return parts


def _call_line(call: dict[str, Any]) -> str:
    line = plain(f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}")
    return f"{line}  # {plain(call['error'])}" if call.get("error") else line


def _fenced(text: str, language: str) -> str:
    """A block of code whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{plain(text)}\n{fence}"
