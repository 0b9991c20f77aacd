"""Which tool answers a turn: the classifier's opinion, within what a turn can ask at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.offline.language import act
from agent.offline.language.asking import asks
from agent.offline.language.features import Context, listed, only_changes, solved
from agent.offline.language.mentions import SERVING, Mentions

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# What a change alone goes on with where it was asked before: a limit, a range, a search, a comparison.
_REPEATED = ("find_limit", "sweep", "size_serving", "best_serving", "recommend_cluster", "auto_configure", "compare",
             "project_scaling", "peak_throughput", "apply_strategies")  # fmt: skip
# Of these what is said goes to the tool itself, not only to the plan.
_SEARCHES = ("recommend_cluster", "auto_configure", "compare")
# Tools that a change alone asks for nowhere.
_ASKED_FOR = ("check_fit", "best_parallelism", "list_catalogue", "import_config", "estimate_cost", "explain", "advise")
# Tools that answer for one plan; a row of so many numbers is of as many plans.
_OF_ONE = ("estimate_training", "estimate_inference", "check_fit")
_ROW = 3
_WRITES = ("write_configs", "render_configs")
_POINTS = frozenset(["it", "them", "this", "that", "these", "those", "everything", "all", "plan", "sie", "es", "das",
                     "alles", "lo", "los", "todo", "le", "les", "tout", "它", "全部"])  # fmt: skip


def chosen(page: Page, context: Context) -> tuple[str | None, dict[str, float]]:
    """(The tool, or None where none answers or the question before is gone on with, how likely each was)."""
    shares = act.tool_of(page, context)
    if page.read.asked("outside") and not page.read.of("model"):
        return None, {**shares, act.NO_TOOL: max(1.0, *shares.values())}
    if about_the_answer(page):
        return None, shares
    tool = max(shares, key=lambda name: shares[name])
    if page.read.asked("topic") and asks(page.read.found, []) and not (page.read.names or page.filled):
        # What practice knows and no plan holds.
        return "search_playbook", shares
    if page.plan and only_changes(page):
        return _going_on(page, tool, context.tool), shares
    if tool in _OF_ONE and any(len(number.values) >= _ROW and not number.ranged for number in page.filled):
        return "sweep", shares
    if tool in _WRITES:
        tool = _of_files(page)
    one_step = page.marks and tool == "sweep" and not (listed(page) or asks(page.read.found, []))
    if page.plan and (one_step or (tool == "find_limit" and solved(page))):
        # 'Doubling the batch' is no range of them; a number of what the most is asked of is said.
        return None, shares
    if tool == act.NO_TOOL:
        return None, {**shares, tool: max(1.0, *shares.values())}
    return _of_one_plan(page, tool) if tool in _OF_ONE else tool, shares


def _of_one_plan(page: Page, tool: str) -> str:
    """The tool of the chain for one plan that the figure asked for belongs to, whichever the classifier leans to."""
    focus = page.read.asked("focus")
    if page.mode != SERVING and {"fit", "need"} & set(focus):
        return "check_fit"
    if focus[:1] == ["cost"] and "hourly" not in page.read.asked("wish"):
        return "estimate_cost"
    return tool if page.mode == SERVING else "estimate_training"


def about_the_answer(page: Page) -> str | None:
    """What is asked of the answer before: what its figures are counted per, or what was assumed for it."""
    about = [name for name in page.read.asked("of_answer") if name != "changed"]
    says = page.filled or page.kept or page.read.names or page.marks
    if not (page.plan and about) or says or (about[0] == "assumptions" and page.read.asked("figure")):
        return None
    return about[0]


def _going_on(page: Page, tool: str, before: str | None) -> str | None:
    """The tool of a text that only changes the plan: None goes on with what was asked before."""
    if page.marks or tool == act.NO_TOOL:
        return None
    if before in _REPEATED and tool in (*_REPEATED, *_ASKED_FOR, *_OF_ONE):
        return tool if tool == before and tool in _SEARCHES else None
    if tool in _REPEATED or tool in _ASKED_FOR or (tool in _WRITES and not _asks_for_files(page)):
        return _estimate(page)
    return tool


def _estimate(page: Page) -> str:
    return "estimate_inference" if page.mode == SERVING else "estimate_training"


def _of_files(page: Page) -> str:
    """The tool of a text that seems to be about launch files: they are shown unless writing is asked for."""
    read = page.read
    if not _asks_for_files(page):
        return _estimate(page)
    files = "files" in read.asked("focus") or read.asked("target") or "command" in read.asked("wish")
    if not (files or read.of("path", "model") or any(token.norm in _POINTS for token in read.tokens)):
        # 'Write me a poem.'
        return act.NO_TOOL
    return "write_configs" if _writes(read) and "show_only" not in read.asked("wish") else "render_configs"


def _asks_for_files(page: Page) -> bool:
    """Whether a word asks for something to be written or shown."""
    read = page.read
    asked = {"files", "write", "command", "show_only"} & {*read.asked("focus"), *read.asked("wish")}
    return bool(asked or read.asked("target") or read.of("path"))


def _writes(read: Mentions) -> bool:
    return bool("write" in read.asked("focus") or read.of("path") or "/" in read.text)
