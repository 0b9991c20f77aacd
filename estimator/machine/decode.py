"""Seconds of the operators of a decode step on one device: attention over a cache of keys and values, and experts that
get few rows each.

Both are bound by what they read: a query sees every cached key, and a token's experts are read whole for a few rows.
What is left are launches, and devices that are not filled. measure/fit/decode.py fits the numbers to kernel timings.
Arrays have the shape of a deployment's candidates; sizes in bytes, rates in FLOP/s and bytes/s, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from estimator.machine.matmul import MatmulRates, matmul_seconds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DecodeKernel:
    """What decode attention reaches on one accelerator family with one format of the cache.

    `memory` is the fraction of the bandwidth that a large cache is read at, `compute` the fraction of the 16-bit matrix
    peak that scores reach (above 1 where 8-bit units make them). A block of threads takes `tile_rows` query rows that
    share their keys and works at all of them, filled or not. `launch_s` is a call on an empty cache with its write of
    the new key; `ramp_s` is what a call takes besides, once it is long: splitting, the last blocks, merging. `block_s`
    is what the device takes for a block that has next to no keys, `key_s` what one key of a sequence adds where its
    blocks are as many as a kernel makes of it. The numbers may be arrays.
    """

    memory: Floats | float
    compute: Floats | float
    tile_rows: Floats | float
    launch_s: Floats | float
    ramp_s: Floats | float
    block_s: Floats | float
    key_s: Floats | float


@dataclass(frozen=True)
class ExpertKernel:
    """What fused kernels of experts reach besides their matmuls, on one accelerator family with one kind of operand.

    `memory` and `height` multiply those of the matmul surface: grouped kernels read weights and compute unlike plain
    ones. `launch_s` is choosing experts, sorting rows, casting and adding up, on few rows; `passes` is how often the
    routed rows move through memory besides the matmuls' own traffic. The numbers may be arrays.
    """

    memory: Floats | float
    height: Floats | float
    launch_s: Floats | float
    passes: Floats | float


@dataclass(frozen=True)
class CachedHeads:
    """The heads of one layer on one device: keys and values have `head_dim` and `v_head_dim` elements.

    With `latent` (multi-head latent attention with absorbed projections: DeepSeek-V2, section 2.1) there is one key of
    `head_dim` elements for all heads, whose first `v_head_dim` are the value. A `window` bounds the keys that a query
    sees. `element_bytes` is what one element of the cache takes.
    """

    heads: Floats | float
    kv_heads: Floats | float
    head_dim: Floats | float
    v_head_dim: Floats | float
    element_bytes: Floats | float
    window: Floats | float | None = None
    latent: bool = False


def decode_attention_seconds(
    kernel: DecodeKernel,
    memory_bandwidth: Floats | float,
    peak_flops: Floats | float,
    batch: Floats,
    context: Floats,
    cached: CachedHeads,
    queries: Floats | float = 1.0,
) -> Floats:
    """Seconds of one layer's attention of a decode step on one device; arrays of any one shape.

    `batch` sequences of `context` cached tokens each ask `queries` times (1; more where drafts are verified).
    `peak_flops` is the 16-bit matrix rate.
    """
    heads, kv_heads, window = cached.heads, cached.kv_heads, cached.window
    head_dim, v_head_dim = cached.head_dim, cached.v_head_dim
    calls = batch * kv_heads
    length = context if window is None else np.minimum(context, window)
    keys = calls * length
    tiles = np.ceil(queries * heads / (kv_heads * kernel.tile_rows))
    width = head_dim if cached.latent else head_dim + v_head_dim
    # Tiles that share their keys run side by side, so that all but one find them in cache.
    moving = keys * (width * cached.element_bytes) / (memory_bandwidth * kernel.memory)
    scores = keys * (tiles * kernel.tile_rows)
    arithmetic = scores * (2.0 * (head_dim + v_head_dim)) / (peak_flops * kernel.compute)
    busy = np.maximum(np.maximum(moving, arithmetic), kernel.key_s * length)
    ramp = kernel.ramp_s * busy / (busy + kernel.ramp_s)
    return kernel.launch_s + busy + ramp + kernel.block_s * calls * tiles


# Where the experts, ordered by how often they are chosen, are looked at, and what each place counts (Gauss-Legendre).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_PARTS, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS
# Popularity that is all but even.
_EVEN = 1.0 + 1e-6


def experts_reached(tokens: Floats, experts: Floats | float, top_k: Floats | float, spread: float = 1.0) -> Floats:
    """Expected share of the experts that get any of `tokens` tokens, each of which goes to `top_k`; shaped as they are.

    Popularity falls evenly in its logarithm from the most to the least popular expert, by a factor of `spread` in all;
    1 is uniform routing, which is random all the same.
    """
    spread = max(spread, _EVEN)
    popularity = np.exp(np.log(spread) * _PARTS) * (np.log(spread) / (spread - 1.0))
    chance = np.minimum(np.multiply.outer(top_k / experts + 0.0 * tokens, popularity), 1.0 - 1e-9)
    missed = np.exp(np.asarray(tokens)[..., None] * np.log1p(-chance))
    return 1.0 - missed @ _WEIGHTS


def fullest_rank(
    ranks: Floats | float, tokens: Floats, experts: Floats | float, top_k: Floats | float, spread: float = 1.0
) -> Floats:
    """Rows of the fullest of `ranks` devices over their mean, which hold the experts in equal parts.

    Loads of ranks are taken for normal variates, the greatest of which lies sqrt(2 ln ranks) deviations above the mean.
    They vary with the popularity of a rank's experts (`spread` as in `experts_reached`) and with the draw of the
    tokens, which are those of all ranks.
    """
    spread, held = max(spread, _EVEN), experts / ranks
    uneven = 0.5 * np.log(spread) * (spread + 1.0) / (spread - 1.0) - 1.0
    deviation = np.sqrt((max(0.0, uneven) + experts / (tokens * top_k)) / held)
    # Every expert of a rank gets at most one row a token, and a token has no more rows than `top_k`.
    most = ranks * np.minimum(1.0, held / top_k)
    return np.minimum(1.0 + deviation * np.sqrt(2.0 * np.log(ranks)), most)


def routed(
    tokens: Floats, experts: Floats | float, top_k: Floats | float, ranks: Floats | float = 1.0, spread: float = 1.0
) -> tuple[Floats, Floats]:
    """(Rows, experts with any row) of the fullest of `ranks` devices; arguments as of `fullest_rank`."""
    fuller = fullest_rank(ranks, tokens, experts, top_k, spread)
    rows = tokens * top_k / ranks * fuller
    reached = experts / ranks * experts_reached(tokens, experts, top_k * fuller, spread)
    return rows, np.clip(reached, 1.0, np.maximum(1.0, rows))


def expert_seconds(
    kernel: ExpertKernel,
    rates: MatmulRates,
    rows: Floats,
    reached: Floats,
    hidden: Floats | float,
    inter: Floats | float,
    matmuls: float = 3.0,
) -> Floats:
    """Seconds of one layer's routed experts on one device; arrays of any one shape.

    `rows` are spread over `reached` experts (`routed`); `inter` is the width of an expert on this device (its whole
    width over expert-tensor parallelism), `rates` those of one product without the kernel around it. `matmuls` is 3
    with a gate beside the up projection, else 2. The router's own matmul is not in here.
    """
    surface = rates.surface
    surface = replace(surface, height=surface.height * kernel.height, memory=surface.memory * kernel.memory)
    grouped = replace(rates, surface=surface)
    wide = (matmuls - 1.0) * inter
    each = rows / reached
    up = matmul_seconds(grouped, each, wide, hidden, reached)
    down = matmul_seconds(grouped, each, hidden, inter, reached)
    # In 16 bits: rows are gathered and added up, and the wide ones pass the activation.
    moved = rows * (2.0 * (2.0 * hidden + wide + inter)) * (kernel.passes / rates.memory_bandwidth)
    return up + down + kernel.launch_s + moved
