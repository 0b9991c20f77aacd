"""What a machine of one's own is, and what was measured on it."""

from __future__ import annotations

from planner.measuring import here, training
from planner.measuring.here import MachineDescription, MachineQuestion
from planner.measuring.training import BenchmarkFolder, BenchmarkRequest, RenderedBenchmark, TrainingMeasurement
from tools.registry import tool


@tool(title="Describe this machine", read_only=True)
def describe_machine(request: MachineQuestion) -> MachineDescription:
    """What the machine that Shardwise runs on is: accelerators by their drivers' programs and which of the catalogue's
    they are, links, driver, processor, memory, disk, network ports, PyTorch, and what would disturb a measurement. Use
    it for "what GPU is in this machine", "what do I have here", and before plans for "here" or "this machine"."""
    return here.describe_machine(request)


@tool(title="Show the benchmark of a training plan", read_only=True)
def render_benchmark(request: BenchmarkRequest) -> RenderedBenchmark:
    """A training plan as a PyTorch program that times its steps on synthetic data, with how it is started: DDP, FSDP2
    or tensor parallel; layers scaled when asked. Nothing is run: `shardwise measure training` runs it. Use it for
    "benchmark this plan", "how would I measure it myself"."""
    return training.render_benchmark(request)


@tool(title="Read a benchmark that was run", read_only=True)
def benchmark_result(request: BenchmarkFolder) -> TrainingMeasurement:
    """What was measured of a training benchmark (step time with its spread, tokens/s, MFU, peak memory, power) beside
    what was predicted of it before. Use it for the folder of a `measure training` run."""
    return training.benchmark_result(request)
