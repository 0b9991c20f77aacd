"""Short follow-ups that name no field: 'half the batch', 'or selective', 'no, the other one', 'two of the four nodes
are gone'. They are read by what the plan holds, what changed last and what was set side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.comparing import BOTH
from agent.offline.numbers import FACTORS, WHOLE, count
from agent.offline.page import ACCELERATOR, Page
from agent.offline.slots import Device, Relative, Slot
from agent.offline.vocabulary import TAKEN_BACK
from planner.partial import get

_FACTORS = FACTORS | {"a third": 1 / 3, "a quarter": 0.25, "a fifth": 0.2, "a tenth": 0.1}
_FACTOR = r"\b(?P<factor>double|twice|triple|quadruple|halve|half|a (?:third|quarter|fifth|tenth))\b(?: of)?"
_SCALED = re.compile(rf"{_FACTOR} (?:that|it|this)\b(?! (?:many|gpus?|cards?))", re.IGNORECASE)
# What is scaled by its name, and the Plan paths that it may mean: the first that the plan has.
_SCALABLE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:global |micro[- ]?)?batch(?:[- ]size)?", ("workload.global_batch", "workload.micro_batch")),
    (r"(?:sequence|context|seq)(?:[- ](?:length|len|window)|s)?|lengths?|window", ("workload.seq_len",)),
    (r"data(?:set)?|tokens|texts?|corpus", ("workload.dataset_tokens", "workload.dataset_samples")),
    (r"epochs", ("workload.epochs",)),
    (r"(?:lora )?rank", ("workload.lora.rank",)),
    (r"prompts?(?: length)?|inputs?(?: length)?", ("workload.input_len",)),
    (r"(?:answers?|outputs?|responses?)(?: length)?", ("workload.output_len", "workload.response_len")),
    *(
        (rf"{short}|{long}[- ]parallel\w*(?: (?:size|degree))?", (f"layout.{short}",))
        for short, long in (("tp", "tensor"), ("pp", "pipeline"), ("cp", "context"), ("ep", "expert"), ("dp", "data"))
    ),
)
_NAMED = tuple(
    (re.compile(rf"{_FACTOR}(?: the| that| my| our| its)? (?:{words})(?!\w| to \d)", re.IGNORECASE), paths)
    for words, paths in _SCALABLE
)
# 'Take zero1 out again': the value that is named with it is the one that goes.
_OUT = tuple(
    (
        re.compile(
            rf"\b(?:take|leave|throw)(?: the| my)? (?:{words})(?:[- ]?\d+)? (?:back )?(?:out|away)\b(?: again)?|"
            rf"\b(?:drop|remove|unset|take out|leave out|get rid of)(?: the| my)? (?:{words})-?\d+\b"
            r"(?! ?(?:to|with) \d)",
            re.IGNORECASE,
        ),
        path,
    )
    for words, path in TAKEN_BACK
)
_NODES = r"(?:nodes?|machines?|servers?|boxes|hosts?|gpus?|cards?|devices?)"
_GONE = (
    r"(?:gone|away|down|lost|offline|dead|broken|fail\w*|die|died|dies|removed|reclaimed|elsewhere|unavailable|"
    r"dropped?|drop out|out)"
)
_OF_THE = rf"({WHOLE})\s+of (?:the|our|my|those|these) ({WHOLE})\s+{_NODES}"
_LOST = (
    re.compile(rf"{_OF_THE}\b[^.?!]{{0,24}}?\b{_GONE}\b(?:[^.?!]{{0,12}}?\bfrom us\b)?", re.IGNORECASE),
    re.compile(rf"\b(?:lose|lost|losing|without|minus)\s+{_OF_THE}\b", re.IGNORECASE),
)
# 'What if I add a second 3090?', 'one more node', 'with 2 more nodes'
_ADDED = re.compile(
    rf"\b(?:(?P<ordinal>(?:a|the) (?:second|third|fourth))|another|(?P<more>one|{WHOLE})\s+"
    rf"(?:more|extra|additional))\s+"
    rf"(?:of (?:them|those|these)\b|{ACCELERATOR}+s?|(?P<noun>{_NODES})\b)",
    re.IGNORECASE,
)
_ORDINALS = {"second": 2, "third": 3, "fourth": 4}
# A value that says which field it is of only by what changed last.
_VALUES: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "layout.recompute": (
        (r"selective(?:ly)?", "selective"),
        (r"full(?:y)?", "full"),
        (r"none|off|without(?: any)?|nothing", "none"),
    ),
    "layout.offload": (
        (r"(?:the )?optimi[sz]er", "optimizer"),
        (r"(?:the )?(?:params|parameters|weights)", "params"),
        (r"(?:the )?activations", "activations"),
        (r"none|off|without(?: any)?|nothing", "none"),
    ),
}
_BACK_TO = re.compile(r"\bback (?:to|on|onto)\b", re.IGNORECASE)
_RESTORED = tuple(
    (
        re.compile(
            rf"\b(?:put|bring|add|set|take|want|have|need)(?: the| my| our)? (?:{words})(?: back| again)\b|"
            rf"\brestore(?: the| my| our)? (?:{words})\b",
            re.IGNORECASE,
        ),
        path,
    )
    for words, path in TAKEN_BACK
)
# 'Put the two cards next to each other' counts nothing.
_PAIR = re.compile(r"\b(?:the|these|those|both)\s+(?:2\s+)?(?:cards?|gpus?|devices?|machines?|nodes?)\b", re.IGNORECASE)
_FILLER = (
    r"(?:and|or|but|no|nope|hm+|then|ok(?:ay)?|so|what about|how about|maybe|try|make it|rather|instead|just|now|"
    r"with|please|that|it|too|also)"
)
OTHER = re.compile(
    r"\b(?:the )?other (?:one|card|gpu|device|model|engine|option|two)\b|\bthe others?\b(?=\W*$)", re.IGNORECASE
)


def read_follow_up(
    page: Page, plan: Mapping[str, Any], recent: str | None, topic: Mapping[str, Any]
) -> list[Slot | Relative]:
    """Slots of a follow-up to `plan`; the words are blanked."""
    if not plan:
        return []
    if re.search(BOTH, page.text.lower()):
        for match in page.find(_PAIR):
            page.take(*match.span())
    return [
        *(Slot(path, None, page.take(*match.span())) for rule, path in _OUT for match in page.find(rule)),
        *_lost(page),
        *_added(page, plan),
        *_scaled(page, plan, recent),
        *_valued(page, recent),
        *_other(page, plan, topic.get("alternatives") or {}),
        *_restored(page, topic.get("plans") or ()),
    ]


def _restored(page: Page, plans: Sequence[Mapping[str, Any]]) -> list[Slot]:
    """'Put the deadline back': the one that there was; `plans` are the earlier ones, the latest last."""
    found = []
    for rule, path in _RESTORED:
        for match in page.find(rule):
            words = page.take(*match.span())
            value = next((value for one in reversed(plans) if (value := get(one, path)) is not None), None)
            found += [Slot(path, value, words, f"{words} read as {value}")] if value is not None else []
    return found


def counted_before(text: str, devices: Sequence[Device], plans: Sequence[Mapping[str, Any]]) -> list[Slot]:
    """'Back to the 4090s': as many of them as there were."""
    match = _BACK_TO.search(text)
    ids = {device.id for device in devices if device.count is None}
    if match is None or len(ids) != 1:
        return []
    earlier = next((one for one in reversed(plans) if get(one, "cluster.accelerator") in ids), {})
    counted = ((f"cluster.{name}", get(earlier, f"cluster.{name}")) for name in ("count", "per_node"))
    return [Slot(path, value, match[0]) for path, value in counted if value is not None]


def _lost(page: Page) -> list[Slot | Relative]:
    for rule in _LOST:
        for match in page.find(rule):
            gone, had = count(match[1]), count(match[2])
            if gone and had and gone < had:
                return [Relative("cluster.count", (had - gone) / had, page.take(*match.span()))]
    return []


def _added(page: Page, plan: Mapping[str, Any]) -> list[Slot | Relative]:
    had = get(plan, "cluster.count")
    if not had or not (match := _ADDED.search(page.rest)):
        return []
    whole = re.match(r"nodes?|machines?|servers?|box|hosts?", match["noun"] or "", re.IGNORECASE)
    each = (get(plan, "cluster.per_node") or had) if whole else 1
    more = count(match["more"] or "1") or 1
    number = _ORDINALS[match["ordinal"].split()[1].lower()] * each if match["ordinal"] else had + more * each
    words = page.text[match.start() : match.end()]
    if match["more"]:
        page.take(*match.span("more"))
    return [Slot("cluster.count", number, words, f"{words} read as {number} devices")]


def _scaled(page: Page, plan: Mapping[str, Any], recent: str | None) -> list[Slot | Relative]:
    if recent and recent not in ("model", "cluster.count") and (match := _SCALED.search(page.rest)):
        # "And if I halve that?" is about what changed last.
        return [Relative(recent, _FACTORS[match["factor"].lower()], page.take(*match.span()))]
    for rule, paths in _NAMED:
        for match in page.find(rule):
            path = next((path for path in paths if get(plan, path)), paths[0])
            return [Relative(path, _FACTORS[match["factor"].lower()], page.take(*match.span()))]
    return []


def _valued(page: Page, recent: str | None) -> list[Slot | Relative]:
    for words, value in _VALUES.get(recent or "", ()):
        if match := re.match(
            rf"^\W*(?:{_FILLER}\W+)*(?P<value>{words})(?:\W+{_FILLER})*\W*$", page.rest, re.IGNORECASE
        ):
            return [Slot(str(recent), value, page.take(*match.span("value")))]
    return []


def _other(page: Page, plan: Mapping[str, Any], alternatives: Mapping[str, list[Any]]) -> list[Slot | Relative]:
    if not (match := OTHER.search(page.text)):
        return []
    for path, values in alternatives.items():
        others = [value for value in values if value != get(plan, path)]
        if len(others) == 1:
            words = page.take(*match.span())
            return [Slot(path, others[0], words, f"{words} read as {others[0]}")]
    return []
