"""Training loops that a source writes out itself on PyTorch: its names by the words of the field in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from launchers.own_program import read as own
from launchers.python.loops import OPTIMIZERS, Call
from launchers.python.values import arguments_of, is_unknown
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings

TITLE = "Python script with a loop of its own"
_ROWS = ("rows", "workload.micro_batch", "workload.global_batch")


def read_loop(keys: Keys, names: Mapping[str, Any], calls: Iterable[Call], findings: Findings) -> str | None:
    """`keys`: what its calls say already. None for a source that takes no step of an optimizer."""
    calls = list(calls)
    lasts = {name.rpartition(".")[2] for name, _, _ in calls}
    if "backward" not in lasts or findings.programs or findings.has("workload.framework"):
        # Where another file has told the program, this is a part of it.
        return None
    rows = None
    for name, node, inside in calls:
        _called(keys, name, node)
        if name.rpartition(".")[2] == "DataLoader" and _trains(node):
            rows = dict(arguments_of(node, inside)).get("batch_size", rows)
    for name in sorted(names, key=lambda name: not name.startswith(".")):
        # What the source is told counts before what it makes of it; names of objects are none of settings.
        key, value, is_argument = name.removeprefix("."), names[name], name.startswith(".")
        meaning = own.meaning_of(key) if key.isidentifier() else None
        is_new = is_argument or not any(own.meaning_of(other) == meaning for other in keys.items)
        is_told = isinstance(value, str | int | float) and (is_argument or not is_unknown(value))
        if meaning and is_new and is_told and key not in keys:
            keys.put(key, value)
    if rows is not None and not any(own.meaning_of(key) in _ROWS for key in keys.items):
        keys.put("batch_size", rows)
    _unsaid(keys)
    own.read(keys, findings)
    return TITLE


def _called(keys: Keys, name: str, node: ast.Call) -> None:
    last = name.rpartition(".")[2]
    if last in OPTIMIZERS:
        keys.put("optimizer", OPTIMIZERS[last], node.lineno)
    elif last in ("from_config", "_from_config") and "model" in name.lower() + ast.unparse(node).lower():
        keys.put("stage", "pretrain", node.lineno)
    elif last == "gradient_checkpointing_enable":
        keys.put("gradient_checkpointing", True, node.lineno)
    elif last in ("FullyShardedDataParallel", "FSDP", "fully_shard"):
        keys.put("strategy", "fsdp", node.lineno)


def _trains(node: ast.Call) -> bool:
    """Whether a loader is of the training: others are in order, or of data that are named after what they are for."""
    words = ast.unparse(node).lower()
    return "shuffle=false" not in words.replace(" ", "") and not re.search(r"eval|val_|valid|test", words)


def _unsaid(keys: Keys) -> None:
    """Of names that mean one thing those that are known count."""
    told = {own.meaning_of(key) for key, item in keys.items.items() if not is_unknown(item.value)}
    for key, item in list(keys.items.items()):
        if is_unknown(item.value) and own.meaning_of(key) in told:
            del keys.items[key]
