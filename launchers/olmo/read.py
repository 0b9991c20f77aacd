"""OLMo's YAML. Words: fields.yaml."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from launchers.reading.documents import Keys
from launchers.reading.findings import Findings, as_number, as_truth
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped, resolve

_PROGRAM = "olmo"
# What ModelConfig is unless given (olmo/config.py), of the dimensions.
_RATIO, _VOCABULARY = 4, 50304


def read(keys: Keys, findings: Findings) -> None:
    resolve(keys)
    _recompute(keys, findings)
    _shape(keys, findings)
    length = keys.items.get("max_duration")
    if length is not None and (steps := as_number(length.value)):
        findings.whole("workload.steps", replace(length, value=int(steps)))
    read_mapped(_PROGRAM, keys, findings)


def _recompute(keys: Keys, findings: Findings) -> None:
    """Every layer, or some of so many."""
    item, layers = keys.take("activation_checkpointing"), as_number(keys.look("model.n_layers"))
    if item is None:
        return
    counts = {"one": 1, "two": 2, "three": 3, "four": 4, "eight": 8}
    match = re.fullmatch(r"(\w+)_in_(\w+)", str(item.value))
    if item.value == "whole_layer":
        findings.put("layout.recompute", "full", item)
    elif match and match[1] in counts and match[2] in counts and layers:
        kept = math.ceil(layers * counts[match[1]] / counts[match[2]])
        findings.put("layout.recompute", f"block:{kept}", item)
    else:
        findings.block("layout.recompute", item, "recomputes parts of layers of its own choice")


def _shape(keys: Keys, findings: Findings) -> None:
    """The model by its dimensions; mlp_hidden_size counts a gate and what it is multiplied with."""
    numbers = [as_number(keys.look(f"model.{name}")) for name in ("n_layers", "d_model", "n_heads")]
    kind = str(keys.look("model.activation_type") or "swiglu")
    if None in numbers or kind not in ("swiglu", "gelu", "relu") or keys.look("model.block_type") == "llama":
        return
    depth, hidden, heads = (int(number or 0) for number in numbers)
    gated, biased = kind == "swiglu", as_truth(keys.look("model.include_bias")) is not False
    wide = as_number(keys.look("model.mlp_hidden_size")) or hidden * (as_number(keys.look("model.mlp_ratio")) or _RATIO)
    single = as_truth(keys.look("model.multi_query_attention")) is True
    fields = {
        "canonical": True,
        "num_hidden_layers": depth,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": 1 if single else int(as_number(keys.look("model.n_kv_heads")) or heads),
        "head_dim": hidden // heads,
        "intermediate_size": int(wide) // 2 if gated else int(wide),
        "vocab_size": int(as_number(keys.look("model.embedding_size")) or _VOCABULARY),
        "max_position_embeddings": int(as_number(keys.look("model.max_sequence_length")) or 1024),
        "norm_type": "rmsnorm" if keys.look("model.layer_norm_type") == "rms" else "layernorm",
        "mlp_gated": gated,
        "hidden_act": "silu" if gated else kind,
        "mlp_bias": biased,
        "attention_bias": biased,
        "attention_qkv_bias": biased,
        "position_embedding": "rope" if as_truth(keys.look("model.rope")) is True else "learned",
        "tie_word_embeddings": as_truth(keys.look("model.weight_tying")) is not False,
    }
    if findings.put("model", fields, keys.items["model.d_model"]):
        keys.take("model.d_model")


_FORM = mapped_format(_PROGRAM)
FORMATS = (Format(_FORM.name, _FORM.score, read, _FORM.kinds),)
