"""Files of the program, by the table of its fields; a catalogue's model where the tokenizer is of it."""

from __future__ import annotations

from dataclasses import replace

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped
from launchers.tables import table

_FORMAT = mapped_format("nanotron")
_CONFIG = "model.model_config"
# What tells a model from others of its family, by the architecture's own names.
_DIMENSIONS = {"hidden_size": "hidden", "num_hidden_layers": "layers", "vocab_size": "vocab"}


def read(keys: Keys, findings: Findings) -> None:
    tokenizer = keys.items.get("tokenizer.tokenizer_name_or_path")
    if tokenizer is not None and _is_of(tokenizer, keys):
        findings.put("model", tokenizer.value, tokenizer)
        for name in list(keys.below(_CONFIG)):
            keys.take(name)
    _window(keys)
    _family(keys, findings)
    read_mapped("nanotron", keys, findings)


def _family(keys: Keys, findings: Findings) -> None:
    """Its Llama and Qwen2 are of one shape; Starcoder2, GPT-3's and experts have fields of their own."""
    names = [name for name in keys.below(_CONFIG) if keys.look(name) not in (None, False)]
    known = set(table("nanotron/fields")["llama"])
    other = next((name for name in names if name.removeprefix(f"{_CONFIG}.") not in known), None)
    if other is not None:
        findings.block("model", keys.items[other], "is of another model than nanotron's Llama and Qwen2; name it")


def _window(keys: Keys) -> None:
    """What all layers of its Qwen2 look back over (src/nanotron/models/qwen.py), in transformers' words."""
    width = keys.take(f"{_CONFIG}.sliding_window_size")
    if width is not None and width.value is not None:
        for name, value in (("sliding_window", width.value), ("sliding_window_pattern", 0)):
            keys.put(f"{_CONFIG}.{name}", value, width.line)


def _is_of(tokenizer: Item, keys: Keys) -> bool:
    """Whether the model that the tokenizer is of has the file's dimensions."""
    try:
        model = architecture(str(tokenizer.value))
    except PlanError:
        return False
    return all(keys.look(f"{_CONFIG}.{name}") == getattr(model, field) for name, field in _DIMENSIONS.items())


FORMATS: tuple[Format, ...] = (replace(_FORMAT, read=read),)
