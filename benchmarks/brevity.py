"""How many words an answer has at first, before anybody asks for its details.

`python benchmarks/brevity.py [--all] [--show N] [FILE ...]` goes through conversations of tests/data as the offline
planner answers them, and prints for each file the distinct answers, the median and the ninth decile of words, and the
most lines, as a screen of 80 columns has them before the fold. Without files: one conversation of each file; `--all`
goes through all of them, `--show N` prints the N longest of each file. tests/agent/test_agent_brevity.py holds to its
limits what tests/agent/scored_sets.py goes through.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agent")]

import scoring  # noqa: E402 # pyright: ignore[reportMissingImports]

from pages.rendering.first_lines import held  # noqa: E402
from pages.rendering.fold import folded  # noqa: E402
from pages.rendering.prose import laid_out  # noqa: E402

FILES = sorted([*DATA.glob("questions*.yaml"), *DATA.glob("threads*.yaml")])
WIDTH = 80
_FILE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S*\w\S*")


def words(text: str) -> int:
    """Rules and bars of a table are no words; a file that was asked for is no prose."""
    return len(_WORD.findall(_FILE.sub("", text)))


def lines(text: str) -> int:
    """Lines of a screen that say something; the rule under a table's head says nothing."""
    return sum(bool(_WORD.search(line)) for line in laid_out(_FILE.sub("", text), WIDTH, False).splitlines())


def leads(file: Path, most: int | None = None) -> list[tuple[scoring.Said, str]]:
    """Each turn of the first conversations, or of all, and what is told of it at first; a text that was told before is
    left out."""
    turns: list[scoring.Said] = []
    for conversation in scoring.conversations(file)[:most]:
        with scoring.home():
            turns += scoring.talk([turn["say"] for turn in conversation])
    return leads_of(turns)


def leads_of(turns: Iterable[scoring.Said]) -> list[tuple[scoring.Said, str]]:
    told: dict[str, scoring.Said] = {}
    for turn in turns:
        told.setdefault(folded(held(turn.answer)).lead, turn)
    return [(turn, text) for text, turn in told.items()]


def decile(values: Sequence[int]) -> float:
    """The ninth; of one value that."""
    return statistics.quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--show", type=int, default=0)
    chosen = parser.parse_args()
    files = [Path(name) for name in chosen.files] or FILES
    most = None if chosen.all or chosen.files else 1
    print(f"{'file':36}{'answers':>8}{'median':>8}{'p90':>8}{'lines':>8}")
    every: list[str] = []
    for file in files:
        told = [text for _, text in leads(file, most)]
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
