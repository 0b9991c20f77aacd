"""What a command starts and where it stands, and the counts of devices that launchers are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchers.python.imports import Source, no_source
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_certain
from launchers.shell.scripts import UNKNOWN, Word

TORCHRUN_FLAGS = ("standalone", "no_python", "run_path", "use_env", "legacy", "m", "module", "virtual_local_rank")


@dataclass
class Program:
    """A program that a command starts: `kind` names its reader, `words` are its arguments."""

    kind: str
    words: list[Word]
    name: Item
    environment: dict[str, Word] = field(default_factory=dict)


def _no_config(_path: str) -> Any:
    return UNKNOWN


@dataclass
class PythonSources:
    """Python of the set by file name, which of it commands have started, what gives the data of a config, and what the
    text of a source that is imported."""

    texts: dict[str, str] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    load: Callable[[str], Any] = _no_config
    source: Source = no_source


@dataclass
class ScriptSetting:
    """Where commands of a file stand: what the file is called, and which variables are set for all."""

    file: str
    findings: Findings
    variables: dict[str, Word]
    documents: dict[str, Keys]
    """Configs by file name, which a command may name and override."""
    written: dict[str, str] = field(default_factory=dict)
    """Files that the script writes from texts in itself."""
    known: dict[str, str] = field(default_factory=dict)
    """Variables that stand outside of the script, which what it starts has too."""
    scripts: Mapping[str, str] = field(default_factory=dict)
    """Other files of the set by name, which it may take in or make others of."""
    templates: set[str] = field(default_factory=set)
    """Those that it made others of."""
    sourced: set[str] = field(default_factory=set)
    """Those that it took in."""
    handed: dict[str, dict[str, str]] = field(default_factory=dict)
    """Variables that it starts other scripts with, by their names."""
    text: str = ""
    """Its own."""
    sources: PythonSources = field(default_factory=lambda: PythonSources())


def counts(keys: Keys, setting: ScriptSetting, nodes: str, per_node: str, each: int | None = 1) -> None:
    """Nodes and processes of a node, `each` for a device (None: not known); one node where nothing else says it."""
    for name, fact in ((nodes, "nodes"), (per_node, "per_node")):
        item = keys.take(name)
        if item is None:
            continue
        if not is_certain(item.value):
            setting.findings.leave(item, "is known only where it runs")
            continue
        number = as_number(str(item.value).rpartition(":")[2] if fact == "nodes" else item.value)
        if fact == "nodes" and ":" in str(item.value) and len(set(str(item.value).split(":"))) > 1:
            setting.findings.block(fact, item, "is a range")
        elif fact == "per_node" and each != 1 and (each is None or number is None or number % each):
            setting.findings.leave(item, "counts processes of which a device has several")
        elif fact == "per_node" and each is not None and number is not None and number >= each:
            setting.findings.put(fact, int(number) // each, item)
        elif number is not None and number >= 1:
            setting.findings.put(fact, int(number), item)
        else:
            setting.findings.leave(item, "is no number of devices")
    if keys.take("standalone") is not None:
        setting.findings.implied.append(("nodes", 1, Item(setting.file, "--standalone", True)))


def counts_of_variables(variables: Mapping[str, Word], setting: ScriptSetting, per_node: str) -> None:
    """As `counts`, of programs whose world the environment says."""
    for name, fact in (("NNODES", "nodes"), (per_node, "per_node")):
        word = variables.get(name)
        if word is not None and (number := as_number(word.text)) is not None and number >= 1:
            setting.findings.put(fact, int(number), Item(setting.file, name, int(number), word.line))


def until_program(words: list[Word], flags: Sequence[str]) -> tuple[list[Word], list[Word]]:
    """A launcher's own options, and the program with its arguments: the first word that no option takes."""
    at = 0
    while at < len(words):
        name, equals, _ = words[at].text.partition("=")
        if not re.match(r"--?[A-Za-z]", name):
            break
        takes = not equals and name.lstrip("-").replace("-", "_") not in flags
        at += 2 if takes and at + 1 < len(words) and not words[at + 1].text.startswith("--") else 1
    return words[:at], words[at:]
