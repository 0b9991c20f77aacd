"""Nothing is written before the person behind the client has agreed to the exact files.

A client that can ask puts a form before the person: in the handshake era while the call waits, in the modern era by
calling again with the answer. A client that cannot ask gets the files as text and a code; the same call with that code
writes. Code and answer are bound to the arguments, to every byte shown and to what stands in their place, so
nothing else can be written or lost with them; a code is good once, and not for long.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from estimator.errors import PlanError
from knowledge.own import database
from pages.rendering.clean import one_line
from planner.files.below import inside_root, writing_below
from planner.files.standing import difference, folder_of, standing
from server.calls import FOLDER, Calls
from server.work import CallAnswer, dumps
from tools.registry import Tool, find

Consent = Callable[["Shown"], Awaitable[bool]]
APPROVE = "approve"
_LONGEST = 200
FORM = {
    "type": "object",
    "properties": {
        APPROVE: {"type": "boolean", "title": "Go ahead", "description": "Nothing on disk is changed otherwise."}
    },
    "required": [APPROVE],
}
# A code is good for so long; of those that nobody came back with, so many are kept.
_GOOD_FOR_S, _MOST_CODES = 600.0, 1000
_CANNOT_ASK = (
    "Nothing was written. Show these files to the person; once they agree, call {name} again with the same arguments "
    "and confirm set to the code in confirm."
)
_NO_ROOT = (
    "Nothing was written: this server was started without a folder to write to (--root FOLDER). The files are here as "
    "text."
)


class Codes(Protocol):
    """The codes that were given out: what each is good for, and since when."""

    def keep(self, code: str, bound: str) -> None: ...

    def look(self, code: str) -> tuple[str, float] | None:
        """What a code is good for, and its age in seconds."""

    def drop(self, code: str) -> bool:
        """False where it was gone already."""
        ...


@dataclass
class OwnCodes:
    """Those of this process."""

    _codes: OrderedDict[str, tuple[str, float]] = field(default_factory=OrderedDict, repr=False)

    def keep(self, code: str, bound: str) -> None:
        while len(self._codes) >= _MOST_CODES:
            self._codes.popitem(last=False)
        self._codes[code] = (bound, time.monotonic())

    def look(self, code: str) -> tuple[str, float] | None:
        held = self._codes.get(code)
        return held and (held[0], time.monotonic() - held[1])

    def drop(self, code: str) -> bool:
        return self._codes.pop(code, None) is not None


@dataclass(frozen=True)
class Writing:
    """The one folder that may be written to (None: nothing may be), and the codes that were given out."""

    root: Path | None
    codes: Codes = field(default_factory=OwnCodes, repr=False)

    def may(self, tool: Tool) -> bool:
        """Whether a tool has a place to write to: what a team keeps is in its database."""
        return self.root is not None or (bool(database.address()) and FOLDER not in tool.request.model_fields)

    def code(self, bound: str) -> str:
        """A new code for what was shown."""
        code = secrets.token_hex(16)
        self.codes.keep(code, bound)
        return code

    def redeem(self, code: str, bound: str) -> str:
        """Uses a code up; what is wrong with it, '' where nothing is."""
        held = self.codes.look(code)
        unknown = "is not known, or was used already; call without it to see what would be written now"
        if held is None:
            return unknown
        if held[1] > _GOOD_FOR_S:
            self.codes.drop(code)
            return f"is older than {_GOOD_FOR_S / 60:.0f} minutes; call without it to see what would be written now"
        if held[0] != bound:
            return "does not belong to these arguments and files, or what stands there has changed; call without it"
        return "" if self.codes.drop(code) else unknown


@dataclass(frozen=True)
class Shown:
    """What a writing call would do, in full and as the question to a person, and what a yes is bound to."""

    preview: dict[str, Any]
    question: str
    bound: str
    writing: Writing


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
    if FOLDER in tool.request.model_fields and not request.get(FOLDER):
        # Said, so that what stands there can be looked at.
        request[FOLDER] = folder_of(preview.value["plan"])
    shown = await calls.other(lambda: _shown(writing, tool, request, preview.value))
    if not writing.may(tool):
        return _not_written(shown.preview, None, _NO_ROOT)
    if confirm is not None and (problem := await calls.other(lambda: writing.redeem(confirm, shown.bound))):
        return CallAnswer(error=PlanError("confirm", problem))
    try:
        if not await consent(shown):
            return CallAnswer(error=PlanError(tool.name, "the person did not agree; nothing was written"))
    except PlanError as error:
        return CallAnswer(error=error)
    except CannotAsk:
        if confirm is None:
            code = await calls.other(lambda: writing.code(shown.bound))
            return _not_written(shown.preview, code, _CANNOT_ASK.format(name=tool.name))
    # While the person was asked, something else may have come to stand there.
    if (await calls.other(lambda: _shown(writing, tool, request, preview.value))).bound != shown.bound:
        return CallAnswer(error=PlanError(tool.name, "what stands there has changed since it was shown; call again"))
    with writing_below(writing.root) if writing.root else nullcontext():
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


def _shown(writing: Writing, tool: Tool, request: Mapping[str, Any], preview: dict[str, Any]) -> Shown:
    """What would be written, with what it changes of the files that stand there."""
    place = _place(writing, request, preview)
    files, there = [], []
    for file in preview.get("files", []):
        if place is None:
            break
        path = place / str(file["path"])
        there.append([str(file["path"]), standing(path, file["text"]), os.path.lexists(path)])
        files.append({**file, "difference": difference(path, file["text"])})
    shown = {**preview, "files": files} if files else preview
    content = json.dumps([tool.name, request, str(writing.root), preview, there], sort_keys=True)
    bound = hashlib.sha256(content.encode()).hexdigest()
    return Shown(shown, _question(writing, tool, request, shown), bound, writing)


def _place(writing: Writing, request: Mapping[str, Any], preview: Mapping[str, Any]) -> Path | None:
    """The folder that files go into; None where it is not known."""
    folder = request.get(FOLDER) or preview.get(FOLDER)
    return (writing.root or Path()) / folder if folder else None


def _question(writing: Writing, tool: Tool, arguments: Mapping[str, Any], preview: Mapping[str, Any]) -> str:
    """What the person reads before agreeing: every file with its size, and where it would go."""
    files, below = preview.get("files", []), preview.get("folder") or writing.root
    count = f": {len(files)} file{'s' * (len(files) != 1)}" if files else ""
    lines = [f"{tool.title}{count} below {_shown_as(below)}"]
    lines += [
        f"{name.capitalize()}: {_shown_as(arguments[name])}" for name in ("folder", "file") if arguments.get(name)
    ]
    lines += [f"- {_shown_as(file['path'])} ({len(file['text'].encode()):,} bytes{_change(file)})" for file in files]
    if arguments.get("overwrite"):
        lines.append("Files that are there already are replaced.")
    return "\n".join(lines)


def _shown_as(words: Any) -> str:
    return one_line(words, _LONGEST)


def _change(file: Mapping[str, Any]) -> str:
    """', replaces a file: -2 +3 lines'."""
    changed = file.get("difference")
    if changed is None:
        return ""
    if not changed:
        return ", as it is there already"
    signs = [line[:1] for line in changed.splitlines()]
    count = f": -{signs.count('-')} +{signs.count('+')} lines" if {"-", "+"} & {*signs} else ""
    return f", replaces what is there{count}"


async def _preview(calls: Calls, tool: Tool, arguments: Mapping[str, Any]) -> CallAnswer:
    """The result of the tool that shows what `tool` would write; the arguments themselves where there is none."""
    if tool.preview is None:
        return CallAnswer(dumps({"arguments": arguments}))
    shows = find(tool.preview)
    shared = {key: value for key, value in arguments.items() if key in shows.request.model_fields}
    return await calls.run(shows, shared)


def _not_written(preview: dict[str, Any], code: str | None, how: str) -> CallAnswer:
    return CallAnswer(dumps({"written": False, "preview": preview, "confirm": code, "how": how}))
