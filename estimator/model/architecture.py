"""What a model is made of: blocks of weight matrices, exact to the last parameter.

A model is a sequence of blocks. A block is a table of matrices (each a matmul in the forward pass) and a count of
vector parameters (norms, gates, convolutions). Parameter counts, matmul shapes, adapter sizes and shards all follow
from the same table, so that they cannot disagree. `estimator.model.configs.build` makes it from a HF config.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from estimator.model.vision import VisionTower

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
    expert, `shared_width` of all shared experts together. `state_size`, `ssm_heads` (Mamba-2) and `conv_kernel` belong
    to the SSM mixers. `fused_qkv` is true where one projection makes q, k and v and v stays a view of it,
    `copied_output` where the output of attention is copied before its projection (both in the Hugging Face modules).
    `borrows_cache`: it reads the keys and values of an earlier layer and keeps none. `crosses`: its keys and values are
    of the images of a request and not of its tokens, and without images it does not run (transformers
    MllamaCrossAttentionDecoderLayer).

    Sparse attention (DeepSeek-V3.2, section 2; DeepSeek-V4): the cache has an entry for every `cache_every` tokens and
    the last `local_window` tokens besides; a query attends to `chosen_keys` entries at most (0: all), which
    `index_heads` heads of width `index_dim` choose by a key of theirs that is cached for each entry.
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
    expert_reach: float = 1.0
    shared_width: int = 0
    state_size: int = 0
    ssm_inner: int = 0
    ssm_heads: int = 0
    conv_kernel: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    fused_qkv: bool = False
    copied_output: bool = False
    borrows_cache: bool = False
    crosses: bool = False
    cache_every: int = 1
    local_window: int = 0
    chosen_keys: int = 0
    index_heads: int = 0
    index_dim: int = 0

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
    def expert_inputs(self) -> int:
        """Width of what routed experts read: the hidden one, or a narrower latent one; 0 without experts."""
        return next((m.inputs for m in self.matrices if m.role == "expert" and m.split == "column"), 0)

    @cached_property
    def active_parameters(self) -> int:
        """Parameters that one token uses: all but the routed experts not chosen."""
        if not self.experts:
            return self.parameters
        return self.parameters - self.expert_parameters + self.expert_parameters // self.experts * self.top_k

    @cached_property
    def entry_elements(self) -> int:
        """Elements of one entry of the KV cache (MLA: the compressed latent and the rotary key)."""
        if self.borrows_cache:
            return 0
        if self.mixer == "mla":
            return self.kv_lora_rank + self.rope_head_dim
        if self.mixer == "attention":
            return self.kv_heads * (self.head_dim + self.v_head_dim)
        return 0

    @cached_property
    def kv_elements_per_token(self) -> float:
        """Elements that the KV cache holds per token, without those that choose among them."""
        return 0.0 if self.crosses else self.entry_elements / self.cache_every

    def entry_bytes(self, element_bytes: float) -> float:
        """Bytes of one entry in a cache of that format.

        Kernels of sparse attention keep the rotary key in 16 bits and a scale for each 128 elements of the latent
        where it is in 8 (656 bytes of DeepSeek-V3.2: vLLM, fp8_ds_mla; SGLang, NSATokenToKVPool).
        """
        if element_bytes >= 2.0 or not (self.chosen_keys or self.cache_every > 1):
            return element_bytes * self.entry_elements
        rotary = self.rope_head_dim or _ROTARY
        return (self.entry_elements - rotary) * element_bytes * _SCALED + 2.0 * rotary

    def cache_bytes_per_token(self, element_bytes: float) -> float:
        """Bytes that a token adds to the cache: its part of an entry and of the key that chooses it, in 8 bits."""
        if self.crosses:
            return 0.0
        return (self.entry_bytes(element_bytes) + self.index_dim * _SCALED) / self.cache_every


# A scale of 4 bytes for each 128 elements of 1 byte.
_SCALED = 1.0 + 4.0 / 128.0
# Elements of DeepSeek-V4's entries that carry the position (config.json, qk_rope_head_dim).
_ROTARY = 64


@dataclass(frozen=True)
class HeldBits:
    """Mean bits per weight that a file holds, scales and all: of the blocks' matrices without routed experts and
    routers (`plain`), of these, and of what stands outside. A tied head has the bits of the embedding."""

    plain: float
    experts: float
    embedding: float
    head: float
    router: float
    vectors: float


@dataclass(frozen=True)
class Architecture:
    """A whole model: `blocks` are the distinct kinds, `pattern[i]` is the kind of layer i.

    `position_parameters` are learned positions; `extra_parameters` whatever stands outside the blocks besides
    embedding, head and positions (final norm, embedding norm, projections); of these `layer_embedding_parameters` are
    tables of embeddings that each layer reads for itself. A tied head is counted once, in the
    embedding. `weight_format` names what its published checkpoint holds ('' for 16 bits, or where it is not known),
    `held` the bits of its very file where that was read. `vision` is what reads its images, counted in no other field
    (None: it sees none, or none is known).
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
    layer_embedding_parameters: int = 0
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    gemma_norm: bool = False
    activation: str = "silu"
    logit_softcap: bool = False
    dropout: float = 0.0
    parallel_block: bool = False
    multimodal: bool = False
    family: str = ""
    weight_format: str = ""
    held: HeldBits | None = None
    vision: VisionTower | None = None
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
    def kv_elements_per_token(self) -> float:
        """KV cache elements per token over all layers."""
        return sum(self.blocks[kind].kv_elements_per_token for kind in self.pattern)

    def cache_bytes_per_token(self, element_bytes: float) -> float:
        """Bytes of the cache per token over all layers, elements in a format of so many bytes."""
        return sum(self.blocks[kind].cache_bytes_per_token(element_bytes) for kind in self.pattern)
