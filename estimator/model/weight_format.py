"""Served weights as numbers: bits per weight, scales included, and what multiplies them."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from estimator.machine.matmul import Kind
from estimator.model.architecture import Architecture
from estimator.units import BITS_PER_BYTE


@dataclass(frozen=True)
class Kernel:
    """A kind of matmul, the bits of the activations that it reads, and the peak that it needs ('' for none)."""

    kind: Kind
    activation_bits: float
    needs: str = ""


@dataclass(frozen=True)
class WeightFormat:
    """Bits per weight with scales, minima and zero points, means where a format mixes types.

    `bits` is of the blocks' matrices without routed experts and routers, `expert_bits` of routed experts; `vector_bits`
    is of norms and biases. A tied head is held once: `embedding_bits` is then `head_bits`. `group` weights of most
    matrices share a scale (0: one scale per tensor or output row); where these are a square, `block` is its side, and
    `expert_block` that of routed experts' (1: no squares). `kernels`, and `expert_kernels` of routed experts,
    stand in order of preference; the last needs nothing. `source` says where the figures are from.
    """

    name: str
    bits: float
    expert_bits: float
    embedding_bits: float
    head_bits: float
    router_bits: float
    vector_bits: float
    group: int
    block: int
    expert_block: int
    kernels: tuple[Kernel, ...]
    expert_kernels: tuple[Kernel, ...]
    source: str

    def kernel(self, peaks: Container[str]) -> Kernel:
        """What multiplies these weights on a device with these precisions (the keys of Accelerator.peak_flops)."""
        return next(kernel for kernel in self.kernels if not kernel.needs or kernel.needs in peaks)

    @property
    def experts(self) -> WeightFormat:
        """The format that routed experts are in."""
        return replace(self, bits=self.expert_bits, kernels=self.expert_kernels)


def weight_bytes(weights: WeightFormat, architecture: Architecture) -> float:
    """Bytes of a whole model, exact where the format's means are those of this architecture."""
    bits = 0.0
    matrices = 0
    per_role = {"expert": weights.expert_bits, "router": weights.router_bits}
    for kind, block in enumerate(architecture.blocks):
        count = architecture.pattern.count(kind)
        for matrix in block.matrices:
            size = count * matrix.copies * matrix.inputs * matrix.outputs
            matrices += size
            bits += size * per_role.get(matrix.role, weights.bits)
    embedding, head = architecture.embedding_parameters, architecture.head_parameters
    embedding += architecture.layer_embedding_parameters
    vectors = architecture.parameters - matrices - embedding - head
    bits += embedding * weights.embedding_bits + head * weights.head_bits + vectors * weights.vector_bits
    return bits / BITS_PER_BYTE
