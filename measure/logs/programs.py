"""What the training programs themselves print of their speed and memory, read from the logs in a cell's folder.

Formats: Megatron-LM megatron/training/training.py training_log (also of Megatron-Bridge and Primus, which call it),
torchtitan 0.3 components/metrics.py MetricsProcessor.log, MaxText 0.2.5 common/metric_logger.py, transformers 5.6
trainer.py (train_runtime at the end, which LlamaFactory, TRL, Axolotl and Unsloth print).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from estimator.units import GIB

_MOST_BYTES = 32 * 2**20
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_MEGATRON = re.compile(r"elapsed time per iteration \(ms\): ([\d.]+)")
_MAXTEXT = re.compile(r"completed step: \d+, seconds: ([\d.]+)")
_TORCHTITAN = re.compile(r"(?<!validate )step: +\d+ .*?memory: *([\d.]+)GiB.*?tps: ([\d,]+)")
_TRAINER = re.compile(r"'train_runtime': '?([\d.]+(?:e[+-]?\d+)?)")
_NO_MEMORY = re.compile(r"OutOfMemoryError|(?:CUDA|HIP) out of memory|RESOURCE_EXHAUSTED")


def logged(folder: Path, done: bool, steps: int | None) -> tuple[dict[str, Any], Path] | None:
    """(The fields of a `CellResult`, the log that says so) of a run of `steps` optimizer steps; None where the logs say
    nothing. `done` is whether the run ended well: the times of one that has not may be of any part of it."""
    for path in _logs(folder):
        text = _text(path)
        figures = _figures(text, steps) if done else {"outcome": "oom"} if _NO_MEMORY.search(text) else {}
        if figures:
            date = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
            return {"date": date, **figures}, path
    return None


def _logs(folder: Path) -> Iterator[Path]:
    """What run_all.sh, Slurm (newest first) and ssh.sh write; links that leave the folder are passed over."""
    paths = [folder / "run.log", *sorted(folder.glob("slurm-*.out"), key=_changed, reverse=True)]
    for path in (*paths, *sorted(folder.glob("logs/*.log"))):
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            yield path


def _changed(path: Path) -> float:
    return path.lstat().st_mtime


def _text(path: Path) -> str:
    """The end of a log, without colours."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _MOST_BYTES))
        return _COLOUR.sub("", stream.read().decode(errors="replace"))


def _figures(text: str, steps: int | None) -> dict[str, Any]:
    if milliseconds := _MEGATRON.findall(text):
        return _checked(step_s=_settled([float(value) / 1000.0 for value in milliseconds]))
    if seconds := _MAXTEXT.findall(text):
        return _checked(step_s=_settled([float(value) for value in seconds]))
    if rows := _TORCHTITAN.findall(text):
        rates = [float(tokens.replace(",", "")) for _, tokens in rows]
        if min(rates) <= 0:
            return {}
        peak = max(float(memory) for memory, _ in rows) * GIB
        rate = 1.0 / _settled([1.0 / value for value in rates])
        return _checked(tokens_per_s_per_device=rate, peak_bytes=peak, peak_kind="reserved")
    if (seconds := _TRAINER.findall(text)) and steps:
        note = "the Trainer's train_runtime over all steps, the first and the saving of checkpoints included"
        return _checked(step_s=float(seconds[-1]) / steps, steps=steps, note=note)
    return {}


def _settled(seconds: list[float]) -> float:
    """The mean without the first fifth, in which programs compile and warm up."""
    later = seconds[-(-len(seconds) // 5) :] or seconds
    return sum(later) / len(later)


def _checked(**figures: Any) -> dict[str, Any]:
    numbers = [value for value in figures.values() if isinstance(value, float)]
    return {"outcome": "ran", **figures} if all(value > 0 for value in numbers) else {}
