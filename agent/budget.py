"""What a language model may use: tokens and dollars of a turn and of a session, and what was used so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agent import settings

# A request takes some ten thousand tokens before anything is said in it; with fewer left none is made.
_LEAST_TOKENS = 15_000
_UNBOUNDED = 10**9


@dataclass(frozen=True)
class Usage:
    """Of one request or of many. `usd` is at most so much where the model has no price of its own."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def used(kept: Mapping[str, Any] | None) -> Usage:
    """As a checkpoint keeps it."""
    return Usage(**(kept or {}))


def left_tokens(turn: Usage, session: Usage) -> int:
    """How many tokens may still be used; 0 where a budget is used up. Budgets of 0 are none."""
    if why_none_left(turn, session):
        return 0
    budgets = ((settings.value("gemini_turn_tokens"), turn), (settings.value("gemini_session_tokens"), session))
    return min([_UNBOUNDED, *(tokens - usage.tokens for tokens, usage in budgets if tokens)])


def why_none_left(turn: Usage, session: Usage) -> str:
    """The sentence for when nothing is left."""
    for usage, name in ((turn, "turn"), (session, "session")):
        tokens, usd = settings.value(f"gemini_{name}_tokens"), settings.value(f"gemini_{name}_usd")
        if tokens and tokens - usage.tokens < _LEAST_TOKENS:
            return (f"This {name} has used {usage.tokens:,} of its {tokens:,} tokens "
                    f"(shardwise config set gemini_{name}_tokens).")  # fmt: skip
        if usd and usage.usd >= usd:
            return f"This {name} has used {usage.usd:.2f} of its {usd} USD (shardwise config set gemini_{name}_usd)."
    return ""


def words(usage: Usage) -> str:
    """'12,400 tokens, 0.03 USD', '' where nothing was used."""
    return f"{usage.tokens:,} tokens, {usage.usd:.2f} USD" if usage.requests else ""
