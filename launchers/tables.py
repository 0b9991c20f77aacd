"""The data files of this room, each read once, on first use. Their heads say what a row means and its source."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(path: str) -> Any:
    """The content of launchers/<path>.yaml as plain data. Callers must not change it."""
    import yaml

    folder, _, name = path.rpartition("/")
    package = f"launchers.{folder.replace('/', '.')}"
    text = files(package).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
