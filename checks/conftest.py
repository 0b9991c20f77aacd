"""Asks the real programs whether they take our files: each in an environment of its own, made on first use.

`ask("train", "llamafactory", questions)` asks checks/programs/llamafactory.py (see answering.py), with the Python of
the environment checks/environments/train.txt (its lines are what pip installs, one step a line) below .venv-programs/.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HOME = Path(os.environ.get("SHARDWISE_PROGRAMS") or HERE.parent / ".venv-programs")
Ask = Callable[..., list[dict[str, Any]]]


@contextmanager
def _alone(name: str) -> Iterator[None]:
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _interpreter(version: str | None) -> str:
    """A Python of at least `version` ('3.12'), this one where it is enough; skips the check where there is none."""
    if version is None:
        return sys.executable
    least = tuple(map(int, version.split(".")))
    homes = sorted(Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/3.*/bin/python"))
    for found in (sys.executable, f"python{version}", "python3.13", "python3.14", *map(str, homes)):
        asked = shutil.which(found)
        if asked and _version(asked) >= least:
            return asked
    pytest.skip(f"there is no Python {version} or newer here")


def _version(python: str) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0,)


def python_of(environment: str) -> Path:
    """The interpreter of an environment, which is made where it is missing or its list has changed."""
    text = (HERE / "environments" / f"{environment}.txt").read_text()
    folder = HOME / environment
    steps = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    needed = re.search(r"^# Python (3\.\d+) or newer", text, re.M)
    python = folder / "bin" / "python"
    # Of the list alone: by another name, as through a link, a folder is the one that was made.
    done = folder / f".made-{hashlib.sha256(repr(steps).encode()).hexdigest()[:12]}"
    with _alone(environment):
        if not done.exists():
            subprocess.run([_interpreter(needed and needed[1]), "-m", "venv", "--clear", str(folder)], check=True)
            for step in steps:
                install = [
                    str(python),
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--no-compile",
                    "--disable-pip-version-check",
                    *(word.replace("{folder}", str(folder)) for word in step),
                ]
                made = subprocess.run(install, capture_output=True, text=True, check=False)
                assert made.returncode == 0, f"pip install {' '.join(step)}: {made.stderr[-2000:]}"
            done.touch()
    return python


@pytest.fixture(scope="session")
def ask() -> Ask:
    """The answers of a script of checks/programs to a list of questions."""

    def asked(environment: str, script: str, questions: list[dict[str, Any]], **variables: str) -> list[dict[str, Any]]:
        python = python_of(environment)
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        done = subprocess.run(
            # -P: nothing beside the checks may stand for a package of the program.
            [str(python), "-P", str(HERE / "answering.py"), script],
            input=json.dumps(questions),
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            env=keep | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"} | variables,
        )
        assert done.returncode == 0, f"{script}: {done.stderr[-3000:]}"
        answers = json.loads(done.stdout.strip().splitlines()[-1])
        assert len(answers) == len(questions), script
        return answers

    return asked
