"""Any model behind an OpenAI-compatible server, through the real library against a fake server on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from conversations import of, say
from fake_openai import FakeOpenAi, Told, calls, serving, tool_call, words

from agent import settings
from agent.attempts import Patience
from agent.compatible.model import Compatible
from agent.events import Discard, Remark, TextPiece, ToolCall, ToolResult
from agent.models import ModelFailed, Thought, Turn, Waiting
from agent.session import ask, open_session
from agent.wire import said
from estimator.errors import PlanError
from tools.registry import registry
from tui.cli import main

pytest.importorskip("openai")
RUN = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}
KEY = "sk-not-a-real-key-0123456789"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAi]:
    with serving() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("SHARDWISE_OPENAI_MODEL", "org/some-model:8b")
        monkeypatch.setattr("agent.compatible.model._FIRST_DELAY_S", 0.01)
        yield server


def think(fake: FakeOpenAi, *replies: Told, model: Compatible | None = None) -> tuple[list[Any], Thought]:
    """One step of the model: what it yields, and its thought."""
    fake.replies = list(replies)
    turn = Turn([said("hello")], {}, {}, registry(), datetime(2026, 11, 18, 12, 0, tzinfo=UTC))

    async def run() -> list[Any]:
        return [piece async for piece in (model or Compatible()).think(turn)]

    *pieces, final = asyncio.run(run())
    assert isinstance(final, Thought)
    return pieces, final


def test_text_streams_as_it_comes_and_is_counted(fake: FakeOpenAi) -> None:
    pieces, final = think(fake, words("It ", "fits.", usage={"prompt_tokens": 900, "completion_tokens": 5}))
    assert pieces == ["It ", "fits."]
    assert final.content == {"role": "model", "parts": [{"text": "It fits."}], "by": "org/some-model:8b"}
    assert (final.usage.requests, final.usage.input_tokens, final.usage.output_tokens) == (1, 900, 5)
    request = fake.requests[0]
    assert request["messages"][0]["role"] == "system"
    assert "2026-11-18" in request["messages"][1]["content"]
    assert {each["function"]["name"] for each in request["tools"]} >= {"check_fit", "estimate_cost"}
    assert fake.keys == [f"Bearer {KEY}"]


def test_parallel_calls_are_run_and_answered_each_by_its_id(fake: FakeOpenAi) -> None:
    fake.replies = [
        calls(tool_call(0, "estimate_training", RUN, "a"), tool_call(1, "describe_model", {"model": "gpt2"}, "b"),
              tool_call(2, "describe_hardware", {"accelerator": "h900"}, "c")),
        words("The model is known, the H900 is not."),
    ]  # fmt: skip
    events = say(open_session(model="openai"), "tell me about it")
    assert [event.call.name for event in of(events, ToolCall)] == [
        "estimate_training", "describe_model", "describe_hardware",
    ]  # fmt: skip
    assert len(of(events, ToolResult)) == 3
    assert events[-1].answer.endswith("The model is known, the H900 is not.")
    assert events[-1].plan["cluster"] == {"accelerator": "h100", "count": 8}
    assistant, *results = fake.requests[1]["messages"][2:]
    assert [call["id"] for call in assistant["tool_calls"]] == ["a", "b", "c"]
    assert json.loads(assistant["tool_calls"][1]["function"]["arguments"]) == {"model": "gpt2"}
    assert [message["tool_call_id"] for message in results] == ["a", "b", "c"]
    assert "H900" in results[2]["content"].upper()


def test_calls_that_share_an_index_and_have_no_arguments_are_still_each_its_own(fake: FakeOpenAi) -> None:
    bare = {"index": 0, "id": "x", "type": "function", "function": {"name": "list_scenarios", "arguments": ""}}
    two = [{"tool_calls": [bare]}, *tool_call(0, "describe_model", {"model": "gpt2"}, "y")]
    _, final = think(fake, Told(two, "tool_calls"))
    made = [part["functionCall"] for part in final.content["parts"]]
    assert [call["name"] for call in made] == ["list_scenarios", "describe_model"]
    assert made[1]["args"] == {"model": "gpt2"}


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "Hm, "}, {"reasoning_content": "8 of them."}, {"content": "It fits."}],
        [{"reasoning": "Hm, 8 of them."}, {"content": "It fits."}],
        [{"content": "<th"}, {"content": "ink>Hm, 8 of them.</think>"}, {"content": "\n\nIt "}, {"content": "fits."}],
    ],
)
def test_what_a_model_thinks_is_kept_apart(fake: FakeOpenAi, deltas: list[dict[str, Any]]) -> None:
    pieces, final = think(fake, Told(deltas))
    assert "".join(pieces) == "It fits."
    assert final.content["parts"] == [{"text": "Hm, 8 of them.", "thought": True}, {"text": "It fits."}]


def test_thoughts_are_not_sent_back(fake: FakeOpenAi) -> None:
    fake.replies = [Told([{"reasoning_content": "secret"}, {"content": "Hello."}])]
    session = open_session(model="openai")
    say(session, "hello")
    say(session, "and now?")
    assert "secret" not in json.dumps(fake.requests[1]["messages"])


@pytest.mark.parametrize(
    "message",
    [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tools param requires --jinja flag",
    ],
)
def test_a_server_without_tools_is_asked_for_one_json_object(fake: FakeOpenAi, message: str) -> None:
    step = {"calls": [{"name": "check_fit", "arguments": RUN}], "answer": ""}
    fake.replies = [
        Told(status=400, message=message),
        words(json.dumps(step)),
        words('{"calls": [], "answer": "It ', 'fits."}'),
    ]
    events = say(open_session(model="openai"), "does it fit?")
    assert [event.call.name for event in of(events, ToolCall)] == ["check_fit"]
    assert events[-1].answer.endswith("It fits.")
    assert not any("{" in event.text for event in of(events, TextPiece))
    _, second, third = fake.requests
    assert "tools" not in second
    names = second["response_format"]["json_schema"]["schema"]["properties"]["calls"]["items"]["properties"]["name"]
    assert "check_fit" in names["enum"]
    assert '"name":"check_fit"' in second["messages"][0]["content"]
    assert third["messages"][-1]["content"].startswith("[Tool results]")


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "message",
    ["The model produced output that does not match the expected peg-native format", "Failed to parse input at pos 0"],
)
def test_a_server_that_cannot_read_its_models_call_is_asked_for_one_json_object(
    fake: FakeOpenAi, message: str, status: int
) -> None:
    model = Compatible()
    told = Told([{"reasoning_content": "hm"}], status=status, message=message)
    _, final = think(fake, told, words('{"calls": [], "answer": "Yes."}'), model=model)
    assert final.content["parts"] == [{"text": "Yes."}]
    assert model.calls_as_json
    assert ["tools" in request for request in fake.requests] == [True, False]


def test_native_means_native(fake: FakeOpenAi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_OPENAI_TOOLS", "native")
    with pytest.raises(ModelFailed, match="does not support tools"):
        think(fake, Told(status=400, message="this model does not support tools"))


def test_options_that_a_server_refuses_are_left_out_once_and_for_all(
    fake: FakeOpenAi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDWISE_OPENAI_TOOLS", "json")
    model = Compatible()
    replies = [Told(status=400, message=f"Unsupported parameter: '{name}'")
               for name in ("temperature", "stream_options", "response_format")]  # fmt: skip
    _, final = think(fake, *replies, words('Here:\n```json\n{"calls": [], "answer": "Yes."}\n```'), model=model)
    assert final.content["parts"] == [{"text": "Yes."}]
    assert not {"temperature", "stream_options", "response_format", "tools"} & fake.requests[-1].keys()
    think(fake, words('{"calls": [], "answer": "Yes."}'), model=model)
    assert not {"temperature", "stream_options", "response_format"} & fake.requests[-1].keys()


FAILURES = [
    (Told(status=401, message=f"Incorrect API key provided: {KEY}"), "did not accept the key", 1),
    (Told(status=404, message="model not found"), "openai_model and openai_base_url", 1),
    (Told(status=503, message="loading"), "still loads the model", 3),
    (Told(status=429, message="slow down"), "takes no more requests", 3),
    (Told(status=400, message=f"bad thing {KEY}"), "refused the request (400): bad thing (key).", 1),
    (words(""), "sent an empty answer", 3),
    (Told([{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "check_fit", "arguments": "{\"a"}}]}]),
     "cannot be read", 3),
    (words(finish="content_filter"), "held the answer back", 1),
    (words(finish="length"), "reached its output limit", 1),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "sentence", "attempts"), FAILURES, ids=range(len(FAILURES)))
def test_each_failure_is_a_sentence_and_tried_again_where_that_may_help(
    fake: FakeOpenAi, reply: Told, sentence: str, attempts: int
) -> None:
    with pytest.raises(ModelFailed) as caught:
        think(fake, reply)
    assert sentence in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(fake.requests) == attempts


def test_a_passing_failure_is_told_and_passes(fake: FakeOpenAi) -> None:
    pieces, final = think(fake, Told(status=503, message="x", headers={"Retry-After": "0.02"}), words("Yes."))
    assert isinstance(pieces[0], Waiting)
    assert final.content["parts"] == [{"text": "Yes."}]


def test_a_stream_that_breaks_off_is_asked_again_only_before_anything_was_shown(fake: FakeOpenAi) -> None:
    _, final = think(fake, Told(cut=True), words("Yes."))
    assert final.content["parts"] == [{"text": "Yes."}]
    fake.requests.clear()
    with pytest.raises(ModelFailed, match="broke off"):
        think(fake, Told([{"content": "It"}], cut=True), words("Yes."))


def test_a_conversation_that_is_too_long_is_sent_again_shorter(fake: FakeOpenAi) -> None:
    long = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    _, final = think(fake, Told(status=400, message=long), words("Yes."))
    assert final.content["parts"] == [{"text": "Yes."}]
    fake.requests.clear()
    with pytest.raises(ModelFailed, match="longer context"):
        think(fake, Told(status=400, message=long))
    assert len(fake.requests) == 2


def test_silence_ends(fake: FakeOpenAi) -> None:
    patience = Patience(0.05)
    with pytest.raises(TimeoutError):
        asyncio.run(patience.wait(asyncio.sleep(5)))


def test_at_most_64_calls_of_a_step_are_made(fake: FakeOpenAi) -> None:
    many = [tool_call(index, "describe_model", {"model": "gpt2"}, f"c{index}") for index in range(70)]
    fake.replies = [calls(*many), words("Done.")]
    events = say(open_session(model="openai"), "describe it often")
    assert len(of(events, ToolResult)) == 64
    assert any("first 64" in event.text for event in of(events, Remark))


def test_a_model_that_fails_gives_code_3_and_the_offline_answer(
    fake: FakeOpenAi, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.replies = [Told(status=401, message="no")]
    assert main(["ask", "--json", "--model", "openai", "Does gpt2 fit on one h100?"]) == 3
    answer = json.loads(capsys.readouterr().out)
    assert "did not accept the key" in answer["failed"]
    assert answer["tool_calls"]
    events = say(open_session(model="openai"), "Does gpt2 fit on one h100?")
    assert of(events, Discard)


def test_auto_takes_the_first_that_is_configured_and_offline_without_any(
    fake: FakeOpenAi, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.replies = [words("Hello.")]
    assert ask("hello", approve=False)["usage"]
    monkeypatch.setenv("GEMINI_API_KEY", "AIzaSyNotARealKey-0123456789_abcdefghij")
    monkeypatch.setenv("SHARDWISE_AUTO_ORDER", "openai gemini")
    ask("hello", approve=False)
    assert len(fake.requests) == 2
    monkeypatch.delenv("SHARDWISE_OPENAI_MODEL")
    monkeypatch.delenv("GEMINI_API_KEY")
    assert not settings.configured("openai")
    ask("hello", approve=False)
    assert len(fake.requests) == 2
    with pytest.raises(PlanError, match="openai_model"):
        open_session(model="openai")
