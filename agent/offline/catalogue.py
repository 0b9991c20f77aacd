"""What names the planner can recognise, and the look-ups that decide what a name means.

Spotting and deciding are apart: a name that merely looks like a model or an accelerator is spotted too, so that the
look-up can say that it does not know it. Nothing here picks a substitute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from estimator.errors import PlanError
from estimator.units import GIB
from knowledge.machines.catalogue import accelerators, aliases, find_accelerator
from knowledge.machines.counted import find_devices
from knowledge.models.catalogue import find_model
from knowledge.models.known import ModelFacts, models
from knowledge.own.files import ROW_KINDS, stamp
from knowledge.prices.book import prices


@dataclass(frozen=True)
class Instance:
    """A rentable machine by its name: what is in it."""

    name: str
    provider: str
    accelerator: str
    count: int


@dataclass(frozen=True)
class Catalogue:
    """Names to spot and look-ups. A look-up returns (id, what was assumed or None) and raises PlanError."""

    model_names: tuple[str, ...]
    accelerator_names: tuple[str, ...]
    instances: tuple[Instance, ...]
    providers: tuple[str, ...]
    find_model: Callable[[str], tuple[str, str | None]]
    find_accelerator: Callable[[str], tuple[str, str | None]]
    family: Callable[[str], list[str]]
    per_node: Callable[[str], int]
    per_rack: Callable[[str], int | None]
    per_machine: Callable[[str], int | None]
    models_of_size: Callable[[float], list[str]]
    memory_gb: Callable[[str], float | None]
    makers: tuple[str, ...] = ()

    @cached_property
    def card_numbers(self) -> frozenset[str]:
        """Four-digit product numbers that people use bare: 4090, 3090."""
        parts = (pairwise(name.lower().split("-")) for name in self.accelerator_names)
        return frozenset(
            number
            for pairs in parts
            for series, number in pairs
            if series in ("rtx", "rx") and number.isdigit() and len(number) == 4
        )


def folded(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isascii() and letter.isalnum())


def _is_machine(name: str) -> bool:
    """Whether a price list's name is one of a machine: 'p5.48xlarge', 'BM.GPU.H100.8'."""
    parts = name.replace(".", " ").replace("-", " ").replace("_", " ").split()
    return len(parts) > 1 and " " not in name and all(part.isalnum() for part in parts)


def known() -> Catalogue:
    """The catalogue of Shardwise's own tables and of the user's."""

    return _known(tuple(stamp(kind) for kind in ROW_KINDS))


@lru_cache(maxsize=1)
def _known(_: tuple[Any, ...]) -> Catalogue:
    """The same while the user's files stay as they are."""
    tails = [(row.id, _squeezed(row.id.rpartition("/")[2].lower().removeprefix("meta-"))) for row in models()]

    def model(name: str) -> tuple[str, str | None]:
        row = find_model(name)
        return row.value.id, row.note

    def accelerator(name: str) -> tuple[str, str | None]:
        row = find_devices(name).match
        return row.value.id, row.note

    def family(name: str) -> list[str]:
        """The models whose names begin with a word, where it is a family's."""
        head = _squeezed(name)
        begins = [(id, tail[len(head) :]) for id, tail in tails if tail.startswith(head)]
        # Of Qwen3 is no Qwen3.5.
        exact = [id for id, rest in begins if not (rest.startswith(".") and head[-1:].isdigit())]
        return exact or [id for id, _ in begins]

    def per_rack(id: str) -> int | None:
        """Devices of a rack whose nodes are joined by one switched link (NVL72), or None."""
        row = find_accelerator(id).value
        return row.scaleup_domain if row.topology == "switch" and row.scaleup_domain > row.per_node else None

    def per_machine(name: str) -> int | None:
        """Devices of what a name stands for, where that is a machine or a rack: 'DGX H100', 'GB200 NVL72'."""
        return find_devices(name).count

    def of_size(parameters: float) -> list[str]:
        near = [row for row in models() if is_of_size(row, parameters)]
        return [row.id for row in sorted(near, key=lambda row: (row.released or "", row.id), reverse=True)]

    def memory_gb(id: str) -> float | None:
        try:
            return find_accelerator(id).value.memory_bytes / GIB
        except PlanError:
            return None

    names: list[str] = []
    for row in accelerators():
        names += [row.id, row.name, *filter(_is_telling, aliases(row.id))]
    devices = {folded(name) for name in names}
    # "p5.48xlarge" and "BM.GPU.H100.8" name a machine; "HGX H100" and "L40S" in a price list are only devices.
    rentable = [price for price in prices() if _is_machine(price.instance) and folded(price.instance) not in devices]
    return Catalogue(
        model_names=tuple(name for row in models() for name in (row.id, *row.aliases)),
        accelerator_names=tuple(names),
        instances=tuple(Instance(price.instance, price.provider, price.accelerator, price.count) for price in rentable),
        providers=tuple(dict.fromkeys(price.provider for price in prices())),
        find_model=model,
        find_accelerator=accelerator,
        family=family,
        per_node=lambda id: find_accelerator(id).value.per_node,
        per_rack=per_rack,
        per_machine=per_machine,
        models_of_size=of_size,
        memory_gb=memory_gb,
        makers=tuple(dict.fromkeys(row.vendor for row in accelerators())),
    )


# How far a size that people say may be from the one that a maker publishes: 1T is Kimi-K2's 1.04T, too.
_CALLED, _TRILLION, _NEAR = 0.005, 0.05, 0.1


def called_by_size(row: ModelFacts, parameters: float) -> bool:
    """Whether a model is called by a size, in its name or by its maker: Llama-3.2-1B has 1.24B."""
    told = abs((row.published_parameters or 0) / parameters - 1) <= (_TRILLION if parameters >= 1e12 else _CALLED)
    return told or f"{parameters / 1e9:g}b" in row.id.lower().split("-")


def is_of_size(row: ModelFacts, parameters: float) -> bool:
    """Whether a model may be meant by its size alone."""
    near = bool(row.parameters) and abs((row.parameters or 0) / parameters - 1) < _NEAR
    return near or called_by_size(row, parameters)


_LEAST_LETTERS, _LEAST_MIXED = 8, 4


def _is_telling(name: str) -> bool:
    """Whether another name of a device is no ordinary word or number: not 'spark', '8380', '7x' or 'turin'."""
    letters = sum(sign.isalpha() for sign in name)
    if " " in name.strip():
        return True
    return letters >= _LEAST_LETTERS or (0 < letters < len(name) and len(name) >= _LEAST_MIXED)


def _squeezed(name: str) -> str:
    """A name without what joins its parts: 'gemma 3' is 'gemma-3'."""
    return "".join(sign for sign in name.lower() if sign.isalnum() or sign == ".")
