"""A serving Plan with every name looked up and every gap filled: what the formulas of serving work on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from estimator.machine.decode import DecodeKernel, ExpertKernel
from estimator.machine.hardware import Machine
from estimator.machine.matmul import Kind, MatmulSurface
from estimator.model.architecture import Architecture
from estimator.model.parts import draft_layer
from estimator.model.weight_format import Kernel, WeightFormat
from estimator.plan import images
from estimator.plan.assumptions import Assumption
from estimator.plan.calibration import DeviceFactors
from estimator.plan.layouts import Floats
from estimator.plan.schema import Inference, Plan
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.engine import Engine
from estimator.plan.serving.factors import ServingFactors
from estimator.units import BITS_PER_BYTE, FP32_BYTES, GIB

# Four bits have a scale of eight for each block of 16 (SGLang, docs/advanced_features/quantized_kv_cache.md; NVFP4).
_CACHE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625}


@dataclass(frozen=True, eq=False)
class ServingJob:
    """Everything that does not depend on the deployment; `plan` has a complete workload, its layout is as given.

    `kernel` is what multiplies the blocks' weights, `expert_matmul` what multiplies those of routed experts.
    `kv_dtype` is the format of the cache, `decode_kernels` are those of attention and of MLA. `expert_spread` is how
    much more often the most popular expert is chosen than the least.
    """

    plan: Plan
    architecture: Architecture
    machine: Machine
    engine: Engine
    weights: WeightFormat
    kernel: Kernel
    expert_matmul: Kernel
    kv_dtype: str
    device: DeviceFactors
    decode_kernels: tuple[DecodeKernel, DecodeKernel]
    expert_kernel: ExpertKernel
    expert_spread: float
    factors: ServingFactors
    assumptions: tuple[Assumption, ...]
    parts: tuple[HeldPart, ...] = ()
    """What each device holds where they are unlike each other; empty where all hold the same."""

    @cached_property
    def inference(self) -> Inference:
        return self.plan.inference

    @cached_property
    def mixes(self) -> bool:
        """Whether prompts are read beside generation, not in steps of their own."""
        choice = self.inference.chunked_prefill
        return self.engine.mixes if choice == "auto" else bool(choice)

    @property
    def balances_lanes(self) -> bool:
        """Whether prompts are held back so that all lanes that share experts read at once."""
        return self.engine.balance_steps > 0

    def request_s(self, met: Floats) -> Floats:
        """Seconds of a request's way through a server, where others run with the chance `met`: their tokens go through
        the same processes. None where the engine is called as a library."""
        served = self.inference.scenario in ("server", "interactive")
        return self.engine.request_s * served * (1.0 + (self.factors.request - 1.0) * met)

    @property
    def output_spread(self) -> float:
        """Standard deviation of generated tokens over their mean."""
        return self.inference.output_spread or 0.0

    @cached_property
    def image_keys(self) -> float:
        """Keys of a request's images in layers of cross-attention."""
        return images.keys(self.architecture, self.inference)

    @cached_property
    def running(self) -> Architecture:
        """The layers that run: those of cross-attention do so for images alone."""
        model = self.architecture
        if self.image_keys or not any(block.crosses for block in model.blocks):
            return model
        return replace(model, pattern=tuple(kind for kind in model.pattern if not model.blocks[kind].crosses))

    @cached_property
    def patches(self) -> float:
        """Patches of a request's images and frames."""
        return images.patches(self.architecture, self.inference)

    @property
    def loads_tower(self) -> bool:
        """Whether what reads images is on the devices: engines that load whole checkpoints load it with them, those of
        GGUF files have it in a file of its own (llama.cpp, --mmproj)."""
        return self.architecture.vision is not None and (bool(self.inference.visual_tokens) or self.engine.loads_tower)

    def mean_context(self, input_len: Floats, output_len: Floats) -> Floats:
        """Tokens in the cache of a running request: long answers run longer, so they are met more often."""
        return input_len + 0.5 * output_len * (1.0 + self.output_spread**2)

    @cached_property
    def in_step(self) -> bool:
        """Whether the requests of a batch start and end together."""
        return self.inference.scenario == "static-batch" or self.engine.batches == "static"

    def exchanges_directly(self, these: Deployments) -> NDArray[np.bool_]:
        """Whether tokens go to the ranks of their experts alone, and not to all; shape (n,). Kernels for that know
        whole experts only."""
        choice = self.inference.expert_exchange
        least = self.engine.all_to_all_from if choice == "auto" else 2 if choice == "all_to_all" else 0
        return (these.etp <= 1.0) & (these.ep >= (least or np.inf))

    def overlaps_batches(self, these: Deployments) -> NDArray[np.bool_]:
        """Whether a step may be cut in two that take turns: where tokens cross the network to their experts, unless
        the plan says otherwise; shape (n,)."""
        choice = self.inference.two_batch_overlap
        exchanging = self.exchanges_directly(these) & (these.dp > 1.0)
        if choice == "auto":
            return exchanging & self.engine.two_batch & (these.tp * these.dp > self.machine.fast_domain)
        return exchanging & bool(choice)

    def hides_host(self, stages: Floats) -> NDArray[np.bool_]:
        """Whether the host prepares the next step while the devices run one, with so many stages; shape (n,)."""
        drafts = not self.inference.speculative_tokens or self.engine.overlaps_drafts
        return ((stages <= 1.0) | self.engine.overlaps_stages) & (self.engine.overlaps and drafts)

    @cached_property
    def graphs(self) -> bool:
        """Whether steps that only generate are replayed as CUDA graphs."""
        choice = self.inference.cuda_graph
        return self.engine.graphs if choice == "auto" else bool(choice)

    @cached_property
    def checked_tokens(self) -> float:
        """Tokens of one sequence that one step looks at: the next one, and those that were drafted."""
        return 1.0 + (self.inference.speculative_tokens or 0)

    @cached_property
    def drafter(self) -> ServingJob | None:
        """The same with the layer that drafts alone; None where nothing is drafted, text that was seen is copied, or
        the head is elsewhere."""
        copied = self.inference.draft_method == "ngram"
        if not self.inference.speculative_tokens or copied or not self.architecture.vocab:
            return None
        plan = self.plan.patch({"workload.speculative_tokens": None})
        return replace(self, plan=plan, architecture=draft_layer(self.architecture), parts=())

    @cached_property
    def tokens_per_step(self) -> float:
        """Tokens that one step adds to a sequence: the drafted ones up to the first that is refused, and one more
        (Leviathan et al. 2023, Fast Inference from Transformers via Speculative Decoding, equation 1)."""
        kept, drafted = self.inference.acceptance, self.inference.speculative_tokens or 0
        return drafted + 1.0 if kept >= 1.0 else (1.0 - kept ** (drafted + 1)) / (1.0 - kept)

    @cached_property
    def context_parts(self) -> float:
        """Devices of a tensor group that hold a part of the tokens each, where they would hold the same keys."""
        return float(self.plan.layout.cp or 1)

    @cached_property
    def kv_bytes(self) -> float:
        """Bytes of one element of the cache."""
        return _CACHE_BYTES[self.kv_dtype]

    @cached_property
    def block_bytes(self) -> float:
        """Bytes per weight of the blocks' matrices, scales included."""
        bits = self.inference.weight_bits
        return (self.weights.bits if bits is None else bits) / BITS_PER_BYTE

    @cached_property
    def wide_bytes(self) -> float:
        """Bytes per element of activations between operators."""
        return FP32_BYTES if self.weights.name == "fp32" else 2.0

    @cached_property
    def casts(self) -> bool:
        """Whether the inputs of the blocks' matmuls are rounded to 8 or 4 bits."""
        return self.kernel.activation_bits < BITS_PER_BYTE * self.wide_bytes

    @cached_property
    def surface(self) -> MatmulSurface:
        """The fitted surface of the blocks' matmuls."""
        return self.device.surfaces[self.kernel.kind]

    @cached_property
    def expert_bytes(self) -> float:
        """Bytes per weight of routed experts, scales included."""
        bits = self.inference.weight_bits
        return (self.weights.expert_bits if bits is None else bits) / BITS_PER_BYTE

    @cached_property
    def expert_surface(self) -> MatmulSurface:
        return self.device.surfaces[self.expert_matmul.kind]

    @cached_property
    def operand_bytes(self) -> tuple[float, float]:
        """Bytes per element of the activations and weights that the blocks' matmuls read, scales included."""
        return self.kernel.activation_bits / BITS_PER_BYTE, self.block_bytes

    @cached_property
    def expert_operand_bytes(self) -> tuple[float, float]:
        return self.expert_matmul.activation_bits / BITS_PER_BYTE, self.expert_bytes

    @cached_property
    def peak_flops(self) -> float:
        """Dense matrix rate of the blocks' matmuls in FLOP/s."""
        return kind_peak(self.machine.accelerator.peak_flops, self.kernel.kind)

    @cached_property
    def expert_peak_flops(self) -> float:
        return kind_peak(self.machine.accelerator.peak_flops, self.expert_matmul.kind)

    @cached_property
    def wide_peak_flops(self) -> float:
        """The same in 16 bits, in which attention and head run."""
        return kind_peak(self.machine.accelerator.peak_flops, "bf16")

    @cached_property
    def usable_bytes(self) -> float:
        """What a device can allocate, less what is to stay free; the user's own figures come first."""
        overrides = self.plan.overrides
        usable = self.machine.accelerator.usable_bytes if overrides.usable_gib is None else overrides.usable_gib * GIB
        return max(0.0, usable - (overrides.reserve_gib or 0.0) * GIB)


@dataclass(frozen=True)
class HeldPart:
    """What one kind of device holds of a model: `job` is for that alone. `lent` is the same on the card that the
    weights of a processor are copied to for many tokens (None for a card's own). Values cross to it and back
    `crossings` times a pass."""

    job: ServingJob
    lent: ServingJob | None
    crossings: float

    def of(self, these: Deployments) -> Deployments:
        """The deployments of the whole on this kind of device."""
        return replace(these, pp=np.full(len(these), float(self.job.machine.count)))


_PEAKS: dict[Kind, tuple[str, ...]] = {
    "nvfp4": ("nvfp4", "mxfp4", "fp8", "bf16", "fp16", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "fp32"),
    "fp8_block": ("fp8", "bf16", "fp16", "fp32"),
    "int8": ("int8", "bf16", "fp16", "fp32"),
}


def kind_peak(peaks: dict[str, float], kind: Kind) -> float:
    """The rate of matmuls of a kind, or of the nearest wider one that the device has; 0 when it has none."""
    return next((peaks[name] for name in _PEAKS.get(kind, ("bf16", "fp16", "fp32")) if peaks.get(name)), 0.0)
