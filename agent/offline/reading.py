"""One utterance as slots, intents and questions. The order of the passes is what makes the reading right.

Names first and blanked ("8x7B" is no count of GPUs), then counted hardware, then numbers with a noun, then goals,
then the field's words, then what numbers are left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from agent.offline import target_words, turn_words, vocabulary, wish_words
from agent.offline.alternatives import read_alternatives, read_variants
from agent.offline.bare_numbers import read_bare
from agent.offline.catalogue import Catalogue
from agent.offline.comparing import BOTH, COMPARES, beside_the_plan
from agent.offline.corrections import corrected
from agent.offline.cost_words import ASKS, read_pricing
from agent.offline.currencies import in_dollars
from agent.offline.dates import hours_until
from agent.offline.facts_words import again_about, asks_run, described, facts_again, facts_asked
from agent.offline.follow_ups import OTHER, counted_before, read_follow_up
from agent.offline.hardware_words import read_hardware
from agent.offline.limit_words import LimitQuestion, read_limit
from agent.offline.model_words import read_models
from agent.offline.names import spot
from agent.offline.numbers import spelled_out
from agent.offline.own_rows import own_device, own_price
from agent.offline.page import Page
from agent.offline.pasted import pasted, without_logs
from agent.offline.provider_words import read_providers
from agent.offline.quantities import read_goal, read_numbers
from agent.offline.rules import INSTEAD_OF
from agent.offline.sampling_quantities import samples_answers
from agent.offline.serving_mode import names_serving, serves
from agent.offline.serving_quantities import read_node_size, read_serving
from agent.offline.serving_words import LIMIT_PATHS, bare_slot, intents_of, read_serving_limit, read_words
from agent.offline.slots import Device, Question, Relative, Slot
from agent.offline.sweep_words import SweepQuestion, alternatives, read_sweep
from agent.offline.wishes import SEARCHES_HARDWARE, Wish, most_devices, read_wish, vendors_of
from agent.offline.wording import bounded, plainly, tidied
from agent.reader.calls.training import SOLVED
from planner.partial import is_serving

_CUE = re.compile(
    r"\b(?:what about|how about|what if|and (?:on|with|for|if)|same|instead|make it|use|using|"
    r"change|switch|try|set|now|only|keep|drop|without|with)\b",
    re.I,
)
_DOMAIN = re.compile(
    r"\b(?:gpus?|accelerators?|llms?|models?|train\w*|tun(?:e|ing)\w*|fine-?\s?tun\w*|pre-?train\w*|tokens?|vram|"
    r"layout|oom|shard\w*|cluster|nodes?|parallelism|checkpoint\w*|batch|mfu|inference)\b|"
    r"\b(?:does|will|would|can) (?:it|this|that|everything) (?:all )?fit\b|^\W*fits?\W*$|"
    r"\b(?:is|will|would) (?:it|this|that) (?:be )?(?:fast|slow|cheap|expensive|enough|feasible)\b|"
    r"\b(?:what|how (?:much|long|fast)) (?:does|would|will|is) (?:it|this|that)(?: all)?(?: cost| take| run)?\W*$",
    re.I,
)
# Wishes in which nothing else is read: names and words in them are not of a plan.
_ALONE = ("list_scenarios", "load_scenario", "delete_scenario", "diff_scenarios", "list_catalogue", "import_config",
          "own", "add_price", "add_hardware", "search_playbook")  # fmt: skip
_DEVICES = ("accelerator", "gpu", "card", "hardware", "device", "chip")
_FASTER = dict(vocabulary.INTENTS)["faster"]
# "It has to be done in 5 days" states a deadline; "can it be done in 5 days?" asks for the time.
_DEADLINE = re.compile(
    r"\b(?:has|have|had|needs?|must|should|want\w*|ought)\b(?: (?:it|this|that|them|to|be|get|all))* "
    r"(?:done|finish\w*|ready|trained|complete\w*)\b"
)
# 'One epoch is enough' asks nothing.
_ENOUGH = re.compile(
    r"\b(?:epochs?|steps|tokens|samples|users|gpus?|cards?|devices?) (?:is|are|will be|should be) "
    r"(?:plenty|(?:more than )?enough)\b(?!\W*\?)"
)
_ASKING = re.compile(r"\b(?:can|could|will|would|is|how|when)\b[^.]*\?")
_PEAK = rf"^(?!.*\bgenerat)(?:.*?)(?:{wish_words.PEAK})"
_ONLY_SHOW = re.compile(
    r"\b(?:only|just) (?:show|print|display|preview)\b|\b(?:don'?t|do not|without|not) (?:writ\w+|sav\w+)\b|"
    r"\b(?:show|print|display|preview) (?:it|them|me (?:the|those|these) files?|the files?)\b|\bdry[- ]run\b"
)
_NOTHING_WRITTEN = (
    r"\b(?:don'?t|do not|without|never|not)\b (?:yet )?(?:writ\w+|sav\w+|touch\w*)(?! (?:the )?(?:rollout|log)s?)|"
    r"\bnothing (?:written|saved|(?:to|on) disk)\b"
)
# What nobody here does, whatever the session is about.
_DESTROYS = (
    r"\b(?:delete|erase|wipe|destroy|shred|rm -\w+|(?:remove|format)(?= (?:all|every|my|everything)\b))\b[^.?!]*"
    r"(?:\b(?:my|our|the|all|every|these|those)\b[^.?!]*"
    r"\b(?:files?|folders?|director(?:y|ies)|disks?|drives?|database|repo(?:sitory)?)\b|~/|(?<!\S)/)"
)
_ELSEWHERE = (
    r"\b(?:sing|songs?|jokes?|poems?|haikus?|weather|recipes?|movies?|football|horoscope|lottery|bedtime story|"
    r"capital of|translate)\b"
)
_NO_FILES = r"\b(?:without|no) (?:config )?files\b"
_INSTEAD_OF = re.compile(f"{INSTEAD_OF}$", re.I)
_AT_HOME = re.compile(r"\brtx\b|\bgtx\b|\brx\b|\b[2-5]0[6-9]0|apple|mac ?book|\bm\d\b|spark|jetson", re.I)
_RELEASED = re.compile(
    r"\b(?:release|drop|remove|free|lift|forget|clear|relax|unset|reset)(?: all)?(?: of)?(?: the| my| our)? "
    r"(?:layout|parallelism|parallel|sharding)(?: (?:constraints?|settings?|sizes?|choices?|limits?|degrees?))?\b",
    re.I,
)
_THAT_ONE = re.compile(r"\b(?:that|this|the (?:latter|last|same)) (?:one|model)\b|\bit\b")
_OF_THOSE = re.compile(r"\b(?:of|on|with|from) (?:those|them|these|that|this)\b", re.IGNORECASE)
_THREE_D = re.compile(r"\b3d[- ]parallel\w*", re.I)


@dataclass(frozen=True)
class Reading:
    """What one utterance says.

    `text` is what was said, in plain English. `wish` is what only one tool answers; `over` the values of fields that
    are to be set side by side; `pricing` how the run is paid for; `most` devices and nodes of a search for hardware.
    `facts` is 'model' or 'hardware' for a question about a thing in a catalogue; `limit` is set for a question of how
    far a plan can go, `sweep` for one about a range of values. `serving` tells a question about serving from one about
    training; `choices` are the alternatives of 'vLLM or SGLang?', by field of the workload.
    """

    text: str = ""
    slots: list[Slot | Relative] = field(default_factory=list)
    wish: Wish | None = None
    over: dict[str, list[Any]] = field(default_factory=dict)
    both: bool = False
    pricing: dict[str, Any] = field(default_factory=dict)
    providers: list[str] = field(default_factory=list)
    providers_left: list[str] = field(default_factory=list)
    most: tuple[int | None, int | None] = (None, None)
    fields: dict[str, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    intents: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    accelerators: list[Device] = field(default_factory=list)
    facts: str | None = None
    compare: bool = False
    limit: LimitQuestion | None = None
    sweep: SweepQuestion | None = None
    serving: bool = False
    choices: dict[str, list[str]] = field(default_factory=dict)
    help: bool = False
    thanks: bool = False
    reset: bool = False
    back: str | None = None
    of_a_plan: bool = False
    anyway: bool = False
    in_scope: bool = True

    def value(self, path: str) -> Any:
        """The last value said for a Plan path, or None."""
        return next((s.value for s in reversed(self.slots) if isinstance(s, Slot) and s.path == path), None)


def read(
    text: str,
    catalogue: Catalogue,
    plan: Mapping[str, Any],
    recent: str | None,
    now: datetime,
    topic: Mapping[str, Any] | None = None,
) -> Reading:
    """Reads `text` as said in a session whose partial plan is `plan`; `recent` is the Plan path that changed last.

    `topic` is what the session remembers of the turn before.
    """
    text = without_logs(bounded(text))
    if found := pasted(text):
        config, beside = found
        said = read(beside, catalogue, {}, None, now)
        return Reading(text=beside, wish=Wish("import_config", {"text": config}), slots=said.slots,
                       questions=[q for q in said.questions if q.field == "cluster.accelerator"])  # fmt: skip
    text, topic = tidied(text), topic or {}
    if parts := corrected(text):
        first = read(parts[0], catalogue, plan, recent, now, topic)
        last = [slot.path for slot in first.slots][-1:]
        named = {"model": first.models[0]} if first.models else {}
        second = read(parts[1], catalogue, {**plan, **named}, last[0] if last else recent, now, topic)
        if second.slots:
            return _laid_over(first, second)
    if re.search(_DESTROYS, text.lower()) and not re.search(r"\b(?:scenario|plan)s?\b", text.lower()):
        return Reading(text=text, in_scope=False)
    plain, converted, unconverted = in_dollars(plainly(text, catalogue.model_heads))
    page = Page(plain)
    lowered = page.text.lower()
    for match in page.find(wish_words.SAVE):
        # What a plan is to be called names no model, however like one it looks.
        for start, end in (match.span(name) for name in ("n1", "n2", "n3") if match[name]):
            page.take(start, end)
    spot(page, catalogue)
    named = page.rest.lower()
    page.rest = spelled_out(page.rest)
    if reset := bool(re.search(turn_words.RESET, lowered)):
        plan, recent, topic = {}, None, {}
    at_home = any(_AT_HOME.search(name.text) for name in page.of("accelerator"))
    serving, assumed = serves(named, plan, at_home)
    if serving and not is_serving(plan) and not names_serving(named) and re.search(_PEAK, named):
        # Tokens a day at best are those of training, unless something is generated or served.
        serving, assumed = False, []
    names = len(page.of("model", "path", "size")), len(page.of("accelerator", "instance"))
    wish = read_wish(named, page.text, page, plan, models=names[0], devices=names[1], serving=serving)
    if wish and wish.tool == "advise" and re.search(_FASTER, named):
        # That question has an answer of its own, advice in it.
        wish = None
    if wish and wish.tool == "recommend_cluster" and names[1] and not (names[0] or plan.get("model")):
        # "Which providers have MI300X?" is about the device.
        wish = None if re.search(r"\b(?:providers?|clouds?)\b", named) else wish
    if wish and wish.tool == "own" and wish.own["kind"] in ("price", "rate") and not (converted or unconverted):
        row = own_price(page, catalogue)
        wish = Wish("add_price", row) if row else wish
    if wish and wish.tool == "own" and wish.own["kind"] in _DEVICES and (row := own_device(page, catalogue)):
        wish = Wish("add_hardware", row)
    if wish and wish.tool in _ALONE:
        return Reading(text=page.text, wish=wish, in_scope=True)
    searches = wish is not None and wish.tool in SEARCHES_HARDWARE
    # A follow-up may go on restricting the search before it.
    searching = searches or (wish is None and (topic.get("wish") or [None])[0] in SEARCHES_HARDWARE)
    pricing = read_pricing(page, searching)
    most = most_devices(page) if searching else (None, None)
    if wish is None and not serving and (variants := read_variants(page)):
        wish = Wish("compare", {"scenarios": variants})
    compares = wish is None or wish.tool in ("report", "peak_throughput")
    over = read_alternatives(page) if compares and not (serving or searches) else {}
    if wish and wish.tool == "peak_throughput" and set(over) - {"workload.precision"}:
        wish = None
    compared = bool(re.search(COMPARES, named))
    sweep = None if over else read_sweep(page, serving)
    slots: list[Slot | Relative] = [*assumed, *converted]
    questions: list[Question] = [*unconverted]
    choices: dict[str, list[str]] = {}
    models = read_models(page, catalogue, plan, slots, questions, serving, _earlier_models(topic, plan))
    if (
        not models
        and page.of("accelerator")
        and (told := described(plan, topic, "model"))
        and _THAT_ONE.search(lowered)
    ):
        slots.append(Slot("model", told, "that one", f"that one read as {told}"))
    slots += read_follow_up(page, plan, recent, topic)
    if match := _RELEASED.search(page.rest):
        words = page.take(*match.span())
        slots += [Slot(f"layout.{name}", None, words) for name in plan.get("layout") or {}]
    node = (plan.get("cluster") or {}).get("per_node")
    slots += read_node_size(page) if serving else []
    hardware, unclear, accelerators = read_hardware(page, catalogue, node)
    slots += [*hardware, *counted_before(page.text, accelerators, topic.get("plans") or ())]
    questions += unclear
    if not (accelerators or unclear) and (told := described(plan, topic, "hardware")) and _OF_THOSE.search(text):
        slots.append(Slot("cluster.accelerator", told, "of those", f"those read as {told}"))
    if serving:
        of_requests, unclear = read_serving(page)
        slots += of_requests
        questions += unclear
    numbers, unclear = read_numbers(page, serving, samples_answers(page.text, plan))
    slots += numbers
    questions += unclear
    if serving and sweep is None and compared:
        sizes = [
            (slot.path, slot.value) for slot in slots if isinstance(slot, Slot) and slot.path.startswith("layout.")
        ]
        sweep = alternatives(sizes)
        slots = [slot for slot in slots if sweep is None or slot.path != sweep.path]
    slots += read_goal(page, lambda rest: hours_until(rest, now))
    providers = read_providers(page, catalogue, searching)
    forgotten = [slot for slot in providers if slot.value is None]
    slots += forgotten[:1]
    providers = [slot for slot in providers if slot not in forgotten]
    slots += providers if len(providers) == 1 else []
    if len(providers) > 1 and not searching:
        pricing["providers"] = list(dict.fromkeys(str(slot.value) for slot in providers))
    if serving:
        words, unclear, choices = read_words(page)
        slots += words
        questions += unclear
    else:
        slots += _words(page)
    if not serving and _THREE_D.search(lowered) and not _said(slots, "workload.framework"):
        why = "3D parallelism read as tensor, pipeline and data parallelism in Megatron-LM"
        slots.append(Slot("workload.framework", "megatron-lm", "3D parallelism", why))
    if sweep and sweep.scales and sweep.nodes:
        # "64 nodes of 8x H100": the size of a node.
        slots = [
            replace(s, path="cluster.per_node") if isinstance(s, Slot) and s.path == "cluster.count" else s
            for s in slots
        ]
    back = re.search(turn_words.BACK, lowered)
    # Of what was not set side by side the other is the one before.
    other = bool(plan and OTHER.search(page.text))
    bare, left = read_bare(page, plan, recent, bare_slot if serving else None)
    # Tokens that were said with their noun are not said again without.
    again = [slot for slot in bare if slot.path == "workload.dataset_tokens" and _said(numbers, slot.path)]
    left += [slot.words for slot in again]
    slots += [slot for slot in bare if slot not in again]
    several = len(accelerators) > 1 or len(models) > 1
    if (
        wish is None
        and not (over or sweep or questions or several)
        and (beside := beside_the_plan(named, page.text, plan, slots, bool(models)))
    ):
        wish, slots = Wish("compare", beside.own, once=beside.once), beside.slots
    reads_limit = read_serving_limit if serving else read_limit
    limit, asked = (
        (None, named)
        if sweep
        else reads_limit(named, page, {slot.path for slot in slots}, recent, bool(topic.get("limit")))
    )
    if limit and not serving and limit.goal != "model":
        slots = [slot for slot in slots if slot.path != SOLVED[limit.goal]]
    of_serving = serving and names_serving(named)
    if (
        limit
        and limit.goal in ("seq_len", "context")
        and not accelerators
        and not (plan.get("cluster") or {}).get("accelerator")
        and not of_serving
    ):
        # "What is the longest context of Llama-3.1-8B?" is about the model.
        facts = facts_asked(named, page, plan, models, accelerators, slots)
    else:
        facts = (
            None
            if limit or sweep or of_serving or wish or over
            else facts_asked(named, page, plan, models, accelerators, slots)
        )
    if over or (wish and wish.tool == "compare"):
        # "Which is fastest?" of what is set side by side is no goal for a layout.
        slots = [
            slot
            for slot in slots
            if slot.path != "goal.objective" or (isinstance(slot, Slot) and slot.value not in ("throughput", "memory"))
        ]
    if facts is None and not (limit or sweep or wish or over or (slots and asks_run(slots))):
        facts = facts_again(page, plan, topic)
    elsewhere = _said(slots, "goal.provider")
    of_facts = {"workload.precision", "workload.weight_dtype", "goal.provider", "note"}
    named_more = {slot.path for slot in slots} - of_facts
    if not (facts or accelerators or models or wish or named_more or questions):
        models, accelerators = again_about(named, plan, topic, elsewhere)
        facts = "model" if models else "hardware" if accelerators else None
    if facts:
        limit, asked = None, named
    if limit and limit.goal == "model":
        slots, questions = [s for s in slots if s.path != "model"], [q for q in questions if q.field != "model"]
        models = []
    if serving:
        # "TTFT under 2 s" is a limit, not a question for it.
        values = [slot.words.lower() for slot in slots if slot.path in LIMIT_PATHS]
        for words in values:
            asked = asked.replace(words, " ")
        intents = intents_of(asked)
    else:
        asked = _ENOUGH.sub(" ", asked) if slots else asked
        asked = _DEADLINE.sub(" ", asked) if _said(slots, "goal.deadline_h") and not _ASKING.search(asked) else asked
        if searching and wish is None:
            # "Keep it below 300 dollars" restricts the search that goes on.
            for slot in slots:
                if slot.path == "goal.budget_usd":
                    asked = asked.replace(slot.words.lower(), " ").replace("budget", " ")
        intents = [name for name, pattern in vocabulary.INTENTS if re.search(pattern, asked)]
    targets = target_words.read_targets(named)
    files = bool(re.search(target_words.ASKS, named)) and not re.search(_NO_FILES, lowered)
    if targets and not intents and wish is None and {"write", "render"} & set(topic.get("intents") or ()):
        # "And the accelerate version" goes on asking for files.
        intents.append("render")
    if wish is None and not targets and _ONLY_SHOW.search(lowered) and "targets" in (topic.get("turn") or {}):
        intents, targets = ["render"], list(topic["turn"]["targets"])
    if files and targets and not {"write", "render"} & set(intents) and wish is None:
        intents.append("render")
    if "write" in intents and wish is None and re.search(_NOTHING_WRITTEN, lowered):
        intents[intents.index("write")] = "render"
        intents = list(dict.fromkeys(intents))
    if "write" in intents and "render" in intents:
        intents.remove("render")
    asks_price = re.search(ASKS, named) and (pricing or not serving)
    if (asks_price or (pricing and plan)) and "cost" not in intents and not wish:
        intents.append("cost")
    if wish and wish.tool not in ("save_scenario", "search_playbook"):
        intents, limit = [], None
    # An amount of money may be for anything.
    told = slots if plan or "budget" in lowered else [s for s in slots if s.path not in ("note", "goal.budget_usd")]
    scope = bool(
        told
        or questions
        or page.names
        or back
        or other
        or sweep
        or of_serving
        or choices
        or wish
        or over
        or pricing
        or (plan and providers)
        or any(most)
        or (searching and vendors_of(page.text))
        or re.search(BOTH, lowered)
        or (topic.get("offers") and re.search(wish_words.TAKES, lowered))
        or (plan and (intents or limit or (_CUE.search(lowered) and not re.search(_ELSEWHERE, lowered))))
    )
    return Reading(
        slots=slots,
        questions=questions,
        intents=intents,
        targets=targets if {"write", "render"} & set(intents) else [],
        text=page.text,
        wish=wish,
        over=over,
        both=bool(re.search(BOTH, lowered)),
        pricing=pricing,
        providers_left=[slot.words for slot in forgotten],
        providers=list(dict.fromkeys(str(slot.value) for slot in providers)),
        most=most,
        fields=_fields(page.text, intents),
        unread=[words.strip() for words in left],
        models=models,
        accelerators=accelerators,
        facts=facts,
        compare=not sweep and not over and (len(accelerators) > 1 or (len(models) > 1 and compared)),
        limit=limit,
        sweep=sweep,
        serving=serving,
        choices=choices,
        thanks=bool(re.search(turn_words.THANKS, lowered.strip())),
        help=bool(re.search(turn_words.HELP, lowered)),
        reset=reset,
        back=(back["which"] or "previous") if back else "previous" if other else None,
        of_a_plan=bool(re.search(turn_words.OF_A_PLAN, lowered)),
        anyway=bool(re.search(turn_words.ANYWAY, lowered)),
        in_scope=scope or bool(_DOMAIN.search(lowered)),
    )


def _laid_over(first: Reading, second: Reading) -> Reading:
    """What was said before 'I mean …', with what was said after it in its place."""
    said = {slot.path for slot in second.slots}
    return replace(
        second,
        text=f"{first.text} {second.text}",
        slots=[*(slot for slot in first.slots if slot.path not in said), *second.slots],
        questions=[*(q for q in first.questions if q.field not in said), *second.questions],
        models=second.models or first.models,
        accelerators=second.accelerators or first.accelerators,
        intents=list(dict.fromkeys([*first.intents, *second.intents])),
        targets=first.targets + second.targets,
        wish=second.wish or first.wish,
        limit=second.limit or first.limit,
        sweep=second.sweep or first.sweep,
        over=second.over or first.over,
        pricing=first.pricing | second.pricing,
        unread=first.unread + second.unread,
        serving=first.serving or second.serving,
        in_scope=True,
    )


def _fields(text: str, intents: list[str]) -> dict[str, str]:
    folder = target_words.folder_of(text) if "write" in intents else None
    return target_words.read_fields(text) | ({"folder": folder} if folder else {})


def _earlier_models(topic: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    """Models that the conversation was about, the latest first."""
    plans = [plan, {"model": topic.get("largest")}, *reversed(topic.get("plans", []))]
    return list(dict.fromkeys(one["model"] for one in plans if isinstance(one.get("model"), str)))


def _said(slots: Sequence[Slot | Relative], path: str) -> bool:
    return any(slot.path == path for slot in slots)


def _words(page: Page) -> list[Slot]:
    """The first value that each path is given; phrases that mean the same path again are still blanked."""
    slots: dict[str, Slot] = {}
    for pattern, path, value in vocabulary.WORDS:
        for match in page.find(pattern):
            if not match[0]:
                continue
            left = _INSTEAD_OF.search(page.rest, 0, match.start())
            words = page.take(match.start(), match.end()).strip()
            if not left:
                slots.setdefault(path, Slot(path, value, words))
    return list(slots.values())
