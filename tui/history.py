"""What was typed at the prompt, kept for the next time: a file of one JSON string a line, for the user alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from estimator.credentials import without_credentials
from estimator.errors import PlanError
from knowledge.own.files import data_folder

MOST = 1000
_LONGEST = 20_000


def read_history() -> list[str]:
    """The oldest first; what cannot be read is left out, and a folder that cannot be used has none."""
    try:
        lines = _file().read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, PlanError):
        return []
    return [text for line in lines[-MOST:] if (text := _text(line))]


def remember(text: str) -> None:
    """Adds one entry. A long file is cut to its newer half; nobody is bothered when it cannot be written."""
    if len(text) > _LONGEST:
        return
    try:
        path = _file()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps(without_credentials(text)) + "\n")
            grown = file.tell() > MOST * 400
        if grown:
            _shorten(path, read_history()[-MOST // 2 :])
    except (OSError, PlanError):
        return


def _shorten(path: Path, kept: Iterable[str]) -> None:
    new = path.with_suffix(".new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(text) + "\n" for text in kept)
    os.replace(new, path)


def _text(line: str) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def _file() -> Path:
    return data_folder() / "prompts.jsonl"
