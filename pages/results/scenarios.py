"""Pages of saved plans, and of how two differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knowledge import figures
from knowledge.figures import NONE, ratio, shown
from pages.blocks import Block, Headline
from pages.results.basis import notes
from pages.results.columns import Column, table

if TYPE_CHECKING:  # reads the files of saved plans
    from planner.records.figures import FigureChange, PlanFigures
    from planner.records.scenarios import ScenarioDiff, ScenarioList, ScenarioRow


def scenarios(result: ScenarioList) -> list[Block]:
    return [
        *(kept(result.scenarios) or [Headline("No plan is saved.")]),
        *notes("Files that cannot be read", [f"{row.path}: {row.problem}" for row in result.left_out]),
        *notes("Watch out", result.warnings),
    ]


def kept(rows: Sequence[ScenarioRow]) -> list[Block]:
    columns: list[Column] = [
        "name", "model", ("kind", "what"), ("on", machines), "figures.fits",
        (figures.label("tokens_per_s"), lambda row: speed(row.figures)), "figures.hours", "figures.usd",
        ("saved", lambda row: "example" if row.read_only else (row.saved or NONE)[:16]),
    ]  # fmt: skip
    return table(rows, columns)


def machines(row: ScenarioRow) -> str:
    return f"{row.count or '?'} x {row.accelerator}" if row.accelerator else NONE


def speed(row: PlanFigures | None) -> str:
    """Tokens/s of training, or output tokens/s of serving."""
    if row is None:
        return NONE
    key = "tokens_per_s" if row.tokens_per_s is not None else "output_tokens_per_s"
    return shown(key, getattr(row, key))


def diff(result: ScenarioDiff) -> list[Block]:
    fields: list[Column] = ["field", ("A", "a"), ("B", "b")]
    return [
        Headline("The plans are the same." if result.same else f"{len(result.given)} fields differ."),
        *table(result.given, fields, "As given"),
        *table(result.complete, fields, "As completed"),
        *changes(result.figures, "A", "B"),
        *notes("Watch out", result.warnings),
    ]


def changes(rows: Sequence[FigureChange], a: str, b: str) -> list[Block]:
    """What the figures of two plans are."""
    columns: list[Column] = [
        ("figure", lambda row: figures.label(row.figure)), (a, lambda row: shown(row.figure, row.a)),
        (b, lambda row: shown(row.figure, row.b)), ("B / A", _ratio),
    ]  # fmt: skip
    return table(rows, columns, "What that does", names=(a, b))


def _ratio(row: FigureChange) -> str:
    inside = " (within the interval)" if row.within_interval else ""
    return NONE if row.ratio is None else f"{ratio(row.ratio)}{inside}"
