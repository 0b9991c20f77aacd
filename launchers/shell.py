"""Words for POSIX shells. What a user or a model wrote reaches a shell only through `quoted`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

NODE_RANK = '"$NODE_RANK"'
MASTER_ADDR = '"$MASTER_ADDR"'
MASTER_PORT = '"$MASTER_PORT"'
"""What a scheduler sets on every node, as words of a command."""


def quoted(words: Iterable[object]) -> str:
    """The words as one line in which the shell expands nothing."""
    return " ".join(shlex.quote(str(word)) for word in words)


def with_environment(environment: Mapping[str, str], command: str) -> str:
    """`command` with variables set for it alone; the values are quoted, the names are ours."""
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in environment.items()), command])
