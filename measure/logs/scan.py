"""A text log of any length, read once from its beginning to its end in memory that does not grow with it.

Lines of steps are found by marks that each program's have. Of every mark so many lines are kept; when there are more,
every second one goes and from there on only every second is read, so that a long log costs its reading and little else.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from measure.logs.facts import HeaderFacts
from measure.logs.faults import MARKS, OutOfMemory, out_of_memory
from measure.logs.lines import COLOUR, Row, bars_of, cells_of, columns_of, mlperf_of, rows_below, rows_of

_CHUNK = 4 * 2**20
# Settings stand at the beginning, and marks that did not come so far do not come later.
_HEADER_BYTES, _MARKS_BYTES = 8 * 2**20, 64 * 2**20
_LONGEST_LINE = 16_384
_LONGEST_FACT = 4_000
_MOST_ROWS = 8_000
# Lines with a mark that are read before it counts how many hold a row, and how many to a row are too many.
_BARREN, _LEAST_ROWS = 200, 20
_MOST_FAULTS = 20
# What tells an error that names no size from advice against it.
_ERROR = re.compile(rb"[Ee]rror\b|RESOURCE_EXHAUSTED|Exception")
_AROUND_FAULT = 8_000
_OF_A_SHAPE, _MOST_SHAPES = 2, 50_000
_NUMBERLESS = bytes.maketrans(b"0123456789", b"0" * 10)
_ROWS = (b"elapsed time per iteration", b"elapsed_time_per_iteration_ms", b"train_step_timing in s: ",
         b"completed step: ", b"'loss': ", b'"loss": ', b"tps: ", b"SamplesPerSec=", b"iter time (s)",
         b"tokens_per_second_per_gpu:", b"timing_s/step", b"max allocated:", b"train_runtime", b"|Loss: ",
         b"train_loss=", b"train_step_timing in s=", b"iter time: ", b"Step Time : ", b"[batch=",
         b"[step=", b"perf/time_per_step", b"lr=[", b"Training Loss", b"Memory used: ")  # fmt: skip
# Of programs that have none of these: whatever tells a loss.
_ANY = (b"loss", b"Loss")
_BARS = (b"s/it", b"it/s", b"elapsed_time': ", b"train_speed(iter/s)", b"train_time:", b", Epoch ")
# Of Composer and OLMo, whose steps take a line for each quantity.
_OF_MANY_LINES = (b"[batch=", b"[step=")
# Of a notebook: the head of a table, with a line for each step below it.
_TABLE = b"Training Loss"
_LONGEST_TABLE = 2**20
_MLPERF = b":::MLLOG "
_SAVING = (b"saving checkpoint", b"Saving model checkpoint", b"Saving the checkpoint", b"successfully saved checkpoint")
_OF_NO_STEP = (b"'eval_loss'", b"'eval_runtime'")
_SPEEDS = {"step_s", "tokens_per_s", "tokens_per_s_per_device"}
Bar = tuple[float, float, float, str]


@dataclass
class Kept:
    """Lines of one mark: `every` how many there are to each that is kept."""

    rows: list[tuple[int, Any]] = field(default_factory=list)
    every: int = 1
    seen: int = 0
    tried: int = 0
    added: int = 0

    def skipped(self, places: Sequence[int], at: int) -> int:
        """The next of the places of marks whose line is to be read; all are counted."""
        passed = min(-self.seen % self.every, len(places) - at)
        self.seen += passed
        return at + passed

    def read(self, places: Sequence[int], at: int, end: int) -> int:
        """Of a line that was read and ends there, what follows its marks: a line is read once, however many it has.
        Where hardly any line holds a row fewer are read: they may be anybody's text."""
        after = bisect_left(places, end, at + 1)
        self.seen += after - at
        self.tried += 1
        if self.tried >= _BARREN and self.added * _LEAST_ROWS < self.tried:
            self.tried, self.added, self.every = 0, 0, self.every * _BARREN
        return after

    def add(self, at: int, row: Any) -> None:
        self.rows.append((at, row))
        self.added += 1
        if len(self.rows) >= _MOST_ROWS:
            del self.rows[1::2]
            self.every *= 2


@dataclass
class Scan:
    """What a text log holds. `rows` are quantities of steps and `bars` progress bars, each with its place in the log;
    `events` are those of MLPerf, `saves` places at which a checkpoint was written."""

    facts: HeaderFacts = field(default_factory=HeaderFacts)
    kept: dict[bytes, Kept] = field(default_factory=dict)
    faults: list[OutOfMemory] = field(default_factory=list)
    saves: Kept = field(default_factory=Kept)
    bytes: int = 0
    shapes: dict[int, int] = field(default_factory=dict)
    last: bytes = b""
    """The end of what was read so far: a traceback may begin there."""

    @property
    def rows(self) -> list[tuple[int, Row]]:
        """In the log's order, each line once though it may have several marks."""
        marks = [mark for mark in (*_ROWS, *_ANY) if mark in self.kept]
        # One line with a loss may be anybody's sentence, but for one that numbers a step and tells how fast it was.
        marks = [mark for mark in marks if mark not in _ANY or _of_steps(self.kept[mark].rows)]
        rows = {at: row for mark in marks for at, row in self.kept[mark].rows}
        return sorted(rows.items())

    @property
    def bars(self) -> list[tuple[int, Bar]]:
        bars = {at: bar for mark in _BARS if mark in self.kept for at, bar in self.kept[mark].rows}
        return sorted(bars.items())

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for _, event in self.kept.get(_MLPERF, Kept()).rows]

    @property
    def thinned(self) -> bool:
        return any(kept.every > 1 and kept.rows for kept in self.kept.values())


def _of_steps(rows: Sequence[tuple[int, Row]]) -> bool:
    return len(rows) > 1 or any("step" in row and _SPEEDS & row.keys() for _, row in rows)


def scanned(stream: BinaryIO) -> Scan:
    """Reads a log to its end."""
    scan, rest, marks = Scan(), b"", (*_ROWS, *_BARS, _MLPERF, *_ANY)
    while chunk := stream.read(_CHUNK):
        text = rest + chunk
        cut = max(text.rfind(b"\n"), text.rfind(b"\r", max(0, len(text) - _LONGEST_LINE))) + 1
        if not cut and len(text) < 2 * _LONGEST_LINE:
            rest = text
            continue
        cut = cut or len(text)
        _block(scan, text[:cut], marks)
        scan.bytes += cut
        rest = text[cut:][-_LONGEST_LINE:]
        if scan.bytes > _MARKS_BYTES:
            marks = tuple(mark for mark in marks if mark in scan.kept)
    _block(scan, rest, marks)
    scan.bytes += len(rest)
    return scan


def _block(scan: Scan, block: bytes, marks: tuple[bytes, ...]) -> None:
    """Whole lines, the first of them at `scan.bytes`."""
    if scan.bytes < _HEADER_BYTES:
        _header(scan, block[: _HEADER_BYTES - scan.bytes])
    for mark in marks:
        if mark in _ANY and any(other in scan.kept for other in _ROWS):
            continue
        places = _marked(block, mark)
        kept = scan.kept.setdefault(mark, Kept()) if places else Kept()
        at = 0
        while (at := kept.skipped(places, at)) < len(places):
            at = kept.read(places, at, _line(scan, kept, mark, block, places[at]))
    for mark in _SAVING:
        places, at = _marked(block, mark), 0
        while (at := scan.saves.skipped(places, at)) < len(places):
            scan.saves.add(scan.bytes + places[at], None)
            at = scan.saves.read(places, at, places[at])
    _faults(scan, block)


def _marked(block: bytes, mark: bytes) -> list[int]:
    """Where a mark is; that it is nowhere, as is most often so, is seen fastest without an expression."""
    return [match.start() for match in re.finditer(re.escape(mark), block)] if mark in block else []


def _header(scan: Scan, block: bytes) -> None:
    """Takes the facts of lines; of lines that differ in their numbers alone the first few."""
    for line in re.split(rb"[\n\r]", block):
        if not line or len(line) >= _LONGEST_FACT:
            continue
        shape = hash(line.translate(_NUMBERLESS))
        if (seen := scan.shapes.get(shape, 0)) < _OF_A_SHAPE and len(scan.shapes) < _MOST_SHAPES:
            scan.shapes[shape] = seen + 1
            scan.facts.read(COLOUR.sub("", line.decode(errors="replace")))


def _line(scan: Scan, kept: Kept, mark: bytes, block: bytes, place: int) -> int:
    """Keeps what the line at a mark says, and tells where that ends."""
    start = max(block.rfind(b"\n", 0, place), block.rfind(b"\r", max(0, place - _LONGEST_LINE), place)) + 1
    start = max(start, place - _LONGEST_LINE)
    ends = [end for sign in (b"\n", b"\r") if (end := block.find(sign, place, place + _LONGEST_LINE)) >= 0]
    whole = min(ends, default=min(len(block), place + _LONGEST_LINE))
    line = block[start:whole]
    if mark in _OF_MANY_LINES:
        end = block.find(mark, place + len(mark), place + _LONGEST_LINE)
        line = block[start : end if end > 0 else place + _LONGEST_LINE]
    at = scan.bytes + start
    text = line.decode(errors="replace")
    if mark == _MLPERF:
        if event := mlperf_of(text):
            kept.add(at, event)
    elif _MLPERF in line:
        # Its events are read as such.
        return whole
    elif mark in _BARS:
        for number, bar in enumerate(bars_of(text)):
            kept.add(at + number, bar)
    elif mark == _TABLE:
        for number, row in enumerate(cells_of(block[start : place + _LONGEST_TABLE].decode(errors="replace"))):
            kept.add(at + number, row)
    elif not any(sign in line for sign in _OF_NO_STEP):
        rows: Iterable[Row] = rows_of(text)
        if not rows and mark in _ANY and (columns := columns_of(text)):
            rows = rows_below(*columns, block[whole : whole + _LONGEST_TABLE].decode(errors="replace"))
        for number, row in enumerate(rows):
            kept.add(at + number, row)
    return whole


def _faults(scan: Scan, block: bytes) -> None:
    for place in _places(block):
        if len(scan.faults) >= _MOST_FAULTS:
            break
        start = max(0, place - _AROUND_FAULT)
        before = (b"" if start else scan.last) + block[start:place]
        after = block[place : place + _AROUND_FAULT]
        told = before.decode(errors="replace")
        fault = out_of_memory(told + after.decode(errors="replace"), len(told), scan.bytes + place)
        known = any(fault.wanted_bytes == other.wanted_bytes for other in scan.faults)
        if not known and (fault.wanted_bytes is not None or _ERROR.search(_around(block, place))):
            scan.faults.append(fault)
    scan.last = block[-_AROUND_FAULT:]


def _around(block: bytes, place: int) -> bytes:
    """The line at a place, of a long one the part around it."""
    end = block.find(b"\n", place, place + _LONGEST_FACT)
    start = max(block.rfind(b"\n", 0, place) + 1, place - _LONGEST_FACT)
    return block[start : end if end >= 0 else place + _LONGEST_FACT]


def _places(block: bytes) -> Iterator[int]:
    """Where an error begins; its marks stand close together."""
    places = sorted(place for mark in MARKS for place in _marked(block, mark))
    last = -(10**9)
    for place in places[:1000]:
        if place - last > 300:
            yield place
        last = place
