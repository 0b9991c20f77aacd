"""The one folder that files are written below, and read from where a tool reads what was written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from estimator.errors import PlanError, steers
from knowledge.own.files import is_gone, working_folder

_LONGEST_PART = 255  # bytes, of most file systems
_root: ContextVar[Path | None] = ContextVar("root", default=None)


@contextmanager
def writing_below(root: Path) -> Iterator[None]:
    """Tools that run inside write below `root` (absolute, links followed) instead of the working folder."""
    token = _root.set(root)
    try:
        yield
    finally:
        _root.reset(token)


def written_below() -> Path | None:
    """The root that `writing_below` set; None for the working folder."""
    return _root.get()


def inside_root(folder: str, field: str = "folder") -> Path:
    """The folder or file asked for, which has to lie below the root of what may be written once links are followed.

    It is relative where the root is the working folder. Raises PlanError.
    """
    root = _root.get()
    if root is None and is_gone():
        raise PlanError(field, f"the working folder {working_folder()} was deleted; go to one that is there")
    base, shown = root or Path.cwd().resolve(), repr(folder if len(folder) <= 60 else folder[:57] + "...")
    try:
        if (
            len(folder) > 1000
            or steers(folder)
            or any(len(os.fsencode(part)) > _LONGEST_PART for part in Path(folder).parts)
        ):
            raise ValueError
        inside = not folder.startswith("~") and (base / folder).resolve().is_relative_to(base)
    except (OSError, ValueError):
        raise PlanError(field, f"{shown} cannot be the name of a folder", ["e.g. runs/my-plan"]) from None
    if not inside:
        raise PlanError(field, f"{shown} is outside the working folder", ["a folder below it, e.g. runs/my-plan"])
    return base / folder if root else Path(folder)
