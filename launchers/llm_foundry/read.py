"""LLM Foundry YAML. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.documents import Keys
from launchers.reading.findings import Findings, as_number, as_truth
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped, resolve

# Composer takes the rows of a device where those are fewer (trainer.py _split_batch).
_ROWS = "device_train_microbatch_size"


# A run of MosaicML's platform, which holds the config and says the devices (mcli's RunConfig).
_PARAMETERS = "parameters."


def _inner(keys: Keys) -> Keys:
    """The config that a run of MosaicML's platform holds."""
    flat = Keys(keys.file)
    for item in keys.items.values():
        if item.key.startswith(_PARAMETERS):
            flat.put(item.key.removeprefix(_PARAMETERS), item.value, item.line)
    return flat


def _score_run(keys: Keys) -> int:
    return mapped_format("llm_foundry").score(_inner(keys)) if "command" in keys or "image" in keys else 0


def _read_run(keys: Keys, findings: Findings) -> None:
    for name in ("compute.gpus", "gpu_num"):
        findings.whole("devices", keys.take(name))
    read(_inner(keys), findings)


def read(keys: Keys, findings: Findings) -> None:
    resolve(keys)
    _shape(keys, findings)
    if as_number(keys.look(_ROWS)) is not None:
        findings.whole("most_rows", keys.take(_ROWS))
    elif keys.look(_ROWS) == "auto":
        findings.block("workload.micro_batch", keys.items[_ROWS], "is found where it runs (--micro-batch)")
        keys.take(_ROWS)
    read_mapped("llm_foundry", keys, findings)


def _shape(keys: Keys, findings: Findings) -> None:
    """An MPT by its dimensions (models/mpt/configuration_mpt.py); one with experts or a gate is left to be named."""
    names = ("n_layers", "d_model", "n_heads", "vocab_size")
    numbers = [as_number(keys.look(f"model.{name}")) for name in names]
    kind = keys.look("model.ffn_config.ffn_type")
    if keys.look("model.name") != "mpt_causal_lm" or None in numbers or kind not in (None, "mptmlp"):
        return
    layers, hidden, heads, words = (int(number or 0) for number in numbers)
    biased = as_truth(keys.look("model.no_bias")) is not True
    turned = any(as_truth(keys.look(f"model.attn_config.{name}")) is True for name in ("rope", "alibi"))
    fields = {
        "canonical": True,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": int(as_number(keys.look("model.attn_config.kv_n_heads")) or heads),
        "head_dim": hidden // heads,
        "intermediate_size": int(hidden * (as_number(keys.look("model.expansion_ratio")) or 4)),
        "vocab_size": words,
        "max_position_embeddings": int(as_number(keys.look("model.max_seq_len")) or 2048),
        "norm_type": "layernorm",
        "mlp_gated": False,
        "hidden_act": "gelu",
        "mlp_bias": biased,
        "attention_bias": biased,
        "attention_qkv_bias": biased,
        "position_embedding": "rope" if turned else "learned",
        "tie_word_embeddings": as_truth(keys.look("model.tie_word_embeddings")) is not False,
    }
    if findings.put("model", fields, keys.items["model.d_model"]):
        keys.take("model.d_model")


FORMATS = (
    Format("LLM Foundry YAML", mapped_format("llm_foundry").score, read),
    Format("MosaicML run of LLM Foundry", _score_run, _read_run),
)
