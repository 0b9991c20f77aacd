"""`shardwise models test`: what the configured language model can do with our tools, by twenty questions of ours."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from agent.compatible.model import Compatible
from agent.session import ModelName, model_of
from agent.trial.asking import Tried, questions, tried
from estimator.errors import PlanError
from knowledge import figures
from pages.blocks import Block, Figures, Headline, Note, Table
from pages.rendering import terminal
from pages.rendering.clean import one_line
from tui.jsonout import write_json

_NAMES: tuple[ModelName, ...] = ("openai", "gemini")


def run(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    names: list[ModelName] = [name for name in _NAMES if [name] == list(words)]
    if words and not names:
        raise PlanError("models test", f"{' '.join(words)!r} is no model to choose", _NAMES)
    model = model_of(names[0]) if names else model_of("auto")
    if model is None:
        ways = ["set openai_model and openai_base_url", "set GEMINI_API_KEY"]
        raise PlanError("models test", "no language model is configured that could be tried", ways)
    if isinstance(model, Compatible):
        # An extra, whose absence would otherwise be told twenty times.
        importlib.import_module("openai")
    rows = asyncio.run(_asked(model))
    if arguments.json:
        write_json(_plain(model, rows))
    else:
        terminal.show(_page(model, rows))
    return 0 if not all(row.failure for row in rows) else 3


async def _asked(model: Any) -> list[Tried]:
    rows: list[Tried] = []
    async for row in tried(model, questions()):
        rows.append(row)
        print(f"{len(rows)}/{len(questions())} {_mark(row)}  {row.question.text}", file=sys.stderr)
    return rows


def _abilities(model: Any, rows: Sequence[Tried]) -> dict[str, str]:
    """What the answers show; 'not seen' of what no answer showed."""
    heard = [row for row in rows if not row.failure]
    called = any(row.calls for row in heard)
    as_json = getattr(model, "calls_as_json", False)
    several = any(len(row.calls) > 1 for row in heard)
    return {
        "tool calls": ("as a JSON object" if as_json else "native") if called else "not seen",
        "parallel calls": "yes" if several else "not seen",
        "streamed text": "yes" if any(row.pieces > 1 for row in heard) else "not seen",
        "thoughts kept apart": "yes" if any(row.thinks for row in heard) else "not seen",
    }


def _page(model: Any, rows: Sequence[Tried]) -> list[Block]:
    score, failed = sum(row.score for row in rows), [row for row in rows if row.failure]
    used = sum((row.usage.tokens for row in rows), 0)
    usd = sum(row.usage.usd for row in rows)
    seconds = sorted(row.seconds for row in rows)
    lines = [*_abilities(model, rows).items(), ("an answer takes", figures.seconds(seconds[len(seconds) // 2]))]
    lines.append(("used", f"{used:,} tokens, at most {figures.usd(usd)}"))
    wrong = [(row.question.text, ", ".join(row.calls) or "–", row.failure or "; ".join(row.wrong)) for row in rows
             if row.score < 1]  # fmt: skip
    return [
        Headline(f"{one_line(model.name)}: {score:.1f} of {len(rows)}.", score >= 0.8 * len(rows)),
        Figures(lines),
        *([Table(("question", "called", "what is wrong"), wrong, title="Not as it should be")] if wrong else []),
        *([Note("Failed", [failed[0].failure])] if len(failed) == len(rows) else []),
    ]


def _mark(row: Tried) -> str:
    return "failed" if row.failure else f"{row.score:.2f}"


def _plain(model: Any, rows: Sequence[Tried]) -> dict[str, Any]:
    return {
        "model": model.name,
        "score": sum(row.score for row in rows),
        "of": len(rows),
        "abilities": _abilities(model, rows),
        "answers": [
            {"question": row.question.text, "score": row.score, "calls": list(row.calls), "wrong": list(row.wrong),
             "failure": row.failure or None, "seconds": row.seconds, "usage": asdict(row.usage)}
            for row in rows
        ],
    }  # fmt: skip
