"""A team's database: what a user keeps is theirs until they share it, and whatever is wrong is said with what helps."""

from __future__ import annotations

import os

import psycopg
import pytest

from estimator.errors import PlanError
from knowledge.own import database
from knowledge.own.files import read_text, scenario_folder, scenario_folders, stamp_of_all, write_file, yaml_files
from measure.history import store
from measure.history.run import MeasuredRun
from server.team import schema
from tools import call

CHIP = {"id": "our-chip", "like": "h100-sxm", "memory_gib": 96}
ASKED = {"model": "gpt2", "accelerator": "our-chip"}
RUN = MeasuredRun.model_validate({"plan": {"model": "gpt2"}, "figures": {"step_s": 1.0}, "name": "first"})


def names() -> list[str]:
    return [path.name for folder in scenario_folders() for path in yaml_files(folder)]


@pytest.mark.usefixtures("team_database")
def test_what_a_user_keeps_is_theirs_until_they_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = database.user()
    call("add_hardware", CHIP)
    call("save_scenario", {**ASKED, "name": "mine"})
    (run,) = store.add([RUN])
    kept = scenario_folder() / "mine.yaml"
    monkeypatch.setenv("SHARDWISE_USER", f"{owner}-friend")
    assert names() == []
    assert store.runs() == []
    with pytest.raises(PlanError, match="our-chip"):
        call("check_fit", ASKED)
    with pytest.raises(PlanError, match="not there"):
        read_text(kept)
    with pytest.raises(PlanError, match="somebody else"):
        write_file(kept, "model: gpt2", True, "name")
    before = stamp_of_all()

    monkeypatch.setenv("SHARDWISE_USER", owner)
    for kind, name in (("hardware", "our-chip.yaml"), ("scenarios", "mine.yaml"), ("runs", run)):
        database.share(kind, name, True)
    assert names() == ["mine.yaml"]
    monkeypatch.setenv("SHARDWISE_USER", f"{owner}-friend")
    assert stamp_of_all() != before
    assert call("check_fit", ASKED)["fits"]
    assert call("load_scenario", {"name": "mine"})["plan"]["model"] == "gpt2"
    assert [each.id for each in store.runs()] == [run]
    assert {(row.kind, row.owner) for row in database.owned()} == {
        (kind, owner) for kind in ("hardware", "scenarios", "runs")
    }
    for act in (lambda: call("delete_scenario", {"name": "mine"}), lambda: store.remove(run)):
        with pytest.raises(PlanError, match="somebody else"):
            act()
    with pytest.raises(PlanError, match="you have no"):
        database.share("scenarios", "mine.yaml", False)
    # One of one's own under the same name is nearer, and the other stays as it is.
    call("save_scenario", {"model": "gpt2-xl", "accelerator": "h100", "name": "mine"})
    assert call("load_scenario", {"name": "mine"})["plan"]["model"] == "gpt2-xl"
    with pytest.raises(PlanError, match="shares a mine"):
        database.share("scenarios", "mine.yaml", True)

    monkeypatch.setenv("SHARDWISE_USER", owner)
    assert call("load_scenario", {"name": "mine"})["plan"]["model"] == "gpt2"
    for kind, name in (("hardware", "our-chip.yaml"), ("scenarios", "mine.yaml"), ("runs", run)):
        database.share(kind, name, False)
    monkeypatch.setenv("SHARDWISE_USER", f"{owner}-friend")
    assert store.runs() == []
    with pytest.raises(PlanError, match="our-chip"):
        call("check_fit", ASKED)


@pytest.mark.usefixtures("team_database")
def test_odd_names_of_users_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shared", "../two", "a/b", "auth0|5f7c", "ü@example.org", "'; DROP TABLE documents; --"):
        name = f"{name}-{os.environ['SHARDWISE_USER']}".replace(" ", "_")
        monkeypatch.setenv("SHARDWISE_USER", name)
        assert names() == []
        write_file(scenario_folder() / "x.yaml", f"model: gpt2 # {name}", False, "x")
        assert name in read_text(scenario_folder() / "x.yaml")
        assert names() == ["x.yaml"]
        monkeypatch.setenv("SHARDWISE_USER", name.rpartition("-user-")[2])
    monkeypatch.setenv("SHARDWISE_USER", "two words")
    with pytest.raises(PlanError, match="without spaces"):
        names()


def test_a_database_that_cannot_be_used_is_told_in_words(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = postgres.partition("host=")[2]
    for address, said in (
        ("postgresql://u:s3cret@127.0.0.1:9/none", "cannot be reached: see that PostgreSQL runs there"),
        (f"postgresql://u:s3cret@/postgres?host={place}/nowhere", "cannot be reached"),
        (f"postgresql://nobody:s3cret@/postgres?host={place}", "has no such user"),
        (f"postgresql://shardwise:s3cret@/nothing?host={place}", "is not there: create it"),
        ("mysql://u:s3cret@h/x", "is no address of a database"),
    ):
        monkeypatch.setenv("SHARDWISE_DATABASE", address)
        with pytest.raises(PlanError) as caught:
            call("save_scenario", {"model": "gpt2", "accelerator": "h100", "name": "a"})
        assert caught.value.field == "SHARDWISE_DATABASE", address
        assert said in str(caught.value)
        assert "s3cret" not in str(caught.value)


def test_the_schema_is_refused_when_it_is_not_ours(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS bare")
        connection.execute("CREATE DATABASE bare")
        connection.execute("DROP DATABASE IF EXISTS ascii")
        connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    monkeypatch.setenv("SHARDWISE_DATABASE", postgres.replace("/postgres?", "/ascii?"))
    with pytest.raises(PlanError, match="is not in UTF-8, as names and texts are; make another: createdb -E UTF8"):
        schema.upgrade()
    bare = postgres.replace("/postgres?", "/bare?")
    monkeypatch.setenv("SHARDWISE_DATABASE", bare)
    assert schema.problem().endswith("has no tables yet; run: shardwise database upgrade")
    with pytest.raises(PlanError, match="run: shardwise database upgrade"):
        store.runs()
    assert schema.upgrade() == schema.head() == database.SCHEMA
    assert schema.problem() == ""
    assert schema.upgrade() == database.SCHEMA
    assert store.add([RUN]) == [RUN.id]
    for version, said in (("0000", "older Shardwise (0000"), ("9999", "newer Shardwise (9999")):
        with psycopg.connect(bare, autocommit=True) as connection:
            connection.execute("UPDATE shardwise_schema SET version_num = %s", (version,))
        assert said in schema.problem()
        assert schema.problem().count("run: ") == 1
    with pytest.raises(PlanError, match="newer Shardwise"):
        schema.upgrade()
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute("UPDATE shardwise_schema SET version_num = %s", (database.SCHEMA,))
        connection.execute("DELETE FROM checkpoint_migrations WHERE v > 3")
    assert schema.problem().endswith("checkpointer; run: shardwise database upgrade")


@pytest.mark.usefixtures("team_database")
def test_a_connection_that_was_ended_is_replaced() -> None:
    assert store.runs() == []
    (held,) = database._idle[os.getpid(), database.address()][-1:]
    with psycopg.connect(database.address(), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (held.info.backend_pid,))
    assert store.runs() == []


@pytest.mark.usefixtures("team_database")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_is_forked_leaves_its_parents_connections_alone() -> None:
    assert store.runs() == []
    ours = database._idle[os.getpid(), database.address()][-1].info.backend_pid
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with database.transaction() as connection:
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
        os.write(writing, str(row and row[0]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reading, 20)) != ours
    os.close(reading)
    os.close(writing)
    assert store.runs() == []
