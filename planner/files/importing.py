"""import_config: from files that others wrote to the Plan that they run, and what is estimated of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan, merge
from knowledge.models.catalogue import architecture, find_model
from launchers.reading.findings import FACTS, nested
from launchers.reading.result import FilesReading
from launchers.reading.sets import read
from planner.fit.serving import headroom
from planner.money.offers import cheapest, offers
from planner.requests import EitherRequest
from planner.result import Assumption, Result
from planner.serving import planned as serving
from planner.serving.warnings import warnings_of as serving_warnings_of
from planner.training.planned import complete, memory_of, planned, run_of, throughput_of, time_of, warnings_of

_ONE = "config"


class ImportRequest(EitherRequest):
    text: str | None = Field(None, description="One config, script or command line.")
    files: dict[str, str] | None = Field(
        None, description="Several files that belong together, text by name: config, DeepSpeed JSON, job script."
    )


class ReadValue(Result):
    field: str = Field(description="Plan field, or devices, nodes, per_node, accumulation and other numbers of files.")
    value: Any
    origin: str = Field(description="File, line and key, or what it follows from.")


class NotReadValue(Result):
    key: str
    value: Any
    why: str


class Missing(Result):
    field: str
    why: str


class ImportedConfig(Result):
    plan: dict[str, Any] = Field(description="Partial Plan of what the files say, with the arguments over it.")
    implied: dict[str, Any] = Field(description="Partial Plan of what the program does where its files are silent.")
    formats: dict[str, str] = Field(description="What each file was taken for.")
    read: list[ReadValue]
    not_read: list[NotReadValue]
    missing: list[Missing] = Field(description="What has to be given before there is an estimate; empty with one.")
    refers: list[str] = Field(description="Files that were named and not given.")
    refused: str | None = Field(description="Why the plan cannot be run at all; null where it can or is not known.")
    fits: bool | None
    per_device_bytes: float | None
    low_bytes: float | None
    high_bytes: float | None
    capacity_bytes: float | None
    headroom_bytes: float | None
    step_s: float | None = Field(description="Of training.")
    tokens_per_s: float | None = Field(description="Of serving: generated tokens.")
    hours: float | None = Field(description="Of the whole run, where its length is known.")
    usd: float | None = Field(description="Of the whole run, at the cheapest on-demand price.")
    usd_per_hour: float | None
    complete_plan: dict[str, Any] | None = Field(description="The plan that was estimated.")
    assumptions: list[Assumption]
    warnings: list[str]


def import_config(request: ImportRequest) -> ImportedConfig:
    """Read existing configs."""
    return imported(_files(request), _given(request))


def _files(request: ImportRequest) -> dict[str, str]:
    if (request.text is None) == (request.files is None):
        raise PlanError("text", "give one of text and files", ["text", "files"])
    return dict(request.files) if request.files is not None else {_ONE: request.text or ""}


def _given(request: ImportRequest) -> dict[str, Any]:
    """The arguments as dotted Plan fields."""
    data = merge({}, request.plan or {})
    for flat, path in request.paths.items():
        if flat in request.model_fields_set and (value := getattr(request, flat)) is not None:
            data = merge(data, {path: value})
    return dict(_flat(data))


def _flat(data: Mapping[str, Any], prefix: str = ""):
    for name, value in data.items():
        if isinstance(value, Mapping) and name != "model":
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def imported(files: Mapping[str, str], given: Mapping[str, Any]) -> ImportedConfig:
    found = read(files, given)
    plan = merge(found.plan, nested(given))
    implied = nested({row.field: row.value for row in found.assumed if row.field not in FACTS})
    whole = merge(implied, plan)
    notes = [Assumption(field=row.field, value=row.value, why=row.why) for row in found.assumed]
    model, said = _known_model(whole.get("model"))
    if said is not None:
        whole["model"] = model
        notes.append(said)
    base: dict[str, Any] = {
        "plan": plan,
        "implied": implied,
        "formats": found.formats,
        "read": [ReadValue(field=row.field, value=row.value, origin=row.origin) for row in found.read],
        "not_read": [NotReadValue(key=row.key, value=row.value, why=row.why) for row in found.not_read],
        "refers": list(found.refers),
    }
    missing = _missing(found, whole)
    if (unknown := _unknown_model(whole)) is not None:
        missing.append(unknown)
    if missing:
        empty = dict.fromkeys((*_FIGURES, "refused", "complete_plan"))
        return ImportedConfig(**base, **empty, missing=missing, assumptions=notes, warnings=found.warnings)
    try:
        asked = Plan.parse(whole)
        figures, chosen, assumed, warned = (_serving if isinstance(asked.workload, Inference) else _training)(asked)
    except PlanError as error:
        empty = dict.fromkeys((*_FIGURES, "complete_plan"))
        # What the estimate of a framework lacks is no fault of the files.
        ours = any("another workload.framework" in valid for valid in error.valid)
        missing = [Missing(field=error.field, why=str(error))] if ours else []
        return ImportedConfig(
            **base,
            **empty,
            missing=missing,
            refused=None if ours else str(error),
            assumptions=notes,
            warnings=found.warnings,
        )
    told = {row.field for row in found.assumed}
    return ImportedConfig(
        **base,
        **figures,
        missing=[],
        refused=None,
        complete_plan=chosen,
        assumptions=[*notes, *(row for row in assumed if row.field not in told)],
        warnings=[*found.warnings, *warned],
    )


_FIGURES = (
    "fits", "per_device_bytes", "low_bytes", "high_bytes", "capacity_bytes", "headroom_bytes", "step_s", "tokens_per_s",
    "hours", "usd", "usd_per_hour",
)  # fmt: skip


def _known_model(name: Any) -> tuple[Any, Assumption | None]:
    """The catalogue's model that a folder of this machine or another, or a packed copy, is named after."""

    if not isinstance(name, str) or "/" not in name:
        return name, None
    try:
        architecture(name)
        return name, None
    except PlanError:
        last = re.sub(r"(-unsloth)?-bnb-4bit$", "", name.rstrip("/").rpartition("/")[2])
    try:
        found = find_model(last).value.id
    except PlanError:
        return name, None
    return found, Assumption(field="model", value=found, why=f"the name of {name}, of which no config is here")


def _unknown_model(whole: Mapping[str, Any]) -> Missing | None:

    try:
        if whole.get("model") is not None:
            architecture(whole["model"])
    except PlanError as error:
        return Missing(field="model", why=str(error))
    return None


def _missing(found: FilesReading, whole: Mapping[str, Any]) -> list[Missing]:
    """What an estimate needs and nobody has said, and what the files say in words that no Plan has."""
    rows = [Missing(field=name, why=why) for name, why in found.blocked.items()]
    told = {row.field for row in rows}
    cluster = whole.get("cluster", {})
    if whole.get("model") is None and "model" not in told:
        rows.append(Missing(field="model", why="no file names the model"))
    if cluster.get("accelerator") is None:
        rows.append(Missing(field="cluster.accelerator", why="no file says which accelerators it runs on"))
    if cluster.get("count") is None and "cluster.count" not in told:
        rows.append(Missing(field="cluster.count", why="no file says how many accelerators there are"))
    return rows


def _training(asked: Plan) -> tuple[dict[str, Any], dict[str, Any], list[Assumption], list[str]]:
    found = planned(asked)
    memory, run = memory_of(found), run_of(found)
    price = cheapest(offers(found, run.hours if run else 1.0))
    figures = {
        "fits": memory.fits,
        "per_device_bytes": memory.per_device_bytes,
        "low_bytes": memory.low_bytes,
        "high_bytes": memory.high_bytes,
        "capacity_bytes": memory.capacity_bytes,
        "headroom_bytes": memory.capacity_bytes - memory.high_bytes,
        "step_s": time_of(found).step_s,
        "tokens_per_s": throughput_of(found).tokens_per_s,
        "hours": run.hours if run else None,
        "usd": price.usd if price and run else None,
        "usd_per_hour": price.usd_per_hour if price else None,
    }
    return figures, complete(found), found.assumptions, warnings_of(found)


def _serving(asked: Plan) -> tuple[dict[str, Any], dict[str, Any], list[Assumption], list[str]]:

    found = serving.served(asked)
    memory, money = serving.memory_of(found), serving.money_of(found)
    figures = dict.fromkeys(_FIGURES) | {
        "fits": memory.fits,
        "per_device_bytes": memory.per_device_bytes,
        "capacity_bytes": memory.capacity_bytes,
        "headroom_bytes": headroom(found),
        "tokens_per_s": serving.throughput_of(found).output_tokens_per_s,
        "usd_per_hour": money.usd_per_hour if money else None,
    }
    return figures, serving.complete(found), found.assumptions, serving_warnings_of(found)
