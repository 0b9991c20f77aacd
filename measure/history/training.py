"""The transcribed runs of `knowledge/measurements` as Plans with what was observed, ready to be scored."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import knowledge
from estimator.plan.schema import Framework, Method, Optimizer, Plan, Precision, Stage

Kind = Literal["training", "memory"]
RAN_OUT = "ran out of memory: there is no peak to score, only whether it fits"

_FOLDER = Path(knowledge.__file__).parent / "measurements"
_WORKLOAD_TEXT = ("framework", "software_version", "stage", "method", "precision", "weights", "optimizer", "attention")
_WORKLOAD_COUNTS = ("seq_len", "sample_tokens", "micro_batch", "global_batch")
_WORKLOAD_FLAGS = ("compile", "packing", "fused_loss", "optimizer_in_backward", "tiled_mlp")
# Columns that a plan's workload has by the same name, and how a cell says what.
_OPTIONS = ("cuda_graph", "tp_overlap", "moe_dispatcher", "moe_overlap", "moe_capacity")
_LAYOUT_COUNTS = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp", "zero_stage", "shard_group")
_LAYOUT_TEXT = ("schedule", "recompute", "offload")
_CHOICES = {"framework": Framework, "stage": Stage, "method": Method, "precision": Precision, "optimizer": Optimizer}
# What decides speed or memory and that a row may leave out; recompute and ZeRO stage say nothing for one plain device.
_WANTED = ("recompute", "zero_stage", "optimizer", "attention", "micro_batch", "global_batch")


class Observed(TypedDict):
    """What the run showed; None where it was not measured. Bytes and tokens/s are of one device."""

    tokens_per_s_per_device: float | None
    step_s: float | None
    peak_bytes: float | None
    peak_kind: str | None
    out_of_memory: bool


@dataclass(frozen=True)
class Case:
    """One measured run.

    `plan` is as complete as its source; it is None where the run cannot be said as a Plan. `reason_unscored` is None
    for a case that counts. `gaps` names the fields that the source leaves open (the search or a default fills them, or
    the transcription did: see the folder's README), `tags` what else is known and a Plan has no field for.
    """

    id: str
    source: str
    plan: Plan | None
    observed: Observed
    reason_unscored: str | None
    gaps: tuple[str, ...]
    tags: tuple[str, ...]
    date: str
    reference: str


def training_cases() -> list[Case]:
    """Runs with a measured speed, in file order."""
    return list(_cases("training"))


def memory_cases() -> list[Case]:
    """Runs with a measured peak, and runs that ran out of memory (`observed["out_of_memory"]`), in file order."""
    return list(_cases("memory"))


@cache
def _cases(kind: Kind) -> tuple[Case, ...]:
    return tuple(case_of(row, kind) for row in rows_of(kind))


@cache
def rows_of(kind: Kind) -> tuple[dict[str, str], ...]:
    """The transcribed rows of a file as they are, empty cells left out."""
    with (_FOLDER / f"{kind}.csv").open(encoding="utf-8", newline="") as file:
        return tuple({name: cell for name, cell in row.items() if cell} for row in csv.DictReader(file))


def columns_of(kind: Kind) -> tuple[str, ...]:
    """The columns of a file of transcribed rows, in its order."""
    with (_FOLDER / f"{kind}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(next(csv.reader(file)))


def case_of(row: dict[str, str], kind: Kind) -> Case:
    """One of `rows_of` as a case."""
    return _case(row, architectures(), kind)


def limits(kind: Kind) -> dict[str, str]:
    """By source, why its peaks or speeds cannot be estimated better, where that is known."""
    import yaml

    text = (_FOLDER / "sources.yaml").read_text(encoding="utf-8")
    key = "limit" if kind == "memory" else "speed_limit"
    return {name: row[key] for name, row in yaml.safe_load(text).items() if key in row}


@cache
def architectures() -> dict[str, dict[str, Any]]:
    """Config fields of the models that are not in the catalogue, by the name that the rows use."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (_FOLDER / "architectures.yaml").open(encoding="utf-8") as file:
        return {name: entry["fields"] for name, entry in yaml.load(file, loader).items()}


def _case(row: dict[str, str], known: Mapping[str, dict[str, Any]], kind: Kind) -> Case:
    row = row | _derived(row)
    tags = tuple(row.get("tags", "").split())
    assumed = tuple(tag.removeprefix("assumed:") for tag in tags if tag.startswith("assumed:"))
    inexpressible = _inexpressible(row)
    plan = None if inexpressible else Plan.parse(plan_data(row, known))
    out_of_memory = row.get("outcome") == "oom"
    reason = row.get("doubt") or inexpressible or _incomplete(row, kind) or (RAN_OUT if out_of_memory else None)
    return Case(
        id=row["id"],
        source=row["source"],
        plan=plan,
        observed=_observed(row, out_of_memory),
        reason_unscored=reason,
        gaps=tuple(name for name in _WANTED if name not in row) + assumed,
        tags=tags,
        date=row.get("date", ""),
        reference=row.get("source_ref", ""),
    )


def plan_data(row: Mapping[str, str], architectures: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """One transcribed row (empty cells left out) as the data of a Plan; a model of `architectures` is put inline."""
    name = row["model"]
    workload: dict[str, Any] = {"kind": "training"}
    workload |= {key: row[key] for key in _WORKLOAD_TEXT if key in row}
    workload |= {key: int(row[key]) for key in _WORKLOAD_COUNTS if key in row}
    workload |= {key: row[key] == "true" for key in _WORKLOAD_FLAGS if key in row}
    workload |= {key: {"true": True, "false": False}.get(row[key], row[key]) for key in _OPTIONS if key in row}
    lora: dict[str, Any] = {"rank": int(row["lora_rank"])} if "lora_rank" in row else {}
    lora |= {key: row[f"lora_{key}"] for key in ("targets", "quantisation") if f"lora_{key}" in row}
    if "lora_dropout" in row:
        lora["dropout"] = float(row["lora_dropout"])
    if "lora_embeddings" in row:
        lora["train_embeddings"] = row["lora_embeddings"] == "true"
    if lora:
        workload["lora"] = lora
    cluster: dict[str, Any] = {"accelerator": row["accelerator"]} if "accelerator" in row else {}
    if "devices" in row:
        cluster["count"] = int(row["devices"])
    if "per_node" in row:
        cluster["per_node"] = int(row["per_node"])
    if "interconnect" in row:
        cluster["interconnect"] = row["interconnect"]
    layout: dict[str, Any] = {key: int(row[key]) for key in _LAYOUT_COUNTS if key in row}
    layout |= {key: row[key] for key in _LAYOUT_TEXT if key in row}
    if "sequence_parallel" in row:
        layout["sequence_parallel"] = row["sequence_parallel"] == "true"
    model = architectures[name] | {"_name_or_path": name} if name in architectures else name
    return {"name": row["id"], "model": model, "workload": workload, "cluster": cluster, "layout": layout}


def _derived(row: Mapping[str, str]) -> dict[str, str]:
    """Data parallel size, micro-batch and global batch where the row's other cells fix them.

    A run without a printed tp, pp or cp has 1 of them once its dp, or another of them, is printed or it has one device.
    """
    derived: dict[str, int] = {}
    devices = _count(row, "devices")
    complete = devices == 1 or any(key in row for key in ("tp", "pp", "cp", "dp"))
    split = _model_split(row)
    dp = _count(row, "dp")
    if dp is None and devices is not None and complete and devices % split == 0:
        dp = derived["dp"] = devices // split
    micro, batch, accumulation = _count(row, "micro_batch"), _count(row, "global_batch"), _count(row, "grad_accum")
    if dp is not None:
        if micro is None and batch and accumulation and batch % (dp * accumulation) == 0:
            derived["micro_batch"] = batch // (dp * accumulation)
        # With a pipeline the number of micro-batches decides the bubble, so it is never guessed.
        if batch is None and micro and (accumulation or _count(row, "pp") in (None, 1)):
            derived["global_batch"] = micro * dp * (accumulation or 1)
    return {key: str(value) for key, value in derived.items()}


def _inexpressible(row: Mapping[str, str]) -> str | None:
    """Why the row has no Plan, or None."""
    if "model" not in row:
        return f"model not in the catalogue and its dimensions are not stated: {row.get('model_said', 'unnamed')}"
    for field, values in _CHOICES.items():
        if field in row and row[field] not in get_args(values):
            return f"{field} {row[field]} is not in the Plan"
    return None


def _incomplete(row: Mapping[str, str], kind: Kind) -> str | None:
    """What the row lacks, or says two ways, so that no one estimate belongs to it; None for a row that counts."""
    needed = ("framework", "accelerator", "devices", "precision", "seq_len")
    missing = [name for name in needed if name not in row]
    if missing:
        return f"not stated: {', '.join(missing)}"
    devices, dp = int(row["devices"]), _count(row, "dp")
    if dp is None:
        return "not stated: how the model is split over the devices"
    if dp * _model_split(row) != devices:
        return f"tp x pp x cp x dp is {dp * _model_split(row)}, not the {devices} devices"
    micro, batch = _count(row, "micro_batch"), _count(row, "global_batch")
    if micro is None:
        return "not stated: micro batch"
    if batch is None:
        return "not stated: global batch" if kind == "training" or "pp" in row else None
    if batch % (micro * dp):
        return f"global batch {batch} is not a multiple of micro batch {micro} x dp {dp}"
    return None


def _observed(row: Mapping[str, str], out_of_memory: bool) -> Observed:
    seq_len, devices, batch = (_count(row, name) for name in ("seq_len", "devices", "global_batch"))
    rate, step, samples = (_number(row, name) for name in ("tokens_per_s_per_device", "step_s", "samples_per_s"))
    if seq_len and devices:
        if rate is None and samples is not None:
            rate = samples * seq_len / devices
        if batch and rate is None and step:
            rate = batch * seq_len / devices / step
        if batch and step is None and rate:
            step = batch * seq_len / devices / rate
    return Observed(
        tokens_per_s_per_device=rate,
        step_s=step,
        peak_bytes=_number(row, "peak_bytes"),
        peak_kind=row.get("peak_kind"),
        out_of_memory=out_of_memory,
    )


def _model_split(row: Mapping[str, str]) -> int:
    """Devices that share one replica of the model's work: tp x pp x cp."""
    split = 1
    for name in ("tp", "pp", "cp"):
        split *= _count(row, name) or 1
    return split


def _count(row: Mapping[str, str], name: str) -> int | None:
    return int(row[name]) if name in row else None


def _number(row: Mapping[str, str], name: str) -> float | None:
    return float(row[name]) if name in row else None
