"""Every way in which an OpenAI-compatible server fails, as a sentence that tells the user what to do, and whether
trying again may help."""

from __future__ import annotations

import os
import re
from typing import Any

import httpx2

from agent.models import Failure
from estimator.credentials import without_credentials
from pages.rendering.clean import plain

KEY_VARIABLE = "OPENAI_API_KEY"
_BY_CODE = {
    401: f"The model server did not accept the key: check {KEY_VARIABLE}.",
    403: "This key may not use {model}: check its permissions.",
    404: "The model server has no model {model}, or no chat at its address: check openai_model and openai_base_url "
         "(which usually ends in /v1).",
    408: "The model server took too long to answer.",
    429: "The model server takes no more requests for now: its limit is used up.",
    500: "The model server had an internal error.",
    502: "The model server could not be reached behind its gateway.",
    503: "The model server is overloaded, or still loads the model.",
    504: "The model server took too long to answer.",
}  # fmt: skip
_PASSING = (408, 409, 429, 500, 502, 503, 504)
_TOO_LONG = (
    "The conversation is longer than this model takes (the tools alone are some 12,000 tokens): give the server a "
    "longer context, or start a new session."
)
_IS_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|size|window)|maximum.{0,20}tokens|too (?:long|large|many tokens)"
    r"|exceed.{0,40}(?:context|tokens)",
    re.IGNORECASE,
)
# What servers and models refuse that can be left out or asked for otherwise, by the words of the refusal.
_OPTIONAL = {
    "stream_options": re.compile(r"stream_options|include_usage", re.IGNORECASE),
    "temperature": re.compile(r"temperature", re.IGNORECASE),
    "response_format": re.compile(r"response_format|json_schema|guided|grammar|structured output", re.IGNORECASE),
    "tools": re.compile(r"\btools?\b|tool.choice|function.call|--jinja", re.IGNORECASE),
}
# llama.cpp, and what is built on it, where a model's call is not as its template has calls: at temperature 0 it would
# be the same again, while one JSON object is held to by a grammar.
_CALL_UNREAD = re.compile(r"output that does not match the expected|failed to parse (?:input|tool)", re.IGNORECASE)


def refused_option(error: Exception, sent: set[str]) -> str | None:
    """The option of those `sent` that a refusal is about, if it is about one."""
    message = _words(error)
    if "tools" in sent and _CALL_UNREAD.search(message):
        return "tools"
    if getattr(error, "status_code", None) not in (400, 404, 422, 500, 501) or _IS_TOO_LONG.search(message):
        return None
    return next((name for name, words in _OPTIONAL.items() if name in sent and words.search(message)), None)


def read_failure(error: Exception, model: str) -> Failure:
    """The failure that an exception means which came while the library asked or read."""
    code = getattr(error, "status_code", None)
    if isinstance(code, int):
        return _by_status(code, error, model)
    cause = error.__cause__ or error
    kind = type(error).__name__
    if isinstance(cause, httpx2.TimeoutException) or kind == "APITimeoutError":
        return Failure("The model server took too long to answer.", may_pass=True)
    if isinstance(cause, httpx2.ConnectError):
        return Failure("The model server could not be reached: check openai_base_url, and that it runs.", may_pass=True)
    if isinstance(cause, httpx2.HTTPError | httpx2.StreamError) or kind == "APIConnectionError":
        return Failure("The connection to the model server broke off.", may_pass=True)
    if kind == "APIError":
        # In the middle of a stream: the server's own words.
        message = _words(error)
        if _IS_TOO_LONG.search(message):
            return Failure(_TOO_LONG, too_long=True)
        return Failure(f"The model server broke off: {quoted(message)}", may_pass=True)
    return Failure(f"The model server sent something that cannot be read ({kind}): check its address.", may_pass=True)


def finish_failure(finish: str | None, usable: bool, is_readable: bool, model: str) -> Failure | None:
    """What is wrong with a reply that ended with `finish`; None when it can be used (`usable`: has text or calls)."""
    if finish == "content_filter":
        return Failure("The model's provider held the answer back: put the question in other words.")
    if not is_readable:
        return Failure(f"{plain(model)} made a tool call that cannot be read.", may_pass=True)
    if usable:
        return None
    if finish == "length":
        return Failure(f"{plain(model)} reached its output limit before it answered: ask for less at once.")
    return Failure(f"{plain(model)} sent an empty answer.", may_pass=True)


def _by_status(code: int, error: Any, model: str) -> Failure:
    message = _words(error)
    if (code in (400, 413, 422, 500) and _IS_TOO_LONG.search(message)) or code == 413:
        return Failure(_TOO_LONG, too_long=True)
    if code in _BY_CODE:
        return Failure(_BY_CODE[code].format(model=plain(model)), code in _PASSING, _retry_after(error))
    return Failure(f"The model server refused the request ({code}): {quoted(message)}", code >= 500)


def _words(error: Any) -> str:
    """What the server said; the library puts the code before it."""
    body = getattr(error, "body", None)
    told = body.get("message") if isinstance(body, dict) else None
    return str(told or getattr(error, "message", "") or error)


def _retry_after(error: Any) -> float | None:
    """Seconds that the server asks to wait, or None."""
    response = getattr(error, "response", None)
    text = response.headers.get("retry-after", "") if response is not None else ""
    return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else None


def quoted(message: str) -> str:
    """A server's own words, on one line, without the key."""
    message = message.replace(os.environ.get(KEY_VARIABLE) or "\0", "(key)")
    line = " ".join(plain(without_credentials(re.sub(r"\bsk-[\w-]{8,}", "(key)", message))).split())
    line = line if len(line) <= 200 else f"{line[:199]}…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."
