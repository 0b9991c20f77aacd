"""Which tool answers a turn: the classifier's opinion, and the lexicon's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.offline.calls.wishes import ROWS
from agent.offline.language import act
from agent.offline.language.asking import asks, asks_which
from agent.offline.language.assign import single
from agent.offline.language.features import Context, goal_of, listed, only_changes
from agent.offline.language.mentions import SERVING, Mentions
from agent.offline.language.own.limits import any_goal, asked_outright, asks_for_data, has_model, limit_goal
from agent.offline.language.own.measured import RATES, is_judged
from agent.offline.language.own.pricing import NEAR_DOLLARS
from agent.offline.language.own.rows import goes_on_with, shown_or_written
from agent.offline.language.own.runs import goes_on_with_runs
from agent.offline.language.own.searches import explained, strategies_named
from agent.offline.language.reading.alone import OFFERS
from agent.offline.language.reading.machines import side_by_side, together
from agent.offline.language.reading.spread import ways
from agent.offline.language.reading.things import free_names
from planner.requests import ALL_PATHS

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
# What keeps, lists or writes something of one's own, and how likely it must be.
_OF_ONES_OWN = frozenset({*ROWS, "save_scenario", "load_scenario", "delete_scenario", "render_scenario", "list_runs",
                          "list_scenarios", "render_benchmark", "benchmark_result", "matrix_results", "render_report",
                          "preview_report", "benchmark_matrix", "render_matrix"})  # fmt: skip
_LIKELY = 0.25
_WRITES = ("write_configs", "render_configs")
_FACTS = ("describe_model", "describe_hardware")
# Settings that one asks about whether they pay; of others one asks which value is best.
SWITCHES = ("precision", "fp8_attention", "packing", "attention", "compile", "fused_loss", "tiled_mlp", "cuda_graph",
            "optimizer_in_backward", "optimizer", "recompute", "offload", "zero_stage", "sequence_parallel",
            "speculative", "speculative_tokens", "kv_dtype", "weight_dtype", "prefix_hit", "interconnect")  # fmt: skip
# What hardly any other words ask for.
_NAMED = ("compare", "search_playbook", "diff_scenarios", "apply_strategies")
# Searches that alternatives narrow.
_CHOOSING = ("best_serving", "size_serving")
_LIMITS = ("budget_usd", "deadline_h", "max_usd_per_hour")
_CACHE, _PER_TOKEN = "memory.components.kv_cache", "latency.tpot_s"
_POINTS = frozenset(["it", "them", "this", "that", "these", "those", "everything", "all", "plan", "sie", "es", "das",
                     "alles", "lo", "los", "todo", "le", "les", "tout", "它", "全部"])  # fmt: skip
# What find_limit solves, by its goal: where a number of it is said, no limit of it is asked.
_SOLVED = {"devices": ("count", "nodes"), "context": ("length", "max_context"), "seq_len": ("seq_len",),
           "micro_batch": ("micro_batch", "batch", "global_batch"), "concurrency": ("concurrency",),
           "input_len": ("input_len",), "tokens": ("dataset_tokens", "dataset_samples")}  # fmt: skip
# How much the lexicon's opinion weighs: as much as half of what the classifier may's.
_HINT = 0.5


def chosen(page: Page, context: Context) -> tuple[str | None, dict[str, float]]:
    """(The tool, or None where none answers, how likely each was)."""
    shares = act.tool_of(page, context)
    if page.read.asked("outside") and not page.read.of("model"):
        return None, {**shares, act.NO_TOOL: max(1.0, *shares.values())}
    if about_the_answer(page) or _only_thanks(page):
        return None, shares
    if is_judged(page, context.tool):
        return RATES, {RATES: 1.0}
    goes_on = goes_on_with(page, context.tool) or goes_on_with_runs(page, context.tool)
    if only := goes_on or _of_hardware_alone(page) or _said_outright(page):
        return only, {only: 1.0}
    if asks_for_data(page) and has_model(page):
        return "find_limit", {"find_limit": 1.0}
    if any_goal(page) == "model" and page.values("budget_usd") and not (has_model(page) or page.read.of("accelerator")):
        # 'Best model for $12k'
        return "find_limit", {"find_limit": 1.0}
    shares = _with_hints(page, shares)
    if page.plan and _FIGURES & set(page.read.asked("focus")) and not (limit_goal(page) or any_goal(page)):
        # 'What takes the most memory?' asks for no limit.
        shares = {**shares, "find_limit": 0.0}
    tool = _surest(shares)
    if context.tool in _CHOOSING and tool == "compare" and not page.read.does("compare", "versus"):
        # 'vLLM or SGLang?' after the best way was asked for.
        return None, shares
    if beside := _set_beside(page, tool, context.tool):
        return beside, shares
    if asks_what_it_is(page):
        return "search_playbook", shares
    changes = page.plan and only_changes(page)
    if not page.plan and context.tool not in _FACTS and _of_practice(page, tool):
        return "search_playbook", shares
    tool = _estimate(page) if _wishes_for_a_run(page, tool) else tool
    tool = _going_on(page, tool, context.tool) if changes else _of_what_there_is(page, tool)
    if page.plan and page.marks and tool == "sweep" and not (listed(page) or asks(page.read.found, [])):
        # 'Doubling the batch' is one step, not a range of them.
        return None, shares
    solved = _SOLVED.get(limit_goal(page) or any_goal(page) or "", ()) if tool == "find_limit" and page.plan else ()
    if any(page.values(name) for name in solved):
        return None, shares
    if tool == act.NO_TOOL:
        return None, {**shares, tool: max(1.0, *shares.values())}
    return _in_its_way(page, tool) if tool else None, shares


def _surest(shares: dict[str, float]) -> str:
    """The likeliest tool; one that keeps, lists or writes something of one's own only where that is likely enough."""
    tool = max(shares, key=lambda name: shares[name])
    if tool not in _OF_ONES_OWN or shares[tool] >= _LIKELY:
        return tool
    return max(shares, key=lambda name: shares[name] if name not in _OF_ONES_OWN else 0.0)


def _in_its_way(page: Page, tool: str) -> str:
    """The tool for one run or for several, that shows or that writes."""
    return _of_runs(page, tool) if tool in _OF_ONE else shown_or_written(page, tool)


def _only_thanks(page: Page) -> bool:
    """Whether nothing is said but thanks."""
    read = page.read
    says = page.filled or page.kept or read.names or page.marks or read.asked("focus") or asks(read.found, [])
    return read.asked("wish") == ["thanks"] and not says


def _weighs(page: Page) -> bool:
    """Whether what is there is set against something that is named."""
    read = page.read
    weighed = read.does("versus", "compare") or "pays" in read.asked("wish") or "better" in read.asked("wish")
    return bool(weighed and asks(read.found, []))


def _picks_one(page: Page) -> bool:
    """Whether one of what was set side by side before is named alone: 'we go with the H200, but two of them'."""
    if page.read.does("or", "versus", "compare", "same", "all_before") or "better" in page.read.asked("wish"):
        return False
    offered = {value for offer in page.topic.get(OFFERS) or () for value in offer.values()}
    named = {name.id for name in page.read.of("accelerator", "model") if name.start not in page.refused.things}
    return len(named) == 1 and named <= offered


def _said_outright(page: Page) -> str | None:
    """The tool of a question about a run that is of no other by its words."""
    if page.plan and page.read.of("scenario") and _weighs(page):
        # 'What do I gain over cheap?'
        return "diff_scenarios"
    if explained(page) and (has_model(page) or not (page.plan or page.read.names)):
        return "explain"
    if _asks_whether_it_pays(page):
        return "compare"
    if has_model(page) and asked_outright(page) and not page.plan:
        return "find_limit"
    if {_CACHE, _PER_TOKEN} <= set(page.read.asked("figure")) and has_model(page) and not (page.plan or page.filled):
        return "describe_model"
    if _is_of_hours(page):
        return "describe_hardware"
    # 'What would $10k more buy?' is asked of the run that there is.
    return "estimate_cost" if weighs_an_api(page) or (page.plan and page.values("more_usd")) else None


def _is_of_hours(page: Page) -> bool:
    """Whether it is asked what devices cost for so many hours, whatever runs on them meanwhile: 'what do 10 hours of
    fine-tuning Mistral 7B on an H100 cost?'"""
    times = [one.row for one in single(page.filled, "deadline_h")]
    if page.plan or page.mode == SERVING or "cost" not in page.read.asked("focus") or not times or not page.devices:
        return False
    read, row = page.read, times[0]
    lasts = any(read.found.sense(at, "over") for at in range(max(row.start - 2, 0), row.start))
    of = row.end < len(read.tokens) and read.tokens[row.end].norm in ("of", "de", "d", "von")
    data = any(map(page.values, ("dataset_tokens", "dataset_samples", "text_bytes", "steps", "budget_usd")))
    return (lasts or of) and not data


def _asks_whether_it_pays(page: Page) -> bool:
    """Whether a first question is what a setting does to a run: 'would packing help?', 'does it slow down training?'"""
    read = page.read
    set_ = any(value.field in SWITCHES and value.start not in page.refused.things for value in page.kept)
    asked = "pays" in read.asked("wish") and has_model(page) and not page.plan
    return asked and bool(set_ or read.network) and asks(read.found, [])


def weighs_an_api(page: Page) -> bool:
    """Whether a deployment is set beside the same tokens from somebody's API: 'cheaper than the API?'."""
    read = page.read
    weighed = page.asks_money or "better" in read.asked("wish") or read.does("or", "versus", "compare")
    return bool("bought" in read.asked("wish") and weighed and page.mode == SERVING and (has_model(page) or page.plan))


def _of_hardware_alone(page: Page) -> str | None:
    """The tool of a question about hardware without any run."""
    if _asks_for_this_machine(page):
        return "describe_machine"
    # 'Rent or buy 8 B200?': from how much use on the one costs less.
    return "describe_hardware" if "buying" in page.read.asked("topic") and not has_model(page) else None


def _asks_for_this_machine(page: Page) -> bool:
    """Whether it is asked what the machine is that one sits at: 'what GPU is in this box?'."""
    read = page.read
    told = read.names or page.filled or page.left or page.kept or page.plan
    here = "here" in read.asked("whose") and "hardware" in read.asked("catalogue")
    return here and not told and asks(read.found, [])


def asks_what_it_is(page: Page) -> bool:
    """Whether nothing is asked but what a method or a setting is: 'what is ZeRO-3?'."""
    found, text = page.read.found, page.read.tokens
    opening = found.sense(0, "defines") if text else None
    numbers = [number for number in page.filled if number.name and number.name[0] < number.row.start]
    if page.read.names or page.left or len(numbers) < len(page.filled) or not (page.kept or numbers):
        return False
    told = {at for value in page.kept for at in range(value.start, value.end)}
    told |= {at for each in numbers if each.name for at in range(each.name[0], each.row.end)}
    first = opening[1] if opening else 0
    closing = {at for at in range(first, len(text)) if found.sense(at, "defined")}
    if not (opening or closing):
        return False
    return all(at in told or at in closing or text[at].kind == "sign" for at in range(first, len(text)))


def _set_beside(page: Page, tool: str, before: str | None) -> str | None:
    """The tool of a question that sets things side by side in a way that the classifier takes for another."""
    if tool == before == "compare" and _picks_one(page):
        return _estimate(page)
    if tool == "explain" and before == "compare" and not page.read.asked("figure"):
        # 'Why is it faster?' is about what was compared.
        return _estimate(page)
    if tool in _CHOOSING and ways(page):
        # 'Tensor or pipeline parallel to serve it?'
        return "compare"
    if tool == "compare" and page.values("request_rate") and _of_devices_alone(page):
        # 'H200 or B200 at 10 requests/s?': as many of each as it takes.
        return "size_serving"
    if tool in ("project_scaling", "sweep") and "better" in page.read.asked("wish") and side_by_side(page):
        # 'Is it worth going from 2 to 4 nodes?'
        return "compare"
    return None


def _of_runs(page: Page, tool: str) -> str:
    """The tool of a question about runs: several that are set side by side, the devices that one takes, or one plan."""
    counted = page.values("count") or page.values("nodes")
    if _of_several(page) or side_by_side(page) or ways(page) or page.refused.against:
        return "compare"
    if page.mode != SERVING and not (page.plan or counted) and limit_goal(page) == "devices":
        # 'Must finish by March 1st, how many H100s?'
        return "find_limit"
    return _of_one_plan(page, tool)


def _of_one_plan(page: Page, tool: str) -> str:
    """The tool of the chain for one plan that the figure asked for belongs to, whichever the classifier leans to."""
    focus = page.read.asked("focus")
    if page.mode != SERVING and {"fit", "need"} & set(focus):
        return "check_fit"
    if focus[:1] == ["cost"] and "hourly" not in page.read.asked("wish"):
        return "estimate_cost"
    return tool if page.mode == SERVING else "estimate_training"


def _of_several(page: Page) -> bool:
    """Whether unlike devices are asked about that do not work together ('how long on 8 H100 and on 8 B200?'), or
    three models."""
    read = page.read
    if len({name.id for name in read.now("model") if name.id and name.start not in read.telling}) > 2:
        return True
    asked = [device for device in page.devices if device.name.id and device.name.start not in read.telling | read.past]
    changed = read.does("swap", "correct", "contrast", "back", "refuse_right", "refuse_left")
    unlike = len({device.name.id for device in asked})
    joined = (read.does("and") and unlike > 1) or unlike > 2
    alike = len({(device.count or 1) > 1 or bool(device.nodes) for device in asked}) == 1
    alike &= len(asked) == len(page.devices)
    return bool(joined and alike and not changed and not page.plan and not together(page))


def _is_said(page: Page, goal: str) -> bool:
    """Whether a number of what a limit would be asked of is said."""
    return any(page.values(name) for name in _SOLVED.get(goal, (goal,)))


def about_the_answer(page: Page) -> str | None:
    """What is asked of the answer before: what its figures are counted per, or what was assumed for it."""
    about = [name for name in page.read.asked("of_answer") if name != "changed"]
    says = page.filled or page.kept or page.read.names or page.marks
    if not (page.plan and about) or says or (about[0] == "assumptions" and page.read.asked("figure")):
        return None
    return about[0]


def _going_on(page: Page, tool: str, before: str | None) -> str | None:
    """The tool of a text that only changes the plan: None goes on with what was asked before."""
    if page.marks:
        return None
    if before in _REPEATED and tool in (*_REPEATED, *_ASKED_FOR, *_OF_ONE):
        return tool if tool == before and tool in _SEARCHES else None
    if tool in _REPEATED or tool in _ASKED_FOR or (tool in _WRITES and not _asks_for_files(page)):
        return _estimate(page)
    return tool


def _estimate(page: Page) -> str:
    return "estimate_inference" if page.mode == SERVING else "estimate_training"


def _is_to_be_run(page: Page) -> bool:
    """Whether something is to run on counted devices, whatever it is: 'I'd like to train on 8 H100'."""
    counted = any(device.count for device in page.devices)
    return counted and bool(page.read.asked("mode")) and not page.asks_money and not page.read.asked("wish")


def _of_no_facts(page: Page, tool: str) -> str | None:
    """The tool that estimates what seems to be a question about facts, or about a limit or devices that are said."""
    read = page.read
    loads = any(map(page.values, ("concurrency", "request_rate", "load", "token_rate", "requests")))
    if tool == "size_serving" and not (page.plan or page.devices or loads):
        # 'What do I need to serve Llama-3.3-70B?': which devices is the question.
        return "recommend_cluster"
    if tool == "size_serving" and any(device.count for device in page.devices) and goal_of(page) != "devices":
        # 'Serve Llama 8B on one L40S for 300 requests a minute' asks for no number of them.
        return _estimate(page)
    if tool in _FACTS and page.filled and page.plan and not read.names:
        # Facts are of something that is named.
        return _estimate(page)
    of_a_run = has_model(page) and (read.asked("mode") or page.filled)
    if tool == "describe_hardware" and (of_a_run or _is_to_be_run(page)):
        # 'Is NVLink needed for a 70B on 2 A6000?'
        return _estimate(page)
    if tool == "explain" and has_model(page) and not (page.plan or explained(page)):
        # 'How big are the activations?'
        return _estimate(page)
    if tool == "list_catalogue" and read.of("accelerator", "instance") and read.asked("mode"):
        # 'Which models can I serve on 2 A100?'
        return "find_limit" if "model" in read.asked("goal") and not read.of("model") else None
    if tool == "find_limit" and not page.plan and any(map(page.values, ("max_context", "seq_len"))):
        # '8k max context for Llama 8B'
        return _estimate(page) if limit_goal(page) is None and any_goal(page) is None else None
    if tool != "describe_model":
        return None
    if _CACHE in read.asked("figure") and page.filled:
        # 'KV cache of Llama 70B at 128k'
        return "estimate_inference"
    if "need" in read.asked("focus"):
        return "check_fit"
    # 'Host Llama 405B'
    return _estimate(page) if read.asked("mode")[:1] and not read.asked("wish") else None


def _wishes_for_a_run(page: Page, tool: str) -> bool:
    """Whether what seems to be about a file, a measured speed or a search is about a run: 'train ./config.json', 'can I
    hit 30 tok/s?', 'how can I make it faster?'"""
    read, focus = page.read, page.read.asked("focus")
    if tool == "import_config":
        return "import" not in read.asked("wish") and any(name.text.endswith("config.json") for name in read.of("path"))
    if tool == RATES:
        return "fit" in focus and not read.asked("judged")
    return tool in _CHOOSING and bool(page.plan) and "faster" in focus and "best" not in focus


def _of_what_there_is(page: Page, tool: str) -> str:
    """The tool by what is named: without any run there is only what is known of things, and of methods."""
    read = page.read
    if tool in _OF_ONE and any(len(number.values) >= _ROW and not number.ranged for number in page.filled):
        return "sweep"
    if tool in ("search_playbook", "compare") and page.plan and read.does("suppose") and (page.kept or page.filled):
        set_beside = read.does("compare", "versus", "or", "all_before") or "better" in read.asked("wish")
        # 'Would LoRA help?' is tried.
        return tool if set_beside or listed(page) else _estimate(page)
    if tool in _WRITES:
        return _of_files(page)
    if tool == "search_playbook" and has_model(page) and (page.values("requests") or page.values("total_tokens")):
        # 'The cheapest way to translate 2M pages with an 8B model'
        return _estimate(page) if read.of("accelerator", "instance") else "recommend_cluster"
    if estimates := _of_no_facts(page, tool):
        return estimates
    bill = "cost" in read.asked("focus") and "hourly" not in read.asked("wish")
    if page.plan and tool == "describe_hardware" and bill:
        # What it costs there is asked of the plan.
        return "estimate_cost"
    if tool == "advise" and page.plan and "cheaper" in read.asked("focus"):
        # 'Too expensive, what are my options?'
        return "estimate_cost"
    if tool == "advise" and "fit" in read.asked("focus"):
        # 'It runs out of memory: what should I change?'
        return "check_fit"
    if tool in (*_OF_ONE, "estimate_cost") and _of_a_price(page, tool):
        return "describe_hardware"
    if page.plan or has_model(page):
        alone = not (page.plan or read.asked("mode") or page.kept or page.filled or read.of("accelerator", "instance"))
        # 'What is the longest context of Qwen3-8B?'
        return "describe_model" if alone and limit_goal(page) in ("context", "seq_len") else tool
    devices = read.of("accelerator", "instance") or any(row.amounts[-1].unit("bytes") for row in read.rows)
    if tool in (*_OF_ONE, "list_catalogue") and devices and "fit" in read.asked("focus") and asks_which(read.found):
        # 'What fits on a 4090?'
        return "find_limit"
    open_model = not read.asked("mode") or {"best", "most"} & set(read.asked("focus"))
    if devices and any_goal(page) == "model" and tool != "list_catalogue" and open_model:
        # 'No idea which model yet, it must run on 2 L4', 'the best model that I can train on 4 A6000'
        return "find_limit"
    if tool == "advise" or (tool == "explain" and not (page.filled or page.left)):
        return "search_playbook"
    alternatives = read.does("or", "versus", "compare") and not read.of("accelerator", "instance", "provider")
    if tool in ("compare", *_OF_ONE) and alternatives and not page.values("count"):
        # 'ZeRO 2 or 3?'
        return "search_playbook" if page.kept or page.filled else tool
    return "describe_hardware" if tool == "compare" and read.of("accelerator") and not page.kept else tool


# What cannot be told without a run; figures that only one has; words of what a question may be about.
_OF_A_RUN = (*_OF_ONE, "best_parallelism", "estimate_cost", "compare", "find_limit", "recommend_cluster", "sweep",
             "load_scenario", "explain", "advise", "list_catalogue", "none")  # fmt: skip
_FIGURES = frozenset(["fit", "run", "cost", "need", "time", "faster", "throughput", "latency", "write", "files",
                      "memory"])  # fmt: skip
_PARTS = ("workload", "layout")
_TERMS = ("figure", "topic", "goal")
_LENGTHS = ("seq_len", "length", "max_context")


def _of_devices_alone(page: Page) -> bool:
    """Whether several devices are named to serve on, and no number of any."""
    counted = any(device.count or device.nodes for device in page.devices)
    return page.mode == SERVING and len(page.devices) > 1 and not counted


def _of_a_price(page: Page, tool: str) -> bool:
    """Whether nothing is said of a run, only what hardware costs: 'rent for 32 A100?', 'is $2 per H100 fair?'."""
    read = page.read
    if has_model(page) or not read.of("accelerator", "instance") or read.asked("mode"):
        return False
    runs = [number.field for number in page.filled if ALL_PATHS.get(number.field, "cluster").startswith(_PARTS)]
    paid = all(value.field in ("price", "objective") for value in page.kept)
    money = any(row.amounts[-1].unit("usd", *NEAR_DOLLARS) for row in read.rows) or page.kept
    money = money or {"hourly", "rent"} & set(read.asked("wish"))
    return paid and not runs and ("cost" in read.asked("focus") or (tool == "estimate_cost" and bool(money)))


def _of_practice(page: Page, tool: str) -> bool:
    """Whether a question is about how things are done or come to be, since it names no run that could be estimated."""
    read = page.read
    numbers = [number for number in page.filled if number.field not in _LENGTHS]
    topic = read.asked("topic")
    if topic and not (read.names or numbers):
        return True
    if "sense" in read.asked("judged") and not read.names and asks(read.found, []):
        return True
    if tool not in _OF_A_RUN or not asks(read.found, []) or read.names or page.pasted:
        return False
    sized = numbers or page.left or {"devices", "concurrency"} & set(read.asked("goal"))
    if sized or "rent" in read.asked("wish") or _FIGURES & set(read.asked("focus")) or "mine" in read.asked("whose"):
        return False
    values = [value for value in read.values if value.field not in ("stage", "vendors")]
    fields = [name for name in free_names(read, page.filled) if not read.found.sense(name.start, "stop")]
    layout = "layout" in read.asked("focus") or bool(fields)
    return bool(values or layout or any(read.asked(group) for group in _TERMS)) and read.asked("wish")[:1] != ["list"]


def _of_files(page: Page) -> str:
    """The tool of a text that seems to be about launch files: they are shown unless writing is asked for."""
    read = page.read
    if not _asks_for_files(page):
        return _estimate(page)
    if not _has_object(page):
        # 'Write me a poem.'
        return act.NO_TOOL
    return "write_configs" if _writes(read) and "show_only" not in read.asked("wish") else "render_configs"


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


def _writes(read: Mentions) -> bool:
    return bool("write" in read.asked("focus") or read.of("path") or "/" in read.text)


def _with_hints(page: Page, shares: dict[str, float]) -> dict[str, float]:
    """The classifier's shares with the lexicon's second opinion, which decides where the first is unsure."""
    hint = _hinted(page)
    weight = 2 * _HINT if hint in _NAMED else _HINT
    return {**shares, hint: shares.get(hint, 0.0) + weight} if hint else shares


def _hinted(page: Page) -> str | None:
    """The tool that the words ask for by name: a limit, the best deployment, a range of sizes."""
    focus, wishes = page.read.asked("focus"), page.read.asked("wish")
    numbers = any(number.field not in _LENGTHS for number in page.filled)
    if page.read.asked("topic") and asks(page.read.found, []) and not (page.read.names or numbers):
        return "search_playbook"
    if page.plan and "changed" in page.read.asked("of_answer"):
        return "diff_scenarios"
    serving, goal = page.mode == SERVING, goal_of(page)
    if len(strategies_named(page)) > 1 and "matrix" not in wishes:
        return "apply_strategies"
    if "accuracy" in wishes and not page.plan:
        return "search_playbook"
    if page.plan and page.read.asked("scaling"):
        return "sweep"
    if "sweep" in wishes and listed(page):
        return "sweep"
    if page.plan and page.read.does("compare") and page.read.now("accelerator", "model"):
        return "compare"
    changed = page.kept or page.read.names or any(number.field not in _LIMITS for number in page.filled)
    if page.plan and "better" in wishes and changed:
        return "compare"
    most = "most" in focus or "least" in focus
    if "longest" in wishes and not (_is_said(page, "seq_len") or _is_said(page, "context")):
        return "find_limit"
    solved = _is_said(page, goal) if goal else False
    if goal and not solved and (most or not (goal == "model" or "rent" in wishes)):
        if serving and goal == "devices" and (page.values("concurrency") or page.values("request_rate")):
            return "size_serving"
        quick = any(page.values(name) for name in ("ttft_slo_ms", "tpot_slo_ms"))
        return "best_serving" if quick and not page.read.of("accelerator") else "find_limit"
    return "best_serving" if serving and "best" in focus and not page.read.of("provider") else None
