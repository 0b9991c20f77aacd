"""The memory result beyond its total: what the user set, host memory, saving, stages and moments."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples
from tool_calls import FLAT, GIB, result

from estimator.training.memory import COMPONENTS
from knowledge.figures import gib
from tools import call

# A whole layout, so that what is set does not change which one is chosen.
FIXED: dict[str, Any] = FLAT | {
    "framework": "deepspeed", "zero_stage": 2, "recompute": "full", "offload": "none", "micro_batch": 1,
}  # fmt: skip
PIPED: dict[str, Any] = FLAT | {
    "framework": "megatron-lm", "tp": 2, "pp": 4, "vpp": 1, "zero_stage": 0, "recompute": "none", "offload": "none",
    "micro_batch": 1, "stage": "pretrain",
}  # fmt: skip
# ZeRO-3 with everything in host memory: far more of it than of device memory.
OFFLOADED: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 8, "seq_len": 1024, "micro_batch": 1,
    "framework": "deepspeed", "zero_stage": 3, "offload": "params", "recompute": "full",
}  # fmt: skip


def memory(arguments: dict[str, Any]) -> dict[str, Any]:
    return call("estimate_training", arguments)["memory"]


PLAIN = memory(FIXED)


# None at all, or what somebody may mean.
AMOUNTS = st.just(0.0) | st.floats(1e-3, 200)


@given(st.sampled_from(COMPONENTS), AMOUNTS)
@settings(max_examples=examples(25), deadline=None)
def test_a_component_that_is_set_is_taken_as_it_is(name: str, value: float) -> None:
    found = memory(FIXED | {"overrides": {f"{name}_gib": value}})
    assert found["own_peaks"][name] == pytest.approx(value * GIB)
    (row,) = found["overridden"]
    assert row["field"] == f"overrides.{name}_gib"
    assert row["value_bytes"] == pytest.approx(value * GIB)
    assert row["estimated_bytes"] == pytest.approx(PLAIN["own_peaks"][name])
    assert found["capacity_bytes"] == PLAIN["capacity_bytes"]
    assert found["per_device_bytes"] == pytest.approx(sum(found["components"].values()))


@given(st.floats(1, 300), AMOUNTS.filter(lambda gib: gib <= 20))
@settings(max_examples=examples(15), deadline=None)
def test_what_is_usable_less_what_stays_free_is_the_capacity(usable: float, reserve: float) -> None:
    found = memory(FIXED | {"usable_gib": usable, "reserve_gib": reserve})
    assert found["capacity_bytes"] == pytest.approx(max(0.0, usable - reserve) * GIB)
    assert found["fits"] == (found["high_bytes"] <= found["capacity_bytes"])
    rows = {row["field"]: row for row in found["overridden"]}
    assert rows["overrides.usable_gib"]["estimated_bytes"] == PLAIN["capacity_bytes"]
    assert rows["overrides.reserve_gib"]["estimated_bytes"] == 0
    # What is cached is given back when memory runs short; nothing else depends on how much there is.
    plain = deepcopy(PLAIN)
    slack, plain_slack = (each["components"].pop("allocator_slack") for each in (found, plain))
    assert found["components"] == plain["components"]
    assert slack <= plain_slack


def test_nothing_set_is_nothing_told() -> None:
    assert PLAIN["overridden"] == []
    assert memory(FIXED | {"overrides": {"weights_gib": None}}) == PLAIN


def test_the_capacity_that_was_set_decides_in_every_tool() -> None:
    needed = memory(FIXED | {"usable_gib": 1})["high_bytes"] / GIB
    small = FIXED | {"usable_gib": needed - 0.01}
    fit = call("check_fit", small)
    assert not fit["fits"]
    assert fit["headroom_bytes"] == pytest.approx(-0.01 * GIB, rel=1e-3)
    assert call("check_fit", FIXED | {"usable_gib": needed + 0.01})["fits"]
    best = call("best_parallelism", FLAT | {"reserve_gib": 60})
    assert best["best"]["headroom_bytes"] + best["best"]["per_device_bytes"] <= PLAIN["capacity_bytes"] - 60 * GIB
    longest = [call("find_limit", FIXED | {"goal": "seq_len", "reserve_gib": free})["value"] for free in (0, 20)]
    assert longest[0] > longest[1]


def test_a_flat_figure_wins_over_the_same_in_overrides() -> None:
    assert memory(FIXED | {"overrides": {"usable_gib": 50}, "usable_gib": 60})["capacity_bytes"] == 60 * GIB


@pytest.mark.parametrize("arguments", [FIXED, PIPED, OFFLOADED], ids=["data", "pipeline", "offloaded"])
def test_parts_are_never_above_their_own_peaks(arguments: dict[str, Any]) -> None:
    found = memory(arguments)
    assert found["own_peaks"].keys() == found["components"].keys()
    for name, size in found["components"].items():
        assert size <= found["own_peaks"][name]
    # Something is there at another moment only, save where a framework's buffers are there all the time.
    assert arguments is PIPED or found["own_peaks"] != found["components"]


@pytest.mark.parametrize("arguments", [FIXED, PIPED], ids=["data", "pipeline"])
def test_the_fullest_stage_is_the_one_that_is_told(arguments: dict[str, Any]) -> None:
    found = memory(arguments)
    sizes = [stage["per_device_bytes"] for stage in found["stages"]]
    assert [stage["stage"] for stage in found["stages"]] == list(range(len(sizes)))
    assert sum(stage["layers"] for stage in found["stages"]) == 32
    assert sizes[found["fullest_stage"]] == max(sizes) == found["per_device_bytes"]
    assert found["stages"][found["fullest_stage"]]["components"] == found["components"]


@pytest.mark.parametrize("arguments", [FIXED, PIPED, OFFLOADED], ids=["data", "pipeline", "offloaded"])
def test_host_memory_is_that_of_its_worst_phase(arguments: dict[str, Any]) -> None:
    host = memory(arguments)["host"]
    assert host["phases"].keys() == {"loading", "steady", "saving"}
    assert host["per_node_bytes"] == max(host["phases"].values()) == host["phases"][host["phase"]]
    assert sum(host["components"].values()) == pytest.approx(host["per_node_bytes"])
    assert host["capacity_low_bytes"] <= host["capacity_bytes"]
    assert host["capacity_source"]
    assert host["fits"] == (host["per_node_bytes"] <= host["capacity_bytes"])


def test_host_memory_that_no_machine_is_known_for_is_not_judged() -> None:
    found = call("estimate_training", {"model": "Qwen/Qwen2.5-0.5B", "accelerator": "apple-m1-max", "count": 1})
    host = found["memory"]["host"]
    assert host["per_node_bytes"] > 0
    assert host["capacity_bytes"] is host["capacity_source"] is host["fits"] is None
    assert not [text for text in found["warnings"] if "host memory" in text]


def test_a_run_that_fits_its_devices_and_not_its_host_is_said_to() -> None:
    """Twice the devices of a node halve what each node has to hold; once too few, the warning is there."""
    model = OFFLOADED | {"model": "meta-llama/Llama-3.1-405B", "count": 32}
    found = call("check_fit", model)
    assert not found["fits"]
    assert found["memory"]["fits"]
    host = found["memory"]["host"]
    assert not host["fits"]
    (text,) = [text for text in found["warnings"] if text.startswith("host memory runs out")]
    assert gib(host["per_node_bytes"]) in text
    assert "more nodes" in text
    assert call("estimate_training", model)["warnings"] == found["warnings"]
    more = call("estimate_training", model | {"count": 256, "shard_group": 256})
    assert more["memory"]["host"]["fits"]
    assert not [text for text in more["warnings"] if text.startswith("host memory runs out")]
    assert more["memory"]["host"]["per_node_bytes"] < host["per_node_bytes"]


def test_a_checkpoint_that_cannot_be_saved_is_said_though_training_fits() -> None:
    """Between what training takes and what saving takes, found by its own figures: a run that needs next to nothing for
    its activations, and gathers the embedding when it saves."""
    parts = ("activations", "logits_and_loss", "communication_buffers", "step_temporaries", "allocator_slack")
    nothing = {f"{part}_gib": 0 for part in parts}
    plan = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "count": 64, "framework": "deepspeed",
            "zero_stage": 3, "recompute": "full", "micro_batch": 1, "seq_len": 512,
            "overrides": nothing}  # fmt: skip
    found = call("estimate_training", plan)
    save, spread = found["memory"]["save"], found["memory"]["high_bytes"] / found["memory"]["per_device_bytes"]
    assert save["device_bytes"] > found["memory"]["per_device_bytes"]
    assert save["fits"] == (save["device_bytes"] * spread <= found["memory"]["capacity_bytes"])
    between = (save["device_bytes"] + found["memory"]["per_device_bytes"]) / 2 * spread / GIB
    tight = call("check_fit", plan | {"usable_gib": between})
    assert tight["fits"]
    assert not tight["memory"]["save"]["fits"]
    assert [text for text in tight["warnings"] if "saving a checkpoint may not" in text]
    roomy = call("check_fit", plan | {"usable_gib": 2 * between})
    assert roomy["memory"]["save"]["fits"]
    assert not [text for text in roomy["warnings"] if "saving a checkpoint" in text]


def test_a_checkpoint_holds_what_is_trained() -> None:
    full, adapters = (memory(FIXED | {"method": method})["save"] for method in ("full", "lora"))
    assert full["checkpoint_bytes"] == pytest.approx(2 * 8.03e9, rel=0.01)
    assert full["checkpoint_bytes"] < full["resumable_bytes"]
    assert adapters["resumable_bytes"] < 0.1 * full["checkpoint_bytes"]


def test_the_other_tools_tell_the_same_memory() -> None:
    assert result("check_fit")["memory"] == result("estimate_training")["memory"]
