"""Lines of a log as quantities: pairs of names and numbers, however a program sets them apart."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from estimator.units import GIB
from knowledge.own.mappings import json_value
from measure.logs.clocks import clock_s
from measure.logs.quantities import GB, named, quantity
from measure.logs.wording import MIB

Row = dict[str, float]
_DIGIT = re.compile(r"\d")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
# `name: number` and `name=number`; the name holds spaces, the number may have thousands set apart and a unit behind it.
_NUMBER = r"[-+]?(?:\d++(?:,\d++)*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?|nan|inf|-inf|NaN|Infinity"
# What Python prints a number in: np.float32(1.5), tensor(1.5, device='cuda:0').
_CALL = r"(?:[a-z][\w.]{0,19}\()"
_UNIT = r"(?: ?(GiB|GB|MiB|MB|ms|us|sec|s|[KMGBT]|%)(?![A-Za-z]))?"
_PAIR = re.compile(
    rf"([A-Za-z_][\w /().@%-]{{0,60}}?)['\"]?[ \t]*[:=][ \t]*{_CALL}?['\"]?\[{{0,2}}({_NUMBER})"
    rf"(?![\w:.]*:\d|-\d){_UNIT}"
)
# `name number`, as programs have it that set their quantities apart by | or commas.
_BESIDE = re.compile(rf"(?<![\w./-])([A-Za-z][\w/-]*(?: [A-Za-z]+)?) ({_NUMBER}){_UNIT}(?!\w)")
# The rate of a device behind that of all of them.
_EACH = re.compile(r"\(([\d.,]+)/gpu\)")
# A number that its unit alone names: 62,350 tok/s, 32.7k tokens/s/GPU, 8.4 s/step, 812 ms per iter, 41.2 % MFU.
_RATED = re.compile(
    rf"(?<![\w.,:])({_NUMBER}) ?([kKMG]?) ?((?:MODEL_)?[A-Za-z]{{1,12}}(?:(?: ?/ ?| per )[A-Za-z]{{1,12}}){{1,2}}"
    r"|%? ?(?:\w+ )?MFU\b)(?![\w/])"
)
# Seconds in a cell of their own (llm.c, train_gpt2.cu).
_CELL = re.compile(rf"[|·;] *({_NUMBER}) ?(ms|us|s|sec) *(?=[|·;]|$)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_MANY = {"K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
# No device has more: a larger number is of MiB.
_MOST_GIB = 2000.0
# Seconds since 1970 of a clock that counts no milliseconds.
_MOST_EPOCH_S = 1e11
_TIMINGS = re.compile(rf"train_step_timing in s: \[((?:{_NUMBER}|[, ])+)")
# Objects of several steps that were pasted as one line.
_BETWEEN = re.compile(r"(?<=\}) +(?=\{')")
_BAR = re.compile(
    r"(\d+)%\|[^|]*\| *([\d.]+)([kM]?)/([\d.]+)([kM]?) \[(?:(\d+):)?(\d+):(\d+)<[^,\]]*(?:, *([\d.?]+) ?(s/it|it/s))?"
)
# Of a pass after which the weights are updated: litgpt, (step), before it (optimizer.step).
_UPDATES = re.compile(r"\((?:\w+\.)?step\)\s*$")
_TITAN = re.compile(r"validate step:", re.IGNORECASE)
_ITERATION = re.compile(
    r"\b(?:step|iteration|update) *[#:=\[(]* *(\d+)(?!\d|\.\d| *m?s(?:ec\w*)?\b)|\[batch=(\d+)/|max_steps': '(\d+)/"
    r"| \d+/(\d+), (?:RunningAvg)?SamplesPerSec",
    re.IGNORECASE,
)
# Behind that of an epoch, [3][150/2500], a pass has no name (mmengine, PyTorch's examples).
_PASS = re.compile(
    r"(?<![/\w])(?:iter|it|batch) *[#:=\[(]* *(\d+)(?!\d|\.\d|[\w%]| per\b)"
    r"|\bepoch *(?:\(\w+\))? *[:=]* *\[\d+(?:/\d+)?\] ?\[(\d+)/\d+\]",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"\bepoch *(?:\(\w+\))? *[:=\[( ]*(\d+)(?![\d.])", re.IGNORECASE)
# Of a program that tells steps done and seconds since the start: ms-swift, its older versions, modded-nanogpt.
_SINCE = re.compile(r"'global_step/max_steps': '(\d+)/(\d+)'.*?'elapsed_time': '((?:\d+[dhms] ?)+)'")
_SPEED = re.compile(r"'train_speed\(iter/s\)': ([\d.]+).*'global_step': (\d+)")
_CLOCKED = re.compile(r"step:(\d+)/(\d+) .*?train_time:(\d+)ms")
# Of transformers in a notebook (utils/notebook.py): its bar, and the table below it, of which a row is a step.
_NOTEBOOK = re.compile(r"\[ *(\d+)/(\d+) (?:(\d+):)?(\d+):(\d\d)(?: < [^\]]*)?, Epoch [\d.]+/\d+\]")
# Of any other: its columns stand apart by tabs, commas, lines or spaces.
_COLUMNS = tuple(map(re.compile, (r"\t+", r",", r" *[|│┃] *", r" {2,}", r" +")))
_FRAME, _RULE = " \t|│┃\r\n", " \t|│┃-=+─━┼╇┡┩├┤┏┓└┘┴\r\n"
_LONGEST_HEAD = 400
_CELL_NUMBER = re.compile(rf"({_NUMBER}){_UNIT}")
_CELLS = re.compile(rf"[ \t]*(\d+)[ \t]+({_NUMBER})(?:[ \t]|$)")
# Since the start, as Python (LlamaFactory: 1 day, 2:03:04) and ms-swift (1h 2m 3s) write it.
_PYTHON_SPAN = re.compile(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)(?:\.\d+)?")
# What may stand before a bar of training: what says whose line it is, and a name that begins with one of these words.
_WHOSE = re.compile(r"(?:.*[\]|])?\s*(?:\([^)]*\))?[\W\d_]*(?:[a-zA-Z][\w.-]*\d[\w.-]*$)?")
_OF_TRAINING = re.compile(r"$|train|epoch|step|iter|loss|batch", re.IGNORECASE)
_OF_DATA = re.compile(r"[^\]]*(?:B|examples)/s\]")
_SPANS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_MOST_CHARACTERS = 8000
# What numbers a line, and is nothing to keep alone.
_NUMBERS = {"step", "pass", "epoch", "clock_s"}
_COUNTED = {"step", "pass"}
# What stands before a bar that a program tells in words.
TOLD = "train"


def row_of(line: str) -> Row:
    """The quantities of a line in SI by our names; {} where it is none of a training step."""
    line = COLOUR.sub("", line[:_MOST_CHARACTERS])
    if not _DIGIT.search(line) or _TITAN.search(line):
        return {}
    row: Row = {}
    if step := _ITERATION.search(line):
        row["step"] = float(next(number for number in step.groups() if number))
    brace = line.find("{")
    inner = _of_object(line[brace:]) if brace >= 0 else {}
    _pairs(line[:brace] if inner else line, row)
    row = inner | row if inner else row
    if not row.keys() - _NUMBERS:
        return {}
    if "step" not in row and (number := _PASS.search(line)):
        row.setdefault("pass", float(number[1] or number[2]))
    if "epoch" not in row and (epoch := _EPOCH.search(line)):
        row["epoch"] = float(epoch[1])
    if (clock := clock_s(line)) is not None:
        row.setdefault("clock_s", clock)
    if _UPDATES.search(line):
        row["updates"] = 1.0
    if "step_s" not in row and row.get("steps_per_s"):
        row["step_s"] = 1.0 / row["steps_per_s"]
    # What takes less than the ways forward and back is of something in a step: what fetches its data, its optimizer.
    parts_s = row.pop("parts_s", 0.0)
    return {name: value for name, value in row.items() if name not in ("step_s", "pass_s") or value >= parts_s}


def rows_of(line: str) -> list[Row]:
    """The rows of a line: one a step where it lists the times of many, else its one or none."""
    if timings := _TIMINGS.search(line):
        values = [_value(number, "", ("step_s", 1.0)) for number in re.findall(_NUMBER, timings[1])]
        return [{"step_s": value} for value in values if value is not None]
    return [row for part in _BETWEEN.split(line) if (row := row_of(part))]


def cells_of(table: str) -> Iterator[Row]:
    """The rows of a notebook's table of losses, from its head to the first line that is none."""
    for line in table.splitlines()[1:]:
        if not (cells := _CELLS.match(line)):
            return
        yield {"step": float(cells[1]), "loss": float(cells[2].replace(",", ""))}


def columns_of(head: str) -> tuple[re.Pattern[str], list[tuple[str, float] | None]] | None:
    """How the head of a table sets its columns apart, and what each is; None where it is none of steps."""
    if len(head) > _LONGEST_HEAD:
        return None
    for apart in _COLUMNS:
        names = [name.strip(" '\"") for name in apart.split(head.strip(_FRAME))]
        columns = [quantity(name) if name and not number_of(name) else None for name in names]
        kinds = {column[0] for column in columns if column}
        if len(kinds) > 1 and kinds - _NUMBERS and columns[0] and columns[0][0] in _NUMBERS:
            return apart, columns
    return None


def rows_below(apart: re.Pattern[str], columns: Sequence[tuple[str, float] | None], text: str) -> Iterator[Row]:
    """The rows of a table below its head, to the first line that is none."""
    for line in text.splitlines():
        cells = apart.split(line.strip(_FRAME))
        if not line.strip(_RULE):
            continue
        if len(cells) != len(columns):
            return
        row: Row = {}
        for cell, column in zip(cells, columns, strict=True):
            number = _CELL_NUMBER.fullmatch(cell.strip()) if column else None
            if column and number and (value := _value(number[1], number[2] or "", column)) is not None:
                row.setdefault(column[0], value)
        if not row.keys() - _NUMBERS:
            return
        yield row


def _pairs(line: str, row: Row) -> None:
    """Puts the quantities of a line into the row, the first of a kind counting."""
    for name, number, unit in _PAIR.findall(line) if ":" in line or "=" in line else ():
        known = quantity(name)
        if known and (value := _value(number, unit, known)) is not None:
            put(row, known[0], value)
    for name, number, unit in _BESIDE.findall(line):
        known = named(name)
        if known and (value := _value(number, unit, known)) is not None:
            put(row, known[0], value)
    rated = _RATED.findall(_BAR.sub("", line))
    for number, many, unit in (*rated, *((number, "", unit) for number, unit in _CELL.findall(line))):
        known = quantity(unit)
        if known and (value := _value(number, "%" if "%" in unit else many.upper(), known)) is not None:
            put(row, known[0], value)
    if each := _EACH.search(line):
        row["tokens_per_s_per_device"] = number_of(each[1])


def _value(number: str, unit: str, known: tuple[str, float]) -> float | None:
    """A number in SI. Memory that is printed with GiB or GB is GiB in all of these programs but those of `GB`."""
    name, factor = known
    try:
        value = float(number.replace(",", ""))
    except ValueError:
        return None
    if name.endswith("_bytes"):
        if unit in ("MiB", "MB"):
            factor = MIB
        elif factor == 1.0:
            factor = _MANY.get(unit, 1.0)
        elif (unit and factor != GB) or (factor in (GIB, GB) and value > 1e6):
            # So large a number is of bytes.
            factor = GIB if unit else 1.0
        elif factor == GIB and value > _MOST_GIB:
            factor = MIB
    elif unit in _SECONDS and name.endswith("_s") and factor == 1.0:
        factor = _SECONDS[unit]
    elif unit in _MANY:
        factor *= _MANY[unit]
    elif name == "clock_s" and value > _MOST_EPOCH_S:
        factor = _SECONDS["ms"]
    elif name == "mfu" and unit != "%" and value <= 1.0:
        factor = 1.0
    # What averages show behind a name of passes is no number of one.
    return None if name in _COUNTED and value * factor % 1.0 else value * factor


def put(row: Row, name: str, value: float) -> None:
    """Into a row: the first of a kind counts, of memory the most (what is held now stands beside the peak), of parts
    all."""
    if name == "parts_s":
        row[name] = row.get(name, 0.0) + value
    else:
        row[name] = max(value, row.get(name, value)) if name.endswith("_bytes") else row.get(name, value)


def _of_object(text: str) -> Row:
    """Of a Python or JSON object on one line, also one that is cut: pairs of quoted names and values."""
    if not text.startswith(("{'", '{"')):
        return {}
    pairs = re.findall(rf"['\"]([\w /().@%-]{{1,80}})['\"]: *{_CALL}?['\"]?\[?({_NUMBER})['\"]?[,}})\]]", text)
    row: Row = {}
    for name, number in pairs:
        known = named(name)
        if known and (value := _value(number, "", known)) is not None:
            put(row, known[0], value)
    return row


def of_mapping(data: Mapping[str, Any]) -> Row:
    """Of names and values that were kept as such."""
    row: Row = {}
    if (since := _since_s(data.get("elapsed_time"))) is not None:
        row["clock_s"] = since
    for name, value in data.items():
        known = quantity(name) if isinstance(name, str) else None
        if known and isinstance(value, (int, float)) and not isinstance(value, bool):
            put(row, known[0], float(value) * known[1])
        elif known and isinstance(value, str) and (number := _value(value, "", known)) is not None:
            put(row, known[0], number)
    return row


def _since_s(text: Any) -> float | None:
    """Seconds since the start of a run, as it is told in words."""
    if not isinstance(text, str):
        return None
    if span := _PYTHON_SPAN.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in span.groups())
        return 86_400.0 * days + 3600.0 * hours + 60.0 * minutes + seconds
    parts = re.findall(r"(\d+)([dhms])", text)
    return sum(float(number) * _SPANS[unit] for number, unit in parts) if parts else None


def bars_of(line: str) -> Iterator[tuple[float, float, float, str]]:
    """(Done, of how many, seconds since its start, what stands before it) of each progress bar of steps on a line; none
    of what loads, downloads or generates."""
    for bar in _BAR.finditer(line):
        name = line[: bar.start()].strip(" :\r")[-60:]
        if _OF_DATA.match(line, bar.end()) or not _OF_TRAINING.match(name, _whose(name)):
            continue
        scale = {"": 1.0, "k": 1e3, "M": 1e6}
        try:
            done, total = float(bar[2]) * scale[bar[3]], float(bar[4]) * scale[bar[5]]
        except ValueError:
            continue
        seconds = 3600.0 * int(bar[6] or 0) + 60.0 * int(bar[7]) + int(bar[8])
        yield done, total, seconds, name
    for bar in _NOTEBOOK.finditer(line):
        yield float(bar[1]), float(bar[2]), 3600.0 * int(bar[3] or 0) + 60.0 * int(bar[4]) + int(bar[5]), TOLD
    since = None
    for since in _SINCE.finditer(line):
        yield float(since[1]), float(since[2]), _since_s(since[3]) or 0.0, TOLD
    if since:
        return
    if (speed := _SPEED.search(line)) and number_of(speed[1]):
        yield float(speed[2]), 0.0, float(speed[2]) / number_of(speed[1]), TOLD
    elif clocked := _CLOCKED.search(line):
        yield float(clocked[1]), float(clocked[2]), float(clocked[3]) * 1e-3, TOLD


def _whose(name: str) -> int:
    """Where in what stands before a bar its own name begins: behind the rank, host or process that printed it."""
    match = _WHOSE.match(name)
    return match.end() if match else 0


def mlperf_of(line: str) -> dict[str, Any] | None:
    """The event of a line of MLPerf's logging; None for what is cut."""
    _, mark, text = line.partition(":::MLLOG ")
    try:
        event = json_value(text) if mark else None
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("key"), str) else None


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def number_of(text: str) -> float:
    """A number that is above zero, else zero."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0.0 else 0.0
