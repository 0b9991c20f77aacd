"""Amounts of money: dollars however they are written, and what is no dollar is never silently taken for one."""

from __future__ import annotations

import re

import pytest
from scoring import talk

from tools import call

RUN = "LoRA of Qwen2.5-7B on 1B tokens"


@pytest.mark.parametrize(
    ("words", "budget_usd"),
    [
        ("with $3000, what should I rent for a {}?", 3000),
        ("I have $3,000, what should I rent for a {}?", 3000),
        ("with 5000 USD by the end of the week, what should I rent for a {}?", 5000),
        ("US$2.5k: what should I rent for a {}?", 2500),
        ("what should I rent for a {} with 5000$?", 5000),
        ("USD 2k and 3 days: what should I rent for a {}?", 2000),
    ],
)
def test_dollars(words: str, budget_usd: float) -> None:
    (turn,) = talk([words.format(RUN)])
    (call,) = turn.calls
    assert call.name == "recommend_cluster"
    assert call.arguments["budget_usd"] == budget_usd


@pytest.mark.parametrize("said", ["5,000 EUR", "€5000", "5 000 €", "5k euros", "5000 CHF", "£5,000"])
def test_what_is_worth_a_dollar_and_more_is_taken_one_for_one_and_said(said: str) -> None:
    (turn,) = talk([f"budget {said}: what should I rent for a {RUN}?"])
    (call,) = turn.calls
    assert call.arguments["budget_usd"] == 5000
    assert f"{said} taken as $5" in turn.answer
    assert "no exchange rate is known" in turn.answer


@pytest.mark.parametrize(
    "said", ["5000 RMB", "₹200,000", "¥500000", "5000元人民币", "500000円", "8000 Canadian dollars"]
)
def test_of_other_money_the_dollars_are_asked(said: str) -> None:
    (turn,) = talk([f"my budget is {said}, what should I rent for a {RUN}?"])
    assert not turn.calls
    (question,) = turn.asked
    assert question.startswith("goal.budget_usd: prices here are in US dollars")


def test_rates_in_euros_are_read_too() -> None:
    *_, turn = talk(["we own 8 H100, electricity is 0.30 €/kWh: cost of full fine-tuning llama-3.1-8b on 1B tokens?"])
    assert turn.calls[-1].arguments["usd_per_kwh"] == 0.3


def test_costs_asked_in_another_currency_are_dollars_and_said_so() -> None:
    (turn,) = talk(["llama-3.1-8b sft on 1B tokens, 8 h100-sxm: cost in euros?"])
    assert "no amount is given in euros" in turn.answer


def test_costs_are_told_in_another_currency_at_the_rate_that_is_told() -> None:
    (turn,) = talk(["llama-3.1-8b sft on 1B tokens, 8 h100-sxm: cost in euros at 1.10 dollars per euro?"])
    bill = call("estimate_cost", turn.calls[-1].arguments)
    assert bill["own_money"]["amount"] * 1.1 == pytest.approx(bill["usd"])
    assert f"{bill['own_money']['amount']:,.2f}" in turn.answer
    assert "unverified" not in turn.answer


def test_a_price_of_ones_own_is_not_kept_in_another_currency() -> None:
    (turn,) = talk(["our price for 8 H100 at NordCloud is 24.80 EUR an hour, add that to the price book"])
    assert not turn.calls


def test_money_alone_is_no_question_for_us() -> None:
    (turn,) = talk(["Can somebody recommend a good laptop under $1500?"])
    assert not turn.calls
    assert not turn.asked


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        ("12 GB of raw polish text", 3e9),
        ("4 TB of clean english web text", 1e12),
        ("20GB of text", 5e9),
        ("3.2 GB of jsonl, approx 0.8B tokens", 0.8e9),
    ],
)
def test_text_by_its_size_is_tokens_at_four_bytes(words: str, tokens: float) -> None:
    *_, turn = talk([f"full fine-tuning of llama-3.1-8b on 8 h100-sxm with {words}, how long?"])
    assert turn.calls[0].arguments["dataset_tokens"] == tokens
    assert ("at 4 bytes a token" in turn.answer) == ("approx" not in words)


def test_memory_is_no_text() -> None:
    *_, turn = talk(["does llama-3.1-8b lora fit in 24 GB of VRAM on one rtx 4090?"])
    assert "dataset_tokens" not in turn.calls[0].arguments


def test_what_a_model_has_is_a_fact_whatever_layout_it_is_asked_for() -> None:
    (turn,) = talk(["how many kv heads does qwen3 32b have? trying to figure out if tp 16 even makes sense"])
    assert [call.name for call in turn.calls] == ["describe_model"]


@pytest.mark.parametrize(
    ("words", "usd_per_device_hour"),
    [
        ("we're burning $98/hour on an 8xH100 box: cost of {}?", 12.25),
        ("p5.48xlarge at $55.04/hr: cost of {}?", 6.88),
        ("16 h100, our node costs $20 an hour. cost of {}?", 2.5),
        ("8 h100 at $16 an hour for the whole machine, cost of {}?", 2.0),
        ("8 h100, I pay $2.10/h: cost of {}?", 2.1),
        ("8 h100 at 3.2 USD/gpu/h, cost of {}?", 3.2),
        ("2 nodes of 8 h100 at $2.5/h, cost of {}?", 2.5),
    ],
)
def test_the_price_of_a_machine_is_that_of_its_devices(words: str, usd_per_device_hour: float) -> None:
    (turn,) = talk([words.format("full fine-tuning of llama-3.1-8b on 1B tokens")])
    assert turn.calls[-1].name == "estimate_cost"
    assert turn.calls[-1].arguments["usd_per_device_hour"] == pytest.approx(usd_per_device_hour)


def test_spot_stands_beside_on_demand_with_its_provider() -> None:
    (turn,) = talk(["full fine-tune llama-3.1-8b on 8 h100 with 2B tokens: how much would spot save me?"])
    (line,) = [line for line in turn.answer.splitlines() if line.startswith("**Spot**")]
    assert "the time lost to interruptions included" in line
    assert "; on demand " in line
    assert "unverified" not in turn.answer


def test_a_kind_of_price_is_a_question_of_money_and_what_has_none_is_said_first() -> None:
    run = "full fine-tune llama-3.1-8b on 8 h100{}, 1B tokens"
    serve = "serve llama-3.1-70b on 4 h100 with 32 users"
    for turns in ([run.format(""), "what if 16 gpus?", "on spot?"], [serve, "on spot?"]):
        assert re.match(r"✓ \*\*\$[\d.]+ .*\bon spot\b", list(talk(turns))[-1].answer), turns
    *_, none = talk([run.format(" at Hyperstack"), "on spot?"])
    assert none.answer.startswith("⚠ **No spot price is known at Hyperstack.")
    *_, ranked = talk(["cheapest way to full fine-tune llama-3.1-8b, 1B tokens", "on spot?"])
    assert "ranked by prices on demand" in ranked.answer


def test_what_more_money_buys_of_a_search_is_the_search_with_so_much_more() -> None:
    more, after = talk(
        [f"{RUN} for 200 dollars, what should I rent? And what would $10k more buy?", "and only NVIDIA?"]
    )
    assert more.calls[-1].name == "recommend_cluster"
    assert more.calls[-1].arguments["budget_usd"] == 10_200
    assert "$10,000 more than $200" in more.answer
    assert after.calls[-1].arguments["budget_usd"] == 200  # it was only asked


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("When does buying 8 H100s pay off against renting?", "pays from"),
        ("How many hours a month must I use 8 H100s for buying to pay?", "pays from"),
        ("what does buying 8 H100s cost?", "Buying them costs"),
        ("what do 8 H100s cost for a month?", "for a month cost"),
    ],
)
def test_who_speaks_of_buying_is_told_of_it_first(words: str, first: str) -> None:
    (turn,) = talk([words])
    assert first in turn.answer.strip().splitlines()[0]
    assert "(unverified)" not in turn.answer


def test_a_rate_behind_the_name_of_a_currency_is_dollars_for_one_of_it() -> None:
    (turn,) = talk(["price of 8 h100 in GBP at 1.27 for lora of llama-3.1-8b on 1B tokens"])
    assert turn.calls[-1].arguments["currency"] == "GBP=1.27"
    assert "1.27 taken as the US dollars that one GBP is worth" in turn.answer


def test_two_places_are_told_beside_each_other() -> None:
    (turn,) = talk(["CO2 of lora of llama-3.1-8b on 8 h100, 1B tokens, in Sweden vs Poland?"])
    assert turn.calls[-1].arguments["region"] == "sweden, poland"
    assert re.search(r"kg of CO2 in Sweden, [\d.]+ kg in Poland", turn.answer.splitlines()[0])


def test_machines_of_strangers_are_asked_for_in_words_and_doubted_first() -> None:
    (turn,) = talk(["16 x rtx 4090 on community cloud, lora of llama-3.1-8b, 100M tokens: price?"])
    assert turn.calls[-1].arguments["price"] == "community"
    first = turn.answer.splitlines()[0]
    assert "at RunPod" in first
    assert first.index("nothing joins them") < first.index("other people's machines")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("how much time is lost to failures?", "Interruptions to be expected"),
        ("what is its goodput?", "Share of all hours spent in steps"),
        ("how often should I checkpoint?", "Work between two checkpoints"),
    ],
)
def test_what_failures_take_is_answered_first(words: str, told: str) -> None:
    (turn,) = talk([f"pretrain llama-3.1-8b on 512 h100 with 3T tokens: {words}"])
    assert told in turn.answer.splitlines()[0]


def test_what_would_change_the_choice_is_in_its_first_lines() -> None:
    (turn,) = talk(["which cluster should I rent to fine-tune llama 3.1 8b on 1B tokens in 2 days?"])
    assert re.search(r"If it .* (slower|more an hour).* comes first", turn.answer.splitlines()[0])


def test_an_api_is_weighed_against_a_deployment_for_the_load_of_a_month() -> None:
    (turn,) = talk(["is it cheaper to use an API for gpt-oss-120b with 3 billion output tokens a month?"])
    assert [call.name for call in turn.calls][-1] == "estimate_cost"
    assert " over an API (" in turn.answer.splitlines()[0]
