"""LitGPT YAML, and the same words on its command line. Several devices shard with FSDP and recompute every block."""

from __future__ import annotations

import re

from launchers.reading.commands import merged, model_word
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting

_TARGETS = {"query": ["q_proj"], "key": ["k_proj"], "value": ["v_proj"], "projection": ["o_proj"],
            "mlp": ["gate_proj", "up_proj", "down_proj"]}  # fmt: skip
_PRECISIONS = {"bf16-true": "bf16", "bf16-mixed": "bf16", "16-mixed": "fp16", "32-true": "fp32"}


def score(keys: Keys) -> int:
    markers = ("train.micro_batch_size", "train.global_batch_size", "checkpoint_dir", "lora_query", "data.class_path",
           "train.max_seq_length")  # fmt: skip
    return 4 * sum(name in keys for name in markers)


def read(keys: Keys, findings: Findings, command: Item | None = None) -> None:
    """`command` names LitGPT's command where it is known (finetune_lora, pretrain, …)."""
    findings.programs.append("litgpt")
    script = str(command.value) if command is not None else ""
    pretrains = script == "pretrain" or "model_name" in keys
    name = keys.take("model_name") or keys.take("checkpoint_dir")
    if name is not None and isinstance(name.value, str):
        findings.put("model", re.sub(r"^.*checkpoints/", "", name.value), name)
    if command is not None:
        findings.put("workload.stage", "pretrain" if pretrains else "sft", command)
    else:
        findings.default("workload.stage", "pretrain" if pretrains else "sft", "as its keys are those of that command")
    _method(keys, findings, command)
    for key, field in (("devices", "per_node"), ("num_nodes", "nodes")):
        item = keys.take(key)
        if item is not None and item.value == "auto":
            findings.leave(item, "as many as the machine has")
        else:
            findings.whole(field, item)
    if not findings.has("per_node") and not pretrains:
        findings.default("per_node", 1, "devices is 1 unless given")
    several = (findings.values.get("per_node") or 1) * (findings.values.get("nodes") or 1) > 1
    findings.default("nodes", 1, "num_nodes is 1 unless given")
    findings.whole("workload.seq_len", keys.take("train.max_seq_length"))
    if not findings.has("workload.seq_len"):
        findings.blocked["workload.seq_len"] = (
            f"{keys.file}: train.max_seq_length is not there: the longest row decides"
        )
    findings.whole("workload.micro_batch", keys.take("train.micro_batch_size"))
    findings.whole("workload.global_batch", keys.take("train.global_batch_size"))
    steps = keys.take("train.max_steps")
    findings.whole("workload.steps", steps)
    if steps is None:
        findings.number("workload.epochs", keys.take("train.epochs"))
    tokens = keys.take("train.max_tokens")
    if tokens is not None and as_number(tokens.value):
        findings.number("workload.dataset_tokens", tokens)
    kind = keys.take("precision")
    findings.word("workload.precision", kind, _PRECISIONS)
    if kind is not None and kind.value == "bf16-true":
        findings.put("workload.weights", "bf16", kind)
    optimizer = keys.take("optimizer") or keys.take("optimizer.class_path")
    words = {"AdamW": "adamw", "torch.optim.AdamW": "adamw", "torch.optim.SGD": "sgd", "SGD": "sgd",
             "bitsandbytes.optim.PagedAdamW": "paged_adamw", "Adam": "adamw"}  # fmt: skip
    findings.word("workload.optimizer", optimizer, words)
    findings.default("workload.optimizer", "adamw", "optimizer is AdamW unless given")
    findings.default("layout.zero_stage", 3 if several else 0, "several devices shard with FSDP")
    findings.default("layout.recompute", "full" if several and not pretrains else "none", "of FSDP's fine-tuning alone")
    findings.default("layout.offload", "none", "nothing is moved to the host")
    for field in ("layout.tp", "layout.pp", "layout.cp"):
        findings.default(field, 1, "these commands do not split the model this way")
    leave_rest(keys, findings, "litgpt")


def _method(keys: Keys, findings: Findings, command: Item | None) -> None:
    kind = keys.take("quantize")
    adapters = "lora_r" in keys or (command is not None and "lora" in str(command.value))
    if not adapters:
        if command is not None and "adapter" in str(command.value):
            findings.block("workload.method", command, "is no method of a Plan")
        findings.default("workload.method", "full", "no key of adapters is there")
        return
    origin = keys.items.get("lora_r") or command
    assert origin is not None
    if kind is not None and kind.value in ("bnb.nf4", "bnb.nf4-dq"):
        findings.put("workload.method", "qlora", kind)
        findings.put("workload.lora.quantisation", "nf4" if kind.value == "bnb.nf4-dq" else "nf4-single", kind)
    elif kind is not None:
        findings.block("workload.method", kind, "only NF4 has a place in a Plan")
    else:
        findings.put("workload.method", "lora", origin)
    for key, field, usual in (("lora_r", "rank", 8), ("lora_alpha", "alpha", 16), ("lora_dropout", "dropout", 0.05)):
        item = keys.take(key)
        findings.number(f"workload.lora.{field}", item) if field != "rank" else findings.whole(
            "workload.lora.rank", item
        )
        findings.default(f"workload.lora.{field}", usual, f"{key} is {usual:g} unless given")
    usual_on = {"query", "value"}
    on: list[str] = []
    for word, modules in _TARGETS.items():
        item = keys.take(f"lora_{word}")
        if is_set(item) or (item is None and word in usual_on):
            on += modules
    every = [name for modules in _TARGETS.values() for name in modules]
    if on:
        findings.put("workload.lora.targets", "all-linear" if on == every else ",".join(on), origin)
    if is_set(head := keys.take("lora_head")) and head:
        findings.leave(head, "adapters on the head have no place in a Plan")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """litgpt finetune_lora MODEL …, or in older versions litgpt finetune lora …"""
    if len(words) < 2 or not re.match(r"finetune|pretrain", words[1].text):
        return []
    name, rest = words[1].text, words[2:]
    if name == "finetune" and rest and not rest[0].text.startswith("-"):
        name, rest = f"finetune_{rest[0].text}", rest[1:]
    return [Program("litgpt", rest, Item(setting.file, "command", name, words[1].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, rest, _ = merged(start, setting)
    if (model := model_word(rest, setting)) is not None and "checkpoint_dir" not in keys:
        keys.put("checkpoint_dir" if "pretrain" not in str(start.name.value) else "model_name", model.value, model.line)
    read(keys, setting.findings, start.name)
    return "LitGPT command"


FORMATS = (Format("LitGPT YAML", score, read),)
COMMANDS = {"litgpt": read_command}
CONSOLES = {"litgpt": _console}
