"""The offline planner as a thinking model: reads the words, calls the tools in the order that an answer needs, answers.

It is deterministic and holds no state of its own: what it must remember between steps and turns is the session's
`topic`, plain data: `intents` (of the last question), `recent` (Plan path that changed last), `plans` (earlier ones,
for "go back"), `nodes` (a node count still without a node size), `limit` (find_limit's arguments, of the last question
for a limit), `sweep` (the sweep tool's own, of the last question for a range), `fewest` and `largest` (the answers to
"how many devices?" and "which model?"), `usd_per_device_hour` (the user's own price), `asked` and `choices` (of
serving: limits that no Plan holds, and the alternatives of the last question), `wish` (what one tool alone answers),
`offer` and `offers` (clusters that were recommended), `saved` (names of scenarios) and `turn` (the reading that the
current turn works on).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from agent.models import Thought, Turn
from agent.offline import answer, need, serving_answer, serving_calls, small_talk, target_words, wish_answer, wish_calls
from agent.offline.catalogue import Catalogue, known
from agent.offline.patching import patched
from agent.offline.payment import payment
from agent.offline.reading import Reading, read
from agent.offline.serving_mode import switched
from agent.offline.wish_turn import extended, free_call, offered, settle, wish_of
from agent.reader.calls.serving import searches_devices
from agent.reader.calls.training import SOLVED
from agent.wire import Call, Outcome, text_of, thought, turn_outcomes, turn_start
from estimator.plan.schema import Plan, merge
from pages.answers.plan import complete
from planner.partial import flat, get, is_serving, knows_length
from planner.requests import FLAT_PATHS
from planner.results import BestParallelism, Limit, TrainingEstimate

NAME = "offline"
_MOST_PLANS = 20
# What "how many GPUs do I need?" is shown for: the fewest that fit, and what more of them would give.
_MORE_DEVICES = (1, 2, 4)
# Fields of the complete plan that a chosen layout consists of; the calls that follow carry them.
_LAYOUT = ("tp", "sequence_parallel", "pp", "vpp", "schedule", "cp", "ep", "etp", "dp", "zero_stage", "shard_group")
_LAYOUT_WORKLOAD = ("framework", "seq_len", "micro_batch", "global_batch")
# Prices of the price book, not the user's own.
_LISTED = ("spot", "reserved", "on_demand")


class OfflinePlanner:
    """Needs no key and no network. `catalogue` is Shardwise's own unless a test gives another."""

    name = NAME

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._catalogue = catalogue

    async def think(self, turn: Turn) -> AsyncIterator[str | Thought]:
        final = step(turn, self._catalogue or known())
        if text := text_of(final.content):
            # Paragraph by paragraph, as a model would stream it.
            for number, paragraph in enumerate(text.split("\n\n")):
                yield paragraph if number == 0 else f"\n\n{paragraph}"
        yield final


def step(turn: Turn, catalogue: Catalogue) -> Thought:
    """One step: the calls that are still needed, or the answer."""
    start = turn_start(turn.messages)
    current = turn.topic.get("turn")
    if current is None or current["start"] != start:
        text = text_of(turn.messages[start])
        reading = extended(read(text, catalogue, turn.plan, turn.topic.get("recent"), turn.now, turn.topic), turn.topic)
        begun = _begin(turn, start, reading, catalogue)
        if isinstance(begun, Thought):
            return begun
        plan, topic = begun
    else:
        plan, topic = turn.plan, turn.topic
    # Calls that a language model made before it failed were about its own reading of the question.
    outcomes = [outcome for outcome in turn_outcomes(turn.messages) if outcome.call.id.startswith(f"{NAME}-")]
    work = topic["turn"]
    wished = work.get("wish")
    served = "facts" not in work and not wished and is_serving(plan)
    calls: list[tuple[str, dict[str, Any]]] = []
    if wished and not outcomes:
        tool, own = wished
        calls = [(tool, wish_calls.arguments(tool, own, plan, topic.get("pricing", {}), turn.messages))]
    elif work.get("need"):
        calls = need.calls(flat(plan), is_serving(plan), outcomes)
    elif not wished:
        following = serving_calls.next_calls if served else _next_calls
        calls = following(plan, work, outcomes, turn.tools)
    if calls:
        numbered = [
            Call(f"{NAME}-{start}-{len(outcomes) + index}", name, arguments)
            for index, (name, arguments) in enumerate(calls)
        ]
        return Thought(thought(NAME, calls=numbered), plan, topic)
    if wished:
        text, asked = wish_answer.compose(work, outcomes), []
        plan, topic = settle(plan, topic, outcomes)
        return Thought(thought(NAME, text), plan, topic, asked, work.get("notes", []))
    if work.get("need"):
        text, asked = need.compose(work, outcomes)
    else:
        text, asked = (serving_answer if served else answer).compose(plan, work, outcomes)
    for name, goal in (("fewest", "devices"), ("largest", "model")):
        if found := _solved(outcomes, goal):
            topic = {**topic, name: found}
    return Thought(thought(NAME, text), plan, topic, asked, topic["turn"].get("notes", []))


def _solved(outcomes: list[Outcome], goal: str) -> Any:
    """The answer to "how many devices do I need?" or "which is the largest model?", which later questions are about."""
    limits = [outcome.result for outcome in outcomes if isinstance(outcome.result, Limit)]
    return next((limit.value for limit in limits if limit.goal == goal), None)


def _begin(
    turn: Turn, start: int, reading: Reading, catalogue: Catalogue
) -> tuple[dict[str, Any], dict[str, Any]] | Thought:
    """The plan and topic that this turn works on, or an answer that needs no tool."""
    topic: dict[str, Any] = {key: value for key, value in turn.topic.items() if key != "turn"}
    plans = list(topic.get("plans", []))
    # A fact that is asked between is about no plan.
    begins = reading.reset and not reading.facts
    base = {} if begins else turn.plan
    if begins:
        plans = [*plans, turn.plan][-_MOST_PLANS:] if turn.plan else plans
        topic = {"plans": plans}
    if reading.back and plans:
        base = plans[0] if reading.back in ("first", "original") else plans[-1]
        plans = [] if reading.back in ("first", "original") else plans[:-1]
        topic["plans"] = plans
    if reading.wish and reading.wish.tool == "import_config" and reading.questions:
        questions = [str(question) for question in reading.questions]
        return Thought(thought(NAME, small_talk.ask(questions, {}, [], [])), topic=topic, asked=questions,
                       origins=questions)  # fmt: skip
    if found := free_call(reading, turn.plan, turn.tools, topic):
        if isinstance(found, str):
            return Thought(thought(NAME, found), topic=topic, origins=[found])
        topic["turn"] = {"start": start, "wish": list(found), "notes": [], "unread": []}
        return turn.plan, topic
    if reading.facts and reading.questions:
        questions = [str(question) for question in reading.questions]
        text = small_talk.ask(questions, {}, [], reading.unread)
        return Thought(thought(NAME, text), topic=topic, asked=questions, origins=questions)
    if reading.facts:
        ids = reading.models if reading.facts == "model" else [device.id for device in reading.accelerators]
        name = "describe_model" if reading.facts == "model" else "describe_hardware"
        argument = "model" if reading.facts == "model" else "accelerator"
        facts = [[name, {argument: id}] for id in ids]
        topic["turn"] = {"start": start, "facts": facts, "providers": reading.providers, "unread": reading.unread}
        return base, topic
    if reading.reset and not reading.slots and not reading.questions:
        return Thought(thought(NAME, small_talk.FRESH), {}, topic)
    if reading.thanks and not (reading.slots or reading.questions or reading.back):
        return Thought(thought(NAME, small_talk.WELCOME), topic=topic)
    if not (turn.plan or reading.slots or reading.questions or reading.wish) and (reading.back or reading.of_a_plan):
        return Thought(thought(NAME, small_talk.NO_PLAN), topic=topic, origins=[small_talk.NO_PLAN])
    if not reading.in_scope or (reading.help and not reading.slots and not reading.questions):
        text = small_talk.HELP if reading.help else small_talk.OUT_OF_SCOPE
        return Thought(thought(NAME, text), topic=topic, origins=[text])
    serving = is_serving(base) if reading.back and base else reading.serving
    base, said = switched(base, serving)
    if serving != is_serving(turn.plan):
        # What was asked of the other kind of work is not asked again.
        needed = {"intents": ["need"]} if "need" in topic.get("intents", []) else {}
        topic = {name: topic[name] for name in ("plans", "nodes") if name in topic} | needed
    change = patched(base, reading, catalogue, topic.pop("nodes", None))
    change.notes[:0] = said
    plan = _pruned(change.plan)
    if turn.plan and plan != turn.plan and not reading.back:
        topic["plans"] = [*plans, turn.plan][-_MOST_PLANS:]
    elif reading.back and reading.slots and base and plan != base:
        # "Undo that, and now on MI300X": what was gone back to is an earlier plan now.
        topic["plans"] = [*plans, merge(base, {})][-_MOST_PLANS:]
    if serving and reading.limit and reading.limit.goal == "devices" and serving_calls.has_load(plan):
        # How many serve a load is another question than how many hold the model.
        reading = replace(reading, limit=None, intents=["size", *reading.intents])
    unplaced = get(plan, "cluster.count") is None and not reading.questions
    if serving and unplaced and "cost" in reading.intents and serving_calls.has_load(plan):
        # What serving a load costs, where no number of devices is said, is what the cheapest that serves it costs.
        reading = replace(reading, intents=["size", *reading.intents])
    limit = _limit(reading, topic, plan)
    fewest = topic.pop("fewest", None)
    if (
        fewest
        and not (limit and limit["goal"] == "devices")
        and get(plan, "cluster.count") is None
        and not (reading.models or reading.accelerators)
    ):
        plan = merge(plan, {"cluster.count": fewest})
        change.notes.append(f"{fewest} devices taken, the fewest that fit")
    if "device_hours" in reading.intents and get(plan, "cluster.count") is None and get(plan, "cluster.accelerator"):
        # Hours of devices hardly depend on how many there are; one alone may not hold the run.
        each = catalogue.per_node(str(get(plan, "cluster.accelerator")))
        plan = merge(plan, {"cluster.count": each})
        change.notes.append(f"one node of {each} taken, since no number of devices was said")
    if offer := offered(reading, topic, plan):
        plan = merge(plan, offer[0])
        change.notes.append(offer[1])
    if reading.compare or any(len(values) > 1 for values in reading.over.values()):
        devices = list(dict.fromkeys(device.id for device in reading.accelerators))
        sides = {"model": reading.models, "cluster.accelerator": devices, **reading.over}
        topic["alternatives"] = {path: values for path, values in sides.items() if len(values) > 1}
    topic["pricing"] = {**topic.get("pricing", {}), **reading.pricing}
    if reading.pricing.get("price") in _LISTED and "usd_per_device_hour" not in reading.pricing:
        topic["pricing"].pop("usd_per_device_hour", None)
        topic.pop("usd_per_device_hour", None)
    if len(reading.providers) == 1:
        topic["pricing"].pop("providers", None)
    wish = wish_of(reading, topic, plan, serving)
    sweep = None if wish else _sweep(reading, topic, plan, catalogue)
    choices = _choices(reading, topic) if serving else {}
    counted = any(slot.path == "cluster.count" for slot in reading.slots)
    limit = None if wish else limit
    intents = _intents(reading, topic, plan, limit is not None or sweep is not None)
    if serving and counted and not reading.intents and "size" in intents:
        # "And on 8?" after "how many?" is about these 8.
        intents = ["time"]
    elif serving and "size" in topic.get("intents", []) and get(plan, "cluster.count") is None and not limit:
        # What it costs, or what twice the load does, is still asked of the size that serves it.
        intents = list(dict.fromkeys(["size", *intents]))
    topic |= {"intents": intents, "limit": limit, "sweep": sweep, "recent": change.recent or topic.get("recent")}
    if change.nodes:
        topic["nodes"] = change.nodes
    topic |= {"asked": {**topic.get("asked", {}), **change.asked}, "choices": choices} if serving else {}
    if reading.accelerators:
        topic.pop("usd_per_device_hour", None)
    if change.usd_per_device_hour:
        topic["usd_per_device_hour"] = change.usd_per_device_hour
    questions = [str(question) for question in change.questions]
    settled = {question.field for question in change.questions}
    settled |= {SOLVED[limit["goal"]]} if limit else set()
    if serving and choices.get("accelerator", searches_devices(plan, intents)):
        settled |= {"cluster.accelerator"}
    settled |= wish_calls.needs(*wish, reading) if wish else set()
    needs = "need" in intents and not (wish or limit or sweep or questions or get(plan, "cluster.accelerator"))
    settled |= {"cluster.accelerator"} if needs else set()
    settled |= {"cluster.count"} if sweep and sweep["field"] == "cluster.count" else set()
    questions += small_talk.missing(plan, settled, bool(change.nodes) or "cluster.count" in settled)
    if questions:
        text = small_talk.ask(questions, plan, change.notes, reading.unread)
        return Thought(thought(NAME, text), plan, topic, questions, [*questions, *change.notes])
    if wish:
        topic["turn"] = {"start": start, "wish": list(wish), "notes": change.notes, "unread": reading.unread}
        return plan, topic
    targets = target_words.settled(reading.targets, serving, _nodes(plan, catalogue))
    if framework := _file_framework(plan, intents, targets):
        change.notes.append(f"{framework} taken as the framework, since the files are for LlamaFactory with DeepSpeed")
    topic["turn"] = {
        "framework": framework,
        "start": start,
        "need": needs,
        "intents": intents,
        "targets": targets,
        "fields": reading.fields,
        "pricing": topic["pricing"],
        "notes": change.notes,
        "unread": reading.unread,
        # Who asks again where nothing was written insists.
        "anyway": reading.anyway or ("write" in reading.intents and "write" in turn.topic.get("intents", ())),
        "choices": choices,
        "asked": topic.get("asked", {}),
        "counted": counted,
        "limit": limit,
        "sweep": sweep,
        "usd_per_device_hour": topic.get("usd_per_device_hour"),
    }
    return plan, topic


def _file_framework(plan: Mapping[str, Any], intents: list[str], targets: list[str]) -> str | None:
    """The framework to estimate for when files are asked for without naming any.

    The default files are for LlamaFactory with DeepSpeed, which pretraining on several devices would otherwise not be
    estimated with.
    """
    if not {"write", "render"} & set(intents) or set(targets) - {"slurm"} or get(plan, "workload.framework"):
        return None
    split = any((get(plan, f"layout.{name}") or 1) > 1 for name in ("tp", "pp", "cp", "ep"))
    return (
        "deepspeed"
        if get(plan, "workload.stage") == "pretrain" and (get(plan, "cluster.count") or 1) > 1 and not split
        else None
    )


def _nodes(plan: Mapping[str, Any], catalogue: Catalogue) -> int:
    """Nodes of a partial plan, one where that is not said."""
    count, device = get(plan, "cluster.count") or 1, get(plan, "cluster.accelerator")
    each = get(plan, "cluster.per_node") or (catalogue.per_node(str(device)) if device else count)
    return -(-count // each)


def _pruned(plan: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plan.items() if value != {}}


def _intents(reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], limit: bool) -> list[str]:
    """What was asked; in a follow-up that asks nothing, what was asked before, save for writing files again."""
    if reading.intents or reading.limit or reading.sweep:
        return reading.intents
    before = [name for name in topic.get("intents", []) if name not in ("write", "render", "why")]
    if before or limit:
        return before
    if is_serving(plan):
        return ["time"]
    return ["fit", "time", "cost"] if knows_length(plan) else ["fit", "time"]


def _limit(reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, str] | None:
    """The question for a limit as find_limit's arguments; a follow-up that asks nothing else asks it again."""
    if reading.limit:
        return reading.limit.arguments
    before = topic.get("limit")
    # What stops it there is told with the limit.
    if not before or set(reading.intents) - {"why", "faster"} or reading.compare:
        return None
    said = {slot.path for slot in reading.slots}
    return None if SOLVED[before["goal"]] in said else before


def _sweep(
    reading: Reading, topic: Mapping[str, Any], plan: Mapping[str, Any], catalogue: Catalogue
) -> dict[str, Any] | None:
    """The question for a range as the sweep tool's own arguments; a follow-up that asks nothing else asks it again."""
    before = topic.get("sweep")
    if reading.sweep:
        asked = reading.sweep.arguments(plan, catalogue)
        same = before and before["field"] == asked["field"] and reading.sweep.open
        # "And weak scaling?" is about the sizes that were asked about.
        return asked | {"values": before["values"]} if before and same else asked
    if not before or reading.intents or reading.compare or reading.limit or not reading.slots:
        return None
    return None if before["field"] in {slot.path for slot in reading.slots} else before


def _choices(reading: Reading, topic: Mapping[str, Any]) -> dict[str, list[str]]:
    """Of serving: the alternatives to choose from; a follow-up that asks nothing else asks about them again."""
    named = dict(reading.choices)
    if (
        reading.compare
        and len(reading.accelerators) > 1
        and len({device.count for device in reading.accelerators}) == 1
    ):
        named["accelerator"] = [device.id for device in reading.accelerators]
    if named or reading.intents or reading.limit or reading.sweep or reading.compare:
        return named
    said = {slot.path.rpartition(".")[2] for slot in reading.slots}
    return {name: values for name, values in topic.get("choices", {}).items() if name not in said}


def _next_calls(
    plan: Mapping[str, Any], work: Mapping[str, Any], outcomes: list[Outcome], tools: Mapping[str, Any]
) -> list[tuple[str, dict[str, Any]]]:
    """The calls that can be made now. Whatever chooses the layout runs first and alone; the rest carry its choice."""
    if "facts" in work:
        return [] if outcomes else [(name, arguments) for name, arguments in work["facts"]]
    arguments, intents = flat(plan), set(work["intents"])
    if work["framework"]:
        arguments["framework"] = work["framework"]
    priced = bool(intents & {"cost", "device_hours"}) and knows_length(plan)
    called = {outcome.call.name: outcome for outcome in outcomes}
    if asked := work.get("sweep"):
        return [] if outcomes else [("sweep", _swept(arguments, asked, work["usd_per_device_hour"]))]
    if limit := work.get("limit"):
        return _limit_calls(limit, arguments, called, intents, priced)
    # What would make it faster is a question about this run, not about the layouts that it was chosen from.
    faster = {"improvements": True} if "faster" in intents else {}
    first = "best_parallelism" if intents & {"layout", "why"} and not faster else "estimate_training"
    if first not in called:
        return [(first, arguments | (faster if first == "estimate_training" else {}))]
    chosen = called[first].result
    if not isinstance(chosen, TrainingEstimate | BestParallelism):
        return []
    carried = _carry(arguments, complete(chosen.plan))
    wanted = ["estimate_training"]
    wanted += ["check_fit"] if "fit" in intents or _does_not_fit(called) else []
    wanted += ["estimate_cost"] if priced else []
    wanted += ["advise"] if faster and "advise" in tools else []
    if open_calls := [name for name in wanted if name not in called]:
        price = payment(work, tools)
        return [(name, carried | (price if name == "estimate_cost" else {})) for name in open_calls]
    files = "write_configs" if "write" in intents else "render_configs" if "render" in intents else None
    if files is None or files in called or files not in tools or called["estimate_training"].error:
        return []
    if _does_not_fit(called) and not work["anyway"]:
        # What would run out of memory is shown, and written only for who insists.
        files = "render_configs"
    if files in called or files not in tools:
        return []
    targets = {"targets": work["targets"]} if work["targets"] else {}
    fields = {name: value for name, value in work["fields"].items() if name != "folder" or files == "write_configs"}
    return [(files, carried | targets | fields)]


def _swept(arguments: Mapping[str, Any], asked: Mapping[str, Any], price: float | None) -> dict[str, Any]:
    """The sweep's arguments: the plan's without the swept field, and a price of the user's own."""
    name = next((flat for flat, path in FLAT_PATHS.items() if path == asked["field"]), None)
    # With weak scaling the plan's own number of devices says whose batch it is.
    kept = {key: value for key, value in arguments.items() if key != name or asked.get("scale_batch")}
    return {**kept, **asked} | ({"usd_per_device_hour": price} if price else {})


def _limit_calls(
    limit: Mapping[str, str],
    arguments: Mapping[str, Any],
    called: Mapping[str, Outcome],
    intents: set[str],
    priced: bool,
) -> list[tuple[str, dict[str, Any]]]:
    """find_limit first; then, where time or cost is asked for, the run at the limit; of devices, twice as many too."""
    solved = SOLVED[limit["goal"]].rpartition(".")[2]
    rest = {name: value for name, value in arguments.items() if name != solved}
    if "find_limit" not in called:
        return [("find_limit", {**rest, **limit})]
    found = called["find_limit"].result
    if len(called) > 1 or not isinstance(found, Limit) or found.value is None:
        return []
    at = {**_carry(rest, complete(found.plan)), solved: found.value}
    names = ["estimate_training", "estimate_cost"] if priced else ["estimate_training"]
    if isinstance(found.value, int) and found.goal == "devices":
        more = [{**rest, "count": times * found.value} for times in _MORE_DEVICES[1:]]
        return [(name, run) for run in (at, *more) for name in names]
    return [(name, at) for name in names] if intents & {"time", "cost", "why"} else []


def _does_not_fit(called: Mapping[str, Outcome]) -> bool:
    estimate = called["estimate_training"].result if "estimate_training" in called else None
    return isinstance(estimate, TrainingEstimate) and not estimate.memory.fits


def _carry(arguments: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The user's arguments with the layout that a tool chose, so that every later figure is about the same run."""
    chosen = {name: getattr(plan.layout, name) for name in (*_LAYOUT, "recompute", "offload")}
    chosen |= {name: getattr(plan.workload, name) for name in _LAYOUT_WORKLOAD}
    if arguments.get("framework") == "auto":
        arguments = {name: value for name, value in arguments.items() if name != "framework"}
    return {name: value for name, value in chosen.items() if value is not None} | dict(arguments)
