"""The Python in a file; of a notebook the cells, without what only a notebook understands."""

from __future__ import annotations

import ast

from estimator.errors import PlanError
from knowledge.own.mappings import json_value
from launchers.reading.documents import check_size


def parsed(name: str, text: str) -> ast.Module:
    """Parsed and never run or imported. Raises PlanError for what is no Python."""
    try:
        if name.endswith(".ipynb"):
            # What cells have printed and drawn is no part of it.
            cells = _cells(name, text)
            check_size(name, "".join(cells))
            return ast.parse("\n".join(cell for cell in cells if _is_python(cell)))
        check_size(name, text)
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError("files", f"{name} is not readable Python: {str(error)[:120]}") from None


def _cells(name: str, text: str) -> list[str]:
    try:
        cells = [cell for cell in json_value(text)["cells"] if cell.get("cell_type") == "code"]
        return [_without_magic("".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PlanError("files", f"{name} is not a readable notebook") from None


def _without_magic(cell: str) -> str:
    """A cell without its lines for a shell (and those that go on from them) and for the notebook; one that is of
    another language is empty."""
    if cell.lstrip().startswith("%%"):
        return ""
    lines, goes_on = [], False
    for line in cell.splitlines():
        is_magic = goes_on or line.lstrip().startswith(("!", "%", "?"))
        goes_on = is_magic and line.rstrip().endswith("\\")
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(f"{indent}pass" if is_magic and not goes_on else "" if is_magic else line)
    return "\n".join(lines)


def _is_python(cell: str) -> bool:
    try:
        ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
