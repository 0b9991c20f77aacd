"""What a step of serving waits for, from the estimate's own parts and the roofline of the pass that generates."""

from __future__ import annotations

from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates, most_running
from estimator.serving.passes import PassTime

WEIGHTS, CACHE, COMPUTE, LINKS, HOST, PREFILL, ROOM = (
    "reading weights", "reading the KV cache", "compute", "communication", "host", "prefill", "KV cache",
)  # fmt: skip
WAITED_FOR = (WEIGHTS, CACHE, COMPUTE, LINKS, HOST, PREFILL)
_MANY = 1.05


def step_limits(job: ServingJob, estimates: ServingEstimates, index: int) -> dict[str, float]:
    """Seconds of a mean step by what they wait for, the most first; they add up to the step.

    Matmuls and attention of the pass that generates count whole to what binds them: reading weights or cache, or
    arithmetic. `host` holds launches and gaps between small kernels too, `prompts` all that reading prompts adds.
    """
    steady, deployments = estimates.steady, estimates.deployments
    alone, beside = _total(steady.generating, index), _total(steady.reading, index)
    reading = float(steady.reading_share[index]) * (beside - (alone if job.mixes else 0.0))
    generating = steady.generating
    running = float(steady.running[index]) / min(float(deployments.pp[index]), max(1.0, float(steady.running[index])))
    rows = running * job.checked_tokens
    seconds: dict[str, float] = dict.fromkeys(WAITED_FOR, 0.0)
    seconds[_matmul_bound(job, estimates, index, rows)] += float(generating.matmul[index])
    seconds[_attention_bound(job, estimates, index)] += float(generating.attention[index])
    seconds[LINKS] += float(generating.collective[index])
    seconds[HOST] += float(generating.memory[index] + generating.host[index])
    seconds[PREFILL] += max(0.0, reading)
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def bottleneck(
    estimates: ServingEstimates,
    index: int,
    limits: dict[str, float],
    waits: tuple[float, float | None, bool],
) -> str:
    """What most of a step waits for; or the memory of the cache, where requests wait for room in it and more of them at
    once would share what a step takes anyway, or where most of a request's time is this waiting. `limits` are those of
    `step_limits`, `waits` what `queue` gives."""
    first = next(iter(limits))
    _, waiting, by_memory = waits
    if not by_memory:
        return first
    running = float(estimates.steady.running[index] * estimates.deployments.lanes[index])
    waits_long = waiting is not None and waiting > running
    return ROOM if first in (WEIGHTS, HOST, LINKS) or waits_long else first


def queue(job: ServingJob, estimates: ServingEstimates, index: int) -> tuple[float, float | None, bool]:
    """(Requests that have room at once over all devices, those that wait for room, whether memory and not the engine's
    own limit keeps them waiting). None wait for a known time where all came at once or come at a rate."""
    deployments = estimates.deployments
    lanes, clients = float(deployments.lanes[index]), float(deployments.concurrency[index])
    most = float(most_running(job, deployments, estimates.memory)[index])
    waits = clients > most * lanes * _MANY or bool(estimates.steady.saturated[index])
    by_memory = waits and most < float(deployments.max_batch[index])
    waiting = max(0.0, clients - most * lanes) if clients != float("inf") else None
    return most * lanes, waiting, by_memory


def _total(passes: PassTime, index: int) -> float:
    return float(passes.total[index])


def _matmul_bound(job: ServingJob, estimates: ServingEstimates, index: int, rows: float) -> str:
    """Whether a pass of `rows` tokens takes longer to read the weights that these reach, or to compute."""
    architecture, deployments = job.architecture, estimates.deployments
    share = max((block.top_k / block.experts for block in architecture.blocks if block.experts), default=1.0)
    # One token spares this part of the weights, and every other one reaches its share of what was left.
    spared = 1.0 - architecture.active_parameters / architecture.parameters
    unread = spared * (1.0 - share) ** max(0.0, rows * float(deployments.dp[index]) - 1.0)
    held = float(estimates.memory.components["weights"][index]) * float(deployments.pp[index])
    reading = held * (1.0 - unread) / job.machine.accelerator.memory_bandwidth
    flop = 2.0 * architecture.active_parameters * rows / float(deployments.tp[index])
    return WEIGHTS if reading >= flop / job.peak_flops else COMPUTE


def _attention_bound(job: ServingJob, estimates: ServingEstimates, index: int) -> str:
    """Whether scores of a step wait for the cache or for arithmetic, by the layer with the most query heads."""
    block = max(job.architecture.blocks, key=lambda block: block.heads)
    if not block.heads:
        return CACHE
    latent = block.mixer == "mla"
    width = block.kv_lora_rank + block.rope_head_dim if latent else block.head_dim + block.v_head_dim
    flops = 2.0 * (block.kv_lora_rank * 2 + block.rope_head_dim if latent else block.head_dim + block.v_head_dim)
    heads = block.heads / float(estimates.deployments.tp[index])
    held = 1.0 if latent else max(1.0, block.kv_heads / float(estimates.deployments.tp[index]))
    reading = held * width * job.kv_bytes / job.machine.accelerator.memory_bandwidth
    return CACHE if reading >= heads * flops * job.checked_tokens / job.wide_peak_flops else COMPUTE
