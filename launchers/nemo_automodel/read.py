"""NeMo AutoModel YAML and its start. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.commands import over_config
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting

_PROGRAM = "nemo_automodel"


def read(keys: Keys, findings: Findings) -> None:
    _adapter(keys, findings)
    _offload(keys, findings)
    if "packed_sequence.packed_sequence_size" in keys:
        packed = keys.items["packed_sequence.packed_sequence_size"]
        findings.put("workload.packing", bool(as_number(packed.value)), packed)
    if (fp8 := keys.take("fp8.enabled")) is not None:
        findings.put("workload.precision", "fp8" if fp8.value is True else "bf16", fp8)
    read_mapped(_PROGRAM, keys, findings)


def _adapter(keys: Keys, findings: Findings) -> None:
    """The kind of adapter follows from two sections: that of the adapter, and that of frozen weights."""
    peft, packed = keys.take("peft._target_"), keys.take("quantization.load_in_4bit")
    double = keys.take("quantization.bnb_4bit_use_double_quant")
    dora = keys.take("peft.use_dora")
    if peft is None:
        return
    if packed is not None and packed.value is True:
        findings.put("workload.method", "qlora", packed)
        if double is not None:
            findings.put("workload.lora.quantisation", "nf4" if double.value is True else "nf4-single", double)
    else:
        findings.put("workload.method", "dora" if dora is not None and dora.value is True else "lora", peft)


def _offload(keys: Keys, findings: Findings) -> None:
    if (policy := keys.take("distributed.offload_policy._target_")) is not None:
        findings.put("layout.offload", "params", policy)
    if (kept := keys.take("distributed.reshard_after_forward")) is not None:
        findings.put("layout.zero_stage", 2 if kept.value is False else 3, kept)
        keys.take("distributed.strategy")


def read_command(start: Program, setting: ScriptSetting) -> None:
    """The CLI with a config and `--section.key=value` over it."""
    if start.words:
        over_config(start.words[0], start, setting)


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    return [Program(_PROGRAM, words[1:], Item(setting.file, "command", "automodel", words[0].line), environment)]


_MAPPED = mapped_format(_PROGRAM)
FORMATS = (Format(_MAPPED.name, _MAPPED.score, read),)
COMMANDS = {_PROGRAM: read_command}
CONSOLES = {"automodel": _console}
MODULES = {"nemo_automodel.cli.app": _PROGRAM, "nemo_automodel.recipes.llm.train_ft": _PROGRAM}
