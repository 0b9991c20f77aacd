"""ShellCheck takes the script of a benchmark matrix, for every scheduler and with hostile names."""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import Ask

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "launchers"))

from launch_plans import PREDICTION, complete, devices  # pyright: ignore[reportMissingImports]

from launchers.matrix import SCHEDULERS, SCRIPT, Cell, matrix_files
from launchers.pieces import File

HOSTILE = 'it\'s $(touch x) ${HOME} "b" `c` # {d: e}\n---\n*'


def script(scheduler: str, name: str, why: str | None) -> str:
    cells = [
        Cell("meta-llama/Llama-3.1-8B", "h100-sxm", name, complete(devices(count)), why, {}, PREDICTION)
        for count in (2, 8, 16)
    ]
    cells.append(Cell(name, name, name, None, why or "no layout", {}))
    files: tuple[File, ...] = matrix_files(cells, scheduler, 20, {"name": name})[0].files
    return next(file.text for file in files if file.path == SCRIPT)


def test_shellcheck_takes_the_script(ask: Ask):
    texts = [script(name, "balanced", None) for name in SCHEDULERS]
    texts += [script(name, HOSTILE, HOSTILE) for name in SCHEDULERS]
    broken = [texts[0].replace('cd "$1"', "cd $1"), texts[0].replace("done\n", "", 1)]
    assert not set(broken) & set(texts)
    questions = [{"check": "shellcheck", "text": text} for text in [*texts, *broken]]
    answers = ask("schedulers", "schedulers", questions)
    assert [one["error"] for one in answers[: len(texts)]] == [None] * len(texts)
    assert all(one["error"] for one in answers[len(texts) :])
