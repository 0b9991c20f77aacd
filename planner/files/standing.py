"""What stands where files are to be written, that an approval can be bound to it."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.files import open_regular

_LARGEST_SHOWN = 400_000
# Lines of a difference that are shown.
_MOST_LINES = 200


def folder_of(plan: Mapping[str, Any]) -> str:
    """The folder for the files of a plan where none is named, after the plan."""
    model = plan["model"] if isinstance(plan["model"], str) else "model"
    name = plan.get("name") or f"{Path(model).name}-{plan['workload'].get('method', 'run')}"
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name).strip(".-")
    return f"runs/{kept or 'plan'}"


def standing(path: Path, text: str) -> str | None:
    """What would be lost if `text` were written at `path`: the digest of a file there with other content."""
    try:
        status = path.stat()
        if status.st_size > _LARGEST_SHOWN:
            return f"{status.st_size} bytes of {status.st_mtime_ns}"
        there = _content(path)
    except (OSError, PlanError):
        return None
    return hashlib.sha256(there).hexdigest() if there != text.encode() else None


def before(path: Path) -> str | None:
    """The text of a file that is there; None where there is none, or none that can be shown."""
    try:
        return _content(path).decode() if path.stat().st_size <= _LARGEST_SHOWN else None
    except (OSError, PlanError, ValueError):
        return None


def difference(path: Path, text: str) -> str | None:
    """What writing `text` would change of the file at `path`, line by line and not without end; None where there is
    none yet, '' where nothing would change."""
    there = before(path)
    if there is None:
        return "its content, which is not text or too long to show, is replaced" if path.is_file() else None
    lines = list(difflib.unified_diff(there.splitlines(), text.splitlines(), lineterm="", n=2))[2:]
    left_out = [f"... and {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *left_out])


def _content(path: Path) -> bytes:
    with open_regular(path, "path") as file:
        return file.read(_LARGEST_SHOWN + 1)
