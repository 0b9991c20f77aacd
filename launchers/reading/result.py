"""What a set of files says of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from launchers.reading.findings import Assumed, Either, NotRead, Read


@dataclass(frozen=True)
class FilesReading:
    """What a set of files says.

    `plan` holds only what was read or follows from it, `assumed` what the programs do where their files are silent.
    `blocked` are fields that the files speak of in words that cannot be told in a Plan, each with why: an estimate
    that leaves them open would be of another run. `formats` says what each file was taken for, `refers` what files
    were named and not given, `beside` paths of sources and configs that say more where they are there, `either` fields
    that have one of several values.
    """

    plan: dict[str, Any]
    read: list[Read]
    not_read: list[NotRead]
    assumed: list[Assumed]
    blocked: dict[str, str]
    warnings: list[str]
    formats: dict[str, str]
    refers: dict[str, str]
    either: list[Either]
    beside: list[str] = field(default_factory=list)
    longest: str = ""
    """Why rows are shorter than the sequence length that was read; empty where they may as well be as long."""

    @property
    def serves(self) -> bool:
        return self.plan.get("workload", {}).get("kind") == "inference"
