"""A PostgreSQL server of a test's own, from the programs of this machine: on a socket in a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=", "max_connections=60",
         "shared_buffers=16MB")  # fmt: skip


def program(name: str) -> str | None:
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return shutil.which(name) or (str(places[0]) if places else None)


@contextmanager
def running() -> Iterator[str]:
    """The address of a server that is there meanwhile. Skips where this machine has no PostgreSQL."""
    server, starts = program("postgres"), program("initdb")
    if server is None or starts is None:
        pytest.skip("no PostgreSQL on this machine: neither postgres nor initdb is found")
    # The path of a socket may have a hundred letters, fewer than pytest's folders.
    place = Path(tempfile.mkdtemp(prefix="sw-pg-"))
    as_other: list[str] = []
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        try:
            shutil.chown(place, "postgres")
        except LookupError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres here")
        as_other = ["runuser", "-u", "postgres", "--"]
    try:
        start = [*as_other, starts, "-D", str(place / "data"), "-U", "shardwise", "-A", "trust", "--no-sync",
                 "-E", "UTF8", "--locale", "C"]  # fmt: skip
        subprocess.run(start, check=True, capture_output=True, cwd=place)
        settings = [word for each in (*_FAST, f"unix_socket_directories={place}") for word in ("-c", each)]
        with subprocess.Popen(
            [*as_other, server, "-D", str(place / "data"), *settings], cwd=place, stderr=subprocess.DEVNULL
        ) as process:
            try:
                _wait(place, process)
                yield f"postgresql://shardwise@/postgres?host={place}"
            finally:
                # Not the program that changed the user, but the server itself.
                pid = int((place / "data" / "postmaster.pid").read_text().split("\n")[0])
                os.kill(pid, 3)
                process.wait(20)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _wait(place: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while not (place / ".s.PGSQL.5432").exists() or "ready" not in (place / "data" / "postmaster.pid").read_text():
        assert process.poll() is None, "postgres has ended"
        assert time.monotonic() < until
        time.sleep(0.02)
