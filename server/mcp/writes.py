"""Nothing is written before the person behind the client has agreed to the exact files.

A client that can ask puts a form before the person: in the handshake era while the call waits, in the modern era by
calling again with the answer. A client that cannot ask gets the files as text and a code; the same call with that code
writes. Code and answer are bound to the arguments and to every byte shown, so nothing else can be written with them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from planner.files.render import inside_root, writing_below
from server.calls import CallAnswer, Calls, dumps
from tools.registry import Tool, find

Consent = Callable[["Shown"], Awaitable[bool]]
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
APPROVE = "approve"
FORM = {
    "type": "object",
    "properties": {
        APPROVE: {"type": "boolean", "title": "Go ahead", "description": "Nothing on disk is changed otherwise."}
    },
    "required": [APPROVE],
}
_CANNOT_ASK = (
    "Nothing was written. Show these files to the person; once they agree, call {name} again with the same arguments "
    "and confirm set to the code in confirm."
)
_NO_ROOT = (
    "Nothing was written: this server was started without a folder to write to (--root FOLDER). The files are here as "
    "text."
)


@dataclass(frozen=True)
class Writing:
    """What writing is bound to: the one folder for it (None: nothing may be written), and this process's secret."""

    root: Path | None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)


@dataclass(frozen=True)
class Shown:
    """What a writing call would do, in full and as the question to a person, and the code for exactly that."""

    preview: dict[str, Any]
    question: str
    code: str


async def write(
    writing: Writing,
    calls: Calls,
    tool: Tool,
    arguments: Mapping[str, Any],
    consent: Consent,
) -> CallAnswer:
    """Runs a writing tool once `consent` has been given; without it, what would be written and how to go on."""
    request = {key: value for key, value in arguments.items() if key != "confirm"}
    try:
        tool.parse(request)
        if writing.root and isinstance(folder := request.get("folder"), str):
            with writing_below(writing.root):
                inside_root(folder)
        confirm = arguments.get("confirm")
        if confirm is not None and not isinstance(confirm, str):
            raise PlanError("confirm", "must be the code that the same call without it gave")
    except PlanError as error:
        return CallAnswer(error=error)
    preview = await _preview(calls, tool, request)
    if preview.failure is not None:
        return preview
    question = _question(writing, tool, request, preview.value)
    shown = Shown(preview.value, question, _code(writing, tool, request, preview.text))
    if writing.root is None:
        return _not_written(shown.preview, None, _NO_ROOT)
    if confirm is not None and not hmac.compare_digest(confirm.encode(errors="replace"), shown.code.encode()):
        problem = "does not belong to these arguments and files; call without it to see what would be written now"
        return CallAnswer(error=PlanError("confirm", problem))
    try:
        if not await consent(shown):
            return CallAnswer(error=PlanError(tool.name, "the person did not agree; nothing was written"))
    except PlanError as error:
        return CallAnswer(error=error)
    except CannotAsk:
        if confirm is None:
            return _not_written(shown.preview, shown.code, _CANNOT_ASK.format(name=tool.name))
    with writing_below(writing.root):
        done = await calls.run(tool, request, keep=False)
    calls.forget()
    return done if done.failure is not None else CallAnswer(dumps({**done.value, "written": True}))


class CannotAsk(Exception):
    """The client has no way to put a question before the person."""


async def nobody(_: Shown) -> bool:
    raise CannotAsk


def agreed(answer: Any) -> bool:
    """Whether the person's answer to FORM is a clear yes. It comes from the client, so it may be anything."""
    content = getattr(answer, "content", None)
    return getattr(answer, "action", None) == "accept" and isinstance(content, Mapping) and content.get(APPROVE) is True


def _question(writing: Writing, tool: Tool, arguments: Mapping[str, Any], preview: Mapping[str, Any]) -> str:
    """What the person reads before agreeing: every file with its size, and where it would go."""
    files, below = preview.get("files", []), preview.get("folder") or writing.root
    count = f": {len(files)} file{'s' * (len(files) != 1)}" if files else ""
    lines = [f"{tool.title}{count} below {plain(below)}"]
    lines += [f"{name.capitalize()}: {plain(arguments[name])}" for name in ("folder", "file") if arguments.get(name)]
    lines += [f"- {plain(file['path'])} ({len(file['text'].encode()):,} bytes)" for file in files]
    if arguments.get("overwrite"):
        lines.append("Files that are there already are replaced.")
    return "\n".join(lines)


def plain(text: Any, longest: int = 200) -> str:
    """Other people's words on one line, without anything that steers a terminal or reorders text."""
    line = _CONTROL.sub(" ", str(text))
    return line if len(line) <= longest else line[: longest - 1] + "…"


async def _preview(calls: Calls, tool: Tool, arguments: Mapping[str, Any]) -> CallAnswer:
    """The result of the tool that shows what `tool` would write; the arguments themselves where there is none."""
    if tool.preview is None:
        return CallAnswer(dumps({"arguments": arguments}))
    shows = find(tool.preview)
    shared = {key: value for key, value in arguments.items() if key in shows.request.model_fields}
    return await calls.run(shows, shared)


def _code(writing: Writing, tool: Tool, arguments: Mapping[str, Any], preview: str) -> str:
    bound = json.dumps([tool.name, arguments, str(writing.root), preview], sort_keys=True)
    return hmac.new(writing.secret, bound.encode(), hashlib.sha256).hexdigest()[:32]


def _not_written(preview: dict[str, Any], code: str | None, how: str) -> CallAnswer:
    return CallAnswer(dumps({"written": False, "preview": preview, "confirm": code, "how": how}))
