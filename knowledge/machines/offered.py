"""Accelerators by what clouds call the machines that have them, and those of which too little is known to plan with."""

from __future__ import annotations

import math
import re
from functools import cache

from estimator.errors import PlanError
from knowledge.data_files import rows
from knowledge.machines.naming import NOISE, accelerator_form
from knowledge.names import Match, NameCatalogue

# A slice of TPUs by its cores, as Google names them: v5p-256 (cloud.google.com/tpu/docs, TPU configurations), tpu7x-128
# of 64 chips (AI-Hypercomputer/xpk, tpu7x-128 is topology 4x4x4); or by its chips: tpu7x-4x4x4.
_SLICE = re.compile(r"(?:tpu[\s-]*)?(v?\d+[a-z]*)-(\d{1,6}|\d{1,3}x\d{1,3}(?:x\d{1,3})?)(?:-slice)?")
_SCORE = 0.9
# How the shapes of Oracle's machines begin; they end with their number of devices: VM.GPU.A10.2.
_ORACLE = ("vm", "bm")


def rented(name: str, names: NameCatalogue) -> Match[str] | None:
    """The accelerator of a cloud's instance or of a slice of TPUs, with what it has of it; None for other names.

    Raises PlanError for a device of which too little is known, with the reason.
    """
    if names.exact(name) or not name.strip():
        return None
    form = accelerator_form(name)
    if (why := _unplanned().get((form.words, form.numbers))) is not None:
        raise PlanError(names.place, f"{name.strip()[:60]!r} cannot be planned for: {why}")
    text = name.strip().casefold()
    slices = " ".join(word for word in text.split() if word not in NOISE)  # Colab's v2-8 TPU
    if (match := _SLICE.fullmatch(slices)) and (id := names.exact(match[1]) or names.exact(f"tpu{match[1]}")):
        chips = math.prod(map(int, match[2].split("x"))) if "x" in match[2] else max(1, int(match[2]) // cores_of(id))
        return Match(id, f"{name.strip()!r} is a slice of {chips} x {id}", _SCORE, devices=chips)
    return _instance(text, known=names.tokens) or _of_provider(text, names.tokens)


def is_rented(text: str) -> bool:
    """Whether a cloud calls a machine so."""
    return text.strip().casefold() in _called()


def machines_called(text: str) -> str:
    """'trn2.48xlarge of AWS has 16': the largest of the machines whose series is called so; '' where none is."""
    sizes = _of_series().get(text.strip().casefold(), [])
    if not sizes:
        return ""
    row = max(sizes, key=lambda row: int(row["count_per_node"]))
    return f"{row['instance']} of {row['provider']} has {row['count_per_node']}"


def _of_provider(text: str, known: frozenset[str]) -> Match[str] | None:
    """The accelerator of an instance that its provider is named with: GCP A3 Ultra, AWS P5."""
    provider, instance = _provider_named(text)
    return _instance(instance, provider, known) if provider and text.startswith(provider) else None


def without_provider(name: str) -> str:
    """What else a name says that has a provider's before or behind it: 'RunPod A40', 'A100 80GB on Vast'; '' of
    others."""
    return _provider_named(name.strip().casefold())[1]


def _provider_named(text: str) -> tuple[str, str]:
    """(The provider that a text begins or ends with, the rest of it); ('', '') where there is none."""
    for provider in _providers():
        named = re.escape(provider)
        if match := re.fullmatch(rf"{named}[\s:/]+(.+)|(.+?)\s+(?:(?:on|at|from)\s+)?{named}", text):
            return provider, match[1] or match[2]
    return "", ""


def refuse_unplanned(name: str, names: NameCatalogue) -> None:
    """Raises PlanError, with the reason, where a name that nothing is called so has all of the name of a device of
    which too little is known: 'Huawei Ascend 910B 64GB'."""
    form = accelerator_form(name)
    held = [key for key in _unplanned() if key[0] <= form.words and key[1] <= form.numbers]
    if held:
        why = _unplanned()[max(held, key=lambda key: len(key[0]) + len(key[1]))]
        raise PlanError(names.place, f"{name.strip()[:60]!r} cannot be planned for: {why}")


def _instance(text: str, provider: str = "", known: frozenset[str] = frozenset()) -> Match[str] | None:
    """The accelerator of the instances that are called so, or whose name begins so or has all of its parts; of all
    providers, or of one. A word of devices (`known`) is no instance: the H100 of H100-1-80G."""
    parts = _parts(text)
    if text in known:
        return None
    offered = [each for each in _instances() if provider in ("", each[2]["provider"].casefold())]
    fitting = [(instance, row) for instance, own, row in offered if instance == text or own == parts]
    if len(parts) < 2 and not fitting:
        return _series(text, provider)
    if not fitting:
        if " " in text and not (accelerator_form(parts[0]).words | accelerator_form(parts[0]).numbers):
            return None  # 'GPU H100' is a device with a word too many, not Nebius' gpu-h100-sxm
        fitting = [(instance, row) for instance, own, row in offered if _begins(parts, own) or _covers(parts, own)]
    if not fitting:
        return _sibling(text, parts)
    if len({row["accelerator"] for _, row in fitting}) != 1:
        return None
    row = next((row for instance, row in fitting if instance == text), fitting[0][1])
    sentence = f"{row['instance']} of {row['provider']} has {row['count_per_node']} x {row['accelerator']}"
    return Match(row["accelerator"], sentence, _SCORE, devices=int(row["count_per_node"]))


def _series(text: str, provider: str) -> Match[str] | None:
    """The accelerator that all sizes of a series have: p4d, g6e, a4x; how many, where all have as many."""
    sizes = [
        row
        for instance, _, row in _instances()
        if text in (instance.partition(".")[0], instance.partition("-")[0])
        and provider in ("", row["provider"].casefold())
        and text != instance
    ]
    if len({row["accelerator"] for row in sizes}) != 1:
        sizes = [row for row in sizes if row["instance"].startswith(f"{text}-high")]  # Google's A4X beside its A4X Max
    if len({row["accelerator"] for row in sizes}) != 1:
        return None
    counts = {int(row["count_per_node"]) for row in sizes}
    sentence = f"{text} of {sizes[0]['provider']} has {sizes[0]['accelerator']}"
    return Match(sizes[0]["accelerator"], sentence, _SCORE, devices=counts.pop() if len(counts) == 1 else None)


def _sibling(text: str, parts: list[str]) -> Match[str] | None:
    """The accelerator of a size of a series that is not listed while others of it are: a2-ultragpu-4g, g5.24xlarge.
    Of how many devices it has only Google's and Oracle's names say something."""
    series = [row for _, own, row in _instances() if _is_sibling(parts, own)]
    if len({row["accelerator"] for row in series}) != 1:
        return None
    accelerator, known = series[0]["accelerator"], series[0]["instance"]
    if size := re.fullmatch(r"(\d+)" if parts[0] in _ORACLE else r"(\d+)g", parts[-1]):
        sentence = f"{text!r} has {int(size[1])} x {accelerator}, as its series ({known})"
        return Match(accelerator, sentence, _SCORE, devices=int(size[1]))
    sentence = f"{text!r} has {accelerator}, as its series ({known}); how many is not known: give the count"
    return Match(accelerator, sentence, _SCORE)


def _is_sibling(parts: list[str], other: list[str]) -> bool:
    """Whether the names differ in one number that is a size: not the generation, a single digit in the first part."""
    if len(parts) != len(other) or len(parts) < 2:
        return False
    differing = [i for i, (mine, theirs) in enumerate(zip(parts, other, strict=True)) if mine != theirs]
    if len(differing) != 1:
        return False
    at = differing[0]
    stems = [re.sub(r"\d+", "#", part, count=1) for part in (parts[at], other[at])]
    return stems[0] == stems[1] != parts[at] and (at > 0 or bool(re.search(r"\d\d", parts[0])))


def _begins(parts: list[str], instance: list[str]) -> bool:
    """Whether an instance's name begins with the parts, whose last may be what one begins with: a3-mega."""
    last = len(parts) - 1
    return instance[:last] == parts[:last] and len(instance) > last and _shortens(parts[last], instance[last])


def _shortens(part: str, own: str) -> bool:
    return own in (part, f"{part}gpu") or (part.isalpha() and len(part) > 3 and own.startswith(part))


def _covers(parts: list[str], instance: list[str]) -> bool:
    """Whether each part is one of the instance's, or what one begins with, the first of the first: 'GPU H100' is no
    BM.GPU.H100.8."""
    return (
        parts[0].isalpha()
        and instance[0].startswith(parts[0])
        and all(any(own.startswith(part) for own in instance) for part in parts)
    )


def _parts(text: str) -> list[str]:
    return [part for part in re.split(r"[\s._-]+", text.removeprefix("standard_").removeprefix("ml.")) if part]


@cache
def _instances() -> list[tuple[str, list[str], dict[str, str]]]:
    """Rentable machines that have a name of their own (of one word): it in lower case, its parts, and the row."""
    named = {
        row["instance"].casefold().removeprefix("standard_"): row
        for row in rows("instances.csv")
        if re.fullmatch(r"\S*\d\S*", row["instance"]) and row["provider"] != "owned"
    }
    return [(instance, _parts(instance), row) for instance, row in named.items()]


@cache
def _providers() -> tuple[str, ...]:
    """Who rents machines out, in lower case, the longest names first."""
    return tuple(sorted({row["provider"].casefold() for row in rows("instances.csv")}, key=len, reverse=True))


@cache
def _called() -> frozenset[str]:
    """What clouds call machines, in lower case."""
    return frozenset(instance for instance, _, _ in _instances())


@cache
def _of_series() -> dict[str, list[dict[str, str]]]:
    """Their rows by what stands before the point: p5 of p5.48xlarge."""
    series: dict[str, list[dict[str, str]]] = {}
    for instance, _, row in _instances():
        name, point, _ = instance.partition(".")
        if point:
            series.setdefault(name, []).append(row)
    return series


def cores_of(id: str) -> int:
    """Cores of a device, which slices are counted in; 1 where its slices count devices."""
    return int(_cores().get(id) or 1)


@cache
def _cores() -> dict[str, str]:
    return {row["id"]: row["cores"] for row in rows("accelerators.csv")}


@cache
def _unplanned() -> dict[tuple[frozenset[str], frozenset[str]], str]:
    """Why a device cannot be planned for, by the words and numbers of its names."""
    reasons = {}
    for row in rows("unplanned_devices.csv"):
        for name in row["names"].split(";"):
            form = accelerator_form(name)
            reasons[form.words, form.numbers] = row["why"]
    return reasons
