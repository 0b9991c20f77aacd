"""The measured runs that are most like a plan, with what was measured and what is estimated of them.

The distance of a run is a weighted sum over what decides speed and memory: differences of the logarithms (to base 2)
of sizes, and for kinds 0 where they are the same, 1 where they are not, and less for relatives. What only one of the
two says counts as half a doubling or half a difference. `WEIGHTS` has the weights: twice the parameters (all and
active) are as far as eight times the devices, and as another family of accelerators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from estimator.serving.estimates import estimate
from estimator.serving.space import deployments
from knowledge.engines import engine_lineage
from knowledge.fitted.training import device_lineage, framework_lineage
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.catalogue import architecture
from knowledge.models.known import architecture_row
from measure.fit.serving.factors import best, figures
from measure.history.scores import estimated
from measure.history.serving import case_job, serving_case, serving_rows
from measure.history.training import architectures, case_of, rows_of

File = Literal["training", "memory", "serving"]
FILES: tuple[File, ...] = ("training", "memory", "serving")
WEIGHTS: dict[str, float] = {
    # Logarithms of sizes.
    "parameters": 2.0,
    "active_parameters": 1.0,
    "devices": 1.0,
    "seq_len": 1.0,
    "micro_batch": 0.3,
    "global_batch": 0.2,
    "tp": 0.4,
    "pp": 0.4,
    "cp": 0.4,
    "ep": 0.4,
    "dp": 0.2,
    "input_len": 0.7,
    "output_len": 0.5,
    "concurrency": 0.8,
    "request_rate": 0.8,
    "max_batch": 0.3,
    # Kinds.
    "family": 3.0,
    "accelerator": 1.0,
    "framework": 2.0,
    "engine": 2.0,
    "experts": 2.0,
    "method": 2.0,
    "precision": 1.0,
    "weight_dtype": 1.0,
    "scenario": 1.0,
    "stage": 0.3,
    "recompute": 0.5,
    "zero_stage": 0.3,
    "optimizer": 0.3,
    "kv_dtype": 0.3,
    "model": 0.2,
    "software_version": 0.1,
    "lora_rank": 0.2,
    "lora_targets": 0.2,
    "lora_quantisation": 0.2,
    "lora_embeddings": 0.2,
    "attention": 0.3,
    "compile": 0.2,
    "fused_loss": 0.2,
    "packing": 0.2,
    "cuda_graph": 0.2,
    "weights": 0.2,
    "schedule": 0.3,
    "vpp": 0.2,
    "shard_group": 0.2,
    "offload": 0.3,
    "interconnect": 0.2,
    "weight_bits": 0.2,
    "max_batched_tokens": 0.2,
    "requests": 0.2,
    "prefix_hit": 0.2,
}
_SIZES = ("parameters", "active_parameters", "devices", "seq_len", "micro_batch", "global_batch", "tp", "pp", "cp",
          "ep", "dp", "input_len", "output_len", "concurrency", "request_rate", "max_batch",
          "lora_rank", "vpp", "shard_group", "weight_bits", "max_batched_tokens", "requests")  # fmt: skip
_KIN = 0.4
"""Of a difference: a family or framework that is built alike."""
_UNSAID = 0.5
"""What only one of the two says, of a doubling or a difference."""
_COLUMNS: dict[File, tuple[str, ...]] = {
    "training": ("devices", "seq_len", "micro_batch", "global_batch", "tp", "pp", "cp", "ep", "dp", "accelerator",
                 "framework", "method", "precision", "stage", "recompute", "zero_stage", "optimizer",
                 "software_version", "lora_rank", "lora_targets", "lora_quantisation", "lora_embeddings", "attention",
                 "compile", "fused_loss", "packing", "cuda_graph", "weights", "schedule", "vpp", "shard_group",
                 "offload", "interconnect"),
    "serving": ("devices", "input_len", "output_len", "concurrency", "request_rate", "max_batch", "tp", "pp", "ep",
                "dp", "accelerator", "engine", "weight_dtype", "kv_dtype", "scenario", "software_version",
                "weight_bits", "max_batched_tokens", "requests", "prefix_hit"),
}  # fmt: skip
_COLUMNS["memory"] = _COLUMNS["training"]
# Rows that are looked at before the search for those that can be estimated ends.
_MOST_TRIED = 4
# Of columns whose name is not the plan's.
_PATHS = {
    "devices": "cluster.count",
    "lora_rank": "workload.lora.rank",
    "lora_targets": "workload.lora.targets",
    "lora_quantisation": "workload.lora.quantisation",
    "lora_embeddings": "workload.lora.train_embeddings",
}
_SECTIONS = ("workload", "cluster", "layout")


@dataclass(frozen=True)
class RunFigure:
    """A measured figure of a run and the estimate of it, in the same unit."""

    name: str
    unit: str
    measured: float
    estimated: float

    @property
    def error(self) -> float:
        """Relative: 0.1 is 10 % more than measured."""
        return self.estimated / self.measured - 1.0


@dataclass(frozen=True)
class Neighbour:
    """A measured run. `differs` says in which of WEIGHTS, and how much of the distance that makes."""

    id: str
    file: File
    distance: float
    differs: dict[str, float]
    settings: dict[str, str]
    source: str
    reference: str
    figures: tuple[RunFigure, ...]


def nearest_runs(asked: Plan, complete: Plan, file: File, count: int = 5) -> list[Neighbour]:
    """The `count` runs of a file that are nearest to the plan, the nearest first, each estimated as it was measured.

    `asked` is the plan as given and `complete` what it became. Runs that nothing can be compared with are passed over.
    """
    distances, parts = _distances(_features(asked, complete, file), file)
    neighbours: list[Neighbour] = []
    rows = rows_of_file(file)
    for place in np.argsort(distances, kind="stable")[: count * _MOST_TRIED]:
        if len(neighbours) == count or not math.isfinite(distances[place]):
            break
        row = rows[place]
        if figures := compared_run(int(place), file):
            differs = {name: float(part[place]) for name, part in parts.items() if part[place] > 0.0}
            ordered = dict(sorted(differs.items(), key=lambda item: -item[1]))
            settings = {name: row[name] for name in ("model", *_COLUMNS[file]) if name in row}
            neighbours.append(
                Neighbour(
                    row["id"],
                    file,
                    float(distances[place]),
                    ordered,
                    settings,
                    row["source"],
                    row.get("source_ref", ""),
                    figures,
                )
            )
    return neighbours


def rows_of_file(file: File) -> tuple[dict[str, str], ...]:
    return serving_rows() if file == "serving" else rows_of(file)


def _features(asked: Plan, complete: Plan, file: File) -> dict[str, tuple[Any, bool]]:
    """What the plan says of each column, and whether the user said it."""
    stated, data = asked.given(), complete.model_dump(mode="json")
    features: dict[str, tuple[Any, bool]] = {}
    for name in _COLUMNS[file]:
        path = _PATHS.get(name) or next((f"{each}.{name}" for each in _SECTIONS if name in data[each]), None)
        if path is not None:
            is_stated = _at(stated, path) is not None
            features[name] = _at(data, path), is_stated or name in ("devices", "accelerator", "framework", "engine")
    return features | {name: (value, True) for name, value in _of_model(complete.model).items()}


def _at(data: Any, path: str) -> Any:
    for name in path.split("."):
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _of_model(model: Any) -> dict[str, Any]:
    built = architecture(model)
    return {
        "model": architecture_row(built.id),
        "parameters": float(built.parameters),
        "active_parameters": float(built.active_parameters),
        "experts": built.is_moe,
    }


@cache
def _model_row(name: str) -> dict[str, Any]:
    """Of a model by the name that rows use."""
    inline = architectures().get(name)
    facts = _of_model(name if inline is None else inline | {"_name_or_path": name})
    return facts | {"model": name}


@cache
def _table(file: File) -> Mapping[str, np.ndarray]:
    """The columns of a file: sizes as logarithms (nan where a row does not say), kinds as texts ('' likewise).

    `usable` is false where no one estimate can belong to a row.
    """
    rows = rows_of_file(file)
    software = "engine" if file == "serving" else "framework"
    usable = np.array([{"model", "accelerator", software} <= row.keys() and _counts(row) for row in rows])
    models = [_model_row(row["model"]) if use else {} for row, use in zip(rows, usable, strict=True)]
    table: dict[str, np.ndarray] = {"usable": usable}
    for name in ("parameters", "active_parameters", "experts", "model", *_COLUMNS[file]):
        cells = [model.get(name, row.get(name)) for row, model in zip(rows, models, strict=True)]
        if name == "scenario":
            cells = [_scenario(row) for row in rows]
        if name in _SIZES:
            table[name] = np.array([_log(cell) for cell in cells])
        else:
            table[name] = np.array([_text(cell) for cell in cells])
    families = {id: find_accelerator(id).value.family.lower() for id in set(table["accelerator"][usable])}
    table["family"] = np.array([families.get(id, "") for id in table["accelerator"]])
    return table


def _scenario(row: Mapping[str, str]) -> str:
    """As a plan says it: runs whose prompts or answers were timed apart are single streams or batches."""
    scenario = row.get("scenario", "server")
    if scenario not in ("prefill", "decode"):
        return scenario
    return "static-batch" if scenario == "decode" and row.get("max_batch", "1") != "1" else "single-stream"


def _counts(row: Mapping[str, str]) -> bool:
    """A doubt may be about one figure alone, which the case leaves out."""
    doubt = row.get("doubt", "")
    return not doubt or doubt.partition(":")[0] in ("ttft", "tpot", "throughput")


def _log(cell: Any) -> float:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return math.nan
    return math.log2(value) if value > 0.0 and math.isfinite(value) else math.nan


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).lower()


def _distances(features: Mapping[str, tuple[Any, bool]], file: File) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(Distance of each row, inf of those that cannot be used; the parts that it is the sum of)."""
    table = _table(file)
    accelerator = find_accelerator(str(features["accelerator"][0])).value
    features = {**features, "family": (accelerator.family, True)}
    parts: dict[str, np.ndarray] = {}
    for name, (value, stated) in features.items():
        column = table[name]
        if name in _SIZES:
            reference = _log(value)
            missing = np.isnan(column)
            far = (
                np.abs(np.nan_to_num(column) - reference)
                if not math.isnan(reference)
                else np.full(len(column), _UNSAID)
            )
            far = np.where(missing, _UNSAID * (stated and not math.isnan(reference)), far)
        else:
            reference = _text(value)
            missing = column == ""
            far = np.where(missing, _UNSAID * stated, _apart(name, reference, column))
        # Of two that are as near, the one that leaves the same open is nearer.
        parts[name] = WEIGHTS[name] * (far + 1e-6 * (missing == stated))
    total = np.sum(list(parts.values()), axis=0)
    return np.where(table["usable"], total, np.inf), {name: np.where(p > 1e-4, p, 0.0) for name, p in parts.items()}


def _apart(name: str, reference: str, column: np.ndarray) -> np.ndarray:
    """0 where a kind is the same, 1 where it is not, less for relatives."""
    far = (column != reference).astype(np.float64)
    if name not in ("family", "framework", "engine"):
        return far
    for other in set(column[far > 0.0]) - {""}:
        if set(_line(name, reference)[1:2]) & {other} or set(_line(name, other)[1:2]) & {reference}:
            far = np.where(column == other, _KIN, far)
    return far


@cache
def _line(name: str, value: str) -> tuple[str, ...]:
    """The kind and what it is built like, in lower case."""
    lines = {"family": device_lineage, "framework": framework_lineage, "engine": engine_lineage}
    spelled = {family.lower(): family for family in _families()} if name == "family" else {}
    try:
        return tuple(each.lower() for each in lines[name](spelled.get(value, value)))
    except (KeyError, PlanError):
        return (value,)


@cache
def _families() -> tuple[str, ...]:

    return tuple(dict.fromkeys(device.family for device in accelerators()))


@cache
def compared_run(place: int, file: File) -> tuple[RunFigure, ...]:
    """What was measured in a row beside what is estimated of it; empty where they cannot be compared."""
    row = rows_of_file(file)[place]
    try:
        return _served(row) if file == "serving" else _trained(row, file)
    except PlanError:
        return ()


def plan_of_run(place: int, file: File) -> Plan | None:
    """The plan of a row; None where its source does not say enough for one."""
    row = rows_of_file(file)[place]
    try:
        return (serving_case(row) if file == "serving" else case_of(row, file)).plan
    except PlanError:
        return None


def _trained(row: dict[str, str], file: Literal["training", "memory"]) -> tuple[RunFigure, ...]:
    case = case_of(row, file)
    if case.reason_unscored is not None or case.plan is None:
        return ()
    observed, estimate = case.observed, estimated(case)
    if file == "memory":
        peak = observed["peak_bytes"]
        return (RunFigure("peak memory", "B", peak, estimate.peak_bytes(observed["peak_kind"])),) if peak else ()
    rate = observed["tokens_per_s_per_device"]
    if not rate:
        return ()
    value = float(estimate.all.tokens_per_s[estimate.best]) / estimate.all.job.machine.count
    return (RunFigure("tokens/s per device", "tokens/s", rate, value),)


_METRICS = {
    "throughput": ("output tokens/s", "tokens/s"),
    "tpot": ("time per output token", "s"),
    "ttft": ("time to first token", "s"),
}


def _served(row: dict[str, str]) -> tuple[RunFigure, ...]:
    case = serving_case(row)
    if case.reason_unscored is not None or case.plan is None:
        return ()
    assert isinstance(case.plan.workload, Inference)
    job = case_job(case)
    estimates = estimate(job, deployments(job))
    entry, values = best(estimates), figures(estimates)
    pairs = [(metric, value, float(values[metric][entry])) for metric, value in case.observed.items()]
    return tuple(
        RunFigure(*_METRICS[metric], value, estimated)
        for metric, value, estimated in pairs
        if value and math.isfinite(estimated)
    )
