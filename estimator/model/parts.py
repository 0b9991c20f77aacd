"""A model cut into what each device of a machine holds: some of its layers, layers without their experts, or experts
alone. Each is an Architecture, so that memory and time of it are counted by the same formulas."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from estimator.model.architecture import Architecture, Block, WeightMatrix


def layers_of(architecture: Architecture, first: int, last: int, outside: bool) -> Architecture:
    """Layers `first` up to `last`, with embedding, head and what reads images where `outside`."""
    part = replace(architecture, pattern=architecture.pattern[first:last])
    if outside:
        return part
    return replace(
        part,
        vocab=0,
        head_bias=False,
        position_parameters=0,
        extra_parameters=0,
        layer_embedding_parameters=0,
        vision=None,
    )


def without_experts(architecture: Architecture, layers: int) -> Architecture:
    """The same, but the routed experts of the first `layers` layers that have some are held elsewhere."""
    bare = tuple(_bare(block) for block in architecture.blocks)
    kinds, left = len(architecture.blocks), layers
    pattern = []
    for kind in architecture.pattern:
        moved = left > 0 and bool(architecture.blocks[kind].experts)
        pattern.append(kind + kinds * moved)
        left -= moved
    return replace(architecture, blocks=architecture.blocks + bare, pattern=tuple(pattern))


def only_experts(architecture: Architecture, layers: int) -> Architecture:
    """The routed experts of the first `layers` layers that have some."""
    alone = tuple(_experts(block) for block in architecture.blocks)
    routed = [kind for kind in architecture.pattern if architecture.blocks[kind].experts]
    part = replace(architecture, blocks=alone, pattern=tuple(routed[:layers]))
    return layers_of(part, 0, layers, outside=False)


@lru_cache(maxsize=64)
def draft_layer(architecture: Architecture) -> Architecture:
    """The layer that drafts tokens: one as the last that attends, behind a projection of the last hidden state and the
    next token's embedding to the model's width, with the model's own embedding and head (multi-token prediction:
    DeepSeek-V3, section 2.2; EAGLE: Li et al. 2024, section 3.1)."""
    attending = (i for i, kind in enumerate(architecture.pattern) if architecture.blocks[kind].heads)
    last = max(attending, default=architecture.layers - 1)
    alone = layers_of(architecture, last, last + 1, outside=True)
    block = alone.blocks[alone.pattern[0]]
    joined = WeightMatrix("eh_proj", 2 * alone.hidden, alone.hidden, "mlp", "none")
    drafting = replace(block, matrices=(*block.matrices, joined))
    return replace(alone, id=f"{alone.id} drafting", blocks=(drafting,), pattern=(0,))


def expert_layers(architecture: Architecture) -> int:
    """Layers with routed experts."""
    return sum(bool(architecture.blocks[kind].experts) for kind in architecture.pattern)


def _bare(block: Block) -> Block:
    matrices = tuple(matrix for matrix in block.matrices if matrix.role != "expert")
    return replace(block, matrices=matrices, experts=0, top_k=0, expert_width=0) if block.experts else block


def _experts(block: Block) -> Block:
    matrices = tuple(matrix for matrix in block.matrices if matrix.role == "expert")
    return Block(
        mixer="none",
        feed=block.feed,
        matrices=matrices,
        vector_parameters=0,
        norms=0,
        gated=block.gated,
        experts=block.experts,
        top_k=block.top_k,
        expert_width=block.expert_width,
    )
