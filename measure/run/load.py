"""Requests to an OpenAI-compatible endpoint, timed one by one: at a rate, by so many clients, or as a trace has them.

A request streams its answer: the first piece of text is the first token, the last one the end. Tokens are those that
the server's `usage` counts; a server that sends none has a token a piece, and the result says so.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import aiohttp

_WORDS = ("time", "people", "water", "light", "house", "paper", "river", "stone", "music", "table", "night", "green")
_MOST_LETTERS = 200


@dataclass(frozen=True)
class TimedRequest:
    """One request to come: seconds after the start (None: as soon as a client is free), tokens in and out."""

    at_s: float | None
    input_len: int
    output_len: int


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


@dataclass(frozen=True)
class Endpoint:
    """`headers` carry the key, where one is needed."""

    url: str
    model: str
    headers: Mapping[str, str]
    timeout_s: float


def arrivals(count: int, rate: float | None, input_len: int, output_len: int, seed: int) -> list[TimedRequest]:
    """Requests that arrive at random at a mean rate, or that wait for a client each."""
    chance, at, rows = random.Random(seed), 0.0, list[TimedRequest]()
    for _ in range(count):
        rows.append(TimedRequest(at if rate else None, input_len, output_len))
        at += chance.expovariate(rate) if rate else 0.0
    return rows


def run_load(
    endpoint: Endpoint,
    asked: Sequence[TimedRequest],
    clients: int | None,
    tell: Callable[[int], None] = lambda done: None,
) -> list[Answered]:
    """Sends all requests and waits for their ends; at most `clients` at once. `tell` hears how many are done."""
    return asyncio.run(_load(endpoint, asked, clients, tell))


async def _load(
    endpoint: Endpoint, asked: Sequence[TimedRequest], clients: int | None, tell: Callable[[int], None]
) -> list[Answered]:
    gate = asyncio.Semaphore(clients or len(asked) or 1)
    answers: list[Answered] = []
    timeout = aiohttp.ClientTimeout(total=endpoint.timeout_s)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector, headers=endpoint.headers) as session:
        start = time.perf_counter()

        async def one_request(number: int, request: TimedRequest) -> None:
            if request.at_s is not None:
                await asyncio.sleep(max(0.0, request.at_s - (time.perf_counter() - start)))
            async with gate:
                answers.append(await _answered(session, endpoint, request, number, start))
            tell(len(answers))

        await asyncio.gather(*(one_request(number, request) for number, request in enumerate(asked)))
    return sorted(answers, key=lambda answer: answer.sent_s)


async def _answered(
    session: aiohttp.ClientSession, endpoint: Endpoint, request: TimedRequest, number: int, start: float
) -> Answered:
    body = {
        "model": endpoint.model,
        "prompt": _prompt(request.input_len, number),
        "max_tokens": request.output_len,
        "temperature": 0.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    sent = time.perf_counter() - start
    first: float | None = None
    last, pieces, tokens_in, tokens_out = sent, 0, None, None
    problem: str | None = None
    try:
        async with session.post(f"{endpoint.url.rstrip('/')}/v1/completions", json=body) as response:
            if response.status != 200:
                problem = f"HTTP {response.status}: {(await response.text())[:_MOST_LETTERS]}"
            async for line in response.content if problem is None else _nothing():
                event = _event(line)
                if event is None:
                    continue
                if _text_of(event):
                    last = time.perf_counter() - start
                    first, pieces = last if first is None else first, pieces + 1
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
        tokens_out if counted and tokens_out else pieces, counted, problem,
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
        event = json.loads(text[5:])
    except (ValueError, RecursionError):
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
