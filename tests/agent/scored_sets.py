"""The sets of questions, each gone through once, by whichever of pytest's workers comes to it first."""

from __future__ import annotations

import os
import pickle
import time
from functools import cache
from pathlib import Path

from samples import part
from scoring import DATA, Said, conversations, run

SETS = tuple(
    f"questions{name}.yaml"
    for name in (
        "",
        "_held_out",
        "_fresh",
        "_fresh_later",
        "_personas",
        "_passers_by",
        "_last_look",
        "_second_hand",
        "_voices",
        "_five_voices",
        "_other_authors",
        "_eleven_authors",
        "_hundred",
        "_sixty",
    )
)
# Each so many conversations of a set are gone through, of small sets more; `make fuzz` takes all.
EVERY, LEAST = part(20, 1), 8
# How long one worker waits for what another has begun.
_STARTED, _MOST_S = time.monotonic(), 1200.0


@cache
def every(name: str) -> int:
    """Which part of a set is gone through."""
    return max(1, min(EVERY, len(conversations(DATA / name)) // LEAST))


def scored_once(shared: Path) -> dict[str, tuple[dict[str, float], list[Said]]]:
    """The shares of each set and its turns; `shared` is a folder of all workers."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    shared.mkdir(exist_ok=True)
    for name in SETS if worker in ("", "gw0") else reversed(SETS):
        try:
            (shared / f"{name}.begun").touch(exist_ok=False)
        except FileExistsError:
            continue
        part = shared / f"{name}.part"
        part.write_bytes(pickle.dumps(run(DATA / name, every=every(name))))
        part.replace(shared / name)
    while missing := [name for name in SETS if not (shared / name).exists()]:
        assert time.monotonic() - _STARTED < _MOST_S, missing
        time.sleep(0.2)
    return {name: pickle.loads((shared / name).read_bytes()) for name in SETS}
