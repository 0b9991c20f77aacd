"""What is wrong with an SQLite file of the user's, in words that are true of it, and what to do."""

from __future__ import annotations

from pathlib import Path

_KINDS = {
    "SQLITE_FULL": "cannot be written: the disk is full; make room",
    "SQLITE_READONLY": "cannot be written: it is read-only; set SHARDWISE_DATA to a folder that you may write to",
    "SQLITE_CANTOPEN": "cannot be written: its folder is read-only or full; set SHARDWISE_DATA to another",
    "SQLITE_IOERR": "cannot be written: the disk is full or fails; make room, or set SHARDWISE_DATA",
    "SQLITE_BUSY": "is in use by another program; try again in a moment",
    "SQLITE_LOCKED": "is in use by another program; try again in a moment",
    "SQLITE_NOTADB": "is not a store of {things}, or is damaged; move it away to start afresh",
    "SQLITE_CORRUPT": "is damaged; move it away to start afresh",
}


def store_refusal(path: Path, error: Exception | None, things: str) -> str:
    """Of a file at `path` that keeps `things` ('sessions'), whose use SQLite refused with `error`."""
    name = getattr(error, "sqlite_errorname", "") or ""
    problem = next((words for kind, words in _KINDS.items() if name.startswith(kind)), f"cannot be used ({error})")
    return f"{path} {problem.format(things=things)}"
