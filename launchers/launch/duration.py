"""How long a run may take, in jobs of how many hours, and how often it saves: from what was predicted of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from estimator.plan.training.run_length import run_size
from knowledge.figures import hours
from knowledge.machines.failures import interruption_rate
from knowledge.models.catalogue import architecture
from launchers.launch.of_plan import Launch
from launchers.launch.training import TrainingLaunch

SIGNAL_S = 300
"""How long before a limit a job goes back into the queue."""
# Assumed, with no source: what a run takes besides its steps (loading and compiling at each start; saving, evaluation
# and hiccups as a part of its steps), how often a checkpoint falls due, and the longest job where no limit is named.
_START_S, _BESIDES = 1800.0, 0.1
# What a broken run loses is half of the first on average.
_SAVE_S, _LONGEST_SAVE_S = 2700.0, 3600.0
_LONGEST_JOB_S = 7 * 24 * 3600.0
# Without a prediction: transformers' TrainingArguments.save_steps and torchtitan's checkpoint.interval; of runs that
# generate samples, whose steps are long, what verl's examples set (examples/grpo_trainer, trainer.save_freq).
_SAVE_STEPS, _SAVE_STEPS_OF_SAMPLES = 500, 20
# How often a run is started again at least before something is taken to be wrong with it.
_FEWEST_RESTARTS = 3
# Checkpoints that stay where a program keeps the newest ones only, and where it keeps every n-th.
KEPT_NEWEST = 3
_KEPT_SPACED = 5


@dataclass(frozen=True)
class Duration:
    """The whole run in seconds, as expected and at most, and the jobs of at most `job_s` seconds that hold it."""

    expected_s: float
    longest_s: float
    job_s: float
    jobs: int


def duration(launch: Launch) -> Duration | None:
    """None where the run has no end (a server) or it is not known (no steps and no data, or no prediction)."""
    if launch.kind == "inference" or launch.prediction is None:
        return None
    steps = run_steps(launch)
    if steps is None:
        return None
    predicted = launch.prediction
    expected = steps * predicted.step_s
    longest = steps * predicted.step_high_s * (1 + _BESIDES)
    whole = longest + _START_S
    queue_h = launch.site.time_limit_h
    limit = queue_h * 3600 if queue_h is not None else min(whole, _LONGEST_JOB_S)
    if limit >= whole:
        return Duration(expected, whole, limit, 1)
    # What a job gets done: not its start, nor what it does after its last checkpoint.
    useful = max(limit - SIGNAL_S - _START_S - save_period_s(launch) / 2, limit / 4)
    return Duration(expected, whole, limit, math.ceil(longest / useful))


def restarts(launch: Launch) -> int:
    """How often a run may be started again after a failure: as machines break on those published clusters where they do
    so most, and a few times where nothing is known of its length."""
    run = duration(launch)
    hours = run.longest_s / 3600 * launch.devices if run is not None else 0.0
    return _FEWEST_RESTARTS + math.ceil(hours / interruption_rate().low_device_hours)


def run_steps(launch: TrainingLaunch) -> int | None:
    """Optimizer steps, from the plan's steps or its data; None where it says neither."""
    size = run_size(launch.training, launch.global_batch * launch.seq_len)
    return size.steps if size else None


def save_steps(launch: TrainingLaunch, default: int | None = None) -> int:
    """Optimizer steps between checkpoints: those of about three quarters of an hour; without a prediction `default`, or
    what is usual of the stage."""
    steps = run_steps(launch)
    if launch.prediction is None:
        default = default or (_SAVE_STEPS_OF_SAMPLES if launch.training.stage in ("ppo", "grpo") else _SAVE_STEPS)
        return default if steps is None else min(default, steps)
    wanted = _SAVE_S / launch.prediction.step_s
    if wanted >= 100:
        digits = 10 ** (len(str(int(wanted))) - 2)
        interval = round(wanted / digits) * digits
    else:
        interval = max(1, round(wanted))
    if interval * launch.prediction.step_s > _LONGEST_SAVE_S:
        interval = max(1, interval - 1)
    return interval if steps is None else min(interval, steps)


def save_period_s(launch: TrainingLaunch) -> float:
    """Predicted seconds between checkpoints."""
    assert launch.prediction is not None
    return save_steps(launch, 1) * launch.prediction.step_s


def kept_every(launch: TrainingLaunch, interval: int) -> int:
    """Steps between checkpoints that stay for good, where a program deletes all others but the newest."""
    steps = run_steps(launch)
    return interval * (10 if steps is None else max(1, -(-steps // (interval * _KEPT_SPACED))))


def warnings(launch: Launch) -> list[str]:
    """What the person has to know of a run's length before starting it."""
    run = duration(launch)
    if run is None:
        return []
    lines: list[str] = []
    deadline = launch.plan.goal.deadline_h
    if deadline is not None and run.longest_s > deadline * 3600:
        verb = "is predicted to take" if run.expected_s > deadline * 3600 else "may take up to"
        seconds = run.expected_s if run.expected_s > deadline * 3600 else run.longest_s
        lines.append(f"WARNING: the run {verb} {hours(seconds / 3600)}, and its deadline is {hours(deadline)}")
    if run.jobs > 1:
        limit = f"{run.job_s / 3600:g} h" + (", which is assumed" if launch.site.time_limit_h is None else "")
        lines.append(
            f"note: up to {hours(run.longest_s / 3600)}, which is {run.jobs} jobs of {limit}, each "
            "going on from the last checkpoint"
        )
    return lines


def stored_bytes(launch: Launch) -> float:
    """What the folder that nodes share has to hold: weights, and of training the checkpoints that stay, with the states
    of an optimizer (14 bytes a parameter, as in mixed precision); a fifth more, and data of 20 GiB."""
    full = launch.kind == "training" and not launch.uses_adapters
    beside = 0.0 if launch.kind == "inference" else 14.0 * (KEPT_NEWEST + 1) if full else 2.0
    return architecture(launch.plan.model).parameters * (2.0 + beside) * 1.2 + 20 * 2**30
