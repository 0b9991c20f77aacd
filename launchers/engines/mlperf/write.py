"""MLPerf Inference: user.conf for LoadGen and the runs of the Llama-3.1-8B reference harness, which loads vLLM itself.

LoadGen drops lines without spaces round '=', and those with names that it does not know, without a word. Limits of
latency are its own; user.conf may not change them.
"""

from __future__ import annotations

from knowledge.mlperf import benchmark
from launchers.engines.scripts import Verbatim, command, options
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET
from launchers.launch.serving import ServingLaunch
from launchers.pieces import File, Piece, Start

CONFIG, PATH = "user.conf", "mlperf.sh"
_REPOSITORY = "github.com/mlcommons/inference @b66003e1"
_SCENARIOS = {"offline": "Offline", "server": "Server", "single-stream": "SingleStream"}
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# The checkpoint that the benchmark names; the catalogue has it under the name of the base model.
_INSTRUCT = "meta-llama/Llama-3.1-8B-Instruct"
_FAR = 1.1


def render(launch: ServingLaunch) -> Piece:
    needs = [
        f"{PATH}: MLPERF_INFERENCE, a checkout of {_REPOSITORY} with LoadGen and what language/llama3.1-8b requires",
    ]
    if launch.site.dataset is None:
        needs.append(f"{PATH}: DATASET, the preprocessed CNN/DailyMail samples that MLCommons hands out")
    if launch.replicas > 1:
        needs.append(
            f"each of the {launch.replicas} replicas is a LoadGen run of its own; their results add up outside of it"
        )
    files = (
        File(CONFIG, "mlperf", "\n".join([*_user_conf(launch, needs), ""])),
        File(PATH, "mlperf", "\n".join([*_script(launch), ""]), executable=True),
    )
    return Piece(files, tuple(needs), Start(f"sh {PATH}", programs=("the MLPerf Inference reference", "vLLM")))


def _user_conf(launch: ServingLaunch, needs: list[str]) -> list[str]:
    bench = benchmark("llama3.1-8b")
    lines = [f"# {line}" for line in heading(launch, f"sh {PATH}")]
    lines.append(f"# Samples have {bench.input.mean:g} tokens in and {bench.output.mean:g} out on average.")
    asked, had = launch.serving.input_len + launch.serving.output_len, bench.input.mean + bench.output.mean
    if not had / _FAR < asked < had * _FAR:
        lines.append("# WARNING: the plan's prompts and answers have other lengths, and so has what was predicted.")
    if launch.serving.scenario == "single-stream":
        return [*lines, "", "*.SingleStream.min_duration = 600000"]
    name = bench.loadgen["server"]
    for scenario, rate in _rates(launch).items():
        lines += ["", f"{name}.{scenario}.min_duration = 600000"]
        if rate is None:
            lines.append(f"# set this to run {scenario}: {name}.{scenario}.target_qps = SET_ME")
            if scenario == _SCENARIOS[launch.serving.scenario]:
                needs.append(f"{CONFIG}: {scenario}.target_qps, samples per second (LoadGen takes 1 without it)")
        else:
            lines.append(f"{name}.{scenario}.target_qps = {rate:.6f}")
    return lines


def _rates(launch: ServingLaunch) -> dict[str, float | None]:
    """Samples per second of one replica in each scenario, as far as the plan or the prediction of it says."""
    serving, predicted = launch.serving, launch.prediction
    reached = None
    if predicted is not None and predicted.output_tokens_per_s > 0:
        reached = predicted.output_tokens_per_s / serving.output_len / launch.replicas
    asked = None if serving.request_rate is None else serving.request_rate / launch.replicas
    if serving.scenario == "offline":
        return {"Offline": reached or asked, "Server": None}
    return {"Offline": None, "Server": asked or reached}


def _script(launch: ServingLaunch) -> list[str]:
    scenario = _SCENARIOS[launch.serving.scenario]
    edge = scenario == "SingleStream"
    samples = 5000 if edge else 13368
    model = launch.model if launch.model not in (None, "meta-llama/Llama-3.1-8B") else _INSTRUCT
    data = [] if launch.site.dataset is None else options({"DATASET": launch.site.dataset})[0].split(" ", 1)[1:]
    common = {
        "--lg-model-name": "llama3_1-8b-edge" if edge else "llama3_1-8b",
        "--scenario": Verbatim('"$SCENARIO"'),
        "--model-path": model,
        "--dtype": _DTYPES[launch.serving.weight_dtype],
        "--tensor-parallel-size": launch.tp,
        "--batch-size": samples,
        "--total-sample-count": samples,
        "--dataset-path": Verbatim('"$DATASET"'),
        "--user-conf": Verbatim(f'"$here/{CONFIG}"'),
        "--vllm": True,
    }
    lines = ["#!/bin/sh", *(f"# {line}" for line in heading(launch, f"sh {PATH}"))]
    lines += [
        "# set MLPERF_INFERENCE and DATASET, here or in the environment; SCENARIO may be another one",
        "",
        "set -eu",
    ]
    lines.append(': "${MLPERF_INFERENCE:=SET_ME_MLPERF_INFERENCE}"')
    lines.append(f'[ -n "${{DATASET:-}}" ] || DATASET={data[0] if data else DATASET}')
    lines += [f': "${{SCENARIO:={scenario}}}"', "here=$PWD", 'out="$here/mlperf-$SCENARIO-$(uname -n)-$$"']
    lines += ['cd "$MLPERF_INFERENCE/language/llama3.1-8b"', 'mkdir -p "$out"', "", "run() {"]
    lines += [*command("python3 -u main.py", [*options(common), '"$@"'], "  "), "}", ""]
    lines += ['run --output-log-dir "$out/performance"', 'run --output-log-dir "$out/accuracy" --accuracy']
    judged = {
        "--mlperf-accuracy-file": Verbatim('"$out/accuracy/mlperf_log_accuracy.json"'),
        "--dataset-file": Verbatim('"$DATASET"'),
        "--model-name": model,
        "--total-sample-count": samples,
        "--dtype": "int32",
    }
    return [*lines, *command("python3 evaluation.py", options(judged))]
