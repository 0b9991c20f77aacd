"""What a deployment has room for, against what engines print when they start with the same settings."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median
from typing import Any

from estimator.model.architecture import Architecture
from knowledge.models.catalogue import find_architecture
from tools import call

LOGS = Path(__file__).parents[3] / "knowledge" / "measurements" / "kv_capacity.csv"
_SETTINGS = {
    "engine": "engine", "version": "software_version", "weight_dtype": "weight_dtype", "kv_dtype": "kv_dtype",
    "memory_share": "memory_share", "max_model_len": "max_context", "max_num_batched_tokens": "max_batched_tokens",
    "max_num_seqs": "max_batch",
}  # fmt: skip


def grows_alone(architecture: Architecture) -> bool:
    """Whether all of the cache grows with every token, in dense models and those with latents."""
    blocks = [architecture.blocks[kind] for kind in architecture.pattern]
    latent = any(block.mixer == "mla" for block in blocks)
    return all(block.mixer in ("attention", "mla") and not block.window for block in blocks) and (
        latent or not architecture.is_moe
    )


def printed() -> list[dict[str, str]]:
    """Logs with nothing in doubt that print the tokens of a cache that grows alone."""
    with LOGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return [
        row for row in rows if row["tokens"] and not row["doubt"] and grows_alone(find_architecture(row["model"])[0])
    ]


def room(row: dict[str, str]) -> float:
    workload: dict[str, Any] = {"kind": "inference", "concurrency": 1, "input_len": 128, "output_len": 16}
    workload |= {field: row[column] for column, field in _SETTINGS.items() if row[column]}
    cluster = {"accelerator": row["accelerator"], "count": int(row["devices"])}
    plan = {"model": row["model"], "workload": workload, "cluster": cluster, "layout": {"tp": int(row["tp"])}}
    return float(call("estimate_inference", {"plan": plan})["memory"]["kv_tokens"])


def test_deployments_have_the_room_that_engines_print() -> None:
    errors = sorted(abs(room(row) / float(row["tokens"]) - 1.0) for row in printed())
    assert len(errors) >= 12
    assert median(errors) < 0.03
    assert errors[-1] < 0.08, errors
