"""What the files of engines say of a serving plan, read back: YAML by its parser, scripts by a shell with stubs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Inference, Plan
from knowledge.speculation import drafts_itself
from launchers.choice import usual_targets
from launchers.engines.checkpoints import formats_of
from launchers.engines.load import load_of
from launchers.launch.serving import ServingLaunch, serving_launch
from launchers.pieces import Piece, Rendered
from launchers.predictions import ServingPrediction
from launchers.render import render
from launchers.site import Site

pytestmark = pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")
KNOWN = yaml.safe_load((Path(__file__).parent / "engine_options.yaml").read_text())
ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
PROGRAMS = ("vllm", "python3", "trtllm-serve", "llama-server", "llama-batched-bench")
PREDICTION = ServingPrediction(2**34, 2**36, True, 0.1, 0.05, 0.2, 0.01, 0.008, 0.012, 2560.0, 100)
DENSE, MOE = "meta-llama/Llama-3.1-8B", "Qwen/Qwen3-30B-A3B"


SERVED = ServingPrediction(2**34, 2**36, True, 0.1, 0.05, 0.2, 0.01, 0.008, 0.012, 2560.0, 100)


def plan(engine: str = "vllm", count: int = 1, model: str = DENSE, layout: Any = None, **load: Any) -> Plan:
    return Plan.parse(
        {
            "model": model,
            "workload": {"kind": "inference", "engine": engine, **load},
            "cluster": {"accelerator": "h100-sxm", "count": count, "per_node": 8},
            "layout": {"tp": 1, "pp": 1, **(layout or {})},
        }
    )


def job_of(made: Plan) -> ServingLaunch:
    return serving_launch(made, [], None, None, Site())


def texts(rendered: Rendered | Piece) -> dict[str, str]:
    return {file.path: file.text for file in rendered.files}


def run(rendered: Rendered, folder: Path, name: str = "serve.sh", **variables: str) -> list[list[str]]:
    """The command lines that a script calls, each with its program first, as its shell hands them over."""
    stubs = folder / "stubs"
    stubs.mkdir(exist_ok=True)
    for program in PROGRAMS:
        body = f'#!/bin/sh\n{{ printf "%s\\0" {program} "$@"; printf "\\n\\0"; }} >>"$TOLD"\n'
        (stubs / program).write_text(body)
        (stubs / program).chmod(0o755)
    for file in rendered.files:
        (folder / file.path).write_text(file.text)
    told = folder / "told"
    told.write_text("")
    environment = {"PATH": f"{stubs}:{os.environ['PATH']}", "TOLD": str(told), **variables}
    done = subprocess.run(["sh", name], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\0")[:-1] for line in told.read_text().split("\n\0")[:-1]]


def values(words: list[str]) -> dict[str, str | bool]:
    """Options and their values; a list's first word counts."""
    said: dict[str, str | bool] = {}
    for word, after in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith("-") and not word.lstrip("-")[:1].isdigit():
            said[word] = True if after.startswith("-") else after
    return said


@pytest.mark.parametrize("engine", ENGINES)
def test_usual_sets_are_complete(engine: str):
    rendered = render(plan(engine), usual_targets(plan(engine)), PREDICTION)
    assert {"serve.sh", "bench.sh", "job.sbatch"} <= set(texts(rendered))
    assert "sh serve.sh" in texts(rendered)["job.sbatch"]
    for path, text in texts(rendered).items():
        assert "2560 output tokens/s" in text
        assert ("sh bench.sh" if path == "bench.sh" else "sbatch job.sbatch") in text


@pytest.mark.parametrize("engine", ["hf", "gpt-fast", "exllamav2", "mlc"])
def test_engines_without_a_server_name_those_that_have(engine: str):
    with pytest.raises(PlanError, match=f"no launch target starts {engine}") as raised:
        render(plan(engine), ["slurm"])
    assert raised.value.valid == list(ENGINES)
    with pytest.raises(PlanError, match="are not started by vllm files"):
        render(plan(engine), ["vllm"])


def test_vllm_yaml_says_every_choice():
    made = plan(
        count=4,
        layout={"tp": 2, "pp": 2},
        weight_dtype="fp8",
        kv_dtype="int8",
        memory_share=0.8,
        max_batch=64,
        max_batched_tokens=4096,
        max_context=8192,
        chunked_prefill=True,
        prefix_hit=0.5,
        cuda_graph=False,
        speculative_tokens=3,
    )
    assert yaml.safe_load(texts(render(made, ["vllm"]))["vllm.yaml"]) == {
        "model": DENSE,
        "quantization": "fp8_per_channel",
        "kv-cache-dtype": "int8_per_token_head",
        "tensor-parallel-size": 2,
        "pipeline-parallel-size": 2,
        "max-model-len": 8192,
        "gpu-memory-utilization": 0.8,
        "max-num-seqs": 64,
        "max-num-batched-tokens": 4096,
        "enable-chunked-prefill": True,
        "enable-prefix-caching": True,
        "enforce-eager": True,
        "speculative-config": {"method": "eagle3", "model": "SET_ME_DRAFT_MODEL", "num_speculative_tokens": 3},
    }


def test_what_is_off_is_said_on_vllms_command_line(tmp_path: Path):
    """vLLM drops a false of its YAML (checks/test_real_engines.py reads it back)."""
    rendered = render(plan(chunked_prefill=False, cuda_graph=True), ["vllm"])
    config = yaml.safe_load(texts(rendered)["vllm.yaml"])
    assert False not in config.values()
    assert "--no-enable-chunked-prefill" in run(rendered, tmp_path)[0]


def test_models_that_draft_need_no_other():
    made = plan(count=8, model="deepseek-ai/DeepSeek-V3", layout={"tp": 8}, weight_dtype="fp8", speculative_tokens=1)
    rendered = render(made, ["vllm"])
    config = yaml.safe_load(texts(rendered)["vllm.yaml"])
    assert config["speculative-config"] == {"method": "mtp", "num_speculative_tokens": 1}
    assert "quantization" not in config
    assert rendered.needs_from_user == ()
    assert not drafts_itself("deepseek-ai/DeepSeek-R1-Distill-Llama-8B")
    assert not drafts_itself(None)


@pytest.mark.parametrize(
    ("model", "held"),
    [
        (DENSE, ["bf16", "fp16", "fp32"]),
        ("deepseek-ai/DeepSeek-V3", ["fp8"]),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", ["bf16", "fp16", "fp32"]),
        ("openai/gpt-oss-20b", ["mxfp4"]),
        ("RedHatAI/Llama-3.1-8B-Instruct-FP8", ["fp8"]),
        ("/models/Qwen3-8B-AWQ/", ["awq", "int4"]),
        ("nvidia/DeepSeek-R1-FP4", ["nvfp4"]),
        ("nvidia/Llama-3.3-70B-Instruct-NVFP4", ["nvfp4"]),
        ("amd/Llama-MXFP4", ["mxfp4"]),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", ["gptq", "int4"]),
        ("moonshotai/Kimi-K2-Thinking", ["int4"]),
    ],
)
def test_what_a_checkpoint_holds(model: str, held: list[str]):
    assert formats_of(model) == held


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_a_checkpoint_in_another_format_is_asked_for(engine: str, tmp_path: Path):
    for made in (
        plan(engine, weight_dtype="awq"),
        plan(engine, weight_dtype="bf16", model="deepseek-ai/DeepSeek-V3", count=8, layout={"tp": 8}),
        plan(engine, weight_dtype="fp8", model="Qwen/Qwen3-8B-AWQ"),
    ):
        rendered = render(made, [engine])
        assert any("SET_ME_CHECKPOINT" in need for need in rendered.needs_from_user)
        assert "SET_ME_CHECKPOINT" in texts(rendered)["bench.sh"]
    own = render(plan(engine, weight_dtype="awq", model="Qwen/Qwen3-8B-AWQ"), [engine])
    assert own.needs_from_user == ()


def test_vllm_on_several_nodes(tmp_path: Path):
    made = plan(count=16, model=MOE, layout={"tp": 8, "dp": 2, "ep": 16})
    rendered = render(made, ["vllm"])
    config = yaml.safe_load(texts(rendered)["vllm.yaml"])
    assert (config["data-parallel-size"], config["enable-expert-parallel"]) == (2, True)
    meeting = {"MASTER_ADDR": "node 1", "MASTER_PORT": "29500"}
    (first,) = run(rendered, tmp_path, NODE_RANK="0", PORT="9", **meeting)
    (second,) = run(rendered, tmp_path, NODE_RANK="1", **meeting)
    assert values(first)["--port"] == "9"
    assert "--headless" in second
    assert "--headless" not in first
    for rank, words in enumerate((first, second)):
        said = values(words)
        assert (said["--nnodes"], said["--node-rank"], said["--master-addr"]) == ("2", str(rank), "node 1")
    assert "NODE_RANK" in rendered.launch_command
    assert any("NODE_RANK (0 to 1)" in need for need in rendered.needs_from_user)


def test_replicas_are_told_apart():
    alone = render(plan(count=8, layout={"tp": 2}, concurrency=30, request_rate=None), ["vllm"])
    assert any(need.startswith("start 4 replicas") for need in alone.needs_from_user)
    scheduled = render(plan(count=8, layout={"tp": 2}), ["vllm", "slurm"])
    assert not any(need.startswith("start 4") for need in scheduled.needs_from_user)
    assert "SLURM_ARRAY_TASK_ID" in texts(scheduled)["job.sbatch"]
    load = load_of(job_of(plan(count=8, layout={"tp": 2}, concurrency=30)))
    assert (load.concurrency, load.requests) == (8, 80)
    load = load_of(job_of(plan(count=8, layout={"tp": 2}, request_rate=8.0, requests=1001)))
    assert (load.rate, load.requests, load.concurrency) == (2.0, 251, None)


def test_sglang_counts_lanes_together(tmp_path: Path):
    made = plan(
        "sglang", 16, MOE, {"tp": 2, "dp": 8, "ep": 8}, max_batch=64, max_batched_tokens=1024, admission_steps=5
    )
    rank = {"NODE_RANK": "1", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"}
    (words,) = run(render(made, ["sglang"]), tmp_path, **rank)
    said = values(words)
    assert (said["--tp-size"], said["--attn-dp-size"], said["--ep-size"]) == ("16", "8", "8")
    assert (said["--max-running-requests"], said["--chunked-prefill-size"]) == ("512", "8192")
    assert (said["--dist-init-addr"], said["--node-rank"]) == ("node1:29500", "1")
    assert said["--scheduler-recv-interval"] == "5"
    (words,) = run(render(plan("sglang", 4, layout={"tp": 2, "dp": 2}), ["sglang"]), tmp_path)
    said = values(words)
    assert (said["--tp-size"], said["--dp-size"], "--attn-dp-size" in said) == ("2", "2", False)


def test_trtllm_yaml_says_every_choice(tmp_path: Path):
    made = plan("trtllm", 8, MOE, {"dp": 8, "ep": 4}, kv_dtype="fp8", cuda_graph=False, max_batch=32, prefix_hit=0.1)
    rendered = render(made, ["trtllm"])
    assert yaml.safe_load(texts(rendered)["trtllm.yaml"]) == {
        "tensor_parallel_size": 8,
        "pipeline_parallel_size": 1,
        "gpus_per_node": 8,
        "moe_expert_parallel_size": 4,
        "moe_tensor_parallel_size": 2,
        "enable_attention_dp": True,
        "max_seq_len": 1280,
        "dtype": "bfloat16",
        "max_batch_size": 32,
        "cuda_graph_config": None,
        "kv_cache_config": {"free_gpu_memory_fraction": 0.9, "dtype": "fp8", "enable_block_reuse": True},
    }
    ((program, *words),) = run(rendered, tmp_path, PORT="8011")
    assert (program, words[:2], values(words)["--port"]) == ("trtllm-serve", ["serve", MOE], "8011")
    long = yaml.safe_load(texts(render(plan("trtllm", input_len=20000), ["trtllm"]))["trtllm.yaml"])
    assert long["max_num_tokens"] == long["max_seq_len"] == 20256


def test_llamacpp_is_told_what_a_processor_holds(tmp_path: Path):
    held = plan("llamacpp", model=MOE, weight_dtype="q4_k_m", device_layers=40, host_experts=16)
    held = held.patch({"cluster.beside": ["cpu-epyc-9654"]})
    said = values(run(render(held, ["llamacpp"]), tmp_path)[0])
    # The output counts as a layer of its own.
    assert (said["--n-gpu-layers"], said["--n-cpu-moe"]) == ("41", "16")
    first_dense = plan("llamacpp", model="deepseek-ai/DeepSeek-V3", weight_dtype="q4_k_m", host_experts=10)
    said = values(run(render(first_dense, ["llamacpp"]), tmp_path)[0])
    assert (said["--n-gpu-layers"], said["--n-cpu-moe"]) == ("999", "13")
    with pytest.raises(PlanError, match="host memory"):
        render(plan("vllm", model=MOE, host_experts=4), ["vllm"])


def test_llamacpp_divides_its_cache(tmp_path: Path):
    made = plan(
        "llamacpp", 2, layout={"pp": 2}, weight_dtype="q5_k_m", kv_dtype="int8", max_batch=8, speculative_tokens=4
    )
    rendered = render(made, ["llamacpp"])
    said = values(run(rendered, tmp_path)[0])
    assert (said["--ctx-size"], said["--parallel"]) == (str(8 * 1280), "8")
    assert said["--cache-type-k"] == said["--cache-type-v"] == "q8_0"
    assert (said["--split-mode"], said["--model"]) == ("layer", "SET_ME_Q5_K_M.gguf")
    assert said["--spec-draft-n-max"] == "4"
    bench = values(run(rendered, tmp_path, "bench.sh")[0])
    assert (bench["-npp"], bench["-ntg"], bench["-npl"]) == ("1024", "256", "8")
    own = render(plan("llamacpp", model="/models/my model.gguf", weight_dtype="q4_k_m"), ["llamacpp"])
    assert values(run(own, tmp_path)[0])["--model"] == "/models/my model.gguf"


def test_shared_prompts_and_spread_reach_the_benchmark(tmp_path: Path):
    load = {"input_len": 1000, "prefix_hit": 0.25, "output_spread": 0.3, "concurrency": 5}
    said = values(run(render(plan(**load), ["vllm"]), tmp_path, "bench.sh")[0])
    assert (said["--random-prefix-len"], said["--random-input-len"]) == ("250", "750")
    assert json.loads(str(said["--random-range-ratio"])) == {"input": 0.0, "output": 0.5196}
    served = yaml.safe_load(texts(render(plan(**load), ["vllm"]))["vllm.yaml"])
    assert served["max-model-len"] == 1000 + 390  # 256 x 1.5196, rounded up
    said = values(run(render(plan("sglang", **load), ["sglang"]), tmp_path, "bench.sh")[0])
    assert (said["--gsp-system-prompt-len"], said["--gsp-question-len"]) == ("250", "750")


def test_memory_that_is_to_stay_free(tmp_path: Path):
    kept = {"overrides": {"usable_gib": 80.0, "reserve_gib": 8.0}}
    config = yaml.safe_load(texts(render(plan(memory_share=0.9).patch(kept), ["vllm"]))["vllm.yaml"])
    assert config["gpu-memory-utilization"] == 0.81
    (words,) = run(render(plan("sglang", memory_share=0.9).patch(kept), ["sglang"]), tmp_path)
    assert values(words)["--mem-fraction-static"] == "0.81"
    assert any("8 GiB" in need for need in render(plan("trtllm").patch(kept), ["trtllm"]).needs_from_user)


def test_another_version_is_said():
    assert any("0.9.1" in need for need in render(plan(software_version="0.9.1"), ["vllm"]).needs_from_user)
    assert not any("0.33" in need for need in render(plan(software_version="0.33.2"), ["vllm"]).needs_from_user)


def test_mlperf_files(tmp_path: Path):
    load = {"scenario": "server", "request_rate": 20.0, "input_len": 871, "output_len": 128}
    rendered = render(
        plan(count=4, layout={"tp": 2}, **load), ["mlperf"], PREDICTION, site=Site(dataset="/d/my eval.json")
    )
    conf = texts(rendered)["user.conf"]
    assert "llama3_1-8b.Server.target_qps = 10.000000" in conf.splitlines()
    assert "WARNING" not in conf
    reference = tmp_path / "reference" / "language" / "llama3.1-8b"
    reference.mkdir(parents=True)
    calls = run(rendered, tmp_path, "mlperf.sh", MLPERF_INFERENCE=str(tmp_path / "reference"))
    assert [words[1:3] for words in calls[:2]] == [["-u", "main.py"]] * 2
    assert (calls[2][1], len(calls)) == ("evaluation.py", 3)
    for words in calls[:2]:
        said = values(words[2:])
        assert (said["--scenario"], said["--tensor-parallel-size"], said["--dataset-path"]) == (
            "Server",
            "2",
            "/d/my eval.json",
        )
        assert said["--model-path"] == "meta-llama/Llama-3.1-8B-Instruct"
        assert said["--user-conf"] == str(tmp_path / "user.conf")
        assert set(said) <= set(KNOWN["main.py"])
    assert "--accuracy" in calls[1]
    assert set(values(calls[2][1:])) <= set(KNOWN["evaluation.py"])
    other = render(plan(scenario="offline", input_len=100, output_len=2000), ["mlperf"])
    assert "WARNING: the plan's prompts" in texts(other)["user.conf"]
    assert any("Offline.target_qps" in need for need in other.needs_from_user)


loads = st.fixed_dictionaries(
    {},
    optional={
        "input_len": st.floats(1, 1e6),
        "output_len": st.integers(1, 10**6),
        "output_spread": st.floats(0, 10),
        "concurrency": st.integers(1, 10**6),
        "request_rate": st.floats(1e-6, 1e6),
        "requests": st.integers(1, 10**6),
        "prefix_hit": st.floats(0, 0.999),
        "weight_dtype": st.sampled_from(["bf16", "fp16", "fp32", "fp8", "int8", "awq", "mxfp4", "nvfp4", "q4_k_m"]),
        "kv_dtype": st.sampled_from(["auto", "bf16", "fp16", "fp8", "int8", "fp4"]),
        "scenario": st.sampled_from(["offline", "server", "interactive", "single-stream", "static-batch"]),
        "max_batch": st.integers(1, 4096),
        "max_batched_tokens": st.integers(1, 10**6),
        "chunked_prefill": st.sampled_from([True, False, "auto"]),
        "cuda_graph": st.sampled_from([True, False, "auto"]),
        "memory_share": st.floats(0.01, 1),
        "max_context": st.integers(1, 10**6),
        "speculative_tokens": st.integers(1, 64),
        "draft_method": st.sampled_from(["auto", "mtp", "eagle3", "ngram"]),
        "ttft_slo_ms": st.floats(1e-3, 1e6),
    },
)
layouts = st.fixed_dictionaries({"tp": st.sampled_from([1, 2, 3, 8, 16]), "pp": st.sampled_from([1, 2])}) | st.just(
    {"tp": 2, "pp": 1, "dp": 4, "ep": 8}
)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(ENGINES), st.sampled_from([1, 8, 16, 48]), layouts, loads)
def test_files_agree_with_the_plan_or_it_is_refused(engine, count, layout, load):
    made = plan(engine, count, MOE, layout, **load)
    try:
        rendered = render(made, [engine])
    except PlanError as error:
        if error.field.split(".")[0] not in ("workload", "cluster", "layout"):
            raise
        return
    job, said = job_of(made), texts(rendered)
    assert job.replicas * job.replica_devices == count
    for name in ("serve.sh", "bench.sh"):
        assert said[name].startswith("#!/bin/sh\n")
        assert subprocess.run(["sh", "-n"], input=said[name], text=True, check=False).returncode == 0
    if engine == "vllm":
        config = yaml.safe_load(said["vllm.yaml"])
        product = (
            config["tensor-parallel-size"] * config["pipeline-parallel-size"] * config.get("data-parallel-size", 1)
        )
        assert product == job.replica_devices
        assert config["max-model-len"] == job.context
        assert config.get("max-num-seqs") == made.inference.max_batch
    elif engine == "trtllm":
        config = yaml.safe_load(said["trtllm.yaml"])
        assert config["tensor_parallel_size"] * config["pipeline_parallel_size"] == job.replica_devices
        assert set(config) <= set(KNOWN["trtllm-yaml"])
        assert set(config["kv_cache_config"]) <= set(KNOWN["kv_cache_config"])
        assert set(config.get("speculative_config", ())) <= set(KNOWN["speculative_config"])


@pytest.mark.parametrize(
    ("engine", "script"), [("trtllm", "serve.sh"), ("llamacpp", "serve.sh"), ("llamacpp", "bench.sh")]
)
@pytest.mark.parametrize(
    "load",
    [
        {},
        {"kv_dtype": "bf16", "max_batch": 16, "max_batched_tokens": 8192, "chunked_prefill": True, "cuda_graph": False},
        {"speculative_tokens": 2, "max_context": 4096, "prefix_hit": 0.2},
    ],
)
def test_options_are_the_programs(engine: str, script: str, load: dict[str, Any], tmp_path: Path):
    for program, *words in run(render(plan(engine, **load), [engine]), tmp_path, script):
        said = values(words)
        assert set(said) <= set(KNOWN[program])
        for name, value in said.items():
            assert value in KNOWN.get(f"{program} values", {}).get(name, [value])


hostile = st.sampled_from(
    [
        "$(touch owned)",
        "`touch owned`",
        "a'; touch owned; '",
        'a"; touch owned; "',
        "../../x",
        "ünï — x",
        "a b #c: d",
        "{}",
    ]
) | st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=40)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["vllm", "sglang"]), hostile)
def test_model_names_stay_inert(tmp_path_factory, engine, name):
    folder = tmp_path_factory.mktemp("inert")
    made = plan(engine, name=None).patch({"name": f"{name}\n$(touch owned)"})
    try:
        rendered = render(made, [engine], model_id=f"org/{name}")
    except PlanError as error:
        if error.field != "model":
            raise
        return
    model = f"org/{name}" if formats_of(f"org/{name}")[0] == "bf16" else "SET_ME_CHECKPOINT"
    if engine == "vllm":
        assert yaml.safe_load(texts(rendered)["vllm.yaml"])["model"] == model
    else:
        assert values(run(rendered, folder)[0])["--model-path"] == model
    assert values(run(rendered, folder, "bench.sh")[0])["--model"] == model
    assert not (folder / "owned").exists()


def test_every_field_of_a_serving_plan_has_a_place():
    """Where each field of the workload goes; a new one has to be thought of here."""
    said = {
        "files": {
            "weight_dtype", "kv_dtype", "engine", "max_batch", "max_batched_tokens", "chunked_prefill", "cuda_graph",
            "admission_steps", "memory_share", "max_context", "speculative_tokens", "draft_method", "software_version",
            "expert_exchange", "two_batch_overlap", "device_layers", "host_experts",
        },
        "benchmark": {
            "input_len", "output_len", "output_spread", "concurrency", "request_rate", "requests", "prefix_hit",
            "scenario", "ttft_slo_ms", "tpot_slo_ms", "visual_tokens",
        },
        "estimate alone": {
            "kind", "weight_bits", "acceptance", "images", "image_size", "video_frames", "slo_statistic",
        },
    }  # fmt: skip
    assert set().union(*said.values()) == set(Inference.model_fields)


def test_requests_are_taken_as_long_as_the_cache_has_room_for():
    """A mean is no limit: half of all real requests are longer."""
    small, large = (replace(SERVED, max_concurrency=count) for count in (4, 4000))
    length = plan().inference.input_len + plan().inference.output_len
    for prediction, most in ((small, 4 * length), (large, 131072)):
        config = yaml.safe_load(render(plan(), ["vllm"], prediction).files[0].text)
        assert length <= config["max-model-len"] <= most
    assert config["max-model-len"] == 131072
    said = yaml.safe_load(render(plan(max_context=3000), ["vllm"], large).files[0].text)
    assert said["max-model-len"] == 3000


def test_servers_listen_on_their_own_machine_unless_they_are_opened():
    script = next(file.text for file in render(plan(), ["vllm"]).files if file.path == "serve.sh")
    assert '"${HOST:=127.0.0.1}"' in script
    assert "VLLM_API_KEY" in script
    manifest = next(
        file.text for file in render(plan(), ["vllm", "kubernetes-deployment"]).files if file.path == "deployment.yaml"
    )
    (container,) = [
        row["spec"]["template"]["spec"]["containers"][0]
        for row in yaml.safe_load_all(manifest)
        if row and row["kind"] == "Deployment"
    ]
    names = {row["name"] for row in container["env"]}
    assert {"HOST", "VLLM_API_KEY", "HF_HOME"} <= names
    assert container["startupProbe"]["failureThreshold"] * container["startupProbe"]["periodSeconds"] >= 1800
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert int(container["lifecycle"]["preStop"]["exec"]["command"][1]) >= 15
