"""Progress bars in logs: those of steps are timed, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from estimator.errors import PlanError
from measure.logs.lines import bars_of
from measure.logs.reading import read, read_text

BAR = "  7%|▋         | 40/600 [02:00<28:00,  3.00s/it]"


@pytest.mark.parametrize(
    "before",
    ["", "0: ", "[rank0]:", "worker-3: ", "gpub001.delta: ", "Epoch 0:", "(TaskRunner pid=1811) Training Progress:",
     "1|25|Loss: 1.15:", "train step", "  6%|▋ | 39/600 [01:57<28:03,  3.00s/it]"],
)  # fmt: skip
def test_bars_of_steps_are_read_whoever_prints_them(before: str) -> None:
    assert (40.0, 600.0, 120.0) in [bar[:3] for bar in bars_of(before + BAR)]


@pytest.mark.parametrize(
    "bar",
    [f"Loading checkpoint shards:{BAR}", f"Map (num_proc=8):{BAR}", f"Tokenizing train dataset:{BAR}",
     f"(VllmWorker pid=3) Processed prompts:{BAR}", f"Requesting API:{BAR}",
     "model-00001-of-00002.safetensors:  80%|████▊| 4.1M/5.0M [00:31<00:08, 150MB/s]"],
)  # fmt: skip
def test_what_loads_or_generates_is_no_step(bar: str) -> None:
    assert not list(bars_of(bar))


def test_a_bar_after_the_last_step_is_of_something_else() -> None:
    """The loss of LLMs-from-scratch's chapter 7, then the answers to its test set: these took 3.8 s each."""
    text = (
        "Ep 1 (Step 000000): Train loss 2.611, Val loss 2.668\nEp 1 (Step 000005): Train loss 1.161, Val loss 1.131\n"
        "Generating responses\n100%|█████| 110/110 [06:57<00:00,  3.80s/it]\n"
    )
    assert "step_s" not in read_text(text).figures


def test_a_log_that_only_loads_a_model_is_no_run() -> None:
    with pytest.raises(PlanError, match="nothing in it was read"):
        read_text(f"Unsloth 2025.3.8 patched 32 layers.\nLoading checkpoint shards: {BAR}\n")


def test_what_fails_after_the_training_did_not_stop_it(tmp_path: Path) -> None:
    """A Trainer's log of which a thread of wandb's fails at the end."""
    log = tmp_path / "train.log"
    log.write_text(
        "{'loss': 0.0092, 'epoch': 4.97}\n{'train_runtime': 4450.2, 'train_steps_per_second': 0.052, 'epoch': 4.97}\n"
        "Traceback (most recent call last):\nBrokenPipeError: [Errno 32] Broken pipe\n"
    )
    assert read(log)[0].findings[0].startswith("after the training: BrokenPipeError")


def test_settings_with_dots_behind_them_are_read() -> None:
    """GPT-NeoX megatron/neox_arguments/arguments.py print: on 16 devices, 288 sequences of 2,048 in 1.2951 s."""
    run = read_text(
        "  global_num_gpus ................. 16..........................updated\n"
        "  seq_length ...................... 2048........................updated\n"
        "  train_batch_size ................ 288.........................updated\n"
        "  world_size ...................... None........................default\n"
        " samples/sec: 222.382 | iteration       40/   11000 | elapsed time per iteration (ms): 1295.1 | learning rate:"
        " 2.727E-04 | approx flops per GPU: 179.0TFLOPS | lm_loss: 9.970619E+00 |\n"
    )
    assert run.plan["cluster"]["count"] == 16
    assert run.figures["tokens_per_s_per_device"] == pytest.approx(222.382 * 2048 / 16, rel=0.001)
    assert run.figures["tflops_per_device"] == 179.0


def test_no_nodes_are_none_said() -> None:
    """verl prints pools of which one has no node, before that of the trainer."""
    run = read_text(
        "  'n_gpus_per_node': 4,\n  'nnodes': 0,\n  'nnodes': 2}\n"
        "step:1 - timing_s/step:9.1 - perf/throughput:6399.0 - actor/pg_loss:0.1\n"
    )
    assert run.plan["cluster"]["count"] == 8


def test_lightning_s_losses_of_steps_are_losses(tmp_path: Path) -> None:
    """What is logged of steps and of epochs has these for an ending (lightning trainer/connectors/logger_connector)."""
    path = tmp_path / "metrics.csv"
    path.write_text(
        "epoch,step,train_loss_epoch,train_loss_step,val_loss\n0,49,,7.63,\n0,99,,7.53,\n0,99,7.58,,\n0,99,,,7.1\n"
    )
    assert read(path)[0].series.column("loss") == [7.63, 7.53]


def test_a_bar_behind_the_last_step_is_that_of_the_steps_where_it_stands_at_it() -> None:
    lines = "".join(f"{{'loss': 0.2, 'global_step': {step}, 'epoch': 2.0}}\n" for step in (180, 190, 200))
    assert read_text(f"{lines} 33%|███ | 200/600 [01:10<01:58, 3.4it/s]\n").figures["step_s"] == pytest.approx(0.35)
    assert "step_s" not in read_text(f"{lines} 33%|███ | 50/600 [01:10<01:58, 3.4it/s]\n").figures
