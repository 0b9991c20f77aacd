"""What stands in the place of something else, what is too much of it, and what is spoken of without its name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.language.reading.models import _usual_of_family
from knowledge.models.catalogue import find_model
from planner.partial import get
from planner.results import TrainingEstimate
from planner.training.concessions import CONCEDED
from tests.agent import scoring
from tests.agent.conversations import reading
from tests.agent.scoring import Said, talk

SERVED = {
    "model": "Qwen/Qwen3-32B",
    "cluster": {"accelerator": "rtx-5090", "count": 2},
    "workload": {
        "kind": "inference", "engine": "vllm", "input_len": 4096, "concurrency": 100, "weight_dtype": "bf16",
        "ttft_slo_ms": 1000.0, "slo_statistic": "p99",
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def at_home() -> Iterator[None]:
    with scoring.home():
        yield


def _edits(text: str, plan: dict[str, Any] | None = None) -> set[tuple[str, str, Any]]:
    return {(edit.field, edit.op, edit.value) for edit in reading(text, plan).edits}


def _set(text: str, plan: dict[str, Any] | None = None) -> dict[str, Any]:
    return {field: value for field, op, value in _edits(text, plan) if op == "set"}


def _last(*turns: str) -> Said:
    return list(talk(list(turns)))[-1]


@pytest.mark.parametrize("pointed", ["that", "those", "all that", "them", "this one"])
@pytest.mark.parametrize(
    ("thing", "field", "value"),
    [("an MI300X", "accelerator", "mi300x"), ("sglang", "engine", "sglang"), ("fp8", "weight_dtype", "fp8")],
)
@pytest.mark.parametrize("words", ["{} instead of {}", "what about {} rather than {}", "{} in place of {}?"])
def test_what_is_in_the_place_of_something_is_taken(words: str, thing: str, field: str, value: str, pointed: str):
    edits = _edits(words.format(thing, pointed), SERVED)
    assert (field, "set", value) in edits
    assert not [edit for edit in edits if edit[1] == "refuse"]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("p99 is too strict, make it the mean", "slo_statistic", "mean"),
        ("vllm is too slow, use sglang", "engine", "sglang"),
        ("vllm est trop lent, prends sglang", "engine", "sglang"),
        ("bf16 is way too heavy, fp8", "weight_dtype", "fp8"),
        ("the 5090s are too loud, take A100", "accelerator", "a100-sxm-80gb"),
        ("4k is too long, make it 2k", "input_len", 2048),
        ("4k ist zu lang, mach 2k", "input_len", 2048),
        ("100 is too pessimistic, say 40", "concurrency", 40),
    ],
)
def test_of_two_the_one_that_is_too_much_so_is_not_taken(words: str, field: str, value: Any) -> None:
    assert _set(words, SERVED)[field] == value


@pytest.mark.parametrize("words", ["is vllm too slow?", "is 4k too long?"])
def test_who_asks_whether_it_is_too_much_changes_nothing(words: str) -> None:
    assert not [edit for edit in _edits(words, SERVED) if edit[1] == "refuse"]


@pytest.mark.parametrize("words", ["ach nee, sind 3090er", "they're 3090s", "zwei 3090er", "doch auf 3090ern"])
def test_cards_in_the_plural_are_cards(words: str) -> None:
    assert _set(words, SERVED)["accelerator"] == "rtx-3090"


@pytest.mark.parametrize(
    "words",
    [
        "which of the two is cheaper per month?", "Laquelle des deux revient le moins cher par mois ?",
        "welche von beiden ist billiger?", "quale delle due costa meno?", "which of the two costs less?",
    ],
)  # fmt: skip
def test_of_two_that_were_sized_each_is_compared_as_it_was_found(words: str) -> None:
    done = _last("serve mistral small 3.1 24b to 200 users on l40s, how many?", "and on h100?", words)
    assert [call.name for call in done.calls] == ["compare"]
    sides = [row["plan"] for row in done.calls[0].arguments["scenarios"]]
    assert [get(side, "cluster.accelerator") for side in sides] == ["l40s", "h100-sxm"]
    rows = done.outcomes[0].response["rows"]
    assert all(row["fits"] for row in rows)
    assert all(get(side, "cluster.count") == row["devices"] for side, row in zip(sides, rows, strict=True))


def test_what_is_asked_by_the_month_is_told_by_what_is_paid_in_it() -> None:
    first, second = "serve mistral small 3.1 24b to 200 users on l40s, how many?", "and on h100?"
    done = _last(first, second, "which of the two is cheaper per month?")
    rows = done.outcomes[0].response["rows"]
    least = min(rows, key=lambda row: row["usd_per_hour"])
    assert done.answer.splitlines()[0].startswith(f"⚠ **{least['name']} costs the least")


@pytest.mark.parametrize(
    "words",
    [
        "we pay openai 9k a month for 2.1M requests, avg 1200 tokens in 250 out. is hosting qwen3 32b on h100 cheaper?",
        "we spend $9000/month on openai, 2.1M requests of 1200 in and 250 out. cheaper to serve qwen3 32b on an h100?",
    ],
)
def test_what_an_api_costs_by_the_month_is_no_price_of_a_device(words: str) -> None:
    done = reading(words)
    assert done.own["usd_per_million"] == pytest.approx(9000 / 2.1e6 / 1450 * 1e6, rel=1e-5)
    assert not done.pricing.get("usd_per_device_hour")
    assert _set(words)["request_rate"] == pytest.approx(2.1e6 / (30 * 86400), rel=1e-6)


@pytest.mark.parametrize("words", ["buy an 8x H100 box for {} or rent?", "buy a DGX H100 at {} or rent it?"])
@pytest.mark.parametrize(("written", "usd"), [("280k", 280_000), ("$310,000", 310_000)])
def test_what_a_machine_costs_is_shared_by_its_devices(words: str, written: str, usd: float) -> None:
    (call,) = _last(words.format(written)).calls
    assert call.arguments["capex_usd_per_device"] == usd / 8


@pytest.mark.parametrize(
    "words",
    ["they're only free 8 hours at night, mon to fri", "mo bis fr nachts 8 Stunden", "weekdays, at night, 8 hours"],
)
def test_hours_beside_a_part_of_the_day_are_those_of_each_day(words: str) -> None:
    said = _set(words, SERVED | {"workload": {"kind": "training", "dataset_tokens": 1e9}, "goal": {}})
    assert (said["hours_per_day"], said["days_per_week"]) == (8, 5)


@pytest.mark.parametrize("back", ["back to the finetune but qwen3 32b", "back to training, with qwen3 32b"])
def test_back_to_a_training_is_back_to_all_of_it(back: str) -> None:
    done = _last("qlora of llama 3.3 70b on 2x3090", "i just want to chat with it in q4", back)
    assert get(done.plan, "workload.method") == "qlora"
    assert done.plan["model"] == "Qwen/Qwen3-32B"


@pytest.mark.parametrize(
    ("words", "group"),
    [("8 samples", {"group_size": 8}), ("1プロンプト8サンプル、応答長2048", {"group_size": 8, "response_len": 2048}),
     ("16 completions, 1024 tok each", {"group_size": 16, "response_len": 1024}),
     ("7000 samples of 600 tokens each, 8 rollouts", {"dataset_samples": 7000, "sample_tokens": 600, "group_size": 8})],
)  # fmt: skip
def test_answers_to_a_prompt_are_no_data(words: str, group: dict[str, float]) -> None:
    said = _set(f"Qwen3-4B GRPO, H100 x4. {words}")
    numbers = ("group_size", "response_len", "prompt_len", "dataset_samples", "sample_tokens")
    assert {name: said[name] for name in numbers if name in said} == group


@pytest.mark.parametrize("family", ["gemma", "qwen", "llama", "gpt-oss", "olmo", "granite"])
@pytest.mark.parametrize("before", [8e9, 32e9, 70e9])
def test_a_family_alone_is_about_as_large_as_what_was_spoken_of(family: str, before: float) -> None:
    options = known().family(family)
    sizes = [row.parameters for row in (find_model(id).value for id in options) if row.parameters]
    chosen = find_model(_usual_of_family(options, [before])).value.parameters
    assert chosen
    nearest = min(max(size / before, before / size) for size in sizes)
    assert max(chosen / before, before / chosen) <= 3 * nearest


def test_one_device_on_which_it_fits_stays_one() -> None:
    asked = "can I full finetune llama 3.2 3b with bs 8, seq 2048 on rtx 4090? it ran out of memory"
    done = _last(asked, "grad checkpointing is already on")
    assert get(done.plan, "cluster.count") in (None, 1)


@pytest.mark.parametrize("words", ["what optimizers are there", "which engines do you know", "welche Engines gibt es?"])
def test_what_there_is_of_a_field_is_listed(words: str) -> None:
    done = _last(words)
    assert not done.calls
    assert "values of" in done.answer


@pytest.mark.parametrize("words", ["which optimizer should i use", "which engine is fastest"])
def test_what_to_take_is_no_list(words: str) -> None:
    assert "values of" not in _last(words).answer


@pytest.mark.parametrize(
    ("words", "price"),
    [
        ("i have 4 4090s at home. lora of llama 8b with 100M tokens, what does it cost me", "owned"),
        ("my 3090: what does qlora of qwen3 8b on 20M tokens cost?", "owned"),
        ("what does lora of llama 8b with 100M tokens cost on 4 4090s", None),
        ("our 8 h100: what does lora of llama 70b with 100M tokens cost?", None),
    ],
)
def test_what_one_has_at_home_is_not_rented(words: str, price: str | None) -> None:
    assert reading(words).pricing.get("price") == price


@pytest.mark.parametrize(
    "words", ["what does lora of llama 8b with 50M tokens cost on a 4090", "does lora of llama 8b fit on a 4090?"]
)
def test_what_was_given_up_to_fit_is_given_up_in_all_that_is_told(words: str) -> None:
    done = _last(words)
    first = done.outcomes[0].result
    assert isinstance(first, TrainingEstimate)
    assert any(item.why == CONCEDED for item in first.assumptions)
    assert [call.arguments.get("fused_loss") for call in done.calls[1:]] == [True]
    assert "not fit" not in done.answer.split("\n\n")[0]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("traffic doubles in december and we do 12 rps today. how many gpus", "request_rate", 24),
        ("we have 100 users now and expect 3x the users", "concurrency", 300),
    ],
)
def test_what_is_so_today_grows(words: str, field: str, value: float) -> None:
    assert _set(words, SERVED)[field] == value


@pytest.mark.parametrize("model", ["./x/model.gguf", "./config.json", "nobody/knows-it"])
def test_a_family_behind_a_model_of_ones_own_is_found(model: str) -> None:
    assert "gemma" in _set("gemma then", SERVED | {"model": model})["model"]
