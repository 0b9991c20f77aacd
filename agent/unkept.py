"""A folder for what is not kept: it goes with its process, and if that was killed, with the next one that needs one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks; there it goes with its process alone.
    fcntl = None

_PREFIX, _LOCK = "shardwise-unkept-", ".held"


def folders() -> tuple[Path, ...]:
    """Where such a folder may be, the best first: in memory where the system has that."""
    return Path("/dev/shm"), Path(tempfile.gettempdir())


def unkept(parent: Path) -> Path:
    """A new folder of this process alone. Raises OSError."""
    _clear(parent)
    place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    if fcntl is not None:
        # Open, and so held, for as long as the process is.
        fcntl.flock(os.open(place / _LOCK, os.O_CREAT | os.O_RDWR, 0o600), fcntl.LOCK_EX | fcntl.LOCK_NB)
    return place


def _clear(parent: Path) -> None:
    """Removes what processes of ours left that were killed: nobody holds it any more."""
    if fcntl is None:
        return
    for place in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if place.is_symlink() or place.stat().st_uid != os.getuid():
                continue
            handle = os.open(place / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(handle)
