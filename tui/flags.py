"""Flags of the planning commands, made from the fields of the tools' requests, and read back into arguments.

A field has one definition, in the Plan; here it only gets a flag: `seq_len` is `--seq-len` (`--seq_len` will do).
Values stay the words that were typed, but for lists, mappings and truth values: the tool checks and converts them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from estimator.errors import PlanError, nearest
from estimator.plan.choices import members, valid_values
from estimator.plan.schema import merge
from knowledge.machines.counted import find_devices
from knowledge.own.files import parsed, read_stream, read_text
from knowledge.own.home import expanded
from knowledge.scenarios import find_scenario
from planner.requests import ALL_PATHS, FLAT_PATHS, ONLY_SERVING, flag_of
from tools.registry import find
from tui.commands.call import parse_value
from tui.planning import Planning

# Where argparse puts what was given by flag, so that no field's name meets one of its own.
_GIVEN = "field:"
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_COUNTED = re.compile(r"(\d{1,9})\s*x\s*(\S.*)")
# Names that are the same on every command, whatever its tool calls the field.
_ALSO = {"top": "--limit", "limit": "--top", "objective": "--goal"}
# What people call an objective, of serving above all.
_SPOKEN = {"latency": "time"}
_SECTIONS = {"cluster": "hardware", "layout": "layout", "goal": "goal", "overrides": "figures of your own"}
_FILES = (".yaml", ".yml", ".json")
_FLAT = {path: name for name, path in ALL_PATHS.items()}
# What --set takes for leaving a field open.
_OPEN = ("", "null", "~")


def fields_of(planning: Planning) -> dict[str, Any]:
    """All fields that the command's tools take, each once, in the order of the requests; but for the plan, the place
    to write to and the texts of files, which the command line has other words for."""
    tools = [*planning.tools, *([planning.writes] if planning.writes else ())]
    apart = {"plan", planning.writes_to, *(("text", "files") if planning.files else ())}
    fields: dict[str, Any] = {}
    for place in tools:
        for name, info in find(place).request.model_fields.items():
            if name not in apart:
                fields.setdefault(name, info)
    if planning.training != planning.serving and "objective" in fields:
        # What the best way to serve is best at is the plan's objective, as it is of training.
        own = find(planning.training).request.model_fields if planning.training else fields
        fields = {name: info for name, info in fields.items() if name != "goal" or name in own}
    return fields


def takes_plan(planning: Planning) -> bool:
    return any("plan" in find(place).request.model_fields for place in planning.tools)


# ------------------------------------------------------------------------------------------------- building flags


def add_flags(parser: argparse.ArgumentParser, planning: Planning) -> None:
    """A flag for every field, grouped as the Plan is; the fields of `places` also by place."""
    fields = fields_of(planning)
    for name in planning.places:
        text = _place_help(name, fields[name])
        made = parser.add_argument(f"place_{name}", metavar=name.upper(), nargs="?", help=text)
        made.values = valid_values(fields[name].annotation)  # type: ignore[attr-defined]
    groups = {title: parser.add_argument_group(title) for title in _titles(planning, fields)}
    for name, info in fields.items():
        _add_flag(groups[_title(name, planning)], name, info, fields)


def _add_flag(group: Any, name: str, info: Any, fields: Iterable[str]) -> None:
    flag, dest = flag_of(name), f"{_GIVEN}{name}"
    flags = [flag, *([_ALSO[name]] if name in _ALSO and _ALSO[name].lstrip("-") not in fields else [])]
    text = (info.description or "").replace("%", "%%")
    kinds = _kinds(info.annotation)
    if kinds == {bool}:
        group.add_argument(flag, dest=dest, action=argparse.BooleanOptionalAction, default=None, help=text)
        return
    values = valid_values(info.annotation)
    shown = "{" + ",".join(values) + "}" if values and len(",".join(values)) <= 48 else _metavar(kinds)
    if values and not shown.startswith("{"):
        text = f"{text} One of {', '.join(values)}."
    action = "append" if kinds & {list, dict} else "store"
    made = group.add_argument(*flags, dest=dest, action=action, default=None, metavar=shown, help=text)
    made.values = values  # of the completion scripts


def _titles(planning: Planning, fields: Mapping[str, Any]) -> list[str]:
    order = ["of this command", "model", "hardware", "training", "serving", "layout", "goal", "figures of your own"]
    return sorted({_title(name, planning) for name in fields}, key=order.index)


def _title(name: str, planning: Planning) -> str:
    path = ALL_PATHS.get(name)
    if path is None or not takes_plan(planning):
        return "of this command"
    section = path.partition(".")[0]
    if section == "workload":
        return "serving" if name in ONLY_SERVING or name not in FLAT_PATHS else "training"
    return _SECTIONS.get(section, "model")


def _place_help(name: str, info: Any) -> str:
    if name == "accelerator":
        return "accelerator id or name, h100-sxm; with a count in front, 8xh100"
    return f"as {flag_of(name)}: {info.description or name}".replace("%", "%%")


def _metavar(kinds: set[Any]) -> str:
    if dict in kinds and str not in kinds:
        return "KEY=VALUE"
    if list in kinds:
        return "A,B,…"
    if kinds <= {int, bool}:
        return "N"
    return "X" if kinds <= {int, float, bool} else "VALUE"


def _kinds(annotation: Any) -> set[Any]:
    """Python types that a field may hold: str, int, float, bool, list, dict."""
    kinds = set()
    for part in members(annotation):
        origin = get_origin(part)
        kinds.add(str if origin is Literal else origin or part)
    return kinds


# ------------------------------------------------------------------------------------------------- reading flags


def normal(words: Sequence[str], planning: Planning) -> list[str]:
    """The words with dashes for underscores in flags, and truth values written into their flags."""
    switches = {flag_of(name) for name, info in fields_of(planning).items() if _kinds(info.annotation) == {bool}}
    out: list[str] = []
    switched: dict[str, str] = {}
    pending = list(words)
    while pending:
        word = pending.pop(0)
        if word == "--":
            return [*out, word, *pending]
        if not word.startswith("--"):
            out.append(word)
            continue
        flag, equals, value = word.partition("=")
        flag = flag.replace("_", "-")
        switch = f"--{flag[2:].removeprefix('no-')}"
        if switch not in switches or (flag != switch and equals):
            out.append(flag + equals + value)
            continue
        if flag == switch:
            if not equals and pending and pending[0].lower() in (*_TRUE, *_FALSE):
                value = pending.pop(0)
            if value and value.lower() not in (*_TRUE, *_FALSE):
                raise PlanError(flag, f"{value!r} is neither true nor false", ["true", "false"])
            flag = f"--no-{flag[2:]}" if value.lower() in _FALSE and value else flag
        if switched.setdefault(switch, flag) != flag:
            raise PlanError(flag, f"stands beside {switched[switch]}: give one of them")
        out.append(flag)
    return out


def _counted(device: str) -> str | None:
    """Devices of '8xh100', and of '2xp5.48xlarge', machines of eight; None for names that are not known here."""
    try:
        return str(find_devices(device).count or "") or None
    except PlanError:
        return None


def arguments_of(parsed: argparse.Namespace, planning: Planning) -> dict[str, Any]:
    """What was given, as arguments of a tool. Raises PlanError for what cannot be read."""
    fields = fields_of(planning)
    typed = {name: value for name in fields if (value := vars(parsed).get(f"{_GIVEN}{name}")) is not None}
    for name in planning.places:
        if (value := vars(parsed)[f"place_{name}"]) is not None:
            if name in typed:
                raise PlanError(flag_of(name), f"is given twice, as {value!r} too")
            typed[name] = value
    device = typed.get("accelerator")
    if "count" in fields and isinstance(device, str) and (match := _COUNTED.fullmatch(device.strip())):
        counted = _counted(device) or match[1]
        if str(typed.get("count", counted)) != counted:
            raise PlanError("--count", f"is {typed['count']}, but the accelerator stands with {counted}")
        typed |= {"count": counted, "accelerator": match[2]}
    arguments: dict[str, Any] = {}
    for name, value in typed.items():
        values = value if isinstance(value, list) else [value]
        arguments[name] = value if isinstance(value, bool) else _read(name, fields[name].annotation, values)
        if name == "objective":
            arguments[name] = _SPOKEN.get(str(arguments[name]), arguments[name])
    flat, dotted = settings_of(parsed.set or (), fields)
    if dotted and not takes_plan(planning):
        raise PlanError("--set", f"there is no field {next(iter(dotted))!r}", nearest(next(iter(dotted)), fields))
    serving = [("--serving", "workload.kind", "inference")] if getattr(parsed, "serving", False) else []
    _refuse_two(
        [
            *((_said(name, parsed), _path(name), value) for name, value in arguments.items()),
            *serving,
            *(("--set", _path(name), value) for name, value in {**flat, **dotted}.items()),
        ]
    )
    return _with_plan(arguments, parsed, fields, (flat, dotted)) if takes_plan(planning) else flat | arguments


def _said(name: str, parsed: argparse.Namespace) -> str:
    """Where a field was given: its flag, or the words that stand without one."""
    device = vars(parsed).get("place_accelerator") or vars(parsed).get(f"{_GIVEN}accelerator")
    if name == "count" and vars(parsed).get(f"{_GIVEN}count") is None:
        return str(device)
    return flag_of(name)


def _path(name: str) -> str:
    return ALL_PATHS.get(name, name)


def _refuse_two(values: Iterable[tuple[str, str, Any]]) -> None:
    """PlanError where one field has two values: where each was given, the field's path, and its value."""
    first: dict[str, tuple[str, str]] = {}
    for where, path, value in values:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        before = first.setdefault(path, (where, text))
        if before[1] != text:
            raise PlanError(where, f"sets {path} to {text!r}, but {before[0]} to {before[1]!r}: give it once")


def serves(arguments: Mapping[str, Any], planning: Planning) -> bool:
    """Whether the serving tool is meant: asked for, or by a field or a plan that only serving has."""
    if planning.training is None or planning.serving is None:
        return planning.training is None
    plan = arguments.get("plan")
    plan = saved_plan(plan) if isinstance(plan, str) else plan or {}
    workload = plan.get("workload")
    workload = workload if isinstance(workload, Mapping) else {}
    trained = find(planning.training).request.model_fields
    return (
        workload.get("kind") == "inference"
        or any(name in ONLY_SERVING for name in workload)
        or any(name in ONLY_SERVING or name not in trained for name in arguments if name != "plan")
    )


def of_tool(arguments: dict[str, Any], place: str) -> dict[str, Any]:
    """The arguments as the tool calls them: what is best is the plan's objective, and of some tools their own goal."""
    known = find(place).request.model_fields
    if "objective" not in arguments or "objective" in known or "goal" not in known:
        return arguments
    rest = dict(arguments)
    objective = rest.pop("objective")
    spoken = {value: word for word, value in _SPOKEN.items()}
    return rest | {"goal": spoken.get(str(objective), objective)}


def _with_plan(
    arguments: dict[str, Any], parsed: argparse.Namespace, fields: Mapping[str, Any],
    settings: tuple[dict[str, Any], dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """The arguments with the plan that --plan or --scenario name, and what --set (`settings`, by flat names and by
    dotted ones) and --serving change of it."""
    scenario = arguments.get("scenario")
    if isinstance(scenario, str) and scenario not in (own := valid_values(fields["scenario"].annotation)):
        if parsed.plan is not None:
            raise PlanError("--scenario", f"{scenario!r} is a saved plan, and --plan names another")
        try:
            saved_plan(scenario, "--scenario")
        except PlanError as error:
            raise PlanError("--scenario", error.problem, [*own, *error.valid]) from None
        del arguments["scenario"]
        parsed.plan = scenario
    plan = None if parsed.plan is None else read_plan(parsed.plan)
    flat, dotted = settings
    if parsed.serving:
        dotted.setdefault("workload.kind", "inference")
    if dotted:
        plan = merge(saved_plan(plan) if isinstance(plan, str) else plan or {}, dotted)
    return ({} if plan is None else {"plan": plan}) | flat | arguments


def settings_of(settings: Sequence[str], fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What --set says, by flat names and by dotted ones."""
    flat: dict[str, Any] = {}
    dotted: dict[str, Any] = {}
    settings_read: list[tuple[str, str, Any]] = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise PlanError("--set", f"{setting!r} is not KEY=VALUE", ["layout.tp=4", "seq_len=8192"])
        if "." in key:
            if key.partition(".")[0] not in ("model", "workload", "cluster", "layout", "goal", "overrides"):
                raise PlanError("--set", f"there is no field {key!r}", nearest(key, ALL_PATHS.values()))
            name = _FLAT.get(key)
            known = name in fields and value.strip() not in _OPEN
            dotted[key] = _read(name, fields[name].annotation, [value]) if name and known else _scalar(value)
        elif key in fields:
            flat[key] = _read(key, fields[key].annotation, [value])
        else:
            raise PlanError("--set", f"there is no field {key!r}", nearest(key, fields))
        settings_read.append((f"--set {setting}", _path(key), {**flat, **dotted}[key]))
    _refuse_two(settings_read)
    return flat, dotted


def read_plan(source: str, field: str = "--plan") -> dict[str, Any] | str:
    """The plan in a file (- is standard input), or the name of a saved one."""
    try:
        path = expanded(source)
        if source != "-" and not path.is_file() and path.suffix.lower() not in _FILES and "/" not in source:
            saved_plan(source, field)
            return source
        text = read_stream(sys.stdin, field) if source == "-" else read_text(path, field)
    except PlanError:
        raise
    except (OSError, RuntimeError, ValueError):
        raise PlanError(field, f"{source[:80]!r} is no name that a file can have") from None
    plan = parsed(text, field)
    if not isinstance(plan, dict):
        raise PlanError(field, f"{source} does not hold a plan", ["a YAML or JSON mapping with model, workload, …"])
    return plan


def saved_plan(name: str, field: str = "--plan") -> dict[str, Any]:
    return find_scenario(name, field).data(field)


def _read(name: str, annotation: Any, values: list[str]) -> Any:
    """The words given for a field as what it holds."""
    kinds = _kinds(annotation)
    parts = [value.strip() for value in values]
    opens = {list: "[", dict: "{"}
    if len(parts) == 1 and any(kind in kinds and parts[0].startswith(mark) for kind, mark in opens.items()):
        return _json(name, parts[0])
    if list in kinds and str in kinds:
        return ",".join(parts)  # the tool reads ranges and lists itself
    if list in kinds:
        return _members(name, annotation, parts)
    if dict in kinds and str not in kinds:
        return _mapping(name, parts)
    word = parts[-1].lower()
    # As in YAML, which plans are written in.
    return word in _TRUE if bool in kinds and word in (*_TRUE, *_FALSE) else parts[-1]


def _members(name: str, annotation: Any, parts: list[str]) -> list[Any]:
    """Names joined by commas; members that are mappings are JSON or `key=value` pairs, one flag each."""
    inner = next(get_args(part)[0] for part in members(annotation) if get_origin(part) is list)
    if str in _kinds(inner) or Any in _kinds(inner):
        return [word.strip() for part in parts for word in part.split(",") if word.strip()]
    return [_json(name, part) if part.startswith("{") else _pairs(name, part) for part in parts]


def _mapping(name: str, parts: list[str]) -> dict[str, Any]:
    """`key=value` pairs, one flag each or several joined by commas; a value with commas is a list."""
    mapping: dict[str, Any] = {}
    split = [(whole, whole.split(",")) for whole in parts]
    for part in (each for whole, pairs in split for each in (pairs if all("=" in pair for pair in pairs) else [whole])):
        if part.startswith("{"):
            mapping |= _json(name, part)
            continue
        key, _, value = part.partition("=")
        if not key.strip() or not value.strip():
            raise PlanError(flag_of(name), f"{part!r} is not KEY=VALUE", [f"{flag_of(name)} key=value"])
        scalar = _scalar(value)
        if mapping.setdefault(key.strip(), scalar) != scalar:
            raise PlanError(flag_of(name), f"has {key.strip()} twice, as {mapping[key.strip()]!r} and {scalar!r}")
    return mapping


def _pairs(name: str, text: str) -> dict[str, Any]:
    """'method=lora,count=16' as a mapping."""
    return _mapping(name, [part for part in text.split(",") if part.strip()])


def _scalar(text: str) -> Any:
    """A value as YAML reads it: 4, true, null, [a, b]; words and ranges stay words."""
    try:
        return parsed(text, "value") if text.strip() else None
    except PlanError:
        return text.strip()


def _json(name: str, text: str) -> Any:
    return parse_value(text, flag_of(name))
