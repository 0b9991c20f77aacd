"""Runs the small programs that know a machine: nvidia-smi, amd-smi, sysctl. None of them may stop us or keep us."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Sequence

Ask = Callable[[Sequence[str]], "str | None"]
"""What a command printed; None where it is not there, fails or does not come back."""
_PATIENCE_S = 15.0


def printed(command: Sequence[str], patience_s: float = _PATIENCE_S) -> str | None:
    """What `command` printed; None where it is not there, fails or takes longer than `patience_s`."""
    program = shutil.which(command[0])
    if program is None:
        return None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience_s,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout.decode(errors="replace")
    return None
