"""size_serving: enough replicas and not one more, within the limits, the cheapest first."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples
from serving_calls import LARGE

from estimator.errors import PlanError
from planner.asked.serving import SizeServingRequest
from planner.serving.sizing import size_serving, sized
from tools import call

LIMITED: dict[str, Any] = {name: value for name, value in LARGE.items() if name != "count"} | {
    "ttft_slo_ms": 2000, "tpot_slo_ms": 50, "engines": ["vllm", "trtllm"], "weight_dtypes": ["fp8"],
}  # fmt: skip
KEYS = {"plan", "assumptions", "best", "sizes", "by_accelerator", "offers", "why", "seconds", "warnings", "evidence"}


@cache
def size(**changes: Any) -> dict[str, Any]:
    arguments = LIMITED | {name: list(v) if isinstance(v, tuple) else v for name, v in changes.items()}
    return call("size_serving", {name: value for name, value in arguments.items() if value is not None})


def test_results_have_the_promised_keys_and_are_plain_json() -> None:
    found = size(request_rate=40.0)
    assert found.keys() >= KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("load", [{"request_rate": 40.0}, {"request_rate": 0.2}, {"concurrency": 1500}], ids=range(3))
def test_there_are_just_enough_replicas(load: dict[str, Any]) -> None:
    found = size(**load)
    wanted = float(load.get("request_rate") or load["concurrency"])
    for one in found["sizes"]:
        assert one["replicas"] == max(1, math.ceil(wanted / one["replica_limit"] * (1 - 1e-9)))
        assert one["devices"] == one["replicas"] * one["devices_per_replica"]
        assert one["meets_slo"]
        assert one["fits"]
        assert 0 < one["utilisation"] <= 1
    costs = [one["usd_per_hour"] for one in found["sizes"]]
    assert costs == sorted(costs)
    assert found["best"] == found["sizes"][0]
    assert found["best"]["usd_per_month"] == pytest.approx(found["best"]["usd_per_hour"] * 730)


@pytest.mark.parametrize("load", [{"request_rate": 40.0}, {"concurrency": 1500}], ids=range(2))
def test_the_plan_of_the_best_serves_the_load_within_the_limits(load: dict[str, Any]) -> None:
    found = size(**load)
    again = call("estimate_inference", {"plan": found["plan"]})
    assert again["meets_slo"]
    assert again["memory"]["fits"]
    assert again["devices"] == found["best"]["devices"]
    assert again["replicas"] == found["best"]["replicas"]
    assert again["latency"]["tpot_s"] == pytest.approx(found["best"]["tpot_s"])
    assert again["cost"]["usd_per_hour"] == pytest.approx(found["best"]["usd_per_hour"])
    # One replica less has more than it takes.
    fewer = found["best"]["replicas"] - 1
    cluster = found["plan"]["cluster"] | {"count": fewer * found["best"]["devices_per_replica"]}
    over = call("estimate_inference", {"plan": found["plan"] | {"cluster": cluster}})
    assert over["latency"]["tpot_s"] > again["latency"]["tpot_s"]


@settings(max_examples=examples(6), deadline=None)
@given(rate=st.floats(0.5, 200), times=st.floats(1.2, 5))
def test_more_load_never_takes_fewer_devices_or_less_money(rate: float, times: float) -> None:
    less, more = (size(request_rate=round(value, 2))["best"] for value in (rate, rate * times))
    assert more["usd_per_hour"] >= less["usd_per_hour"]


def test_tighter_limits_never_take_fewer_devices() -> None:
    devices = [size(request_rate=40.0, tpot_slo_ms=limit)["best"]["usd_per_hour"] for limit in (100, 50, 30, 20)]
    assert devices == sorted(devices)


def test_accelerators_are_compared_by_the_price_of_tokens() -> None:
    found = size(request_rate=40.0, accelerators=("h100-sxm", "mi300x", "l40s"), engines=("vllm",))
    rows = found["by_accelerator"]
    assert {row["accelerator"] for row in rows} <= {"h100-sxm", "mi300x", "l40s"}
    assert len(rows) >= 2
    assert [row["usd_per_hour"] for row in rows] == sorted(row["usd_per_hour"] for row in rows)
    for row in rows:
        assert row["usd_per_million_tokens"] == pytest.approx(
            row["usd_per_hour"] / (row["total_tokens_per_s"] * 3600) * 1e6
        )


def test_a_model_larger_than_a_node_takes_several() -> None:
    found = call("size_serving", {"model": "meta-llama/Llama-3.1-405B", "accelerator": "h100-sxm", "engine": "vllm",
                                  "weight_dtype": "bf16", "request_rate": 1.0})  # fmt: skip
    assert found["best"]["devices_per_replica"] == 16
    assert found["best"]["fits"]


def test_too_few_devices_and_impossible_limits_are_said() -> None:
    few = size(request_rate=400.0, count=8)
    assert few["best"] is None
    assert any("more than the 8 there are" in text for text in few["why"])
    never = size(request_rate=1.0, tpot_slo_ms=0.2)
    assert never["best"] is None
    assert any("No deployment meets the limits" in text for text in never["why"])


def test_ones_own_price_replaces_the_price_book() -> None:
    found = size(request_rate=40.0, usd_per_device_hour=2.0)["best"]
    assert found["usd_per_hour"] == pytest.approx(2.0 * found["devices"])
    assert found["provider"] is None


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "request_rate", "is required, or concurrency"),
    ({"request_rate": 0}, "workload.request_rate", "greater than 0"),
    ({"request_rate": 1, "accelerator": None}, "cluster.accelerator", "which accelerator"),
    ({"request_rate": 1, "accelerators": ["h1000"]}, "cluster.accelerator", "h100"),
    ({"request_rate": 1, "seq_len": 8}, "seq_len", "there is no such field"),
]


@pytest.mark.parametrize(("changes", "field", "says"), WRONG, ids=range(len(WRONG)))
def test_bad_arguments_name_the_field_and_what_is_valid(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        call("size_serving", LIMITED | changes)
    assert caught.value.field == field
    assert says in str(caught.value)


def test_where_no_limit_is_named_people_wait_no_longer_than_they_would() -> None:
    found = size(concurrency=600, ttft_slo_ms=None, tpot_slo_ms=None)
    assert found["why"][0].startswith("No limit on latency was named; taken: 20 tokens/s for each user")
    assert found["best"]["tpot_s"] <= 0.05
    assert found["best"]["ttft_s"] <= 2.0
    limits = {row["field"]: row["value"] for row in found["assumptions"] if row["field"].endswith("slo_ms")}
    assert limits == {"workload.tpot_slo_ms": 50.0, "workload.ttft_slo_ms": 2000.0}
    assert found["best"] == size(concurrency=600)["best"]


def test_a_replica_is_filled_to_its_limit_and_no_further() -> None:
    found = size(concurrency=5000)
    limit, best = found["best"]["replica_limit"], found["best"]
    assert best["limited_by"] == "tpot"
    cluster = found["plan"]["cluster"] | {"count": best["devices_per_replica"]}
    for load, met in ((limit, True), (round(1.02 * limit) + 1, False)):
        workload = found["plan"]["workload"] | {"concurrency": load}
        again = call("estimate_inference", {"plan": found["plan"] | {"cluster": cluster, "workload": workload}})
        assert again["meets_slo"] is met


def test_limits_that_nobody_named_keep_nobody_from_an_answer() -> None:
    slow = {"model": "llama-3.1-70b", "accelerator": "m3 max 64gb", "engines": None, "weight_dtypes": None}
    found = size(concurrency=2, ttft_slo_ms=None, tpot_slo_ms=None, **slow)
    assert found["best"]["fits"]
    assert found["best"]["tpot_s"] > 0.05
    assert not found["why"][0].startswith("No limit on latency")


def test_replicas_go_beyond_a_tray_of_a_rack() -> None:
    """GB200 is a B200 with more power and a network as fast as the node's: no more of them are needed."""
    asked = {"model": "deepseek-ai/DeepSeek-R1", "concurrency": 8000, "tpot_slo_ms": 50}
    rack, box = (call("size_serving", asked | {"accelerator": name})["best"] for name in ("gb200", "b200-sxm"))
    assert rack["devices"] <= box["devices"]
    assert rack["devices_per_replica"] > 4


@pytest.mark.parametrize("count", [4, 16])
@pytest.mark.parametrize("load", [{"request_rate": 4.0, "ttft_slo_ms": 300}, {"concurrency": 700}])
def test_what_takes_more_devices_than_there_are_changes_no_choice(load: dict[str, Any], count: int) -> None:
    """What is left out early leaves the same sizes; where none is enough, a bound stands for the number."""
    asked = SizeServingRequest.model_validate(
        {"model": "llama-3.1-70b", "accelerator": "h100", "count": count, "input_len": 1500, "output_len": 300, **load}
    )
    exact, bound = size_serving(asked), sized(asked, beyond=False)
    assert bound.sizes == exact.sizes
    assert (bound.best is None) == (exact.best is None)
    if exact.best is None:
        told, least = (int(re.findall(r"at least ([\d,]+) devices", each.why[-1])[0]) for each in (exact, bound))
        assert count < least <= told


def test_machines_to_buy_are_ranked_by_what_owning_them_costs() -> None:
    asked = {"request_rate": 5.0, "accelerators": ["h100-sxm", "rtx-4090", "rtx-5090"], "provider": "owned"}
    found = call("size_serving", LIMITED | {"model": "llama-3.1-8b", "accelerator": None, "count": None} | asked)
    hourly = [row["usd_per_hour"] for row in found["by_accelerator"]]
    assert hourly == sorted(hourly)
    assert {row["provider"] for row in found["by_accelerator"]} == {"owned"}
    best = call("estimate_cost", {"plan": found["plan"], "price": "owned"})
    assert best["usd_per_hour"] == pytest.approx(hourly[0])
