"""The model of Megatron's arguments: the catalogue's of that name, or one by its dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from knowledge.models.dimensions import model_of
from knowledge.models.megatron import NEEDED, SIZES, SPECIAL, SWITCHES, WORDS, config_of
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, as_number, is_certain, is_set

# Words of tokenizers that come with Megatron (megatron/core/tokenizers; GPT-2's and Llama 2's own).
_VOCABULARIES = {"GPT2BPETokenizer": 50257, "Llama2Tokenizer": 32000}
# The least and the most that tokenizers in use have: Llama 2's and Gemma's (their config.json, vocab_size).
_VOCABULARY_SIZES = (32000, 262144)


def read_model(keys: Keys, findings: Findings, names: Sequence[Item]) -> None:
    """The catalogue's model that the tokenizer is of, if its dimensions agree; else a model of these dimensions."""
    if (heads := keys.take("attention_head_type")) is not None and heads.value == "multiquery":
        # bigcode-project/Megatron-LM megatron/arguments.py: all heads share one of keys and values.
        keys.put("num_query_groups", 1, heads.line)
        keys.put("group_query_attention", True, heads.line)
    tokenizer, kind = keys.take("tokenizer_model"), keys.take("tokenizer_type")
    if tokenizer is not None and not is_certain(tokenizer.value):
        findings.leave(tokenizer, "names the tokenizer only where it runs")
    special = [name for name in SPECIAL if (item := keys.take(name)) is not None and item.value is not False]
    items = {name: item for name in (*SIZES, *SWITCHES, *WORDS) if (item := keys.take(name)) is not None}
    if (origin := items.get("num_layers")) is None:
        return
    numbers = {name: as_number(item.value) for name, item in items.items() if name in SIZES}
    for item in ([tokenizer] if tokenizer is not None else []) + list(names):
        if isinstance(item.value, str) and (known := model_of(item.value, numbers)):
            findings.put("model", known, item)
            return
    if "vocab_size" not in numbers and (size := _VOCABULARIES.get(str(kind.value) if kind is not None else "")):
        numbers["vocab_size"] = size
    if any((numbers.get(name) or 0) <= 0 for name in NEEDED):
        findings.block("model", origin, "layers, width and heads are not all known")
        return
    arguments = {name: is_set(item) if name in SWITCHES else item.value for name, item in items.items()}
    fields, unknown = config_of(arguments | numbers)
    if special := special + unknown:
        findings.block("model", origin, f"{special[0]} is not read; name the model")
    elif not numbers.get("vocab_size"):
        why = "the size of the vocabulary is in the tokenizer's files"
        findings.one_of("model", tuple(fields | {"vocab_size": size} for size in _VOCABULARY_SIZES), origin, why)
    else:
        findings.put("model", fields, origin)
