"""Sentences out of the lexicon that the classifiers learn from beside people's own: every form that names a wish, in
a plain sentence about some run, with a plan and without one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent.offline.language.act import OF_SERVING
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING, TRAINING

_MODELS = ("Llama-3.1-8B", "qwen2.5-7b", "Mixtral 8x7B", "llama 3.1 70b", "gemma-2-27b", "mistral 7b", "Qwen3-32B")
_DEVICES = ("H100", "A100 80GB", "MI300X", "B200", "L40S", "H200", "rtx 4090")
_COUNTS = ("8", "16", "32", "64", "4", "2")
_FIELDS = {
    TRAINING: (
        ("seq_len", "2k 4k 8k", "2k", "32k"), ("micro_batch", "1, 2, 4, 8", "1", "16"), ("tp", "1 2 4 8", "1", "8"),
        ("global_batch", "128, 256, 512", "128", "1024"), ("zero_stage", "1, 2 and 3", "1", "3"),
        ("lora_rank", "8, 16, 64", "8", "128"), ("pp", "1/2/4", "1", "8"), ("ep", "1 2 4 8", "1", "8"),
    ),
    SERVING: (
        ("concurrency", "1 8 64 256", "1", "256"), ("input_len", "1k, 4k, 16k", "1k", "32k"),
        ("request_rate", "1, 2, 4, 8", "1", "16"), ("tp", "1 2 4 8", "1", "8"),
        ("output_len", "128 256 512", "128", "1024"),
    ),
}  # fmt: skip


class Sentence(NamedTuple):
    """`plan` is the kind of plan that there is, `mode` what it is about (None: nothing says), `before` the tool of the
    turn before."""

    text: str
    plan: str | None
    before: str | None
    mode: str | None
    tools: tuple[str, ...]


class _Way(NamedTuple):
    """A way to say wishes: `plans` are those that it is said with ('n': none, 't': training, 's': serving)."""

    wish: str
    tools: tuple[str, ...]
    plans: str
    texts: tuple[str, ...]


_FACTS = ("describe_hardware", "list_catalogue")
_FILES = ("render_configs", "write_configs")
_HARDWARE = ("recommend_cluster", "auto_configure")
_REPORTS = ("report", "render_report", "preview_report")
_TUNE = "fine-tune {model} on {count} {device}"
_WAYS = (
    _Way("sweep", ("sweep",), "tts", ("{wish} {field} {values}", "{wish} {field} from {low} to {high}")),
    _Way("sweep", ("sweep",), "n", ("{wish} {field} {values}, {model} on {count} {device}",
                                    "{model} on {count} {device}: {wish} {field} {values}")),
    _Way("scaling", ("sweep",), "t", ("how does it {wish} to {count}00 gpus?", "{wish} from 8 to 512 {device}",
                                      "how well does it {wish}?", "{wish}?")),
    _Way("scaling", ("sweep",), "t", ("{wish} up to {count} nodes", "{wish} to {count} nodes?")),
    _Way("scaling", ("sweep", "project_scaling"), "n", ("{wish} of {model} from 8 to {count}0 {device}",)),
    _Way("returns", ("project_scaling",), "tn", ("when do more nodes {wish}?", "{wish} beyond {count} nodes?")),
    _Way("describe", ("describe_hardware",), "nnt", ("{wish} {device}", "{wish} a {device}?", "{device} {wish}")),
    _Way("describe", ("describe_model",), "nnt", ("{wish} {model}", "{model} {wish}?")),
    _Way("describe", ("search_playbook", "advise"), "n", ("{wish} {value}?",)),
    _Way("hourly", _FACTS, "nt", ("what does a {device} cost {wish}", "{device} price {wish}?",
                                  "how much is one {device} {wish}")),
    _Way("list", ("list_catalogue",), "nt", ("{wish} models", "{wish} gpus?", "{wish} accelerators")),
    _Way("saved", ("list_scenarios",), "nts", ("list {wish}", "show my {wish}", "which {wish} are there?")),
    _Way("save", ("save_scenario",), "ts", ("{wish} base", "ok {wish} run-{count}b", "{wish} nightly please")),
    _Way("save", ("save_scenario",), "n", ("{wish} big-run: {model} on {count} {device}",)),
    _Way("load", ("load_scenario",), "nt", ("{wish} base", "{wish} small-lora again", "{wish} nightly")),
    _Way("delete", ("delete_scenario",), "nt", ("{wish} base", "{wish} the scenario nightly", "{wish} small-lora")),
    _Way("diff", ("diff_scenarios", "compare"), "t", ("{wish} base", "{wish} small-lora?")),
    _Way("report", _REPORTS, "tts", ("{wish} please", "make a {wish} of this", "{wish}")),
    _Way("report", _REPORTS, "n", ("a {wish} on " + _TUNE,)),
    _Way("explain", ("explain",), "tts", ("{wish} the {figure}", "{wish} {figure}?")),
    _Way("explain", ("explain",), "n", ("{wish} the {figure}: {model} full on {count} {device}",
                                        "{wish} the {figure} of {model} on {count} {device}")),
    _Way("pays", ("compare", "estimate_training"), "t", ("{wish} {value}?", "would {value} {wish}?")),
    _Way("pays", ("compare", "estimate_inference"), "s", ("{wish} {value}?", "would {value} {wish}?")),
    _Way("pays", ("compare",), "n", ("{wish} {value}? {model} on {count} {device}", "{wish} {value} for {model}?",
                                     "{model} full on {count} {device}: {wish} {value}?")),
    _Way("advise", ("advise",), "t", ("{wish} for this setup?", "{wish}?")),
    _Way("advise", ("advise", "search_playbook"), "n", ("{wish} for {value}",)),
    _Way("playbook", ("search_playbook", "advise"), "nnt", ("{wish} with {value}?", "{value} {wish}",
                                                                    "{wish}: {value}")),
    _Way("everything", ("auto_configure",), "nt", ("{wish}: " + _TUNE, "{wish}, {model} and 30M tokens")),
    _Way("rent", _HARDWARE, "n", ("what should I {wish} to fine-tune {model}", "{wish} for a lora of {model}?")),
    _Way("rent", ("recommend_cluster",), "t", ("{wish}?",)),
    _Way("matrix", ("benchmark_matrix", "render_matrix"), "n", ("{wish} for {model} on {device} and {other}",)),
    _Way("results", ("matrix_results",), "n", ("{wish} ./bench/out", "{wish}: runs/bench")),
    _Way("strategies", ("apply_strategies",), "nt", ("all {wish} for {model} on {count} {device}",)),
    _Way("peak", ("peak_throughput", "estimate_training"), "n", ("{wish} training throughput of {model} on {device}",)),
    _Way("mlperf", ("project_mlperf",), "n", ("{wish} {model} on {count} {device}",)),
    _Way("add", ("add_price", "preview_price"), "n", ("{wish}: {count}x {device} at HomeLab, 18.40 USD an hour",)),
    _Way("command", _FILES, "tts", ("{wish} please", "the {wish} for that", "gimme the {wish}")),
    _Way("command", _FILES, "n", ("{wish} for {model} on {count} {device}", "vllm {wish} for {model}")),
    _Way("show_only", ("render_configs",), "ts", ("{wish} config", "{wish} yaml for that")),
    _Way("thanks", ("none",), "ntts", ("{wish}", "{wish}!", "ok {wish}")),
    _Way("longest", ("find_limit",), "tn", ("{wish} be?", "{wish} go", "{wish} fit?")),
)  # fmt: skip
# What is said without a form of its own; each with every kind of plan in `plans`.
_MORE = (
    _Way("", ("compare",), "ts", ("{device} vs {other}", "{device} or {other}?", "compare with {other}",
                                 "compare it to {count} {other}",
                                 "how does that compare with {other}?", "{device} or {other}, which is faster?")),
    _Way("", ("compare",), "n", ("{model} on {count} {device} vs {count} {other}", "lora vs full: " + _TUNE,
                                 "rank {device}, {other} and B300 for {model} by cost")),
    _Way("", ("compare",), "n", ("with {value} or without: " + _TUNE, "{model}, {value} or not? {count} {device}",
                                 _TUNE + " with or without {value}",
                                 "would {value} help for {model} on {count} {device}?",
                                 "worth going from {count} to {count}0 nodes of {device} for {model}?",
                                 "we train {model} on {count} {device}, what would happen at {count}0",
                                 "we train {model} on {count} {device}, and at {count}0 with the same batch?",
                                 "{model} on {count} {device} compared to {count}0, how long?",
                                 "tensor or pipeline parallel for {model} on {count} {device}?",
                                 "how long on {count} {device} and on {count} {other} for {model}")),
    _Way("", ("compare",), "ts", ("how much more throughput would {value} give?", "how much faster with {value}?",
                                  "what does switching to {value} buy me?")),
    _Way("", ("find_limit",), "n", ("{model} on a {device}, how much context fits?", "{model} on {count} {device}, "
                                    "how long a context can I get?")),
    _Way("", ("describe_hardware", "compare"), "n", ("{device} vs {other}", "difference between {device} and {other}")),
    _Way("", ("sweep",), "t", ("compare 8, 16 and 32 GPUs", "and on 8, 16, 32 and 64 of them?")),
    _Way("", ("estimate_cost",), "t", ("what does it cost?", "how much is that", "price?", "and in dollars?")),
    _Way("", ("estimate_training",), "t", ("how long?", "how fast is it", "mfu?", "tokens per second?")),
    _Way("", ("estimate_training", "check_fit"), "n", (_TUNE, "{model} lora {count}x {device}",
                                                        _TUNE + ", does it fit?",
                                                        "full ft {model}, {count} {device}, seq 4k")),
    _Way("", ("estimate_inference",), "n", ("host {model}", "serve {model}", "deploy {model}", "run {model} locally",
                                            "hosting {model}", "i want to host {model}", "inference with {model}")),
    _Way("", ("estimate_training", "check_fit"), "n", ("train {model}", "fine-tune {model}", "pretrain {model}",
                                                        "lora of {model}", "i want to train {model}", "qlora {model}",
                                                        "finetuning {model}")),
    _Way("", ("estimate_inference",), "n", ("serve {model} on {count} {device} with vllm", "{model} int4 on a {device}",
                                            "how fast does {model} run on one {device}",
                                            "serve {model} on {count} {device}, {load}", "{model} on {device}, {load}",
                                            "serve {model} on an L40S, {load}",
                                            "inference of {model} on one {device} with {load}",
                                            "vllm, {model}, {count} {device}, {load}",
                                            "can I run {model} Q4_K_M on a {device}?",
                                            "how many tokens per second does {model} generate on a {device}?",
                                            "serve {model} with vllm at {load}", "single stream latency of {model}")),
    _Way("", ("best_serving",), "n", ("how many requests per second can {model} handle on {count} {device}",)),
    _Way("", ("estimate_inference",), "s", ("{load}", "with {load}?", "and at {load}", "how fast is it now?")),
    _Way("", ("estimate_training", "check_fit"), "n", ("{model} on {count} {device} with max context 8k",
                                                       "{model} on {count} {device}, max batch size of 32",
                                                       "{model} on {count} {device}, max_seq_len 4096")),
    _Way("", ("size_serving",), "n", ("how many {device} to serve {model} to {count}0 users?",
                                      "size {model} for {count} requests per second",
                                      "how many gpus to serve {model} with {count}00 users",
                                      "what does serving {model} to {count}00 users on {device} cost a month")),
    _Way("", ("best_serving",), "n", ("best way to serve {model} on {count} {device}",
                                      "how should I deploy {model} on {count} {device}?",
                                      "which engine is best for {model} on a {device}",
                                      "cheapest way to serve {model} on {count} {device}",
                                      "lowest latency deployment for {model} on {count} {device}",
                                      "{model} on {device}, what is the max throughput for inference?")),
    _Way("", ("find_limit",), "n", ("how many users can I serve with {model} on a {device}",
                                    "how many concurrent requests can {model} handle on {count} {device}",
                                    "longest prompt for serving {model} on one {device}",
                                    "largest model I can serve on {count} {device}")),
    _Way("", ("sweep",), "n", ("throughput against concurrency for {model} on one {device} with vllm",
                               "ttft at 1, 8, 64 and 256 users for {model} on one {device}",
                               "how does throughput change with batch size for {model} on {device} in vllm?")),
    _Way("", ("estimate_training",), "t", ("gpu_memory_utilization 0.4", "scale the loss by 128")),
    _Way("", ("estimate_training",), "t", ("why is it slow?", "what limits my mfu?", "how can I make it faster?",
                                           "show the roofline", "speed it up")),
    _Way("", ("check_fit", "estimate_inference"), "n", ("vram for {model}", "memory needed for {model}",
                                                        "what does {model} need to run?")),
    _Way("", ("find_limit",), "n", ("I have a {device}, what can I do with it?", "what can a single {device} do?",
                                    "largest llama I can train with lora?")),
    _Way("", ("estimate_cost",), "ts", ("too expensive", "can it be cheaper?", "that costs too much")),
    _Way("", ("find_limit",), "nt", ("longest context of {model} on {count} {device}?",
                                     "biggest batch for {model} on {device}",
                                     "how many {device} do I need at least for {model} full",
                                     "largest model for {count} {device}?")),
    _Way("", _FILES, "t", ("the {target} one too", "and for {target}", "{target} instead", "same for {target}",
                           "{target} version?", "now {target}")),
    _Way("", _FILES, "n", ("the {target} for a lora of {model} on {count} {device}",)),
    _Way("", ("best_parallelism",), "t", ("best layout?", "what is the best parallelism", "which tp and pp?")),
)  # fmt: skip
_BEFORE = {TRAINING: "estimate_training", SERVING: "estimate_inference"}
_PLANS = {"n": None, "t": TRAINING, "s": SERVING}
_FIGURES = ("activation memory", "optimizer memory", "step time", "ttft", "mfu", "kv cache", "logits", "total cost")
_LOADS = ("64 users", "5 qps", "300 requests per minute", "2k in 500 out", "ttft under 500 ms", "fp8 kv cache",
          "concurrency 32", "20 requests/s", "36k requests an hour", "tp 4", "int4 weights", "1M tokens a day",
          "prompts of 1000 tokens and answers of 200 tokens", "p99 tpot < 50 ms")  # fmt: skip
_TARGETS = ("slurm", "axolotl", "llamafactory", "deepspeed", "unsloth", "torchtune", "accelerate", "skypilot", "trl")
_VALUES = ("fsdp", "fp8", "expert parallelism", "lora", "recompute", "zero 3 offload", "flash attention", "nccl")


def sentences() -> Iterator[Sentence]:
    """Each form of each wish once with each of its plans, in its ways by turns; then what has no form of its own."""
    words = lexicon()
    turn = itertools.count()
    for way in _WAYS:
        for form in words.wishes[way.wish]:
            for plan in dict.fromkeys(way.plans):
                index = next(turn)
                yield _sentence(way, way.texts[index % len(way.texts)], form, plan, index)
    for way in _MORE:
        for text, plan, _again in itertools.product(way.texts, way.plans, range(3)):
            yield _sentence(way, text, "", plan, next(turn))


def _sentence(way: _Way, text: str, form: str, plan: str, index: int) -> Sentence:
    kind = _PLANS[plan]
    name, values, low, high = _one(_FIELDS[kind or TRAINING], index)
    said = text.format(
        wish=form, field=lexicon().forms[name][0], values=values, low=low, high=high, model=_one(_MODELS, index),
        device=_one(_DEVICES, index), other=_one(_DEVICES, index + 1), count=_one(_COUNTS, index),
        figure=_one(_FIGURES, index), value=_one(_VALUES, index),
        load=_one(_LOADS, index),
        target=_one(_TARGETS, index),
    )  # fmt: skip
    mode = SERVING if not kind and (set(way.tools) <= OF_SERVING or "load" in text) else None
    return Sentence(said, kind, _BEFORE[kind] if kind else None, mode, way.tools)


def _one(of: Sequence[Any], index: int) -> Any:
    return of[index % len(of)]
