"""AWS's example of FSDP for its clusters, by its command line. Words: fields.yaml."""

from __future__ import annotations

from typing import Any

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number
from launchers.reading.mapped import read_mapped
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table


def read_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words)
    _model(keys, setting.findings)
    read_mapped("aws_fsdp", keys, setting.findings)
    return table("aws_fsdp/fields")["title"]


def _model(keys: Keys, findings: Findings) -> None:
    """The config that it makes of its options; of a kind that is not known here nothing."""
    words = table("aws_fsdp/fields")
    kind = keys.take("model_type") or Item(keys.file, "model_type", "gpt_neox")
    known = next((row for name, row in words["models"].items() if name in str(kind.value)), None)
    items = {option: keys.take(option) for option in words["dimensions"]}
    config: dict[str, Any] = {"tie_word_embeddings": False, **(known or {})}
    if (longest := as_number(keys.look("max_context_width"))) is not None:
        config["max_position_embeddings"] = int(longest)
    for option, (name, usual) in words["dimensions"].items():
        item = items[option]
        number = usual if item is None else as_number(item.value)
        if item is not None and number is None:
            findings.block("model", item, "is not a number")
        elif number is not None:
            config[name] = int(number)
    if known is None:
        findings.block("model", kind, "is made in a way that is not read; name the model")
    else:
        config.setdefault("num_key_value_heads", config["num_attention_heads"])
        findings.put("model", config, items["hidden_width"] or kind)


COMMANDS = {"aws-fsdp": read_command}
