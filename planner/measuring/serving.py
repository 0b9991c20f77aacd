"""measure serving: what an endpoint answers under a load, beside what is predicted where its devices are named."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from estimator.units import MS_PER_S
from knowledge.own.files import parsed as parsed_file
from knowledge.own.files import read_text
from measure.run.answers import PERCENTILES, Latencies, LoadFigures, figures_of, steady_span
from measure.run.load import Endpoint, TimedRequest, arrivals, run_load
from planner.partial import get
from planner.requests import ServingRequest
from planner.result import Result
from planner.serving.planned import latency_of, plan_serving

_OF_TRACE = ("at_s", "input_len", "output_len")
_MOST_REQUESTS, _MOST_BYTES, _LONGEST_S = 100_000, 32 * 2**20, 86_400.0


class EndpointLoad(ServingRequest):
    url: str = Field("http://127.0.0.1:8000", max_length=2000, description="The endpoint, without /v1.")
    served_model: str | None = Field(None, max_length=500, description="Name that the endpoint has for the model.")
    key_variable: str | None = Field(None, description="Environment variable with the key, e.g. OPENAI_API_KEY.")
    timeout_s: float = Field(600.0, gt=0, le=86_400, description="After which a request has failed.")
    trace: str | None = Field(
        None, description="File with one request a line or entry: at_s, input_len, output_len (YAML, JSON or CSV)."
    )
    seed: int = Field(1, ge=0, description="Of the arrivals.")

    def workload(self) -> Inference:
        """The load that the plan says; of a plan without a model as well, as the endpoint has one."""
        return Plan.parse({**self._data(), "model": "gpt2"}).inference


class MeasuredLatency(Result):
    """Milliseconds."""

    latency: str = Field(description="ttft, tpot or e2e.")
    mean_ms: float | None
    p50_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    predicted_ms: float | None = Field(description="The mean that is predicted; null where no devices were named.")


class LoadPart(Result):
    part: str = Field(description="all, or steady: without filling up and running dry.")
    requests: int
    unanswered: int
    seconds: float
    requests_per_s: float
    output_tokens_per_s: float
    mean_input_tokens: float | None
    mean_output_tokens: float | None
    latencies: list[MeasuredLatency]


class ServingMeasurement(Result):
    url: str
    served_model: str
    parts: list[LoadPart]
    load: str = Field(description="What was sent, in words.")
    tokens_counted: bool = Field(description="Whether the server counted them; else a piece of text is taken for one.")
    problems: list[str] = Field(description="Of requests that failed, each once.")


def measure_serving(request: EndpointLoad, tell: Callable[[int], None] = lambda done: None) -> ServingMeasurement:
    """Loads an endpoint and says what it answered. Raises PlanError where it answers nothing at all."""
    endpoint = _endpoint(request)
    asked, clients, words = _asked(request)
    answers = run_load(endpoint, asked, clients, tell)
    if all(row.problem for row in answers):
        problem = next((row.problem for row in answers if row.problem), "nothing was sent")
        raise PlanError("url", f"{request.url} answered none of {len(answers)} requests: {problem}")
    start, end = steady_span(answers)
    predicted = _predicted(request)
    whole = figures_of(answers, 0.0, max(row.sent_s for row in answers))
    return ServingMeasurement(
        url=request.url,
        served_model=endpoint.model,
        parts=[_part("all", whole, predicted), _part("steady", figures_of(answers, start, end), predicted)],
        load=words,
        tokens_counted=all(row.counted for row in answers if row.problem is None),
        problems=list(dict.fromkeys(row.problem for row in answers if row.problem))[:10],
    )


def _endpoint(request: EndpointLoad) -> Endpoint:
    if not request.url.startswith(("http://", "https://")):
        raise PlanError("url", f"{request.url[:80]!r} is no address", ["http://127.0.0.1:8000"])
    model = request.served_model or get(request._data(), "model")
    if not isinstance(model, str):
        raise PlanError("served_model", "is required: the name that the endpoint has for its model", ["my-model"])
    headers: dict[str, str] = {}
    if request.key_variable:
        key = os.environ.get(request.key_variable)
        if not key:
            raise PlanError("key_variable", f"{request.key_variable[:80]} is not set in the environment")
        headers["Authorization"] = f"Bearer {key}"
    return Endpoint(request.url, model, headers, request.timeout_s)


def _asked(request: EndpointLoad) -> tuple[list[TimedRequest], int | None, str]:
    """(The requests, how many clients there are at most, the same in words)."""
    if request.trace:
        rows = _trace(Path(request.trace))
        return rows, None, f"{len(rows)} requests as in {request.trace}"
    workload = request.workload()
    rate, clients = workload.request_rate, workload.concurrency
    count = workload.requests or (max(10 * clients, 20) if clients else 100)
    if count > _MOST_REQUESTS:
        raise PlanError("requests", f"{count} are more than a load has", [_MOST_REQUESTS])
    asked = arrivals(count, rate, round(workload.input_len), round(workload.output_len), request.seed)
    how = f"at {rate:g} a second" if rate else f"by {clients or 1} clients"
    sizes = f"{workload.input_len:g} tokens in and {workload.output_len:g} out"
    return asked, clients if rate else clients or 1, f"{count} requests {how}, {sizes}"


def _trace(path: Path) -> list[TimedRequest]:
    """The requests of a file. Raises PlanError naming the row that cannot be used."""
    text = read_text(path, "trace", _MOST_BYTES)
    rows: Any = list(csv.DictReader(io.StringIO(text))) if path.suffix == ".csv" else None
    if path.suffix == ".jsonl":
        rows = [parsed_file(line, "trace") for line in text.splitlines() if line.strip()]
    rows = parsed_file(text, "trace") if rows is None else rows
    if not isinstance(rows, list) or not 0 < len(rows) <= _MOST_REQUESTS:
        raise PlanError("trace", f"{path} is no list of up to {_MOST_REQUESTS} requests")
    asked: list[TimedRequest] = []
    for number, row in enumerate(rows, start=1):
        try:
            at_s, prompt, answer = (float(row[name]) for name in _OF_TRACE)
            request = TimedRequest(at_s, int(prompt), int(answer))
        except (KeyError, TypeError, ValueError):
            raise PlanError("trace", f"request {number} needs at_s, input_len and output_len") from None
        if not (0 <= (request.at_s or 0.0) <= _LONGEST_S and request.input_len > 0 and request.output_len > 0):
            raise PlanError("trace", f"request {number} has a time or a length that cannot be")
        asked.append(request)
    return asked


def _predicted(request: EndpointLoad) -> dict[str, float]:
    """Milliseconds by latency, where model and devices are named."""
    data = request._data()
    if get(data, "model") is None or get(data, "cluster.accelerator") is None:
        return {}
    latency = latency_of(plan_serving(request.to_plan()))
    named = {"ttft": latency.ttft_s, "tpot": latency.tpot_s, "e2e": latency.e2e_s}
    return {name: value * MS_PER_S for name, value in named.items() if value is not None}


def _part(name: str, figures: LoadFigures, predicted: Mapping[str, float]) -> LoadPart:
    return LoadPart(
        part=name,
        requests=figures.requests,
        unanswered=figures.failed,
        seconds=figures.seconds,
        requests_per_s=figures.requests_per_s,
        output_tokens_per_s=figures.output_tokens_per_s,
        mean_input_tokens=figures.input_tokens,
        mean_output_tokens=figures.output_tokens,
        latencies=[
            _latency(kind, values, predicted.get(kind))
            for kind, values in (("ttft", figures.ttft), ("tpot", figures.tpot), ("e2e", figures.e2e))
        ],
    )


def _latency(name: str, values: Latencies, predicted_ms: float | None) -> MeasuredLatency:
    shares = {f"p{share}_ms": values.percentiles.get(share) for share in PERCENTILES}
    mean = None if values.mean is None else values.mean * MS_PER_S
    parts = {key: None if value is None else value * MS_PER_S for key, value in shares.items()}
    return MeasuredLatency(latency=name, mean_ms=mean, predicted_ms=predicted_ms, **parts)
