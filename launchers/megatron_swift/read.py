"""Megatron-SWIFT's commands (megatron sft, pt, rlhf). Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.documents import Item
from launchers.reading.findings import as_number
from launchers.reading.mapped import read_mapped
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting, counts_of_variables
from launchers.tables import table

_STAGES = {"sft": "sft", "pt": "pretrain"}


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    if len(words) < 2 or words[1].text not in ("sft", "pt", "rlhf"):
        return []
    counts_of_variables(setting.variables | environment, setting, "NPROC_PER_NODE")
    item = Item(setting.file, "command", words[1].text, words[1].line)
    return [Program("megatron-swift", words[2:], item, environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words)
    findings, command = setting.findings, str(start.name.value)
    stands: str | None = None
    if command in _STAGES:
        findings.put("workload.stage", _STAGES[command], start.name)
    else:
        # The same Megatron-core with the same way of generating, for what both have.
        findings.word("workload.stage", keys.take("rlhf_type"), {"dpo": "dpo", "grpo": "grpo", "rm": "rm"})
        stands, why = "nemo-rl", "NeMo RL stands for Megatron-SWIFT: memory and time are less certain"
        findings.warn(f"{start.name.origin}: {why}")
        engine = keys.take("vllm_mode")
        findings.word("workload.rollout", engine, {"colocate": "colocated", "server": "separate"})
        if engine is not None and engine.value == "colocate":
            findings.number("workload.engine_share", keys.take("vllm_gpu_memory_utilization"))
    prompt, answer = as_number(keys.look("max_length")), as_number(keys.look("max_completion_length"))
    if command == "rlhf" and prompt and answer:
        # Of GRPO max_length is the prompt's alone.
        keys.put("max_length", int(prompt + answer), keys.items["max_length"].line)
    if "max_length" not in keys:
        findings.blocked.setdefault(
            "workload.seq_len", f"{start.name.origin}: max_length is not there: the model's own"
        )
    read_mapped("megatron_swift", keys, findings, stands)
    return table("megatron_swift/fields")["title"]


COMMANDS = {"megatron-swift": read_command}
CONSOLES = {"megatron": _console}
