"""Processes that are forked by a server that has what they need loaded (multiprocessing's forkserver), so that each is
there at once. Where the system has no such server each loads it for itself.

Python starts that server as it starts `python -c`: with the working folder before all other places of modules, so that
an estimator.py of somebody else's would be run in place of ours. It is started with PYTHONSAFEPATH, which what it forks
does not keep.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from typing import Any

_VARIABLE, _OURS = "PYTHONSAFEPATH", "shardwise"
_starting = threading.Lock()


def context(module: str) -> Any:
    """How processes are started that need `module`."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload([module])
    return forked


def loading(module: str) -> Any:
    """The same, with the server that forks, where there is one, begun to load `module` at once."""
    forked = context(module)
    if forked.get_start_method() == "forkserver":
        with _without_working_folder():
            forkserver.ensure_running()
    return forked


def start(process: Any) -> None:
    """Starts a process, and the server that forks it where none runs."""
    with _without_working_folder():
        process.start()


def begin() -> None:
    """What a process does first: programs that it starts look for modules where they always do."""
    if os.environ.get(_VARIABLE) == _OURS:
        del os.environ[_VARIABLE]


@contextmanager
def _without_working_folder() -> Iterator[None]:
    """One thread at a time: the environment is everybody's."""
    with _starting:
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = before or _OURS
        try:
            yield
        finally:
            if before is None:
                del os.environ[_VARIABLE]
