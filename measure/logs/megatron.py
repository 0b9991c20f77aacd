"""The model of Megatron-LM's logs, which list all arguments of a run and name no model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.models.dimensions import model_of
from knowledge.models.megatron import NEEDED, SIZES, SPECIAL, SWITCHES, WORDS, config_of

# What is printed is the destination of a flag, not the flag: --disable-bias-linear is add_bias_linear False; the
# vocabulary of a tokenizer's files is printed as it is padded alone (megatron/training/arguments.py).
_TOKENIZER, _BIASED, _PADDED = "tokenizer_model", "add_bias_linear", "padded_vocab_size"
ARGUMENTS = frozenset((*SIZES, *SWITCHES, *WORDS, *SPECIAL, _TOKENIZER, _BIASED, _PADDED))
# It is printed of every run: GPT-NeoX, whose models have other fields, prints none of that name.
_OF_ALL = (*NEEDED, "ffn_hidden_size")


def listed_model(arguments: Mapping[str, str]) -> str | dict[str, Any] | None:
    """The catalogue's model of the tokenizer's name where its dimensions agree, or fields of a config; None where the
    arguments that were printed do not tell it."""
    values = {name: text for name, text in arguments.items() if text not in ("None", "False")}
    sizes = {name: float(values[name]) for name in (*SIZES, _PADDED) if values.get(name, "").isdecimal()}
    if any(not sizes.get(name) for name in _OF_ALL) or any(name in values for name in SPECIAL):
        return None
    if known := model_of(values.get(_TOKENIZER, ""), sizes):
        return known
    sizes.setdefault("vocab_size", sizes.get(_PADDED, 0.0))
    words = {name: values[name] for name in WORDS if name in values}
    switches = {name: values.get(name) == "True" for name in SWITCHES}
    if arguments.get(_BIASED) == "False":
        switches["disable_bias_linear"] = True
    fields, unknown = config_of(words | switches | sizes)
    return fields if fields["vocab_size"] and not unknown else None
