"""A figure without an origin is found; one with an origin, however it is printed, is not accused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from samples import examples

from agent.grounding.check import mark, ungrounded
from agent.grounding.figures import figures_in

GIB = 2**30
RESULT: dict[str, Any] = {
    "plan": {
        "model": "meta-llama/Llama-3.1-8B",
        "workload": {"seq_len": 4096, "global_batch": 128, "micro_batch": 2},
        "cluster": {"accelerator": "h100-sxm", "count": 8, "per_node": 8},
        "layout": {"dp": 8, "zero_stage": 3},
    },
    "memory": {
        "per_device_bytes": 61.24 * GIB,
        "low_bytes": 58 * GIB,
        "high_bytes": 66.3 * GIB,
        "capacity_bytes": 79.6 * GIB,
        "components": {"weights": 15.0 * GIB, "activations": 24.5 * GIB},
    },
    "time": {"step_s": 5.573, "components": {"compute": 5.0, "communication": 0.573}},
    "throughput": {"tokens_per_s": 94_103.2, "mfu": 0.4137},
    "run": {"hours": 30.2, "steps": 1908, "tokens": 1e9},
    "usd": 635.5,
    "hours": 30.2,
    "device_hours": 241.6,
    "why": ["40 layouts were estimated; the next is 3.3 % slower"],
    "points": [{"tokens_per_s": 733.6, "mfu": 0.1}, {"tokens_per_s": 7837.1}, {"tokens_per_s": 18494.1}],
    "rows": [{"usd_per_million_tokens": 0.030811, "usd": 30.8}, {"usd_per_million_tokens": 0.030788, "usd": None}],
    "by_provider": [{"instance": "p5.48xlarge", "price_date": "2026-07-20", "usd": 700.25}],
}
WORDS = ["fine-tune Llama-3.1-8B on 8 H100s with 16k context and 1B tokens for $500"]


@pytest.mark.parametrize(
    "text",
    [
        "It needs 61.2 GiB of 79.6 GiB.",
        "about 65.8 GB",
        "58.0–66.3 GiB",
        "58 to 66.3 GiB",
        "18.4 GiB are free",
        "activations are 40 % of it",
        "a step takes 5.57 s, or 5,573 ms",
        "94,103 tokens/s, some 94 thousand tokens/s",
        "that is 8.13 billion tokens a day",
        "41 % MFU and 41.4 %",
        "30.2 hours, 1.3 days",
        "1,908 steps over 1B tokens",
        "$636, your budget is $500",
        "$21.04 per hour, $2.63 per device-hour",
        "242 device-hours",
        "16,384 tokens of context (16k)",
        "ZeRO-3 on 8 H100s, DP 8, bf16",
        "40 layouts, 3.3 % slower",
        "524,288 tokens per step in 8 accumulation steps",
        "1. Llama-3.1-8B\n2. p5.48xlarge at the price of 2026-07-20",
        "3D parallelism of `h100-sxm`",
        "61.2 of 79.6 GiB, an MFU of 0.414",
        "Pro GPU 61,2 GiB von 79,6 GiB, ein Schritt dauert 5,57 Sekunden, 94.103 Tokens/s, 41 Prozent MFU.",
        "58,0 bis 66,3 GiB",
        "61,2 Gio par GPU, 94\u202f103 jetons/s",
        "94 103 tokens par seconde, 5,57 s par pas",
        "Un paso tarda 5,57 segundos; 30,2 horas en total, 636 dólares",
        "30,2 часов, 61,2 ГиБ",
        "每张卡 61.2 GiB，每步 5.57 秒，一共 30.2 小时，636 美元",
        "1ステップ5.57秒、30.2時間",
        "eine Stunde, 一天",
        "25.21 x the tokens/s of 8",
        "it costs 0.1 % more",
        "Valid: memory.low_bytes, usd and 6 more.",
        "no figure at all",
    ],
)
def test_grounded(text: str) -> None:
    assert ungrounded(text, [RESULT], WORDS) == []


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It needs 61.3 GiB.", ["61.3 GiB"]),
        ("It needs 61.2 GB.", ["61.2 GB"]),
        ("about 72 GiB", ["72 GiB"]),
        ("5.6 minutes", ["5.6 minutes"]),
        ("a step takes 5.58 s", ["5.58 s"]),
        ("95,000 tokens/s", ["95,000 tokens/s"]),
        ("45 % MFU", ["45 %"]),
        ("$650 in all", ["$650"]),
        ("on 48 GPUs", ["48"]),
        ("2.5x faster", ["2.5"]),
        ("30.2 days", ["30.2 days"]),
        ("it has 70B parameters", ["70B"]),
        ("61.2 GiB and 99 GiB", ["99 GiB"]),
        ("99 of 79.6 GiB, an MFU of 0.777", ["99", "0.777"]),
        ("Es braucht 99,5 GiB, 95.000 Tokens/s", ["99,5 GiB", "95.000 Tokens/s"]),
        ("Das dauert zweiundvierzig Tage.", ["zweiundvierzig Tage"]),
        ("Das kostet dreitausend Dollar.", ["dreitausend Dollar"]),
        ("zwölfeinhalb Stunden, anderthalb Wochen", ["zwölfeinhalb Stunden", "anderthalb Wochen"]),
        ("Il faut quatre-vingt-dix jours.", ["quatre-vingt-dix jours"]),
        ("une demi-heure", ["demi-heure"]),
        ("Se necesitan doce días y tres mil dólares.", ["doce días", "tres mil dólares"]),
        ("veintidós horas", ["veintidós horas"]),
        ("13 дней", ["13 дней"]),
        ("训练需要十三天，花费3千美元。", ["十三天", "3千美元"]),
        ("半天", ["半天"]),
        ("三分之二的显存", ["三分之二"]),
        ("zwei Drittel des Speichers", ["zwei Drittel"]),
        ("3.3 Euro", ["3.3 Euro"]),
        ("2.36 x the tokens/s", ["2.36"]),
        ("4 GPUs and 6 more of them", ["4", "6"]),
    ],
)
def test_ungrounded(text: str, figures: list[str]) -> None:
    assert [figure.text for figure in ungrounded(text, [RESULT], WORDS)] == figures


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("zweiundvierzig", 42), ("dreitausend", 3000), ("zweihundertfünfzig", 250), ("zwölfeinhalb", 12.5),
        ("quatre-vingt-dix-sept", 97), ("deux cent mille", 200_000), ("soixante et onze", 71), ("trois millions", 3e6),
        ("treinta y dos", 32), ("doscientos", 200), ("tres mil quinientos", 3500), ("veintidós", 22),
    ],
)  # fmt: skip
def test_numbers_in_words_of_other_languages(words: str, value: float) -> None:
    (figure,) = figures_in(f"{words} GiB")
    assert (figure.kind, figure.value) == ("bytes", value * GIB)


@pytest.mark.parametrize(
    ("digits", "value"),
    [("十二", 12), ("三千五百", 3500), ("两万", 20_000), ("二十", 20), ("一亿二千万", 1.2e8), ("一二三", 123)],
)
def test_han_numbers(digits: str, value: float) -> None:
    assert [figure.value for figure in figures_in(f"{digits}秒")] == [value]


@pytest.mark.parametrize(
    "piece", ["zwei ", "zwei und ", "quatre-", "十", "1,2 ", "1.234 ", "demi  ", "二分之", "8 von 8 "]
)
def test_long_texts_of_other_languages_take_no_longer_a_character(piece: str) -> None:
    with within(1):
        list(figures_in(f"1,5 GiB {piece * 4000}"))


def test_two_results_ground_their_ratio_and_difference() -> None:
    faster = {"throughput": {"tokens_per_s": 188_206.4}, "usd": 500.0}
    assert ungrounded("2.0x the speed and $136 less", [RESULT, faster], []) == []


def test_a_row_of_memory_may_be_what_clients_take_of_it() -> None:
    memory = {
        "per_device_bytes": 72 * GIB, "components": {"kv_cache": 50 * GIB, "weights": 20 * GIB},
        "clients_bytes": 21 * GIB, "clients_cache_bytes": GIB / 2,
    }  # fmt: skip
    assert ungrounded("| KV cache | 512 MiB | 2.4 % |", [{"memory": memory}], []) == []
    other = ungrounded("| KV cache | 20.0 GiB | 2.4 % |", [{"memory": memory}], [])
    assert [figure.text for figure in other] == ["20.0 GiB"]


def test_marking_keeps_the_text() -> None:
    text = "It needs 99 GiB and 61.2 GiB."
    assert mark(text, ungrounded(text, [RESULT], [])) == "It needs 99 GiB (unverified) and 61.2 GiB."


@settings(max_examples=examples(200))
@given(st.floats(0.1, 1e4), st.integers(0, 3))
def test_every_rounding_of_a_leaf_is_grounded(value: float, digits: int) -> None:
    printed = f"{value:.{digits}f}"
    if float(printed):
        assert ungrounded(f"{printed} GiB", [{"per_device_bytes": value * GIB}], []) == []
        assert ungrounded(f"{printed} s", [{"step_s": value}], []) == []


@settings(max_examples=examples(200))
@given(st.floats(1, 1e3), st.floats(1.06, 3))
def test_a_wrong_figure_is_never_grounded(value: float, factor: float) -> None:
    assert len(ungrounded(f"{value * factor:.3f} GiB", [{"per_device_bytes": value * GIB}], [])) == 1


@settings(max_examples=examples(200))
@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    for figure in figures_in(text):
        assert text[figure.start : figure.end].strip() == figure.text


def test_a_number_below_zero_is_told_behind_its_sign() -> None:
    result = {"runs": [{"error": -0.0267}], "drift": [{"bias": -0.0267}]}
    assert ungrounded("estimates are off by -3 %, 3 % too little", [result], []) == []
    assert ungrounded("estimates are off by -5 %", [result], [])
