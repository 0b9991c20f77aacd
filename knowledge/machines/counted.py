"""How many devices a text names: '8xh100', '4 nodes of 8xH200', 'two H100 boxes', 'half an NVL72', 'p5.48xlarge'."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from knowledge.machines.catalogue import device_words, find_accelerator
from knowledge.machines.naming import accelerator_tokens
from knowledge.machines.offered import is_rented, machines_called
from knowledge.names import Match

_PARTS = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "dual": 2, "pair": 2, "three": 3, "triple": 3, "four": 4,
    "quad": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10, "twelve": 12, "sixteen": 16,
}  # fmt: skip
_MACHINES = r"(?:nodes?|box(?:es)?|machines?|servers?|hosts?|instances?|systems?|racks?|pods?)"
_MOST = 1_000_000
# In front: '2 x', 'two', 'half of an', with what they count: '4 nodes of'.
_FRONT = re.compile(
    rf"\s*(?P<many>\d{{1,7}}|{'|'.join(_NUMBERS)}|{'|'.join(_PARTS)})(?:\s*[x*×](?=\s|[a-z\d])(?!\s*\d{{1,2}}\s*$)\s*|\s+(?!\s|[x*×]\s*\d|\d{{1,3}}\s*g(?:b|ib)?\b))"
    rf"(?:of\s+)?(?P<machines>(?<!\S){_MACHINES}\b\s*(?:of|with|x|:|,)?\s*)?"
)
# Behind: 'boxes', 'x 8', '8x', '(8x)', '8-GPU', 'GPUs'; the x of rtx5090 counts nothing.
_BEHIND = re.compile(
    rf"(?:\s+(?P<machines>{_MACHINES})|(?<![a-z])\s*[x*×]\s*(?P<many>\d{{1,7}})|\s+(?P<before>\d{{1,4}})\s*[x×]|\s*\((?:x\s*)?(?P<noted>\d{{1,7}})\s*x?\)"
    r"|\s+(?P<alike>\d{1,4})(?:-gpus?|\s?(?:gpus|cards|chips|accelerators))|\s+(?:gpus?|cards?|chips|accelerators))\s*$"
)
# NamedDevices that stand together by a name of theirs: GB200 NVL72, NVL4; not the 94 GB of an H100 NVL.
_RACK = re.compile(r"nvl\s*-?(\d{1,3})(?!\s*g|\d)")
# A machine's name that spells what it has: '-8xh100ib-', 'gb200-4x', '-gb200x72'.
_SPELLED = re.compile(
    r"(?<=[a-z\d])[-_](?P<count>\d{1,3})x(?P<device>[a-z]+\d+[a-z]*?)(?:ib)?(?=[-_]|$)"
    r"|(?:^|[-_])(?P<first>[a-z]+\d+[a-z]*?)(?:-(?=\d+x)|x)(?P<behind>\d{1,3})x?$"
)
_WORDY = re.compile(r"[\s-][a-z]{3}|[a-z]{3}[\s-]|[-_]\d+x|\dx\d")
"""What names with words of shops have, and those of clouds' machines."""
_GRES = re.compile(r"(?i)(?:gres/)?gpu:([a-z][\w.-]*?)(?::(\d{1,3}))?")
"""Devices as Slurm counts them: gpu:h100:8 (gres.conf)."""
_STRANGE = 0.15
"""What words that no device has cost a name's score."""
_BOX = re.compile(r"\b(?:dgx(?![\s-]station)|hgx)\b")


@dataclass(frozen=True)
class NamedDevices:
    """The accelerator that a text names; `count` of it in machines of `per_node`, None where it does not say."""

    match: Match[Accelerator]
    count: int | None = None
    per_node: int | None = None


def find_devices(text: str) -> NamedDevices:
    """What a text that names an accelerator, a machine or several of them stands for. Raises PlanError as
    `find_accelerator` does, also for parts of machines that are no whole devices."""
    # Digits of other scripts count as well.
    text = unicodedata.normalize("NFKC", text)
    if not is_rented(text):
        text = _worded(text)
    if match := _GRES.fullmatch(text.strip()):
        text = " ".join(filter(None, (match[2] and f"{match[2]}x", match[1])))
    try:
        return _of_machines(_device_alone(text), text, [], False)
    except PlanError as error:
        if "ambiguous" in error.problem:
            raise
        name, factors, are_machines = _without_counts(text.strip().casefold())
        plain = _RACK.sub("", name)
        if not factors and not are_machines and plain == name and not _WORDY.search(name):
            raise
        named = name if factors or are_machines else plain
        match = _singular(named) or _sold_as(named)
        if match is None:
            return _in_machine_name(text, error)
    return _of_machines(match, name, factors, are_machines)


_LAMBDA = re.compile(r"(?i)\s*gpu[\s_]+(\d+x[\s_].*)")
"""Machines of Lambda: gpu_8x_h100_sxm5."""
_LIGHTNING = re.compile(r"(?i)(?:machine\.)?(\w+?)_x_(\d{1,3})")
"""Those of Lightning: Machine.H200_X_8."""
_VERDA = re.compile(r"(?i)(\d{1,2})([a-z]+\d+[a-z]?)(?:\.(\d+)s)?\.\d+v")
"""Those of Verda, with the memory of a device where there are several: 8A100.40S.176V."""

_SCALEWAY = re.compile(r"(?i)([a-z]+\d+s?(?:-sxm)?)-(\d)-(\d{2,3})g")
"""Those of Scaleway: H100-SXM-2-80G."""


def _worded(text: str) -> str:
    """What clouds count with their marks, as a count and a name."""
    if match := _LAMBDA.match(text):
        return match[1].replace("_", " ")
    if match := _LIGHTNING.fullmatch(text.strip()):
        return f"{match[2]}x {match[1]}"
    if match := _SCALEWAY.fullmatch(text.strip()):
        return f"{match[2]}x {match[1]} {match[3]}gb"
    if match := _VERDA.fullmatch(text.strip()):
        return f"{match[1]}x {match[2]}" + (f" {match[3]}gb" if match[3] else "")
    return text


def _device_alone(text: str) -> Match[Accelerator]:
    """The device of a name that counts none; what a cloud calls its machines so is said."""
    match = find_accelerator(text)
    if match.note is None and (machines := machines_called(text)):
        return replace(match, note=f"{text.strip()!r} is taken for one {match.value.name}; {machines}")
    return match


def _singular(name: str) -> Match[Accelerator] | None:
    """The device of a name, which may be a plural: the s of L40S is its own, that of 4090s none."""
    for spelled in dict.fromkeys((name, re.sub(r"(?<=\d)s$", "", name))):
        try:
            return find_accelerator(spelled)
        except PlanError as error:
            if "ambiguous" in error.problem:
                raise
    return None


def _sold_as(name: str) -> Match[Accelerator] | None:
    """The card of a name with words that no device has, as shops put around it: 'Sapphire Pulse RX 7900 XT'."""
    known = device_words()
    words = re.findall(r"[^\s-]+", name)
    strange = [
        word
        for word in words
        if re.fullmatch(r"[a-z]{2,}\d?[a-z]?", word)
        and word not in _PARTS
        and not known & set(accelerator_tokens(word))
    ]
    rest = " ".join(word for word in words if word not in strange)
    if not strange or not re.search(r"\d{3}", rest) or (match := _singular(rest)) is None or not match.value.personal:
        return None
    sentence = f"{name!r} read as {match.value.name}: {', '.join(strange)} is of no device that is known"
    return replace(match, note=sentence, score=max(match.score - _STRANGE, 0.0))


def _in_machine_name(text: str, error: PlanError) -> NamedDevices:
    """The devices that a cloud's name of a machine spells: 'gd-8xh100ib-i128', 'gb200-4x', 'u-p6e-gb200x72'. Raises
    the error of the whole name where it spells none."""
    spelled = _SPELLED.search(text.strip().casefold())
    named = "" if spelled is None else spelled["device"] or spelled["first"]
    match = _singular(named) if named else None
    if spelled is None or match is None:
        raise error from None
    count = int(spelled["count"] or spelled["behind"])
    sentence = f"{text.strip()!r} read as {count} x {match.value.name}"
    match = replace(match, note=sentence, score=max(match.score - _STRANGE, 0.0))
    return NamedDevices(match, count, min(count, match.value.per_node))


def _without_counts(text: str) -> tuple[str, list[Fraction], bool]:
    """(The name alone, what it is multiplied by, whether that counts machines)."""
    factors: list[Fraction] = []
    are_machines = False
    while len(factors) < 3 and (quantity := _FRONT.match(text)) and quantity.end() < len(text):
        if len(quantity["many"]) > 2 and _is_of_the_device(quantity["many"], text[quantity.end() :], bool(factors)):
            break  # the number of the device itself: two 7900 XTX
        factors.append(
            _PARTS.get(quantity["many"]) or Fraction(_NUMBERS.get(quantity["many"]) or int(quantity["many"]))
        )
        are_machines |= bool(quantity["machines"])
        text = text[quantity.end() :]
    while (quantity := _BEHIND.search(text)) and quantity.start():
        if quantity["alike"] and are_machines and not factors:
            factors.append(Fraction(1))  # 'L40S 4-GPU server': a machine with so many
        if number := quantity["many"] or quantity["before"] or quantity["noted"] or quantity["alike"]:
            factors.append(Fraction(int(number)))
        are_machines |= bool(quantity["machines"])
        text = text[: quantity.start()]
    return text, factors, are_machines


def _is_of_the_device(number: str, rest: str, is_counted: bool) -> bool:
    """Whether a number in front of words without one is the device's own: 'two 7900 XTX', '3080 laptop 16gb'."""
    has_number = re.search(r"\d", re.sub(r"\b\d+\s*g(?:b|ib)?\b", "", rest))
    return not has_number and (is_counted or number in device_words())


def _of_machines(match: Match[Accelerator], name: str, factors: list[Fraction], are_machines: bool) -> NamedDevices:
    """What `factors` of a name come to: of machines where the name is one, or they count machines."""
    device, name = match.value, name.casefold()
    # '8x HGX H100' are eight of them on their board, '2 HGX H100' two boards.
    is_board = "hgx" in name and not are_machines and bool(factors) and factors[0] % device.per_node == 0
    own = match.devices or (None if is_board else _by_name(device, name))
    sentence = f"{name!r} stands for {own} x {device.name}" if own and not match.devices else ""
    if own is None and are_machines and len(factors) < 2:
        own = device.per_node
        sentence = f"{own} x {device.name} in a machine, as usual"
    if own is None and not factors:
        return NamedDevices(match)
    count = math.prod(factors, start=Fraction(own or 1))
    if count.denominator != 1 or not 1 <= count <= _MOST:
        raise PlanError("cluster.accelerator", f"{name!r} has {own or 1} devices: {count} is no number of them")
    per_node = match.devices if match.devices and match.devices <= device.per_node else None
    if own is None and len(factors) > 1:
        per_node = int(factors[-1])
    note = "; ".join(filter(None, (match.note, sentence))) or None
    return NamedDevices(replace(match, note=note), int(count), min(per_node, int(count)) if per_node else None)


def _by_name(device: Accelerator, name: str) -> int | None:
    """NamedDevices of a rack or a box that is named itself; None for a device."""
    if (rack := _RACK.search(name)) and 1 < int(rack[1]) <= device.scaleup_domain:
        return int(rack[1])
    return device.per_node if _BOX.search(name) and device.per_node > 1 else None
