"""Where the user's own files are: saved plans, and rows for the catalogue; reading and writing them safely.

Data (sessions, scenarios) is in one folder: SHARDWISE_DATA, else SHARDWISE_HOME, else the platform's. Rows are YAML
files in hardware/, models/ and prices/ below the user's configuration folder (SHARDWISE_HOME, else the platform's) and
below ./.shardwise, the nearer of which wins; SHARDWISE_CONFIG names the one folder to take instead of both.

Rows below ./.shardwise may be anybody's, as those of a repository that was cloned: they count once the person has said
that they trust the folder, for as long as its files stay as they were then.

Where a team has a database, scenarios and rows are in it instead, under paths of their own (knowledge.own.database).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import secrets
import stat
import tempfile
import unicodedata
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

from estimator.errors import PlanError, unreadable
from knowledge.own import database, mappings
from knowledge.own.home import NOWHERE, expanded, platform_folder
from knowledge.own.mappings import quoted

if TYPE_CHECKING:
    from typing_extensions import Buffer

ROW_KINDS = ("hardware", "models", "prices")
PROJECT_FOLDER = ".shardwise"
_TRUSTS = "trusted.json"
CALIBRATION = "calibration.yaml"
HISTORY = "runs.sqlite"
LARGEST_BYTES = 1_000_000
_MOST_FILES = 2000
_LONGEST_NAME = 80
_WINDOWS = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})
_Made = TypeVar("_Made")
Stamp = tuple[tuple[str, int, int], ...]
"""Files with their time and size: equal stamps are equal files."""

# Whoever asks is elsewhere, and may have what is below this folder read to them ('': nothing). None: they are here.
ELSEWHERE: ContextVar[str | None] = ContextVar("elsewhere", default=None)

# Files that a row names (a config.json): their changes are changes of the row. Only ever added to.
_followed: dict[str, set[Path]] = {kind: set() for kind in ROW_KINDS}


def working_folder() -> Path:
    """The folder that one is in; where that was deleted, the path that it had, at which there is nothing."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD") or "/deleted")


def is_gone() -> bool:
    """Whether the working folder was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def refusal(error: OSError) -> str:
    """Why the system refused, with what helps."""
    known = {
        errno.ENOSPC: "the disk is full; make room",
        errno.EDQUOT: "your quota of the disk is used up; make room",
        errno.EROFS: "the file system is read-only; choose a folder elsewhere",
        errno.EACCES: "permission denied; choose a folder that you may write to",
        errno.EPERM: "permission denied; choose a folder that you may write to",
    }
    return known.get(error.errno or 0, error.strerror or str(error))


def may_read(path: Path) -> bool:
    """Whether whoever asks may have this file read to them."""
    below = ELSEWHERE.get()
    if not below:
        return below is None
    try:
        return path.resolve().is_relative_to(below)
    except (OSError, RuntimeError, ValueError):
        return False


def data_folder() -> Path:
    """The folder for the user's data, made with access for the user alone. Raises PlanError where it cannot be."""
    folder = _data_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        problem = f"{folder} cannot be used: {refusal(error)}"
        if folder == NOWHERE:
            problem = "this user has no home folder to keep data in"
        raise PlanError(data_field(), problem, ["SHARDWISE_DATA=a folder that you may write to"]) from None
    return folder


def data_field() -> str:
    """What errors name the data folder by: the variable that says where it is, if one does."""
    return _data_variable() or "data folder"


def scenario_folder() -> Path:
    """Where the user's scenarios are kept; it may not be there yet."""
    return database.folder("scenarios") if database.address() else _data_folder() / "scenarios"


def scenario_folders() -> tuple[Path, ...]:
    """Where scenarios are looked for, the user's own first."""
    return (scenario_folder(), *((database.shared_folder("scenarios"),) if database.address() else ()))


def user_folder() -> Path:
    """Where the user's rows are kept for all projects."""
    if folder := os.environ.get("SHARDWISE_CONFIG"):
        return expanded(folder).absolute()
    if home := os.environ.get("SHARDWISE_HOME"):
        return expanded(home).absolute()
    return platform_folder("config", os.environ.get("XDG_CONFIG_HOME"), os.environ.get("HOME"))


def begun_folder() -> Path:
    """Where it stands which sets of files are being written; empty but then, and where one was killed."""
    return user_folder() / "sets"


def own_folder() -> Path:
    """Where rows are kept that the user has for all projects: in the team's database, else in their folder."""
    return database.home() if database.address() else user_folder()


def project_folder() -> Path:
    """Where rows are kept for the project in the working folder."""
    if database.address() or os.environ.get("SHARDWISE_CONFIG"):
        return own_folder()
    return working_folder() / PROJECT_FOLDER


def trusted(folder: Path) -> bool:
    """Whether rows of a project's folder may be used: the user's own are, others after `trust`."""
    if folder == user_folder() or database.holds(folder):
        return True
    held = _digest(folder, _rows_stamp(folder))
    return not held or _trusts().get(str(folder)) == held


def trust(folder: Path) -> list[str]:
    """Uses the rows of a folder from here on, as they are now; returns its files. Raises PlanError."""
    files = [path for path, _, _ in _rows_stamp(folder)]
    if files:
        _keep_trusts({**_trusts(), str(folder): _digest(folder, _rows_stamp(folder))})
    return files


def distrust(folder: Path) -> None:
    """Uses the rows of a folder no longer. Raises PlanError."""
    _keep_trusts({path: digest for path, digest in _trusts().items() if path != str(folder)})


def _keep_trusts(trusts: dict[str, str]) -> None:
    path = user_folder() / _TRUSTS
    write_file(path, json.dumps(trusts, indent=1) + "\n", True, str(path))


def _trusts() -> dict[str, str]:
    """Folders, and the digests of what stood there when they were trusted; none where nobody said so."""
    path = user_folder() / _TRUSTS
    return _trusts_of(str(path), _stat(path))


@lru_cache(maxsize=4)
def _trusts_of(path: str, _state: Stamp) -> dict[str, str]:
    try:
        value = json.loads(read_text(Path(path)))
    except (PlanError, ValueError, RecursionError):
        return {}
    return {key: each for key, each in value.items() if isinstance(each, str)} if isinstance(value, dict) else {}


def _rows_stamp(folder: Path) -> Stamp:
    return tuple(row for kind in ROW_KINDS for row in _stamp_of(folder / kind))


@lru_cache(maxsize=16)
def _digest(folder: Path, files: Stamp) -> str:
    """Of the names and contents of the files; '' where there are none, which need no trust."""
    digest = hashlib.sha256()
    for path, _, _ in files:
        try:
            text = read_text(Path(path))
        except PlanError as error:
            text = error.problem
        digest.update(json.dumps([str(Path(path).relative_to(folder)), text]).encode())
    return digest.hexdigest() if files else ""


_PLACES = ("SHARDWISE_CONFIG", "SHARDWISE_HOME", "XDG_CONFIG_HOME", "HOME")


def row_folders(kind: str) -> tuple[Path, ...]:
    """Where rows of a kind are, the nearer last."""
    if database.address():
        return database.shared_folder(kind), database.folder(kind)
    return _row_folders(kind, str(working_folder()), *map(os.environ.get, _PLACES))


@lru_cache(maxsize=64)
def _row_folders(kind: str, *_surroundings: str | None) -> tuple[Path, ...]:
    """The same for a working folder and variables, on which they depend."""
    return tuple(dict.fromkeys([user_folder() / kind, project_folder() / kind]))


# Stamps taken so far by what looks at the user's files once, and what was made of what these hold.
_looked: ContextVar[dict[Hashable, Any] | None] = ContextVar("looked", default=None)


@contextlib.contextmanager
def shipped_alone() -> Iterator[None]:
    """Within it nobody's own rows count, in this process and those that it starts."""
    before = os.environ.get("SHARDWISE_CONFIG")
    with tempfile.TemporaryDirectory(prefix="shardwise-") as empty:
        os.environ["SHARDWISE_CONFIG"] = empty
        looked = _looked.set(None)
        try:
            yield
        finally:
            _looked.reset(looked)
            if before is None:
                del os.environ["SHARDWISE_CONFIG"]
            else:
                os.environ["SHARDWISE_CONFIG"] = before


@contextlib.contextmanager
def looked_at_once() -> Iterator[None]:
    """Within it files with the user's rows are looked at once: all parts of an answer see the same rows."""
    before = _looked.set({})
    try:
        with database.seen_once():
            yield
    finally:
        _looked.reset(before)


def stamp(kind: str) -> Stamp:
    """Of the files with the user's rows of a kind; () where there are none."""
    return made_once(kind, lambda: _stamp_now(kind))


def made_once(name: Hashable, make: Callable[[], _Made]) -> _Made:
    """What `make` gives of the rows that are seen, within `looked_at_once` what it gave for `name` first."""
    if (looked := _looked.get()) is None:
        return make()
    return looked[name] if name in looked else looked.setdefault(name, make())


def _stamp_now(kind: str) -> Stamp:
    stamps = [row for folder in row_folders(kind) for row in _stamp_of(folder)]
    stamps += _stat(user_folder() / _TRUSTS) if stamps else ()
    followed = [row for path in sorted(_followed[kind]) for row in _stat(path)] if stamps else []
    return (*stamps, *followed)


def stamp_of_all() -> tuple[Stamp, ...]:
    """Of every file that the answer of a tool can depend on."""
    with looked_at_once():
        saved = tuple(row for folder in scenario_folders() for row in _stamp_of(folder))
        runs = database.stamps(database.folder("runs")) if database.address() else _stat(_data_folder() / HISTORY)
        return (*(stamp(kind) for kind in ROW_KINDS), saved, runs, calibration_stamp())


def calibration_stamp() -> Stamp:
    """Of the file with factors that were fitted to the user's own runs."""
    return made_once(CALIBRATION, lambda: _stat(user_folder() / CALIBRATION))


def follow(kind: str, path: Path) -> None:
    """Makes the changes of `path` changes of the rows of a kind."""
    _followed[kind].add(path)


def written_at(path: Path) -> float | None:
    """When a file was written, in seconds since 1970; None where it is gone."""
    rows = _stamp_of(path.parent) if database.holds(path) else _stat(path)
    return next((moment / 1e9 for place, moment, size in rows if place == str(path) and size >= 0), None)


def yaml_files(folder: Path) -> list[Path]:
    """The .yaml files of a folder by name, hidden ones left out; none where the folder cannot be read."""
    return [Path(path) for path, _, _ in _stamp_of(folder)]


def read_text(path: Path, field: str | None = None, largest_bytes: int = LARGEST_BYTES) -> str:
    """The text of a file that stands on disk. Raises PlanError(field, else the path) for one that cannot be read, is
    larger than `largest_bytes`, or is no regular file: a device never ends, and a pipe waits for its writer."""
    field, name = field or str(path), f"{path} " if field else ""
    if database.holds(path):
        if (text := database.read(path)) is None:
            raise PlanError(field, f"{name}is not there any more")
        return text
    with open_regular(path, field) as file:
        content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise PlanError(field, f"{name}is larger than {largest_bytes // 1000} KB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError(field, f"{name}is not UTF-8 text") from None


class _RegularFile(io.FileIO):
    """A file whose reading may fail long after it was opened: a disk that breaks, a server that goes away."""

    def __init__(self, handle: int, field: str, subject: str) -> None:
        super().__init__(handle)
        self._field, self._subject = field, subject

    def readinto(self, buffer: Buffer, /) -> int | None:
        with self._refusing():
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with self._refusing():
            return super().readall()

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PlanError(self._field, f"{self._subject}cannot be read: {error.strerror or error}") from None


def open_regular(path: Path, field: str) -> BinaryIO:
    """A file that stands on disk, open for reading. Raises PlanError(field) for one that cannot be read, now or later,
    or is no regular file."""
    name = "" if field == str(path) else f"{path} "
    try:
        # Not waiting, so that the opening of a pipe returns and it can be looked at.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_dev in _of_the_kernel():
            os.close(handle)
            raise PlanError(field, f"{name}cannot be read: it is not a regular file")
        return io.BufferedReader(_RegularFile(handle, field, name))
    except PlanError:
        raise
    except OSError as error:
        raise PlanError(field, f"{name}cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise PlanError(field, "has a name that no file can have") from None


@lru_cache(maxsize=1)
def _of_the_kernel() -> frozenset[int]:
    """The file systems whose files stand on no disk: some never end, others wait."""
    mounted = [place for place in ("/proc", "/sys") if os.path.ismount(place)]
    return frozenset(os.stat(place).st_dev for place in mounted)


def read_stream(stream: TextIO, field: str, largest: int = LARGEST_BYTES) -> str:
    """What a person sends through a pipe or names as an argument, to its end. Raises PlanError(field) where it goes on
    beyond `largest` characters or is not text."""
    try:
        text = stream.read(largest + 1)
    except UnicodeDecodeError:
        raise PlanError(field, "is not UTF-8 text") from None
    if len(text) > largest:
        raise PlanError(field, f"is longer than {largest:,} characters")
    return text


def parsed(text: str, field: str) -> Any:
    """The value that YAML (or JSON) text holds. Raises PlanError(field), also for anchors: a few lines of them can
    stand for gigabytes."""
    import yaml

    if len(text) > LARGEST_BYTES:
        raise PlanError(field, f"is larger than {LARGEST_BYTES // 1000} KB")
    try:
        # YAML misreads JSON's pairs of \u escapes, so JSON is read as JSON.
        value = json.loads(text, object_pairs_hook=mappings.each_once) if text.lstrip().startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        value = None
    try:
        if value is None:
            mappings.refuse_events(yaml.parse(text, Loader=mappings.loader()), field)
            value = yaml.load(text, Loader=mappings.loader())
    except PlanError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise PlanError(field, f"is not readable YAML: {unreadable(error)[:300]}") from None
    mappings.refuse_odd(value, field)
    return value


def file_stem(name: str, field: str) -> str:
    """A file name (without its end) for a name that a person gave: letters and digits of any script, . _ and -, the
    same on every system. Raises PlanError for a name of which nothing is left."""
    if not isinstance(name, str) or "\0" in name or len(name) > 1000:
        raise PlanError(field, f"{quoted(name)} cannot be a name", ["e.g. llama-70b-128-gpus"])
    text = unicodedata.normalize("NFKC", name).casefold()
    stem = re.sub(r"-{2,}", "-", re.sub(r"[^\w.]+", "-", text)).strip("-._")
    stem = re.sub(r"\.{2,}", ".", stem)
    if not stem:
        raise PlanError(field, f"{quoted(name)} has no letter or digit that could name a file", ["e.g. my-plan"])
    if stem.partition(".")[0] in _WINDOWS:
        stem = f"plan-{stem}"
    # File names are limited in bytes; what is cut off stays told apart.
    if len(stem.encode()) > _LONGEST_NAME:
        mark = hashlib.sha256(text.encode()).hexdigest()[:8]
        stem = stem.encode()[: _LONGEST_NAME - 9].decode(errors="ignore").strip("-._") + f"-{mark}"
    return stem


def write_file(path: Path, text: str, overwrite: bool, field: str) -> None:
    """Puts `text` at `path` at once: others see the old file or the new one. Without `overwrite` a file that is there
    stays, also one that another program makes at this moment. Raises PlanError(field)."""
    if database.holds(path):
        database.write(path, text, overwrite, field)
        return
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(new, flags, 0o600), "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            if overwrite:
                os.replace(new, path)
            else:
                _place(new, path, text)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)
    except FileExistsError:
        # Also of a folder on the way that is a file.
        there = path.exists()
        problem = (
            "is there already; say overwrite to replace it" if there else "cannot be written: its folder is a file"
        )
        raise PlanError(field, f"{path} {problem}") from None
    except OSError as error:
        raise PlanError(field, f"{path} cannot be written: {refusal(error)}") from None


def remove_file(path: Path, field: str) -> None:
    if database.holds(path):
        database.remove(path, field)
        return
    try:
        path.unlink()
    except OSError as error:
        raise PlanError(field, f"{path} cannot be deleted: {refusal(error)}") from None


def _place(new: Path, path: Path, text: str) -> None:
    """Raises FileExistsError where `path` is there."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: the file is made here, and only here.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode())


def _data_variable() -> str | None:
    return next((name for name in ("SHARDWISE_DATA", "SHARDWISE_HOME") if os.environ.get(name)), None)


def _data_folder() -> Path:
    if name := _data_variable():
        return expanded(os.environ[name]).absolute()
    return platform_folder("data", os.environ.get("XDG_DATA_HOME"), os.environ.get("HOME"))


def _stamp_of(folder: Path) -> Stamp:
    if database.holds(folder):
        return database.stamps(folder)
    try:
        with os.scandir(folder) as entries:
            named = sorted(e.path for e in entries if e.name.endswith((".yaml", ".yml")) and not e.name.startswith("."))
    except OSError:
        return ()
    return tuple(row for path in named[:_MOST_FILES] for row in _stat(Path(path)))


def _stat(path: Path) -> Stamp:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return ((str(path), 0, -1),)
    return ((str(path), status.st_mtime_ns, status.st_size),)
