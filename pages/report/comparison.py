"""A report on a comparison, from what the planner says of its scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.blocks import Block, Details, Figures, Folded, Headline
from pages.report.sections import Told, asked, assumptions_section, evidence_section, plan_code
from pages.results.basis import notes
from pages.results.many import charts, differences, side_by_side
from planner.compare.scenarios import CompareRequest, compare


def comparison(arguments: Mapping[str, Any]) -> Told:
    """What the planner says of the scenarios in `arguments`. Raises PlanError as it does."""
    compared = asked(compare, CompareRequest, arguments)
    rows = compared.rows
    fit = sum(row.fits for row in rows)
    best = {goal: name for goal, name in compared.best.items() if name}
    verdict = f"{fit} of {len(rows)} fit"
    if best:
        verdict += "; best by " + ", by ".join(f"{goal}: {name}" for goal, name in best.items())
    differ = differences(compared)
    blocks: list[Block] = [
        Headline(f"{verdict}.", fit > 0),
        *([Figures([(f"best by {goal}", name) for goal, name in best.items()])] if best else []),
        *notes("Watch out", compared.warnings),
        Details("Side by side", [*notes("", compared.conclusions), *charts(compared), *side_by_side(compared)]),
        *([Details("Settings that differ", differ)] if differ else []),
    ]
    appendix: list[Block] = [
        assumptions_section(compared.assumptions),
        evidence_section(compared.evidence),
        *([plan_code(arguments, compared.plan)] if compared.plan else []),
    ]
    names = ", ".join(row.name for row in rows[:4])
    return Told(f"Comparison of {names}{' …' if len(rows) > 4 else ''}", [*blocks, Folded(appendix)])
