"""Axolotl YAML. Words: axolotl/fields.yaml, hf/fields.yaml."""

from __future__ import annotations

from launchers.hf import read as hf
from launchers.reading.commands import CONFIGS, over_config
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, as_truth, inverted, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import TORCHRUN_FLAGS, Program, ScriptSetting, counts
from launchers.tables import table

_SIZES = {
    "tensor_parallel_size": "layout.tp",
    "context_parallel_size": "layout.cp",
    "sequence_parallel_degree": "layout.cp",
    "expert_parallel_size": "layout.ep",
    "dp_shard_size": "dp_shard",
    "dp_replicate_size": "dp_replicate",
}
_FUSED = ("CutCrossEntropyPlugin",)


def score(keys: Keys) -> int:
    """Other programs (mergekit) have a base_model too."""
    markers = ("sequence_len", "micro_batch_size", "sample_packing", "datasets", "adapter", "val_set_size", "rl")
    named = sum(name in keys for name in markers)
    return 4 + 2 * named if named and "base_model" in keys else 0


def read(keys: Keys, findings: Findings) -> None:
    findings.programs.append("axolotl")
    name = keys.take("base_model")
    hf.model(findings, name)
    _stage(keys, findings)
    _method(keys, findings, name)
    findings.whole("workload.seq_len", keys.take("sequence_len"))
    findings.default("workload.seq_len", 512, "sequence_len is 512 unless given")
    _batch(keys, findings)
    hf.length(keys, findings, "num_epochs", 1.0)
    _precision(keys, findings)
    words = table("axolotl/fields")
    names = hf.optimizers() | inverted(words["optimizers"]) | inverted(words["sharded_optimizers"])
    findings.word("workload.optimizer", keys.take("optimizer"), names | table("axolotl/fields")["other_optimizers"])
    findings.default("workload.optimizer", "adamw", "optimizer is AdamW unless given")
    _attention(keys, findings)
    _memory(keys, findings)
    for key, field in _SIZES.items():
        findings.whole(field, keys.take(key), least=-1 if field == "dp_shard" else 1)
    hf.deepspeed(keys, findings)
    hf.fsdp(keys, findings, version=1)
    hf.compiled(keys, findings)
    _generation(keys, findings)
    findings.whole("workload.group_size", keys.take("trl.num_generations"))
    findings.whole("workload.response_len", keys.take("trl.max_completion_length"))
    leave_rest(keys, findings, "axolotl", "hf")


def _stage(keys: Keys, findings: Findings) -> None:
    rl, reward, loss = keys.take("rl"), keys.take("reward_model"), keys.take("dpo_loss_type")
    pretraining = next((keys.items[name] for name in keys.below("pretraining_dataset")), None)
    kinds = keys.look("datasets")
    types = [row.get("type") for row in kinds if isinstance(row, dict)] if isinstance(kinds, list) else []
    if rl is not None:
        words = {fields["fields"].get("rl") for fields in table("axolotl/fields")["stages"].values()} - {None} | {
            "grpo",
            "ipo",
        }
        ipo = loss is not None and "ipo" in str(loss.value)
        findings.word("workload.stage", loss if ipo and rl.value == "dpo" else rl, _stages(words, loss))
    elif is_set(reward) and reward:
        findings.put("workload.stage", "rm", reward)
    elif pretraining is not None:
        findings.put("workload.stage", "pretrain", pretraining)
    elif types and all(kind == "completion" for kind in types):
        findings.put("workload.stage", "pretrain", keys.items["datasets"])
    else:
        findings.default("workload.stage", "sft", "neither rl nor reward_model is there")


def _generation(keys: Keys, findings: Findings) -> None:
    engine, mode, share = (keys.take(name) for name in ("trl.use_vllm", "trl.vllm_mode", "vllm.gpu_memory_utilization"))
    if engine is None or findings.values.get("workload.stage") != "grpo":
        return
    if not is_set(engine):
        findings.put("workload.rollout", "trainer", engine)
        return
    sleeps = keys.take("trl.vllm_enable_sleep_mode")
    if mode is None:
        why = "vllm_mode is not there: since TRL 1 it is colocate, before it was a server on devices of its own"
        findings.one_of("workload.rollout", ("colocated", "separate"), engine, why)
    else:
        findings.word("workload.rollout", mode, {"colocate": "colocated", "server": "separate"})
    if mode is None or mode.value == "colocate":
        findings.number("workload.engine_share", share)
    if is_set(sleeps) and sleeps:
        findings.leave(sleeps, "frees the engine's memory while it trains, which is counted as held")


def _stages(words: set[str], loss: Item | None) -> dict[str, str]:
    known = {word: word for word in words}
    return known if loss is None else known | {str(loss.value): "ipo"}


def _method(keys: Keys, findings: Findings, model: Item | None) -> None:
    kind, four, eight = keys.take("adapter"), keys.take("load_in_4bit"), keys.take("load_in_8bit")
    some = keys.take("unfrozen_parameters")
    dora, init, gptq = keys.take("peft_use_dora"), keys.take("peft_init_lora_weights"), keys.take("gptq")
    if kind is None:
        keys_of_adapters(keys)
        if some is not None and some.value:
            findings.block("workload.method", some, "only some of the weights are trained")
        else:
            findings.default("workload.method", "full", "adapter is not there")
        return
    packed = hf.quantised_checkpoint(findings, model)
    if kind.value not in ("lora", "qlora"):
        findings.block("workload.method", kind, "is no method of a Plan")
    elif is_set(eight) and eight:
        hf.eight_bits(findings, eight)
    elif is_set(gptq) or packed == "gptq":
        findings.put("workload.method", "qlora", kind)
        findings.put("workload.lora.quantisation", "gptq", gptq if is_set(gptq) and gptq else model or kind)
    elif is_set(four) or kind.value == "qlora":
        findings.put("workload.method", "qlora", kind if kind.value == "qlora" or four is None else four)
        double = keys.take("bnb_config_kwargs.bnb_4bit_use_double_quant")
        if double is not None and (on := as_truth(double.value)) is not None:
            findings.put("workload.lora.quantisation", "nf4" if on else "nf4-single", double)
        else:
            findings.default("workload.lora.quantisation", "nf4", "scales are quantised too unless told otherwise")
    elif packed and model is not None:
        findings.block(
            "workload.method", model, "the checkpoint's name says packed weights of a kind that is not modelled"
        )
    elif is_set(dora) and dora:
        findings.put("workload.method", "dora", dora)
    elif init is not None and str(init.value).startswith("pissa"):
        findings.put("workload.method", "pissa", init)
    else:
        findings.put("workload.method", "lora", kind)
    linear = keys.take("lora_target_linear")
    if is_set(linear) and linear:
        # Named modules are of every linear layer.
        findings.put("workload.lora.targets", "all-linear", linear)
        keys.take("lora_target_modules")
    if "lora_r" not in keys and kind.value in ("lora", "qlora"):
        # It hands PEFT none, which stops there.
        findings.blocked.setdefault(
            "workload.lora.rank", f"{keys.file}: lora_r is missing, and Axolotl has no default for it"
        )
    hf.adapters(keys, findings, rank=8, alpha=None, dropout=0.0, renamed=False)


def keys_of_adapters(keys: Keys) -> None:
    """Takes out what has no meaning without an adapter."""
    for name in ("lora_r", "lora_alpha", "lora_dropout", "lora_target_linear", "lora_target_modules"):
        keys.take(name)


def _batch(keys: Keys, findings: Findings) -> None:
    micro = findings.whole("workload.micro_batch", keys.take("micro_batch_size"))
    findings.default("workload.micro_batch", 1, "micro_batch_size is 1 unless given")
    whole, steps = keys.take("batch_size"), keys.take("gradient_accumulation_steps")
    if steps is None and whole is not None and micro and (size := as_number(whole.value)):
        findings.put("accumulation", max(1, int(size) // micro), whole)
    else:
        findings.whole("accumulation", steps)
    findings.default("accumulation", 1, "gradient_accumulation_steps is 1 unless given")


def _precision(keys: Keys, findings: Findings) -> None:
    """`bf16: auto` takes bf16 where the device has it; `full` keeps weights in it too."""
    names = ("bf16", "fp16", "fp8", "tf32", "float32", "bfloat16", "bf16_full")
    bf16, fp16, fp8, tf32, single, plain, whole = (keys.take(name) for name in names)
    if bf16 is not None and bf16.value == "full":
        whole, bf16 = bf16, None
    weights = next(
        (item for item in (whole, plain) if is_set(item) or (item is not None and item.value == "full")), None
    )
    if is_set(fp8) and fp8:
        findings.put("workload.precision", "fp8", fp8)
    elif weights is not None:
        findings.put("workload.precision", "bf16", weights)
        findings.put("workload.weights", "bf16", weights)
    elif is_set(fp16) and fp16:
        findings.put("workload.precision", "fp16", fp16)
    elif is_set(bf16) and bf16:
        findings.put("workload.precision", "bf16", bf16)
    elif is_set(single) and single:
        findings.put("workload.precision", "tf32" if is_set(tf32) else "fp32", single)
    elif bf16 is not None and as_truth(bf16.value) is False:
        if (half := keys.take("float16")) is not None and is_set(half):
            findings.block("workload.precision", half, "all weights in fp16 are not modelled")
        else:
            findings.put("workload.precision", "tf32" if is_set(tf32) else "fp32", bf16)
    else:
        findings.default("workload.precision", "bf16", "bf16 is auto unless given: bf16 where the device has it")


def _attention(keys: Keys, findings: Findings) -> None:
    words = inverted(table("axolotl/fields")["attention"]) | {
        "flash_attention_2": "flash",
        hf.OF_SINKS: "flash",
    }
    findings.word("workload.attention", keys.take("attn_implementation"), words, soft=True)
    old = {"flash_attention": "flash", "sdp_attention": "sdpa", "eager_attention": "eager"}
    for key, value in old.items():
        item = keys.take(key)
        if is_set(item) and item and not findings.has("workload.attention"):
            findings.put("workload.attention", value, item)


def _memory(keys: Keys, findings: Findings) -> None:
    checkpoints, host = keys.take("gradient_checkpointing"), keys.take("activation_offloading")
    if checkpoints is not None and checkpoints.value in ("offload", "unsloth"):
        findings.recomputes.append((True, checkpoints))
        findings.imply("layout.offload", "activations", checkpoints)
    elif checkpoints is not None and (on := as_truth(checkpoints.value)) is not None:
        findings.recomputes.append((on, checkpoints))
    elif checkpoints is not None:
        findings.block("layout.recompute", checkpoints, "is a way of checkpointing that is not modelled")
    findings.default("layout.recompute", "none", "gradient_checkpointing is off unless given")
    if host is not None and (is_set(host) or host.value == "legacy"):
        findings.imply("layout.offload", "activations", host)
    elif host is not None and host.value and as_truth(host.value) is None:
        findings.block("layout.offload", host, "has no place in a Plan")
    findings.truth("workload.tiled_mlp", keys.take("tiled_mlp"))
    findings.truth("workload.packing", keys.take("sample_packing"))
    pretrains = findings.values.get("workload.stage") == "pretrain"
    findings.default("workload.packing", pretrains, "sample_packing is off unless given")
    plugins = keys.look("plugins")
    cut = isinstance(plugins, list) and any(str(name).endswith(_FUSED) for name in plugins)
    off = keys.take("cut_cross_entropy")
    liger = keys.take("liger_fused_linear_cross_entropy")
    if cut and not (off is not None and as_truth(off.value) is False):
        findings.put("workload.fused_loss", True, keys.items.pop("plugins"))
    elif is_set(off) and off:
        findings.put("workload.fused_loss", True, off)
    elif is_set(liger) and liger and isinstance(plugins, list) and any("Liger" in str(name) for name in plugins):
        findings.put("workload.fused_loss", True, liger)
    else:
        findings.default("workload.fused_loss", False, "no plugin for a fused loss is named")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """axolotl train FILE --launcher torchrun -- torchrun's options"""
    if len(words) < 2 or words[1].text not in ("train", "fetch"):
        return []
    place = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    keys, _ = options(setting.file, words[place + 1 :], TORCHRUN_FLAGS)
    counts(keys, setting, nodes="nnodes", per_node="nproc_per_node")
    launch, rest = options(setting.file, words[2:place])
    if (item := launch.take("num_processes")) is not None:
        setting.findings.whole("devices", item)
    return [Program("axolotl", rest, Item(setting.file, "command", "axolotl", words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> None:
    config = next((word for word in start.words if word.text.endswith(CONFIGS)), None)
    if config is not None:
        over_config(config, start, setting)


FORMATS = (Format("Axolotl YAML", score, read),)
COMMANDS = {"axolotl": read_command}
CONSOLES = {"axolotl": _console}
MODULES = {"axolotl": "axolotl"}
