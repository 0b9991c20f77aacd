"""What was fitted to measurements: data, made by `knowledge` from its files."""

from __future__ import annotations

from dataclasses import dataclass

from estimator.machine.links import NetworkFactors
from estimator.machine.matmul import Kind, MatmulSurface


@dataclass(frozen=True)
class AttentionKernel:
    """What one attention kernel reaches on one accelerator family; fitted on kernel timings (`measure.fit.attention`).

    Part of the matrix peak: `forward` x d / (d + half_dim), at most attention.MOST, x k / (k + half_keys) x r / (r +
    half_rows), with d the mean of query and value widths, k the keys that a query sees, r the rows of queries over all
    heads; the same with `backward` and `*_backward` for the gradients, and `half_window` for both `half_keys` where a
    window bounds k. `borrowed` says that another family's timings stand in.
    """

    name: str
    family: str
    forward: float
    backward: float
    half_dim: float
    half_dim_backward: float
    half_keys: float
    half_keys_backward: float
    half_window: float
    half_rows: float
    points: int
    error: float
    borrowed: bool
    source: str
    rate: str = "bf16"
    """The precision whose peak the parts are of."""


@dataclass(frozen=True)
class ScanKernel:
    """Device memory that a scan moves per inner element: `passes` + `passes_per_state` x state size elements of an
    activation forward, `backward` times that backward, in `kernels` launches forward and `kernels_backward` backward.
    """

    name: str
    passes: float
    passes_per_state: float
    backward: float
    kernels: float
    kernels_backward: float
    points: int
    error: float
    borrowed: bool
    source: str


@dataclass(frozen=True)
class DeviceFactors:
    """Fitted for one accelerator family. Efficiencies are fractions of the catalogue's peak or bandwidth.

    `surfaces`, `attention_kernel`, `scans` and `network` are fitted on timings of single operators. `matmul`,
    `attention`, `scaleup` and `scaleout` are what real steps change of their rates: clocks under the power of a whole
    step, operands that are not in cache, collectives beside other work. `scan` is the same for scans that few timings
    or none are of. `memory` is the part of the bandwidth that memory-bound operators reach, `launch_s` what any kernel
    takes on the device. `surface` is true where the matmul timings are of the family itself.
    """

    family: str
    surfaces: dict[Kind, MatmulSurface]
    attention_kernel: AttentionKernel
    scans: dict[str, ScanKernel]
    network: NetworkFactors
    matmul: float
    attention: float
    scan: float
    memory: float
    launch_s: float
    scaleup: float
    scaleout: float
    surface: bool
    runs: int
    source: str
    step: float = 1.0
    """What a whole step takes on a machine of one's own, as a multiple: its clocks, cooling, power limit and software's
    age cost all of it alike. 1 where no runs of one's own say so."""
    split_kernel: AttentionKernel | None = None
    """What runs in place of `attention_kernel` where context parallelism splits sequences; None for the same."""


# Runs of one framework that must have run before they bound how far above its estimate a peak can be.
FEWEST_WITNESSES = 20


@dataclass(frozen=True)
class FrameworkFactors:
    """Fitted for one framework: what overlaps, what the host costs, and the spread that is left.

    `compute` multiplies device time. `data_overlap` and `tensor_overlap` are the fractions of data-parallel and
    tensor-parallel communication that compute can hide, the latter only where the two are overlapped at all;
    `expert_overlap` is the same for dispatch and combine. `kernel_host_s` is what the launch of one kernel costs an
    x86 host, which the device waits for when its own work is shorter, `step_host_s` what one optimizer step costs
    the host (data, norm, logs), `expert_wait_s` how long a dropless layer of experts waits to learn its token
    counts, `dispatch_wait_s` the same where kernels count them (DeepEP, HybridEP). `straggler` is the slowdown per
    doubling of the node count. `memory_below` and `memory_above` are how far a peak can be below and above its
    estimate, `witnesses` the runs that ran without their peak being read.
    """

    framework: str
    compute: float
    data_overlap: float
    tensor_overlap: float
    expert_overlap: float
    kernel_host_s: float
    step_host_s: float
    expert_wait_s: float
    dispatch_wait_s: float
    straggler: float
    time_spread: float
    memory_below: float
    memory_above: float
    runs: int
    memory_runs: int
    witnesses: int
    source: str


@dataclass(frozen=True)
class Calibration:
    """Everything fitted, for one device and one framework. `node` is the kind of device that its factors are told by;
    `measured` flags are false where kin stand in for them."""

    device: DeviceFactors
    framework: FrameworkFactors
    context_bytes: float
    collective_bytes: float
    slack: float
    loss_slack: float
    node: str
    device_measured: bool
    time_measured: bool
    memory_measured: bool
    unmeasured_spread: float
    measured_kinds: dict[str, tuple[str, ...]]

    @property
    def time_spread(self) -> float:
        """Half width of the 80 % interval of a step time, as a fraction; that of unseen sources where nothing was
        measured."""
        if self.device_measured and self.time_measured:
            return self.framework.time_spread
        return max(self.framework.time_spread, self.unmeasured_spread)
