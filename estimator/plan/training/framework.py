"""What differs between frameworks and between optimizers: data, made by `knowledge` from its files.

Bytes are per parameter unless said otherwise. Where each framework does so is written beside its values in
`knowledge/data/frameworks.yaml`; a source here says where the behaviour that a field stands for is defined.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from estimator.units import FP32_BYTES

Style = Literal["eager", "native", "compiled", "fused"]


@dataclass(frozen=True)
class Weights:
    """How weights are held."""

    held_bytes: float
    """The copy that stays: the sharded one where ZeRO-3 shards (Rajbhandari et al. 2020, section 5.3)."""
    compute_bytes: float
    """What a gathered or cast unit takes (FSDP, MixedPrecision param_dtype)."""
    cast_cache: bool
    """Whether a cast copy of every weight is kept besides (torch.autocast, cache_enabled)."""
    frozen_bytes: float | None
    """Of a frozen weight, where that is not the compute dtype's."""
    low_precision: bool
    """Whether 8-bit training holds the weights in 8 bits (Megatron-core, fp8_param_gather)."""
    frozen_low_precision: bool
    """The same of frozen weights alone."""
    low_precision_copies: bool
    """Whether 8-bit training caches 8-bit copies besides (Transformer Engine, is_first_microbatch)."""
    one_copy_families: tuple[str, ...]
    """Accelerator families that need no transposed copy of an 8-bit weight (Transformer Engine,
    is_non_tn_fp8_gemm_supported)."""
    frozen_transposed: bool
    """Whether frozen 8-bit weights keep that copy too, once made for a backward pass (Transformer Engine 2,
    module/linear.py, update_usage of columns in forward)."""
    ties: bool
    """Whether a tied head shares its matrix with the embedding; false where it is one of its own all the same."""


@dataclass(frozen=True)
class Gradients:
    """How gradients are kept and reduced."""

    held_bytes: float
    """What gradients are accumulated in."""
    reduce_bytes: float
    """Per gradient element on the wire (FSDP, MixedPrecision reduce_dtype; Megatron-core, grad_reduce_in_fp32)."""
    bucket_bytes: float
    """Bytes of communication buckets in all (DeepSpeed, reduce_bucket_size and allgather_bucket_size)."""
    stay: bool
    """Whether gradients live in buffers that stay; false where they are freed after the step (Megatron-core,
    distributed/param_and_grad_buffer.py)."""
    all_reduced: bool
    """Whether gradients are all-reduced though each device needs its shard of them alone (DeepSpeed, stage_1_and_2.py
    allreduce_and_scatter)."""
    reduces_each_micro_batch: bool
    """Whether gradients are reduced after every micro-batch, not after the last (torch, no_sync)."""
    dummies: bool
    """Whether a gradient for each weight shape is cached (Transformer Engine, module/base.py get_dummy_wgrad)."""


@dataclass(frozen=True)
class OptimizerStep:
    """What the framework adds to the optimizer's own states and temporaries."""

    master_bytes: float
    """A full-precision copy of the weights that the optimizer owns (Micikevicius et al. 2018, section 3.1)."""
    remainders: bool
    """Whether of the master copy of a 16-bit weight the lower 16 bits alone are kept (Apex, DistributedFusedAdam
    store_param_remainders)."""
    step_bytes: float
    """Temporaries of the step besides the optimizer's own (DeepSpeed, runtime/zero/stage3.py step)."""
    fused: bool
    """Whether the step is one kernel, which needs no temporaries of the optimizer's own (torch.optim, fused)."""
    always_sharded: bool
    """Whether optimizer states are sharded at ZeRO-0 too (DeepSpeed, BF16_Optimizer)."""


@dataclass(frozen=True)
class Gathering:
    """What sharded weights and gradients are gathered into."""

    live_parameters: float | None
    """Gathered parameters that there may be at once (DeepSpeed, stage3_max_live_parameters); None where units count."""
    live_units: float
    """Gathered layers that there are at once (FSDP: the one at work and the prefetched one); 0 for none."""
    gathered_copies: float
    """Copies of a layer in the compute dtype while its gradients are made (torch.distributed.fsdp,
    _fully_shard/_fsdp_collectives.py)."""
    reduced_copies: float
    """The same in the dtype of the reduction."""
    copies_weights: bool
    """Whether weights are copied out of what was gathered, where others are views of it (torch.distributed.fsdp,
    _fully_shard/_fsdp_collectives.py foreach_all_gather_copy_out)."""
    copies_gradients: bool
    """Whether gradients are copied into what is reduced (the same file, foreach_reduce_scatter_copy_in)."""
    gathers_keys: bool
    """Whether context parallelism gathers keys and values of the whole sequence, where others pass them on
    (torch.distributed.tensor.experimental, set_rotate_method)."""
    exchanges_heads: bool
    """Whether context parallelism exchanges pieces of the sequence for heads around attention (Jacobs et al. 2023,
    DeepSpeed Ulysses, section 3.1), where others bring keys and values."""
    splits_root: bool
    """Whether embedding and head are units of their own (torchtitan, distributed/fsdp.py apply_fsdp_to_decoder)."""
    hook_s: float
    """Host seconds of one module's hooks in one pass under ZeRO-3 (DeepSpeed, runtime/zero/parameter_offload.py)."""


@dataclass(frozen=True)
class Activations:
    """What is kept for the backward pass."""

    style: Literal["eager", "fused"]
    """What operators save: 'eager' Hugging Face modules as shipped, or 'fused' one-kernel norms and activations."""
    fused_with_loss: bool
    """Whether the switch of the fused loss fuses norms and activations too (Liger, transformers/monkey_patch.py)."""
    reuses_inputs: bool
    """Whether an activation function's gradients are written where its inputs were (Liger, ops/swiglu.py; Unsloth,
    kernels/swiglu.py)."""
    hf_modules: bool
    """Whether the modules are Hugging Face's own, GELU by hand included."""
    expands_kv: bool
    """Whether keys and values are repeated for every head before attention (transformers, repeat_kv)."""
    low_precision: Literal["none", "inputs", "all"]
    """What 8-bit training keeps in 8 bits: nothing, the inputs of its matmuls, or those of the activation function too
    (Megatron-core, activation_func_fp8_input_store)."""
    score_bytes: float
    """Per score that attention keeps where scores go through memory (transformers, eager_attention_forward: after
    softmax in fp32 and in 16 bits)."""
    weighs_in_fp32: bool
    """Whether tokens of experts are weighed by their scores in fp32 (torchtitan, models/common/moe.py)."""
    tile_tokens: float | None
    """Tokens of a sequence in a tile of an MLP, where a plan asks for tiles; 0 for as many as the model has channels
    (Bekman et al. 2025, Arctic Long Sequence Training, section 3.1), None where the framework has no tiles."""
    stage_buffers: float
    """Copies of a stage's boundary per micro-batch that a pipeline allocates to send and receive
    (torch.distributed.pipelining, stage.py)."""


@dataclass(frozen=True)
class Recompute:
    """What is dropped in the forward pass and made again."""

    selective: Literal["attention", "ops", "projections", "none"]
    """What selective recompute drops: the attention core (Korthikanti et al. 2022, section 5), all but every other
    matmul's output (torchtitan, distributed/activation_checkpoint.py SelectiveAC), or all but every matmul's."""
    by_virtual_stage: bool
    """Whether layers are recomputed in equal numbers in every virtual stage of a device."""
    by_module: bool
    """Whether selective recompute takes parts of a layer by their names."""


@dataclass(frozen=True)
class Loss:
    """The peak per logit, in bytes."""

    fused: bool
    """Whether the loss is fused where nobody switches it (Liger, LigerFusedLinearCrossEntropyLoss)."""
    logit_bytes: float
    """Of an unfused loss."""
    adapter_logit_bytes: float | None
    """Of an unfused loss on a frozen head; None: as others."""
    compiled_logit_bytes: float | None
    """Of a compiled loss; None: as others."""
    parallel_logit_bytes: float | None
    """Where logits are split by tp (torch, loss_parallel); None: as others."""
    fused_logit_bytes: float | None
    """Of a fused loss that has all logits all the same (Megatron-core, cross_entropy_loss_fusion); None where it goes
    by chunks."""
    compiled_fused_logit_bytes: float | None
    """Of such a one, compiled; None: as it is otherwise."""


@dataclass(frozen=True)
class Adapters:
    """How adapters are held, and what a plan that does not say gets."""

    held_bytes: float
    """Per adapter parameter (PEFT, autocast_adapter_dtype)."""
    copies_inputs: bool
    """Whether each adapter casts its input for itself (PEFT, tuners/tuners_utils.py _cast_input_dtype)."""
    dropout: float
    """The default dropout before adapters, a fraction."""
    quantisation: str
    """The default format of 4-bit weights."""
    quantised_head: bool
    """Whether the head is quantised too."""
    quantises_experts: bool
    """Whether 4-bit weights are routed experts' too. bitsandbytes packs nn.Linear alone, and since 5 transformers has a
    layer's experts in one nn.Parameter (bitsandbytes issue 1849)."""
    adapts_experts: bool
    """Whether routed experts get adapters as other matrices do. PEFT's target_modules are modules; an nn.Parameter
    is named by target_parameters (docs/source/package_reference/lora.md)."""
    quantised_inputs: float
    """Copies of its input that a quantised matmul keeps for nothing (bitsandbytes before 0.43.3, pull request 1270)."""


@dataclass(frozen=True)
class OperatorStyle:
    """How memory-bound operators are implemented."""

    style: Style
    """Without torch.compile (estimator/kernels/elementwise.py)."""
    score_bytes: tuple[float, float]
    """What attention moves per 16-bit score, forward and backward, where scores go through memory (transformers,
    eager_attention_forward)."""
    loose_score_bytes: tuple[float, float]
    """The same where the fused softmax does not take the scores."""
    score_group: int
    """Score matrices that the fused softmax takes at a time; 0: any number (Megatron-core, fused_softmax.py)."""
    score_longest: int
    """The longest sequence that the fused softmax takes, in tokens; 0: any (Megatron-core, fused_softmax.py)."""
    module_host_s: float
    """Host seconds of one pass of a hand-written module, besides its kernels' launches (Transformer Engine, Linear)."""
    weighs_apart: bool
    """Whether results of an expert's activation without a gate are weighed by kernels of their own (Megatron-core,
    use_fused_weighted_squared_relu)."""
    launches_each_expert: bool
    """Whether each expert's matmul is launched for itself (Transformer Engine, nvte_multi_stream_cublas_gemm)."""
    loops_experts: bool
    """Whether Python goes from expert to expert (transformers below 5, which has grouped matmuls for all of them; both
    where each expert's weights are in four bits)."""


@dataclass(frozen=True)
class Recipe:
    """What the framework's recipes set where a plan does not say, named as the fields of a plan."""

    cuda_graph: Literal["none", "layers", "full"]
    """What CUDA graphs hold (Megatron-core, cuda_graph_impl and cuda_graph_modules, cuda_graph_scope before)."""
    moe_dispatcher: Literal["alltoall", "flex", "deepep", "hybridep"]
    """What carries tokens to experts (Megatron-core, moe_token_dispatcher_type)."""
    fp8_attention: bool
    """Whether attention runs in 8 bits where matmuls do (Transformer Engine, fp8_dpa)."""
    offload: Literal["none", "activations"]
    """What goes to host memory unless a plan says, where that makes room (Unsloth, use_gradient_checkpointing)."""
    moe_capacity: bool
    """Whether tokens beyond a capacity are dropped (Megatron-core, moe_expert_capacity_factor)."""
    critic: Literal["beside", "apart"]
    """Whether PPO's critic is trained in the policy's own passes (TRL, PPOTrainer), or in passes after those."""
    grpo_reference: bool
    """Whether GRPO's loss is held near a frozen copy of the policy (TRL, GRPOTrainer ref_model)."""
    rollout_engine: Literal["stays", "sleeps", "alternates", "shares"]
    """What an engine on the training's devices holds while it does not generate: its part of them, or nothing; whether
    the training's states leave the devices while it does ('alternates'), or its weights are the training's own."""


@dataclass(frozen=True)
class Overlap:
    """What recipes send beside other work where a plan does not say, named as the fields of a plan."""

    dp_overlap: bool
    """Whether gradients are reduced beside the backward pass below ZeRO-3 too (Megatron-core, overlap_grad_reduce)."""
    tp_overlap: bool
    """Whether tensor-parallel communication runs beside matmuls (Megatron-core, tp_comm_overlap)."""
    moe_overlap: bool
    """Whether dispatch and combine run beside other work (Megatron-core, overlap_moe_expert_parallel_comm)."""


@dataclass(frozen=True)
class Limits:
    """What layouts the framework has."""

    zero_stages: tuple[int, ...]
    """ZeRO stages (Rajbhandari et al. 2020, section 5); FSDP's are 2 and 3."""
    tp: bool
    """Tensor parallelism."""
    pp: bool
    """Pipeline parallelism."""
    cp: bool
    """Context parallelism."""
    whole_stages: tuple[str, ...]
    """Stages of training, by their names in a plan, that it has no context parallelism in."""
    ep: bool
    """Expert parallelism."""
    etp: str
    """Tensor parallelism inside experts where experts can be spread: `any` size, that of tp where they are not
    spread and else none (`unspread`), that of `tp`, or `none`."""
    searches_splits: bool
    """Whether tp and cp are tried unasked; false where they are for plans that ask for them alone."""
    splits_sharded: bool
    """Whether tp and cp come with sharded weights alone: ZeRO-2 and 3."""
    split_attention: str
    """The attention of a plan that context parallelism works with alone; '' for the usual one."""
    sequence_parallel: bool
    """Whether tp cuts sequences in norms and residuals too (Korthikanti et al. 2022, section 4.2.2)."""
    offloads: tuple[str, ...]
    """What can be offloaded to the host."""
    interleaves: bool
    """Whether pipeline stages can be virtual (Narayanan et al. 2021, section 2.2.2)."""
    schedules: tuple[str, ...]
    """Schedules of a pipeline besides, by their names in a plan."""
    steps_in_backward: tuple[str, ...]
    """Optimizers that can update each weight within the backward pass (torch, register_post_accumulate_grad_hook)."""
    options: tuple[str, ...]
    """Options of a plan's workload that save time, cost no memory, and are a switch of the framework."""
    stages: tuple[str, ...]
    """Stages of training that it has, by their names in a plan."""
    methods: tuple[str, ...]
    """The same of methods."""
    optimizers: tuple[str, ...]
    """The same of optimizers."""
    lone_optimizers: tuple[str, ...]
    """Those of them that it has on one device alone."""
    whole_optimizers: tuple[str, ...]
    """Those of them that step on whole gradients, so that nothing may be sharded."""
    lacks: tuple[str, ...]
    """Pairs of a stage and a method that it has not, with a blank between."""
    precisions: tuple[str, ...]
    """The same of precisions."""
    devices: tuple[str, ...]
    """Makers of the devices that it runs on."""
    old_devices: tuple[str, ...]
    """Families of theirs that it does not run on, the newest last."""
    models: tuple[str, ...]
    """Families of the catalogue that it has models of, where each is code of its own; all where empty."""
    heals: bool
    """Whether runs in 4 bits can end in 8."""
    packs_singly: bool
    """Whether packed rows of fine-tuning are micro-batches of their own."""

    def methods_of(self, stage: str) -> tuple[str, ...]:
        """The methods that a stage of it has."""
        return tuple(method for method in self.methods if f"{stage} {method}" not in self.lacks)


@dataclass(frozen=True)
class Framework:
    """How one training framework keeps and moves a model's states, and what it can do."""

    name: str
    fallback_family: str
    """The framework whose values it has where it says nothing; itself where there is none."""
    weights: Weights
    gradients: Gradients
    optimizer: OptimizerStep
    gathering: Gathering
    activations: Activations
    recompute: Recompute
    loss: Loss
    adapters: Adapters
    operators: OperatorStyle
    recipe: Recipe
    overlap: Overlap
    limits: Limits
    context_bytes: float | None
    """Bytes of the device context where it is not what the family of devices usually has."""
    allocator: Literal["caching", "planned"]
    """Whether blocks are cached as they come and go (c10, CUDACachingAllocator), or all placed when the program is
    compiled (XLA, buffer_assignment)."""
    source: str


def holding(framework: Framework, weights: str) -> Framework:
    """The profile with trained weights, gradients and moments all in 16 bits ('bf16'), or all in fp32; 'auto' as is."""
    if weights == "auto":
        return framework
    size = FP32_BYTES if weights == "fp32" else 2.0
    reduce_bytes = min(size, framework.gradients.reduce_bytes)
    return replace(
        framework,
        weights=replace(framework.weights, held_bytes=size, cast_cache=weights == "fp32"),
        gradients=replace(framework.gradients, held_bytes=size, reduce_bytes=reduce_bytes),
        optimizer=replace(framework.optimizer, master_bytes=0.0, step_bytes=0.0),
    )


def summing(framework: Framework, gradients: str) -> Framework:
    """The profile with gradients summed and reduced in fp32 or in 16 bits ('bf16'); 'auto' as is."""
    if gradients == "auto":
        return framework
    size = FP32_BYTES if gradients == "fp32" else 2.0
    return replace(framework, gradients=replace(framework.gradients, held_bytes=size, reduce_bytes=size))


def by_block(framework: Framework) -> Framework:
    """The profile where one block of layers is trained at a time: weights in 16 bits, and of that block fp32 copies,
    gradients and moments besides. DeepSpeed has all weights so in any case."""
    if framework.optimizer.master_bytes:
        return framework
    return replace(
        framework,
        weights=replace(framework.weights, held_bytes=2.0, cast_cache=False),
        gradients=replace(framework.gradients, held_bytes=FP32_BYTES),
        optimizer=replace(framework.optimizer, master_bytes=FP32_BYTES, step_bytes=0.0),
    )


def unsharded(framework: Framework) -> Framework:
    """The profile where an optimizer steps on whole gradients: without what shards them, and what comes with that
    alone."""
    limits = framework.limits
    split = not limits.splits_sharded
    limits = replace(limits, zero_stages=(0,), tp=limits.tp and split, cp=limits.cp and split)
    return replace(framework, limits=limits)


def unsplit(framework: Framework) -> Framework:
    """The profile in a stage whose sequences it does not split."""
    return replace(framework, limits=replace(framework.limits, cp=False))


@dataclass(frozen=True)
class OptimizerFacts:
    """State and temporaries per trained parameter: `*_elements` in the dtype that the optimizer updates, or in bytes.

    Each optimizer's paper or implementation is beside its values in `knowledge/data/frameworks.yaml`.
    """

    name: str
    state_elements: float
    """Moments."""
    state_bytes: float
    """Moments that are given in bytes."""
    matrix_elements: float | None
    """In place of `state_elements` for the matrices of blocks; None: no other."""
    side_bytes: float
    """Bytes per row and per column of such a matrix."""
    rank: float
    """Of the projection of optimizers of low rank."""
    longer_elements: float
    """Times `rank`, per element of such a matrix's longer side."""
    shorter_elements: float
    """Times `rank`, per element of its shorter side."""
    step_elements: float
    """Temporaries of a step, of all that is stepped."""
    largest_elements: float
    """Temporaries of a step, of the largest tensor; in fp32 where the optimizer `casts`."""
    newton_schulz_steps: int
    """Iterations that make the update of a whole matrix orthogonal; 0: each element is updated for itself."""
    square_bytes: float
    """Bytes per element of the squares of such a matrix's two sides, which its step multiplies by; 0: it has none."""
    casts: bool
    """Whether a 16-bit weight and its gradient are copied to fp32 first."""
    traffic_elements: float
    """What one step reads and writes in device memory."""
    keeps_gradients: bool
    """False where a gradient is applied as soon as it exists."""
    paged: bool
    """Whether moments are pages that the driver moves to the host when the device is full (bitsandbytes, get_paged)."""
    one_block: bool
    """Whether one layer is trained at a time, each for some steps, and never what is outside the layers."""
    source: str
