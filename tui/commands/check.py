"""`shardwise check`: reads existing launch files: they fit (exit code 0), will not run (1), or it is not known (2)."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from tui import units
from tui.clean import one_line
from tui.jsonout import write_json

_LARGEST = 200_000
_SHOWN = 12
_CONFIGS = (".json", ".yaml", ".yml", ".toml")
_NEUTRAL = "changes neither memory nor time as estimated"


def run(arguments: argparse.Namespace) -> int:
    from tools import call

    given = _given(arguments)
    files = _files(arguments.files)
    result = call("import_config", {**given, "files": files})
    if more := _beside(arguments.files, result["refers"], files):
        result = call("import_config", {**given, "files": files | more})
    if arguments.json:
        write_json(result)
    else:
        print("\n".join(_verdict(result)))
    if result["missing"]:
        return 2
    return 0 if result["fits"] else 1


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """The plan flags that were used; numbers as numbers."""
    from tui.cli import PLAN_FLAGS

    said = {name: getattr(arguments, name) for name in PLAN_FLAGS if getattr(arguments, name) is not None}
    for pair in arguments.set:
        name, equals, value = pair.partition("=")
        if not equals:
            raise PlanError("--set", f"{pair!r} is not FIELD=VALUE", ["--set lora_rank=8"])
        said[name.strip().replace("-", "_")] = value
    return {name: _plain(value) for name, value in said.items()}


def _plain(text: str) -> Any:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _files(paths: list[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for given in paths:
        if given == "-":
            files["standard input"] = sys.stdin.read(_LARGEST + 1)
            continue
        path = Path(given)
        if path.is_dir():
            raise PlanError("files", f"{given} is a folder", ["the files in it"])
        files[given] = _text(path)
    return files


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.read(_LARGEST + 1)
    except OSError as error:
        raise PlanError("files", f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PlanError("files", f"{path} is not a text file") from None


def _beside(paths: list[str], named: list[str], files: dict[str, str]) -> dict[str, str]:
    """Files that the given ones name and that lie in or below their folders."""
    found: dict[str, str] = {}
    for name in named:
        relative = Path(name)
        if relative.is_absolute() or ".." in relative.parts or relative.suffix not in _CONFIGS:
            continue
        for folder in dict.fromkeys(Path(path).parent for path in paths if path != "-"):
            for place in (folder / relative, folder / relative.name):
                if name not in found and str(place) not in files and place.is_file():
                    found[str(place)] = _text(place)
                    break
    return found


def _verdict(result: dict[str, Any]) -> list[str]:
    """A few lines: verdict, figures, what was read, what was not, what to give."""
    lines = [_headline(result)]
    if result["per_device_bytes"] is not None:
        lines.append(_figures(result))
    for name, kind in result["formats"].items():
        lines.append(f"  {one_line(name)}: {kind}")
    lines += ["", "read"]
    lines += [f"  {row['field']} = {_short(row['value'])}  ({one_line(row['origin'])})" for row in result["read"]]
    left = [row for row in result["not_read"] if row["why"] != _NEUTRAL]
    neutral = len(result["not_read"]) - len(left)
    if left:
        lines.append("not read")
        lines += [f"  {one_line(row['key'])} = {_short(row['value'])}: {one_line(row['why'])}" for row in left[:_SHOWN]]
        lines += [f"  and {len(left) - _SHOWN} more"] if len(left) > _SHOWN else []
    if neutral:
        lines.append(f"not needed: {neutral} keys that change neither memory nor time")
    for title, rows in (("missing", result["missing"]), ("assumed", result["assumptions"])):
        if rows:
            lines.append(title)
            lines += [f"  {_row(row)}" for row in rows]
    if result["warnings"]:
        lines += ["warnings", *(f"  {one_line(text)}" for text in result["warnings"])]
    return lines


def _row(row: dict[str, Any]) -> str:
    value = f" = {_short(row['value'])}" if "value" in row else ""
    return f"{row['field']}{value}: {one_line(row['why'])}"


def _headline(result: dict[str, Any]) -> str:
    if result["missing"]:
        flags = ", ".join(row["field"].rpartition(".")[2] for row in result["missing"])
        return f"not known: give {flags}"
    if result["refused"]:
        return f"will not run: {one_line(result['refused'])}"
    return "fits" if result["fits"] else "will not fit"


def _figures(result: dict[str, Any]) -> str:
    parts = [f"{units.memory(result['per_device_bytes'])} of {units.memory(result['capacity_bytes'])} per device"]
    if result["high_bytes"] is not None:
        parts.append(f"80 % interval {units.memory_range(result['low_bytes'], result['high_bytes'])}")
    if result["step_s"] is not None:
        parts.append(f"step {units.duration(result['step_s'])}")
    if result["tokens_per_s"] is not None:
        parts.append(f"{units.count(result['tokens_per_s'])} tokens/s")
    if result["hours"] is not None:
        parts.append(f"run {units.duration(3600 * result['hours'])}")
    if result["usd"] is not None:
        parts.append(units.usd(result["usd"]))
    elif result["usd_per_hour"] is not None:
        parts.append(f"{units.usd(result['usd_per_hour'])} an hour")
    return "; ".join(parts)


def _short(value: Any) -> str:
    text = one_line(str(value))
    return text if len(text) <= 60 else text[:57] + "..."
