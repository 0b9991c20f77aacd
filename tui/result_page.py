"""A tool's result as a page for its card: the command line's view of it where there is one, else what it holds.

There units come from the names of the figures, as every figure of a result has its unit in its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pages import units
from pages.blocks import Block, Facts, Grid, Notes, Picture, Text, render
from pages.clean import one_line
from tui.planning import PLANNING

if TYPE_CHECKING:
    from rich.text import Text as RichText

Data = Mapping[str, Any]

_MOST_ROWS = 20
_MOST_COLUMNS = 7
_MOST_SENTENCES = 8
_MOST_QUIET = 4
# What the pane shows, and what would fill pages.
_LEFT_OUT = ("plan", "evidence", "plots", "assumptions")


def page(name: str, result: Data, width: int, colour: bool) -> RichText:
    """As the command line shows it, where it has a command for this tool."""
    from rich.text import Text as RichText

    view = _view(name)
    found = view(result) if view is not None else blocks(result)
    return RichText.from_ansi(render([_shortened(block) for block in found], width, colour))


def _shortened(block: Block) -> Block:
    """What is quiet in print is only begun in a card."""
    if not isinstance(block, Notes) or not block.quiet or len(block.items) <= _MOST_QUIET:
        return block
    more = f"… and {len(block.items) - _MOST_QUIET} more"
    return Notes(block.title, [*block.items[:_MOST_QUIET], more], block.quiet)


def _view(tool: str) -> Callable[[Data], list[Block]] | None:
    for command in PLANNING.values():
        if tool in command.tools:
            module, _, name = command.view.partition(":")
            return getattr(importlib.import_module(module), name)
    return None


def blocks(result: Data) -> list[Block]:
    """Figures first, then tables, pictures, sentences; what was assumed last."""
    facts: list[tuple[str, str]] = []
    grids: list[Block] = []
    notes: list[Block] = []
    for name, value in result.items():
        if name in _LEFT_OUT or value in (None, [], {}, ""):
            continue
        if isinstance(value, Mapping):
            inner = [(f"{_label(key)}", _written(key, each)) for key, each in value.items() if _is_plain(each)]
            deeper = [(key, each) for key, each in value.items() if _is_sizes(each)]
            grids += [Facts(inner, _label(name))] if inner else []
            grids += [
                Facts([(_label(k), _written(key if _has_unit(key) else k, v)) for k, v in each.items()], _label(key))
                for key, each in deeper
            ]
        elif isinstance(value, list) and all(isinstance(row, Mapping) for row in value):
            if all("text" in row and "path" in row for row in value):
                grids += [Text(row["text"], row["path"]) for row in value]
            else:
                grids.append(_grid(name, value))
        elif isinstance(value, list):
            notes.append(_sentences(name, value))
        else:
            facts.append((_label(name), _written(name, value)))
    pictures = [Picture(plot) for plot in result.get("plots") or ()]
    assumed = result.get("assumptions") or ()
    said = [f"{row['field']} = {_written('', row['value'])}: {row['why']}" for row in assumed]
    quiet = [Notes("Assumed", said, quiet=True)] if said else []
    return [*([Facts(facts)] if facts else []), *grids, *pictures, *notes, *quiet]


def _sentences(name: str, value: Sequence[Any]) -> Block:
    told = [_written("", each) for each in value]
    more = [f"… and {len(told) - _MOST_SENTENCES} more"] if len(told) > _MOST_SENTENCES else []
    return Notes(_label(name), [*told[:_MOST_SENTENCES], *more])


def _grid(name: str, rows: Sequence[Data]) -> Block:
    columns = [key for key in dict.fromkeys(key for row in rows for key in row) if _is_shown(key, rows)][:_MOST_COLUMNS]
    numbers = [key for key in columns if any(isinstance(row.get(key), int | float) for row in rows)]
    cells = [[_written(key, row.get(key)) for key in columns] for row in rows[:_MOST_ROWS]]
    left = len(rows) - _MOST_ROWS
    title = f"{_label(name)} ({_MOST_ROWS} of {len(rows)})" if left > 0 else _label(name)
    return Grid([_label(key) for key in columns], cells, [_label(key) for key in numbers], title)


def _is_shown(key: str, rows: Sequence[Data]) -> bool:
    """Columns of plain values of which there are any."""
    found = [row.get(key) for row in rows if row.get(key) not in (None, "")]
    return bool(found) and all(_is_plain(value) for value in found)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_sizes(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(each, int | float) for each in value.values())


def _label(name: str) -> str:
    """A figure's name without the unit that its value is written with."""
    text = name
    for ending in ("_bytes", "_usd", "_hours"):
        text = text.removesuffix(ending)
    text = text if text.endswith("per_s") else text.removesuffix("_s")
    return one_line(text.replace("_per_s", "/s").replace("_", " ").strip() or name)


def _has_unit(name: str) -> bool:
    return _written(name, 1.5) != _written("", 1.5)


def _written(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return one_line(str(value), 160)
    if value != value or value in (float("inf"), float("-inf")):
        return "–"
    if name.endswith("_bytes"):
        return units.memory(value)
    if name in ("mfu", "hfu", "share", "gain") or name.endswith(("_share", "_fraction", "efficiency")):
        return units.percent(value)
    if name == "usd" or name.startswith("usd_per") or name.endswith("_usd"):
        return units.usd(value)
    if name == "hours" or name.endswith("_hours"):
        return units.duration(value * 3600)
    if (name.endswith("_s") and not name.endswith("per_s")) or name == "seconds":
        return units.short_duration(value)
    return units.count(value)
