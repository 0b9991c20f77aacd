"""Launch files by their paths, with those that they name and that lie beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from estimator.errors import PlanError
from knowledge.own.files import may_read, read_text, working_folder
from launchers.reading.sets import read
from planner.files.below import inside_root

ENDINGS = (".json", ".yaml", ".yml", ".toml", ".sh", ".sbatch", ".slurm", ".bash", ".conf")
_LARGEST = 1 << 20
# A job starts a script, which names a config, which names another.
_DEEPEST = 3


class FileTree(Protocol):
    def is_file(self, path: Path) -> bool: ...

    def text(self, path: Path) -> str: ...


class _ReadableTree:
    """The files that whoever asks may have read to them."""

    def is_file(self, path: Path) -> bool:
        return may_read(path) and path.is_file()

    def text(self, path: Path) -> str:
        return read_text(path, "file_paths", _LARGEST)


def texts_of(paths: Sequence[str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The texts of files below the working folder, and of those that they name. Raises PlanError."""
    tree = _ReadableTree()
    places = {path: inside_root(path, "file_paths") for path in dict.fromkeys(paths)}
    for path, place in places.items():
        if not tree.is_file(place):
            raise PlanError("file_paths", f"there is no file {path[:200]!r} in the folder that Shardwise runs in")
    return with_named({str(place): tree.text(place) for place in places.values()}, arguments, tree)


def with_named(files: Mapping[str, str], arguments: Mapping[str, Any], tree: FileTree) -> dict[str, str]:
    """`files`, text by path, and what they name beside them. Raises PlanError where nothing of them can be read."""
    texts = dict(files)
    for _ in range(_DEEPEST):
        if not (more := _beside(files, read(texts, arguments).refers, texts, tree)):
            break
        texts |= more
    return texts


def _beside(paths: Iterable[str], named: Iterable[str], files: Mapping[str, str], tree: FileTree) -> dict[str, str]:
    """Files that the given ones name: in or below their folders, or the working folder, from where they are started."""
    beside: dict[str, str] = {}
    here = working_folder()
    folders = dict.fromkeys([*(Path(path).parent for path in paths), Path()])
    known = {Path(path).resolve() for path in files}
    for name in named:
        relative = Path(name)
        if relative.is_absolute() or relative.suffix not in ENDINGS:
            continue
        for place in (folder / part for folder in folders for part in (relative, relative.name)):
            try:
                whole = place.resolve()
                inside = ".." not in place.parts or whole.is_relative_to(here)
                is_there = inside and whole not in known and tree.is_file(place)
            except (OSError, ValueError):  # a name that no file can have
                continue
            if is_there:
                beside[str(place)] = tree.text(place)
                break
    return beside
