"""What stands where files are to be written: that an approval can be bound to it, and be shown the difference."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from pathlib import Path

LARGEST_SHOWN = 400_000
# Lines of a difference that are shown.
_MOST_LINES = 200


def standing(path: Path, text: str) -> str | None:
    """What would be lost if `text` were written at `path`: the digest of a file there with other content."""
    try:
        status = path.stat()
        if status.st_size > LARGEST_SHOWN:
            return f"{status.st_size} bytes of {status.st_mtime_ns}"
        there = _content(path)
    except OSError:
        return None
    return hashlib.sha256(there).hexdigest() if there is not None and there != text.encode() else None


def before(path: Path) -> str | None:
    """The text of a file that is there; None where there is none, or none that can be shown."""
    try:
        there = _content(path) if path.stat().st_size <= LARGEST_SHOWN else None
        return None if there is None else there.decode()
    except (OSError, ValueError):
        return None


def difference(path: Path, text: str) -> str | None:
    """Line by line what writing `text` at `path` would change; None where nothing stands there, '' where the same."""
    if not os.path.lexists(path):
        return None
    old = before(path)
    if old is None:
        return "replaces what cannot be shown as text"
    if old == text:
        return ""
    lines = list(difflib.unified_diff(old.splitlines(), text.splitlines(), n=1, lineterm=""))[2:]
    more = [f"… {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return "\n".join([*lines[:_MOST_LINES], *more])


def _content(path: Path) -> bytes | None:
    """The bytes of a regular file, and of nothing else: a pipe would wait."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        return file.read(LARGEST_SHOWN + 1) if stat.S_ISREG(os.fstat(handle).st_mode) else None
