"""Words for POSIX shells. What a user or a model wrote reaches a shell only through `quoted`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

NODE_RANK = '"$NODE_RANK"'
MASTER_ADDR = '"$MASTER_ADDR"'
MASTER_PORT = '"$MASTER_PORT"'
"""What a scheduler sets on every node, as words of a command."""
ENGINE_PORT = 8000
PORT = f'"${{PORT:-{ENGINE_PORT}}}"'
"""Where an engine listens, as a word of a command: replicas that share a node are each given a PORT of their own."""
AS_WRITTEN = "# shellcheck disable=SC2016  # what is in single quotes is meant as it stands here"
"""For the head of a script that holds quoted values and commands for other shells."""


def quoted(words: Iterable[object]) -> str:
    """The words as one line in which the shell expands nothing."""
    return " ".join(shlex.quote(str(word)) for word in words)
