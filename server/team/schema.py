"""The tables of a team's database: made and brought up to date by Alembic, those of LangGraph's checkpointer by its own
migrations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import DictRow, dict_row

from estimator.errors import PlanError
from knowledge.own import database

# Of two that upgrade at once, one waits and finds it done.
_LOCK = 7_203_119_405


def head() -> str:
    """The newest revision there is a migration to."""
    from alembic.script import ScriptDirectory  # takes a second, which a server does not need

    return str(ScriptDirectory.from_config(_config()).get_current_head())


def upgrade() -> str:
    """Brings the database's tables up to date; returns their revision. Raises PlanError where it cannot be used, or a
    newer Shardwise has been at them."""
    import sqlalchemy  # as above
    from alembic import command
    from sqlalchemy.exc import DBAPIError

    problem = database.schema_problem()
    if problem and database.UPGRADE not in problem:
        raise PlanError(database.ADDRESS, problem)
    place, wait_s = database.address(), 10
    try:
        with psycopg.Connection[DictRow].connect(
            place, autocommit=True, prepare_threshold=0, connect_timeout=wait_s, row_factory=dict_row
        ) as held:
            held.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            creator = lambda: psycopg.connect(place, connect_timeout=wait_s)  # noqa: E731
            engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=creator)
            with engine.begin() as connection:
                config = _config()
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
            engine.dispose()
            PostgresSaver(held).setup()
    except psycopg.Error as error:
        raise database.refused(error) from None
    except DBAPIError as error:
        raise database.refused(error.orig if isinstance(error.orig, Exception) else error) from None
    return head()


def problem(is_running: bool = False) -> str:
    """What is wrong with the tables, the checkpointer's too; '' where nothing is. Raises PlanError where the database
    cannot be used."""
    if wrong := database.schema_problem(is_running):
        return wrong
    newest = len(PostgresSaver.MIGRATIONS) - 1
    with database.transaction() as connection:
        row = connection.execute("SELECT max(v) FROM checkpoint_migrations").fetchone()
    if not row or row[0] is None or row[0] < newest:
        return f"{database.shown()} has older tables of LangGraph's checkpointer; {database.UPGRADE}"
    return ""


def _config() -> Any:
    from alembic.config import Config  # as above

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config
