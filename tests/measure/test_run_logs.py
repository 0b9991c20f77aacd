"""Logs of training programs as measured runs: each kind's figures, what contradicts, and what is cut or garbled."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import tracemalloc
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.units import GIB
from measure.history.run import MeasuredRun
from measure.logs.protobuf import fields_of
from measure.logs.reading import is_log, log_span, read, read_text
from measure.logs.scan import scanned

MEGATRON = (
    " [2025-05-27 15:23:07] iteration {step:8}/ 24000 | consumed samples: {samples} | elapsed time per iteration (ms): "
    "{ms} | throughput per GPU (TFLOP/s/GPU): 404.0 | learning rate: 1.500000E-06 | global batch size:  128 | lm loss: "
    "1.192634E+01 | loss scale: 1.0 | grad norm: 5.960 | number of skipped iterations:   0 | number of nan iterations: "
    "  0 |"
)
PRIMUS = (
    "[20251202 09:12:08][rank-7/8][INFO ] [--------trainer.py:2560] : iteration {step}/ 5000 | consumed samples: "
    "{samples} | elapsed time per iteration (ms): {ms}/13364.7 | hip mem usage/free/total/usage_ratio: "
    "153.81GB/102.17GB/255.98GB/60.09% | throughput per GPU (TFLOP/s/GPU): 567.6/568.0 | tokens per GPU "
    "(tokens/s/GPU): 9801.4/9807.3 | learning rate: 9.984820E-06 | global batch size: 128 | lm loss: 6.548988E-03 |"
)


def lines(form: str, count: int = 12, ms: float = 13372.8, first_ms: float = 60000.0) -> str:
    rows = (
        form.format(step=step, samples=step * 128, ms=first_ms if step == 1 else ms) for step in range(1, count + 1)
    )
    return "\n".join(rows) + "\n"


ALCF = (
    "[2025-11-10 09:43:36,161992][I][megatron/training_log:402:training_log]  iteration=  136004/  136100 | "
    "consumed_samples=   835608576 | consumed_tokens=6845305454592 | elapsed_time_per_iteration_ms=3415.3 | "
    "learning_rate=2.0127e-05 | global_batch_size= 6144 | lm loss=12.316531 | loss_scale=1.0 | grad_norm=1020.352 | "
    "actual_seqlen= 8192 | samples_per_second=1798.971 | tokens_per_gpu_per_second_tgs=4797.255 | TFLOPs=53.66 |"
)
NEMO = "\n".join(
    f"Training epoch 0, iteration {step}/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: {step} | "
    "peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.98 | train_step_timing in "
    f"s: 12.4 | consumed_samples: {128 * step}"
    for step in (47, 48, 49)
)
TITAN = """\
[titan] 2025-06-01 10:00:01,000 - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory
[titan] 2025-06-01 10:00:01,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]
[titan] 2025-06-01 10:00:01,000 - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters
[titan] 2025-06-01 10:00:02,000 - root - INFO - Trainer is initialized with local batch size 1, global batch size 8, \
gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 200)
[titan] 2025-06-01 10:00:10,000 - root - INFO - step:  1  loss: 12.27  memory: 40.48GiB(51.2%)  tps: 700  mfu: 4.15%
[titan] 2025-06-01 10:00:20,000 - root - INFO - step: 10  loss: 10.27  memory: 47.48GiB(60.0%)  tps: 6,100  mfu: 35.7%
[titan] 2025-06-01 10:00:30,000 - root - INFO - step: 20  loss: 9.272  memory: 47.48GiB(60.0%)  tps: 6,150  mfu: 36.0%
[titan] 2025-06-01 10:00:31,000 - root - INFO - validate step: 20  loss: 3.1  memory: 70.48GiB(90.0%)  tps: 16,120
[titan] 2025-06-01 10:00:40,000 - root - INFO - step: 30  loss: 8.272  memory: 47.48GiB(60.0%)  tps: 6,120  mfu: 35.9%
"""
TUNE = "\n".join(
    f"Step {step} | loss:1.6423 lr:1.9e-05 grad_norm:3.1 tokens_per_second_per_gpu:{512.5 if step == 1 else 1512.5} "
    "peak_memory_active:24.3 peak_memory_alloc:24.1 peak_memory_reserved:26.2"
    for step in (1, 2, 3)
)
MAXTEXT = (
    "Config param model_name: llama2-7b\nConfig param max_target_length: 2048\nNum_devices: 32, TPU v5p\n"
    + "\n".join(
        f"completed step: {step}, seconds: {45.6 if step == 0 else 1.667}, TFLOP/s/device: 224.9, Tokens/s/device: "
        f"4914.2, total_weights: 262144, loss: 10.374"
        for step in range(4)
    )
)
VERL = "'n_gpus_per_node': 8,\n'nnodes': 1,\n" + "\n".join(
    f"step:{step} - global_seqlen/min:100000 - actor/pg_loss:0.01 - actor/grad_norm:0.2 - perf/mfu/actor:0.31 - "
    "perf/max_memory_allocated_gb:55.2 - actor/lr:1e-06 - timing_s/gen:40.1 - timing_s/step:91.5 - "
    "perf/throughput:1686.6"
    for step in (1, 2, 3)
)
UNSLOTH = r"""
   \\   /|    Tesla T4. Num GPUs = 1. Max memory: 14.741 GB. Platform: Linux.
O^O/ \_/ \    Torch: 2.6.0+cu124. CUDA: 7.5. CUDA Toolkit: 12.4. Triton: 3.2.0
==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1
   \\   /|    Num examples = 51,760 | Num Epochs = 1 | Total steps = 60
O^O/ \_/ \    Batch size per device = 2 | Gradient accumulation steps = 4
\        /    Data Parallel GPUs = 1 | Total batch size (2 x 4 x 1) = 8
 "-____-"     Trainable parameters = 41,943,040/8,000,000,000 (0.52% trained)
{'loss': 1.82, 'grad_norm': 0.3, 'learning_rate': 4e-05, 'epoch': 0.0}
{'train_runtime': 457.4, 'train_samples_per_second': 1.05, 'train_steps_per_second': 0.131, 'train_loss': 0.92}
"""
AXOLOTL = "\n".join(
    "{'loss': 0.82, 'grad_norm': 0.3, 'learning_rate': 4e-05, 'memory/max_active (GiB)': 20.5, "
    "'memory/device_reserved (GiB)': 31.0, 'tokens_per_second_per_gpu': 2100.0, 'epoch': 0.01}"
    for _ in range(4)
)
DEEPSPEED = "\n".join(
    f"[2024-03-07 15:27:02,646] [INFO] [timer.py:260:stop] epoch=0/micro_step={step}/global_step={step}, "
    "RunningAvgSamplesPerSec=58.73, CurrSamplesPerSec=64.0, MemAllocated=6.01GB, MaxMemAllocated=19.52GB"
    for step in (10, 20, 30)
)
LIGHTNING = "".join(
    f"\rEpoch 0: {step:3d}%|█         | {step}/100 [{(10 + 2 * step) // 60:02d}:{(10 + 2 * step) % 60:02d}<03:00,  "
    f"0.50it/s, v_num=0, train_loss={5 / step:.3f}]"
    for step in range(1, 101)
)
MLPERF = "\n".join(
    ":::MLLOG " + json.dumps({"time_ms": 1759734600000 + place, "key": key, "value": value, "metadata": metadata})
    for place, (key, value, metadata) in enumerate(
        [("submission_benchmark", "llama31_8b", {}), ("global_batch_size", 32, {}), ("max_sequence_length", 8192, {}),
         *(("tracked_stats", {"throughput": 60.0, "train_step_time": 0.534}, {"step": 384 * n}) for n in (1, 2, 3))]
    )
)  # fmt: skip
NANOTRON = "".join(
    f"10/17/2025 16:3{at}:00 [INFO|DP=0|PP=0|TP=0]: iteration: {100 + at} / 950 | consumed_tokens: 85.8G | "
    "elapsed_time_per_iteration_ms: 12K | tokens_per_sec: 21.8K | tokens_per_sec_per_gpu: 10.9K | "
    "global_batch_size: 64 | lm_loss: 2.4 | lr: 1e-05 | model_tflops_per_gpu: 38 | hardware_tflops_per_gpu: 39 | "
    "grad_norm: 1.2\n"
    for at in range(4)
)
# Two passes a step, as lines that number both say.
LITGPT = "".join(f"iter {at} step {at // 2}: loss 2.8, iter time: 200.00ms\n" for at in range(20, 32))
NANOGPT = "".join(f"iter {10 * at}: loss 3.2, time {9000 if at == 0 else 900}.0ms, mfu 17.00%\n" for at in range(6)) + (
    "step 60: train loss 3.1, val loss 3.2\n"
)
SWIFT = "".join(
    f"{{'loss': 1.4, 'grad_norm': 0.9, 'learning_rate': 1e-4, 'epoch': 0.01, 'global_step/max_steps': '{step}/94', "
    f"'elapsed_time': '{(6 * step + 3) // 60}m {(6 * step + 3) % 60}s', 'memory(GiB)': 17.5, "
    f"'train_speed(iter/s)': {step / (6 * step + 3):.6f}}}\n"
    for step in (1, 5, 10, 15, 20)
)
COMPOSER = "".join(
    f"[batch={batch}/4800]:\n\t Train loss/train/total: 9.5\n\t Train memory/reserved_mem: 40000000000\n"
    "\t Train throughput/batches_per_sec: 0.2500\n\t Train throughput/device/tokens_per_sec: 8192.0000\n"
    "\t Train throughput/device/mfu: 0.2700\n"
    for batch in (12, 13, 14)
)
AUTOMODEL = "".join(
    f"2026-08-10 15:55:{2 * step:02} | INFO | root | step {step} | epoch 0 | loss 0.69 | grad_norm 1.5 | lr 1.00e-05 | "
    "mem 29.50 GiB | tps 12000.00(1500.00/gpu) | num_label_tokens 21541\n"
    for step in range(4, 28)
)
TUNED = """INFO:torchtune.utils._logging:Running LoRAFinetuneRecipeSingleDevice with resolved config:
batch_size: 2
gradient_accumulation_steps: 8
model:
  _component_: torchtune.models.llama3_1.lora_llama3_1_8b
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 4096
"""
SAMPLED = "timestamp, name, index, memory.used [MiB], utilization.gpu [%], power.draw [W]\n" + "".join(
    f"2026/11/01 10:00:{at:02}.1, NVIDIA H100 80GB HBM3, {device}, {60_000 + at} MiB, 97 %, 640.50 W\n"
    for at in range(4) for device in range(8)
)  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, float], dict[str, Any]]] = {
    "megatron": (lines(MEGATRON), {"step_s": 13.3728, "tflops_per_device": 404.0},
                 {"workload.framework": "megatron-lm", "workload.global_batch": 128}),
    "primus": (lines(PRIMUS), {"step_s": 13.3728, "peak_bytes": 153.81 * GIB, "tokens_per_s_per_device": 9801.4},
               {"workload.framework": "primus", "workload.seq_len": 8192, "cluster.count": 8}),
    "alcf": (ALCF, {"step_s": 3.4153, "tokens_per_s_per_device": 4797.255},
             {"workload.framework": "megatron-deepspeed", "workload.seq_len": 8192}),
    "nemo": (NEMO, {"step_s": 12.4, "peak_bytes": 70833405952.0}, {"workload.framework": "nemo"}),
    "torchtitan": (TITAN, {"tokens_per_s_per_device": 6120.0, "step_s": 8192 / 6120.0, "mfu": 0.359,
                           "peak_bytes": 47.48 * GIB},
                   {"model": "meta-llama/Meta-Llama-3-8B", "cluster.accelerator": "h100-sxm", "cluster.count": 8}),
    "torchtune": (TUNE, {"tokens_per_s_per_device": 1512.5, "peak_bytes": 24.1 * GIB},
                  {"workload.framework": "torchtune"}),
    "torchtune config": (TUNED + TUNE, {"tokens_per_s_per_device": 1512.5},
                         {"model": "meta-llama/Llama-3.1-8B", "workload.method": "lora", "workload.global_batch": 16}),
    "nvidia-smi": (SAMPLED, {"peak_bytes": 60_003 * 2.0**20}, {"cluster.count": 8, "cluster.accelerator": "h100-sxm"}),
    "rocm-smi": ("device,VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,206158430208,126702878720\n",
                 {"peak_bytes": 126702878720.0}, {"cluster.count": 1}),
    "maxtext": (MAXTEXT, {"step_s": 1.667, "tokens_per_s_per_device": 4914.2},
                {"model": "meta-llama/Llama-2-7b-hf", "cluster.accelerator": "tpu-v5p", "workload.global_batch": 128}),
    "verl": (VERL, {"step_s": 91.5, "mfu": 0.31, "peak_bytes": 55.2 * GIB}, {"cluster.count": 8}),
    "unsloth": (UNSLOTH, {"step_s": 457.4 / 60}, {"workload.method": "lora", "cluster.accelerator": "t4"}),
    "axolotl": (AXOLOTL, {"tokens_per_s_per_device": 2100.0, "peak_bytes": 20.5 * GIB}, {}),
    "deepspeed": ("train_batch_size ............. 128\n" + DEEPSPEED, {"step_s": 2.0, "peak_bytes": 19.52 * GIB},
                  {"workload.global_batch": 128}),
    "lightning": (LIGHTNING, {"step_s": 2.0}, {}),
    "mlperf": (MLPERF, {"step_s": 0.534}, {"workload.global_batch": 32, "workload.seq_len": 8192}),
    "nanotron": (NANOTRON, {"step_s": 12.0, "tokens_per_s_per_device": 10900.0, "tflops_per_device": 38.0},
                 {"workload.seq_len": 4096, "cluster.count": 2, "workload.framework": "nanotron"}),
    "litgpt": (LITGPT, {"step_s": 0.4}, {"workload.framework": "litgpt"}),
    "litgpt-passes": ("".join(f"iter {at} step {at // 2}: loss 3.5, iter time: {190 - 80 * (at % 2)}.0ms"
                              f"{' (optimizer.step)' * (at % 2 == 0)}\n" for at in range(100, 120))
                      + "Memory used: 14.49 GB\n",
                      {"step_s": 0.3, "peak_bytes": 14.49e9}, {"workload.framework": "litgpt"}),
    "llm.c": ("".join(f"step {at:4}/74 | loss 3.2 (+nanz)| norm 1.4 (+nanz)| lr 3.00e-04 | 44.50 ms | 38.0% bf16 MFU | "
                      "91886 tok/s\n" for at in range(60, 70)),
              {"step_s": 0.0445, "mfu": 0.38, "tokens_per_s": 91886.0}, {}),
    "swift-line": (" ".join(f"{{'loss': {0.5 - 0.01 * at}, 'epoch': 0.2, 'global_step/max_steps': '{at}/94', "
                            f"'elapsed_time': '{at}m 30s'}}" for at in range(12, 20)), {"step_s": 60.0}, {}),
    "nanogpt": (NANOGPT, {"step_s": 0.9, "mfu": 0.17}, {}),
    "modded-nanogpt": ("".join(f"step:{step}/1000 train_time:{140 * step}ms step_avg:140.00ms\n"
                               for step in range(1, 1001, 100)), {"step_s": 0.14}, {}),
    "ms-swift": (SWIFT, {"step_s": 6.0, "peak_bytes": 17.5 * GIB}, {"workload.framework": "ms-swift"}),
    "composer": (COMPOSER, {"step_s": 4.0, "tokens_per_s_per_device": 8192.0, "mfu": 0.27, "peak_bytes": 40e9},
                 {"workload.framework": "llm-foundry"}),
    "automodel": (AUTOMODEL, {"tokens_per_s_per_device": 1500.0, "peak_bytes": 29.5 * GIB, "step_s": 2.0},
                  {"workload.framework": "nemo-automodel"}),
    "olmo": ("".join(f"[2024-04-17 09:42:{10 * at:02}] INFO [olmo.train:816, rank=0] [step={at}/700]\n"
                     "    train/CrossEntropyLoss=10.73\n    throughput/device/tokens_per_second=45,000\n"
                     "    throughput/device/batches_per_second=0.1000\n    System/Peak GPU Memory (MB)=43,000\n"
                     for at in range(1, 5)),
             {"step_s": 10.0, "tokens_per_s_per_device": 45000.0, "peak_bytes": 43000 * 2.0**20}, {}),
    "nanochat": ("".join(f"step {at:5} | loss: 4.1 | lr: 6e-5 | norm: 2.0 | dt: 2500.00ms | tok/sec: 200,000.00\n"
                         for at in range(6)), {"step_s": 2.5, "tokens_per_s": 200000.0}, {}),
    "bridge": ("Step Time : 12.50s GPU utilization: 530.0MODEL_TFLOP/s/GPU\n" * 3,
               {"step_s": 12.5, "tflops_per_device": 530.0}, {"workload.framework": "megatron-bridge"}),
    "bridge-memory": (" iteration 10/50 | elapsed time per iteration (ms): 13212.7 | lm loss: 4.4E+00 |\n[Rank 0] (aft"
                      "er 10 iterations) memory (MB) | allocated: 11908.0 | max allocated: 12712.0 | reserved: 1.0\n"
                      "Step Time : 14.26s GPU utilization: 58.2TFLOP/s/GPU\n iteration 20/50 | elapsed time per "
                      "iteration (ms): 14260.0 | lm loss: 8.7E-02 |\n",
                      {"step_s": 14.26, "peak_bytes": 12712.0 * 2.0**20}, {"workload.framework": "megatron-bridge"}),
    "primus-26.5": ("".join(f"iteration {at}/10 | elapsed time per iteration (ms): 1997.8/2032.7 | compute per GPU "
                            "(TFLOP/s/GPU): 500.0 (avg 498.1) | tokens/s/GPU inst/harmonic mean: 1000.0/1111.0\n"
                            for at in range(1, 5)),
                    {"step_s": 1.9978, "tokens_per_s_per_device": 1000.0}, {"workload.framework": "primus"}),
    "nemo-memory": ("".join(f"Training epoch 0, iteration {at}/99 | lr: 6.897e-06 | global_batch_size: 128 | "
                            f"max_memory_reserved: 127785762816 | max_memory_allocated: 115792977920 | reduced_train_"
                            f"loss: 11.96 | train_step_timing in s: 6.08\n" for at in range(45, 48)),
                    {"step_s": 6.08, "peak_bytes": 115792977920.0}, {"workload.framework": "nemo"}),
    "nemo-list": ("[NeMo I 2025-03-04 02:58:29 perf:56] train_step_timing in s: [9.5, 4.2, 2.1, 2.1, 2.1, 2.1]\n",
                  {"step_s": 2.1}, {}),
    "clocks": ("".join(f"[2022-03-11 02:0{at}:00,500] step={100 * at}, lr=[5e-05], loss=0.5\n" for at in range(4)),
               {"step_s": 0.6}, {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_program_prints_its_steps_in_its_way(kind: str) -> None:
    text, figures, facts = KINDS[kind]
    run = read_text(text)
    assert run.outcome == "ran"
    assert {name: run.figures[name] for name in figures} == pytest.approx(figures, rel=1e-3)
    assert {path: run.planned(path) for path in facts} == facts
    assert is_log(text)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"nvidia-smi", "rocm-smi"}))
def test_a_pasted_log_is_told_from_the_words_beside_it(kind: str) -> None:
    printed = KINDS[kind][0].strip("\n").split("\n")
    for first, last in ((["this is my run on 8 gpus, can it be faster?"], []), ([], ["is that good?"])):
        assert log_span([*first, *printed, *last]) == (len(first), len(first) + len(printed))


def test_words_without_a_log_have_none() -> None:
    for text in (
        "full fine-tune Llama-3.1-8B\non 8 H100s, 40,000 tokens/s",
        "my loss is 2.5\nat step 400: is that normal?",
    ):
        assert log_span(text.split("\n")) is None


def test_the_first_steps_are_apart_and_slow_ones_are_told() -> None:
    text = lines(MEGATRON, 40) + MEGATRON.format(step=41, samples=41 * 128, ms=90000.0) + "\n"
    run = read_text(text)
    assert run.figures["step_s"] == pytest.approx(13.3728)
    assert run.start_s == pytest.approx(60.0 - 13.3728)
    assert run.steps == 39
    assert any("1 steps took far longer" in finding for finding in run.findings)


def test_a_progress_bar_gives_the_time_that_the_trainer_does_not_print() -> None:
    parts = ["***** Running training *****\n  Total train batch size (w. parallel) = 64\n"]
    seconds = 0
    for step in range(1, 101):
        seconds += 30 if step == 1 else 4
        if step == 50:
            seconds += 90
            parts.append("Saving model checkpoint to out/checkpoint-50\n")
        parts.append(f"\r {step}%|██  | {step}/100 [{seconds // 60:02d}:{seconds % 60:02d}<10:00,  4.00s/it]")
        if step % 10 == 0:
            parts.append(f"\n{{'loss': '{3 / step:.4f}', 'grad_norm': '1.2', 'learning_rate': '2e-05'}}\n")
    run = read_text("".join(parts))
    assert run.figures["step_s"] == pytest.approx(4.0, rel=0.01)
    assert len(run.series.step) == 10


def test_lines_with_epochs_alone_are_numbered_by_what_the_whole_run_counted() -> None:
    """A Trainer that logs every ten steps: 264 steps of 3 epochs, as printed by TRL 0.24. Counted line by line a step
    had ten times its tokens; the summary of the run is no step."""
    lines = [
        f"{{'loss': '0.13', 'num_tokens': '{tokens}', 'epoch': '{epoch}'}}"
        for tokens, epoch in (("4.489e+05", "2.617"), ("4.684e+05", "2.731"), ("4.891e+05", "2.846"))
    ]
    end = "{'train_runtime': '1575', 'train_loss': '0.2854', 'num_tokens': '5.153e+05', 'epoch': '3'}"
    run = read_text("\n".join([*lines, end, "100%|####| 264/264 [26:15<00:00,  5.97s/it]"]))
    assert run.series.step == [230, 240, 250]
    assert run.figures["tokens_per_s"] == pytest.approx(5.153e5 / 1575, rel=0.05)


NOTEBOOK = """O^O/ \\_/ \\    Batch size per device = 4 | Gradient accumulation steps = 2
 [90/90 01:55, Epoch 30/30]
Step\tTraining Loss
10\t1.898500
20\t0.925200
90\t0.044500
Device set to use cuda:0
100 lines more\t7
"""


def test_the_table_of_a_notebook_is_a_log() -> None:
    run = read_text(NOTEBOOK)
    assert (run.series.step, run.series.loss) == ([10, 20, 90], [1.8985, 0.9252, 0.0445])
    assert run.figures["step_s"] == pytest.approx(115 / 90)


def test_a_mac_counts_memory_in_decimal_units() -> None:
    """mlx_lm 0.20's lines, which set names and numbers apart by a space."""
    form = (
        "Iter {}: Train loss 0.4, Learning Rate 1.000e-06, It/sec 0.25, Tokens/sec 150.0, Trained Tokens {}, "
        "Peak mem 100.7 GB"
    )
    run = read_text("\n".join(form.format(step, step * 600) for step in (860, 870, 880)))
    assert run.plan["workload"]["framework"] == "mlx"
    assert run.figures | {"step_s": 4.0, "tokens_per_s": 150.0, "peak_bytes": 100.7e9} == pytest.approx(run.figures)


def test_lines_of_older_and_newer_programs_are_read_alike() -> None:
    """DeepSpeed of 2022 counts its steps behind a stroke, with learning rates on a line apart; verl prints numpy's
    numbers by their type."""
    deepspeed = read_text(
        "".join(
            f"[2022-08-29 06:{minute}:56,121] [INFO] [logging.py:68:log_dist] [Rank 0] step={step}, skipped=17, "
            f"lr=[5e-05], mom=[(0.9, 0.999)]\n[2022-08-29 06:{minute}:56,176] [INFO] [timer.py:198:stop] 0/{step}, "
            "RunningAvgSamplesPerSec=232.7, CurrSamplesPerSec=227.48, MemAllocated=0.36GB, MaxMemAllocated=15.06GB\n"
            for minute, step in ((10, 20), (11, 30), (12, 40))
        )
    )
    assert (deepspeed.series.step, deepspeed.series.learning_rate) == ([20, 30, 40], [5e-05] * 3)
    assert deepspeed.figures["step_s"] == pytest.approx(6.0)
    assert deepspeed.figures["peak_bytes"] == pytest.approx(15.06 * GIB)
    verl = read_text(
        "\x1b[36m(TaskRunner pid=1)\x1b[0m step:1 - actor/grad_norm:np.float64(0.0284) - "
        "perf/time_per_step:17.62 - perf/throughput:11.73\n"
    )
    assert (verl.series.gradient_norm, verl.figures["step_s"]) == ([0.0284], 17.62)


def test_a_rate_that_does_not_belong_to_the_steps_is_told() -> None:
    header = "using world size: 8, data-parallel size: 8\n  seq_length ....... 2048\n"
    run = read_text(header + lines(PRIMUS))
    (finding,) = [each for each in run.findings if "do not belong" in each]
    assert "2,048" in finding
    assert not any("do not belong" in each for each in read_text(lines(PRIMUS)).findings)


@pytest.mark.parametrize(
    ("message", "wanted", "place"),
    [
        ("CUDA out of memory. Tried to allocate 7.83 GiB. GPU 3 has a total capacity of 79.10 GiB of which 5.21 GiB is "
         "free. Of the allocated memory 70.22 GiB is allocated by PyTorch, and 1.95 GiB is reserved by PyTorch but "
         "unallocated.", 78.05, "cross_entropy(source, target)"),
        ("CUDA out of memory. Tried to allocate 7.83 GiB (GPU 3; 79.10 GiB total capacity; 70.22 GiB already "
         "allocated; 5.21 GiB free; 72.17 GiB reserved in total by PyTorch)", 78.05, "self.optimizer.step()"),
    ],
)  # fmt: skip
def test_a_run_out_of_memory_says_what_it_needed_and_where(message: str, wanted: float, place: str) -> None:
    text = (
        f'Traceback (most recent call last):\n  File "train.py", line 1\n    {place}\ntorch.OutOfMemoryError: {message}'
    )
    run = read_text(text)
    assert run.outcome == "oom"
    assert run.figures["peak_bytes"] == pytest.approx(wanted * GIB)
    assert ("loss" if "cross" in place else "optimizer step") in run.findings[0]


def test_advice_against_an_error_is_none() -> None:
    """A notebook or a README that speaks of running out of memory did not."""
    advice = "gpu_memory_utilization = 0.6  # Reduce if out of memory\n"
    assert read_text(advice + lines(PRIMUS)).outcome == "ran"
    assert read_text(lines(PRIMUS) + "RuntimeError: HIP error: out of memory\n").outcome == "oom"


def test_a_rank_of_adapters_is_the_plan_s() -> None:
    assert read_text("lora_r: 8\n" + lines(PRIMUS)).plan["workload"]["lora"] == {"rank": 8}


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***", "time limit"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.", "host memory"),
        ("[rank2]:[E ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout", "collective"),
        ("[rank0]: ValueError: the tokenizer has no chat_template\n"
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "ValueError: the tokenizer"),
        ("usage: train.py [-h] --config CONFIG\ntrain.py: error: unrecognized arguments: --local-rank=3",
         "its command was refused: unrecognized arguments"),
    ],
)  # fmt: skip
def test_a_file_says_why_its_run_stopped(end: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(f"Traceback (most recent call last):\n{end}\n")
    run = read(tmp_path / "train.log")[0]
    assert run.outcome == "failed"
    assert why in run.findings[0]
    # What a person pastes may be about anything.
    assert not is_log(end)


def test_the_head_of_a_log_and_a_command_in_it_tell_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \\\n    data.train_batch_size=64 \\\n"
        "    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8 trainer.nnodes=2\n"
    )
    run = read(path)[0]
    assert (run.outcome, run.findings) == ("failed", ["no step is in it: the plan is all that it tells"])
    assert run.plan["model"] == "Qwen/Qwen2.5-7B"
    assert (run.plan["workload"]["stage"], run.plan["workload"]["global_batch"]) == ("grpo", 64)
    assert run.plan["cluster"]["count"] == 16
    # What is pasted may be anybody's command.
    with pytest.raises(PlanError):
        read_text(path.read_text())


def test_ranks_follow_from_the_batch_of_the_trainer() -> None:
    said = "***** Running training *****\n  Instantaneous batch size per device = 2\n"
    said += (
        "  Total train batch size (w. parallel, distributed & accumulation) = 64\n  Gradient Accumulation steps = 4\n"
    )
    run = read_text(said + "{'loss': 1.9, 'epoch': 0.1}\n{'loss': 1.8, 'epoch': 0.2}\n")
    assert run.plan["cluster"]["count"] == 8


def test_an_mfu_that_cannot_be_is_told() -> None:
    line = "(TaskRunner) step:{at} - actor/pg_loss:0.1 - perf/mfu/actor:1.018 - timing_s/step:96.5\n"
    run = read_text("".join(line.format(at=at) for at in range(1, 4)))
    assert any("MFU of 102%" in text for text in run.findings)


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(PlanError, match="nothing in it"):
        read_text("Dear all, the training went well. Loss was fine; see you.\n")
    assert not is_log("full fine-tune Llama-3.1-8B on 8 H100s, 40,000 tokens/s")
    assert not is_log("at step 400 my loss 2.5 does not go down any more, is that normal?")


def test_a_log_without_times_has_those_of_its_lines_and_says_so() -> None:
    run = read_text(KINDS["clocks"][0])
    assert any("between the lines" in finding for finding in run.findings)
    # What a program prints of its speed comes first.
    assert not any("between the lines" in finding for finding in read_text(KINDS["nanotron"][0]).findings)


def test_the_log_of_llamafactory_has_the_time_and_the_tokens_of_its_steps(tmp_path: Path) -> None:
    rows = [{"current_steps": step, "total_steps": 200, "loss": 1.5, "lr": 1e-4, "total_tokens": 16_384 * step,
             "elapsed_time": str(timedelta(seconds=86_370 + 4 * step))} for step in range(10, 201, 10)]  # fmt: skip
    (tmp_path / "trainer_log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run = read(tmp_path)[0]
    assert run.figures["step_s"] == pytest.approx(4.0)
    assert run.figures["tokens_per_s"] == pytest.approx(4096.0)
    assert run.planned("workload.framework") == "hf-trainer"


def test_settings_of_any_wording_are_read() -> None:
    header = "  zero_optimization_stage ...... 3\nzero stage 3\ncreating bf16 ZeRO stage 3 optimizer\n"
    assert read_text(header + lines(MEGATRON)).planned("layout.zero_stage") == 3
    assert read_text("zero_stage: 2\n" + lines(MEGATRON)).planned("layout.zero_stage") == 2
    for config in ("sequence_len: 4096\nadapter: lora\n", '  "sequence_len": 4096,\n  "adapter": "lora"\n'):
        run = read_text(config + lines(MEGATRON))
        assert (run.planned("workload.seq_len"), run.planned("workload.method")) == (4096, "lora")


def test_what_stands_on_a_line_of_its_own_is_of_the_run() -> None:
    peak = (
        "[Rank 0] (after 2 iterations) memory (MB) | allocated: 33211.5 | max allocated: 61234.5 | reserved: 65002.0\n"
    )
    first, _, rest = lines(MEGATRON).partition("\n")
    assert read_text(f"{first}\n{peak}{rest}").figures["peak_bytes"] == pytest.approx(61234.5 * 2**20)
    mean = "{'loss': 1.5, 'epoch': 0.5}\n{'loss': 1.4, 'epoch': 1.0}\n"
    mean += "{'train_runtime': 1234.5, 'train_steps_per_second': 0.405, 'train_loss': 1.43, 'epoch': 1.0}\n"
    assert read_text(mean).figures["step_s"] == pytest.approx(1 / 0.405)


@pytest.mark.parametrize(
    ("form", "step_s"),
    [
        ("Epoch 0 | Step {step}/900 | Loss: 4.1 | Grad: 1.0 | Time: 0.52{odd}s", 0.52),
        # That since the start, which grows.
        ("Epoch 0 | Step {step}/900 | Loss: 4.1 | Grad: 1.0 | Time: {since}s", 1.5),
        ("INFO: global step {step}: loss = 72.8 (17.05{odd} sec/step)", 17.05),
        ("step {step} loss: 2.9 lr: 1e-4 812.{odd} ms/iter", 0.812),
    ],
)
def test_a_time_is_that_of_a_step_or_that_since_the_start(form: str, step_s: float) -> None:
    text = "\n".join(form.format(step=10 * at, since=15.0 * at, odd=at % 3) for at in range(1, 9))
    assert read_text(text).figures["step_s"] == pytest.approx(step_s, rel=0.01)


def test_losses_of_parts_are_not_the_loss() -> None:
    text = "".join(
        f"step {at} | load_balancing_loss: 9.5 | mtp_1 loss: 8.5 | loss: 2.5 | step time: 1.5 s\n" for at in (1, 2)
    )
    assert read_text(text).series.loss == [2.5, 2.5]


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_cut_and_garbled_logs_never_crash(kind: str, data: st.DataObject) -> None:
    text = KINDS[kind][0].encode()
    at = data.draw(st.integers(0, len(text)))
    cut = text[at:] if data.draw(st.booleans()) else text[:at]
    noise = data.draw(st.binary(max_size=40))
    place = data.draw(st.integers(0, len(cut)))
    with suppress(PlanError):
        run = read_text((cut[:place] + noise + cut[place:]).decode(errors="replace"))
        assert MeasuredRun.model_validate_json(run.model_dump_json()) == run


def test_a_long_log_is_read_in_memory_that_does_not_grow() -> None:
    class Endless(io.RawIOBase):
        def __init__(self, blocks: int) -> None:
            self.left, self.step = blocks, 0

        def read(self, size: int = -1) -> bytes:
            if not self.left:
                return b""
            self.left -= 1
            self.step += 2000
            return lines(MEGATRON, 2000).encode()

    def most(blocks: int) -> int:
        tracemalloc.start()
        scan = scanned(Endless(blocks))  # type: ignore[arg-type]
        assert len(scan.rows) <= 8000
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    assert most(8) < 1.3 * most(4)


def varint(value: int) -> bytes:
    head = b""
    while value >= 0x80:
        head += bytes([value & 0x7F | 0x80])
        value >>= 7
    return head + bytes([value])


def field(number: int, value: bytes | int | float) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 1) + struct.pack("<d", value)


def scalar(step: int, tag: str, value: float, wall: float) -> bytes:
    named = field(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)
    event = field(1, wall) + field(2, step) + field(5, field(1, named))
    return struct.pack("<Q", len(event)) + bytes(4) + event + bytes(4)


def tracked(folder: Path) -> dict[str, Path]:
    """A run of ten steps as each tracker keeps it: 2,500 tokens/s and device, the first step at 500."""
    board = folder / "events.out.tfevents.1.host"
    board.write_bytes(b"".join(
        scalar(step, tag, value, 1.7e9 + step)
        for step in range(1, 11)
        for tag, value in (("loss_metrics/global_avg_loss", 9.0 / step), ("validation_metrics/loss", 3.0),
                           ("throughput(tps)", 500.0 if step == 1 else 2500.0), ("memory/max_reserved(GiB)", 47.5))
    ))  # fmt: skip
    records = b":W&B\xe1\xbe\x00"
    for step in range(1, 11):
        values = {"_step": step - 1, "train/global_step": step, "train/loss": 9.0 / step, "text": "x" * 9000,
                  "tokens_per_second_per_gpu": 500.0 if step == 1 else 2500.0}  # fmt: skip
        items = b"".join(field(1, field(1, k.encode()) + field(16, json.dumps(v).encode())) for k, v in values.items())
        record, kind = field(2, items), 1
        while record:
            room = 32_768 - len(records) % 32_768
            if room < 7:
                records += bytes(room)
                continue
            piece, record = record[: room - 7], record[room - 7 :]
            kind = (1 if not record else 2) if kind == 1 else (4 if not record else 3)
            records += struct.pack("<IHB", 0, len(piece), kind) + piece
            kind = 1 if not record else 2
    (folder / "run-x.wandb").write_bytes(records)
    flow = folder / "mlruns" / "0" / "abc"
    (flow / "metrics" / "train").mkdir(parents=True)
    (flow / "params").mkdir()
    (flow / "meta.yaml").write_text("run_id: abc\n")
    (flow / "params" / "model_name_or_path").write_text("meta-llama/Llama-3.1-8B")
    for name, values in (("train/loss", [9.0] * 10), ("tokens_per_second_per_gpu", [500.0] + [2500.0] * 9)):
        rows = (f"{1_700_000_000_000 + step} {value} {step}" for step, value in enumerate(values, 1))
        (flow / "metrics" / name).write_text("\n".join(rows) + "\n170000 cut")
    base = sqlite3.connect(folder / "mlflow.db")
    base.executescript(
        "CREATE TABLE runs (run_uuid TEXT, name TEXT, start_time INT, lifecycle_stage TEXT);"
        "CREATE TABLE metrics (key TEXT, value REAL, timestamp INT, run_uuid TEXT, step INT, is_nan INT);"
        "CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT);"
        "INSERT INTO runs VALUES ('abc', 'first', 17, 'active'), ('abd', 'gone', 18, 'deleted');"
        "INSERT INTO params VALUES ('model_name_or_path', 'meta-llama/Llama-3.1-8B', 'abc');"
    )
    for step in range(1, 11):
        for name, value in (("train/loss", 9.0), ("tokens_per_second_per_gpu", 500.0 if step == 1 else 2500.0)):
            moment = 1_700_000_000_000 + step
            for run in ("abc", "abd"):
                base.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, 0)", (name, value, moment, run, step))
    base.execute("INSERT INTO metrics VALUES ('train/loss', 'no number', 17, 'abc', 11, 0)")
    base.commit()
    base.close()
    (folder / "trainer_log.jsonl").write_text("".join(
        json.dumps({"current_steps": step, "loss": 9.0 / step, "lr": 1e-5,
                    "tokens_per_second_per_gpu": 500.0 if step == 1 else 2500.0}) + "\n"
        for step in range(1, 11)
    ))  # fmt: skip
    kept = (folder / name for name in ("run-x.wandb", "trainer_log.jsonl", "mlflow.db"))
    return {path.name: path for path in (board, flow, *kept)}


@pytest.mark.parametrize("name", ["events.out.tfevents.1.host", "run-x.wandb", "abc", "trainer_log.jsonl", "mlflow.db"])
def test_trackers_keep_the_same_quantities(name: str, tmp_path: Path) -> None:
    (run,) = read(tracked(tmp_path)[name])
    assert run.figures["tokens_per_s_per_device"] == 2500.0
    assert run.steps == 9
    assert run.series.step == list(range(1, 11))
    assert len(read(tmp_path)) == 5


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_cut_and_garbled_trackers_never_crash(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("tracked")
    path = tracked(folder)[data.draw(st.sampled_from(["events.out.tfevents.1.host", "run-x.wandb", "mlflow.db"]))]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(PlanError):
        read(path)


@given(st.binary(max_size=300))
def test_any_bytes_are_fields_or_end(data: bytes) -> None:
    assert all(number >= 0 for number, _ in fields_of(data))


def test_a_tprimat_result_whose_batch_is_not_that_of_its_steps_is_told(tmp_path: Path) -> None:
    data = {
        "platform": "amd",
        "gpu_info": {"device_count": 8, "device_name": "AMD Instinct MI300X", "pytorch_version": "2.10.0"},
        "parallelism_config": {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1},
        "training_config": {"global_batch_size": 128, "micro_batch_size": 1, "sequence_length": 2048, "num_gpus": 8},
        "performance_metrics": {"tokens_per_second_per_gpu": 13425.0},
        "step_times": [60.0] + [9.763] * 9,
        "loss_values": [11.0] * 10,
        "memory_metrics": {"peak_memory_allocated_gb": 165.2},
    }
    path = tmp_path / "train_amd_prim_llama.json"
    path.write_text(json.dumps(data))
    (run,) = read(path)
    assert run.figures["step_s"] == 9.763
    assert run.figures["peak_bytes"] == 165.2e9
    assert run.planned("cluster.accelerator") == "mi300x"
    assert any("do not belong" in finding for finding in run.findings)


@pytest.mark.parametrize("line", [
    "***** Running training *****", "------------------------ arguments ------------------------",
    "[INFO|trainer.py:2128] 2026-11-01 10:00:00,100 >> ***** Running training *****",
    "[titan] 2026-11-01 10:00:00,000 - root - INFO - Starting job: Llama 3 8B training",
    "[rank0]:[titan] 2026-11-01 10:00:00,000 - root - INFO - Starting job", "2026-11-01 10:00:00 INFO begins",
    "[2026-11-01 10:00:00,161] [INFO] [config.py:1000:print] DeepSpeedEngine configuration:",
])  # fmt: skip
def test_a_line_is_of_a_log_where_a_program_begins_it_so(line: str) -> None:
    """By its lines a log is told from the words around it; two of them alone are no run."""
    assert is_log(line)
    assert not is_log(f"{line}\nis that good?")
    assert not is_log("llama-3.1-8b on 8xh100 with zero stage 2 since 2026-11-01, is that good?")


def test_what_rocm_smi_prints_is_read_as_its_csv_is() -> None:
    text = "=== ROCm System Management Interface ===\n" + "".join(
        f"GPU[{card}]\t\t: Card Series: \t\tAMD Instinct MI300X\n"
        f"GPU[{card}]\t\t: VRAM Total Used Memory (B): {at * 2**30}\n"
        for at in (10, 150, 90) for card in (0, 1)
    )  # fmt: skip
    run = read_text(text)
    assert run.figures == {"peak_bytes": 150.0 * 2**30}
    assert (run.planned("cluster.accelerator"), run.devices) == ("mi300x", 2)
    assert run.series.step == [1, 2, 3]
