"""Puts a set of files into a folder, all of them or none.

It is a program of its own too, of the standard library alone: whoever asks for a set hands all of it over and may be
killed at any moment; what was not handed over whole is not begun, and what was is brought to its end. Where this
program is killed as well, a journal says what it had begun, and whoever writes or starts next undoes it, or ends it
where files may have been moved to their places (`settle`). Systems without nameless files (all but Linux) have none.

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
# Ends of the names of journals: of a set that is undone if it is left, and of one that is ended.
_BEGUN, _READY = ".begun", ".ready"


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

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)

    def unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.at(name), **self.beside)


@dataclass
class _Journal:
    """What is known of a set on its way while its program may be killed; locked for as long as that one lives."""

    folder: _Folder
    name: str
    handle: int

    def state(self, ending: str) -> None:
        name = os.path.splitext(self.name)[0] + ending
        self.folder.replace(self.name, name)
        self.name = name

    def close(self, *, is_over: bool) -> None:
        if is_over:
            self.folder.unlink(self.name)
        os.close(self.handle)
        self.folder.close()


@dataclass
class _Work:
    """A set on its way: the mark in its hidden names, the path to its folder, that path while the folder is new and
    hidden, the folders that are open, those that were made (in what, by which name), and the files as (folder, final
    name, name of the finished new content, name of what it replaces, or None)."""

    tag: str
    parts: list[str]
    folders: dict[tuple[str, ...], _Folder] = field(default_factory=dict)
    made: list[tuple[_Folder, str]] = field(default_factory=list)
    staged: list[tuple[_Folder, str, str, str | None]] = field(default_factory=list)
    done: int = 0

    @property
    def hidden(self) -> list[str]:
        """A folder that is new is filled under another name, and appears at once."""
        return [f".{self.parts[0]}.{self.tag}.new", *self.parts[1:]] if self.parts else []

    def is_hidden(self) -> bool:
        outer = self.folders[()]
        with contextlib.suppress(FileNotFoundError):
            return stat.S_ISDIR(os.stat(outer.at(self.hidden[0]), follow_symlinks=False, **outer.beside).st_mode)
        return False

    def add(self, folder: _Folder, name: str, *, is_there: bool) -> tuple[str, str]:
        """A file of the set; (name of its new content, name of the old)."""
        new, old = f".{name}.{self.tag}.new", f".{name}.{self.tag}.old"
        self.staged.append((folder, name, new, old if is_there else None))
        return new, old

    def close(self) -> None:
        for folder in self.folders.values():
            folder.close()


def handed_over(base: str, parts: list[str], files: list[Placed], journals: str) -> None:
    """`place` by a process of its own, which ends its work whatever becomes of this one. Raises OSError."""
    told = {
        "base": base,
        "parts": parts,
        "files": [[each.path, base64.b64encode(each.content).decode(), each.executable] for each in files],
        "journals": journals,
    }
    message = json.dumps(told).encode()
    command = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen(command, start_new_session=True, **pipes)  # type: ignore[call-overload]
    except OSError:
        # No room for another process: the work is done here, as well as it can be.
        place(base, parts, files, journals)
        return
    answer, _ = process.communicate(len(message).to_bytes(_LENGTH_BYTES, "big") + message)
    problem = json.loads(answer) if answer else [0, "the writing program ended early"]
    if problem:
        raise OSError(*problem)


def place(base: str, parts: list[str], files: list[Placed], journals: str = "") -> None:
    """Puts `files` into the folder `parts` below `base`, which is there. Raises OSError, with everything as it was.

    `journals` is the user's own folder where a journal is kept meanwhile, made where missing; '' for none.
    """
    work = _Work(secrets.token_hex(6), parts)
    work.folders[()] = outer = _opened(None, base, _DIRECTORY)
    handles: list[int | None] = []
    journal: _Journal | None = None
    is_over = False
    try:
        # What takes long is done on files that have no name yet: of these nothing can be left.
        for file in files:
            handles.append(_nameless(outer, file))
        journal = _begun(work, base, [file.path for file in files], journals)
        for file, handle in zip(files, handles, strict=True):
            *inner, name = file.path.split("/")
            _stage(work, _folder(work, (*work.hidden, *inner)), name, file, handle)
        try:
            if journal:
                journal.state(_READY)
            _finish(work)
        except BaseException:
            _unfinish(work)
            if journal:
                journal.state(_BEGUN)
            raise
    except BaseException:
        _clear(work)
        is_over = True
        raise
    else:
        _drop_old(work)
        is_over = True
        _synchronise(work)
    finally:
        if journal:
            journal.close(is_over=is_over)
        work.close()
        for handle in handles:
            if handle is not None:
                os.close(handle)


def settle(journals: str) -> None:
    """Ends or undoes the sets whose program was killed, by what is told in the folder `journals`. What cannot be
    settled now (its folder is not to be had) is kept for later."""
    try:
        names = [name for name in os.listdir(journals) if name.endswith((_BEGUN, _READY))]
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            _settle(journals, name)


def _settle(journals: str, name: str) -> None:
    import fcntl

    folder = _opened(None, journals, _DIRECTORY)
    journal = _Journal(folder, name, os.open(folder.at(name), os.O_RDONLY | _NO_LINKS, **folder.beside))
    is_over = False
    try:
        fcntl.flock(journal.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not folder.exists(name):
            return  # its program has just ended, or gone on
        with open(journal.handle, "rb", closefd=False) as stream:
            told = json.loads(stream.read())
        work = _Work(told["tag"], told["parts"])
        try:
            _reopen(work, told)
            if not name.endswith(_READY) or not _is_finished(work):
                _clear(work)
        finally:
            work.close()
        is_over = True
    finally:
        journal.close(is_over=is_over)


def _begun(work: _Work, base: str, paths: list[str], journals: str) -> _Journal | None:
    """A journal of the work that begins, locked; None where there can be none."""
    if not journals:
        return None
    inner = sorted({tuple(path.split("/")[:end]) for path in paths for end in range(1, path.count("/") + 1)})
    new = [[*work.hidden, *way] for way in inner if work.parts or not os.path.lexists(os.path.join(base, *way))]
    if work.parts:
        new = [work.hidden[:end] for end in range(1, len(work.hidden) + 1)] + new
    told = {"tag": work.tag, "base": base, "parts": work.parts, "paths": paths, "new": new}
    with contextlib.suppress(OSError, ImportError, NotImplementedError):
        import fcntl

        os.makedirs(journals, mode=0o700, exist_ok=True)
        folder = _opened(None, journals, _DIRECTORY)
        handle = _nameless(folder, Placed("", json.dumps(told).encode()))
        if handle is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _named(folder, work.tag + _BEGUN, handle):
                return _Journal(folder, work.tag + _BEGUN, handle)
            os.close(handle)
        if folder.handle is not None:
            os.close(folder.handle)
    return None


def _reopen(work: _Work, told: dict[str, list[str]]) -> None:
    """The work that a journal tells of, as far as it is there still."""
    work.folders[()] = _opened(None, str(told["base"]), _DIRECTORY)
    for way in told["new"]:
        with contextlib.suppress(FileNotFoundError):
            work.made.append((_existing(work, tuple(way[:-1])), way[-1]))
    for path in told["paths"]:
        *inner, name = path.split("/")
        with contextlib.suppress(FileNotFoundError):
            work.add(_existing(work, (*work.hidden, *inner)), name, is_there=True)


def _finish(work: _Work) -> None:
    """Moves what is staged to its place: what has its hidden name still. May be done again."""
    for folder, name, new, _ in work.staged:
        if folder.exists(new):
            folder.replace(new, name)
        work.done += 1
    outer = work.folders[()]
    if work.parts and work.is_hidden():
        outer.rename(work.hidden[0], work.parts[0])


def _drop_old(work: _Work) -> None:
    """Removes the names of what was replaced, all at once: what takes long is to free the files, which are held open
    till then (ext4: 3 ms each, in which whoever looks sees them)."""
    held: list[int] = []
    named = [(folder, old) for folder, _, _, old in work.staged if old]
    if os.name == "posix":
        for folder, old in named:
            with contextlib.suppress(OSError):
                held.append(os.open(folder.at(old), os.O_RDONLY | _NO_LINKS | os.O_NONBLOCK, **folder.beside))
    for folder, old in named:
        folder.unlink(old)
    for handle in held:
        os.close(handle)


def _synchronise(work: _Work) -> None:
    """Some file systems cannot, and lose nothing by it."""
    for folder in work.folders.values():
        if folder.handle is not None:
            with contextlib.suppress(OSError):
                os.fsync(folder.handle)


def _is_finished(work: _Work) -> bool:
    """Whether a set that was left could be ended: not where another folder is by now where a new one was to appear.
    Raises OSError where it is to be tried again."""
    try:
        _finish(work)
    except OSError:
        if not work.parts:
            raise
        _unfinish(work)
        return False
    _drop_old(work)
    return True


def _unfinish(work: _Work) -> None:
    """Back to what was staged, so that at every moment `_finish` could be done again."""
    for folder, name, new, old in work.staged[: work.done]:
        with contextlib.suppress(OSError):
            folder.replace(name, new)
            if old:
                folder.replace(old, name)


def _clear(work: _Work) -> None:
    """Removes what was made under hidden names, and the folders, as far as the file system lets it."""
    _drop_old(work)
    for folder, _, new, _ in work.staged:
        folder.unlink(new)
    for outer, name in reversed(work.made):
        with contextlib.suppress(OSError):
            os.rmdir(outer.at(name), **outer.beside)


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
    return _existing(work, parts)


def _existing(work: _Work, parts: tuple[str, ...]) -> _Folder:
    """The folder, open. Raises FileNotFoundError."""
    if parts not in work.folders:
        work.folders[parts] = _opened(_existing(work, parts[:-1]), parts[-1], _DIRECTORY | _NO_LINKS)
    return work.folders[parts]


def _stage(work: _Work, folder: _Folder, name: str, file: Placed, handle: int | None) -> None:
    """The new content, and the old one once more, under names of their own beside the final one."""
    is_there = folder.exists(name)
    new, old = work.add(folder, name, is_there=is_there)
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
        place(told["base"], told["parts"], files, told["journals"])
    except OSError as error:
        problem = [error.errno or 0, error.strerror or str(error)]
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(problem))
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
