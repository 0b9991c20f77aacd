"""What a file holds its weights in: the bytes of its tensors by class, as bits of each class of a model's weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from estimator.model.architecture import Architecture, HeldBits
from estimator.units import BITS_PER_BYTE

TensorClass = Literal["plain", "expert", "embedding", "head", "router", "vector", "tower", "other"]
"""`tower`: the vision or audio part. `other`: layers that predict further tokens, and tables that are no weights."""


@dataclass(frozen=True)
class WeightFile:
    """What was read of one file or all its parts: bytes by class, weights by class (none where shapes do not tell them,
    as several weights stand in one element), the fields of a config, and the format of most of it ('' for 16 bits or
    unknown)."""

    bytes_of: Mapping[TensorClass, int]
    weights_of: Mapping[TensorClass, int]
    fields: Mapping[str, object]
    weight_format: str
    source: str

    @property
    def text_bytes(self) -> int:
        return sum(size for kind, size in self.bytes_of.items() if kind not in ("tower", "other"))

    @property
    def text_weights(self) -> int:
        return sum(size for kind, size in self.weights_of.items() if kind not in ("tower", "other"))


def held_bits(file: WeightFile, model: Architecture) -> HeldBits:
    """Bits per weight of each class of `model`, such that its weights come to the bytes of the file."""
    weights = _weights(model)
    if set(file.bytes_of) == {"plain"}:
        return _of_total(file.text_bytes, weights)
    bytes_of: Counter[TensorClass] = Counter(file.bytes_of)
    del bytes_of["tower"], bytes_of["other"]
    for kind, size in list(bytes_of.items()):
        if not weights[kind]:  # a class that the model does not have: its bytes are the others'
            del bytes_of[kind]
            bytes_of["plain" if weights["plain"] else "vector"] += size
    plain = BITS_PER_BYTE * bytes_of["plain"] / weights["plain"] if weights["plain"] else 0.0

    def bits(kind: TensorClass, unknown: float) -> float:
        return BITS_PER_BYTE * bytes_of[kind] / weights[kind] if weights[kind] and bytes_of[kind] else unknown

    head = bits("head", bits("embedding", 16.0))
    embedding = bits("embedding", head)
    return HeldBits(
        plain=plain,
        experts=bits("expert", plain),
        embedding=embedding,
        head=embedding if model.tied else head,
        router=bits("router", 16.0),
        vectors=bits("vector", 16.0),
    )


def _of_total(size: int, weights: Counter[TensorClass]) -> HeldBits:
    """Where only the sum of bytes is known: what formats leave alone is in 16 bits, the rest shares what is left."""
    matrices = weights["plain"] + weights["expert"]
    left = BITS_PER_BYTE * size - 16.0 * (weights.total() - matrices)
    mean = max(left, 0.0) / matrices if matrices else 16.0
    return HeldBits(mean, mean, 16.0, 16.0, 16.0, 16.0)


def _weights(model: Architecture) -> Counter[TensorClass]:
    """Weights of a model by class, as `weight_bytes` counts them."""
    counts: Counter[TensorClass] = Counter()
    for kind, block in enumerate(model.blocks):
        times = model.pattern.count(kind)
        for matrix in block.matrices:
            role: TensorClass = (
                "expert" if matrix.role == "expert" else "router" if matrix.role == "router" else "plain"
            )
            counts[role] += times * matrix.copies * matrix.inputs * matrix.outputs
    counts["embedding"] = model.embedding_parameters + model.layer_embedding_parameters
    counts["head"] = model.head_parameters
    counts["vector"] = model.parameters - counts.total()
    return counts
