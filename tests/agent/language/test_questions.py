"""A question never changes the plan: what it names is only supposed. What is said does; a turn that fails does not."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import NOON, begun, turns
from spoken import FIELDS, SERVING, TRAINING, plan_with, written

from agent.models import Turn
from agent.offline.catalogue import known
from agent.offline.language.lexicon import lexicon
from agent.offline.planner import step
from agent.wire import said
from estimator.plan.schema import merge
from planner.partial import get
from planner.requests import ALL_PATHS, ONLY_SERVING
from tools.registry import registry

# Of something that is not in the plan.
OF_A_CHANGE = (
    "what if we had {}?", "what if i use {}", "would {} help?", "would {} be faster", "should I use {}?",
    "is {} better?", "what happens with {}", "would it fit with {}?", "how much faster would {} be?", "suppose {}",
    "could I use {}?", "compare with {}", "compare this to {}", "what would happen if we used {}?",
    "does {} make sense", "do I need {}?", "why not {}?", "why wouldn't we use {}", "why can't I use {}?",
    "can we get away with {}", "is it worth using {}?", "what does {} cost", "how fast is {}?", "does it run with {}",
    "will {} fit", "is {} enough?", "any reason not to use {}", "tell me what {} would do", "thoughts on {}",
    "what's the effect of {}", "pros and cons of {}", "how would {} change things?", "imagine {}",
    "was wäre mit {}", "lohnt sich {}", "was bringt {}?", "¿y si usamos {}?", "¿sirve {}?", "et si on utilisait {} ?",
    "est-ce que {} aide", "如果用{}呢？", "用{}会更快吗",
)  # fmt: skip
# Of something that the plan has.
OF_WHAT_IS = (
    "why is the {} what it is?", "why that {}", "is that {} ok?", "what {} did you assume?", "what is the {}",
    "how does the {} affect memory?", "does the {} matter", "is the {} too high?", "explain the {}",
    "what does {} mean", "what if we doubled the {}?", "would half the {} help", "should I increase the {}?",
    "why not double the {}?", "which {} is usual", "what changed?", "is the {} set", "where does the {} come from?",
)  # fmt: skip
SAID = (
    "use {}", "with {}", "{}", "make it {}", "set {}", "switch to {}", "now {}", "{} please", "and {}", "ok use {}",
    "what about {}?", "and with {}?", "go with {}", "then {}", "let's take {}", "I want {}", "no, {}", "actually {}",
    "{}. Does it fit?", "we use {} now. How long does it take?", "could you use {}", "jetzt {}", "avec {}",
    "{} instead",
)  # fmt: skip


def plan_of(name: str) -> dict[str, Any]:
    serving = {"workload.input_len": 1000}
    training = {"workload.dataset_tokens": 1e9, "workload.seq_len": 4096, "workload.stage": "grpo"}
    if name in ONLY_SERVING:
        return merge(SERVING, serving)
    return merge(TRAINING, training | {"cluster.count": 8})


def words_of_values() -> list[tuple[str, str]]:
    """(Field, a form of it) of every value of the Plan that has words."""
    forms = ((key.partition("=")[0], words) for key, words in lexicon().forms.items() if "=" in key)
    plain = ((name, next((form for form in words if form.isascii()), None)) for name, words in forms)
    return [(name, form) for name, form in plain if form and name in ALL_PATHS]


def changed(text: str, plan: dict[str, Any]) -> str | None:
    """The text, where the session's plan is another after it."""
    first = step(Turn([said(text)], plan, {}, registry(), NOON), known())
    return text if first.plan is not None and first.plan != plan else None


@pytest.mark.parametrize("name", FIELDS)
def test_a_question_about_a_number_changes_nothing(name: str) -> None:
    words = FIELDS[name].set.format(written(2 * FIELDS[name].value))
    wrong = [changed(way.format(words), plan_of(name)) for way in OF_A_CHANGE[:: 1 if name == "tp" else 6]]
    wrong += [
        changed(way.format(FIELDS[name].nouns[0]), plan_with(name)) for way in OF_WHAT_IS[:: 1 if name == "tp" else 2]
    ]
    assert [text for text in wrong if text] == []


def test_a_question_about_a_value_changes_nothing() -> None:
    values = words_of_values()
    assert len(values) > 150
    texts = [
        (OF_A_CHANGE[(place + each * 7) % len(OF_A_CHANGE)].format(words), plan_of(name))
        for place, (name, words) in enumerate(values)
        for each in range(2)
    ]
    assert [text for text, plan in texts if changed(text, plan)] == []


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_supposed_is_kept_apart(name: str) -> None:
    value = 2 * FIELDS[name].value
    for way in ("what if we had {}?", "would {} help", "suppose {}"):
        text = way.format(FIELDS[name].set.format(written(value)))
        topic = begun(text, plan := plan_with(name)).topic
        assert get(topic["supposed"], ALL_PATHS[name]) == pytest.approx(value), text
        assert changed(text, plan) is None


@pytest.mark.parametrize("name", FIELDS)
def test_what_is_said_is_set(name: str) -> None:
    """The other side: nothing that is said is only supposed."""
    value, lost = 2 * FIELDS[name].value, []
    for way in SAID[:: 1 if name == "tp" else 3]:
        text = way.format(FIELDS[name].set.format(written(value)))
        first = step(Turn([said(text)], plan_with(name), {}, registry(), NOON), known())
        held = get(first.plan or {}, ALL_PATHS[name])
        lost += [] if held == pytest.approx(value) else [(text, held)]
    assert lost == []


@pytest.mark.parametrize("words", ["with tp 5", "use pp 7 now", "global batch 3 and dp 8", "on 8 GPUs with cp 3"])
def test_a_turn_that_fails_changes_nothing(words: str) -> None:
    first, failed, next_ = turns("fine-tune llama-3.1-8b on 8 H100 with 100M tokens", words, "does it fit?")
    assert failed["plan"] == first["plan"]
    assert next_["plan"] == first["plan"]
