"""The headers of safetensors files and their index: bytes of the tensors by class; the weights themselves are not read.

Layout: huggingface/safetensors README, Format. An index says the bytes of all its files together.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.units import BITS_PER_BYTE
from knowledge.models.held import TensorClass, WeightFile
from knowledge.own.files import open_regular, read_text
from knowledge.own.mappings import json_value

INDEX = "model.safetensors.index.json"
_LARGEST_HEADER, _LARGEST_INDEX, _MOST_FILES = 100_000_000, 64_000_000, 2000
_LARGEST_SIZE, _MOST_DIMENSIONS, _LONGEST_NAME = 2**48, 8, 200
_BITS = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "I64": 64,
    "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8,
}  # fmt: skip
_LAYER = re.compile(r"\b(?:layers|h|blocks)\.(\d{1,9})\.")
_TOWER = re.compile(
    r"^(?:model\.)?(?:visual|vision|vit|audio|image|multi_modal|mm_|projector|embed_vision|sound)", re.IGNORECASE
)
_EMBEDDING = re.compile(r"(?:embed_tokens|tok_embeddings|word_embeddings|\bwte|embed_in|embedding)\.")
_HEAD = re.compile(r"(?:^|\.)(?:lm_head|embed_out|output|head)\.weight")
_ROUTER = re.compile(r"(?:mlp|moe|block_sparse_moe|feed_forward|ffn)\.(?:gate|router)\b|\brouter\.")
_SCALES = ("scale", "scales", "zeros", "zero_point", "absmax", "quant_map", "g_idx", "packed", "shape", "blocks")


def weights_beside(folder: Path, layers: int | None) -> WeightFile | None:
    """The weights of a folder: of the files of its index or its only file; None without any. Raises PlanError."""
    if (folder / INDEX).is_file():
        return _of_index(folder / INDEX, layers)
    only = sorted(folder.glob("*.safetensors"))[:2]
    return _of_files(only, layers, f"header of {only[0].name}") if len(only) == 1 else None


def read_weights(path: Path, layers: int | None) -> WeightFile:
    """The weights of one file or of an index. Raises PlanError(field="model")."""
    return _of_index(path, layers) if path.suffix == ".json" else _of_files([path], layers, f"header of {path.name}")


def is_index(path: Path) -> bool:
    return path.name.endswith(".safetensors.index.json")


def _of_index(path: Path, layers: int | None) -> WeightFile:
    text = read_text(path, "model", _LARGEST_INDEX)
    try:
        index = json_value(text)
        total, names = index["metadata"]["total_size"], index["weight_map"]
        files = sorted({str(name) for name in names.values()})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PlanError("model", f"{path} is no index of safetensors: metadata.total_size and weight_map") from None
    if (
        isinstance(total, bool)
        or not isinstance(total, int)
        or not 0 < total <= _LARGEST_SIZE
        or len(files) > _MOST_FILES
    ):
        raise PlanError("model", f"{path} has a total_size or a number of files that no model has")
    parts = [path.parent / name for name in files if Path(name).name == name and len(name) <= _LONGEST_NAME]
    if parts and len(parts) == len(files) and all(part.is_file() for part in parts):
        return _of_files(parts, layers, f"headers of the files of {path.name}")
    return WeightFile({"plain": total}, {}, {}, "", f"total_size of {path.name}")


def _of_files(paths: list[Path], layers: int | None, source: str) -> WeightFile:
    bytes_of: Counter[TensorClass] = Counter()
    weights_of: Counter[TensorClass] = Counter()
    are_packed = False
    for path in paths:
        for name, shape, kind in _tensors(path):
            to = _class(name, shape, layers)
            bytes_of[to] += prod(shape) * _BITS[kind] // int(BITS_PER_BYTE)
            weights_of[to] += 0 if _is_scale(name) else prod(shape)
            are_packed |= kind[0] in "IU" and len(shape) > 1
    return WeightFile(bytes_of, {} if are_packed else weights_of, {}, "", source)


def _tensors(path: Path) -> Iterator[tuple[str, list[int], str]]:
    """(Name, shape, type of an element) of every tensor of a file."""
    header = _header(path)
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        shape, kind = (tensor.get("shape"), str(tensor.get("dtype"))) if isinstance(tensor, Mapping) else (None, "")
        if kind not in _BITS or not isinstance(shape, list) or not _is_shape(shape):
            raise PlanError("model", f"{path} has a tensor without a shape and a type that are known: {name[:60]!r}")
        yield name, shape, kind


def _is_shape(shape: list[Any]) -> bool:
    sides = all(type(side) is int and 0 <= side <= _LARGEST_SIZE for side in shape)
    return sides and len(shape) <= _MOST_DIMENSIONS and prod(shape) <= _LARGEST_SIZE


def _header(path: Path) -> dict[str, Any]:
    with open_regular(path, "model") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= _LARGEST_HEADER:
            raise PlanError("model", f"{path} is no safetensors file: its header would be of {length:,} bytes")
        content = file.read(length)
    try:
        header = json_value(content.decode()) if len(content) == length else None
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise PlanError("model", f"{path} is no safetensors file: its header is not whole")
    return header


def _is_scale(name: str) -> bool:
    return any(part in _SCALES or part.endswith(("_scale", "_scale_inv", "_zeros")) for part in name.split("."))


def _class(name: str, shape: list[int], layers: int | None) -> TensorClass:
    """What a tensor is, by the names of transformers' modules."""
    if _TOWER.search(name):
        return "tower"
    layer = _LAYER.search(name)
    if name.startswith("mtp") or (layer and layers is not None and int(layer[1]) >= layers):
        return "other"
    if ".experts." in name:
        return "expert"
    if layer is None:
        return "embedding" if _EMBEDDING.search(name) else "head" if _HEAD.search(name) else "vector"
    if _ROUTER.search(name) and len(shape) == 2:
        return "router"
    return "plain" if len(shape) > 1 or _is_scale(name) else "vector"
