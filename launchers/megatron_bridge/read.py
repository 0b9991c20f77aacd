"""Megatron-Bridge's scripts/training/run_recipe.py: a recipe with Megatron's arguments over it. Words: fields.yaml."""

from __future__ import annotations

import re
from typing import Any

from launchers.megatron import read as megatron
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, inverted
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

# Fields of a ConfigContainer (training/config.py) that no other program's YAML has beside a section `train`.
_MARKS = ("model.tensor_model_parallel_size", "model.pipeline_model_parallel_size", "train.train_iters",
          "train.micro_batch_size", "train.global_batch_size", "scheduler.lr_warmup_iters")  # fmt: skip


def score(keys: Keys) -> int:
    return 6 * sum(name in keys for name in _MARKS) if "train.train_iters" in keys else 0


def read(keys: Keys, findings: Findings) -> None:
    """A YAML that a script of one's own lays over a recipe (tutorials/recipes/llama/02_pretrain_with_yaml.py)."""
    over = f"{keys.file}: the recipe that it is laid over says it, in a script that is not given"
    for field in ("model", "workload.stage", *(["workload.method"] if any(keys.below("peft")) else [])):
        findings.blocked.setdefault(field, over)
    _read_fields(keys, Keys(keys.file), findings, Item(keys.file, "config", None))


def _read_recipe(file: str, words: list[Word], findings: Findings, name: Item) -> None:
    """scripts/training/run_recipe.py: a library recipe with fields of its ConfigContainer over it."""
    overridden = Keys(file)
    keys, _ = options(file, overrides(overridden, words))
    _read_fields(overridden, keys, findings, name)


def _read_fields(overridden: Keys, keys: Keys, findings: Findings, name: Item) -> None:
    """`overridden` are fields of the ConfigContainer, `keys` the options that choose its recipe."""
    facts, inner = table("megatron_bridge/fields"), Keys(overridden.file)
    places = {place: argument for argument, place in facts["places"].items() if "." in place}
    adapter: dict[str, Item] = {}
    for item in overridden.items.values():
        section, _, argument = item.key.rpartition(".")
        if section == "peft":
            adapter[argument] = item
        elif item.value != "null" and item.key not in places:
            inner.put(argument or item.key, item.value, item.line)
    _precision(inner.take("mixed_precision"), findings, facts)
    stages = inner.take("virtual_pipeline_model_parallel_size")
    if stages is not None:
        inner.put("num_virtual_stages_per_pipeline_rank", stages.value, stages.line)
    stem, mode, recipe = keys.take("model"), keys.take("mode"), keys.take("recipe")
    if stem is None and recipe is not None:
        match = re.fullmatch(r"(.+?)_(pretrain|sft|lora|dora|peft)(_config)?", str(recipe.value))
        if match:
            stem, mode = (Item(name.file, "recipe", part, recipe.line) for part in (match[1], match[2]))
    known = inverted(facts["models"]).get(str(stem.value)) if stem is not None else None
    if known and stem is not None:
        findings.put("model", known, stem)
    elif not findings.has("model"):
        findings.block("model", stem or recipe or name, "is no recipe that is known here")
    if mode is not None and mode.value in ("lora", "dora"):
        findings.put("workload.method", mode.value, mode)
        findings.put("workload.stage", "sft", mode)
        _adapter(adapter, findings, facts)
    elif mode is not None:
        findings.put("workload.stage", "pretrain" if mode.value == "pretrain" else "sft", mode)
    packed = inner.take("enable_offline_packing")
    findings.truth("workload.packing", packed)
    fusion = inner.items.get("cross_entropy_loss_fusion")
    findings.truth("workload.fused_loss", fusion)
    for argument, field in megatron.OF_RECIPE.items():
        if argument not in inner:
            findings.blocked.setdefault(field, f"{name.origin}: the recipe says it, in Megatron-Bridge's own code")
    megatron.read(inner, findings, program="megatron-bridge")
    leave_rest(keys, findings, "nemo")


def _precision(kind: Item | None, findings: Findings, facts: dict[str, Any]) -> None:
    """The name of a library config, or one written out; what a config of its own makes of gradients it says."""
    if kind is None:
        return
    known = inverted(facts["precisions"])
    if not str(kind.value).startswith("{"):
        findings.word("workload.precision", kind, known)
        if kind.value in known and known[kind.value] in facts["mixed_precision"]["of"]:
            findings.put("workload.gradients", "fp32", kind)
        return
    fields = dict(re.findall(r"(\w+):([\w.]+)", str(kind.value)))
    low = next((fields[name] for name in ("fp4_recipe", "fp8_recipe") if name in fields), None)
    words = {"nvfp4": "nvfp4", "mxfp8": "mxfp8", "tensorwise": "fp8", None: "bf16"}
    if low not in words or (low is None and fields.get("bf16") != "true"):
        findings.block("workload.precision", kind, "is no precision that is read")
        return
    findings.put("workload.precision", words[low], kind)
    wide = fields.get("grad_reduce_in_fp32", "true") == "true"
    findings.put("workload.gradients", "fp32" if wide else "bf16", kind)


def _adapter(items: dict[str, Item], findings: Findings, facts: dict[str, Any]) -> None:
    findings.whole("workload.lora.rank", items.get("dim"))
    findings.number("workload.lora.alpha", items.get("alpha"))
    findings.number("workload.lora.dropout", items.get("dropout"))
    modules = items.get("target_modules")
    if modules is None:
        return
    text = str(modules.value).strip("[]")
    modules_named = {part.strip(" '\"") for part in text.split(",")}
    for group, names in facts["adapter_targets"].items():
        if modules_named == set(names):
            findings.put("workload.lora.targets", group, modules)
            return
    findings.leave(modules, "is a group of layers that is not modelled")


def read_command(start: Program, setting: ScriptSetting) -> str:
    _read_recipe(setting.file, start.words, setting.findings, start.name)
    return "Megatron-Bridge recipe"


FORMATS = (Format("Megatron-Bridge YAML", score, read),)
COMMANDS = {"bridge": read_command}
