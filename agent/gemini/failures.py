"""Every way in which Gemini fails, as a sentence that tells the user what to do, and whether trying again may help."""

from __future__ import annotations

import os
import re
from typing import Any

import httpx2
from google.genai import errors

from agent.models import Failure
from agent.settings import KEY_VARIABLES
from estimator.credentials import without_credentials
from pages.rendering.clean import plain

_BY_CODE = {
    401: "Gemini did not accept the credentials: check GEMINI_API_KEY.",
    403: (
        "This Gemini key may not use {model}: check the key's permissions and that the API is enabled for its project."
    ),
    404: "Gemini has no model named {model}: set gemini_model (or SHARDWISE_MODEL) to one that your key can use.",
    408: "Gemini took too long to answer.",
    500: "Gemini had an internal error.",
    502: "Gemini could not be reached behind its gateway.",
    503: "Gemini is overloaded at the moment.",
    504: "Gemini took too long to answer.",
}
_KEY_FORM = re.compile(r"AIza[\w-]{20,}")
_PASSING = (408, 429, 500, 502, 503, 504)
_KEY = "Gemini did not accept the API key: check GEMINI_API_KEY (a new key comes from Google AI Studio)."
_QUOTA = "The Gemini quota of this key is used up: wait, or use a key with a higher limit."
_TOO_LONG = "The conversation is longer than this Gemini model takes: start a new session or say less at once."
_SIGNATURE = (
    "Gemini refused the conversation's thought signatures, as happens when the model is changed "
    "midway: start a new session."
)

# Finish reasons with which a reply is unusable, and whether asking again may help. Values as the API prints them.
_FINISHES: dict[str, tuple[str, bool]] = {
    "SAFETY": ("Gemini held its answer back for safety reasons: put the question in other words.", False),
    "PROHIBITED_CONTENT": (
        "Gemini held its answer back as prohibited content: put the question in other words.",
        False,
    ),
    "BLOCKLIST": ("Gemini held its answer back because of a blocked term: put the question in other words.", False),
    "SPII": ("Gemini held its answer back because it may hold personal data: put the question in other words.", False),
    "RECITATION": ("Gemini held its answer back because it repeats a source: put the question in other words.", False),
    "LANGUAGE": ("Gemini does not support the language of the question: ask in English.", False),
    "MALFORMED_FUNCTION_CALL": ("Gemini made a tool call that cannot be read.", True),
    "MALFORMED_RESPONSE": ("Gemini gave an answer that cannot be read.", True),
    "UNEXPECTED_TOOL_CALL": ("Gemini made a tool call where none was expected.", True),
    "TOO_MANY_TOOL_CALLS": ("Gemini made too many tool calls: ask for less at once.", False),
    "MISSING_THOUGHT_SIGNATURE": (_SIGNATURE, False),
}


def finish_failure(finish: str | None, usable: bool, model: str) -> Failure | None:
    """What is wrong with a reply that ended with `finish`; None when it can be used (`usable`: has text or calls)."""
    if finish and finish.startswith("BLOCKED"):
        reason = finish.partition(" ")[2].lower().replace("_", " ")
        return Failure(f"Gemini refused the question ({reason}): put it in other words.")
    if finish in _FINISHES:
        sentence, may_pass = _FINISHES[finish]
        return Failure(sentence, may_pass)
    if usable:
        return None
    if finish == "MAX_TOKENS":
        return Failure("Gemini reached its output limit before it answered: ask for less at once.")
    return Failure(f"{model} sent an empty answer.", may_pass=True)


def read_failure(error: Exception, model: str) -> Failure:
    """The failure that an exception means which came while the SDK asked or read."""
    if isinstance(error, errors.APIError):
        return _by_status(error, model)
    if isinstance(error, httpx2.TimeoutException):
        return Failure("Gemini took too long to answer.", may_pass=True)
    if isinstance(error, httpx2.ConnectError):
        return Failure("Gemini could not be reached: check the network connection and proxy settings.", may_pass=True)
    if isinstance(error, httpx2.HTTPError | httpx2.StreamError):
        return Failure("The connection to Gemini broke off.", may_pass=True)
    # No JSON, or JSON of another form: the SDK raises whatever its parsing stumbles over.
    kind = type(error).__name__
    return Failure(
        f"Gemini sent something that cannot be read ({kind}): check for a proxy that changes its answers.",
        may_pass=True,
    )


def _by_status(error: Any, model: str) -> Failure:
    # In the middle of a stream the code is whatever the server wrote.
    code, message = int(error.code) if str(error.code).isdecimal() else 0, str(error.message or "")
    details = str(error.details or "")
    if code == 400:
        if "API_KEY_INVALID" in details or "API key not valid" in message:
            return Failure(_KEY)
        if "signature" in message.lower():
            return Failure(_SIGNATURE)
        if "FAILED_PRECONDITION" in details:
            return Failure(
                "Gemini is not available for this key's region or billing: see the API's terms, or use --offline."
            )
        if re.search(r"token count|too (?:long|large)|exceeds the (?:maximum|limit)", message, re.IGNORECASE):
            return Failure(_TOO_LONG, too_long=True)
        return Failure(f"Gemini refused the request: {_quoted(message)}")
    if code == 413:
        return Failure(_TOO_LONG, too_long=True)
    if code == 429:
        return Failure(_QUOTA, may_pass=True, retry_after_s=_retry_delay(details))
    sentence = _BY_CODE.get(code, f"Gemini answered with error {code}: {_quoted(message)}")
    return Failure(sentence.format(model=model) if code in _BY_CODE else sentence, may_pass=code in _PASSING)


def _retry_delay(details: str) -> float | None:
    """Seconds that the server asks to wait (google.rpc.RetryInfo), or None."""
    match = re.search(r"retryDelay['\"]?\s*:\s*['\"](\d+(?:\.\d+)?)s", details)
    return float(match[1]) if match else None


def _quoted(message: str) -> str:
    """A server's own words, on one line, without the key: some repeat what they refused."""
    for name in KEY_VARIABLES:
        message = message.replace(os.environ.get(name) or "\0", "(key)")
    line = " ".join(without_credentials(_KEY_FORM.sub("(key)", plain(message))).split())
    line = line if len(line) <= 200 else f"{line[:199]}…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."
