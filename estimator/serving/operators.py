"""What the operators of a served model are, whatever runs them: merged matmuls, bytes of small kernels, sums.

Engines merge the projections that read one input, and run hand-written kernels between matmuls. Counts are made once
per architecture.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from estimator.model.architecture import Architecture, Block, WeightMatrix
from estimator.plan.layouts import Floats

# Elements of 16 bits that a scan and its convolution move per channel: an assumption.
_SCAN_PARTS = 6.0
# The same of a cast to 8 bits: 16 bits read, 8 written (definition).
_CAST = 1.5


class Merged(NamedTuple):
    """A matmul of one or several weight matrices that read the same input: (inputs, outputs), `kv` of the outputs being
    of keys and values, of which each device holds at least one head of `kv_unit`; of `shared` experts, or not."""

    split: str
    inputs: int
    outputs: int
    kv: int
    kv_unit: int
    shared: bool


class OperatorTable(NamedTuple):
    """The merged matmuls of a pass through all layers, routed experts apart; arrays of shape (shapes, 1, 1), `times` of
    shape (shapes,): how often each is there. `shared` are the places of those of shared experts."""

    times: Floats
    outputs: Floats
    inputs: Floats
    kv: Floats
    kv_unit: Floats
    column: np.ndarray
    row: np.ndarray
    shared: list[int]


@lru_cache(maxsize=64)
def merged(architecture: Architecture) -> OperatorTable:
    """Engines make one product of all matrices of a layer that read the same input."""
    counts: Counter[Merged] = Counter()
    for kind, block in enumerate(architecture.blocks):
        times = architecture.pattern.count(kind)
        joined: dict[tuple[str, str, int, int], list[WeightMatrix]] = {}
        for number, matrix in enumerate(block.matrices):
            if matrix.role == "expert":
                continue
            # Matrices that read a row-split input are no parts of one product, and the router runs apart.
            alone = matrix.split == "row" or matrix.role == "router"
            joined.setdefault((matrix.role, matrix.split, matrix.inputs, number if alone else -1), []).append(matrix)
        for (role, split, inputs, _), parts in joined.items():
            # Linear attention keeps no keys that a device would have to hold whole: all its heads are split.
            keys = sum(m.outputs for m in parts if m.name in ("k_proj", "v_proj")) if block.kv_heads else 0
            unit = keys // max(1, block.kv_heads)
            outputs, shared = sum(m.outputs for m in parts), role == "shared_expert"
            counts[Merged(split, inputs, outputs, keys, unit, shared)] += times
    columns = {
        name: np.array([getattr(matmul, name) for matmul in counts], dtype=np.float64)[:, None, None]
        for name in ("outputs", "inputs", "kv", "kv_unit")
    }
    cut = {name: np.array([matmul.split == name for matmul in counts])[:, None, None] for name in ("column", "row")}
    shared = [place for place, matmul in enumerate(counts) if matmul.shared]
    return OperatorTable(times=np.array(list(counts.values()), dtype=np.float64), **columns, **cut, shared=shared)


def cache_share(block: Block, tp: Floats, parts: float = 1.0) -> Floats:
    """Part of a block's cache on one of `tp` devices: heads are split, and held twice where there are fewer of them;
    the compressed cache of MLA is whole on each. What several hold alike is split by its tokens in `parts`."""
    return np.maximum(1.0 / tp, 1.0 / max(1, block.kv_heads if block.mixer == "attention" else 1)) / parts


@lru_cache(maxsize=256)
def moved(architecture: Architecture, casts: bool) -> tuple[float, float, float]:
    """(Elements moved per token on every device of a tensor group, elements that the group splits, kernels) of all
    layers, as the hand-written kernels of engines have them (vLLM csrc, FlashInfer)."""
    whole, split, kernels = 0.0, 0.0, 0.0
    hidden = architecture.hidden
    for kind, block in enumerate(architecture.blocks):
        count = architecture.pattern.count(kind)
        # fused_add_rms_norm: input and residual, read and written.
        mine, parts, launches = 4.0 * hidden * block.norms, 0.0, float(block.norms)
        if block.heads:
            query = block.heads * block.head_dim
            parts += 2.0 * query + 2.0 * block.kv_elements_per_token
            launches += 1.0 + 2.0 * block.qk_norm
        elif block.ssm_inner:
            parts += _SCAN_PARTS * block.ssm_inner
            launches += 3.0
        inner = block.ffn_width + block.shared_width
        parts += (3.0 if block.gated else 2.0) * inner
        launches += 1.0 if inner else 0.0
        if block.experts:
            # Scores of all experts in fp32, and the sum with the shared expert; all else is the grouped kernel's.
            mine += 4.0 * block.experts + (3.0 * hidden if block.shared_width else 0.0)
            launches += 1.0 + bool(block.shared_width)
        if casts:
            mine += _CAST * hidden * 2
            parts += _CAST * (inner + block.heads * block.v_head_dim)
            launches += 4.0
        whole, split, kernels = whole + count * mine, split + count * parts, kernels + count * launches
    return whole, split, kernels


@lru_cache(maxsize=64)
def sums(architecture: Architecture) -> tuple[float, float]:
    """(Sums over the tensor group in one pass, those of layers with experts)."""
    sums, shared = 0.0, 0.0
    for kind, block in enumerate(architecture.blocks):
        count = architecture.pattern.count(kind)
        both = (block.mixer != "none") + (block.feed != "none")
        routed = 1 if block.experts else 0
        shared += count * routed
        sums += count * ((1 if architecture.parallel_block else both) - routed)
    return sums, shared
