"""The user's settings: settings.toml in the configuration folder, and variables of the environment, which win over it.

The file holds one `key = value` a line and no secrets: keys of services are read from the environment alone. Nothing is
kept in memory between calls, so a change counts from the next session on.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator.errors import PlanError, nearest
from knowledge.own.files import read_text, user_folder, write_file
from pages.rendering.clean import clean, one_line

FILE_NAME = "settings.toml"
KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_OPENAI_KEY = "OPENAI_API_KEY"
_HEADING = "# Settings of Shardwise. `shardwise config` lists every key, what it means and what is in force.\n"
_SECRET = re.compile(r"key|token$|secret|password", re.IGNORECASE)
_NAMES = ("gemini_model", "openai_model")


@dataclass(frozen=True)
class Option:
    """One key: its default says its type. `valid` are the values it may have; numbers lie between `low` and `high`."""

    key: str
    default: str | int | float
    variable: str
    meaning: str
    valid: tuple[str, ...] = ()
    low: float = 1
    high: float = 1e9


SETTINGS = (
    Option(
        "model", "auto", "SHARDWISE_THINK", "which model answers; auto: the first configured in auto_order, or offline",
        ("auto", "offline", "gemini", "openai"),
    ),
    Option(
        "auto_order", "gemini openai", "SHARDWISE_AUTO_ORDER", "in which order auto takes what is configured",
        ("gemini openai", "openai gemini", "gemini", "openai"),
    ),
    Option("openai_base_url", "", "OPENAI_BASE_URL", "address of an OpenAI-compatible server, usually ending in /v1"),
    Option("openai_model", "", "SHARDWISE_OPENAI_MODEL", "the model there; with an address or a key it is configured"),
    Option(
        "openai_input_tokens", 100_000, "SHARDWISE_OPENAI_INPUT_TOKENS",
        "most tokens of one request to it, the tools' 12,000 included", low=14_000, high=2_000_000,
    ),
    Option(
        "openai_tools", "auto", "SHARDWISE_OPENAI_TOOLS",
        "how it calls tools: native, as a JSON object (json), or auto: native until the server refuses",
        ("auto", "native", "json"),
    ),
    Option("gemini_model", "gemini-3.8-flash", "SHARDWISE_MODEL", "the Gemini model"),
    Option("gemini_base_url", "", "GOOGLE_GEMINI_BASE_URL", "another address of the Gemini API, such as a proxy"),
    Option(
        "gemini_timeout_s", 60, "SHARDWISE_GEMINI_TIMEOUT_S",
        "longest wait for a model's next words, with all attempts", high=3600,
    ),
    Option(
        "gemini_attempts", 3, "SHARDWISE_GEMINI_ATTEMPTS", "attempts at a request that fails in passing", high=10
    ),
    Option(
        "gemini_input_tokens", 200_000, "SHARDWISE_GEMINI_INPUT_TOKENS",
        "most tokens of one request; older turns are left out beyond", low=20_000, high=2_000_000,
    ),
    Option(
        "gemini_turn_tokens", 1_000_000, "SHARDWISE_GEMINI_TURN_TOKENS",
        "most tokens of one answer, all its requests together; 0: no limit", low=0,
    ),
    Option(
        "gemini_session_tokens", 10_000_000, "SHARDWISE_GEMINI_SESSION_TOKENS",
        "most tokens of one conversation; 0: no limit", low=0,
    ),
    Option("gemini_turn_usd", 2, "SHARDWISE_GEMINI_TURN_USD", "most USD of one answer; 0: no limit", low=0),
    Option("gemini_session_usd", 20, "SHARDWISE_GEMINI_SESSION_USD", "most USD of a conversation; 0: no limit", low=0),
    Option("output", "", "SHARDWISE_OUTPUT", "folder that files may be written to (empty: the working folder)"),
    Option("theme", "", "SHARDWISE_THEME", "colours of the app (empty: its own)"),
)  # fmt: skip
_BY_KEY = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True)
class InForce:
    """A setting's value and where it is from: default, file or environment."""

    setting: Option
    value: str | int | float
    source: str


def settings_file() -> Path:
    """Where the settings are kept; it may not be there yet."""
    return user_folder() / FILE_NAME


def in_force() -> list[InForce]:
    """Every setting. Raises PlanError for a file or a variable that cannot be used."""
    stored = _read(settings_file())
    return [_of(setting, stored) for setting in SETTINGS]


def value(key: str) -> Any:
    """The value of one setting, of its default's type."""
    return _of(_known(key), _read(settings_file())).value


def key_variable() -> str | None:
    """The variable that holds a key for Gemini, never the key."""
    return next((name for name in KEY_VARIABLES if os.environ.get(name)), None)


def configured(model: str) -> bool:
    """Whether a language model can be asked: gemini with a key, openai with a model's name and an address or a key."""
    if model == "gemini":
        return key_variable() is not None
    return bool(value("openai_model") and (value("openai_base_url") or os.environ.get(_OPENAI_KEY)))


def set_value(key: str, text: str) -> Path:
    """Writes a setting into the file, whose other lines stay as they are; returns the file. Raises PlanError."""
    setting = _known(key)
    new = _checked(setting, text, key)
    # json.dumps writes text as TOML's basic strings are written.
    return _rewrite(key, f"{key} = {json.dumps(new, ensure_ascii=False)}\n")


def unset(key: str) -> Path:
    """Takes a setting out of the file; returns the file. Raises PlanError."""
    _known(key)
    return _rewrite(key, "")


def _of(setting: Option, stored: Mapping[str, Any]) -> InForce:
    if text := os.environ.get(setting.variable):
        return InForce(setting, _checked(setting, text, setting.variable), f"environment: {setting.variable}")
    if setting.key in stored:
        return InForce(setting, _checked(setting, stored[setting.key], setting.key), "file")
    return InForce(setting, setting.default, "default")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    text = read_text(path)
    try:
        stored = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError(str(path), f"is not readable TOML: {error}") from None
    for key in stored:
        _known(key, f" ({path})")
    return stored


def _known(key: str, where: str = "") -> Option:
    if key in _BY_KEY:
        return _BY_KEY[key]
    shown = one_line(key, 60)
    if _SECRET.search(key):
        raise PlanError(
            shown,
            f"is not kept in the settings file{where}: keys are read from the environment",
            (*KEY_VARIABLES, _OPENAI_KEY),
        )
    raise PlanError("setting", f"there is no setting {shown!r}{where}", nearest(key, _BY_KEY, limit=len(_BY_KEY)))


def _checked(setting: Option, content: Any, field: str) -> str | int | float:
    """`given` as the setting's type. Raises PlanError(field)."""
    if isinstance(setting.default, str):
        if not isinstance(content, str):
            raise PlanError(field, "must be text", setting.valid)
        text = content.strip()
        if clean(text) != text or len(text.splitlines()) > 1 or len(text) > 1000:
            raise PlanError(field, "has control characters or is too long", setting.valid)
        if setting.valid and text not in setting.valid:
            raise PlanError(field, f"{text!r} is not one of its values", setting.valid)
        if setting.key in _NAMES and text and not re.fullmatch(r"[\w.\-/:@+]+", text):
            raise PlanError(field, f"{text!r} is not the name of a model", [str(setting.default)])
        if setting.key.endswith("_base_url") and text and not re.match(r"https?://[^\s/]", text):
            raise PlanError(field, f"{text!r} is not an address", ["https://…"])
        return text
    try:
        number = float(content) if not isinstance(content, bool) else float("nan")
    except (TypeError, ValueError):
        number = float("nan")
    if not (setting.low <= number <= setting.high and number == int(number)):
        shown = repr(content)[:40]
        raise PlanError(field, f"{shown} is not a whole number from {setting.low:.0f} to {setting.high:.0f}")
    return int(number)


def _rewrite(key: str, line: str) -> Path:
    """Puts `line` in the place of the key's own, or at the end."""
    path = settings_file()
    # Whoever keeps settings elsewhere and links to them keeps the link.
    path = path.resolve() if path.is_symlink() else path
    text = read_text(path) if path.exists() else _HEADING
    _read(path)
    own = re.compile(rf"^[ \t]*[\"']?{key}[\"']?[ \t]*=.*(?:\n|\Z)", re.MULTILINE)
    if own.search(text):
        new = own.sub(lambda _: line, text, count=1)
    else:
        new = text + ("\n" if text and not text.endswith("\n") else "") + line
    kept = tomllib.loads(new)
    if (key in kept) != bool(line):
        raise PlanError(str(path), f"{key} is not on a line of its own; change it in the file")
    write_file(path, new, True, str(path))
    return path
