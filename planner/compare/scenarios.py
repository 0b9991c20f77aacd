"""compare: scenarios side by side, each estimated as a plan of its own, with what tells them apart."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pydantic import Field

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Inference, Plan, merge
from knowledge import figures
from planner.asked.scenarios import CompareRequest, Scenario, changes_of
from planner.compare.alike import are_adapters, as_the_first
from planner.compare.differences import Setting, conclusions, leader, plots_of, relate, settings, winners
from planner.compare.rows import ComparedServing, ComparedTraining, old_of, serving_figures, training_figures
from planner.compare.sweep.grid import FOLLOWS
from planner.compare.values import Values, path_of, value_of, values_of
from planner.estimates import PlanEstimate, common_assumptions, estimate_plan, warning_kinds_of, warnings_of
from planner.evidence import union_evidence
from planner.fields import value_at
from planner.layouts.strategies import Platform, strategic, strategy_name
from planner.plots import Plot
from planner.requests import ALL_PATHS, EitherRequest
from planner.result import Assumption, Evidence, Warned
from planner.serving.planned import Served
from planner.training.planned import Planned, plan_training

MOST_ROWS = 64
# Clients and a rate stand for each other.
_FOLLOWS = FOLLOWS | {
    "workload.concurrency": ("workload.request_rate",),
    "workload.request_rate": ("workload.concurrency",),
}
_STRATEGY = "strategy"


class Comparison(Warned):
    plan: dict[str, Any] | None = Field(description="The complete plan of the baseline.")
    kind: str = Field(description="training or inference.")
    rows: Sequence[ComparedTraining | ComparedServing]
    baseline: str | None = Field(description="Name of the row that others are set against.")
    differences: list[Setting] = Field(description="Settings in which the plans differ, chosen ones included.")
    conclusions: list[str] = Field(description="The differences that matter, and what they come from.")
    best: dict[str, str | None] = Field(
        description="Names of the best by time, cost and memory, of serving by throughput too, among those that fit."
    )
    assumptions: list[Assumption] = Field(description="What was assumed alike for all.")
    plots: list[Plot]
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]

    @property
    def leader(self) -> str | None:
        """Name of the fastest; None where none is."""
        return leader(self.rows, self.best)


@dataclass(frozen=True)
class ScenarioOutcome:
    """A scenario and what became of it: an estimate, or why there is none. `notes` say what was done to its plan."""

    name: str
    estimate: PlanEstimate | None
    error: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _NamedPlan:
    """A scenario before it is estimated. `plan` is None where the scenario is no plan, and `error` says why."""

    name: str
    plan: Plan | None
    strategy: str | None = None
    error: str | None = None
    notes: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Dotted paths and values of what it changes in the base, which its name has in words."""


def compare(request: CompareRequest) -> Comparison:
    """Compare scenarios."""
    started = time.perf_counter()
    plans = _plans(request)
    serving = _serves(plans)
    platforms: dict[str, Platform] = {}
    entries: list[ScenarioOutcome] = []
    first: tuple[Planned, Plan] | None = None
    for named in plans:
        entry = _alike(first, named) or _estimated(named, request.usd_per_device_hour, platforms)
        if first is None and named.plan and not named.strategy and isinstance(entry.estimate, Planned):
            first = entry.estimate, named.plan
        entries.append(entry)
    rows: list[ComparedTraining | ComparedServing] = []
    for place, entry in enumerate(_with_room_for_all(plans, entries)):
        try:
            row = _row(entry, serving, request.usd_per_device_hour)
        except PlanError as error:
            entry = ScenarioOutcome(entry.name, None, " ".join(str(error).split()), entry.notes)
            row = _row(entry, serving, request.usd_per_device_hour)
        entries[place] = entry
        rows.append(row)
    base = _baseline(request, plans, rows)
    estimates = [entry.estimate for entry in entries]
    relate(rows, estimates, base)
    able = [estimate for estimate in estimates if estimate]
    best, warnings = winners(rows), _warnings(entries)
    return Comparison(
        plan=None if base is None else rows[base].plan,
        kind="inference" if serving else "training",
        rows=rows,
        baseline=None if base is None else rows[base].name,
        differences=settings(rows, estimates),
        conclusions=conclusions(rows, estimates, base, best),
        best=best,
        assumptions=common_assumptions(able),
        plots=plots_of(rows, estimates),
        seconds=time.perf_counter() - started,
        warnings=[*warnings, *old_of(rows)],
        warning_kinds={text: kind for text, kind in warnings.items() if kind},
        evidence=union_evidence(estimate.job for estimate in able),
    )


def _plans(request: CompareRequest) -> list[_NamedPlan]:
    """The base where it is a row, the scenarios, and those of `over`; names are made distinct."""
    base = request.base()
    plans = [_scenario(scenario, base) for scenario in request.scenarios or ()]
    grid = _grid(request.over)
    if len(plans) + len(grid) > MOST_ROWS:
        number = len(plans) + len(grid)
        raise PlanError("scenarios", f"{number} scenarios are more than are compared", [f"up to {MOST_ROWS}"])
    plans += [_scenario(scenario, base) for scenario in grid]
    if first := _base_row(request, base, plans):
        plans.insert(0, first)
    if not plans:
        raise PlanError("scenarios", "is required: what to compare", ['over={"method": ["full", "lora"]}'])
    return list(_distinct(plans))


def _grid(over: Mapping[str, Values] | None) -> list[Scenario]:
    """Every combination of the values of `over`, the last field innermost. Raises PlanError for what cannot be."""
    if over is None:
        return []
    if not 1 <= len(over) <= 2:
        raise PlanError("over", f"has {len(over)} fields; give one or two", ['{"method": ["full", "lora"]}'])
    axes = {}
    for name, values in over.items():
        path = _STRATEGY if name.strip().lower() == _STRATEGY else path_of(name, "over")
        if path in axes:
            raise PlanError("over", f"{path} stands there twice", ["one of them"])
        axes[path] = values_of(values, f"over.{name}")
    if math.prod(map(len, axes.values())) > MOST_ROWS:
        raise PlanError("over", "has more combinations than are compared", [f"up to {MOST_ROWS}"])
    return [
        Scenario(
            name=", ".join(_in_words(path, value) for path, value in zip(axes, values, strict=True)),
            patch={path: value for path, value in zip(axes, values, strict=True) if path != _STRATEGY},
            strategy=next((str(v) for path, v in zip(axes, values, strict=True) if path == _STRATEGY), None),
        )
        for values in product(*axes.values())
    ]


def _in_words(path: str, value: Any) -> str:
    """'lora' for a word, 'tp 4' for a number, '500M tokens' for the data, 'without fused loss' for a switch."""
    name = path.rpartition(".")[2]
    if isinstance(value, str) and name not in ("recompute", "offload", "interconnect"):
        return value
    words = name.replace("_", " ")
    if isinstance(value, Mapping):
        return str(value.get("_name_or_path") or value.get("name") or f"{words} of its own")
    if isinstance(value, bool):
        return f"{'with' if value else 'without'} {words}"
    if path == "cluster.count" and isinstance(value, int):
        return f"{value:,} device{'s' * (value != 1)}"
    if name == "zero_stage" and value is not None:
        return f"ZeRO-{value}"
    if isinstance(value, int | float):
        if name == "dataset_tokens":
            return f"{figures.count(value)} tokens"
        return f"{words} {figures.count(value) if abs(value) >= 1e6 else f'{value:g}'}"
    return f"{words} {'open' if value is None else value}"


def _scenario(scenario: Scenario, base: Mapping[str, Any]) -> _NamedPlan:
    changes = changes_of(scenario)
    strategy = scenario.strategy
    if _STRATEGY in changes:
        strategy = str(changes.pop(_STRATEGY))
    name = scenario.name or ""
    try:
        if scenario.plan is not None:
            if changes:
                raise PlanError(
                    "scenarios", "a scenario is a plan, or changes to the base: not both", ["plan", "patch"]
                )
            plan = EitherRequest(plan=scenario.plan).to_plan()
            return _NamedPlan(name or plan.name or _called(plan), plan, strategy)
        leaves = dict(_plan_leaves(changes))
        name = name or ", ".join(_in_words(path, value) for path, value in leaves.items()) or strategy or "base"
        data, notes = merge(base, leaves), []
        for path in dict.fromkeys(path for changed in leaves for path in _FOLLOWS.get(changed, ())):
            if path not in leaves and (value_there := value_at(data, path)) is not None:
                data = merge(data, {path: None})
                notes.append(
                    f"{name}: {path} {value_there} of the base follows from what is changed, so it is chosen anew"
                )
        if scenario.name is None and strategy and leaves:
            name = f"{name}, {strategy}"
        plan = EitherRequest(plan=data).to_plan()
    except PlanError as error:
        return _NamedPlan(name or "scenario", None, error=" ".join(str(error).split()))
    fields = leaves | ({_STRATEGY: strategy} if strategy else {})
    return _NamedPlan(name, plan, strategy, notes=tuple(notes), fields=fields)


def _plan_leaves(changes: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted Plan paths and values of changes by flat, dotted or nested names. Raises PlanError for unknown names."""
    for key, value in changes.items():
        name = f"{section}.{key}" if section else str(key)
        head = name.partition(".")[0]
        if head in ("workload", "cluster", "layout", "goal", "overrides"):
            if isinstance(value, Mapping):
                yield from _plan_leaves(value, name)
            else:
                yield name, value
        elif head == "model":
            yield name, value
        else:
            flat = name.strip().replace("-", "_")
            if flat not in ALL_PATHS:
                raise PlanError(f"scenarios.{name}", "is no field of a plan", nearest(flat, ALL_PATHS))
            if isinstance(value, Mapping):
                yield from _plan_leaves(value, ALL_PATHS[flat])
            else:
                yield ALL_PATHS[flat], value


def _called(plan: Plan) -> str:
    model = plan.model if isinstance(plan.model, str) else "inline model"
    return f"{model} on {plan.cluster.count or 1} x {plan.cluster.accelerator or 'unnamed'}"


def _base_row(request: CompareRequest, base: Mapping[str, Any], plans: Sequence[_NamedPlan]) -> _NamedPlan | None:
    """The base as a row: where that is asked for, or where it names model and accelerator, scenarios vary it, and none
    of them is the same."""
    if request.include_base is False:
        return None
    if request.include_base is None:
        scenarios = request.scenarios or []
        varied = not request.over and (len(scenarios) == 1 or any(named.plan is None for named in scenarios))
        whole = base.get("model") is not None and value_at(base, "cluster.accelerator") is not None
        if not (varied and whole):
            return None
    plan = EitherRequest(plan=dict(base)).to_plan()
    if request.include_base is None and any(
        named.plan and not named.strategy and named.plan.given() == plan.given() for named in plans
    ):
        return None
    return _NamedPlan(plan.name or "base", plan)


def _distinct(plans: Sequence[_NamedPlan]) -> Iterator[_NamedPlan]:
    """A name that is there already gets a number."""
    seen: set[str] = set()
    for named in plans:
        name, number = named.name[:120], 2
        while name in seen:
            name, number = f"{named.name[:120]} ({number})", number + 1
        seen.add(name)
        yield replace(named, name=name)


def _serves(plans: Sequence[_NamedPlan]) -> bool:
    """Whether the scenarios are of serving. Raises PlanError where they are mixed: nothing of one is in the other."""
    kinds = {isinstance(named.plan.workload, Inference) for named in plans if named.plan}
    if len(kinds) > 1:
        problem = "some are for training and some for serving, which have no figure in common"
        raise PlanError("scenarios", problem, ["all for training", "all for serving"])
    return True in kinds


def _estimated(named: _NamedPlan, own_usd: float | None, platforms: dict[str, Platform]) -> ScenarioOutcome:
    """`platforms` keeps what strategies choose from, so that several of them for one plan search once."""
    plan, strategy = named.plan, named.strategy
    if plan is None:
        return ScenarioOutcome(named.name, None, named.error)
    try:
        if strategy is None:
            estimate = estimate_plan(plan, own_usd)
        elif isinstance(plan.workload, Inference):
            raise PlanError("strategy", "is of training; serving layouts are ranked by the goal", ["objective"])
        else:
            estimate = strategic(plan, strategy_name(strategy), platforms)
    except PlanError as error:
        return ScenarioOutcome(named.name, None, " ".join(str(error).split()), named.notes)
    return ScenarioOutcome(named.name, estimate, None, named.notes)


def _alike(first: tuple[Planned, Plan] | None, named: _NamedPlan) -> ScenarioOutcome | None:
    """The scenario with what it leaves open as the first has it; None where that is another run, or has no room."""
    for plan in as_the_first(*first, named.plan) if first and named.plan and not named.strategy else ():
        try:
            estimate = plan_training(plan)
        except PlanError:
            continue
        if estimate.fits:
            return ScenarioOutcome(named.name, estimate, None, named.notes)
    return None


def _with_room_for_all(plans: Sequence[_NamedPlan], entries: Sequence[ScenarioOutcome]) -> Sequence[ScenarioOutcome]:
    """The scenarios; of ways of training adapters as one of them runs that has room for all, where they run otherwise:
    QLoRA, too, with the chunked loss that LoRA needs."""
    runs = [entry.estimate for entry in entries if isinstance(entry.estimate, Planned)]
    if len(runs) < len(plans) or not are_adapters([named.plan for named in plans]) or _are_alike(runs):
        return entries
    for named, own, run in zip(plans, entries, runs, strict=True):
        alike = [own if other is named else _alike((run, named.plan), other) for other in plans] if named.plan else []
        planned = [entry.estimate for entry in alike if entry and isinstance(entry.estimate, Planned)]
        if len(planned) == len(plans) and _are_alike(planned):
            return [entry for entry in alike if entry]
    return entries


def _are_alike(runs: Sequence[Planned]) -> bool:
    """Whether runs are split alike, with the same micro-batch and loss."""
    first, *others = ((run.plan.layout, run.plan.training.micro_batch, run.job.fused_loss) for run in runs)
    return all(other == first for other in others)


def _row(entry: ScenarioOutcome, serving: bool, own_usd: float | None) -> ComparedTraining | ComparedServing:
    estimate = entry.estimate
    if estimate is None:
        return (ComparedServing if serving else ComparedTraining)(name=entry.name, error=entry.error)
    plan = estimate.complete_plan
    if isinstance(estimate, Served):
        return ComparedServing(name=entry.name, plan=plan, **dict(serving_figures(estimate)))
    return ComparedTraining(name=entry.name, plan=plan, **dict(training_figures(estimate, own_usd)))


def _baseline(
    request: CompareRequest, plans: Sequence[_NamedPlan], rows: Sequence[ComparedTraining | ComparedServing]
) -> int | None:
    """The row named by the request, else the first with an estimate. Raises PlanError for a row that is not there."""
    baseline, names = request.baseline, [row.name for row in rows]
    if baseline is None:
        return next((place for place, row in enumerate(rows) if row.error is None), None)
    if baseline in names:
        return names.index(str(baseline))
    place = int(baseline) if str(baseline).strip().isdecimal() and len(str(baseline)) < 6 else None
    if place is not None and place < len(rows):
        return place
    place = _as_spelled(str(baseline), plans, request.base())
    if place is not None:
        return place
    raise PlanError(
        "baseline", f"there is no row {baseline!r}", [*nearest(str(baseline), names), f"0..{len(rows) - 1}"]
    )


def _as_spelled(text: str, plans: Sequence[_NamedPlan], base: Mapping[str, Any]) -> int | None:
    """The row whose plan is the base with what the text says: 'compile=true', 'ZeRO-2, seq_len 8k'. Parts between
    commas are fields with their values, or what rows are named by."""
    named = {_folded(_in_words(*item)): item for row in plans for item in row.fields.items()}
    changes: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = re.sub(r"[=:\s]+", " ", part.strip()).rpartition(" ")
        try:
            path, value = named.get(_folded(part)) or (path_of(_folded(name, "_"), "baseline"), value_of(value))
        except PlanError:
            return None
        changes[path] = value
    sought = _scenario(Scenario(patch=changes), base)
    if sought.plan is None:
        return None
    wanted = sought.plan.given(), sought.strategy
    return next((at for at, row in enumerate(plans) if row.plan and (row.plan.given(), row.strategy) == wanted), None)


def _folded(text: str, between: str = " ") -> str:
    return between.join(re.split(r"[\s_=:-]+", text.strip().lower()))


def _warnings(entries: Sequence[ScenarioOutcome]) -> dict[str, str]:
    """Warnings with the names of the rows that they are of, and what was done to plans; each with its kind, or ''."""
    names: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    for entry in entries:
        for text in warnings_of(entry.estimate) if entry.estimate else ():
            names.setdefault(text, []).append(entry.name)
        kinds |= warning_kinds_of(entry.estimate) if entry.estimate else {}
    able = sum(1 for entry in entries if entry.estimate)
    # A text that names the one row that it is of needs no other name.
    alone = [text for text, of in names.items() if len(of) == able or (len(of) == 1 and of[0] in text)]
    told = {text if text in alone else f"{' / '.join(of)}: {text}": kinds.get(text, "") for text, of in names.items()}
    return told | {note: "" for entry in entries for note in entry.notes}
