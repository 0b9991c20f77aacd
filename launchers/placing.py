"""Puts a set of files into a folder, all of them or none.

It is a program of its own too, of the standard library alone: whoever asks for a set hands all of it over and may be
killed at any moment; what was not handed over whole is not begun, and what was is brought to its end.

Every folder is held open while files are put into it, and none is entered through a symbolic link, so that nobody can
lead a file elsewhere by changing the way to it meanwhile.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import stat
import subprocess
import sys
from dataclasses import dataclass, field

_BESIDE = os.open in os.supports_dir_fd
_LENGTH_BYTES = 8
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
# Where Linux shows what this process has open.
_OPEN_FILES = "/proc/self/fd"
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Placed:
    """A file: its path below the folder, and what is to lie there."""

    path: str
    content: bytes
    executable: bool = False


@dataclass(frozen=True)
class _Folder:
    """An open folder; where the system cannot work beside one (Windows), its path."""

    path: str
    handle: int | None

    def at(self, name: str) -> str:
        return name if self.handle is not None else os.path.join(self.path, name)

    @property
    def beside(self) -> dict[str, int]:
        return {} if self.handle is None else {"dir_fd": self.handle}

    def exists(self, name: str) -> bool:
        try:
            status = os.stat(self.at(name), follow_symlinks=False, **self.beside)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, f"{name} is there already and is not a file")
        return True

    def replace(self, source: str, destination: str) -> None:
        beside = {} if self.handle is None else {"src_dir_fd": self.handle, "dst_dir_fd": self.handle}
        os.replace(self.at(source), self.at(destination), **beside)

    def rename(self, source: str, destination: str) -> None:
        """Of a folder. Raises OSError where something is in that place."""
        beside = {} if self.handle is None else {"src_dir_fd": self.handle, "dst_dir_fd": self.handle}
        os.rename(self.at(source), self.at(destination), **beside)

    def unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.at(name), **self.beside)


@dataclass
class _Work:
    """A set on its way: the folders that are open, those that were made (in what, by which name), and the files as
    (folder, final name, name of the finished new content, name of what it replaces, or None)."""

    folders: dict[tuple[str, ...], _Folder] = field(default_factory=dict)
    made: list[tuple[_Folder, str]] = field(default_factory=list)
    staged: list[tuple[_Folder, str, str, str | None]] = field(default_factory=list)
    done: int = 0


def handed_over(base: str, parts: list[str], files: list[Placed]) -> None:
    """`place` by a process of its own, which ends its work whatever becomes of this one. Raises OSError."""
    told = {
        "base": base,
        "parts": parts,
        "files": [[each.path, base64.b64encode(each.content).decode(), each.executable] for each in files],
    }
    message = json.dumps(told).encode()
    command = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen(command, start_new_session=True, **pipes)  # type: ignore[call-overload]
    except OSError:
        # No room for another process: the work is done here, as well as it can be.
        place(base, parts, files)
        return
    answer, _ = process.communicate(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
    problem = json.loads(answer) if answer else [0, "the writing program ended early"]
    if problem:
        raise OSError(*problem)


def place(base: str, parts: list[str], files: list[Placed]) -> None:
    """Puts `files` into the folder `parts` below `base`, which is there. Raises OSError, with everything as it was."""
    work = _Work()
    work.folders[()] = outer = _opened(None, base, _DIRECTORY)
    # A folder that is new is filled under another name, and appears at once.
    hidden = [f".{parts[0]}.{secrets.token_hex(6)}.new", *parts[1:]] if parts else []
    handles: list[int | None] = []
    try:
        # What takes long is done on files that have no name yet: of these nothing can be left.
        for file in files:
            handles.append(_nameless(outer, file))
        for file, handle in zip(files, handles, strict=True):
            *inner, name = file.path.split("/")
            _stage(work, _folder(work, (*hidden, *inner)), name, file, handle)
        for folder, name, new, _ in work.staged:
            folder.replace(new, name)
            work.done += 1
        if parts:
            outer.rename(hidden[0], parts[0])
        for folder in work.folders.values():
            if folder.handle is not None:
                # Some file systems cannot, and lose nothing by it.
                with contextlib.suppress(OSError):
                    os.fsync(folder.handle)
    except BaseException:
        _undo(work)
        raise
    else:
        for folder, _, _, old in work.staged:
            if old:
                folder.unlink(old)
    finally:
        for handle in (*handles, *(folder.handle for folder in work.folders.values())):
            if handle is not None:
                os.close(handle)


def _nameless(folder: _Folder, file: Placed) -> int | None:
    """A file with that content and no name; None where the system has no such files."""
    flags = getattr(os, "O_TMPFILE", 0)
    if not flags or not os.path.isdir(_OPEN_FILES):
        return None
    try:
        handle = os.open(".", os.O_WRONLY | flags, 0o777 if file.executable else 0o666, **folder.beside)
    except OSError:
        return None
    try:
        _fill(handle, file.content)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _fill(handle: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
    os.fsync(handle)


def _opened(folder: _Folder | None, name: str, flags: int) -> _Folder:
    path = name if folder is None else os.path.join(folder.path, name)
    if not _BESIDE:
        return _Folder(path, None)
    handle = os.open(name, os.O_RDONLY | flags, **({} if folder is None else folder.beside))
    return _Folder(path, handle)


def _folder(work: _Work, parts: tuple[str, ...]) -> _Folder:
    """The folder, open, made with those on the way where missing."""
    if parts not in work.folders:
        outer = _folder(work, parts[:-1])
        try:
            os.mkdir(outer.at(parts[-1]), **outer.beside)
            work.made.append((outer, parts[-1]))
        except FileExistsError:
            pass
        work.folders[parts] = _opened(outer, parts[-1], _DIRECTORY | _NO_LINKS)
    return work.folders[parts]


def _stage(work: _Work, folder: _Folder, name: str, file: Placed, handle: int | None) -> None:
    """The new content, and the old one once more, under names of their own beside the final one."""
    tag = secrets.token_hex(6)
    new, old = f".{name}.{tag}.new", f".{name}.{tag}.old"
    is_there = folder.exists(name)
    work.staged.append((folder, name, new, old if is_there else None))
    if handle is None or not _named(folder, new, handle):
        # Opened with the final mode, so that the user's umask applies; never through something that is there already.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS | getattr(os, "O_BINARY", 0)
        made = os.open(folder.at(new), flags, 0o777 if file.executable else 0o666, **folder.beside)
        try:
            _fill(made, file.content)
        finally:
            os.close(made)
    if is_there:
        _keep(folder, name, old)


def _named(folder: _Folder, name: str, handle: int) -> bool:
    """Gives a nameless file its name; False where the folder is on another device or the system does not."""
    try:
        os.link(f"{_OPEN_FILES}/{handle}", name, dst_dir_fd=folder.handle, follow_symlinks=True)
    except (OSError, NotImplementedError):
        return False
    return True


def _keep(folder: _Folder, name: str, old: str) -> None:
    """A second name of a file, or a copy where the file system has no second names."""
    beside = {} if folder.handle is None else {"src_dir_fd": folder.handle, "dst_dir_fd": folder.handle}
    try:
        os.link(folder.at(name), folder.at(old), follow_symlinks=False, **beside)
    except (OSError, NotImplementedError):
        source = os.open(folder.at(name), os.O_RDONLY | _NO_LINKS, **folder.beside)
        with os.fdopen(source, "rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            copy = os.open(folder.at(old), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode, **folder.beside)
            with os.fdopen(copy, "wb") as target:
                while block := stream.read(1 << 20):
                    target.write(block)


def _undo(work: _Work) -> None:
    """Puts back what was replaced and removes what was made, as far as the file system lets it."""
    for index, (folder, name, new, old) in enumerate(work.staged):
        with contextlib.suppress(OSError):
            if index < work.done and old:
                folder.replace(old, name)
            elif index < work.done:
                folder.unlink(name)
        folder.unlink(new)
        if old:
            folder.unlink(old)
    for outer, name in reversed(work.made):
        with contextlib.suppress(OSError):
            os.rmdir(outer.at(name), **outer.beside)


def _serve() -> None:
    """One set from standard input; '[]' to standard output, or the number and words of what went wrong."""
    length = int.from_bytes(sys.stdin.buffer.read(_LENGTH_BYTES), "big")
    message = sys.stdin.buffer.read(length)
    if not length or len(message) < length:
        return  # whoever asked is no more
    told = json.loads(message)
    problem: list[object] = []
    try:
        files = [Placed(path, base64.b64decode(content), executable) for path, content, executable in told["files"]]
        place(told["base"], told["parts"], files)
    except OSError as error:
        problem = [error.errno or 0, error.strerror or str(error)]
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(problem))
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
