"""The user's own hardware, models and prices through the tools: added, listed, estimated with, and left out aloud."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tool_calls import FLAT, steady

from estimator.errors import PlanError
from knowledge.own.files import own_folder, read_text, yaml_files
from server.mcp.writes import Shown
from server.service import Service
from tools import call
from tools.registry import find

# A running server looks at the user's files again after 50 ms.
_HELD_S = 0.1

CHIP: dict[str, Any] = {
    "id": "my-chip", "vendor": "NVIDIA", "memory_gib": 96, "memory_bandwidth_gb_per_s": 4000, "bf16_tflops": 1200,
    "scaleup_gb_per_s": 400, "usd_per_hour": 2.5, "price_date": "2026-11-01",
}  # fmt: skip
CONFIG: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "vocab_size": 32000,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 2816, "max_position_embeddings": 4096,
}  # fmt: skip
RENT: dict[str, Any] = {
    "provider": "MyCo", "instance": "rack", "accelerator": "h100-sxm", "count": 8, "usd_per_hour": 8,
    "price_date": "2026-11-01",
}  # fmt: skip
ROWS = {"hardware": CHIP, "model": {"id": "me/tiny", "config": CONFIG}, "price": RENT}
FOLDERS = {"hardware": "hardware", "model": "models", "price": "prices"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SHARDWISE_CONFIG", raising=False)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.usefixtures("either_store")
@pytest.mark.parametrize("what", ROWS)
def test_what_is_shown_is_what_is_written_and_only_then(what: str, home: Path) -> None:
    shown = call(f"preview_{what}", ROWS[what])
    assert not home.exists()
    assert yaml_files(own_folder() / FOLDERS[what]) == []
    added = call(f"add_{what}", ROWS[what])
    path = Path(added["folder"]) / added["files"][0]["path"]
    assert path.parent == own_folder() / FOLDERS[what]
    assert read_text(path) == shown["files"][0]["text"]
    row = yaml.safe_load(read_text(path))
    assert json.loads(json.dumps(row)) == ROWS[what]
    (mine,) = call("list_catalogue", {"kind": FOLDERS[what], "only_own": True})[FOLDERS[what]]
    assert mine["own"]
    assert mine["source"] == f"yours ({path})"
    with pytest.raises(PlanError, match="say overwrite"):
        call(f"add_{what}", ROWS[what])
    call(f"add_{what}", ROWS[what] | {"overwrite": True})


@pytest.mark.usefixtures("either_store")
def test_an_own_accelerator_is_estimated_and_paid_for() -> None:
    added = call("add_hardware", CHIP)
    assert any("no run was measured" in warning for warning in added["warnings"])
    assert {row["field"] for row in added["assumptions"]} >= {"family", "per_node", "interconnect", "topology"}
    plan = FLAT | {"accelerator": "my-chip", "micro_batch": 1, "zero_stage": 3, "framework": "deepspeed"}
    mine, theirs = call("estimate_training", plan), call("estimate_training", plan | {"accelerator": "h100-sxm"})
    assert mine["memory"]["capacity_bytes"] == pytest.approx(0.985 * 96 * 2**30)
    assert mine["time"]["step_s"] < theirs["time"]["step_s"]
    assert mine["time"]["high_s"] / mine["time"]["step_s"] > theirs["time"]["high_s"] / theirs["time"]["step_s"]
    assert any("my-chip" in warning for warning in mine["warnings"])
    why = {row["field"]: row["why"] for row in mine["assumptions"]}["cluster.accelerator"]
    assert why.startswith("yours (")
    cost = call("estimate_cost", plan)
    assert cost["usd"] == pytest.approx(2.5 * 8 * cost["hours"])
    assert cost["by_provider"][0]["source"].startswith("yours (")
    served = call("estimate_inference", {"model": "llama-3.1-8b", "accelerator": "my-chip", "concurrency": 8})
    assert served["memory"]["fits"]
    told = call("describe_hardware", {"accelerator": "my chip"})
    assert (told["id"], told["prices"][0]["usd_per_hour"]) == ("my-chip", 2.5)


def test_a_twin_of_a_catalogue_accelerator_has_its_figures() -> None:
    call("add_hardware", {"id": "twin", "like": "h100-sxm"})
    for tool, arguments in (
        ("estimate_training", FLAT),
        ("estimate_inference", {"model": "mixtral-8x7b", "accelerator": "h100-sxm", "count": 8, "concurrency": 32}),
    ):
        mine, theirs = call(tool, arguments | {"accelerator": "twin"}), call(tool, arguments)
        for part in ("time", "throughput"):
            assert mine[part] == theirs[part]
        assert mine["memory"]["components"] == theirs["memory"]["components"]
        assert len(mine["evidence"]) == len(theirs["evidence"])


@pytest.mark.usefixtures("either_store")
def test_an_own_model_is_planned_with() -> None:
    call("add_model", ROWS["model"])
    found = call("estimate_training", {"model": "me/tiny", "accelerator": "h100-sxm"})
    inline = call("estimate_training", {"model": CONFIG, "accelerator": "h100-sxm"})
    assert found["memory"]["components"] == inline["memory"]["components"]
    told = call("describe_model", {"model": "me/tiny"})
    assert told["source"].startswith("yours (")
    assert told["parameters"] == call("describe_model", {"model": CONFIG})["parameters"]


def test_the_config_of_a_model_is_copied_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(CONFIG))
    call("add_model", {"id": "me/tiny", "config": "tiny"})
    (tmp_path / "tiny" / "config.json").unlink()
    assert call("describe_model", {"model": "me/tiny"})["layers"] == 8


def test_an_own_price_is_taken_where_its_provider_is_named() -> None:
    before = call("estimate_cost", FLAT)
    call("add_price", RENT)
    cost = call("estimate_cost", FLAT | {"provider": "myco"})
    assert cost["usd"] == pytest.approx(8 * cost["hours"])
    assert cost["usd"] < before["usd"]
    assert call("estimate_cost", FLAT)["usd"] == pytest.approx(cost["usd"])


def test_a_project_keeps_rows_of_its_own(tmp_path: Path) -> None:
    call("add_hardware", CHIP)
    call("add_hardware", CHIP | {"memory_gib": 48, "where": "project"})
    assert (tmp_path / ".shardwise" / "hardware" / "my-chip.yaml").is_file()
    assert call("describe_hardware", {"accelerator": "my-chip"})["memory_bytes"] == 48 * 2**30


def test_a_row_is_not_added_beside_one_of_the_same_id(home: Path) -> None:
    (home / "hardware").mkdir(parents=True)
    (home / "hardware" / "all.yaml").write_text(yaml.safe_dump([CHIP, CHIP | {"id": "other"}]))
    with pytest.raises(PlanError, match=r"id: 'my-chip' is in .*all\.yaml already"):
        call("add_hardware", CHIP | {"overwrite": True})


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("hardware", {"id": "h100-sxm"}, "id"),
    ("hardware", {"id": "../x"}, "id"),
    ("hardware", {"memory_gib": float("nan")}, "memory_gib"),
    ("hardware", {"memory_gib": True}, "memory_gib"),
    ("hardware", {"memory_gib": None}, "memory_gib"),
    ("hardware", {"like": "abacus"}, "like"),
    ("hardware", {"bf16_tflops": None}, "bf16_tflops"),
    ("hardware", {"memory_tb": 3}, "memory_tb"),
    ("hardware", {"where": "moon"}, "where"),
    ("hardware", {"interconnect": "pigeons"}, "interconnect"),
    ("model", {"id": "gpt2"}, "id"),
    ("model", {"config": "/no/such/file"}, "config"),
    ("model", {"config": "a\0b"}, "config"),
    ("model", {"config": {"model_type": "bert"}}, "config (model.model_type)"),
    ("model", {"config": {}}, "config"),
    ("price", {"currency": "EUR"}, "currency"),
    ("price", {"accelerator": "abacus"}, "accelerator"),
    ("price", {"usd_per_hour": None}, "usd_per_hour"),
    ("price", {"usd_per_hour": "ten"}, "usd_per_hour"),
]


@pytest.mark.parametrize(("what", "changes", "field"), WRONG, ids=range(len(WRONG)))
def test_bad_arguments_name_the_field_and_write_nothing(
    what: str, changes: dict[str, Any], field: str, home: Path
) -> None:
    with pytest.raises(PlanError) as caught:
        call(f"add_{what}", {key: value for key, value in (ROWS[what] | changes).items() if value is not None})
    assert caught.value.field.startswith(field)
    assert not home.exists()


def test_results_that_a_bad_file_is_about_say_that_it_is_left_out(home: Path) -> None:
    plain = call("estimate_training", FLAT)
    for kind, row in (("hardware", "id: h100-sxm\nreplaces: true\nmemory_gib: -1"),
                      ("prices", "accelerator: h100-sxm\ncount: x")):  # fmt: skip
        (home / kind).mkdir(parents=True)
        (home / kind / "mine.yaml").write_text(row)
    found = call("estimate_training", FLAT)
    (warning,) = set(found["warnings"]) - set(plain["warnings"])
    assert "memory_gib" in warning
    assert str(home / "hardware" / "mine.yaml") in warning
    assert steady(found | {"warnings": plain["warnings"]}) == steady(plain)
    other = call("estimate_training", FLAT | {"accelerator": "a100-sxm-80gb"})
    assert not any("yours" in warning for warning in other["warnings"])
    served = call("estimate_inference", {"model": "gpt2", "accelerator": "h100-sxm"})
    assert any("left out" in warning for warning in served["warnings"])
    # What is written wrong is said before what is missing.
    told = call("describe_hardware", {"accelerator": "h100-sxm"})["notes"]
    assert any("count" in note and "mine.yaml" in note for note in told)
    (listed,) = call("list_catalogue", {"kind": "prices", "only_own": True})["left_out"]
    assert listed["path"] == str(home / "prices" / "mine.yaml")


def test_the_catalogue_is_listed_by_words() -> None:
    found = call("list_catalogue", {"kind": "models", "query": "qwen 72b", "limit": 1})
    assert found["total"] >= 1
    assert len(found["models"]) == 1
    assert call("list_catalogue", {"kind": "hardware", "query": "zx81"})["total"] == 0
    assert all(row["provider"] == "AWS" for row in call("list_catalogue", {"kind": "prices", "query": "aws"})["prices"])


async def test_a_long_running_server_notices_a_changed_file(home: Path, tmp_path: Path) -> None:
    service = Service(tmp_path / "root")

    async def memory() -> float:
        answer = await service.call(find("describe_hardware"), {"accelerator": "my-chip"})
        return answer.value["memory_bytes"] / 2**30 if answer.failure is None else 0

    async def yes(_: Shown) -> bool:
        return True

    assert await memory() == 0
    assert (await service.call(find("add_hardware"), CHIP, yes)).value["written"]
    assert await memory() == 96
    path = home / "hardware" / "my-chip.yaml"
    path.write_text(path.read_text().replace("96.0", "48.25"))
    await asyncio.sleep(_HELD_S)
    assert await memory() == 48.25
    path.unlink()
    await asyncio.sleep(_HELD_S)
    assert await memory() == 0
    service.calls.close()


def test_catalogues_start_with_what_is_newest_and_most_used() -> None:
    """Of models the newest year, in it what most offer over an API; of prices those of the devices that most rent."""
    models = call("list_catalogue", {"kind": "models", "limit": 500})["models"]
    ranks = [((row["released"] or "")[:4], row["api_providers"]) for row in models if not row["own"]]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0][1] > 5
    hardware = [row["id"] for row in call("list_catalogue", {"kind": "hardware", "limit": 500})["hardware"]]
    assert hardware.index("b300-sxm") < hardware.index("a100-sxm-80gb") < hardware.index("v100-sxm-16gb")
    prices = [row for row in call("list_catalogue", {"kind": "prices", "limit": 500})["prices"] if not row["own"]]
    places = [hardware.index(row["accelerator"]) for row in prices]
    assert places == sorted(places)
    of_first = [row["usd_per_hour"] / row["count"] for row in prices if places[0] == hardware.index(row["accelerator"])
                and row["usd_per_hour"] is not None]  # fmt: skip
    assert of_first == sorted(of_first)
