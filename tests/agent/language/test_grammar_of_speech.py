"""Grammar that holds for every value: what refuses nothing, what recurs, machines that come with devices, tables."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import begun, turns

from agent.offline.catalogue import known
from agent.offline.language.lexicon import lexicon
from agent.offline.language.reading.turn import read
from estimator.plan.schema import merge
from planner.partial import get

PLAN: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {"stage": "sft", "method": "full", "seq_len": 4096},
    "cluster": {"accelerator": "h100-sxm", "count": 8},
}
METHODS = ("lora", "qlora")
MACHINES = (
    "add another node of {}", "one more node with {}", "un nodo más de {}", "añade otro nodo con {}",
    "ein Knoten mehr mit {}", "un nœud de plus avec {}", "再加一台{}卡", "another box with {}",
)  # fmt: skip
RECURRING = (
    "a node fails every {} days", "we lose a node every {} days", "alle {} Tage fällt ein Knoten aus",
    "un nodo falla cada {} días", "un nœud tombe en panne tous les {} jours",
)  # fmt: skip
HAVE = ("We have {} now. Would LoRA help?", "I only have {} now. Would LoRA help?", "Wir haben {}. Hilft LoRA?")
LEFT = ("{} left", "{} übrig", "quedan {}", "il en reste {}", "剩{}")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["能不能用{}", "可不可以用{}", "要不要用{}", "会不会用{}"])
def test_whether_something_can_be_is_no_refusal(way: str, method: str) -> None:
    edits = read(f"4090{way.format(method)}微调Qwen3-8B", known()).edits
    assert [edit for edit in edits if edit.op == "refuse"] == []


@pytest.mark.parametrize("shop", ["ebay", "craigslist", "a friend's brother", "kleinanzeigen"])
def test_where_a_card_was_bought_refuses_nothing(shop: str) -> None:
    reading = read(f"got a used 3090 off {shop}. lora on qwen3 8b?", known())
    assert "rtx-3090" in reading.values("accelerator")


@pytest.mark.parametrize("each", [2, 4])
@pytest.mark.parametrize("way", MACHINES)
def test_a_machine_comes_with_its_devices(way: str, each: int) -> None:
    text = way.format(each)
    assert get(begun(text, PLAN).plan or {}, "cluster.count") == 8 + each, text


@pytest.mark.parametrize("days", [2, 5, 10])
@pytest.mark.parametrize("way", RECURRING)
def test_what_comes_again_and_again_is_no_deadline(way: str, days: int) -> None:
    text = way.format(days)
    reading = read(text, known(), PLAN, {})
    assert reading.values("deadline_h") == [], text
    assert reading.pricing["interruptions_per_day"] == pytest.approx(1 / days), text


@pytest.mark.parametrize("text", ["1-2 hours in the evening", "2 hours a day", "3 hours every night"])
def test_hours_of_a_day_are_no_deadline(text: str) -> None:
    assert read(f"I only have {text}. Would LoRA help?", known(), PLAN, {}).values("deadline_h") == []


@pytest.mark.parametrize("number", [4, 13, 16])
@pytest.mark.parametrize("way", HAVE)
def test_what_somebody_has_are_devices(way: str, number: int) -> None:
    for recent in (None, "workload.global_batch"):
        topic = begun(way.format(number), PLAN, {"recent": recent} if recent else {}).topic
        assert get(topic["supposed"], "cluster.count") == number


@pytest.mark.parametrize("number", [4, 13])
@pytest.mark.parametrize("way", LEFT)
def test_what_is_left_are_devices(way: str, number: int) -> None:
    assert read(way.format(number), known(), PLAN, {}).values("count") == [number]


@pytest.mark.parametrize("count", [2, 512])
def test_all_of_them_says_no_number(count: int) -> None:
    plan = merge(PLAN, {"cluster": {"count": count}})
    assert read("and all three of them, in GPU hours?", known(), plan, {}).values("count") == []


@pytest.mark.parametrize("batch", [64, 256])
@pytest.mark.parametrize("way", ["go back to {}", "back to the full {}", "zurück auf {}"])
def test_a_number_is_brought_back(way: str, batch: int) -> None:
    said = turns("fine-tune llama-3.1-8b on 8 H100", f"global batch {batch}", "global batch 1024", way.format(batch))
    assert get(said[-1]["plan"], "workload.global_batch") == batch


@pytest.mark.parametrize("family", ["deepseek", "phi", "glm", "gemma 3", "qwen 3", "mixtral", "llama", "kimi"])
def test_a_family_alone_is_assumed_and_said(family: str) -> None:
    model = next(edit for edit in read(f"serve {family} on 8 H200", known()).edits if edit.field == "model")
    assert family.split()[0] in str(model.value).lower()
    assert "may also be" in str(model.note) or "(also: " in str(model.note)


@pytest.mark.parametrize("name", ["Llama 9 Ultra 900B", "Qwen 7 Max 300B", "Gemma 12 Giant 90B"])
def test_a_model_that_nobody_knows_is_not_its_family(name: str) -> None:
    reading = read(f"Does {name} fit on 64 H100s?", known())
    assert reading.values("model") == []


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_rows_of_a_table_are_set_side_by_side(rows: int) -> None:
    lines = [f"| run {row} | {2**row}x H100 | {2**row} |" for row in range(rows)]
    table = "\n".join(["| name | gpus | tp |", "|---|---|---|", *lines])
    reading = read(f"{table}\n\nllama-3.1-70b fp8 on vllm, which one is the fastest?", known())
    assert reading.tool == "compare"
    assert [edit.value for option in reading.options for edit in option if edit.field == "count"] == [
        2**row for row in range(rows)
    ]


@pytest.mark.parametrize("thousands", [1, 8, 40])
def test_money_with_a_dot_before_three_digits_is_thousands(thousands: int) -> None:
    assert read(f"Budget {thousands}.000 Dollar, Mistral-Nemo mit LoRA", known()).values("budget_usd") == [
        thousands * 1000
    ]


def slips(word: str) -> list[str]:
    """A word with two neighbours swapped, with a letter left out, with a letter doubled, inside."""
    places = range(2, len(word) - 2)
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places if word[at] != word[at + 1]]
    return [
        *swapped,
        *(word[:at] + word[at + 1 :] for at in places),
        *(word[:at] + word[at:][0] + word[at:] for at in places),
    ]


@pytest.mark.parametrize(
    ("way", "word"),
    [("{} llama-3.1-8b on 8 H100 with 1B tokens", "pretrain"),
     ("fine-tune llama-3.1-8b with {} on 8 H100", "deepspeed"),
     ("fine-tune llama-3.1-8b on 8 H100 with {} 256", "accumulation"),
     ("llama-3.1-8b on 8 H100, {} 8192 lora", "context")],
)  # fmt: skip
def test_a_slip_of_the_finger_is_read_as_the_word(way: str, word: str) -> None:
    right = [(edit.field, edit.value) for edit in read(way.format(word), known()).edits]
    wrong = [slip for slip in slips(word) if slip not in lexicon().known
             and [(edit.field, edit.value) for edit in read(way.format(slip), known()).edits] != right]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("word", ["lanes", "planes", "stories", "latter", "moods", "martin", "conservation"])
def test_ordinary_words_are_no_slips(word: str) -> None:
    with_it = read(f"fine-tune llama-3.1-8b on 8 H100 with {word}", known())
    without = read("fine-tune llama-3.1-8b on 8 H100", known())
    assert [(e.field, e.value) for e in with_it.edits] == [(e.field, e.value) for e in without.edits]
