"""Training that a source writes out itself, on DeepSpeed's engine or accelerate, and Ray Train, which starts functions
on workers of its own: the calls that say a run, as arguments of the transformers Trainer."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from launchers.python.values import SPREAD, arguments_of, is_unknown
from launchers.reading.devices import accelerator
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number
from launchers.shell.scripts import UNKNOWN

Call = tuple[str, ast.Call, Mapping[str, Any]]
_BATCH = "per_device_train_batch_size"
# Classes of optimizers that loops make, in the Trainer's words (torch.optim 2.9, bitsandbytes 0.48).
OPTIMIZERS = {
    "AdamW": "adamw_torch", "Adam": "adamw_torch", "FusedAdam": "adamw_torch", "DeepSpeedCPUAdam": "adamw_torch",
    "SGD": "sgd", "Adafactor": "adafactor", "AdamW8bit": "adamw_bnb_8bit", "Adam8bit": "adamw_bnb_8bit",
    "PagedAdamW8bit": "paged_adamw_8bit", "PagedAdamW32bit": "paged_adamw_32bit",
}  # fmt: skip
_LOADERS = ("DataLoader", "iter_torch_batches")
_MIXED = {"bf16": "bf16", "fp16": "fp16"}


def gather_loop(keys: Keys, calls: Iterable[Call], findings: Findings) -> str | None:
    """Puts what a loop of the source's own says into `keys`; what it is on, None where it is on nothing known."""
    calls = list(calls)
    engine = next((title for name, _, _ in calls for end, title in _ENGINES.items() if _is(name, end)), None)
    if engine is None or _BATCH in keys:
        return None
    for name, node, names in calls:
        last, arguments = name.rpartition(".")[2], dict(arguments_of(node, names))
        if _is(name, "deepspeed.initialize"):
            _engine(keys, arguments.get("config", arguments.get("config_params", UNKNOWN)), node, findings)
        elif last == "Accelerator":
            _accelerator(keys, arguments, node, findings)
        elif last == "DeepSpeedPlugin":
            _plugin(keys, arguments, node)
        elif last == "gradient_checkpointing_enable":
            keys.put("gradient_checkpointing", True, node.lineno)
        elif last in OPTIMIZERS and "optim" in name:
            keys.put("optim", OPTIMIZERS[last], node.lineno)
        elif last in _LOADERS and arguments.get("shuffle") is not False and _BATCH not in keys:
            keys.put(_BATCH, arguments.get("batch_size"), node.lineno)
        elif "tokenizer" in name and "max_length" in arguments and "max_length" not in keys:
            keys.put("max_length", arguments["max_length"], node.lineno)
    if _BATCH not in keys:
        why = "has rows of a number that it does not say"
        findings.block("workload.micro_batch", Item(keys.file, engine, None), why)
    return engine


_ENGINES = {"deepspeed.initialize": "DeepSpeed's engine", "accelerator.prepare": "accelerate"}


def _is(name: str, end: str) -> bool:
    return name == end or name.endswith(f".{end}")


def _engine(keys: Keys, config: Any, node: ast.Call, findings: Findings) -> None:
    """DeepSpeed's config: a file's path, or data of which every key is told."""
    if isinstance(config, str) and not is_unknown(config):
        keys.put("deepspeed", config, node.lineno)
        return
    flat = dict(_flat(config)) if isinstance(config, dict) else {UNKNOWN: UNKNOWN}
    if any(is_unknown(key) for key in flat):
        item = Item(keys.file, "deepspeed.initialize", None, node.lineno)
        for field in ("workload.precision", "layout.zero_stage", "workload.global_batch"):
            if not any(key.startswith(_SAYS[field]) for key in flat):
                findings.block(field, item, "its config is made where it runs")
    for key, value in flat.items():
        if not is_unknown(key):
            keys.put(f"deepspeed.{key}", value, node.lineno)
    rows, steps = flat.get("train_micro_batch_size_per_gpu"), flat.get("gradient_accumulation_steps")
    for name, value in ((_BATCH, rows), ("gradient_accumulation_steps", steps)):
        if as_number(value) is not None:
            keys.put(name, value, node.lineno)
    for name in _MIXED:
        if flat.get(f"{name}.enabled") is True:
            keys.put(name, True, node.lineno)


_SAYS = {
    "workload.precision": ("bf16.", "fp16."),
    "layout.zero_stage": ("zero_optimization.",),
    "workload.global_batch": ("train_", "gradient_accumulation_steps"),
}


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _accelerator(keys: Keys, arguments: Mapping[str, Any], node: ast.Call, findings: Findings) -> None:
    if "gradient_accumulation_steps" in arguments:
        keys.put("gradient_accumulation_steps", arguments["gradient_accumulation_steps"], node.lineno)
    kind = arguments.get("mixed_precision")
    if kind in _MIXED:
        keys.put(_MIXED[kind], True, node.lineno)
    elif kind is None and SPREAD not in arguments:
        findings.default("workload.precision", "bf16", "accelerate's own settings say it")
    elif kind not in ("no", None):
        item = Item(keys.file, "mixed_precision", kind, node.lineno)
        findings.block("workload.precision", item, "is known only where it runs")


def _plugin(keys: Keys, arguments: Mapping[str, Any], node: ast.Call) -> None:
    config = arguments.get("hf_ds_config")
    if isinstance(config, str):
        keys.put("deepspeed", config, node.lineno)
    if "zero_stage" in arguments:
        keys.put("deepspeed.zero_optimization.stage", arguments["zero_stage"], node.lineno)
    for name, word in (("offload_optimizer_device", "offload_optimizer"), ("offload_param_device", "offload_param")):
        if arguments.get(name) not in (None, "none"):
            keys.put(f"deepspeed.zero_optimization.{word}.device", arguments[name], node.lineno)


def workers(calls: Iterable[Call], file: str, findings: Findings) -> bool:
    """Ray Train's workers, each with an accelerator of its own, and which; whether the source is started by it."""
    calls = list(calls)
    trainer = next((node for name, node, _ in calls if name.rpartition(".")[2] == "TorchTrainer"), None)
    if trainer is None:
        return False
    scaling = next((row for row in calls if row[0].rpartition(".")[2] == "ScalingConfig"), None)
    arguments = dict(arguments_of(scaling[1], scaling[2])) if scaling else {}
    item = Item(file, "num_workers", arguments.get("num_workers", 1), scaling[1].lineno if scaling else trainer.lineno)
    resources = arguments.get("resources_per_worker")
    devices = as_number(resources.get("GPU", 1)) if isinstance(resources, dict) else 1.0
    if arguments.get("use_gpu", False) is not True and devices == 1.0 and not isinstance(resources, dict):
        findings.leave(item, "workers have no accelerator, or where it runs says so (use_gpu)")
    elif devices == 1.0:
        findings.whole("devices", item)
    else:
        findings.block("devices", item, "workers have another number of accelerators than one each")
    kind = arguments.get("accelerator_type")
    if isinstance(kind, str) and not is_unknown(kind):
        accelerator(findings, Item(file, "accelerator_type", kind, item.line), kind)
    return True
