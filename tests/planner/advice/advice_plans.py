"""A fixed, varied set of plans: sound and wasteful ones, too large ones, on every kind of link, for training and
serving. Together they make every entry of the playbook that computes a gain tell one."""

from __future__ import annotations

from typing import Any

SMALL, L8, L70, L405 = (
    "Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-405B",
)  # fmt: skip
QWEN, MOE, MIXTRAL, DEEPSEEK = (
    "Qwen/Qwen2.5-1.5B", "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "deepseek-ai/DeepSeek-V3",
)  # fmt: skip
H100, A100 = "h100-sxm", "a100-sxm-80gb"


def _of(model: str, accelerator: str, count: int, **more: Any) -> dict[str, Any]:
    return {"model": model, "accelerator": accelerator, "count": count, **more}


def _pretrain(model: str, accelerator: str, count: int, **more: Any) -> dict[str, Any]:
    usual = {"stage": "pretrain", "framework": "megatron-bridge", "seq_len": 4096, "global_batch": 64}
    return _of(model, accelerator, count, **(usual | more))


TRAINING: dict[str, dict[str, Any]] = {
    "wasteful": _pretrain(L8, H100, 16, framework="megatron-lm", tp=8, pp=2, recompute="full", micro_batch=1),
    "tensor parallel across nodes": _pretrain(L70, H100, 32, framework="megatron-lm", tp=16, pp=1, micro_batch=1,
                                              seq_len=8192),
    "no sequence parallelism": _pretrain(L8, H100, 16, framework="megatron-lm", tp=4, pp=1, sequence_parallel=False,
                                         recompute="none", micro_batch=2),
    "no sequence parallelism, tight": _pretrain(L8, H100, 8, framework="megatron-lm", tp=4, pp=1, micro_batch=16,
                                                sequence_parallel=False, recompute="full", seq_len=4352),
    "sharded over slow Ethernet": _of(L8, A100, 32, framework="deepspeed", zero_stage=3, shard_group=32, tp=1,
                                      micro_batch=1, interconnect="ethernet-25", global_batch=64, seq_len=4096),
    "eager attention": _of(L70, H100, 64, framework="fsdp2", zero_stage=3, tp=1, recompute="full", micro_batch=1,
                           global_batch=64, seq_len=3072, attention="eager"),
    "fsdp1": _of(L8, H100, 8, framework="fsdp1", zero_stage=3, recompute="full", micro_batch=1, global_batch=64),
    "deep pipeline": _pretrain(L70, H100, 64, framework="megatron-lm", tp=4, pp=8, vpp=1, micro_batch=4, seq_len=2048,
                               recompute="full"),
    "pipeline with ZeRO-2": _pretrain(L8, H100, 16, framework="megatron-deepspeed", pp=4, zero_stage=2, micro_batch=1),
    "context parallel": _pretrain(L8, H100, 16, cp=4, tp=2, seq_len=32768, global_batch=16, micro_batch=1),
    "long with tensor parallelism": _pretrain(L8, H100, 16, cp=1, tp=8, seq_len=32768, global_batch=16, micro_batch=1),
    "long, does not fit": _pretrain(L8, H100, 16, cp=1, tp=2, pp=1, seq_len=32768, global_batch=16, micro_batch=1,
                                    recompute="none"),
    "longer, does not fit": _pretrain(L8, H100, 32, cp=2, tp=4, pp=1, seq_len=65536, global_batch=16, micro_batch=1,
                                      recompute="selective"),
    "split experts": _pretrain(MOE, H100, 64, ep=2, tp=1, pp=2, etp=4, micro_batch=4, global_batch=512,
                               recompute="full", moe_dispatcher="alltoall"),
    "experts in one place": _pretrain(MIXTRAL, "h200-sxm", 64, ep=1, etp=1, tp=2, pp=8, micro_batch=1,
                                      global_batch=512, recompute="full"),
    "experts across nodes": _pretrain(MOE, H100, 64, ep=32, etp=1, tp=1, pp=1, micro_batch=2, global_batch=512,
                                      moe_dispatcher="alltoall"),
    "experts, tight": _pretrain(MOE, H100, 32, ep=2, tp=1, pp=1, micro_batch=1, global_batch=256, recompute="full"),
    "small on many": _pretrain(SMALL, H100, 64, framework="torchtitan", tp=2, micro_batch=1, seq_len=1024,
                               dataset_tokens="5T"),
    "large run": _pretrain(L8, H100, 256, framework="megatron-lm", dataset_tokens="1T", interconnect="ib-edr-100x4",
                           global_batch=256),
    "blackwell": _pretrain(L8, "b200-sxm", 8),
    "does not fit at all": _of(L8, H100, 8, framework="hf-trainer", micro_batch=16, zero_stage=0, recompute="none",
                               global_batch=128, seq_len=8192),
    "70B on a node": _of(L70, H100, 8, framework="deepspeed", zero_stage=3, offload="none"),
    "70B on Megatron, tight": _of(L70, H100, 16, framework="megatron-lm", tp=8, pp=2, sequence_parallel=False,
                                  recompute="full", micro_batch=1, global_batch=64, seq_len=4096),
    "70B, two stages": _pretrain(L70, H100, 64, framework="megatron-lm", tp=8, pp=2, recompute="full", micro_batch=1),
    "unsharded": _pretrain(L8, H100, 8, framework="megatron-lm", tp=2, pp=1, recompute="none", micro_batch=2,
                           zero_stage=0),
    "ZeRO-1": _of(L8, H100, 8, framework="deepspeed", zero_stage=1, tp=1, micro_batch=1, global_batch=64, seq_len=2048,
                  recompute="full"),
    "large micro-batch": _of(L8, H100, 8, framework="fsdp2", micro_batch=4, recompute="none", seq_len=4096,
                             zero_stage=3, global_batch=64, tp=1),
    "fp32": _of(QWEN, A100, 8, precision="fp32", micro_batch=4, recompute="none"),
    "fp32, tight": _of(QWEN, A100, 8, framework="fsdp2", precision="fp32", micro_batch=8, recompute="none",
                       seq_len=4096, zero_stage=3, global_batch=64, tp=1),
    "fp32, 8B": _of(L8, A100, 8, framework="fsdp2", precision="fp32", micro_batch=4, recompute="full", seq_len=4096,
                    zero_stage=3, global_batch=64, tp=1),
    "offloaded": _of(L8, H100, 8, framework="deepspeed", zero_stage=3, offload="optimizer", micro_batch=1,
                     global_batch=64),
    "unpacked": _of(L8, H100, 8, packing=False, seq_len=2048, dataset_samples=100_000, sample_tokens=500),
    "lora on a small card": _of(L8, "rtx-4090", 1, method="lora", micro_batch=2, global_batch=16, recompute="none",
                                seq_len=2048),
    "lora with dropout": _of(L8, H100, 1, method="lora", lora_dropout=0.1, train_embeddings=True, micro_batch=1,
                             global_batch=16, recompute="none", seq_len=2048, framework="hf-trainer"),
    "qlora": _of(L8, H100, 1, method="qlora", micro_batch=1, global_batch=16, seq_len=1024, recompute="full"),
    "dora": _of(L8, H100, 1, method="dora", micro_batch=1, global_batch=16),
    "dpo": _of(L8, H100, 8, stage="dpo", zero_stage=3, micro_batch=1, global_batch=64),
    "dpo, tight": _of(L8, H100, 8, stage="dpo", framework="deepspeed", zero_stage=3, micro_batch=2, global_batch=64,
                      seq_len=4096, recompute="full", tp=1),
    "grpo": _of(QWEN, H100, 8, stage="grpo", rollout="trainer", micro_batch=1, global_batch=64, recompute="full"),
    "ppo": _of(L8, H100, 8, stage="ppo", rollout="colocated", zero_stage=3, framework="deepspeed"),
    "mi300x": _pretrain(L8, "mi300x", 8, framework="primus"),
    "tpu": _pretrain(L8, "tpu-v5p", 16, framework="maxtext"),
    "rack": _pretrain(L70, "gb200", 64, micro_batch=1, recompute="none"),
    "old cards": _of(SMALL, "v100-sxm-32gb", 4, precision="fp16"),
    "cards on PCIe": _of(L8, "rtx-4090", 8, method="lora", framework="deepspeed"),
    "fp16": _of(SMALL, A100, 8, precision="fp16", dataset_tokens="20M"),
    "AWS": _pretrain(L8, H100, 32, interconnect="efa-v2"),
    "RoCE": _pretrain(SMALL, A100, 1024, interconnect="roce-100x8", global_batch=8192, micro_batch=1,
                      dataset_tokens="1B"),
    "context parallel across nodes": _pretrain(L8, H100, 16, cp=16, tp=1, seq_len=131072, global_batch=16,
                                               micro_batch=1),
    "Grace, many activations": _pretrain(L8, "gb200", 8, tp=1, pp=1, micro_batch=4, recompute="none"),
    "fp8 on a small model": _pretrain(SMALL, H100, 8, precision="fp8", micro_batch=1, seq_len=1024),
}  # fmt: skip
SERVING: dict[str, dict[str, Any]] = {
    "a node": _of(L70, H100, 8, input_len=1024, output_len=256, concurrency=64),
    "few users": _of(L70, H100, 8, input_len=4096, output_len=512, concurrency=4, tp=4, cuda_graph=False),
    "many users": _of(L8, H100, 1, input_len=8000, output_len=1000, concurrency=512),
    "small steps": _of(L8, H100, 2, input_len=1000, output_len=1000, concurrency=256, max_batch=32,
                       chunked_prefill=False),
    "drafts at high load": _of(L8, H100, 1, input_len=500, output_len=500, concurrency=256, speculative_tokens=5,
                               acceptance=0.5),
    "too much load": _of(L70, H100, 8, input_len=2000, output_len=300, request_rate=50, ttft_slo_ms=500,
                         tpot_slo_ms=30, tp=4, pp=2),
    "little load": _of(L8, H100, 8, input_len=1000, output_len=300, request_rate=2, tp=1),
    "does not fit": _of(L70, H100, 1, input_len=1000, output_len=300, concurrency=16),
    "405B on a node": _of(L405, H100, 8, input_len=1000, output_len=300, concurrency=16, tp=4),
    "tensor parallel across nodes": _of(L405, H100, 16, input_len=1000, output_len=300, concurrency=256, tp=16),
    "DeepSeek": _of(DEEPSEEK, "h200-sxm", 8, input_len=1000, output_len=1000, concurrency=512, tp=8, ep=1, dp=1,
                    weight_dtype="fp8"),
    "library": _of(L8, A100, 1, input_len=500, output_len=200, concurrency=16, engine="hf"),
    "offline": _of(L8, H100, 1, input_len=4000, output_len=100, scenario="offline", max_batched_tokens=2048),
    "tight": _of(L70, H100, 8, input_len=1000, output_len=1000, concurrency=16, tp=2),
    "large steps": _of(L405, H100, 16, input_len=16000, output_len=300, concurrency=64, tp=8, pp=2,
                       max_batched_tokens=16384, weight_dtype="fp8"),
    "split for no reason": _of(L8, H100, 8, input_len=500, output_len=500, concurrency=1000, tp=8),
    "no graphs": _of(L8, H100, 1, input_len=500, output_len=500, concurrency=4, cuda_graph=False),
}  # fmt: skip
PLANS = {f"training: {name}": plan for name, plan in TRAINING.items()} | {
    f"serving: {name}": plan for name, plan in SERVING.items()
}
