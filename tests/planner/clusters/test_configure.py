"""auto_configure: the plan that it gives is what the other tools say it is."""

import pytest
from pace import timely

from estimator.errors import PlanError
from tools.registry import find

LLAMA = "meta-llama/Llama-3.1-8B"


def configured(**arguments):
    return find("auto_configure")(arguments)


def reason(found, field):
    return next(row for row in found["reasons"] if row["field"] == field)


def test_the_plan_is_complete_and_its_figures_come_out_again():
    found = configured(model=LLAMA, dataset_tokens="100M", budget_usd=50)
    assert found["satisfied"]
    assert found["fits"]
    assert found["usd"] <= 50
    cost = find("estimate_cost")({"plan": found["plan"]})
    assert round(cost["usd"], 2) == round(found["usd"], 2)
    assert cost["hours"] == pytest.approx(found["hours"])
    assert find("check_fit")({"plan": found["plan"]})["fits"]
    assert {"workload.method", "cluster", "layout", "workload.precision"} <= {row["field"] for row in found["reasons"]}
    assert found["plan"]["workload"]["method"] == "full"
    for target in found["launch_targets"]:
        assert find("render_configs")({"plan": found["plan"], "targets": [target]})["files"]


@pytest.mark.parametrize(
    ("model", "accelerator", "count", "method"),
    [
        (LLAMA, "h100", 8, "full"), (LLAMA, "a100 80gb", 1, "full"), (LLAMA, "rtx-4090", 1, "lora"),
        ("llama-3.1-70b", "rtx-4090", 2, "qlora"), ("llama-3.1-405b", "h100", 8, "lora"),
        ("qwen3-30b-a3b", "rtx-4090", 1, "qlora"), ("deepseek-v3", "h200", 8, "qlora"),
    ],
)  # fmt: skip
def test_given_hardware_decides_the_method_as_a_verdict_on_it_does(model, accelerator, count, method):
    """The first of the methods of which `check_fit` says that it fits, on whichever framework and with host memory."""
    given = {"model": model, "accelerator": accelerator, "count": count}
    found = configured(**given, dataset_tokens="10M")
    assert found["plan"]["cluster"]["count"] == count
    assert found["plan"]["workload"]["method"] == method
    order = ["full", "lora", "qlora"]
    for name in order[: order.index(method)]:
        assert not find("check_fit")(given | {"method": name})["fits"]
        assert name in reason(found, "workload.method")["why"]
    verdict = find("check_fit")(given | {"method": method})
    assert verdict["fits"]
    assert verdict["plan"]["workload"]["framework"] == found["plan"]["workload"]["framework"]


def test_what_is_given_is_kept():
    found = configured(model=LLAMA, dataset_tokens="10M", method="lora", seq_len=1024, global_batch=64, provider="AWS")
    workload = found["plan"]["workload"]
    assert (workload["method"], workload["seq_len"], workload["global_batch"]) == ("lora", 1024, 64)
    assert found["plan"]["goal"]["provider"] == "AWS" == found["option"]["provider"]
    assert reason(found, "workload.method")["why"] == "it was given"


def test_sequences_follow_from_the_data():
    found = configured(model=LLAMA, dataset_tokens="10M", accelerator="h100", count=8, longest_sample_tokens=1800)
    assert found["plan"]["workload"]["seq_len"] == 2048
    with pytest.raises(PlanError, match="longest_sample_tokens"):
        configured(model=LLAMA, accelerator="h100", count=8, longest_sample_tokens=1800, seq_len=1024)


def test_a_goal_that_cannot_be_met_says_what_to_relax():
    asked = {"model": LLAMA, "dataset_tokens": "1B", "accelerator": "h100", "count": 8, "method": "full"}
    free = configured(**asked)
    found = configured(**asked, deadline_h=free["hours"] / 3)
    assert not found["satisfied"]
    assert found["fits"]
    assert found["hours"] > free["hours"] / 3
    assert any("deadline" in text for text in found["relax"])
    assert any("another number" in text for text in found["relax"])


def test_what_fits_nowhere_is_said():
    found = configured(model="meta-llama/Llama-3.1-70B", dataset_tokens="10M", accelerator="rtx-4090", count=1)
    assert not found["satisfied"]
    assert not found["fits"]
    assert found["option"] is None
    assert any("other devices" in text for text in found["relax"])
    assert [row["choice"] for row in found["considered"]] == ["full", "lora", "qlora"]


def test_pretraining_trains_everything():
    found = configured(model=LLAMA, stage="pretrain", dataset_tokens="1B", accelerator="h100", count=8)
    assert found["plan"]["workload"]["method"] == "full"


def test_serving_takes_fewer_bits_only_where_it_must():
    roomy = configured(model=LLAMA, concurrency=8, accelerator="h100", count=1)
    assert roomy["plan"]["workload"]["weight_dtype"] == "bf16"
    assert roomy["satisfied"]
    tight = configured(model="meta-llama/Llama-3.1-70B", concurrency=8, accelerator="h100", count=1)
    assert tight["plan"]["workload"]["weight_dtype"] == "awq"
    assert find("check_fit")({"plan": tight["plan"]})["fits"]
    assert "bf16" in reason(tight, "workload.weight_dtype")["why"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"model": "no such"}, "model"),
        ({"providers": ["x"]}, "providers"),
        ({"accelerator": "h9"}, "cluster.accelerator"),
    ],
)
def test_bad_arguments_are_named(bad, field):
    with pytest.raises(PlanError) as caught:
        configured(**({"model": LLAMA, "dataset_tokens": "10M"} | bad))
    assert caught.value.field == field


@pytest.mark.parametrize("limit", [{"deadline_h": 1e-4}, {"budget_usd": 1}])
def test_where_nothing_keeps_a_limit_the_method_that_comes_nearest_is_told(limit):
    found = configured(model="meta-llama/Llama-3.1-70B", dataset_tokens="10M", accelerators=["h100", "tpu-v7"], **limit)
    assert not found["satisfied"]
    (figure,) = {"deadline_h": ["hours"], "budget_usd": ["usd"]}[next(iter(limit))]
    method = found["plan"]["workload"]["method"]
    others = [row for row in found["considered"] if row["choice"].split(" on ")[0] in {"full", "lora", "qlora"}]
    assert [row["choice"].split(" on ")[0] for row in others] == [
        name for name in ("full", "lora", "qlora") if name != method
    ]
    # What can be launched comes before what comes nearer and cannot.
    reached = min([found[figure], *(row[figure] for row in found["considered"] if row not in others)])
    assert all(reached <= row[figure] for row in others if row["fits"])


@pytest.mark.parametrize("load", [{"dataset_tokens": "10M"}, {"request_rate": 2, "input_len": 1000, "output_len": 200}])
def test_what_no_hourly_limit_pays_for_is_told_by_the_limit_and_not_by_a_device_that_it_says_nothing_of(load):
    asked = {"model": "meta-llama/Llama-3.1-70B", **load}
    found = configured(**asked, max_usd_per_hour=0.05)
    assert not found["fits"]
    whys = {row["why"] for row in found["considered"]}
    assert whys == {"costs more an hour wherever it fits"}
    # Any devices may be used already: another number of these is what other devices would be.
    assert not any(text.startswith("With other devices") for text in found["relax"])
    assert any(text.startswith("With another number") for text in found["relax"])
    rejected = find("recommend_cluster")({**asked, "max_usd_per_hour": 0.05})["rejected"]
    dear = next(row for row in rejected if row["reason"] == "over_hourly")["least_usd_per_hour"]
    assert min(dear.values()) > 0.05
    device, usd = min(dear.items(), key=lambda item: item[1])
    first = find("recommend_cluster")({**asked, "max_usd_per_hour": usd * 1.001, "accelerators": [device]})
    assert first["options"]
    assert first["options"][0]["usd_per_hour"] == pytest.approx(usd)


def test_ways_out_are_told_soon_and_once():
    run = {"model": "mixtral-8x7b", "accelerator": "l4", "count": 8, "micro_batch": 64, "steps": 16, "method": "full"}
    found = timely(4.0, lambda: configured(**run))
    assert not found["fits"]
    ways = ("With another number of these devices: ", "With sequences of ", "With other devices: ")
    assert all(row.startswith(way) for row, way in zip(found["relax"], ways, strict=True))
    only = configured(model="mixtral-8x7b", accelerator="b200", count=1, micro_batch=64, steps=10)
    assert len({row.partition(": ")[2] for row in only["relax"]}) == len(only["relax"])
