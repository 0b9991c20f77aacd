"""What a run is, listed without a sentence around it, in any order and with any sign between: every part is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.offline.catalogue import known
from agent.offline.language import read

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
Said = tuple[str, dict[str, Any]]
_MODELS: list[Said] = [
    ("llama 8b", {"model": "meta-llama/Llama-3.1-8B"}), ("llama-3.1-70b", {"model": "meta-llama/Llama-3.1-70B"}),
    ("qwen3 32b", {"model": "Qwen/Qwen3-32B"}), ("Qwen/Qwen2.5-7B", {"model": "Qwen/Qwen2.5-7B"}),
    ("deepseek v3", {"model": "deepseek-ai/DeepSeek-V3"}), ("phi-4", {"model": "microsoft/phi-4"}),
    ("glm 4.5 air", {"model": "zai-org/GLM-4.5-Air"}), ("qwen3-30b-a3b", {"model": "Qwen/Qwen3-30B-A3B"}),
    ("13b", {}), ("mixtral 8x7b", {}), ("mistral 7b", {}),
]  # fmt: skip
_DEVICES = {
    "h100": "h100-sxm", "a100": "a100-sxm-80gb", "A100 40GB": "a100-sxm-40gb", "h200": "h200-sxm", "B200": "b200-sxm",
    "mi300x": "mi300x", "MI355X": "mi355x", "rtx 4090": "rtx-4090", "l40s": "l40s", "H100 80GB": "h100-sxm",
    "A10G": "a10g", "V100": "v100-sxm-32gb", "L4": "l4", "GB200": "gb200", "H20": "h20", "3090": "rtx-3090",
}  # fmt: skip
_COUNTED = (
    "{n} {d}",
    "{n}x {d}",
    "{n}x{d}",
    "{n} x {d}",
    "{d} x{n}",
    "{d}x{n}",
    "{d} x {n}",
    "{n}*{d}",
    "{n} {d} gpus",
)
_TRAINED: dict[str, list[Said]] = {
    "data": [("100B tokens", {"dataset_tokens": 100e9}), ("1.5T tokens", {"dataset_tokens": 1.5e12}),
             ("500M tokens", {"dataset_tokens": 500e6}), ("50k samples", {"dataset_samples": 50_000})],
    "length": [("seq 4096", {"seq_len": 4096}), ("seq len 2048", {"seq_len": 2048}), ("seqlen=8192", {"seq_len": 8192}),
               ("4k seq", {"seq_len": 4096})],
    "batch": [("gbs 512", {"global_batch": 512}), ("global batch 256", {"global_batch": 256}),
              ("GBS=1024", {"global_batch": 1024})],
    "micro": [("mbs 1", {"micro_batch": 1}), ("mbs=4", {"micro_batch": 4}), ("micro batch 2", {"micro_batch": 2})],
    "layout": [("tp 4", {"tp": 4}), ("tp8", {"tp": 8}), ("TP=2 PP=4", {"tp": 2, "pp": 4}),
               ("zero-2", {"zero_stage": 2}), ("ep 8", {"ep": 8}), ("cp 2", {"cp": 2})],
    "method": [("lora r=16", {"method": "lora", "lora_rank": 16}), ("qlora", {"method": "qlora"}),
               ("lora rank 64", {"method": "lora", "lora_rank": 64})],
    "epochs": [("3 epochs", {"epochs": 3}), ("1 epoch", {"epochs": 1})],
    "limit": [("in 2 weeks", {"deadline_h": 336}), ("under 3 days", {"deadline_h": 72}),
              ("max $20,000", {"budget_usd": 20_000}), ("< $100k", {"budget_usd": 100_000})],
    "recompute": [("no recompute", {"recompute": "none"}), ("full recompute", {"recompute": "full"})],
    "optimizer": [("adafactor", {"optimizer": "adafactor"}), ("muon", {"optimizer": "muon"})],
    "kernel": [("flash attention", {"attention": "flash"})],
}  # fmt: skip
_SERVED: dict[str, list[Said]] = {
    "load": [("64 users", {"concurrency": 64}), ("concurrency 32", {"concurrency": 32}),
             ("5 rps", {"request_rate": 5})],
    "in": [("2k in", {"input_len": 2048}), ("input 1024", {"input_len": 1024}),
           ("prompt length 4096", {"input_len": 4096})],
    "out": [("512 out", {"output_len": 512}), ("output 256", {"output_len": 256})],
    "first": [("ttft 500 ms", {"ttft_slo_ms": 500}), ("ttft < 1s", {"ttft_slo_ms": 1000})],
    "engine": [("vllm", {"engine": "vllm"}), ("sglang", {"engine": "sglang"})],
    "cache": [("fp8 kv cache", {"kv_dtype": "fp8"})],
}  # fmt: skip


@st.composite
def _counted(draw: st.DrawFn) -> Said:
    name, id = draw(st.sampled_from(sorted(_DEVICES.items())))
    number, form = draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 512])), draw(st.sampled_from(_COUNTED))
    return form.format(n=number, d=name), {"accelerator": id, "count": number}


@st.composite
def _telegram(draw: st.DrawFn, kinds: dict[str, list[Said]], verbs: tuple[str, ...]) -> Said:
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=4, unique=True))
    parts = [draw(st.sampled_from(_MODELS)), draw(_counted()), *(draw(st.sampled_from(kinds[one])) for one in chosen)]
    order, between = draw(st.permutations(parts)), draw(st.sampled_from((" ", ", ", "; ", "\n", " / ", " | ")))
    wanted = {name: value for _, fields in parts for name, value in fields.items()}
    return f"{draw(st.sampled_from(verbs))} {between.join(words for words, _ in order)}", wanted


def _missed(words: str, wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    found = {edit.field: edit.value for edit in read(words, known(), {}, {}, NOW).edits}
    return {name: (value, found.get(name)) for name, value in wanted.items() if found.get(name) != value}


@settings(max_examples=150, deadline=None)
@given(_telegram(_TRAINED, ("train", "fine-tune", "pretrain", "how long to train")))
def test_every_part_of_a_training_is_read(said: Said) -> None:
    assert not _missed(*said)


@settings(max_examples=80, deadline=None)
@given(_telegram(_SERVED, ("serve", "deploy", "inference of")))
def test_every_part_of_a_deployment_is_read(said: Said) -> None:
    assert not _missed(*said)
