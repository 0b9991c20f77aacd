"""A result's page as a command prints it: what was asked for in a few lines, and all else folded behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from pages.answers import choice, clusters, comparison, lead, limit
from pages.answers.serving import verdict
from pages.blocks import Block, Brief, Chart, Figures, Folded, Headline, Note, Table
from pages.results import deciding, money
from pages.results.advice import gain_words
from pages.results.columns import listed
from pages.results.estimate import ROOM, fit_verdict, remedies
from pages.results.of_results import blocks_of
from pages.results.plan import flags
from planner.result import Assumption
from planner.results import FitCheck, TrainingEstimate
from planner.serving.results import ServingEstimate

if TYPE_CHECKING:  # has all that can be estimated behind it
    from planner.advice.advise import Advice

# Results whose page is long; the others are what was asked for from their first line to their last.
_LONG = ("BestParallelism", "BestServing", "Limit", "SizedServing", "MlperfProjection", "CostEstimate",
         "RecommendedCluster", "AutoConfigured", "Comparison", "Sweep", "ScalingProjection", "AppliedStrategies",
         "PeakThroughput")  # fmt: skip
# Results whose first line is that of an answer in a conversation.
_HEADS: Mapping[str, Callable[[Any], list[Block]]] = {
    "Limit": limit.answer, "SizedServing": choice.size, "RecommendedCluster": clusters.recommended,
    "AutoConfigured": clusters.configured, "Comparison": comparison.headed,
}  # fmt: skip
# Tables that a page has only where they were asked for, or nothing keeps to the limits.
_ASKED = (money.CHEAPER, money.FASTER, money.BOUGHT, money.OWN_OR_RENT, money.NEAREST)
# Notes whose first sentence belongs to the verdict, and tables that are how a figure is made.
_REASONS, _BEHIND = ("Why", "Why not more", "What matters"), ("Breakdown", "Decisions")
_MOST_ROWS, _MOST_FIGURES, _MOST_WARNINGS, _MOST_REMEDIES, _MOST_TIPS = 8, 6, 2, 3, 3


def page_of(result: BaseModel, width: int) -> list[Block]:
    """The lead within a few lines that are no wider than `width`, then everything as a fold."""
    blocks = blocks_of(result)
    rest = [block for block in blocks if not isinstance(block, Headline | Chart)]
    charts = [block for block in blocks if isinstance(block, Chart)]
    name = type(result).__name__
    if isinstance(result, TrainingEstimate):
        front = [*lead.training(result, None, None, ()), *_decides(result)]
    elif isinstance(result, ServingEstimate):
        front = [*lead.serving(result, verdict(result, None, ("fit",)), None), *_decides(result)]
    elif isinstance(result, FitCheck):
        front = _in_short(_fit(result, width))
    elif name == "Advice":
        front = _in_short(_advice(result, blocks))  # type: ignore[arg-type]
    elif name in _LONG:
        front = _first(blocks, width)
        if name in _HEADS:
            answer = _HEADS[name](result)[0]
            front = [answer, *(block for block in front if not _is_told(block, answer))]
        front = _in_short(front)
    else:
        return blocks
    return [*front, *_model_taken(result), *charts, Folded(rest)]


def _model_taken(result: BaseModel) -> list[Block]:
    """What a model's name was read as, where it was not the name of one."""
    assumptions: list[Assumption] = getattr(result, "assumptions", [])
    return lead.read_as([item.why for item in assumptions if item.field == "model" and " read as " in item.why])


def _in_short(blocks: Sequence[Block]) -> list[Block]:
    """A verdict, and what the details say in full."""
    return [block if isinstance(block, Headline) else Brief([block]) for block in blocks]


def _is_told(block: Block, head: Block) -> bool:
    """Whether a verdict, or a reason, stands in the first line already."""
    told = head.more if isinstance(head, Headline) else ""
    told_whole = isinstance(block, Note) and all(item.removesuffix(".") in told for item in block.items)
    return isinstance(block, Headline) or told_whole


def _decides(result: TrainingEstimate | ServingEstimate) -> list[Block]:
    return deciding.sentence(result.decides, (), result.memory.fits)


def _fit(check: FitCheck, width: int) -> list[Block]:
    """The verdict, and what the room is good for or what would make it."""
    title = "What would leave more room" if check.fits else "What would make it fit"
    helps = remedies(check.remedies[:_MOST_REMEDIES], title) if check.tight or not check.fits else []
    return [
        fit_verdict(check),
        *listed(check, ROOM, "The most that fits"),
        *(lead.slim(block, _MOST_REMEDIES, width) if isinstance(block, Table) else block for block in helps),
    ]


def _advice(advice: Advice, blocks: Sequence[Block]) -> list[Block]:
    told = [f"{row.title}{gain_words(row)}: {flags(row.patch) or row.source}" for row in advice.entries[:_MOST_TIPS]]
    return [*(block for block in blocks if isinstance(block, Headline)), Note("", told), *_warned(advice.warnings)]


def _warned(warnings: Sequence[str]) -> list[Block]:
    """Those that the verdict has not said."""
    left = [text for text in warnings if not text.startswith("does not fit")]
    return [Note("Watch out", left[:_MOST_WARNINGS])] if left else []


def _first(blocks: Sequence[Block], width: int) -> list[Block]:
    """The verdict, the first reason, figures and table of a page, and its first warnings."""
    front: list[Block] = []
    kinds: set[type] = set()
    for block in blocks:
        match block:
            case Headline():
                front.append(block)
            case Note(title="Watch out"):
                pass  # The verdict says the first of them.
            case Note(title=title, items=items) if title in _REASONS and Note not in kinds:
                front.append(Note("", items[:1]))
                kinds.add(Note)
            case Figures(rows=rows, title=title) if title and Figures not in kinds:
                front.append(replace(block, rows=rows[:_MOST_FIGURES]))
                kinds.add(Figures)
            case Table(title=title) if title in _ASKED:
                front.append(block)
            case Table(title=title) if title not in _BEHIND and Table not in kinds:
                front.append(replace(lead.slim(block, _MOST_ROWS, width), title=""))
                left = len(block.rows) - _MOST_ROWS
                front += [Note("", [f"{left} more row{'s' * (left > 1)} in the details"], True)] if left > 0 else []
                kinds.add(Table)
    return front
