"""TensorBoard's event files: scalars by tag and step.

A file is a row of records, each its length, a checksum of it, a message and a checksum (tensorflow
core/lib/io/record_writer.cc); a message is an Event of a step with a Summary of tagged values
(core/util/event.proto, core/framework/summary.proto). Checksums are not compared: a record that is cut ends the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from knowledge.own.files import open_regular
from measure.history.run import MeasuredRun
from measure.logs.assembling import assembled
from measure.logs.facts import HeaderFacts
from measure.logs.lines import Row
from measure.logs.protobuf import fields_of, first, text
from measure.logs.quantities import kept as named

_WALL_TIME, _STEP, _SUMMARY, _VALUE = 1, 2, 5, 1
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_FLOATS, _DOUBLES, _CONTENT = 5, 6, 4
_LARGEST_RECORD = 64 * 2**20
MOST_STEPS = 50_000


def is_named_so(path: Path) -> bool:
    return "tfevents" in path.name


def read(path: Path) -> MeasuredRun | None:
    """The run of an event file; None where it has no scalar of a training step."""
    steps: dict[int, Row] = {}
    clocks: dict[int, float] = {}
    with open_regular(path, "path") as stream:
        for wall, step, tag, value in scalars(stream):
            if (known := named(tag)) and (step in steps or len(steps) < MOST_STEPS):
                clocks.setdefault(step, wall)
                steps.setdefault(step, {"step": float(step)})[known[0]] = value * known[1]
    rows = [(place, row) for place, (_, row) in enumerate(sorted(steps.items())) if len(row) > 1]
    if not rows:
        return None
    if not any({"step_s", "tokens_per_s_per_device"} & row.keys() for _, row in rows):
        timed(rows, clocks)
    facts = HeaderFacts()
    start = min((clock for clock in clocks.values() if clock > 0), default=0.0)
    if 0 < start < 4e9:
        facts.date = datetime.fromtimestamp(start, UTC).date().isoformat()
    return assembled(facts, rows, f"TensorBoard {path.name}")


def timed(rows: list[tuple[int, Row]], clocks: dict[int, float]) -> None:
    """Seconds a step from when steps were written, where nothing says them."""
    for (_, before), (_, row) in pairwise(rows):
        count = row["step"] - before["step"]
        seconds = clocks.get(int(row["step"]), 0.0) - clocks.get(int(before["step"]), 0.0)
        if count > 0 and seconds > 0:
            row["step_s"] = seconds / count


def scalars(stream: BinaryIO) -> Iterator[tuple[float, int, str, float]]:
    """(Seconds since 1970, step, tag, value) of each scalar."""
    for record in records(stream):
        wall, step, summary = 0.0, 0, b""
        for number, value in fields_of(record):
            if number == _WALL_TIME and isinstance(value, float):
                wall = value
            elif number == _STEP and isinstance(value, int):
                step = value
            elif number == _SUMMARY and isinstance(value, bytes):
                summary = value
        for number, value in fields_of(summary):
            if number == _VALUE and isinstance(value, bytes) and step < 2**62:
                tag, scalar = _scalar(value)
                if tag and scalar is not None:
                    yield wall, step, tag, scalar


def records(stream: BinaryIO) -> Iterator[bytes]:
    while len(head := stream.read(12)) == 12:
        (length,) = struct.unpack_from("<Q", head)
        if length > _LARGEST_RECORD:
            return
        body = stream.read(length + 4)
        if len(body) < length:
            return
        yield body[:length]


def _scalar(data: bytes) -> tuple[str, float | None]:
    tag, value = "", None
    for number, each in fields_of(data):
        if number == _TAG:
            tag = text(each)
        elif number == _SIMPLE and isinstance(each, float):
            value = each
        elif number == _TENSOR and isinstance(each, bytes):
            value = _of_tensor(each)
    return tag, value


def _of_tensor(data: bytes) -> float | None:
    """A tensor of one number, as newer writers keep scalars."""
    content = first(data, _CONTENT)
    if isinstance(content, bytes) and len(content) in (4, 8):
        return struct.unpack("<f" if len(content) == 4 else "<d", content)[0]
    for number, form in ((_FLOATS, "<f"), (_DOUBLES, "<d")):
        value = first(data, number)
        if isinstance(value, float):
            return value
        if isinstance(value, bytes) and len(value) == struct.calcsize(form):
            return struct.unpack(form, value)[0]
    return None
