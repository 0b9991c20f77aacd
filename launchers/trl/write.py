"""TRL 0.24: the YAML of its SFT, DPO, KTO, reward or GRPO script, which accelerate starts with its target's file.

The YAML does not carry the number of devices: accelerate's file does. Words: data/trl.yaml and data/hf_arguments.yaml.
"""

from __future__ import annotations

from estimator.errors import PlanError
from launchers import File, Piece, Start
from launchers.hf.adapters import checkpoint, embedding_modules, target_modules, whole_alpha
from launchers.hf.sharding import backend_of, uses_fsdp
from launchers.hf.write import batch_comment, learning_rate, length, optimizer, packages
from launchers.job import Job, heading
from launchers.shell.starting import accelerate_launch
from launchers.tables import table
from launchers.yaml_text import Tree, document

PATH = "trl.yaml"
_DATASET = "SET_ME_DATASET"
_REWARD = "SET_ME_REWARD"
_SERVER = "SET_ME_HOST"


def render(job: Job) -> Piece:
    """The YAML, its launch through accelerate, and what the user must set."""
    words, common = table("trl"), table("hf_arguments")
    training = job.training
    stage = words["stages"][training.stage]
    needs: list[str] = []
    comments = {
        "gradient_accumulation_steps": batch_comment(job),
        "learning_rate": "a value to start from; yours to choose",
    }
    sections: dict[str, dict[str, Tree]] = {
        "model": _model(job, needs, comments),
        "data": _data(job, needs, comments),
        "method": stage["fields"] | (_generation(job, needs, comments) if training.stage == "grpo" else {}),
        "batch": {
            "per_device_train_batch_size": job.micro_batch,
            "gradient_accumulation_steps": job.accumulation,
        },
        "precision and optimizer": {
            **(common["precisions"][training.precision] if training.weights != "bf16" else {"bf16": False}),
            **optimizer(job),
            "learning_rate": learning_rate(job),
        },
        "memory and speed": _memory_and_speed(job, stage["script"], comments),
        "run": {"output_dir": f"saves/{job.slug}", **length(job), **common["run"], **common["reporting"]},
    }
    # transformers 5 tells of packages in another way, and TRL 0.24 then looks for all of its optional ones.
    wanted = ["trl==0.24.0", "'transformers<5'", *(["peft"] if job.uses_adapters else []), *packages(job)]
    if training.fused_loss is True:
        wanted.append("liger-kernel")
    if training.stage == "grpo" and training.rollout != "trainer":
        wanted.append("vllm")
    needs.append(f"environment: pip install {' '.join(dict.fromkeys(wanted))}")
    command = accelerate_launch(job, "-m", f"trl.scripts.{stage['script']}", "--config", PATH)
    text = document(heading(job, command), {title: fields for title, fields in sections.items() if fields}, comments)
    return Piece((File(PATH, "trl", text),), tuple(needs), Start(command, programs=("trl",)))


def _model(job: Job, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """The checkpoint and the type that its weights are loaded in: what is trained in full under autocast or FSDP is
    fp32; frozen weights and those of DeepSpeed, which keeps fp32 copies itself, are in the compute type."""
    words, training = table("trl"), job.training
    half = {"bf16": "bfloat16", "fp16": "float16"}.get(training.precision)
    whole = not job.uses_adapters and training.weights != "bf16" and backend_of(job.plan) != "deepspeed"
    fields: dict[str, Tree] = {
        "model_name_or_path": checkpoint(job, PATH, "model_name_or_path", needs, comments),
        "dtype": "float32" if half is None or whole else half,
        "attn_implementation": words["attention"][training.attention],
        **words["methods"][training.method],
    }
    if not job.uses_adapters:
        return fields
    lora = training.lora
    targets = target_modules(job, PATH, "lora_target_modules", needs)
    fields |= words["quantisations"][job.quantisation] if job.quantisation else {}
    fields |= {
        "lora_r": lora.rank,
        "lora_alpha": whole_alpha(job, "TRL"),
        "lora_dropout": lora.dropout,
        "lora_target_modules": ["all-linear"] if targets is None else targets,
    }
    if training.stage == "rm":
        fields["lora_task_type"] = "SEQ_CLS"
    if lora.train_embeddings:
        fields["lora_modules_to_save"] = embedding_modules(job, PATH, "lora_modules_to_save", needs)
    return fields


def _data(job: Job, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """The data set and how its samples become rows of seq_len tokens. A row of DPO and KTO is a prompt with one answer;
    of GRPO the answer comes on top of the prompt."""
    training = job.training
    fields: dict[str, Tree] = {"dataset_name": job.site.dataset or _DATASET}
    if job.site.dataset is None:
        content = table("trl")["data"][training.stage]
        comments["dataset_name"] = f"set this: a Hugging Face data set or a folder of one ({content})"
        needs.append(f"{PATH}: dataset_name, your data ({content})")
    if training.stage in ("sft", "pretrain"):
        fields |= {"max_length": job.seq_len, "packing": training.packing}
        if training.packing:
            # Whole samples side by side are told apart by FlashAttention only (SFTTrainer.__init__, packing_strategy).
            whole = training.stage == "sft" and training.attention not in ("sdpa", "eager")
            fields["packing_strategy"] = "bfd" if whole else "wrapped"
    elif training.stage == "grpo":
        answer = _answer(job)
        fields |= {"max_prompt_length": job.seq_len - answer, "max_completion_length": answer}
    else:
        fields["max_length"] = job.seq_len
        if training.stage != "rm":
            fields["max_prompt_length"] = max(1, job.seq_len // 2)
            comments["max_prompt_length"] = "of max_length; yours to choose"
    if training.stage != "grpo":
        fields["dataset_num_proc"] = 16
    return fields


def _answer(job: Job) -> int:
    """Tokens generated per sample: half of seq_len unless the plan says."""
    answer = job.training.response_len or job.seq_len // 2
    if not 0 < answer < job.seq_len:
        problem = f"{answer} generated tokens leave no room for a prompt in seq_len={job.seq_len}"
        raise PlanError("workload.response_len", problem, [max(1, job.seq_len // 2)])
    return answer


def _generation(job: Job, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    """GRPO's groups, rewards and the engine that generates. The batch counts samples, not prompts."""
    training = job.training
    size = training.group_size
    if job.global_batch % size:
        low = job.global_batch // size * size
        problem = f"{job.global_batch} samples are not whole groups of group_size={size}"
        raise PlanError("workload.global_batch", problem, [count for count in (low, low + size) if count])
    fields: dict[str, Tree] = {
        "num_generations": size,
        "generation_batch_size": job.global_batch,
        "reward_funcs": [_REWARD],
        "use_vllm": training.rollout != "trainer",
    }
    comments["reward_funcs"] = "set this: accuracy_reward, think_format_reward, or my_module.my_function"
    needs.append(f"{PATH}: reward_funcs, the functions that score answers")
    if training.rollout == "colocated":
        fields |= {
            "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": training.engine_share,
            "vllm_tensor_parallel_size": 1,
        }
    elif training.rollout == "separate":
        fields |= {"vllm_mode": "server", "vllm_server_host": _SERVER, "vllm_server_port": 8000}
        comments["vllm_server_host"] = "set this: where trl vllm-serve runs the same model"
        needs.append(f"{PATH}: vllm_server_host, the address of `trl vllm-serve --model ...` on other devices")
    return fields


def _memory_and_speed(job: Job, script: str, comments: dict[str, str]) -> dict[str, Tree]:
    """Checkpointing is TRL's default, so it is said either way; under FSDP it is FSDP's own (accelerate.yaml)."""
    own = uses_fsdp(job.plan)
    fields: dict[str, Tree] = {"gradient_checkpointing": job.recompute == "full" and not own}
    if own and job.recompute == "full":
        comments["gradient_checkpointing"] = "done by FSDP, see accelerate.yaml"
    if job.training.fused_loss is True:
        fields[table("trl")["fused_loss"][script]] = True
    if job.offload == "activations":
        fields["activation_offloading"] = True
    if job.training.compile:
        fields["torch_compile"] = True
    return fields
