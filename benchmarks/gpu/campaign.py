"""Short training runs on this machine, each predicted first: `python benchmarks/gpu/campaign.py FOLDER [--tiny]`.

The machine's matmuls, memory and attention first, in FOLDER/hardware; then Llama-, Qwen- and MoE-shaped models, full,
LoRA and 4 bits, over lengths, recomputation, the loss in pieces and offload. A cell that was measured is read and not
run again, so that what was stopped goes on. FOLDER/runs.json holds what was measured, for `shardwise measure add` and
`measure fit`. `--tiny` runs the same on a CPU at small sizes. Needs PyTorch (torchrun on the PATH).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from estimator.errors import PlanError
from measure.history import exchange
from measure.history.run import MeasuredRun
from measure.logs.benchmark import read
from planner.measuring.hardware import HardwareTiming, measure_hardware
from planner.measuring.training import BenchmarkRequest, measure_training
from planner.requests import parsed

# Model and layers of it that are run, so that states of a full run fit one device of 80 GB.
_MODELS: tuple[tuple[str, int | None], ...] = (
    ("Qwen/Qwen3-0.6B", None), ("meta-llama/Llama-3.2-1B", None), ("Qwen/Qwen2.5-1.5B", None),
    ("meta-llama/Llama-3.2-3B", None), ("meta-llama/Llama-3.1-8B", 8), ("Qwen/Qwen2.5-14B", 6),
    ("Qwen/Qwen3-30B-A3B", 3),
)  # fmt: skip
_METHODS = ("full", "lora", "qlora")
_LENGTHS, _LONG = (1024, 4096, 16384), 65536
_SMALL: dict[str, Any] = {
    "model_type": "llama", "name": "tiny", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512, "max_position_embeddings": 256,
}  # fmt: skip


def cells(tiny: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """(Folder, arguments of a benchmark) of each run."""
    if tiny:
        mixture = _SMALL | {"model_type": "mixtral", "name": "moe", "num_local_experts": 4, "num_experts_per_tok": 2}
        few = {"measured_steps": 2, "repeats": 2, "warmup_steps": 0, "cooldown_s": 0, "device": "cpu"}
        few |= {"accelerator": "cpu-epyc-7763", "count": 1, "per_node": 1, "micro_batch": 2, "global_batch": 4}
        for model, method in product((_SMALL, mixture), _METHODS):
            yield f"{model['name']}-{method}", few | {"model": model, "method": method, "seq_len": 32}
        yield "tiny-full-activations", few | {"model": _SMALL, "seq_len": 32, "offload": "activations"}
        return
    for (model, layers), method, recompute, pieces in product(_MODELS, _METHODS, ("none", "full"), (False, True)):
        for length in (*_LENGTHS, *([_LONG] if recompute == "full" and pieces else [])):
            name = f"{model.split('/')[-1]}-{method}-{length}-{recompute}{'-pieces' * pieces}"
            plan = {"model": model, "method": method, "seq_len": length, "recompute": recompute, "fused_loss": pieces}
            plan |= {"accelerator": "here", "count": 1, "micro_batch": 1, "global_batch": 1, "repeats": 2}
            yield name, plan | ({"layers": layers} if layers else {})
            if method == "full" and recompute == "full" and length == max(_LENGTHS):
                # What is kept of layers that are computed again is their inputs.
                yield f"{name}-activations", plan | {"offload": "activations"} | ({"layers": layers} if layers else {})


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--tiny", action="store_true")
    arguments = asked.parse_args()
    swept(arguments.folder / "hardware", arguments.tiny)
    runs: list[MeasuredRun] = []
    for name, plan in cells(arguments.tiny):
        place = arguments.folder / name
        try:
            measure_training(parsed(BenchmarkRequest, plan), str(place))
        except PlanError as error:
            print(f"{name}: {str(error).splitlines()[0][:160]}", file=sys.stderr, flush=True)
            continue
        run = read(place)
        assert run is not None
        runs.append(run.model_copy(update={"name": name, "tags": ["campaign"]}))
        (arguments.folder / "runs.json").write_text(exchange.written(runs, "json"))
        told(runs[-1])
    misses = [run.predicted["step_s"] / run.figures["step_s"] - 1.0 for run in runs if "step_s" in run.figures]
    if misses:
        print(f"{len(misses)} timed: mean error {fmean(map(abs, misses)):.0%}, middle {median(misses):+.0%}")
    return 0 if runs else 1


def swept(place: Path, tiny: bool) -> None:
    """The sweeps of the machine, kept as a device of one's own that later plans have as `here`."""
    timing = {"seconds": 40 if tiny else 240, "device": "cpu" if tiny else "auto", "keep": not tiny}
    if not (place / "measured.json").exists():
        best = measure_hardware(parsed(HardwareTiming, timing), str(place)).best
        print("\n".join(f"{row.part} {row.what}: {row.rate:.3g}/s" for row in best), flush=True)


def told(run: MeasuredRun) -> None:
    """One line a run."""
    step, predicted = run.figures.get("step_s"), run.predicted["step_s"]
    text = (
        run.outcome if step is None else f"{step:.4g} s a step, predicted {predicted:.4g} ({predicted / step - 1:+.0%})"
    )
    print(f"{run.name}: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
