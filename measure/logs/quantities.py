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
from measure.logs.wording import MIB, worded

_MS = 1e-3
GB = 1e9
_SIGNS = re.compile(r"[^-/\w.]")
_APART = re.compile(r"[-_ ]+")

# Of a step: its number, its seconds, rates of one device or of all, and what the optimizer saw.
_PLAIN: dict[str, tuple[str, ...]] = {
    "step": ("completed step", "current_steps", "num_updates"),
    "steps_per_s": ("throughput/device/batches_per_second",),
    "step_s": ("train_step_timing in s", "seconds", "iter time (s)", "timing_s/step", "time_metrics/end_to_end(s)"),
    "tokens_per_s_per_device": (
        "tokens/s/gpu inst/harmonic mean", "tokens per gpu per second (tgs)", "tokens_per_gpu_per_second_tgs", "tps",
        "perf/throughput", "throughput(tps)", "tgs"),
    "tokens_per_s": ("step_tokens_per_second",),
    "samples_per_s": ("currsamplespersec", "samplespersec"),
    "tflops_per_device": ("approx flops per gpu",),
    "loss": ("learning/loss", "actor/pg_loss", "cross_entropy_loss", "train/crossentropyloss"),
    "learning_rate": ("lr-decoupledadamw/group0",),
    "gradient_norm": ("learning/grad_norm",),
    "global_batch": ("global batch size", "global_batch_size", "batch-size"),
    "consumed_samples": ("consumed samples", "consumed_samples"),
    # Of Composer's clock, which counts: its console puts Train before each name.
    "batches": ("train time/batch",),
    "consumed_tokens": ("consumed tokens", "consumed_tokens", "num_input_tokens_seen", "num_tokens", "total_tokens",
                        "trained tokens", "tokens", "tokens seen"),
    "step_tokens": ("total_weights", "perf/total_num_tokens"),
    "seq_len": ("actual seqlen", "actual_seqlen"),
    "skipped": ("number of skipped iterations", "number_of_skipped_iterations"),
    "nan": ("number of nan iterations", "number_of_nan_iterations"),
    "mean_steps_per_s": ("train_steps_per_second", "train/train_steps_per_second", "train_speed(iter/s)"),
    "runtime_s": ("train_runtime", "train/train_runtime"),
}  # fmt: skip
# Torch's counters of a device's memory; `device` is all that the device shows, `used` what is held between steps.
_GIB: dict[str, tuple[str, ...]] = {
    "device": ("hip mem usage/free/total/usage_ratio", "rocm mem usage/free/total/usage_ratio", "hip mem usage",
               "rocm max mem usage/usage_ratio"),
    "reserved": ("memory", "max_reserved", "memory(gib)"),
    "allocated": ("maxmemallocated", "memory/max_active (gib)", "memory/max_active(gib)",
                  "memory/max_mem_active(gib)"),
}  # fmt: skip
# Composer's MemoryMonitor, in bytes before it had GB of 1e9, mlx_lm.lora (mlx_lm/tuner/trainer.py), and the last line
# of litgpt's (finetune/lora.py).
_GB = {
    "reserved": ("memory/peak_reserved_mem", "memory/reserved_mem"),
    "allocated": ("memory/peak_allocated_mem", "peak mem", "memory used"),
}
_BYTES = {"allocated": ("peak_memory_usage", "memory/peak_memory_usage", "gpu_resources", "max_memory_allocated"),
          "reserved": ("cuda_max_memory_reserved", "max_memory_reserved")}  # fmt: skip
_MIB = {"allocated": ("max allocated", "total_peak_memory_allocated_mb"),
        "reserved": ("max reserved", "total_peak_memory_reserved_mb")}  # fmt: skip
_SHARE = {"mfu": ("perf/mfu/actor", "throughput/device/mfu")}


def _table() -> dict[str, tuple[str, float]]:
    table = {name: (quantity, 1.0) for quantity, names in _PLAIN.items() for name in names}
    for unit, counters in ((GIB, _GIB), (GB, _GB), (1.0, _BYTES), (MIB, _MIB)):
        table |= {name: (f"{counter}_bytes", unit) for counter, names in counters.items() for name in names}
    table |= {name: (quantity, 1.0) for quantity, names in _SHARE.items() for name in names}
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
# What is a part of another or beside it where more stands before: a loss, of experts or of further tokens; any time.
_PARTS = {
    "loss": re.compile(r"(?:aux|balanc\w*|router|z|mtp\w*)[\s/_-]?$", re.IGNORECASE),
    "time_s": re.compile(r"[a-z_][\s/_-]*$"),
    "consumed_tokens": re.compile(r"[a-z_][\s/_-]*$"),
    "allocated_bytes": re.compile(r"(?:cpu|host|ram|system)[\s/_-]*$"),
}
_START = re.compile(r"[\s|,;\[\](){}'\"]+")


def named(name: str) -> tuple[str, float] | None:
    """(Our name, factor to SI) of a whole name."""
    return TABLE.get(plain(name)) or worded(name)


@lru_cache(maxsize=4096)
def quantity(name: str) -> tuple[str, float] | None:
    """(Our name, factor to SI) of what a program calls a quantity; words before the name are passed over. None for
    what is none of a training step."""
    text = name.strip(" '\"\t|,-").lower()
    whole = text
    while text:
        # Lightning logs a quantity of steps and of epochs as name_step and name_epoch.
        if row := named(text) or named(plain(text).removesuffix(" step")):
            before = whole[: len(whole) - len(text)]
            other = _HELD_BACK.search(before) or (row[0] in _PARTS and _PARTS[row[0]].search(before))
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
