"""How long a training run is: optimizer steps and tokens, from what is known of the data or of the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator.errors import PlanError
from estimator.plan.schema import Training

# Sequences that one sample stands for: a preference pair is a chosen and a rejected answer (TRL, DPOTrainer).
PAIRED_STAGES = ("dpo", "orpo", "simpo", "ipo", "rm")
# Stages in which frameworks join short samples to full sequences. A preference pair and a prompt with its answers each
# keep rows of their own (TRL: packing is an option of SFTTrainer alone).
_PACKED_STAGES = ("pretrain", "sft")
# How far tokens may be from samples times their mean length, as a fraction: both are usually rounded.
_ROUNDING = 0.02


@dataclass(frozen=True)
class RunSize:
    """The whole run. `tokens` are those of the data that are read, without padding; `epochs` is None where only the
    number of steps is known."""

    steps: int
    tokens: float
    epochs: float | None


def run_size(training: Training, tokens_per_step: int) -> RunSize | None:
    """The run of a complete workload (seq_len and global_batch are known); None where the plan says neither data nor
    steps.

    Where samples are packed, a step takes `tokens_per_step` tokens of data. Where they are not, it takes global_batch
    samples, each in rows of its own, however short (grpo: group_size rows of a prompt). `steps` wins over the data.
    """
    assert training.global_batch is not None
    data, samples, length = data_size(training)
    packed = is_packed(training)
    # One pass over the data: what there is of it, and how much of that a step takes.
    whole, step = data, float(tokens_per_step)
    if samples is not None and not packed:
        whole, step = samples * _answers(training), float(training.global_batch)
    if training.steps is not None:
        per_step = tokens_per_step if packed or length is None else length * training.global_batch
        epochs = None if whole is None else training.steps * step / whole
        return RunSize(training.steps, float(training.steps) * per_step, epochs)
    if data is None or whole is None:
        return None
    return RunSize(math.ceil(whole * training.epochs / step), data * training.epochs, training.epochs)


def data_size(training: Training) -> tuple[float | None, float | None, float | None]:
    """(tokens, samples, tokens per sample) of the data set, each None where it cannot be known.

    Samples in rows of their own are cut to seq_len. Raises PlanError where the three contradict one another.
    """
    data, samples, length = training.dataset_tokens, training.dataset_samples, training.sample_tokens
    if data is not None and samples is not None and length is not None:
        _check(data, samples * length, training)
    if data is not None and samples is not None:
        return data, samples, data / (samples * _answers(training))
    if data is not None and length is not None:
        return data, data / (length * _answers(training)), length
    if length is not None and training.seq_len is not None and not is_packed(training):
        length = min(length, float(training.seq_len * _rows(training)))
    if samples is not None and length is not None:
        return samples * length * _answers(training), samples, length
    return data, samples, length


def is_packed(training: Training) -> bool:
    """Whether short samples share rows."""
    return training.packing and training.stage in _PACKED_STAGES


def padded_share(training: Training) -> float:
    """Part of a step's tokens that no sample has, where samples are known to be shorter than the rows of their own."""
    length = data_size(training)[2]
    if length is None or is_packed(training) or training.stage in ("ppo", "grpo"):
        return 0.0
    return max(0.0, 1.0 - length / full_sample(training))


def full_sample(training: Training) -> int:
    """Tokens of a sample that fills its rows: a sequence, or the two of a preference pair."""
    assert training.seq_len is not None
    return training.seq_len * _rows(training)


def _rows(training: Training) -> int:
    return 2 if training.stage in PAIRED_STAGES else 1


def _answers(training: Training) -> int:
    """Rows of the batch that one sample of the data set becomes: grpo answers each prompt group_size times."""
    return training.group_size if training.stage == "grpo" else 1


def _check(data: float, counted: float, training: Training) -> None:
    counted *= _answers(training)
    if abs(counted - data) > _ROUNDING * data:
        problem = (
            f"{data:,.0f} tokens contradict {training.dataset_samples:,.0f} samples of {training.sample_tokens:,g} "
            f"tokens, which are {counted:,.0f}"
        )
        raise PlanError("workload.dataset_tokens", problem, [f"{counted:.0f}", "without dataset_tokens"])
