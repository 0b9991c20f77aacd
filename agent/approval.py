"""Nothing is written before the person has seen the exact files; an approval is good for those bytes only."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.events import PlannedWrite, Preview, ShownFile
from agent.wire import Call
from estimator.errors import PlanError
from knowledge.own.files import is_gone, working_folder
from pages.rendering.clean import plain
from planner.files.below import writing_below
from planner.files.standing import before, folder_of, standing
from tools.registry import Tool


@dataclass(frozen=True)
class Proposal:
    """A call that is ready to be approved: arguments with the folder made explicit, what it would write, and of each
    file what stands in its place now (None: nothing that would be lost)."""

    call: Call
    root: Path
    folder: str
    files: tuple[tuple[str, str], ...]
    standing: tuple[str | None, ...]

    @property
    def digest(self) -> str:
        content = [self.call.name, self.call.arguments, str(self.root), self.folder, self.files, self.standing]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def question(self) -> PlannedWrite:
        """What the person is asked, and the digest that the answer must come with."""
        call, place = self.call.cleaned, self.root / self.folder
        files = [
            ShownFile(path=plain(path), bytes=len(text.encode()), text=plain(text), before=_shown_before(place / path))
            for path, text in self.files
        ]
        preview = Preview(folder=plain(self.folder), files=files)
        return PlannedWrite(id=call.id, name=call.name, arguments=call.arguments, preview=preview, digest=self.digest)


def propose(call: Call, tools: Mapping[str, Tool], root: Path, default: str | None = None) -> Proposal:
    """Renders what `call` would write below `root`, in folder `default` where the call names none.

    Raises PlanError when it cannot be rendered or would leave `root`.
    """
    writer = tools[call.name]
    writer.parse(call.arguments)
    arguments = {key: value for key, value in call.arguments.items() if value is not None}
    shows = tools[writer.preview or ""]
    with _below(root):
        result: Any = shows.run({key: value for key, value in arguments.items() if key in shows.request.model_fields})
    files = tuple((file.path, file.text) for file in result.files)
    if _takes_folder(writer):
        asked = arguments.get("folder") or default
        folder = arguments["folder"] = _inside(root, folder_of(result.plan) if asked is None else asked)
    else:
        # What is kept in the user's own folders has its place there.
        folder = result.folder
    there = tuple(standing(root / folder / path, text) for path, text in files)
    return Proposal(Call(call.id, call.name, arguments), root, folder, files, there)


def carry_out(proposal: Proposal, approved: str | None, tools: Mapping[str, Tool], root: Path) -> dict[str, Any]:
    """Runs an approved call; `approved` is the digest of what was shown. Raises PlanError when that has changed."""
    if proposal.digest != approved:
        what = "the files, or those in whose place they go, are no longer those that were approved; nothing was written"
        raise PlanError("approval", what)
    if _takes_folder(tools[proposal.call.name]):
        if is_gone() and root == working_folder().resolve():
            raise PlanError("folder", f"the working folder {root} was deleted; go to one that is there")
        root.mkdir(parents=True, exist_ok=True)
    with _below(root):
        return tools[proposal.call.name](proposal.call.arguments)


def _below(root: Path) -> contextlib.AbstractContextManager[None]:
    """Told apart by the run, not by the process: sessions with other folders may write at the same time."""
    return writing_below(root) if root != working_folder().resolve() else contextlib.nullcontext()


def _shown_before(path: Path) -> str | None:
    text = before(path)
    return None if text is None else plain(text)


def _takes_folder(tool: Tool) -> bool:
    return "folder" in tool.request.model_fields


def _inside(root: Path, folder: Any) -> str:
    """The folder relative to `root`, inside it once links are followed. Raises PlanError."""
    if not isinstance(folder, str) or not folder.strip() or "\0" in folder:
        raise PlanError("folder", f"{folder!r} is not a folder name", ["runs/my-plan"])
    target = (root / folder).resolve()
    if not target.is_relative_to(root):
        raise PlanError("folder", f"{plain(folder)!r} is outside {root}", ["a folder below it, e.g. runs/my-plan"])
    return target.relative_to(root).as_posix()
