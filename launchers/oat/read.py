"""oat's trainers by their options. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.findings import as_number
from launchers.reading.mapped import read_mapped
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_PROGRAM = "oat"
# ZeRO's stage unless given, and the one that a reference is sharded from.
_USUAL, _SHARDS_WEIGHTS = 2, 3


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words)
    prompt, answer = (as_number(keys.look(name)) for name in ("prompt_max_length", "generate_max_length"))
    if prompt and answer:
        longest = "a prompt and its answer at their longest, to which rows are padded"
        setting.findings.default("workload.seq_len", int(prompt + answer), longest)
    off = keys.items.get("ref_offload")
    if off is not None and (as_number(keys.look("zero_stage")) or _USUAL) < _SHARDS_WEIGHTS:
        why = "keeps the reference off the devices, where a Plan counts it whole; give what else is on them"
        setting.findings.block("overrides.extra_models_gib", off, why)
    read_mapped(_PROGRAM, keys, setting.findings)
    return table(f"{_PROGRAM}/fields")["title"]


COMMANDS = {_PROGRAM: read_command}
