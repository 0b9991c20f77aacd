"""A team's server as it is run: processes with a real PostgreSQL, one of them killed under load, all of them told to
end, and whatever is wrong at the start said in a sentence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
import throwaway_postgres

TOKEN = "alice-secret-of-some-length"
SHOWN = {"Authorization": f"Bearer {TOKEN}"}
FIT = {"model": "gpt2", "accelerator": "h100"}
CLIENTS, SECONDS, START_S = 6, 12.0, 60.0


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with throwaway_postgres.running() as address:
        assert shardwise(address, "database", "upgrade").returncode == 0
        yield address


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"alice write {TOKEN}\n")
    return path


def shardwise(address: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"SHARDWISE_DATABASE": address}
    return subprocess.run(
        [sys.executable, "-m", "tui.cli", *words], env=env, capture_output=True, text=True, timeout=120
    )


@contextmanager
def serving(address: str, tokens: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str, list[str]]]:
    """The process that was started, where it serves, and what it says on standard error as it goes."""
    command = [sys.executable, "-m", "tui.cli", "serve", "--port", "0", "--tokens", str(tokens), *words]
    env = os.environ | {"SHARDWISE_DATABASE": address}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", line := process.stderr.readline())
            assert found, line
            said: list[str] = []
            threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True).start()
            yield process, found[0], said
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def workers_of(process: subprocess.Popen[str], count: int) -> list[int]:
    """The processes that answer, forked by the one that the started process forks them with. They start after the
    address is said. Told apart by their parents: a terminal's width cuts the names that `ps` prints."""
    until = time.monotonic() + START_S
    while len(started := _workers_now(process)) < count and time.monotonic() < until:
        time.sleep(0.2)
    return started


def _workers_now(process: subprocess.Popen[str]) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in listed.splitlines())}
    return [pid for pid, parent in parents.items() if parents.get(parent) == process.pid]


def load(url: str, until: float, number: int) -> tuple[int, list[str], list[str]]:
    """What one client came by: requests that were answered, those that failed, and its sessions."""
    good, failed, sessions = 0, list[str](), list[str]()
    with httpx.Client(headers=SHOWN, timeout=60) as client:
        while time.monotonic() < until:
            try:
                talk = client.post(f"{url}/v1/ask", json={"text": f"does gpt2 fit on {number + 1} H100?"})
                assert talk.status_code == 200, talk.text
                sessions.append(talk.json()["session"])
                good += 1
                answer = client.post(f"{url}/v1/tools/check_fit", json=FIT | {"count": number + 1})
                assert answer.status_code == 200, answer.text
                good += 1
            except (httpx.TransportError, AssertionError) as error:
                failed.append(f"{type(error).__name__}: {error}")
    return good, failed, sessions


def test_a_killed_worker_takes_no_session_and_no_request_but_those_it_had(database: str, tokens: Path) -> None:
    with serving(database, tokens, "--workers", "2") as (process, url, said):
        workers = workers_of(process, 2)
        assert len(workers) == 2
        until = time.monotonic() + SECONDS
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(load, url, until, number) for number in range(CLIENTS)]
            time.sleep(SECONDS / 2)
            os.kill(workers[0], signal.SIGKILL)
            results = [each.result() for each in running]
        good, failed = sum(row[0] for row in results), [each for row in results for each in row[1]]
        sessions = [each for row in results for each in row[2]]
        # Each client had one request on its way, and no other was lost.
        assert len(failed) <= CLIENTS, failed
        assert all(row[0] for row in results)
        for session in sessions:
            kept = httpx.get(f"{url}/v1/sessions/{session}", headers=SHOWN, timeout=60).json()
            assert [turn["state"] for turn in kept["turns"]] == ["done"], kept
        # Whatever the killed one began can be gone on with.
        listed = httpx.get(f"{url}/v1/sessions", headers=SHOWN, timeout=60).json()["sessions"]
        assert {row["id"] for row in listed} >= {*sessions}
        again = [row["id"] for row in listed if row["id"] not in sessions] or sessions[-1:]
        for session in again:
            answer = httpx.post(
                f"{url}/v1/ask",
                json={"text": "does gpt2 fit on 2 H100?", "session": session},
                headers=SHOWN,
                timeout=60,
            )
            assert answer.status_code == 200, answer.text
        assert any(f"worker {workers[0]} ended (SIGKILL); another takes its place" in line for line in said)
        assert len(workers_of(process, 2)) == 2
        print(f"{good} answered, {len(failed)} failed, {len(sessions)} sessions whole")


def test_what_is_being_answered_is_answered_before_the_end(database: str, tokens: Path) -> None:
    with serving(database, tokens, "--workers", "2") as (process, url, _), ThreadPoolExecutor(8) as pool:
        slow = {"model": "llama-3.1-70b", "accelerator": "h100"}

        def ask(number: int) -> httpx.Response:
            body = slow | {"count": 16 * (number + 1)}
            return httpx.post(f"{url}/v1/tools/best_parallelism", json=body, headers=SHOWN, timeout=60)

        running = [pool.submit(ask, number) for number in range(8)]
        time.sleep(0.3)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        while httpx.get(f"{url}/readyz").status_code != 503:
            assert time.monotonic() - begun < 1.5
            time.sleep(0.05)
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert [each.result().status_code for each in running] == [200] * 8
        assert process.wait(60) == 0
        assert time.monotonic() - begun < 40
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")


def test_a_server_outlives_its_database(tokens: Path) -> None:
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'shardwise'"
    with throwaway_postgres.running() as address, psycopg.connect(address, autocommit=True) as connection:
        assert shardwise(address, "database", "upgrade").returncode == 0
        with serving(address, tokens) as (_, url, said):
            assert httpx.get(f"{url}/readyz").status_code == 200
            # Its connections are ended, as when PostgreSQL is started anew.
            connection.execute(end_all)
            assert httpx.get(f"{url}/v1/sessions", headers=SHOWN).json() == {"sessions": []}
            # Then it cannot be reached at all.
            socket = Path(address.partition("host=")[2]) / ".s.PGSQL.5432"
            socket.rename(socket.with_name("gone"))
            connection.execute(end_all)
            time.sleep(1.1)
            assert httpx.get(f"{url}/readyz").status_code == 503
            assert httpx.get(f"{url}/healthz").status_code == 200
            for answer in (
                httpx.post(f"{url}/v1/ask", json={"text": "does gpt2 fit on one T4?"}, headers=SHOWN, timeout=60),
                httpx.post(f"{url}/v1/tools/check_fit", json=FIT, headers=SHOWN, timeout=60),
            ):
                assert answer.status_code == 503, answer.text
                assert "try again, or tell whoever runs this server" in answer.json()["error"]["message"]
            assert any("cannot be reached: see that PostgreSQL runs there" in line for line in said)
            socket.with_name("gone").rename(socket)
            time.sleep(1.1)
            assert httpx.get(f"{url}/readyz").status_code == 200
            assert httpx.post(f"{url}/v1/tools/check_fit", json=FIT, headers=SHOWN, timeout=60).status_code == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--workers", "0"], "--workers: must be from 1 to 64"), (["--tokens", "/no/such"], "/no/such cannot be read"),
     (["--database", "postgresql://x@127.0.0.1:9/x"], "cannot be reached: see that PostgreSQL runs there"),
     (["--database", "nothing"], "is no address of a database"),
     (["--oidc-issuer", "http://example.org"], "is not an https address")],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_is_served(database: str, words: list[str], said: str) -> None:
    done = shardwise(database, "serve", "--port", "0", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr
