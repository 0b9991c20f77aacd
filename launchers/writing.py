"""Writing a rendered set into a folder: all files or none, and never outside the folder."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from estimator.errors import PlanError
from knowledge.own.files import begun_folder, open_regular, refusal
from knowledge.own.home import expanded
from launchers.pieces import File, Rendered
from launchers.placing import Placed, handed_over, settle

# Lines of a file up to which it is compared line by line.
_MOST_COMPARED = 2000
_MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Written:
    """A file as it now lies on disk: its full path, the target it belongs to, and its length in bytes."""

    path: str
    target: str
    bytes: int


def write(rendered: Rendered, folder: Path, overwrite: bool = False) -> list[Written]:
    """Writes the files of `rendered` under `folder`, which is made when missing.

    Everything is written beside its place first and moved there at the end; a failure puts back what was there, and a
    process that is killed leaves all or nothing: at once, or, where the program that moves the files is killed
    too, with the next start or call of `write` (`launchers.placing`). Files that already hold the same content stay
    untouched. Raises PlanError when a path would leave the folder (absolute, '..', through a symbolic link), when other
    content is there and `overwrite` is false, or when the folder cannot be written.
    """
    root = expanded(folder)
    try:
        settle_killed()
        return _write(rendered.files, root, overwrite)
    except OSError as error:
        raise PlanError("folder", f"{root} cannot be written: {refusal(error)}") from None


def settle_killed() -> None:
    """Ends or undoes the sets whose writing was killed, wherever they are."""
    settle(str(begun_folder()))


def _write(files: tuple[File, ...], root: Path, overwrite: bool) -> list[Written]:
    contents = {file.path: file.text.encode() if file.data is None else file.data for file in files}
    places = _places(files, root)
    different = [file for file in files if _content(places[file.path]) != contents[file.path]]
    taken = [
        f"{file.path} ({_change(_content(places[file.path]), contents[file.path])})"
        for file in different
        if os.path.lexists(places[file.path])
    ]
    if taken and not overwrite:
        raise PlanError(
            "folder", f"{root} already holds other content in {', '.join(taken)}; say overwrite to replace it"
        )
    base, parts = root.absolute(), []
    while not base.exists():
        base, parts = base.parent, [base.name, *parts]
    if different:
        new = [Placed(PurePosixPath(file.path).as_posix(), contents[file.path], file.executable) for file in different]
        handed_over(str(base), parts, new, str(begun_folder()))
    return [Written(str(places[file.path]), file.target, len(contents[file.path])) for file in files]


def _places(files: tuple[File, ...], root: Path) -> dict[str, Path]:
    """Where each file goes, after checking that this is inside `root` and that no two files share a place."""
    places: dict[str, Path] = {}
    for file in files:
        path = PurePosixPath(file.path)
        if not file.path or "\\" in file.path or "\0" in file.path or not path.parts or path.is_absolute():
            raise PlanError("files", f"{file.path!r} is not a relative path")
        if ".." in path.parts or ":" in path.parts[0]:
            raise PlanError("files", f"{file.path!r} leads out of the folder")
        place = root
        for part in path.parts:
            place = place / part
            if place.is_symlink():
                raise PlanError("files", f"{file.path!r} leads through a symbolic link")
        if place in places.values():
            raise PlanError("files", f"{file.path!r} is there twice")
        if place.exists() and not place.is_file():
            raise PlanError("files", f"{file.path!r} is there already and is not a file")
        places[file.path] = place
    return places


def _content(place: Path) -> bytes | None:
    """What lies at `place`; None when nothing readable does. Of what is far larger than any file of ours, the
    beginning."""
    try:
        with open_regular(place, "files") as file:
            return file.read(_MOST_BYTES)
    except PlanError:
        return None


def _change(old: bytes | None, new: bytes) -> str:
    """How much of a file would be replaced, in words."""
    try:
        before, after = (old or b"").decode().splitlines(), new.decode().splitlines()
    except UnicodeDecodeError:
        return "not text"
    if max(len(before), len(after)) > _MOST_COMPARED:
        return f"{len(before)} lines to {len(after)}"
    # The first two lines of a difference name the files.
    lines = list(difflib.unified_diff(before, after, n=0))[2:]
    signs = [line[0] for line in lines if not line.startswith("@@ ")]
    return f"-{signs.count('-')} +{signs.count('+')} lines" if signs else "other line ends"
