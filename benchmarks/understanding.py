"""How well people's own words are understood: each author's conversations read by weights that never saw them.

`python benchmarks/understanding.py [--every N] [FILE ...]` leaves one file of labelled conversations out, learns the
classifiers from the others, goes through the one that was left out (each Nth conversation of it) from words to tool
calls, and prints the shares of tools and values that were those that were meant (tests/agent/scoring.py). Without
files: every file of tests/data, which takes most of an hour on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
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


def left_out(file: Path, every: int) -> dict[str, float]:
    """The shares of a file whose author nothing was learnt from."""
    weights = train(list(examples(other for other in files() if other != file)))
    act.trained = lambda: weights
    return scoring.run(file, planner=step, every=every)[0]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--every", type=int, default=1)
    asked.add_argument("files", nargs="*", type=Path)
    named = asked.parse_args()
    chosen = [file.resolve() for file in named.files] or files()
    print(f"{'author':28}{'turns':>7}{'tools':>8}{'values':>8}{'made up':>9}")
    shares: list[dict[str, float]] = []
    for file in chosen:
        started = time.monotonic()
        found = left_out(file, named.every)
        shares.append(found)
        name = file.stem.removeprefix("questions").strip("_") or "first"
        row = f"{name:28}{found['turns']:7.0f}{found['tool']:8.1%}{found['values']:8.1%}{found['invented']:9.0f}"
        print(f"{row}   {time.monotonic() - started:.0f} s", flush=True)
    tools, values = ([one[key] for one in shares] for key in ("tool", "values"))
    print(f"{'mean':28}{'':7}{sum(tools) / len(tools):8.1%}{sum(values) / len(values):8.1%}")
    print(f"{'worst':28}{'':7}{min(tools):8.1%}{min(values):8.1%}")


if __name__ == "__main__":
    main()
