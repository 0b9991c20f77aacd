"""Scenarios: saved, listed, loaded, named as a plan, compared, deleted; and the ready examples."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples
from tool_calls import FLAT, NESTED, steady

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.figures import usd
from knowledge.own.files import parsed, read_text, scenario_folder, write_file, yaml_files
from knowledge.scenarios import scenarios
from server.mcp.resources import KINDS
from server.mcp.writes import CannotAsk, Shown
from server.service import Service
from tools import call
from tools.registry import find

# A running server looks at the user's files again after 50 ms.
_HELD_S = 0.1

EXAMPLES = ["llama-3.1-70b-dp16-tp4-pp2", "llama-3.1-70b-serving", "llama-3.1-8b-dp8", "mixtral-8x7b-ep8"]
SERVED = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 1, "concurrency": 16}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SHARDWISE_CONFIG", raising=False)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_estimated_and_fits(name: str) -> None:
    loaded = call("load_scenario", {"name": name})
    assert loaded["read_only"]
    assert not loaded["notes"]
    serves = loaded["plan"]["workload"].get("kind") == "inference"
    found = call("estimate_inference" if serves else "estimate_training", {"plan": name})
    assert found["memory"]["fits"]
    assert not found["warnings"]
    assert found["plan"]["name"] == loaded["plan"]["name"]


def test_the_examples_are_the_layouts_that_they_name() -> None:
    assert [each.name for each in scenarios()] == EXAMPLES
    plans = {name: call("estimate_training", {"plan": name})["plan"] for name in EXAMPLES if "serving" not in name}
    layouts = {name: plan["layout"] for name, plan in plans.items()}
    assert layouts["llama-3.1-8b-dp8"]["dp"] == 8
    big = layouts["llama-3.1-70b-dp16-tp4-pp2"]
    assert (big["dp"], big["tp"], big["pp"], plans["llama-3.1-70b-dp16-tp4-pp2"]["cluster"]["count"]) == (16, 4, 2, 128)
    assert layouts["mixtral-8x7b-ep8"]["ep"] == 8


@pytest.mark.usefixtures("either_store")
def test_a_saved_plan_comes_back_as_it_was_given() -> None:
    saved = call("save_scenario", FLAT | {"name": "First try"})
    assert (saved["name"], saved["folder"]) == ("first-try", str(scenario_folder()))
    file = scenario_folder() / "first-try.yaml"
    text = read_text(file)
    assert saved["files"] == [{"path": file.name, "bytes": len(text.encode())}]
    loaded = call("load_scenario", {"name": "First Try"})
    assert loaded["plan"] == Plan.parse(NESTED | {"name": "First try"}).given()
    assert loaded["files"] == [{"path": file.name, "text": text}]
    assert Plan.parse(parsed(text, "plan")).given() == loaded["plan"]
    exported = call("load_scenario", {"name": "first-try", "format": "json"})["files"][0]
    assert json.loads(exported["text"]) == loaded["plan"]
    assert exported["path"] == "first-try.json"


def test_the_figures_are_those_of_the_estimate_and_stand_at_the_top() -> None:
    found, cost = call("estimate_training", FLAT), call("estimate_cost", FLAT)
    saved = call("save_scenario", FLAT | {"name": "a"})
    figures = saved["figures"]
    assert figures["per_device_bytes"] == found["memory"]["per_device_bytes"]
    assert figures["mfu"] == found["throughput"]["mfu"]
    assert (figures["hours"], figures["usd"]) == (cost["hours"], cost["usd"])
    text = call("load_scenario", {"name": "a"})["files"][0]["text"]
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert text.startswith("\n".join(head))
    assert any("fits" in line and f"{figures['per_device_bytes'] / 2**30:.1f} GiB" in line for line in head)
    assert any(usd(cost["usd"]) in line for line in head)
    assert figures["price"]


@pytest.mark.usefixtures("either_store")
def test_a_scenario_is_named_wherever_a_plan_is_taken() -> None:
    call("save_scenario", FLAT | {"name": "a"})
    for tool in ("estimate_training", "check_fit", "estimate_cost", "best_parallelism"):
        named = call(tool, {"plan": "a", "count": 4})
        spelled = call(tool, {"plan": NESTED | {"name": "a"}, "count": 4})
        assert steady(named) == steady(spelled)
        assert named["plan"]["cluster"]["count"] == 4
    with pytest.raises(PlanError) as caught:
        call("estimate_training", {"plan": "aa"})
    assert caught.value.field == "plan"
    assert "there is no scenario 'aa'" in str(caught.value)


@pytest.mark.usefixtures("either_store")
def test_nothing_is_replaced_unless_it_is_said() -> None:
    call("save_scenario", FLAT | {"name": "a"})
    before = read_text(scenario_folder() / "a.yaml")
    with pytest.raises(PlanError, match=r"name: .*say overwrite"):
        call("save_scenario", FLAT | {"name": "A", "count": 4})
    assert read_text(scenario_folder() / "a.yaml") == before
    call("save_scenario", FLAT | {"name": "A", "count": 4, "overwrite": True})
    assert call("load_scenario", {"name": "a"})["plan"]["cluster"]["count"] == 4
    write_file(scenario_folder() / "b.yml", "model: gpt2\n", False, "b")
    with pytest.raises(PlanError, match="say overwrite"):
        call("save_scenario", FLAT | {"name": "b"})
    call("save_scenario", FLAT | {"name": "b", "overwrite": True})
    assert [path.name for path in yaml_files(scenario_folder())] == ["a.yaml", "b.yaml"]


def test_text_is_imported_as_yaml_and_as_json() -> None:
    plan = NESTED | {"name": "imported"}
    call("save_scenario", {"text": yaml.safe_dump(plan)})
    call("save_scenario", {"text": json.dumps(plan), "name": "other", "count": 4})
    first, second = (call("load_scenario", {"name": name})["plan"] for name in ("imported", "other"))
    assert first == Plan.parse(plan).given()
    assert second == Plan.parse(plan | {"name": "other"}).patch({"cluster.count": 4}).given()


def test_a_plan_that_cannot_be_estimated_is_kept_and_says_why() -> None:
    saved = call("save_scenario", {"model": "gpt2", "name": "half"})
    assert "accelerator" in saved["figures"]["problem"]
    assert "# not estimated" in call("load_scenario", {"name": "half"})["files"][0]["text"]
    assert call("estimate_training", {"plan": "half", "accelerator": "h100-sxm"})["memory"]["fits"]


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("save_scenario", {"model": "gpt2"}, "name", "is required"),
    ("save_scenario", {"model": "gpt2", "name": ".."}, "name", "no letter or digit"),
    ("save_scenario", {"model": "gpt2", "name": "a\0"}, "name", "cannot be a name"),
    ("save_scenario", {"model": "gpt2", "name": EXAMPLES[0]}, "name", "ready example"),
    ("save_scenario", {"name": "a"}, "model", "is required"),
    ("save_scenario", {"name": "a", "text": "model: [1"}, "text", "not readable"),
    ("save_scenario", {"name": "a", "text": "gpt2"}, "text", "must be a plan"),
    ("save_scenario", {"name": "a", "text": "model: gpt2", "plan": {"model": "gpt2"}}, "text", "both"),
    ("save_scenario", {"name": "a", "text": "model: gpt2\nlayuot: 1"}, "layuot", "valid: layout"),
    ("save_scenario", {"name": "a", "text": "x: &x 1\nmodel: *x"}, "text", "anchors"),
    ("save_scenario", {"name": "a", "model": "gpt2", "count": True}, "count", "got true"),
    ("load_scenario", {"name": "nothing"}, "name", "there is no scenario"),
    ("load_scenario", {"name": "../../etc/passwd"}, "name", "there is no scenario"),
    ("load_scenario", {"name": EXAMPLES[0], "format": "toml"}, "format", "yaml"),
    ("delete_scenario", {"name": EXAMPLES[0]}, "name", "ready example"),
    ("delete_scenario", {"name": "nothing"}, "name", "there is no scenario"),
    ("diff_scenarios", {"a": "nothing", "b": EXAMPLES[0]}, "a", "there is no scenario"),
    ("diff_scenarios", {"a": EXAMPLES[0], "b": {"model": "gpt2", "cluster": {"count": 0}}}, "b.cluster.count", "1"),
]


@pytest.mark.parametrize(("tool", "arguments", "field", "says"), WRONG, ids=range(len(WRONG)))
def test_bad_arguments_are_refused_in_words(
    tool: str, arguments: dict[str, Any], field: str, says: str, home: Path
) -> None:
    with pytest.raises(PlanError) as caught:
        call(tool, arguments)
    assert caught.value.field == field
    assert says in str(caught.value)
    assert not home.exists()


@pytest.mark.usefixtures("either_store")
def test_the_list_has_the_saved_ones_first_and_says_what_cannot_be_read() -> None:
    call("save_scenario", FLAT | {"name": "mine"})
    call("save_scenario", {**SERVED, "name": "served"})
    write_file(scenario_folder() / "broken.yaml", "model: [", False, "broken")
    write_file(scenario_folder() / "old.yaml", "model: gpt2\nshape: 3\n", False, "old")
    write_file(scenario_folder() / ".a.yaml.new", "", False, "new")
    found = call("list_scenarios", {})
    assert [row["name"] for row in found["scenarios"]] == ["mine", "served", *EXAMPLES]
    assert [row["read_only"] for row in found["scenarios"]] == [False] * 2 + [True] * 4
    assert [Path(row["path"]).stem for row in found["left_out"]] == ["broken", "old"]
    some = call("list_scenarios", {"query": "vllm 3.1-8b", "figures": True})["scenarios"]
    assert [row["name"] for row in some] == ["served"]
    assert some[0]["figures"]["output_tokens_per_s"] > 0


def test_a_field_that_is_not_valid_any_more_is_left_out_with_a_note(home: Path) -> None:
    (home / "scenarios").mkdir(parents=True)
    text = "model: gone/model-9b\nshape: 3\ncluster: {accelerator: h100-sxm, count: 0, colour: red}\nlayout: 7\n"
    (home / "scenarios" / "old.yaml").write_text(text)
    found = call("load_scenario", {"name": "old"})
    assert found["plan"] == {"model": "gone/model-9b", "cluster": {"accelerator": "h100-sxm"}}
    assert len(found["notes"]) == 5
    assert "gone/model-9b" in found["notes"][-1]
    (home / "scenarios" / "worse.yaml").write_text("model: 7\n")
    with pytest.raises(PlanError, match="holds no valid plan"):
        call("load_scenario", {"name": "worse"})


@pytest.mark.usefixtures("either_store")
def test_deleting_takes_the_file_and_no_other() -> None:
    call("save_scenario", FLAT | {"name": "a"})
    call("save_scenario", FLAT | {"name": "b"})
    assert call("delete_scenario", {"name": "A"})["files"][0]["path"] == "a.yaml"
    assert [path.name for path in yaml_files(scenario_folder())] == ["b.yaml"]


def test_a_plan_does_not_differ_from_itself() -> None:
    found = call("diff_scenarios", {"a": EXAMPLES[2], "b": EXAMPLES[2]})
    assert found["same"]
    assert found["given"] == found["complete"] == []
    assert all(row["change"] == 0 and row["ratio"] == 1 and row["within_interval"] for row in found["figures"])
    assert {row["figure"] for row in found["figures"]} == {
        "per_device_bytes", "step_s", "tokens_per_s", "mfu", "hours", "usd",
    }  # fmt: skip


def test_a_difference_says_the_fields_and_what_they_do() -> None:
    call("save_scenario", FLAT | {"name": "a", "zero_stage": 3, "micro_batch": 1, "framework": "deepspeed"})
    call("save_scenario", {"plan": "a", "count": 16, "name": "b"})
    found = call("diff_scenarios", {"a": "a", "b": "b"})
    assert found["given"] == [{"field": "cluster.count", "a": 8, "b": 16}]
    fields = {row["field"] for row in found["complete"]}
    assert fields >= {"cluster.count", "layout.dp"}
    assert not found["same"]
    figures = {row["figure"]: row for row in found["figures"]}
    one, other = (call("estimate_training", {"plan": name}) for name in ("a", "b"))
    assert figures["step_s"]["ratio"] == pytest.approx(other["time"]["step_s"] / one["time"]["step_s"])
    assert figures["step_s"]["change"] == pytest.approx(other["time"]["step_s"] - one["time"]["step_s"])
    apart = other["time"]["high_s"] < one["time"]["low_s"]
    assert not (apart and figures["step_s"]["within_interval"])
    back = {row["figure"]: row for row in call("diff_scenarios", {"a": "b", "b": "a"})["figures"]}
    for name, row in figures.items():
        assert row["change"] == pytest.approx(-back[name]["change"])
        assert row["within_interval"] == back[name]["within_interval"]


def test_training_and_serving_are_told_apart() -> None:
    found = call("diff_scenarios", {"a": EXAMPLES[2], "b": EXAMPLES[1]})
    assert any("training and the other for serving" in warning for warning in found["warnings"])
    figures = {row["figure"]: row for row in found["figures"]}
    assert figures["ttft_s"]["a"] is None
    assert figures["step_s"]["change"] is None


@settings(max_examples=examples(10))
@given(st.dictionaries(st.sampled_from(["count", "seq_len", "global_batch"]), st.sampled_from([8, 16]), max_size=3))
def test_given_differences_are_exactly_the_changes(changes: Mapping[str, int]) -> None:
    base = {"model": "gpt2", "cluster": {"accelerator": "h100-sxm", "count": 8},
            "workload": {"seq_len": 8, "global_batch": 8}}  # fmt: skip
    paths = {"count": "cluster.count", "seq_len": "workload.seq_len", "global_batch": "workload.global_batch"}
    other = Plan.parse(base).patch({paths[name]: value for name, value in changes.items()}).given()
    found = call("diff_scenarios", {"a": base, "b": other})
    assert {row["field"] for row in found["given"]} == {paths[name] for name, value in changes.items() if value != 8}


def test_plans_are_resources() -> None:
    call("save_scenario", FLAT | {"name": "a"})
    plans = next(kind for kind in KINDS if kind.name == "plans")
    assert plans.ids(None) == ["a", *EXAMPLES]
    assert Plan.parse(parsed(plans.read("a", None), "plan")).given() == call("load_scenario", {"name": "a"})["plan"]
    with pytest.raises(PlanError, match="plans: there is no plan"):
        plans.read("../a", None)


async def test_a_client_that_cannot_ask_confirms_the_very_file(home: Path, tmp_path: Path) -> None:
    service = Service(tmp_path / "root")
    arguments = FLAT | {"name": "a"}

    async def nobody(_: Shown) -> bool:
        raise CannotAsk

    shown = (await service.call(find("save_scenario"), arguments, nobody)).value
    assert not shown["written"]
    assert not (home / "scenarios").exists()
    done = await service.call(find("save_scenario"), arguments | {"confirm": shown["confirm"]}, nobody)
    assert done.value["written"]
    assert (home / "scenarios" / "a.yaml").read_text() == shown["preview"]["files"][0]["text"]
    refused = await service.call(find("delete_scenario"), {"name": "a", "confirm": shown["confirm"]}, nobody)
    assert refused.failure
    assert (home / "scenarios" / "a.yaml").exists()
    service.calls.close()


async def test_a_person_is_shown_where_it_goes_and_a_server_notices_changes(home: Path, tmp_path: Path) -> None:
    service, asked = Service(tmp_path / "root"), list[str]()

    async def yes(shown: Shown) -> bool:
        asked.append(shown.question)
        return True

    async def names() -> list[str]:
        return [row["name"] for row in (await service.call(find("list_scenarios"), {})).value["scenarios"]]

    assert await names() == EXAMPLES
    await service.call(find("save_scenario"), FLAT | {"name": "a"}, yes)
    assert str(home / "scenarios") in asked[0]
    assert "a.yaml" in asked[0]
    assert await names() == ["a", *EXAMPLES]
    (home / "scenarios" / "a.yaml").rename(home / "scenarios" / "b.yaml")
    await asyncio.sleep(_HELD_S)
    assert await names() == ["b", *EXAMPLES]
    await service.call(find("delete_scenario"), {"name": "b"}, yes)
    assert "b.yaml" in asked[1]
    assert await names() == EXAMPLES
    service.calls.close()
