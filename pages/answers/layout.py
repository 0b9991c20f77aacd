"""How a plan is split over its devices, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from estimator.plan.schema import Training
from pages import figures
from pages.answers.markdown import bullets, table
from pages.answers.plan import complete, layout_words, replica_words

if TYPE_CHECKING:
    from planner.results import BestParallelism, LayoutChoice, TrainingEstimate
    from planner.serving.results import ServingEstimate

_MOST_RIVALS = 4
_MOST_REJECTED, _MOST_REJECTED_ASKED = 3, 6


def training(estimate: TrainingEstimate) -> str:
    plan = complete(estimate.plan)
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout** (as given)"
    framework = plan.workload.framework if isinstance(plan.workload, Training) else ""
    return " ".join([f"{head}, {framework}: {layout_words(plan)}.", *(estimate.why if estimate.layout_chosen else [])])


def serving(estimate: ServingEstimate) -> str:
    head = "**Layout** (chosen by search)" if estimate.layout_chosen else "**Layout**"
    words = replica_words(complete(estimate.plan), estimate.replicas)
    return " ".join([f"{head}: {words}.", *(estimate.why if estimate.layout_chosen else [])])


def best(search: BestParallelism, why: bool) -> list[str]:
    """The best layout with its rivals, and why those lost."""
    words = layout_words(complete(search.plan))
    blocks = [f"**Best layout**, {search.best.framework}: {words}. {' '.join(search.why)}"]
    rivals = [search.best, *search.alternatives][:_MOST_RIVALS]
    if len(rivals) > 1:
        rows = [(row.summary, row.step_s, row.tokens_per_s, row.mfu, row.per_device_bytes) for row in rivals]
        blocks.append(table(("Layout", "step", "tokens/s", "MFU", "per device"), rows))
    shown = search.rejected[: _MOST_REJECTED_ASKED if why else _MOST_REJECTED]
    return [*blocks, *bullets("Not taken:", [f"{row.summary}: {row.rule}" for row in shown])]


def there(plan: Mapping[str, Any], chosen: LayoutChoice) -> str:
    """The layout at a limit, with its speed."""
    return (
        f"**Layout** there, {chosen.framework}: {layout_words(complete(plan))}. A step takes about "
        f"{figures.seconds(chosen.step_s)}, {figures.rate(chosen.tokens_per_s)} tokens/s at "
        f"{figures.percent(chosen.mfu)} MFU."
    )
