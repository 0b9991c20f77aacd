"""Arguments of Megatron-LM's pretrain_gpt.py. Words: megatron/fields.yaml; the model is known by its dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from estimator.plan.schema import RecomputeModule
from launchers.megatron.read_model import read_model
from launchers.reading.commands import UNKNOWN_ARGUMENTS, base_name
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, is_certain, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.scripts import UNKNOWN
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_SIZES = {
    "tensor_model_parallel_size": "layout.tp",
    "pipeline_model_parallel_size": "layout.pp",
    "context_parallel_size": "layout.cp",
    "expert_model_parallel_size": "layout.ep",
    # Megatron-DeepSpeed's own words (megatron/arguments.py).
    "ds_sequence_parallel_size": "layout.cp",
    "moe_expert_parallel_size": "layout.ep",
}

# Scripts that take Megatron's arguments and do something else.
_OTHER = re.compile(
    r"bert|(^|[/_])t5|ict|retro|vision|multimodal|vlm|generat|eval|server|tasks/|preprocess|convert|export|prune|quantiz|msdp|profil|(^|/)test_|dataset"
)
# What a recipe or preset says and its file does not repeat.
OF_RECIPE = {
    "micro_batch_size": "workload.micro_batch",
    "global_batch_size": "workload.global_batch",
    "seq_length": "workload.seq_len",
    "tensor_model_parallel_size": "layout.tp",
    "pipeline_model_parallel_size": "layout.pp",
    "context_parallel_size": "layout.cp",
}


def score(keys: Keys) -> int:
    markers = ("num_layers", "hidden_size", "num_attention_heads", "micro_batch_size", "tensor_model_parallel_size")
    return 4 * sum(name in keys for name in markers)


def read(
    keys: Keys,
    findings: Findings,
    script: Item | None = None,
    program: str = "megatron-lm",
    names: Sequence[Item] = (),
    leftovers: Sequence[str] = ("megatron",),
) -> None:
    """`names` are words besides the tokenizer's that may be the model's; `leftovers` the tables of what is not read."""
    words = table("megatron/fields")
    findings.programs.append(program)
    if script is not None and _OTHER.search(str(script.value)):
        findings.block("workload", script, "is no training of a language model")
    elif script is not None and not str(script.value).endswith(("pretrain_gpt.py", "pretrain_mamba.py", "finetune.py")):
        findings.warn(f"{script.origin}: read as pretrain_gpt.py would")
    _older(keys)
    if (host := keys.take("deepspeed")) is not None and host.value is not False:
        _deepspeed(keys, findings)
    sft = keys.take("sft")
    if is_set(sft) and sft:
        findings.put("workload.stage", "sft", sft)
    findings.default("workload.stage", "pretrain", "pretrain_gpt.py pretrains unless told otherwise")
    findings.default("workload.method", "full", "pretrain_gpt.py trains all weights")
    if findings.values.get("workload.stage", "pretrain") == "pretrain":
        findings.default("workload.packing", True, "text is cut into full rows")
    findings.whole("workload.seq_len", keys.items.get("seq_length"))
    findings.whole("workload.micro_batch", keys.take("micro_batch_size"))
    findings.whole("workload.global_batch", keys.take("global_batch_size"))
    # Megatron's own default is one micro-batch per step.
    findings.default("accumulation", 1, "global_batch_size is micro_batch_size x dp unless given")
    findings.whole("workload.steps", keys.take("train_iters"))
    samples = keys.take("train_samples")
    if samples is not None and as_number(samples.value):
        findings.number("workload.dataset_samples", samples)
    _parallel(keys, findings)
    _memory(keys, findings, words)
    kind = keys.take("optimizer")
    optimizers = {row["optimizer"]: name for name, row in words["optimizers"].items()}
    findings.word("workload.optimizer", kind, optimizers)
    findings.default("workload.optimizer", "adamw", "optimizer is adam unless given")
    _precision(keys, findings)
    _experts(keys, findings)
    read_model(keys, findings, names)
    leave_rest(keys, findings, *leftovers)


# Sections of its own YAML (megatron/training/yaml_arguments.py) and names in them that arguments have otherwise.
_SECTIONS = ("language_model.", "model_parallel.")
_RENAMED = {"num_moe_experts": "num_experts", "fp8": "fp8_format"}


def _score_yaml(keys: Keys) -> int:
    marks = ("language_model.num_layers", "language_model.hidden_size", "model_parallel.tensor_model_parallel_size")
    return 6 * sum(name in keys for name in marks)


def _read_yaml(keys: Keys, findings: Findings) -> None:
    """The arguments in sections (--yaml-cfg)."""
    flat = Keys(keys.file)
    for item in keys.items.values():
        if item.value is False and item.key != "language_model.add_bias_linear":
            # A switch of a command line that is not there.
            continue
        name = next((item.key.removeprefix(part) for part in _SECTIONS if item.key.startswith(part)), item.key)
        flat.put(_RENAMED.get(name, name), item.value, item.line)
    bias = flat.take("add_bias_linear")
    if bias is not None and bias.value is False:
        flat.put("disable_bias_linear", True, bias.line)
    read(flat, findings)


def _older(keys: Keys) -> None:
    """Names of older versions and of Megatron-DeepSpeed."""
    method = keys.take("activations_checkpoint_method")
    if method is not None:
        keys.put("recompute_granularity", "full", method.line)
        keys.put("recompute_method", method.value, method.line)
        if (layers := keys.take("activations_checkpoint_num_layers")) is not None:
            keys.put("recompute_num_layers", layers.value, layers.line)
    if is_set(whole := keys.take("checkpoint_activations")) and whole is not None:
        keys.put("recompute_granularity", "full", whole.line)
        keys.put("recompute_method", "uniform", whole.line)
    if (groups := keys.take("num_key_value_heads")) is not None and "num_query_groups" not in keys:
        keys.put("group_query_attention", True, groups.line)
        keys.put("num_query_groups", groups.value, groups.line)
    if is_set(turned := keys.take("use_rotary_position_embeddings")) and turned is not None:
        keys.put("position_embedding_type", "rope", turned.line)
    if "tokenizer_type" not in keys and "merge_file" in keys:
        keys.put("tokenizer_type", "GPT2BPETokenizer")


def _deepspeed(keys: Keys, findings: Findings) -> None:
    """Megatron-DeepSpeed: ZeRO by a switch of its own and a file that says the same."""
    findings.programs[findings.programs.index("megatron-lm")] = "megatron-deepspeed"
    stage, config = keys.take("zero_stage"), keys.take("deepspeed_config")
    findings.whole("layout.zero_stage", stage, least=0)
    if config is not None:
        findings.refer(config, str(config.value), "DeepSpeed's ZeRO stage and offload")
    if is_set(off := keys.take("cpu_optimizer")) and off is not None:
        findings.put("layout.offload", "optimizer", off)


def _parallel(keys: Keys, findings: Findings) -> None:
    for name, field in _SIZES.items():
        findings.whole(field, keys.take(name))
        findings.default(field, 1, f"{name} is 1 unless given")
    findings.whole("layout.etp", keys.take("expert_tensor_parallel_size"))
    whole = keys.take("sequence_parallel")
    if whole is not None and (findings.values.get("layout.tp") or 1) > 1:
        findings.truth("layout.sequence_parallel", whole)
    elif whole is not None:
        findings.leave(whole, "without tensor parallelism it says nothing")
    elif (findings.values.get("layout.tp") or 1) > 1:
        findings.default("layout.sequence_parallel", False, "sequence_parallel is not there")
    if (findings.values.get("layout.pp") or 1) > 1:
        findings.whole("layout.vpp", keys.take("num_virtual_stages_per_pipeline_rank"))
        findings.whole("vpp_layers", keys.take("num_layers_per_virtual_pipeline_stage"))
        written = keys.take("pipeline_model_parallel_layout")
        if written is not None:
            _written_out(findings, written)
        if "layers" not in findings.values and "vpp_layers" in findings.values and "num_layers" in keys:
            findings.whole("layers", keys.items["num_layers"])
        if not findings.has("layout.vpp") and "vpp_layers" not in findings.values:
            findings.default("layout.vpp", 1, "no virtual stages are named")
    strategy, sharded = keys.take("data_parallel_sharding_strategy"), keys.take("use_distributed_optimizer")
    fsdp = keys.take("use_megatron_fsdp")
    if is_set(fsdp) and fsdp:
        kinds = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
        findings.word("layout.zero_stage", strategy, kinds)
        if strategy is None:
            findings.block("layout.zero_stage", fsdp, "data_parallel_sharding_strategy is not there")
    elif sharded is not None and (on := as_truth(sharded.value)) is not None:
        findings.put("layout.zero_stage", int(on), sharded)
    findings.default("layout.zero_stage", 0, "use_distributed_optimizer is not there")
    copies = keys.take("num_distributed_optimizer_instances")
    if copies is not None and (as_number(copies.value) or 1) > 1:
        findings.whole("dp_replicate", copies)
    if (findings.values.get("layout.zero_stage") or 0) <= 1:
        _overlap(keys, findings)
    overlap = keys.take("tp_comm_overlap")
    if is_set(overlap) and overlap:
        findings.put("workload.tp_overlap", True, overlap)


def _overlap(keys: Keys, findings: Findings) -> None:
    """What is reduced and gathered beside the passes: of the distributed optimizer gradients alone, or weights too."""
    gathering, reducing = keys.take("overlap_param_gather"), keys.take("overlap_grad_reduce")
    alone = findings.values.get("layout.zero_stage") == 1 and not is_set(gathering)
    if alone and reducing is not None and is_set(reducing):
        findings.put("workload.dp_overlap", "gradients", reducing)
    else:
        findings.truth("workload.dp_overlap", reducing)


def _written_out(findings: Findings, item: Item) -> None:
    """A pipeline layout of letters: as many parts as there are stages, virtual ones included."""
    parts, pp = str(item.value).count("|") + 1, findings.values.get("layout.pp")
    if pp and parts % pp == 0:
        findings.put("layout.vpp", parts // pp, item)
    else:
        findings.block("layout.vpp", item, "is not a whole number of parts per stage")


def _named(value: Any) -> list[str]:
    """Names given as several words, one, or as a list of Hydra's: '[moe_act,layernorm]'."""
    words = value if isinstance(value, list) else str(value).strip("[]").split(",")
    return [str(word).strip(" '\"") for word in words]


def _memory(keys: Keys, findings: Findings, words: Mapping[str, Any]) -> None:
    """Granularity with method and number of layers, or the parts of a layer."""
    short, kind = keys.take("recompute_activations"), keys.take("recompute_granularity")
    method, layers, modules = (keys.take(f"recompute_{name}") for name in ("method", "num_layers", "modules"))
    if kind is None and is_set(short) and short:
        findings.put("layout.recompute", "selective", short)
    elif kind is None:
        findings.default("layout.recompute", "none", "recompute_granularity is not there")
    elif kind.value == "selective":
        parts = None if modules is None or modules.value is None else _named(modules.value)
        if modules is not None and parts is not None and not {*parts} <= {*get_args(RecomputeModule)}:
            findings.block("layout.recompute", modules, "names a part of a layer that has no place in a Plan")
        else:
            findings.put("layout.recompute", "selective", kind)
            if modules is not None and parts not in (None, ["core_attn"]):
                findings.put("layout.recompute_modules", parts, modules)
    elif method is not None and method.value == "block" and layers is not None:
        # Of each virtual stage; of a device it is known once its virtual stages are (reading/totals.py).
        findings.whole("recomputed_layers", layers)
    elif method is not None and method.value == "uniform" and (layers is None or as_number(layers.value) == 1):
        findings.put("layout.recompute", "full", kind)
    else:
        findings.block(
            "layout.recompute", layers or kind, "keeps the inputs of groups of layers, which is not modelled"
        )
    host = keys.take("optimizer_cpu_offload")
    part = keys.take("optimizer_offload_fraction")
    if is_set(host) and host and (part is None or as_number(part.value) == 1):
        findings.put("layout.offload", "optimizer", host)
    elif is_set(host) and part is not None:
        findings.block("layout.offload", part, "a part of the states has no place in a Plan")
    findings.default("layout.offload", "none", "optimizer_cpu_offload is not there")
    _attention(keys, findings)
    fused = keys.take("cross_entropy_loss_fusion")
    if is_set(fused) and fused:
        findings.put("workload.fused_loss", True, fused)
    graphs, _ = keys.take("cuda_graph_impl"), keys.take("te_rng_tracker")
    kinds = {row["cuda_graph_impl"]: name for name, row in words["cuda_graphs"].items() if row}
    findings.word("workload.cuda_graph", graphs, kinds | {"none": "none"}, soft=True)


def _attention(keys: Keys, findings: Findings) -> None:
    """Its own layers have attention without a kernel (core/transformer/dot_product_attention.py) unless an older
    version is told of one; Transformer Engine's have one."""
    backend, version = keys.take("attention_backend"), keys.take("flash_attention_version")
    old, layers = keys.take("use_flash_attn"), keys.take("transformer_impl")
    known = {"flash": "flash", "fused": "flash", "auto": "flash", "unfused": "eager"}
    if is_set(old) and old:
        findings.put("workload.attention", "flash", old)
    elif layers is not None and layers.value == "local":
        findings.put("workload.attention", "eager", layers)
    elif backend is not None and backend.value == "flash" and version is not None:
        findings.word("workload.attention", version, {"2": "flash2", "3": "flash3"}, soft=True)
    else:
        findings.word("workload.attention", backend, known, soft=True)


def _precision(keys: Keys, findings: Findings) -> None:
    fp4, fp8, recipe = keys.take("fp4_format"), keys.take("fp8_format"), keys.take("fp8_recipe")
    scaled = keys.take("fp4_recipe")
    bf16, fp16 = keys.take("bf16"), keys.take("fp16")
    for name, kind in (("accumulate_allreduce_grads_in_fp32", "fp32"), ("grad_reduce_in_bf16", "bf16")):
        if (switch := keys.take(name)) is not None and switch.value is True:
            findings.put("workload.gradients", kind, switch)
    if fp4 is not None:
        findings.put("workload.precision", "mxfp4" if scaled is not None and scaled.value == "mxfp4" else "nvfp4", fp4)
    elif fp8 is not None and recipe is not None and recipe.value == "mxfp8":
        findings.put("workload.precision", "mxfp8", recipe)
    elif fp8 is not None:
        findings.put("workload.precision", "fp8", fp8)
        if recipe is not None and recipe.value not in ("tensorwise", "delayed"):
            findings.warn(f"{recipe.origin}: one kind of fp8 is modelled")
    elif "workload" in findings.blocked:
        # What is not known may say fp8.
        findings.block(
            "workload.precision", bf16 or fp16 or Item(keys.file, "bf16", None), "other arguments are not known"
        )
    elif is_set(bf16) and bf16:
        findings.put("workload.precision", "bf16", bf16)
    elif is_set(fp16) and fp16:
        findings.put("workload.precision", "fp16", fp16)
    else:
        findings.default("workload.precision", "fp32", "neither bf16 nor fp16 is there")


def _experts(keys: Keys, findings: Findings) -> None:
    kind = keys.take("moe_token_dispatcher_type")
    backend = keys.take("moe_flex_dispatcher_backend")
    of_nodes = backend.value if backend is not None and backend.value in ("deepep", "hybridep") else "flex"
    findings.word("workload.moe_dispatcher", kind, {"alltoall": "alltoall", "flex": of_nodes}, soft=True)
    factor, padded = keys.take("moe_expert_capacity_factor"), keys.take("moe_pad_expert_input_to_capacity")
    if factor is not None and is_set(padded):
        findings.put("workload.moe_capacity", True, factor)
    elif factor is not None:
        findings.leave(factor, "shapes stay open without padding, which a Plan's capacity has")
    overlap = keys.take("overlap_moe_expert_parallel_comm")
    if is_set(overlap) and overlap:
        findings.put("workload.moe_overlap", True, overlap)


def read_command(start: Program, setting: ScriptSetting) -> str:
    flags = ("bf16", "fp16", "swiglu", "use_distributed_optimizer", "sequence_parallel", "sft", "use_mcore_models",
             "group_query_attention", "untie_embeddings_and_output_weights", "disable_bias_linear",
             "use_flash_attn",
             "recompute_activations", "use_megatron_fsdp", "optimizer_cpu_offload", "cross_entropy_loss_fusion",
             "overlap_grad_reduce", "overlap_param_gather", "mock_data",
             "accumulate_allreduce_grads_in_fp32", "grad_reduce_in_bf16")  # fmt: skip
    findings = setting.findings
    keys, rest = options(setting.file, start.words, flags)
    if any(UNKNOWN in word.text for word in rest):
        findings.blocked.setdefault("workload", f"{start.name.origin}: {UNKNOWN_ARGUMENTS}")
    unsure = [item for item in keys.items.values() if not is_certain(item.value)]
    read(keys, findings, start.name)
    told = {row.key for row in findings.not_read}
    for item in unsure:
        # One that was passed over without being told.
        if item.origin not in told and base_name(str(item.value)) not in map(base_name, findings.refers):
            findings.block("workload", item, "what follows is known only where it runs")
    return "Megatron-LM arguments"


FORMATS = (Format("Megatron-LM YAML", _score_yaml, _read_yaml),)
COMMANDS = {"megatron": read_command}
