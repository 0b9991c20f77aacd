"""docs/targets.md: every target, and the versions that the checks install."""

from __future__ import annotations

import re
from pathlib import Path

from launchers.targets import TARGETS

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (ROOT / "docs/targets.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| target", "| ---"))
]
PINNED = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "checks/environments").glob("*.txt")))


def test_the_page_has_every_target_once() -> None:
    assert sorted(row[0] for row in ROWS) == sorted(TARGETS)


def test_versions_that_were_tried_are_those_that_the_checks_install() -> None:
    for name, version, how, when in ROWS:
        assert re.fullmatch(r"2026-\d\d-\d\d|not by the program", when), name
        number = re.search(r" v?(\d+\.\d+\.\d+)$", version.split(",")[0])
        if how.startswith(("own code", "a run")) and number:
            assert f"=={number[1]}" in PINNED, (name, version)
        for build in re.findall(r"\bbuild (\d+)", how):
            assert f".{build}." in PINNED, (name, build)
