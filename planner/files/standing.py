"""What stands where files are to be written, that an approval can be bound to it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.files import open_regular

_LARGEST_SHOWN = 400_000


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


def _content(path: Path) -> bytes:
    with open_regular(path, "path") as file:
        return file.read(_LARGEST_SHOWN + 1)
