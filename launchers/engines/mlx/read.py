"""mlx-lm's server. Words: fields.yaml."""

from __future__ import annotations

import re
from dataclasses import replace

from launchers.engines.reading import begin, one_unless_given
from launchers.hf import read as hf
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.scripts import Word
from launchers.shell.setting import Program, ScriptSetting

_PACKED = re.compile(r"-(int4|int8|4bit|8bit)$", re.IGNORECASE)
_FLAGS = ("trust_remote_code", "use_default_chat_template", "pipeline")


def read(keys: Keys, findings: Findings) -> None:
    """mlx_lm.server; of its benchmark the load."""
    begin(keys, findings, "mlx")
    model = keys.take("model")
    match = _PACKED.search(str(model.value).rstrip("/")) if model is not None else None
    if model is not None and match:
        findings.put("workload.weight_dtype", f"int{match[1][-1] if match[1][0] == 'i' else match[1][0]}", model)
        hf.model(findings, replace(model, value=str(model.value)[: match.start()].removeprefix("./")))
    else:
        hf.model(findings, model)
    findings.whole("workload.max_batch", keys.take("decode_concurrency"))
    findings.whole("workload.max_batched_tokens", keys.take("prefill_step_size"))
    for name, field in (
        ("prompt_tokens", "input_len"),
        ("generation_tokens", "output_len"),
        ("batch_size", "concurrency"),
    ):
        findings.whole(f"workload.{field}", keys.take(name))
    one_unless_given(findings)
    leave_rest(keys, findings, "engines")


def _console(words: list[Word], environment: dict[str, Word], setting: ScriptSetting) -> list[Program]:
    return [Program("mlx_server", words[1:], Item(setting.file, "command", words[0].text, words[0].line), environment)]


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words, _FLAGS)
    read(keys, setting.findings)
    return "mlx-lm command"


COMMANDS = {"mlx_server": read_command}
CONSOLES = {"mlx_lm.server": _console, "mlx_lm.benchmark": _console}
MODULES = {"mlx_lm.server": "mlx_server"}
