"""Seconds of a matrix product on one device: a fitted surface per accelerator family and kind of operand.

A kernel works at `height` of the peak once it has enough outputs for all cores and enough depth to hide its start, and
moves its operands at `memory` of the bandwidth; it takes the longer of both (roofline: Williams et al. 2009) and a
share of the shorter. measure/fit/matmul.py fits the numbers. Rates in FLOP/s, sizes in bytes, times in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Kind = Literal["bf16", "fp8", "fp8_block", "nvfp4", "int8", "int8_weights", "int4_weights"]
"""What a matmul reads. bf16 stands for all 16-bit formats and wider; fp8 has one scale per tensor or row, fp8_block one
per block of 128 (or of 32, as MXFP8); int8 is 8 bits on both sides, the `*_weights` keep 16-bit activations."""
KINDS: tuple[Kind, ...] = get_args(Kind)

OPERAND_BYTES: dict[Kind, tuple[float, float]] = {
    "bf16": (2.0, 2.0),
    "fp8": (1.0, 1.0),
    # An fp32 scale per 1 x 128 of the activations and per 128 x 128 of the weights (DeepSeek-V3, section 3.3.2).
    "fp8_block": (1.03125, 1.0),
    # Four bits and an fp8 scale per 16 elements (NVFP4).
    "nvfp4": (0.5625, 0.5625),
    "int8": (1.0, 1.0),
    "int8_weights": (2.0, 1.0),
    "int4_weights": (2.0, 0.5),
}
"""Bytes per element of the activations and of the weights."""

# Rows that a group's product wastes: token counts of experts are no multiples of the tile of 128 rows that grouped
# kernels use (CUTLASS grouped GEMM, DeepGEMM), so the last tile of each is half empty on average.
_GROUP_ROWS = 64.0


@dataclass(frozen=True)
class MatmulSurface:
    """Six fitted numbers; each may be an array of shape (n,) while factors are being fitted.

    `height` is the fraction of the peak that large products sustain on a warm device, `memory` the fraction of the
    bandwidth that operands move at. `wave_outputs` is how many outputs keep every core busy: a product of fewer takes
    no less time for its depth. `half_k` is the depth that starting and finishing a tile costs. `unhidden` is the share
    of the shorter of arithmetic and transfer that does not run beside the longer one. `launch_s` is what an empty
    kernel takes on the device, without the host.
    """

    height: Floats | float
    memory: Floats | float
    wave_outputs: Floats | float
    half_k: Floats | float
    unhidden: Floats | float
    launch_s: Floats | float


@dataclass(frozen=True)
class MatmulRates:
    """What a kernel works at: FLOP/s that the surface's height is a fraction of, bytes/s, and bytes per element.

    `operand_bytes` are those of the activations and the weights, scales included.
    """

    surface: MatmulSurface
    peak_flops: Floats | float
    memory_bandwidth: Floats | float
    operand_bytes: tuple[float, float] = OPERAND_BYTES["bf16"]
    output_bytes: float = 2.0


def matmul_seconds(
    rates: MatmulRates, m: Floats, n: Floats | float, k: Floats | float, copies: Floats | float = 1.0
) -> Floats:
    """Seconds of one kernel with `copies` products of (m, k) by (k, n), an array of shape (n,).

    With more than one copy the products are a group, as experts are: all their weights are read, the cores are shared,
    and each wastes part of its last tile; m is then the mean number of rows, and `copies` the experts that have any.
    Casting, scaling and permuting are other kernels.
    """
    arithmetic, moving = matmul_limits(rates, m, n, k, copies)
    surface = rates.surface
    return np.maximum(arithmetic, moving) + surface.unhidden * np.minimum(arithmetic, moving) + surface.launch_s


def matmul_limits(
    rates: MatmulRates, m: Floats, n: Floats | float, k: Floats | float, copies: Floats | float
) -> tuple[Floats, Floats]:
    """Seconds that the kernel of `matmul_seconds` would take by its arithmetic alone, and by its transfer alone."""
    surface, (activation_bytes, weight_bytes) = rates.surface, rates.operand_bytes
    # What are numbers for all is multiplied before arrays are.
    rows = m if isinstance(copies, float) and copies <= 1.0 else m + _GROUP_ROWS * (copies > 1.0)
    outputs = rows * (copies * n)
    busy = np.sqrt(outputs * outputs + surface.wave_outputs * surface.wave_outputs)
    arithmetic = busy * ((k + surface.half_k) * (2.0 / (rates.peak_flops * surface.height)))
    traffic = m * (activation_bytes * k + rates.output_bytes * n) + weight_bytes * n * k
    return arithmetic, traffic * (copies / (rates.memory_bandwidth * surface.memory))
