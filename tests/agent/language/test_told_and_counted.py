"""Numbers that tell of what was, and those that count what there is: the first set nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.form import Reading
from agent.offline.language import read
from agent.offline.patching import Before, patched
from agent.offline.usual import usual
from planner.partial import get
from planner.requests import ALL_PATHS

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
SERVED = {"model": "meta-llama/Llama-3.1-8B", "workload": {"kind": "inference", "input_len": 6000},
          "cluster": {"accelerator": "h200-sxm", "count": 4}}  # fmt: skip


def _read(words: str, plan: dict[str, Any] | None = None) -> Reading:
    return read(words, known(), plan or {}, {}, NOW)


def _set(words: str, plan: dict[str, Any] | None = None) -> dict[str, Any]:
    return {edit.field: edit.value for edit in _read(words, plan).edits}


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("After 400 steps the loss goes NaN with llama 3.1 8b on 4 A100 80GB. Would bf16 fit?", "steps"),
        ("it crashed after about 200 steps, qwen2.5 14b full on 8 A6000. Would zero 3 help?", "steps"),
        ("vLLM gave 2300 tok/s at batch 64 with TTFT of 900 ms for llama 3.1 8b on one L40S. Normal?", "ttft_slo_ms"),
        ("I bought the 3090 in 2022. Could it do LoRA on mistral 7b at 4k?", "capex_usd_per_device"),
    ],
)
def test_what_was_sets_nothing(words: str, field: str) -> None:
    found = _read(words)
    assert field not in {edit.field for edit in found.edits} | set(found.pricing)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("We have 2 DGX A100 boxes since 2021. Serve Mixtral 8x7B to 150 users, enough?", "nodes", 2),
        ("We lost 2 of 10 nodes, 8 H100 each. llama 3.1 8b on 200B tokens, how long?", "nodes", 8),
        ("12 H100 here and 4 there. deepseek-v3 lora?", "count", 16),
        ("ds r1 671b on 8 H200", "model", "deepseek-ai/DeepSeek-R1"),
        ("the 3090 in my box, lora of mistral 7b", "accelerator", "rtx-3090"),
        (
            "GRPO of qwen2.5 7b on eight H100s. One, does it fit, two, how long is a step, three, which cost?",
            "count",
            8,
        ),
        ("qwen3 8b chat on two b60s", "accelerator", "arc-pro-b60"),
        ("does gemma 4 e4b fit on a 4090?", "model", "google/gemma-4-E4B"),
        ("we're debating R1 671B on 16 H100", "model", "deepseek-ai/DeepSeek-R1"),
    ],
)
def test_what_there_is_is_counted(words: str, field: str, value: Any) -> None:
    assert _set(words)[field] == value


@pytest.mark.parametrize(
    "words", ["half of each prompt is a shared system prompt", "a quarter of each prompt is cached"]
)
def test_a_part_of_something_is_a_share_where_one_is_named(words: str) -> None:
    found = _set(words, SERVED)
    assert set(found) == {"prefix_hit"}
    assert found["prefix_hit"] in (0.5, 0.25)


def test_fewer_than_none_are_asked_about() -> None:
    assert [need.field for need in _read("-4 GPUs, mistral 7b").needs] == ["cluster.count"]


def test_a_limit_is_of_the_number_behind_it() -> None:
    found = _read("1B tokens within 2 days, llama-3.2-3b full, how few H100s?")
    assert {edit.field: edit.note for edit in found.edits}["dataset_tokens"] is None


def test_prices_of_several_devices_are_said_to_be_left_out() -> None:
    found = _read("1. 8x H100 at $2.10/GPU/h\n2. 16x A100 at $1.05/GPU/h\nfull sft of Qwen2.5-32B: which is cheaper?")
    assert len(found.options) == 2
    assert not found.pricing
    assert found.lost == ["$2.10/GPU/h", "$1.05/GPU/h"]


def test_columns_of_a_pasted_table_are_set_side_by_side_and_what_sets_nothing_is_said() -> None:
    found = _read(
        "run      gpus   seq    tok/s\na        8      4096   61000\nb        8      16384  48200\nllama 3.1 8b?"
    )
    assert [[edit.value for edit in option] for option in found.options] == [[4096], [16384]]
    assert found.lost == ["61000", "48200"]


@pytest.mark.parametrize("words", ["swap tp and pp", "tp the other way round with pp"])
def test_two_numbers_take_each_others_place(words: str) -> None:
    plan = {"model": "meta-llama/Llama-3.1-8B", "layout": {"tp": 8, "pp": 4},
            "cluster": {"accelerator": "h100-sxm", "count": 64}}  # fmt: skip
    assert _set(words, plan) == {"tp": 4, "pp": 8}


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("lamma 3.1 8b qlora on a 4090", "model", "meta-llama/Llama-3.1-8B"),
        ("tune phi-3 mini on a node w/ 4 of those older v100 32g cards", "count", 4),
        ("NVIDIA A100-SXM4-80GB, 8 of them, olmo 2 13b", "accelerator", "a100-sxm-80gb"),
        ("push 2B tokens through llama 3.2 3b", "model", "meta-llama/Llama-3.2-3B"),
        ("vllm, qwen3-32b on 2 H100: how many 4k/1k requests at once?", "output_len", 1024),
    ],
)
def test_what_is_named_is_found(words: str, field: str, value: Any) -> None:
    assert _set(words)[field] == value


def test_a_card_that_is_not_known_is_no_other_card() -> None:
    assert [need.field for need in _read("is the tesla p40 24gb any good for mistral 7b?").needs] == [
        "cluster.accelerator"
    ]


@pytest.mark.parametrize("card", ["h100", "a100 80gb", "rtx 4090"])
@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("lora rank 16", "lora_rank", 16),
        ("batch 64", "batch", 64),
        ("seq 2048", "seq_len", 2048),
        ("micro batch 4", "micro_batch", 4),
        ("tp 8", "tp", 8),
    ],
)
def test_a_number_behind_the_name_of_its_field_counts_no_cards(words: str, field: str, value: int, card: str) -> None:
    values = _set(f"llama 3.1 8b {words} {card}")
    assert values[field] == value
    assert "count" not in values


@pytest.mark.parametrize(
    "words", ["llama3.1-70b 512 h100", "qlora 512 h100", "16 generations, 512 h100", "on 512 h100"]
)
def test_other_numbers_before_a_card_do(words: str) -> None:
    assert _set(f"train llama 3.1 70b grpo {words}")["count"] == 512


@pytest.mark.parametrize(
    ("words", "hours"), [("overnight", 12), ("over night", 12), ("for the weekend", 48), ("this weekend", 48)]
)
def test_a_night_and_a_weekend_are_hours(words: str, hours: float) -> None:
    assert _set(f"sft llama 3.1 8b on 8 h100, 1B tokens, doable {words}?")["deadline_h"] == hours


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("qwen 14b", "Qwen/Qwen3-14B"),
        ("llama 13b", "meta-llama/Llama-2-13b-hf"),
        ("Qwen-14B", "Qwen/Qwen-14B"),
        ("mistral 7b", "mistralai/Mistral-7B-v0.1"),
    ],
)
def test_a_family_and_a_size_are_its_newest_generation(words: str, model: str) -> None:
    assert _set(f"lora {words} on a 4090")["model"] == model


@pytest.mark.parametrize(
    ("machine", "id"), [("macbook m4 pro 24gb", "apple-m4-pro-24gb"), ("16gb macbook air m2", "apple-m2-16gb")]
)
def test_a_mac_has_the_memory_that_is_said(machine: str, id: str) -> None:
    assert _set(f"can my {machine} run llama 3.1 8b q4?")["accelerator"] == id


def test_a_mac_with_memory_that_none_is_sold_with_has_less_of_it() -> None:
    assert _set("can my macbook m4 pro 20gb run llama 3.1 8b q4?")["usable_gib"] == 15


@pytest.mark.parametrize("day", ["31/12/2026", "12/31/2026", "31.12.2026", "2026-12-31", "December 31st"])
def test_a_date_is_no_number_of_devices(day: str) -> None:
    found = _read(f"finetune llama 3.1 8b on 8 h100 with 1B tokens, done by {day}")
    values = {edit.field: edit.value for edit in found.edits}
    assert (values["count"], values["deadline_h"]) == (8, 1044.0)
    assert not found.options


@pytest.mark.parametrize(("words", "field"), [("qwen2.5 72b on 8 h200, 2 ep", "epochs"), ("qwen3-30b-a3b, 2 ep", "ep")])
def test_passes_of_a_model_without_experts(words: str, field: str) -> None:
    plan = patched({}, _read(words).edits, words, known(), Before()).plan
    assert get(plan, ALL_PATHS[field]) == 2


def test_what_does_not_run_on_a_new_device_is_chosen_again() -> None:
    plan = {"model": "Qwen/Qwen3-8B", "cluster": {"accelerator": "apple-m4-max"}, "workload": {"framework": "mlx"}}
    moved = patched(plan, _read("on one 5090", plan).edits, "on one 5090", known(), Before())
    assert get(moved.plan, "workload.framework") is None
    assert any("mlx does not run on GeForce RTX 5090" in note for note in moved.patch.notes)
    assert get(patched(plan, _read("on an M3 Ultra", plan).edits, "", known(), Before()).plan, "workload.framework")


def test_machines_whose_size_is_named_are_had_whole() -> None:
    plan = {"model": "Qwen/Qwen3-0.6B", "cluster": {"accelerator": "gaudi3", "per_node": 8}}
    assert usual(plan) == {"cluster.count": 8}


@pytest.mark.parametrize(
    ("words", "id"),
    [("7900xtx llama 3.1 8b", "rx-7900-xtx"), ("llama 8b on a 9070XT", "rx-9070-xt"), ("llama 8b lora 4xt4", "t4")],
)
def test_letters_behind_a_number_are_of_a_card_or_count_one(words: str, id: str) -> None:
    assert _set(words)["accelerator"] == id


@pytest.mark.parametrize(
    ("words", "name", "usd"),
    [
        ("serve llama 8b on 4 h100 at 2.9 per gpu hour", "usd_per_device_hour", 2.9),
        ("usd per Mtok if a box is 28/h, serve llama 70b on 8 h100", "usd_per_node_hour", 28.0),
    ],
)
def test_what_a_device_costs_an_hour_is_no_load(words: str, name: str, usd: float) -> None:
    assert _read(words).pricing[name] == usd
    assert "request_rate" not in _set(words)


def test_what_is_sold_for_a_part_is_no_share_of_the_time() -> None:
    told = _read("buy 8 h200 at 33k each, resell for 30% after 3 yrs, llama 70b sft on 1B tokens").pricing
    assert (told["resale_share"], told["years"]) == (0.3, 3)
    assert "utilisation" not in told
