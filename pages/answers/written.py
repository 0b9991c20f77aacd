"""What else one tool alone answers: explanations, reports, and rows of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pages import units
from pages.answers.markdown import bullets

if TYPE_CHECKING:
    from pages.report.report import WrittenReport
    from planner.explain.results import Explanation
    from planner.records.catalogue import AddedRow
    from planner.records.scenarios import RenderedScenario


def explanation(figure: Explanation) -> list[str]:
    return [figure.text]


def report(page: WrittenReport) -> list[str]:
    lines = [f"`{file.path}` ({units.size(file.bytes)})" for file in page.files]
    return [f"**The report is written**: {page.title}.", page.verdict, *bullets("", lines)]


def row(added: AddedRow | RenderedScenario) -> list[str]:
    return ["Done.", *bullets("", [f"`{file.path}`" for file in added.files])]
