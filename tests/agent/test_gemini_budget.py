"""What a language model may take: calls of a step, tokens and dollars, bytes of a request, and time in silence."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from typing import Any

import pytest
from conversations import of, say
from fake_gemini import KEY, FakeGemini, Reply, call, chunk, error, says, text
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from agent.budget import Usage
from agent.events import Remark, ToolResult
from agent.gemini.model import Gemini
from agent.gemini.request import outbound
from agent.models import ModelFailed, Turn, Waiting
from agent.session import open_session
from agent.wire import Call, Outcome, answered, said, thought
from knowledge.prices.apis import gemini_usd
from tools.brief import declared
from tools.registry import registry
from tui.cli import main


def ran(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    return code, out.getvalue(), err.getvalue()


def counted(reply: Reply, asked: int, told: int) -> Reply:
    for each in reply.chunks:
        assert isinstance(each, dict)
        each["usageMetadata"] = {"promptTokenCount": asked, "candidatesTokenCount": told, "thoughtsTokenCount": 10}
    return reply


@pytest.mark.parametrize(
    "reply", [error(403), error(503), Reply([chunk(finish="SAFETY")])], ids=["403", "503", "safety"]
)
def test_gemini_by_name_that_fails_is_an_error(fake: FakeGemini, reply: Reply) -> None:
    fake.replies = [reply]
    code, out, err = ran("ask", "--model", "gemini", "--json", "does llama-3.1-8b fit on 8 H100?")
    answer = json.loads(out)
    assert code == 3
    # Told as it comes, too: a program that waits for the JSON hears why it waits.
    assert all(notice in err for notice in answer["notices"])
    assert "Gemini" in answer["failed"]
    assert any(answer["failed"] in notice for notice in answer["notices"])
    code, out, err = ran("ask", "--model", "gemini", "does llama-3.1-8b fit on 8 H100?")
    assert code == 3
    assert "Gemini" in err
    assert ran("ask", "--model", "auto", "--json", "does llama-3.1-8b fit on 8 H100?")[0] == 0


def test_gemini_by_name_that_answers_is_none(fake: FakeGemini) -> None:
    fake.replies = [says("Hello.")]
    code, out, _ = ran("ask", "--model", "gemini", "--json", "hi")
    assert (code, json.loads(out)["notices"], json.loads(out)["failed"]) == (0, [], "")


@pytest.mark.parametrize("key", [f"{KEY} ", f"{KEY}\n", f" {KEY}", f"{KEY[:9]} {KEY[9:]}"], ids=range(4))
def test_a_key_with_a_space_or_a_line_end_says_so(fake: FakeGemini, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", key)
    code, out, _ = ran("ask", "--model", "gemini", "--json", "hi")
    assert code == 3
    assert "GEMINI_API_KEY holds a space or a line end" in json.loads(out)["failed"]
    assert KEY not in out
    assert not fake.requests


def silent(timeout_s: int, fake: FakeGemini, *replies: Reply) -> tuple[list[Any], float, str]:
    """What came before a model gave up, how long that took, and why."""
    fake.replies = list(replies)
    pieces: list[Any] = []

    async def run() -> None:
        async for piece in Gemini(fake.url, first_delay_s=0.05).think(
            Turn([said("hi")], {}, {}, registry(), datetime(2026, 11, 18, tzinfo=UTC))
        ):
            pieces.append(piece)

    begun = time.monotonic()
    with pytest.raises(ModelFailed) as failed:
        asyncio.run(run())
    return pieces, time.monotonic() - begun, str(failed.value)


def test_attempts_and_waits_add_up_to_no_more_than_the_silence_allowed(
    fake: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDWISE_GEMINI_TIMEOUT_S", "5")
    monkeypatch.setattr("agent.attempts._REMARK_S", 0.3)
    held = threading.Event()
    wait = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.5s"}]
    try:
        pieces, seconds, why = silent(
            5, fake, error(429, details=wait), error(503), Reply([chunk(text(""))], held=held)
        )
    finally:
        held.set()
    assert seconds < 12
    assert "said nothing for 5 s" in why
    told = [piece.text for piece in pieces if isinstance(piece, Waiting)]
    for words in ("Trying again", "overloaded", "has not answered"):
        assert any(words in each for each in told)


def test_the_default_silence_is_a_minute() -> None:
    from agent.settings import SETTINGS

    assert next(each.default for each in SETTINGS if each.key == "gemini_timeout_s") == 60


def test_a_step_has_at_most_64_calls(fake: FakeGemini) -> None:
    calls = [call("describe_model", {"model": "gpt2"}, f"a{number}") for number in range(1000)]
    fake.replies = [Reply([chunk(*calls, finish="STOP")]), says("Known.")]
    events = say(open_session(model="gemini"), "describe gpt2")
    assert len(of(events, ToolResult)) == 64
    assert "the first 64" in of(events, Remark)[0].text
    sent = fake.requests[-1]["contents"]
    parts = [part for item in sent for part in item["parts"]]
    assert sum("functionCall" in part for part in parts) == sum("functionResponse" in part for part in parts) == 64


def test_tokens_and_dollars_are_counted_and_shown(fake: FakeGemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_MODEL", "gemini-2.5-flash")
    fake.replies = [
        counted(Reply([chunk(call("describe_model", {"model": "gpt2"}, "a"), finish="STOP")]), 1000, 90),
        counted(says("Known."), 2000, 40),
    ]
    code, out, _ = ran("ask", "--model", "gemini", "--json", "describe gpt2")
    told = json.loads(out)
    assert code == 0
    assert told["usage"]["turn"] == told["usage"]["session"]
    assert (told["usage"]["turn"]["input_tokens"], told["usage"]["turn"]["output_tokens"]) == (3000, 150)
    assert told["usage"]["turn"]["usd"] == pytest.approx(3000 * 0.30e-6 + 150 * 2.50e-6)
    _, out, err = ran("ask", "--model", "gemini", "--session", told["session"], "again")
    assert "The language model used 2,050 tokens, 0.00 USD" in err


def test_an_unknown_model_costs_the_most_that_is_known() -> None:
    assert gemini_usd("gemini-99-flash", 1_000_000, 0) >= gemini_usd("gemini-2.5-pro", 1_000_000, 0)
    assert gemini_usd("models/gemini-2.5-flash", 1_000_000, 0) == pytest.approx(0.30)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("TURN_TOKENS", "30000"), ("SESSION_TOKENS", "30000"), ("TURN_USD", "1"), ("SESSION_USD", "1")],
)
def test_a_budget_that_is_used_up_ends_the_requests(
    fake: FakeGemini, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    monkeypatch.setenv("SHARDWISE_MODEL", "gemini-3.1-pro-preview")
    monkeypatch.setenv(f"SHARDWISE_GEMINI_{setting}", value)
    many = 20_000 if "TOKENS" in setting else 500_000
    fake.replies = [counted(Reply([chunk(call("describe_model", {"model": "gpt2"}, "a"), finish="STOP")]), many, 5)]
    session = open_session(model="gemini")
    done = say(session, "describe gpt2")[-1]
    assert f"gemini_{setting.lower()}" in done.failed
    assert done.answer
    assert len(fake.requests) == 1
    assert say(session, "describe gpt2")[-1].answer
    assert len(fake.requests) == (2 if "TURN" in setting else 1)


def test_what_failed_requests_used_counts_too(fake: FakeGemini) -> None:
    fake.replies = [counted(Reply([chunk(text("x"), finish="SAFETY")]), 777, 5)]
    done = say(open_session(model="gemini"), "hi")[-1]
    assert done.turn_usage.input_tokens == 777
    assert done.turn_usage + Usage(1, 1, 1, 1.0) == Usage(2, 778, 16, done.turn_usage.usd + 1.0)


def test_a_request_for_a_greeting_is_under_40_kb(fake: FakeGemini) -> None:
    fake.replies = [says("Hello.")]
    say(open_session(model="gemini"), "hi")
    assert fake.bytes[0] < 40_000


@given(
    calls=st.integers(0, 400),
    rows=st.integers(0, 300),
    letters=st.integers(0, 100_000),
    tokens=st.sampled_from([20_000, 40_000, 200_000]),
)
@settings(max_examples=examples(25), deadline=None)
def test_no_request_is_over_its_tokens(calls: int, rows: int, letters: int, tokens: int) -> None:
    made = [Call(f"a{number}", "describe_model", {"model": "x" * (letters // 50)}) for number in range(calls)]
    result = {"rows": [{"text": "word " * 40, "more": list(range(40))}] * rows}
    messages = [said("a " * (letters // 2)), thought("m", calls=made), answered(Outcome(each, result) for each in made)]
    turn = Turn(messages, {"model": "gpt2"}, {}, registry(), datetime(2026, 11, 18, tzinfo=UTC))
    sent = outbound(turn, "m", tokens)
    size = sum(len(content.model_dump_json(exclude_none=True)) for content in sent)
    # Each call has a place of its own in the request, whatever is left out of it.
    assert size + len(declared(registry())) < 3.2 * tokens + 260 * calls
    parts = [part for content in sent for part in content.parts or []]
    assert sum(part.function_call is not None for part in parts) == calls
    assert sum(part.function_response is not None for part in parts) == calls
