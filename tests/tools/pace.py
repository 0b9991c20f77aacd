"""Limits of time that hold on slow and busy machines: a limit is meant for a processor that does a fixed piece of work
in `USUAL_S`. Where that piece takes three times as long, so may what is limited. Times are of the processor, not of the
clock."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

USUAL_S = 0.013
_Answer = TypeVar("_Answer")


def _piece_s() -> float:
    began, counts = time.process_time(), dict[str, int]()
    for number in range(40_000):
        word = str(number * 7919 % 9973)
        counts[word] = counts.get(word, 0) + len(word)
    text = " ".join(counts)
    assert len(re.findall(r"\d*9\b", text)) == len([word for word in counts if word.endswith("9")])
    return time.process_time() - began


def slower() -> float:
    """How many times slower than usual this processor is now, at least 1."""
    return max(1.0, sorted(_piece_s() for _ in range(3))[1] / USUAL_S)


@contextmanager
def within(limit_s: float) -> Iterator[None]:
    """What stands inside takes less than `limit_s` seconds of a usual processor."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    if took >= limit_s:
        allowed = limit_s * slower()
        assert took < allowed, f"{took:.3f} s of the processor, {allowed:.3f} s are allowed"


def timely(limit_s: float, run: Callable[[], _Answer]) -> _Answer:
    """What `run` gives in less than `limit_s` seconds of a usual processor, at one of three tries: those that share a
    core take of its time in bursts, and what is slow is slow each time."""
    tries: list[float] = []
    for _ in range(3):
        began = time.process_time()
        answer = run()
        tries.append(time.process_time() - began)
        if tries[-1] < limit_s * (slower() if tries[-1] >= limit_s else 1.0):
            return answer
    raise AssertionError(f"{min(tries):.3f} s of the processor, {limit_s:.3f} s are allowed")
