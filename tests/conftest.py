"""Settings of the whole suite: property tests draw the same examples on every machine and have no clock, and a
developer's own sessions, scenarios and catalogue rows stay out of it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator

import pytest
import throwaway_postgres
from hypothesis import HealthCheck, settings
from samples import examples

settings.register_profile(
    "shardwise",
    derandomize=True,
    deadline=None,
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("shardwise")

# What is imported stays.
gc.disable()
_EMPTY = tempfile.mkdtemp(prefix="shardwise-tests-")
os.environ["SHARDWISE_HOME"] = os.environ["SHARDWISE_CONFIG"] = _EMPTY
for name in ("SHARDWISE_DATA", "SHARDWISE_DATABASE", "SHARDWISE_USER"):
    os.environ.pop(name, None)
# Processes that tests start read our modules as the first of them compiled them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# An app is drawn where it has come to, not on the way there. Read where Textual is imported.
os.environ |= {"TEXTUAL_ANIMATIONS": "none", "TEXTUAL_FPS": "10"}


def pytest_unconfigure() -> None:
    """Also where the process is one of several that share the tests."""
    shutil.rmtree(_EMPTY, ignore_errors=True)


def pytest_collection_finish() -> None:
    """What was imported stays. To look through it all again and again is a tenth of the suite's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server with our tables, of this run of the tests alone."""
    with throwaway_postgres.running() as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDWISE_DATABASE", address)
        from server.team.schema import upgrade  # takes seconds, which few tests need

        upgrade()
        patch.undo()
        yield address


@pytest.fixture
def team_database(postgres: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database, and in it a user whom no other test has been."""
    monkeypatch.setenv("SHARDWISE_DATABASE", postgres)
    monkeypatch.setenv("SHARDWISE_USER", f"user-{uuid.uuid4().hex[:12]}")
    return postgres


@pytest.fixture(params=["on disk", "in a database"])
def either_store(request: pytest.FixtureRequest) -> None:
    """What is kept is kept on disk, and then in a team's database."""
    if request.param == "in a database":
        request.getfixturevalue("team_database")
