"""measure serving: what an endpoint answers under a load, beside what is predicted where its devices are named."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan, merge
from estimator.units import MS_PER_S
from knowledge.own.files import parsed as parsed_file
from knowledge.own.files import read_text
from knowledge.own.mappings import csv_records
from measure.history.run import MeasuredRun
from measure.run.answers import PERCENTILES, Latencies, LoadFigures, figures_of, steady_span
from measure.run.load import Answered, Endpoint, TimedRequest, arrivals, run_load
from measure.run.rouge import mean_rouge
from planner.partial import get
from planner.requests import ServingRequest
from planner.result import Result
from planner.serving.planned import latency_of, plan_serving

# LoadGen's min_duration.
_VALID_S = 600.0
_OF_TRACE = ("at_s", "input_len", "output_len")
_MOST_REQUESTS, _MOST_BYTES, _LONGEST_S = 100_000, 32 * 2**20, 86_400.0


class EndpointLoad(ServingRequest):
    url: str = Field(
        "http://127.0.0.1:8000", max_length=2000, description="Of the endpoint, without /v1; several share the load."
    )
    served_model: str | None = Field(None, max_length=500, description="Name that the endpoint has for the model.")
    key_variable: str | None = Field(None, description="Environment variable with the key, e.g. OPENAI_API_KEY.")
    timeout_s: float = Field(600.0, gt=0, le=86_400, description="After which a request has failed.")
    trace: str | None = Field(
        None, description="File with one request a line or entry: at_s, input_len, output_len (YAML, JSON or CSV)."
    )
    seed: int = Field(1, ge=0, description="Of the arrivals.")
    turns: int = Field(1, ge=1, le=100, description="Of each conversation, which has all that was said before.")
    references: str | None = Field(
        None, description="File with a prompt and its reference a line or entry (YAML, JSON or CSV): answers get ROUGE."
    )

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
    part: str = Field(
        description="all; steady: without filling up and running dry; warm-up: before that; or one address of several."
    )
    requests: int
    unanswered: int
    seconds: float
    requests_per_s: float
    output_tokens_per_s: float
    mean_input_tokens: float | None
    mean_output_tokens: float | None
    latencies: list[MeasuredLatency]


class LoadSummary(Result):
    """As MLPerf's LoadGen tells a run."""

    scenario: str = Field(description="Server, Offline or SingleStream.")
    valid: bool
    why_not: list[str] = Field(description="What a valid run would need.")
    samples_per_s: float
    tokens_per_s: float
    ttft_p99_ms: float | None
    tpot_p99_ms: float | None


class ServingMeasurement(Result):
    url: str
    served_model: str
    parts: list[LoadPart]
    load: str = Field(description="What was sent, in words.")
    tokens_counted: bool = Field(description="Whether the server counted them; else a piece of text is taken for one.")
    problems: list[str] = Field(description="Of requests that failed, each once.")
    rouge: dict[str, float] | None = Field(description="Mean F-measures against the references, percent.")
    summary: LoadSummary | None = Field(description="Null of a load that is none of MLPerf's scenarios.")


def measure_serving(request: EndpointLoad, tell: Callable[[int], None] = lambda done: None) -> ServingMeasurement:
    """Loads an endpoint and says what it answered. Raises PlanError where it answers nothing at all."""
    endpoints = _endpoints(request)
    asked, clients, words = _asked(request)
    answers = run_load(endpoints, asked, clients, tell)
    if all(row.problem for row in answers):
        problem = next((row.problem for row in answers if row.problem), "nothing was sent")
        raise PlanError("url", f"{request.url} answered none of {len(answers)} requests: {problem}")
    start, end = steady_span(answers)
    predicted = _predicted(request)
    last = max(row.sent_s for row in answers)
    whole = figures_of(answers, 0.0, last)
    parts = [_part("all", whole, predicted), _part("steady", figures_of(answers, start, end), predicted)]
    if early := [row for row in answers if row.sent_s < start]:
        parts.append(_part("warm-up", figures_of(early, 0.0, start), predicted))
    if len(endpoints) > 1:
        for each in endpoints:
            own = [row for row in answers if row.url == each.url]
            parts.append(_part(each.url, figures_of(own, 0.0, last), predicted))
    return ServingMeasurement(
        url=request.url,
        served_model=endpoints[0].model,
        parts=parts,
        rouge=_rouge(request, answers),
        summary=_summary(request, whole),
        load=words,
        tokens_counted=all(row.counted for row in answers if row.problem is None),
        problems=list(dict.fromkeys(row.problem for row in answers if row.problem))[:10],
    )


def kept_run(request: EndpointLoad, result: ServingMeasurement) -> MeasuredRun:
    """What was measured as a run of the history."""
    steady = next(part for part in result.parts if part.part == "steady")
    figures = {"requests_per_s": steady.requests_per_s, "output_tokens_per_s": steady.output_tokens_per_s}
    for row in steady.latencies:
        named = {f"{row.latency}_s": row.mean_ms}
        named |= {f"{row.latency}_p{share}_s": getattr(row, f"p{share}_ms") for share in PERCENTILES}
        figures |= {name: value / MS_PER_S for name, value in named.items() if value is not None}
    plan = {"model": result.served_model} | merge(request._data(), {"workload.kind": "inference"})
    return MeasuredRun(
        kind="serving",
        source=f"measure serving {result.url}"[:400],
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        plan=plan,
        figures=figures | (result.rouge or {}),
        findings=result.problems,
    )


def _rouge(request: EndpointLoad, answers: Sequence[Answered]) -> dict[str, float] | None:
    if request.references is None:
        return None
    wanted = _references(Path(request.references))
    return mean_rouge([(wanted[row.number % len(wanted)][1], row.text) for row in answers if row.problem is None])


def _summary(request: EndpointLoad, whole: LoadFigures) -> LoadSummary | None:
    """LoadGen's rules as our files for MLPerf write them: ten minutes, every request answered, and of a server the 99th
    percentiles within the limits (mlcommons/inference, mlperf.conf and loadgen/results.cc)."""
    workload = request.workload()
    rate = workload.request_rate
    offline = not rate and not request.trace and (workload.concurrency or 1) >= whole.requests > 1
    if not (rate or request.trace or offline or workload.concurrency == 1):
        return None
    scenario = "Server" if rate or request.trace else "Offline" if offline else "SingleStream"
    first, between = whole.ttft.percentiles.get(99), whole.tpot.percentiles.get(99)
    why: list[str] = []
    if whole.seconds < _VALID_S:
        why.append(f"it lasted {whole.seconds:,.0f} s, and a valid run takes {_VALID_S:,.0f} s at least")
    if whole.failed:
        why.append(f"{whole.failed} of {whole.requests} requests were not answered")
    limits = (("first token", first, workload.ttft_slo_ms), ("tokens after it", between, workload.tpot_slo_ms))
    for name, seconds, limit in limits if scenario == "Server" else ():
        if seconds is not None and limit is not None and seconds * MS_PER_S > limit:
            why.append(f"the 99th percentile of {name} is {seconds * MS_PER_S:,.0f} ms, over the limit of {limit:g} ms")
    return LoadSummary(
        scenario=scenario,
        valid=not why,
        why_not=why,
        samples_per_s=whole.requests_per_s,
        tokens_per_s=whole.output_tokens_per_s,
        ttft_p99_ms=None if first is None else first * MS_PER_S,
        tpot_p99_ms=None if between is None else between * MS_PER_S,
    )


def _endpoints(request: EndpointLoad) -> list[Endpoint]:
    urls = [url.strip() for url in request.url.split(",") if url.strip()]
    for url in urls or [""]:
        if not url.startswith(("http://", "https://")):
            raise PlanError("url", f"{url[:80]!r} is no address", ["http://127.0.0.1:8000"])
    model = request.served_model or get(request._data(), "model")
    if not isinstance(model, str):
        raise PlanError("served_model", "is required: the name that the endpoint has for its model", ["my-model"])
    headers: dict[str, str] = {}
    if request.key_variable:
        key = os.environ.get(request.key_variable)
        if not key:
            raise PlanError("key_variable", f"{request.key_variable[:80]} is not set in the environment")
        headers["Authorization"] = f"Bearer {key}"
    return [Endpoint(url, model, headers, request.timeout_s) for url in urls]


def _asked(request: EndpointLoad) -> tuple[list[TimedRequest], int | None, str]:
    """(The requests, how many clients there are at most, the same in words)."""
    if request.trace:
        rows = _trace(Path(request.trace))
        return rows, None, f"{len(rows)} requests as in {request.trace}"
    workload = request.workload()
    rate, clients = workload.request_rate, workload.concurrency
    texts = _references(Path(request.references)) if request.references else []
    if texts and request.turns > 1:
        raise PlanError("turns", "references are of one turn each", [1])
    count = workload.requests or len(texts) or 0
    count = count or (max(10 * clients, 20) if clients else 100)
    if count > _MOST_REQUESTS:
        raise PlanError("requests", f"{count} are more than a load has", [_MOST_REQUESTS])
    prompts = [texts[place % len(texts)][0] if texts else None for place in range(count)]
    sizes = round(workload.input_len), round(workload.output_len)
    asked = arrivals([TimedRequest(None, *sizes, request.turns, prompt) for prompt in prompts], rate, request.seed)
    how = f"at {rate:g} a second" if rate else f"by {clients or 1} client{'s' if (clients or 1) > 1 else ''}"
    what = f"prompts of {request.references}" if texts else f"{sizes[0]} tokens in"
    units = f"conversations of {request.turns} turns" if request.turns > 1 else "requests"
    return asked, clients if rate else clients or 1, f"{count} {units} {how}, {what} and {sizes[1]} out"


def _references(path: Path) -> list[tuple[str, str]]:
    """(Prompt, reference) of each entry. Raises PlanError naming what cannot be used."""
    pairs: list[tuple[str, str]] = []
    for number, row in enumerate(_entries(path, "references"), start=1):
        prompt, reference = (row.get(name) if isinstance(row, Mapping) else None for name in ("prompt", "reference"))
        if not (isinstance(prompt, str) and prompt.strip() and isinstance(reference, str) and reference.strip()):
            raise PlanError("references", f"entry {number} needs prompt and reference, both texts")
        pairs.append((prompt, reference))
    return pairs


def _entries(path: Path, field: str) -> list[Any]:
    """The entries of a file. Raises PlanError where it is no list."""
    text = read_text(path, field, _MOST_BYTES)
    rows: Any = _of_csv(text, field) if path.suffix == ".csv" else None
    if path.suffix == ".jsonl":
        rows = [parsed_file(line, field) for line in text.splitlines() if line.strip()]
    rows = parsed_file(text, field) if rows is None else rows
    if not isinstance(rows, list) or not 0 < len(rows) <= _MOST_REQUESTS:
        raise PlanError(field, f"{path} is no list of up to {_MOST_REQUESTS} requests")
    return rows


def _of_csv(text: str, field: str) -> list[dict[str, str]]:
    try:
        return list(csv_records(io.StringIO(text)))
    except ValueError as error:
        raise PlanError(field, f"is not readable CSV: {error}") from None


def _trace(path: Path) -> list[TimedRequest]:
    """The requests of a file. Raises PlanError naming the row that cannot be used."""
    asked: list[TimedRequest] = []
    for number, row in enumerate(_entries(path, "trace"), start=1):
        try:
            at_s, prompt, answer = (float(row[name]) for name in _OF_TRACE)
            request = TimedRequest(at_s, int(prompt), int(answer))
        except (KeyError, TypeError, ValueError, OverflowError):
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
