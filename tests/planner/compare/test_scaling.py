"""project_scaling: efficiency against the first point, and where more nodes stop paying."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from tools import call

PLAN: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "dataset_tokens": "1B"}


def test_nodes_double_and_the_first_is_what_others_are_held_against() -> None:
    found = call("project_scaling", PLAN | {"nodes": 6})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    points = found["points"]
    assert [point["nodes"] for point in points] == [1, 2, 4, 6]
    assert [point["devices"] for point in points] == [8, 16, 32, 48]
    assert points[0]["efficiency"] == points[0]["speedup"] == 1
    assert len({point["global_batch"] for point in points}) == 1
    for before, point in pairwise(points):
        assert point["speedup"] == pytest.approx(point["tokens_per_s"] / points[0]["tokens_per_s"])
        assert point["efficiency"] == pytest.approx(point["speedup"] * 8 / point["devices"])
        added = (point["tokens_per_s"] - before["tokens_per_s"]) / (point["devices"] - before["devices"])
        assert point["marginal_efficiency"] == pytest.approx(added / points[0]["tokens_per_s_per_device"])
        assert point["hours"] < before["hours"]
        assert 0 <= point["communication_share"] < 1


@settings(max_examples=examples(8), deadline=None)
@given(st.floats(0.01, 1.0), st.sampled_from(["strong", "weak"]))
def test_it_stops_paying_where_efficiency_first_falls_below(threshold: float, scaling: str) -> None:
    arguments = {"model": "gpt2", "accelerator": "a100-sxm-80gb", "nodes": [1, 4, 16, 64], "scaling": scaling}
    found = call("project_scaling", arguments | {"efficiency_threshold": threshold})
    points = found["points"]
    below = [point["nodes"] for point in points if point["fits"] and point["efficiency"] < threshold]
    assert found["stops_at_nodes"] == (below[0] if below else None)
    pays = [p["nodes"] for p in points if p["fits"] and (not below or p["nodes"] < below[0])]
    assert found["pays_up_to_nodes"] == (pays[-1] if pays else None)
    assert found["scaling"] == scaling
    batches = [point["global_batch"] / point["devices"] for point in points]
    assert (len(set(batches)) == 1) == (scaling == "weak")


def test_weak_scaling_is_at_least_as_efficient_as_strong() -> None:
    strong, weak = (call("project_scaling", PLAN | {"nodes": [1, 8], "scaling": kind}) for kind in ("strong", "weak"))
    assert weak["points"][1]["efficiency"] >= strong["points"][1]["efficiency"]


def test_what_does_not_fit_or_cannot_be_is_told_and_not_counted() -> None:
    large = {"model": "meta-llama/Llama-3.1-70B", "accelerator": "h100-sxm", "stage": "pretrain"}
    found = call("project_scaling", large | {"nodes": [1, 2, 4]})
    assert [point["fits"] for point in found["points"]] == [False, True, True]
    assert found["points"][1]["efficiency"] == 1
    assert found["points"][0]["marginal_efficiency"] is None
    assert any("2 nodes" in text for text in found["why"])
    odd = call("project_scaling", PLAN | {"nodes": "1..6 step 1", "global_batch": 96, "framework": "deepspeed"})
    assert "96 sequences" in odd["points"][4]["error"]
    assert odd["points"][4]["step_s"] is None
    none = call("project_scaling", large | {"nodes": [1]})
    assert none["pays_up_to_nodes"] is None
    assert none["plots"] == []


def test_a_point_is_the_estimate_of_its_plan() -> None:
    found = call("project_scaling", PLAN | {"nodes": [2], "global_batch": 64, "usd_per_device_hour": 2})
    (point,) = found["points"]
    alone = call("estimate_training", PLAN | {"count": 16, "global_batch": 64})
    assert point["step_s"] == alone["time"]["step_s"]
    assert point["usd"] == pytest.approx(16 * 2 * alone["run"]["hours"])
    assert found["plan"]["cluster"]["count"] == 16


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"nodes": 0}, "nodes"),
    ({"nodes": -1}, "nodes"),
    ({"nodes": []}, "nodes"),
    ({"nodes": [0.5]}, "nodes"),
    ({"nodes": ["many"]}, "nodes"),
    ({"nodes": "a..b"}, "nodes"),
    ({"nodes": 10**9}, "nodes"),
    ({"nodes": "1..100 step 1"}, "nodes"),
    ({"scaling": "sideways"}, "scaling"),
    ({"efficiency_threshold": 0}, "efficiency_threshold"),
    ({"efficiency_threshold": float("nan")}, "efficiency_threshold"),
    ({"accelerator": None}, "cluster.accelerator"),
    ({"accelerator": "no such"}, "cluster.accelerator"),
    ({"model": "no-such"}, "model"),
    ({"plan": {"workload": {"kind": "inference"}}, "dataset_tokens": None}, "workload.kind"),
]


@pytest.mark.parametrize(("changes", "field"), WRONG, ids=range(len(WRONG)))
def test_a_request_that_cannot_be_names_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("project_scaling", PLAN | changes)
    assert caught.value.field == field
