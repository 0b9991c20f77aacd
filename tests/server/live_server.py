"""The real HTTP server in a thread of the test's own process, and one in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from server.http.guard import App, Guard
from server.http.server import app
from server.service import Service


@dataclass
class Live:
    url: str
    port: int
    log: list[str] = field(default_factory=list)


@contextmanager
def in_thread(root: Path | None = None, guard: Guard | None = None, full: bool = False) -> Iterator[Live]:
    log: list[str] = []
    with served_in_thread(app(Service(root, remote=True, full=full), guard or Guard(), log.append), log) as live:
        yield live


@contextmanager
def served_in_thread(served: App, log: list[str]) -> Iterator[Live]:
    config = uvicorn.Config(served, port=0, log_config=None, access_log=False, ws="none", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Live(f"http://127.0.0.1:{port}", port, log)
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def in_process(*words: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`shardwise serve` as a person starts it, with the port that it took."""
    command = [sys.executable, "-m", "tui.cli", "serve", "--port", "0", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | env) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+:(\d+) ", line := process.stderr.readline())
            assert found, line
            yield process, int(found[1])
        finally:
            process.kill()
