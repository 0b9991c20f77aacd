"""Files that a turn names to be read: configurations and job scripts, and what a run left behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import Mentions
from agent.offline.language.names import Name
from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from knowledge.own.files import may_read

_SOURCES = (".py", ".ipynb")
_CONFIGS = (".yaml", ".yml", ".toml", ".sh", ".sbatch", ".slurm", ".bash", *_SOURCES)
_RECORDS = (".log", ".out", ".err", ".wandb", "trainer_state.json")
# Tools of which the answer stands in what was read of a file. What others are asked is asked once it has been read.
_TOLD = frozenset({None, "import_config", "check_fit", "estimate_training", "estimate_inference", "estimate_cost",
                   "search_playbook", "read_run", "rate_run", "list_catalogue", "load_scenario",
                   "matrix_results"})  # fmt: skip
_WRITES = frozenset({"write_configs", "render_configs", "save_scenario", "report", "render_report", "benchmark_matrix",
                     "render_matrix"})  # fmt: skip


@dataclass(frozen=True)
class NamedFiles:
    """Paths in the order of the text."""

    configs: list[str] = field(default_factory=list)
    records: list[str] = field(default_factory=list)

    def __contains__(self, path: object) -> bool:
        return path in self.configs or path in self.records


def files_named(read: Mentions, plan: Mapping[str, Any], tool: str | None) -> NamedFiles:
    """What is read of a turn that `tool` seems to answer. A file that is not there may be one that a run will have:
    where a model is named it asks for nothing."""
    named = NamedFiles()
    goes_on = bool(read.of("model") or plan.get("model")) and tool != "import_config"
    for name in read.of("path"):
        there = _is_there(name.text)
        if (tool in _WRITES or goes_on) and not (there and not _is_for_writing(read, name)):
            continue
        if goes_on and name.text.lower().endswith(_SOURCES):
            # What trains the model that is named; of its own it seldom says a run.
            continue
        if name.text.lower().endswith(_RECORDS) or tool == "read_run":
            named.records.append(name.text)
        elif name.text.lower().endswith(_CONFIGS) or _is_settings(name.text, there):
            named.configs.append(name.text)
    return named


def left_to_ask(text: str, files: NamedFiles, tool: str | None) -> str:
    """The question that is left once configurations were read: about a log that is named, too, or of another tool."""
    if not files.configs and files.records:
        return ""
    if files.records:
        return " ".join(files.records)
    if tool in _TOLD:
        return ""
    for path in files.configs:
        text = text.replace(path, "it")
    return text


def describes_a_model(pasted: str | None) -> bool:
    """Whether what was pasted is the config of a model."""
    try:
        fields = json.loads(pasted or "")
        return isinstance(fields, dict) and bool(architecture(fields))
    except (ValueError, RecursionError, PlanError):
        return False


def _is_there(path: str) -> bool:
    try:
        place = Path(path)
        return may_read(place) and place.is_file()
    except (OSError, ValueError):
        return False


def _is_for_writing(read: Mentions, name: Name) -> bool:
    """Whether a name says where something goes: 'write it to job.sbatch'."""
    return name.start > 0 and read.tokens[name.start - 1].norm in lexicon().into


def _is_settings(path: str, there: bool) -> bool:
    """Whether a JSON file holds settings, as of DeepSpeed, and no model's config."""
    if not there or not path.lower().endswith(".json") or (path.endswith("config.json") and path[-12:-11] in ("", "/")):
        return False
    try:
        architecture(path)
    except PlanError:
        return True
    return False
