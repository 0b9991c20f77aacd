"""Rates in one word, names in other scripts and forms, people of whom fewer are there at once, and prices without
their unit: whatever words somebody has for it, the same is read."""

from __future__ import annotations

from typing import Any

import pytest

from agent.offline.catalogue import known
from agent.offline.form import Reading
from agent.offline.language.reading import read
from estimator.plan.schema import merge

RUN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "cluster": {"accelerator": "h100-sxm", "count": 8},
    "workload": {"seq_len": 4096, "method": "lora"},
}


def edits(text: str, plan: dict[str, Any] | None = None) -> dict[str, Any]:
    return {edit.field: edit.value for edit in _read(text, plan).edits}


def _read(text: str, plan: dict[str, Any] | None = None) -> Reading:
    return read(text, known(), plan or {})


@pytest.mark.parametrize(
    "words",
    [
        "2 million requests a day",
        "2M daily requests",
        "2 million requests daily",
        "2 Millionen Anfragen täglich",
        "2.000.000 Anfragen pro Tag",
        "2 millones de consultas diarias",
        "2 millions de requêtes par jour",
        "每天200万请求",
        "1日200万リクエスト",
        "하루 요청 200만 건",
    ],
)
def test_a_load_a_day_is_a_rate(words: str) -> None:
    reading = _read(f"serve llama 3.1 8b on H100, {words}")
    values = {edit.field: edit.value for edit in reading.edits}
    assert values["request_rate"] == pytest.approx(2e6 / 86400)
    assert not {"requests", "deadline_h", "dataset_samples"} & set(values)
    assert not reading.lost


@pytest.mark.parametrize("words", ["12,000 pages an hour", "12000 invoices per hour", "12.000 Rechnungen pro Stunde"])
def test_what_comes_in_by_the_hour_is_a_load_whatever_it_is(words: str) -> None:
    assert edits(f"serve qwen3 8b on L40S for {words}")["request_rate"] == pytest.approx(12000 / 3600)


def test_a_rate_is_of_the_number_it_stands_beside() -> None:
    values = edits("servir qwen2.5 32b: 4 mil consultas diarias de 7 mil tokens con respuestas de 900, en H100")
    assert values["request_rate"] == pytest.approx(4000 / 86400)
    assert values["output_len"] == 900


@pytest.mark.parametrize(
    "words", ["$40k a month", "40k a month", "40 k€ par mois", "$40k monthly", "40.000 € monatlich"]
)
def test_money_a_month_is_no_time_and_no_load(words: str) -> None:
    values = edits(f"serve mistral large 3 for {words}")
    assert values["budget_usd"] == 40000
    assert not {"deadline_h", "request_rate", "count"} & set(values)


@pytest.mark.parametrize(
    "words",
    [
        "9 Mitarbeiter, höchstens 4 gleichzeitig",
        "400 agents, dont 4 connectés en même temps",
        "400 operatori, punta: 4 chiamate contemporanee",
        "300 employees, 4 at the same time",
    ],
)
def test_those_who_are_there_at_once_are_the_load(words: str) -> None:
    assert edits(f"serve qwen3 32b on an RTX 6000 Ada: {words}")["concurrency"] == 4


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("큐웬 2.5 14B", "Qwen/Qwen2.5-14B"),
        ("通义千问2.5-14B", "Qwen/Qwen2.5-14B"),
        ("라마 3.1 8B", "meta-llama/Llama-3.1-8B"),
        ("Ллама 3.1 8B", "meta-llama/Llama-3.1-8B"),
        ("nemotron 3 super 120b a12b", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"),
    ],
)
def test_a_model_is_itself_in_any_script(words: str, model: str) -> None:
    assert edits(f"{words} 8x H100 LoRA")["model"] == model


@pytest.mark.parametrize(
    ("words", "device"),
    [
        ("a Strix Halo box", "ryzen-ai-max-395-128gb"),
        ("a DGX Spark", "gb10-dgx-spark"),
        ("Jetson Orin 64GB", "jetson-agx-orin-64gb"),
    ],
)
def test_a_device_is_known_by_its_other_names(words: str, device: str) -> None:
    assert edits(f"gpt-oss-20b on {words}")["accelerator"] == device


@pytest.mark.parametrize(
    "words", ["jetson agx thor", "a Radxa Rock 5 with 32GB", "my 24GB Frobnicator card", "8张昇腾910B"]
)
def test_a_device_that_nobody_knows_is_asked_about(words: str) -> None:
    reading = _read(f"qwen3 8b on {words}")
    assert any("in the catalogue" in need.text or "cannot be planned" in need.text for need in reading.needs)
    assert "accelerator" not in edits(f"qwen3 8b on {words}")


@pytest.mark.parametrize("words", ["and if the H100s were PCIe?", "PCIe ones", "what if they are PCIe?"])
def test_a_form_is_of_the_device_that_there_is(words: str) -> None:
    assert edits(words, RUN)["accelerator"] == "h100-pcie"


@pytest.mark.parametrize(
    "words", ["drop to 512k", "go down to 512k", "the sequence length is more like 512k", "make it 512k"]
)
def test_what_a_number_is_led_to_is_set(words: str) -> None:
    (edit,) = _read(words, merge(RUN, {"workload": {"seq_len": 1048576}})).edits
    assert (edit.op, edit.value) == ("set", 524288)


@pytest.mark.parametrize(
    "words", ["under a second", "less than a second", "below one second", "sub second", "unter einer Sekunde"]
)
def test_a_second_is_a_limit(words: str) -> None:
    assert edits(f"serve llama 8b on an H100, first token {words}")["ttft_slo_ms"] == 1000


def test_a_small_sum_beside_devices_is_their_price() -> None:
    assert _read("llama 8b lora, 10M tokens, 4 A100 at $1.5").pricing["usd_per_device_hour"] == 1.5
    assert edits("llama 8b lora, 1M tokens, on an H100, for under $5")["budget_usd"] == 5


def test_a_provider_beside_one_of_two_is_of_that_one() -> None:
    reading = _read("what is cheaper for gpt-oss-20b: one L4 or a RunPod 4090")
    assert [{edit.field for edit in option} >= {"provider"} for option in reading.options] == [False, True]
    both = _read("what is cheaper for gpt-oss-20b on RunPod: one L4 or one 4090")
    assert all("provider" not in {edit.field for edit in option} for option in both.options)


def test_each_node_has_its_devices() -> None:
    values = edits("2节点每节点8张A100 80G，megatron预训练llama2 7b")
    assert (values["nodes"], values["per_node"]) == (2, 8)
    values = edits("全参SFT GLM-4-9B，5万条数据每条约1500token，8张A100")
    assert (values["dataset_samples"], values["sample_tokens"]) == (50000, 1500)


@pytest.mark.parametrize("words", ["what context can I get?", "how much context fits?", "能支持多长上下文?"])
def test_what_may_be_had_of_something_is_a_limit(words: str) -> None:
    reading = _read(f"gemma 3 27b on a 4090, {words}")
    assert (reading.tool, reading.own["goal"]) == ("find_limit", "context")


@pytest.mark.parametrize("words", ["llama 3.3 70b on 2 H100?", "longest context of llama 3.3 70b on 2 H100"])
def test_devices_that_hold_no_training_of_a_model_are_to_serve_it(words: str) -> None:
    assert _read(words).serving
    assert not _read(f"LoRA, {words}").serving


@pytest.mark.parametrize("words", ["how sure is that?", "how reliable are these numbers?", "wie sicher ist das?"])
def test_how_sure_an_answer_is_is_asked_of_it(words: str) -> None:
    assert _read(words, RUN).own == {"about": "certainty"}


@pytest.mark.parametrize(
    "words",
    [
        "what should I buy to fine-tune qwen3 8b on 100M tokens with $10k?",
        "best hardware to purchase for qlora of qwen3 8b on 100M tokens under $3000",
        "welche GPU soll ich kaufen um qwen3 8b mit 50M Tokens zu trainieren, 2000 Euro?",
        "我该买什么显卡来微调 qwen3 8b，100M tokens，预算 10000 美元",
    ],
)
def test_what_to_buy_is_searched_among_what_is_for_sale(words: str) -> None:
    reading = _read(words)
    assert reading.tool == "recommend_cluster"
    assert reading.own["providers"] == ["owned"]


def test_rent_or_buy_searches_what_is_rented() -> None:
    assert "providers" not in _read("rent or buy GPUs to fine-tune qwen3 8b on 100M tokens?").own


@pytest.mark.parametrize(
    "words",
    [
        "what would $10k more buy?", "what would 10k more buy us?", "what would 10k more dollars buy?",
        "what could another $10,000 buy me?", "what does a further $10k buy?",
    ],
)  # fmt: skip
def test_what_more_money_buys_is_asked_of_the_run(words: str) -> None:
    reading = _read(words, RUN)
    assert reading.tool == "estimate_cost"
    assert reading.pricing["more_usd"] == 10_000
    assert "providers" not in reading.own


@pytest.mark.parametrize(
    ("words", "usd"),
    [
        ("1 euro is 1.08 dollars", 10_800),
        ("1 EUR = 1.08 USD", 10_800),
        ("at 1.08 dollars per euro", 10_800),
        ("1 dollar is 0.8 euros", 12_500),
        ("1 Euro sind 1,10 Dollar", 11_000),
        ("it is urgent", 10_000),
    ],
)
def test_other_money_is_taken_at_the_rate_that_is_told(words: str, usd: float) -> None:
    reading = _read(f"fine-tune qwen3 8b on 1B tokens on 8 H100 with 10k euros, {words}")
    assert {edit.field: edit.value for edit in reading.edits}["budget_usd"] == usd
    assert not reading.lost


def test_a_price_of_ones_own_is_taken_at_that_rate_too() -> None:
    words = "what does it cost on 8 H100 at 2 euros per GPU hour? One euro is 1.1 dollars"
    assert _read(words, RUN).pricing["usd_per_device_hour"] == 2.2


@pytest.mark.parametrize(
    ("words", "hours"),
    [
        ("if I use them 10 hours a day?", 3650),
        ("if they run 6000 hours a year?", 6000),
        ("used 40 hours a week?", 2086),
    ],
)
def test_hours_of_use_decide_between_rent_and_purchase(words: str, hours: float) -> None:
    reading = _read(f"rent or buy 8 H100, {words}")
    assert reading.own["paid_for"]["h100-sxm"]["hours_per_year"] == pytest.approx(hours, abs=1)
    assert not reading.lost


@pytest.mark.parametrize("run", ["to full fine-tune Llama-3.1-8B", "for LoRA of Qwen3-32B", "to pretrain a 7B"])
def test_hours_of_use_decide_whatever_is_trained_in_them(run: str) -> None:
    reading = _read(f"should I buy or rent 8 H100, 10 hours a day, {run}?")
    assert reading.own["paid_for"]["h100-sxm"]["hours_per_year"] == pytest.approx(3650, abs=1)


@pytest.mark.parametrize(
    ("words", "hours", "days"),
    [
        ("8 hours a day", 8.0, None),
        ("8 hours a day on weekdays", 8.0, 5),
        ("business hours only", 8.0, 5),
        ("12 hours a day", 12.0, None),
    ],
)
@pytest.mark.parametrize(
    "run", ["serve llama-3.1-8b on one h100 {}, monthly bill?", "fine-tune llama-3.1-8b on 8 h100, 1B tokens, {}"]
)
def test_the_hours_of_a_day_are_when_machines_are_free(run: str, words: str, hours: float, days: int | None) -> None:
    reading = _read(run.format(words))
    set_to = {edit.field: edit.value for edit in reading.edits}
    assert (set_to["hours_per_day"], set_to.get("days_per_week")) == (hours, days)
    assert not reading.lost


@pytest.mark.parametrize(
    "words", ["reserved at our own $2.10 an hour per GPU", "at our own price of $2.10 per GPU hour"]
)
def test_a_price_of_ones_own_buys_no_machine(words: str) -> None:
    pricing = _read(f"{words}: what does pretraining llama-3.1-8b on 64 h100 with 200B tokens cost?").pricing
    assert pricing["usd_per_device_hour"] == 2.1
    assert pricing.get("price") in (None, "reserved")
