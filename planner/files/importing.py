"""import_config: from files that others wrote to the Plan that they run, and what is estimated of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pydantic import Field

from estimator.credentials import value_without, without_credentials
from estimator.errors import PlanError
from estimator.plan.schema import Plan, merge
from estimator.units import GIB
from knowledge.models.catalogue import architecture, base_in_name, find_model
from knowledge.own.mappings import json_value
from launchers.reading.findings import FACTS, SETTLED_BY, Either, nested
from launchers.reading.result import FilesReading
from launchers.reading.sets import read
from planner.asked.files import ImportRequest
from planner.estimates import PlanEstimate, estimate_written, warnings_of
from planner.fields import leaves
from planner.files.beside import texts_of
from planner.fit.remedies import remedies
from planner.fit.serving import fit_of, headroom
from planner.money.offers import cheapest, offers
from planner.partial import get
from planner.requests import PlanArguments
from planner.result import Assumption, Result
from planner.results import Remedy
from planner.serving import planned as serving
from planner.serving.planned import Served
from planner.training.memory import memory_of
from planner.training.planned import Planned, throughput_of, time_of
from planner.training.run import run_of

_ONE = "config"
_MOST_REMEDIES = 3
_SHARDS, _ROWS = "layout.zero_stage", "workload.seq_len"
# What files that a program takes say that it does, whatever the estimate of it has.
_WHAT_IS_RUN = ("workload.stage", "workload.method")
# Other values of what files leave unsaid, and what of a plan changes with them.
_OTHERWISE: dict[str, dict[Any, dict[str, Any]]] = {
    "layout.recompute": {value: {"layout.recompute": value} for value in ("none", "full")},
    "workload.precision": {value: {"workload.precision": value} for value in ("bf16", "fp32")},
    "workload.fused_loss": {value: {"workload.fused_loss": value} for value in (False, True)},
    _SHARDS: {3: {"workload.framework": "deepspeed", _SHARDS: 3}},
}
# Rows of few tokens: what has no room with these has none with any.
_SHORT_ROW = 64
_SIZED = re.compile(r"(?i)(^|[-_. ])\d+(\.\d+)?[bm]($|[-_. ])")


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
    tokens_per_s: float | None = Field(description="Of training those it reads; of serving those it generates.")
    hours: float | None = Field(description="Of the whole run, where its length is known.")
    usd: float | None = Field(description="Of the whole run, at the cheapest on-demand price.")
    usd_per_hour: float | None
    complete_plan: dict[str, Any] | None = Field(description="The plan that was estimated.")
    hangs_on: list[Assumption] = Field(description="What no file says and another value of which turns the verdict.")
    remedies: list[Remedy] = Field(description="Changes that would make it fit, where it does not.")
    assumptions: list[Assumption]
    warnings: list[str]


def import_config(request: ImportRequest) -> ImportedConfig:
    """Read existing configs."""
    arguments = dict(leaves(PlanArguments._data(request)))
    return imported(_files(request, arguments), arguments, with_remedies=True)


def _files(request: ImportRequest, arguments: Mapping[str, Any]) -> dict[str, str]:
    ways = ["text", "files", "file_paths"]
    if sum(getattr(request, way) is not None for way in ways) != 1:
        raise PlanError("text", "give one of text, files and file_paths", ways)
    if request.file_paths is not None:
        return texts_of(request.file_paths, arguments)
    return dict(request.files) if request.files is not None else {_ONE: request.text or ""}


# Fields that configs of models have, and no configuration of a program.
_OF_LAYERS = frozenset({"num_hidden_layers", "n_layer", "n_layers", "num_layers", "text_config"})
_OF_MODELS = frozenset({"model_type", "architectures"})


@dataclass(frozen=True)
class _Figures:
    """What an import says of the estimate; null where there is none."""

    fits: bool | None = None
    per_device_bytes: float | None = None
    low_bytes: float | None = None
    high_bytes: float | None = None
    capacity_bytes: float | None = None
    headroom_bytes: float | None = None
    step_s: float | None = None
    tokens_per_s: float | None = None
    hours: float | None = None
    usd: float | None = None
    usd_per_hour: float | None = None


@dataclass(frozen=True)
class _Outcome:
    """What came of the plan that files describe: an estimate, why it cannot be run, or what is missing."""

    missing: list[Missing]
    refused: str | None = None
    estimate: PlanEstimate | None = None
    figures: _Figures = _Figures()
    warnings: tuple[str, ...] = ()


def imported(files: Mapping[str, str], overrides: Mapping[str, Any], with_remedies: bool = False) -> ImportedConfig:
    """What `files`, text by name, run with `overrides`, dotted Plan fields that win. Raises PlanError where none of
    them can be read. `with_remedies`: also what would make it fit where it does not, which takes half a second."""
    plain = {name: without_credentials(text) for name, text in files.items()}
    reading = _of_model(plain) or read(plain, overrides)
    plan = merge(reading.plan, nested(overrides))
    implied = nested({row.field: row.value for row in reading.assumed if row.field not in FACTS})
    whole = merge(implied, plan)
    notes = [Assumption(field=row.field, value=row.value, why=row.why) for row in reading.assumed]
    model, taken = _known_model(whole.get("model"))
    if model is not None:
        whole["model"] = model
    if taken is not None:
        notes.append(taken)
    outcome = _outcome(reading, whole)
    estimate, told = outcome.estimate, {row.field for row in reading.assumed}
    return ImportedConfig(
        plan=plan,
        implied=implied,
        formats=reading.formats,
        read=[ReadValue(field=row.field, value=row.value, origin=row.origin) for row in reading.read],
        not_read=[
            NotReadValue(key=row.key, value=value_without(row.key, row.value), why=row.why) for row in reading.not_read
        ],
        missing=outcome.missing,
        refers=list(reading.refers),
        refused=outcome.refused,
        **vars(outcome.figures),
        complete_plan=estimate.complete_plan if estimate else None,
        hangs_on=_hinges(whole, reading, outcome),
        remedies=_remedies(whole, estimate) if with_remedies and not outcome.figures.fits else [],
        assumptions=[*notes, *(row for row in (estimate.assumptions if estimate else ()) if row.field not in told)],
        warnings=[*reading.warnings, *outcome.warnings, *(warnings_of(estimate) if estimate else ())],
    )


def _of_model(files: Mapping[str, str]) -> FilesReading | None:
    """What the config.json of a model says that comes alone: the model, and nothing of a run. None for other files."""
    try:
        config = json_value(next(iter(files.values()))) if len(files) == 1 else None
    except ValueError:
        return None
    if not isinstance(config, dict) or not _OF_LAYERS & config.keys() or not _OF_MODELS & config.keys():
        return None
    formats = dict.fromkeys(files, "config.json of a model")
    return FilesReading({"model": config}, [], [], [], {}, [], formats, {}, [])


def _outcome(reading: FilesReading, whole: Mapping[str, Any]) -> _Outcome:
    missing = _missing(reading, whole)
    layers = get(whole, "workload.device_layers")
    if layers is not None and not get(whole, "cluster.beside"):
        why = f"only {layers} layers go to the devices; which processor holds the others? (--beside)"
        missing.append(Missing(field="cluster.beside", why=why))
    if (unknown := _unknown_model(whole)) is not None:
        missing.append(unknown)
    if missing:
        return _Outcome(missing)
    outcome = _either(reading.either, whole) if reading.either else _estimated(whole)
    figures = outcome.figures
    if reading.longest and figures.fits is False and figures.high_bytes and figures.capacity_bytes and _has_room(whole):
        most = f"up to {figures.high_bytes / GIB:.1f} of {figures.capacity_bytes / GIB:.1f} GiB a device"
        why = f"{reading.longest}; with such rows it takes {most}{_room(whole)}: how long are they? (--seq-len)"
        return _Outcome([Missing(field="workload.seq_len", why=why)])
    return outcome


def _with_short_rows(whole: Mapping[str, Any], length: int = _SHORT_ROW) -> _Figures:
    rows: dict[str, Any] = {"workload.seq_len": length}
    if answer := get(whole, "workload.response_len"):
        rows["workload.response_len"] = min(answer, length // 2)
    return _estimated(merge(whole, nested(rows))).figures


def _room(whole: Mapping[str, Any]) -> str:
    """Up to which length of rows it fits, to a sixteenth."""
    low, high = _SHORT_ROW, int(get(whole, "workload.seq_len") or _SHORT_ROW)
    while high - low > max(_SHORT_ROW, high // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if _with_short_rows(whole, middle).fits else (low, middle)
    return f", and it fits while they are up to {low:,}" if low > _SHORT_ROW else ""


def _has_room(whole: Mapping[str, Any]) -> bool:
    """Whether it may fit where rows are short."""
    figures = _with_short_rows(whole)
    return (figures.low_bytes or 0.0) <= (figures.capacity_bytes or math.inf)


def _never_fits(rows: Sequence[Either], whole: Mapping[str, Any]) -> bool:
    """Whether short rows are over at the least that they take, where the length of rows is all that is open."""
    if any(row.field != "workload.seq_len" for row in rows):
        return False
    return not _has_room(whole)


def _either(rows: Sequence[Either], whole: Mapping[str, Any]) -> _Outcome:
    """The outcome with the most memory and the interval of all, where the verdict is the same whichever values the open
    fields have, or is that it fits with the most that they can be."""
    choices = [
        dict(zip((row.field for row in rows), values, strict=True)) for values in product(*(row.values for row in rows))
    ]
    outcomes = [_estimated(merge(whole, nested(choice))) for choice in choices]
    verdicts = {outcome.figures.fits for outcome in outcomes}
    is_open = any(row.most for row in rows) and verdicts != {True}
    is_open = is_open and not _never_fits(rows, merge(whole, nested(choices[0])))
    if len(verdicts) > 1 or is_open or any(outcome.missing for outcome in outcomes):
        told: dict[str, str] = {}
        rows = _deciding(rows, choices, outcomes) or rows
        if any(row.field == _SHARDS and row.most for row in rows):
            told[_SHARDS] = _copies_and_shards(whole, outcomes)
        if is_open and [row.field for row in rows] == [_ROWS]:
            told[_ROWS] = _room(merge(whole, nested(choices[0])))
        return _Outcome([Missing(field=row.field, why=row.why + told.get(row.field, "")) for row in rows])
    worst = max(outcomes, key=lambda outcome: outcome.figures.per_device_bytes or 0.0)
    low = min((amount for outcome in outcomes if (amount := outcome.figures.low_bytes)), default=None)
    warnings = tuple(row.why if row.most else f"{row.why}; the verdict is the same" for row in rows)
    return replace(worst, figures=replace(worst.figures, low_bytes=low), warnings=warnings)


def _hinges(whole: Mapping[str, Any], reading: FilesReading, outcome: _Outcome) -> list[Assumption]:
    """What is assumed of a training that no file says, another value of which turns the verdict."""
    if outcome.estimate is None or isinstance(outcome.estimate, Served):
        return []
    told, rows = dict(leaves(reading.plan)), []
    for row in (*reading.assumed, *outcome.estimate.assumptions):
        for value, change in _OTHERWISE.get(row.field, {}).items():
            if row.field in told or value == row.value or any(row.field == other.field for other in rows):
                continue
            other = _estimated(merge(whole, change)).figures.fits
            if other is not None and other != outcome.figures.fits:
                turned = f"{row.why}; with {value} it {'fits' if other else 'does not fit'}"
                rows.append(Assumption(field=row.field, value=row.value, why=turned))
    return rows


def _remedies(whole: Mapping[str, Any], estimate: PlanEstimate | None) -> list[Remedy]:
    if estimate is None:
        return []
    asked = Plan.parse(whole)
    ways = fit_of(asked).remedies if isinstance(estimate, Served) else remedies(estimate, asked)
    return [way for way in ways if way.fits][:_MOST_REMEDIES]


def _deciding(rows: Sequence[Either], choices: Sequence[dict[str, Any]], outcomes: Sequence[_Outcome]) -> list[Either]:
    """The open fields that the verdict hangs on: those of which another value changes it, and those at their most."""
    verdicts: dict[str, dict[str, set[bool | None]]] = {row.field: {} for row in rows}
    for choice, outcome in zip(choices, outcomes, strict=True):
        for row in rows:
            others = repr([value for field, value in choice.items() if field != row.field])
            verdicts[row.field].setdefault(others, set()).add(outcome.figures.fits)
    return [row for row in rows if row.most or any(len(group) > 1 for group in verdicts[row.field].values())]


def _copies_and_shards(whole: Mapping[str, Any], outcomes: Sequence[_Outcome]) -> str:
    """What whole copies take, and what is left of it where all states are sharded, which the files may mean."""
    sharded = _estimated(merge(whole, {"workload.framework": "deepspeed", _SHARDS: 3}))
    amounts = [max(outcome.figures.high_bytes or 0.0 for outcome in outcomes), sharded.figures.high_bytes or 0.0]
    capacity = sharded.figures.capacity_bytes
    if capacity is None or not all(amounts):
        return ""
    copies, shards = (f"{amount / GIB:.1f}" for amount in amounts)
    return f". Whole copies take up to {copies} of {capacity / GIB:.1f} GiB a device, ZeRO-3 up to {shards}"


def _estimated(whole: Mapping[str, Any]) -> _Outcome:
    try:
        estimate = estimate_written(Plan.parse(whole))
        figures = _serving_figures(estimate) if isinstance(estimate, Served) else _training_figures(estimate)
        return _Outcome([], estimate=estimate, figures=figures)
    except PlanError as error:
        # What the estimate of a framework lacks is no fault of the files.
        framework = get(whole, "workload.framework")
        unsaid = error.field in _WHAT_IS_RUN and "has no" in error.problem
        lacks = framework and (unsaid or error.problem.startswith(f"{framework} cannot "))
        if lacks or any("another workload.framework" in valid for valid in error.valid):
            return _Outcome([Missing(field=error.field, why=str(error))])
        return _Outcome([], refused=str(error))


def _known_model(name: Any) -> tuple[Any, Assumption | None]:
    """The catalogue's model that a folder of this machine or another, or a packed copy, is named after."""
    if isinstance(name, str):
        name = name.replace("\\", "/")
    if not isinstance(name, str) or "/" not in name:
        return name, None
    try:
        architecture(name)
        return name, None
    except PlanError:
        # Caches of the Hugging Face hub and of ModelScope.
        cached = re.search(r"(?:^|/)(?:models--[^/]+?|models/[^/]+?)--([^/]+)", name)
        # Folders of a training stand below the one that is named after its model: …/Llama-3-8B-sft/checkpoint-500.
        parts = [cached[1]] if cached else [part for part in reversed(name.split("/")) if part]
    for part in parts:
        part = re.sub(r"(-unsloth)?-bnb-4bit$", "", part)
        try:
            known = find_model(part).value.id
            return known, Assumption(field="model", value=known, why=f"the name of {name}, of which no config is here")
        except PlanError:
            base = base_in_name(part)
        if base is not None:
            why = f"{name} is not in the catalogue, and is named after it: taken for one of its architecture"
            return base, Assumption(field="model", value=base, why=why)
        if _SIZED.search(part):
            # Another model, by its size.
            break
    return name, None


def _unknown_model(whole: Mapping[str, Any]) -> Missing | None:
    try:
        if whole.get("model") is not None:
            architecture(whole["model"])
    except PlanError as error:
        return Missing(field="model", why=str(error))
    return None


def _missing(reading: FilesReading, whole: Mapping[str, Any]) -> list[Missing]:
    """What an estimate needs and nobody has said, and what the files say in words that no Plan has."""
    rows = [Missing(field=SETTLED_BY.get(name, name), why=why) for name, why in reading.blocked.items()]
    told = {row.field for row in rows}
    cluster = whole.get("cluster", {})
    told |= {row.field for row in reading.either}
    if whole.get("model") is None and "model" not in told:
        where = f"; {', '.join(reading.refers)} may, and is not given" if reading.refers else ""
        rows.append(Missing(field="model", why=f"no file names the model (--model){where}"))
    if not reading.serves and get(whole, _ROWS) is None and _ROWS not in told and reading.plan.get("workload"):
        rows.append(Missing(field=_ROWS, why="no file says how long rows are (--seq-len)"))
    if cluster.get("accelerator") is None and "cluster.accelerator" not in told:
        rows.append(
            Missing(field="cluster.accelerator", why="no file says which accelerators it runs on (--accelerator)")
        )
    if cluster.get("count") is None and "cluster.count" not in told:
        rows.append(Missing(field="cluster.count", why="no file says how many accelerators there are (--count)"))
    return rows


def _training_figures(planned: Planned) -> _Figures:
    memory, run = memory_of(planned), run_of(planned)
    price = cheapest(offers(planned, run.hours if run else 1.0))
    return _Figures(
        fits=memory.fits,
        per_device_bytes=memory.per_device_bytes,
        low_bytes=memory.low_bytes,
        high_bytes=memory.high_bytes,
        capacity_bytes=memory.capacity_bytes,
        headroom_bytes=memory.capacity_bytes - memory.high_bytes,
        step_s=time_of(planned).step_s,
        tokens_per_s=throughput_of(planned).tokens_per_s,
        hours=run.hours if run else None,
        usd=price.usd if price and run else None,
        usd_per_hour=price.usd_per_hour if price else None,
    )


def _serving_figures(served: Served) -> _Figures:
    memory, money = serving.memory_of(served), serving.money_of(served)
    return _Figures(
        fits=memory.fits,
        per_device_bytes=memory.per_device_bytes,
        capacity_bytes=memory.capacity_bytes,
        headroom_bytes=headroom(served),
        tokens_per_s=serving.throughput_of(served).output_tokens_per_s,
        usd_per_hour=money.usd_per_hour if money else None,
    )
