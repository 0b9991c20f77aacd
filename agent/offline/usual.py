"""The devices that are taken where a run names none: those that people use for a model of its size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.plan.schema import merge
from knowledge.engines import engine
from knowledge.machines.catalogue import find_accelerator
from knowledge.models.catalogue import architecture
from knowledge.recipes import usual_tokens
from planner.partial import get, is_serving

DEVICE, COUNT, PER_NODE = "cluster.accelerator", "cluster.count", "cluster.per_node"
# Bytes a parameter of what is trained: weights, gradients and Adam's states in mixed precision (ZeRO, section 3.1);
# frozen weights with adapters and activations beside them; the same in 4 bits. Of what is served: weights and cache.
_BYTES = {"full": 16.0, "lora": 2.6, "dora": 2.6, "qlora": 0.9, "qdora": 0.9}
_SERVED, _FOUR_BITS, _EIGHT_BITS = 2.4, 0.6, 1.3
# (Device, devices, bytes that they hold together), the smallest first; nodes of the last from there on. What is larger
# than a node of H100 is served on H200.
_SIZES = (("rtx-4090", 1, 22e9), ("h100-sxm", 1, 72e9), ("h100-sxm", 8, 8 * 72e9))
_LARGE_NODE = ("h200-sxm", 8, 8 * 127e9)

# Cards that people mean by their memory alone, in GB as they are sold.
_CARDS = {8: "rtx-3070", 11: "rtx-2080-ti", 12: "rtx-3060-12gb", 16: "rtx-4080", 20: "rtx-4000-ada", 24: "rtx-4090",
          32: "rtx-5090", 40: "a100-sxm-40gb", 48: "l40s", 64: "mi210", 80: "h100-sxm", 94: "h100-nvl",
          96: "rtx-pro-6000-blackwell", 141: "h200-sxm", 180: "b200-sxm", 192: "mi300x", 256: "mi325x",
          288: "b300-sxm"}  # fmt: skip
_APPLE = {8: "apple-m1-8gb", 16: "apple-m1", 24: "apple-m2", 32: "apple-m4", 36: "apple-m3-pro",
          48: "apple-m4-pro-48gb", 64: "apple-m4-pro", 96: "apple-m2-max", 128: "apple-m4-max",
          192: "apple-m2-ultra", 512: "apple-m3-ultra"}  # fmt: skip
_MONTH_H = 720.0
# Of a dense model on several nodes, as published runs report it.
_PRETRAIN_MFU = 0.4
# Part of a device that weights and states take.
_FILLED = 0.9
# How far a memory that is told may be from what is sold.
_NEAR = 0.05


def card_of(memory_gb: float, apple: bool = False) -> str | None:
    """The card, or the Apple machine, that people mean who say its memory, where there is one."""
    cards = _APPLE if apple else _CARDS
    near = min(cards, key=lambda size: abs(size - memory_gb))
    return cards[near] if abs(near - memory_gb) <= _NEAR * memory_gb else None


def usual(plan: Mapping[str, Any], searched: bool = False, alone: bool = False) -> dict[str, Any]:
    """{path: value} of the devices, and of their number where none was said and one has no room; empty where they are
    named or the model is not known. `searched`: the model is what is asked for, so that only a number of devices is
    missing their kind. `alone`: it is spoken of as a single one."""
    named, count = get(plan, DEVICE), get(plan, COUNT)
    if named is None and get(plan, "model") is None and searched and count:
        return {DEVICE: _SIZES[-1][0]}
    if get(plan, "model") is None or (named is not None and count):
        return {}
    try:
        device = None if named is None else find_accelerator(str(named)).value
        need = _need_bytes(plan, device)
        if device is not None and device.personal and alone and not is_serving(plan):
            # 'Fine-tune a 7B on my 4070'
            return {COUNT: 1}
        if device is not None:
            shared = is_serving(plan) and device.personal and get(plan, "overrides.host_gib") is not None
            counts = (
                _enough_of(device, need, shared), _for_a_month(device, get(plan, "goal.budget_device_hours")),
                _for_all_tokens(plan, device), _that_are_split(plan),
            )  # fmt: skip
            return _in_whole_machines(max(counts, key=lambda taken: taken.get(COUNT, 0)), get(plan, PER_NODE))
    except PlanError:
        return {}
    if count:
        device = next((device for device, _, held in _SIZES[:1] if need <= held and count < 8), "h100-sxm")
        return {DEVICE: device}
    enough = _that_hold(plan, need)
    usual_device = find_accelerator(_SIZES[-1][0]).value
    tokens = _for_all_tokens(plan, usual_device)
    return max(enough, tokens and {DEVICE: usual_device.id, **tokens}, key=lambda taken: taken.get(COUNT, 0))


def _that_hold(plan: Mapping[str, Any], need: float) -> dict[str, Any]:
    sizes = (*_SIZES, _LARGE_NODE) if is_serving(plan) else _SIZES
    if get(plan, "workload.stage") == "pretrain":
        # Nobody pretrains on one card of a desktop.
        sizes = sizes[1:]
    for device, number, held in sizes:
        if need <= held:
            return {DEVICE: device, COUNT: number}
    device, number, held = sizes[-1]
    return {DEVICE: device, COUNT: number * -(-int(need) // int(held))}


def _for_all_tokens(plan: Mapping[str, Any], device: Accelerator) -> dict[str, Any]:
    """As many nodes as pretrain a model in about two months; nothing where one does."""
    if is_serving(plan) or get(plan, "workload.stage") != "pretrain":
        return {}
    model = architecture(get(plan, "model"))
    tokens = get(plan, "workload.dataset_tokens") or usual_tokens(model.id, model.parameters)[0]
    rate = _PRETRAIN_MFU * device.peak_flops.get("bf16", 0.0)
    if not rate:
        return {}
    nodes = 6.0 * model.active_parameters * float(tokens) / rate / 3600.0 / (2 * _MONTH_H) / device.per_node
    return {COUNT: device.per_node * 2 ** round(math.log2(nodes))} if nodes >= 1.0 else {}


def _enough_of(device: Accelerator, need: float, shared: bool) -> dict[str, Any]:
    """The fewest of a device that hold what a model needs, in whole nodes beyond one; nothing where one does, or where
    the host's memory is `shared`."""
    held = _FILLED * device.usable_bytes
    if need <= held or device.vendor == "Apple" or shared:
        return {}
    few = next((number for number in (2, 4, 8) if need <= number * held), None)
    return {COUNT: few or 8 * -(-int(need) // int(8 * held))}


def _in_whole_machines(taken: dict[str, Any], each: int | None) -> dict[str, Any]:
    """Whole machines, where it was said how many devices each has: 'server with 8 Gaudi3'."""
    return taken if each is None else {COUNT: each * -(-taken.get(COUNT, 1) // each)}


def _that_are_split(plan: Mapping[str, Any]) -> dict[str, Any]:
    """As many as the sizes of a layout that was named take together."""
    count = math.prod(int(get(plan, f"layout.{name}") or 1) for name in ("tp", "pp", "cp", "dp"))
    return {COUNT: count} if count > 1 else {}


def _for_a_month(device: Accelerator, device_hours: float | None) -> dict[str, Any]:
    """As many whole nodes as use up so many device-hours in about a month, as a power of two."""
    nodes = (device_hours or 0.0) / (_MONTH_H * device.per_node)
    return {COUNT: device.per_node * 2 ** round(math.log2(nodes))} if nodes >= 1.0 else {}


def without_usual(plan: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """A plan without the devices that an earlier turn took for it, so that they are taken anew."""
    kept = {path: None for path, value in taken.items() if get(plan, path) == value}
    return merge(plan, kept)


def _need_bytes(plan: Mapping[str, Any], device: Accelerator | None) -> float:
    """What a model takes; where no format is named, on a card of one's own in 4 bits."""
    model = architecture(get(plan, "model"))
    parameters = model.parameters
    if not is_serving(plan):
        method = str(get(plan, "workload.method") or "full")
        return parameters * _BYTES.get(method, _BYTES["full"])
    dtype = str(get(plan, "workload.weight_dtype") or model.weight_format or "bf16")
    if get(plan, "workload.weight_dtype") is None:
        named = get(plan, "workload.engine")
        if named in ("ollama", "llamacpp") or (named is None and device is not None and device.personal):
            dtype = engine(named or "llamacpp").usual_format
    four = any(word in dtype for word in ("4", "q3", "q2", "awq", "gptq"))
    return parameters * (_FOUR_BITS if four else _EIGHT_BITS if "8" in dtype or "q5" in dtype else _SERVED)
