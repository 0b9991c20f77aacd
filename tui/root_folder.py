"""The folder that `--root` names: the one that a server may write below."""

from __future__ import annotations

from pathlib import Path

from estimator.errors import PlanError
from knowledge.own.home import expanded


def root_folder(root: str | None) -> Path | None:
    """The folder, which has to be there; None where none was given. Raises PlanError."""
    if root is None:
        return None
    path = expanded(root)
    if not path.is_dir():
        raise PlanError("--root", f"{root} is not a folder", ["a folder that exists"])
    return path.resolve()
