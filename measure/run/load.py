"""Requests to OpenAI-compatible endpoints, timed one by one: at a rate, by so many clients, or as a trace has them;
each may be a conversation of several turns.

A request streams its answer: the first piece of text is the first token, the last one the end. Tokens are those that
the server's `usage` counts; a server that sends none has a token a piece, and the result says so.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from knowledge.own.mappings import json_value

_WORDS = ("time", "people", "water", "light", "house", "paper", "river", "stone", "music", "table", "night", "green")
_MOST_LETTERS = 200


@dataclass(frozen=True)
class TimedRequest:
    """One request to come: seconds after the start (None: as soon as a client is free), tokens in and out."""

    at_s: float | None
    input_len: int
    output_len: int
    turns: int = 1
    prompt: str | None = None
    """What is asked, where it is not made up; its answer may end where the model ends it."""


@dataclass(frozen=True)
class Answered:
    """What came of one request; times are seconds after the start of the load."""

    sent_s: float
    first_s: float | None
    ended_s: float
    input_tokens: int | None
    output_tokens: int
    counted: bool
    """Whether the server counted the tokens."""
    problem: str | None = None
    url: str = ""
    number: int = 0
    """Of the request among those asked."""
    text: str = ""


@dataclass(frozen=True)
class Endpoint:
    """`headers` carry the key, where one is needed."""

    url: str
    model: str
    headers: Mapping[str, str]
    timeout_s: float


def arrivals(requests: Sequence[TimedRequest], rate: float | None, seed: int) -> list[TimedRequest]:
    """Requests that arrive at random at a mean rate, or that wait for a client each."""
    chance, at, rows = random.Random(seed), 0.0, list[TimedRequest]()
    for request in requests:
        rows.append(replace(request, at_s=at if rate else None))
        at += chance.expovariate(rate) if rate else 0.0
    return rows


def run_load(
    endpoints: Sequence[Endpoint],
    asked: Sequence[TimedRequest],
    clients: int | None,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Answered]:
    """Sends all requests, each endpoint in turn, and waits for their ends; at most `clients` at once. `tell` hears how
    many are done."""
    return asyncio.run(_load(endpoints, asked, clients, tell))


async def _load(
    endpoints: Sequence[Endpoint], asked: Sequence[TimedRequest], clients: int | None, tell: Callable[[int], None]
) -> list[Answered]:
    gate = asyncio.Semaphore(clients or len(asked) or 1)
    answers: list[Answered] = []
    timeout = aiohttp.ClientTimeout(total=max(endpoint.timeout_s for endpoint in endpoints))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        start = time.perf_counter()

        async def one_request(number: int, request: TimedRequest) -> None:
            if request.at_s is not None:
                await asyncio.sleep(max(0.0, request.at_s - (time.perf_counter() - start)))
            async with gate:
                endpoint = endpoints[number % len(endpoints)]
                answers.extend(await _conversation(session, endpoint, request, number, start))
            tell(len(answers))

        await asyncio.gather(*(one_request(number, request) for number, request in enumerate(asked)))
    return sorted(answers, key=lambda answer: answer.sent_s)


async def _conversation(
    session: aiohttp.ClientSession, endpoint: Endpoint, request: TimedRequest, number: int, start: float
) -> list[Answered]:
    """One turn after another, each with all that was said before; the rest of one that fails is not asked."""
    messages: list[dict[str, str]] = []
    answers: list[Answered] = []
    for turn in range(request.turns):
        prompt = request.prompt or _prompt(request.input_len, number * request.turns + turn)
        messages.append({"role": "user", "content": prompt})
        asks = {"prompt": prompt} if request.turns == 1 else {"messages": list(messages)}
        answer = await _answered(session, endpoint, _body(endpoint, request, asks), start)
        answers.append(replace(answer, url=endpoint.url, number=number))
        if answer.problem is not None:
            break
        messages.append({"role": "assistant", "content": answer.text})
    return answers


def _body(endpoint: Endpoint, request: TimedRequest, asks: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": endpoint.model,
        **asks,
        "max_tokens": request.output_len,
        "temperature": 0.0,
        "ignore_eos": request.prompt is None,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def _answered(
    session: aiohttp.ClientSession, endpoint: Endpoint, body: Mapping[str, Any], start: float
) -> Answered:
    address = f"{endpoint.url.rstrip('/')}/v1/{'chat/' if 'messages' in body else ''}completions"
    sent = time.perf_counter() - start
    first: float | None = None
    last, tokens_in, tokens_out = sent, None, None
    pieces: list[str] = []
    problem: str | None = None
    try:
        async with session.post(address, json=body, headers=endpoint.headers) as response:
            if response.status != 200:
                problem = f"HTTP {response.status}: {(await response.text())[:_MOST_LETTERS]}"
            async for line in response.content if problem is None else _nothing():
                event = _event(line)
                if event is None:
                    continue
                if text := _text_of(event):
                    last = time.perf_counter() - start
                    first = last if first is None else first
                    pieces.append(text)
                if isinstance(usage := event.get("usage"), dict):
                    tokens_in, tokens_out = usage.get("prompt_tokens"), usage.get("completion_tokens")
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"[:_MOST_LETTERS]
    if problem is None and first is None:
        problem = "the answer had no text"
    ended = last if problem is None else time.perf_counter() - start
    counted = isinstance(tokens_out, int) and tokens_out > 0
    return Answered(
        sent, first, ended, tokens_in if isinstance(tokens_in, int) else None,
        tokens_out if counted and tokens_out else len(pieces), counted, problem, text="".join(pieces),
    )  # fmt: skip


async def _nothing():
    for line in ():
        yield line


def _event(line: bytes) -> dict[str, object] | None:
    """The object of a `data:` line; None of others, the last one and what is no JSON."""
    text = line.decode(errors="replace").strip()
    if not text.startswith("data:") or text.endswith("[DONE]"):
        return None
    try:
        event = json_value(text[5:])
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _text_of(event: Mapping[str, object]) -> str:
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        return ""
    delta = first.get("delta")
    text = first.get("text") or (delta.get("content") if isinstance(delta, dict) else None)
    return text if isinstance(text, str) else ""


def _prompt(tokens: int, number: int) -> str:
    """About so many tokens of common words, each prompt another from its first word, so that no cache holds it."""
    chance = random.Random(number)
    return " ".join([str(number), *(chance.choice(_WORDS) for _ in range(max(0, tokens - 1)))])
