"""Counted hardware: '8x H100', 'two nodes of 8', 'p5.48xlarge x2', 'v5p-256', '16 GPUs', 'double the GPUs'."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from agent.offline.catalogue import Catalogue, folded
from agent.offline.names import accelerator_text
from agent.offline.numbers import FACTORS, WHOLE, count
from agent.offline.page import ACCELERATOR, INSTANCE, MODEL, Page, Spotted
from agent.offline.slots import Device, Question, Relative, Slot
from estimator.errors import PlanError

_A = f"{ACCELERATOR}+"
_I = f"{INSTANCE}+"
_GPU = r"(?:gpus?|accelerators?|devices?|cards?|chips?|tpus?|npus?|hpus?)\b"
# 'A single MI300X host' is a machine, 'a single MI300X host Llama' is a question.
_NODE = rf"(?:nodes?|hosts?(?!\s+(?:(?:the|an?|my|our) )?{MODEL})|machines?|servers?|box(?:es)?|instances?)\b"
_TIMES = r"\s*(?:x|\*|times)?\s*"
_GLUED = r"\s*[x*]\s*"


def _rule(pattern: str) -> re.Pattern[str]:
    # A number that was spelled out has more than one space behind it.
    return re.compile(pattern.replace("N_ ", r"N_\s+").replace("N_", f"({WHOLE})"), re.IGNORECASE)


_TWO_NUMBERS = r"(?<![\w.$-])(\d+)\s*[x*]\s*(\d+)\s*(?:[x*]\s*)?"
# Nodes times devices first, then devices, then bare nodes.
_NODES_OF = (
    _rule(
        rf"N_{_TIMES}{_NODE}\s*(?:of|x|\*|with|having|,?\s*each(?: with| has| having| of)?)\s*"
        rf"N_{_TIMES}(?:{_A}|{_GPU})?(?:\s*each)?"
    ),
    _rule(rf"N_{_TIMES}{_NODE}\s*,\s*N_{_TIMES}(?:(?:{_A}|{_GPU})(?:\s*each)?|each\b)"),
    re.compile(rf"{_TWO_NUMBERS}(?:{_A}|{_GPU})", re.IGNORECASE),
    # "two 8xH100 nodes", "one H100 x8 node"
    _rule(rf"N_\s+(\d+)\s*[x*]\s*{_A}\s*{_NODE}"),
    _rule(rf"N_\s+{_A}\s*[x*]\s?(\d+)\s*{_NODE}"),
)
_OVER_NODES = _rule(
    rf"N_{_TIMES}(?:{_A}|{_GPU})\s*(?:\w+ )?(?:over|across|on|in)\s*N_\s*{_NODE}"
    rf"(?:\s*\(\s*(?:with |of )?(?:\d+|[a-z]+)\s*(?:{_A}|{_GPU})?\s*(?:each|per {_NODE}|/ ?node|in each)\s*\))?"
)
_PER_NODE = _rule(
    rf"\bin {_NODE} of N_|N_\s*(?:{_A}|{_GPU})?\s*(?:per|/|a|each) ?-?{_NODE}|\bper_node\s*[=:]?\s*N_|"
    rf"N_\s*(?:{_A}|{_GPU})\s*each\b"
)
_NODES = _rule(rf"N_[\s-]*(?:of (?:the|those|these|our|my)\s+)?(?:{_A}\s*)?{_NODE}(?:\s*(?:of|with)\s*(?={_A}))?")
_RACKS = _rule(rf"N_{_TIMES}(?:full )?(?:{_A}\s*)?(?:nvl-?\d+\s*)?racks?\b")
_RACK = re.compile(r"\s*(?:nvl-?\d+\s*)?racks?\b", re.IGNORECASE)
_DIGITS = r"\d{1,3}(?:,\d{3})+|\d+"
_PIECES = r"(?:(?:pieces?|pcs\.?|units?)\s+(?:of\s+)?)?"
_DEVICES = (
    _rule(rf"N_(?:{_GLUED}|\s*of\s*|\s+(?:x\s+)?|-)?(?:\s*{_PIECES}(?:the\s+)?(?:gpus?|cards?)\s+)?{_A}"),
    _rule(rf"N_\s*{_PIECES}{_A}"),
    re.compile(rf"{_A}\s*(?:[x*]|,?\s*times\b)\s*({_DIGITS})", re.IGNORECASE),
    re.compile(rf"{_A}\s*\(\s*x?\s*({_DIGITS})\s*x?\s*\)", re.IGNORECASE),
)
_GPUS = (
    _rule(rf"N_{_TIMES}{_PIECES}{_GPU}"),
    _rule(r"N_\s+of (?:them|'?em|those|these)\b"),
    _rule(r"\b(?:gpus?|count|accelerators?)\s*[=:]\s*N_"),
    _rule(
        r"(?<!per )\b(?:gpus?|devices?|cards?|accelerators?|chips?)(?: counts?| numbers?)?"
        r"(?: (?:is|are|to|of|up|from \d+))+ N_"
        r"(?!\s*(?:gi?b|%|tokens?|k\b|hours?|days?))"
    ),
)
_MACHINES = (
    _rule(rf"N_(?:{_GLUED}|\s+(?:x\s+)?)(?:(?:aws|azure|gcp|google|oci)\s+)?{_I}"),
    re.compile(rf"{_I}\s*(?:[x*]|times)\s*(\d+)", re.IGNORECASE),
)
_ONE = re.compile(rf"\b(?:an?|single|one|my|this)\s+(?:single\s+)?{_A}", re.IGNORECASE)
_DOUBLE = re.compile(
    r"\b(?P<word>double|twice|halve|half|triple|quadruple)\b(?: as many| the number of|"
    rf" of)?(?: the| my| our)?(?: {_GPU}| {_NODE}| {_A}| them\b| that many\b| as many\b| those\b|(?= it\b))",
    re.IGNORECASE,
)
_OF_EACH_KIND = _rule(r"N_ of (?:each|both)\b")
_OF_EACH = _rule(rf"N_(?: {_GPU})?(?: of)? (?:each|both)\b")
# A device's memory and form where they do not stand in its name.
_SIZE = re.compile(r"(?<![\w.$-])(?:\d+\s?x\s?)?(\d{1,3})\s?g(?:i?b|igs?)?s?\b", re.IGNORECASE)
_SIZE_BEHIND = re.compile(rf"[^.?!;\d]{{0,16}}?{_SIZE.pattern}", re.IGNORECASE)
_FORM = re.compile(r"\b(?:sxm\d?|pcie)\b", re.IGNORECASE)
# Before a device that is to be replaced.
_LEFT = re.compile(
    r"\b(?P<word>from|instead of|rather than|not|drop|(?:swap|replace|exchange|trade)(?: out)?)\s+(?:on\s+)?"
    r"(?:(?:the|my|our|\d+\s*x?)\s*)*$",
    re.IGNORECASE,
)
# Behind a device that nobody may use: 'a 4090, but someone games on it'.
_BUSY = re.compile(
    rf"s?,?\s*(?:but|though|although|which|that|is|are)\b(?:(?!\bof\b)[^.?!;\d{MODEL}{ACCELERATOR}{INSTANCE}]){{0,32}}?"
    r"\b(?:games?|gaming|busy|taken|occupied|in use|being used|used by|broken|dead|off[- ]limits|"
    r"unavailable|(?:not|n't) available|belongs?|someone else's)\b",
    re.IGNORECASE,
)
# "What to expect from 8 H100s" leaves nothing; "from H100 to H200" does.
_ONWARD = re.compile(rf"{_A}s?\s*(?:\w+\s+)?(?:on)?to\b", re.IGNORECASE)

# Cloud TPU slice names: the number counts TensorCores up to v4 and for v5p (two a chip), chips for v5e and v6e.
# Source: Google Cloud TPU documentation, "TPU v5p", "TPU v4", "TPU v5e" and "TPU v6e" configuration pages.
_CORES_PER_CHIP = {"v2": 2, "v3": 2, "v4": 2, "v5p": 2, "v5e": 1, "v6e": 1}
_POD = re.compile(r"(?:tpus?[- ]?)?(v[2-6][ep]?)-(\d+)$", re.IGNORECASE)


def read_hardware(
    page: Page, catalogue: Catalogue, per_node: int | None
) -> tuple[list[Slot | Relative], list[Question], list[Device]]:
    """Slots for accelerator, count, nodes and provider; questions where a name has no one meaning.

    `per_node` is the node size the session already has, for 'on 4 nodes'. The last list holds the accelerators
    in the order in which they were named; one that is only named to be left ('from H100 to H200') is none.
    """
    slots: list[Slot | Relative] = []
    questions: list[Question] = []
    devices: dict[str, Device] = {}
    counts = _counts(page)
    names = page.of("accelerator")
    for name in names:
        if _is_left(page, name) or (len(names) > 1 and _BUSY.match(page.rest, name.end)):
            continue
        found = _accelerator(name, page, catalogue, slots, questions)
        if found:
            number = counts.get(name.start, found.count)
            each = catalogue.per_rack(found.id) if number and _RACK.match(page.rest, name.end) else None
            devices.setdefault(found.id, replace(found, count=number * each if number and each else number))
    machine = _machines(page, slots)
    if machine:
        devices.setdefault(machine, Device(machine, None))
    _count(_Counting(page, slots, questions, catalogue, list(devices), None if devices else per_node))
    return slots, questions, list(devices.values())


def _is_left(page: Page, name: Spotted) -> bool:
    left = _LEFT.search(page.rest, 0, name.start)
    return bool(left and (left["word"].lower() != "from" or _ONWARD.match(page.rest, name.start)))


def _counts(page: Page) -> dict[int, int]:
    """The count beside each accelerator, by where its name starts."""
    found: dict[int, int] = {}
    for rule in _DEVICES:
        for match in page.find(rule):
            name = page.at(match.start() + match[0].index(ACCELERATOR))
            if name and (number := count(match[1])):
                found.setdefault(name.start, number)
    return found


def _accelerator(
    name: Spotted, page: Page, catalogue: Catalogue, slots: list[Slot | Relative], questions: list[Question]
) -> Device | None:
    """The accelerator of that name; a slice's name also says how many."""
    words, chips = accelerator_text(name.text), None
    if pod := _POD.match(words):
        words = f"tpu {pod[1]}"
        cores = _CORES_PER_CHIP.get(pod[1].lower(), 1)
        chips = max(int(pod[2]) // cores, 1)
        note = f"{name.text} read as {chips} chips: its number counts TensorCores, two a chip" if cores == 2 else None
        slots.append(Slot("cluster.count", chips, name.text, note))
    try:
        id, note = _look_up_beside(words, name, page, catalogue)
    except PlanError as error:
        questions.append(Question("cluster.accelerator", str(error).removeprefix("cluster.accelerator: ")))
        return None
    slots.append(Slot("cluster.accelerator", id, name.text, note))
    return Device(id, chips)


def _look_up_beside(words: str, name: Spotted, page: Page, catalogue: Catalogue) -> tuple[str, str | None]:
    """The accelerator of that name; where several have it, the one with the memory or the form that is said elsewhere:
    'A100 nodes (8x40GB)', '16 A100s, 80 GB, SXM', 'an M3 Max with 64 GB'."""
    try:
        found = _look_up(words, catalogue)
        # What has one usual meaning has another only by what stands right behind it.
        size = _SIZE_BEHIND.match(page.rest, name.end) if found[1] else None
        return (_with_memory(words, size, page, catalogue) if size else None) or found
    except PlanError as error:
        if "ambiguous" not in error.problem:
            near = _holding(words, catalogue)
            if len(near) != 1:
                raise
            id = near.pop()
            return id, f"{words} read as {id}"
        size, form = _SIZE.search(page.rest), _FORM.search(page.rest)
        more = " ".join(filter(None, (form and form[0], size and f"{size[1]}GB")))
        try:
            found = _look_up(f"{words} {more}", catalogue)
        except PlanError:
            raise error from None
        if size:
            page.take(*size.span())
        return found


def _with_memory(words: str, size: re.Match[str], page: Page, catalogue: Catalogue) -> tuple[str, str | None] | None:
    """The accelerator of that name with so much memory, whose words are blanked, or None."""
    try:
        found = _look_up(f"{words} {size[1]}GB", catalogue)
    except PlanError:
        return None
    page.take(size.start(1), size.end())
    return found


def _holding(words: str, catalogue: Catalogue) -> set[str]:
    """The accelerators whose names hold all of two or more words: 'Jetson Orin'."""
    wanted = _words_of(words)
    names = catalogue.accelerator_names if len(wanted) > 1 else ()
    return {catalogue.find_accelerator(name)[0] for name in names if wanted <= _words_of(name)}


def _words_of(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+|\d+", name.lower()))


def _look_up(words: str, catalogue: Catalogue) -> tuple[str, str | None]:
    """The name as written where the catalogue has it ('L40S'), else without its plural s ('H100s')."""
    if form := re.search(r"(?<=\d)s(?=[- ](?:\d+ ?gb|sxm|pcie|nvl))", words, re.IGNORECASE):
        named = folded(words[: form.end()].split()[-1]) in catalogue.accelerator_tokens
        words = words if named else words[: form.start()] + words[form.end() :]
    plural = re.search(r"[\w)][sS]$", words) and folded(words.split()[-1]) not in catalogue.accelerator_tokens
    return catalogue.find_accelerator(words[:-1] if plural else words)


def _machines(page: Page, slots: list[Slot | Relative]) -> str | None:
    spotted = page.of("instance")
    if not spotted:
        return None
    instance = spotted[0].value
    machines, words = 1, spotted[0].text
    for rule in _MACHINES:
        for match in page.find(rule):
            machines = count(match[1]) or 1
            words = page.take(match.start(), match.end(), INSTANCE)
            break
    slots.append(Slot("cluster.accelerator", instance.accelerator, words))
    slots.append(Slot("cluster.count", machines * instance.count, words))
    slots.append(Slot("cluster.per_node", instance.count, words))
    slots.append(Slot("goal.provider", instance.provider, words))
    return instance.accelerator


@dataclass
class _Counting:
    """What is known while devices are counted: the accelerators named, and the node size once one is known."""

    page: Page
    slots: list[Slot | Relative]
    questions: list[Question]
    catalogue: Catalogue
    ids: list[str]
    per_node: int | None


def _count(known: _Counting) -> None:
    """The first way of counting that the text uses."""
    page, slots, questions = known.page, known.slots, known.questions
    if any(isinstance(slot, Slot) and slot.path == "cluster.count" for slot in slots):
        return
    for match in page.find(_OF_EACH if known.ids else _OF_EACH_KIND) if len(known.ids) != 1 else ():
        # 'B200 vs MI355X, 64 each'
        slots.append(Slot("cluster.count", count(match[1]), _take(page, match)))
        return
    for match in page.find(_RACKS) if known.ids else ():
        racks, each = count(match[1]), known.catalogue.per_rack(known.ids[0])
        if racks and each:
            words = _take(page, match)
            slots.append(Slot("cluster.count", racks * each, words, f"{words!r} read with {each} devices per rack"))
            return
    for rule in _NODES_OF:
        for match in page.find(rule):
            nodes, each = count(match[1]), count(match[2])
            if nodes and each:
                words = _take(page, match)
                slots += [Slot("cluster.count", nodes * each, words), Slot("cluster.per_node", each, words)]
                return
    for match in page.find(_OVER_NODES):
        total, nodes = count(match[1]), count(match[2])
        if total and nodes and total % nodes == 0:
            words = _take(page, match)
            slots += [Slot("cluster.count", total, words), Slot("cluster.per_node", total // nodes, words)]
            return
    for match in page.find(_PER_NODE):
        known.per_node = count(next(group for group in match.groups() if group)) or known.per_node
        slots.append(Slot("cluster.per_node", known.per_node, _take(page, match)))
        break
    box = next((name for name in page.of("accelerator") if name.value), None)
    for match in page.find(_NODES):
        number = count(match[1])
        singular = re.search(r"(?:node|host|machine|server|box)$", match[0], re.IGNORECASE)
        if number and number > 1 and ACCELERATOR in match[0] and singular:
            # "An 8 H100 node" is one node of 8; "a 2-node cluster" has two.
            words = _take(page, match)
            slots += [Slot("cluster.count", number, words), Slot("cluster.per_node", number, words)]
            return
        _nodes(known, match, count(match[1]))
        return
    for rule in (*_DEVICES, *_GPUS):
        for match in page.find(rule):
            number = count(match[1])
            if number is None:
                continue
            if box and ACCELERATOR in match[0]:
                _nodes(known, match, number)
                return
            if number == 0:
                questions.append(Question("cluster.count", "0 devices cannot run anything; how many are there?"))
                _take(page, match)
                return
            slots.append(Slot("cluster.count", number, _take(page, match)))
            return
    for match in page.find(_DOUBLE):
        slots.append(Relative("cluster.count", FACTORS[match["word"].lower()], _take(page, match)))
        return
    for match in page.find(_ONE):
        if box:
            _nodes(known, match, 1)
        else:
            slots.append(Slot("cluster.count", 1, _take(page, match)))
        return


def _nodes(known: _Counting, match: re.Match[str], nodes: int | None) -> None:
    """'4 nodes' without a size: the session's node size, else what is usual for the accelerator, said."""
    words = _take(known.page, match)
    if not nodes:
        known.questions.append(Question("cluster.count", f"{words.strip()!r} leaves no device; how many are there?"))
        return
    per_node, note = known.per_node, None
    if per_node is None and known.ids:
        per_node = known.catalogue.per_node(known.ids[0])
        note = f"{words.strip()!r} read with {per_node} devices per node, as is usual for {known.ids[0]}"
    if per_node is None:
        known.slots.append(Slot("nodes", nodes, words))
        return
    known.slots.append(Slot("cluster.count", nodes * per_node, words, note))
    known.slots.append(Slot("cluster.per_node", per_node, words))


def _take(page: Page, match: re.Match[str]) -> str:
    """Blanks the match but keeps the marks of names, which other rules still need."""
    for position in range(match.start(), match.end()):
        if page.rest[position] not in (ACCELERATOR, INSTANCE):
            page.take(position, position + 1)
    return page.text[match.start() : match.end()]
