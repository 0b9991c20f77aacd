"""The plan fields that numbers fill, as a person says them: what the tests of this folder are generated from."""

from __future__ import annotations

from typing import Any, NamedTuple

from agent.offline.form import BESIDE
from agent.offline.language.lexicon import lexicon
from estimator.plan.schema import merge
from planner.requests import ALL_PATHS, ONLY_SERVING

MODEL = "meta-llama/Llama-3.1-8B"
TRAINING: dict[str, Any] = {"model": MODEL, "cluster": {"accelerator": "h100-sxm", "count": 16}}
SERVING: dict[str, Any] = {**TRAINING, "workload": {"kind": "inference"}}


class Field(NamedTuple):
    """A field with a usual value: `nouns` name it, `set` says a value of it."""

    value: float
    nouns: tuple[str, ...]
    set: str
    counted: str | None = None
    """What one more or one less of it is called, where it is counted."""


FIELDS = {
    "seq_len": Field(4096, ("sequence length", "context", "seq len"), "a sequence length of {}"),
    "micro_batch": Field(4, ("micro batch", "per device batch size"), "micro batch {}"),
    "global_batch": Field(64, ("global batch", "effective batch size"), "global batch {}"),
    "dataset_tokens": Field(4_000_000_000, ("dataset", "training tokens", "data"), "a dataset of {} tokens"),
    "dataset_samples": Field(40_000, ("samples", "examples"), "{} samples"),
    "sample_tokens": Field(800, ("tokens per sample", "average length"), "{} tokens per sample"),
    "steps": Field(1000, ("steps", "number of steps"), "{} steps", "steps"),
    "epochs": Field(4, ("epochs", "number of epochs"), "{} epochs", "epochs"),
    "lora_rank": Field(16, ("rank", "lora rank"), "rank {}"),
    "lora_alpha": Field(32, ("alpha", "lora alpha"), "alpha {}"),
    "lora_dropout": Field(0.08, ("dropout", "lora dropout"), "dropout {}"),
    "group_size": Field(8, ("group size", "completions per prompt"), "group size {}"),
    "response_len": Field(1024, ("response length", "completion length"), "a response length of {}"),
    "engine_share": Field(0.2, ("engine share",), "an engine share of {}"),
    "tp": Field(4, ("tp", "tensor parallel size", "tensor parallelism"), "tp {}"),
    "pp": Field(4, ("pp", "pipeline parallel size", "pipeline stages"), "pp {}"),
    "cp": Field(4, ("cp", "context parallel size"), "cp {}"),
    "ep": Field(4, ("ep", "expert parallel size"), "ep {}"),
    "etp": Field(4, ("etp", "expert tensor parallel size"), "etp {}"),
    "dp": Field(8, ("dp", "data parallel size"), "dp {}"),
    "vpp": Field(4, ("vpp", "virtual pipeline stages"), "vpp {}"),
    "shard_group": Field(8, ("shard group", "shard group size"), "shard group {}"),
    "deadline_h": Field(40, ("deadline", "time limit"), "a deadline of {} hours"),
    "budget_usd": Field(4000, ("budget", "cost limit"), "a budget of ${}"),
    "count": Field(16, ("GPUs", "number of GPUs", "cards", "devices"), "{} GPUs", "GPUs"),
    "per_node": Field(4, ("GPUs per node", "devices per node"), "{} GPUs per node"),
    "reserve_gib": Field(4, ("reserve", "headroom"), "a reserve of {} GB"),
    "usable_gib": Field(40, ("usable memory",), "{} GB usable"),
    "input_len": Field(1024, ("prompt length", "input length", "prompts"), "a prompt length of {}"),
    "output_len": Field(512, ("output length", "answers", "answer length"), "an output length of {}"),
    "max_context": Field(8192, ("max model len", "context window"), "max model len {}"),
    "concurrency": Field(32, ("users", "concurrency", "concurrent requests"), "{} users", "users"),
    "request_rate": Field(8, ("request rate", "traffic", "qps"), "{} requests per second"),
    "requests": Field(4000, ("requests", "total requests"), "{} requests in total"),
    "prefix_hit": Field(0.2, ("prefix hit rate", "cache hit rate"), "a prefix hit rate of {}"),
    "ttft_slo_ms": Field(400, ("ttft", "time to first token"), "ttft {} ms"),
    "tpot_slo_ms": Field(40, ("tpot", "time per output token"), "tpot {} ms"),
    "speculative_tokens": Field(4, ("speculative tokens", "draft tokens"), "{} speculative tokens"),
    "acceptance": Field(0.4, ("acceptance", "acceptance rate"), "an acceptance rate of {}"),
    "max_batch": Field(64, ("max batch", "max num seqs"), "max num seqs {}"),
    "max_batched_tokens": Field(4096, ("max batched tokens", "max num batched tokens"), "max batched tokens {}"),
    "memory_share": Field(0.4, ("gpu memory utilization",), "gpu memory utilization {}"),
}  # fmt: skip
# Numbers that say which, not how much: nobody doubles them.
NAMES = ("zero_stage", "weight_bits", "output_spread")


# What a field needs beside it to mean anything.
_LORA = {"workload.method": "lora"}
_BESIDE = {"sample_tokens": {"workload.dataset_samples": 40_000}, "lora_rank": _LORA, "lora_alpha": _LORA,
           "lora_dropout": _LORA, "group_size": {"workload.stage": "grpo"}, "response_len": {"workload.stage": "grpo"},
           "engine_share": {"workload.stage": "grpo"}}  # fmt: skip


def quantities() -> set[str]:
    """Every field of the Plan that the lexicon fills with a number."""
    return {name for name in lexicon().quantities if name in ALL_PATHS}


def plan_with(name: str, value: Any = None) -> dict[str, Any]:
    """A plan of the kind that has the field, which has its usual value."""
    base = merge(SERVING if name in ONLY_SERVING else TRAINING, _BESIDE.get(name, {}))
    return merge(base, {ALL_PATHS[name]: FIELDS[name].value if value is None else value})


def written(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def test_every_field_is_spoken_of() -> None:
    assert set(FIELDS) | set(NAMES) == quantities()
    assert not set(FIELDS) & set(BESIDE)
