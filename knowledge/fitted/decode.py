"""Loads what decode attention and routed experts reach on an accelerator family (decode_factors.yaml)."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from estimator.machine.decode import DecodeKernel, ExpertKernel
from knowledge.data_files import document

_TOLD = ("points", "median", "p90", "borrowed")
# Formats of the cache by the entry that stands for them: kernels read 16 bits alike, and 8 bits; none of 4 is timed.
_CACHES = {"bf16": "bf16", "fp16": "bf16", "fp32": "bf16", "fp8": "fp8", "int8": "fp8", "fp4": "fp8"}


@cache
def decode_kernel(
    family: str, kernel: Literal["attention", "mla"], kv_dtype: str, engine: str = "", accelerator: str = ""
) -> DecodeKernel:
    """What decode attention, or that of a compressed cache (MLA), reaches on an accelerator family.

    `engine` and the catalogue id `accelerator` tell kernels and chips that are not as the family's others; the middle
    of the timed families stands in for one without timings.
    """
    rows = _rows(kernel, family, accelerator)
    cache_format = _CACHES[kv_dtype]
    return DecodeKernel(**_numbers(rows.get(f"{cache_format} {engine}", rows[cache_format])))


@cache
def expert_kernel(family: str, kind: str, accelerator: str = "") -> ExpertKernel:
    """What grouped kernels of routed experts reach on an accelerator family with a kind of operand (a Kind of
    estimator/machine/matmul.py, or 'mxfp4' and 'mxfp4_weights' with 8-bit and 16-bit activations)."""
    return ExpertKernel(**_numbers(_rows("experts", family, accelerator)[kind]))


def decode_evidence(
    family: str, kernel: Literal["attention", "mla", "experts"], entry: str, accelerator: str = ""
) -> tuple[int, str]:
    """(Timings behind an entry, what it is borrowed from where there are none)."""
    row = _rows(kernel, family, accelerator)[entry]
    return row["points"], row.get("borrowed", "")


@cache
def _fitted() -> dict[str, Any]:
    return document("../decode_factors.yaml")


def _rows(kernel: str, family: str, accelerator: str) -> dict[str, dict[str, Any]]:
    fits = _fitted()
    rows = fits[kernel]
    name = fits["accelerators"].get(accelerator, family)
    return rows[name] if name in rows else rows["default"]


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in row.items() if name not in _TOLD}
