"""What an answer offers to say next is understood when it is said, and does what it promises."""

from __future__ import annotations

import re

import pytest
from conversations import of, say, turns

from agent.events import Approval, Done
from agent.session import open_session
from pages.blocks import offered
from pages.rendering import fold
from planner.partial import get

QUESTIONS = (
    "fine-tune Llama-3.1-8B with LoRA on 8 H100s, 1B tokens",
    "full fine-tune Llama-3.1-8B on 8 H100s: what is the MFU?",
    "does Llama-3.1-8B LoRA fit on a 4090?",
    "full fine-tune Llama-3.1-8B on one H100",
    "serve Llama-3.3-70B on 2 H100",
    "serve Qwen3-8B on one L40S, 8 clients at once",
    "cheapest cluster on AWS to train Llama-3.1-70B on 10B tokens in 3 days",
    "longest context for a full fine-tune of Qwen3-8B on 8 H100",
    "how many users can Llama-3.1-8B serve on one L40S?",
    "how many H100 do I need to full fine-tune Llama-3.1-70B?",
)
# What a step that names a value sets.
SETS = {
    "megatron-bridge": "workload.framework", "weights in fp8": "workload.weight_dtype", "LoRA": "workload.method",
    "KV cache in fp8": "workload.kv_dtype", "torch.compile": "workload.compile",
}  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_step_that_is_offered_can_be_said(question: str) -> None:
    session = open_session(model="offline")
    (first,) = of(say(session, question), Done)
    steps = offered(first.answer)
    assert 1 <= len(steps) <= 2
    for place, step in enumerate(steps):
        if place:
            session = open_session(model="offline")
            say(session, question)
        events = say(session, step)
        if "files" in step:
            # Nothing is written before the person has seen it.
            assert of(events, Approval), step
            continue
        (after,) = of(events, Done)
        assert "could not place" not in after.answer, step
        assert after.tool_calls, step
        for words, path in SETS.items():
            if words in step:
                assert get(after.plan, path) is not None, step
                # What is changed is not asked for: its size does not come before the verdict.
                assert not re.match(r"\W*(weights|kv cache)\b", after.answer, re.IGNORECASE), step


@pytest.mark.parametrize("question", ["train a model on 8 H100", "fine-tune Llama-3.1-8B on my GPU"])
def test_every_answer_that_is_offered_answers_what_was_asked_back(question: str) -> None:
    (first,) = turns(question)
    assert first["asked"]
    for step in offered(first["answer"]):
        _, after = turns(question, step)
        assert not after["asked"], step
        assert next(call["name"] for call in after["tool_calls"]).startswith("estimate"), step


def test_a_question_about_the_same_run_is_not_answered_by_all_of_it_again() -> None:
    told, again, slow = turns("GRPO of qwen2.5 7b on 8 h100", "what's the mfu?", "what limits it?")
    leads = [fold.folded(turn["answer"]).lead for turn in (told, again, slow)]
    assert "Bottleneck: " in told["answer"]
    assert not any(words in leads[1] for words in ("Bottleneck: ", "Best layout", "Key assumption"))
    assert len(leads[1].split()) < 0.75 * len(leads[0].split())
    assert "**Bottleneck: generation" in leads[2]
    assert "a global batch of" in leads[2]
    assert "make it faster" not in leads[2]


def test_a_late_run_is_told_as_few_more_devices_as_are_in_time_and_no_smaller_model() -> None:
    (late,) = turns("pretrain a 7b llama on 1T tokens in 10 days on 64 H100")
    lead = fold.folded(late["answer"]).lead
    assert "**Faster**: 128 x h100-sxm" in lead
    assert "1b" not in lead.lower().split("**faster**")[1]


@pytest.mark.parametrize("run", ["QLoRA of llama 3.3 70b on one 4090", "serve llama-3.1-70b bf16 on 2 l40s"])
def test_what_does_not_fit_offers_to_count_its_own_devices(run: str) -> None:
    (first,) = turns(run)
    step = next(step for step in offered(first["answer"]) if step.startswith("how many "))
    *_, asked = turns(run, step)
    assert asked["tool_calls"][0]["name"] == "find_limit"
    assert asked["tool_calls"][0]["arguments"]["goal"] == "devices"
