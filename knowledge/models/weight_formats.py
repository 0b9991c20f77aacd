"""Formats of served weights: from names and the rules of quantisers to bits per weight of a model's matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from estimator.errors import PlanError, nearest
from estimator.model.architecture import Architecture, Block, WeightMatrix
from estimator.model.weight_format import Kernel, WeightFormat
from knowledge.data_files import document, inherited
from knowledge.models.catalogue import architecture as find_architecture

FIELD = "workload.weight_dtype"
REFERENCE_MODEL = "meta-llama/Meta-Llama-3-8B"
"""Means of formats that mix types are of this model unless another is given."""

_SHARED_QUERIES = 4
"""Query heads per key head from which llama.cpp gives the value projection, then small, more bits (n_gqa)."""


@dataclass(frozen=True)
class StorageType:
    """`bits` per weight with scales, minima and zero points; `group` weights have one scale (0: a tensor or a row).

    `narrow` names the type that is taken where rows are no multiple of `group`. Where a group is a square of rows and
    columns, `block` is its side.
    """

    name: str
    bits: float
    group: int
    narrow: str = ""
    block: int = 1


@dataclass(frozen=True)
class Deviation:
    """`matrix` has `type` in some `layers` (rules: _count) and `otherwise` ('' for the format's own) in the rest.

    `few_queries` is taken instead, in all layers, where fewer than four query heads share a key head.
    """

    matrix: str
    layers: str
    type: str
    otherwise: str = ""
    few_queries: str = ""


@dataclass(frozen=True)
class Rules:
    """An entry of the data: names of storage types of the blocks' matrices, of routed experts, of attention and scans
    (`mixers`) and of the attention of MLA models ('' as `matrices`), of embedding, head, routers and vectors.

    Experts are held as if the model's width were a whole multiple of `expert_multiple`.
    `split_latent`: the projection of MLA's latent is held as two tensors.
    `bits` and `head_bits` are given where a file's own means are known. `plain_kernels` multiply what is not an expert
    where only experts are quantised.
    """

    name: str
    matrices: str
    embedding: str
    head: str
    router: str
    vectors: str
    kernels: tuple[Kernel, ...]
    source: str
    plain_kernels: tuple[Kernel, ...] = ()
    experts: str = ""
    expert_multiple: int = 1
    mla_attention: str = ""
    mixers: str = ""
    split_latent: bool = False
    exceptions: tuple[Deviation, ...] = ()
    bits: float | None = None
    head_bits: float | None = None


def weight_format(
    name: str, engine: str = "", architecture: Architecture | None = None, bits: float | None = None
) -> WeightFormat:
    """The format that a name means, in any case and by its aliases ('FP4', '4bit', 'Q4_K_M'), as `engine` holds it.

    Means are those of `architecture` (Llama-3-8B unless given). `bits` is the mean of the blocks' matrices where a file
    says it (EXL2). Raises PlanError for an unknown name with the nearest ones.
    """
    if architecture is None:
        return _reference_format(name, engine, bits)
    return _format_of(weight_rules(name, engine), architecture, bits)


@lru_cache(maxsize=256)
def _reference_format(name: str, engine: str, bits: float | None) -> WeightFormat:
    return _format_of(weight_rules(name, engine), find_architecture(REFERENCE_MODEL), bits)


def _format_of(rules: Rules, model: Architecture, bits: float | None) -> WeightFormat:
    stated_bits = rules.bits if bits is None else bits
    plain = stated_bits or _mean_bits(rules, model, experts=False)
    head = rules.head_bits if rules.head_bits is not None else _bits(rules.head, model.hidden)
    mean = WeightFormat(
        name=rules.name,
        bits=plain,
        expert_bits=stated_bits or _mean_bits(rules, model, experts=True) or plain,
        embedding_bits=head if model.tied else _bits(rules.embedding, model.hidden),
        head_bits=head,
        router_bits=_bits(rules.router, model.hidden),
        vector_bits=_types()[rules.vectors].bits,
        group=_types()[rules.experts or rules.matrices].group,
        block=_types()[rules.matrices].block,
        expert_block=_types()[rules.experts or rules.matrices].block,
        kernels=rules.plain_kernels or rules.kernels,
        expert_kernels=rules.kernels,
        source=rules.source,
    )
    return _as_held(mean, model) if bits is None else mean


def _as_held(weights: WeightFormat, model: Architecture) -> WeightFormat:
    """With the bits of the model's own file, where that holds this format."""
    held = model.held
    if held is None or weights.name != (model.weight_format or "bf16"):
        return weights
    return replace(
        weights,
        bits=held.plain,
        expert_bits=held.experts,
        embedding_bits=held.embedding,
        head_bits=held.head,
        router_bits=held.router,
        vector_bits=held.vectors,
        source="the file's own header",
    )


def weight_formats() -> list[str]:
    """Names of all formats, in the order of the data."""
    return list(_document()["formats"])


def plan_format(name: str) -> str:
    """The format of a Plan (WeightDtype) that an entry is a kind of: fp8 for blocks of fp8. Raises KeyError."""
    return _document()["formats"][name].get("held_as", name)


@lru_cache(maxsize=256)
def weight_rules(name: str, engine: str = "") -> Rules:
    """What an entry says, by any of its names. Raises PlanError for an unknown name."""
    known = _names()
    wanted = name.strip().casefold()
    format_name = known.get(wanted) or known.get(wanted.replace("-", "_"))
    if format_name is None:
        raise PlanError(FIELD, f"there is no weight format {name[:60]!r}", nearest(wanted, weight_formats()))
    fields = inherited(_document()["formats"], format_name, own=("aliases", "engines", "held_as"))
    row = _document()["formats"][format_name]
    fields = {key: value for key, value in fields.items() if key not in ("aliases", "engines", "held_as")}
    fields |= row.get("engines", {}).get(engine, {})
    for key in ("kernels", "plain_kernels"):
        fields[key] = tuple(Kernel(**kernel) for kernel in fields.get(key, ()))
    fields["exceptions"] = tuple(Deviation(**exception) for exception in fields.get("exceptions", ()))
    return Rules(name=format_name, **fields)


def matrix_bits(rules: Rules, matrix: WeightMatrix, block: Block, layers: int) -> float:
    """Bits per weight of a matrix, the mean over the `layers` of the model."""
    if matrix.role == "router":
        return _bits(rules.router, matrix.inputs)
    if matrix.role == "expert" and rules.experts:
        return _bits(rules.experts, matrix.inputs)
    if matrix.role in ("attention", "ssm") and rules.mixers:
        return _bits(rules.mixers, matrix.inputs)
    if matrix.role == "attention" and block.mixer == "mla" and rules.mla_attention:
        return _bits(rules.mla_attention, matrix.inputs)
    if matrix.name == "kv_b_proj" and rules.split_latent:
        # attn_k_b, whose rows are as wide as a head's keys, and attn_v_b: llama.cpp's rules name neither.
        keys = block.head_dim - block.rope_head_dim
        both = keys * _bits(rules.matrices, keys) + block.v_head_dim * _bits(rules.matrices, matrix.inputs)
        return both / (keys + block.v_head_dim)
    known_as = _known_as(matrix.name, block)
    for exception in rules.exceptions:
        if exception.matrix == known_as:
            if exception.few_queries and block.heads < _SHARED_QUERIES * block.kv_heads:
                return _bits(exception.few_queries, matrix.inputs)
            share = _count(exception.layers, layers) / layers
            rest = _bits(exception.otherwise or rules.matrices, matrix.inputs)
            return share * _bits(exception.type, matrix.inputs) + (1.0 - share) * rest
    return _bits(rules.matrices, matrix.inputs)


def _mean_bits(rules: Rules, model: Architecture, experts: bool) -> float:
    """Mean bits per weight of the routed experts, or of all other matrices of blocks but routers; 0 without any."""
    total = held = 0.0
    for kind, block in enumerate(model.blocks):
        count = model.pattern.count(kind)
        for matrix in block.matrices:
            if matrix.role != "router" and (matrix.role == "expert") == experts:
                size = count * matrix.copies * matrix.inputs * matrix.outputs
                total += size
                held += size * matrix_bits(rules, matrix, block, model.layers)
    padded = -(-model.hidden // rules.expert_multiple) * rules.expert_multiple / model.hidden if experts else 1.0
    return padded * held / total if total else 0.0


def _known_as(name: str, block: Block) -> str:
    """What llama.cpp's rules know a matrix by: a fused q, k and v has the rule of v, that of linear attention too."""
    if name == "in_proj_qkv" or (block.fused_qkv and name in ("q_proj", "k_proj")):
        return "v_proj"
    return name.removeprefix("shared_")


@cache
def _count(rule: str, layers: int) -> int:
    """Layers that a rule of llama.cpp names; `more` is its use_more_bits: the first and last eighth and every third
    between them."""
    eighth = layers // 8
    if rule == "more":
        return sum(i < eighth or i >= 7 * layers // 8 or (i - eighth) % 3 == 2 for i in range(layers))
    outer = layers - max(0, 7 * layers // 8 - eighth)
    counts = {
        "all": layers,
        "outer_eighths": outer,
        "first_eighth": eighth,
        "first_sixteenth": layers // 16,
        "first_4": 4,
        "first_2": 2,
    }
    return min(layers, counts[rule])


def _bits(name: str, inputs: int) -> float:
    kind = _types()[name]
    if kind.narrow and inputs % kind.group:
        kind = _types()[kind.narrow]
    return kind.bits


@cache
def _document() -> dict[str, Any]:
    return document("weight_formats.yaml")


@cache
def _types() -> dict[str, StorageType]:
    return {name: StorageType(name, **fields) for name, fields in _document()["types"].items()}


@cache
def _names() -> Mapping[str, str]:
    """Every name and alias, folded, to the format."""
    formats = _document()["formats"]
    return {alias: name for name, row in formats.items() for alias in (name, *row.get("aliases", ()))}
