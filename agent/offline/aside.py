"""Turns about no plan: thanks and help, facts, saved scenarios, the catalogue, the playbook, rows of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from agent.models import Thought, Turn
from agent.offline.answers import before as of_before
from agent.offline.answers import talk
from agent.offline.calls.figure import earlier
from agent.offline.calls.wishes import FREE, ROWS
from agent.offline.form import Reading
from agent.offline.language.reading.named_files import describes_a_model
from agent.offline.turn import TurnWork
from agent.offline.work import common, first_lines
from agent.wire import thought
from estimator.money.ownership import HOURS_PER_YEAR
from estimator.plan.schema import merge
from knowledge.machines.catalogue import find_accelerator
from pages.blocks import offered
from planner.asked.owning import OwningTerms
from planner.partial import get
from planner.requests import ALL_PATHS
from tools.registry import Tool

_NAME = "offline"
# {tool: (what own and edits call its things, its argument)}.
_FACTS = {"describe_model": ("models", "model"), "describe_hardware": ("accelerators", "accelerator")}
# Tools that keep or show a plan: without one there is nothing to keep.
_OF_A_PLAN = ("save_scenario", "render_scenario", "report", "render_report", "preview_report")
# What hardware of one's own costs, and where it is.
_WHERE = (*(name for name in OwningTerms.model_fields if name != "utilisation"), "region")
_NOTHING = "none"
_LIMITS = {"budget_usd", "deadline_h"}
_SAID = {"thanks": talk.WELCOME, "help": talk.HELP, "out_of_scope": talk.OUT_OF_SCOPE}

Wish = tuple[str, dict[str, Any]] | str
"""A call, or what is told where there is nothing to call."""


def answer(
    turn: Turn, start: int, reading: Reading, topic: dict[str, Any]
) -> Thought | tuple[dict[str, Any], dict[str, Any]] | None:
    """The answer, or the plan and topic with the call that gives it; None where the turn is about a plan."""
    if tool := _facts_again(reading, topic):
        reading = replace(reading, tool=tool)
    about = reading.own.get("about")
    if about and (text := of_before.told(str(about), earlier(turn.messages))):
        return _told(reading, text, turn.topic)
    if text := _talk(reading, turn.plan):
        # Beginning anew sets the plan aside, and a word between changes nothing.
        if not reading.new:
            return _told(reading, text, turn.topic)
        plans = [*topic.get("plans", []), turn.plan] if turn.plan else topic.get("plans", [])
        return Thought(thought(_NAME, text), {}, {"plans": plans})
    work: dict[str, Any]
    if reading.tool in _FACTS:
        things, argument = _FACTS[reading.tool]
        names = _things(reading, turn.plan, topic, things, argument)
        if not names:
            questions = [str(need) for need in reading.needs] or [f"{argument}: which {argument} is it?"]
            return _asked(reading, questions, topic)
        before, shown = topic.get("last") or (None, {})
        if before == reading.tool and not reading.own.get(things):
            reading = replace(reading, pricing={**shown.get("pricing", {}), **reading.pricing})
        paid = {str(name): _paid_for(reading, name, shown) for name in names}
        providers = _providers(reading)
        facts = [
            [reading.tool, {argument: name} | paid[str(name)] | where]
            for name in names
            for where in _places(reading, paid[str(name)])
        ]
        spoken = [name for name in shown.get(things, ()) if before == reading.tool and name not in names] + names
        topic |= {
            "last": [reading.tool, {things: spoken, "paid_for": paid, "pricing": reading.pricing}],
            "spoken": {**topic.get("spoken", {}), argument: spoken},
        }
        work = {
            "kind": "each",
            "calls": facts,
            "names": [None] * len(facts),
            "providers": providers,
            "figures": _of_devices(reading),
        }
    elif reading.tool in FREE:
        if reading.needs:
            return _asked(reading, [str(need) for need in reading.needs], topic)
        if questions := _open_of_row(reading, turn.tools):
            return _asked(reading, questions, topic | {"last": [reading.tool, reading.own]})
        wish = _free(reading, turn.plan, turn.tools, topic)
        if isinstance(wish, str):
            return _told(reading, wish, turn.topic)
        topic = topic | {"last": list(wish)}
        work = {"kind": "wish", "wish": list(wish)}
    else:
        return None
    return turn.plan, topic | {"turn": asdict(TurnWork(**common(turn, start, reading), **work))}


def _providers(reading: Reading) -> list[Any]:
    told = (reading.own.get("providers", []), reading.pricing.get("providers", []), reading.values("provider"))
    return [name for names in told for name in names]


def _of_devices(reading: Reading) -> list[str]:
    """The figures that were named; who speaks of buying asks what that costs, or from how many hours of use it pays."""
    named = reading.figures
    if "owned" not in reading.pricing.values():
        return named
    return [*(["capex_usd"] if "usd" in named else ["break_even"] if {"hours", *named} == {"hours"} else []), *named]


def _paid_for(reading: Reading, name: object, shown: Mapping[str, Any]) -> dict[str, Any]:
    """How many of a device for how long, where it is asked what they cost by themselves; of what was `shown` right
    before as it was asked then, as far as nothing else is said."""
    told = reading.own.get("paid_for", {}).get(str(name), {}) | reading.own.get("of_these", {})
    where = {argument: value for argument, value in reading.pricing.items() if argument in _WHERE}
    if not told and not reading.pricing:
        return {}
    before = shown.get("paid_for", {}).get(str(name), {})
    match told, before:
        case {"hours": hours, **rest}, {"hours_per_year": each} if "hours_per_year" not in rest:
            # 'And over 3 years?' of hardware that works 60 % of the time.
            told = {**told, "hours": hours * each / HOURS_PER_YEAR}
    told = {**before, **told}
    return {**told, **where} if told else {}


def _places(reading: Reading, paid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The regions that what is paid for is asked of, one by one."""
    regions = reading.own.get("regions", ()) if paid else ()
    return [{"region": region} for region in regions] or [{}]


def _told(reading: Reading, text: str, topic: Mapping[str, Any]) -> Thought:
    kept = {name: value for name, value in topic.items() if name != "turn"}
    told = "\n\n".join([*([talk.not_placed(reading.lost)] if reading.lost else []), text])
    asked = ["model: which model is it?"] if text == talk.NO_PLAN else []
    return Thought(thought(_NAME, told), topic=kept, asked=asked, origins=[text])


def _asked(reading: Reading, questions: list[str], topic: dict[str, Any]) -> Thought:
    text = talk.ask(questions, {}, reading.lost, first_lines(reading))
    return Thought(
        thought(_NAME, text), topic=topic, asked=questions, origins=[*questions, *first_lines(reading), *offered(text)]
    )


def _facts_again(reading: Reading, topic: Mapping[str, Any]) -> str | None:
    """'And the MI355X?' after facts: the same is asked of what is named."""
    tool = (topic.get("last") or [None])[0]
    if tool not in _FACTS or reading.tool or reading.focus or reading.new or reading.refs:
        return None
    named = {edit.field for edit in reading.edits if edit.op == "set"}
    return tool if named == {_FACTS[tool][1]} else None


def _talk(reading: Reading, plan: Mapping[str, Any]) -> str | None:
    """What is told where the words ask for nothing that a tool gives."""
    if reading.own.get("control") == "outside":
        return talk.outside(str(reading.own["outside"]))
    match reading.own:
        case {"values_of": str(field)} if values := talk.values_of(field):
            return values
    edits = reading.edits or reading.options or reading.needs
    if not edits and (text := _SAID.get(str(reading.own.get("control")))):
        # A greeting is read as thanks are: where nothing was planned yet, it is one.
        return talk.HELP if text == talk.WELCOME and not plan else text
    fields = {edit.field for edit in reading.edits}
    likeliest = max(reading.shares, key=lambda name: reading.shares[name], default="")
    nothing = reading.tool is None and likeliest == _NOTHING
    if nothing and not (plan or reading.options or reading.needs or reading.refs) and fields <= _LIMITS:
        # Money or a date alone is no run.
        return talk.OUT_OF_SCOPE
    asks = reading.tool or (reading.focus and not nothing) or reading.pricing
    if reading.new and not (edits or asks):
        return talk.FRESH
    if not (plan or edits) and (reading.tool in _OF_A_PLAN or (reading.refs and not reading.own)):
        return talk.NO_PLAN
    if edits or asks or reading.refs or reading.own:
        return None
    return talk.NOTHING_FOUND if plan else talk.OUT_OF_SCOPE


def _things(
    reading: Reading, plan: Mapping[str, Any], topic: Mapping[str, Any], things: str, argument: str
) -> list[Any]:
    """What is asked about: as it was named, else what was asked about right before, else the plan's."""
    options = [edit.value for option in reading.options for edit in option if edit.field == argument]
    named = [*reading.own.get(things, []), *reading.values(argument), *options]
    own = get(plan, ALL_PATHS[argument])
    _, shown = topic.get("last") or (None, {})
    spoken = shown.get(things, [])[-1:] or ([own] if own else topic.get("spoken", {}).get(argument, []))
    return list(dict.fromkeys(named)) or ([] if reading.needs else spoken)


def _free(reading: Reading, plan: Mapping[str, Any], tools: Mapping[str, Tool], topic: Mapping[str, Any]) -> Wish:
    tool = str(reading.tool)
    if tool not in tools:
        return talk.NO_IMPORT
    fields = tools[tool].request.model_fields
    own = {name: value for name, value in reading.own.items() if name in fields}
    edits = {edit.field: edit.value for edit in reading.edits if edit.op == "set" and edit.field in fields}
    return _FREE_CALLS.get(tool, _as_it_is)(reading, own, edits, plan, tools, topic)


def _as_it_is(reading: Reading, own: dict[str, Any], *_: Any) -> Wish:
    return str(reading.tool), own


def _open_of_row(reading: Reading, tools: Mapping[str, Tool]) -> list[str]:
    """What a row of the person's own still lacks: only their own figures may go in."""
    tool = str(reading.tool)
    if tool not in ROWS or tool not in tools:
        return []
    fields = tools[tool].request.model_fields
    missing = [name for name, info in fields.items() if info.is_required() and name not in reading.own]
    asked = [f"{name}: {str(fields[name].description).rstrip('.')}?" for name in missing]
    if tool.endswith("price") and not any(name.endswith("usd_per_hour") for name in reading.own):
        asked.append("usd_per_hour: what does the whole machine cost an hour, in US dollars?")
    if tool.endswith("hardware") and not {"like", "memory_gib"} & set(reading.own):
        asked.append("like: which accelerator of the catalogue is it like, or what are its memory, bandwidth and rate?")
    return asked


def _import(
    reading: Reading,
    own: dict[str, Any],
    edits: dict[str, Any],
    plan: Mapping[str, Any],
    tools: Mapping[str, Tool],
    _: Any,
) -> Wish:
    if describes_a_model(own.get("text")):
        return "import_config", own
    if "accelerator" not in edits and (device := get(plan, "cluster.accelerator")):
        edits["accelerator"] = device
    if (nodes := reading.values("nodes")) and not reading.values("count"):
        each = reading.values("per_node") or [
            find_accelerator(name).value.per_node for name in reading.values("accelerator")
        ]
        edits |= {"count": int(nodes[-1] * each[-1])} if each else {}
    return "import_config", own | edits


def _results(reading: Reading, own: dict[str, Any], *_: Any) -> Wish:
    return (str(reading.tool), own) if "folder" in own else talk.WHICH_FOLDER


def _difference(
    reading: Reading,
    own: dict[str, Any],
    edits: dict[str, Any],
    plan: Mapping[str, Any],
    tools: Any,
    topic: Mapping[str, Any],
) -> Wish:
    saved, plans = topic.get("saved", []), topic.get("plans") or []
    if not own and plans and len(saved) < 2:
        # 'What changed?' is about the plan before.
        first = any(reference.to == "first" for reference in reading.refs)
        return "diff_scenarios", {"a": plans[0 if first else -1], "b": merge(plan, {})}
    if not own:
        return ("diff_scenarios", {"a": saved[-2], "b": saved[-1]}) if len(saved) > 1 else talk.NOTHING_TO_COMPARE
    if not plan.get("model") and "b" not in own:
        return talk.NOTHING_TO_COMPARE
    return "diff_scenarios", {"b": merge(plan, {})} | own


def _search(reading: Reading, own: dict[str, Any], *_: Any) -> Wish:
    return "search_playbook", {"query": reading.text[:200]} | own


def _list(reading: Reading, own: dict[str, Any], *_: Any) -> Wish:
    return "list_catalogue", {"kind": "models"} | own


_FREE_CALLS: Mapping[str, Callable[..., Wish]] = {
    "import_config": _import,
    "matrix_results": _results,
    "benchmark_result": _results,
    "diff_scenarios": _difference,
    "search_playbook": _search,
    "list_catalogue": _list,
}
