"""A log's line is read once, however often it says what marks a line of a step: time grows with the log, no faster."""

from __future__ import annotations

import io

import pytest
from pace import within

from measure.logs.lines import rows_of
from measure.logs.scan import _ANY, _BARS, _MLPERF, _ROWS, _SAVING, scanned
from measure.logs.served import runs_in


@pytest.mark.parametrize("mark", [*_ROWS, *_BARS, *_ANY, *_SAVING, _MLPERF], ids=bytes.decode)
def test_a_line_of_nothing_but_marks_is_read_soon(mark: bytes) -> None:
    said = b"step 1 " + mark + b"2 "
    with within(1.0):
        scanned(io.BytesIO(said * (300_000 // len(said))))


def test_lines_of_marks_that_hold_no_row_are_not_all_read() -> None:
    with within(3.0):
        scanned(io.BytesIO(b"loss: a1 " * (20_000_000 // 9)))


@pytest.mark.parametrize("sign", ["9", "9.", "9,", " ", "a ", "| "])
def test_a_line_of_one_sign_is_looked_through_once(sign: str) -> None:
    """Whatever a log was garbled with: no expression goes back over it from each of its places."""
    for line in (sign * (7_900 // len(sign)), "{'loss': " + sign * (7_800 // len(sign))):
        with within(1.0):
            rows_of(line)
    with within(1.0):
        runs_in("Serving Benchmark Result\n" + sign * (64_000 // len(sign)), "x")
