"""Text Generation Inference's commands and variables, which are its options in capitals. Words: fields.yaml."""

from __future__ import annotations

from launchers.engines.reading import begin_serving, settings_of
from launchers.hf import read as hf
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, plain
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table


def read(keys: Keys, findings: Findings) -> None:
    rows, words = table("engines/tgi/fields"), table("engines/words")
    origin = begin_serving(keys, findings, "tgi")
    findings.block(
        "workload.engine", origin, "is an engine of which no speeds are known (--engine vllm is most like it)"
    )
    hf.model(findings, keys.take("model_id"))
    for name, field in rows["options"].items():
        findings.whole(field, keys.take(name))
    packed, kind = keys.take("quantize"), keys.take("dtype")
    if packed is not None:
        findings.word("workload.weight_dtype", packed, words["formats"] | rows["formats"])
    elif kind is not None:
        findings.word("workload.weight_dtype", kind, words["types"])
    findings.word("workload.kv_dtype", keys.take("kv_cache_dtype"), words["caches"])
    findings.number("workload.memory_share", keys.take("cuda_memory_fraction"))
    findings.default("layout.tp", 1, "num_shard is one unless given")
    findings.default("layout.dp", 1, "one server")
    leave_rest(keys, findings, "engines/tgi", "engines")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    item = Item(setting.file, "command", "text-generation-launcher", words[0].line)
    return [Program("tgi", words[1:], item, environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words, ("trust_remote_code", "json_output", "disable_custom_kernels"))
    spoken = {"model_id", "quantize", "dtype", "kv_cache_dtype", "cuda_memory_fraction"}
    for name, text in settings_of(start, setting).items():
        option = name.lower()
        if option not in keys and (option in spoken or option in table("engines/tgi/fields")["options"]):
            keys.put(option, plain(text))
    read(keys, setting.findings)
    return "Text Generation Inference command"


COMMANDS = {"tgi": read_command}
CONSOLES = {"text-generation-launcher": _console}
