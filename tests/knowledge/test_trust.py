"""Rows that came with a project's folder count once the person trusts it, and as long as it stays as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators, find_accelerator
from knowledge.models.known import models_left_out
from knowledge.own.files import distrust, project_folder, shipped_alone, trust, trusted
from tools import call
from tui.cli import main

CHIP = "id: their-chip\nlike: h100-sxm\nmemory_gib: 900\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SHARDWISE_CONFIG", raising=False)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    (tmp_path / "cloned" / ".shardwise" / "hardware").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "cloned")
    (tmp_path / "cloned" / ".shardwise" / "hardware" / "chip.yaml").write_text(CHIP)
    return tmp_path / "cloned"


def test_rows_of_a_cloned_folder_count_once_it_is_trusted(project: Path) -> None:
    with pytest.raises(PlanError, match="have not trusted"):
        find_accelerator("their-chip")
    assert trust(project_folder())
    assert find_accelerator("their-chip").value.id == "their-chip"
    distrust(project_folder())
    with pytest.raises(PlanError, match="have not trusted"):
        find_accelerator("their-chip")


def test_a_row_that_would_replace_one_of_the_catalogue_does_so_only_then(project: Path) -> None:
    (project / ".shardwise" / "hardware" / "chip.yaml").write_text(
        "id: h100-sxm\nlike: h100-sxm\nmemory_gib: 900\nreplaces: true\n"
    )
    fit = {"model": "llama-3.1-70b", "accelerator": "h100-sxm", "count": 1}
    result = call("check_fit", fit)
    assert result["memory"]["capacity_bytes"] < 100 * 2**30
    assert any("have not trusted" in warning for warning in result["warnings"])
    trust(project_folder())
    assert call("check_fit", fit)["memory"]["capacity_bytes"] > 800 * 2**30


def test_a_change_of_any_file_takes_the_trust_away(project: Path) -> None:
    trust(project_folder())
    (project / ".shardwise" / "models").mkdir()
    (project / ".shardwise" / "models" / "new.yaml").write_text("id: a/b\nconfig: config.json\n")
    assert not trusted(project_folder())


def test_what_the_person_adds_themselves_needs_no_second_word(project: Path) -> None:
    (project / ".shardwise" / "hardware" / "chip.yaml").unlink()
    call("add_hardware", {"id": "own-chip", "like": "h100-sxm", "where": "project"})
    assert find_accelerator("own-chip").value.id == "own-chip"
    (project / ".shardwise" / "hardware" / "chip.yaml").write_text(CHIP)
    call("add_hardware", {"id": "other-chip", "like": "h100-sxm", "where": "project"})
    assert not trusted(project_folder())


def test_the_command_shows_what_it_asks_about(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust"]) == 2
    assert "memory_gib: 900" in capsys.readouterr().err
    assert main(["trust", "--yes"]) == 0
    assert trusted(project_folder())
    assert main(["trust", "--withdraw"]) == 0
    assert not trusted(project_folder())


def test_a_config_that_never_ends_is_not_even_opened(project: Path) -> None:
    (project / ".shardwise" / "models").mkdir()
    (project / ".shardwise" / "models" / "m.yaml").write_text("id: a/zero\nconfig: /dev/zero\n")
    os.mkfifo(project / ".shardwise" / "hardware" / "pipe.yaml")
    assert len(accelerators()) > 100
    trust(project_folder())
    assert len(accelerators()) > 100
    assert any("not a regular file" in str(row) for row in models_left_out())


def test_nothing_of_ones_own_counts_where_factors_are_fitted(project: Path) -> None:
    trust(project_folder())
    assert "their-chip" in {each.id for each in accelerators()}
    with shipped_alone():
        assert "their-chip" not in {each.id for each in accelerators()}
    assert "their-chip" in {each.id for each in accelerators()}
