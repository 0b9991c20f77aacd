"""LlamaFactory 0.9 training YAML or arguments, and the YAML of its rewrite (v1). Words: llamafactory/fields.yaml."""

from __future__ import annotations

from launchers.hf import read as hf
from launchers.reading.commands import CONFIGS, over_config
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting, counts_of_variables
from launchers.tables import table

_MEGATRON = {
    "tensor_model_parallel_size": "layout.tp",
    "pipeline_model_parallel_size": "layout.pp",
    "context_parallel_size": "layout.cp",
    "expert_model_parallel_size": "layout.ep",
    "expert_tensor_parallel_size": "layout.etp",
    "virtual_pipeline_model_parallel_size": "layout.vpp",
}


def score(keys: Keys) -> int:
    if "base_model" in keys or "distributed_type" in keys:
        return 0
    markers = {"finetuning_type", "cutoff_len", "stage", "template", "export_dir", "infer_backend", "do_train"}
    return 3 * sum(name in keys for name in markers) if "model_name_or_path" in keys else 0


def score_v1(keys: Keys) -> int:
    markers = ("dist_config", "peft_config", "kernel_config", "train_dataset", "model_class", "quant_config")
    return 3 * sum(any(True for _ in keys.below(name)) for name in markers) if "model" in keys else 0


def read(keys: Keys, findings: Findings) -> None:
    words = table("llamafactory/fields")
    if (export := keys.look("export_dir") or keys.look("infer_backend")) or as_truth(keys.look("do_predict")):
        findings.blocked.setdefault("workload", f"{keys.file} exports or serves a model ({export or 'do_predict'})")
    else:
        findings.programs.append("llamafactory")
    name = keys.take("model_name_or_path")
    hf.model(findings, name)
    _stage(keys, findings)
    _method(keys, findings, name)
    cutoff = keys.take("cutoff_len")
    generated = keys.take("max_new_tokens") if findings.values.get("workload.stage") == "ppo" else None
    if generated is not None and cutoff is not None:
        if (tokens := findings.whole("workload.response_len", generated)) and (cut := as_number(cutoff.value)):
            findings.put("workload.seq_len", int(cut) + tokens, cutoff)
    else:
        findings.whole("workload.seq_len", cutoff)
    findings.default("workload.seq_len", 2048, "cutoff_len is 2048 unless given")
    hf.batch(keys, findings)
    hf.length(keys, findings)
    _weights(keys, findings)
    _optimizer(keys, findings)
    kinds = {"auto": "flash", "flash_attention_2": "flash"} | inverted(words["attention"])
    findings.word("workload.attention", keys.take("flash_attn"), kinds, soft=True)
    disabled = keys.take("disable_gradient_checkpointing")
    if disabled is not None and (off := as_truth(disabled.value)) is not None:
        findings.recomputes.append((not off, disabled))
        keys.take("gradient_checkpointing")
    else:
        hf.checkpointing(keys, findings, usual=True)
    if is_set(host := keys.take("use_unsloth_gc")) and host:
        findings.put("layout.offload", "activations", host)
    findings.truth("workload.fused_loss", keys.take("enable_liger_kernel"))
    findings.default("workload.fused_loss", False, "enable_liger_kernel is off unless given")
    hf.compiled(keys, findings)
    packing = keys.take("neat_packing") if as_truth(keys.look("neat_packing")) else keys.take("packing")
    findings.truth("workload.packing", packing)
    pretrains = findings.values.get("workload.stage") == "pretrain"
    findings.default("workload.packing", pretrains, "packing is on for pretraining and off for the rest unless given")
    if is_set(unsloth := keys.items.get("use_unsloth")) and unsloth and any(True for _ in keys.below("deepspeed")):
        # hparams/parser.py: "Unsloth is incompatible with DeepSpeed ZeRO-3."
        findings.block("layout.zero_stage", unsloth, "does not start with ZeRO-3; leave one of the two away")
    hf.deepspeed(keys, findings)
    hf.fsdp(keys, findings)
    # Of 360-LLaMA-Factory, a fork (README.md, sequence_parallel_size).
    findings.whole("layout.cp", keys.take("sequence_parallel_size"))
    _megatron(keys, findings)
    leave_rest(keys, findings, "llamafactory", "hf")


def _stage(keys: Keys, findings: Findings) -> None:
    item, loss = keys.take("stage"), keys.take("pref_loss")
    if item is None:
        findings.default("workload.stage", "sft", "stage is sft unless given")
        return
    for name, fields in table("llamafactory/fields")["stages"].items():
        wanted = fields.get("pref_loss")
        loss_word = str(loss.value) if loss is not None else "sigmoid"
        if fields["stage"] == item.value and (wanted is None or wanted == loss_word):
            findings.put("workload.stage", name, loss if wanted and loss is not None else item)
            return
    findings.block(
        "workload.stage", loss if loss is not None and item.value == "dpo" else item, "is no stage of a Plan"
    )


def _method(keys: Keys, findings: Findings, model: Item | None) -> None:
    kind, bits = keys.take("finetuning_type"), keys.take("quantization_bit")
    name = str(kind.value) if kind is not None else "lora"
    origin = kind or Item(keys.file, "finetuning_type", "lora (default)")
    packed = hf.quantised_checkpoint(findings, model)
    if name in ("full", "freeze"):
        layers = keys.take("freeze_trainable_layers")
        if name == "freeze" and layers is not None and as_number(layers.value) != 2:
            findings.block("workload.method", layers, "a Plan's freeze trains the last two layers")
        else:
            findings.put("workload.method", name, origin)
        return
    if name != "lora":
        findings.block("workload.method", origin, "is no method of a Plan")
        return
    dora, pissa = keys.take("use_dora"), keys.take("pissa_init")
    if bits is not None:
        _quantised(keys, findings, bits)
    elif packed == "gptq" and model is not None:
        findings.put("workload.method", "qlora", model)
        findings.put("workload.lora.quantisation", "gptq", model)
    elif packed and model is not None:
        findings.block(
            "workload.method", model, "the checkpoint's name says packed weights of a kind that is not modelled"
        )
    elif is_set(dora) and dora:
        findings.put("workload.method", "dora", dora)
    elif is_set(pissa) and pissa:
        findings.put("workload.method", "pissa", pissa)
    elif kind is not None:
        findings.put("workload.method", "lora", kind)
    else:
        findings.default("workload.method", "lora", "finetuning_type is lora unless given")
    hf.adapters(keys, findings, rank=8, alpha=None, dropout=0.0, renamed=True)


def _quantised(keys: Keys, findings: Findings, bits: Item) -> None:
    """Frozen weights that bitsandbytes packs in four bits; nothing else has a place in a Plan."""
    how, kind, double = (
        keys.take(name) for name in ("quantization_method", "quantization_type", "double_quantization")
    )
    if as_number(bits.value) != 4:
        findings.block("workload.method", bits, "only weights of 4 bits have a place in a Plan")
    elif how is not None and str(how.value).lower() not in ("bnb", "bitsandbytes"):
        findings.block("workload.method", how, "only bitsandbytes' NF4 and GPTQ have a place in a Plan")
    elif kind is not None and kind.value != "nf4":
        findings.block("workload.method", kind, "only NF4 has a place in a Plan")
    else:
        findings.put("workload.method", "qlora", bits)
        if double is not None and (on := as_truth(double.value)) is not None:
            findings.put("workload.lora.quantisation", "nf4" if on else "nf4-single", double)
        else:
            findings.default("workload.lora.quantisation", "nf4", "double_quantization is on unless given")


def _weights(keys: Keys, findings: Findings) -> None:
    pure, fp8 = keys.take("pure_bf16"), keys.take("fp8")
    if is_set(pure) and pure:
        findings.put("workload.weights", "bf16", pure)
        if not is_set(fp8):
            findings.put("workload.precision", "bf16", pure)
    if is_set(fp8) and fp8:
        findings.put("workload.precision", "fp8", fp8)
        keys.take("bf16")
    elif is_set(pure):
        keys.take("bf16")
    keeps = findings.values.get("workload.method", "lora") in hf.ADAPTERS or as_truth(keys.look("use_badam"))
    if keeps and not any(as_truth(keys.look(name)) for name in ("bf16", "fp16")):
        findings.default(
            "workload.precision", "bf16", "frozen weights keep the checkpoint's type without bf16 and fp16"
        )
        for name in ("bf16", "fp16"):
            keys.take(name)
    hf.precision(keys, findings, "fp32")


def _optimizer(keys: Keys, findings: Findings) -> None:
    """Switches of LlamaFactory's own optimizers win over `optim`, which is then their base."""
    base = keys.take("optim")
    for name, fields in table("llamafactory/fields")["optimizers"].items():
        switch = next(key for key in fields if key.startswith("use_"))
        item = keys.take(switch)
        if is_set(item) and item:
            findings.truth("workload.optimizer_in_backward", keys.take(f"{name}_layerwise"))
            findings.put("workload.optimizer", name, item)
            return
    findings.word("workload.optimizer", base, hf.optimizers())
    findings.default("workload.optimizer", "adamw", "optim is AdamW unless given")


def _megatron(keys: Keys, findings: Findings) -> None:
    """Keys that only its Megatron backend (mcore_adapter) reads."""
    if not any(name in keys for name in _MEGATRON):
        return
    findings.programs.append("megatron")
    for name, field in _MEGATRON.items():
        findings.whole(field, keys.take(name))
        if field in ("layout.tp", "layout.pp", "layout.cp", "layout.ep"):
            findings.default(field, 1, f"{name} is 1 unless given")
    findings.truth("layout.sequence_parallel", keys.take("sequence_parallel"))
    sharded = keys.take("use_distributed_optimizer")
    if sharded is not None and (on := as_truth(sharded.value)) is not None:
        findings.put("layout.zero_stage", int(on), sharded)
    findings.word("layout.recompute", keys.take("recompute_granularity"), {"full": "full", "selective": "selective"})


def read_v1(keys: Keys, findings: Findings) -> None:
    findings.programs.append("llamafactory")
    if any(name in keys for name in ("export_dir", "peft_config.export_dir")):
        findings.blocked.setdefault("workload", f"{keys.file} exports a model")
    hf.model(findings, keys.take("model"))
    findings.default("workload.stage", "sft", "the command says it (llamafactory-cli sft), not the file")
    findings.whole("workload.seq_len", keys.take("cutoff_len"))
    findings.default("workload.seq_len", 2048, "cutoff_len is 2048 unless given")
    findings.whole("workload.micro_batch", keys.take("micro_batch_size"))
    findings.default("workload.micro_batch", 1, "micro_batch_size is 1 unless given")
    findings.whole("workload.global_batch", keys.take("global_batch_size"))
    findings.default("accumulation", 1, "global_batch_size is micro_batch_size x dp unless given")
    hf.length(keys, findings, "num_train_epochs")
    findings.whole("layout.cp", keys.take("cp_size"))
    bf16 = keys.take("bf16")
    if is_set(bf16) and bf16:
        findings.put("workload.precision", "bf16", bf16)
    elif bf16 is not None:
        findings.leave(bf16, "says nothing of the type that weights are loaded in")
    else:
        findings.default("workload.precision", "bf16", "bf16 is on unless given")
    findings.word("workload.optimizer", keys.take("optim_config.name"), {"muon": "muon", "adamw": "adamw"})
    findings.default("workload.optimizer", "adamw", "optim_config is AdamW unless given")
    checkpoints = keys.take("enable_activation_checkpointing")
    if checkpoints is not None and (on := as_truth(checkpoints.value)) is not None:
        findings.recomputes.append((on, checkpoints))
    findings.default("layout.recompute", "full", "enable_activation_checkpointing is on unless given")
    strategy = keys.take("batching_strategy")
    if strategy is not None and "dynamic" in str(strategy.value):
        findings.leave(strategy, "forms batches of its own")
        findings.warn(f"{strategy.origin}: forms batches of its own, and has no place in a Plan")
    findings.default("workload.packing", False, "samples keep their rows unless batching_strategy packs them")
    if strategy is not None and strategy.value in ("padding_free", "dynamic_padding_free"):
        findings.put("workload.packing", True, strategy)
    _peft_v1(keys, findings)
    kind = keys.take("dist_config.name")
    if kind is not None and kind.value == "fsdp2":
        findings.backend = ("fsdp2", kind)
        findings.default("layout.zero_stage", 3, "FSDP2 reshards after the forward pass unless told otherwise")
    elif kind is not None and kind.value == "deepspeed":
        findings.backend = ("deepspeed", kind)
        if (config := keys.take("dist_config.config_file")) is not None:
            findings.refer(config, str(config.value), "DeepSpeed's ZeRO stage and offload")
    elif kind is not None:
        findings.block("workload.framework", kind, "is no framework of a Plan")
    attention = {"flash_attention_2": "flash", "fa2": "flash", "sdpa": "sdpa", "eager": "eager", "auto": "flash"}
    findings.word("workload.attention", keys.take("flash_attn"), attention, soft=True)
    leave_rest(keys, findings, "llamafactory", "hf")


def _peft_v1(keys: Keys, findings: Findings) -> None:
    kind, packing = keys.take("peft_config.name"), keys.take("quant_config.name")
    if kind is None:
        if not any(True for _ in keys.below("peft_config")):
            findings.default("workload.method", "full", "peft_config is not there")
        return
    if packing is not None:
        bits = keys.take("quant_config.quantization_bit")
        four = packing.value == "bnb" if bits is None else as_number(bits.value) == 4
        if four and packing.value in ("bnb", "auto") and kind.value == "lora":
            findings.put("workload.method", "qlora", bits or packing)
        else:
            findings.block("workload.method", packing, "only bitsandbytes' four bits under LoRA have a place in a Plan")
    elif kind.value == "lora":
        dora = keys.take("peft_config.use_dora")
        findings.put("workload.method", "dora" if is_set(dora) else "lora", dora if dora and is_set(dora) else kind)
    elif kind.value == "freeze":
        layers, modules = (keys.take(f"peft_config.freeze_trainable_{name}") for name in ("layers", "modules"))
        odd = next((item for item, usual in ((layers, 2), (modules, "all")) if item and item.value != usual), None)
        if odd is not None:
            findings.block("workload.method", odd, "a Plan's freeze trains the last two layers")
        else:
            findings.put("workload.method", "freeze", kind)
        return
    else:
        findings.block("workload.method", kind, "is no method of a Plan")
        return
    findings.whole("workload.lora.rank", keys.take("peft_config.r"))
    findings.default("workload.lora.rank", 8, "r is 8 unless given")
    for name, field, usual in (("lora_alpha", "alpha", 16), ("lora_dropout", "dropout", 0.05)):
        findings.number(f"workload.lora.{field}", keys.take(f"peft_config.{name}"))
        findings.default(f"workload.lora.{field}", usual, f"{name} is {usual} unless given")
    hf.targets(findings, keys.take("peft_config.target_modules"))
    hf.embeddings(findings, keys.take("peft_config.modules_to_save"))


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if len(words) < 2 or words[1].text != "train":
        return []
    variables = setting.variables | environment
    counts_of_variables(variables, setting, "NPROC_PER_NODE")
    if "NPROC_PER_NODE" in variables and "NNODES" not in variables:
        setting.findings.implied.append(("nodes", 1, Item(setting.file, "NNODES", "1 (default)")))
    return [Program("llamafactory", words[2:], Item(setting.file, "command", "train", words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str | None:
    # hparams/parser.py read_args: only the first word is one.
    if start.words and start.words[0].text.endswith(CONFIGS):
        over_config(start.words[0], start, setting)
        return None
    keys, _ = options(setting.file, start.words, ("do_train", "bf16", "fp16", "pure_bf16"))
    read(keys, setting.findings)
    return "LlamaFactory arguments"


FORMATS = (
    Format("LlamaFactory YAML", score, read, ("yaml", "json")),
    Format("LlamaFactory v1 YAML", score_v1, read_v1),
)
COMMANDS = {"llamafactory": read_command}
CONSOLES = {"llamafactory-cli": _console, "lmf": _console}
MODULES = {"llamafactory": "llamafactory"}
