"""Logs of loops that people wrote: names, units, clocks and tables of their own, and runs that were begun again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from estimator.units import GIB
from measure.history.run import MeasuredRun
from measure.logs.clocks import clock_s
from measure.logs.quantities import quantity
from measure.logs.reading import read_text


def log(line: Callable[[int], str], count: int = 12, every: int = 10) -> MeasuredRun:
    return read_text("".join(line(step) for step in range(every, (count + 1) * every, every)))


@pytest.mark.parametrize("tokens", ["tok", "toks", "tokens"])
@pytest.mark.parametrize("seconds", ["s", "sec", "second"])
@pytest.mark.parametrize("device", ["", "gpu", "device", "chip"])
def test_a_rate_is_read_however_it_is_abbreviated(tokens: str, seconds: str, device: str) -> None:
    name = "tokens_per_s_per_device" if device else "tokens_per_s"
    for unit in (
        "/".join(filter(None, (tokens, seconds, device))),
        "_per_".join(filter(None, (tokens, seconds, device))),
        " per ".join(filter(None, (tokens, seconds, device))),
    ):
        assert quantity(unit) == (name, 1.0)
        assert quantity(f"perf/{unit}") == (name, 1.0)
        if "_" not in unit:
            run = log(lambda step, unit=unit: f"step {step} · loss=2.5 · 12.5k {unit}\n")
            assert run.figures[name] == pytest.approx(12_500.0)


@pytest.mark.parametrize(
    ("told", "step_s"),
    [
        ("8.25 s/step", 8.25), ("8250 ms/step", 8.25), ("8.25 s/it", 8.25), ("0.5 it/s", 2.0), ("step_time=8.25", 8.25),
        ("step_time_ms: 8250", 8.25), ("time/step: 8.25s", 8.25), ("dt=8.25", 8.25), ("| 8.25 s |", 8.25),
        ("iter_time: 8.25s", 8.25), ("'time': tensor(8.25, device='cuda:0')", 8.25), ("time=np.float64(8.25)", 8.25),
    ],
)  # fmt: skip
def test_seconds_of_a_step_are_read_in_any_unit(told: str, step_s: float) -> None:
    run = log(lambda step: f"[step {step}/2000] loss {5 - step / 100:.3f} {told}\n")
    assert run.figures["step_s"] == pytest.approx(step_s)
    assert run.series.step[:2] == [10, 20]


@pytest.mark.parametrize(
    ("told", "peak_bytes"),
    [("mem 61.3G", 61.3 * GIB), ("max_mem=61.3GiB", 61.3 * GIB), ("gpu_mem_gb: 61.3", 61.3 * GIB),
     ("Mem: 23567MB", 23567 * 2**20), ("memory: 23567", 23567 * 2**20), ("VRAM 22.4/24.0 GB", 22.4 * GIB)],
)  # fmt: skip
def test_memory_is_read_in_any_words(told: str, peak_bytes: float) -> None:
    run = log(lambda step: f"step {step} loss: 2.5 {told}\n")
    assert run.figures["peak_bytes"] == pytest.approx(peak_bytes)


@pytest.mark.parametrize("word", ["Step ", "step=", "Iter [", "it ", "Update #", "iteration: "])
def test_the_number_of_a_step_has_many_names(word: str) -> None:
    text = "".join(f"{place // 6:02}:{place * 10 % 60:02}:00 {word}{place * 5}] loss 2.5\n" for place in range(9))
    run = read_text(text.replace("]", "]" if "[" in word else ""))
    assert run.series.step[1] == 5
    assert run.figures["step_s"] == pytest.approx(120.0)


@pytest.mark.parametrize(
    "form",
    ["2026-03-25 {}", "25/03/2026 {}", "03/25/2026 {}", "25.03.2026 {}", "Mar 25 {}", "25 Mar 2026 {}", "[{}]",
     "25/Mar/2026:{}", "I0325 {}", "2026-03-25T{}Z"],
)  # fmt: skip
def test_clocks_of_all_kinds_tell_the_same(form: str) -> None:
    first, last = (clock_s(f"{form.format(time)} step 5 loss 2.5") for time in ("14:02:30", "14:03:45"))
    assert first is not None
    assert last is not None
    assert last - first == 75.0


def test_what_is_left_of_a_bar_is_no_clock() -> None:
    assert clock_s("ETA 0:41:10 step 5") is None
    assert clock_s("10:00:31<25:24:10, 3 s/it") is None


@pytest.mark.parametrize("apart", ["\t", ",", " | ", "   "])
def test_a_table_of_columns_is_a_log(apart: str) -> None:
    head = apart.join(("step", "train_loss", "lr", "ms/step", "tok/s", "mem(GB)"))
    rows = [apart.join((f"{step}", "2.51", "3.0e-04", "812.5", "161000", "38.2")) for step in range(10, 60, 10)]
    run = read_text("\n".join((head, *rows)) + "\n")
    assert run.figures["step_s"] == pytest.approx(0.8125)
    assert run.figures["tokens_per_s"] == pytest.approx(161_000.0)
    assert run.series.step == [10, 20, 30, 40, 50]


def test_a_table_of_something_else_is_none() -> None:
    text = "name   loss   lr\nrun-a   2.51   3e-4\nrun-b   2.42   1e-4\nrun-c   2.4   1e-4\n"
    with pytest.raises(ValueError, match="nothing in it"):
        read_text(text)


def _step(step: int) -> str:
    return f"step: {step} loss: 2.5 step_time: 10.0\n"


def test_an_error_behind_which_steps_go_on_ended_nothing() -> None:
    error = "Traceback (most recent call last):\ntorch.distributed.DistBackendError: NCCL error\n"
    first, then = "".join(map(_step, range(40))), "".join(map(_step, range(30, 90)))
    run = read_text(first + error + then)
    assert run.findings == ["it was begun again 1 time, from step 30"]
    memory = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB\n"
    )
    assert read_text(first + memory + then).outcome == "ran"
    assert read_text(first + memory).outcome == "oom"
    # Other ranks print what they had left.
    assert read_text(first + memory + _step(40) + _step(41)).outcome == "oom"
    assert "it stopped" in read_text(first + error + _step(40)).findings[0]


def test_epochs_that_count_from_one_again_are_one_run() -> None:
    text = "".join(
        f"Epoch [{epoch}/3] Iter [{at}/100] Loss: {3 - epoch / 2} Time: 0.5s\n"
        for epoch in (1, 2, 3) for at in range(20, 101, 20)
    )  # fmt: skip
    run = read_text(text)
    assert run.series.step == [*range(20, 301, 20)]
    assert run.findings == []


def test_ranks_that_print_by_turns_begin_nothing_again() -> None:
    text = "".join(
        f"[rank{rank}]: step={step} loss=2.5 dt=6.0s\n" for at in range(20) for rank in (0, 1, 2)
        for step in [max(0, at - rank)]
    )  # fmt: skip
    assert read_text(text).findings == []


def test_what_passes_are_accumulated_to_is_the_step() -> None:
    text = "per_device_batch: 1, accum: 16, seqlen: 8192\nworld_size: 4\n" + "".join(
        f"micro_step {at} | step {at // 16} | loss 2.5 | micro_time 0.5s\n" for at in range(160)
    )
    run = read_text(text)
    assert run.figures["step_s"] == pytest.approx(8.0)
    assert run.planned("workload.global_batch") == 64
    assert run.planned("workload.seq_len") == 8192


@pytest.mark.parametrize(
    "name", ["data_time", "eval time", "max_steps", "val/loss", "cpu mem", "best_step", "lr_ratio"]
)
def test_names_with_a_word_of_something_else_are_not_read(name: str) -> None:
    assert quantity(name) is None


def test_only_the_trainer_s_objects_are_the_trainer_s() -> None:
    run = log(lambda step: f"step {step} {{'loss': 2.5, 'time': 1.25}}\n")
    assert run.planned("workload.framework") is None


def test_lines_that_number_no_step_are_those_of_their_epochs_or_tell_no_time() -> None:
    text = "".join(f"2026-02-01 10:0{at}:00 - INFO - loss: 2.5, epoch: {at * 0.04:.2f}\n" for at in range(1, 9))
    run = read_text(text)
    assert "step_s" not in run.figures
    assert any("60 s lie between its lines" in finding for finding in run.findings)
    head = "  Num Epochs = 2\n  Total optimization steps = 500\n"
    assert read_text(head + text).figures["step_s"] == pytest.approx(6.0)


@pytest.mark.parametrize(
    "part",
    ["optim_step_time=2.0e-04", "iter_time=0.001, forward_time=0.005, backward_time=0.005", "Train time/batch: 365",
     "optimizer_time: 0.2", "Batch 0.818 (3.887)", "Data 0.002 (0.574)"],
)  # fmt: skip
def test_a_part_of_a_step_and_a_count_are_none_of_its_time(part: str) -> None:
    assert "step_s" not in log(lambda step: f"step {step} loss: 2.5, {part}\n").figures


@pytest.mark.parametrize("told_s", [1.0, 5.0, 13.0])
@pytest.mark.parametrize("name", ["train_wall", "elapsed", "time"])
def test_a_time_of_many_steps_is_none_of_one(name: str, told_s: float) -> None:
    run = log(lambda step: f"2026-02-01 10:{step // 30:02}:{step % 30 * 2:02} step {step} loss: 2.5 {name}={told_s}\n")
    assert run.figures["step_s"] == pytest.approx(told_s if told_s < 2.0 else 2.0)
    assert any("between the lines" in finding or "lie 2 s a step apart" in finding for finding in run.findings)


@pytest.mark.parametrize("epoch", ["[{epoch}]", "[{epoch}/120]", ": [{epoch}/120]", "(train) [{epoch}]"])
def test_a_pass_of_an_epoch_needs_no_name(epoch: str) -> None:
    text = "".join(
        f"2026-02-01 1{at}:0{number}:00 Epoch {epoch.format(epoch=at)}[{number}0/60] Loss 2.5 Batch 0.7 (6.0)\n"
        for at in (1, 2) for number in range(1, 6)
    )  # fmt: skip
    run = read_text(text)
    assert run.series.step[:2] == [10, 20]
    assert run.figures["step_s"] == pytest.approx(6.0)


def test_of_memory_the_most_of_a_line_counts() -> None:
    run = log(lambda step: f"step {step} loss 2.5 current_allocated_mem: 9.7 peak_allocated_mem: 44.6\n")
    assert run.figures["peak_bytes"] == pytest.approx(44.6 * GIB)


def test_one_line_is_a_run_where_it_numbers_a_step_and_rates_it() -> None:
    assert read_text("step: 8, loss: 9.9, tokens_per_second: 76957.8\n").figures == {"tokens_per_s": 76957.8}
    with pytest.raises(ValueError, match="nothing in it"):
        read_text("at step 8 the loss: 9.9 was too high\n")


def test_passes_of_a_step_are_known_from_whole_ones_alone() -> None:
    lines = [f"iter {at} step {at // 4}: loss 2.5, iter time: 100 ms{' (step)' * (at % 4 == 0)}\n" for at in range(60)]
    assert read_text("".join(lines[1:])).figures["step_s"] == pytest.approx(0.4)
    assert read_text("".join([*lines[1:10], *lines[50:]])).figures["step_s"] == pytest.approx(0.4)
    assert "step_s" not in read_text("".join(line.replace(" (step)", "") for line in lines[4:8])).figures
