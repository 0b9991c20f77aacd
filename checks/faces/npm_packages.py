"""Packages of npm, each installed on first use below .venv-programs/node."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from conftest import HOME


@cache
def installed(package: str) -> Path:
    """The folder of all that is installed, with this package (`name@version`); skips the check where npm is missing."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    name, _, version = package.rpartition("@")
    folder = HOME / "node" / f"{name.rpartition('/')[2]}-{version}"
    if not (folder / "node_modules" / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-fund", "--no-audit", "--prefix", str(folder), package]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr[-2000:]
    return folder / "node_modules"
