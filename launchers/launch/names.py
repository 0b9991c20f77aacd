"""Text of the user as launch files can hold it: one line, and names of files and jobs."""

from __future__ import annotations

import re


def one_line(text: str) -> str:
    """User text for a comment: nothing that a terminal or a parser could take for more than text of one line."""
    return "".join(character if character.isprintable() else "?" for character in text)


def last_part(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def slug(text: str | None) -> str:
    """Letters, digits, dots, dashes and underscores, at most 64, no mark at either end; '' if nothing is left."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text or "").strip("-._")[:64].rstrip("-._")
