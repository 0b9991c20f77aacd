"""What is told while a command works for longer than people wait without a word: on standard error of a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET_S, _BEAT_S = 1.0, 0.1


@contextmanager
def working(what: str) -> Iterator[None]:
    """A line for whoever waits in front of a terminal, from the first second on: what is done, and for how long. It is
    gone once that is done."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(what: str, over: threading.Event) -> None:
    started = time.monotonic()
    if over.wait(_QUIET_S):
        return
    from rich.console import Console  # most commands are done before it is loaded
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        shown.tasks[0].start_time = started
        while not over.wait(_BEAT_S):
            shown.advance(task, 0)
