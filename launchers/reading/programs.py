"""Programs whose files and commands are read: each one's read.py says which formats, commands and modules are its."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any

from launchers.reading.commands import UNKNOWN_ARGUMENTS, CommandReader, Console
from launchers.reading.formats import Format
from launchers.shell.scripts import UNKNOWN
from launchers.shell.setting import Program, ScriptSetting
from launchers.targets import TARGETS

# Programs that are read and for which nothing is written.
_READ_ONLY = (
    "arctic_training", "areal", "aws_fsdp", "engines.ollama", "engines.tgi", "fsdp", "gpt_neox", "litgpt",
    "llm_foundry", "llm_training", "megatron_swift", "nemo", "oat", "olmo", "open_instruct",
    "own_program", "roll", "skyrl", "srt_slurm", "trainer_sections",
)  # fmt: skip


def formats() -> list[Format]:
    """Configs of programs first, then what they refer to."""
    forms = [form for reader in _readers() for form in getattr(reader, "FORMATS", ())]
    return sorted(forms, key=lambda form: form.order)


def consoles() -> dict[str, Console]:
    """What a command starts, by its program."""
    return _offered("CONSOLES")


def modules() -> dict[str, str]:
    """The kind of program that `python -m` starts, by how the module's name begins."""
    return _offered("MODULES")


def read_start(start: Program, setting: ScriptSetting) -> str | None:
    """Reads a program's own arguments, or puts them over the config that they name; the format, None where nothing of
    it is read."""
    findings = setting.findings
    if _has_unknown(start):
        findings.warn(f"{start.name.origin}: {UNKNOWN_ARGUMENTS}")
        findings.blocked.setdefault("workload", f"{start.name.origin}: {UNKNOWN_ARGUMENTS}")
    commands: Mapping[str, CommandReader] = _offered("COMMANDS")
    return commands.get(start.kind, commands["script"])(start, setting)


def _readers() -> list[ModuleType]:
    packages = [target.package for target in TARGETS.values() if target.role in ("config", "program")]
    return [import_module(f"{package}.read") for package in (*packages, *(f"launchers.{name}" for name in _READ_ONLY))]


@lru_cache
def _offered(name: str) -> dict[str, Any]:
    return {key: value for reader in _readers() for key, value in getattr(reader, name, {}).items()}


def _has_unknown(start: Program) -> bool:
    """Takes out words of which nothing is known, unless they are an option's value; whether there were any."""
    kept = [
        word
        for before, word in zip([None, *start.words], start.words, strict=False)
        if word.text != UNKNOWN or (before is not None and re.match(r"--?[A-Za-z][^=]*$", before.text))
    ]
    has_unknown, start.words = len(kept) < len(start.words), kept
    return has_unknown
