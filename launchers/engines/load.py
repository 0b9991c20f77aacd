"""bench.sh: the plan's load put on one replica, so that what was predicted can be measured."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from launchers.engines.scripts import PORT, Verbatim, command, options
from launchers.launch.heading import heading
from launchers.launch.serving import ServingLaunch
from launchers.pieces import File
from launchers.shell.quoting import ENGINE_PORT
from launchers.tables import table

PATH = "bench.sh"
# Requests for each one in flight (as the estimate takes closed loops), seconds of arrivals at a rate, and requests of a
# run that the plan leaves open.
_ROUNDS = 10
_SECONDS = 300
_REQUESTS = 1000


@dataclass(frozen=True)
class Load:
    """One replica's part of the plan's load. Tokens of a request: `shared` of its prompt are the same in all requests,
    `fresh` are its own. `concurrency` None: not bounded; `rate` in requests/s, None: as fast as they are answered.
    `spread`: half the range of generated tokens over their mean."""

    fresh: int
    shared: int
    output: int
    spread: float
    requests: int
    concurrency: int | None
    rate: float | None


def load_of(launch: ServingLaunch) -> Load:
    serving = launch.serving
    prompt = max(1, round(serving.prompt_len))
    shared = min(prompt - 1, round(prompt * serving.prefix_hit))
    rate = serving.request_rate
    concurrency = 1 if serving.scenario == "single-stream" else serving.concurrency
    if rate is not None:
        rate, concurrency = rate / launch.replicas, None
    elif concurrency is not None:
        concurrency = math.ceil(concurrency / launch.replicas)
    if serving.requests is not None:
        requests = math.ceil(serving.requests / launch.replicas)
    elif rate is not None:
        requests = min(100_000, max(100, math.ceil(rate * _SECONDS)))
    elif concurrency is not None:
        requests = concurrency if serving.scenario == "static-batch" else _ROUNDS * concurrency
    else:
        requests = _REQUESTS
    return Load(
        fresh=prompt - shared,
        shared=shared,
        output=max(1, round(serving.output_len)),
        spread=launch.spread,
        requests=requests,
        concurrency=concurrency,
        rate=rate,
    )


def bench_file(launch: ServingLaunch, target: str, model: str) -> File:
    """bench.sh with the benchmark program that comes with the engine."""
    load = load_of(launch)
    commands = {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm}
    return script(launch, target, commands[target](launch, load, model), remarks(launch, load, target))


def script(launch: ServingLaunch, target: str, body: list[str], remark_lines: list[str]) -> File:
    lines = ["#!/bin/sh", *(f"# {line}" for line in [*heading(launch, f"sh {PATH}")[:-1], *remark_lines])]
    lines += [f"# run, while the engine runs, on its first node: sh {PATH}", "", "set -eu"]
    lines.append(f': "${{HOST:=127.0.0.1}}" "${{PORT:={ENGINE_PORT}}}"')
    if key := table(f"engines/{target}/fields").get("key_variable"):
        lines.append(f'export OPENAI_API_KEY="${{{key}:-}}"')
    lines += [*body, ""]
    return File(PATH, target, "\n".join(lines), executable=True)


def remarks(launch: ServingLaunch, load: Load, target: str) -> list[str]:
    """Where the load differs from the plan's, in words."""
    spread = launch.serving.output_spread or 0.0
    lines = []
    if launch.replicas > 1:
        lines.append(f"one of {launch.replicas} replicas, with its part of the load")
    if spread and target != "vllm":
        lines.append("answers are all of the mean length here")
    elif spread > launch.spread:
        lines.append("answers vary less here than in the plan")
    return lines


def _limits(launch: ServingLaunch) -> list[str] | None:
    limits = {"ttft": launch.serving.ttft_slo_ms, "tpot": launch.serving.tpot_slo_ms}
    return [f"{name}:{value:g}" for name, value in limits.items() if value is not None] or None


def _common(load: Load, model: str) -> dict[str, Any]:
    return {
        "--host": Verbatim('"$HOST"'),
        "--port": Verbatim(PORT),
        "--model": model,
        "--num-prompts": load.requests,
        "--max-concurrency": load.concurrency,
        "--request-rate": load.rate,
    }


def _vllm(launch: ServingLaunch, load: Load, model: str) -> list[str]:
    ratio = json.dumps({"input": 0.0, "output": load.spread}) if load.spread else 0.0
    flags = {
        "--backend": "openai",
        **_common(load, model),
        "--dataset-name": "random",
        "--random-input-len": load.fresh,
        "--random-prefix-len": load.shared or None,
        "--random-output-len": load.output,
        "--random-range-ratio": ratio,
        "--ignore-eos": True,
        "--percentile-metrics": "ttft,tpot,itl,e2el",
        "--goodput": _limits(launch),
        "--save-result": True,
    }
    return command("exec vllm bench serve", options(flags))


def _sglang(launch: ServingLaunch, load: Load, model: str) -> list[str]:
    """Its ratio is the shortest over the longest: 1 makes all alike."""
    flags: dict[str, Any] = {"--backend": "sglang", **_common(load, model)}
    if load.shared:
        flags |= {
            "--dataset-name": "generated-shared-prefix",
            "--gsp-num-groups": 1,
            "--gsp-prompts-per-group": load.requests,
            "--gsp-system-prompt-len": load.shared,
            "--gsp-question-len": load.fresh,
            "--gsp-output-len": load.output,
            "--gsp-range-ratio": 1.0,
        }
    else:
        flags |= {
            "--dataset-name": "random-ids",
            "--random-input-len": load.fresh,
            "--random-output-len": load.output,
            "--random-range-ratio": 1.0,
        }
    return command("exec python3 -m sglang.bench_serving", options(flags | {"--goodput": _limits(launch)}))


def _trtllm(launch: ServingLaunch, load: Load, model: str) -> list[str]:
    flags = {
        "--backend": "openai",
        **_common(load, model),
        "--dataset-name": "random",
        "--random-ids": True,
        "--random-input-len": load.fresh,
        "--random-prefix-len": load.shared,
        "--random-output-len": load.output,
        "--ignore-eos": True,
        "--percentile-metrics": "ttft,tpot,itl,e2el",
    }
    return command("exec python3 -m tensorrt_llm.serve.scripts.benchmark_serving", options(flags))
