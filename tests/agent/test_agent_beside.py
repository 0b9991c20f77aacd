"""A change beside the session's plan, memory without a device, prices of one's own, plans that do not exist yet."""

from __future__ import annotations

from typing import Any

import pytest
from scoring import talk


def calls(*words: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of the last of some turns."""
    return [(call.name, call.arguments) for call in [*talk(list(words))][-1].calls]


TRAINING = "llama-3.1-8b pretraining on 8 H100, 8k"
SERVING = "serve qwen3-32b in fp8 on 2 H100 with vllm, 4k in 1k out, 16 users"


@pytest.mark.parametrize(
    ("plan", "words", "own"),
    [
        (TRAINING, "is it faster than 16 H100s?", {"over": {"count": [8, 16]}}),
        (TRAINING, "would 16 B200s be cheaper?", {"scenarios": [
            {"name": "8 x h100-sxm", "accelerator": "h100-sxm", "count": 8},
            {"name": "16 x b200-sxm", "accelerator": "b200-sxm", "count": 16}]}),
        (TRAINING, "what does switching to fp8 buy me?", {"over": {"precision": ["bf16", "fp8"]}}),
        (TRAINING, "is gradient checkpointing worth it?", {"over": {"recompute": ["none", "full"]}}),
        (SERVING, "vs sglang?", {"over": {"engine": ["vllm", "sglang"]}}),
        (SERVING, "how much more throughput would int4 give?", {"over": {"weight_dtype": ["fp8", "int4"]}}),
    ],
)  # fmt: skip
def test_a_change_is_set_beside_the_plan_which_stays(plan: str, words: str, own: dict[str, Any]) -> None:
    before, after = talk([plan, words])
    ((name, arguments),) = [(call.name, call.arguments) for call in after.calls]
    assert name == "compare"
    for key, value in own.items():
        found = arguments[key]
        if key == "scenarios":
            assert [{field: one.get(field) for field in row} for one, row in zip(found, value, strict=True)] == value
        else:
            assert found == value
    assert after.plan == before.plan


def test_what_a_model_needs_is_told_without_a_device() -> None:
    run, train, placed = talk(
        ["how much VRAM does llama-3.1-8b need?", "and to fine-tune it with lora?", "on one 4090"]
    )
    assert [call.name for call in run.calls] == ["estimate_inference", *["find_limit"] * 3]
    assert [call.name for call in train.calls] == ["estimate_training", *["find_limit"] * 3]
    assert run.answer.startswith("**About ")
    assert not run.asked
    assert "cluster" not in run.plan
    assert placed.plan["cluster"]["accelerator"] == "rtx-4090"
    assert placed.calls[0].name == "estimate_training"


@pytest.mark.parametrize("words", ["make the previous plan cheaper", "go back to the last plan"])
def test_a_plan_that_is_not_there_yet_is_no_foreign_subject(words: str) -> None:
    (done,) = talk([words])
    assert not done.calls
    assert "no plan in this conversation yet" in done.answer


@pytest.mark.parametrize(
    ("words", "provider", "instance", "device", "usd"),
    [
        ("Our price for a node of 8 H200 at NordCloud is 24.80 USD an hour. Please add that to the price book.",
         "NordCloud", "8 x h200-sxm", "h200-sxm", 24.8),
        ("remember our price: 8x H100 at NordColo, 18.40 usd an hour for the whole box",
         "NordColo", "8 x h100-sxm", "h100-sxm", 18.4),
    ],
)  # fmt: skip
def test_a_price_of_ones_own_is_read_whole(words: str, provider: str, instance: str, device: str, usd: float) -> None:
    ((name, arguments),) = calls(words)
    assert name == "add_price"
    assert arguments == {"provider": provider, "instance": instance, "accelerator": device, "count": 8,
                         "usd_per_hour": usd}  # fmt: skip


def test_the_option_that_is_taken_up_is_the_one_that_was_named() -> None:
    offers, taken = talk(["cheapest GPUs for lora of llama-3.1-8b on 1B tokens?", "go with the second one"])
    second = offers.outcomes[0].response["options"][1]
    assert taken.plan["cluster"] == {"accelerator": second["accelerator"], "count": second["count"]}


@pytest.mark.parametrize(("words", "place"), [("use that", 0), ("take the second", 1), ("the third", 2)])
def test_what_is_taken_costs_what_was_told_of_it(words: str, place: int) -> None:
    offers, taken = talk(["recommend a cluster to pretrain llama 3 8b on 500B tokens in 2 weeks", words])
    option = offers.outcomes[0].response["options"][place]
    told = {name: option[name] for name in ("accelerator", "count", "provider", "usd_per_hour", "usd")}
    bill = taken.outcomes[-1].response
    assert {**taken.plan["cluster"], **{name: bill[name] for name in told if name in bill}}.items() >= told.items()


def test_another_device_leaves_what_came_with_the_cluster_that_was_taken() -> None:
    texts = ["recommend a cluster to pretrain llama 3 8b on 500B tokens in 2 weeks", "use that", "and on mi300x?"]
    *_, moved = talk(texts)
    assert moved.outcomes[-1].response["usd"]
    assert "provider" not in moved.plan.get("goal", {})


@pytest.mark.parametrize(
    ("words", "device"), [("the second", "h200-sxm"), ("use that", "b200-sxm"), ("the first one", "h100-sxm")]
)
def test_of_what_was_compared_the_one_that_is_named_is_taken_or_the_best(words: str, device: str) -> None:
    compared = "compare h100, h200 and b200 for full fine-tuning llama 3.1 8b on 1B tokens, 8 of each"
    told, taken = talk([compared, words])
    assert told.calls[0].name == "compare"
    assert taken.plan["cluster"] == {"accelerator": device, "count": 8}


@pytest.mark.parametrize(
    ("words", "size"),
    [("96 A100 nodes (8x40GB), llama-2-7b pretraining on 1T tokens", "a100-sxm-40gb"),
     ("full fine-tuning of gemma-2-2b on four V100s, 32 GB, PCIe", "v100-pcie-32gb")],
)  # fmt: skip
def test_a_memory_that_is_said_elsewhere_settles_which_card_it_is(words: str, size: str) -> None:
    (done,) = talk([words])
    assert done.plan["cluster"]["accelerator"] == size
    assert not done.asked
