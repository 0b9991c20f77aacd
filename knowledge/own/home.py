"""The home folder, which not every user has: a container may run as a number that no account belongs to."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from estimator.errors import PlanError

# Nothing can be below it: what is looked for there is not there, and what would be written is refused.
NOWHERE = Path(os.devnull) / "shardwise"


def expanded(path: str | Path) -> Path:
    """With the home folder in place of ~, as far as there is such a user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def home() -> Path:
    """Raises PlanError where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        raise PlanError("HOME", "this user has no home folder", ["HOME=a folder"]) from None


@lru_cache(maxsize=16)
def platform_folder(what: str, *_surroundings: str | None) -> Path:
    """The platform's folder for Shardwise's files, which depends on the variables that are passed beside it."""
    from platformdirs import user_config_path, user_data_path

    try:
        return (user_config_path if what == "config" else user_data_path)("shardwise", appauthor=False)
    except RuntimeError:
        return NOWHERE
