"""GPT-NeoX YAML. Words: fields.yaml; what is left out is as megatron/neox_arguments/arguments.py has it."""

from __future__ import annotations

import math
import re
from typing import Any

from knowledge.models.dimensions import model_of
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_set
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped

# GPT-2's byte pairs, which are taken unless another tokenizer is named (neox_args.py NeoXArgsTokenizer).
_WORDS = 50257
# Those of 20B_tokenizer.json, which Pythia and GPT-NeoX-20B have: their checkpoints hold 50,304, 50,432 and 50,688,
# this rounded up for a model_parallel_size of 1, 2 and 4.
_OF_20B = 50277
# The least and the most that tokenizers in use have: Llama 2's and Gemma's (their config.json, vocab_size).
_VOCABULARY_SIZES = (32000, 262144)
_ROWS = ("train_batch_size", "train_micro_batch_size_per_gpu")
_ON_ENGINE = ("te_mha", "te_layernorm_mlp", "te_columnparallel", "te_rowparallel")
# Of its sinusoidal and relative positions nothing is kept that weighs.
_POSITIONS = {"learned": "learned", "alibi": "alibi", "none": "none"}
_GATED = ("swiglu", "geglu", "reglu", "liglu", "bilinear")
# Layers of an attention_config that are attention (neox_args.py ATTENTION_TYPE_CHOICES).
_ATTENTION = {"global", "local", "flash", "sparse_fixed", "sparse_variable", "bigbird", "bslongformer"}


def read(keys: Keys, findings: Findings) -> None:
    keys = _underscored(keys)
    stages = keys.items.get("pipe_parallel_size")
    if stages is not None and stages.value == 0:
        # The model without the classes of its pipeline.
        keys.put("pipe_parallel_size", 1, stages.line)
    _shape(keys, findings)
    _engine(keys, findings)
    packed = keys.take("use_bnb_optimizer")
    if is_set(packed) and packed is not None:
        keys.take("optimizer.type")
        findings.put("workload.optimizer", "adamw_8bit", packed)
    if not any(name in keys for name in _ROWS):
        # neox_args.py calculate_batch_parameters asserts that there is one.
        why = "is in no file, and it does not start without one (--global-batch)"
        findings.block("workload.global_batch", Item(keys.file, " or ".join(_ROWS), None), why)
    elif not all(name in keys for name in _ROWS):
        findings.default("accumulation", 1, "one micro-batch makes a step unless gradient_accumulation_steps says more")
    findings.default("workload.precision", "fp32", "fp16, bf16 and precision are off unless given")
    read_mapped("gpt_neox", keys, findings)


def _underscored(keys: Keys) -> Keys:
    flat = Keys(keys.file)
    for item in keys.items.values():
        flat.put(item.key.replace("-", "_"), item.value, item.line)
    return flat


def _engine(keys: Keys, findings: Findings) -> None:
    """Layers on Transformer Engine, which keeps no more than they do without it: only what fits is sure."""
    item = next((keys.items[name] for name in _ON_ENGINE if is_set(keys.items.get(name))), None)
    if item is None:
        return
    half = is_set(keys.take("fp16.enabled"))
    for name in ("precision", "bf16.enabled"):
        keys.take(name)
    why = "runs layers on Transformer Engine, in fp8 where te_fp8_format says so: it takes at most what 16 bits take"
    findings.at_most("workload.precision", "fp16" if half else "bf16", item, why)


def _shape(keys: Keys, findings: Findings) -> None:
    """The model by its dimensions; where its tokenizer is not a usual one, one for the least and the most words."""
    numbers = {name: as_number(keys.look(name)) for name in ("num_layers", "hidden_size", "num_attention_heads")}
    layers = keys.items.get("attention_config")
    kinds = {*re.findall(r"[a-z_]+", str(layers.value))} if layers is not None else {"global"}
    if layers is not None and not kinds <= _ATTENTION:
        findings.block("model", layers, f"has layers that are no attention ({', '.join(sorted(kinds - _ATTENTION))})")
        return
    experts = as_number(keys.look("moe_num_experts") or 1)
    if (
        None in numbers.values()
        or experts is None
        or (experts > 1 and keys.look("moe_expert_interval") not in (None, 1))
    ):
        return
    depth, hidden, heads = (int(number or 0) for number in numbers.values())
    item = keys.items["hidden_size"]
    if not heads or hidden % heads:
        findings.block("model", item, f"is no multiple of num_attention_heads ({heads}), and does not start")
        return
    sizes = {"num_layers": float(depth), "hidden_size": float(hidden), "num_attention_heads": float(heads)}
    for source in (keys.items.get("load"), keys.items.get("vocab_file")):
        if source is not None and isinstance(source.value, str) and (known := model_of(source.value, sizes)):
            findings.put("model", known, source)
            for name in sizes:
                keys.take(name)
            return
    fields = _fields(keys, depth, hidden, heads)
    keys.take("moe_num_experts")
    if experts > 1:
        fields |= {"num_experts": int(experts), "num_experts_per_tok": int(as_number(keys.look("moe_top_k")) or 1)}
        fields |= {"moe_intermediate_size": fields["intermediate_size"]}
    vocabulary = _vocabulary(keys)
    if vocabulary is None:
        why = "the size of the vocabulary is in the tokenizer's files"
        models = (fields | {"vocab_size": _padded(keys, size)} for size in _VOCABULARY_SIZES)
        findings.one_of("model", tuple(models), item, why)
    elif not findings.put("model", fields | {"vocab_size": _padded(keys, vocabulary)}, item):
        return
    for name in ("hidden_size", "num_layers"):
        keys.take(name)


def _padded(keys: Keys, words: int) -> int:
    multiple = (as_number(keys.look("make_vocab_size_divisible_by")) or 128) * (
        as_number(keys.look("model_parallel_size")) or 1
    )
    return int(math.ceil(words / multiple) * multiple)


def _fields(keys: Keys, depth: int, hidden: int, heads: int) -> dict[str, Any]:
    activation = str(keys.look("activation") or "gelu").lower()
    # GPT-NeoX 1's LLaMAParallelMLP, whose gate has no biases.
    is_llama = keys.look("mlp_type") == "llama"
    gated = is_llama or activation in _GATED
    has_bias = keys.look("use_bias_in_attn_linear") is not False
    return {
        "canonical": True,
        "num_hidden_layers": depth,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": int(as_number(keys.look("num_kv_heads")) or heads),
        "head_dim": hidden // heads,
        "intermediate_size": _width_of_llama(hidden) if is_llama else _width(keys, hidden, gated),
        "max_position_embeddings": int(as_number(keys.look("max_position_embeddings")) or 2048),
        "norm_type": "rmsnorm" if keys.look("norm") == "rmsnorm" else "layernorm",
        "mlp_gated": gated,
        "hidden_act": "silu" if activation in ("swiglu", "silu") else "gelu",
        "mlp_bias": not is_llama and keys.look("use_bias_in_mlp") is not False,
        "attention_bias": has_bias,
        "attention_qkv_bias": has_bias,
        "position_embedding": _POSITIONS.get(keys.look("pos_emb") or "learned", "rope"),
        "tie_word_embeddings": not is_set(keys.items.get("no_weight_tying")),
    }


def _width_of_llama(hidden: int) -> int:
    """Eight thirds of the hidden size, rounded up (GPT-NeoX 1, megatron/model/transformer.py LLaMAParallelMLP)."""
    return math.ceil(int(8 * hidden / 3) / 256) * 256


def _width(keys: Keys, hidden: int, gated: bool) -> int:
    """Of the MLP (megatron/model/transformer.py ParallelMLP): one with a gate has two thirds of what is named, in two
    halves, each rounded up."""
    factor = as_number(keys.look("expansion_factor")) or 4
    width = int(as_number(keys.look("intermediate_size")) or factor * hidden)
    if not gated:
        return width
    multiple = int(as_number(keys.look("mlp_multiple_of")) or 256)
    return math.ceil((int(width * 2 / 3) // 2) / multiple) * multiple


def _vocabulary(keys: Keys) -> int | None:
    """How many words the tokenizer has, where it is one of the two usual ones."""
    if keys.look("tokenizer_type") in (None, "GPT2BPETokenizer", "HFGPT2Tokenizer"):
        return _WORDS
    file = re.split(r"[/\\]", str(keys.look("vocab_file") or ""))[-1]
    return _OF_20B if file == "20B_tokenizer.json" else None


FORMATS = (Format("GPT-NeoX YAML", mapped_format("gpt_neox").score, read, ("yaml", "json")),)
