"""Candidate layouts as a structure of arrays: one entry a candidate, one array a field."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")
RECOMPUTE = ("none", "selective", "full", "block")
OFFLOAD = ("none", "optimizer", "params", "activations", "optimizer+activations", "params+activations")
_STATES = tuple("optimizer" in name or "params" in name for name in OFFLOAD)
_PARAMS = tuple("params" in name for name in OFFLOAD)
_ACTIVATIONS = tuple("activations" in name for name in OFFLOAD)
_PARTS = tuple(frozenset(name.replace("params", "params+optimizer").split("+")) for name in OFFLOAD)
SCHEDULES = ("1f1b", "interleaved", "zero-bubble", "v-half", "gpipe", "dualpipe")


def more_offloaded(named: str, offered: Iterable[str]) -> list[str]:
    """What puts into host memory what `named` does and more, of frameworks that can offload what is `offered`."""
    parts = _PARTS[OFFLOAD.index(named)]
    return [
        name
        for name, others in zip(OFFLOAD, _PARTS, strict=True)
        if parts < others and {*name.split("+")} <= {*offered}
    ]


# Candidates up to which a call takes longer than its arithmetic, so that one call on larger arrays is the faster way.
FEW = 256
# The largest block whose return glibc learns from is 32 MiB with its head (malloc.c, DEFAULT_MMAP_THRESHOLD_MAX).
_LARGEST_LEARNT_FROM = 31 << 20
# Neighbours that are alike, in the mean, from which on one copy of each run is the faster way.
_FEW_RUNS = 8


def recompute_words(mode: str) -> str:
    """'no recompute', 'full recompute', 'recompute of 31 layers' of a plan's layout.recompute."""
    how, _, layers = mode.partition(":")
    if how == "none":
        return "no recompute"
    return f"recompute of {layers} layer{'s' * (layers != '1')}" if layers else f"{how} recompute"


@dataclass(frozen=True)
class Layouts:
    """n candidate layouts; every field has shape (n,) and dtype int64.

    `recompute`, `offload` and `schedule` index RECOMPUTE, OFFLOAD and SCHEDULES; `recompute_layers` is the N of block:N
    (layers per pipeline stage whose activations are recomputed). `shard_group` is how many devices share one copy of
    what ZeRO shards. `grad_accum` is micro-batches per step.
    """

    tp: Ints
    sequence_parallel: Ints
    pp: Ints
    vpp: Ints
    schedule: Ints
    cp: Ints
    ep: Ints
    etp: Ints
    dp: Ints
    zero_stage: Ints
    shard_group: Ints
    recompute: Ints
    recompute_layers: Ints
    offload: Ints
    micro_batch: Ints
    grad_accum: Ints

    def __len__(self) -> int:
        return len(self.tp)

    @cached_property
    def outside_split(self) -> Ints:
        """Into how many parts activations outside tensor-parallel regions are cut: tp with sequence parallelism."""
        return np.where(self.sequence_parallel > 0, self.tp, 1)

    @cached_property
    def optimizer_offloaded(self) -> np.ndarray:
        """Where optimizer states are in host memory, with the weights or without."""
        return np.array(_STATES)[self.offload]

    @cached_property
    def everything_offloaded(self) -> np.ndarray:
        """Where the optimizer's states and, if they are sharded, weights are meant to be in host memory."""
        return np.array(_PARAMS)[self.offload]

    @cached_property
    def weights_offloaded(self) -> np.ndarray:
        """Where weights are in host memory, which only sharded ones can be."""
        return self.everything_offloaded & (self.zero_stage >= 3)

    @cached_property
    def activations_offloaded(self) -> np.ndarray:
        """Where activations are in host memory."""
        return np.array(_ACTIVATIONS)[self.offload]

    @cached_property
    def recomputes(self) -> bool:
        """Whether any candidate recomputes anything."""
        return self.max_of("recompute") > 0

    def max_of(self, name: str) -> int:
        """The largest value of a field, at least 0: what no candidate has need not be computed."""
        largest = self._largest
        if name not in largest:
            largest[name] = int(getattr(self, name).max(initial=0))
        return largest[name]

    @cached_property
    def _largest(self) -> dict[str, int]:
        return {}

    def zeros(self) -> Floats:
        """0.0 for every candidate: one array for all, not to be written to."""
        return self.memoised(("zeros",), lambda: _constant(0.0, len(self)))

    def ones(self) -> Floats:
        """1.0 for every candidate: one array for all, not to be written to."""
        return self.memoised(("ones",), lambda: _constant(1.0, len(self)))

    def memoised(self, key: tuple[Hashable, ...], compute: Callable[[], T]) -> T:
        """What `compute` makes of these candidates, computed once. `key` is what it is called and what else it depends
        on (a job, a block)."""
        memo = self._memo
        if key not in memo:
            memo[key] = compute()
        return memo[key]

    @cached_property
    def _memo(self) -> dict[tuple[Hashable, ...], Any]:
        return {}

    def runs(self, names: tuple[str, ...]) -> Runs | None:
        """Of neighbours that are alike in the fields `names` one each; None where there are few candidates, or that
        would save little. What a search lists varies slowly."""

        def alike() -> Runs | None:
            new = reduce(np.logical_or, [self._new(name) for name in names])
            starts = np.flatnonzero(new)
            lengths = np.diff(starts, append=len(self))
            return None if 2 * len(starts) > len(self) else Runs(self.take(starts), new, starts, lengths)

        return None if len(self) <= FEW else self.memoised(("runs", names), alike)

    def _new(self, name: str) -> np.ndarray:
        """Where a field is another than in the candidate before; the first is new."""

        def compared() -> np.ndarray:
            new, column = np.ones(len(self), dtype=bool), getattr(self, name)
            np.not_equal(column[1:], column[:-1], out=new[1:])
            return new

        return self.memoised(("new", name), compared)

    @cached_property
    def accumulates(self) -> np.ndarray:
        """Where a step has several micro-batches."""
        return self.grad_accum > 1

    def take(self, index: NDArray[Any]) -> Layouts:
        """The candidates that `index` (integers or a mask) selects; the only one is itself, memo included."""
        if len(self) == 1 and len(index) == 1 and index.dtype != bool:
            return self
        return Layouts(*[getattr(self, name)[index] for name in _NAMES])

    def pieces(self, size: int) -> Iterator[Layouts]:
        """All candidates in order, at most `size` at a time; one empty piece where there are none."""
        for start in range(0, max(1, len(self)), size):
            part = slice(start, start + size)
            yield Layouts(*[getattr(self, name)[part] for name in _NAMES])

    def joined(self, *more: Layouts) -> Layouts:
        """These candidates with others behind them."""
        return Layouts(*[np.concatenate([getattr(part, name) for part in (self, *more)]) for name in _NAMES])

    def row(self, index: int) -> dict[str, Any]:
        """Candidate `index` as the fields of a Plan's layout."""
        value = {name: int(getattr(self, name)[index]) for name in _NAMES}
        return {
            "tp": value["tp"],
            "sequence_parallel": bool(value["sequence_parallel"]),
            "pp": value["pp"],
            "vpp": value["vpp"],
            "schedule": SCHEDULES[value["schedule"]],
            "cp": value["cp"],
            "ep": value["ep"],
            "etp": value["etp"],
            "dp": value["dp"],
            "zero_stage": value["zero_stage"],
            "shard_group": value["shard_group"] if value["zero_stage"] >= 3 else None,
            "recompute": recompute_name(value["recompute"], value["recompute_layers"]),
            "offload": OFFLOAD[value["offload"]],
        }

    def summary(self, index: int) -> str:
        """Candidate `index` in one short line, leaving out what is 1 or none."""
        row = self.row(index)
        parts = [f"{name.upper()} {row[name]}" for name in ("tp", "pp", "vpp", "cp", "ep") if row[name] > 1]
        parts.append(f"DP {row['dp']}")
        if row["zero_stage"]:
            parts.append(f"ZeRO-{row['zero_stage']}")
        if row["shard_group"] not in (None, row["dp"] * row["cp"]):
            parts.append(f"sharded over {row['shard_group']}")
        parts.append(recompute_words(row["recompute"]))
        if row["offload"] != "none":
            parts.append(f"{row['offload']} offloaded")
        if row["tp"] > 1 and not row["sequence_parallel"]:
            parts.append("no sequence parallelism")
        parts.append(f"micro-batch {int(self.micro_batch[index])}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Runs:
    """Neighbouring candidates that are alike, one each: `layouts`, where they start (as a mask of all candidates, then
    as indices), and how many they are."""

    layouts: Layouts
    new: np.ndarray
    starts: Ints
    lengths: Ints

    @cached_property
    def _place(self) -> Ints:
        """Which of them every candidate is."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def holds(self, values: NDArray[Any]) -> bool:
        """Whether an array of all candidates is alike within each run, too."""
        return not ((values[1:] != values[:-1]) & ~self.new[1:]).any()

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """What was computed of one each, for every candidate; a constant stays one."""
        if values.strides == (0,):
            return np.broadcast_to(values[:1], self._place.shape)
        # Copies of a few elements each cost more than looking up every one.
        return np.repeat(values, self.lengths) if _FEW_RUNS * len(values) <= len(self._place) else values[self._place]


@cache
def keep_pages() -> None:
    """Lets the process keep the memory of arrays it is done with. glibc gives what is free at the heap's end back to
    the system, and takes arrays of 128 KiB from it anew, until a larger block was freed (mallopt(3), M_MMAP_THRESHOLD):
    touching fresh pages takes a third of a search. The block is never touched, so that it takes no memory."""
    np.empty(_LARGEST_LEARNT_FROM, dtype=np.uint8)


def either(mask: np.ndarray, taken: Callable[[], Floats], otherwise: Callable[[], Floats]) -> Floats:
    """np.where of two results of shape (n,), where what no candidate takes is not computed."""
    if mask.all():
        return taken()
    return np.where(mask, taken(), otherwise()) if mask.any() else otherwise()


_NAMES = tuple(field.name for field in fields(Layouts))
# Fields that are 0 where nothing is done, not 1.
_OFF = ("schedule", "zero_stage", "recompute", "recompute_layers", "offload", "sequence_parallel")


def unsplit() -> Layouts:
    """One candidate with nothing split, recomputed or offloaded."""
    return Layouts(*[np.full(1, 0 if name in _OFF else 1, dtype=np.int64) for name in _NAMES])


def _constant(value: float, count: int) -> Floats:
    """`count` times `value`. It is shared, so that writing to it is an error."""
    return np.broadcast_to(np.float64(value), (count,))


def recompute_code(name: str) -> tuple[int, int]:
    """'full' as (index into RECOMPUTE, 0); 'block:4' as (index of block, 4)."""
    match = re.fullmatch(r"block:([0-9]+)", name)
    return (RECOMPUTE.index("block"), int(match[1])) if match else (RECOMPUTE.index(name), 0)


def recompute_name(code: int, layers: int) -> str:
    return f"block:{layers}" if RECOMPUTE[code] == "block" else RECOMPUTE[code]
