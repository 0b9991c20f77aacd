"""From a turn's Reading to what it works on: the plan, the topic and the work in it, or an answer that needs no tool.

`topic` is what the session remembers between turns, plain data. Of the plan: `plans` (earlier ones), `supposed` (a
plan that was only supposed), `pending` (what a turn that failed or asked had in mind), `failed` (nothing could be
worked out of it), `nodes` (a node count still without a node size), `refused` (values by flat name), `recent` (the
path that changed last), `solved` (the path that
a limit was asked of, or a sweep went over), `followed` (whether a turn changed it that began with a plan).
Of the question: `intents`, `limit`, `sweep`, `choices`, `wish` and `once` (the wish was
about one change), `last` (tool and own arguments, where one tool alone answered), `asked` (limits of serving that no
Plan holds), `pricing`. Of the answers: `fewest` and `largest`, `offers` (clusters that were recommended or options
that were compared, as patches), `best` (the place of the best), `found` (it is what the answer before was about),
`found_before` (what was so found for the last of the plans before),
`spoken` (models and devices whose facts were asked for, by argument), `saved` (names of scenarios), `alternatives`
(values that were set side by side), `usual` (devices that were taken since none were named), `site` (where jobs run,
for files).
`turn` is what the current turn works on, `reading` the form that it was read into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from agent.models import Thought, Turn
from agent.offline import aside
from agent.offline.answers import talk
from agent.offline.beside import MEANT
from agent.offline.calls.figure import earlier
from agent.offline.calls.serving import has_load
from agent.offline.calls.training import SOLVED
from agent.offline.calls.wishes import REPEATED, SEARCHES_HARDWARE, settles
from agent.offline.catalogue import Catalogue
from agent.offline.form import BESIDE, Edit, Need, Reading, set_apart
from agent.offline.kind import serves, switched
from agent.offline.language.own.apis import API_PRICES, PRICE
from agent.offline.language.own.files import SITE, site_of
from agent.offline.options import changed, label, over_of
from agent.offline.patching import Before, Patched, patched
from agent.offline.question import TurnQuestion, asked, found_for, limits
from agent.offline.turn import TurnWork
from agent.offline.unsaid import (
    ASSISTANT,
    EXAMPLE,
    as_spoken_of,
    compute_optimal,
    example_of,
    is_any_assistant,
    on_usual,
    under_load,
)
from agent.offline.work import common, first_lines, ranked_on_demand, with_more_money, work_of
from agent.wire import thought
from estimator.plan.schema import merge
from pages.blocks import offered
from planner.partial import DATA_SIZES, get, is_serving
from planner.requests import ALL_PATHS, FLAT_NAMES

NAME = "offline"
_MOST_PLANS = 20
_DEVICE_HOURS = "goal.budget_device_hours"
_KEPT_WHEN_NEW = ("plans", "saved")
_KEPT_WHEN_SWITCHED = ("plans", "nodes", "saved", "refused", "site")
# What no Plan holds and a deployment is asked for with.
_LIMITS = ("e2e_limit_s", *API_PRICES)
# Prices of the price book, not the person's own.
_LISTED = ("spot", "reserved", "on_demand")
# What a cluster that is taken brings beside its devices.
_OF_A_CLUSTER = ("goal.provider", "workload.framework")
# What is best stays so for more data, and within limits of time and money.
_LEAVE_IT = frozenset({*DATA_SIZES, "sample_tokens", "epochs", "deadline_h", "budget_usd"})
# What a layout is chosen for.
_BRINGS_ITS_OWN = ("accelerator", "model", "framework")
_CLUSTER = ("cluster.accelerator", "cluster.count", "cluster.per_node")
_OWN_PRICES = ("usd_per_device_hour", "usd_per_node_hour")
# What a turn asked, and said beside the plan: it goes with the plan that the turn had in mind.
_QUESTION = ("intents", "limit", "sweep", "choices", "wish", "once", "asked", "pricing", "nodes", "refused")
# Acts that lay edits over the plan itself, where something else was only supposed.
_SETTLES = ("change", "control", "recall")

_RAN_OUT = (
    "the run that ran out of memory may differ from this one in what you did not say: recompute, loss kernel, batch"
)

Begun = tuple[dict[str, Any], dict[str, Any]]


@dataclass
class _Base:
    """The plan that the edits are laid over, and the topic with it: `supposing` whether it is only supposed, `back`
    whether it was gone back to."""

    plan: dict[str, Any]
    topic: dict[str, Any]
    supposing: bool = False
    back: bool = False


def begin(turn: Turn, start: int, reading: Reading, catalogue: Catalogue) -> Begun | Thought:
    """(Plan, topic) with the turn's work, or the answer that needs no tool. Only an assertion changes the plan."""
    topic = {key: value for key, value in turn.topic.items() if key != "turn"}
    if answer := aside.answer(turn, start, reading, topic):
        return answer
    turn, reading, topic = _with_what_is_settled(turn, reading, topic, catalogue)
    base = _base(turn.plan, topic, reading)
    plan, notes = _of_kind(turn, base, reading)
    plan = _without_taken(plan, base.topic, reading)
    plan = _with_the_offer(plan, base.topic, reading)
    before = _before(turn, base, reading)

    def laid(plan: Mapping[str, Any], edits: Sequence[Edit]) -> Patched:
        return patched(plan, edits, reading.text, catalogue, before)

    change = laid(plan, _edits(reading))
    taken_up, options, spoken = as_spoken_of(change.plan, reading, topic)
    reading = replace(reading, options=options, assumed=[*spoken, *reading.assumed])
    change = replace(change, patch=replace(change.patch, plan=taken_up))
    if is_any_assistant(turn, reading, change.plan):
        note = f"no model was named: {ASSISTANT} taken, a usual one to talk to"
        reading = replace(reading, tool="recommend_cluster", assumed=[note, *reading.assumed])
        change = replace(change, patch=replace(change.patch, plan=merge(change.plan, {"model": ASSISTANT})))
    if not base.supposing:
        # What is refused of what is only supposed is not refused for good.
        base.topic["refused"] = change.refused
    each = [laid(change.plan, edits) for edits in reading.options]
    options = changed(change.plan, [option.plan for option in each])
    needs = [*reading.needs, *(need for laying in (change, *each) for need in laying.patch.needs)]
    question = asked(reading, base.topic, change.plan, options, catalogue, turn.tools)
    settled = _settled(reading, needs, change.plan, question)
    plan, assumed = _assumed(change.plan, reading, base.topic, question, catalogue)
    plan, data = compute_optimal(plan, reading)
    plan, taken = on_usual(turn.plan, plan, reading, base.topic, settled)
    plan, load = under_load(plan, reading, question)
    if example := example_of(plan, question):
        plan, base.supposing = merge(plan, example), True
        load.append(f"no run was named: {EXAMPLE} taken as an example")
    ran_out = [_RAN_OUT] if "oom" in reading.focus and whole(plan) and not is_serving(plan) else []
    reading = replace(reading, assumed=[*load, *data, *ran_out, *reading.assumed, *taken])
    topic = _remembered(turn, reading, base, change, plan, question)
    topic["pricing"] = _pricing(base.topic.get("pricing", {}), reading, plan, catalogue)
    notes += [*change.patch.notes, *assumed]
    missing = talk.missing(plan, settled, bool(change.patch.nodes) or "cluster.count" in settled)
    if questions := list(dict.fromkeys([*map(str, needs), *missing])):
        return _ask(turn, reading, base, plan, topic, questions, [*change.patch.refusals, *notes])
    question, more = with_more_money(question, topic["pricing"], plan)
    more += ranked_on_demand(question, reading)
    work = work_of(turn, reading, plan, topic, question, options, catalogue)
    supposed = changed(turn.plan, [plan]) if base.supposing else []
    goes_on = supposed and not example and reading.scope != "hypothetical"
    still = [f"{label(supposed[0])}, as supposed before"] if goes_on else []
    work |= common(turn, start, reading, [*still, *more, *change.patch.refusals], notes) | {"supposed": bool(supposed)}
    topic["turn"] = asdict(TurnWork(**work))
    there = _goes_back_to(turn, base, topic)
    if not supposed:
        return (there if base.supposing else plan), topic
    topic["supposed"] = plan
    return there, topic


def _goes_back_to(turn: Turn, base: _Base, topic: dict[str, Any]) -> dict[str, Any]:
    """The plan beside which something is supposed: where a turn goes back from serving to training, or the other way
    round, the one that it goes back to ('back to the training: what if we take rank 64?')."""
    if not base.back or not turn.plan or is_serving(base.plan) == is_serving(turn.plan):
        return turn.plan
    topic |= {"plans": [*_plans(topic), merge(turn.plan, {})][-_MOST_PLANS:]}
    return base.plan


def _with_what_is_settled(
    turn: Turn, reading: Reading, topic: dict[str, Any], catalogue: Catalogue
) -> tuple[Turn, Reading, dict[str, Any]]:
    """The turn in a conversation whose plan has what it says for good, with the rest of it, which is only supposed."""
    settled = [edit for edit in reading.edits if edit.settled]
    if not settled:
        return turn, reading, topic
    laid = patched(turn.plan, settled, reading.text, catalogue, _before(turn, _Base(turn.plan, topic), reading))
    if laid.patch.needs:
        return turn, replace(reading, edits=[replace(edit, settled=False) for edit in reading.edits]), topic
    plans = [*_plans(topic), merge(turn.plan, {})][-_MOST_PLANS:]
    topic = {name: value for name, value in topic.items() if name not in ("supposed", "pending")}
    topic |= {"plans": plans, "refused": laid.refused, "recent": laid.patch.recent, "followed": True}
    rest = [edit for edit in reading.edits if not edit.settled]
    turn = replace(turn, plan=laid.plan, topic={**turn.topic, "plans": plans})
    return turn, replace(reading, edits=rest), topic


def _plans(topic: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The plans before."""
    return list(topic.get("plans", []))


def _base(plan: Mapping[str, Any], topic: dict[str, Any], reading: Reading) -> _Base:
    """Which plan the turn is about: the session's, an earlier one, one that was supposed, or a new one."""
    pending, supposed = topic.pop("pending", None), topic.pop("supposed", None)
    plans, here = list(_plans(topic)), merge(plan, {})
    to = {reference.to for reference in reading.refs}
    hypothetical = reading.scope == "hypothetical"
    if reading.new:
        # What is begun anew is supposed beside nothing.
        topic["plans"] = [*plans, here][-_MOST_PLANS:] if plan else plans
        return _Base({}, {name: topic[name] for name in _KEPT_WHEN_NEW if name in topic}, False)
    if "other" in to and (other := _other(plan, topic)):
        return _Base(other, topic, hypothetical)
    if "before" in to and supposed and reading.serving in (None, is_serving(plan)):
        # 'Never mind': what was only supposed is let go.
        return _Base(here, topic, hypothetical)
    if to & {"before", "first", "other"} and plans:
        place = 0 if "first" in to else _last_of_kind(plans, reading)
        topic["plans"] = [] if "first" in to else [*plans[:place], *plans[place + 1 :]]
        return _Base(merge(plans[place], {}), topic, hypothetical, back=True)
    if "supposed" in to and supposed:
        return _Base(merge(supposed, {}), topic, hypothetical)
    if pending and _answers(reading, pending):
        return _Base(merge(pending["plan"], {}), topic | pending["topic"], hypothetical or pending["supposing"])
    if reading.compares_what_was:
        topic |= {"supposed": supposed} if supposed else {}
        return _Base(here, topic, hypothetical)
    # 'Plus gradient checkpointing' is beside what was supposed.
    goes_on = hypothetical or not reading.edits or reading.act not in _SETTLES or _goes_on_asking(reading)
    goes_on |= "also" in to or {edit.field for edit in reading.edits} <= _LEAVE_IT
    if supposed and (goes_on or not plan) and not _is_of_what_is(reading, plan, supposed):
        return _Base(merge(supposed, {}), topic, goes_on)
    return _Base(here, topic, hypothetical)


def _last_of_kind(plans: Sequence[Mapping[str, Any]], reading: Reading) -> int:
    """Where the last of the plans before stands: of those for training, or for serving, where a turn names that."""
    kinds = [is_serving(plan) == reading.serving for plan in plans]
    return max((place for place, same in enumerate(kinds) if same), default=len(plans) - 1)


def _is_of_what_is(reading: Reading, plan: Mapping[str, Any], supposed: Mapping[str, Any]) -> bool:
    """Whether a turn is about the plan, which is for training, where one for serving is only supposed, or the other
    way round: 'what did that training cost?'"""
    kind = is_serving(plan)
    return bool(plan) and is_serving(supposed) != kind == serves(reading, supposed)


def _goes_on_asking(reading: Reading) -> bool:
    """Whether a turn asks the question before once more, with something else: 'and with an fp8 cache?'"""
    return reading.act == "control" and reading.tool is None and reading.text.rstrip().endswith(("?", "？"))


def _other(plan: Mapping[str, Any], topic: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with the one of two alternatives that it has not; empty where there were not two."""
    for path, values in topic.get("alternatives", {}).items():
        others = [value for value in values if value != get(plan, path)]
        if len(values) == 2 and others:
            return merge(plan, {path: others[0]})
    return {}


def _answers(reading: Reading, pending: Mapping[str, Any]) -> bool:
    """Whether the turn goes on with what an earlier one had in mind: it says what that one asked for."""
    paths = {ALL_PATHS.get(edit.field, edit.field) for edit in reading.edits}
    return bool(paths) and (not pending["fields"] or bool(paths & set(pending["fields"])))


def _of_kind(turn: Turn, base: _Base, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    """The plan as one for serving or for training, as the turn is about, and what is said about that."""
    stays = base.back and reading.serving is None
    serving = is_serving(base.plan) if stays else serves(reading, base.plan)
    if turn.plan and serving != is_serving(turn.plan):
        # What was asked of the other kind of work is not asked again.
        needed = {"intents": ["need"]} if "need" in base.topic.get("intents", []) else {}
        base.topic = {name: base.topic[name] for name in _KEPT_WHEN_SWITCHED if name in base.topic} | needed
    return switched(base.plan, serving)


def _without_taken(plan: dict[str, Any], topic: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """The plan without what came with an offer, once another device, model or program is named, or the best is looked
    for."""
    elsewhere = any(map(reading.values, _BRINGS_ITS_OWN)) or {"layout", "best"} & set(reading.focus)
    if not (elsewhere and topic.get("taken")):
        return plan
    brought = topic.pop("taken")
    return merge(plan, {path: None for path, value in brought.items() if get(plan, path) == value})


def _with_the_offer(plan: dict[str, Any], topic: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """The plan with the offer that a turn takes and changes in one breath: 'take the second and double the nodes'."""
    places = [reference.place for reference in reading.refs if reference.to == "offer"]
    offers = _offers(topic)
    return merge(plan, _offer_at(topic, offers, places[0])) if offers and places and _relative(reading) else plan


def _offers(topic: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was offered to choose from, by path."""
    return topic.get("offers") or []


def _offer_at(topic: Mapping[str, Any], offers: list[dict[str, Any]], place: int | None) -> dict[str, Any]:
    """The offer at a place, the best where none is said."""
    return offers[min(topic.get("best", 0) if place is None else place, len(offers) - 1)]


def _relative(reading: Reading) -> set[str]:
    """The paths that edits change by what is there."""
    edits = [edit for edit in reading.edits if edit.op in ("times", "plus")]
    return {ALL_PATHS[name] for edit in edits for name in MEANT.get(edit.field, (edit.field,)) if name in ALL_PATHS}


def _before(turn: Turn, base: _Base, reading: Reading) -> Before:
    """What edits may be relative to."""
    plans = [result.get("plan") for result in earlier(turn.messages)]
    complete = [plan for plan in plans if isinstance(plan, Mapping) and plan.get("model") and plan.get("workload")]
    last = complete[0] if complete and complete[0]["model"] == base.plan.get("model") else {}
    compared = {ALL_PATHS.get(edit.field, edit.field) for option in reading.options for edit in option}
    return Before(last, base.topic.get("nodes"), base.topic.get("refused", {}), frozenset(compared))


def _edits(reading: Reading) -> list[Edit]:
    """The edits of a turn; what a limit is asked of is not set by it."""
    solved = limits(reading)
    edits = [edit for edit in reading.edits if ALL_PATHS.get(edit.field, edit.field) not in solved]
    return [edit for edit in edits if edit.field in ALL_PATHS or edit.field in BESIDE]


def _assumed(
    plan: dict[str, Any], reading: Reading, topic: dict[str, Any], question: TurnQuestion, catalogue: Catalogue
) -> tuple[dict[str, Any], list[str]]:
    """The plan with what earlier answers say of it, and what is said about that."""
    notes: list[str] = []
    named = {edit.field for edit in reading.edits}
    fewest = topic.pop("fewest", None)
    devices = question.limit is not None and question.limit["goal"] == "devices"
    open_count = get(plan, "cluster.count") is None
    if fewest and open_count and not devices and not named & {"model", "accelerator"}:
        plan, notes = merge(plan, {"cluster.count": fewest}), [f"{fewest} devices taken, the fewest that fit"]
    device = get(plan, "cluster.accelerator")
    if "device_hours" in question.intents and get(plan, "cluster.count") is None and device:
        # Hours of devices hardly depend on how many there are; one alone may not hold the run.
        each = catalogue.per_node(str(device))
        plan = merge(plan, {"cluster.count": each})
        notes.append(f"one node of {each} taken, since no number of devices was said")
    for name, values in topic.get("refused", {}).items():
        path = str(ALL_PATHS.get(name, name))
        left = [value for value in topic.get("alternatives", {}).get(path, []) if value not in values]
        if get(plan, path) is None and len(left) == 1:
            plan = merge(plan, {path: left[0]})
            notes.append(f"{left[0]} taken, the one that is left")
    if offer := _offered(reading, topic, plan, question):
        brought = [path for path in offer if path in _OF_A_CLUSTER or (topic.get("found") and path not in _CLUSTER)]
        topic["taken"] = {path: offer[path] for path in brought}
        plan = merge(plan, offer)
        what = label({FLAT_NAMES[path]: value for path, value in offer.items()})
        notes.append("the best that was found is taken" if topic.get("found") else f"{what} taken, as told before")
    return plan, notes


def _offered(
    reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], question: TurnQuestion
) -> dict[str, Any]:
    """What a cluster that was recommended, or an option that was compared, gives the plan: the one that is referred to,
    else the best, where the plan lacks what it brings."""
    refused = topic.get("refused", {}).get("accelerator", [])
    offers = [offer for offer in _offers(topic) if offer.get("cluster.accelerator") not in refused]
    taken = [reference.place for reference in reading.refs if reference.to == "offer"]
    place = taken[0] if taken else None
    open_again = question.wish is not None and question.wish[0] in REPEATED and not taken
    if not offers or open_again or reading.options:
        return {}
    offer = _offer_at(topic, offers, place)
    lacks = any(path in offer and get(plan, path) is None for path in ("model", "cluster.accelerator"))
    # What a search found is what is asked about next, unless it is to look again or something else is run.
    searches = {"best", "size", "cheaper"} & set(question.intents) or question.choices
    stands = topic.get("found") and not ({edit.field for edit in reading.edits} - _LEAVE_IT or searches)
    if not (taken or lacks or stands or place is not None):
        return {}
    # Files are for a program of their own, and what is named now goes before.
    named = {ALL_PATHS.get(edit.field, edit.field) for edit in set_apart(reading.edits)}
    named |= {"workload.framework"} if reading.own.get("targets") else set()
    named |= _relative(reading) if taken else set()
    return {path: value for path, value in offer.items() if path not in named and get(plan, path) != value}


def _remembered(
    turn: Turn, reading: Reading, base: _Base, change: Patched, plan: Mapping[str, Any], question: TurnQuestion
) -> dict[str, Any]:
    """The topic after the turn's words."""
    topic = {name: value for name, value in base.topic.items() if name not in ("nodes", "found")}
    if not base.supposing and turn.plan and plan != turn.plan and not reading.new:
        if not base.back:
            topic["plans"] = [*_plans(topic), merge(turn.plan, {})][-_MOST_PLANS:]
            topic["found_before"] = found_for(base.topic)
        elif reading.edits and plan != base.plan:
            # "Undo that, and now on MI300X": what was gone back to is an earlier plan now.
            topic |= {"plans": [*_plans(topic), merge(base.plan, {})][-_MOST_PLANS:]}
    topic["last"] = list(question.wish) if question.wish else None
    if question.wish:
        tool, own = question.wish
        if tool in REPEATED:
            topic |= {"wish": [tool, own], "once": len(reading.options) == 1}
        elif (topic.get("wish") or [None])[0] not in SEARCHES_HARDWARE:
            topic.pop("wish", None)
        if tool == "compare" and (over := over_of(own)):
            topic["alternatives"] = over
    else:
        topic.pop("wish", None)
    topic |= {"intents": question.intents, "limit": question.limit, "sweep": question.sweep}
    topic |= {"recent": change.patch.recent or topic.get("recent"), "solved": question.solved}
    # Of all that a first turn says no one thing is what was changed last.
    topic |= {"followed": bool(turn.plan) and bool(change.patch.recent or topic.get("followed"))}
    topic |= {"nodes": change.patch.nodes} if change.patch.nodes else {}
    topic |= {"site": site_of(topic) | {name: value for name, value in reading.own.items() if name in SITE}}
    if is_serving(plan):
        limits = {name: reading.own[name] for name in _LIMITS if name in reading.own}
        before = {name: value for name, value in topic.get("asked", {}).items()
                  if PRICE not in limits or name not in API_PRICES}  # fmt: skip
        topic |= {"asked": {**before, **limits}, "choices": question.choices}
    return topic


def _pricing(
    before: Mapping[str, Any], reading: Reading, plan: Mapping[str, Any], catalogue: Catalogue
) -> dict[str, Any]:
    """What the conversation said of prices; a price of one's own is of the device that it was said of."""
    elsewhere = bool(reading.values("accelerator")) or reading.pricing.get("price") in _LISTED
    left_out = {"more_usd", *(_OWN_PRICES if elsewhere else ())}  # What more money buys is asked once.
    pricing = {name: value for name, value in before.items() if name not in left_out}
    pricing |= reading.pricing
    if reading.values("provider"):
        pricing.pop("providers", None)
    node = pricing.pop("usd_per_node_hour", None)
    if node is not None:
        device = get(plan, "cluster.accelerator")
        each = get(plan, "cluster.per_node") or (catalogue.per_node(str(device)) if device else 1)
        pricing["usd_per_device_hour"] = node / min(each, get(plan, "cluster.count") or each)
    return pricing


def _settled(reading: Reading, needs: Sequence[Need], plan: Mapping[str, Any], question: TurnQuestion) -> set[str]:
    """Plan paths that need not be said: they are asked about, searched for or the question itself."""
    settled = {ALL_PATHS.get(need.field, need.field) for need in needs}
    settled |= {SOLVED[question.limit["goal"]]} if question.limit else set()
    settled |= settles(*question.wish) if question.wish else set()
    named = {name for option in reading.options for edit in option for name in MEANT.get(edit.field, (edit.field,))}
    settled |= {ALL_PATHS[name] for name in named if name in ALL_PATHS}
    searched = "best" in question.intents or ("size" in question.intents and has_load(plan))
    if is_serving(plan) and (question.choices.get("accelerator") or searched):
        settled |= {"cluster.accelerator"}
    if "need" in question.intents and not (question.limit or question.sweep):
        settled |= {"cluster.accelerator"}
    swept = {question.sweep.get("field"), question.sweep.get("second_field")} if question.sweep else set()
    return settled | {path for path in swept if path}


def _ask(
    turn: Turn, reading: Reading, base: _Base, plan: dict[str, Any], topic: dict[str, Any], questions: list[str],
    notes: list[str],
) -> Thought:  # fmt: skip
    """The open questions. A plan that was whole stays as it was until they are answered."""
    lead = first_lines(reading)
    others = [note for note in dict.fromkeys(notes) if note not in lead]
    text = talk.ask(questions, plan, reading.lost, lead, others)
    origins = [*questions, *notes, *lead, *offered(text)]
    if not (whole(turn.plan) or base.supposing):
        return Thought(thought(NAME, text), plan, topic, questions, origins)
    kept = {name: value for name, value in turn.topic.items() if name not in ("turn", "pending")}
    fields = [question.partition(":")[0] for question in questions]
    kept["pending"] = pending(plan, topic, base.supposing, fields)
    return Thought(thought(NAME, text), turn.plan, kept, questions, origins)


def whole(plan: Mapping[str, Any]) -> bool:
    """Whether a plan can be estimated: what is said of one that cannot is kept in any case."""
    return all(get(plan, path) is not None for path in ("model", "cluster.accelerator"))


def pending(plan: Mapping[str, Any], topic: Mapping[str, Any], supposing: bool, fields: list[str]) -> dict[str, Any]:
    """What a turn had in mind that changed nothing: taken up by one that says `fields` (any, where there are none)."""
    question = {name: topic[name] for name in _QUESTION if name in topic}
    paths = [ALL_PATHS.get(name, name) for name in fields]
    return {"plan": merge(plan, {}), "topic": question, "supposing": supposing, "fields": paths}
