"""A Plan with every name looked up and every gap filled: what the formulas work on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from estimator.machine.hardware import Machine
from estimator.machine.matmul import OPERAND_BYTES, Kind, MatmulSurface
from estimator.model.architecture import Architecture, WeightMatrix
from estimator.plan import images
from estimator.plan.assumptions import Assumption
from estimator.plan.calibration import Calibration
from estimator.plan.layouts import Floats, Layouts
from estimator.plan.schema import Plan, Training
from estimator.plan.serving.job import ServingJob
from estimator.plan.training.framework import Framework, OptimizerFacts, Style
from estimator.plan.training.run_length import PAIRED_STAGES, RunSize, run_size
from estimator.units import FP32_BYTES, GIB

# Stages that run a frozen copy of the policy beside it (TRL: DPO, KTO, IPO, PPO and GRPO; ORPO and SimPO need none).
_REFERENCED_STAGES = ("dpo", "kto", "ipo", "ppo", "grpo")
# LlamaFactory's freeze trains this many layers, the last ones, by default (finetuning_args.py,
# freeze_trainable_layers).
FREEZE_LAYERS = 2
# What the interval of the memory widens by, on each side, for each thing that was never measured.
UNMEASURED_MEMORY = 0.04
# Kernels written by hand (Transformer Engine, Apex, Liger) exist for CUDA and ROCm. Elsewhere a graph compiler fuses,
# or PyTorch's operators do the work (Megatron-DeepSpeed, megatron/model/rmsnorm.py and rotary_pos_embedding.py).
_FUSED_VENDORS = ("NVIDIA", "AMD")
_GRAPH_COMPILED = ("Gaudi", "TPU", "Trainium", "Inferentia")
# Elements from which on a tensor's states are pages (bitsandbytes, optim/optimizer.py get_state_buffer).
_LEAST_PAGED = 100_000
ADAPTER_METHODS = ("lora", "qlora", "dora", "pissa")
# Whose rates a precision of four bits runs at: matrix units with a scale per 16 elements take one per 32 too.
FOUR_BIT_RATES = {"nvfp4": ("nvfp4", "fp4"), "mxfp4": ("mxfp4", "nvfp4", "fp4")}
# Bytes of one element as the matmul reads it.
_COMPUTE_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "mxfp8": 1, "mxfp4": 0.5, "nvfp4": 0.5}


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that does not depend on the layout. `plan` has a complete workload and cluster; its layout is as
    given. `rollout` is the engine that generates samples on the same devices, where there is one. Of a `first_step` the
    optimizer makes its states when it ends, but for master weights, so that no pass has them beside it.

    A job equals itself alone: it is made once per plan, and what is memoised of layouts belongs to one of them."""

    plan: Plan
    architecture: Architecture
    machine: Machine
    framework: Framework
    optimizer: OptimizerFacts
    calibration: Calibration
    assumptions: tuple[Assumption, ...]
    rollout: ServingJob | None = None
    first_step: bool = False

    @property
    def training(self) -> Training:
        return self.plan.training

    @cached_property
    def seq_len(self) -> int:
        assert self.training.seq_len is not None
        return self.training.seq_len

    @cached_property
    def global_batch(self) -> int:
        assert self.training.global_batch is not None
        return self.training.global_batch

    @cached_property
    def sequences_per_sample(self) -> int:
        return 2 if self.training.stage in PAIRED_STAGES else 1

    @property
    def updates_matrices(self) -> bool:
        """Whether whole matrices are updated together (Muon, SOAP); adapters are too small to count."""
        matrices = self.optimizer.newton_schulz_steps > 0 or self.optimizer.square_bytes > 0.0
        return matrices and not self.uses_adapters

    @cached_property
    def uses_adapters(self) -> bool:
        return self.training.method in ADAPTER_METHODS

    @cached_property
    def trains_blocks(self) -> bool:
        """Whether the matrices of blocks (of those that are trained at all) get gradients themselves."""
        return not self.uses_adapters

    @cached_property
    def reached_layers(self) -> tuple[int, ...]:
        """Layers of each block kind that the backward pass reaches, counted from the end: all, or those of freeze."""
        pattern = self.architecture.pattern
        reached = pattern[-FREEZE_LAYERS:] if self.training.method == "freeze" else pattern
        return tuple(reached.count(kind) for kind in range(len(self.architecture.blocks)))

    @cached_property
    def steps_in_backward(self) -> bool:
        """Whether weights are updated within the backward pass, so that no gradients are summed over micro-batches."""
        return self.training.optimizer_in_backward or not self.optimizer.keeps_gradients

    @cached_property
    def one_block(self) -> bool:
        """Whether one layer is trained at a time (BAdam)."""
        return self.optimizer.one_block and self.training.method == "full"

    @cached_property
    def trained_layer_share(self) -> float:
        """Part of the layers that the backward pass reaches; the mean over all turns where layers take turns, as it
        ends at the layer that is trained."""
        layers = self.architecture.layers
        return (layers + 1.0) / (2.0 * layers) if self.one_block else sum(self.reached_layers) / layers

    @cached_property
    def weight_gradient_share(self) -> float:
        """Part of the layers whose weights get gradients."""
        if not self.trains_blocks:
            return 0.0
        return 1.0 / self.architecture.layers if self.one_block else self.trained_layer_share

    @cached_property
    def trains_outside(self) -> bool:
        """Whether embedding and head get gradients themselves."""
        return self.training.method == "full" and not self.one_block

    @cached_property
    def stream_elements(self) -> float:
        """Elements of `activation_bytes` per element of the residual stream: two where trained weights are fp32 and
        only matmuls are cast down (torch.autocast), as norms then give fp32."""
        wide = (
            self.framework.weights.cast_cache and self.training.method == "full" and self.activation_bytes < FP32_BYTES
        )
        return 2.0 if wide else 1.0

    @cached_property
    def keeps_norm_outputs(self) -> bool:
        """Whether the outputs of norms are kept: for the gradients of the matmuls that read them, or by Transformer
        Engine's fused norm and matmul in 8 bits in any case."""
        return self.trains_blocks or self.gate_elements < 1.0

    @cached_property
    def pages_states(self) -> bool:
        """Whether optimizer states are pages that may be on the host: those of tensors from a size on (bitsandbytes,
        optim/optimizer.py get_state_buffer), which adapters of a low rank stay below."""
        smallest = self.architecture.hidden * self.training.lora.rank if self.uses_adapters else _LEAST_PAGED
        return self.optimizer.paged and smallest >= _LEAST_PAGED

    @cached_property
    def quantised(self) -> bool:
        return self.training.method == "qlora"

    @cached_property
    def quantised_part(self) -> float:
        """Part of the blocks' weights that is held in 4 bits."""
        if not self.quantised:
            return 0.0
        blocks = [self.architecture.blocks[kind] for kind in self.architecture.pattern]
        experts = sum(block.expert_parameters for block in blocks)
        if self.framework.adapters.quantises_experts or not experts:
            return 1.0
        return 1.0 - experts / sum(block.parameters for block in blocks)

    def quantises(self, matrix: WeightMatrix) -> bool:
        """Whether the matrix is held in 4 bits."""
        return self.quantised and (matrix.role != "expert" or self.framework.adapters.quantises_experts)

    def packed(self, size: float, packed: float) -> float:
        """The mean over the blocks' weights of `packed` for those in 4 bits and `size` for others."""
        return self.quantised_part * packed + (1.0 - self.quantised_part) * size

    @cached_property
    def has_reference(self) -> bool:
        """A separate frozen copy of the policy: adapters are switched off instead (PEFT, disable_adapter)."""
        referenced = self.training.stage in _REFERENCED_STAGES and not self.uses_adapters
        return referenced and (self.training.stage != "grpo" or self.framework.recipe.grpo_reference)

    @cached_property
    def head_outputs(self) -> int:
        """Values that the head makes of a token: one of a reward model (TRL's RewardTrainer over transformers'
        AutoModelForSequenceClassification with num_labels 1)."""
        return 1 if self.training.stage == "rm" else self.architecture.vocab

    @cached_property
    def fused_loss(self) -> bool:
        choice = self.training.fused_loss
        return self.framework.loss.fused if choice == "auto" else bool(choice)

    @cached_property
    def fused_logit_bytes(self) -> float | None:
        """The peak per logit of a fused loss that has all logits all the same; None of one that goes by chunks."""
        loss = self.framework.loss
        compiled = loss.compiled_fused_logit_bytes if self.training.compile else None
        return loss.fused_logit_bytes if compiled is None else compiled

    @cached_property
    def activation_style(self) -> Literal["eager", "fused"]:
        """What operators save: a compiler keeps what goes into a chain of pointwise operators, and makes the rest again
        (torch.compile, functorch min_cut_rematerialization_partition)."""
        fused = self.training.compile or self.fuses_with_loss
        return "fused" if fused else self.framework.activations.style

    @cached_property
    def fuses_with_loss(self) -> bool:
        """Whether norms and activations are fused because the loss is."""
        return self.fused_loss and self.framework.activations.fused_with_loss

    @cached_property
    def reuses_inputs(self) -> bool:
        """Whether gradients of an activation function take the place of its inputs."""
        return self.fuses_with_loss or self.framework.activations.reuses_inputs

    @cached_property
    def tile_tokens(self) -> float | None:
        """Tokens of a sequence whose MLP is computed at once; None for all."""
        if not self.training.tiled_mlp:
            return None
        return float(self.framework.activations.tile_tokens or self.architecture.hidden)

    @cached_property
    def compute_bytes(self) -> float:
        """Bytes per element that the blocks' matmuls read."""
        return _COMPUTE_BYTES[self.training.precision]

    @cached_property
    def low_precision_weights(self) -> bool:
        """Whether 8-bit training holds its weights in 8 bits alone."""
        weights = self.framework.weights
        return weights.low_precision or (weights.frozen_low_precision and self.uses_adapters)

    @cached_property
    def updated_bytes(self) -> float:
        """Bytes per element of what the optimizer updates: the master copy, or the weights where there is none."""
        return self.framework.optimizer.master_bytes or self.framework.weights.held_bytes

    @cached_property
    def activation_bytes(self) -> int:
        """Bytes per element of activations between operators: 16 bits unless everything runs in 32."""
        return 4 if self.training.precision in ("fp32", "tf32") else 2

    @cached_property
    def input_elements(self) -> float:
        """Elements of `activation_bytes` that a matmul's kept input takes: half where it is kept in 8 bits."""
        low = self.compute_bytes < 2 and self.framework.activations.low_precision != "none"
        return 0.5 if low else 1.0

    @cached_property
    def gate_elements(self) -> float:
        """The same for the kept input of the activation function."""
        low = self.compute_bytes < 2 and self.framework.activations.low_precision == "all"
        return 0.5 if low else 1.0

    @cached_property
    def frozen_bytes(self) -> float:
        """Bytes per frozen weight: the compute dtype, unless the framework or the plan has all in full precision."""
        if self.training.weights == "auto" and self.framework.weights.frozen_bytes:
            return self.framework.weights.frozen_bytes
        return FP32_BYTES if self.training.weights == "fp32" else self.activation_bytes

    @property
    def sees(self) -> bool:
        """Whether sequences have images, and it is known what reads them."""
        return self.architecture.vision is not None and bool(self.training.visual_tokens)

    def patches(self, layouts: Layouts) -> Floats:
        """Patches of the images of one micro-batch; shape (n,)."""
        return layouts.micro_batch.astype(np.float64) * (self.sequences_per_sample * self.sequence_patches)

    @cached_property
    def sequence_patches(self) -> float:
        """Patches of the images and frames of one sequence."""
        return images.patches(self.architecture, self.training)

    @cached_property
    def image_keys(self) -> float:
        """Keys of a sequence's images in layers of cross-attention."""
        return images.keys(self.architecture, self.training)

    @cached_property
    def usable_bytes(self) -> float:
        """What a device can allocate, less what is to stay free; the user's own figures come first."""
        overrides = self.plan.overrides
        usable = self.machine.accelerator.torch_bytes if overrides.usable_gib is None else overrides.usable_gib * GIB
        return max(0.0, usable - (overrides.reserve_gib or 0.0) * GIB)

    @cached_property
    def unmeasured_memory(self) -> tuple[str, ...]:
        """What the plan asks for and no measured peak covers."""
        training, seen = self.training, self.calibration.measured_kinds
        asked = {name: str(getattr(training, name)) for name in ("method", "stage", "precision", "optimizer")}
        asked["accelerator family"] = self.machine.accelerator.family
        unmeasured = [f"{name} {value}" for name, value in asked.items() if value not in seen[name]]
        if not self.calibration.memory_measured:
            unmeasured.append(f"framework {self.framework.name}")
        return tuple(unmeasured)

    @cached_property
    def memory_below(self) -> float:
        """How far the peak can be below its estimate, as a fraction: the lower half of the 80 % interval."""
        return self.calibration.framework.memory_below + self._widening

    @cached_property
    def memory_above(self) -> float:
        return self.calibration.framework.memory_above + self._widening

    @cached_property
    def style(self) -> Style:
        """How memory-bound operators are implemented: a compiler fuses what is not fused by hand."""
        style = self.own_style
        return "compiled" if self.training.compile and style in ("eager", "native") else style

    @cached_property
    def own_style(self) -> Style:
        """The same where torch.compile does not reach: `generate` of a compiled model is the model's own, which calls
        the forward pass as it was (torch, OptimizedModule.__getattr__)."""
        style = self.framework.operators.style
        if style == "fused" and self.machine.accelerator.vendor.upper() not in _FUSED_VENDORS:
            return "compiled" if self.machine.accelerator.family in _GRAPH_COMPILED else "eager"
        return style

    @cached_property
    def cuda_graph(self) -> str:
        """Graphs of the whole iteration need fixed shapes all through, which scans of state-space layers lack."""
        choice = self.training.cuda_graph
        if choice != "auto":
            return choice
        graphs = self.framework.recipe.cuda_graph
        return "layers" if graphs == "full" and self.architecture.scans else graphs

    @cached_property
    def hybrid_dispatch(self) -> bool:
        """Whether what carries tokens once per node is HybridEP: where it is named, and by usage over one NVLink domain
        of several nodes (Megatron-Bridge, docs/training/moe-optimization.md)."""
        named = self.chosen("moe_dispatcher")
        return named == "hybridep" or (named != "deepep" and self.machine.fast_domain > self.machine.per_node)

    def chosen(self, name: str) -> Any:
        """An option of the workload, or the framework's where the plan leaves it open."""
        choice = getattr(self.training, name)
        if choice != "auto":
            return choice
        return getattr(self.framework.overlap if name.endswith("overlap") else self.framework.recipe, name)

    @cached_property
    def matmul_kind(self) -> Kind:
        """What the blocks' matmuls read, of the kinds that surfaces are fitted for."""
        kinds = self.machine.accelerator.peak_flops
        match self.training.precision:
            case "nvfp4" | "mxfp4" if any(kinds.get(kind) for kind in FOUR_BIT_RATES[self.training.precision]):
                return "nvfp4"
            case "mxfp8" | "mxfp4" | "nvfp4" if kinds.get("mxfp8") or "Blackwell" in self.machine.accelerator.family:
                return "fp8_block"
            case "fp8" | "mxfp8" | "mxfp4" | "nvfp4" if kinds.get("fp8"):
                return "fp8"
        return "bf16"

    @cached_property
    def surface(self) -> MatmulSurface:
        """The fitted surface of the blocks' matmuls."""
        return self.calibration.device.surfaces[self.matmul_kind]

    @cached_property
    def eight_bit_kind(self) -> Kind | None:
        """The kind that matmuls of four bits fall back to where it is faster; None where there is none."""
        return "fp8_block" if self.matmul_kind == "nvfp4" and self.machine.accelerator.peak_flops.get("fp8") else None

    @cached_property
    def in_eight_bits(self) -> tuple[Job, ...]:
        """The same in the precisions that what four bits do not make faster is left in; empty of other jobs."""
        if self.eight_bit_kind is None:
            return ()
        return tuple(replace(self, plan=self.plan.patch({"workload.precision": name})) for name in ("mxfp8", "fp8"))

    @cached_property
    def healing(self) -> Job | None:
        """The last part of a run in 4 bits that ends in 8, as a job of its own; None of other runs."""
        if not self.training.fp8_healing:
            return None
        return replace(self, plan=self.plan.patch({"workload.precision": "fp8", "workload.fp8_healing": None}))

    @cached_property
    def head_surface(self) -> MatmulSurface:
        return self.calibration.device.surfaces["bf16"]

    @cached_property
    def operand_bytes(self) -> tuple[float, float]:
        """Bytes per element of the activations and weights that the blocks' matmuls read, scales included."""
        return OPERAND_BYTES[self.matmul_kind] if self.matmul_kind != "bf16" else self.wide_operand_bytes

    @cached_property
    def wide_operand_bytes(self) -> tuple[float, float]:
        return (float(self.activation_bytes), float(self.activation_bytes))

    @property
    def time_spread(self) -> float:
        """Half width of the 80 % interval of a step time, as a fraction; a speed of one's own has none."""
        return self.calibration.time_spread if self.plan.overrides.mfu is None else 0.0

    @property
    def _widening(self) -> float:
        return UNMEASURED_MEMORY * len(self.unmeasured_memory)

    @cached_property
    def overridden_bytes(self) -> dict[str, float]:
        """Components of the memory that the user gives, by name."""
        others = {"usable_gib", "reserve_gib", "host_gib"}
        values = self.plan.overrides.model_dump(exclude_none=True, exclude=others)
        return {name.removesuffix("_gib"): value * GIB for name, value in values.items() if name.endswith("_gib")}

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes per parameter that weights are loaded and kept in, before any quantisation.

        Frozen weights are loaded in the compute dtype: no optimizer ever needs them in full precision.
        """
        frozen = self.uses_adapters or self.one_block or self.training.method == "freeze"
        return self.frozen_bytes if frozen else self.framework.weights.held_bytes

    @cached_property
    def tokens_per_step(self) -> int:
        return self.global_batch * self.sequences_per_sample * self.seq_len

    @cached_property
    def run(self) -> RunSize | None:
        """The whole run; None when neither the size of the data nor the steps are known."""
        return run_size(self.training, self.tokens_per_step)

    @cached_property
    def steps(self) -> int | None:
        """Optimizer steps of the whole run; None when it is not known."""
        return None if self.run is None else self.run.steps

    @cached_property
    def peak_flops(self) -> float:
        """Dense matrix rate in FLOP/s of the precision the blocks run in."""
        return precision_peak(self.machine.accelerator.peak_flops, self.training.precision)

    @cached_property
    def head_peak_flops(self) -> float:
        """Rate of the output head, which stays in 16 bits when the blocks run in fewer."""
        peaks = self.machine.accelerator.peak_flops
        if self.compute_bytes >= self.activation_bytes:
            return self.peak_flops
        return precision_peak(peaks, "bf16") or precision_peak(peaks, "fp16")


def precision_peak(peaks: dict[str, float], precision: str) -> float:
    """The rate of `precision`, or of the nearest wider kind the device has; 0 when it has none."""
    wider = {
        "nvfp4": (*FOUR_BIT_RATES["nvfp4"], "fp8", "bf16"),
        "mxfp4": (*FOUR_BIT_RATES["mxfp4"], "fp8", "bf16"),
        "mxfp8": ("mxfp8", "fp8", "bf16"),
        "fp8": ("fp8", "bf16"),
        "bf16": ("bf16",),
        "fp16": ("fp16",),
        "tf32": ("tf32", "fp32"),
        "fp32": ("fp32",),
    }
    return next((peaks[kind] for kind in wider[precision] if peaks.get(kind)), 0.0)
