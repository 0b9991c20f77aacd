"""Gemini through the real SDK against a fake server on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conversations import DEMO, answer_approval, of, say
from fake_gemini import FakeGemini, Reply, call, chunk, error, says, text, think

from agent.events import Approval, Discard, Done, Remark, TextPiece, ToolCall, ToolResult
from agent.gemini.model import Gemini
from agent.gemini.request import outbound
from agent.models import ModelFailed, Turn
from agent.session import Session, ask, open_session, transcript
from agent.wire import Call, Outcome, answered, said, thought
from tools.brief import SHOWN_BY_WRITERS, declarations
from tools.registry import registry

# Bytes that are no text and need every base64 digit, + and / among them.
SIGNATURE = base64.b64encode(bytes(range(256))).decode()
RUN = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8}


def signatures(contents: list[dict[str, Any]]) -> list[bytes]:
    found = [
        part.get("thoughtSignature") or part.get("thought_signature") for item in contents for part in item["parts"]
    ]
    return [base64.urlsafe_b64decode(signature) for signature in found if signature]


def test_text_streams_as_it_comes(fake: FakeGemini) -> None:
    texts, final = think(fake, Reply([chunk(text("It ")), chunk(text("fits.")), chunk(text(""), finish="STOP")]))
    assert texts == ["It ", "fits."]
    assert final.content["parts"] == [{"text": "It fits."}]
    assert final.content["by"] == "gemini-3.8-flash"
    assert fake.paths == ["/v1/models/gemini-3.8-flash:streamGenerateContent?alt=sse"]


def test_the_request_carries_the_tools_and_the_prompt(fake: FakeGemini, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_MODEL", "gemini-other")
    think(fake, says("ok"))
    request = fake.requests[0]
    declared = {item["name"]: item for item in request["tools"][0]["functionDeclarations"]}
    assert set(declared) == set(registry()) - SHOWN_BY_WRITERS
    assert {tool.preview for tool in registry().values()} >= SHOWN_BY_WRITERS - {"render_report"}
    schema = (
        declared["estimate_training"].get("parameters_json_schema")
        or declared["estimate_training"]["parametersJsonSchema"]
    )
    assert set(schema["properties"]) == set(registry()["estimate_training"].request.model_fields)
    assert request["generationConfig"]["temperature"] == 0
    assert "never compute" in request["systemInstruction"]["parts"][0]["text"]
    assert "2026-11-18" in request["contents"][0]["parts"][1]["text"]
    assert "gemini-other" in fake.paths[0]


def test_three_parallel_calls_and_their_signature_come_back_byte_for_byte(fake: FakeGemini) -> None:
    calls = [
        call("estimate_training", RUN, "a", SIGNATURE),
        call("describe_model", {"model": "llama-3.1-8b"}, "b"),
        call("describe_hardware", {"accelerator": "h900"}, "c"),
    ]
    fake.replies = [Reply([chunk(*calls, finish="STOP")]), says("The model is known, the H900 is not.")]
    events = say(open_session(model="gemini"), "tell me about it")
    assert [event.call.name for event in of(events, ToolCall)] == [
        "estimate_training",
        "describe_model",
        "describe_hardware",
    ]
    assert len(of(events, ToolResult)) == 3
    assert events[-1].answer.startswith("**What the tools say**")
    assert events[-1].answer.endswith("\n\nThe model is known, the H900 is not.")
    assert events[-1].plan["cluster"] == {"accelerator": "h100", "count": 8}

    sent = fake.requests[1]["contents"]
    assert [item["role"] for item in sent] == ["user", "model", "user"]
    assert signatures(sent) == [bytes(range(256))]
    assert [part["functionCall"]["id"] for part in sent[1]["parts"]] == ["a", "b", "c"]
    responses = [part["functionResponse"] for part in sent[2]["parts"]]
    assert [response["id"] for response in responses] == ["a", "b", "c"]
    assert "H900" in responses[2]["response"]["error"].upper()
    assert responses[0]["response"]["memory"]["fits"] is True


def test_calls_without_ids_get_their_answers_and_stay_without_ids(fake: FakeGemini) -> None:
    fake.replies = [
        Reply(
            [
                chunk(call("describe_model", {"model": "llama-3.1-8b"})),
                chunk(call("describe_model", {"model": "gpt2"}), finish="STOP"),
            ]
        ),
        says("Both are known."),
    ]
    events = say(open_session(model="gemini"), "describe them")
    assert len({event.outcome.call.id for event in of(events, ToolResult)}) == 2
    sent = fake.requests[1]["contents"]
    assert all("id" not in part["functionCall"] for part in sent[1]["parts"])
    assert [part["functionResponse"]["response"]["layers"] for part in sent[2]["parts"]] == [32, 12]


def test_signed_text_is_not_joined_to_other_text(fake: FakeGemini) -> None:
    signed = {"text": "", "thoughtSignature": SIGNATURE}
    _, final = think(fake, Reply([chunk(text("a")), chunk(text("b")), chunk(signed, finish="STOP")]))
    assert [part.get("text") for part in final.content["parts"]] == ["ab", ""]
    assert signatures([final.content]) == [bytes(range(256))]


@pytest.mark.parametrize(
    ("reply", "words", "attempts"),
    [
        (
            error(400, "API key not valid.", [{"reason": "API_KEY_INVALID"}], "INVALID_ARGUMENT"),
            "check GEMINI_API_KEY",
            1,
        ),
        (error(400, "Function call is missing a thought_signature"), "start a new session", 1),
        (error(400, "User location is not supported", name="FAILED_PRECONDITION"), "region or billing", 1),
        (error(400, "bad field x"), "bad field x", 1),
        (error(401), "credentials", 1),
        (error(403), "permissions", 1),
        (error(404), "SHARDWISE_MODEL", 1),
        (error(429, "quota", name="RESOURCE_EXHAUSTED"), "quota", 3),
        (
            error(429, "quota", [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}]),
            "quota",
            1,
        ),
        (error(500), "internal error", 3),
        (error(503), "overloaded", 3),
        (error(418, "teapot"), "418", 1),
        (error(413, "too large"), "longer than this Gemini model takes", 2),
        (error(400, "The input token count exceeds the maximum"), "longer than this Gemini model takes", 2),
        (Reply([]), "empty answer", 3),
        (Reply(["data: not json\r\n\r\n"]), "cannot be read", 3),
        (Reply([chunk(text("half"))], cut=True), "broke off", 1),
        (Reply([{"promptFeedback": {"blockReason": "SAFETY"}}]), "refused the question", 1),
        (Reply([chunk(finish="SAFETY")]), "safety", 1),
        (Reply([chunk(finish="RECITATION")]), "repeats a source", 1),
        (Reply([chunk(finish="MALFORMED_FUNCTION_CALL")]), "tool call that cannot be read", 3),
        (Reply([chunk(finish="MISSING_THOUGHT_SIGNATURE")]), "start a new session", 1),
        (Reply([chunk(finish="MAX_TOKENS")]), "output limit", 1),
        (
            Reply([chunk(text("some")), {"error": {"code": 503, "message": "mid", "status": "UNAVAILABLE"}}]),
            "overloaded",
            1,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_failure_is_a_sentence_to_act_on(fake: FakeGemini, reply: Reply, words: str, attempts: int) -> None:
    with pytest.raises(ModelFailed, match=words):
        think(fake, reply)
    assert len(fake.requests) == attempts


def test_no_server_is_a_sentence_too(fake: FakeGemini) -> None:
    turn = Turn([said("hello")], {}, {}, registry(), datetime.now(UTC))

    async def run() -> None:
        async for _ in Gemini("http://127.0.0.1:9", first_delay_s=0.01).think(turn):
            pass

    with pytest.raises(ModelFailed, match="network connection"):
        asyncio.run(run())


def test_a_passing_failure_is_retried_before_anything_was_shown(fake: FakeGemini) -> None:
    texts, _ = think(fake, error(503), Reply([]), says("fine"))
    assert texts == ["fine"]
    assert len(fake.requests) == 3


def test_an_answer_cut_at_the_limit_is_kept_and_said(fake: FakeGemini) -> None:
    _, final = think(fake, Reply([chunk(text("long"), finish="MAX_TOKENS")]))
    assert final.content["parts"] == [{"text": "long"}]
    assert final.notice
    assert "cut" in final.notice


def test_when_gemini_fails_for_good_the_offline_planner_goes_on(fake: FakeGemini) -> None:
    fake.replies = [error(403)]
    events = say(open_session(model="gemini"), "does llama-3.1-8b fit on 8 H100?")
    notice = of(events, Remark)[0].text
    assert "permissions" in notice
    assert "offline planner" in notice
    assert "It fits" in events[-1].answer or "it fits" in events[-1].answer
    assert len(fake.requests) == 1


def test_a_failure_in_the_middle_of_a_turn_also_ends_in_an_answer(fake: FakeGemini) -> None:
    fake.replies = [Reply([chunk(call("estimate_training", RUN, "a", SIGNATURE), finish="STOP")]), error(403)]
    done = say(open_session(model="gemini"), "does llama-3.1-8b fit on 8 H100?")[-1]
    assert "it fits" in done.answer.lower()
    assert done.ungrounded == []


def test_unsigned_calls_of_the_offline_planner_are_never_sent(fake: FakeGemini) -> None:
    first = ask("does llama-3.1-8b fit on 8 H100?", approve=False, model="offline")
    fake.replies = [says("Then it fits too.")]
    say(open_session(first["session"], "gemini"), "and with LoRA?")
    contents = fake.requests[0]["contents"]
    assert [item["role"] for item in contents] == ["user", "model", "user", "user"]
    assert all(set(part) == {"text"} for item in contents for part in item["parts"])
    assert "estimate_training of meta-llama/Llama-3.1-8B on 8 x h100-sxm: fits" in contents[2]["parts"][0]["text"]
    assert '"accelerator": "h100-sxm"' in contents[3]["parts"][1]["text"]


def test_an_answer_with_made_up_figures_is_sent_back_once(fake: FakeGemini) -> None:
    fake.replies = [
        Reply([chunk(call("estimate_training", RUN, "a", SIGNATURE), finish="STOP")]),
        says("It needs 333.3 GiB."),
        says("It fits."),
    ]
    events = say(open_session(model="gemini"), "does it fit?")
    assert "333.3 GiB" in of(events, Remark)[0].text
    assert events[-1].answer.endswith("\n\nIt fits.")
    assert events[-1].ungrounded == []
    assert "333.3 GiB" in fake.requests[2]["contents"][-1]["parts"][0]["text"]


def test_sentences_with_figures_made_up_again_give_way_to_the_tools_own(fake: FakeGemini) -> None:
    bad = says("It fits. It needs 333.3 GiB on each device. Start it today.")
    fake.replies = [Reply([chunk(call("estimate_training", RUN, "a", SIGNATURE), finish="STOP")]), bad]
    events = say(open_session(model="gemini"), "does it fit?")
    answer = events[-1].answer
    assert "333" not in answer
    assert answer.endswith("It fits. *(left out: a figure that no tool gave)* Start it today.")
    needed = of(events, ToolResult)[0].outcome.response["memory"]["per_device_bytes"] / 2**30
    assert f"memory per device {needed:,.1f} GiB" in answer.partition("It fits.")[0]
    assert events[-1].ungrounded == ["333.3 GiB"]
    assert len(fake.requests) == 3


def test_what_streams_is_a_draft_until_its_figures_are_checked(fake: FakeGemini) -> None:
    fake.replies = [says("It needs 333.3 GiB."), says("It fits.")]
    events = say(open_session(model="gemini"), "does it fit?")
    assert [(type(event), getattr(event, "draft", None)) for event in events] == [
        (TextPiece, True), (Discard, None), (Remark, None), (TextPiece, True), (Done, None),
    ]  # fmt: skip


def test_words_before_a_call_with_figures_from_nowhere_are_taken_back(fake: FakeGemini) -> None:
    described = call("describe_model", {"model": "gpt2"}, "a", "AAAA")
    first = chunk(text("It takes 77 hours. Let me check."), described, finish="STOP")
    fake.replies = [Reply([first]), says("It is known.")]
    events = say(open_session(model="gemini"), "tell me about gpt2")
    assert list(map(type, events[:3])) == [TextPiece, Discard, ToolCall]


def test_a_stream_that_breaks_is_taken_back_and_the_offline_planner_answers(fake: FakeGemini) -> None:
    fake.replies = [Reply([chunk(text("It takes 5"))], cut=True)]
    events = say(open_session(model="gemini"), "does llama-3.1-8b fit on 8 H100?")
    assert list(map(type, events[:3])) == [TextPiece, Discard, Remark]
    assert "broke off" in events[2].text
    assert "it fits" in events[-1].answer.lower()
    assert not events[-1].answer.startswith("It takes 5")


def test_the_next_turn_is_geminis_again_after_one_that_was_finished_offline(fake: FakeGemini) -> None:
    session = open_session(model="gemini")
    fake.replies = [error(403)]
    say(session, "does llama-3.1-8b fit on 8 H100?")
    fake.replies = [says("With LoRA too.")]
    done = say(session, "and with LoRA?")[-1]
    assert done.answer == "With LoRA too."
    sent = fake.requests[-1]["contents"]
    assert not any("functionCall" in part for item in sent for part in item["parts"])


def test_a_stream_is_cancelled_in_the_middle_and_the_session_goes_on(fake: FakeGemini) -> None:
    held = threading.Event()
    fake.replies = [Reply([chunk(text("It is ")), chunk(text("known"))], held=held)]
    session = open_session(model="gemini")

    async def cancelled() -> float:
        arrived = asyncio.Event()

        async def listen() -> None:
            async for event in session.send("tell me about gpt2"):
                if isinstance(event, TextPiece):
                    arrived.set()

        task = asyncio.create_task(listen())
        await asyncio.wait_for(arrived.wait(), 20)
        started = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.perf_counter() - started

    try:
        assert asyncio.run(cancelled()) < 1.0
    finally:
        held.set()
    assert [turn.state for turn in transcript(session.id)] == ["stopped"]
    fake.replies = [says("Very well.")]
    assert say(session, "never mind")[-1].answer == "Very well."
    sent = fake.requests[-1]["contents"]
    assert [item["role"] for item in sent] == ["user", "model", "user"]
    assert "stopped" in sent[1]["parts"][0]["text"]


def test_a_request_that_is_too_long_is_made_again_shorter(fake: FakeGemini) -> None:
    session = open_session(model="gemini")
    fake.replies = [Reply([chunk(call("estimate_training", RUN, "a", SIGNATURE), finish="STOP")]), says("It fits.")]
    say(session, "does it fit?")
    fake.replies = [
        error(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        says("Yes."),
    ]
    before = len(fake.requests)
    fake.replies = [*[says("")] * before, *fake.replies]
    assert say(session, "sure?")[-1].answer == "Yes."
    long, short = (len(json.dumps(request["contents"])) for request in fake.requests[before:])
    assert short < long / 2


def test_a_request_stays_within_the_tokens_of_the_settings(fake: FakeGemini) -> None:
    calls = [Call(f"a{number}", "describe_model", {"model": "gpt2"}) for number in range(60)]
    big = {"rows": [{"text": "word " * 400}] * 40}
    messages = [said("first" * 2000), thought("gemini-x", calls=calls), answered(Outcome(each, big) for each in calls)]
    messages += [thought("gemini-x", "So it is."), said("and now?")]
    turn = Turn(messages, {"model": "gpt2"}, {}, registry(), datetime(2026, 11, 18, tzinfo=UTC))

    def size(tokens: int) -> int:
        return sum(len(content.model_dump_json(exclude_none=True)) for content in outbound(turn, "gemini-x", tokens))

    declared = len(json.dumps(declarations(registry())))
    for tokens in (800_000, 200_000, 60_000, 45_000):
        assert size(tokens) + declared < 3.5 * tokens
    assert outbound(turn, "gemini-x", 40_000)[-1].parts[0].text == "and now?"


def test_gemini_too_needs_approval_to_write(fake: FakeGemini) -> None:
    arguments = {**RUN, "framework": "deepspeed", "seq_len": 4096}
    fake.replies = [Reply([chunk(call("write_configs", arguments, "w", SIGNATURE), finish="STOP")]), says("Done.")]
    session = open_session(model="gemini")
    waiting = say(session, DEMO)[-1]
    assert isinstance(waiting, Approval)
    assert len(fake.requests) == 1
    done = answer_approval(Session(session.id, "gemini", session.root), True)[-1]
    assert done.answer == "Done."
    assert len([path for path in Path.cwd().rglob("*") if path.is_file()]) == 3
    assert signatures(fake.requests[1]["contents"]) == [bytes(range(256))]


def test_gemini_cannot_write_outside_the_folder(fake: FakeGemini) -> None:
    arguments = {**RUN, "framework": "deepspeed", "seq_len": 4096, "folder": "../../elsewhere"}
    fake.replies = [
        Reply([chunk(call("write_configs", arguments, "w", SIGNATURE), finish="STOP")]),
        says("I could not."),
    ]
    events = say(open_session(model="gemini"), DEMO)
    assert isinstance(events[-1], Done)
    assert "outside" in str(of(events, ToolResult)[0].outcome.error)


def test_a_question_at_the_end_is_what_is_asked(fake: FakeGemini) -> None:
    _, final = think(fake, says("I need more.\n\nWhich model is it? And on how many GPUs?"))
    assert final.asked == ["Which model is it?", "And on how many GPUs?"]


def test_control_characters_of_the_model_are_not_shown(fake: FakeGemini) -> None:
    texts, _ = think(fake, says("a\x1b[2Jb"))
    assert texts == ["ab"]


def test_history_with_open_calls_is_repaired(fake: FakeGemini) -> None:
    fake.replies = [
        Reply(
            [
                chunk(
                    call("write_configs", {**RUN, "framework": "deepspeed", "seq_len": 4096}, "w", SIGNATURE),
                    finish="STOP",
                )
            ]
        )
    ]
    session = open_session(model="gemini")
    assert isinstance(say(session, DEMO)[-1], Approval)
    fake.replies = [says("Very well.")]
    assert say(session, "never mind")[-1].answer == "Very well."
    contents = fake.requests[-1]["contents"]
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"error": "stopped before its result came"}


def test_thought_builds_wire_form() -> None:
    assert thought("offline", "x") == {"role": "model", "parts": [{"text": "x"}], "by": "offline"}
