"""What a command shows of a result: its first lines, and all of it once, behind a key."""

from __future__ import annotations

from pages.answers.page import page_of
from tools.registry import find
from tui.result_page import page

_WIDTH = 100


def _result(name: str, **arguments: object):
    return find(name).run({"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, **arguments})


def _heads(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("LAYOUT", "SEQUENCE LENGTH"))]


def test_first_lines_have_a_table_and_details_have_it_whole_once() -> None:
    for name, more in (("best_parallelism", {}), ("sweep", {"field": "seq_len", "values": [4096, 8192]})):
        shown = page(_result(name, **more), _WIDTH, colour=False)
        first, whole = shown.first().plain, shown.whole().plain
        assert shown.folds
        assert first.splitlines()[0] == whole.splitlines()[0]
        assert len(first.splitlines()) < 14
        assert len(_heads(first)) == 1
        # Best layouts and those that nothing beats are two tables.
        assert len(_heads(whole)) == (2 if name == "best_parallelism" else 1)
        assert "┤" in whole or name != "sweep"
        assert "┤" not in first


def test_a_command_with_its_reasons_says_each_part_once() -> None:
    from pages.rendering.terminal import render

    for name in ("best_parallelism", "estimate_cost", "check_fit"):
        blocks = page_of(_result(name, dataset_tokens=1e9), _WIDTH)
        lines = [line for line in render(blocks, _WIDTH).splitlines() if line.startswith("- ")]
        assert len(set(lines)) == len(lines)
