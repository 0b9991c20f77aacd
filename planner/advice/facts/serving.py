"""Facts of a serving plan with the chosen deployment under its load."""

from __future__ import annotations

import math

from planner.advice.facts.plan import Facts, machine_facts, model_facts, plain, plan_facts
from planner.serving.planned import Served, finite, memory_of
from planner.serving.step import WAITED_FOR


def serving_facts(served: Served) -> Facts:
    job, entry, machine = served.job, served.entry, served.job.machine
    steady, deployments, memory = served.estimates.steady, served.estimates.deployments, memory_of(served)
    facts = plan_facts(served.plan) | model_facts(job.architecture) | machine_facts(machine)
    replica = served.layout["tp"] * served.layout["pp"] * served.layout["dp"]
    spans = {"tp": served.layout["tp"], "pp": served.layout["tp"] * served.layout["pp"], "dp": replica}
    step_s = sum(served.limits.values())
    running = float(steady.running[entry] * deployments.lanes[entry])
    workload = job.inference
    context = workload.prompt_len + workload.output_len
    facts |= {f"time.share.{plain(name).lower()}": served.limits.get(name, 0.0) / step_s for name in WAITED_FOR}
    capacity = memory.capacity_bytes
    facts |= {
        f"memory.share.{name}": value / capacity if capacity else None for name, value in memory.components.items()
    }
    facts |= {
        "workload.kind": "serving",
        "workload.kv_dtype": job.kv_dtype,
        "workload.weight_bits": job.block_bytes * 8.0,
        "workload.chunked_prefill": job.mixes,
        "workload.cuda_graph": job.graphs,
        "workload.engine": job.engine.name,
        "machine.crosses_node": [
            name for name, size in spans.items() if size > machine.fast_domain and served.layout[name] > 1
        ],
        "fits": served.fits,
        "meets_slo": served.meets_slo,
        "memory.share": memory.per_device_bytes / capacity if capacity else None,
        "memory.per_device_bytes": memory.per_device_bytes,
        "memory.capacity_bytes": capacity,
        "memory.kv_tokens": memory.kv_tokens,
        "memory.max_concurrency": memory.max_concurrency,
        "memory.waits": served.queue[2],
        "estimate.ttft_s": finite(steady.ttft_s[entry]),
        "estimate.tpot_s": float(steady.tpot_s[entry]),
        "estimate.output_tokens_per_s": float(served.estimates.output_tokens_per_s[entry]),
        "estimate.running": running,
        "estimate.running_per_replica": running / int(deployments.replicas[entry]),
        "estimate.saturated": bool(steady.saturated[entry]),
        "estimate.bottleneck": served.bottleneck,
        "estimate.replicas": int(deployments.replicas[entry]),
        "load.context": context,
        "load.prompt_share": workload.prompt_len / context,
        "load.offline": math.isinf(float(deployments.concurrency[entry])),
    }
    return facts
