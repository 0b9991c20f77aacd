"""What to beware of in an estimate of serving, in sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import estimate
from knowledge.engines import reads_format, version_numbers
from knowledge.evidence import oldest_served, served_before
from knowledge.figures import gib, number, percent, seconds
from knowledge.machines.catalogue import find_accelerator
from knowledge.speculation import drafts_itself
from planner.announced import before_release
from planner.rejected_rows import rejected_rows_of
from planner.serving.planned import Served, most_requests, per_replica, slo_rows

_MANY = 1.05


def warnings_of(served: Served) -> list[str]:
    return [
        *_misfit(served), *_memory(served), *_rate(served), *_room(served), *_latency(served), *_drafts(served),
        *_doubts(served),
    ]  # fmt: skip


def kinds_of(served: Served) -> dict[str, str]:
    """The warnings that figures of the result say too, by their text."""
    told = (("fit", _misfit(served)), ("rate", _rate(served)), ("room", _room(served)), ("latency", _latency(served)))
    return {text: kind for kind, texts in told for text in texts}


def misfit(served: Served) -> str:
    """Why not even one request fits: what a device needs and has, and the largest part."""
    memory, entry = served.estimates.memory, served.entry
    components = {name: float(values[entry]) for name, values in memory.components.items()}
    need, have = float(memory.total[entry]), float(memory.capacity)
    largest = max(components, key=lambda name: components[name])
    parts = f"{largest.replace('_', ' ')} alone {gib(components[largest])}"
    if need > have:
        return f"does not fit: {gib(need)} per device of {gib(have)} usable; {parts}"
    claimed = float(memory.claimed[entry])
    return (
        f"does not fit: {gib(need)} per device, but {served.job.engine.name} takes no more than "
        f"{gib(claimed)} of {gib(have)} usable; {parts}"
    )


def _misfit(served: Served) -> list[str]:
    return [] if served.fits else [f"{misfit(served)}; the speeds are those of a device with room for one request"]


def _memory(served: Served) -> list[str]:
    workload, architecture, texts = served.job.inference, served.job.architecture, list[str]()
    if served.plan.cluster.beside and served.asked.cluster.beside is None:
        texts.append(_on_the_host(served))
    longest = max(workload.prompt_len + workload.output_len, workload.max_context or 0)
    if architecture.context and longest > architecture.context:
        texts.append(f"requests of {longest:,.0f} tokens are longer than the {architecture.context:,} of the model")
    return texts


def _on_the_host(served: Served) -> str:
    """What an engine put into host memory without being asked, and beside which processor."""
    held, layers = served.plan.inference, served.job.architecture.layers
    (host,) = served.plan.cluster.beside or ("",)
    whole = layers - (held.device_layers or layers)
    what = f"{whole} of {layers} layers" if whole else f"the experts of {held.host_experts} of {layers} layers"
    return f"{what} are in host memory, beside a {find_accelerator(host).value.name}, as they do not fit on the cards"


def _rate(served: Served) -> list[str]:
    estimates, entry = served.estimates, served.entry
    if not estimates.steady.saturated[entry]:
        return []
    wanted, most = float(estimates.deployments.request_rate[entry]), float(estimates.requests_per_s[entry])
    most_told = f"at most {number(float(f'{most:.3g}'))}, so the queue keeps growing"
    return [f"{number(wanted)} requests/s cannot be served: {most_told}"]


def _room(served: Served) -> list[str]:
    estimates, entry = served.estimates, served.entry
    if estimates.steady.saturated[entry]:
        return []
    room, waiting, by_memory = served.queue
    why = f"as {served.job.engine.name} takes no more"
    if by_memory:
        why = f"as the KV cache has room for {most_requests(estimates, entry)} of full length"
    clients = float(estimates.deployments.concurrency[entry])
    if served.fits and waiting and clients > room * _MANY:
        waits = "the others wait, and their time to first token includes that"
        return [f"{room:.0f} of {clients:.0f} requests run at once, {why}; {waits}"]
    return []


def _latency(served: Served) -> list[str]:
    texts = []
    for row in slo_rows(served):
        name = {"ttft": "time to first token", "tpot": "time per output token"}[row.limit]
        what = f"p99 {name}" if row.statistic == "p99" else name
        if row.value_s is None:
            texts.append(f"{what} grows without bound; the limit is {seconds(row.limit_s)}")
        elif not row.met:
            over = percent(row.value_s / row.limit_s - 1.0)
            texts.append(f"{what} is {seconds(row.value_s)}, {over} over the limit of {seconds(row.limit_s)}")
        elif not row.sure:
            value, limit = seconds(row.value_s), seconds(row.limit_s)
            texts.append(f"{what} is {value}, but may exceed its limit of {limit}")
    return texts


def _drafts(served: Served) -> list[str]:
    """How many drafted tokens are taken to be right, where nobody said so, and whether drafting costs more than it
    gives under this load."""
    drafted = served.job.inference.speculative_tokens
    if not drafted:
        return []
    assumed: list[str] = []
    if "acceptance" not in served.asked.inference.model_fields_set:
        share = percent(served.job.inference.acceptance)
        assumed.append(f"{share} of drafted tokens are taken to be accepted: speed is less certain")
    plain = replace(served.job, plan=served.job.plan.patch({"workload.speculative_tokens": None}))
    without = estimate(plain, served.estimates.deployments.take(np.array([served.entry])))
    rates = (float(without.output_tokens_per_s[0]), float(served.estimates.output_tokens_per_s[served.entry]))
    if rates[1] >= rates[0]:
        return assumed
    return [
        f"drafting {drafted} tokens a step does not pay under this load: {number(rates[0])} output tokens/s without it"
    ]


def _doubts(served: Served) -> list[str]:
    job, device = served.job, served.job.machine.accelerator
    texts = engine_doubts(job)
    texts += [f"{text}, and no engine names it" for text in before_release(device)]
    texts += unmeasured(job)
    if per_replica(served.estimates, served.entry) > job.machine.fast_domain:
        texts.append("one replica spans several nodes: its speed depends on the network between them")
    return [*texts, *job.architecture.notes, *rejected_rows_of(device.id, job.architecture.id)]


def unmeasured(job: ServingJob) -> list[str]:
    """What of the deployment no run of its kind was measured for."""
    factors, family, engine = job.factors, job.machine.accelerator.family, job.engine.name
    texts = [] if factors.device_measured else [f"no serving runs on {family} measured: speed is less certain"]
    if not factors.engine_measured:
        texts.append(f"no {engine} runs measured: speed is less certain")
    elif factors.device_measured and not served_before(engine, family):
        texts.append(f"no {engine} runs on {family} measured: speed is less certain")
    asked, oldest = job.inference.software_version, oldest_served(engine)
    if asked and () < version_numbers(asked) < version_numbers(oldest):
        texts.append(f"nine in ten {engine} runs measured are of {oldest} or newer: {asked} may be much slower")
    return texts


def engine_doubts(job: ServingJob) -> list[str]:
    """Whether the engine has kernels for the formats of weights and cache on the device, and drafts as is asked."""
    texts, device = [], job.machine.accelerator.name
    if not reads_format(job.engine, job.inference.weight_dtype):
        known = ", ".join(job.engine.weight_formats)
        texts.append(
            f"{job.engine.name} does not read {job.inference.weight_dtype} weights on {device}: it reads {known}"
        )
    if job.kv_dtype not in job.engine.cache_formats:
        known = ", ".join(job.engine.cache_formats)
        texts.append(f"{job.engine.name} keeps no {job.kv_dtype} cache on {device}: it keeps {known}")
    way = job.inference.draft_method if job.inference.speculative_tokens else "auto"
    if way not in ("auto", *job.engine.speculative):
        known = ", ".join(job.engine.speculative) or "nothing"
        texts.append(f"{job.engine.name} does not draft with {way}: it drafts with {known}")
    elif way == "mtp" and not drafts_itself(job.architecture.id):
        texts.append("the checkpoint has no layers that draft (mtp)")
    return texts


def reads(job: ServingJob) -> bool:
    """Whether the engine has kernels for the plan's formats, and drafts as is asked."""
    return not engine_doubts(job)
