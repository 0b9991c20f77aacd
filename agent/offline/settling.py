"""What stays of a tool's answer for the turns after: a loaded scenario is the plan, recommended clusters are offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent.offline.answers.outcomes import last_answered, result_of
from agent.wire import Outcome
from estimator.plan.schema import merge
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import find_model
from planner.clusters.results import AutoConfigured, ClusterOption, RecommendedCluster
from planner.compare.scenarios import Comparison
from planner.compare.sweep import Sweep
from planner.found import chosen
from planner.partial import get, is_serving
from planner.requests import ALL_PATHS
from planner.results import BestParallelism
from planner.serving.results import BestServing, SizedServing

if TYPE_CHECKING:
    from planner.files.importing import ImportedConfig
    from planner.records.catalogue import AddedRow
    from planner.records.scenarios import LoadedScenario, SavedScenario

_MOST_OFFERS, _MOST_KEPT = 6, 20


def settled(
    plan: dict[str, Any], topic: dict[str, Any], outcomes: list[Outcome]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan and topic after a tool answered alone."""
    outcome = last_answered(outcomes) if outcomes else None
    result: Any = outcome.result if outcome else None
    if outcome is None or result is None:
        return plan, topic
    if isinstance(result, RecommendedCluster | AutoConfigured):
        return plan, topic | _offers(result)
    if isinstance(result, Comparison):
        return plan, topic | _compared(result, outcome.call.arguments)
    plans = ([*topic.get("plans", []), plan] if plan else topic.get("plans", []))[-_MOST_KEPT:]
    afresh = {"plans": plans, "wish": None, "limit": None, "sweep": None, "supposed": None}
    match outcome.call.name:
        case "import_config":
            imported: ImportedConfig = result
            intents = ["time"] if is_serving(imported.plan) else ["fit", "time"]
            # A model that the file only tells the sizes of has no name.
            model = get(imported.plan, "model") or get(imported.complete_plan or {}, "model")
            kind = {"workload": imported.implied.get("workload", {})}
            return merge(merge(kind, imported.plan), {"model": model}), {**topic, **afresh, "intents": intents}
        case "add_model":
            added: AddedRow = result
            return plan, topic | {"spoken": {**topic.get("spoken", {}), "model": [added.id]}}
        case "load_scenario":
            loaded: LoadedScenario = result
            return loaded.plan, {**topic, **afresh, "intents": []}
        case "save_scenario":
            saved: SavedScenario = result
            return plan, {**topic, "saved": [*topic.get("saved", []), saved.name][-_MOST_KEPT:]}
    return plan, topic


def searched(outcomes: list[Outcome]) -> dict[str, Any]:
    """The best layout or deployment that a search found, or the points of a sweep, for what is asked next."""
    if (swept := result_of(outcomes, Sweep)) is not None:
        return _swept(swept)
    kinds = (BestServing, BestParallelism, SizedServing)
    search = next((result for kind in kinds if (result := result_of(outcomes, kind)) is not None), None)
    offer = chosen(search) if search is not None else {}
    return {"offers": [offer], "best": 0, "found": True} if offer else {}


def _compared(result: Comparison, own: Mapping[str, Any]) -> dict[str, Any]:
    """What each option brings, and which of them is the best."""
    fields = {name for scenario in own.get("scenarios") or () for name in scenario} | set(own.get("over") or {})
    paths = [ALL_PATHS[name] for name in fields - {"name", "plan"} if name in ALL_PATHS]
    rows = [row for row in result.rows if row.plan]
    offers = [{path: value for path in paths if (value := get(row.plan or {}, path)) is not None} for row in rows]
    names = [name for name in result.best.values() if name]
    places = {row.name: place for place, row in enumerate(rows)}
    best_by = {figure: places[name] for figure, name in result.best.items() if name in places}
    return {"offers": offers, "best": places.get(next(iter(names), ""), 0), "best_by": best_by | _by_size(offers)}


def _by_size(offers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Which of what was compared is the smallest and which the largest: by what the models hold, else by the memory of
    the devices, else by the only number that they differ in."""
    for size in (_held, _memory, _number):
        told = [size(offer) for offer in offers]
        sizes = [each for each in told if each is not None]
        if len(sizes) == len(offers) and len({*sizes}) > 1:
            return {"smaller": sizes.index(min(sizes)), "larger": sizes.index(max(sizes))}
    return {}


def _held(offer: Mapping[str, Any]) -> float | None:
    """How many parameters an option's model has."""
    match offer:
        case {"model": str(name)}:
            return find_model(name).value.parameters
    return None


def _memory(offer: Mapping[str, Any]) -> float | None:
    """How much memory an option's devices have, in bytes (of one device where no number is told)."""
    match {"cluster.count": 1, **offer}:
        case {"cluster.accelerator": str(name), "cluster.count": int(count)}:
            return find_accelerator(name).value.memory_bytes * count
    return None


def _number(offer: Mapping[str, Any]) -> float | None:
    (value, *more) = offer.values() or (None,)
    return float(value) if not more and isinstance(value, int | float) else None


def _swept(result: Sweep) -> dict[str, Any]:
    """The points of a sweep that fit, and which of them is the best."""
    points = [point for point in result.points if point.fits]
    if result.best is None:
        return {}
    figures = {"time": "step_s", "memory": "high_bytes", "cost": "usd_per_million_tokens"}
    told = {name: [getattr(point, figure, None) for point in points] for name, figure in figures.items()}
    offers = [dict(point.values) for point in points]
    return {"offers": offers, "best": points.index(result.best), "best_by": _least_of(told)}


def _offers(result: RecommendedCluster | AutoConfigured) -> dict[str, Any]:
    """What recommended clusters give the plan when the next question takes one up; the first unless it says which."""
    if isinstance(result, RecommendedCluster):
        options = result.options[:_MOST_OFFERS]
        told = {"time": [option.hours for option in options], "cost": [option.usd for option in options]}
        return {"offers": [_offer(option, None) for option in options], "best": 0, "best_by": _least_of(told)}
    return {"offers": [_offer(result.option, result.plan)] if result.option else [], "best": 0}


def _least_of(told: Mapping[str, Sequence[float | None]]) -> dict[str, int]:
    """Which of some choices has the least of each figure, as far as all of them tell it."""
    known = {name: [value for value in values if value is not None] for name, values in told.items()}
    return {
        name: values.index(min(values)) for name, values in known.items() if values and len(values) == len(told[name])
    }


def _offer(option: ClusterOption, plan: Mapping[str, Any] | None) -> dict[str, Any]:
    method = get(plan or {}, "workload.method")
    offer = {"cluster.accelerator": option.accelerator, "cluster.count": option.count}
    offer |= {"workload.framework": option.framework} if option.framework else {}
    # The next answer tells the price that was told of it.
    offer |= {"goal.provider": option.provider} if option.provider else {}
    usual = min(find_accelerator(option.accelerator).value.per_node, option.count)
    offer |= {"cluster.per_node": option.per_node} if option.per_node != usual else {}
    return offer | ({"workload.method": method} if method else {})
