"""The operators of a step on one device, each with its FLOP, bytes, seconds and what binds it.

They are those of the stage that takes longest, whose seconds sum to the step's forward, backward and recompute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from estimator.kernels.compute import (
    core_time,
    matmul_rates,
    matmul_time,
    memory_bound,
    memory_time,
    products,
    repeated,
)
from estimator.kernels.elementwise import copied_out, embedding_operators, head_operators
from estimator.machine.matmul import matmul_limits
from estimator.model.architecture import Block
from estimator.plan.layouts import Floats, Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.stages import StageShape, micro_batch_tokens, recomputed_share, stage_shape
from estimator.training.schedule import Passes

# Of what takes longer to start than to run, starting is what binds.
_STARTS = "kernel launch"
_COPIES = "copies of gathered weights"


@dataclass(frozen=True)
class Operator:
    """One kind of operator of the stage in one pass (forward, backward or recompute), over a whole step.

    `runs` is how often it runs, `flop`, `traffic_bytes` and `seconds` are of all runs; None where the estimate does not
    go by it. `bound` is what a run waits for: compute, memory bandwidth or kernel launch.
    """

    name: str
    phase: str
    runs: float
    flop: float
    traffic_bytes: float | None
    seconds: float
    bound: str
    shape: str = ""


@dataclass(frozen=True)
class _One:
    """A run of an operator on one device and micro-batch."""

    name: str
    phase: str
    flop: float
    traffic: float | None
    seconds: float
    bound: str
    shape: str = ""
    runs: float = 1.0


def operators(job: Job, layout: Layouts, passes: Passes) -> list[Operator]:
    """Of a single candidate, the ones that take longest first."""
    shape = stage_shape(job.architecture, layout, passes.stage)
    micro, factor = float(layout.grad_accum[0]), float(job.calibration.framework.compute)
    merged: dict[tuple[str, str, str], Operator] = {}
    for count, run in _runs(job, layout, shape):
        key = (run.name, run.phase, run.shape)
        times = micro * count
        same = merged.get(key)
        merged[key] = Operator(
            name=run.name,
            phase=run.phase,
            runs=times * run.runs + (same.runs if same else 0.0),
            flop=times * run.flop + (same.flop if same else 0.0),
            traffic_bytes=None if run.traffic is None else times * run.traffic + ((same and same.traffic_bytes) or 0.0),
            seconds=factor * times * run.seconds + (same.seconds if same else 0.0),
            bound=run.bound,
            shape=run.shape,
        )
    return sorted((each for each in merged.values() if each.seconds > 0.0), key=lambda each: -each.seconds)


def _runs(job: Job, layout: Layouts, shape: StageShape) -> Iterator[tuple[float, _One]]:
    """(How often in one micro-batch, a run) of every operator of the stage."""
    share = float(recomputed_share(layout, shape)[0])
    visited = float(shape.visited[0])
    for count, block in zip(shape.layers, job.architecture.blocks, strict=True):
        layers = float(count[0]) * visited
        if not layers:
            continue
        matmuls_again, core_again = (float(part[0]) for part in repeated(job, block, layout))
        for run in _block(job, block, layout):
            yield layers, run
            # What is recomputed has the gathered weights of the backward pass.
            if run.phase == "forward" and run.name != _COPIES:
                again = (core_again if run.name == "attention core" else matmuls_again) + share
                if again:
                    yield layers * again, _again(run)
    if ends := float(shape.has_head[0]):
        for run in _head(job, layout):
            yield ends * visited, run
    if ends := float(shape.has_embedding[0]):
        for run in _embedding(job, layout):
            yield ends, run


def _again(run: _One) -> _One:
    return _One(run.name, "recompute", run.flop, run.traffic, run.seconds, run.bound, run.shape, run.runs)


def _block(job: Job, block: Block, layout: Layouts) -> Iterator[_One]:
    tokens = micro_batch_tokens(job, layout)
    share, weights = job.trained_layer_share, job.weight_gradient_share
    for kinds, often, m, n, k, copies in products(block, layout, tokens):
        names = [_names(block, kind) for kind in kinds]
        yield from _products(job, names, often, _Product(m, n, k, copies), "forward", 1.0, False)
        # The same product again gives the input's gradient, one over the tokens the weight's.
        yield from _products(job, names, often, _Product(m, n, k, copies), "backward", share, False)
        if job.trains_blocks:
            gradient = _Product(n, k, m, copies)
            yield from _products(job, names, often, gradient, "backward", weights, False, " (weight gradient)")
    launch_s = float(job.calibration.device.launch_s)
    core = core_time(job, block, layout, tokens)
    if float(core.flop[0]):
        scan = block.mixer in job.calibration.device.scans
        bound = "memory bandwidth" if scan else "compute"
        forward = float(core.forward[0]) + float(core.kernels_forward[0]) * launch_s
        backward = float(core.backward[0]) + float(core.kernels_backward[0]) * launch_s * share
        yield _One("attention core", "forward", float(core.flop[0]), None, forward, bound)
        yield _One("attention core", "backward", 2.0 * share * float(core.flop[0]), None, backward, bound)
    moving, fixed = memory_bound(job, block, layout, tokens)
    copied = copied_out(job, block, layout)
    for phase, size, kernels in (
        ("forward", moving.forward_bytes + fixed.forward_bytes, moving.forward_kernels),
        ("backward", share * moving.backward_bytes + fixed.backward_bytes, moving.backward_kernels),
    ):
        yield _moving(job, "norms, activations, sums and casts", phase, size - copied, kernels)
        yield _moving(job, _COPIES, phase, copied, 0.0)


def _names(block: Block, kind: tuple[bool, str, int, int, int]) -> str:
    names = [
        matrix.name
        for matrix in block.matrices
        if (matrix.role == "expert", matrix.split, matrix.outputs, matrix.inputs, matrix.copies) == kind
    ]
    return " + ".join(dict.fromkeys(names))


class _Product(NamedTuple):
    """`copies` matmuls of (m, k) by (k, n); arrays have shape (shapes, 1) or are numbers."""

    m: Floats
    n: Floats | float
    k: Floats | float
    copies: Floats | float


def _products(
    job: Job,
    names: list[str],
    often: list[float],
    product: _Product,
    phase: str,
    share: float,
    head: bool,
    what: str = "",
) -> Iterator[_One]:
    """A run of each shape of `product`."""
    m, n, k, copies = product
    rates = matmul_rates(job, head)
    surface, bandwidth = rates.surface, rates.memory_bandwidth
    seconds = matmul_time(job, m, n, k, copies, head=head)
    arithmetic, moved = matmul_limits(rates, m, n, k, copies)
    sizes = np.broadcast_arrays(*np.atleast_2d(seconds, arithmetic, moved, m, n, k, copies))
    for name, times, row in zip(names, often, np.stack([size[:, 0] for size in sizes], axis=1), strict=True):
        took, computes, moves, rows, columns, depth, group = (float(value) for value in row)
        bound = "compute" if computes >= moves else "memory bandwidth"
        if float(surface.launch_s) > max(computes, moves):
            bound = _STARTS
        each = f"{rows:.0f} x {columns:.0f} x {depth:.0f}"
        yield _One(
            name=name + what,
            phase=phase,
            flop=share * times * 2.0 * rows * columns * depth * group,
            traffic=share * times * moves * float(bandwidth) * float(surface.memory),
            seconds=share * times * took,
            bound=bound,
            shape=each if group == 1.0 else f"{group:.0f} of {each}",
            runs=share * times,
        )


def _moving(job: Job, name: str, phase: str, size: Floats, kernels: float) -> _One:
    seconds = float((memory_time(job, size, kernels) + np.zeros(1))[0])
    starts = float(kernels) * float(job.calibration.device.launch_s)
    bound = _STARTS if starts > 0.5 * seconds else "memory bandwidth"
    return _One(name, phase, 0.0, float((size + np.zeros(1))[0]), seconds, bound)


def _head(job: Job, layout: Layouts) -> Iterator[_One]:
    tokens = micro_batch_tokens(job, layout)
    columns, hidden = job.head_outputs / layout.tp, float(job.architecture.hidden)
    name = ["output head"]
    yield from _products(job, name, [1.0], _Product(tokens, columns, hidden, 1.0), "forward", 1.0, True)
    yield from _products(job, name, [1.0], _Product(tokens, columns, hidden, 1.0), "backward", 1.0, True)
    if not (job.uses_adapters or job.one_block):
        yield from _products(
            job, name, [1.0], _Product(columns, hidden, tokens, 1.0), "backward", 1.0, True, " (weight gradient)"
        )
    loss = head_operators(job, layout, tokens, job.style)
    yield _moving(job, "loss", "forward", loss.forward_bytes, loss.forward_kernels)
    yield _moving(job, "loss", "backward", loss.backward_bytes, loss.backward_kernels)


def _embedding(job: Job, layout: Layouts) -> Iterator[_One]:
    lookup = embedding_operators(job, layout, micro_batch_tokens(job, layout))
    yield _moving(job, "embedding", "forward", lookup.forward_bytes, lookup.forward_kernels)
    yield _moving(job, "embedding", "backward", lookup.backward_bytes, lookup.backward_kernels)
