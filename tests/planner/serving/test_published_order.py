"""Which of two deployments is the better one, against what others published of the same model: MLPerf Inference v6.1
(intel-ai-tce/inference_results_v6.1@5174fca8), vLLM's blog (vllm-project.github.io@c3a01c4a), LMSYS' blog (2025-05-05,
2025-09-25), SemiAnalysis' InferenceMAX and InferenceX (articles of 2025-10 and 2026-02, pull requests of 2026)."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools import call

R1, V3, V32 = "deepseek-r1", "deepseek-v3", "deepseek-ai/DeepSeek-V3.2"
GLM, OSS, L70 = "nvidia/GLM-5.2-NVFP4", "gpt-oss-120b", "llama-3.3-70b"
SUPER, V4F = "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-", "deepseek-ai/DeepSeek-V4-Flash"


class Side(NamedTuple):
    """A model on `devices` devices; (tp, ep, dp), and what the workload says besides engine and lengths."""

    model: str
    accelerator: str
    devices: int
    engine: str
    layout: tuple[int, int, int]
    lengths: tuple[int, int]
    said: dict[str, Any]


def side(
    model: str, accelerator: str, devices: int, engine: str, layout: tuple[int, int, int], lengths: tuple[int, int],
    **said: Any,
) -> Side:  # fmt: skip
    return Side(model, accelerator, devices, engine, layout, lengths, said)


def rate(of: Side, figure: str) -> float:
    """Tokens/s per device, tokens/s in all, or one over a latency."""
    tp, ep, dp = of.layout
    workload = {"kind": "inference", "engine": of.engine, "input_len": of.lengths[0], "output_len": of.lengths[1]}
    rack = {"per_node": 4} if of.accelerator.startswith("gb") and of.devices > 2 else {}
    plan = {
        "model": of.model,
        "cluster": {"accelerator": of.accelerator, "count": of.devices} | rack,
        "layout": {"tp": tp, "ep": ep, "dp": dp, "pp": 1},
        "workload": workload | of.said,
    }
    found = call("estimate_inference", {"plan": plan})
    if figure == "device":
        return found["throughput"]["output_tokens_per_s"] / of.devices
    if figure == "all":
        return found["throughput"]["output_tokens_per_s"]
    return 1.0 / found["latency"][figure]


TP2, TP4, TP8, TP16 = ((n, 1, 1) for n in (2, 4, 8, 16))
EP2, EP4, EP8, EP32, EP48, EP72 = ((1, n, n) for n in (2, 4, 8, 32, 48, 72))
ONE = (1, 1, 1)
HARNESS: dict[str, Any] = {"scenario": "offline", "kv_dtype": "fp8"}
PROMPTS: dict[str, Any] = {"scenario": "offline", "max_batched_tokens": 16384}
READ = (2048, 1)
GENERATED: dict[str, Any] = {"prefix_hit": 0.9995}
V3_WIDE = side(
    V3, "h100-sxm", 72, "sglang", EP72, (2000, 100), weight_dtype="fp8", concurrency=72 * 256, max_batch=256,
    **GENERATED,
)  # fmt: skip
# What is compared, the better side, the other one.
PUBLISHED: list[tuple[str, Side, Side]] = [
    (
        "device",
        side(R1, "gb300", 8, "trtllm", EP8, (804, 3811), weight_dtype="nvfp4", **HARNESS),
        side(R1, "b300-sxm", 8, "trtllm", EP8, (804, 3811), weight_dtype="nvfp4", **HARNESS),
    ),
    (
        "device",
        side(OSS, "gb300", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
        side(OSS, "b300-sxm", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
    ),
    (
        "device",
        side(OSS, "gb300", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
        side(OSS, "gb200", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
    ),
    (
        "device",
        side(OSS, "gb300", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
        side(OSS, "mi355x", 8, "vllm", ONE, (5011, 1310), **HARNESS),
    ),
    (
        "device",
        side(OSS, "mi355x", 8, "vllm", ONE, (5011, 1310), **HARNESS),
        side(OSS, "b300-sxm", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
    ),
    (
        "device",
        side("llama-2-70b", "gb300", 8, "trtllm", ONE, (222, 273), weight_dtype="nvfp4", **HARNESS),
        side("llama-2-70b", "b300-sxm", 8, "trtllm", ONE, (222, 273), weight_dtype="nvfp4", **HARNESS),
    ),
    (
        "device",
        side(OSS, "b300-sxm", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
        side(OSS, "rtx-pro-6000-blackwell-server", 8, "trtllm", ONE, (5011, 1310), **HARNESS),
    ),
    (
        "device",
        side(R1, "gb300", 2, "vllm", EP2, READ, weight_dtype="nvfp4", **PROMPTS),
        side(R1, "b300-sxm", 2, "vllm", EP2, READ, weight_dtype="nvfp4", **PROMPTS),
    ),
    (
        "device",
        side(R1, "gb300", 2, "vllm", EP2, READ, weight_dtype="nvfp4", **PROMPTS),
        side(R1, "h200-sxm", 8, "vllm", EP8, READ, weight_dtype="fp8", **PROMPTS),
    ),
    (
        "device",
        side(R1, "gb300", 2, "vllm", EP2, READ, weight_dtype="nvfp4", **PROMPTS),
        side(R1, "gb300", 2, "vllm", TP2, READ, weight_dtype="nvfp4", **PROMPTS),
    ),
    (
        "device",
        side(R1, "gb300", 2, "vllm", EP2, READ, weight_dtype="nvfp4", **PROMPTS),
        side(V32, "gb300", 2, "vllm", EP2, READ, weight_dtype="nvfp4", **PROMPTS),
    ),
    (
        "tpot_s",
        side(R1, "gb300", 2, "vllm", EP2, (2048, 64), weight_dtype="nvfp4", concurrency=128),
        side(R1, "gb300", 2, "vllm", TP2, (2048, 64), weight_dtype="nvfp4", concurrency=128),
    ),
    (
        "all",
        side(R1, "gb300", 2, "vllm", TP2, (2048, 64), weight_dtype="nvfp4", concurrency=128),
        side(R1, "gb300", 2, "vllm", EP2, (2048, 64), weight_dtype="nvfp4", concurrency=128),
    ),
    (
        "all",
        side(R1, "gb300", 2, "vllm", EP2, (2048, 1024), weight_dtype="nvfp4", concurrency=64, speculative_tokens=1),
        side(R1, "gb300", 2, "vllm", EP2, (2048, 1024), weight_dtype="nvfp4", concurrency=64),
    ),
    (
        "device",
        side(V32, "gb300", 2, "vllm", TP2, (2048, 1024), weight_dtype="nvfp4", concurrency=256),
        side(V32, "gb300", 4, "vllm", TP4, (2048, 1024), weight_dtype="fp8", concurrency=256),
    ),
    (
        "device",
        side(V32, "gb300", 2, "vllm", TP2, (2048, 1024), weight_dtype="nvfp4", concurrency=256),
        side(V32, "gb300", 4, "vllm", TP4, (2048, 1024), weight_dtype="nvfp4", concurrency=256),
    ),
    (
        "device",
        side(GLM, "b300-sxm", 2, "vllm", TP2, (8192, 1), **PROMPTS),
        side(GLM, "b300-sxm", 2, "vllm", (2, 2, 1), (8192, 1), **PROMPTS),
    ),
    (
        "device",
        side(GLM, "b300-sxm", 2, "vllm", EP2, (8192, 1), **PROMPTS),
        side(GLM, "b300-sxm", 2, "vllm", TP2, (8192, 1), **PROMPTS),
    ),
    (
        "device",
        side(GLM, "b300-sxm", 2, "vllm", EP2, (8192, 1), **PROMPTS),
        side(GLM, "b300-sxm", 4, "vllm", EP4, (8192, 1), **PROMPTS),
    ),
    (
        "tpot_s",
        side("moonshotai/Kimi-K3", "gb300", 16, "vllm", TP16, (1024, 1024), concurrency=1),
        side("moonshotai/Kimi-K3", "gb300", 8, "vllm", TP8, (1024, 1024), concurrency=1),
    ),
    (
        "all",
        side("llama-3.1-8b", "h100-sxm", 1, "vllm", ONE, (20000, 2000), concurrency=8, kv_dtype="fp8"),
        side("llama-3.1-8b", "h100-sxm", 1, "vllm", ONE, (20000, 2000), concurrency=8, kv_dtype="bf16"),
    ),
    (
        "all",
        side("gpt-oss-20b", "h100-sxm", 1, "vllm", ONE, (20000, 2000), concurrency=8, kv_dtype="fp8"),
        side("gpt-oss-20b", "h100-sxm", 1, "vllm", ONE, (20000, 2000), concurrency=8, kv_dtype="bf16"),
    ),
    (
        "all",
        side("llama-3.1-8b", "h100-sxm", 1, "vllm", ONE, (128, 512), concurrency=1, speculative_tokens=2),
        side("llama-3.1-8b", "h100-sxm", 1, "vllm", ONE, (128, 512), concurrency=1),
    ),
    (
        "all",
        side(
            "Qwen/Qwen3.5-397B-A17B",
            "rtx-pro-6000-blackwell-server",
            4,
            "sglang",
            (4, 4, 1),
            (1024, 1024),
            weight_dtype="nvfp4",
            concurrency=64,
            speculative_tokens=2,
        ),
        side(
            "Qwen/Qwen3.5-397B-A17B",
            "rtx-pro-6000-blackwell-server",
            4,
            "sglang",
            (4, 4, 1),
            (1024, 1024),
            weight_dtype="nvfp4",
            concurrency=64,
        ),
    ),
    (
        "all",
        side("MiniMaxAI/MiniMax-M3", "mi300x", 8, "vllm", TP8, (1024, 1024), weight_dtype="fp8", concurrency=256),
        side("MiniMaxAI/MiniMax-M3", "mi300x", 8, "vllm", (8, 8, 1), (1024, 1024), weight_dtype="fp8", concurrency=256),
    ),
    (
        "all",
        side("moonshotai/Kimi-K2.5", "mi355x", 8, "vllm", TP8, (1024, 1024), weight_dtype="mxfp4", concurrency=64),
        side(
            "moonshotai/Kimi-K2.5", "mi355x", 8, "vllm", (8, 8, 1), (1024, 1024), weight_dtype="mxfp4", concurrency=64
        ),
    ),
    (
        "ttft_s",
        side(V4F, "b200-sxm", 8, "vllm", EP8, (1000000, 64), concurrency=8),
        side(V4F, "b200-sxm", 8, "vllm", (8, 8, 1), (1000000, 64), concurrency=8),
    ),
    (
        "all",
        side(V4F, "b200-sxm", 8, "vllm", EP8, (1000000, 64), concurrency=16),
        side(V4F, "b200-sxm", 8, "vllm", (8, 8, 1), (1000000, 64), concurrency=16),
    ),
    (
        "tpot_s",
        side(R1, "h200-sxm", 8, "sglang", TP8, (1024, 1024), weight_dtype="fp8", concurrency=32),
        side(R1, "mi325x", 8, "sglang", TP8, (1024, 1024), weight_dtype="fp8", concurrency=32),
    ),
    (
        "tpot_s",
        side(R1, "b200-sxm", 8, "sglang", TP8, (1024, 1024), weight_dtype="fp8", concurrency=32),
        side(R1, "mi355x", 8, "sglang", TP8, (1024, 1024), weight_dtype="fp8", concurrency=32),
    ),
    (
        "all",
        side(L70, "b200-sxm", 1, "vllm", ONE, (1024, 1024), weight_dtype="nvfp4", concurrency=64),
        side(L70, "mi355x", 1, "vllm", ONE, (1024, 1024), weight_dtype="mxfp4", concurrency=64),
    ),
    (
        "device",
        side(L70, "mi300x", 1, "vllm", ONE, (1024, 8192), weight_dtype="fp8", concurrency=16),
        side(L70, "h100-sxm", 2, "vllm", TP2, (1024, 8192), weight_dtype="fp8", concurrency=16),
    ),
    (
        "all",
        side(OSS, "h200-sxm", 1, "vllm", ONE, (1024, 1024), concurrency=64),
        side(OSS, "h200-sxm", 1, "trtllm", ONE, (1024, 1024), concurrency=64),
    ),
    (
        "device",
        side(V3, "h100-sxm", 32, "sglang", EP32, READ, weight_dtype="fp8", **PROMPTS),
        side(V3, "h100-sxm", 16, "sglang", TP16, READ, weight_dtype="fp8", **PROMPTS),
    ),
    (
        "device",
        V3_WIDE,
        side(V3, "h100-sxm", 16, "sglang", TP16, (2000, 100), weight_dtype="fp8", concurrency=1024, **GENERATED),
    ),
    (
        "device",
        side(
            R1,
            "gb200",
            48,
            "sglang",
            EP48,
            (2000, 100),
            weight_dtype="nvfp4",
            kv_dtype="fp8",
            concurrency=48 * 1408,
            max_batch=1408,
            **GENERATED,
        ),
        V3_WIDE,
    ),
    (
        "device",
        side(R1, "gb200", 32, "trtllm", EP32, (1024, 1024), weight_dtype="nvfp4", kv_dtype="fp8", concurrency=32 * 256),
        side(R1, "b200-sxm", 8, "trtllm", EP8, (1024, 1024), weight_dtype="nvfp4", kv_dtype="fp8", concurrency=8 * 256),
    ),
    (
        "tpot_s",
        side(R1, "b200-sxm", 8, "sglang", TP8, (1024, 1024), weight_dtype="nvfp4", concurrency=4),
        side(R1, "b200-sxm", 8, "sglang", EP8, (1024, 1024), weight_dtype="nvfp4", concurrency=4),
    ),
    (
        "all",
        side(R1, "b200-sxm", 8, "sglang", EP8, (1024, 1024), weight_dtype="nvfp4", concurrency=2048),
        side(R1, "b200-sxm", 8, "sglang", TP8, (1024, 1024), weight_dtype="nvfp4", concurrency=2048),
    ),
    (
        "all",
        side(R1, "b200-sxm", 8, "sglang", TP8, (1024, 1024), weight_dtype="nvfp4", concurrency=64),
        side(R1, "b200-sxm", 8, "sglang", TP8, (1024, 1024), weight_dtype="fp8", concurrency=64),
    ),
    (
        "device",
        side(SUPER + "NVFP4", "b200-sxm", 4, "vllm", TP4, (8192, 1024), concurrency=128),
        side(SUPER + "FP8", "h100-sxm", 4, "vllm", TP4, (8192, 1024), concurrency=128),
    ),
    (
        "all",
        side(
            "Qwen/Qwen3.6-27B", "gb10-dgx-spark", 1, "llamacpp", ONE, (4000, 76), weight_dtype="q4_k_m", concurrency=1
        ),
        side(
            "Qwen/Qwen3.6-27B",
            "ryzen-ai-max-395-128gb",
            1,
            "llamacpp",
            ONE,
            (4000, 76),
            weight_dtype="q4_k_m",
            concurrency=1,
        ),
    ),
]


def test_the_better_of_two_deployments_is_the_published_one() -> None:
    ratios = [rate(better, figure) / rate(worse, figure) for figure, better, worse in PUBLISHED]
    assert len(ratios) >= 40
    # Six are the other way round (2026-11-29): within 9 % but MI355X, whose software gained 28 % in half a year, and
    # what tensor parallelism gains for short answers.
    assert sum(ratio > 1.0 for ratio in ratios) >= 35
    assert sum(ratio > 0.8 for ratio in ratios) == len(ratios)
