"""What a team's server tells of itself: figures for Prometheus, and traces where OpenTelemetry's variables ask.

Processes that serve as one put their figures into one folder (PROMETHEUS_MULTIPROC_DIR), so that any of them tells the
sums of all.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, exposition, multiprocess

from server.calls import TRACE
from server.service import SeenCall

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_STEPS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# Any of these says where traces go; without them none are made.
_TRACING = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")


@dataclass
class CallFigures:
    """Counts calls, and how long they took, by tool, face and outcome."""

    _registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        labels = ("tool", "face", "outcome")
        self._calls = Counter("shardwise_calls", "Calls of tools and conversations.", labels, registry=self._registry)
        self._seconds = Histogram(
            "shardwise_call_seconds", "Seconds a call took.", ("tool",), buckets=_STEPS_S, registry=self._registry
        )

    def __call__(self, seen: SeenCall) -> None:
        self._calls.labels(seen.name, seen.face, seen.outcome).inc()
        self._seconds.labels(seen.name).observe(seen.seconds)

    def text(self) -> tuple[bytes, str]:
        registry = self._registry
        if os.environ.get(FOLDER):
            multiprocess.MultiProcessCollector(registry := CollectorRegistry())
        return exposition.generate_latest(registry), exposition.CONTENT_TYPE_LATEST


def gone(pid: int) -> None:
    """Lets go of what only a living process tells."""
    with suppress(Exception):
        multiprocess.mark_process_dead(pid)


class Traces:
    """A span a call, beside those that FastMCP makes of MCP's requests."""

    def __init__(self) -> None:
        from opentelemetry import trace  # what follows takes a second, where traces are asked for
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        exporter: SpanExporter
        is_console = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() == "console"
        exporter = ConsoleSpanExporter() if is_console else OTLPSpanExporter()
        name = os.environ.get("OTEL_SERVICE_NAME") or "shardwise"
        self._provider = TracerProvider(resource=Resource.create({"service.name": name}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        trace.set_tracer_provider(self._provider)
        self._extract = TraceContextTextMapPropagator().extract
        self._tracer = self._provider.get_tracer("shardwise")

    def __call__(self, seen: SeenCall) -> None:
        ended = time.time_ns()
        attributes: dict[str, Any] = {"shardwise.face": seen.face, "shardwise.outcome": seen.outcome}
        begun = ended - int(seen.seconds * 1e9)
        span = self._tracer.start_span(
            seen.name, self._extract({"traceparent": TRACE.get()}), start_time=begun, attributes=attributes
        )
        span.end(ended)

    def close(self) -> None:
        self._provider.shutdown()


def is_traced() -> bool:
    """As OpenTelemetry's own variables say."""
    if os.environ.get("OTEL_SDK_DISABLED", "").casefold() == "true":
        return False
    return any(os.environ.get(name, "").strip() not in ("", "none") for name in _TRACING)
