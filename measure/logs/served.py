"""What load generators leave behind: vllm bench serve, sglang.bench_serving, trtllm-bench, GuideLLM and MLPerf LoadGen.

Their results are JSON (vLLM, SGLang: one object a run; TensorRT-LLM: --report_json; GuideLLM: benchmarks.json, several
benchmarks) or the summary that they print (vLLM and SGLang, TensorRT-LLM, mlperf_log_summary.txt). Fields: vLLM
vllm/benchmarks/serve.py, SGLang python/sglang/bench_serving.py, TensorRT-LLM tensorrt_llm/bench/dataclasses/
reporting.py, GuideLLM src/guidellm/schemas, MLCommons inference loadgen/results.cc.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.units import MS_PER_S
from knowledge.own.files import read_text
from knowledge.own.mappings import json_value
from measure.history.run import MeasuredRun, can_be
from measure.logs.facts import HeaderFacts, accelerator, model

_FIELD = "path"
_NS_PER_S = 1e9
_MOST_BYTES = 64 * 2**20
_MOST_RUNS = 1000
# No load has more of anything.
_LARGEST = 1e15
OBJECTS = (".json", ".jsonl")
# Names that they write unless told otherwise.
_NAMES = re.compile(r"benchmarks\.json|mlperf_log_summary\.txt|(vllm|sglang|openai|trt)\S*\.jsonl?")
# Middle words of a latency in the results of vLLM and SGLang, and the name that ours has.
_LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e", "e2e_latency": "e2e"}
_SHARES = {"mean": "", "median": "_p50", "p90": "_p90", "p95": "_p95", "p99": "_p99"}
_ENGINES = {"vllm": "vllm", "sglang": "sglang", "trt": "trtllm", "tensorrt": "trtllm"}
_LINE = re.compile(r"^[ \t]*+(?:[#*][ \t]*+)?([A-Za-z0-9[][^:=\n]{2,60}?)[ \t]*+:[ \t]++(\S[^\n]*)$", re.MULTILINE)
# Printed labels in lower case: (our figure or plan field, what a printed number is to be divided by).
_PRINTED: Mapping[str, tuple[str, float]] = {
    "request throughput (req/s)": ("requests_per_s", 1.0),
    "request throughput (req/sec)": ("requests_per_s", 1.0),
    "output token throughput (tok/s)": ("output_tokens_per_s", 1.0),
    "total output throughput (tokens/sec)": ("output_tokens_per_s", 1.0),
    "per gpu output throughput (tps/gpu)": ("output_tokens_per_s_per_device", 1.0),
    "average request latency (ms)": ("e2e_s", MS_PER_S),
    "average time-to-first-token [ttft] (ms)": ("ttft_s", MS_PER_S),
    "average time-per-output-token [tpot] (ms)": ("tpot_s", MS_PER_S),
    "samples per second": ("requests_per_s", 1.0),
    "completed samples per second": ("requests_per_s", 1.0),
    "scheduled samples per second": ("requests_per_s", 1.0),
    "tokens per second": ("output_tokens_per_s", 1.0),
    "completed tokens per second": ("output_tokens_per_s", 1.0),
    "mean latency (ns)": ("e2e_s", _NS_PER_S),
    "99.00 percentile latency (ns)": ("e2e_p99_s", _NS_PER_S),
    "mean first token latency (ns)": ("ttft_s", _NS_PER_S),
    "99.00 percentile first token latency (ns)": ("ttft_p99_s", _NS_PER_S),
    "mean time to output token (ns)": ("tpot_s", _NS_PER_S),
    "99.00 percentile time to output token (ns)": ("tpot_p99_s", _NS_PER_S),
    # TensorRT-LLM's breakdowns of a latency.
    **{
        f"[{name}] p{share}": (f"{ours}_p{share}_s", MS_PER_S)
        for share in (50, 90, 95, 99)
        for name, ours in (("latency", "e2e"), ("ttft", "ttft"), ("tpot", "tpot"))
    },
    **{
        f"{share} {name} (ms)": (f"{ours}{_SHARES[share]}_s", MS_PER_S)
        for share in _SHARES
        for name, ours in (("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl"), ("e2el", "e2e"), ("e2e latency", "e2e"))
    },
}
_COUNTED = {
    "successful requests": "requests", "number of requests": "requests", "max request concurrency": "concurrency",
    "maximum request concurrency": "concurrency", "max reqeuest concurrency": "concurrency",
    "number of concurrent requests": "concurrency",
    "average input length (tokens)": "input_len", "average output length (tokens)": "output_len",
}  # fmt: skip
# Of the commands of servers and load generators, as they stand above what was measured.
_FLAG = re.compile(r"(?:^|\s)--?([a-z][\w-]*)[= ]+['\"]?([^\s'\"\\]+)")
_LAYOUT = {"tp": "tp", "tp-size": "tp", "tensor-parallel-size": "tp", "pp-size": "pp", "pipeline-parallel-size": "pp"}
_LOAD = {"request-rate": "request_rate", "max-concurrency": "concurrency"}
_NAMED = ("model", "model-path")
_SCENARIOS = {"offline": "offline", "server": "server", "interactive": "interactive", "singlestream": "single-stream"}
_SIGNS = ("Serving Benchmark Result", "MLPerf Results Summary", "= PERFORMANCE OVERVIEW")


def is_named_so(path: Path) -> bool:
    """Whether a file of a folder has the name of one of these."""
    return _NAMES.fullmatch(path.name) is not None


def read(path: Path) -> list[MeasuredRun]:
    """The serving runs of a file; none where it holds none. Raises PlanError for one that cannot be read."""
    if path.stat().st_size > _MOST_BYTES:
        return []
    try:
        text = read_text(path, _FIELD, _MOST_BYTES)
    except PlanError:
        return []
    return runs_in(text, path.name)


def runs_in(text: str, name: str) -> list[MeasuredRun]:
    """The serving runs that a text holds."""
    if text.lstrip()[:1] in ("{", "["):
        return [run for data in _objects(text) for run in _of_object(data, name)][:_MOST_RUNS]
    if any(sign in text for sign in _SIGNS):
        flags: dict[str, str] = {}
        runs: list[MeasuredRun | None] = []
        for above, piece in _pieces(text):
            flags |= _FLAG.findall(above)
            runs.append(_of_print(piece, name, flags))
        return [run for run in runs if run]
    return []


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a document, a list or lines."""
    data = _json(text)
    rows = data if isinstance(data, list) else [data] if data is not None else map(_json, text.splitlines())
    yield from (row for row in rows if isinstance(row, Mapping))


def _json(text: str) -> Any:
    try:
        return json_value(text)
    except ValueError:
        return None


def _of_object(data: Mapping[str, Any], name: str) -> Iterator[MeasuredRun]:
    if isinstance(data.get("benchmarks"), list):
        rows = (row for row in data["benchmarks"] if isinstance(row, Mapping))
        yield from (run for row in rows if (run := _guidellm(row, data, name)))
    elif isinstance(data.get("performance"), Mapping) and isinstance(data.get("request_info"), Mapping):
        yield from filter(None, [_trtllm(data, name)])
    elif "output_throughput" in data and "total_output_tokens" in data:
        yield from filter(None, [_flat(data, name)])


class _Served:
    """What is known of a run so far."""

    def __init__(self, program: str, name: str) -> None:
        self.source = f"{program} {name}"
        self.facts = HeaderFacts()
        self.facts.put("workload.kind", "inference")
        self.figures: dict[str, float] = {}
        self.findings: list[str] = []

    def figure(self, name: str, value: Any, unit: float = 1.0) -> None:
        """What is zero was of no request."""
        if (amount := _number(value)) is not None and amount > 0 and can_be(amount / unit):
            self.figures.setdefault(name, amount / unit)

    def field(self, name: str, value: Any) -> None:
        """A number of the workload; whole ones as such."""
        amount = _number(value)
        if amount is not None and 0 < amount <= _LARGEST:
            self.facts.put(f"workload.{name}", round(amount) if name != "request_rate" else amount)

    def lengths(self, requests: Any, tokens_in: Any, tokens_out: Any) -> None:
        """Means of a request, of the totals of a run."""
        count = _number(requests)
        for name, total in (("input_len", tokens_in), ("output_len", tokens_out)):
            amount = _number(total)
            if count and amount:
                self.field(name, max(1.0, amount / count))

    def failed(self, requests: Any) -> None:
        if count := _number(requests):
            self.findings.append(f"{count:,.0f} {'request' if count == 1 else 'requests'} failed")

    def run(self) -> MeasuredRun | None:
        ran = bool(self.figures.keys() & {"output_tokens_per_s", "requests_per_s"})
        if not (ran or self.findings):
            return None
        return MeasuredRun(
            kind="serving",
            outcome="ran" if ran else "failed",
            source=self.source[:400],
            date=self.facts.date,
            plan=self.facts.plan,
            figures=self.figures,
            software=self.facts.software,
            findings=self.findings,
        )


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value.replace(",", "").rstrip("%"))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _engine(served: _Served, backend: Any) -> None:
    """The engine that a client's backend is of; OpenAI's interface is anybody's."""
    text = str(backend).lower()
    if engine := next((ours for theirs, ours in _ENGINES.items() if text.startswith(theirs)), None):
        served.facts.put("workload.engine", engine)


def _flat(data: Mapping[str, Any], name: str) -> MeasuredRun | None:
    """A result of vLLM's client or of SGLang's, which has its fields."""
    of_sglang = "mean_e2e_latency_ms" in data
    served = _Served("sglang.bench_serving" if of_sglang else "vllm bench serve", name)
    for share, ending in _SHARES.items():
        for theirs, ours in _LATENCIES.items():
            served.figure(f"{ours}{ending}_s", data.get(f"{share}_{theirs}_ms"), MS_PER_S)
    served.figure("requests_per_s", data.get("request_throughput"))
    served.figure("output_tokens_per_s", data.get("output_throughput"))
    served.lengths(data.get("completed"), data.get("total_input_tokens"), data.get("total_output_tokens"))
    served.field("concurrency", data.get("max_concurrency"))
    served.field("request_rate", data.get("request_rate"))
    served.field("requests", data.get("completed"))
    _engine(served, data.get("backend") or data.get("endpoint_type"))
    if isinstance(data.get("model_id"), str):
        model(served.facts, data["model_id"])
    if (day := re.match(r"(20\d\d)-?([01]\d)-?([0-3]\d)", str(data.get("date", "")))) is not None:
        served.facts.date = "-".join(day.groups())
    served.failed(data.get("failed"))
    return served.run()


def _trtllm(data: Mapping[str, Any], name: str) -> MeasuredRun | None:
    served = _Served("trtllm-bench", name)
    performance, requests = data["performance"], data["request_info"]
    engine, world, machine, streamed = (
        _inner(data, key) for key in ("engine", "world_info", "machine", "streaming_metrics")
    )
    served.figure("requests_per_s", performance.get("request_throughput_req_s"))
    served.figure("output_tokens_per_s", performance.get("system_output_throughput_tok_s"))
    served.figure("output_tokens_per_s_per_device", performance.get("output_throughput_per_gpu_tok_s"))
    served.figure("e2e_s", performance.get("avg_request_latency_ms"), MS_PER_S)
    for ours in ("ttft", "tpot"):
        served.figure(f"{ours}_s", streamed.get(f"avg_{ours}_ms"), MS_PER_S)
    breakdowns = {f"{ours}_": streamed.get(f"{ours}_percentiles") for ours in ("ttft", "tpot")}
    breakdowns["e2e_"] = performance.get("request_latency_percentiles_ms")
    for ours, shares in breakdowns.items():
        for share in ("p50", "p90", "p95", "p99"):
            served.figure(f"{ours}{share}_s", shares.get(share) if isinstance(shares, Mapping) else None, MS_PER_S)
    for ours, theirs in (("input_len", "avg_input_length"), ("output_len", "avg_output_length"),
                         ("requests", "num_requests"), ("concurrency", "avg_num_concurrent_requests")):  # fmt: skip
        served.field(ours, requests.get(theirs))
    served.facts.put("workload.engine", "trtllm")
    if engine.get("version"):
        served.facts.software["tensorrt-llm"] = str(engine["version"])[:60]
    if isinstance(engine.get("model"), str):
        model(served.facts, engine["model"])
    for ours, theirs in (("layout.tp", "tp_size"), ("layout.pp", "pp_size"), ("cluster.count", "world_size")):
        served.facts.count(ours, str(world.get(theirs)))
    if isinstance(machine.get("name"), str):
        accelerator(served.facts, machine["name"])
    return served.run()


def _guidellm(row: Mapping[str, Any], whole: Mapping[str, Any], name: str) -> MeasuredRun | None:
    served = _Served("GuideLLM", name)
    metrics = row.get("metrics")
    if not isinstance(metrics, Mapping):
        return None

    def value(metric: str, share: str = "mean") -> Any:
        """Of the requests that were answered."""
        of_all = metrics.get(metric)
        done = of_all.get("successful") if isinstance(of_all, Mapping) else None
        if not isinstance(done, Mapping):
            return None
        shares = done.get("percentiles")
        return done.get(share) if share == "mean" else shares.get(share) if isinstance(shares, Mapping) else None

    for share, ending in (("mean", ""), ("p50", "_p50"), ("p90", "_p90"), ("p95", "_p95"), ("p99", "_p99")):
        served.figure(f"ttft{ending}_s", value("time_to_first_token_ms", share), MS_PER_S)
        # Its time per output token counts the first one; ours is that of those after it.
        served.figure(f"tpot{ending}_s", value("inter_token_latency_ms", share), MS_PER_S)
        served.figure(f"e2e{ending}_s", value("request_latency", share))
    served.figure("requests_per_s", value("requests_per_second"))
    served.figure("output_tokens_per_s", value("output_tokens_per_second"))
    served.field("input_len", value("prompt_token_count"))
    served.field("output_len", value("output_token_count"))
    served.field("concurrency", value("request_concurrency"))
    # Of its version 0.8 on the settings stand in parts.
    backend = _inner(whole, "config", "spec", "backend")
    for place in (row.get("config"), row.get("args"), whole.get("args"), backend):
        if isinstance(place, Mapping) and isinstance(named := place.get("model"), str):
            model(served.facts, named)
    served.failed(_inner(metrics, "request_totals").get("errored"))
    return served.run()


def _inner(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """An object within others; {} where one is missing."""
    for name in names:
        part = data.get(name)
        data = part if isinstance(part, Mapping) else {}
    return data


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The summaries of a text, each to where the next begins, with what stands between it and the one before."""
    places = sorted(match.start() for sign in _SIGNS for match in re.finditer(re.escape(sign), text))
    # TensorRT-LLM tells its settings before the figures.
    starts = [0, *places[1:]]
    before = [0, *places[:-1]]
    for above, place, start, end in zip(before, places, starts, [*places[1:], len(text)], strict=True):
        yield text[above:place], text[start:end]


def _asked(served: _Served, flags: Mapping[str, str]) -> None:
    """What the commands say of the deployment and of its load; what the summary says of these counts first."""
    for flag, ours in _LAYOUT.items():
        served.facts.count(f"layout.{ours}", flags.get(flag, ""))
    for flag, ours in _LOAD.items():
        served.field(ours, flags.get(flag))
    _engine(served, flags.get("backend", ""))
    if named := next((flags[flag] for flag in _NAMED if flag in flags), None):
        model(served.facts, named.rstrip("/"))


def _of_print(text: str, name: str, flags: Mapping[str, str]) -> MeasuredRun | None:
    of_mlperf, of_trtllm = "MLPerf Results Summary" in text, "= PERFORMANCE OVERVIEW" in text
    of_sglang = "E2E Latency (ms)" in text
    program = "MLPerf LoadGen" if of_mlperf else "trtllm-bench" if of_trtllm else "sglang.bench_serving"
    served = _Served(program if of_mlperf or of_trtllm or of_sglang else "vllm bench serve", name)
    values = {label.lower(): value.strip() for label, value in _LINE.findall(text)}
    for label, (ours, unit) in _PRINTED.items():
        served.figure(ours, values.get(label), unit)
    for label, ours in _COUNTED.items():
        served.field(ours, values.get(label))
    requests = values.get("successful requests")
    served.lengths(requests, values.get("total input tokens"), values.get("total generated tokens"))
    _engine(served, values.get("backend") or ("tensorrt" if of_trtllm else ""))
    for ours, theirs in (("layout.tp", "tp size"), ("layout.pp", "pp size")):
        served.facts.count(ours, values.get(theirs, ""))
    if of_trtllm and (named := values.get("model")):
        model(served.facts, named)
    if version := values.get("tensorrt-llm version") or values.get("tensorrt llm version"):
        served.facts.software["tensorrt-llm"] = version[:60]
    if of_mlperf:
        _mlperf(served, values)
    _asked(served, flags)
    served.failed(values.get("failed requests"))
    return served.run()


def _mlperf(served: _Served, values: Mapping[str, str]) -> None:
    scenario = values.get("scenario", "").replace(" ", "").lower()
    if scenario in _SCENARIOS:
        served.facts.put("workload.scenario", _SCENARIOS[scenario])
    if "VALID" in (result := values.get("result is", "")) and result != "VALID":
        served.findings.append(f"LoadGen calls the result {result}")
    for label in ("performance constraints satisfied", "min duration satisfied", "early stopping satisfied"):
        if values.get(label, "").upper() == "NO":
            served.findings.append(f"{label}: no")
    if "PerformanceOnly" not in values.get("mode", "PerformanceOnly"):
        served.findings.append(f"it ran as {values['mode']}, whose figures are no speed")
