"""wandb's local file of a run (run-….wandb): a log in LevelDB's format, whose records are protobuf messages.

Blocks of 32 KiB hold pieces of records: a checksum, a length, whether it is whole, first, middle or last (wandb
sdk/internal/datastore.py, after leveldb doc/log_format.md). Of the messages (wandb/proto/wandb_internal.proto) those of
the history, of the config and of the run are read, whose items are a key and a value in JSON.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from knowledge.own.files import open_regular
from knowledge.own.mappings import json_value
from measure.history.run import MeasuredRun
from measure.logs.assembling import assembled
from measure.logs.facts import HeaderFacts
from measure.logs.lines import Row, put
from measure.logs.protobuf import fields_of, first, text
from measure.logs.quantities import kept as named
from measure.logs.tensorboard import MOST_STEPS, timed

_HEADER, _PIECE, _BLOCK = 7, 7, 32_768
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LARGEST_RECORD = 64 * 2**20
_HISTORY, _CONFIG, _RUN = 2, 5, 17
_ITEM, _UPDATE, _RUN_CONFIG = 1, 1, 4
_KEY, _NESTED, _JSON = 1, 2, 16


def read(path: Path) -> MeasuredRun | None:
    """The run of a file; None where its history has nothing of a training step."""
    rows: list[tuple[int, Row]] = []
    clocks: dict[int, float] = {}
    facts = HeaderFacts()
    with open_regular(path, "path") as stream:
        for record in records(stream):
            for number, message in fields_of(record):
                if not isinstance(message, bytes):
                    continue
                if number == _HISTORY and len(rows) < MOST_STEPS:
                    _history(message, rows, clocks)
                elif number == _CONFIG:
                    _config(facts, message)
                elif number == _RUN and isinstance(config := first(message, _RUN_CONFIG), bytes):
                    _config(facts, config)
    if not rows:
        return None
    if not any({"step_s", "tokens_per_s_per_device"} & row.keys() for _, row in rows):
        timed([row for row in rows if _is_counted(row[1])], clocks)
    start = min(clocks.values(), default=0.0)
    facts.date = datetime.fromtimestamp(start, UTC).date().isoformat() if 0 < start < 4e9 else None
    return assembled(facts, rows, f"wandb {path.name}")


def _history(message: bytes, rows: list[tuple[int, Row]], clocks: dict[int, float]) -> None:
    data = dict(_items(message, _ITEM))
    row: Row = {}
    # The program's own number of a step before wandb's count of what was logged.
    for name, value in sorted(data.items(), key=lambda item: item[0].startswith("_")):
        known = named(name)
        if known and isinstance(value, (int, float)) and not isinstance(value, bool):
            put(row, known[0], float(value) * known[1])
    clock = row.pop("clock_s", None)
    if clock is not None and _is_counted(row):
        clocks.setdefault(int(row["step"]), clock)
    if row.keys() - {"step", "epoch"}:
        rows.append((len(rows), row))


def _is_counted(row: Row) -> bool:
    return abs(row.get("step", math.inf)) < 2**62


def _items(message: bytes, number: int) -> Iterator[tuple[str, Any]]:
    """Keys, those of nested ones joined by /, and values."""
    for key, item in fields_of(message):
        if key != number or not isinstance(item, bytes):
            continue
        names = [text(value) for field, value in fields_of(item) if field in (_KEY, _NESTED) and value]
        try:
            yield "/".join(names), json_value(text(first(item, _JSON)))
        except ValueError:
            continue


def _config(facts: HeaderFacts, message: bytes) -> None:
    for name, value in _items(message, _UPDATE):
        _told(facts, name, value)


def _told(facts: HeaderFacts, name: str, value: Any, depth: int = 0) -> None:
    """Settings as the lines that a program would print of them."""
    if isinstance(value, Mapping) and depth < 4:
        for key, each in value.items():
            _told(facts, str(key), each, depth + 1)
    elif isinstance(value, (str, int, float)) and len(str(value)) < 300:
        facts.read(f"'{name}': '{value}'")
        facts.read(f"{name}: {value}")


def records(stream: BinaryIO) -> Iterator[bytes]:
    """The whole records; ends at what is cut or none."""
    if not stream.read(_HEADER).startswith(b":W&B"):
        return
    at, whole = _HEADER, bytearray()
    while True:
        left = _BLOCK - at % _BLOCK
        if left < _PIECE:
            stream.read(left)
            at += left
            continue
        head = stream.read(_PIECE)
        if len(head) < _PIECE:
            return
        _, length, kind = struct.unpack("<IHB", head)
        body = stream.read(length)
        at += _PIECE + length
        if len(body) < length or kind not in (_WHOLE, _FIRST, _MIDDLE, _LAST):
            return
        if kind in (_WHOLE, _FIRST):
            whole.clear()
        whole += body
        if kind in (_WHOLE, _LAST):
            yield bytes(whole)
            whole.clear()
        elif len(whole) > _LARGEST_RECORD:
            return
