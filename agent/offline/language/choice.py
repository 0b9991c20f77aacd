"""Which tool answers a turn: the classifier's opinion, and the lexicon's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.offline.language import act
from agent.offline.language.features import Context, goal_of, listed, only_changes
from agent.offline.language.mentions import SERVING
from agent.offline.language.own import FREE, any_goal, limit_goal
from agent.offline.language.scope import asks

if TYPE_CHECKING:
    from agent.offline.language.reading import Page

# Tools that a change alone does not ask for: it goes on with what was asked before.
_CONTINUED = ("estimate_training", "estimate_inference", "check_fit", "size_serving", "best_serving", "find_limit",
              "best_parallelism", "recommend_cluster", "list_catalogue", "import_config", "estimate_cost",
              "auto_configure", "sweep", "compare", "project_scaling", "explain", "advise")  # fmt: skip
# What find_limit solves, by its goal: where a number of it is said, no limit of it is asked.
_SOLVED = {"devices": ("count", "nodes"), "context": ("length", "max_context"), "seq_len": ("seq_len",),
           "micro_batch": ("micro_batch", "batch", "global_batch"), "concurrency": ("concurrency",),
           "input_len": ("input_len",)}  # fmt: skip
# How much the lexicon's opinion weighs: as much as half of what the classifier may's.
_HINT = 0.5


def chosen(page: Page, context: Context) -> tuple[str | None, dict[str, float]]:
    """(The tool, or None where none answers, how likely each was)."""
    shares = act.tool_of(page, context)
    shares = _with_hints(page, shares)
    tool = max(shares, key=lambda name: shares[name])
    open_ = tool in _CONTINUED or tool == context.tool or (page.marks and tool in FREE)
    if page.plan and open_ and only_changes(page):
        # What was asked before is asked of what is changed.
        return None, shares
    if page.plan and page.marks and tool == "sweep" and not (listed(page) or asks(page.read, [(0, 0)])):
        # 'Doubling the batch' is one step, not a range of them.
        return None, shares
    solved = _SOLVED.get(limit_goal(page) or any_goal(page) or "", ())
    if page.plan and tool == "find_limit" and any(page.values(name) for name in solved):
        return None, shares
    if tool == "advise" and not (page.plan or page.read.of("model")):
        # Advice about no run at all is the playbook's.
        tool = "search_playbook"
    if tool == "write_configs" and "show_only" in page.read.asked("wish"):
        tool = "render_configs"
    return None if tool == act.NO_TOOL else tool, shares


def _with_hints(page: Page, shares: dict[str, float]) -> dict[str, float]:
    """The classifier's shares with the lexicon's second opinion, which decides where the first is unsure."""
    hint = _hinted(page)
    return {**shares, hint: shares.get(hint, 0.0) + _HINT} if hint else shares


def _hinted(page: Page) -> str | None:
    """The tool that the words ask for by name: a limit, the best deployment, a range of sizes."""
    focus, wishes = page.read.asked("focus"), page.read.asked("wish")
    serving, goal = page.mode == SERVING, goal_of(page)
    if "sweep" in wishes and listed(page):
        return "sweep"
    most = "most" in focus or "least" in focus
    if goal and not page.values(goal) and (most or not (goal == "model" or "rent" in wishes)):
        loaded = serving and goal == "devices" and (page.values("concurrency") or page.values("request_rate"))
        return "size_serving" if loaded else "find_limit"
    return "best_serving" if serving and "best" in focus and not page.read.of("provider") else None
