"""Rows of one's own from the command line: from one line or a file, checked before any is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knowledge.machines.catalogue import own_accelerators
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


def test_a_row_is_one_line_and_options_stand_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    line = "instance=nb-h200-8 provider='Our own hall' accelerator=h200-sxm count=8 usd_per_hour=22.4"
    assert main(["prices", "add", "--overwrite", line]) == 0
    capsys.readouterr()
    assert main(["prices", "nb-h200-8", "--json"]) == 0
    assert [row["provider"] for row in json.loads(capsys.readouterr().out)] == ["Our own hall"]
    config = {"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
              "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936}  # fmt: skip
    for line in (["me/tiny", json.dumps(config)], ["id=me/tiny", f"config={json.dumps(config)}"]):
        assert main(["models", "add", "--overwrite", *line]) == 0
    assert main(["prices", "add", "instance='x provider=y"]) == 2
    assert "No closing quotation" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["hardware", "add"], ["prices", "add", "provider=ACME"], ["models", "add", "a", "b", "c"]]
)
def test_what_is_no_row_is_refused(words: list[str]) -> None:
    assert main(words) == 2


def test_a_table_is_rows_and_a_bad_one_writes_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("# mine\nid,like,memory_gib\nmy-a,h100-sxm,94\nmy-b,h100-sxm,\n", encoding="utf-8")
    assert main(["hardware", "add", str(table)]) == 0
    assert {"my-a", "my-b"} <= set(own_accelerators())
    for cells, named in (("my-c,h100-sxm,94,5", "row 1"), ("my-c,h100-sxm,lots", "memory_gib"), ("", "row")):
        table.write_text(f"id,like,memory_gib\n{cells}\n", encoding="utf-8")
        assert main(["hardware", "add", str(table)]) == 2
        assert named in capsys.readouterr().err
    assert "my-c" not in own_accelerators()


def test_a_row_in_words_is_told_how_rows_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hardware", "add", "my-x200, 192 GB, 6.4 TB/s"]) == 2
    assert "name=value" in capsys.readouterr().err


def test_what_is_wrong_with_a_row_of_several_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "rows.csv"
    head = "provider,instance,accelerator,count,usd_per_hour,price_date\n"
    table.write_text(f"{head}Zed,a,h200-sxm,8,22,2026-11-01\nZed,b,h200-sxm,8,22,2999-01-01\n", encoding="utf-8")
    assert main(["prices", "add", str(table)]) == 2
    assert "row 2: price_date: 2999-01-01 is still to come" in capsys.readouterr().err


def test_prices_are_listed_by_provider_and_region(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prices", "--provider", "nebius", "--region", "eu-north", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows
    assert {(row["provider"], row["region"]) for row in rows} == {("Nebius", "eu-north1")}
    assert main(["prices", "--provider", "zorg"]) == 2
