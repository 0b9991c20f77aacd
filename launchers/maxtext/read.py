"""MaxText YAML and key=value command lines. Words: maxtext/fields.yaml; what is left out is its base.yml's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from launchers.reading.commands import CONFIGS, base_name, named_document, over_config
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

# Axes that a Plan has; the sizes inside a slice and across slices multiply.
_AXES = {"data": "copies", "fsdp": "shards", "context": "cp", "sequence": "cp", "tensor": "tp", "expert": "ep",
         "pipeline": "pp", "fsdp_transpose": "shards"}  # fmt: skip
# Switches of its engine, which no training has on.
_DECODES = ("replicate_quant_scale", "quantize_kvcache")
# Policies that keep some of the matmuls of a layer.
_PARTS = ("minimal", "minimal_flash", "save_qkv_proj", "save_out_proj", "minimal_with_context",
          "save_dot_with_context_except_mlp")  # fmt: skip


def score(keys: Keys) -> int:
    markers = ("per_device_batch_size", "base_config", "max_target_length", "remat_policy", "ici_fsdp_parallelism",
           "base_output_directory")  # fmt: skip
    return 5 * sum(name in keys for name in markers)


def from_words(file: str, words: Sequence[Word]) -> Keys:
    """The keys of a command: a YAML, then key=value."""
    keys, rest = options(file, words)
    overrides(keys, rest)
    return keys


def read(keys: Keys, findings: Findings) -> None:
    words = table("maxtext/fields")
    findings.programs.append("maxtext")
    name = keys.take("model_name") or Item(keys.file, "model_name", "default")
    known = inverted(words["models"]).get(str(name.value))
    if known:
        findings.put("model", known, name)
    elif name.value == "default":
        _by_dimensions(keys, findings, name)
    else:
        findings.block("model", name, "is no model that is known here")
    if is_set(paired := keys.take("use_dpo")) and paired:
        findings.put("workload.stage", "dpo", paired)
    for each in [each for each in keys.items if each.startswith("dpo_")]:
        keys.take(each)
    for word in _DECODES:
        if (decodes := keys.take(word)) is not None and is_set(decodes):
            findings.block("workload", decodes, "is of decoding: MaxText's engine serves with it")
    findings.default("workload.stage", "pretrain", "MaxText's trainer pretrains")
    findings.default("workload.method", "full", "MaxText trains all weights")
    findings.default("workload.packing", True, "text is cut into full rows")
    findings.whole("workload.seq_len", keys.take("max_target_length"))
    findings.default("workload.seq_len", 2048, "max_target_length is 2048 unless given")
    findings.whole("workload.steps", keys.take("steps"))
    _mesh(keys, findings)
    _precision(keys, findings)
    _memory(keys, findings)
    findings.word("workload.optimizer", keys.take("opt_type"), {"adamw": "adamw", "adam_pax": "adamw", "sgd": "sgd",
                                                             "muon": "muon"})  # fmt: skip
    findings.default("workload.optimizer", "adamw", "opt_type is AdamW unless given")
    findings.truth("workload.packing", keys.take("packing"))
    attention = {"autoselected": "flash", "flash": "flash", "cudnn_flash_te": "flash", "dot_product": "eager"}
    findings.word("workload.attention", keys.take("attention"), attention, soft=True)
    topology = keys.take("compile_topology")
    if topology is not None and (match := re.fullmatch(r"(v[0-9]+[ep]?)-([0-9]+)", str(topology.value))):
        slices = as_number(keys.look("compile_topology_num_slices")) or 1
        keys.take("compile_topology_num_slices")
        cores = 2 if match[1] in ("v4", "v5p") else 1
        findings.put("devices", int(int(match[2]) // cores * slices), topology)
        findings.imply("cluster.accelerator", f"tpu-{match[1]}", topology)
    leave_rest(keys, findings, "maxtext")


# Of a model that no name says: its dimensions and what they are in base.yml, whose decoder is Llama 2's.
_DIMENSIONS = {
    "base_num_decoder_layers": ("num_hidden_layers", 16),
    "base_emb_dim": ("hidden_size", 2048),
    "base_num_query_heads": ("num_attention_heads", 16),
    "base_num_kv_heads": ("num_key_value_heads", 16),
    "head_dim": ("head_dim", 128),
    "base_mlp_dim": ("intermediate_size", 7168),
    "vocab_size": ("vocab_size", 32000),
}
# What makes it another model than those say, with the value at which it does not.
_OF_OTHERS = {
    "decoder_block": ("llama2", "default"),
    "global_parameter_scale": (1,),
    "num_experts": (1,),
    "mlp_activations": (["silu", "linear"], ["gelu", "linear"]),
}


def _by_dimensions(keys: Keys, findings: Findings, name: Item) -> None:
    for key, usual in _OF_OTHERS.items():
        item = keys.take(key)
        if item is not None and item.value not in usual:
            findings.block(
                "model", item, "is of a model by its dimensions that is not read; name it or its config.json"
            )
            return
    fields: dict[str, Any] = {}
    for key, (field, usual) in _DIMENSIONS.items():
        item = keys.take(key)
        number = usual if item is None else as_number(item.value)
        if number is None or number < 1:
            findings.block("model", item or name, "is no size of a model")
            return
        fields[field] = int(number)
    tied = is_set(keys.take("logits_via_embedding"))
    findings.put("model", {"model_type": "llama", "tie_word_embeddings": tied} | fields, name)


def _mesh(keys: Keys, findings: Findings) -> None:
    """Sizes of the axes; one of -1 takes the devices that are left."""
    sizes = dict.fromkeys(_AXES.values(), 1)
    spoken: dict[str, Item] = {}
    open_axes: list[str] = []
    defaults = {"ici_fsdp_parallelism": -1, "dcn_data_parallelism": -1}
    for place in ("ici", "dcn"):
        for axis, size in _AXES.items():
            item = keys.take(f"{place}_{axis}_parallelism")
            value = as_number(item.value) if item is not None else defaults.get(f"{place}_{axis}_parallelism", 1)
            if value is None or value == 0 or value != int(value):
                findings.block("layout.dp", item or Item(keys.file, axis, None), "is no size")
                return
            if item is not None:
                spoken[size] = item
            if value < 0:
                open_axes.append(size)
            else:
                sizes[size] *= int(value)
    origin = Item(keys.file, "ici_ and dcn_ sizes", str(sizes))
    # The slices of a single machine are one, so that data across them is too.
    across = [size for size in open_axes if size == "copies"]
    for size, field in (("tp", "layout.tp"), ("cp", "layout.cp"), ("ep", "layout.ep"), ("pp", "layout.pp")):
        if size in open_axes:
            findings.block(field, spoken.get(size, origin), "takes the devices that are left")
        elif size in spoken:
            findings.put(field, sizes[size], spoken[size])
        else:
            findings.default(field, 1, f"ici_ and dcn_ sizes of {size} are 1 unless given")
    shards = sizes["shards"] * sizes["ep"]
    if not open_axes:
        findings.put("devices", sizes["copies"] * shards * sizes["cp"] * sizes["tp"] * sizes["pp"], origin)
    elif across and open_axes == ["copies"]:
        # Data across slices is open unless given, and of one slice all is said.
        findings.imply("devices", sizes["copies"] * shards * sizes["cp"] * sizes["tp"] * sizes["pp"], origin)
    if "shards" in open_axes or shards > 1:
        findings.put("layout.zero_stage", 3, spoken.get("shards", origin))
        if "shards" not in open_axes and sizes["copies"] > 1 and not across:
            findings.put("dp_shard", shards, spoken.get("shards", origin))
            findings.put("dp_replicate", sizes["copies"], spoken.get("copies", origin))
    else:
        # One chip's copy is whole in either.
        whole = 0 if sizes["copies"] > 1 else 3
        findings.put("layout.zero_stage", whole, spoken.get("shards", origin))
    _batch(keys, findings, sizes["tp"] * sizes["cp"] * sizes["pp"])


def _batch(keys: Keys, findings: Findings, together: int) -> None:
    """The batch is of a chip; those that split a sequence or its tensors share the sequences of a replica."""
    each = keys.take("per_device_batch_size")
    micro = (as_number(each.value) if each is not None else 12.0) or 0.0
    whole = round(micro * together, 6)
    if each is not None and (whole < 1 or whole != int(whole)):
        findings.block("workload.micro_batch", each, f"is no whole number of sequences for {together} chips together")
    elif each is not None:
        findings.put("workload.micro_batch", int(whole), each)
    else:
        findings.default("workload.micro_batch", int(whole), "per_device_batch_size is 12 unless given")
    findings.whole("accumulation", keys.take("gradient_accumulation_steps"))
    findings.default("accumulation", 1, "gradient_accumulation_steps is 1 unless given")


def _precision(keys: Keys, findings: Findings) -> None:
    kind, packed, weights = keys.take("dtype"), keys.take("quantization"), keys.take("weight_dtype")
    if packed is not None and packed.value:
        fp8 = dict.fromkeys(("fp8", "fp8_full", "nanoo_fp8", "te_fp8_delayedscaling", "fp8_gpu"), "fp8")
        findings.word("workload.precision", packed, fp8 | {"int8": "int8", "te_mxfp8": "mxfp8"})
    else:
        findings.word("workload.precision", kind, {"bfloat16": "bf16", "float32": "fp32", "float16": "fp16"})
        findings.default("workload.precision", "bf16", "dtype is bfloat16 unless given")
    if weights is not None and weights.value == "bfloat16":
        findings.put("workload.weights", "bf16", weights)
    elif weights is not None and weights.value != "float32":
        findings.block("workload.weights", weights, "has no counterpart in a Plan")


def _memory(keys: Keys, findings: Findings) -> None:
    policy, kept = keys.take("remat_policy"), keys.take("decoder_layer_input")
    words = table("maxtext/fields")
    known = {str(word): name for name, word in words["recompute"].items() if word} | {"none": "none"}
    if policy is None and "remat_policy" in keys.nulls:
        findings.put("layout.recompute", "none", Item(keys.file, "remat_policy", "null"))
    elif policy is not None and policy.value == "minimal_offloaded":
        findings.put("layout.recompute", "selective", policy)
        findings.put("layout.offload", "activations", policy)
    elif policy is not None and policy.value == "custom" and kept is not None and kept.value == "offload":
        findings.put("layout.recompute", "full", policy)
        findings.put("layout.offload", "activations", kept)
    elif policy is not None and policy.value in _PARTS:
        findings.put("layout.recompute", "selective", policy)
        findings.warn(f"{policy.origin}: {policy.value} keeps other parts of a layer than a Plan's selective")
    else:
        findings.word("layout.recompute", policy, known)
        findings.default("layout.recompute", "full", "remat_policy is full unless given")
    states, params = keys.take("optimizer_memory_host_offload"), keys.take("parameter_memory_host_offload")
    if params is not None and as_truth(params.value):
        findings.put("layout.offload", "params", params)
    elif states is not None and as_truth(states.value):
        findings.put("layout.offload", "optimizer", states)
    findings.default("layout.offload", "none", "nothing is moved to the host unless told to")
    tiles = keys.take("num_vocab_tiling")
    if tiles is not None and (as_number(tiles.value) or 1) > 1:
        findings.put("workload.fused_loss", True, tiles)
    factor = keys.take("capacity_factor")
    if factor is not None and (as_number(factor.value) or -1) > 0:
        findings.put("workload.moe_capacity", True, factor)


# Configs that MaxText comes with and that say nothing of a size or a batch (src/maxtext/configs).
_SHIPPED = ("base.yml", "sft.yml", "gpu_smoke_test.yml")


def read_command(start: Program, setting: ScriptSetting) -> str | None:
    module = str(start.name.value).rpartition(".")[2]
    if not re.search(r"train|sft|\.py$|^py$", module):
        setting.findings.idle.append(f"{start.name.origin}: {module} is no training of MaxText's")
        return None
    if "sft" in module:
        setting.findings.imply("workload.stage", "sft", start.name)
    elif re.search(r"(^|_)(rl|grpo|dpo|distill)", module):
        setting.findings.block("workload.stage", start.name, "is no stage of MaxText's that is read here")
    config = next((word for word in start.words if word.text.endswith(CONFIGS)), None)
    if config is not None and base_name(config.text) in setting.documents:
        over_config(config, start, setting)
        return None
    # base.yml, or another that is not given; the words say the rest.
    if config is not None and base_name(config.text) != "base.yml":
        named = Item(setting.file, "command", config.text, config.line)
        named_document(config.text, named, setting)
        if base_name(config.text) not in _SHIPPED:
            setting.findings.block("workload", named, "is the config that the words stand on, and is not given")
    read(from_words(setting.file, start.words), setting.findings)
    return "MaxText command"


FORMATS = (Format("MaxText YAML", score, read),)
COMMANDS = {"maxtext": read_command}
MODULES = {"maxtext.": "maxtext", "MaxText.": "maxtext"}
