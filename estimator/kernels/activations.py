"""Bytes that one block keeps for its backward pass, from what each operator saves.

Two kinds of things are kept: what an operator needs for itself (the input of a norm, gate and up of a gated MLP, q, k,
v and the output of attention), and the input of every matmul whose weight gets a gradient. A frozen matmul keeps
nothing; an adapter on it keeps its own input (`estimator.kernels.adapters`). The figures follow from what autograd
saves in the two implementations that matter: Hugging Face modules as shipped ('eager') and one-kernel norms and
activations ('fused': Liger, Transformer Engine, Apex). Attention is FlashAttention's: q, k, v, the output, and a fp32
log-sum-exp per head (Dao et al. 2022, algorithm 1).
"""

from __future__ import annotations

import numpy as np

from estimator.kernels.adapters import adapter_elements, is_tiled
from estimator.kernels.module_recompute import dropped_elements, repeats_core
from estimator.model.architecture import Block
from estimator.plan.layouts import RECOMPUTE, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats, micro_batch_tokens

# Elements of `activation_bytes` that an unfused norm keeps for itself per element of its input, beside its output:
# RMSNorm its input in fp32 and the normalised value (LlamaRMSNorm); Gemma's a half more for its fp32 product with 1 + w
# (Gemma2RMSNorm), gpt-oss's a whole one for weight times fp32 value (GptOssRMSNorm). A frozen weight leaves the fp32
# input alone. A fused norm, and LayerNorm in PyTorch, keep the input.
_NORM_EAGER = 3.0
_NORM_GEMMA_EAGER = 3.5
_NORM_FP32_PRODUCT = 4.0
_NORM_FROZEN = 2.0
_NORM_FUSED = 1.0
# Elements per channel of a routed token that weighing it in fp32 takes: its fp32 copy for the gradient of the score.
# While gradients are made, those of the product and of the copy in fp32, and of what grouped matmuls read and write.
_WEIGHED_KEPT = 2.0
_WEIGHED_WORKING = 6.0
# Elements per channel of the inner width that a state-space layer keeps: input, convolution's output, gate, the scan's
# output and gated norm (mamba_ssm's fused scan).
_SCAN = 6.0
# Elements per channel of an expert, beside the input of its last matmul: two clamped halves, the scaled gate, its
# sigmoid, their product and up + 1 (GptOssExperts).
_CLAMPED_EXPERT = 6.0


def _norm(job: Job) -> float:
    """Elements that a norm keeps per element of its input, its output apart."""
    architecture = job.architecture
    if architecture.norm == "layernorm" or job.activation_style != "eager":
        return _NORM_FUSED * job.stream_elements
    if not job.trains_blocks:
        return _NORM_FROZEN
    # A residual stream in fp32 has its normalised value in fp32 too.
    wide = job.stream_elements - 1.0
    if architecture.activation == "swigluoai":
        return _NORM_FP32_PRODUCT + wide
    return (_NORM_GEMMA_EAGER if architecture.gemma_norm else _NORM_EAGER) + wide


def final_norm_elements(job: Job) -> float:
    """Elements per token and hidden channel that the norm before the head keeps, with the input of a trained head
    or the gradient of it that a fused loss keeps."""
    eager_gemma = job.architecture.gemma_norm and job.activation_style == "eager" and job.trains_blocks
    norm = _NORM_FP32_PRODUCT if eager_gemma else _norm(job)
    return norm + (1.0 if job.trains_outside or job.fused_loss else 0.0)


def saved_elements(job: Job, block: Block) -> tuple[float, float, float]:
    """Elements per token that one block saves: (whole on every tensor rank, split by tp, of the routed experts).

    Experts' part is split by tp as well, whatever etp is: fewer ranks share a token's experts, or more share its width.

    Attention's fp32 statistics count as two elements per head. With sequence parallelism the first part is split too.
    """
    whole = split = expert = 0.0
    for part in saved_by_operator(job, block).values():
        whole, split, expert = whole + part[0], split + part[1], expert + part[2]
    return whole, split, expert


def saved_by_operator(job: Job, block: Block) -> dict[str, tuple[float, float, float]]:
    """The same, operator by operator."""
    parts = {"norms": (_norms(job, block), 0.0, 0.0), "mixer": (*_mixer(job, block), 0.0)}
    if is_tiled(job, block):
        # A tile's own activations are made again; of all that is kept is what the MLP reads (DeepSpeed, TiledMLP).
        parts["feed_forward"] = (0.0 if job.keeps_norm_outputs else job.architecture.hidden, 0.0, 0.0)
    elif block.feed == "dense":
        parts["feed_forward"] = (0.0, _feed(job, block.ffn_width, block.gated), 0.0)
    elif block.feed == "moe":
        parts["experts"] = _experts(job, block)
    if job.uses_adapters:
        parts["adapters"] = adapter_elements(job, block)
    return parts


def tile_bytes(job: Job, block: Block, layouts: Layouts) -> Floats:
    """What one tile of an MLP saves while its gradients are made."""
    if job.tile_tokens is None or not is_tiled(job, block):
        return layouts.zeros()
    tokens = np.minimum(
        micro_batch_tokens(job, layouts), job.tile_tokens * layouts.micro_batch * job.sequences_per_sample
    )
    whole, split, _ = adapter_elements(job, block, tiled=True)
    split += _feed(job, block.ffn_width, block.gated)
    return job.activation_bytes * tokens * (whole + split / layouts.tp)


def _norms(job: Job, block: Block) -> float:
    """Norms and the matmul inputs that they make."""
    hidden, norm, kept = job.architecture.hidden, _norm(job), job.input_elements if job.keeps_norm_outputs else 0.0
    if block.norms == 4 and job.activation_style != "eager":
        # A post-norm's output only feeds the residual sum, so it is not kept.
        return (4.0 * norm + 2.0 * kept) * hidden
    if job.stream_elements > 1.0:
        # Autocast gives each matmul a 16-bit copy of its own of the fp32 values (only weights are cached).
        return (block.norms * norm + kept * _readers(block)) * hidden
    return block.norms * (norm + kept) * hidden


def _readers(block: Block) -> int:
    """Matmuls that read a norm's output."""
    return sum(
        1 for matrix in block.matrices if matrix.split == "column" and matrix.role in ("attention", "mlp", "ssm")
    )


def _mixer(job: Job, block: Block) -> tuple[float, float]:
    """Attention or what stands for it: elements (whole, split)."""
    whole, split, kept, norm = 0.0, 0.0, job.input_elements, _norm(job)
    q, out = block.heads * block.head_dim, block.heads * block.v_head_dim
    k, v = block.kv_heads * block.head_dim, block.kv_heads * block.v_head_dim
    if block.mixer == "attention":
        split += 2 * block.heads + out
        if job.framework.activations.expands_kv:
            # k and v are repeated for every head; without groups v stays a view of the whole projection.
            split += 3 * q if block.kv_heads < block.heads else 2 * q + k + v + k
        else:
            split += q + k + v
        if kept < 1.0 and job.trains_blocks:
            split += out * kept  # The output projection keeps its own 8-bit copy.
        if job.framework.activations.hf_modules and block.fused_qkv:
            # v is a view that keeps the whole projection alive, and the output is copied (Phi3Attention).
            split += q + v + out
        elif job.framework.activations.hf_modules and block.copied_output:
            split += out
        if block.qk_norm:
            split += (q + k) * norm
    elif block.mixer == "mla":
        latent = block.kv_lora_rank + block.rope_head_dim
        q_latent = sum(m.outputs for m in block.matrices if m.name == "q_a_proj")
        # q and k of every head, v and the output, and the compressed latents with their norms. Hugging Face's module
        # also keeps the up-projection's output (whose view v is) and a copy of the output (DeepseekV2Attention).
        split += 2 * q + 2 * out + 2 * block.heads
        if job.framework.activations.hf_modules:
            split += out + q - block.heads * block.rope_head_dim + out
        output = kept if job.trains_blocks else 0.0
        whole += latent + block.kv_lora_rank * (norm + output - 1.0) + q_latent * (norm + output)
    elif block.mixer in ("mamba1", "mamba2", "linear_attention"):
        split += block.ssm_inner * _SCAN
    return whole, split


def _feed(job: Job, width: float, gated: bool) -> float:
    """Gated: gate, up, act(gate) (the fused kernel recomputes it). Plain: what goes into act. The down projection's
    input is kept where its weight is trained."""
    eager, gate = job.activation_style == "eager", job.gate_elements
    product = job.input_elements if job.trains_blocks else 0.0
    if gated:
        return width * ((3.0 if eager else 2.0) * gate + product)
    # NewGELUActivation keeps x, x / 2, tanh, 1 + tanh and the product.
    hf_modules = eager and job.framework.activations.hf_modules
    by_hand = hf_modules and job.architecture.activation in ("gelu_new", "gelu_fast")
    return width * ((4.0 if by_hand else 1.0) * gate + product)


def _experts(job: Job, block: Block) -> tuple[float, float, float]:
    """Router, permuted tokens and grouped matmuls: elements (whole, split, expert)."""
    hf, width, trained = job.framework.activations.hf_modules, block.top_k * block.expert_width, job.trains_blocks
    kept = job.input_elements if trained else 0.0
    if not block.gated or not hf:
        expert = _feed(job, width, block.gated)
    elif job.architecture.activation == "swigluoai":
        expert = (_CLAMPED_EXPERT + kept) * width
    else:
        expert = (2.0 * job.gate_elements + 1.0 + kept) * width
    # Tokens go in permuted (kept for the weights' gradients) and come out to be weighted (kept for the router's).
    # Megatron weighs them inside the experts, so what comes out need not be kept (moe_permute_fusion).
    copies = (1.0 + kept) if hf else kept
    copies += _WEIGHED_KEPT * job.framework.activations.weighs_in_fp32
    whole = copies * _routed_channels(block) + 2.0 * block.experts
    return whole, _feed(job, block.shared_width, block.gated), expert


def _routed_channels(block: Block) -> int:
    """Channels that a token sends to its experts; those of a latent are given, and give back, tokens of its width."""
    return block.top_k * next(
        matrix.inputs for matrix in block.matrices if matrix.role == "expert" and matrix.split == "column"
    )


def shared_heads(block: Block, layouts: Layouts) -> Floats:
    """Key and value heads where every rank of an exchange has one at the least (DeepSpeed, ulysses_sp.py)."""
    return np.maximum(float(block.kv_heads), (layouts.cp * (layouts.cp > 1)).astype(np.float64))


def gathered_key_elements(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Keys, values and their gradients that context parallelism adds to a token's own: of the whole sequence where they
    are gathered, copies of shared heads where heads are exchanged."""
    gathering = job.framework.gathering
    if block.mixer != "attention" or not (gathering.gathers_keys or gathering.exchanges_heads):
        return layouts.zeros()
    heads = block.kv_heads * (layouts.cp - 1).astype(np.float64)
    if gathering.exchanges_heads:
        heads = shared_heads(block, layouts) - float(block.kv_heads)
    return 2.0 * heads * (block.head_dim + block.v_head_dim)


def expert_working_elements(job: Job, block: Block) -> float:
    """Temporaries per token of routed experts while their gradients are made."""
    if block.feed != "moe" or not job.framework.activations.weighs_in_fp32:
        return 0.0
    return _WEIGHED_WORKING * _routed_channels(block)


def gradient_elements(job: Job, block: Block) -> tuple[float, float]:
    """Gradients per token that stand at once beside all that a block saved: elements (whole, split).

    Backward reaches the feed-forward part first. What comes from above is there, and makes the gradient of the last
    matmul's input. When that input has gone (torch.autograd releases what a node saved when it is done) come those of
    the gate and of the other half, unless they are written where these were. A compiler that plans memory orders the
    operators so that gradients take the place of what they are made from (XLA, buffer assignment).
    """
    if job.framework.allocator == "planned":
        return 0.0, 0.0
    whole = float(job.architecture.hidden)
    if is_tiled(job, block) or block.feed == "none":
        return whole, attention_gradient_elements(job, block)
    each = 1.0
    if not job.reuses_inputs:
        each += (2.0 if block.gated else 1.0) - (job.input_elements if job.trains_blocks else 0.0)
    if block.feed == "moe":
        return whole + _routed_channels(block), each * (block.top_k * block.expert_width + block.shared_width)
    return whole, each * block.ffn_width


def attention_gradient_elements(job: Job, block: Block) -> float:
    """Gradients per token of attention's output and of q, k and v, with that of q in fp32, where it is summed
    (FlashAttention, flash_api.cpp mha_bwd, dq_accum)."""
    return (block.heads + block.kv_heads) * (block.head_dim + block.v_head_dim) + 2.0 * block.heads * block.head_dim


def block_bytes(job: Job, block: Block, layouts: Layouts) -> Floats:
    """Bytes that one block of one device saves per micro-batch when nothing is recomputed; shape (n,)."""
    whole, split, expert = saved_elements(job, block)
    tokens = micro_batch_tokens(job, layouts)
    outside = layouts.outside_split
    size = job.activation_bytes * tokens * (whole / outside + split / layouts.tp + expert / layouts.tp)
    for more in _besides(job, block, layouts).values():
        size = size + more
    return size


def _besides(job: Job, block: Block, layouts: Layouts) -> dict[str, Floats]:
    """Bytes that a block saves and that are no multiple of the activations' own width."""
    tokens, sizes = micro_batch_tokens(job, layouts), dict[str, Floats]()
    if job.training.attention == "eager" and block.heads:
        sizes["scores"] = _score_bytes(job, block, layouts, tokens)
    if job.architecture.dropout:
        sizes["dropout_masks"] = tokens * job.architecture.hidden * 2.0 / layouts.outside_split
    return sizes


def bytes_by_operator(job: Job, block: Block, layouts: Layouts) -> dict[str, Floats]:
    """What `block_bytes` adds up, operator by operator."""
    each = job.activation_bytes * micro_batch_tokens(job, layouts)
    sizes = {
        name: each * (whole / layouts.outside_split + (split + expert) / layouts.tp)
        for name, (whole, split, expert) in saved_by_operator(job, block).items()
    }
    return sizes | _besides(job, block, layouts)


def _score_bytes(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> Floats:
    """The attention matrices of all heads that eager attention keeps."""
    span = job.seq_len if block.window is None else min(job.seq_len, block.window)
    return tokens * span * block.heads / layouts.tp * job.framework.activations.score_bytes


def kept_bytes(job: Job, block: Block, layouts: Layouts, everything: Floats) -> Floats:
    """What of `everything` one block keeps until its backward pass under each candidate's recompute mode (block:N
    apart)."""
    mode = layouts.recompute
    kept = everything
    if layouts.max_of("recompute") >= RECOMPUTE.index("full"):
        kept = np.where(mode == RECOMPUTE.index("full"), boundary_bytes(job, layouts), kept)
    selective = mode == RECOMPUTE.index("selective")
    if not selective.any():
        return kept
    return np.where(selective, np.minimum(everything, _kept_by_selective(job, block, layouts, everything)), kept)


def boundary_bytes(job: Job, layouts: Layouts) -> Floats:
    """Bytes of the hidden states between two blocks, per device and micro-batch."""

    def bytes_of_one() -> Floats:
        size = job.activation_bytes * job.stream_elements
        return size * micro_batch_tokens(job, layouts) * job.architecture.hidden / layouts.outside_split

    return layouts.memoised(("boundary", job), bytes_of_one)


def _kept_by_selective(job: Job, block: Block, layouts: Layouts, everything: Floats) -> Floats:
    """Megatron drops the attention core (Korthikanti et al. 2022, section 5); 'ops' keeps the outputs of attention and
    of every other matmul (torchtitan, _apply_op_sac), 'projections' of every matmul (MaxText, minimal_policy)."""
    if job.framework.recompute.selective == "ops":
        return _kept_outputs(job, block, layouts, everything)
    if job.framework.recompute.selective == "projections":
        return _kept_projections(job, block, layouts)
    if job.framework.recompute.by_module:
        everything = everything - _dropped_bytes(job, block, layouts)
    by_core = repeats_core(job) or not job.framework.recompute.by_module
    if job.framework.recompute.selective == "none" or not block.heads or not by_core:
        return everything
    tokens = micro_batch_tokens(job, layouts)
    core = block.heads * (block.v_head_dim + 2.0) * job.activation_bytes * tokens / layouts.tp
    if job.training.attention == "eager":
        core = core + _score_bytes(job, block, layouts, tokens)
    return everything - core


def _dropped_bytes(job: Job, block: Block, layouts: Layouts) -> Floats:
    """What parts of a layer that are named drop, the attention core apart."""
    experts = _experts(job, block) if block.feed == "moe" else (0.0, 0.0, 0.0)
    shared = _feed(job, block.shared_width, block.gated)
    dense = _feed(job, block.ffn_width, block.gated) if block.feed == "dense" else 0.0
    whole, split, expert = dropped_elements(job, block, experts, shared, dense)
    each = job.activation_bytes * micro_batch_tokens(job, layouts)
    return each * (whole / layouts.outside_split + (split + expert) / layouts.tp)


def _kept_outputs(job: Job, block: Block, layouts: Layouts, everything: Floats) -> Floats:
    """Block input, attention output with its statistics, and the first, third, fifth and seventh matmul's output (q, v,
    gate, down), the last of which a compiler drops. Matmuls in nvfp4 are not on the list of what is kept."""
    if block.mixer != "attention" or block.feed != "dense":
        return everything * 0.5
    hidden, out = job.architecture.hidden, block.heads * block.v_head_dim
    whole, split = float(hidden), out + 2.0 * block.heads
    if job.training.precision not in ("mxfp4", "nvfp4"):
        split += block.heads * block.head_dim + block.kv_heads * block.v_head_dim + block.ffn_width
        whole += 0.0 if job.training.compile else hidden
    tokens = micro_batch_tokens(job, layouts)
    return job.activation_bytes * tokens * (whole / layouts.outside_split + split / layouts.tp)


def _kept_projections(job: Job, block: Block, layouts: Layouts) -> Floats:
    """The block's input, and what its weights make of theirs."""
    whole, split = float(job.architecture.hidden), 0.0
    for matrix in block.matrices:
        outputs = matrix.outputs * (block.top_k if matrix.role == "expert" else matrix.copies)
        if matrix.split == "column" or matrix.role == "expert":
            split += outputs
        elif matrix.role != "router":
            whole += outputs
    tokens = micro_batch_tokens(job, layouts)
    return job.activation_bytes * tokens * (whole / layouts.outside_split + split / layouts.tp)
