"""What fields of a plan, and of what is assumed beside it, are called in text."""

from __future__ import annotations

from knowledge import figures

_NAMES = {
    "cluster.count": "devices", "cluster.interconnect": "network", "layout.zero_stage": "ZeRO stage",
    "workload.micro_batch": "micro-batch",
    "workload.concurrency": "users at once", "workload.input_len": "prompt tokens",
    "workload.output_len": "output tokens", "workload.request_rate": "requests/s",
    "workload.prefix_hit": "cached part of a prompt", "workload.tpot_slo_ms": "limit of the time per token (ms)",
    "workload.ttft_slo_ms": "limit of the time to first token (ms)", "workload.slo_statistic": "latency limits",
    "per_node": "devices per node",
}  # fmt: skip
# Parts of names as the field writes them.
_PARTS = {
    "usd": "USD", "kwh": "kWh", "kw": "kW", "gb": "GB", "gib": "GiB", "co2": "CO2", "pue": "PUE", "kv": "KV",
    "mlp": "MLP", "mlps": "MLPs", "lora": "LoRA", "seq": "sequence", "len": "length", "dtype": "format",
    "dtypes": "formats", "vpp": "VPP", "etp": "ETP", "tp": "TP", "dp": "DP", "moe": "MoE", "cuda": "CUDA",
}  # fmt: skip
_ABBREVIATION = 2
"""Letters of the axes of a layout: TP, PP, CP, DP, EP."""


def field_name(path: str) -> str:
    """'sequence length' of workload.seq_len, 'LoRA rank' of workload.lora.rank."""
    *parents, name = path.split(".")
    known = _NAMES.get(path) or _NAMES.get(name)
    if known or (len(name) == _ABBREVIATION and name not in _PARTS):
        return known or name.upper()
    if parents[:1] != ["workload"] and figures.known_figure(name):
        return figures.label(name)
    words = [_PARTS.get(part, part) for part in name.split("_")]
    return " ".join([*(["LoRA"] if parents[-1:] == ["lora"] else []), *words])
