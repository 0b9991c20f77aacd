"""Memory per device of a serving engine: weights, cache, activations and what the engine keeps besides.

An engine claims a share of the device, fills it with weights and the activations of its largest step, and gives the
rest to the cache (Kwon et al. 2023, PagedAttention, section 4; vLLM Worker.determine_available_memory). Arrays have
shape (n,), sizes are bytes of the fullest device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import numpy as np

from estimator.model.architecture import Architecture
from estimator.plan.layouts import Floats
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.engine import Split, cache_room, profiled_bytes
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.stages import sum_of
from estimator.serving.operators import cache_share
from estimator.units import BITS_PER_BYTE, FP32_BYTES

# Share of a device that an engine can be told to claim where its default leaves too little for the cache.
MOST_SHARE = 0.95
# Engines hold what reads images in 16 bits and split it over the tensor group (vLLM, mm_encoder_tp_mode: weights).
_TOWER_BYTES = 2.0
COMPONENTS = ("weights", "kv_cache", "activations", "cuda_graphs", "framework_and_context")


@dataclass(frozen=True)
class ServingMemory:
    """`components` and `total` are what the plan's requests need at their usual number; `capacity` is the device.

    `claimed` is what the engine takes, which is more where it fills its share with cache; `room` is what that leaves
    for the cache (`share` of the device where that takes more than the engine's default, else NaN), `room_tokens` the
    tokens of one lane that it holds (inf where no layer's cache grows), `per_token_bytes` and `state_bytes` what a
    token and a request take of it. `max_concurrency` are whole requests over all lanes at full length, `longest` is the
    longest request that fits alone.
    """

    components: dict[str, Floats]
    total: Floats
    claimed: Floats
    capacity: float
    fits: np.ndarray
    room: Floats
    share: Floats
    room_tokens: Floats
    per_token_bytes: Floats
    state_bytes: Floats
    max_concurrency: Floats
    longest: Floats

    def running(self, job: ServingJob, these: Deployments, sequences: Floats) -> ServingMemory:
        """The same with `sequences` requests at once in a lane, half generated each."""
        mean = request_bytes(
            job, self.per_token_bytes, self.state_bytes, job.mean_context(these.input_len, these.output_len)
        )
        least = self.components["kv_cache"]
        cache = np.maximum(least, np.minimum(sequences * mean, np.maximum(self.room, least)))
        components = self.components | {"kv_cache": cache}
        return replace(self, components=components, total=self.total - least + cache)


def serving_memory(job: ServingJob, these: Deployments) -> ServingMemory:
    """Memory of each deployment with one request in each lane; of unlike devices, that of the fullest."""
    if job.parts:
        parts = [serving_memory(part.job, part.of(these)) for part in job.parts]
        return _fullest(parts, [at for at, part in enumerate(job.parts) if part.lent is not None])
    engine = job.engine
    weights = weight_bytes(job, these)
    activations = activation_bytes(job, these)
    graphs = np.full(len(these), engine.graph_bytes if job.graphs else 0.0)
    several = these.tp * these.pp * these.dp > 1
    context = engine.driver_bytes + engine.context_bytes + engine.collective_bytes * several
    share = job.inference.memory_share
    parts = (job.usable_bytes, weights, activations, Split(these.tp, these.pp, these.dp))
    room = cache_room(engine, *parts, share, job.graphs)
    per_token, state = cache_bytes(job, these)
    length = these.input_len + these.output_len
    wanted = length if job.inference.max_context is None else np.maximum(length, float(job.inference.max_context))
    needed = request_bytes(job, per_token, state, wanted)
    told = np.full(len(these), np.nan)
    if share is None and engine.wide_share and these.wide.any():
        more = cache_room(engine, *parts, engine.wide_share, job.graphs)
        wider = these.wide & (more > room)
        told, room = np.where(wider, engine.wide_share, told), np.where(wider, more, room)
    if share is None and engine.share_of != "asked" and (needed > room).any():
        more = cache_room(engine, *parts, MOST_SHARE, job.graphs)
        raised = (needed > room) & (needed <= more)
        told, room = np.where(raised, MOST_SHARE, told), np.where(raised, more, room)
    components = {
        "weights": weights,
        "kv_cache": needed,
        "activations": activations,
        "cuda_graphs": graphs,
        "framework_and_context": context,
    }
    fixed = weights + activations + graphs + context
    grows = per_token > 0.0
    each = np.maximum(per_token, 1e-9)
    return ServingMemory(
        components=components,
        total=fixed + needed,
        claimed=fixed + (needed if engine.cache_in_full else room),
        capacity=job.usable_bytes,
        fits=(needed <= room) & (fixed + needed <= job.usable_bytes),
        room=room,
        share=told,
        room_tokens=np.where(grows, room / each, np.inf),
        per_token_bytes=per_token,
        state_bytes=state,
        max_concurrency=np.floor(room / np.maximum(request_bytes(job, per_token, state, length), 1e-9)) * these.lanes,
        longest=np.where(grows, np.floor(np.maximum(0.0, room - state) / each), np.inf),
    )


def _fullest(parts: Sequence[ServingMemory], hosted: Sequence[int]) -> ServingMemory:
    """That of the device that has room for the fewest tokens, or is fullest where none is bound by its cache; it fits
    where all do, those that are `hosted` by one processor together."""
    room = max([0.0, *(parts[at].capacity for at in hosted)])
    together = sum((parts[at].total for at in hosted), np.zeros(1)) <= room
    by_room = [(float(part.room_tokens.min()), -float(part.total.max()) / part.capacity) for part in parts]
    tightest = parts[min(range(len(parts)), key=by_room.__getitem__)]
    return replace(
        tightest,
        fits=reduce(np.logical_and, (part.fits for part in parts), together),
        max_concurrency=reduce(np.minimum, (part.max_concurrency for part in parts)),
        longest=reduce(np.minimum, (part.longest for part in parts)),
    )


def request_bytes(job: ServingJob, per_token: Floats | float, state: Floats | float, length: Floats | float) -> Floats:
    """Bytes on one device that a request of `length` tokens takes, in whole blocks."""
    block = float(job.engine.block_tokens)
    return taken_bytes(job, per_token * (np.ceil(length / block) * block), state)


def taken_bytes(job: ServingJob, tokens: Floats | float, state: Floats | float) -> Floats:
    """Bytes of the cache that a request with so many of `tokens` and of `state` takes; where these have parts of their
    own, the scarcer one counts, as a part of the whole."""
    if not pools_states(job):
        return np.asarray(tokens + state)
    share = job.engine.state_share
    return np.maximum(job.engine.request_states * state / share, tokens / (1.0 - share))


def pools_states(job: ServingJob) -> bool:
    """Whether recurrent states have a part of the cache for themselves."""
    return job.engine.state_share > 0.0 and any(block.ssm_inner for block in job.architecture.blocks)


def weight_bytes(job: ServingJob, these: Deployments) -> Floats:
    """Weights on the fullest device."""
    return sum_of(weights_by_kind(job, these).values())


def weights_by_kind(job: ServingJob, these: Deployments) -> dict[str, Floats]:
    """The same by kind of parameter: matrices in their format, vectors in 16 bits, embedding and head on the first and
    last stage, split by vocabulary where there is a tensor group."""
    column, whole, experts, vectors, copied = _counted(job.architecture)
    tp = these.tp.astype(np.float64)
    layer_share = np.ceil(job.architecture.layers / these.pp) / job.architecture.layers
    # Copies of experts fill the ranks evenly where their number does not divide that of the experts.
    held = np.ceil(job.architecture.experts / these.ep) / max(1, job.architecture.experts)
    dense, routed = column / tp + whole, experts * held / these.etp
    for kv_heads, parameters in copied:
        # Key and value heads of which there are fewer than devices are held more than once.
        dense = dense + parameters * (np.maximum(1.0 / tp, 1.0 / kv_heads) - 1.0 / tp)
    table = job.architecture.embedding_parameters * job.weights.embedding_bits / BITS_PER_BYTE
    tied = job.architecture.head_parameters < job.architecture.embedding_parameters
    head = job.architecture.embedding_parameters * job.weights.head_bits / BITS_PER_BYTE
    if job.engine.embedding_on_host:
        table = head if tied else 0.0
    both = (0.0 if tied else head) + table
    ends = np.where(these.pp > 1, max(table, head), both) / np.where(job.engine.splits_embedding, tp, 1.0)
    tables = job.architecture.layer_embedding_parameters
    outside = (job.architecture.position_parameters + job.architecture.extra_parameters - tables) * job.wide_bytes
    if not job.engine.embedding_on_host:
        outside += tables * job.weights.embedding_bits / BITS_PER_BYTE
    tower = job.architecture.vision
    seeing = {} if tower is None or not job.loads_tower else {"vision": tower.parameters * _TOWER_BYTES / tp}
    drafting = {} if job.drafter is None else {"drafting": _drafting_bytes(job.drafter, these)}
    return (
        seeing
        | drafting
        | {
            "dense": layer_share * (dense * job.block_bytes),
            "experts": layer_share * (routed * job.expert_bytes),
            "vectors": layer_share * (vectors * job.weights.vector_bits / BITS_PER_BYTE),
            "embedding_and_head": ends,
            "outside": outside + np.zeros(len(these)),
        }
    )


def _drafting_bytes(drafter: ServingJob, these: Deployments) -> Floats:
    """The layer that drafts, whose embedding and head are the model's own."""
    held = weights_by_kind(drafter, these)
    return held["dense"] + held["experts"] + held["vectors"]


@lru_cache(maxsize=64)
def _counted(architecture: Architecture) -> tuple[float, float, float, float, tuple[tuple[int, float], ...]]:
    """Parameters of all layers: in matrices that tp splits, in those it does not, of routed experts, in vectors; and
    of those that tp splits (key heads, parameters) of keys and values."""
    split, whole, experts, vectors = 0.0, 0.0, 0.0, 0.0
    keys: dict[int, float] = {}
    for kind, block in enumerate(architecture.blocks):
        count = architecture.pattern.count(kind)
        vectors += count * block.vector_parameters
        for matrix in block.matrices:
            if matrix.role == "expert":
                experts += count * matrix.parameters
            elif matrix.split == "none":
                whole += count * matrix.parameters
            else:
                split += count * matrix.parameters
                if matrix.name in ("k_proj", "v_proj") and block.kv_heads:
                    keys[block.kv_heads] = keys.get(block.kv_heads, 0.0) + count * matrix.parameters
    return split, whole, experts, vectors, tuple(keys.items())


def cache_bytes(job: ServingJob, these: Deployments) -> tuple[Floats, Floats]:
    """(Bytes per token on the fullest device of layers whose cache grows with the request, bytes per request of what
    does not: windows, recurrent states, and images that layers of cross-attention read)."""
    tp = these.tp.astype(np.float64)
    per_token, state = np.zeros(len(these)), np.zeros(len(these))
    layer_share = np.ceil(job.architecture.layers / these.pp) / job.architecture.layers
    length = these.input_len + these.output_len
    for kind, block in enumerate(job.architecture.blocks):
        count = job.architecture.pattern.count(kind) * layer_share
        size = count * block.cache_bytes_per_token(job.kv_bytes) * cache_share(block, tp, job.context_parts)
        if block.crosses:
            kept = count * block.entry_bytes(job.kv_bytes) * cache_share(block, tp, job.context_parts)
            state = state + kept * job.image_keys
        elif block.window is not None and job.engine.bounds_windows:
            if job.engine.window_share:
                per_token = per_token + job.engine.window_share * size
            else:
                state = state + size * np.minimum(block.window, length)
        else:
            per_token = per_token + size
            local = count * block.entry_bytes(job.kv_bytes) * cache_share(block, tp, job.context_parts)
            state = state + local * np.minimum(block.local_window, length)
        if block.ssm_inner:
            state = state + count * FP32_BYTES * block.ssm_inner * max(1, block.state_size) / tp
    if job.drafter is not None:
        drafted, kept = cache_bytes(job.drafter, these)
        return per_token + drafted, state + kept
    return per_token, state


def activation_bytes(job: ServingJob, these: Deployments) -> Floats:
    """The largest step's activations: of the largest step that there can be where the engine measures and sets them
    aside, of the largest that the load makes where it does not."""
    tokens, sequences = these.max_tokens, these.max_batch
    if not job.engine.profiles:
        lanes = np.minimum(np.minimum(these.concurrency, these.requests) / these.lanes, these.max_batch)
        sequences = np.maximum(1.0, np.where(np.isfinite(lanes), lanes, 1.0))
        tokens = np.minimum(tokens, sequences * these.read_len)
    return profiled_bytes(job.engine, job.architecture, tokens, sequences, these.tp)
