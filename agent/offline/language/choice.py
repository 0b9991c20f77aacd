"""Which tool answers a turn: the classifier's opinion, and the lexicon's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.offline.language import act
from agent.offline.language.mentions import SERVING
from agent.offline.language.own import FREE, any_goal, limit_goal

if TYPE_CHECKING:
    from agent.offline.language.reading import Page

# Tools that a change alone does not ask for.
_SEARCHES = ("size_serving", "best_serving", "find_limit", "best_parallelism", "recommend_cluster", "list_catalogue",
             "import_config", "estimate_cost", "auto_configure", "sweep")  # fmt: skip
# What find_limit solves, by its goal: where a number of it is said, no limit of it is asked.
_SOLVED = {"devices": ("count", "nodes"), "context": ("length", "max_context"), "seq_len": ("seq_len",),
           "micro_batch": ("micro_batch", "batch", "global_batch"), "concurrency": ("concurrency",),
           "input_len": ("input_len",)}  # fmt: skip
# How much the lexicon's opinion weighs: as much as half of what the classifier may's.
_HINT = 0.5


def chosen(page: Page, context: act.Context) -> tuple[str | None, dict[str, float]]:
    """(The tool, or None where none answers, how likely each was)."""
    shares = act.tool_of(page.read, context, [one.field for one in page.filled], page.mode)
    shares = _with_hints(page, shares)
    tool = max(shares, key=lambda name: shares[name])
    if (tool in _SEARCHES or (page.marks and tool in FREE)) and page.plan and _only_changes(page):
        tool = "estimate_inference" if page.mode == SERVING else "estimate_training"
    solved = _SOLVED.get(limit_goal(page) or any_goal(page) or "", ()) if tool == "find_limit" and page.plan else ()
    if any(page.values(name) for name in solved):
        tool = "estimate_inference" if page.mode == SERVING else "estimate_training"
    return None if tool == act.NO_TOOL else tool, shares


def _only_changes(page: Page) -> bool:
    """Whether a text asks nothing: it says numbers, values or names, and no word of a question."""
    asked = page.read.asked("focus") or page.read.does("compare", "why", "or", "versus")
    return not (asked or page.read.of("path", "provider") or "?" in page.read.text) and bool(
        page.filled or page.kept or page.read.names or page.marks
    )


def _with_hints(page: Page, shares: dict[str, float]) -> dict[str, float]:
    """The classifier's shares with the lexicon's second opinion, which decides where the first is unsure."""
    hint = _hinted(page)
    return {**shares, hint: shares.get(hint, 0.0) + _HINT} if hint else shares


def _hinted(page: Page) -> str | None:
    """The tool that the words ask for by name: a limit, the best deployment, a range of sizes."""
    focus = page.read.asked("focus")
    serving = page.mode == SERVING
    goal = limit_goal(page) if {"most", "least", "size"} & set(focus) else None
    if goal and not any(page.values(name) for name in _SOLVED.get(goal, (goal,))):
        loaded = serving and goal == "devices" and (page.values("concurrency") or page.values("request_rate"))
        return (
            "size_serving"
            if loaded
            else "find_limit"
            if "most" in focus or "least" in focus or goal != "model"
            else None
        )
    if serving and "best" in focus and not page.read.of("provider"):
        return "best_serving"
    return None
