"""Questions for a range: how a run scales to more devices, and sweeps over the values of one field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from agent.offline.catalogue import Catalogue
from agent.offline.numbers import context_length, count
from agent.offline.page import ACCELERATOR, INSTANCE, Page
from agent.offline.rules import NODES
from estimator.plan.schema import Framework, Method, Optimizer, Precision

# A number in a list of numbers: it is no part of a name, and commas part it from the next.
_N = rf"(?<![\w.$-])\d+[km]?(?!(?!x[{ACCELERATOR}])\w|\.\d)"
# '16,384' is one number in a list that has room between its numbers.
_GROUPED = re.compile(r"(?<=\s)([1-9]\d{0,2}),(\d{3})(?![\w,]\d)(?!\w)")
# The second of a range stands right behind dots or a dash.
_LAST = rf"\d+[km]?(?!(?!x[{ACCELERATOR}])\w|\.\d)"
_TO = r"\s*(?:\.\.\.?|to|up to|through|-+>|=>|→|-)\s*"
_LIST = re.compile(rf"{_N}(?:(?:\s*[,;/]\s*(?:and\s+|or\s+)?|\s+(?:and\s+|or\s+)?){_N})+", re.I)
_RANGE = re.compile(rf"({_N}){_TO}({_LAST})(?:\s*,?\s*(?:in steps? of|step(?:s of)?|by)\s*({_N}))?", re.I)
_DEVICES = rf"(?:gpus?|devices?|accelerators?|cards?|chips?|tpus?|[{ACCELERATOR}{INSTANCE}]+s?)"
_SCALES_TO = re.compile(
    r"\b(?:scal(?:e|es|ing)|worth (?:it )?(?:to )?(?:going?|scaling|growing?|moving|move)(?: up| out)?)\b"
    rf"(?:(?![.?!])[^\d\n])*?(?:\b(?:from\s+)?({_N})(?:\s+{_DEVICES})?{_TO}|"
    rf"\bto\s+|\b(?:at|on|over|across)\s+(?=\d+ {NODES}))({_LAST})"
    rf"(?=\s*(x\s*)?({_DEVICES}|{NODES}|[?.!,]|$))",
    re.I,
)
_FROM_NODES = re.compile(rf"(\bfrom\s+)?({_N}){_TO}({_LAST})\s+(?:{_DEVICES}\s+)?{NODES}", re.I)
_SCALING = re.compile(r"\bscal(?:e|es|ing)\b", re.I)
_SCALES_TO_EACH = re.compile(
    r"\bscal(?:e|es|ing)\b[^?!\d]*? (?:to|over|across|on|at|with|for) (\d+(?:\s*(?:,\s*and|,|and|or|/)\s*\d+)+)(?!\w)"
    rf"(\s*{NODES})?",
    re.I,
)
_SCALES = re.compile(
    r"\bhow (?:well |far )?(?:does|do|will|would|can) (?:[^\s?.!]+ ){1,4}?(?P<word>scale)\b(?! to\b)|"
    r"\bscaling (?:curve|efficiency|behaviou?r|plot|study|table)\b|\b(?:weak|strong)(?:ly)?[- ](?:scal\w+)\b",
    re.I,
)
_WEAK = re.compile(
    r"\bweak(?:ly)?[- ]scal\w+|\bscal\w+ the (?:global )?batch\b|\bbatch (?:grows?|scales|growing|scaling)\b",
    re.I,
)
_TRIGGER = re.compile(r"\b(?:sweep(?:ing)?|scan(?:ning)?|vary(?:ing)?|plot|compare|table of)\b", re.I)
# Scaling goes on to so many times the plan's devices where no end is said.
_SPAN = 16
_NODE = 8


@dataclass(frozen=True)
class SweepQuestion:
    """`path` is the swept Plan field; `values` are its values. For a question of how a run scales values are (from,
    to) in devices, or in nodes, as far as they were said; the plan gives the rest."""

    path: str
    values: tuple[Any, ...]
    scales: bool = False
    weak: bool = False
    nodes: bool = False

    @property
    def open(self) -> bool:
        """Whether no size was said."""
        return self.scales and not any(self.values)

    def arguments(self, plan: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
        """The sweep tool's own arguments, for a partial plan."""
        values = _sizes(self, plan.get("cluster") or {}, catalogue) if self.scales else list(self.values)
        return {"field": self.path, "values": values} | ({"scale_batch": True} if self.weak else {})


def _sizes(question: SweepQuestion, cluster: Mapping[str, Any], catalogue: Catalogue) -> list[int]:
    """Doubled from the first size, which is the plan's own or a node where none is said, and the last in any case."""
    device = cluster.get("accelerator")
    node = int(cluster.get("per_node") or (catalogue.per_node(str(device)) if device else _NODE))
    unit = node if question.nodes else 1
    start, stop = (None if size is None else size * unit for size in question.values)
    own = cluster.get("count")
    if start is None:
        start = own if own and (stop is None or own < stop) else min(node, stop or node)
    if stop is None:
        stop = start * _SPAN
    sizes, size = [], start
    while size < stop:
        sizes.append(size)
        size *= 2
    return [*sizes, stop]


# A field as it is called, its Plan path, and how its numbers are read.
_NUMBERED: tuple[tuple[str, str, Callable[[str], int | None]], ...] = (
    (r"(?:max[-_ ]?)?seq(?:uence)?(?:[-_ ]?len(?:gth)?)?s?|context(?:[- ]?(?:length|size)s?)?|ctx(?:[-_ ]?len)?",
     "workload.seq_len", context_length),
    (r"micro[-_ ]?batch(?:[-_ ]?sizes?|es)?|mbs", "workload.micro_batch", count),
    (r"(?:global[-_ ]?)?batch(?:[-_ ]?sizes?|es)?|gbs", "workload.global_batch", count),
    (r"(?:lora[-_ ]?)?ranks?", "workload.lora.rank", count),
    (r"zero(?:[-_ ]?stages?)?", "layout.zero_stage", count),
    (r"tp|tensor[- ]parallel\w*(?: sizes?)?", "layout.tp", count),
    (r"pp|pipeline[- ](?:parallel\w*|stages?)(?: sizes?)?", "layout.pp", count),
    (r"cp|context[- ]parallel\w*(?: sizes?)?", "layout.cp", count),
    (r"ep|expert[- ]parallel\w*(?: sizes?)?", "layout.ep", count),
    (r"dp|data[- ]parallel\w*(?: sizes?)?", "layout.dp", count),
    (rf"(?:number of )?(?:gpus?|devices?|accelerators?|cards?|chips?)|(?:gpu |device )?counts?|cluster sizes?|"
     rf"[{ACCELERATOR}]+s?", "cluster.count", count),
)  # fmt: skip
_WORDED: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"precisions?|dtypes?", "workload.precision", get_args(Precision)),
    (r"methods?", "workload.method", get_args(Method)),
    (r"optimi[sz]ers?", "workload.optimizer", get_args(Optimizer)),
    (r"frameworks?", "workload.framework", get_args(Framework)),
    (r"recompute|recomputation|(?:activation |gradient )?checkpointing", "layout.recompute",
     ("none", "selective", "full")),
)  # fmt: skip


_Field = tuple[str, str, Callable[[str], int | None] | tuple[str, ...]]
_OF_LAYOUT = [
    row for row in _NUMBERED if row[1] in ("layout.tp", "layout.pp", "layout.ep", "layout.dp", "cluster.count")
]
# Of serving: what the load is called, and what asks for a curve over it where no values are said.
_LOAD = (
    r"(?:concurrenc(?:y|ies)|loads?|(?:number of )?(?:concurrent |parallel )?(?:users|clients|requests|reqs)|"
    r"batch(?:[-_ ]?sizes?|es)?|bs|conc)"
)
_SERVED: tuple[tuple[str, str, Callable[[str], int | None]], ...] = (
    (r"(?:request[-_ ]?)?rates?|qps|rps|req(?:uest)?s?/s|requests per second", "workload.request_rate", count),
    (r"(?:input|prompt)[-_ ]?(?:len(?:gth)?s?|tokens|sizes?)|isls?|prompts|inputs", "workload.input_len",
     context_length),
    (r"(?:output|answer|response)[-_ ]?(?:len(?:gth)?s?|tokens|sizes?)|osls?|answers|outputs", "workload.output_len",
     context_length),
    (_LOAD, "workload.concurrency", count),
)  # fmt: skip
_USERS_TO = re.compile(
    rf"\bscal(?:e|es|ing)\b(?:(?![.?!])[^\d\n])*?(?:\b(?:from\s+)?({_N})(?:\s+{_LOAD})?{_TO}|\bto\s+)({_LAST})"
    rf"\s+{_LOAD}\b",
    re.I,
)
_CURVE = re.compile(
    rf"\b(?:against|versus|vs\.?|over|as a function of|by|per|sweep(?:ing)?|vary(?:ing)?|different|various|"
    rf"(?:chang|var|grow|depend|scal|behav)\w* (?:with|on))"
    rf"(?: the)? {_LOAD}\b(?!\s*\d)|\b(?:load|concurrency|latency|throughput) (?:curve|sweep|plot)\b",
    re.I,
)
_SERVED_TRIGGER = re.compile(
    r"\b(?:sweep(?:ing)?|scan(?:ning)?|vary(?:ing)?|plot|compare|table of|against|versus|vs|over|from|for|at|with)\b",
    re.I,
)
_JOINED = re.compile(r"(?:\s?x)?\W{0,2}(?:(?:for|of|as|in) (?:the |my |our )?)?")
# 'How does the sequence length affect step time? Say 2k up to 32k': the values stand far behind the field.
_AFFECTS = r"(?:affects?|influences?|impacts?|chang\w+|driv\w+|matters?|hurts?|helps?)"
_START, _SWEEPS = re.compile(""), re.compile(r"\b(?:sweep|scan|curve|table)\b", re.I)
_CURVE_CLIENTS = (1, 256)
_FEW = 3


def read_sweep(page: Page, serving: bool = False) -> SweepQuestion | None:
    """The question for a range, if there is one; its words are blanked, so that its numbers are not read as values."""
    if serving and (found := _load_sweep(page)):
        return found
    weak = bool(_WEAK.search(page.rest))
    if not serving and (match := _FROM_NODES.search(page.rest)) and (match[1] or _SCALING.search(page.rest)):
        page.take(match.start(2), match.end(3))
        return SweepQuestion("cluster.count", (count(match[2]), count(match[3])), True, weak, True)
    if match := _SCALES_TO_EACH.search(page.rest):
        words = page.take(match.start(1), match.end(1))
        sizes = tuple(int(number) for number in re.findall(r"\d+", words))
        return SweepQuestion(
            "cluster.count", (sizes[0], sizes[-1]) if match[2] else sizes, bool(match[2]), weak, bool(match[2])
        )
    if match := _SCALES_TO.search(page.rest):
        nodes = bool(re.match(NODES, match[4], re.I))
        # The devices behind the number are still to be read: they may be named; so is what stands before it.
        page.take(match.start(1) if match[1] else match.start(2), match.end())
        first = count(match[1]) if match[1] else None
        return SweepQuestion("cluster.count", (first, count(match[2])), True, weak, nodes)
    if match := _SCALES.search(page.rest):
        # What stands before 'scale' is of the run.
        page.take(*match.span("word" if match["word"] else 0))
        return SweepQuestion("cluster.count", (None, None), True, weak)
    if found := _effect(page, _OF_LAYOUT if serving else _NUMBERED):
        return found
    if trigger := _TRIGGER.search(page.rest):
        return _field_sweep(page, trigger, weak, _OF_LAYOUT if serving else (*_NUMBERED, *_WORDED))
    # "Tokens/s at 8, 16, 32 GPUs": three values of one thing are a range without a word for it.
    start = None if serving else _START.match(page.rest)
    return _field_sweep(page, start, weak, _NUMBERED, _FEW) if start else None


def alternatives(sizes: Sequence[tuple[str, Any]]) -> SweepQuestion | None:
    """'TP 4 or TP 8?' as a sweep of the one layout size that is given several values; `sizes` are (path, value)."""
    for path in dict.fromkeys(path for path, _ in sizes):
        values = tuple(dict.fromkeys(value for other, value in sizes if other == path))
        if len(values) > 1:
            return SweepQuestion(path, values)
    return None


def _load_sweep(page: Page) -> SweepQuestion | None:
    """Of serving: 'from 1 to 256 users', 'at 1, 8 and 64 clients', 'throughput against concurrency'."""
    if match := _USERS_TO.search(page.rest):
        first, last = count(match[1]) if match[1] else 1, count(match[2])
        if first and last and first < last:
            page.take(match.start(), match.end())
            return SweepQuestion("workload.concurrency", tuple(_doubled(first, last)))
    # "Input length 1k 4k 16k sweep": the word may stand behind.
    start = [match for match in [_START.match(page.rest)] if match]
    weak = ("for", "at", "with", "over", *([] if _SWEEPS.search(page.rest) else [""]))
    for trigger in (*_SERVED_TRIGGER.finditer(page.rest), *start):
        # Two numbers with a comma between them may be of two things; three are a list.
        least = _FEW if trigger[0].lower() in weak else 2
        if found := _field_sweep(page, trigger, False, _SERVED, least):
            return found
    if match := _CURVE.search(page.rest):
        page.take(match.start(), match.end())
        return SweepQuestion("workload.concurrency", tuple(_doubled(*_CURVE_CLIENTS)))
    return None


def _effect(page: Page, fields: Sequence[tuple[str, str, Callable[[str], int | None]]]) -> SweepQuestion | None:
    for pattern, path, reads in fields:
        asks = re.search(
            rf"\bhow (?:much )?(?:does|do|would|will) (?:the )?(?:{pattern}) {_AFFECTS}\b", page.rest, re.I
        )
        match = asks and (_RANGE.search(page.rest, asks.end()) or _LIST.search(page.rest, asks.end()))
        if asks and match and (values := _values(match, reads)):
            page.take(asks.start(), asks.end())
            page.take(match.start(), match.end())
            return SweepQuestion(path, values)
    return None


def _field_sweep(
    page: Page, trigger: re.Match[str], weak: bool, fields: Sequence[_Field], least: int = 2
) -> SweepQuestion | None:
    """'sweep seq_len 4k 8k 16k': the field that is named first behind the trigger, with at least so many values."""
    named: list[tuple[int, int, str, Callable[[str], int | None] | tuple[str, ...]]] = []
    for pattern, path, reads in fields:
        if match := re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.I).search(page.rest, trigger.end()):
            named.append((match.start(), -match.end(), path, reads))
    if not named:
        return None
    start, minus_end, path, reads = min(named, key=lambda item: item[:2])
    if callable(reads):
        found = _numbers(page, trigger.start(), start, -minus_end, path, reads)
        if found is None or len(found[0]) < least:
            return None
        values, first, last = found
        page.take(trigger.start(), trigger.start() + 1)
        page.take(first, last)
        return SweepQuestion(path, values, weak=weak and path == "cluster.count")
    words = [
        word for word in reads if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page.rest[-minus_end:], re.I)
    ]
    if len(words) < 2:
        return None
    for word in (*words, page.rest[trigger.start() : -minus_end]):
        if match := re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page.rest, re.I):
            page.take(match.start(), match.end())
    return SweepQuestion(path, tuple(words), weak=weak and path == "cluster.count")


def _numbers(
    page: Page, begin: int, start: int, end: int, path: str, reads: Callable[[str], int | None]
) -> tuple[tuple[Any, ...], int, int] | None:
    """(Values, where their words start and end): numbers behind the field's name ('seq_len 4k 8k'), or right before it
    ('8, 16 and 32 GPUs')."""
    for rule in (_RANGE, _LIST):
        behind, before = rule.search(page.rest, end), rule.search(page.rest, begin)
        near = behind if behind and behind.start() - end <= 12 else None
        if near is None and before and _JOINED.fullmatch(page.rest, before.end(), max(start, before.end())):
            near = before if before.end() <= start else None
        if near and (values := _values(near, reads)):
            return values, min(start, near.start()), max(end, near.end())
    return None


def _values(match: re.Match[str], reads: Callable[[str], int | None]) -> tuple[int, ...] | None:
    """The numbers of a list, or those of a range, doubled or in steps; None where they are none of the field's."""
    between = match.re is _RANGE
    listed = _GROUPED.sub(r"\1\2", match[0]) if ", " in match[0] else match[0]
    texts = [text for text in match.groups() if text] if between else re.findall(_N, listed, re.I)
    numbers = [number for text in texts if (number := reads(text)) is not None]
    if len(numbers) < len(texts) or (between and numbers[0] >= numbers[1]):
        return None
    return tuple(_doubled(*numbers) if between else numbers)


def _doubled(start: int, stop: int, step: int | None = None) -> list[int]:
    """From start to stop, doubled or in steps; a sweep takes no more than the tool's limit, which refuses the rest."""
    if step:
        return list(range(start, stop + 1, step))[:1000]
    values = [max(1, start)]
    while values[-1] * 2 < stop:
        values.append(values[-1] * 2)
    return [*values, stop]
