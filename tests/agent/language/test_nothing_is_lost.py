"""What is said is used, or told as not read, or asked about: numbers, limits, refusals, values that cannot be."""

from __future__ import annotations

import pytest
from conversations import begun, turns
from spoken import FIELDS, SERVING, TRAINING, plan_with, written

from planner.partial import get
from planner.requests import ALL_PATHS

SHARES = ("engine_share", "prefix_hit", "acceptance", "memory_share", "lora_dropout")
WHOLE = ("seq_len", "micro_batch", "global_batch", "steps", "lora_rank", "group_size", "tp", "pp", "cp", "ep", "etp",
         "dp", "vpp", "shard_group", "count", "per_node", "input_len", "output_len", "max_context", "concurrency",
         "requests", "speculative_tokens", "max_batch", "max_batched_tokens")  # fmt: skip
MAY_BE_NONE = ("lora_dropout", "prefix_hit", "acceptance", "reserve_gib")


def impossible(name: str) -> list[str]:
    """Values that a field cannot have, as they are said."""
    value = FIELDS[name].value
    numbers = [f"-{written(value)}"]
    numbers += [] if name in MAY_BE_NONE else ["0"]
    numbers += [f"{value + 0.5:g}"] if name in WHOLE else []
    numbers += ["150%", "1.5"] if name in SHARES else []
    return [FIELDS[name].set.format(number).replace("$-", "-$") for number in numbers]


@pytest.mark.parametrize("name", FIELDS)
def test_what_cannot_be_is_asked_about_and_not_bent(name: str) -> None:
    for words in impossible(name):
        for text in (words, f"use {words}", f"what if we had {words}?"):
            turn = begun(text, plan_with(name))
            assert turn.changes == {}, text
            assert turn.asked or turn.reading["unread"], text


UNREAD = (
    "5 bananas", "tune 7 gizmos", "the 42nd street", "use 3 foos and 8 GPUs", "turn 64 knobs",
    "16 whatsits at 4k context", "not the blue one", "no foobar please", "without quuxing", "at most 3 whatsits",
    "less than 12 blorps", "over 9000 midichlorians", "not more than 5 frobs", "at least 6 widgets each",
)  # fmt: skip


@pytest.mark.parametrize("text", UNREAD)
@pytest.mark.parametrize("plan", [TRAINING, SERVING])
def test_what_means_nothing_is_told(text: str, plan: dict[str, object]) -> None:
    assert begun(text, plan).reading["unread"]


def test_the_answer_begins_with_what_was_not_read() -> None:
    answer = turns("fine-tune llama-3.1-8b on 8 H100 with 17 bananas, does it fit?")[0]["answer"]
    assert "17" in answer.splitlines()[0]


AT_MOST = ("at most {}", "no more than {}", "under {}", "less than {}", "max {}", "up to {}", "below {}", "within {}",
           "{} at most", "{} or less", "höchstens {}", "como máximo {}", "au plus {}", "最多{}")  # fmt: skip
AT_LEAST = ("at least {}", "no less than {}", "more than {}", "over {}", "{} or more", "{} at least", "mindestens {}",
            "al menos {}", "au moins {}", "至少{}")  # fmt: skip
LIMITED = {"budget_usd": ("$3000", 3000), "deadline_h": ("3 days", 72), "ttft_slo_ms": ("ttft", 300),
           "tpot_slo_ms": ("tpot", 30)}  # fmt: skip


@pytest.mark.parametrize("name", LIMITED)
def test_limits_from_above(name: str) -> None:
    words, value = LIMITED[name]
    amount, before = (f"{value} ms", f"{words} ") if name.endswith("ms") else (words, "")
    for way in AT_MOST:
        turn = begun(before + way.format(amount), plan_with(name))
        assert turn.changes == {ALL_PATHS[name]: value}, way


@pytest.mark.parametrize("way", [*AT_MOST[:8], *AT_LEAST[:5]])
@pytest.mark.parametrize(("name", "words"), [
    ("count", "{} GPUs"), ("epochs", "{} epochs"), ("steps", "{} steps"), ("micro_batch", "micro batch {}"),
    ("tp", "tp {}"), ("lora_rank", "rank {}"),
])  # fmt: skip
def test_a_limit_that_no_plan_holds_is_told(name: str, words: str, way: str) -> None:
    text = words.format(way.format(32)) if words.endswith("{}") else way.format(words.format(32))
    turn = begun(text, plan_with(name))
    assert get(turn.plan, ALL_PATHS[name]) == 32, text
    notes = [edit["note"] for edit in turn.reading["edits"] if edit["field"] == name]
    assert any(note and "no such limit" in note for note in notes), text


@pytest.mark.parametrize("text", ["at least $500", "over 24 hours", "more than 3 days"])
def test_a_limit_the_other_way_round_is_told(text: str) -> None:
    assert any(edit["note"] for edit in begun(text, TRAINING).reading["edits"])
