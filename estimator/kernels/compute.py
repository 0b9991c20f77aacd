"""Time of one block's operators on one device: matmuls by their real shard, attention, and memory-bound operators.

All arrays have shape (n,); times are seconds per micro-batch. What each kind of operator takes is in matmul.py,
attention.py and elementwise.py; here they become a block, the head and the optimizer step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from estimator.kernels.adapters import is_tiled
from estimator.kernels.attention import CoreTime, attention_time, no_core, scan_time
from estimator.kernels.elementwise import (
    Operators,
    copied_out,
    dequantise_operators,
    embedding_operators,
    head_operators,
    matmul_kernels,
    token_operators,
    weight_operators,
)
from estimator.kernels.module_recompute import repeated_share, repeats_core
from estimator.kernels.offloading import host_step_seconds
from estimator.machine.matmul import OPERAND_BYTES, Kind, MatmulRates, matmul_seconds
from estimator.model.architecture import Block
from estimator.plan.layouts import FEW, RECOMPUTE, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import Floats, micro_batch_tokens, sum_of
from estimator.units import FP32_BYTES


@dataclass(frozen=True)
class BlockTime:
    """Seconds of one block and micro-batch on one device, its model FLOP (forward), and the kernels it launches.
    `copied` is the part of `memory_forward` that copies gathered weights."""

    matmul_forward: Floats
    matmul_backward: Floats
    attention_forward: Floats
    attention_backward: Floats
    memory_forward: Floats
    memory_backward: Floats
    copied: Floats
    forward_flop: Floats
    recompute: Floats
    recompute_flop: Floats
    kernels_forward: Floats | float
    kernels_backward: Floats | float
    kernels_recompute: Floats

    @cached_property
    def forward(self) -> Floats:
        return self.matmul_forward + self.attention_forward + self.memory_forward

    @cached_property
    def backward(self) -> Floats:
        return self.matmul_backward + self.attention_backward + self.memory_backward

    @property
    def kernels(self) -> Floats:
        return self.kernels_forward + self.kernels_backward + self.kernels_recompute


def matmul_time(
    job: Job, m: Floats, n: Floats | float, k: Floats | float, copies: Floats | float = 1.0, *, head: bool = False
) -> Floats:
    """Seconds of `copies` matmuls of (m, n, k) launched as one kernel; the head stays in 16 bits.

    A shape that is too small to gain from 4 bits is left in 8, as recipes leave what they choose (Transformer Engine,
    autocast by module).
    """
    seconds = matmul_seconds(matmul_rates(job, head), m, n, k, copies)
    if head or job.eight_bit_kind is None:
        return seconds
    return np.minimum(seconds, matmul_seconds(_eight_bit_rates(job, job.eight_bit_kind), m, n, k, copies))


def _eight_bit_rates(job: Job, kind: Kind) -> MatmulRates:
    device, accelerator = job.calibration.device, job.machine.accelerator
    peak = accelerator.peak_flops["fp8"] * device.matmul
    return MatmulRates(
        device.surfaces[kind], peak, accelerator.memory_bandwidth, OPERAND_BYTES[kind], job.activation_bytes
    )


def matmul_rates(job: Job, head: bool) -> MatmulRates:
    """What the blocks' matmuls or the head's work at."""
    surface = job.head_surface if head else job.surface
    peak = (job.head_peak_flops if head else job.peak_flops) * job.calibration.device.matmul
    operand_bytes = job.wide_operand_bytes if head else job.operand_bytes
    bandwidth = job.machine.accelerator.memory_bandwidth
    return MatmulRates(surface, peak, bandwidth, operand_bytes, job.activation_bytes)


def memory_time(job: Job, traffic_bytes: Floats, kernels: Floats | float) -> Floats:
    """Seconds to move `traffic_bytes` through device memory in `kernels` launches."""
    device = job.calibration.device
    return traffic_bytes / (job.machine.accelerator.memory_bandwidth * device.memory) + kernels * device.launch_s


class _Passes(NamedTuple):
    """Seconds, FLOP and kernels of one block without what is recomputed; numbers or arrays of shape (n,)."""

    forward: Floats
    backward: Floats
    flop: Floats
    attention: Floats
    attention_back: Floats
    core_flop: Floats
    core_kernels: Floats | float
    memory_forward: Floats
    memory_backward: Floats
    kernels: Floats | float
    kernels_back: Floats | float
    copied: Floats
    """Of memory_forward, what copies gathered weights: what is recomputed has those of the backward pass."""


# Fields of a layout on which these depend; pipelines, sharding and recompute do not matter to one layer.
DECISIVE = ("tp", "sequence_parallel", "cp", "ep", "etp", "zero_stage", "micro_batch", "grad_accum")


def block_time(job: Job, block: Block, layouts: Layouts) -> BlockTime:
    alike = layouts.runs(DECISIVE)
    passes = _block_passes(job, block, alike.layouts if alike else layouts)
    for wider in job.in_eight_bits:
        passes = _sooner(passes, _block_passes(wider, block, alike.layouts if alike else layouts))
    if alike:
        spread: list[Any] = [alike.spread(np.asarray(values)) if np.ndim(values) else values for values in passes]
        passes = _Passes(*spread)
    matmul_share, core_share = repeated(job, block, layouts)
    # What is computed in tiles runs forward once more, in the backward pass of each tile (DeepSpeed, TiledMLP).
    tiled = _mlp_share(block) * job.trained_layer_share if is_tiled(job, block) else 0.0
    again = passes.forward + passes.memory_forward - passes.copied
    return BlockTime(
        matmul_forward=passes.forward,
        matmul_backward=passes.backward,
        attention_forward=passes.attention,
        attention_backward=passes.attention_back,
        memory_forward=passes.memory_forward,
        memory_backward=passes.memory_backward,
        copied=passes.copied,
        forward_flop=passes.flop + passes.core_flop,
        recompute=matmul_share * again + core_share * passes.attention + tiled * passes.forward,
        recompute_flop=(matmul_share + tiled) * passes.flop + core_share * passes.core_flop,
        kernels_forward=passes.kernels,
        kernels_backward=passes.kernels_back * job.trained_layer_share,
        kernels_recompute=matmul_share * passes.kernels + core_share * passes.core_kernels,
    )


_FORWARD = ("forward", "attention", "memory_forward", "copied", "kernels", "core_kernels")
_BACKWARD = ("backward", "attention_back", "memory_backward", "kernels_back")


def _sooner(narrow: _Passes, wide: _Passes) -> _Passes:
    """Each way through a block in the precision that is through sooner, casts counted: recipes leave in more bits
    what fewer do not make faster, a layer as a whole or one way of it (Transformer Engine, autocast by module and
    override_linear_precision)."""
    chosen: dict[str, Floats] = {}
    for names in (_FORWARD, _BACKWARD):
        waits = sum_of(getattr(wide, name) for name in names[:3]) < sum_of(getattr(narrow, name) for name in names[:3])
        chosen |= {name: np.where(waits, getattr(wide, name), getattr(narrow, name)) for name in names}
    return narrow._replace(**chosen)


def _mlp_share(block: Block) -> float:
    """Part of a dense block's matmuls that is the MLP's, by weights."""
    mlp = sum(matrix.parameters for matrix in block.matrices if matrix.role == "mlp")
    return mlp / sum(matrix.parameters for matrix in block.matrices)


def _block_passes(job: Job, block: Block, layouts: Layouts) -> _Passes:
    tokens = micro_batch_tokens(job, layouts)
    forward, backward, flop = _matmuls(job, block, layouts, tokens)
    core = core_time(job, block, layouts, tokens)
    launch_s, reached = job.calibration.device.launch_s, job.trained_layer_share
    attention = core.forward + core.kernels_forward * launch_s
    attention_back = core.backward + core.kernels_backward * (launch_s * reached)
    moving, fixed = memory_bound(job, block, layouts, tokens)
    memory_forward = memory_time(job, moving.forward_bytes + fixed.forward_bytes, moving.forward_kernels)
    memory_backward = memory_time(job, reached * moving.backward_bytes + fixed.backward_bytes, moving.backward_kernels)
    launched, launched_back = matmul_kernels(job, block, layouts, job.style)
    kernels = launched + core.kernels_forward + (moving.forward_kernels + fixed.forward_kernels)
    kernels_back = launched_back + core.kernels_backward + (moving.backward_kernels + fixed.backward_kernels)
    return _Passes(
        forward,
        backward,
        flop,
        attention,
        attention_back,
        core.flop,
        core.kernels_forward,
        memory_forward,
        memory_backward,
        kernels,
        kernels_back,
        memory_time(job, copied_out(job, block, layouts), 0.0),
    )


def repeated(job: Job, block: Block, layouts: Layouts) -> tuple[Floats, Floats]:
    """Parts of a block that run again in the backward pass: of all but the mixer's core, and of the core."""
    if not layouts.recomputes:
        return layouts.zeros(), layouts.zeros()
    # Where layers take turns, those below the trained one are not reached.
    share = job.trained_layer_share if job.one_block else 1.0
    again = share * (layouts.recompute == RECOMPUTE.index("full"))
    selective = share * (layouts.recompute == RECOMPUTE.index("selective"))
    # Keeping every other matmul output means that the others run again.
    matmul_share = again + (0.5 if job.framework.recompute.selective == "ops" else 0.0) * selective
    if job.framework.recompute.by_module:
        return again + repeated_share(job, block) * selective, again + repeats_core(job) * selective
    core_again = job.framework.recompute.selective in ("attention", "projections")
    return matmul_share, again + core_again * selective


def _matmuls(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> tuple[Floats, Floats, Floats]:
    """(forward s, backward s, forward FLOP). Backward multiplies once for the input's gradient, and once for the
    weight's where the weight is trained: its depth is then the tokens."""
    forward = weights = flop = layouts.zeros()
    for _, times, m, n, k, copies in products(block, layouts, tokens):
        forward = _plus(forward, times, matmul_time(job, m, n, k, copies))
        if job.trains_blocks:
            weights = _plus(weights, times, matmul_time(job, n, k, m, copies))
        flop = _plus(flop, times, m * (2.0 * copies * n * k))
    return forward, forward * job.trained_layer_share + weights * job.weight_gradient_share, flop


class Products(NamedTuple):
    """Matrix products (m, n, k) of one device, one row for each shape that a block has and `times` how often it has it.

    `kinds` are (of experts, split, outputs, inputs, copies) of each. Arrays have shape (n,), (shapes, 1) or
    (shapes, n).
    """

    kinds: list[tuple[bool, str, int, int, int]]
    times: list[float]
    m: Floats
    n: Floats
    k: Floats
    copies: Floats | float


def products(block: Block, layouts: Layouts, tokens: Floats) -> Iterator[Products]:
    """A block's products: those that see every token apart from those of routed experts.

    Of few candidates all shapes are one evaluation, as calls take longer than their arithmetic; of many each shape is
    one, whose arrays stay in cache.
    """
    counts = Counter((m.role == "expert", m.split, m.outputs, m.inputs, m.copies) for m in block.matrices)
    groups = [[kind for kind in counts if kind[0] == routed] for routed in (False, True)]
    if len(layouts) > FEW:
        groups = [[kind] for kinds in groups for kind in kinds]
    for kinds in filter(None, groups):
        routed = kinds[0][0]
        outputs, inputs, copies = np.array([kind[2:] for kind in kinds], dtype=np.float64).T[:, :, None]
        rows = tokens
        if routed:
            copies = np.maximum(1.0, copies / layouts.ep)
            rows = tokens * block.top_k * layouts.etp / layouts.tp / copies
        part = "etp" if routed else "tp"
        yield Products(
            kinds,
            [float(counts[kind]) for kind in kinds],
            rows,
            _cut(outputs, [kind[1] == "column" for kind in kinds], layouts, part),
            _cut(inputs, [kind[1] == "row" for kind in kinds], layouts, part),
            copies if routed or copies.max() > 1.0 else 1.0,
        )


def _cut(sizes: Floats, cuts: list[bool], layouts: Layouts, part: str) -> Floats:
    """Sizes of shape (shapes, 1), those that are cut divided by the field `part` of the layouts."""
    if layouts.max_of(part) <= 1 or not any(cuts):
        return sizes
    return sizes / np.where(np.array(cuts)[:, None], getattr(layouts, part), 1)


def _plus(total: Floats, times: list[float], each: Floats) -> Floats:
    """`total` and all products of an array of shape (shapes, n), one by one, so that sums round alike for few and many
    candidates."""
    for many, row in zip(times, each, strict=True):
        total = total + (row if many == 1.0 else many * row)
    return total


def core_time(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> CoreTime:
    device = job.calibration.device
    if block.mixer in ("attention", "mla") and block.heads:
        return attention_time(job, block, layouts, tokens, device.attention_kernel)
    if block.mixer in device.scans:
        return scan_time(job, block, layouts, tokens, device.scans[block.mixer])
    return no_core(layouts)


def memory_bound(job: Job, block: Block, layouts: Layouts, tokens: Floats) -> tuple[Operators, Operators]:
    """(What backward does only for the layers that are trained, what it does as counted)."""
    style = job.style
    moving = token_operators(job, block, layouts, tokens, style)
    fixed = weight_operators(job, block, layouts, style)
    if job.quantised:
        fixed = fixed + dequantise_operators(job, block, layouts)
    return moving, fixed


@dataclass(frozen=True)
class HeadTime:
    """Seconds of the output head and the loss per micro-batch, and the head's forward FLOP."""

    forward: Floats
    backward: Floats
    flop: Floats


def head_time(job: Job, layouts: Layouts) -> HeadTime:
    alike = layouts.runs(DECISIVE)
    if alike:
        each = head_time(job, alike.layouts)
        return HeadTime(alike.spread(each.forward), alike.spread(each.backward), alike.spread(each.flop))
    tokens = micro_batch_tokens(job, layouts)
    columns = job.head_outputs / layouts.tp
    hidden = job.architecture.hidden
    once = matmul_time(job, tokens, columns, hidden, head=True)
    backward = once
    if not (job.uses_adapters or job.one_block):
        backward = backward + matmul_time(job, columns, hidden, tokens, head=True)
    loss = head_operators(job, layouts, tokens, job.style)
    return HeadTime(
        once + memory_time(job, loss.forward_bytes, loss.forward_kernels),
        backward + memory_time(job, loss.backward_bytes, loss.backward_kernels),
        2.0 * tokens * columns * hidden,
    )


def embedding_time(job: Job, layouts: Layouts) -> tuple[Floats, Floats]:
    """Seconds of the embedding's look-up, and of its gradient."""
    lookup = embedding_operators(job, layouts, micro_batch_tokens(job, layouts))
    return (
        memory_time(job, lookup.forward_bytes, lookup.forward_kernels),
        memory_time(job, lookup.backward_bytes, lookup.backward_kernels),
    )


# What AdamW moves in operators over lists of tensors, as a multiple of its one kernel's: decay, both moments, root,
# division, epsilon and update are 20.5 elements for 7 (torch/optim/adamw.py, _multi_tensor_adamw).
_FOREACH = 20.5 / 7.0


def optimizer_time(job: Job, layouts: Layouts, trained: Floats) -> Floats:
    """Seconds of one optimizer step over `trained` parameters per device, by the bytes it reads and writes."""
    element = job.updated_bytes if not job.uses_adapters else FP32_BYTES
    foreach = job.optimizer.step_elements > 0.0 and not job.framework.optimizer.fused
    device_bytes = trained * (job.optimizer.traffic_elements * element * (_FOREACH if foreach else 1.0))
    if not layouts.max_of("offload"):
        return memory_time(job, device_bytes, 4.0)
    over_host = host_step_seconds(job, layouts, trained)
    return np.where(layouts.optimizer_offloaded, over_host, memory_time(job, device_bytes, 4.0))
