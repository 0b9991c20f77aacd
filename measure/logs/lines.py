"""Lines of a log as quantities: pairs of names and numbers, however a program sets them apart."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from estimator.units import GIB
from measure.logs.quantities import MIB, TABLE, quantity

Row = dict[str, float]
COLOUR = re.compile(r"\x1b\[[\d;]*m")
# `name: number` and `name=number`; the name holds spaces, the number may have thousands set apart and a unit behind it.
_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf|-inf|NaN|Infinity"
_PAIR = re.compile(
    rf"([A-Za-z_][\w /().@%-]{{0,60}}?)['\"]?[ \t]*[:=][ \t]*['\"]?({_NUMBER})(?![\w:.]*:\d)(GiB|GB|MiB|MB|G|%)?"
)
_BAR = re.compile(
    r"(\d+)%\|[^|]*\| *([\d.]+)([kM]?)/([\d.]+)([kM]?) \[(?:(\d+):)?(\d+):(\d+)<[^,\]]*(?:, *([\d.?]+) ?(s/it|it/s))?"
)
_TITAN = re.compile(r"validate step:", re.IGNORECASE)
_ITERATION = re.compile(r"(?:iteration|step)[= ]+(\d+)/ *\d+|^ *Step (\d+) \|", re.IGNORECASE)
_MOST_CHARACTERS = 8000


def row_of(line: str) -> Row:
    """The quantities of a line in SI by our names; {} where it is none of a training step."""
    line = COLOUR.sub("", line[:_MOST_CHARACTERS])
    if _TITAN.search(line):
        return {}
    if (brace := line.find("{")) >= 0 and (row := _of_object(line[brace:])):
        return row
    row: Row = {}
    if step := _ITERATION.search(line):
        row["step"] = float(step[1] or step[2])
    for name, number, unit in _PAIR.findall(line):
        if (known := quantity(name)) and (value := _value(number, unit, known)) is not None:
            row.setdefault(known[0], value)
    return row


def _value(number: str, unit: str, known: tuple[str, float]) -> float | None:
    """A number in SI. Memory that is printed with GiB or GB is GiB in all of these programs."""
    name, factor = known
    try:
        value = float(number.replace(",", ""))
    except ValueError:
        return None
    if name.endswith("_bytes"):
        if unit in ("MiB", "MB"):
            factor = MIB
        elif unit or (factor == GIB and value > 1e6):
            # So large a number is of bytes.
            factor = GIB if unit else 1.0
    elif name == "mfu" and unit != "%" and value <= 1.0:
        factor = 1.0
    return value * factor


def _of_object(text: str) -> Row:
    """Of a Python or JSON object on one line, also one that is cut: pairs of quoted names and values."""
    if not text.startswith(("{'", '{"')):
        return {}
    pairs = re.findall(rf"['\"]([\w /().@%-]{{1,80}})['\"]: *['\"]?({_NUMBER})['\"]?[,}}]", text)
    row: Row = {}
    for name, number in pairs:
        known = TABLE.get(name.lower())
        if known and (value := _value(number, "", known)) is not None:
            row.setdefault(known[0], value)
    return row


def of_mapping(data: Mapping[str, Any]) -> Row:
    """Of names and values that were kept as such."""
    row: Row = {}
    for name, value in data.items():
        known = quantity(name) if isinstance(name, str) else None
        if known and isinstance(value, (int, float)) and not isinstance(value, bool):
            row.setdefault(known[0], float(value) * known[1])
        elif known and isinstance(value, str) and (number := _value(value, "", known)) is not None:
            row.setdefault(known[0], number)
    return row


def bars_of(line: str) -> Iterator[tuple[float, float, float, str]]:
    """(Done, of how many, seconds since its start, what stands before it) of each progress bar on a line."""
    for bar in _BAR.finditer(line):
        scale = {"": 1.0, "k": 1e3, "M": 1e6}
        try:
            done, total = float(bar[2]) * scale[bar[3]], float(bar[4]) * scale[bar[5]]
        except ValueError:
            continue
        seconds = 3600.0 * int(bar[6] or 0) + 60.0 * int(bar[7]) + int(bar[8])
        yield done, total, seconds, line[: bar.start()].strip(" :\r")[-60:]


def mlperf_of(line: str) -> dict[str, Any] | None:
    """The event of a line of MLPerf's logging; None for what is cut."""
    _, mark, text = line.partition(":::MLLOG ")
    try:
        event = json.loads(text) if mark else None
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("key"), str) else None


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
