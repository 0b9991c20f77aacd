"""What was fitted to measured serving runs, for one engine on one accelerator family: data, made by `knowledge`."""

from __future__ import annotations

from dataclasses import dataclass

from estimator.plan.layouts import Floats


@dataclass(frozen=True)
class ServingFactors:
    """Few numbers that the timings of single operators do not hold; each may be an array of shape (n,) while fitted.

    `decode` and `prefill` multiply the device time of what generation and prompts take, `experts` besides that of
    routed experts, `collective` that of collectives, and `launch` what kernels take to start, as timed alone. `layer_s`
    is what a layer adds to every pass. `host` multiplies the engine's host work between two passes, `step_s` is what
    devices wait besides. `request` multiplies the way of a request through the server where others run. `clumped` is
    how long prompts wait for each other, as a part of what they would at random. `*_spread` are half widths of 80 %
    intervals, as fractions; `runs` the measured runs behind the engine's factors. `engine_measured` and
    `device_measured` are false where kin stand in.
    """

    engine: str
    decode: Floats | float
    prefill: Floats | float
    experts: Floats | float
    launch: Floats | float
    layer_s: Floats | float
    collective: Floats | float
    host: Floats | float
    step_s: Floats | float
    request: Floats | float
    clumped: Floats | float
    tpot_spread: float
    ttft_spread: float
    throughput_spread: float
    engine_measured: bool
    device_measured: bool
    runs: int
    source: str
