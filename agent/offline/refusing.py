"""What is refused ('not DeepSpeed', 'anything but fp8'): the plan leaves it, and nothing chooses it instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from agent.offline.beside import Patch
from agent.offline.form import BESIDE, Edit
from estimator.plan.schema import Inference, Layout, Plan, Training, merge
from estimator.plan.training.defaults import framework_choices
from knowledge.machines.catalogue import find_accelerator
from knowledge.prices.book import prices
from planner.partial import get, is_serving
from planner.requests import ALL_PATHS

# What is taken in the place of a value that is refused, where the field's default is that value or leaves it to a
# search; {field: {refused: instead}}.
_INSTEAD: Mapping[str, Mapping[Any, Any]] = {
    "method": {"full": "lora", "qlora": "lora"},
    "precision": {"bf16": "fp16"},
    "zero_stage": {3: 2, 2: 1, 1: 0, 0: 1},
    "recompute": {"none": "selective", "selective": "none", "full": "selective"},
    "offload": {"none": "optimizer"},
    "weight_dtype": {"bf16": "fp8"},
    "kv_dtype": {"fp8": "bf16", "int8": "bf16", "bf16": "fp8", "fp16": "bf16"},
}
# Fields that only the person can give: a refused value is asked for anew.
_ASKED = ("model", "accelerator", "count", "provider")
_LEFT_OPEN = (*_ASKED, "framework")
# Frameworks that a run is tried with where the usual one is refused.
_FRAMEWORKS = ("fsdp2", "torchtitan", "megatron-bridge", "hf-trainer", "deepspeed")
_AUTO = (None, "auto")


def refuse(patch: Patch, refused: Mapping[str, Sequence[Any]], new: Sequence[Edit]) -> None:
    """Takes refused values out of the plan and puts what is taken instead, where something would choose them again.
    A framework is left open: `frameworks` tries the others."""
    for name, values in refused.items():
        if name in BESIDE:
            continue
        path = ALL_PATHS[name]
        held = get(patch.plan, path)
        if held in values:
            patch.plan = merge(patch.plan, {path: None})
        elif held is not None:
            continue
        instead = None if name in _LEFT_OPEN else _instead(name, values, is_serving(patch.plan))
        if instead is not None:
            patch.plan = merge(patch.plan, {path: instead})
    for edit in new:
        held = get(patch.plan, ALL_PATHS.get(edit.field, edit.field))
        taken = f", {held} taken instead" if held not in _AUTO and edit.field not in _ASKED else ""
        patch.refusals.append(f"without {edit.field.replace('_', ' ')} {edit.value}{taken}")


def devices_left(refused: Sequence[str], among: Sequence[str] = ()) -> list[str]:
    """Accelerators to choose from where some are refused: of `among`, else of all that can be rented."""
    rented = list(dict.fromkeys(price.accelerator for price in prices()))
    return [name for name in among or rented if name not in refused] if refused else []


def _instead(name: str, refused: Sequence[Any], serving: bool) -> Any:
    """The value nearest to a refused one that is not refused itself; None where nothing would choose it anyway."""
    if not ALL_PATHS[name].startswith(("workload.", "layout.")):
        return None
    table, value = _INSTEAD.get(name, {}), refused[0]
    for _ in refused:
        value = table.get(value)
        if value is not None and value not in refused:
            return value
    default = _default(name, serving)
    if default not in _AUTO and default not in refused:
        return default
    if isinstance(refused[0], bool):
        return not refused[0]
    if isinstance(refused[0], int) and ALL_PATHS[name].startswith("layout."):
        return next(
            size for size in (max(refused[0] // 2, 1), *(2**power for power in range(8))) if size not in refused
        )
    choices = [value for value in _choices(name, serving) if value not in _AUTO and value not in refused]
    return choices[0] if choices else None


def _info(name: str, serving: bool) -> Any:
    room, _, field = ALL_PATHS[name].partition(".")
    parts = {"workload": Inference if serving else Training, "layout": Layout}
    return parts[room].model_fields.get(field) if room in parts else None


def _default(name: str, serving: bool) -> Any:
    info = _info(name, serving)
    return None if info is None else info.default


def _choices(name: str, serving: bool) -> tuple[Any, ...]:
    """The values of a field that has a list of them."""
    info = _info(name, serving)
    words: list[Any] = []

    def flatten(hint: Any) -> None:
        for part in get_args(hint):
            if isinstance(part, str):
                words.append(part)
            else:
                flatten(part)

    flatten(info.annotation if info else None)
    return tuple(words)


def frameworks(plan: Mapping[str, Any], refused: Sequence[str]) -> list[str]:
    """Frameworks to try where one is refused and the plan names none: the usual ones for the run first."""
    device = get(plan, "cluster.accelerator")
    if not refused or is_serving(plan) or get(plan, "workload.framework") not in _AUTO or not device:
        return []
    usual = framework_choices(
        Plan.parse(merge({"model": "any"}, plan)), find_accelerator(str(device)).value, get(plan, "cluster.count") or 1
    )
    return [name for name in dict.fromkeys([*(name for name, _ in usual), *_FRAMEWORKS]) if name not in refused]
