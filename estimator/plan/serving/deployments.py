"""Candidate deployments as a structure of arrays: how a model is split for serving, and the load it is under."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimator.plan.layouts import Floats

# Devices of a usual node, beyond which engines hold popular experts more than once.
USUAL_NODE = 8


@dataclass(frozen=True, eq=False)
class Deployments:
    """n deployments; every field has shape (n,) and dtype float64, whole numbers too.

    One replica of the model has tp x pp x dp devices: `dp` ranks with attention, sequences and caches of their own
    (lanes), which share the experts of a mixture; these are split in `ep` groups of whole experts, and each expert in
    tp x dp / ep parts. A dense model has nothing to share: its lanes are replicas, and dp is 1.

    `input_len` and `output_len` are mean tokens. Requests come from `concurrency` clients that each wait for their
    answer (inf: all at once), or, where `request_rate` is positive, at random with that rate per second. `requests` are
    those of the whole run, the first ones sent at once (inf: a steady state). `max_batch` and `max_tokens` bound the
    sequences and tokens of one step of a lane. `prefix_hit` is the part of prompts that is in the cache.
    """

    tp: Floats
    pp: Floats
    ep: Floats
    dp: Floats
    replicas: Floats
    input_len: Floats
    output_len: Floats
    concurrency: Floats
    request_rate: Floats
    requests: Floats
    max_batch: Floats
    max_tokens: Floats
    prefix_hit: Floats

    def __len__(self) -> int:
        return len(self.tp)

    @cached_property
    def etp(self) -> Floats:
        """Parts that one expert is split in."""
        return self.tp * self.dp / self.ep

    @cached_property
    def wide(self) -> NDArray[np.bool_]:
        """Where experts are spread beyond a usual node, and popular ones are held more than once."""
        return self.ep > USUAL_NODE

    @cached_property
    def lanes(self) -> Floats:
        """Sets of sequences that are scheduled apart."""
        return self.replicas * self.dp

    @cached_property
    def devices(self) -> Floats:
        return self.tp * self.pp * self.dp * self.replicas

    @cached_property
    def read_len(self) -> Floats:
        """Prompt tokens of a request that are not in the cache; at least the last one is read."""
        return np.maximum(1.0, self.input_len * (1.0 - self.prefix_hit))

    def take(self, index: NDArray[Any]) -> Deployments:
        """The deployments that `index` (integers or a mask) selects."""
        return Deployments(*[getattr(self, name)[index] for name in _NAMES])

    def row(self, index: int) -> dict[str, int]:
        """Deployment `index` as the fields of a Plan's layout."""
        return {name: int(getattr(self, name)[index]) for name in ("tp", "pp", "ep", "dp")}


_NAMES = tuple(field.name for field in fields(Deployments))
