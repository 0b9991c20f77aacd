"""Scenario tools: plans kept by name, listed, loaded, compared and deleted."""

from __future__ import annotations

import datetime
import json
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import find_architecture
from knowledge.own.files import parsed, remove_file, scenario_folder, write_file, written_at
from knowledge.scenarios import StoredScenario, find_scenario, own_path, scenarios
from planner.asked.scenarios import (
    DeleteRequest,
    DiffRequest,
    ListRequest,
    LoadRequest,
    RenderScenarioRequest,
    SaveRequest,
)
from planner.fields import leaves
from planner.records.figures import FigureChange, PlanFigures, changes, estimated, in_words
from planner.result import Assumption, Evidence, Result

_MOST_PROBLEMS = 50
_MOST_ESTIMATED = 50


class ScenarioFile(Result):
    path: str
    text: str


class StoredFile(Result):
    path: str
    bytes: int


class RenderedScenario(Result):
    name: str
    folder: str
    files: list[ScenarioFile]
    plan: dict[str, Any] = Field(description="What was given; the rest is chosen anew whenever it is used.")
    figures: PlanFigures
    assumptions: list[Assumption]
    warnings: list[str]


class SavedScenario(Result):
    name: str
    folder: str
    files: list[StoredFile]
    plan: dict[str, Any]
    figures: PlanFigures
    assumptions: list[Assumption]
    warnings: list[str]


def _plan_of(request: RenderScenarioRequest | SaveRequest) -> Plan:
    """The plan to keep, under its name. Raises PlanError."""
    if request.text is not None:
        if request.plan is not None:
            raise PlanError("text", "and plan are both given: one plan is kept under a name")
        data = parsed(request.text, "text")
        if not isinstance(data, dict):
            raise PlanError("text", "must be a plan as YAML or JSON with at least a model", ["model: gpt2"])
        request = request.model_copy(update={"plan": data})
    plan = request.to_plan()
    if not plan.name:
        raise PlanError("name", "is required: what the scenario is called", ["e.g. llama-70b-128-gpus"])
    return plan


def _rendered(plan: Plan, style: str) -> RenderedScenario:
    assert plan.name
    path = own_path(plan.name)
    estimate = estimated(plan)
    if style == "json":
        path, text = path.with_suffix(".json"), json.dumps(plan.given(), indent=2) + "\n"
    else:
        day = datetime.date.today().isoformat()
        lines = [f"Shardwise scenario, saved {day}. Figures at that time:", *in_words(estimate)]
        # A line of a remark holds nothing that would end it.
        remarks = ("".join(letter if letter.isprintable() else " " for letter in line) for line in lines)
        text = "".join(f"# {line}\n" for line in remarks) + plan.to_yaml()
    return RenderedScenario(
        name=path.stem,
        folder=str(path.parent),
        files=[ScenarioFile(path=path.name, text=text)],
        plan=plan.given(),
        figures=estimate.figures,
        assumptions=estimate.assumptions,
        warnings=estimate.warnings,
    )


def render_scenario(request: RenderScenarioRequest) -> RenderedScenario:
    """Show a plan as a scenario file."""
    return _rendered(_plan_of(request), request.format)


def save_scenario(request: SaveRequest) -> SavedScenario:
    """Save a scenario."""
    rendered = _rendered(_plan_of(request), "yaml")
    path, text = scenario_folder() / rendered.files[0].path, rendered.files[0].text
    # A file that was put there under the other ending has the same name.
    same = [each.path for each in scenarios() if each.name == rendered.name and each.path.parent == path.parent]
    other = next((there for there in same if there != path), None)
    if other and not request.overwrite:
        raise PlanError("name", f"{other} is there already; say overwrite to replace it")
    write_file(path, text, request.overwrite, "name")
    if other:
        remove_file(other, "name")
    return SavedScenario(
        name=rendered.name,
        folder=rendered.folder,
        files=[StoredFile(path=path.name, bytes=len(text.encode()))],
        plan=rendered.plan,
        figures=rendered.figures,
        assumptions=rendered.assumptions,
        warnings=rendered.warnings,
    )


class ScenarioRow(Result):
    name: str
    title: str | None = Field(description="The plan's own name.")
    model: str
    kind: str = Field(description="training or inference.")
    what: str = Field(description="Stage and method, or engine and format.")
    accelerator: str | None
    count: int | None
    read_only: bool = Field(description="A ready example.")
    saved: str | None = Field(description="When; null for an example.")
    figures: PlanFigures | None


class Unreadable(Result):
    path: str
    problem: str


class ScenarioList(Result):
    folder: str
    scenarios: list[ScenarioRow]
    left_out: list[Unreadable] = Field(description="Files that hold no valid plan, and why.")
    warnings: list[str]


def list_scenarios(request: ListRequest) -> ScenarioList:
    """List scenarios."""
    rows: list[ScenarioRow] = []
    left_out: list[Unreadable] = []
    warnings: list[str] = []
    words = (request.query or "").casefold().split()
    for scenario in scenarios():
        try:
            plan = Plan.parse(scenario.data())
        except PlanError as error:
            if all(word in scenario.name for word in words):
                left_out.append(Unreadable(path=str(scenario.path), problem=str(error)))
            continue
        if (row := _row(scenario, plan)) is None:
            continue
        if all(word in f"{row.name} {row.title} {row.model} {row.what} {row.accelerator}".casefold() for word in words):
            if request.figures and len(rows) < _MOST_ESTIMATED:
                row.figures = estimated(plan).figures
            rows.append(row)
    if request.figures and len(rows) > _MOST_ESTIMATED:
        warnings.append(f"only the first {_MOST_ESTIMATED} of {len(rows)} have figures; narrow the query")
    return ScenarioList(folder=str(scenario_folder()), scenarios=rows, left_out=left_out, warnings=warnings)


def _row(scenario: StoredScenario, plan: Plan) -> ScenarioRow | None:
    """None where the file is gone by now."""
    workload = plan.workload
    if workload.kind == "training":
        what = f"{workload.stage} {workload.method}"
    else:
        what = f"{workload.engine} {workload.weight_dtype}"
    if (written := written_at(scenario.path)) is None:
        return None
    moment = datetime.datetime.fromtimestamp(written, datetime.UTC)
    model = plan.model if isinstance(plan.model, str) else str(plan.model.get("name") or "inline model")
    return ScenarioRow(
        name=scenario.name,
        title=plan.name,
        model=model,
        kind=workload.kind,
        what=what,
        accelerator=plan.cluster.accelerator,
        count=plan.cluster.count,
        read_only=scenario.read_only,
        saved=None if scenario.read_only else moment.isoformat(timespec="seconds"),
        figures=None,
    )


class LoadedScenario(Result):
    name: str
    read_only: bool
    plan: dict[str, Any] = Field(description="What it says, as far as it is valid.")
    notes: list[str] = Field(description="What of it is not valid (and left out of plan), or not known any more.")
    folder: str
    files: list[ScenarioFile]


def load_scenario(request: LoadRequest) -> LoadedScenario:
    """Load a scenario."""
    scenario = find_scenario(request.name)
    plan, notes = _valid_part(scenario)
    file = ScenarioFile(path=scenario.path.name, text=scenario.text)
    if request.format == "json":
        file = ScenarioFile(path=f"{scenario.name}.json", text=json.dumps(plan, indent=2) + "\n")
    return LoadedScenario(
        name=scenario.name,
        read_only=scenario.read_only,
        plan=plan,
        notes=notes,
        folder=str(scenario.path.parent),
        files=[file],
    )


def _valid_part(scenario: StoredScenario) -> tuple[dict[str, Any], list[str]]:
    """The plan of a scenario without what is not valid, and what that was. Raises PlanError where nothing is left."""
    data, notes = scenario.data(), list[str]()
    for _ in range(_MOST_PROBLEMS):
        try:
            plan = Plan.parse(data)
            break
        except PlanError as error:
            changed = _without(data, error.field.split("."))
            if changed == data or "model" not in changed:
                raise PlanError("name", f"the scenario {scenario.name} holds no valid plan: {error}") from None
            data = changed
            notes.append(f"left out: {error}")
    else:
        raise PlanError("name", f"the scenario {scenario.name} has more than {_MOST_PROBLEMS} problems")
    try:
        find_architecture(plan.model)
        if plan.cluster.accelerator is not None:
            find_accelerator(plan.cluster.accelerator)
    except PlanError as error:
        notes.append(f"not known here: {error}")
    return plan.given(), notes


def _without(data: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """A copy without the field that `path` leads to; the whole section where it is no mapping."""
    head, *rest = path
    inner = data.get(head)
    if rest and isinstance(inner, dict) and rest[0] in inner:
        return data | {head: _without(inner, rest)}
    return {key: value for key, value in data.items() if key != head}


class DeletedScenario(Result):
    name: str
    folder: str
    files: list[StoredFile]


def delete_scenario(request: DeleteRequest) -> DeletedScenario:
    """Delete a scenario."""
    scenario = find_scenario(request.name)
    if scenario.read_only:
        raise PlanError("name", f"{scenario.name} is a ready example, which stays as it is")
    size = len(scenario.text.encode())
    remove_file(scenario.path, "name")
    return DeletedScenario(
        name=scenario.name, folder=str(scenario.path.parent), files=[StoredFile(path=scenario.path.name, bytes=size)]
    )


class FieldChange(Result):
    field: str
    a: Any = Field(description="Null: left open.")
    b: Any


class Side(Result):
    name: str | None
    plan: dict[str, Any] | None = Field(description="The complete plan; null where it cannot be estimated.")
    figures: PlanFigures
    assumptions: list[Assumption]
    warnings: list[str]
    evidence: list[Evidence]


class ScenarioDiff(Result):
    same: bool = Field(description="The two complete plans are the same.")
    given: list[FieldChange] = Field(description="Fields that were given differently.")
    complete: list[FieldChange] = Field(description="Fields that differ once all is chosen, given ones too.")
    figures: list[FigureChange]
    a: Side
    b: Side
    warnings: list[str]


def diff_scenarios(request: DiffRequest) -> ScenarioDiff:
    """Compare two scenarios field by field."""
    (name_a, plan_a), (name_b, plan_b) = (_named(request.a, "a"), _named(request.b, "b"))
    a, b = estimated(plan_a), estimated(plan_b)
    sides = [
        Side(
            name=name,
            plan=side.plan,
            figures=side.figures,
            assumptions=side.assumptions,
            warnings=side.warnings,
            evidence=side.evidence,
        )
        for name, side in ((name_a, a), (name_b, b))
    ]
    complete = _differences(a.plan or plan_a.given(), b.plan or plan_b.given())
    warnings = [
        f"{name} is not estimated: {side_estimate.figures.problem}"
        for name, side_estimate in (("a", a), ("b", b))
        if not side_estimate.plan
    ]
    if plan_a.workload.kind != plan_b.workload.kind:
        warnings.append("one plan is for training and the other for serving: few figures can be compared")
    return ScenarioDiff(
        same=not complete,
        given=_differences(plan_a.given(), plan_b.given()),
        complete=complete,
        figures=changes(a.figures, b.figures),
        a=sides[0],
        b=sides[1],
        warnings=warnings,
    )


def _named(side: str | dict[str, Any], field: str) -> tuple[str | None, Plan]:
    """(Name, plan) of a side."""
    scenario = find_scenario(side, field) if isinstance(side, str) else None
    try:
        plan = Plan.parse(scenario.data(field) if scenario else side)  # pyright: ignore[reportArgumentType]
    except PlanError as error:
        raise PlanError(f"{field}.{error.field}", error.problem, error.valid) from None
    return (scenario.name if scenario else plan.name), plan


def _differences(a: dict[str, Any], b: dict[str, Any]) -> list[FieldChange]:
    """Fields of two plans with different values; the plans' names aside."""
    first, second = dict(leaves(a)), dict(leaves(b))
    fields = [name for name in dict.fromkeys([*first, *second]) if name != "name"]
    return [
        FieldChange(field=name, a=first.get(name), b=second.get(name))
        for name in fields
        if first.get(name) != second.get(name)
    ]
