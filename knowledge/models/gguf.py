"""The header of a GGUF file: what model it is, and the bytes of its tensors; the weights themselves are not read.

Layout: ggml docs/gguf.md. Everything is bounded before it is read, as such files come from anybody.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from estimator.errors import PlanError
from knowledge.data_files import document
from knowledge.models.held import TensorClass, WeightFile
from knowledge.own.files import open_regular

MAGIC = b"GGUF"
_LARGEST_HEADER = 256_000_000
"""Bytes: vocabularies of a quarter million words with their merges take about 15 MB."""
_MOST_KEYS, _MOST_TENSORS, _MOST_PARTS = 10_000, 200_000, 512
_MOST_ITEMS = 2_000_000
"""Of all lists together: a vocabulary of a quarter million words has half a million merges, and types and scores."""
_LONGEST_TEXT, _LONGEST_KEY, _KEPT_ITEMS = 16_000_000, 65_535, 4096
_LARGEST_SIZE = 2**48
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_PART = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf$)", re.IGNORECASE)


@cache
def _table() -> Any:
    return document("gguf.yaml")


def is_gguf_file(path: Path) -> bool:
    """Whether a file begins as GGUF does, whatever its name."""
    try:
        with open_regular(path, "model") as file:
            return file.read(len(MAGIC)) == MAGIC
    except PlanError:
        return False


def read_gguf(path: Path) -> WeightFile:
    """What the header of a GGUF file says, of all its parts where it was split. Raises PlanError(field="model")."""
    parts = _parts(path)
    bytes_of: Counter[TensorClass] = Counter()
    weights_of: Counter[TensorClass] = Counter()
    metadata: dict[str, Any] = {}
    tied, vocabulary = True, 0
    for part in parts:
        with open_regular(part, "model") as file:
            reader = _Header(file, part)
            keys, tensors = reader.read()
        metadata = keys | metadata
        layers = _layers(metadata)
        for name, shape, kind in tensors:
            size = reader.size(name, shape, kind)
            to = _class(name, shape, layers)
            bytes_of[to] += size
            weights_of[to] += prod(shape)
            tied &= to != "head"
            vocabulary = shape[-1] if to == "embedding" and len(shape) == 2 else vocabulary
    fields = _config(metadata, path)
    fields |= {"tie_word_embeddings": tied, "vocab_size": vocabulary or None}
    file_type = metadata.get("general.file_type")
    named = _table()["file_types"].get(file_type, "gguf") if isinstance(file_type, int) else "gguf"
    return WeightFile(bytes_of, weights_of, fields, "q4_k_m" if named == "gguf" else named, f"header of {path.name}")


def _parts(path: Path) -> list[Path]:
    """All files that one was split into. Raises PlanError where some are missing: their bytes are not known."""
    match = _PART.search(path.name)
    if not match or not 1 <= (count := int(match[2])) <= _MOST_PARTS:
        return [path]
    names = [_PART.sub(f"-{number:05}-of-{match[2]}", path.name) for number in range(1, count + 1)]
    missing = [name for name in names if not (path.parent / name).is_file()]
    if missing:
        raise PlanError("model", f"{path.name} is one of {count} files, and {missing[0]} is not beside it")
    return [path.parent / name for name in names]


class _Header:
    """Reads one header, front to back."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.file, self.path = file, path
        self.order = "<"
        self.taken = 0
        self.items = 0

    def read(self) -> tuple[dict[str, Any], list[tuple[str, tuple[int, ...], int]]]:
        """(Metadata, (name, shape, type) of every tensor)."""
        if self._bytes(4) != MAGIC:
            raise self._problem("is not a GGUF file")
        version = self._number("I")
        if version > 0xFFFF:  # written on a machine of the other byte order
            self.order, version = ">", struct.unpack(">I", struct.pack("<I", version))[0]
        if version not in (2, 3):
            raise self._problem(f"is GGUF of version {version}; 2 and 3 are read")
        tensors, keys = self._number("Q"), self._number("Q")
        if tensors > _MOST_TENSORS or keys > _MOST_KEYS:
            raise self._problem(f"names {tensors:,} tensors and {keys:,} keys: no model has as many")
        metadata = {}
        for _ in range(keys):
            name = self._text(_LONGEST_KEY)
            metadata[name] = self._value(self._number("I"), nested=False)
        return metadata, [self._tensor() for _ in range(tensors)]

    def _tensor(self) -> tuple[str, tuple[int, ...], int]:
        name, dimensions = self._text(_LONGEST_KEY), self._number("I")
        if not 1 <= dimensions <= 8:
            raise self._problem(f"has a tensor of {dimensions} dimensions")
        shape = tuple(self._number("Q") for _ in range(dimensions))
        kind = self._number("I")
        self._number("Q")  # where its data are
        return name, shape, kind

    def size(self, name: str, shape: tuple[int, ...], kind: int) -> int:
        """Bytes of a tensor."""
        known = _table()["types"].get(kind)
        if known is None:
            raise self._problem(f"has a tensor of type {kind}, which is not known here ({name[:60]!r})")
        weights = prod(shape)
        if not 0 < weights <= _LARGEST_SIZE or shape[0] % known["group"]:
            raise self._problem(f"has a tensor of shape {shape} in blocks of {known['group']} ({name[:60]!r})")
        return weights // known["group"] * known["bytes"]

    def _value(self, kind: int, nested: bool) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _TEXT:
            return self._text(_LONGEST_TEXT)
        if kind != _LIST or nested:
            raise self._problem(f"has a value of type {kind}, which is not known")
        inner, count = self._number("I"), self._number("Q")
        self.items += count
        if self.items > _MOST_ITEMS:
            raise self._problem(f"has lists of more than {_MOST_ITEMS:,} values")
        if inner in _NUMBERS:
            code = _NUMBERS[inner]
            content = self._bytes(count * struct.calcsize(f"<{code}"))
            return list(struct.unpack(f"{self.order}{count}{code}", content)) if count <= _KEPT_ITEMS else []
        return [value for i in range(count) if (value := self._value(inner, nested=True)) is not None and i < 8]

    def _number(self, code: str) -> Any:
        return struct.unpack(self.order + code, self._bytes(struct.calcsize("<" + code)))[0]

    def _text(self, longest: int) -> str:
        length = self._number("Q")
        if length > longest:
            raise self._problem(f"has a text of {length:,} bytes")
        return self._bytes(length).decode("utf-8", "replace")

    def _bytes(self, count: int) -> bytes:
        self.taken += count
        if self.taken > _LARGEST_HEADER:
            raise self._problem(f"has a header of more than {_LARGEST_HEADER // 1_000_000} MB")
        content = self.file.read(count)
        if len(content) != count:
            raise self._problem("ends inside its header")
        return content

    def _problem(self, text: str) -> PlanError:
        return PlanError("model", f"{self.path} {text}")


def _layers(metadata: Mapping[str, Any]) -> int | None:
    """Layers without those that predict further tokens, where the file says it."""
    kind = metadata.get("general.architecture")
    blocks, further = metadata.get(f"{kind}.block_count"), metadata.get(f"{kind}.nextn_predict_layers") or 0
    return blocks - further if isinstance(blocks, int) and isinstance(further, int) else None


def _class(name: str, shape: tuple[int, ...], layers: int | None) -> TensorClass:
    """What a tensor is, by llama.cpp's names."""
    block = re.match(r"blk\.(\d{1,9})\.", name)
    if block and layers is not None and int(block[1]) >= layers:
        return "other"
    if name.startswith(("rope_", "v.", "mm.", "a.")):
        return "tower" if not name.startswith("rope_") else "other"
    if name.startswith(("token_embd.", "per_layer_token_embd.")):
        return "embedding"
    if name == "output.weight":
        return "head"
    if "_exps" in name and len(shape) == 3:
        return "expert"
    if "ffn_gate_inp" in name:
        return "router"
    return "plain" if block and len(shape) > 1 else "vector"


def _config(metadata: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Fields as a config.json would have them."""
    kind = str(metadata.get("general.architecture") or "")
    table = _table()
    if kind in table["refused"]:
        raise PlanError("model", f"{path} is {table['refused'][kind]}: only language models are planned for")

    def value(name: str) -> Any:
        content = metadata.get(f"{kind}.{name}")
        return _uniform(content) if isinstance(content, list) else content

    fields = {field: value(key) for field, keys in table["fields"].items() for key in keys if value(key) is not None}
    fields["model_type"] = table["architectures"].get(kind, kind)
    if (layers := _layers(metadata)) is not None:
        fields["num_hidden_layers"] = layers
    if kind == "llama" and fields.get("num_experts"):
        fields["model_type"] = "mixtral"
    if fields.get("kv_lora_rank"):
        _latent(fields, value)
    if fields.get("num_experts") and not fields.get("moe_intermediate_size"):
        fields["moe_intermediate_size"] = fields.get("intermediate_size")
    name = metadata.get("general.basename") or metadata.get("general.name")
    return fields | {"_gguf_name": str(name or ""), "_gguf_size": str(metadata.get("general.size_label") or "")}


def _latent(fields: dict[str, Any], value: Any) -> None:
    """Widths of multi-head latent attention, which converters since 2025 write beside those of the absorbed form."""
    rotary = value("rope.dimension_count")
    key, wide = value("attention.key_length_mla") or value("attention.key_length"), value("attention.value_length_mla")
    fields["qk_rope_head_dim"] = rotary
    if isinstance(key, int) and isinstance(rotary, int):
        fields["qk_nope_head_dim"] = key - rotary
    fields["v_head_dim"] = wide or value("attention.value_length")
    fields["num_key_value_heads"] = fields.get("num_attention_heads")
    fields.pop("head_dim", None)
    if fields["model_type"] == "deepseek_v3" and value("expert_gating_func") != _SIGMOID:
        fields["model_type"] = "deepseek_v2"


_SIGMOID = 2
"""LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID: how DeepSeek-V3 chooses experts, and V2 does not."""


def _uniform(values: list[Any]) -> Any:
    """The one value of a list that has an entry a layer; None where layers differ."""
    return values[0] if values and all(value == values[0] for value in values) else None
