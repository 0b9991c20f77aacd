"""What targets render: files, how what they are for is started, and what only the user can fill in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class File:
    """One file to write; `path` is relative to the folder that the user chooses. What is no text is in `data`."""

    path: str
    target: str
    text: str
    executable: bool = False
    data: bytes | None = None


@dataclass(frozen=True)
class Start:
    """How a program is started: `command` is run once on every node, from the folder of the files.

    It is one simple command of POSIX shell, on one line, in which every value from the plan or the user is quoted
    already (a scheduler may put `exec env` before it). Where the run has several nodes it reads what differs from node
    to node, and where they meet, from the variables NODE_RANK, MASTER_ADDR and MASTER_PORT
    (`launchers.shell.quoting.NODE_RANK` …), which the scheduler sets. An engine takes its port from
    `launchers.shell.quoting.PORT`, so that replicas can share a node. Nothing else is expanded. `environment` is set
    besides. `programs` are what has to be installed on every node, `image` a container image that holds them (None:
    none is known). `port` is where an engine listens unless PORT says otherwise (at HOST),
    `key_variable` names the variable with the key that requests must bring. `resumes`: started again in the same
    folder it goes on from where it was, so that a scheduler may start it more than once. `last_saved` is the file that
    a checkpoint (saves/*/checkpoint-*) gets last: one without it was cut short, and cannot be gone on from. `on_ray`:
    it works on Ray, and on a cluster of Ray's that there is already where RAY_ADDRESS names one.
    """

    command: str
    environment: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    image: str | None = None
    port: int | None = None
    key_variable: str | None = None
    resumes: bool = True
    last_saved: str | None = None
    on_ray: bool = False


@dataclass(frozen=True)
class Piece:
    """What one target adds: its files, what the user must fill in, and how what it is for is started."""

    files: tuple[File, ...]
    needs_from_user: tuple[str, ...] = ()
    start: Start | None = None


@dataclass(frozen=True)
class Rendered:
    """All files of a set, the command that starts the run from their folder, what only the user can fill in, and what
    stands against starting it (memory, time)."""

    files: tuple[File, ...]
    launch_command: str
    needs_from_user: tuple[str, ...]
    warnings: tuple[str, ...] = ()
