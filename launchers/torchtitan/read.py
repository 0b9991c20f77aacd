"""torchtitan: TOML up to 0.2, and the command line of any version (--training.local_batch_size 2).

From 0.3 a run starts from a preset in torchtitan's own code, and the command line says what differs from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchers.reading.commands import merged
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.reading.totals import layers_of
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_SIZES = {
    "tensor_parallel_degree": "layout.tp",
    "pipeline_parallel_degree": "layout.pp",
    "context_parallel_degree": "layout.cp",
    "expert_parallel_degree": "layout.ep",
    "expert_tensor_parallel_degree": "layout.etp",
    "data_parallel_replicate_degree": "dp_replicate",
    "data_parallel_shard_degree": "dp_shard",
}


def score(keys: Keys) -> int:
    sections = ("training", "parallelism", "activation_checkpoint", "model", "experimental")
    dotted = sum(any(True for _ in keys.below(name)) for name in sections)
    return 4 * dotted if any(name.startswith(("training.", "parallelism.")) for name in keys.items) else 0


def read(keys: Keys, findings: Findings, variants: Sequence[str] = ()) -> None:
    """`variants` are the words of the command line that choose one (activation_checkpoint:full)."""
    words = table("torchtitan/presets")
    findings.programs.append("torchtitan")
    for name in [name for name in keys.items if ".no_" in name]:
        item = keys.items.pop(name)
        keys.put(name.replace(".no_", "."), False, item.line)
    for variant in variants:
        section, _, kind = variant.partition(":")
        keys.put(f"{section}.mode", kind)
    preset = _preset(keys, words)
    if preset is not None:
        # Those of 0.3, which are named on the command line (config_registry.py, ChunkedLossWrapper).
        findings.default("workload.fused_loss", True, "the registered configs compute the loss in chunks")
    _model(keys, findings, preset)
    findings.default("workload.stage", "pretrain", "torchtitan trains on plain text unless told otherwise")
    findings.default("workload.method", "full", "torchtitan trains all weights")
    findings.default("workload.packing", True, "text is cut into full rows")
    for key, field in (("stage", "workload.stage"), ("dispatcher", "workload.moe_dispatcher")):
        if (item := keys.take(key)) is not None:
            findings.put(field, item.value, item)
    _batch(keys, findings, preset)
    findings.whole("workload.steps", keys.take("training.steps"))
    _precision(keys, findings, words)
    _parallel(keys, findings, preset)
    _checkpointing(keys, findings, preset)
    findings.word("workload.optimizer", keys.take("optimizer.name"), words["optimizers"])
    findings.default("workload.optimizer", "adamw", "optimizer is AdamW unless given")
    host = keys.take("training.enable_cpu_offload")
    if is_set(host) and host:
        findings.put("layout.offload", "params", host)
    findings.default("layout.offload", "none", "enable_cpu_offload is off unless given")
    # What is compiled may be the loss alone.
    compiled, parts = keys.take("compile.enable") or keys.take("training.compile"), keys.take("compile.components")
    if parts is None or "model" in parts.value:
        findings.truth("workload.compile", compiled)
    elif compiled is not None:
        findings.put("workload.compile", False, parts)
    leave_rest(keys, findings, "torchtitan")


def _preset(keys: Keys, words: dict) -> Item | None:
    """The preset that the command line starts from, its values put under those that are given."""
    preset = keys.take("config")
    if preset is None:
        return None
    for name, value in words["presets"].get(str(preset.value), {}).items():
        if name not in keys:
            keys.items[name] = Item(f"torchtitan's {preset.value}", name, value)
    return preset


def _model(keys: Keys, findings: Findings, preset: Item | None) -> None:
    """By the folder of the tokenizer, which is the model's, or by name and flavor."""
    words = table("torchtitan/presets")
    name, flavor = keys.take("model.name"), keys.take("model.flavor")
    known = keys.take("model")
    if preset is not None:
        if (module := keys.take("module")) is not None:
            findings.leave(module, "said by the preset")
        if known is not None:
            findings.put("model", known.value, known)
        else:
            findings.block("model", preset, "is no preset that is known here")
        return
    if name is None and flavor is None:
        return
    config = words["models"].get(str(name.value) if name else "llama3", {}).get(str(flavor.value) if flavor else "")
    origin = flavor or name
    assert origin is not None
    if config:
        findings.put("model", config, origin)
    else:
        findings.block("model", origin, "is no model that is known here")


def _batch(keys: Keys, findings: Findings, preset: Item | None) -> None:
    """Rows of a micro-step. In a pipeline the local batch is all micro-batches of a step, of one row unless given.

    After 0.3 the tokens of a micro-step are given instead, also in a pipeline.
    """
    local = keys.take("training.local_batch_size") or keys.take("training.batch_size")
    context, usual = keys.take("training.max_context_length"), keys.take("training.seq_len")
    seq_len = findings.whole("workload.seq_len", context or usual)
    tokens = keys.take("training.num_tokens_per_microbatch_per_dp_rank")
    if tokens is None and context is not None and local is not None and usual is not None:
        tokens = Item(local.file, local.key, int(as_number(local.value) or 0) * int(as_number(usual.value) or 0))
    if tokens is not None:
        local = _rows(findings, "workload.micro_batch", tokens, seq_len)
    stages = next((item for name, item in keys.items.items() if name.endswith("pipeline_parallel_degree")), None)
    pipeline = stages is not None and (as_number(stages.value) or 1) > 1
    micro_batch = keys.take("parallelism.pipeline_parallel_microbatch_size")
    if not pipeline or tokens is not None:
        findings.whole("workload.micro_batch", local)
    elif local is not None:
        micro = findings.whole("workload.micro_batch", micro_batch)
        if micro_batch is None:
            findings.default("workload.micro_batch", 1, "pipeline_parallel_microbatch_size is 1 unless given")
            micro = 1
        if micro and (size := as_number(local.value)) and size % micro == 0:
            findings.put("accumulation", int(size // micro), local)
    whole = keys.take("training.global_batch_size")
    if (step := keys.take("training.num_tokens_per_train_step")) is not None and (as_number(step.value) or 0) > 0:
        whole = _rows(findings, "workload.global_batch", step, seq_len)
    if whole is not None and (number := as_number(whole.value)) is not None and number > 0:
        findings.whole("workload.global_batch", whole)
    elif pipeline and tokens is not None:
        findings.blocked["workload.global_batch"] = (
            f"{tokens.origin}: how many micro-batches a pipeline has is not read"
        )
    else:
        findings.default("accumulation", 1, "global_batch_size is local_batch_size x dp unless given")
    if preset is None:
        findings.default("workload.micro_batch", 8, "local_batch_size is 8 unless given")
        findings.default("workload.seq_len", 2048, "seq_len is 2048 unless given")
        return
    for field in ("workload.micro_batch", "workload.seq_len"):
        if not findings.has(field) and field not in findings.defaults:
            findings.blocked[field] = f"{preset.origin} = {preset.value} says it, in torchtitan's own code"


def _rows(findings: Findings, field: str, tokens: Item, seq_len: int | None) -> Item | None:
    """A number of tokens as sequences; blocks `field` where they are not whole ones."""
    number = as_number(tokens.value)
    if seq_len is None or number is None or number < seq_len or number % seq_len:
        findings.block(field, tokens, "is not whole sequences")
        return None
    return Item(tokens.file, tokens.key, int(number // seq_len), tokens.line)


def _precision(keys: Keys, findings: Findings, words: dict) -> None:
    converters, fixed = keys.take("model.converters"), keys.take("precision")
    names = converters.value if converters is not None and isinstance(converters.value, list) else []
    if converters is not None and isinstance(converters.value, str):
        names = [part.strip() for part in converters.value.split(",") if part.strip()]
    told = [words["converters"].get(str(name)) for name in names]
    kind = keys.take("training.mixed_precision_param")
    kinds = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    if any(told) and converters is not None:
        findings.put("workload.precision", next(name for name in told if name), converters)
    elif names and converters is not None:
        findings.block("workload.precision", converters, "is a conversion that is not modelled")
    elif fixed is not None:
        findings.put("workload.precision", fixed.value, fixed)
    else:
        findings.word("workload.precision", kind, kinds)
        findings.default("workload.precision", "bf16", "mixed_precision_param is bfloat16 unless given")
    whole = keys.take("training.dtype")
    if whole is not None:
        # fp32 is its default, which `auto` is estimated with.
        findings.word("workload.weights", whole, {"float32": "auto", "bfloat16": "bf16"})


def _parallel(keys: Keys, findings: Findings, preset: Item | None) -> None:
    old = [name for name in keys.items if name.split(".")[-1] in _SIZES and not name.startswith("parallelism.")]
    for name in [f"parallelism.{key}" for key in _SIZES] + old:
        field = _SIZES[name.split(".")[-1]]
        findings.whole(field, keys.take(name), least=-1 if field == "dp_shard" else 1)
    for field in ("layout.tp", "layout.pp", "layout.cp", "layout.ep"):
        findings.default(field, 1, "its degree is 1 unless given")
    reshard = keys.take("parallelism.fsdp_reshard_after_forward")
    pipeline = (findings.values.get("layout.pp") or 1) > 1
    usual = 2 if pipeline else 3
    shard = findings.values.get("dp_shard")
    if shard == 1 and findings.values.get("dp_replicate", 1) > 1:
        pass
    elif reshard is not None and reshard.value != "default":
        findings.word("layout.zero_stage", reshard, {"always": 3, "never": 2})
    else:
        findings.default("layout.zero_stage", usual, "FSDP2 reshards after the forward pass unless there are stages")
    for section in ("parallelism", "compile"):
        findings.truth("workload.tp_overlap", keys.take(f"{section}.enable_async_tensor_parallel"))
    whole = keys.take("parallelism.enable_sequence_parallel")
    if (findings.values.get("layout.tp") or 1) > 1:
        findings.truth("layout.sequence_parallel", whole)
    graphs = keys.take("training.disable_cuda_graphs")
    split = pipeline or (findings.values.get("layout.ep") or 1) > 1
    if graphs is not None and as_truth(graphs.value) is False:
        findings.put("workload.cuda_graph", "full", graphs)
    elif graphs is None and preset is not None and not split:
        findings.default("workload.cuda_graph", "full", "captured unless disable_cuda_graphs")
    if pipeline:
        _stages(keys, findings)


def _stages(keys: Keys, findings: Findings) -> None:
    """Schedule, and virtual stages: those of a single schedule are one, of the others two unless layers say it."""
    words = table("torchtitan/fields")["schedules"]
    schedule = keys.take("parallelism.pipeline_parallel_schedule")
    known = {word: name for kind in words.values() for name, word in kind.items()}
    findings.word("layout.schedule", schedule, known)
    each = keys.take("parallelism.pipeline_parallel_layers_per_stage")
    less = [keys.take(f"parallelism.pipeline_parallel_{end}_stage_less_layers") for end in ("first", "last")]
    even = all(item is not None and as_number(item.value) == 0 for item in less)
    if schedule is None or schedule.value in words["single"].values():
        findings.default("layout.vpp", 1, "the schedule has one stage per rank")
    elif each is not None and even:
        findings.whole("vpp_layers", each)
    elif each is not None:
        findings.block("layout.vpp", each, "the first and last stages have fewer layers")
    else:
        findings.default("layout.vpp", 2, "the schedule has two stages per rank unless told otherwise")


def _checkpointing(keys: Keys, findings: Findings, preset: Item | None) -> None:
    """Cheap operators of every layer, or every second layer whole: the default up to 0.2."""
    mode, option = keys.take("activation_checkpoint.mode"), keys.take("activation_checkpoint.selective_ac_option")
    kind = mode.value if mode is not None else "selective"
    item = option or mode or Item(keys.file, "activation_checkpoint", "every second layer")
    every = as_number(option.value) if option is not None else 2.0
    if mode is not None and kind in ("none", "full"):
        findings.put("layout.recompute", kind, mode)
    elif preset is not None and mode is None:
        if not findings.has("layout.recompute"):
            findings.blocked["layout.recompute"] = f"{preset.origin} = {preset.value} says it, in torchtitan's own code"
    elif kind == "selective" and (preset is not None or (option is not None and option.value == "op")):
        findings.put("layout.recompute", "selective", mode or item)
    elif kind == "selective" and every and every >= 1 and (layers := _layers(findings)) is not None:
        findings.put("layout.recompute", f"block:{int(layers // every)}", item)
    else:
        findings.block("layout.recompute", item, "checkpoints layers in a pattern that is not modelled")
    if (early := keys.take("optimizer.early_step_in_backward")) is not None and as_truth(early.value):
        findings.block("workload.optimizer", early, "steps inside the backward pass, which is not modelled")


def _layers(findings: Findings) -> int | None:
    """The layers of a model that is not split into stages."""
    return layers_of(findings.values.get("model")) if (findings.values.get("layout.pp") or 1) == 1 else None


def read_command(start: Program, setting: ScriptSetting) -> str | None:
    variants = [word.text for word in start.words if re.fullmatch(r"[a-z_]+:[a-z_]+", word.text)]
    start.words = [word for word in start.words if word.text not in variants]
    keys, _, missing = merged(start, setting, config=("job.config_file",))
    if missing is not None:
        return None
    read(keys, setting.findings, variants)
    return "torchtitan command line"


FORMATS = (Format("torchtitan TOML", score, read, ("toml",)),)
COMMANDS = {"torchtitan": read_command}
MODULES = {"torchtitan": "torchtitan"}
