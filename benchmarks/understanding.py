"""How well people's own words are understood: each author's conversations read by weights that never saw them.

`python benchmarks/understanding.py [--groups N] [--every N] [FILE ...]` leaves a group of authors' files of labelled
conversations out, learns the classifiers from the others, goes through those that were left out (each Nth conversation
of them) from words to tool calls, and prints the shares of tools and values that were those that were meant
(tests/agent/scoring.py). Without files: every file of tests/data. As many groups as files leave one author out at a
time, which takes hours on one core; six groups leave more out each time, in an hour.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "agent")]

import scoring  # noqa: E402 # pyright: ignore[reportMissingImports]

from agent.offline.language import act  # noqa: E402
from agent.offline.language.train import examples, train  # noqa: E402
from agent.offline.planner import step  # noqa: E402


def files() -> list[Path]:
    """Labelled conversations, by author or group of authors."""
    return sorted(DATA.glob("questions*.yaml"))


def learnt_without(group: list[Path]) -> None:
    """Classifiers from all authors but a group's."""
    weights = train(list(examples(other for other in files() if other not in group)))
    act.trained = lambda: weights


def row(author: str, found: dict[str, float]) -> str:
    return f"{author:28}{found['turns']:7.0f}{found['tool']:8.1%}{found['values']:8.1%}{found['invented']:9.0f}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--groups", type=int, default=6)
    asked.add_argument("--every", type=int, default=1)
    asked.add_argument("files", nargs="*", type=Path)
    named = asked.parse_args()
    chosen = [file.resolve() for file in named.files] or files()
    print(f"{'author':28}{'turns':>7}{'tools':>8}{'values':>8}{'made up':>9}")
    shares: list[dict[str, float]] = []
    for group in (chosen[start :: named.groups] for start in range(min(named.groups, len(chosen)))):
        learnt_without(group)
        for file in group:
            shares.append(scoring.run(file, planner=step, every=named.every)[0])
            print(row(file.stem.removeprefix("questions").strip("_") or "first", shares[-1]), flush=True)
    tools, values = ([one[key] for one in shares] for key in ("tool", "values"))
    print(f"{'mean':28}{'':7}{sum(tools) / len(tools):8.1%}{sum(values) / len(values):8.1%}")
    print(f"{'worst':28}{'':7}{min(tools):8.1%}{min(values):8.1%}")


if __name__ == "__main__":
    main()
