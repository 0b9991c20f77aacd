"""`shardwise models test`: a model is scored by what it calls, and what it can do is seen from its answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fake_openai import FakeOpenAi, Told, calls, serving, tool_call, words

from agent.trial.asking import TrialQuestion, WantedCall, questions, scored
from agent.wire import Call
from tools.registry import registry
from tui.cli import main

pytest.importorskip("openai")
Capture = pytest.CaptureFixture[str]
RUN = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAi]:
    with serving() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("SHARDWISE_OPENAI_MODEL", "some-model")
        monkeypatch.setenv("SHARDWISE_GEMINI_ATTEMPTS", "1")
        yield server


def perfect(question: TrialQuestion, as_json: bool) -> Told:
    """What a model that makes no mistake answers."""
    made: list[tuple[str, dict[str, Any]]] = []
    for wanted in question.calls:
        tool = registry()[wanted.tools[0]]
        given = dict(wanted.arguments)
        for name, info in tool.request.model_fields.items():
            if info.is_required() and name not in given:
                given[name] = {"values": [4096, 8192], "field": "seq_len", "figure": "memory"}.get(name, "x")
        made.append((tool.name, given))
    if as_json:
        step = {"calls": [{"name": name, "arguments": given} for name, given in made], "answer": "" if made else "Hm?"}
        return words(json.dumps(step))
    if not made:
        return words("I plan runs. ", "Which model?")
    return calls(*[tool_call(place, name, given, f"id-{place}") for place, (name, given) in enumerate(made)])


def test_there_are_twenty_questions_and_their_arguments_are_those_of_the_tools() -> None:
    assert len(questions()) == 20
    assert len({question.text for question in questions()}) == 20
    for wanted in (wanted for question in questions() for wanted in question.calls):
        for name in wanted.tools:
            assert wanted.arguments.keys() <= registry()[name].request.model_fields.keys()
    assert any(len(question.calls) > 1 for question in questions())


def test_a_model_that_makes_no_mistake_has_every_point(fake: FakeOpenAi, capsys: Capture) -> None:
    fake.replies = [perfect(question, False) for question in questions()]
    assert main(["models", "test", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["wrong"] for row in result["answers"] if row["wrong"]] == []
    assert (result["score"], result["of"]) == (20, 20)
    assert result["abilities"] == {
        "tool calls": "native", "parallel calls": "yes", "streamed text": "yes", "thoughts kept apart": "not seen",
    }  # fmt: skip
    asked = [request["messages"][-1]["content"] for request in fake.requests]
    assert all(text.startswith(question.text) for text, question in zip(asked, questions(), strict=True))


def test_a_server_without_tool_calls_is_tried_with_a_json_object(fake: FakeOpenAi, capsys: Capture) -> None:
    refusal = Told(status=400, message="this model does not support tools")
    fake.replies = [refusal, *(perfect(question, True) for question in questions())]
    assert main(["models", "test", "openai"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("some-model: 20.0 of 20.\n")
    assert "as a JSON object" in shown


def test_a_server_that_is_not_there_has_no_point_and_says_why(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("SHARDWISE_OPENAI_MODEL", "some-model")
    monkeypatch.setenv("SHARDWISE_GEMINI_ATTEMPTS", "1")
    monkeypatch.setattr("agent.trial.asking.questions", lambda: questions()[:2])
    monkeypatch.setattr("tui.commands.models_test.questions", lambda: questions()[:2])
    assert main(["models", "test"]) == 3
    assert "could not be reached" in capsys.readouterr().out
    assert main(["models", "test", "offline"]) == 2
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert main(["models", "test"]) == 2
    assert "no language model is configured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("made", "score"),
    [
        ([("check_fit", RUN)], 1.0),
        ([("check_fit", {"model": "meta-llama/Llama-3.1-8B", "accelerator": "8xH100 SXM"})], 1.0),
        ([("check_fit", {**RUN, "count": 16})], 0.75),
        ([("check_fit", {**RUN, "seqlen": 1})], 0.25),
        ([("describe_model", {"model": "gpt2"})], 0.0),
        ([], 0.0),
    ],
)
def test_arguments_count_as_the_tool_reads_them(made: list[tuple[str, dict[str, Any]]], score: float) -> None:
    question = TrialQuestion("Does it fit?", [WantedCall(["check_fit"], RUN)])
    assert scored(question, [Call(name, name, given) for name, given in made], "")[0] == score


def test_a_question_that_needs_no_tool_is_answered_in_words() -> None:
    question = TrialQuestion("Hello?", [])
    assert scored(question, [], "Hello.") == (1.0, [])
    assert scored(question, [], " ")[0] == 0
    assert scored(question, [Call("a", "check_fit", {})], "Hello.")[0] == 0
