"""Bytes that one block keeps for its backward pass, from what each operator saves.

The figures per operator follow from what autograd saves in the two implementations that matter: Hugging Face modules as
shipped ('eager') and one-kernel norms and activations ('fused': Liger, Transformer Engine, Apex). Attention is
FlashAttention's: q, k, v, the output, and a fp32 log-sum-exp per head (Dao et al. 2022, algorithm 1).
"""

from __future__ import annotations

import numpy as np

from estimator.architecture import Architecture, Block
from estimator.job import Job
from estimator.layouts import RECOMPUTE, Layouts
from estimator.stages import Floats

# Elements of `activation_bytes` that one norm keeps, per element of its input. RMSNorm as shipped keeps its input in
# fp32 (two elements), the normalised value and the output (LlamaRMSNorm); Gemma's keeps one half more for its fp32
# product with 1 + w (Gemma2RMSNorm), gpt-oss's a whole one for weight times fp32 value (GptOssRMSNorm). A fused norm
# keeps input and output; LayerNorm is one kernel in PyTorch.
_NORM_EAGER = 4.0
_NORM_GEMMA_EAGER = 4.5
_NORM_FP32_PRODUCT = 5.0
_NORM_FUSED = 2.0


def _norm(architecture: Architecture, eager: bool, kept_input: float) -> float:
    """Elements kept per element of a norm's input; the output feeds a matmul, which keeps it as `kept_input`."""
    if architecture.norm == "layernorm" or not eager:
        return _NORM_FUSED - 1.0 + kept_input
    if architecture.activation == "swigluoai":
        return _NORM_FP32_PRODUCT
    return _NORM_GEMMA_EAGER if architecture.gemma_norm else _NORM_EAGER


def saved_elements(job: Job, block: Block) -> tuple[float, float, float]:
    """Elements per token that one block saves: (whole on every tensor rank, split by tp, of the routed experts).

    Experts' part is split by tp as well, whatever etp is: fewer ranks share a token's experts, or more share its width.

    Attention's fp32 statistics count as two elements per head. With sequence parallelism the first part is split too.
    """
    architecture, eager = job.architecture, job.framework.activation == "eager"
    kept, hidden = job.input_elements, architecture.hidden
    per_norm = _norm(architecture, eager, kept)
    norms = block.norms * per_norm
    if block.norms == 4 and not eager:
        # A post-norm's output only feeds the residual sum, so it is not kept.
        norms = 2.0 * per_norm + 2.0
    whole, split, expert = norms * hidden, 0.0, 0.0
    if block.mixer == "attention":
        q, kv, v = block.heads * block.head_dim, block.kv_heads * block.head_dim, block.kv_heads * block.v_head_dim
        out = block.heads * block.v_head_dim
        split += q + out + kv + v + 2 * block.heads
        if kept < 1.0:
            split += out * kept  # The output projection keeps its own 8-bit copy.
        if block.fused_qkv:
            # v is a view that keeps the whole projection alive, and the output is copied (Phi3Attention).
            split += q + kv + out
        elif block.copied_output:
            split += out
        if block.qk_norm:
            split += (q + kv) * (per_norm - 1.0)
    elif block.mixer == "mla":
        q, out = block.heads * block.head_dim, block.heads * block.v_head_dim
        hf = job.framework.hf_modules
        latent = block.kv_lora_rank + block.rope_head_dim
        q_latent = sum(m.outputs for m in block.matrices if m.name == "q_a_proj")
        # q and k of every head, v and the output, and the compressed latents with their norms. Hugging Face's module
        # also keeps the up-projection's output (whose view v is) and a copy of the output (DeepseekV2Attention).
        split += 2 * q + 2 * out + 2 * block.heads
        if hf:
            split += out + q - block.heads * block.rope_head_dim + out
        whole += latent + block.kv_lora_rank * (per_norm - 1.0) + q_latent * per_norm
    elif block.mixer in ("mamba1", "mamba2", "linear_attention"):
        # Input, convolution output, gate, scan output and gated norm of the inner width (mamba_ssm's fused scan).
        split += block.ssm_inner * 6.0
    if block.feed == "dense":
        split += _feed(job, block.ffn_width, block.gated, eager)
    elif block.feed == "moe":
        width = block.top_k * block.expert_width
        # Experts run as grouped matmuls on permuted tokens, whose copies are kept as well.
        hf = job.framework.hf_modules
        if not block.gated or not hf:
            expert += _feed(job, width, block.gated, eager)
        elif architecture.activation == "swigluoai":
            # Two clamped halves, the scaled gate, its sigmoid, their product, up + 1 and the result (GptOssExperts).
            expert += 7.0 * width
        else:
            expert += (2.0 * job.gate_elements + 1.0 + kept) * width
        # Megatron weighs the tokens inside the experts, so what comes out of them need not be kept
        # (moe_permute_fusion).
        copies = 2.0 if hf else kept
        whole += copies * block.top_k * hidden + 2.0 * block.experts
        split += _feed(job, block.shared_width, block.gated, eager)
    return whole, split, expert


def _feed(job: Job, width: float, gated: bool, eager: bool) -> float:
    """Gated: gate, up, act(gate) and the product (the fused kernel recomputes act). Plain: before and after act."""
    kept, gate = job.input_elements, job.gate_elements
    if gated:
        return width * ((3.0 if eager else 2.0) * gate + kept)
    # NewGELUActivation keeps x, x / 2, tanh, 1 + tanh and the product.
    by_hand = job.architecture.activation in ("gelu_new", "gelu_fast") and eager and job.framework.hf_modules
    return width * (4.0 if by_hand else 1.0) * gate + width * kept


def block_bytes(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Bytes that one block of one device saves per micro-batch when nothing is recomputed; shape (n,)."""
    whole, split, expert = saved_elements(job, block)
    tokens = micro_batch_tokens(job, layouts)
    outside = layouts.outside_split
    size = job.activation_bytes * tokens * (whole / outside + split / layouts.tp + expert / layouts.tp)
    if job.training.attention == "eager" and block.heads:
        size = size + _score_bytes(job, block, layouts, tokens)
    if job.architecture.dropout:
        size = size + tokens * job.architecture.hidden * 2.0 / outside
    return size


def _score_bytes(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> Floats:
    """The attention matrix that eager attention keeps: scores after softmax in fp32 and in 16 bits, per head."""
    span = job.seq_len if block.window is None else min(job.seq_len, block.window)
    return tokens * span * block.heads / layouts.tp * (4.0 + job.activation_bytes)


def kept_bytes(job: Job, block: Block, layouts: Layouts, everything: Floats) -> Floats:
    """What of `everything` one block keeps until its backward pass under each candidate's recompute mode (block:N
    apart)."""
    selective = everything - _dropped_by_selective(job, block, layouts, everything)
    mode = layouts.recompute
    kept = np.where(mode == RECOMPUTE.index("full"), boundary_bytes(job, layouts), everything)
    return np.where(mode == RECOMPUTE.index("selective"), selective, kept)


def boundary_bytes(job: Job, layouts: Layouts) -> Floats:
    """Bytes of the hidden states between two blocks, per device and micro-batch."""
    return job.activation_bytes * micro_batch_tokens(job, layouts) * job.architecture.hidden / layouts.outside_split


def _dropped_by_selective(job: Job, block: Block, layouts: Layouts, everything: Floats) -> Floats:
    """Megatron drops the attention core (Korthikanti et al. 2022, section 5); 'ops' keeps every other matmul output."""
    if job.framework.selective == "ops":
        return everything * 0.5
    if job.framework.selective == "none" or not block.heads:
        return np.zeros(len(layouts))
    tokens = micro_batch_tokens(job, layouts)
    core = block.heads * (block.v_head_dim + 2.0) * job.activation_bytes * tokens / layouts.tp
    if job.training.attention == "eager":
        core = core + _score_bytes(job, block, layouts, tokens)
    return np.minimum(core, everything)


def micro_batch_tokens(job: Job, layouts: Layouts) -> Floats:
    """Tokens of one micro-batch that one context-parallel rank holds; shape (n,)."""
    sequences = layouts.micro_batch * job.sequences_per_sample
    return sequences * (job.seq_len / layouts.cp)
