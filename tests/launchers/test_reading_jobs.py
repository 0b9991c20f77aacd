"""Containers, files that scripts write in themselves, Python scripts, and programs that we write no files for."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from scheduler_starts import serving

from estimator.errors import PlanError
from launchers.reading.result import FilesReading
from launchers.reading.sets import read
from launchers.render import render

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec:
  replicas: 2
  template:
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-mega-80gb}
      containers:
      - name: engine
        image: vllm/vllm-openai:latest
        args: ["--model", "meta-llama/Llama-3.1-70B-Instruct", "--tensor-parallel-size", "$(TP)"]
        env: [{name: TP, value: "4"}]
        resources: {limits: {nvidia.com/gpu: "4"}}
"""
TRAINJOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master: &pod
      replicas: 1
      template:
        spec:
          containers:
          - resources: {limits: {nvidia.com/gpu: 8}}
            command: [sh, -c, "torchrun --nproc_per_node=8 pretrain_gpt.py --num-layers 2 --micro-batch-size 4"]
    Worker: {<<: *pod, replicas: 3}
"""
SKYPILOT = """\
resources: {accelerators: "A100-80GB:8"}
num_nodes: 2
envs: {MODEL: meta-llama/Llama-3.1-8B}
run: |
  cat <<EOF > ds.json
  {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": $BATCH}
  EOF
  torchrun --nnodes $SKYPILOT_NUM_NODES --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE train.py \\
    --model_name_or_path $MODEL --per_device_train_batch_size 2 --deepspeed ds.json --bf16 true
"""
DSTACK = """\
type: task
nodes: 2
env: [HF_TOKEN, MODEL=meta-llama/Llama-3.1-8B]
commands:
  - pip install trl
  - |
    accelerate launch --num_processes $((DSTACK_NODES_NUM * DSTACK_GPUS_PER_NODE)) --num_machines $DSTACK_NODES_NUM \\
      --machine_rank $DSTACK_NODE_RANK --main_process_ip $DSTACK_MASTER_NODE_IP -m trl.scripts.sft \\
      --model_name_or_path $MODEL --per_device_train_batch_size 2 --use_peft --lora_r 16
resources: {gpu: "A100:80GB:8", shm_size: 16GB}
"""
COMPOSE = """\
services:
  engine:
    image: vllm/vllm-openai
    command: --model Qwen/Qwen2.5-72B-Instruct-AWQ --tensor-parallel-size ${TP:-2}
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}
"""
JOB = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gres=gpu:h100:8\nexport NODES=2\nsrun bash train.sh > log 2>&1\n"
TRAIN = """\
#!/bin/bash
cat > axo.yml <<'EOF'
base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
micro_batch_size: 2
EOF
axolotl train axo.yml --launcher torchrun -- --nnodes $NODES --nproc_per_node 8
"""
UNSLOTH = """\
from unsloth import FastLanguageModel, is_bfloat16_supported
from trl import SFTTrainer, SFTConfig
length = 2048
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Llama-3.2-3B", max_seq_length=length, load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=8, lora_alpha=16, use_gradient_checkpointing="unsloth")
trainer = SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4,
    bf16=is_bfloat16_supported(), fp16=not is_bfloat16_supported(), optim="adamw_8bit", output_dir=input()))
if False:
    model, tokenizer = FastLanguageModel.from_pretrained("lora_model")
"""
LITGPT = """\
checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3-8B
precision: bf16-true
quantize: bnb.nf4
lora_r: 32
train: {global_batch_size: 8, micro_batch_size: 2, max_seq_length: 512}
"""
NEMO = """\
run: {name: llama2_70b}
trainer: {num_nodes: 16, devices: 8, precision: bf16}
model:
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 5
  encoder_seq_length: 4096
  num_layers: 80
  hidden_size: 8192
  ffn_hidden_size: 28672
  num_attention_heads: 64
  num_query_groups: 8
  activations_checkpoint_granularity: null
  activations_checkpoint_method: block
  optim: {name: mcore_distributed_optim}
"""
PRIMUS = """\
modules:
  pre_trainer:
    framework: megatron
    model: ${PRIMUS_MODEL:llama3.1_8B}.yaml
    overrides: {micro_batch_size: "${BATCH:4}", seq_length: 8192, tensor_model_parallel_size: 1}
"""


def values(found: FilesReading) -> dict[str, Any]:
    return {row.field: row.value for row in found.assumed} | {row.field: row.value for row in found.read}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"d.yaml": DEPLOYMENT},
         {"layout.tp": 4, "cluster.count": 8, "cluster.accelerator": "h100-sxm", "workload.engine": "vllm"}),
        ({"p.yaml": TRAINJOB}, {"cluster.count": 32, "workload.micro_batch": 4}),
        ({"t.yaml": SKYPILOT},
         {"cluster.count": 16, "cluster.accelerator": "a100-sxm-80gb", "layout.zero_stage": 3,
          "model": "meta-llama/Llama-3.1-8B"}),
        ({"job.dstack.yml": DSTACK},
         {"cluster.count": 16, "cluster.accelerator": "a100-sxm-80gb", "workload.micro_batch": 2,
          "workload.lora.rank": 16, "model": "meta-llama/Llama-3.1-8B"}),
        ({"compose.yaml": COMPOSE}, {"cluster.count": 2, "layout.tp": 2, "workload.weight_dtype": "awq"}),
        ({"job.sbatch": JOB, "train.sh": TRAIN},
         {"cluster.count": 16, "cluster.accelerator": "h100-sxm", "workload.lora.rank": 16, "workload.lora.alpha": 32,
          "workload.global_batch": 32}),
        ({"train.py": UNSLOTH},
         {"model": "unsloth/Llama-3.2-3B", "workload.method": "qlora", "workload.framework": "unsloth",
          "workload.precision": "bf16", "layout.offload": "activations", "accumulation": 4}),
        ({"l.yaml": LITGPT},
         {"workload.method": "qlora", "workload.lora.quantisation": "nf4-single", "cluster.count": 1,
          "workload.lora.targets": "q_proj,v_proj"}),
        ({"n.yaml": NEMO},
         {"model": "meta-llama/Llama-2-70b-hf", "layout.vpp": 5, "layout.zero_stage": 1, "layout.dp": 8,
          "layout.recompute": "none"}),
        ({"p.yaml": PRIMUS}, {"model": "meta-llama/Llama-3.1-8B", "workload.micro_batch": 4, "layout.zero_stage": 1}),
        ({"c": "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v1 --model Qwen/Qwen3-8B -tp 2"}, {"layout.tp": 2}),
        ({"c": "llama-server -hf x/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M -c 16384 -np 4"},
         {"model": "meta-llama/Llama-3.1-8B-Instruct", "workload.weight_dtype": "q4_k_m",
          "workload.max_context": 4096}),
        ({"c": "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen3-8B --train_type lora --max_length 2048 --deepspeed zero3 "
          "--gradient_accumulation_steps 2"},
         {"workload.framework": "deepspeed", "workload.method": "lora", "layout.zero_stage": 3, "cluster.count": 4}),
        ({"c": "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-8b per_device_batch_size=4 "
          "ici_fsdp_parallelism=-1 remat_policy=full max_target_length=8192"},
         {"model": "meta-llama/Llama-3.1-8B", "workload.micro_batch": 4, "layout.zero_stage": 3}),
        ({"c": "sh -c 'trtllm-serve serve Qwen/Qwen3-8B --tp_size 2 --max_batch_size 8'"},
         {"layout.tp": 2, "workload.max_batch": 8, "workload.engine": "trtllm"}),
    ],
)  # fmt: skip
def test_values(files: dict[str, str], expected: dict[str, Any]):
    read_values = values(read(files))
    assert {name: read_values.get(name) for name in expected} == expected


def test_a_script_that_is_started_and_not_given_is_named():
    assert list(read({"job.sbatch": JOB}).refers) == ["train.sh"]


def test_what_a_script_writes_wins_over_a_file_beside_it():
    found = read({"train.sh": TRAIN, "axo.yml": "base_model: Qwen/Qwen3-8B\nsequence_len: 512\n"})
    assert values(found)["model"] == "meta-llama/Llama-3.1-8B"
    assert any("differ" in text for text in found.warnings)


def test_the_comment_of_our_files_gives_way_to_what_they_say():
    plan = "# Shardwise\n# plan: Qwen/Qwen3-8B, sft full, 8 x h100-sxm (1 x 8), zero 3\n"
    script = f"#!/bin/bash\n{plan}torchrun --standalone --nproc_per_node 4 train.py --seq-len 64 --micro-batch 1\n"
    read_values = values(read({"torchrun.sh": script}))
    assert (read_values["cluster.count"], read_values["cluster.accelerator"]) == (4, "h100-sxm")


@pytest.mark.parametrize("gres", ["gpu:v100:8", "gpu:volta:2", "gpu:tesla:1"])
def test_a_name_of_several_devices_stays_open(gres: str):
    assert "cluster.accelerator" not in values(
        read({"j.sbatch": f"#!/bin/bash\n#SBATCH --gres={gres}\nsrun bash x.sh\n"})
    )


@pytest.mark.parametrize(
    "script", ["tools/run_text_generation_server.py", "pretrain_bert.py", "tasks/main.py", "pretrain_t5.py"]
)
def test_megatron_arguments_of_what_is_no_training_get_no_verdict(script: str):
    found = read({"c": f"torchrun --nproc_per_node 8 {script} --num-layers 2 --micro-batch-size 1"})
    assert "workload" in found.blocked


@pytest.mark.parametrize(
    "text",
    [
        "services: 3", "apiVersion: v1\nkind: Pod", "apiVersion: v1\nkind: Pod\nspec: [1]",
        "run: 7\nresources: {}",
        "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [1, {command: 7, env: x}]}}}",
        "resources: {accelerators: [A100, H100]}\nrun: echo hi", "[" * 100_000, "services: {a: {command: \"'\"}}",
    ],
)  # fmt: skip
def test_broken_jobs_are_refused_in_words(text: str):
    with pytest.raises(PlanError):
        read({"x.yaml": text})


@pytest.mark.parametrize("text", ["import x\n(", "import os", "from trl import SFTConfig\nSFTConfig(**{1: 2})", "\0"])
def test_broken_python_is_refused_or_left(text: str):
    with contextlib.suppress(PlanError):
        assert not read({"x.py": text}).plan.get("model")


def test_kserve_starts_vllm_with_the_options_of_its_runtime() -> None:
    text = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: llama}
spec:
  predictor:
    minReplicas: 2
    model:
      modelFormat: {name: huggingface}
      args: [--model_id=meta-llama/Llama-3.1-8B-Instruct, --max_length=8192, --tensor-parallel-size, 2]
      resources: {limits: {nvidia.com/gpu: "2"}}
"""
    reading = read({"isvc.yaml": text})
    assert reading.plan["model"] == "meta-llama/Llama-3.1-8B-Instruct"
    assert reading.plan["layout"]["tp"] == 2
    assert reading.plan["cluster"]["count"] == 4
    assert reading.plan["workload"]["engine"] == "vllm"


DYNAMO = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: vllm}
spec:
  services:
    Frontend: {componentType: frontend, replicas: 1, extraPodSpec: {mainContainer: {image: "vllm-runtime:1"}}}
    Worker:
      componentType: worker
      replicas: 3
      resources: {limits: {gpu: "2"}}
      extraPodSpec:
        mainContainer:
          command: [python3, -m, dynamo.vllm]
          args: [--model, Qwen/Qwen3-32B, --tensor-parallel-size, "2", --max-model-len, "8192"]
"""


def test_dynamo_starts_vllm_with_its_options() -> None:
    plan = read({"agg.yaml": DYNAMO}).plan
    assert (plan["model"], plan["workload"]["max_context"]) == ("Qwen/Qwen3-32B", 8192)
    assert (plan["layout"]["tp"], plan["cluster"]["count"]) == (2, 6)
    split = DYNAMO.replace('"8192"', '"8192", --disaggregation-mode, prefill')
    assert "other devices" in read({"disagg.yaml": split}).blocked["workload"]


def test_llm_d_gives_vllm_its_parallelism_and_more_options() -> None:
    text = """
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: qwen}
spec:
  replicas: 2
  model: {uri: hf://Qwen/Qwen3-32B, name: Qwen/Qwen3-32B}
  parallelism: {tensor: 4}
  template:
    containers:
      - name: main
        env: [{name: VLLM_ADDITIONAL_ARGS, value: "--max-model-len 8192"}]
        resources: {limits: {nvidia.com/gpu: "4"}}
"""
    plan = read({"llm.yaml": text}).plan
    assert (plan["model"], plan["layout"]["tp"], plan["cluster"]["count"]) == ("Qwen/Qwen3-32B", 4, 8)
    assert plan["workload"]["max_context"] == 8192
    split = text.replace("  template:", "  prefill: {replicas: 1}\n  template:", 1)
    assert "other devices" in read({"llm.yaml": split}).blocked["workload"]


@pytest.mark.parametrize("target", ["dynamo", "llm-d"])
def test_what_starts_vllm_by_itself_is_read_back(target: str) -> None:
    plan = serving(16, tp=4)
    files = render(plan, ["vllm", target], None).files
    reading = read({file.path: file.text for file in files if file.target == target})
    assert (reading.plan["model"], reading.plan["cluster"]["count"]) == (plan.model, 16)
    assert (reading.plan["layout"]["tp"], reading.blocked) == (4, {})


def test_models_of_ray_serve_llm():
    config = """
applications:
- name: llm
  import_path: ray.serve.llm:build_openai_app
  args:
    llm_configs:
    - model_loading_config: {model_id: chat, model_source: Qwen/Qwen3-32B}
      accelerator_type: H100
      engine_kwargs: {tensor_parallel_size: 2, max_model_len: 8192, enable_prefix_caching: true}
      deployment_config: {num_replicas: 3}
"""
    alone = read({"serve.yaml": config}, {"cluster.accelerator": "h100-sxm"})
    assert alone.plan["model"] == "Qwen/Qwen3-32B"
    assert alone.plan["workload"]["engine"] == "vllm"
    assert alone.plan["workload"]["max_context"] == 8192
    assert alone.plan["layout"]["tp"] == 2
    assert alone.plan["cluster"]["count"] == 6
    inside = "".join(f"    {line}\n" for line in config.splitlines())
    service = (
        f"apiVersion: ray.io/v1\nkind: RayService\nspec:\n  serveConfigV2: |\n{inside}  rayClusterConfig:\n"
        "    workerGroupSpecs:\n    - replicas: 1\n      template: {spec: {containers: [{name: a, resources: "
        "{limits: {nvidia.com/gpu: '8'}}}]}}\n"
    )
    found = read({"service.yaml": service}, {"cluster.accelerator": "h100-sxm"})
    assert found.plan["layout"]["tp"] == 2
    assert found.plan["cluster"]["count"] == 8


_SWIFT = "registry.example/modelscope-repo/modelscope:ubuntu22.04-torch2.11.0-vllm0.25.1-swift4.4.3"
_TRAINS = "swift sft --model Qwen/Qwen3-8B --per_device_train_batch_size 1 --max_length 4096 --packing true"


def test_a_tag_that_names_an_engine_makes_no_server() -> None:
    compose = f"services:\n  train:\n    image: {_SWIFT}\n    command: {_TRAINS}\n"
    found = read({"compose.yaml": compose})
    assert found.plan["workload"]["stage"] == "sft"
    served = "services:\n  serve:\n    image: vllm/vllm-openai:v0.33.0\n    command: --model Qwen/Qwen3-8B\n"
    assert read({"compose.yaml": served}).plan["workload"]["kind"] == "inference"


@pytest.mark.parametrize(
    ("given", "devices"),
    [("--gpus all -e NPROC_PER_NODE=8", 8), ("--gpus 2", 2), ("--gpus '\"device=0,1,3\"' --env=A=b", 3)],
)
def test_a_container_hands_on_variables_and_devices(given: str, devices: int) -> None:
    found = read({"run.sh": f"docker run --rm {given} {_SWIFT} {_TRAINS}"})
    assert [row.value for row in found.read if row.field == "per_node"] == [devices]


def test_services_that_see_a_device_each_have_as_many_as_they_are() -> None:
    service = "image: vllm/vllm-openai-rocm\n    command: --model Qwen/Qwen3-8B\n"
    service += "    environment: {HIP_VISIBLE_DEVICES: '%d'}\n"
    text = "services:\n" + "".join(f"  replica-{rank}:\n    {service % rank}" for rank in range(4))
    assert read({"compose.yaml": text}).plan["cluster"]["count"] == 4


_GGUF = "-m /models/Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf -c 65536 -ngl 99 --parallel 2"
_LLAMACPP = "ghcr.io/ggml-org/llama.cpp"


def _in_words(text: str) -> str:
    return json.dumps(text.split())


@pytest.mark.parametrize(
    ("tag", "arguments"),
    [
        (":server-cuda", _GGUF),
        (":server", _GGUF),
        (":full", f"--server {_GGUF}"),
        (":full-cuda@sha256:0a", f"-s {_GGUF}"),
    ],
)
@pytest.mark.parametrize(
    "file",
    [
        "services:\n  llm:\n    image: {image}\n    command: {arguments}\n",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - {{image: '{image}', args: {words}}}\n",
        "docker run --gpus all -v /x:/models -p 8080:8080 {image} {arguments}\n",
        "ARG IMAGE={image}\nFROM ${{IMAGE}} AS base\nFROM base\nCMD {words}\n",
    ],
)
def test_an_image_starts_its_server_with_what_it_is_given(file: str, tag: str, arguments: str) -> None:
    text = file.format(image=f"{_LLAMACPP}{tag}", arguments=arguments, words=_in_words(arguments))
    plan = read({"job": text}).plan
    assert plan["model"] == "Qwen/Qwen3-Coder-30B-A3B-Instruct"
    workload = plan["workload"]
    assert (workload["engine"], workload["weight_dtype"]) == ("llamacpp", "q4_k_m")
    assert (workload["max_batch"], workload["max_context"]) == (2, 32768)


@pytest.mark.parametrize(("tag", "arguments"), [(":light", _GGUF), (":full", f"--run {_GGUF}")])
def test_an_image_that_starts_another_program_is_no_server(tag: str, arguments: str) -> None:
    with pytest.raises(PlanError, match="starts no program"):
        read({"compose.yaml": f"services:\n  llm:\n    image: {_LLAMACPP}{tag}\n    command: {arguments}\n"})


@pytest.mark.parametrize(
    ("instructions", "engine"),
    [
        ('FROM vllm/vllm-openai:v0.9\nCMD ["--model", \\\n  "Qwen/Qwen3-8B"]', "vllm"),
        ('FROM lmsysorg/sglang:latest\nCMD ["--model-path", "Qwen/Qwen3-8B"]', "sglang"),
        (
            "FROM lmsysorg/sglang\nENV NAME=Qwen/Qwen3-8B\nCMD python3 -m sglang.launch_server --model-path $NAME",
            "sglang",
        ),
        ('FROM vllm/vllm-openai\nCMD ["--model", "x"]\nENTRYPOINT vllm serve Qwen/Qwen3-8B', "vllm"),
        ('FROM python:3.12\nENTRYPOINT ["vllm", "serve"]\nCMD ["Qwen/Qwen3-8B"]', "vllm"),
        ('FROM vllm/vllm-openai AS a\nCMD ["bash"]\nFROM a\nCMD ["--model", "Qwen/Qwen3-8B"]', "vllm"),
    ],
)
def test_a_dockerfile_starts_the_command_of_its_last_stage(instructions: str, engine: str) -> None:
    plan = read({"Dockerfile": f"# syntax=docker/dockerfile:1\n{instructions}\n"}).plan
    assert (plan["workload"]["engine"], plan["model"]) == (engine, "Qwen/Qwen3-8B")


_OLLAMA = 'FROM {}\nPARAMETER num_ctx 16384\nPARAMETER temperature 0.2\nSYSTEM """\nbe\nbrief\n"""\n'


@pytest.mark.parametrize(
    ("base", "model"),
    [("llama3.1:8b", "llama3.1:8b"), ("./qwen2.5-7b-instruct-q4_k_m.gguf", "Qwen/Qwen2.5-7B-Instruct")],
)
def test_a_modelfile_is_a_server_of_ollama(base: str, model: str):
    found = read({"Modelfile": _OLLAMA.format(base)})
    assert found.plan["model"] == model
    assert found.plan["workload"]["engine"] == "ollama"
    assert found.plan["workload"]["max_context"] == 16384


def test_ollama_is_told_by_its_environment():
    served = "export OLLAMA_NUM_PARALLEL=4 OLLAMA_CONTEXT_LENGTH=8192\nollama serve &\nollama run qwen3:8b\n"
    plan = read({"serve.sh": served}).plan
    assert plan["model"] == "qwen3:8b"
    assert plan["workload"] == {"kind": "inference", "engine": "ollama", "max_batch": 4, "max_context": 8192}
    compose = "services:\n  a:\n    image: ollama/ollama\n    environment: [OLLAMA_KV_CACHE_TYPE=q8_0]\n"
    assert read({"compose.yaml": compose}).plan["workload"]["kv_dtype"] == "int8"
    made = "ollama create mine -f Modelfile\nollama run mine\n"
    assert read({"a.sh": made, "Modelfile": _OLLAMA.format("llama3.1:8b")}).plan["model"] == "llama3.1:8b"


def test_variables_of_llama_server_give_way_to_its_options():
    environment = "LLAMA_ARG_HF_REPO: unsloth/Qwen3-8B-GGUF:Q4_K_M, LLAMA_ARG_CTX_SIZE: 16384, LLAMA_ARG_N_PARALLEL: 2"
    image = "services:\n  a:\n    image: ghcr.io/ggml-org/llama.cpp:server-cuda\n"
    text = f"{image}    environment: {{{environment}}}\n"
    own = read({"compose.yaml": text}).plan
    assert own["model"] == "Qwen/Qwen3-8B"
    assert own["workload"]["max_context"] == 8192
    told = read({"compose.yaml": text + "    command: [--ctx-size, '4096']\n"}).plan
    assert told["workload"]["max_context"] == 2048


def test_an_engine_of_which_no_speeds_are_known_is_named():
    text = "docker run ghcr.io/huggingface/text-generation-inference:3 --model-id Qwen/Qwen3-8B --num-shard 2\n"
    found = read({"a.sh": text})
    assert "--engine vllm" in found.blocked["workload.engine"]
    assert found.plan["layout"]["tp"] == 2
    image = (
        "services:\n  a:\n    image: ghcr.io/huggingface/text-generation-inference\n    environment: {NUM_SHARD: 4}\n"
    )
    assert read({"compose.yaml": image}).plan["layout"]["tp"] == 4


@pytest.mark.parametrize(("option", "field"), [("--max-num-seq", "max_batch"), ("--max-model", "max_context")])
def test_options_by_the_beginning_of_their_names(option: str, field: str):
    plan = read({"a.sh": f"vllm serve Qwen/Qwen3-8B {option} 64\n"}).plan
    assert plan["workload"][field] == 64


def test_a_layout_in_words_that_an_engine_does_not_have_stops_the_verdict():
    assert "layout.tp" in read({"a.sh": "vllm serve Qwen/Qwen3-8B --tensor-parallel-degree 4\n"}).blocked


def test_an_experiment_of_beaker():
    text = (
        "version: v2\ntasks:\n- image: {beaker: x}\n  replicas: 2\n  command: [/bin/sh, -c]\n"
        "  arguments: ['torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --micro-batch-size 4']\n"
        "  resources: {gpuCount: 8}\n"
    )
    found = read({"run.yaml": text})
    assert found.plan["cluster"]["count"] == 16
    assert found.plan["workload"]["micro_batch"] == 4


@pytest.mark.parametrize(
    "around", ["roles: [{replicas: 2, %s}]", "jobTemplate: {spec: {parallelism: 2, replicas: 2, %s}}"]
)
def test_pods_of_any_kind_are_found_where_their_templates_stand(around: str):
    pod = (
        "template: {spec: {containers: [{name: a, image: vllm/vllm-openai, command: [vllm, serve, Qwen/Qwen3-8B], "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}}"
    )
    text = (
        f"apiVersion: example.com/v1\nkind: OfSomebody\nmetadata: {{name: a}}\nspec: {{replicas: 2, {around % pod}}}\n"
    )
    found = read({"a.yaml": text})
    assert found.plan["model"] == "Qwen/Qwen3-8B"
    assert found.plan["cluster"]["count"] == 4
