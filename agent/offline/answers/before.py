"""Questions about the answer before, told from its results: what a figure is counted per, what was assumed, how sure
it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knowledge import figures
from pages.answers.plan import complete
from pages.results.fields import field_name
from planner.results import TrainingEstimate
from planner.serving.results import ServingEstimate

_MOST, _MOST_EVIDENCE = 8, 4


def told(about: str, results: Sequence[Mapping[str, Any]]) -> str | None:
    """The answer from the latest estimate of the conversation; None where there was none."""
    latest = next((result for result in results if {"memory", "throughput", "assumptions"} <= set(result)), None)
    if latest is None:
        return None
    kind = ServingEstimate if "replicas" in latest else TrainingEstimate
    estimate = kind.model_validate(latest)
    if about == "assumptions":
        return _assumed(estimate)
    if about == "certainty":
        return _certainty(estimate)
    return _of_a_deployment(estimate) if isinstance(estimate, ServingEstimate) else _of_a_run(estimate)


def _certainty(estimate: TrainingEstimate | ServingEstimate) -> str:
    """The intervals, and what was measured that they rest on."""
    if isinstance(estimate, ServingEstimate):
        latency = estimate.latency
        ends = f"TTFT {figures.held(latency, 'ttft_s')}, TPOT {figures.held(latency, 'tpot_s')}"
    else:
        memory = figures.held(estimate.memory, "per_device_bytes")
        ends = f"a step of {figures.held(estimate.time, 'step_s')}, {memory} per device"
    rows = "\n".join(f"- {_short(row.basis)}" for row in estimate.evidence[:_MOST_EVIDENCE])
    rests = f"\n\nEvidence:\n\n{rows}" if rows else ""
    return f"About **eight in ten runs** like this lie within the intervals: {ends}.{rests}"


def _short(basis: str) -> str:
    """What something rests on with the first of its sources."""
    first, *more = basis.split("; ")
    if len(more) < 2:
        return basis
    return f"{first} and {len(more)} more sources{')' * (basis.endswith(')') and not first.endswith(')'))}"


def _of_a_deployment(estimate: ServingEstimate) -> str:
    rates, devices, replicas = estimate.throughput, estimate.devices, estimate.replicas
    of = f"all {devices} devices together" if devices > 1 else "the one device"
    each = f", which are one replica: {figures.rate(rates.output_tokens_per_s_per_device)} a device"
    if replicas > 1:
        output, requests = rates.output_tokens_per_s / replicas, rates.requests_per_s / replicas
        shares = f"{figures.rate(output)} output tokens/s and {figures.rate(requests)} requests/s"
        each = f", {replicas} replicas: {shares} each"
    return (
        f"Tokens/s and requests/s are of **{of}**{each if devices > 1 else ''}. TTFT and TPOT are what one request "
        f"sees. The load that was given, and the cost, are of the whole deployment. {_memory(estimate)}"
    )


def _of_a_run(estimate: TrainingEstimate) -> str:
    devices, rate = complete(estimate.plan).cluster.count, estimate.throughput.tokens_per_s_per_device
    each = f": {figures.rate(rate)} tokens/s a device" if devices and devices > 1 else ""
    return (
        f"Tokens/s, step time, hours and cost are of **all {devices} devices together**{each}. MFU is the mean of the "
        f"devices. {_memory(estimate)}"
    )


def _memory(estimate: TrainingEstimate | ServingEstimate) -> str:
    return f"Memory is **per device**: {figures.gib(estimate.memory.per_device_bytes)}."


def _assumed(estimate: TrainingEstimate | ServingEstimate) -> str:
    taken = [f"{field_name(entry.field)} {figures.plain(entry.value)}: {entry.why}" for entry in estimate.assumptions]
    if not taken:
        return "Nothing was assumed: you gave every value."
    more = f"\n- and {len(taken) - _MOST} more (`--why`)" if len(taken) > _MOST else ""
    rows = "\n".join(f"- {text}" for text in taken[:_MOST])
    asks = "You did not say, so I assumed; give another value for any of these and I will work it out again:"
    return f"{asks}\n\n{rows}{more}"
