"""What is told while a command works for longer than people wait without a word: on standard error of a terminal."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.files import data_folder, read_text

_QUIET_S, _BEAT_S = 1.0, 0.1


@contextmanager
def working(what: str) -> Iterator[None]:
    """A line for whoever waits in front of a terminal, from the first second on: what is done, for how long, and how
    long it may still take, by how long it took before. It is gone once that is done."""
    if not sys.stderr.isatty():
        yield
        return
    over, started = threading.Event(), time.monotonic()
    teller = threading.Thread(target=_tell, args=(what, over, started), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
    if (took_s := time.monotonic() - started) > _QUIET_S:
        _remember(what, took_s)


def _tell(what: str, over: threading.Event, started: float) -> None:
    if over.wait(_QUIET_S):
        return
    from rich.console import Console  # most commands are done before it is loaded
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    usual_s = _durations().get(what)
    bar = [BarColumn(bar_width=20)] if usual_s else []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *bar, TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=usual_s, told="")
        while not over.wait(_BEAT_S):
            passed_s = time.monotonic() - started
            shown.update(task, completed=min(passed_s, usual_s or 0.0), told=_words(passed_s, usual_s))


def _words(passed_s: float, usual_s: float | None) -> str:
    """'3 s, about 4 s left'."""
    if usual_s is None or passed_s >= usual_s:
        return f"{passed_s:.0f} s"
    return f"{passed_s:.0f} s, about {max(1.0, usual_s - passed_s):.0f} s left"


def _durations() -> dict[str, float]:
    """Seconds that commands took of late; none where the file cannot be used."""
    with suppress(OSError, PlanError, ValueError):
        read = json.loads(read_text(_file()))
        if isinstance(read, dict):
            return {str(name): float(value) for name, value in read.items() if isinstance(value, int | float)}
    return {}


def _remember(what: str, took_s: float) -> None:
    """The mean with what it was before, so that one odd run does not decide."""
    known = _durations()
    known[what] = (known.get(what, took_s) + took_s) / 2.0
    with suppress(OSError, PlanError):
        path = _file()
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(known, file)


def _file() -> Path:
    return data_folder() / "durations.json"
