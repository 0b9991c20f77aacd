"""What a model is made of: blocks of weight matrices, exact to the last parameter.

A model is a sequence of blocks. A block is a table of matrices (each a matmul in the forward pass) and a count of
vector parameters (norms, gates, convolutions). Parameter counts, matmul shapes, adapter sizes and shards all follow
from the same table, so that they cannot disagree. `estimator.model.configs.build` makes it from a HF config.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Mixer = Literal["attention", "mla", "mamba1", "mamba2", "linear_attention", "none"]
Feed = Literal["dense", "moe", "none"]
Split = Literal["column", "row", "none"]
Role = Literal["attention", "mlp", "expert", "shared_expert", "router", "ssm"]


@dataclass(frozen=True)
class WeightMatrix:
    """`copies` weight matrices of shape (outputs, inputs), each with a bias of `outputs` when `bias`.

    `split` is how tensor parallelism cuts it: by outputs (column), by inputs (row) or not at all. Matrices with role
    `expert` have one copy per routed expert and see only the tokens routed to them.
    """

    name: str
    inputs: int
    outputs: int
    role: Role
    split: Split
    copies: int = 1
    bias: bool = False

    @property
    def parameters(self) -> int:
        return self.copies * (self.inputs * self.outputs + (self.outputs if self.bias else 0))


@dataclass(frozen=True)
class Block:
    """One kind of decoder layer.

    Widths are in elements: `heads` query heads of `head_dim` (MLA: query/key width, `v_head_dim` for values). `window`
    is the attention span in tokens where it is bounded. `norms` is how many norms of width hidden the block runs; norm
    weights and all other vectors are counted in `vector_parameters`. `expert_width` is the inner width of one routed
    expert, `shared_width` of all shared experts together. `state_size` and `conv_kernel` belong to the SSM mixers.
    `fused_qkv` is true where one projection makes q, k and v and v stays a view of it, `copied_output` where the output
    of attention is copied before its projection (both in the Hugging Face modules). `borrows_cache`: it reads the keys
    and values of an earlier layer and keeps none.
    """

    mixer: Mixer
    feed: Feed
    matrices: tuple[WeightMatrix, ...]
    vector_parameters: int
    norms: int = 2
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    window: int | None = None
    qk_norm: bool = False
    ffn_width: int = 0
    gated: bool = True
    experts: int = 0
    top_k: int = 0
    expert_width: int = 0
    shared_width: int = 0
    state_size: int = 0
    ssm_inner: int = 0
    conv_kernel: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    fused_qkv: bool = False
    copied_output: bool = False
    borrows_cache: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Blocks are keys of what is memoised of layouts, so theirs is computed once."""
        return hash((self.mixer, self.feed, self.matrices, self.vector_parameters))

    @cached_property
    def parameters(self) -> int:
        return sum(matrix.parameters for matrix in self.matrices) + self.vector_parameters

    @cached_property
    def expert_parameters(self) -> int:
        """Parameters of all routed experts of the block."""
        return sum(matrix.parameters for matrix in self.matrices if matrix.role == "expert")

    @cached_property
    def active_parameters(self) -> int:
        """Parameters that one token uses: all but the routed experts not chosen."""
        if not self.experts:
            return self.parameters
        return self.parameters - self.expert_parameters + self.expert_parameters // self.experts * self.top_k

    @cached_property
    def kv_elements_per_token(self) -> int:
        """Elements that the KV cache holds per token (MLA: the compressed latent and the rotary key)."""
        if self.borrows_cache:
            return 0
        if self.mixer == "mla":
            return self.kv_lora_rank + self.rope_head_dim
        if self.mixer == "attention":
            return self.kv_heads * (self.head_dim + self.v_head_dim)
        return 0


@dataclass(frozen=True)
class Architecture:
    """A whole model: `blocks` are the distinct kinds, `pattern[i]` is the kind of layer i.

    `position_parameters` are learned positions; `extra_parameters` whatever stands outside the blocks besides
    embedding, head and positions (final norm, embedding norm, projections). A tied head is counted once, in the
    embedding. `weight_format` names what its published checkpoint holds ('' for 16 bits, or where it is not known).
    """

    id: str
    hidden: int
    vocab: int
    context: int
    blocks: tuple[Block, ...]
    pattern: tuple[int, ...]
    tied: bool
    head_bias: bool = False
    position_parameters: int = 0
    extra_parameters: int = 0
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    gemma_norm: bool = False
    activation: str = "silu"
    logit_softcap: bool = False
    dropout: float = 0.0
    parallel_block: bool = False
    multimodal: bool = False
    family: str = ""
    weight_format: str = ""
    notes: tuple[str, ...] = field(default=())

    def __hash__(self) -> int:
        """Of what tells models apart: hashing every matrix would take longer than an estimate."""
        return hash((self.id, self.hidden, self.vocab, len(self.pattern)))

    @property
    def layers(self) -> int:
        return len(self.pattern)

    @cached_property
    def embedding_parameters(self) -> int:
        return self.vocab * self.hidden

    @cached_property
    def head_parameters(self) -> int:
        """Parameters of the output head that are not shared with the embedding."""
        return (0 if self.tied else self.vocab * self.hidden) + (self.vocab if self.head_bias else 0)

    @cached_property
    def parameters(self) -> int:
        body = sum(self.blocks[kind].parameters for kind in self.pattern)
        outside = self.embedding_parameters + self.head_parameters + self.position_parameters + self.extra_parameters
        return body + outside

    @cached_property
    def active_parameters(self) -> int:
        """Parameters one token uses, embedding and head included (makers often leave those out)."""
        spared = sum(self.blocks[kind].parameters - self.blocks[kind].active_parameters for kind in self.pattern)
        return self.parameters - spared

    @cached_property
    def is_moe(self) -> bool:
        return any(block.experts for block in self.blocks)

    @cached_property
    def scans(self) -> bool:
        """Whether any block carries a recurrent state along the sequence."""
        return any(block.ssm_inner for block in self.blocks)

    @cached_property
    def heads(self) -> int:
        """Query heads of the attention layers (the most any layer has); 0 for attention-free models."""
        return max((block.heads for block in self.blocks), default=0)

    @cached_property
    def kv_heads(self) -> int:
        return max((block.kv_heads for block in self.blocks), default=0)

    @cached_property
    def experts(self) -> int:
        return max((block.experts for block in self.blocks), default=0)

    @cached_property
    def kv_elements_per_token(self) -> int:
        """KV cache elements per token over all layers (times the bytes of the cache's dtype gives bytes)."""
        return sum(self.blocks[kind].kv_elements_per_token for kind in self.pattern)
