"""ms-swift's commands (swift sft, pt, rlhf): the Trainer's arguments under names of their own."""

from __future__ import annotations

import re

from launchers.reading.commands import merged
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_truth
from launchers.reading.formats import Format
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting, counts_of_variables
from launchers.trl import read as trl

_RENAMED = {"model": "model_name_or_path", "model_id_or_path": "model_name_or_path", "lora_rank": "lora_r",
            "target_modules": "lora_target_modules", "modules_to_save": "lora_modules_to_save",
            "attn_impl": "attn_implementation", "max_completion_length": "max_completion_length"}  # fmt: skip
# DeepSpeed files that come with it, by name.
_DEEPSPEED = {"zero0": (0, "none"), "zero1": (1, "none"), "zero2": (2, "none"), "zero3": (3, "none"),
              "zero2_offload": (2, "optimizer"), "zero3_offload": (3, "params")}  # fmt: skip
# Arguments of methods that a run of it has only by name.
_OTHER_METHODS = ("lora_ga_", "galore_", "vera_", "boft_", "fourier_", "llamapro_", "lisa_", "reft_", "adalora_")
_STAGES = {"sft": "sft", "pt": "pretrain"}


def read(keys: Keys, findings: Findings, command: Item) -> None:
    for name, theirs in _RENAMED.items():
        if name != theirs and (item := keys.take(name)) is not None:
            keys.put(theirs, item.value, item.line)
    kind, stage = keys.take("train_type") or keys.take("tuner_type") or keys.take("sft_type"), str(command.value)
    if stage in _STAGES:
        findings.put("workload.stage", _STAGES[stage], command)
    else:
        findings.word("workload.stage", keys.take("rlhf_type"), {"dpo": "dpo", "kto": "kto", "orpo": "orpo",
                                                              "simpo": "simpo", "grpo": "grpo", "rm": "rm",
                                                              "ppo": "ppo"})  # fmt: skip
    for name in ("offload_model", "offload_optimizer"):
        # Only while the engine generates (swift/rlhf_trainers/args_mixin.py).
        if findings.values.get("workload.stage") == "grpo" and (item := keys.take(name)) is not None:
            findings.leave(item, "is of the time in which the engine generates")
    if findings.values.get("workload.stage") == "grpo" and (prompt := keys.items.get("max_length")) is not None:
        keys.put("max_prompt_length", prompt.value, prompt.line)
    _method(keys, findings, kind)
    # Ulysses and ring attention by name (swift/trainers/sequence_parallel).
    findings.whole("layout.cp", keys.take("sequence_parallel_size"))
    findings.default("workload.precision", "bf16", "torch_dtype is the checkpoint's unless given")
    words = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    findings.word("workload.precision", keys.take("torch_dtype"), words)
    shards = keys.items.get("deepspeed")
    if shards is not None and shards.value in _DEEPSPEED:
        keys.take("deepspeed")
        number, offload = _DEEPSPEED[str(shards.value)]
        findings.put("layout.zero_stage", number, shards)
        findings.put("layout.offload", offload, shards)
        findings.backend = ("deepspeed", shards)
    # Its own defaults, where they are not the Trainer's.
    findings.default("workload.micro_batch", 1, "per_device_train_batch_size is 1 unless given")
    findings.default("workload.epochs", 3.0, "num_train_epochs is 3 unless given")
    if shards is None and "fsdp" not in keys:
        findings.default("layout.zero_stage", 0, "nothing in the command shards the states")
    findings.default("layout.recompute", "full", "gradient_checkpointing is on unless given")
    if "max_length" not in keys:
        findings.blocked.setdefault("workload.seq_len", f"{command.origin}: max_length is not there: the model's own")
    if "gradient_accumulation_steps" not in keys and (micro := keys.look("per_device_train_batch_size") or 1):
        findings.warn(f"{command.origin}: accumulates to 16 sequences a step unless told")
        findings.blocked.setdefault(
            "accumulation", f"{command.origin}: follows from 16 sequences over {micro} a device"
        )
    sharded = shards is not None
    trl.read(keys, findings)
    if not sharded:
        # Else DeepSpeed's engine holds its states, whoever starts it.
        findings.programs.insert(0, "ms-swift")


def _method(keys: Keys, findings: Findings, kind: Item | None) -> None:
    bits = keys.take("quant_bits") or keys.take("quantization_bit")
    adapters = kind is None or kind.value in ("lora", "qlora")
    if kind is not None and kind.value not in ("lora", "full", "qlora"):
        findings.block("workload.method", kind, "is no method of a Plan")
    keys.put("use_peft", adapters)
    if bits is not None and adapters:
        keys.put("load_in_4bit" if bits.value == 4 else "load_in_8bit", True, bits.line)
        keys.put("use_bnb_nested_quant", as_truth(keys.look("bnb_4bit_use_double_quant")) is not False)
    for field, value in (("rank", 8), ("alpha", 32.0), ("dropout", 0.05)):
        findings.default(f"workload.lora.{field}", value, "as ms-swift has it unless given")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """swift sft …, on as many devices as its environment names."""
    if len(words) < 2 or words[1].text not in ("sft", "pt", "rlhf"):
        return []
    variables = setting.variables | environment
    counts_of_variables(variables, setting, "NPROC_PER_NODE")
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    if "NPROC_PER_NODE" not in variables and visible is not None and re.fullmatch(r"[0-9]+", visible.text):
        setting.findings.put("per_node", 1, Item(setting.file, "CUDA_VISIBLE_DEVICES", visible.text, visible.line))
    elif "NPROC_PER_NODE" not in variables and visible is not None:
        why = "one process splits the layers over its devices, each with no more than a whole copy (give 1 device)"
        item = Item(setting.file, "CUDA_VISIBLE_DEVICES", visible.text, visible.line)
        setting.findings.at_most("layout.zero_stage", 0, item, why)
    return [Program("swift", words[2:], Item(setting.file, "command", words[1].text, words[1].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _, unread = merged(start, setting)
    if unread is not None:
        setting.findings.block("workload", unread, "says the run, and is not given")
    read(keys, setting.findings, start.name)
    return "ms-swift command"


def score(keys: Keys) -> int:
    """args.json, in which a run of it writes down all arguments."""
    own = ("tuner_type", "tuner_backend", "model_type")
    return 60 * ("rlhf_type" not in keys and all(name in keys for name in own))


def read_arguments(keys: Keys, findings: Findings) -> None:
    """Of pretraining and fine-tuning: what was not given stands there at its default, which says nothing of a run."""
    for name, item in list(keys.items.items()):
        if item.value in (None, [], {}) or name.startswith(_OTHER_METHODS):
            keys.take(name)
    item = next(iter(keys.items.values()))
    read(keys, findings, Item(keys.file, "swift", "sft", item.line))


FORMATS = (Format("arguments of an ms-swift run", score, read_arguments, ("json",)),)
COMMANDS = {"swift": read_command}
CONSOLES = {"swift": _console}
