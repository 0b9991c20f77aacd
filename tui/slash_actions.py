"""What the commands with a slash do: with a tool, whose card is then shown, or with the app itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.events import Event, Remark, ToolCall, ToolResult
from agent.export import export_session
from agent.store import list_sessions
from agent.wire import Call, Outcome
from estimator.errors import PlanError, nearest
from estimator.plan.schema import Plan
from knowledge.own.files import write_file
from knowledge.own.home import expanded
from tools.registry import find
from tui import themes
from tui.actions import ACTIONS, every_key
from tui.arguments.servers import THINKERS
from tui.plan_fields import assignments, checked, find_field, kind_of, laid_over
from tui.slash import find_command
from tui.widgets.messages import Notice

if TYPE_CHECKING:
    from tui.app import ShardwiseApp

Action = Callable[["ShardwiseApp", list[str]], Awaitable[None]]

_EDITS = ("model", "hardware", "plan")

# They wait for nothing, not even for a conversation that is being opened.
_AT_ONCE = ("stop", "quit", "actions", "help")


async def carry_out(app: ShardwiseApp, name: str, words: list[str]) -> None:
    """Raises PlanError for a command that is not there, or words that it cannot use."""
    command = find_command(name)
    if words and not command.usage:
        raise PlanError(f"/{name}", f"takes nothing behind it, and {' '.join(words)!r} is there")
    if name not in _AT_ONCE:
        await app.drawn.wait()
    action = _ACTIONS.get(name)
    if words and name in _EDITS and words[0] not in THINKERS:
        if app.busy():
            return
        await app.conversation.ask(app.typed)
    if action is not None:
        await action(app, words)
    else:
        app.open_screen(name)


async def call_events(name: str, arguments: Mapping[str, Any]) -> AsyncIterator[Event]:
    """A tool called by a command, as the events of a turn."""
    call = Call(f"slash-{time.monotonic_ns()}", name, dict(arguments))
    yield ToolCall(call, opened=True)
    started = time.perf_counter()
    try:
        outcome = Outcome(call, await asyncio.to_thread(find(name), call.arguments))
    except PlanError as error:
        outcome = Outcome(call, {"error": str(error)})
    yield ToolResult(outcome, time.perf_counter() - started)
    if outcome.error:
        yield Remark(outcome.error, bad=True)


# The plan


async def _model(app: ShardwiseApp, words: list[str]) -> None:
    if not words:
        if app.opens("models"):
            return
        name = app.pane.plan.get("model")
        if not name:
            raise PlanError("/model", "needs the name of a model", ["/model llama-3.1-8b"])
        await app.call_tool("describe_model", {"model": name})
        return
    if words[0] in THINKERS:
        await _think(app, words)
        return
    app.pane.edit({"model": " ".join(words)})


async def _hardware(app: ShardwiseApp, words: list[str]) -> None:
    if not words:
        if app.opens("hardware"):
            return
        name = (app.pane.plan.get("cluster") or {}).get("accelerator")
        if not name:
            raise PlanError("/hardware", "needs the name of an accelerator", ["/hardware h100-sxm 8"])
        await app.call_tool("describe_hardware", {"accelerator": name})
        return
    count = words[-1].lower().strip("x×") if len(words) > 1 else ""
    changes: dict[str, Any] = {"cluster.accelerator": " ".join(words[:-1] if count.isdigit() else words)}
    if count.isdigit():
        changes["cluster.count"] = int(count)
    # What belonged to the old machines.
    changes |= {"cluster.per_node": None, "cluster.interconnect": None}
    app.pane.edit(changes)


async def _plan(app: ShardwiseApp, words: list[str]) -> None:
    if not words:
        await app.toggle_form()
    elif len(words) == 1 and "=" not in words[0]:
        await app.open_form(find_field(words[0], app.pane.plan).name)
    else:
        app.pane.edit(assignments(words, app.pane.plan))


async def _pane(app: ShardwiseApp, _: list[str]) -> None:
    app.toggle_plan()


async def _undo(app: ShardwiseApp, _: list[str]) -> None:
    if not app.pane.undo():
        app.notify("Nothing was changed here.", markup=False)


def _tool(name: str) -> Action:
    """A tool on the plan, with changes for this one call."""

    async def run(app: ShardwiseApp, words: list[str]) -> None:
        await app.call_tool(name, {"plan": _changed(app, words)})

    return run


async def _best(app: ShardwiseApp, words: list[str]) -> None:
    """What it finds is the plan then: the next command, and the next question, are about it."""
    plan = _changed(app, words, app.pane.unsearched())
    tool = "best_serving" if kind_of(plan) == "inference" else "best_parallelism"
    await app.call_tool(tool, {"plan": plan}, searched=plan)


def _changed(app: ShardwiseApp, words: list[str], plan: Mapping[str, Any] | None = None) -> dict[str, Any]:
    plan = app.pane.plan if plan is None else plan
    if not plan.get("model") and not any(word.startswith("model=") for word in words):
        raise PlanError("plan", "there is none yet; ask something, or choose a model first", ["/plan", "/models"])
    return checked(laid_over(plan, assignments(words, plan))) if words else dict(plan)


async def _compare(app: ShardwiseApp, words: list[str]) -> None:
    if not words:
        if app.opens("scenarios"):
            return
        raise PlanError("/compare", "needs what to compare", ["/compare method=full,lora", "/compare NAME NAME"])
    over: dict[str, Any] = {}
    scenarios: list[dict[str, Any]] = []
    for word in words:
        name, sign, values = word.partition("=")
        if sign:
            field = find_field(name, app.pane.plan).name
            if field in over:
                raise PlanError("/compare", f"has {field} twice; put its values behind one", [f"{field}=A,B"])
            over[field] = values.split(",") if "," in values else values
        else:
            plan = await asyncio.to_thread(find("load_scenario"), {"name": name})
            scenarios.append({"name": name, "plan": plan["plan"]})
    base = {"plan": _changed(app, [])} if over or len(scenarios) == 1 else {}
    variants = ({"over": over} if over else {}) | ({"scenarios": scenarios} if scenarios else {})
    await app.call_tool("compare", base | variants)


async def _sweep(app: ShardwiseApp, words: list[str]) -> None:
    if len(words) < 2:
        if not words and app.opens("sweep"):
            return
        raise PlanError("/sweep", "needs a field and its values", ["/sweep count 8..128 doubling", "/sweep tp 1,2,4"])
    field = find_field(words[0], app.pane.plan).name
    values: Any = " ".join(words[1:])
    if "," in values or (len(words) > 2 and ".." not in values):
        values = [value for value in values.replace(",", " ").split() if value]
    await app.call_tool("sweep", {"plan": _changed(app, []), "field": field, "values": values})


# Files


async def _config(app: ShardwiseApp, words: list[str]) -> None:
    if words and words[0] == "write":
        _changed(app, [])
        place = f" into the folder {words[1]}" if len(words) > 1 else ""
        await app.ask(f"Write the launch files{place}.")
        return
    targets = {"targets": words} if words else {}
    await app.call_tool("render_configs", {"plan": _changed(app, [])} | targets)


async def _save(app: ShardwiseApp, words: list[str]) -> None:
    overwrite = len(words) > 1 and words[-1] == "overwrite"
    name = " ".join(words[:-1] if overwrite else words)
    if not name:
        raise PlanError("/save", "needs a name", ["/save llama-8b-8-gpus"])
    await app.call_tool("save_scenario", {"plan": _changed(app, []), "name": name, "overwrite": overwrite})


# The plan as a report, by the ending of its file.
_REPORTS = {"html": "html", "pdf": "pdf", "markdown": "md"}
# What is exported, by its own name or by the ending of the file that it is to be.
_EXPORTS = {"conversation": "conversation", "json": "json", "plan": "plan", "html": "html", "pdf": "pdf",
            "markdown": "markdown", "md": "markdown", "htm": "html", "yaml": "plan", "yml": "plan"}  # fmt: skip
# How a conversation is written.
_TALKS = {"conversation": "markdown", "json": "json"}


async def _export(app: ShardwiseApp, words: list[str]) -> None:
    what = _exported(words)
    if what in _REPORTS:
        file = {"file": " ".join(words) or f"report.{_REPORTS[what]}"}
        await app.call_tool("report", {"plan": _changed(app, []), "format": what} | file)
        return
    ending = {"conversation": "md", "json": "json", "plan": "yaml"}[what]
    name = f"plan.{ending}" if what == "plan" else f"session-{app.talk.id}.{ending}"
    path = expanded(" ".join(words) or name)
    path = path if path.is_absolute() else Path(app.talk.output or ".") / path
    if what == "plan":
        text = await asyncio.to_thread(_plan_text, _changed(app, []), path.suffix == ".json")
    elif app.talk.id is None:
        raise PlanError("/export", "there is no conversation yet", ["/export plan"])
    else:
        text = await asyncio.to_thread(export_session, app.talk.id, _TALKS[what])

    await asyncio.to_thread(write_file, path, text, False, "/export")
    await app.say(Notice(f"Exported to {path}"))


def _exported(words: list[str]) -> str:
    """What is to be exported; takes it from the words where the first says it. Raises PlanError for an ending of which
    nothing is written."""
    if words and words[0].lower() in _EXPORTS:
        return _EXPORTS[words.pop(0).lower()]
    ending = Path(words[-1]).suffix.lower().lstrip(".") if words else "conversation"
    if ending not in _EXPORTS:
        raise PlanError("/export", f"nothing is written as {words[-1]!r}", list(dict.fromkeys(_EXPORTS.values())))
    return _EXPORTS[ending]


def _plan_text(plan: dict[str, Any], as_json: bool) -> str:
    parsed = Plan.parse(plan)
    return json.dumps(parsed.given(), indent=2) + "\n" if as_json else parsed.to_yaml()


# The conversation


async def _resume(app: ShardwiseApp, words: list[str]) -> None:
    if not words and app.opens("sessions"):
        return
    rows = await asyncio.to_thread(list_sessions)
    if not words:
        lines = [f"{row.id}  {row.last_used[:16]}  {row.title}" for row in rows[:15]]
        await app.say(Notice("\n".join(["Go on with: /resume ID", *lines]) if lines else "There is no earlier one."))
        return
    chosen = next((row.id for row in rows if row.id == words[0]), None)
    if chosen is None:
        matches = [row for row in rows if all(word.casefold() in row.title.casefold() for word in words)]
        if not matches:
            query = " ".join(words)
            raise PlanError("session", f"there is no conversation {query!r}", nearest(query, [row.id for row in rows]))
        chosen = matches[0].id
    await app.resume(chosen)


async def _new(app: ShardwiseApp, _: list[str]) -> None:
    await app.new_session()


async def _copy(app: ShardwiseApp, words: list[str]) -> None:
    app.copy(" ".join(words))


async def _details(app: ShardwiseApp, _: list[str]) -> None:
    app.toggle_details()


async def _stop(app: ShardwiseApp, _: list[str]) -> None:
    app.action_stop()


async def _palette(app: ShardwiseApp, _: list[str]) -> None:
    app.action_command_palette()


async def _think(app: ShardwiseApp, words: list[str]) -> None:
    if len(words) != 1 or words[0] not in THINKERS:
        raise PlanError("/think", f"{' '.join(words) or 'nothing'!r} is no model to choose", THINKERS)
    await app.think_with(words[0])


async def _theme(app: ShardwiseApp, words: list[str]) -> None:
    name = themes.choose(app, words)
    await asyncio.to_thread(themes.keep, name)
    app.notify(f"Theme: {name} (saved)", markup=False)


async def _help(app: ShardwiseApp, _: list[str]) -> None:
    if app.opens("help"):
        return
    rows = [f"| `{_cell(each.shown)}` | {_cell(each.meaning)} |" for each in ACTIONS]
    keys = [f"| {key} | {what} |" for key, what in every_key(app)]
    text = ["| command | |", "|---|---|", *rows, "", "| key | |", "|---|---|", *keys]
    await app.say_markdown("\n".join(text))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


async def _quit(app: ShardwiseApp, _: list[str]) -> None:
    with suppress(PlanError):
        await app.action_quit()


_ACTIONS: dict[str, Action] = {
    "model": _model, "hardware": _hardware, "plan": _plan, "fit": _tool("check_fit"),
    "best": _best, "compare": _compare, "sweep": _sweep,
    "cost": _tool("estimate_cost"), "config": _config, "save": _save, "export": _export, "resume": _resume,
    "new": _new, "undo": _undo, "copy": _copy, "think": _think, "theme": _theme, "help": _help, "quit": _quit,
    "pane": _pane, "details": _details, "stop": _stop, "actions": _palette,
}  # fmt: skip
