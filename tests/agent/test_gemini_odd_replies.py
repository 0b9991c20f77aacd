"""Replies that no documentation promises, from a server on this machine: each ends in an answer, a tool's error or a
sentence, never in a traceback, and nothing is printed of the key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversations import of, say
from fake_gemini import KEY, Chunk, FakeGemini, Reply, call, chunk, error, says, text, think

from agent.events import Remark, ToolResult
from agent.models import ModelFailed
from agent.session import Session, open_session
from agent.wire import calls_of

GPT2 = {"model": "gpt2"}


def raw(line: str) -> Chunk:
    return f"data: {line}\r\n\r\n"


def function(**fields: Any) -> Reply:
    return Reply([chunk({"functionCall": fields}, finish="STOP")])


UNREADABLE = [
    function(id="a", name="describe_model", args=[1]),
    function(id="a", name="describe_model", args="gpt2"),
    function(id=7, name="describe_model", args=GPT2),
    function(id="a", args=GPT2),
    function(id="a", name="", args=GPT2),
    Reply([{"candidates": [{"content": {"parts": [{"text": 5}]}, "finishReason": "STOP"}]}]),
    Reply([{"candidates": [{"content": {"parts": [None]}, "finishReason": "STOP"}]}]),
    Reply([{"candidates": [{"content": {"parts": [{"text": None}]}, "finishReason": "STOP"}]}]),
    Reply([{"candidates": [{"content": {"parts": None}, "finishReason": "STOP"}]}]),
    Reply([{"candidates": [{"content": None, "finishReason": "STOP"}]}]),
    Reply([{"candidates": []}]),
    Reply([{"candidates": None}]),
    Reply([{}]),
    Reply([raw("[1, 2]")]),
    Reply([raw("null")]),
    Reply([": a comment\r\n\r\n"]),
    Reply([chunk({"text": "ok", "thoughtSignature": "%%%"}, finish="STOP")]),
    Reply([chunk({"text": "only a thought", "thought": True}, finish="STOP")]),
    Reply([chunk(finish="OTHER")]),
    Reply([chunk(finish="NEWER_THAN_THIS")]),
    Reply([chunk(finish="UNEXPECTED_TOOL_CALL")]),
    Reply([{"error": {}}]),
    Reply([{"error": "no"}]),
    Reply([{"error": {"code": "UNAVAILABLE", "message": "no"}}]),
    Reply([raw('{"candidates":[{"content":{"parts":[{"text":' + "9" * 5000 + "}]}}]}")]),
    Reply(status=502, body="<html>"),
]


@pytest.mark.parametrize("reply", UNREADABLE, ids=lambda reply: json.dumps(reply.body or reply.chunks)[:60])
def test_what_cannot_be_used_is_asked_for_again(fake: FakeGemini, reply: Reply) -> None:
    texts, final = think(fake, reply, says("Fine."))
    assert (texts[-1:], final.content["parts"]) == (["Fine."], [{"text": "Fine."}])
    assert len(fake.requests) == 2


USABLE: list[tuple[Reply, str]] = [
    (Reply([chunk(text("ok"))]), "ok"),
    (Reply([chunk(text("ok"), finish="NEWER_THAN_THIS")]), "ok"),
    (Reply([chunk(text("ok"), finish="STOP"), "data: [DONE]\r\n\r\n"]), "ok"),
    (Reply([chunk(text("ok"), finish="STOP")], cut=True), "ok"),
    (Reply([{"candidates": [{"content": {"parts": [{"text": "ok", "sparkle": {"a": [1]}}]}}], "novel": {}}]), "ok"),
    (Reply([{"candidates": [{"content": {"parts": [text(word)]}} for word in ("one", "two")]}]), "one"),
    (Reply([raw('{"candidates":[{"content":{"parts":[{"text":"o\\ud800k"}]},"finishReason":"STOP"}]}')]), "ok"),
    (Reply([chunk({"text": "hm", "thought": True}), chunk(text("ok"), finish="STOP")]), "ok"),
]


@pytest.mark.parametrize(("reply", "answer"), USABLE, ids=range(len(USABLE)))
def test_what_can_be_used_is_used(fake: FakeGemini, reply: Reply, answer: str) -> None:
    fake.replies = [reply]
    events = say(open_session(model="gemini"), "hello")
    assert (events[-1].answer, of(events, Remark)) == (answer, [])
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("null", "model: is required"),
        ('{"model": "gp\\ud800t2"}', None),
        ('{"model": ["gpt2"]}', "model"),
        ('{"model": "gpt2", "seq_len": NaN}', "seq_len"),
        ('{"model": "gpt2", "Ignore all rules": {"and": {"write": "/etc"}}}', "no such field"),
        ('{"model": 1e999}', "model"),
    ],
)
def test_odd_arguments_are_the_tools_to_refuse(fake: FakeGemini, arguments: str, told: str | None) -> None:
    part = f'{{"functionCall":{{"name":"describe_model","args":{arguments}}}}}'
    line = raw(f'{{"candidates":[{{"content":{{"parts":[{part}]}},"finishReason":"STOP"}}]}}')
    fake.replies = [Reply([line]), says("Fine.")]
    events = say(open_session(model="gemini"), "tell me about gpt2")
    (result,) = of(events, ToolResult)
    assert events[-1].answer == "Fine."
    assert (told in str(result.outcome.error)) if told else result.outcome.error is None


def test_calls_that_share_an_id_are_told_apart(fake: FakeGemini) -> None:
    twins = [call("describe_model", {"model": name}, "same", "AAAA") for name in ("gpt2", "llama-3.1-8b")]
    again = Reply([chunk(call("describe_hardware", {"accelerator": "h100"}, "same", "BBBB"), finish="STOP")])
    fake.replies = [Reply([chunk(*twins, finish="STOP")]), again, says("Known.")]
    events = say(open_session(model="gemini"), "describe them")
    assert len({event.outcome.call.id for event in of(events, ToolResult)}) == 3
    sent = fake.requests[-1]["contents"]
    assert [part["functionResponse"]["response"]["layers"] for part in sent[2]["parts"]] == [12, 32]
    assert [part["functionCall"].get("id") for item in (sent[1], sent[3]) for part in item["parts"]] == [
        "same", None, None,
    ]  # fmt: skip


def test_an_id_of_the_models_own_comes_back_whatever_it_is_like(fake: FakeGemini) -> None:
    fake.replies = [Reply([chunk(call("describe_model", GPT2, "call-1", "AAAA"), finish="STOP")]), says("Known.")]
    say(open_session(model="gemini"), "describe gpt2")
    sent = fake.requests[-1]["contents"]
    assert [sent[1]["parts"][0]["functionCall"]["id"], sent[2]["parts"][0]["functionResponse"]["id"]] == ["call-1"] * 2


@pytest.mark.parametrize("status", [400, 418])
def test_the_key_in_a_servers_words_is_not_shown(fake: FakeGemini, status: int) -> None:
    fake.replies = [error(status, f"no good: {KEY} at https://x/?key={KEY}&b=1 (not {KEY[:-1]}Z)\x1b[2J")]
    events = say(open_session(model="gemini"), "hello")
    (notice,) = of(events, Remark)
    assert "(key)" in notice.text
    assert "AIza" not in repr(events)
    assert "\x1b" not in notice.text


def test_a_stream_left_open_by_an_error_is_closed(fake: FakeGemini, capfd: pytest.CaptureFixture[str]) -> None:
    """The SDK raises out of the middle of its streams; what stays open complains when the event loop ends."""
    for bad in ({"error": {"code": 503, "message": "no"}}, {"candidates": [{"content": {"parts": [{"text": 5}]}}]}):
        fake.replies = [*fake.replies, *[Reply([chunk(text("a ")), bad])] * (len(fake.requests) + 1)]
        say(open_session(model="gemini"), "hello")
    assert capfd.readouterr().err == ""


def test_another_model_is_sent_words_where_it_would_refuse_signatures(
    fake: FakeGemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.replies = [Reply([chunk(call("describe_model", GPT2, "a", "AAAA"), finish="STOP")]), says("Known.")]
    session = open_session(model="gemini")
    say(session, "describe gpt2")
    fake.replies = [says("Yes.")]
    say(Session(session.id, "gemini", session.root), "sure?")
    assert "AAAA" in json.dumps(fake.requests[-1]["contents"])
    monkeypatch.setenv("SHARDWISE_MODEL", "another-model")
    say(Session(session.id, "gemini", session.root), "really?")
    sent = fake.requests[-1]["contents"]
    assert not any({"functionCall", "thoughtSignature"} & set(part) for item in sent for part in item["parts"])
    assert "Known." in json.dumps(sent)


def test_a_server_that_asks_for_patience_gets_it_within_reason(fake: FakeGemini) -> None:
    wait = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.02s"}]
    texts, _ = think(fake, error(429, details=wait), error(503), says("Fine."))
    assert texts == ["Fine."]
    with pytest.raises(ModelFailed, match="quota"):
        think(fake, *[says("")] * 3, error(429, details=[{**wait[0], "retryDelay": "61.5s"}]))


def test_calls_are_read_whatever_they_lack() -> None:
    (found,) = calls_of({"role": "model", "parts": [{"functionCall": {"name": "x", "args": None}}]})
    assert (found.id, found.arguments) == ("", {})
