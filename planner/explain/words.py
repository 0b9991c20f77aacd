"""The names of figures that a question may use."""

from __future__ import annotations

from knowledge.figure_facts import figures, meant

# Figures of other results that are the same under another name.
ALIASES = {
    "best.step_s": "time.step_s", "best.tokens_per_s": "throughput.tokens_per_s", "best.mfu": "throughput.mfu",
    "best.per_device_bytes": "memory.per_device_bytes", "best.headroom_bytes": "headroom_bytes",
    "fits": "memory.fits", "steps": "run.steps",
}  # fmt: skip
# Figures that only serving has: words for them make the plan one for serving.
_SERVING = (
    "latency.ttft_s", "latency.tpot_s", "latency.e2e_s", "memory.components.kv_cache", "memory.components.cuda_graphs",
    "memory.max_concurrency", "memory.kv_tokens", "memory.kv_bytes_per_token", "memory.longest_request",
    "memory.claimed_bytes", "throughput.output_tokens_per_s", "throughput.total_tokens_per_s",
    "throughput.requests_per_s", "throughput.tokens_per_s_per_user", "time.generating.total_s", "time.reading.total_s",
    "usd_per_month", "usd_per_million_output_tokens", "usd_per_million_requests",
)  # fmt: skip
_BOTH = ("throughput", "tokens per second", "tokens/s", "speed")


def is_of_serving(words: str) -> bool:
    """Whether only serving has the figure that words are of; words of training, too, leave a plan as it is."""
    words = words.strip()
    shared = [key for key, about in figures().items() if about.formula and key not in _SERVING and "*" not in key]
    trained = words in ALIASES or words.lower() in _BOTH or meant(words, shared) is not None
    return not trained and meant(words, list(_SERVING), "serving") is not None
