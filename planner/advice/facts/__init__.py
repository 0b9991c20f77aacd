"""What is known about an estimated plan, as flat facts by name: what advice is chosen by and its texts are filled from.

Fields of the complete plan go by their Plan paths (layout.tp); options that a plan leaves to its framework are told as
they turn out. Every plan of a kind has the same names; what a plan has no figure for is None.
"""

from __future__ import annotations

from planner.advice.facts.plan import Facts
from planner.advice.facts.serving import serving_facts
from planner.advice.facts.training import training_facts
from planner.estimates import PlanEstimate
from planner.serving.planned import Served


def facts_of(estimate: PlanEstimate) -> Facts:
    return serving_facts(estimate) if isinstance(estimate, Served) else training_facts(estimate)
