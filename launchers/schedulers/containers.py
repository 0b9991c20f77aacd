"""What files that start containers have in common: commands, variables and plain data.

Nothing of what they start is run; the commands are read as those of a script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from launchers.reading.findings import as_number
from launchers.shell.images import image_command, takes
from launchers.shell.scripts import UNKNOWN

Data = Mapping[str, Any]


@dataclass
class Jobs:
    """What a file starts: `kind` for the reader, `scripts` (text, variables), and `files` that it brings along."""

    kind: str
    scripts: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def variables_of(rows: Any) -> dict[str, str]:
    """Variables of a container; what comes from secrets and fields is not known."""
    if isinstance(rows, Mapping):
        return {str(key): UNKNOWN if value is None else str(value) for key, value in rows.items()}
    variables: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and "name" in row:
            variables[str(row["name"])] = str(row["value"]) if row.get("value") is not None else UNKNOWN
        elif isinstance(row, str):
            key, _, value = row.partition("=")
            variables[key] = value or UNKNOWN
    return variables


def command_line(container: Data, variables: Mapping[str, str]) -> str:
    """Command and arguments of a container as a line of a script."""
    words: list[str] = []
    for key in ("command", "args"):
        value = container.get(key)
        # A string is split as a shell would.
        words += [str(part) for part in value] if isinstance(value, list) else _split(value)
    words = [re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda name: variables.get(name[1], UNKNOWN), word) for word in words]
    image = str(container.get("image", ""))
    # An entry point is given options and models; a bare word is a program of its own.
    is_own = bool(words) and re.fullmatch(r"[a-z][a-z0-9_.-]*", words[0]) and not takes(image, words[0])
    if "command" not in container and not is_own:
        begins, chosen = image_command(image, words)
        words = [*begins, *words[chosen:]]
    return shlex.join(words)


def _split(value: Any) -> list[str]:
    if not isinstance(value, str):
        return []
    try:
        return shlex.split(value)
    except ValueError:
        return [UNKNOWN]


def mapping_at(part: Any, *path: str) -> Mapping[str, Any]:
    for name in path:
        part = part.get(name) if isinstance(part, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def list_at(part: Any, name: str) -> list[Any]:
    value = part.get(name) if isinstance(part, Mapping) else None
    return value if isinstance(value, list) else []


def number_at(part: Any, name: str, usual: int) -> int:
    number = as_number(part.get(name)) if isinstance(part, Mapping) else None
    return int(number) if number is not None and number >= 1 else usual
