"""Answers that need no tool: what is missing, what Shardwise is for, what it does not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.offline.numbers import short
from agent.reader.answers.talk import (
    FRESH,
    HELP,
    NO_IMPORT,
    NO_PLAN,
    NOTHING_TO_COMPARE,
    OUT_OF_SCOPE,
    WELCOME,
    WHICH_FOLDER,
    missing,
    no_file,
    not_placed,
    own,
)
from knowledge import figures
from planner.partial import get


def ask(questions: list[str], plan: Mapping[str, Any], notes: list[str], unread: list[str]) -> str:
    """All open questions in one message, with what has been understood so far."""
    texts = [question.partition(": ")[2] for question in questions]
    understood = _understood(plan)
    lines = []
    if len(texts) == 1:
        lines.append(f"One thing first: {texts[0]}")
    else:
        lines.append("Before I can work that out I need to know:")
        lines.append("\n".join(f"- {text}" for text in texts))
    if understood:
        lines.append(f"So far I have: {understood}.")
    if notes:
        lines.append("\n".join(f"- {note}" for note in notes))
    if unread:
        lines.append(not_placed(unread))
    return "\n\n".join(lines)


def _understood(plan: Mapping[str, Any]) -> str:
    parts: list[str] = []
    if model := get(plan, "model"):
        parts.append(str(model) if isinstance(model, str) else "your model config")
    device, count = get(plan, "cluster.accelerator"), get(plan, "cluster.count")
    if device or count:
        parts.append(
            " ".join(
                filter(None, (f"{count} x" if count and device else f"{count} devices" if count else "", device or ""))
            )
        )
    for path, label in (
        ("workload.method", "{}"),
        ("workload.stage", "{}"),
        ("workload.framework", "{}"),
        ("workload.precision", "{}"),
        ("workload.engine", "{}"),
        ("workload.weight_dtype", "{} weights"),
        ("workload.input_len", "{} tokens in"),
        ("workload.output_len", "{} tokens out"),
        ("workload.concurrency", "{} clients at once"),
        ("workload.request_rate", "{} requests/s"),
        ("workload.seq_len", "sequences of {} tokens"),
    ):
        if value := get(plan, path):
            parts.append(label.format(figures.plain(value)))
    if tokens := get(plan, "workload.dataset_tokens"):
        parts.append(f"{short(tokens)} tokens")
    if budget := get(plan, "goal.budget_usd"):
        parts.append(f"a budget of ${figures.whole(budget)}")
    return ", ".join(parts)


__all__ = [
    "FRESH",
    "HELP",
    "NOTHING_TO_COMPARE",
    "NO_IMPORT",
    "NO_PLAN",
    "OUT_OF_SCOPE",
    "WELCOME",
    "WHICH_FOLDER",
    "ask",
    "missing",
    "no_file",
    "not_placed",
    "own",
]
