"""The folder that `--root` names: the one that a server may write below."""

from __future__ import annotations

from pathlib import Path

from estimator.errors import PlanError


def root_folder(root: str | None) -> Path | None:
    """The folder, which has to be there; None where none was given. Raises PlanError."""
    if root is None:
        return None
    path = Path(root).expanduser()
    if not path.is_dir():
        raise PlanError("--root", f"{root} is not a folder", ["a folder that exists"])
    return path.resolve()
