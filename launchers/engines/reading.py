"""What command lines of engines have in common, and the loads of their benchmarks. Words: words.yaml."""

from __future__ import annotations

import re

from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, inverted
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_LOAD = {
    "random_input_len": "workload.input_len",
    "random_output_len": "workload.output_len",
    "max_concurrency": "workload.concurrency",
    "num_prompts": "workload.requests",
}


def begin_serving(keys: Keys, findings: Findings, engine: str) -> Item:
    """Where it is said which engine serves."""
    findings.programs.append(engine)
    origin = Item(keys.file, engine, engine)
    findings.put("workload.kind", "inference", origin)
    return origin


def settings_of(start: Program, setting: ScriptSetting) -> dict[str, str]:
    """The variables that a program is started with; outer ones give way."""
    inner = {name: word.text for name, word in (setting.variables | start.environment).items()}
    return setting.known | inner


def begin(keys: Keys, findings: Findings, engine: str) -> None:
    for name in [name for name in keys.items if "-" in name]:
        item = keys.items.pop(name)
        keys.put(name.replace("-", "_"), item.value, item.line)
    _spell_out(keys, engine)
    findings.put("workload.engine", engine, begin_serving(keys, findings, engine))


def _spell_out(keys: Keys, engine: str) -> None:
    """Options by the beginning of their names (--max-num-seq), which argparse takes where one alone begins so."""
    rows = table("engines/words")["shortened"]
    if engine not in rows["parsers"]:
        return
    names = {*table(f"engines/{engine}/fields")["options"], *rows["options"]}
    for short in [name for name in keys.items if name not in names and "_" in name]:
        meant = [name for name in names if name.startswith(short)]
        if len(meant) == 1 and meant[0] not in keys:
            item = keys.items.pop(short)
            keys.put(meant[0], item.value, item.line)


def take_options(keys: Keys, findings: Findings, engine: str) -> None:
    """Options that hold numbers."""
    for name, field in table(f"engines/{engine}/fields")["options"].items():
        item = keys.take(name)
        if item is not None and field == "workload.max_context" and item.value in ("auto", -1):
            findings.leave(item, "as long as memory allows")
        else:
            findings.whole(field, item)


def take_weights(keys: Keys, findings: Findings, engine: str) -> None:
    """Formats of weights and cache; `auto` says nothing of a checkpoint."""
    kind, packed = keys.take("dtype"), keys.take("quantization")
    words, fields = table("engines/words"), table(f"engines/{engine}/fields")
    if packed is not None:
        findings.word("workload.weight_dtype", packed, words["formats"] | inverted(fields["online"]))
    elif kind is not None and kind.value != "auto":
        findings.word("workload.weight_dtype", kind, words["types"])
    else:
        if kind is not None:
            findings.leave(kind, "the checkpoint says it")
        _packed_by_name(findings)
    findings.word("workload.kv_dtype", keys.take("kv_cache_dtype"), words["caches"] | inverted(fields["kv"]))


# How a checkpoint is packed, as the end of its name says.
_NAMED = ((r"awq", "awq"), (r"gptq", "gptq"), (r"nvfp4|[-_]fp4", "nvfp4"), (r"mxfp4", "mxfp4"), (r"[-_]fp8", "fp8"),
          (r"w8a8|[-_]int8", "int8"))  # fmt: skip


def _packed_by_name(findings: Findings) -> None:
    name = findings.values.get("model")
    row = next((row for row in findings.read if row.field == "model"), None)
    if not isinstance(name, str) or row is None:
        return
    for pattern, kind in _NAMED:
        if re.search(pattern, name.lower()):
            findings.imply("workload.weight_dtype", kind, Item(row.origin, "name of the checkpoint", name))
            return


def read_load(keys: Keys, findings: Findings) -> None:
    """What a benchmark of a server sends."""
    for name, field in _LOAD.items():
        findings.whole(field, keys.take(name))
    rate = keys.take("request_rate")
    if rate is not None and str(rate.value) != "inf":
        findings.number("workload.request_rate", rate)
    leave_rest(keys, findings, "engines")


def one_unless_given(findings: Findings) -> None:
    for field in ("layout.tp", "layout.pp", "layout.dp", "layout.ep"):
        findings.default(field, 1, "one unless given")


def draft_method(findings: Findings, named: Item | None) -> str | None:
    """What drafts, as the file's method says; None where it is one that no Plan has, or is not said."""
    method = None if named is None else table("engines/words")["drafting"].get(str(named.value).strip().lower())
    if named is not None and method is not None:
        findings.put("workload.draft_method", method, named)
    return method


def read_load_command(start: Program, setting: ScriptSetting) -> str:
    keys, _ = options(setting.file, start.words)
    read_load(keys, setting.findings)
    return "load of a benchmark"
