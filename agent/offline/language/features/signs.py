"""What a page shows of its question beyond its words: forms that people give the same question in many words.

Each is a feature of the classifier that chooses the tool, which learns what it is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agent.offline.language.asking import asks, asks_which
from agent.offline.language.assign import single
from agent.offline.language.mentions import SERVING
from agent.offline.language.own.limits import any_goal, asked_outright, asks_for_data, has_model, limit_goal
from agent.offline.language.own.measured import is_judged
from agent.offline.language.own.pricing import NEAR_DOLLARS
from agent.offline.language.own.rows import goes_on_with
from agent.offline.language.own.runs import goes_on_with_runs
from agent.offline.language.own.searches import explained, strategies_named
from agent.offline.language.reading.machines import side_by_side, together
from agent.offline.language.reading.spread import ways
from agent.offline.language.reading.things import free_names
from planner.requests import ALL_PATHS

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

# Settings that one asks about whether they pay; of others one asks which value is best.
SWITCHES = ("precision", "fp8_attention", "packing", "attention", "compile", "fused_loss", "tiled_mlp", "cuda_graph",
            "optimizer_in_backward", "optimizer", "recompute", "offload", "zero_stage", "sequence_parallel",
            "speculative", "speculative_tokens", "kv_dtype", "weight_dtype", "prefix_hit", "interconnect")  # fmt: skip
LOADS = ("concurrency", "request_rate", "load", "token_rate", "requests")
# Figures that only a run has; words of what a question may be about.
_FIGURES = frozenset(["fit", "run", "cost", "need", "time", "faster", "throughput", "latency", "write", "files",
                      "memory"])  # fmt: skip
_PARTS = ("workload", "layout")
_TERMS = ("figure", "topic", "goal")
_LENGTHS = ("seq_len", "length", "max_context")
# What find_limit solves, by its goal: where a number of it is said, no limit of it is asked.
_SOLVED = {"devices": ("count", "nodes"), "context": ("length", "max_context"), "seq_len": ("seq_len",),
           "micro_batch": ("micro_batch", "batch", "global_batch"), "concurrency": ("concurrency",),
           "input_len": ("input_len",), "tokens": ("dataset_tokens", "dataset_samples")}  # fmt: skip


def signs(page: Page, before: str | None) -> Iterator[str]:
    """The names of the forms that a page has; `before` is the tool of the turn before."""
    yield from (name for name, is_so in _FORMS.items() if is_so(page))
    if goal := limit_goal(page) or any_goal(page):
        yield f"{'said' if any(map(page.values, _SOLVED.get(goal, (goal,)))) else 'open'}:{goal}"
    if is_judged(page, before):
        yield "judged"
    if tool := goes_on_with(page, before) or goes_on_with_runs(page, before):
        yield f"on:{tool}"


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
    return asked and bool(set_ or read.networks) and asks(read.found, [])


def weighs_an_api(page: Page) -> bool:
    """Whether a deployment is set beside the same tokens from somebody's API: 'cheaper than the API?'."""
    read = page.read
    if "buying" in read.asked("topic") and "usd_per_million" in (page.topic.get("asked") or {}):
        return True
    weighed = page.asks_money or "better" in read.asked("wish") or read.does("or", "versus", "compare")
    # 'We pay $0.60 per M tokens to an API. Could self-hosting beat that?'
    bought = any(read.found.is_asked(at, "bought") for at in range(len(read.tokens)) if at not in read.named_tokens)
    return bool(bought and weighed and page.mode == SERVING and (has_model(page) or page.plan))


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


def _of_devices_alone(page: Page) -> bool:
    """Whether several devices are named to serve on, and no number of any."""
    counted = any(device.count or device.nodes for device in page.devices)
    return page.mode == SERVING and len(page.devices) > 1 and not counted


def _of_a_price(page: Page) -> bool:
    """Whether nothing is said of a run, only what hardware costs: 'rent for 32 A100?', 'is $2 per H100 fair?'."""
    read = page.read
    if has_model(page) or not read.of("accelerator", "instance") or read.asked("mode"):
        return False
    runs = [number.field for number in page.filled if ALL_PATHS.get(number.field, "cluster").startswith(_PARTS)]
    paid = all(value.field in ("price", "objective") for value in page.kept)
    money = any(row.amounts[-1].unit("usd", *NEAR_DOLLARS) for row in read.rows) or page.kept
    money = money or {"hourly", "rent"} & set(read.asked("wish"))
    return paid and not runs and ("cost" in read.asked("focus") or bool(money))


def _of_practice(page: Page) -> bool:
    """Whether a question is about how things are done or come to be, since it names no run that could be estimated."""
    read = page.read
    numbers = [number for number in page.filled if number.field not in _LENGTHS]
    topic = read.asked("topic")
    if topic and not (read.names or numbers):
        return True
    if "sense" in read.asked("judged") and not read.names and asks(read.found, []):
        return True
    if not asks(read.found, []) or read.names or page.pasted:
        return False
    sized = numbers or page.left or {"devices", "concurrency"} & set(read.asked("goal"))
    if sized or "rent" in read.asked("wish") or _FIGURES & set(read.asked("focus")) or "mine" in read.asked("whose"):
        return False
    values = [value for value in read.values if value.field not in ("stage", "vendors")]
    fields = [name for name in free_names(read, page.filled) if not read.found.sense(name.start, "stop")]
    layout = "layout" in read.asked("focus") or bool(fields)
    return bool(values or layout or any(read.asked(group) for group in _TERMS)) and read.asked("wish")[:1] != ["list"]


def has_row(page: Page, least: int = 3) -> bool:
    """Whether that many numbers are said of one thing."""
    return any(len(number.values) >= least and not number.ranged for number in page.filled)


def _weighs(page: Page) -> bool:
    """Whether what is there is set against something that is named."""
    read = page.read
    weighed = read.does("versus", "compare") or {"pays", "better"} & set(read.asked("wish"))
    return bool(weighed and asks(read.found, []))


_FORMS: Mapping[str, Callable[[Page], object]] = {
    "model": has_model,
    "data": asks_for_data,
    "outright": asked_outright,
    "explained": explained,
    "pays": _asks_whether_it_pays,
    "weighs": _weighs,
    "api": weighs_an_api,
    "hours": _is_of_hours,
    "price": _of_a_price,
    "here": _asks_for_this_machine,
    "what": asks_what_it_is,
    "practice": _of_practice,
    "side": side_by_side,
    "ways": ways,
    "against": lambda page: page.refused.against,
    "several": _of_several,
    "devices": _of_devices_alone,
    "counted": lambda page: any(device.count for device in page.devices),
    "strategies": lambda page: len(strategies_named(page)) > 1,
    "row": has_row,
    "changed": lambda page: page.marks,
    "load": lambda page: any(map(page.values, LOADS)),
    "money": lambda page: page.asks_money,
    "asks": lambda page: asks(page.read.found, []),
    "which": lambda page: asks_which(page.read.found),
}
