"""Configs that hold Megatron's arguments under names of their own: Primus YAML, Megatron-Bridge, NeMo 1 YAML.

Each becomes Megatron's arguments. Words: data/primus.yaml, data/megatron_bridge.yaml, data/reading/nemo.yaml.
"""

from __future__ import annotations

import re
from typing import Any

from launchers.hf import read as hf
from launchers.megatron import read as megatron
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, inverted, is_set
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides, plain
from launchers.shell.scripts import Word
from launchers.tables import table

# What a recipe or preset says and its file does not repeat.
_OF_RECIPE = {
    "micro_batch_size": "workload.micro_batch",
    "global_batch_size": "workload.global_batch",
    "seq_length": "workload.seq_len",
    "tensor_model_parallel_size": "layout.tp",
    "pipeline_model_parallel_size": "layout.pp",
    "context_parallel_size": "layout.cp",
}
_PRIMUS = "modules.pre_trainer"
_TUNED = "modules.post_trainer"


def score_primus(keys: Keys) -> int:
    return 12 if any(f"{name}.framework" in keys for name in (_PRIMUS, _TUNED)) else 0


def read_primus(keys: Keys, found: Findings) -> None:
    """The overrides are Megatron's; what they leave out is the presets' (modules/megatron/trainer_base.yaml)."""
    words = table("primus")
    section = _PRIMUS if f"{_PRIMUS}.framework" in keys else _TUNED
    kind = keys.take(f"{section}.framework")
    if kind is not None and kind.value != "megatron":
        found.block("workload.framework", kind, "only Primus' Megatron backend is read")
    preset = keys.take(f"{section}.model")
    inner = _below(keys, f"{section}.overrides.")
    _environment_defaults(inner, found)
    for megatrons, own in words["renamed"].items():
        item = inner.take(own)
        if item is not None and item.value and not megatrons.startswith("no_"):
            inner.put(megatrons, item.value, item.line)
    if preset is not None:
        stem = re.sub(r"\$\{\w+:([^}]*)\}", r"\1", str(preset.value)).removesuffix(".yaml")
        preset = Item(preset.file, preset.key, stem, preset.line)
        known = inverted(words["models"]).get(stem)
        if known:
            found.put("model", known, preset)
        else:
            found.block("model", preset, "is no preset that is known here")
    if any(is_set(inner.items.get(name)) for name in ("use_torch_fsdp2", "patch_zero_bubble")):
        name = "use_torch_fsdp2" if is_set(inner.items.get("use_torch_fsdp2")) else "patch_zero_bubble"
        if name == "use_torch_fsdp2":
            found.block("layout.zero_stage", inner.items.pop(name), "a Plan of Primus has no torch FSDP2")
        else:
            half = inner.take("zero_bubble_v_schedule")
            found.put("layout.schedule", "v-half" if is_set(half) else "zero-bubble", inner.items.pop(name))
    for field, value in words["preset_values"].items():
        if section == _PRIMUS:
            found.default(field, value, "as Primus' preset has it")
    found.default("workload.precision", "bf16", "Primus' preset computes in bf16")
    if section == _TUNED:
        found.default("workload.stage", "sft", "a post_trainer fine-tunes")
    megatron.read(inner, found, program="primus")
    leave_rest(keys, found, "nemo")


def _environment_defaults(keys: Keys, found: Findings) -> None:
    """${NAME:value} is the value unless the environment says another."""
    for item in list(keys.items.values()):
        match = re.fullmatch(r"\$\{([A-Za-z_]\w*):(.*)\}", item.value) if isinstance(item.value, str) else None
        if match:
            value = plain(match[2])
            keys.put(item.key, None if value in ("null", "") else value, item.line)
            if item.key in _OF_RECIPE:
                found.warn(f"{item.origin}: ${match[1]} is taken at the default that the file gives it")


def read_bridge(file: str, words: list[Word], found: Findings, name: Item) -> None:
    """scripts/training/run_recipe.py: a library recipe with fields of its ConfigContainer over it."""
    facts = table("megatron_bridge")
    given = Keys(file)
    keys, _ = options(file, overrides(given, words))
    inner = Keys(file)
    places = {place: argument for argument, place in facts["places"].items() if "." in place}
    adapter: dict[str, Item] = {}
    for item in given.items.values():
        section, _, argument = item.key.rpartition(".")
        if section == "peft":
            adapter[argument] = item
        elif item.value != "null" and item.key not in places:
            inner.put(argument or item.key, item.value, item.line)
    kind = inner.take("mixed_precision")
    found.word("workload.precision", kind, inverted(facts["precisions"]))
    stages = inner.take("virtual_pipeline_model_parallel_size")
    if stages is not None:
        inner.put("num_virtual_stages_per_pipeline_rank", stages.value, stages.line)
    stem, mode, recipe = keys.take("model"), keys.take("mode"), keys.take("recipe")
    if stem is None and recipe is not None:
        match = re.fullmatch(r"(.+?)_(pretrain|sft|lora|dora|peft)(_config)?", str(recipe.value))
        if match:
            stem, mode = (Item(file, "recipe", part, recipe.line) for part in (match[1], match[2]))
    known = inverted(facts["models"]).get(str(stem.value)) if stem is not None else None
    if known and stem is not None:
        found.put("model", known, stem)
    else:
        found.block("model", stem or recipe or name, "is no recipe that is known here")
    if mode is not None and mode.value in ("lora", "dora"):
        found.put("workload.method", mode.value, mode)
        found.put("workload.stage", "sft", mode)
        _adapter(adapter, found, facts)
    elif mode is not None:
        found.put("workload.stage", "pretrain" if mode.value == "pretrain" else "sft", mode)
    packed = inner.take("enable_offline_packing")
    found.truth("workload.packing", packed)
    fusion = inner.items.get("cross_entropy_loss_fusion")
    found.truth("workload.fused_loss", fusion)
    for argument, field in _OF_RECIPE.items():
        if argument not in inner:
            found.blocked.setdefault(field, f"{name.origin}: the recipe says it, in Megatron-Bridge's own code")
    megatron.read(inner, found, program="megatron-bridge")
    leave_rest(keys, found, "nemo")


def _adapter(items: dict[str, Item], found: Findings, facts: dict[str, Any]) -> None:
    found.whole("workload.lora.rank", items.get("dim"))
    found.number("workload.lora.alpha", items.get("alpha"))
    found.number("workload.lora.dropout", items.get("dropout"))
    modules = items.get("target_modules")
    if modules is None:
        return
    text = str(modules.value).strip("[]")
    said = {part.strip(" '\"") for part in text.split(",")}
    for group, names in facts["adapter_targets"].items():
        if said == set(names):
            found.put("workload.lora.targets", group, modules)
            return
    found.leave(modules, "no group of layers that a Plan has")


def score(keys: Keys) -> int:
    own = ("model.micro_batch_size", "model.tensor_model_parallel_size", "trainer.devices", "trainer.num_nodes",
           "model.global_batch_size")  # fmt: skip
    return 3 * sum(name in keys for name in own)


def read(keys: Keys, found: Findings) -> None:
    """NeMo 1 and its launcher: trainer.* and model.*"""
    words = table("reading/nemo")
    inner = Keys(keys.file)
    for name, argument in words["arguments"].items():
        item = keys.take(name)
        if item is not None and argument not in inner:
            inner.put(argument, item.value, item.line)
    for name in [name for name in keys.below("model") if name.count(".") == 1]:
        item = keys.items.pop(name)
        if item.key.removeprefix("model.") not in inner:
            inner.put(item.key.removeprefix("model."), item.value, item.line)
    for name, fact in (("trainer.num_nodes", "nodes"), ("trainer.devices", "per_node")):
        found.whole(fact, keys.take(name))
    _switches(inner, words)
    _optimizer(keys, inner, found, words)
    kind = keys.take("trainer.precision")
    if not any(name in inner for name in ("fp8_format", "fp4_format")):
        found.word("workload.precision", kind, words["precisions"])
    scheme = keys.take("model.peft.peft_scheme")
    tuned = any(True for _ in keys.below("model.data.train_ds")) or scheme is not None
    if scheme is not None and scheme.value == "lora":
        found.put("workload.method", "lora", scheme)
        found.whole("workload.lora.rank", keys.take("model.peft.lora_tuning.adapter_dim"))
    elif scheme is not None and scheme.value not in (None, "none"):
        found.block("workload.method", scheme, "is no method of a Plan")
    if tuned:
        found.default("workload.stage", "sft", "the data are of instructions")
    name = keys.take("run.name") or keys.take("name")
    megatron.read(inner, found, program="nemo", names=[name] if name is not None else [])
    hf.compiled(keys, found)
    leave_rest(keys, found, "nemo", "megatron")


def _switches(inner: Keys, words: dict[str, Any]) -> None:
    """What NeMo says the other way round, or in one word for several."""
    if (bias := inner.take("bias")) is not None and bias.value is False:
        inner.put("disable_bias_linear", True, bias.line)
    if (act := inner.take("activation")) is not None and "swiglu" in str(act.value):
        inner.put("swiglu", True, act.line)
    if (tied := inner.take("share_embeddings_and_output_weights")) is not None and tied.value is False:
        inner.put("untie_embeddings_and_output_weights", True, tied.line)
    if as_number(inner.look("num_query_groups")):
        inner.put("group_query_attention", True)
    if str(inner.look("normalization") or "").lower() == "rmsnorm":
        inner.put("normalization", "RMSNorm", inner.items["normalization"].line)
    for name, fmt in (("fp8_hybrid", "hybrid"), ("fp8_e4m3", "e4m3"), ("fp8", "hybrid")):
        if is_set(item := inner.take(name)) and item is not None and "fp8_format" not in inner:
            inner.put("fp8_format", fmt, item.line)
    # Its own way of saying none.
    if inner.look("recompute_granularity") is None:
        for name in ("recompute_method", "recompute_num_layers"):
            inner.take(name)


def _optimizer(keys: Keys, inner: Keys, found: Findings, words: dict[str, Any]) -> None:
    item = keys.take("model.optim.name")
    if item is None:
        return
    known = words["optimizers"].get(str(item.value))
    if known is None:
        found.block("workload.optimizer", item, "has no counterpart in a Plan")
        return
    inner.put("optimizer", known["optimizer"], item.line)
    if known.get("sharded"):
        inner.put("use_distributed_optimizer", True, item.line)


def _below(keys: Keys, prefix: str) -> Keys:
    found = Keys(keys.file)
    for name in [name for name in keys.items if name.startswith(prefix)]:
        item = keys.items.pop(name)
        found.put(name.removeprefix(prefix), item.value, item.line)
    return found
