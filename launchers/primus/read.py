"""Primus YAML: Megatron's arguments as overrides of a preset. Words: fields.yaml."""

from __future__ import annotations

import re

from launchers.megatron import read as megatron
from launchers.reading.commands import named_document
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, inverted, is_set
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, plain
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting, counts_of_variables
from launchers.tables import table

_PRIMUS = "modules.pre_trainer"
_TUNED = "modules.post_trainer"


def score(keys: Keys) -> int:
    return 12 if any(f"{name}.framework" in keys for name in (_PRIMUS, _TUNED)) else 0


def read(keys: Keys, findings: Findings) -> None:
    """The overrides are Megatron's; what they leave out is the presets' (modules/megatron/trainer_base.yaml)."""
    words = table("primus/fields")
    section = _PRIMUS if f"{_PRIMUS}.framework" in keys else _TUNED
    kind = keys.take(f"{section}.framework")
    if kind is not None and kind.value != "megatron":
        findings.block("workload.framework", kind, "only Primus' Megatron backend is read")
    preset = keys.take(f"{section}.model")
    inner = _below(keys, f"{section}.overrides.")
    _environment_defaults(inner, findings)
    for megatrons, renamed in words["renamed"].items():
        item = inner.take(renamed)
        if item is not None and item.value and not megatrons.startswith("no_"):
            inner.put(megatrons, item.value, item.line)
    if preset is not None:
        stem = re.sub(r"\$\{\w+:([^}]*)\}", r"\1", str(preset.value)).removesuffix(".yaml")
        preset = Item(preset.file, preset.key, stem, preset.line)
        known = inverted(words["models"]).get(stem)
        if known:
            findings.put("model", known, preset)
        else:
            findings.block("model", preset, "is no preset that is known here")
    if any(is_set(inner.items.get(name)) for name in ("use_torch_fsdp2", "patch_zero_bubble")):
        name = "use_torch_fsdp2" if is_set(inner.items.get("use_torch_fsdp2")) else "patch_zero_bubble"
        if name == "use_torch_fsdp2":
            findings.block("layout.zero_stage", inner.items.pop(name), "a Plan of Primus has no torch FSDP2")
        else:
            half = inner.take("zero_bubble_v_schedule")
            findings.put("layout.schedule", "v-half" if is_set(half) else "zero-bubble", inner.items.pop(name))
    for field, value in words["preset_values"].items():
        if section == _PRIMUS:
            findings.default(field, value, "as Primus' preset has it")
    findings.default("workload.precision", "bf16", "Primus' preset computes in bf16")
    if section == _TUNED:
        findings.default("workload.stage", "sft", "a post_trainer fine-tunes")
    megatron.read(inner, findings, program="primus")
    leave_rest(keys, findings, "nemo")


def _environment_defaults(keys: Keys, findings: Findings) -> None:
    """${NAME:value} is the value unless the environment says another."""
    for item in list(keys.items.values()):
        match = re.fullmatch(r"\$\{([A-Za-z_]\w*):(.*)\}", item.value) if isinstance(item.value, str) else None
        if match:
            value = plain(match[2])
            keys.put(item.key, None if value in ("null", "") else value, item.line)
            if item.key in megatron.OF_RECIPE:
                findings.warn(f"{item.origin}: ${match[1]} is taken at the default that the file gives it")


def _below(keys: Keys, prefix: str) -> Keys:
    inner = Keys(keys.file)
    for name in [name for name in keys.items if name.startswith(prefix)]:
        item = keys.items.pop(name)
        inner.put(name.removeprefix(prefix), item.value, item.line)
    return inner


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    """primus-cli direct -- train pretrain --config FILE, in a world that the environment says."""
    counts_of_variables(setting.variables | environment, setting, "GPUS_PER_NODE")
    return [Program("primus", words[1:], Item(setting.file, "command", "primus-cli", words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> None:
    keys, _ = options(setting.file, start.words)
    config = keys.take("config")
    if config is not None:
        named_document(str(config.value), config, setting)


FORMATS = (Format("Primus YAML", score, read),)
COMMANDS = {"primus": read_command}
CONSOLES = {"primus-cli": _console}
