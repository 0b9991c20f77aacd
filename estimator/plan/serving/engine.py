"""How a serving engine schedules requests and divides a device's memory: plain data, made by `knowledge` from its file.

The few formulas at the end follow from the data alone. Arrays have shape (n,), one entry a deployment; memory in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from estimator.model.architecture import Architecture

Floats = NDArray[np.float64]
ShareOf = Literal["total", "start", "rest", "asked"]
# What a graph beyond `Reserve.wide_graph` sequences keeps: half as much again as others (SGLang, server_args.py).
_WIDE_GRAPH = 1.5
# Devices of a tensor group from which on larger graphs are captured (SGLang, server_args.py, tp_size < 4).
_WIDE_TP = 4.0
_HALF = 2.0
"""Bytes per element of activations between operators: engines run in 16 bits."""


@dataclass(frozen=True)
class Reserve:
    """What an engine leaves free by a rule, in bytes: `fixed`, and per token of a chunk, per sequence of the largest
    captured graph, per device of a replica (tp x pp); together never less than `least`. With data-parallel attention
    `graph_rank` is added per sequence of that graph and rank, and again half of it where the graph is beyond
    `wide_graph` sequences."""

    fixed: float
    token: float
    graph: float
    device: float
    least: float
    graph_rank: float
    wide_graph: int


@dataclass(frozen=True)
class Engine:
    """One engine in one version on one accelerator, with the defaults it takes there.

    Memory. `share_of` says what `memory_share` is a part of: 'total' (all memory that the device shows, holding
    weights, the largest step and the cache), 'start' (what is free before weights are read, holding weights and cache
    only), 'rest' (what weights and the largest step leave, for the cache) or 'asked' (nothing is claimed; the cache is
    as large as the context asked for, `cache_in_full`; `context` tokens unless asked, 0: no more than the load needs).
    `share_steps` are other shares from so many tensor-parallel
    devices on, ascending; `reserve` a rule in place of a share, and `wide_share` what the engine is told where experts
    are spread beyond a node and that leaves less (0: nothing). `driver_bytes` is what the driver's own total shows
    more than processes see, `context_bytes` the device context, `collective_bytes` buffers of NCCL and of the engine's
    own all-reduce where a replica has several devices. `graph_bytes` are all captured graphs together;
    `graphs_inside` is true where they count against the share. `profiles` is true where the engine runs its largest
    step and sets the peak aside: `sampled_most` sequences sampled at once, `sampler_bytes` per logit of theirs.
    `block_tokens` is the granularity of the cache; `bounds_windows` is true where layers with a window keep only it.
    Where windows are bounded, `window_share` of the tokens that whole layers keep have room in those with one (0: as
    many as the window has). `state_share` of the cache is for recurrent states, `request_states` for each request (0:
    both as they are needed). `loads_tower` is true where what reads images is loaded with every model that has
    it. `splits_embedding` is true where tensor parallelism cuts the embedding by vocabulary, `embedding_on_host` where
    it is looked up in host memory. `fp8_cache` is true where a checkpoint in 8 or 4 bits turns the cache to 8 bits too.
    `usual_format` is what it is given of models in 16 bits ('': these).

    Scheduling. `max_batch` sequences and `max_tokens` tokens at most take part in a step (`offline_max_tokens` where
    the engine is called as a library); `drafting_batch` in all lanes of a server where it drafts (0: no other limit).
    `whole_prompts` is true where a step must hold the longest request, so that its tokens grow with the context, unless
    that is beyond `chunks_beyond` tokens. `chunks` is true where long prompts are cut, `mixes` where prompts and
    generation share a step (false: prompts go first, in steps of their own). `batches` is 'continuous', 'static' (a
    batch starts and ends together) or 'single'; `padded` is true where prompts of a batch are filled up to the longest.
    `overlaps` is true where the host prepares the next step while the device runs one, `overlaps_stages` and
    `overlaps_drafts` where it does so in a pipeline and with drafts, too. `reserves_output` is true where a request is
    admitted only when its whole output has room. `prefix_cache` says whether prefixes are reused unless told otherwise.

    Execution. `graphs` is true where generation runs as CUDA graphs of up to `graph_batch` sequences (`graph_sizes`
    sizes captured), `graph_attention` where they hold attention too. Steps with prompts are graphs but for attention up
    to `mixed_graph_tokens` tokens, and launched kernel by kernel beyond. `row_products` is true where the experts of a
    single token are vectors times matrices, without the sorting and the tiles of many, `unpacks` where products of few
    bits unpack and scale them on vector lanes beside the tensor cores. `splits_context` is true where
    devices that would hold the same keys can hold a part of the tokens each. `grouped_queries` is true where
    query heads that share keys read them once in generation. Shared experts run in a stream of their own beside the
    routed ones for up to `shared_beside` tokens of a replayed graph. A layer is `layer_kernels`
    kernels besides collectives, one with experts `expert_kernels` in all; where no graph is replayed, each takes the
    host `launch_s`, and `eager_launch_s` at the least where none ever is.

    Collectives. `fused_all_reduce` is true where all-reduce and norm are one kernel, `all_reduce` names the engine
    whose kernels' timings stand for it ('' for vLLM's). `direct_limits` are (devices, bytes): the engine's own
    all-reduce is used up to so many bytes, in one shot up to `one_shot_limits`; `switch_limits` the same for kernels
    that let the switch add. Devices that are not listed use the collective library. `stage_batches` micro-batches are
    in flight per pipeline stage.

    Experts. With data-parallel attention tokens go to the ranks of their experts alone (all-to-all) from
    `all_to_all_from` ranks on, else to all of them (0: always); `two_batch` is true where a step may be cut in two that
    take turns on the links. `redundant_experts` is true where ranks may hold copies, so that their number need not
    divide that of the experts. A prompt waits `balance_steps` steps for those of other ranks.

    Host. `request_s` is the way of a request through its server. `host_step_s` and `host_sequence_s` are what
    scheduling, input preparation and sampling take on the host, per step and per running sequence; hidden behind the
    device where `overlaps`.

    `weight_formats` and `cache_formats` are those that it has kernels for on the accelerator, none where it does not
    run there; `lacks` are kinds of attention that it has none for. `speculative` is what it can draft with; `tp`, `pp`,
    `ep` and `attention_dp` which ways of splitting it has; experts go whole to all devices of a stage or are each cut
    over them where `ep_whole`, and a rank of attention is one device where `single_lanes`. `whole_blocks` is true where
    each device's part of a matrix has to be whole blocks of weights that share a scale. `splits_layers` is true where
    several devices hold layers one after the other, one at work at a time, unless told otherwise; these may be unlike
    each other, and a processor's weights are copied to a card for `lends_from` tokens or more (0: never).
    `processor_read` is the part of a processor's bandwidth that its own kernels read weights at (0: as fitted).
    """

    name: str
    version: str
    share_of: ShareOf
    memory_share: float
    share_steps: tuple[tuple[int, float], ...]
    wide_share: float
    reserve: Reserve | None
    driver_bytes: float
    context_bytes: float
    collective_bytes: float
    graph_bytes: float
    graphs_inside: bool
    profiles: bool
    sampled_most: int
    sampler_bytes: float
    block_tokens: int
    cache_in_full: bool
    context: int
    bounds_windows: bool
    window_share: float
    state_share: float
    request_states: float
    splits_embedding: bool
    embedding_on_host: bool
    loads_tower: bool
    fp8_cache: bool
    usual_format: str
    max_batch: int
    drafting_batch: int
    max_tokens: int
    offline_max_tokens: int
    whole_prompts: bool
    chunks_beyond: int | None
    chunks: bool
    mixes: bool
    batches: Literal["continuous", "static", "single"]
    padded: bool
    overlaps: bool
    overlaps_stages: bool
    overlaps_drafts: bool
    reserves_output: bool
    prefix_cache: bool
    graphs: bool
    graph_batch: int
    wide_graph_batch: int
    graph_sizes: int
    graph_attention: bool
    mixed_graph_tokens: int
    row_products: bool
    unpacks: bool
    grouped_queries: bool
    shared_beside: int
    splits_context: bool
    fused_all_reduce: bool
    all_reduce: str
    direct_limits: tuple[tuple[int, float], ...]
    one_shot_limits: tuple[tuple[int, float], ...]
    switch_limits: tuple[tuple[int, float], ...]
    all_to_all_from: int
    two_batch: bool
    balance_steps: float
    redundant_experts: bool
    stage_batches: int
    layer_kernels: int
    expert_kernels: int
    launch_s: float
    eager_launch_s: float
    request_s: float
    host_step_s: float
    host_sequence_s: float
    weight_formats: tuple[str, ...]
    cache_formats: tuple[str, ...]
    lacks: tuple[str, ...]
    speculative: tuple[str, ...]
    tp: bool
    pp: bool
    ep: bool
    ep_whole: bool
    attention_dp: bool
    single_lanes: bool
    whole_blocks: bool
    splits_layers: bool
    lends_from: int
    processor_read: float
    source: str

    @property
    def share_of_free(self) -> bool:
        """Whether the share is one of what weights and the largest step leave."""
        return self.share_of == "rest"


def most_tokens(engine: Engine, context: Floats | float, offline: bool = False) -> Floats:
    """Tokens of the largest step where requests may be `context` tokens long."""
    usual = float(engine.offline_max_tokens if offline else engine.max_tokens)
    if not engine.whole_prompts:
        return np.asarray(usual, dtype=np.float64)
    whole = np.maximum(np.asarray(context, dtype=np.float64), usual)
    return whole if engine.chunks_beyond is None else np.where(whole > engine.chunks_beyond, usual, whole)


def largest_graph(engine: Engine, tp: Floats) -> Floats:
    """Sequences of the largest graph that is captured for generation."""
    return np.where(np.asarray(tp) >= _WIDE_TP, float(engine.wide_graph_batch), float(engine.graph_batch))


def shares(
    engine: Engine, total_bytes: Floats | float, tp: Floats, pp: Floats, attention_dp: Floats | float = 1.0
) -> Floats:
    """Part of a device's `total_bytes` that the engine claims by default."""
    tp = np.asarray(tp, dtype=np.float64)
    rule = engine.reserve
    if rule is not None:
        graph = largest_graph(engine, tp)
        kept = rule.fixed + rule.token * engine.max_tokens + rule.graph * graph + rule.device * tp * pp
        ranks = np.where(np.asarray(attention_dp) > 1.0, attention_dp, 0.0)
        kept = kept + rule.graph_rank * graph * ranks * np.where(graph > rule.wide_graph, _WIDE_GRAPH, 1.0)
        # A byte at least: all of the memory may be reserved for others.
        return 1.0 - np.maximum(kept, rule.least) / np.maximum(total_bytes, 1.0)
    fraction = np.full(tp.shape, engine.memory_share)
    for devices, share in engine.share_steps:
        fraction = np.where(tp >= devices, share, fraction)
    return fraction


def profiled_bytes(
    engine: Engine, architecture: Architecture, tokens: Floats | float, sequences: Floats | float, tp: Floats
) -> Floats:
    """Activations at the peak of a step of `tokens` tokens that samples `sequences` sequences.

    Residual stream and its normed copy stand through the step. Beside them are either the widest pair of neighbours in
    a layer (projection and what follows it; for experts of every token's choice, as vLLM's fused_experts allocates its
    caches) or, at the end, the logits with all that sampling makes of them, which tensor parallelism does not split.
    """
    tp = np.asarray(tp, dtype=np.float64)
    stream = 2.0 * _HALF * np.asarray(tokens, dtype=np.float64) * architecture.hidden
    inner = np.zeros(tp.shape)
    for block in architecture.blocks:
        wide = 3.0 if block.gated else 2.0
        dense = wide * np.maximum(block.ffn_width, block.shared_width) / tp
        gate = 2.0 if block.gated else 1.0
        chosen = np.maximum(gate * block.expert_width / tp, architecture.hidden) + block.expert_width / tp
        attention = (2.0 * block.heads + 2.0 * block.kv_heads) * block.head_dim / tp
        inner = np.maximum(inner, np.maximum(np.maximum(dense, attention), block.top_k * chosen * (block.experts > 0)))
    layer = _HALF * np.asarray(tokens, dtype=np.float64) * inner
    rows = np.minimum(np.asarray(sequences, dtype=np.float64), engine.sampled_most)
    logits = rows * architecture.vocab * engine.sampler_bytes
    return stream + np.maximum(layer, logits)


@dataclass(frozen=True)
class Split:
    """Devices that one copy of the model is cut over; arrays of shape (n,)."""

    tp: Floats
    pp: Floats
    attention_dp: Floats | float = 1.0


def cache_room(
    engine: Engine,
    usable_bytes: Floats | float,
    weight_bytes: Floats,
    step_bytes: Floats,
    split: Split,
    share: float | None = None,
    graphs: bool = True,
) -> Floats:
    """Bytes that the engine gives to the cache of each device: never less than 0.

    `usable_bytes` is the device's memory as its driver counts it, `weight_bytes` and `step_bytes` what weights and the
    largest step take on the fullest device, `share` a share that the user asks for in place of the default. Graphs that
    are captured outside the share may not find room any more where the share is close to 1: engines do not look.
    """
    tp, pp = np.asarray(split.tp, dtype=np.float64), np.asarray(split.pp, dtype=np.float64)
    attention_dp = split.attention_dp
    total = np.asarray(usable_bytes, dtype=np.float64) - engine.driver_bytes
    claimed = shares(engine, usable_bytes, tp, pp, attention_dp) if share is None else np.full(tp.shape, share)
    collective = engine.collective_bytes * (tp * pp * np.asarray(attention_dp) > 1.0)
    graph = engine.graph_bytes * (graphs and engine.graphs)
    free = total - engine.context_bytes - collective
    rest = free - weight_bytes - step_bytes
    if engine.share_of == "start":
        room = np.minimum(claimed * free - weight_bytes, free - weight_bytes)
    elif engine.share_of == "rest":
        room = claimed * (rest - graph)
    elif engine.share_of == "total":
        inside = weight_bytes + step_bytes + collective + (graph if engine.graphs_inside else 0.0)
        room = np.minimum(claimed * total - inside, rest)
    else:
        room = rest - graph
    return np.maximum(0.0, room)


def allowed(limits: tuple[tuple[int, float], ...], devices: int) -> float:
    """Bytes up to which a kernel is used by `devices` devices; 0 where it is not."""
    return dict(limits).get(devices, 0.0)
