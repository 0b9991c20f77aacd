"""Which tool answers a turn: the classifier's opinion, within what a tool needs to be of use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent.offline.language import act
from agent.offline.language.asking import asks, asks_which
from agent.offline.language.features.mode import Context
from agent.offline.language.features.signs import LOADS, has_row, weighs_an_api
from agent.offline.language.features.tool import listed, of_tool, only_changes
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING
from agent.offline.language.own.files import saved_plans, settings
from agent.offline.language.own.limits import (
    any_goal,
    asked_outright,
    asks_for_a_card,
    asks_for_data,
    asks_how_many_of_them,
    asks_most,
    asks_what_fits,
    field_asked,
    has_model,
    limit_goal,
)
from agent.offline.language.own.measured import RATES, is_judged, measured
from agent.offline.language.own.rows import goes_on_with, shown_or_written
from agent.offline.language.own.runs import goes_on_with_runs
from agent.offline.language.own.searches import asks_how_accurate, explained, strategies_named, symptoms
from agent.offline.language.own.tool import is_outside
from agent.offline.language.own.weighed import weighed
from agent.offline.language.reading.observed import is_observed
from agent.offline.language.reading.spread import asks_sizes
from planner.partial import get
from planner.requests import ALL_PATHS

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

_WRITES = ("write_configs", "render_configs")
# What a change alone asks again; of a comparison and of the best layout it is a plan that is changed.
_REPEATED = ("find_limit", "sweep", "size_serving", "recommend_cluster", "auto_configure", "project_scaling",
             "peak_throughput", "apply_strategies", "estimate_training", "estimate_inference", "check_fit",
             "estimate_cost")  # fmt: skip
_SURE = 0.6
# Below it the classifier has no opinion.
_UNSURE = 0.25
_CHAIN = ("estimate_training", "estimate_inference", "check_fit")
_OF_ONE_RUN = (*_CHAIN, "estimate_cost", "best_parallelism")
# So many numbers of one thing are a range of it.
_RANGE = 4
# Tools that a change alone asks for nowhere.
_OF_THINGS = ("list_catalogue", "explain")
_OF_SCENARIOS = ("delete_scenario", "load_scenario", "list_scenarios", "schedule_runs")
# What a cache is for.
_OF_A_CACHE = ("length", "max_context", "input_len", "concurrency")
_KINDS_OF_WORK = ("stage", "method", "objective", "price", "provider")
# Searches that alternatives narrow.
_CHOOSING = ("best_serving", "size_serving")
_POINTS = frozenset(["it", "them", "this", "that", "these", "those", "everything", "all", "plan", "sie", "es", "das",
                     "alles", "lo", "los", "todo", "le", "les", "tout", "它", "全部"])  # fmt: skip


def chosen(page: Page, context: Context) -> tuple[str | None, dict[str, float]]:
    """(The tool, or None where none answers, how likely each was). What goes on with the question before has none:
    `page.again` is that one's."""
    shares = tool_of(page, context)
    if is_outside(page):
        return None, {**shares, act.NO_TOOL: max(1.0, *shares.values())}
    if about_the_answer(page) or control_of(page):
        return None, shares
    if is_judged(page, context.tool):
        return RATES, {RATES: 1.0}
    tool = _likeliest(page, shares)
    if values_asked(page) and (tool == "list_catalogue" or _asks_what_there_is(page)):
        return None, {**shares, tool: 0.0}
    if named := _named_outright(page, context.tool, tool if shares[tool] > _SURE else None):
        return named, {named: 1.0}
    if tool == act.NO_TOOL:
        return None, {**shares, tool: max(1.0, *shares.values())}
    if shares[tool] < _UNSURE and _tells_a_run(page):
        return "estimate_cost" if page.values("budget_usd") and page.mode != SERVING else _estimate(page), shares
    if _goes_on(page, tool, shares[tool], context.tool):
        page.again = context.tool
        return None, shares
    return _of_use(page, tool, context.tool), shares


def _likeliest(page: Page, shares: Mapping[str, float]) -> str:
    tool = max(shares, key=lambda name: shares[name])
    if tool == act.NO_TOOL and asks_how_accurate(page):
        # 'How accurate are you?'
        return "search_playbook"
    if tool == act.NO_TOOL and not page.plan and page.read.asked("mode") and _has_limits(page):
        # 'Can you train a model in a weekend?'
        return "recommend_cluster"
    if (
        tool == act.NO_TOOL
        and shares[tool] < _SURE
        and page.read.asked("focus")
        and "thanks" not in page.read.asked("wish")
    ):
        # A figure that is asked for is one of a run.
        return max(shares, key=lambda name: shares[name] if name != act.NO_TOOL else 0.0)
    return tool


def _named_outright(page: Page, before: str | None, sure: str | None) -> str | None:
    """The tool that the words name by what it does, or that goes on with what was shown or written before, where they
    are not surely for another."""
    if len({run.id for run in page.read.of("run")}) > 1:
        # Runs of one's own stand beside each other where they are listed.
        return "list_runs"
    wishes, known = page.read.asked("wish"), has_model(page)
    goes_on = goes_on_with(page, before) or goes_on_with_runs(page, before)
    if goes_on and sure in (None, before, goes_on, act.NO_TOOL):
        return goes_on
    if page.plan and page.values("more_usd"):
        # 'What would $10k more buy?' is asked of the run that there is.
        return "estimate_cost"
    if symptoms(page.read) and not (page.log or {"fit", "memory", "cost"} & set(page.read.asked("focus"))):
        return "search_playbook"
    of_files = settings(page) or page.values("time_limit_h")
    if before in _WRITES and page.plan and "?" not in page.read.text and (only_changes(page) or of_files):
        # 'Make the rank 16', 'partition gpu-long', '24h walltime': the files are to have it.
        return "render_configs"
    if wanted := _tool_of_what_is_wanted(page):
        return wanted
    if asks_for_data(page) and known:
        return "find_limit"
    if len(set(saved_plans(page))) > 1 and sure not in _OF_SCENARIOS:
        return "diff_scenarios"
    if field_asked(page) or ("sweep" in wishes and listed(page)):
        return "sweep"
    if (
        (weighed(page) and not weighs_an_api(page) and sure not in ("explain", "rate_run"))
        or is_of_what_was(page)
        or _sets_another_beside(page)
    ):
        return "compare"
    if "explain" in wishes and explained(page):
        return "explain"
    if asks_what_fits(page):
        return "find_limit"
    if known and _is_by_a_strategy(page):
        return "apply_strategies"
    if known and page.devices and asks_sizes(page):
        return "best_serving" if page.mode == SERVING else "best_parallelism"
    outright = known and not page.plan and (asked_outright(page) or (page.devices and asks_most(page)))
    return "find_limit" if outright or asks_how_many_of_them(page) else None


def _tool_of_what_is_wanted(page: Page) -> str | None:
    """The tool of a way to a change ('how do we halve it?'), of the smallest card, or of what money buys."""
    if page.plan and page.marks and _asks_how_to(page):
        # What is wished for changes nothing.
        page.marks = []
        return "advise"
    if asks_for_a_card(page):
        return "find_limit"
    return "recommend_cluster" if _names_what_to_buy(page) else None


def _asks_how_to(page: Page) -> bool:
    """Whether it is asked how to come to a change, and the change is not what is supposed."""
    return page.read.says("how_to") and not page.read.does("suppose")


def _names_what_to_buy(page: Page) -> bool:
    """Whether a model is named where it was asked which one money holds: what it buys for that one is to be found."""
    match page.topic:
        case {"limit": {"goal": "model"}}:
            machines = page.read.of("accelerator") or get(page.plan, "cluster.accelerator")
            return bool(page.read.of("model") and get(page.plan, "goal.budget_usd") and not machines)
    return False


def _has_limits(page: Page) -> bool:
    """Whether money or a time is said that a run may take."""
    return bool(page.until or page.values("budget_usd") or page.values("deadline_h"))


def _is_by_a_strategy(page: Page) -> bool:
    """Whether a run is told to be spread in a way that has a name, and nothing better is asked for: 'train it with
    pipeline parallelism'."""
    counted = any(device.count or device.nodes for device in page.devices) or get(page.plan, "cluster.count")
    weighed = {"best", "faster", "cheaper"} & set(page.read.asked("focus")) or "better" in page.read.asked("wish")
    told = bool(counted and strategies_named(page)) and page.mode != SERVING
    return told and not (weighed or page.read.does("or", "versus", "compare", "why") or asks_which(page.read.found))


def is_of_what_was(page: Page) -> bool:
    """Whether it is asked which of the plans that were spoken of is better: 'and on H200?', 'which one is cheaper?'"""
    read, several = page.read, page.topic.get("supposed") or page.topic.get("plans") or len(page.offers) > 1
    which = [sense[1] for at in range(len(read.tokens)) if (sense := read.found.sense(at, "which"))]
    points = any(
        at < len(read.tokens) and (read.tokens[at].norm == "one" or read.found.does(at, "of_the")) for at in which
    )
    focus = read.asked("focus")
    better = {"cheaper", "faster"} & set(focus) or read.does("compare") or ("cost" in focus and read.does("minus"))
    if not page.offers and get(page.plan, "cluster.count") is None and get(page.plan, "cluster.accelerator"):
        # How many there are was found for each, not said.
        return False
    return bool(page.plan and several and points and better and not read.names)


def _sets_another_beside(page: Page) -> bool:
    """Whether what there is is set against another thing: 'which costs less, that or full?'"""
    heard, things = page.read.found, {value.start for value in page.kept} | {name.start for name in page.read.names}
    choices = page.read.does("or", "versus") if page.plan else []
    pointed = page.read.does("it")
    return any(heard.does(at, "it") == choice and choice + 1 in things for choice in choices for at in pointed)


def _goes_on(page: Page, tool: str, share: float, before: str | None) -> bool:
    """Whether what was asked before is asked again of what is other now: a change alone asks nothing else, unless it
    surely seems to."""
    if before in _CHOOSING and tool == "compare":
        # 'vLLM or SGLang?' after the best way was asked for.
        return not page.read.does("compare", "versus")
    if tool in _WRITES and _asks_for_files(page):
        # 'Give me the vLLM serve line'
        return False
    changes = bool(page.plan) and before in _REPEATED and only_changes(page)
    return changes and (tool == before or share < _SURE)


def tool_of(page: Page, context: Context) -> dict[str, float]:
    """How likely each tool answers a text; tools of the other mode do not."""
    shares = act.likely(act.trained()["tool"], of_tool(page, context))
    other = act.OF_TRAINING if page.mode == SERVING else act.OF_SERVING
    return {name: 0.0 if name in other else share for name, share in shares.items()}


def _of_use(page: Page, tool: str, before: str | None) -> str:
    """The tool, or the one that stands for it where what it needs is not there."""
    focus = page.read.asked("focus")
    if tool in _WRITES or (tool == "save_scenario" and page.read.of("path")):
        return _of_files(page)
    spoken = page.topic.get("spoken", {})
    of_money = tool == "estimate_cost" or (tool == "compare" and page.asks_money and len(page.devices) == 1)
    if of_money and not (has_model(page) or "model" in spoken) and (page.devices or spoken):
        # What devices cost by themselves, rented or bought.
        return "describe_hardware"
    if tool in (*_CHAIN, "compare") and (instead := _instead_of_an_estimate(page, tool)):
        return instead
    if tool == "compare" and "describe" in page.read.asked("wish") and _is_of_a_model_alone(page):
        # 'Which has more active parameters, GLM-4.5-Air or gpt-oss-120b?'
        return "describe_model"
    if tool == "describe_model" and _is_of_a_run_of_it(page):
        return _estimate(page)
    if tool == "find_limit" and (instead := _instead_of_a_limit(page)):
        return instead
    counted = any(device.count for device in page.devices) or page.values("count") or page.values("nodes")
    if tool in ("estimate_training", "check_fit") and not (page.plan or counted) and limit_goal(page) == "devices":
        # 'It must finish by March 1st, how many H100s?'
        return "find_limit"
    if tool in ("compare", *_CHAIN) and has_row(page, _RANGE) and not page.read.does("compare", "versus", "or"):
        # 'Batch size 1 8 32 64'
        return "sweep"
    worth = {"pays", "better"} & set(page.read.asked("wish"))
    if tool == "project_scaling" and worth and has_model(page) and counted:
        # 'Is it worth going from 2 to 4 nodes?'
        return "compare"
    if tool in _CHOOSING and limit_goal(page) == "devices" and not (page.plan or any(map(page.values, LOADS))):
        # 'How many H100 for Llama 405B?' is asked of what holds it.
        return "find_limit"
    if tool in _CHAIN and page.mode == SERVING and "layout" in focus and not (page.filled or page.kept):
        # 'Best layout then'
        return "best_serving"
    if tool == "recommend_cluster" and (instead := _instead_of_a_search(page, before)):
        return instead
    if tool == "advise" and page.plan and (instead := _instead_of_advice(page)):
        return instead
    if tool in ("estimate_training", "check_fit") or _is_of_a_run(page, tool, before, bool(counted), focus):
        fits = page.mode != SERVING and {"fit", "need"} & set(focus)
        return "check_fit" if fits else _estimate(page)
    return shown_or_written(page, tool)


def _instead_of_an_estimate(page: Page, tool: str) -> str | None:
    """The tool of what seems to be about a run, and is about a device's links, a speed that was seen, or practice."""
    if tool in _CHAIN and _is_of_a_link(page):
        return "describe_hardware"
    if tool in _CHAIN and (speed := measured(page)) and is_observed(page.read, speed.row):
        # 'It does 12 s a step on our 8 H100'
        return RATES
    return "search_playbook" if _is_of_practice(page) else None


def _is_of_practice(page: Page) -> bool:
    """Whether a setting is asked about, and no run is known that has it: 'is PCIe enough for LoRA on two cards?'."""
    settings = page.read.networks or any(value.field not in _KINDS_OF_WORK for value in page.kept)
    known = page.plan or has_model(page) or page.devices or "model" in page.topic.get("spoken", {})
    figure = {"time", "run", "cost", "throughput"} & set(page.read.asked("focus"))
    return bool(settings) and not (known or figure) and asks(page.read.found, [])


def _instead_of_advice(page: Page) -> str | None:
    """The tool of what seems to ask for advice, and is about money, or a run that was said to run out of memory."""
    if "cheaper" in page.read.asked("focus"):
        # 'Too expensive, what are my options?'
        return "estimate_cost"
    match page.topic:
        case {"reading": {"focus": [*before]}} if "oom" in before and page.mode != SERVING:
            return "check_fit"
    return None


def _instead_of_a_limit(page: Page) -> str | None:
    """The tool of what seems to ask for a limit, and is about a fact of a model, or about what has none of its own."""
    goal = limit_goal(page)
    if page.marks and not (goal or "most" in page.read.asked("focus")):
        # 'A bigger micro batch' is no question for the biggest.
        return _estimate(page)
    there = get(page.plan, "cluster.accelerator") and page.read.does("it")
    if goal in ("context", "seq_len") and _is_of_a_model_alone(page) and not there:
        # 'What is the longest context of Qwen3-8B?', but not 'on it'
        return "describe_model"
    most = {at for at, _, name in page.read.asked_at("focus") if name in ("most", "least")}
    # The 'max' that asks names no field.
    fields = {name.field for name in page.read.found.fields if name.start not in most}
    named = fields & {*ALL_PATHS} & {*lexicon().quantities}
    # 'What is the biggest rank I can use?'
    return "sweep" if named and most and page.plan and not (goal or any_goal(page) or page.filled) else None


def _instead_of_a_search(page: Page, before: str | None) -> str | None:
    """The tool of what seems to be a search for machines, and is about those that there are."""
    focus, device = page.read.asked("focus"), get(page.plan, "cluster.accelerator")
    if page.mode == SERVING and weighs_an_api(page):
        # 'A month of 3B tokens: an API, or devices of our own?' is asked of a deployment that has its bill beside it.
        return "size_serving"
    if before == "recommend_cluster" and {"cheaper", "faster"} & set(focus) and not _names_anything(page):
        # 'Cheaper?' and 'faster?' are asked of what was found.
        return "estimate_cost" if "cheaper" in focus else "advise"
    if "device_hours" in focus and has_model(page) and page.mode != SERVING:
        # 'How many GPU-hours does it take?' is a figure of the run, whatever it runs on.
        return _estimate(page)
    fixed = len(page.values("count")) == 1 and device and not page.devices
    if fixed and not ({"best", "cheaper"} & set(focus) or asks_which(page.read.found)):
        # 'And if I rent four of them?'
        return _estimate(page)
    told = page.devices or page.values("budget_usd")
    chosen = "rent" in page.read.asked("wish") or asks_which(page.read.found)
    counts = limit_goal(page) in ("devices", None) and "size" in focus and not chosen
    if before in _OF_ONE_RUN and device and counts and not told:
        # 'How many GPUs do I need?', also to be done in time, is asked of those of the run.
        return "find_limit"
    if before in _OF_ONE_RUN and device and _is_of_what_there_is(page):
        # 'Is it under 400 bucks?'
        return "estimate_cost" if page.asks_money or page.values("budget_usd") else _estimate(page)
    return None


def _names_anything(page: Page) -> bool:
    """Whether a turn names a thing, a value or a number."""
    return bool(page.read.names or page.filled or page.kept)


def _is_of_what_there_is(page: Page) -> bool:
    """Whether a question is whether the plan, to which it points, keeps a limit that it names."""
    read = page.read
    limited = page.values("budget_usd") or page.values("deadline_h")
    points = any(read.tokens[at].norm in _POINTS for at in range(len(read.tokens)))
    seeks = asks_which(read.found) or {"best", "cheaper"} & set(read.asked("focus")) or "rent" in read.asked("wish")
    return bool(limited and points and not seeks and asks(read.found, []))


def _tells_a_run(page: Page) -> bool:
    """Whether a model and what it runs on are told, and nothing is asked: '7B, max $20k, 16 H100, adafactor'."""
    read = page.read
    counted = any(device.count or device.nodes for device in page.devices)
    several = any(len(number.values) > 1 for number in page.filled)
    told = has_model(page) and counted and len(page.devices) == 1 and not several
    return told and not (page.plan or asks(read.found, []) or read.asked("wish") or asks_which(read.found))


def _is_of_a_run_of_it(page: Page) -> bool:
    """Whether what seems to ask for facts of a model is about a run of it: 'KV cache of Llama-3.1-70B at 128k',
    'then take Qwen3-32B' where there is a plan."""
    if page.mode == SERVING and any(map(page.values, _OF_A_CACHE)):
        return True
    asked = page.read.asked("focus") or page.read.asked("wish") or asks(page.read.found, [])
    return bool(page.plan and page.read.of("model")) and "?" not in page.read.text and not asked


def _is_of_a_model_alone(page: Page) -> bool:
    """Whether a model is named, and nothing of any run."""
    read = page.read
    return bool(read.of("model")) and not (read.asked("mode") or page.kept or page.filled or page.devices)


def _is_of_a_link(page: Page) -> bool:
    """Whether a device's links are asked about, and nothing of any run: 'NVLink speed of the GB200?'."""
    alone = bool(page.devices) and not (page.plan or page.filled or has_model(page) or page.read.asked("mode"))
    counted = any(device.count or device.nodes for device in page.devices)
    links = page.read.networks or any(value.field in ("device_links", "interconnect") for value in page.kept)
    return alone and not counted and bool(links)


def _is_of_a_run(page: Page, tool: str, before: str | None, counted: bool, focus: Sequence[str]) -> bool:
    """Whether what seems to be about a file, a measured speed or a search is about one run."""
    read = page.read
    if tool == "import_config" and "import" not in read.asked("wish"):
        # 'Train ./config.json': a model's, and no launch file.
        return any(name.text.endswith("config.json") for name in read.of("path"))
    if tool == RATES:
        if not (page.plan or page.devices):
            # 'Get 30 tokens/s from gpt-oss-120b': of no hardware no speed is good or bad.
            return True
        if (speed := measured(page)) and is_observed(read, speed.row) and not asks_which(read.found):
            # 'I get 2100 tokens/s, should I be happy?'
            return False
        # 'Can I hit 30 tok/s?', 'what would 3 cards give?', 'I need 30 tok/s'
        wished = read.says("wants")
        return (wished or "fit" in focus or bool(read.does("suppose"))) and not read.asked("judged")
    if tool == "search_playbook":
        # A run that is told, and nothing asked about it, is to be estimated.
        return bool(read.of("model") and counted and not asks(read.found, []))
    if tool == "advise" and any(name.startswith("run.goodput") for name in read.asked("figure")):
        # 'How often should I checkpoint?' is a figure of the run.
        return True
    if tool == "describe_hardware" and page.plan and not page.devices:
        # 'How much VRAM is left?'
        return bool({"memory", "fit", "need"} & set(focus))
    if tool == "explain" and not page.plan and "faster" in focus:
        # 'What is the bottleneck of Llama 8B on 8 H100?'
        return not read.asked("figure")
    if tool == "explain" and before == "compare":
        # 'Why is it faster?' is about what was compared.
        return not read.asked("figure")
    if tool in _OF_THINGS and page.plan and (page.filled or page.kept):
        # 'Only 20 GB are available per GPU'
        return only_changes(page)
    if tool == "sweep":
        # 'Doubling the batch' is one step, not a range of them.
        return bool(page.marks) and not (listed(page) or asks(read.found, []))
    if tool == "size_serving" and counted:
        # 'On 2?' asks for no number of them.
        return limit_goal(page) != "devices"
    return tool in _CHOOSING and bool(page.plan) and "faster" in focus and "best" not in focus


def control_of(page: Page) -> str | None:
    """'help' or 'thanks' where nothing else is said, words for manners aside: 'ok', 'merci, byebye'."""
    read = page.read
    if page.filled or page.kept or read.names or page.marks or read.asked("focus") or asks(read.found, []):
        return None
    wishes = set(read.asked("wish")) - {"pays"}
    if wishes == {"thanks"} or (wishes == {"help"} and not read.courtesies):
        return wishes.pop()
    rest = [at for at, token in enumerate(read.tokens) if at not in read.courtesies and token.kind != "sign"]
    senses = [sense for at in rest for word in read.found.words.get(at, ()) for sense in word.senses]
    joins = ("and_then", "run_after")
    aside = ("stop", "scale")
    means = any(not (sense.kind in aside or sense.value == "assent" or sense.name in joins) for sense in senses)
    return "thanks" if read.courtesies and (wishes == {"help"} or not means) else None


def _asks_what_there_is(page: Page) -> bool:
    """Whether it is asked which values of a field there are, not which to take: 'what optimizers are there?', 'which
    precisions can you model?'"""
    found, fields = page.read.found, {at: name for at, _, name in page.read.asked_at("word_field")}
    which = any((sense := found.sense(at, "which")) and sense[1] in fields for at in range(len(found.text)))
    told = "list" in page.read.asked("wish") or any(found.sense(at, "there_is") for at in range(len(found.text)))
    return which and told and not page.filled and {value.field for value in page.kept} <= {*fields.values(), "stage"}


def values_asked(page: Page) -> str | None:
    """The field whose values are asked for, and no row of a catalogue: 'which frameworks do you support?'"""
    fields = [name for _, _, name in page.read.asked_at("word_field") if name in ALL_PATHS]
    rows = page.read.asked("catalogue") or page.read.names or page.plan
    return fields[0] if fields and not rows else None


def about_the_answer(page: Page) -> str | None:
    """What is asked of the answer before: what its figures are counted per, or what was assumed for it."""
    about = [name for name in page.read.asked("of_answer") if name != "changed"]
    says = page.filled or page.kept or page.read.names or page.marks
    if not (page.plan and about) or says or (about[0] == "assumptions" and page.read.asked("figure")):
        return None
    return about[0]


def _estimate(page: Page) -> str:
    return "estimate_inference" if page.mode == SERVING else "estimate_training"


def _of_files(page: Page) -> str:
    """The tool of a text that seems to be about launch files: they are shown unless writing is asked for."""
    read = page.read
    if not _asks_for_files(page):
        return _estimate(page)
    if not _has_object(page):
        # 'Write me a poem.'
        return act.NO_TOOL
    writes = "write" in read.asked("focus") or read.of("path") or "/" in read.text
    return "write_configs" if writes and "show_only" not in read.asked("wish") else "render_configs"


def _asks_for_files(page: Page) -> bool:
    """Whether a word asks for something to be written or shown."""
    read = page.read
    asked = {"files", "write", "command", "show_only"} & {*read.asked("focus"), *read.asked("wish")}
    return bool(asked or read.asked("target") or read.of("path"))


def _has_object(page: Page) -> bool:
    """Whether what is to be written is said to be files, a program's, or what was spoken of."""
    read = page.read
    files = "files" in read.asked("focus") or read.asked("target") or "command" in read.asked("wish")
    return bool(files or read.of("path", "model") or any(token.norm in _POINTS for token in read.tokens))
