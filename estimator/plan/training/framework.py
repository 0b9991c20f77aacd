"""What differs between frameworks and between optimizers: data, made by `knowledge` from its files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Style = Literal["eager", "native", "compiled", "fused"]


@dataclass(frozen=True)
class Framework:
    """How one training framework keeps and moves a model's states. Bytes are per parameter unless said otherwise.

    `weight_bytes` is the copy that stays (the sharded one where ZeRO-3 shards), `compute_bytes` what a gathered or cast
    unit takes, `cast_cache` true where a cast copy of every weight is kept besides (autocast), `master_bytes` a
    full-precision copy owned by the optimizer, `gradient_bytes` what gradients are accumulated in. `live_parameters` is
    how many gathered parameters ZeRO-3 may keep at once (None: `live_units` layers, as FSDP does). `bucket_bytes` are
    communication buckets in all. `reduce_bytes` is per gradient element on the wire; `overlaps_reduction` says whether
    gradients are reduced beside the backward pass below ZeRO-3 too, where nobody switches it. `step_bytes` are
    temporaries of the optimizer step besides the optimizer's own, which a `fused_optimizer` does not need.

    While a layer's gradients are made, FSDP holds `gathered_copies` of it in the compute dtype and `reduced_copies` in
    the dtype of the reduction; `splits_root` is true where embedding and head are units of their own. `stage_buffers`
    are copies of a stage's boundary per micro-batch that a pipeline allocates for sends and receipts.
    `gradient_buffers` is true where gradients live in buffers that stay, and false where they are freed after the step,
    `shards_optimizer` where optimizer states are sharded at ZeRO-0 too.

    `activation` names what operators save for backward: 'eager' (Hugging Face modules as shipped) or 'fused'
    (one-kernel norms and activations); `hf_modules` is true where the modules are Hugging Face's own, GELU by hand
    included; `expands_kv` where keys and values are repeated for every head before attention. `selective` says what
    selective recompute drops: the attention core, or all but every other matmul output.

    `logit_bytes` is the peak per logit of an unfused loss; `adapter_logit_bytes` the same where the head is frozen,
    `compiled_logit_bytes` where the loss is compiled, `parallel_logit_bytes` where logits are split by tp, and
    `fused_logit_bytes` where the fused loss is one kernel on all logits (None: as unfused; for the fused loss: it goes
    by chunks). `dummy_gradients` are those that Transformer Engine caches, one for each weight shape.

    `low_precision_saves` says whether 8-bit training keeps the inputs of its matmuls, or those of the activation
    function too, in 8 bits; `low_precision_weights` whether weights are held in 8 bits, `low_precision_copies` whether
    8-bit copies are cached besides. Both need a transposed copy on all but `one_copy_families`.

    `ties` is false where a tied head is a matrix of its own all the same. Adapters are held in `adapter_bytes`;
    `adapter_copies` is true where each casts its input for itself. `lora_dropout` and `quantisation` are its defaults.
    `quantised_head` is true where the head is quantised too, and `quantised_inputs` how many copies of its input a
    quantised matmul keeps for nothing. `context_bytes` is the device context where it is not the fitted one.
    `operators` is the style of its memory-bound operators without torch.compile (estimator/kernels/elementwise.py).
    `score_bytes` are what attention moves per 16-bit score, forward and backward, where scores go through memory;
    `loose_score_bytes` where the number of score matrices is no multiple of `score_group` (0: it need not be) or longer
    than `score_longest`. `hook_s` is the host time of one module's hooks in one pass under ZeRO-3. `interleaves` is
    true where pipeline stages can be virtual, and `schedules` are those of a pipeline besides. `searches_splits` is
    false where tp and cp are for plans that ask for them alone, and `sequence_parallel` where tp keeps whole sequences
    in norms and residuals. `cuda_graph`, `tp_overlap`, `moe_dispatcher`, `moe_overlap` and `moe_capacity` are what its
    recipes set where a plan does not say, as the fields of a plan.
    """

    name: str
    kin: str
    weight_bytes: float
    compute_bytes: float
    cast_cache: bool
    master_bytes: float
    gradient_bytes: float
    reduce_bytes: float
    step_bytes: float
    fused_optimizer: bool
    zero_stages: tuple[int, ...]
    tp: bool
    pp: bool
    cp: bool
    ep: bool
    searches_splits: bool
    sequence_parallel: bool
    offloads: tuple[str, ...]
    live_parameters: float | None
    live_units: float
    bucket_bytes: float
    overlaps_reduction: bool
    reduces_each_micro_batch: bool
    gathered_copies: float
    reduced_copies: float
    splits_root: bool
    stage_buffers: float
    gradient_buffers: bool
    shards_optimizer: bool
    activation: Literal["eager", "fused"]
    hf_modules: bool
    expands_kv: bool
    selective: Literal["attention", "ops", "none"]
    logit_bytes: float
    adapter_logit_bytes: float | None
    compiled_logit_bytes: float | None
    parallel_logit_bytes: float | None
    fused_logit_bytes: float | None
    fused_loss: bool
    dummy_gradients: bool
    low_precision_saves: Literal["none", "inputs", "all"]
    low_precision_weights: bool
    low_precision_copies: bool
    one_copy_families: tuple[str, ...]
    ties: bool
    adapter_bytes: float
    adapter_copies: bool
    lora_dropout: float
    quantisation: str
    quantised_head: bool
    quantised_inputs: float
    context_bytes: float | None
    operators: Style
    score_bytes: tuple[float, float]
    loose_score_bytes: tuple[float, float]
    score_group: int
    score_longest: int
    hook_s: float
    interleaves: bool
    schedules: tuple[str, ...]
    cuda_graph: Literal["none", "layers", "full"]
    tp_overlap: bool
    moe_dispatcher: Literal["alltoall", "flex"]
    moe_overlap: bool
    moe_capacity: bool
    source: str


def holding(framework: Framework, weights: str) -> Framework:
    """The profile with trained weights, gradients and moments all in 16 bits ('bf16'), or all in fp32; 'auto' as is."""
    if weights == "auto":
        return framework
    size = 4.0 if weights == "fp32" else 2.0
    return replace(
        framework,
        weight_bytes=size,
        gradient_bytes=size,
        reduce_bytes=min(size, framework.reduce_bytes),
        master_bytes=0.0,
        step_bytes=0.0,
        cast_cache=weights == "fp32",
    )


def by_block(framework: Framework) -> Framework:
    """The profile where one block of layers is trained at a time: weights in 16 bits, and of that block fp32 copies,
    gradients and moments besides. DeepSpeed has all weights so in any case."""
    if framework.master_bytes:
        return framework
    return replace(framework, weight_bytes=2.0, gradient_bytes=4.0, master_bytes=4.0, step_bytes=0.0, cast_cache=False)


@dataclass(frozen=True)
class OptimizerFacts:
    """State and temporaries per trained parameter: `*_elements` in the dtype that the optimizer updates, or in bytes.

    `matrix_elements` replaces `state_elements` for the matrices of blocks (None: it does not). `side_bytes` are kept
    per row and per column of such a matrix. Optimizers of low rank keep `longer_elements` x `rank` per element of its
    longer side and `shorter_elements` x `rank` of its shorter one. A step's temporaries are `step_elements` of all that
    is stepped, and `largest_elements` of the largest tensor, in fp32 and after fp32 copies of a 16-bit weight and its
    gradient where the optimizer `casts`. `traffic_elements` is what one step reads and writes in
    device memory. `keeps_gradients` is false where a gradient is applied as soon as it exists. `one_block`
    optimizers train one layer at a time, each for some steps, and never what is outside the layers.
    """

    name: str
    state_elements: float
    state_bytes: float
    matrix_elements: float | None
    side_bytes: float
    rank: float
    longer_elements: float
    shorter_elements: float
    step_elements: float
    largest_elements: float
    casts: bool
    traffic_elements: float
    keeps_gradients: bool
    one_block: bool
    source: str
