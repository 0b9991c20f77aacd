"""What pages of several commands have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pages import units
from pages.blocks import Block, Facts, Grid, Notes, Picture
from pages.overview import plan_lines
from planner.requests import ALL_PATHS, flag_of

Data = Mapping[str, Any]
Column = tuple[str, Callable[[Data], str]]

NONE = "–"


def plan_facts(result: Data) -> list[Block]:
    plan = result.get("plan")
    return [Facts(plan_lines(plan))] if isinstance(plan, Mapping) else []


def known(rows: Sequence[tuple[str, str]], title: str = "") -> Facts:
    """Those of the labelled values that there are."""
    return Facts([row for row in rows if row[1] != NONE], title)


def tail(result: Data) -> list[Block]:
    """Warnings, what was assumed, and what the estimate rests on: always at the end."""
    found: list[Block] = []
    if result.get("warnings"):
        found.append(Notes("Watch out", result["warnings"]))
    if assumed := result.get("assumptions"):
        found.append(Notes("Assumed", _assumed(assumed), True))
    if evidence := result.get("evidence"):
        rests = [f"{row['figure']}: {row['basis']}" for row in evidence]
        found.append(Notes("Rests on", list(dict.fromkeys(rests)), True))
    return found


def _assumed(rows: Sequence[Data]) -> list[str]:
    """One line for each reason, as many fields share theirs."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        field = str(row["field"]).rpartition(".")[2]
        by_reason.setdefault(str(row["why"]), []).append(f"{field} {value(row['value'])}")
    return [f"{', '.join(fields)}: {why}" for why, fields in by_reason.items()]


def pictures(result: Data) -> list[Block]:
    return [Picture(plot) for plot in result.get("plots") or ()]


def notes(title: str, items: Sequence[str] | None) -> list[Block]:
    return [Notes(title, items)] if items else []


# Columns that go where a terminal is too narrow for all, the first first.
_OPTIONAL = (
    "WAITS FOR", "AGAINST", "INSTANCE", "LIMITED BY", "FREE", "$/1M TOK", "DEVICES", "$/H", "COMM", "REPLICA TAKES",
    "USERS", "ACCELERATOR", "LIMITS", "FRAMEWORK", "MFU", "TOKENS/DAY", "PROVIDER", "RESERVED", "SPOT", "TPOT", "RUN",
    "HOURS", "LAYOUT", "WHY NOT", "FLAGS",
)  # fmt: skip


def grid(rows: Sequence[Data], columns: Sequence[Column], right: Sequence[str] = (), title: str = "") -> list[Block]:
    """A table of the rows; columns without any value are left out. No table where there is no row."""
    cells = [[write(row) for _, write in columns] for row in rows]
    kept = [i for i in range(len(columns)) if any(row[i] not in ("", NONE) for row in cells)]
    if not kept:
        return []
    headers = [columns[i][0] for i in kept]
    return [Grid(headers, [[row[i] for i in kept] for row in cells], right, title, _OPTIONAL)]


def value(found: Any) -> str:
    """Any value in short."""
    match found:
        case None:
            return "none"
        case bool():
            return "yes" if found else "no"
        case float():
            return f"{found:g}"
        case list() | tuple():
            return ", ".join(value(item) for item in found)
        case dict():
            return ", ".join(f"{key}={value(item)}" for key, item in found.items())
    return str(found)


# -------------------------------------------------------------------------------- cells: a field, written with its unit


def text(name: str) -> Callable[[Data], str]:
    return lambda row: NONE if row.get(name) is None else value(row[name])


def number(name: str, write: Callable[[float], str]) -> Callable[[Data], str]:
    def cell(row: Data) -> str:
        found = row.get(name)
        return write(found) if isinstance(found, int | float) and not isinstance(found, bool) else NONE

    return cell


def ranged(name: str, low: str, high: str, write: Callable[[float], str]) -> Callable[[Data], str]:
    """The figure with its 80 % interval."""

    def cell(row: Data) -> str:
        at = [row.get(one) for one in (name, low, high)]
        if at[0] is None:
            return NONE
        told = [write(one) for one in at if one is not None]
        return told[0] if len(told) < 3 or told[1] == told[2] else f"{told[0]} ({told[1]} – {told[2]})"

    return cell


def yes(name: str) -> Callable[[Data], str]:
    return lambda row: {True: "yes", False: "no"}.get(row.get(name), NONE)  # type: ignore[arg-type]


def hours(n_hours: float) -> str:
    return units.duration(n_hours * 3600)


def cents(amount: float) -> str:
    """USD where a cent is much: prices of a million tokens."""
    return f"${amount:.3g}" if 0 < abs(amount) < 1 else units.usd(amount)


def flags(changes: Data | None) -> str:
    """A change of the plan as the flags that make it, without what it leaves open."""

    flat = {path: name for name, path in ALL_PATHS.items()}
    told: list[str] = []
    for key, item in (changes or {}).items():
        shown = json.dumps(item) if isinstance(item, bool | dict | list) else value(item)
        if item is not None:
            told.append(f"{flag_of(flat[key])} {shown}" if key in flat else f"--set {key}={shown}")
    return " ".join(told)
