"""What files of reinforcement runs say of prompts, their answers, and the engine that generates them."""

from __future__ import annotations

from estimator.errors import PlanError
from estimator.rl.generation import engine_size
from knowledge.jobs.training import job_of
from launchers.launch.training import TrainingLaunch


def answer_tokens(launch: TrainingLaunch) -> int:
    """Tokens generated per sample: half of seq_len unless the plan says. Raises PlanError."""
    answer = launch.training.response_len or launch.seq_len // 2
    if not 0 < answer < launch.seq_len:
        problem = f"{answer} generated tokens leave no room for a prompt in seq_len={launch.seq_len}"
        raise PlanError("workload.response_len", problem, [max(1, launch.seq_len // 2)])
    return answer


def samples_per_prompt(launch: TrainingLaunch) -> int:
    """GRPO's group; PPO takes one answer. Raises PlanError where the batch is no whole number of groups."""
    size = launch.training.group_size if launch.training.stage == "grpo" else 1
    if launch.global_batch % size:
        low = launch.global_batch // size * size
        problem = f"{launch.global_batch} samples are not whole groups of group_size={size}"
        raise PlanError("workload.global_batch", problem, [count for count in (low, low + size) if count])
    return size


def engine_devices(launch: TrainingLaunch) -> int:
    """Devices that one copy of the model takes in the engine, as the estimate has it."""
    return engine_size(job_of(launch.plan))
