"""Run by Alembic: the migrations over the connection that server.team.schema opened."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], version_table="shardwise_schema")
with context.begin_transaction():
    context.run_migrations()
