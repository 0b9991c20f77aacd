"""What differs between frameworks, and what was fitted to measurements: both data, made by `knowledge` from its
files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Framework:
    """How one training framework keeps and moves a model's states. Bytes are per parameter unless said otherwise.

    `weight_bytes` is the copy that stays (the sharded one where ZeRO-3 shards), `compute_bytes` what a gathered or cast
    unit takes, `cast_cache` true where a cast copy of every weight is kept besides (autocast), `master_bytes` a
    full-precision copy owned by the optimizer, `gradient_bytes` what gradients are accumulated in. `live_parameters` is
    how many gathered parameters ZeRO-3 may keep at once (None: `live_units` layers, as FSDP does). `bucket_bytes` are
    communication buckets in all. `reduce_bytes` is per gradient element on the wire. `step_bytes` are temporaries of
    the optimizer step besides the optimizer's own, which a `fused_optimizer` does not need.

    `activation` names what operators save for backward: 'eager' (Hugging Face modules as shipped) or 'fused'
    (one-kernel norms and activations); `hf_modules` is true where the modules are Hugging Face's own, GELU by hand
    included. `selective` says what selective recompute drops: the attention core, or all but
    every other matmul output. `logit_bytes` is the peak per logit of an unfused loss, `low_precision_saves` says
    whether 8-bit training keeps the inputs of its matmuls, or those of the activation function too, in 8 bits;
    `low_precision_weights` whether frozen weights are then held in 8 bits. `quantised_rest_bytes` is what an adapter
    run on 4-bit weights keeps of the weights that are not quantised (embedding, head, norms). `block_kernels` the
    kernels of one block's forward pass besides its matmuls and attention.
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
    offloads: tuple[str, ...]
    live_parameters: float | None
    live_units: float
    bucket_bytes: float
    reduces_each_micro_batch: bool
    activation: Literal["eager", "fused"]
    hf_modules: bool
    selective: Literal["attention", "ops", "none"]
    logit_bytes: float
    fused_loss: bool
    low_precision_saves: Literal["none", "inputs", "all"]
    low_precision_weights: bool
    quantised_rest_bytes: float
    block_kernels: float
    source: str


@dataclass(frozen=True)
class OptimizerFacts:
    """State and temporaries per trained parameter: `*_elements` in the dtype that the optimizer updates, or in bytes.

    `traffic_elements` is what one step reads and writes in device memory. `keeps_gradients` is false where a gradient
    is applied as soon as it exists.
    """

    name: str
    state_elements: float
    state_bytes: float
    step_elements: float
    traffic_elements: float
    keeps_gradients: bool
    source: str


@dataclass(frozen=True)
class DeviceFactors:
    """Fitted for one accelerator family. Efficiencies are fractions of the catalogue's peak or bandwidth.

    A matmul of (M, N, K) reaches `matmul` x M/(M + half_m) x N/(N + half_n) x K/(K + half_k) of the peak (`low_matmul`
    instead of `matmul` for 8 bits and fewer) and never less time than its bytes need. `surface` is true where that was
    fitted on matmul timings of the family.
    """

    family: str
    matmul: float
    low_matmul: float
    half_m: float
    half_n: float
    half_k: float
    attention_forward: float
    attention_backward: float
    memory: float
    launch_s: float
    scaleup: float
    scaleout: float
    scaleup_latency_s: float
    surface: bool
    runs: int
    source: str


@dataclass(frozen=True)
class FrameworkFactors:
    """Fitted for one framework: what overlaps, what the host costs, and the spread that is left.

    `compute` multiplies device time. `data_overlap` and `tensor_overlap` are the fractions of data-parallel and
    tensor-parallel communication that compute can hide. `host_s` is the host time of one layer's forward pass, which
    the device waits for when its own work is shorter, `step_host_s` what one optimizer step costs the host (data, norm,
    logs). `straggler` is the slowdown per doubling of the node count.
    """

    framework: str
    compute: float
    data_overlap: float
    tensor_overlap: float
    host_s: float
    step_host_s: float
    straggler: float
    time_spread: float
    memory_spread: float
    runs: int
    memory_runs: int
    source: str


@dataclass(frozen=True)
class Calibration:
    """Everything fitted, for one device and one framework. `measured` flags are false where kin stand in for them."""

    device: DeviceFactors
    framework: FrameworkFactors
    context_bytes: float
    collective_bytes: float
    slack: float
    device_measured: bool
    time_measured: bool
    memory_measured: bool
    unmeasured_spread: float
    pooled_memory_spread: float

    @property
    def time_spread(self) -> float:
        """Half width of the 80 % interval of a step time, as a fraction; wider where nothing was measured."""
        return (
            self.framework.time_spread
            + self.unmeasured_spread * (not self.device_measured)
            + (self.unmeasured_spread * (not self.time_measured))
        )

    @property
    def memory_spread(self) -> float:
        """Half width of the 80 % interval of the memory; devices matter little here, frameworks much.

        Kin stand in with a wider interval than their own, but none wider than the spread over all sources.
        """
        own = self.framework.memory_spread
        if self.memory_measured:
            return own
        return max(own, min(own + self.unmeasured_spread, self.pooled_memory_spread))
