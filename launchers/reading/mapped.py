"""Configs whose keys are a plan's fields one by one: a table of the program (<program>/fields.yaml) says which.

`title` and `framework` name the program; `marks` are keys by which a file is told. `whole` and `number` give fields for
keys (a size of zero or less is one that is off); `besides` those that count where nothing else says the field;
`words` fields with what their values mean; `settled` fields that a key's presence settles; `defaults` what the program
does where a file is silent, with the reason; `blocks` keys of which nothing can be told, with the reason; `model` the
keys that name a model, `config` the section that holds a config.json, `world` the sizes of all groups; `switched`
sections that count only where a key of theirs is on.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from launchers.hf.read import targets
from launchers.reading.commands import CommandReader
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_certain
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest
from launchers.shell.options import options, overrides
from launchers.shell.setting import Program, ScriptSetting
from launchers.tables import table

_OFF = ("false", "0", "none", "null", "off", "")
_UNSPLIT = (0, 1, "none", "null", "None")
# Sizes that a program cannot switch off.
_COUNTS = ("workload.micro_batch", "workload.global_batch", "layout.tp", "layout.pp", "devices", "nodes", "per_node")


def mapped_format(program: str, kinds: tuple[str, ...] = ("yaml",)) -> Format:
    """The format of a program that has such a table."""

    def score(keys: Keys) -> int:
        marks = sum(_key(keys, mark) is not None for mark in table(f"{program}/fields")["marks"])
        # One key may be anybody's.
        return 6 * marks if marks > 1 else marks

    def read(keys: Keys, findings: Findings) -> None:
        read_mapped(program, keys, findings)

    return Format(table(f"{program}/fields")["title"], score, read, kinds)


def mapped_command(program: str) -> CommandReader:
    """The reader of a command whose options are such a table's keys."""

    def read(start: Program, setting: ScriptSetting) -> str:
        keys, rest = options(setting.file, start.words)
        overrides(keys, rest)
        read_mapped(program, keys, setting.findings)
        return table(f"{program}/fields")["title"]

    return read


def read_mapped(program: str, keys: Keys, findings: Findings, framework: str | None = None) -> None:
    """Takes what the table knows, and leaves the rest; `framework` where it is another than the table's."""
    rows = table(f"{program}/fields")
    resolve(keys)
    _model(rows, keys, findings)
    _world(rows, keys, findings)
    _switch(rows, keys, findings)
    _settle(rows, keys, findings)
    _decide(rows, keys, findings)
    _numbers(rows, keys, findings)
    for name, row in rows.get("words", {}).items():
        if (item := _take(keys, name)) is not None:
            findings.word(row["field"], item, _spoken(row["values"]))
    for name, why in rows.get("blocks", {}).items():
        # A switch that is on equals 1, which is a size of one.
        if (item := _take(keys, name)) is not None and (item.value is True or item.value not in _UNSPLIT):
            findings.block(why["field"], item, why["why"])
    decided = [name for cases in rows.get("cases", {}).values() for _, when in cases for name in when]
    for name in (*rows.get("settled", ()), *decided):
        _take(keys, name)
    for name in rows.get("targets", ()):
        targets(findings, _take(keys, name))
    name = framework or rows["framework"]
    findings.put("workload.framework", name, Item(keys.file, rows["title"], name))
    for field, (value, why) in rows.get("defaults", {}).items():
        findings.default(field, value, why)
    leave_rest(keys, findings, f"{program}")


def _settle(rows: Mapping[str, Any], keys: Keys, findings: Findings) -> None:
    """What the presence of a key settles; the keys stay."""
    for name, fields in rows.get("settled", {}).items():
        if (written := _key(keys, name)) is not None and keys.look(written) not in (False, 0):
            for field, value in fields.items():
                findings.put(field, value, keys.items[written])


def _decide(rows: Mapping[str, Any], keys: Keys, findings: Findings) -> None:
    """Fields that several keys say together; the keys stay. Values of which no case speaks are not guessed at."""
    for field, cases in rows.get("cases", {}).items():
        items = [item for _, when in cases for name in when if (item := _first(keys, name)) is not None]
        if not items:
            continue
        case = next((case for case in cases if all(_holds(keys, *part) for part in case[1].items())), None)
        if case is None:
            findings.block(field, items[0], f"is no value of {field} that is known here")
        elif case[0] is not None:
            named = [item for name in case[1] if (item := _first(keys, name)) is not None]
            unknown = next((item for item in items if not is_certain(item.value)), None)
            findings.put(field, case[0], unknown or (named or items)[0])


def _first(keys: Keys, name: str) -> Item | None:
    """The key, or the first of a section."""
    written = _key(keys, name) or next(keys.below(name), None)
    return None if written is None else keys.items[written]


def _holds(keys: Keys, name: str, condition: Any) -> bool:
    item = _first(keys, name)
    off = item is not None and _key(keys, name) is not None and str(item.value).lower() in _OFF
    for wanted in condition if isinstance(condition, list) else [condition]:
        if item is None or wanted is None:
            holds = item is None and wanted is None
        elif isinstance(wanted, bool):
            holds = wanted != off
        else:
            holds = str(item.value).lower() == str(wanted).lower()
        if holds:
            return True
    return False


def _numbers(rows: Mapping[str, Any], keys: Keys, findings: Findings) -> None:
    for name, field in rows.get("whole", {}).items():
        if (item := _take(keys, name)) is not None:
            _whole(field, item, findings)
    for name, field in rows.get("besides", {}).items():
        if (item := _take(keys, name)) is not None:
            if findings.has(field):
                findings.leave(item, f"another key says {field}")
            else:
                _whole(field, item, findings)
    for name, field in rows.get("number", {}).items():
        if (item := _take(keys, name)) is not None:
            findings.number(field, item)


def _whole(field: str, item: Item, findings: Findings) -> None:
    number = as_number(item.value)
    if number is not None and number <= 0 and field not in _COUNTS:
        findings.leave(item, "is off")
    else:
        findings.whole(field, item)


def _switch(rows: Mapping[str, Any], keys: Keys, findings: Findings) -> None:
    for section, switch in rows.get("switched", {}).items():
        if keys.look(switch) not in (True, "true", "True"):
            for name in [name for name in keys.below(section) if name != switch]:
                findings.leave(keys.items.pop(name), f"{switch} is off")


def _spoken(values: Mapping[Any, Any]) -> dict[Any, Any]:
    return {**values, **{str(name).lower(): value for name, value in values.items()}}


def _model(rows: Mapping[str, Any], keys: Keys, findings: Findings) -> None:
    for name in rows.get("model", ()):
        if (item := _take(keys, name)) is not None and isinstance(item.value, str):
            findings.put("model", item.value, item)
            return
    section = rows.get("config")
    if section is None:
        return
    names = list(keys.below(section))
    if not names:
        return
    first = keys.items[names[0]]
    fields = {name.removeprefix(section + "."): keys.items.pop(name).value for name in names}
    findings.put("model", {"architectures": ["LlamaForCausalLM"], "model_type": "llama"} | fields, first)


def _world(rows: Mapping[str, Any], keys: Keys, findings: Findings) -> None:
    """The devices of a program whose file says the size of every group (`world`)."""
    sizes = [as_number(keys.look(name)) for name in rows.get("world", ()) if name in keys]
    if not sizes or None in sizes:
        return
    first = keys.items[next(name for name in rows["world"] if name in keys)]
    findings.put("devices", int(math.prod(size for size in sizes if size)), first)


# Resolvers that configs register with OmegaConf under these names (NeMo RL's nemo_rl/utils/config.py).
_RESOLVERS: dict[str, Callable[[float, float], float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "max": max, "min": min,
}  # fmt: skip
_SUM = re.compile(rf"\$\{{({'|'.join(_RESOLVERS)}):\s*([\d.]+)\s*,\s*([\d.]+)\s*\}}")
_PASSES = 3
# The environment's, of which the file says what stands where it says nothing.
_OF_ENVIRONMENT = re.compile(r"\$\{oc\.env:\w+\s*,\s*([^${}]*)\}")


def resolve(keys: Keys) -> None:
    """Values that name other keys of the file (OmegaConf's ${section.key}, ${mul:${a},${b}}) are what those make."""
    for _ in range(_PASSES):
        for item in list(keys.items.values()):
            if isinstance(item.value, str) and "${" in item.value:
                keys.put(item.key, _resolved(keys, item.value), item.line)


def _resolved(keys: Keys, text: str) -> Any:
    if match := _OF_ENVIRONMENT.fullmatch(text):
        number = as_number(match[1])
        return match[1].strip("'\" ") if number is None else int(number) if number == int(number) else number
    text = _OF_ENVIRONMENT.sub(lambda match: match[1].strip("'\" "), text)
    if (match := re.fullmatch(r"\$\{([\w.]+)\}", text)) and match[1] in keys:
        return keys.look(match[1])

    def size(match: re.Match[str]) -> str:
        value = keys.look(match[1])
        return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else match[0]

    if _SUM.search(plain := re.sub(r"\$\{([\w.]+)\}", size, text)) is None:
        return text
    while (match := _SUM.search(plain)) is not None:
        try:
            made = _RESOLVERS[match[1]](float(match[2]), float(match[3]))
        except (ValueError, ZeroDivisionError, OverflowError):
            return text
        plain = f"{plain[: match.start()]}{made:.15g}{plain[match.end() :]}"
    made = as_number(plain)
    return text if made is None else int(made) if made == int(made) else made


def _key(keys: Keys, name: str) -> str | None:
    """The key as the file writes it: with underscores or dashes."""
    return next((form for form in (name, name.replace("_", "-")) if form in keys), None)


def _take(keys: Keys, name: str) -> Item | None:
    written = _key(keys, name)
    return None if written is None else keys.take(written)
