"""Every name in a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from agent.offline.catalogue import Catalogue
from agent.offline.language.lexicon import lexicon
from agent.offline.language.names.cards import card_at
from agent.offline.language.names.history import runs_in
from agent.offline.language.names.known import Known, Name, known_names, looked_up
from agent.offline.language.names.models import model_at, of_a_fine_tune
from agent.offline.language.names.places import instance_at, paths_in, place_at, provider_at, saved_in
from agent.offline.language.tokens import Glyphs
from knowledge.machines.catalogue import find_accelerator

# How far behind a machine its devices begin.
_NEAR = 4


def names(text: Sequence[Glyphs], whole: str, catalogue: Catalogue) -> list[Name]:
    """Names in the order of the text; none overlap, longer ones win."""
    known = known_names(catalogue)
    found = [*paths_in(text, whole), *saved_in(text, whole), *runs_in(text, whole)]
    taken = {at for name in found for at in range(name.start, name.end)}
    at = 0
    while at < len(text):
        name = None if at in taken else _at(text, at, known, catalogue, whole)
        if name and not any(one in taken for one in range(name.start, name.end)):
            found.append(name)
            taken.update(range(name.start, name.end))
            at = name.end
        else:
            at += 1
    forms = [form for name in found for form in _other_forms(name, text, catalogue)]
    hosted = _with_hosts([*found, *forms], text)
    return _without_machines(sorted(hosted, key=lambda name: name.start), text)


def _other_forms(name: Name, text: Sequence[Glyphs], catalogue: Catalogue) -> Iterator[Name]:
    """Forms of a card that are joined to its name: the NVL and SXM of 'H100 PCIe vs NVL vs SXM'."""
    at = name.end
    while name.kind == "accelerator" and name.id and at + 1 < len(text) and text[at + 1].norm in lexicon().card_forms:
        if not (text[at].norm in lexicon().joints or text[at].text in ",/"):
            return
        looked = looked_up(catalogue, "accelerator", f"{name.id.partition('-')[0]} {text[at + 1].norm}")
        if looked[0] is None:
            # A 3090 has no other form.
            return
        yield Name("accelerator", at + 1, at + 2, text[at + 1].text, *looked)
        at += 2


def _without_machines(found: list[Name], text: Sequence[Glyphs]) -> list[Name]:
    """The names, with machines whose devices are counted right behind as machines alone: 'a DGX Station with 4
    V100'."""
    housing = [
        machine
        for machine, device in pairwise(found)
        if machine.kind == device.kind == "accelerator"
        and text[machine.end].norm in lexicon().holding
        # 'Compare 512 H100 with 512 B200'
        and not _is_set_against(text, machine.start)
        and any(token.kind == "number" for token in text[machine.end + 1 : min(device.start, machine.end + _NEAR)])
    ]
    return [replace(name, kind="machine") if name in housing else name for name in found]


def _is_set_against(text: Sequence[Glyphs], start: int) -> bool:
    """Whether a device at a token is counted or compared itself."""
    before = {sense.name for at in range(start) for word in lexicon().at(text, at) for sense in word.all("does")}
    return "compare" in before or (start > 0 and text[start - 1].kind == "number")


def _with_hosts(found: list[Name], text: Sequence[Glyphs]) -> list[Name]:
    """Processors beside a card as what its machine has: 'two 3090s in an old Threadripper'."""
    hosts = [
        name
        for name in found
        if name.kind == "accelerator"
        and any(token.norm in lexicon().processors for token in text[name.start : name.end])
        and not (name.id and find_accelerator(name.id).value.personal)
    ]
    cards = any(name.kind in ("accelerator", "instance") and name not in hosts for name in found)
    return [replace(name, kind="host", problem=None) if cards and name in hosts else name for name in found]


def _at(text: Sequence[Glyphs], at: int, known: Known, catalogue: Catalogue, whole: str) -> Name | None:
    if text[at].kind == "sign":
        return None
    if text[at].norm == "v" and at > 0 and text[at - 1].text in "-_" and not text[at].space:
        # 'Call it run-v2'
        return None
    touches = at > 0 and not text[at].space and text[at - 1].kind == "word" and text[at - 1].norm not in ("x",)
    if touches:
        return None
    return (
        instance_at(text, at, known, whole)
        or _model(text, at, known, catalogue, whole)
        or card_at(text, at, known, catalogue, whole)
        or provider_at(text, at, known, whole)
        or place_at(text, at, known, whole)
    )


def _model(text: Sequence[Glyphs], at: int, known: Known, catalogue: Catalogue, whole: str) -> Name | None:
    name = model_at(text, at, known, catalogue, whole)
    return of_a_fine_tune(text, name, catalogue, whole) if name else None
