"""Rows of one's own from the command line: from one line or a file, checked before any is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.cli import main


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_CONFIG", str(tmp_path / "own"))


def test_a_row_of_one_line_is_found_again(capsys: pytest.CaptureFixture[str]) -> None:
    price = ["provider=ACME", "instance=hopper-8", "accelerator=h100-sxm", "count=8", "usd_per_hour=17.6"]
    assert main(["prices", "add", *price, "price_date=2026-11-20"]) == 0
    assert main(["hardware", "add", "my-h100", "like=h100-sxm", "memory_gib=94"]) == 0
    capsys.readouterr()
    assert main(["prices", "acme"]) == 0
    assert "17.60" in capsys.readouterr().out
    assert main(["hardware", "my-h100"]) == 0


def test_no_row_of_a_file_is_written_where_one_is_wrong(tmp_path: Path) -> None:
    rows = tmp_path / "rows.yaml"
    rows.write_text("- {id: a1, like: h100-sxm}\n- {id: a2, like: zorg}\n")
    assert main(["hardware", "add", str(rows)]) == 2
    assert not list((tmp_path / "own").rglob("*.yaml"))


@pytest.mark.parametrize(
    "words", [["hardware", "add"], ["prices", "add", "provider=ACME"], ["models", "add", "a", "b", "c"]]
)
def test_what_is_no_row_is_refused(words: list[str]) -> None:
    assert main(words) == 2
