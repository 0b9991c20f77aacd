"""The table of launch targets: a row here and a folder below launchers make one (docs/how-to/add-a-launch-target.md).

The folder holds
- write.py: `render`, which makes its files. Of role
  - config:    `render(launch) -> Piece`, a file that a program reads which another target starts;
  - program:   `render(launch) -> Piece` with its `start`: the training program or the engine;
  - scheduler: `render(launch, start, files) -> Piece`, which starts that program on every node and brings it the set's
    other `files` where nodes do not share a folder; the row's `launch` is its command;
  - place:     `render(launch) -> Piece`, what is set up once for a scheduler that runs are started by;
- refusals.yaml: what it cannot say of a plan or would not run (`launchers.rules`);
- fields.yaml: how it says a plan's words;
- read.py, of configs and programs: the way back (`launchers.reading.formats`), and leftovers.yaml: keys that are known
  and have no place in a Plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from launchers.hf.sharding import backend_of, uses_fsdp

if TYPE_CHECKING:
    from estimator.plan.schema import Plan

Role = Literal["config", "program", "scheduler", "place"]
Kind = Literal["training", "inference"]


def _nothing(plan: Plan) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Target:
    """`folder` is below launchers. `refers_to` names the targets whose files this one's file refers to for a plan.

    `launch` is what starts the set from its folder where a scheduler is in it, `serve` what starts that of a served
    model where it is another command.
    """

    folder: str
    role: Role
    description: str
    kinds: tuple[Kind, ...] = ("training",)
    refers_to: Callable[[Plan], tuple[str, ...]] = _nothing
    launch: str = ""
    serve: str = ""

    @property
    def package(self) -> str:
        """The folder as Python imports it."""
        return f"launchers.{self.folder.replace('/', '.')}"


def _deepspeed_if_sharded(plan: Plan) -> tuple[str, ...]:
    return ("deepspeed",) if backend_of(plan) == "deepspeed" else ()


def _deepspeed_if_named(plan: Plan) -> tuple[str, ...]:
    named = plan.training.framework in ("auto", "deepspeed")
    return ("deepspeed",) if named and plan.layout.zero_stage else ()


def _deepspeed_of_framework(plan: Plan) -> tuple[str, ...]:
    return ("deepspeed",) if plan.training.framework == "deepspeed" else ()


def _fsdp_or_deepspeed(plan: Plan) -> tuple[str, ...]:
    return ("accelerate",) if uses_fsdp(plan) else _deepspeed_if_sharded(plan)


def _deepspeed(plan: Plan) -> tuple[str, ...]:
    return ("deepspeed",)


def _accelerate(plan: Plan) -> tuple[str, ...]:
    return ("accelerate",)


def _slurm(plan: Plan) -> tuple[str, ...]:
    return ("slurm",)


# In the order of files in a set.
TARGETS: dict[str, Target] = {
    "deepspeed": Target("deepspeed", "config", "DeepSpeed JSON: ZeRO stage, offload, precision, batch sizes"),
    "accelerate": Target(
        "accelerate",
        "config",
        "accelerate YAML: FSDP2, FSDP1, DeepSpeed or DDP, with tensor and context parallel sizes",
        refers_to=_deepspeed_if_sharded,
    ),
    "llamafactory": Target(
        "llamafactory",
        "program",
        "LlamaFactory YAML: pretraining, SFT and preference training, full, freeze, LoRA, QLoRA, DoRA, PiSSA",
        refers_to=_fsdp_or_deepspeed,
    ),
    "trl": Target(
        "trl",
        "program",
        "TRL YAML: SFT, DPO, KTO, reward training and GRPO with or without vLLM; full, LoRA, QLoRA, DoRA",
        refers_to=_accelerate,
    ),
    "axolotl": Target(
        "axolotl",
        "program",
        "Axolotl YAML: SFT, preference training and GRPO with FSDP2, tensor and context parallelism; full, LoRA, QLoRA",
        refers_to=_deepspeed_if_sharded,
    ),
    "torchtune": Target(
        "torchtune",
        "program",
        "torchtune YAML of a recipe: full, LoRA and QLoRA fine-tuning and DPO, on one device or with FSDP2",
    ),
    "unsloth": Target(
        "unsloth",
        "program",
        "Unsloth Python script: full, LoRA and QLoRA fine-tuning, preferences and GRPO, one process per device",
    ),
    "ms-swift": Target(
        "ms_swift",
        "program",
        "ms-swift Bash script: pretraining, SFT, preference and reward training, GRPO; full, LoRA, QLoRA, DoRA",
        refers_to=_deepspeed_of_framework,
    ),
    "verl": Target(
        "verl",
        "program",
        "verl Bash script: GRPO and PPO with vLLM on the same devices over Ray, and SFT, with FSDP; full and LoRA",
    ),
    "openrlhf": Target(
        "openrlhf",
        "program",
        "OpenRLHF Bash script: GRPO and PPO with vLLM on the same devices over Ray, SFT, DPO, reward models",
    ),
    "nemo-rl": Target(
        "nemo_rl",
        "program",
        "NeMo RL YAML and Bash script: SFT, DPO and GRPO with Megatron's TP, PP, CP and EP over Ray; full and LoRA",
    ),
    "slime": Target(
        "slime",
        "program",
        "slime Bash script: GRPO with SGLang on the same devices over Ray, and SFT, with Megatron's TP, PP, CP and EP",
    ),
    "prime-rl": Target(
        "prime_rl",
        "program",
        "prime-rl TOML: SFT, and GRPO beside an engine, with FSDP2, context and expert parallelism; full and LoRA",
    ),
    "torchrun": Target(
        "torchrun",
        "program",
        "torchrun Bash script of your own training script, which is given the plan as arguments",
        refers_to=_deepspeed_if_named,
    ),
    "megatron-lm": Target(
        "megatron",
        "program",
        "Megatron-LM Bash script: pretraining and SFT of GPT architectures with TP, PP, CP, EP, ZeRO-1 or FSDP",
    ),
    "torchtitan": Target(
        "torchtitan",
        "program",
        "torchtitan Bash script of a registered config: pretraining with FSDP2, TP, PP, CP and EP",
    ),
    "megatron-bridge": Target(
        "megatron_bridge",
        "program",
        "Megatron-Bridge (NeMo) Bash script of a recipe: pretraining and SFT, full, LoRA, DoRA, with TP, PP, CP and EP",
    ),
    "nemo-automodel": Target(
        "nemo_automodel",
        "program",
        "NeMo AutoModel YAML: SFT with FSDP2 or DDP, tensor and context parallelism; full, LoRA, QLoRA, DoRA",
    ),
    "nanotron": Target(
        "nanotron", "program", "nanotron YAML: pretraining of Llama architectures with TP, PP, CP and ZeRO-1"
    ),
    "primus": Target("primus", "program", "Primus YAML for AMD devices: pretraining with Megatron's TP, PP, CP and EP"),
    "mlx": Target("mlx", "program", "mlx-lm YAML for Macs: LoRA, QLoRA and DoRA fine-tuning on Apple silicon"),
    "optimum-habana": Target(
        "optimum_habana",
        "program",
        "Optimum Habana Python script for Gaudi: pretraining and SFT with DeepSpeed's ZeRO; full, LoRA",
        refers_to=_deepspeed,
    ),
    "optimum-neuron": Target(
        "optimum_neuron",
        "program",
        "Optimum Neuron Python script for Trainium: pretraining and SFT with TP, PP and ZeRO-1; full, LoRA",
    ),
    "vllm": Target(
        "engines/vllm",
        "program",
        "vLLM YAML, start script and benchmark: tensor, pipeline, data and expert parallel, on any number of nodes",
        kinds=("inference",),
    ),
    "sglang": Target(
        "engines/sglang",
        "program",
        "SGLang start script and benchmark: tensor, pipeline, data and expert parallel, on any number of nodes",
        kinds=("inference",),
    ),
    "trtllm": Target(
        "engines/trtllm",
        "program",
        "TensorRT-LLM YAML for trtllm-serve, start script and benchmark, on one node",
        kinds=("inference",),
    ),
    "llamacpp": Target(
        "engines/llamacpp",
        "program",
        "llama-server start script and llama-batched-bench: GGUF weights, layers split over the devices of a node",
        kinds=("inference",),
    ),
    "mlx-server": Target(
        "engines/mlx",
        "program",
        "mlx_lm.server start script and mlx_lm.benchmark, on one Mac; weights in 16, 8 or 4 bits",
        kinds=("inference",),
    ),
    "mlperf": Target(
        "engines/mlperf",
        "program",
        "MLPerf Inference: user.conf and the performance and accuracy runs of the Llama-3.1-8B reference on vLLM",
        kinds=("inference",),
    ),
    "maxtext": Target("maxtext", "program", "MaxText YAML for TPUs: pretraining with FSDP, TP, CP and EP over slices"),
    "slurm": Target(
        "schedulers/slurm",
        "scheduler",
        "Slurm sbatch script that starts the run on every node",
        kinds=("training", "inference"),
        launch="sbatch job.sbatch",
    ),
    "kubernetes-trainjob": Target(
        "schedulers/kubernetes/trainjob",
        "scheduler",
        "Kubernetes TrainJob (Kubeflow Trainer v2) with the files in a ConfigMap",
        launch="kubectl apply -f trainjob.yaml",
    ),
    "kubernetes-pytorchjob": Target(
        "schedulers/kubernetes/pytorchjob",
        "scheduler",
        "Kubernetes PyTorchJob (Kubeflow Training Operator v1) with the files in a ConfigMap",
        launch="kubectl apply -f pytorchjob.yaml",
    ),
    "kubernetes-jobset": Target(
        "schedulers/kubernetes/jobset",
        "scheduler",
        "Kubernetes JobSet of one indexed job with the files in a ConfigMap",
        kinds=("training", "inference"),
        launch="kubectl apply -f jobset.yaml",
    ),
    "kubernetes-volcano": Target(
        "schedulers/kubernetes/volcano",
        "scheduler",
        "Volcano Job: a pod per node, all placed together or none (gang scheduling), with the files in a ConfigMap",
        launch="kubectl apply -f volcano.yaml",
    ),
    "kubernetes-rayjob": Target(
        "schedulers/kubernetes/rayjob",
        "scheduler",
        "KubeRay RayJob: Ray programs on its cluster, others on each of its nodes by Ray Train",
        launch="kubectl apply -f rayjob.yaml",
    ),
    "kubernetes-lws": Target(
        "schedulers/kubernetes/lws",
        "scheduler",
        "Kubernetes LeaderWorkerSet and Service: replicas of several nodes",
        kinds=("inference",),
        launch="kubectl apply -f lws.yaml",
    ),
    "kubernetes-deployment": Target(
        "schedulers/kubernetes/deployment",
        "scheduler",
        "Kubernetes Deployment and Service: replicas of at most one node",
        kinds=("inference",),
        launch="kubectl apply -f deployment.yaml",
    ),
    "kubernetes-kserve": Target(
        "schedulers/kubernetes/kserve",
        "scheduler",
        "KServe InferenceService: replicas of at most one node",
        kinds=("inference",),
        launch="kubectl apply -f kserve.yaml",
    ),
    "production-stack": Target(
        "schedulers/kubernetes/production_stack",
        "scheduler",
        "Values of the vLLM production stack's Helm chart: replicas of at most one node behind its router",
        kinds=("inference",),
        launch="helm upgrade --install vllm-stack vllm-stack "
        "--repo https://vllm-project.github.io/production-stack --version 0.1.12 -f vllm-stack.yaml",
    ),
    "dynamo": Target(
        "schedulers/kubernetes/dynamo",
        "scheduler",
        "NVIDIA Dynamo deployment: vLLM replicas of at most one node behind its frontend, prompts and answers together",
        kinds=("inference",),
        launch="kubectl apply -f dynamo.yaml",
    ),
    "llm-d": Target(
        "schedulers/kubernetes/llm_d",
        "scheduler",
        "KServe LLMInferenceService: vLLM replicas of at most one node behind llm-d's scheduler",
        kinds=("inference",),
        launch="kubectl apply -f llm-d.yaml",
    ),
    "xpk": Target(
        "schedulers/xpk", "scheduler", "xpk command: a JobSet of TPU slices on Google's GKE", launch="sh xpk.sh"
    ),
    "torchx": Target(
        "schedulers/torchx",
        "scheduler",
        "TorchX run line for Slurm or Kubernetes (Volcano), of a run or of one server",
        kinds=("training", "inference"),
        launch="sh torchx.sh",
    ),
    "skypilot": Target(
        "schedulers/skypilot",
        "scheduler",
        "SkyPilot task or managed job, or service where a model is served, on any cloud",
        kinds=("training", "inference"),
        launch="sky launch skypilot.yaml",
        serve="sky serve up --secret API_KEY skypilot.yaml",
    ),
    "dstack": Target(
        "schedulers/dstack",
        "scheduler",
        "dstack task, or service where a model is served, on any cloud or cluster of one's own",
        kinds=("training", "inference"),
        launch="dstack apply -f job.dstack.yml",
    ),
    "ssh": Target(
        "schedulers/ssh",
        "scheduler",
        "Bash script that starts every node over ssh, shows their output and stops all when one fails",
        kinds=("training", "inference"),
        launch="bash ssh.sh",
    ),
    "compose": Target(
        "schedulers/compose",
        "scheduler",
        "Docker Compose file for one node",
        kinds=("training", "inference"),
        launch="docker compose up",
    ),
    "parallelcluster": Target(
        "places/parallelcluster",
        "place",
        "AWS ParallelCluster configuration: a Slurm cluster of the plan's instances with EFA and FSx for Lustre",
        kinds=("training", "inference"),
        refers_to=_slurm,
    ),
    "hyperpod": Target(
        "places/hyperpod",
        "place",
        "SageMaker HyperPod request: a Slurm cluster of the plan's instances whose failed nodes are replaced",
        kinds=("training", "inference"),
        refers_to=_slurm,
    ),
    "namespace": Target(
        "places/namespace",
        "place",
        "Kubernetes Namespace with a quota of devices, rights (RBAC) and a network policy, for an administrator",
        kinds=("training", "inference"),
    ),
}


def target_descriptions() -> dict[str, str]:
    """What each target writes, by its name."""
    return {name: target.description for name, target in TARGETS.items()}


def scheduler_command(targets: Sequence[str], kind: str) -> str:
    """What starts the set of `targets` for a plan of training or inference: its first scheduler's command, '' where
    none is in it."""
    rows = [TARGETS[name] for name in targets]
    return next(((kind == "inference" and row.serve) or row.launch for row in rows if row.launch), "")
