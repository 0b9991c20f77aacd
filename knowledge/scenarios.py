"""Saved plans: YAML files in the user's data folder, one each, and the ready examples beside them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from estimator.errors import PlanError, nearest
from knowledge.data_files import FOLDER
from knowledge.own.files import file_stem, parsed, read_text, scenario_folder, scenario_folders, yaml_files

_EXAMPLES = FOLDER / "examples"


@dataclass(frozen=True)
class StoredScenario:
    """A saved plan by the name of its file; examples cannot be changed."""

    name: str
    path: Path
    read_only: bool

    @property
    def text(self) -> str:
        return read_text(self.path)

    def data(self, field: str = "name") -> dict[str, Any]:
        """What the file says, not checked. Raises PlanError(field) where it is no mapping."""
        data = parsed(self.text, field)
        if not isinstance(data, dict):
            raise PlanError(field, f"the scenario {self.name} ({self.path}) does not hold a plan")
        return data


def scenarios() -> list[StoredScenario]:
    """Those of the user by name, those that others share, then the examples."""
    saved = [path for folder in scenario_folders() for path in yaml_files(folder)]
    return [*(StoredScenario(path.stem, path, False) for path in saved), *_examples().values()]


def find_scenario(name: str, field: str = "name") -> StoredScenario:
    """The scenario that was saved under a name, in any spelling that gives the same file. Raises PlanError(field)."""
    stem = file_stem(name, field)
    known = {each.name: each for each in reversed(scenarios())}
    if stem not in known:
        raise PlanError(field, f"there is no scenario {stem!r}", nearest(stem, known))
    return known[stem]


def own_path(name: str, field: str = "name") -> Path:
    """The file of a scenario of the user's. Raises PlanError for the name of an example."""
    stem = file_stem(name, field)
    if stem in _examples():
        raise PlanError(field, f"{stem} is a ready example, which stays as it is", [f"my-{stem}"])
    return scenario_folder() / f"{stem}.yaml"


@cache
def _examples() -> dict[str, StoredScenario]:
    return {path.stem: StoredScenario(path.stem, path, True) for path in yaml_files(_EXAMPLES)}
