"""What programs call the quantities of a step, and in which unit.

Names are those of Megatron-LM megatron/training/training.py training_log (also of Megatron-Bridge and Primus, which add
their own), Megatron-DeepSpeed, NeMo 2 nemo/lightning/pytorch/callbacks and strategies, DeepSpeed utils/timer.py,
transformers trainer.py (LlamaFactory, TRL, Unsloth and Axolotl print through it; Axolotl adds memory and tokens/s,
LlamaFactory writes trainer_log.jsonl, src/llamafactory/train/callbacks.py),
ms-swift, Liger's callback, nanotron, litgpt, nanoGPT, Composer's SpeedMonitor and MemoryMonitor, NeMo AutoModel,
torchtitan components/metrics.py, torchtune training/metric_logging.py, MaxText common/metric_logger.py, verl
trainer/ppo/metric_utils.py and utils/tracking.py. Loggers (TensorBoard, wandb, MLflow) hold the same names.
"""

from __future__ import annotations

import re
from functools import lru_cache

from estimator.units import GIB

MIB = 2.0**20
_MS = 1e-3
GB = 1e9
_SIGNS = re.compile(r"[^-/\w.]")
_APART = re.compile(r"[-_ ]+")

# Of a step: its number, its seconds, rates of one device or of all, and what the optimizer saw.
_PLAIN: dict[str, tuple[str, ...]] = {
    "step": ("step", "global_step", "iteration", "completed step", "current_steps", "trainer/global_step", "_step",
             "train/global_step"),
    # Of a program that may accumulate gradients over several of them: a step where it names no other.
    "pass": ("iter",),
    "pass_s": ("iter time",),
    "steps_per_s": ("it/sec", "throughput/batches_per_sec", "throughput/device/batches_per_second"),
    "step_s": ("train_step_timing in s", "seconds", "iter time (s)", "timing_s/step", "perf/time_per_step",
               "time_metrics/end_to_end(s)", "perf/step_time_seconds", "train_step_time", "step_time", "step_time_s",
               "train/step_time", "iteration_time"),
    "tokens_per_s_per_device": (
        "tokens per gpu (tokens/s/gpu)", "tokens/s/gpu inst/harmonic mean", "tokens per gpu per second (tgs)",
        "tokens_per_gpu_per_second_tgs", "tokens/s/device", "tps", "tokens_per_second_per_gpu",
        "tokens_per_sec_per_gpu", "perf/throughput", "throughput(tps)", "perf/per_device_tokens_per_sec", "tgs",
        "train/tokens_per_second_per_gpu", "tokens/sec/gpu", "throughput/device/tokens_per_sec",
        "tokens per second per device", "throughput/device/tokens_per_second"),
    "tokens_per_s": ("tokens_per_second", "train_tokens_per_second", "tokens/sec", "tokens_per_sec",
                     "train/tokens_per_second", "throughput/tokens_per_sec", "step_tokens_per_second",
                     "tok/sec", "tok/s"),
    "samples_per_s": ("samples per second", "samples/sec", "currsamplespersec", "samples_per_second",
                      "train_samples_per_second", "samplespersec"),
    "tflops_per_device": ("throughput per gpu (tflop/s/gpu)", "compute per gpu (tflop/s/gpu)", "tflop/s/device",
                          "tflops", "approx flops per gpu", "throughput(tflops)", "perf/per_device_tflops_per_sec",
                          "tflops_per_gpu", "tflop/s/gpu", "model_tflops_per_gpu"),
    "loss": ("lm loss", "loss", "reduced_train_loss", "train_loss", "train/loss", "loss_metrics/global_avg_loss",
             "learning/loss", "actor/pg_loss", "training/loss", "cross_entropy_loss", "loss train", "loss train (curr)",
             "loss/train/total", "train/crossentropyloss"),
    "learning_rate": ("learning rate", "learning_rate", "lr", "train/learning_rate", "actor/lr",
                      "learning/current_learning_rate", "lr-decoupledadamw/group0"),
    "gradient_norm": ("grad norm", "grad_norm", "actor/grad_norm", "learning/grad_norm", "train/grad_norm",
                      "gradient_norm"),
    "global_batch": ("global batch size", "global_batch_size", "batch-size"),
    "consumed_samples": ("consumed samples", "consumed_samples"),
    "consumed_tokens": ("consumed tokens", "consumed_tokens", "num_input_tokens_seen", "num_tokens",
                        "total_tokens", "trained tokens"),
    "step_tokens": ("total_weights", "perf/total_num_tokens"),
    "seq_len": ("actual seqlen", "actual_seqlen"),
    "epoch": ("epoch", "train/epoch"),
    "skipped": ("number of skipped iterations", "number_of_skipped_iterations"),
    "nan": ("number of nan iterations", "number_of_nan_iterations"),
    "mean_steps_per_s": ("train_steps_per_second", "train/train_steps_per_second"),
    "runtime_s": ("train_runtime", "train/train_runtime"),
    "clock_s": ("_timestamp",),
}  # fmt: skip
# Torch's counters of a device's memory; `device` is all that the device shows, `used` what is held between steps.
_GIB: dict[str, tuple[str, ...]] = {
    "device": ("hip mem usage/free/total/usage_ratio", "rocm mem usage/free/total/usage_ratio", "hip mem usage",
               "rocm max mem usage/usage_ratio"),
    "reserved": ("memory", "peak_memory_reserved", "vram_reserved", "memory/max_reserved(gib)",
                 "memory/device_reserved (gib)",
                 "memory/device_mem_reserved(gib)", "perf/max_memory_reserved_gb", "max_reserved", "memory(gib)"),
    "allocated": ("mem-alloc-gb", "vram_allocated", "memory/max_active (gib)", "maxmemallocated", "peak_memory_alloc",
                  "memory/max_active(gib)",
                  "memory/max_allocated (gib)", "memory/max_mem_allocated(gib)", "perf/max_memory_allocated_gb",
                  "peak memory allocated (gib)", "memory/max_mem_active(gib)", "memory/max_memory_allocated", "mem"),
}  # fmt: skip
# Composer's MemoryMonitor, in bytes before it had GB of 1e9, mlx_lm.lora (mlx_lm/tuner/trainer.py), and the last line
# of litgpt's (finetune/lora.py).
_GB = {
    "reserved": ("memory/peak_reserved_mem", "memory/reserved_mem"),
    "allocated": ("memory/peak_allocated_mem", "peak mem", "memory used"),
}
_BYTES = {"allocated": ("peak_memory_usage", "memory/peak_memory_usage", "gpu_resources", "max_memory_allocated"),
          "reserved": ("cuda_max_memory_reserved", "max_memory_reserved")}  # fmt: skip
_MIB = {"allocated": ("max allocated", "total_peak_memory_allocated_mb", "system/peak gpu memory (mb)"),
        "reserved": ("max reserved", "total_peak_memory_reserved_mb")}  # fmt: skip
_PERCENT = {"mfu": ("mfu", "mfu(%)")}
_SHARE = {"mfu": ("perf/mfu/actor", "throughput/device/mfu")}


def _table() -> dict[str, tuple[str, float]]:
    table = {name: (quantity, 1.0) for quantity, names in _PLAIN.items() for name in names}
    for unit, counters in ((GIB, _GIB), (GB, _GB), (1.0, _BYTES), (MIB, _MIB)):
        table |= {name: (f"{counter}_bytes", unit) for counter, names in counters.items() for name in names}
    for unit, names_of in ((0.01, _PERCENT), (1.0, _SHARE)):
        table |= {name: (quantity, unit) for quantity, names in names_of.items() for name in names}
    for name in ("elapsed time per iteration (ms)", "elapsed_time_per_iteration_ms"):
        table[name] = ("step_s", _MS)
    # TensorBoard's writers put _ in the place of signs.
    table |= {_SIGNS.sub("_", name): row for name, row in table.items() if _SIGNS.sub("_", name) not in table}
    return {plain(name): row for name, row in table.items()}


def plain(name: str) -> str:
    """A name as the table has it: small letters, words set apart by spaces."""
    return _APART.sub(" ", name.lower())


TABLE = _table()
# What is of the data held back is not of a training step.
_HELD_BACK = re.compile(r"(?:^|[\s/_-])(?:val|valid|validation|validate|eval|evaluation|test)[\s/_-]?$", re.IGNORECASE)
# A loss that is a part of another or beside it, of experts or of further tokens.
_PART_OF_LOSS = re.compile(r"(?:aux|balanc\w*|router|z|mtp\w*)[\s/_-]?$", re.IGNORECASE)
_START = re.compile(r"[\s|,;\[\](){}'\"]+")


@lru_cache(maxsize=4096)
def quantity(name: str) -> tuple[str, float] | None:
    """(Our name, factor to SI) of what a program calls a quantity; words before the name are passed over. None for
    what is none of a training step."""
    text = name.strip(" '\"\t|,-").lower()
    whole = text
    while text:
        # Lightning logs a quantity of steps and of epochs as name_step and name_epoch.
        if row := TABLE.get(plain(text)) or TABLE.get(plain(text).removesuffix(" step")):
            before = whole[: len(whole) - len(text)]
            other = _HELD_BACK.search(before) or (row[0] == "loss" and _PART_OF_LOSS.search(before))
            return None if other else row
        cut = _START.search(text)
        if cut is None:
            return None
        text = text[cut.end() :]
    return None


def kept(name: str) -> tuple[str, float] | None:
    """`quantity` of a name in a logger's folder: there it is a path, which is of training unless it says otherwise."""
    row = quantity(name)
    if row is None and "/" in name and not _HELD_BACK.search(name.rpartition("/")[0]):
        return quantity(name.rpartition("/")[2])
    return row
