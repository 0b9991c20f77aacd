"""Writes small GGUF and safetensors files as the published formats say (ggml docs/gguf.md, safetensors README)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

F32, Q8_0, Q4_K, Q6_K = 0, 8, 12, 14
_U32, _TEXT, _LIST, _U64 = 4, 8, 9, 10
Tensor = tuple[str, tuple[int, ...], int]

HIDDEN, LAYERS, VOCABULARY, FEED, HEADS, KV_HEADS = 256, 2, 320, 512, 4, 2


def gguf(metadata: Mapping[str, Any], tensors: Sequence[Tensor], version: int = 3) -> bytes:
    """The header of a GGUF file; whole numbers are written as u32, lists of texts as such."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += _text(key) + _value(value)
    for name, shape, kind in tensors:
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, 0)
    return head


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _TEXT) + _text(value)
    if isinstance(value, list):
        kind = _TEXT if isinstance(value[0], str) else _U32
        content = b"".join(_text(each) if kind == _TEXT else struct.pack("<I", each) for each in value)
        return struct.pack("<IIQ", _LIST, kind, len(value)) + content
    return struct.pack("<II", _U32, value)


def llama_metadata(architecture: str = "llama", file_type: int = 15, **more: Any) -> dict[str, Any]:
    sizes = {
        "block_count": LAYERS, "embedding_length": HIDDEN, "feed_forward_length": FEED, "context_length": 4096,
        "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
    }  # fmt: skip
    words = {"tokenizer.ggml.tokens": [f"token{i}" for i in range(VOCABULARY)]}
    named = {"general.architecture": architecture, "general.file_type": file_type}
    return named | {f"{architecture}.{key}": value for key, value in (sizes | more).items()} | words


def llama_tensors(tied: bool = False) -> list[Tensor]:
    """Of a small Llama with matrices in Q4_K and some in Q6_K; shapes as ggml has them, inputs first."""
    narrow = HIDDEN // HEADS * KV_HEADS
    rows: list[Tensor] = [("token_embd.weight", (HIDDEN, VOCABULARY), Q4_K), ("output_norm.weight", (HIDDEN,), F32)]
    rows += [] if tied else [("output.weight", (HIDDEN, VOCABULARY), Q6_K)]
    for i in range(LAYERS):
        rows += [(f"blk.{i}.{name}_norm.weight", (HIDDEN,), F32) for name in ("attn", "ffn")]
        rows += [(f"blk.{i}.attn_{name}.weight", (HIDDEN, HIDDEN), Q4_K) for name in ("q", "output")]
        rows += [(f"blk.{i}.attn_k.weight", (HIDDEN, narrow), Q4_K), (f"blk.{i}.attn_v.weight", (HIDDEN, narrow), Q6_K)]
        rows += [(f"blk.{i}.ffn_{name}.weight", (HIDDEN, FEED), Q4_K) for name in ("gate", "up")]
        rows.append((f"blk.{i}.ffn_down.weight", (FEED, HIDDEN), Q6_K))
    return rows


def safetensors(tensors: Mapping[str, tuple[str, Sequence[int]]]) -> bytes:
    """The header of a safetensors file, without its data."""
    rows = {
        name: {"dtype": kind, "shape": list(shape), "data_offsets": [0, 0]} for name, (kind, shape) in tensors.items()
    }
    text = json.dumps({"__metadata__": {"format": "pt"}} | rows).encode()
    return struct.pack("<Q", len(text)) + text


CONFIG: dict[str, Any] = {
    "model_type": "qwen3", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY, "head_dim": 64,
    "intermediate_size": FEED, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "tie_word_embeddings": True,
}  # fmt: skip


def qwen3_tensors(kind: str = "BF16") -> dict[str, tuple[str, Sequence[int]]]:
    """Of the small model of CONFIG; matrices in `kind`, those in 8 bits with a scale per block of 128."""
    narrow = HIDDEN // HEADS * KV_HEADS
    rows: dict[str, tuple[str, Sequence[int]]] = {
        "model.embed_tokens.weight": ("BF16", (VOCABULARY, HIDDEN)), "model.norm.weight": ("BF16", (HIDDEN,)),
    }  # fmt: skip
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        matrices = {
            "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (narrow, HIDDEN),
            "self_attn.v_proj": (narrow, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (FEED, HIDDEN),
            "mlp.up_proj": (FEED, HIDDEN), "mlp.down_proj": (HIDDEN, FEED),
        }  # fmt: skip
        for name, shape in matrices.items():
            rows[f"{at}.{name}.weight"] = (kind, shape)
            if kind == "F8_E4M3":
                rows[f"{at}.{name}.weight_scale_inv"] = ("F32", (shape[0] // 128, shape[1] // 128))
        for name, width in (("input_layernorm", HIDDEN), ("post_attention_layernorm", HIDDEN),
                            ("self_attn.q_norm", 64), ("self_attn.k_norm", 64)):  # fmt: skip
            rows[f"{at}.{name}.weight"] = ("BF16", (width,))
    return rows


def write_folder(folder: Path, kind: str = "BF16", **config: Any) -> Path:
    """A folder with a config.json and a file of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "model.safetensors").write_bytes(safetensors(qwen3_tensors(kind)))
    return folder
