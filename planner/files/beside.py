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
# Of what may lie beside them: a source, files in all, and their characters.
_LARGEST_SOURCE, _MOST, _LARGEST_OF_ALL = 200_000, 48, 800_000
# A job starts a script, that a source, which imports another one, which opens a config that stands on another.
_DEEPEST = 5


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
        reading = read(texts, arguments)
        more = _beside(texts, reading.refers, tree)
        # What may be there or not is no fault where it cannot be read, and is left where there is too much of it.
        for path, text in _beside(texts | more, reading.beside, tree, is_sure=False).items():
            if len(texts | more) < _MOST and sum(map(len, (*texts.values(), *more.values(), text))) < _LARGEST_OF_ALL:
                more[path] = text
        if not more:
            break
        texts |= more
    return texts


def _beside(texts: Mapping[str, str], named: Iterable[str], tree: FileTree, is_sure: bool = True) -> dict[str, str]:
    """Files that the given ones name: in or below their folders or those above these, or the working folder, from where
    they are started. `is_sure`: they are named, not only likely to be there."""
    beside: dict[str, str] = {}
    folders = dict.fromkeys(folder for path in texts for folder in _folders(Path(path)))
    here = working_folder()
    known = {Path(path).resolve() for path in texts}
    for name in named:
        relative = Path(name)
        if relative.is_absolute() or relative.suffix not in (ENDINGS if is_sure else (*ENDINGS, ".py")):
            continue
        parts = [relative] if relative.name == "__init__.py" else [relative, Path(relative.name)]
        for place in (folder / part for folder in folders for part in parts):
            try:
                whole = place.resolve()
                inside = ".." not in place.parts or whole.is_relative_to(here)
                is_there = inside and whole not in known and tree.is_file(place)
            except (OSError, ValueError):  # a name that no file can have
                continue
            if is_there and (text := _text(place, tree, is_sure)) is not None:
                beside[str(place)] = text
                break
    return beside


def _text(place: Path, tree: FileTree, is_sure: bool) -> str | None:
    try:
        text = tree.text(place)
    except PlanError:
        if is_sure:
            raise
        return None
    return text if is_sure or (text.strip() and len(text) < _LARGEST_SOURCE) else None


def _folders(path: Path) -> list[Path]:
    """The folder of a file, and those above it up to the working folder; of one that is elsewhere its own."""
    here = working_folder()
    above = [path.parent, *path.parent.parents]
    if path.is_absolute() and not path.is_relative_to(here):
        return [path.parent, Path()]
    return [*(folder for folder in above if not path.is_absolute() or folder.is_relative_to(here)), Path()]
