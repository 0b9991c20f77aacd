"""MLPerf's training logs as its submitters write them: what counts samples, blocks, losses with their times alone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from measure.logs.reading import read_text

Event = tuple[float, str, Any, dict[str, Any]]


def log(events: Iterable[Event], prefix: str = "0: ") -> str:
    return "".join(
        f"{prefix}:::MLLOG {json.dumps({'time_ms': ms, 'key': key, 'value': value, 'metadata': about})}\n"
        for ms, key, value, about in events
    )


def beginning(platform: str) -> list[Event]:
    return [
        (0.0, "submission_benchmark", "llama2_70b_lora", {}),
        (0.0, "submission_platform", platform, {}),
        (0.0, "global_batch_size", 8, {}),
        (0.0, "lora_rank", 16, {}),
    ]


def losses(start_ms: float, samples: Iterable[int], ms_per_step: float) -> list[Event]:
    first, *_ = samples = list(samples)
    return [
        (start_ms + (count - first + 80) / 8 * ms_per_step, "train_loss", 1.3, {"samples_count": count, "lr": 4e-4})
        for count in samples
    ]


def test_steps_that_count_samples_stand_beside_blocks() -> None:
    """A rate whose `step` is the samples of the block that ends then, and losses that count samples."""
    events = beginning("1xXE9680x8H200-SXM-141GB")
    for number in range(9):
        begin, start_ms = 384 * number, 170_000.0 * number
        events.append((start_ms, "block_start", None, {"samples_count": begin}))
        events += losses(start_ms, range(begin + 80, begin + 384, 80), 3000.0)
        end, end_ms = begin + 384, start_ms + 48 * 3000.0
        events.append((end_ms, "tracked_stats", {"throughput": 8 / 3.0}, {"step": end}))
        events.append((end_ms + 1.0, "block_stop", None, {"samples_count": end}))
    run = read_text(log(events))
    assert run.figures["step_s"] == pytest.approx(3.0, rel=1e-3)
    assert max(run.series.step) == 384 * 9 // 8
    assert len([loss for loss in run.series.loss if loss]) == 36
    assert not run.findings
    assert not run.note
    assert run.planned("model") == "meta-llama/Llama-2-70b-hf"
    assert run.planned("workload.seq_len") == 8192
    assert (run.planned("workload.method"), run.planned("workload.lora")) == ("lora", {"rank": 16})
    assert run.planned("cluster.accelerator") == "h200-sxm"


def test_losses_with_their_times_alone_say_the_time_of_a_step() -> None:
    events = beginning("1xMI325X") + [
        (12_000.0 * number, "tracked_stats", {"train_loss": 1.4}, {"step": 10 * number, "samples_count": 80 * number})
        for number in range(1, 8)
    ]
    run = read_text(log(events))
    assert run.figures["step_s"] == pytest.approx(1.2)
    assert run.planned("cluster.accelerator") == "mi325x"
    assert any("between the lines" in line for line in run.findings)


def test_the_day_is_that_of_the_events() -> None:
    at = 1759734660357.0
    assert read_text(log(beginning("x") + losses(at, range(80, 800, 80), 2000.0))).date == "2025-10-06"


def test_a_case_s_name_is_no_device() -> None:
    run = read_text(log(beginning("1xC885A_M8") + losses(0.0, range(80, 800, 80), 2000.0)))
    assert run.planned("cluster.accelerator") is None
    assert run.figures["step_s"] == pytest.approx(2.0)
