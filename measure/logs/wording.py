"""Quantities of a step by the words that they are called with: `tok/s/gpu`, `perf/tokens_per_sec`, `max_mem_gb`.

Programs that people write name things as they like, but with the words of the field: what is counted, a time, a device.
A name is read where each of its words is one of these; one more word, and it may be anything.
"""

from __future__ import annotations

import re
from functools import lru_cache

from estimator.units import GIB

MIB = 2.0**20
_WORD = re.compile(r"[a-z]+|[%#]")
_OF_WORD = {
    "tokens": "tokens token toks tok tk", "samples": "samples sample seqs seq sequences sequence examples example",
    "step": "step iteration update", "pass": "iter it batch micro microbatch",
    "steps": "steps iterations updates iters its batches",
    "s": "s sec secs second seconds", "ms": "ms msec millisecond milliseconds", "us": "us usec",
    "time": "time duration latency", "cost": "cost", "dt": "dt", "pass of two": "forward fwd backward bwd",
    "device": "gpu gpus device devices chip chips rank card cards accelerator", "flops": "tflops tflop tfs",
    "mfu": "mfu", "%": "% percent pct", "memory": "mem memory vram hbm", "allocated": "alloc allocated used usage",
    "reserved": "reserved cached", "gb": "gb gib", "mb": "mb mib", "byte": "bytes byte", "since": "elapsed wall clock",
    "loss": "loss", "total": "total", "peak": "max peak", "gradient": "grad gradient gnorm gradnorm", "norm": "norm",
    "lr": "lr", "rate": "rate", "learning": "learning", "epoch": "epoch", "stamp": "timestamp ts",
    "": "train training trainer perf performance throughput speed avg average mean inst current curr cur per the of at "
        "cuda torch global metrics stats lm reduced",
    "of": "optimizer optim opt model system actor compute",
}  # fmt: skip
_ROLES = {word: role for role, words in _OF_WORD.items() for word in words.split()}
# The roles of a name, each once and in no order, and what they come to.
_MEANINGS: dict[frozenset[str], tuple[str, float]] = {
    frozenset(roles.split()): meaning
    for meaning, names in (
        (("tokens_per_s", 1.0), ("tokens s",)),
        (("tokens_per_s_per_device", 1.0), ("tokens s device",)),
        (("samples_per_s", 1.0), ("samples s",)),
        (("tflops_per_device", 1.0), ("flops", "flops s", "flops device", "flops s device")),
        (("mfu", 0.01), ("mfu", "mfu %")),
        (("step", 1.0), ("step",)),
        (("pass", 1.0), ("pass", "pass step")),
        (("step_s", 1.0), ("step time", "step time s", "step cost", "dt", "dt s")),
        (("step_s", 1e-6), ("step us",)),
        (("step_s", 1e-3), ("step time ms", "step ms", "dt ms")),
        (("pass_s", 1.0), ("pass time", "pass time s", "pass cost", "pass step time", "pass step time s")),
        (("pass_s", 1e-3), ("pass time ms", "pass ms")),
        (("time_s", 1.0), ("time", "time s", "s", "since", "since s", "since time", "since time s")),
        (("time_s", 1e-3), ("time ms", "ms", "since ms", "since time ms")),
        (("clock_s", 1.0), ("stamp",)),
        (("loss", 1.0), ("loss", "loss total")),
        (("learning_rate", 1.0), ("lr", "learning rate")),
        (("gradient_norm", 1.0), ("gradient norm", "gradient")),
        (("epoch", 1.0), ("epoch",)),
    )
    for roles in names
}  # fmt: skip
# Of the ways forward and back, which both lie in a step.
_MEANINGS |= {frozenset(("pass of two", "time", *unit)): ("parts_s", factor)
              for unit, factor in (((), 1.0), (("s",), 1.0), (("ms",), 1e-3))}  # fmt: skip
_TIMES = frozenset(("step_s", "pass_s", "time_s"))
_LONGEST = 80
_APART = re.compile(r"(?<![A-Za-z\d])\d")
_MEMORY = {"": GIB, "gb": GIB, "mb": MIB, "byte": 1.0}


@lru_cache(maxsize=4096)
def worded(name: str) -> tuple[str, float] | None:
    """(Our name, factor to SI) of a name whose words all are those of one quantity; None for any other."""
    if len(name) > _LONGEST or _APART.search(name):
        return None
    roles = [_ROLES.get(word) for word in _WORD.findall(name.lower())]
    if None in roles or not (kinds := frozenset(role for role in roles if role)):
        return None
    if "memory" in kinds:
        return _memory(kinds - {"memory", "of"})
    # Of steps and seconds the order tells which is of which: it/s, s/it.
    if "s" in kinds and len(kinds) == 2 and kinds & {"step", "steps", "pass"}:
        if next(role for role in roles if role) != "s":
            return "steps_per_s", 1.0
        return ("pass_s" if "pass" in kinds else "step_s"), 1.0
    meaning = _MEANINGS.get(kinds - {"of"})
    # What belongs to a part of a step is as good as the step's, but for its time.
    return None if meaning and "of" in kinds and meaning[0] in _TIMES else meaning


def _memory(kinds: frozenset[str]) -> tuple[str, float] | None:
    units = kinds & _MEMORY.keys()
    if len(units) > 1 or kinds - units - {"allocated", "reserved", "device", "peak"}:
        return None
    return f"{'reserved' if 'reserved' in kinds else 'allocated'}_bytes", _MEMORY["".join(units)]
