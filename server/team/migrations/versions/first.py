"""Sessions, runs, texts, codes, results and the audit log. Views show each user what is theirs and what is shared."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MINE = "owner = current_setting('shardwise.user')"
_OWNER = "owner text NOT NULL DEFAULT current_setting('shardwise.user')"
_UP = (
    f"""CREATE TABLE kept_sessions (
        {_OWNER}, id text PRIMARY KEY, title text NOT NULL, created text NOT NULL, last_used text NOT NULL,
        rowid bigint GENERATED ALWAYS AS IDENTITY)""",
    "CREATE INDEX kept_sessions_owner ON kept_sessions (owner, last_used)",
    f"""CREATE TABLE kept_turns (
        {_OWNER}, session text NOT NULL, number integer NOT NULL, moment text NOT NULL, said text NOT NULL,
        state text NOT NULL, told text NOT NULL, answer text NOT NULL DEFAULT '', PRIMARY KEY (session, number))""",
    f"""CREATE TABLE kept_runs (
        {_OWNER}, id text NOT NULL, added text NOT NULL, date text, name text, kind text, model text, accelerator text,
        devices integer, software text, outcome text, document text NOT NULL, shared boolean NOT NULL DEFAULT false,
        rowid bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (owner, id))""",
    f"""CREATE TABLE documents (
        {_OWNER}, kind text NOT NULL, name text NOT NULL, body text NOT NULL, shared boolean NOT NULL DEFAULT false,
        changed timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (owner, kind, name))""",
    "CREATE UNIQUE INDEX documents_shared ON documents (kind, name) WHERE shared",
    f"""CREATE TABLE codes (
        {_OWNER}, code text PRIMARY KEY, bound text NOT NULL, made timestamptz NOT NULL DEFAULT clock_timestamp())""",
    f"""CREATE TABLE results (
        {_OWNER}, id text NOT NULL, body text NOT NULL, made timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (owner, id))""",
    "CREATE INDEX results_made ON results (made)",
    """CREATE TABLE audit (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, moment timestamptz NOT NULL DEFAULT clock_timestamp(),
        who text NOT NULL, face text NOT NULL, tool text NOT NULL, arguments text NOT NULL, outcome text NOT NULL,
        ms integer NOT NULL)""",
    "CREATE INDEX audit_moment ON audit (moment)",
    f"CREATE VIEW sessions AS SELECT id, title, created, last_used, rowid FROM kept_sessions WHERE {_MINE}"
    " WITH CHECK OPTION",
    "CREATE VIEW turns AS SELECT session, number, moment, said, state, told, answer FROM kept_turns"
    f" WHERE {_MINE} WITH CHECK OPTION",
    "CREATE VIEW own_runs AS SELECT id, added, date, name, kind, model, accelerator, devices, software, outcome,"
    f" document, rowid FROM kept_runs WHERE {_MINE} WITH CHECK OPTION",
    "CREATE VIEW runs AS SELECT id, added, date, name, kind, model, accelerator, devices, software, outcome,"
    f" document, rowid FROM kept_runs r WHERE {_MINE} OR (shared AND NOT EXISTS (SELECT 1 FROM kept_runs o"
    " WHERE o.id = r.id AND o.owner = current_setting('shardwise.user')))",
)
_DOWN = (
    "DROP VIEW runs, own_runs, turns, sessions",
    "DROP TABLE kept_sessions, kept_turns, kept_runs, documents, codes, results, audit",
)


def upgrade() -> None:
    for statement in _UP:
        op.execute(statement)


def downgrade() -> None:
    for statement in _DOWN:
        op.execute(statement)
