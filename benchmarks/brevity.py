"""How many words an answer has at first, before anybody asks for its details.

`python benchmarks/brevity.py [--all] [--show N] [FILE ...]` goes through conversations of tests/data as the offline
planner answers them, and prints for each file the turns, the median and the ninth decile of words, and the most lines.
Without files: a sample that takes seconds, which tests/agent/test_agent_brevity.py holds to its limits; `--all` goes
through every file, `--show N` prints the N longest of each.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agent")]

import scoring  # noqa: E402 # pyright: ignore[reportMissingImports]

from pages.rendering.fold import folded  # noqa: E402

SAMPLE = ("questions.yaml", "threads.yaml")
_FILE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S*\w\S*")


def words(text: str) -> int:
    """Rules and bars of a table are no words; a file that was asked for is no prose."""
    return len(_WORD.findall(_FILE.sub("", text)))


def lines(text: str) -> int:
    """Lines that say something; the rule under a table's head says nothing."""
    return sum(bool(_WORD.search(line)) for line in _FILE.sub("", text).splitlines())


def leads(file: Path, every: int = 1) -> list[tuple[scoring.Said, str]]:
    """Each turn that called a tool, of each `every`th conversation, and what is told of it at first."""
    told: list[tuple[scoring.Said, str]] = []
    for conversation in scoring.conversations(file)[::every]:
        with scoring.home():
            turns = list(scoring.talk([turn["say"] for turn in conversation]))
        told += [(turn, folded(turn.answer).lead) for turn in turns if turn.calls]
    return told


def decile(values: Iterable[int]) -> float:
    """The ninth."""
    return statistics.quantiles(values, n=10, method="inclusive")[-1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    chosen = parser.parse_args()
    named = [Path(name) for name in chosen.files] or [DATA / name for name in SAMPLE]
    files = sorted(DATA.glob("*.yaml")) if chosen.all else named
    print(f"{'file':36}{'answers':>8}{'median':>8}{'p90':>8}{'lines':>8}")
    every: list[str] = []
    for file in files:
        told = [text for _, text in leads(file)]
        every += told
        _row(file.stem, told)
        for text in sorted(told, key=words, reverse=True)[: chosen.show]:
            print(f"\n--- {words(text)} words\n{text}\n")
    if len(files) > 1:
        _row("all", every)


def _row(name: str, told: list[str]) -> None:
    counts = [words(text) for text in told]
    most = max(map(lines, told))
    print(f"{name:36}{len(told):8}{statistics.median(counts):8.0f}{decile(counts):8.0f}{most:8}", flush=True)


if __name__ == "__main__":
    main()
