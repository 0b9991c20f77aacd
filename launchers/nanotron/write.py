"""nanotron YAML (huggingface/nanotron 2411b022): pretraining of Llama architectures. Words: fields.yaml.

The file holds the model's dimensions. Checkpoints are loaded from the folder that they are saved in: latest.txt there
names the newest, and where it is missing the run starts.
"""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from knowledge.models.catalogue import architecture
from launchers.launch.duration import run_steps, save_steps
from launchers.launch.heading import heading
from launchers.launch.placeholders import DATASET, TOKENIZER
from launchers.launch.training import TrainingLaunch
from launchers.megatron.model_fields import beyond_dimensions, rotary_base
from launchers.pieces import File, Piece, Start
from launchers.shell.starting import torchrun_options
from launchers.tables import table
from launchers.trial import profiling
from launchers.trial.synthetic import is_own
from launchers.yaml_text import Tree, document

PATH = "nanotron.yaml"


def render(launch: TrainingLaunch) -> Piece:
    """The YAML, nanotron's run_train.py on every node, and what the user must set."""
    words = table("nanotron/fields")
    model = architecture(launch.plan.model)
    needs: list[str] = []
    comments: dict[str, str] = {}
    steps, saved = run_steps(launch), f"saves/{launch.slug}"
    if steps is None:
        comments["train_steps"] = "set this: the plan says neither steps nor data"
        needs.append(
            f"{PATH}: tokens.train_steps, the optimizer steps of the run (the plan says neither steps nor data)"
        )
    sections: dict[str, dict[str, Tree]] = {
        "the run": {
            "general": {"project": "shardwise", "run": launch.slug, "seed": 42},
            "checkpoints": {
                "checkpoint_interval": save_steps(launch),
                "checkpoints_path": saved,
                "resume_checkpoint_path": saved,
                "checkpoints_path_is_shared_file_system": launch.nodes > 1,
            },
            "logging": {"iteration_step_info_interval": 1, "log_level": "info"},
        },
        "how it is split": {"parallelism": _parallelism(launch, model)},
        "the model": {"model": _model(launch, model)},
        "batch and length": {
            "tokens": {
                "sequence_length": launch.seq_len,
                "micro_batch_size": launch.micro_batch,
                "batch_accumulation_per_replica": launch.accumulation,
                "train_steps": steps or words["steps"],
                "val_check_interval": -1,
            }
        },
        "optimizer": {"optimizer": _optimizer(launch, steps or words["steps"])},
        "data": _data(launch, needs, comments),
        "profiler": profiling.settings(launch),
    }
    command = f"torchrun {torchrun_options(launch)} run_train.py --config-file {PATH}"
    needs += [
        "environment: nanotron and flash-attn, and run_train.py of huggingface/nanotron (2411b022) beside these files",
        f"{PATH}: nanotron keeps every checkpoint; clear old ones of {saved}, and never the one in latest.txt",
    ]
    text = document(heading(launch, command), {title: fields for title, fields in sections.items() if fields}, comments)
    start = Start(command, environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, programs=("nanotron",))
    return Piece((File(PATH, "nanotron", text),), tuple(needs), start)


def _parallelism(launch: TrainingLaunch, model: Architecture) -> dict[str, Tree]:
    layout = launch.plan.layout
    tp, pp = layout.tp or 1, layout.pp or 1
    block = model.blocks[0]
    for name, count in (("attention heads", block.heads), ("key and value heads", block.kv_heads)):
        if count % tp:
            raise PlanError("layout.tp", f"{count} {name} cannot be split over tp={tp}")
    if pp > model.layers:
        raise PlanError("layout.pp", f"{model.layers} layers are no {pp} stages")
    whole = layout.sequence_parallel is not False
    return {
        "dp": launch.dp,
        "pp": pp,
        "tp": tp,
        "context_parallel_size": layout.cp or 1,
        "expert_parallel_size": 1,
        "pp_engine": "afab" if layout.schedule == "gpipe" else "1f1b",
        "tp_mode": "REDUCE_SCATTER" if tp > 1 and whole else "ALL_REDUCE",
        "tp_linear_async_communication": False,
        "recompute_layer": launch.recompute == "full",
    }


def _model(launch: TrainingLaunch, model: Architecture) -> dict[str, Tree]:
    """Dimensions as LlamaConfig has them. Raises PlanError for what that is not."""
    block = model.blocks[0]
    lacks = {
        "layers of several kinds": len(model.blocks) > 1,
        "experts": bool(block.experts),
        "another norm than RMSNorm": model.norm != "rmsnorm" or model.gemma_norm,
        "another activation than SwiGLU": model.activation != "silu" or not block.gated,
        "norms of queries and keys": block.qk_norm,
        "windows of attention": block.window is not None,
        "biases": any(matrix.bias for matrix in block.matrices),
        "images": model.multimodal,
        "heads of a width of their own": block.head_dim * block.heads != model.hidden,
    }
    if reason := next((words for words, there in lacks.items() if there), None):
        raise PlanError(
            "model", f"nanotron's Llama has no {reason}", ["meta-llama/Llama-3.1-8B", "Llama architectures"]
        )
    beyond = beyond_dimensions(launch)
    epsilon, skipped = beyond.get("norm_epsilon", 1e-05), beyond.get("no_rope_freq")
    config: dict[str, Tree] = {
        # Layers without positions are those of its Qwen2, which is a Llama but for them.
        **({"is_llama_config": True} if skipped is None else {"is_qwen2_config": True, "no_rope_layer": skipped}),
        "hidden_act": "silu",
        "hidden_size": model.hidden,
        "intermediate_size": block.ffn_width,
        "num_attention_heads": block.heads,
        "num_hidden_layers": model.layers,
        "num_key_value_heads": block.kv_heads,
        "max_position_embeddings": max(model.context, launch.seq_len),
        "rms_norm_eps": epsilon,
        "rope_theta": float(rotary_base(launch) or 10000),
        "tie_word_embeddings": model.tied,
        "vocab_size": model.vocab,
    }
    return {
        "dtype": table("nanotron/fields")["precisions"][launch.training.precision],
        "ddp_bucket_cap_mb": 25,
        "make_vocab_size_divisible_by": 1,
        "init_method": {"std": 0.02},
        "model_config": config,
    }


def _optimizer(launch: TrainingLaunch, steps: int) -> dict[str, Tree]:
    warmup = min(2000, max(1, steps // 100))
    factory: dict[str, Tree] = {"name": "sgd"}
    if launch.training.optimizer == "adamw":
        factory = {
            "name": "adamW",
            "adam_beta1": 0.9,
            "adam_beta2": 0.95,
            "adam_eps": 1.0e-08,
            "torch_adam_is_fused": True,
        }
    return {
        "zero_stage": launch.zero_stage,
        "accumulate_grad_in_fp32": True,
        "clip_grad": 1.0,
        "weight_decay": 0.1,
        "optimizer_factory": factory,
        "learning_rate_scheduler": {
            "learning_rate": 3.0e-04,
            "lr_warmup_steps": warmup,
            "lr_warmup_style": "linear",
            "lr_decay_style": "cosine",
            "lr_decay_steps": max(1, steps - warmup),
            "min_decay_lr": 3.0e-05,
        },
    }


def _data(launch: TrainingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    comments["learning_rate"] = "a value to start from; yours to choose"
    if launch.site.dataset is None:
        comments["hf_dataset_or_datasets"] = "set this: a data set of the Hugging Face hub with a column `text`"
        needs.append(f"{PATH}: hf_dataset_or_datasets, a data set of the Hugging Face hub with a column `text`")
    if launch.model is None:
        comments["tokenizer_name_or_path"] = "set this: a tokenizer of the Hugging Face hub"
        needs.append(f"{PATH}: tokenizer_name_or_path, a tokenizer of the Hugging Face hub")
    dataset: dict[str, Tree] = {
        "hf_dataset_or_datasets": launch.site.dataset or DATASET,
        "hf_dataset_splits": "train",
        "text_column_name": "text",
    }
    stage: dict[str, Tree] = {
        "name": "training",
        "start_training_step": 1,
        "data": {"dataset": None if is_own(launch) else dataset, "num_loading_workers": 4, "seed": 42},
    }
    return {"data_stages": [stage], "tokenizer": {"tokenizer_name_or_path": launch.model or TOKENIZER}}
