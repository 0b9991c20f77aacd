"""Launch files as they lie in the working folder, or as they were in a revision of git."""

from __future__ import annotations

import io
import os
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from estimator.errors import PlanError
from knowledge.own.files import open_regular
from pages.rendering.clean import one_line
from planner.files.beside import ENDINGS, FileTree, with_named
from planner.files.importing import ImportedConfig
from tools.registry import find

LARGEST = 200_000
_GIT_S = 60.0
_MOST_BYTES = 64 * 10**6


class Folders(FileTree, Protocol):
    def configs(self, folder: Path) -> list[Path]:
        """Files below a folder that may be configs."""
        ...


class WorkingTree:
    """The files as they are now."""

    def is_file(self, path: Path) -> bool:
        return path.is_file()

    def text(self, path: Path) -> str:
        """One character more than may be: what is longer is refused with all that is wrong."""
        if path.is_dir():
            raise PlanError("files", f"{one_line(path)} is a folder", ["the files in it", "--each"])
        try:
            with io.TextIOWrapper(open_regular(path, "files"), encoding="utf-8") as stream:
                return stream.read(LARGEST + 1)
        except UnicodeDecodeError:
            raise PlanError("files", f"{one_line(path)} is not a text file") from None

    def configs(self, folder: Path) -> list[Path]:
        """Of git's files those that it knows or would take, else all that are not hidden."""
        listed = _git("ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", str(folder))
        if listed is None:
            walk = ((Path(place), folders, names) for place, folders, names in os.walk(folder))
            paths = []
            for place, folders, names in walk:
                folders[:] = [name for name in folders if not name.startswith(".")]
                paths += [place / name for name in names]
        else:
            paths = [Path(name) for name in listed.split("\0") if name]
        return sorted({path for path in paths if _is_config(path) and path.is_file() and not path.is_symlink()})


@dataclass(frozen=True)
class Revision:
    """The files below the working folder as a revision of git has them."""

    name: str

    def __post_init__(self) -> None:
        if _git("rev-parse", "--quiet", "--verify", "--end-of-options", f"{self.name}^{{commit}}") is None:
            raise PlanError("--against", f"git knows no revision {self.name!r} here", ["main", "HEAD~1"])

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset((_git("ls-tree", "-r", "-z", "--name-only", self.name) or "").split("\0"))

    def configs(self, folder: Path) -> list[Path]:
        paths = [Path(name) for name in sorted(self._names) if name]
        return [path for path in paths if _is_config(path) and path.is_relative_to(os.path.normpath(folder))]

    def is_file(self, path: Path) -> bool:
        return os.path.normpath(path) in self._names

    def text(self, path: Path) -> str:
        text = _git("cat-file", "blob", f"{self.name}:./{os.path.normpath(path)}")
        if text is None:
            raise PlanError("files", f"{one_line(path)} is not readable in {self.name}")
        return text[: LARGEST + 1]


# What the settings of a repository, which may be anybody's, could have git run: a monitor of files, hooks, and whatever
# fetches what is missing.
_RUNS_NOTHING = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "--no-optional-locks")
_FETCHES_NOTHING = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}


def _git(*words: str) -> str | None:
    """What git prints; None where there is no git, no repository, no such thing, or more than one reads."""
    command = ["git", *_RUNS_NOTHING, *words]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=os.environ | _FETCHES_NOTHING,
        ) as git:  # fmt: skip
            timer = threading.Timer(_GIT_S, git.kill)
            timer.start()
            try:
                assert git.stdout is not None
                content = git.stdout.read(_MOST_BYTES + 1)
                if len(content) > _MOST_BYTES:
                    git.kill()
                return content.decode("utf-8") if not git.wait() else None
            finally:
                timer.cancel()
    except (OSError, UnicodeDecodeError):
        return None


def _is_config(path: Path) -> bool:
    return path.suffix in ENDINGS and not any(part.startswith(".") for part in path.parts if part not in (".", ".."))


def read_whole(files: Mapping[str, str], options: Mapping[str, Any], tree: FileTree) -> ImportedConfig:
    """What files run, with those that they name and that lie beside them. Raises PlanError."""
    result = find("import_config").run({**options, "files": with_named(files, {}, tree)})
    assert isinstance(result, ImportedConfig)
    return result
