"""The Plan's fields as a person edits them: flat names, what each may hold, and words for values read from text.

Everything here comes from the Plan's own schema, so that a new field of the Plan is a new row of the form.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel

from estimator.errors import PlanError, nearest
from estimator.plan.schema import Inference, Overrides, Plan, Training, merge, parse_count
from pages.results.plan import config_name
from planner.requests import FLAT_PATHS, SERVING_PATHS

Data = Mapping[str, Any]

KIND = "workload.kind"
KINDS = ("training", "inference")
# What most plans are about; the form shows these, and whatever else is set, until other fields are looked for.
_MAIN = {
    "training": (
        "model", "accelerator", "count", "interconnect", "framework", "stage", "method", "precision", "optimizer",
        "seq_len", "micro_batch", "global_batch", "dataset_tokens", "epochs", "tp", "pp", "cp", "ep", "dp",
        "zero_stage", "recompute", "offload", "objective", "deadline_h", "budget_usd",
    ),
    "inference": (
        "model", "accelerator", "count", "interconnect", "engine", "weight_dtype", "kv_dtype", "scenario",
        "input_len", "output_len", "concurrency", "request_rate", "max_context", "ttft_slo_ms", "tpot_slo_ms",
        "tp", "pp", "ep", "dp",
    ),
}  # fmt: skip
# Lengths in tokens are powers of two as people say them: 4k is 4096. Elsewhere k is 1000.
_LENGTHS = ("seq_len", "response_len", "input_len", "output_len", "max_context")
_KIBI = re.compile(r"([0-9]+)\s*k", re.IGNORECASE)


@dataclass(frozen=True)
class PlanField:
    """`name` is the flat name, `path` the dotted one within the Plan; `choices` are the values that a closed list
    allows."""

    name: str
    path: str
    meaning: str
    choices: tuple[str, ...] = ()


def kind_of(plan: Data) -> str:
    workload = plan.get("workload")
    kind = workload.get("kind") if isinstance(workload, Mapping) else None
    return kind if kind in KINDS else "training"


@lru_cache(maxsize=2)
def fields_of(kind: str) -> tuple[PlanField, ...]:
    """Every field of a plan of this kind, in the Plan's order; the kind itself first."""
    paths = SERVING_PATHS if kind == "inference" else FLAT_PATHS
    fields = [PlanField("kind", KIND, "What the plan is for.", KINDS)]
    workload: type[BaseModel] = Inference if kind == "inference" else Training
    for name, path in paths.items():
        if name == "overrides" or path.startswith("overrides."):
            continue
        fields.append(_field(name, path, workload))
    fields += [_field(name, f"overrides.{name}", workload) for name in Overrides.model_fields]
    return tuple(fields)


def main_fields(plan: Data) -> list[PlanField]:
    """The fields that are shown at once: the usual ones, and all that the plan sets."""
    kind = kind_of(plan)
    usual = ("kind", *_MAIN[kind])
    chosen = [field for field in fields_of(kind) if field.name in usual or value_at(plan, field.path) is not None]
    return sorted(chosen, key=lambda field: usual.index(field.name) if field.name in usual else len(usual))


def matching(plan: Data, words: str) -> list[PlanField]:
    """The fields whose name or meaning has all the words, by name first."""
    wanted = words.casefold().replace("-", "_").split()
    of_kind = fields_of(kind_of(plan))
    named = [field for field in of_kind if all(word in field.name for word in wanted)]
    texts = {field: f"{field.name} {field.meaning}".casefold().replace("-", "_") for field in of_kind}
    meant = [field for field, text in texts.items() if all(word in text for word in wanted)]
    return list(dict.fromkeys([*named, *meant]))


def find_field(name: str, plan: Data) -> PlanField:
    """A field by its flat or dotted name; one of the other kind of plan too. Raises PlanError with the nearest."""
    wanted = name.strip().replace("-", "_")
    kind = kind_of(plan)
    other = KINDS[1 - KINDS.index(kind)]
    for of_kind in (kind, other):
        for field in fields_of(of_kind):
            if wanted in (field.name, field.path):
                return field
    names = [field.name for field in fields_of(kind)]
    raise PlanError(wanted or "field", "there is no such field of the plan", nearest(wanted, names))


def value_at(plan: Data, path: str) -> Any:
    value: Any = plan
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def shown(value: Any) -> str:
    """A value as it is typed and read back."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        sizes = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1.0, ""))
        tries = (f"{value / size:g}{suffix}" for size, suffix in sizes if value >= size)
        return next((text for text in tries if "e" not in text and parse_count(text) == value), repr(value))
    if isinstance(value, Mapping):
        return config_name(value)
    return str(value)


def read(field: PlanField, text: str) -> Any:
    """What the words mean for this field: None (chosen for you) for nothing, 'auto' where that is no value of it."""
    typed = text.strip()
    if not typed or (typed == "auto" and "auto" not in field.choices and field.path != "cluster.interconnect"):
        return None
    if field.name in _LENGTHS and (match := _KIBI.fullmatch(typed)):
        return int(match[1]) * 1024
    if field.choices and typed.lower() in field.choices:
        return typed.lower()
    return typed


def assignments(words: Iterable[str], plan: Data) -> dict[str, Any]:
    """`count=16 layout.tp=2 dataset_tokens=` as changes by dotted path; None takes a value back. Raises PlanError."""
    changes: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise PlanError(word, "is not a change; say field=value, and field= to have it chosen", ["count=16"])
        field = find_field(name, plan)
        value = read(field, text)
        if changes.setdefault(field.path, value) != value:
            raise PlanError(field.name, f"is given twice, as {changes[field.path]!r} and as {value!r}")
    return changes


def laid_over(plan: Data, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The plan's data with changes put in; another kind of workload keeps nothing of the old one."""
    changes = dict(changes)
    kind = changes.pop(KIND, None)
    data = dict(plan)
    if kind is not None and kind != kind_of(plan):
        data = {**data, "workload": {"kind": kind}}
        data.pop("layout", None)
    merged = merge(data, changes)
    return {key: value for key, value in merged.items() if value != {}}


def checked(data: Data) -> dict[str, Any]:
    """The partial plan that `data` stands for, each value of its field's type. Raises PlanError."""
    if not data.get("model"):
        raise PlanError("model", "is needed: name a model of the catalogue or a config.json", ["llama-3.1-8b"])
    return Plan.parse(data).given()


def _field(name: str, path: str, workload: type[BaseModel]) -> PlanField:
    model: type[BaseModel] = Plan
    *sections, last = path.split(".")
    for step in sections:
        annotation: Any = workload if step == "workload" else model.model_fields[step].annotation
        model = annotation
    info = model.model_fields[last]
    return PlanField(name, path, info.description or "A name for the plan.", tuple(_choices(info.annotation)))


def _choices(annotation: Any) -> Iterable[str]:
    """The values of literals, and true and false of a truth value; none where any number or text may stand."""
    if annotation is bool:
        return ("true", "false")
    if typing.get_origin(annotation) is Literal:
        return tuple(str(value) for value in typing.get_args(annotation))
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    if typing.get_origin(annotation) is typing.Annotated:
        return _choices(parts[0])
    inner = [tuple(_choices(part)) for part in parts]
    return tuple(value for each in inner for value in each) if inner and all(inner) else ()
