"""A model of the catalogue that a file names in passing, where its dimensions agree."""

from __future__ import annotations

import re
from collections.abc import Mapping

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture, find_model


def model_of(name: str, numbers: Mapping[str, float | None]) -> str | None:
    """The catalogue's model of that name, or of the last part of that path, if it has these dimensions."""
    last = [part for part in name.split("/") if part][-2:]
    # llama3_1_405b is llama3.1-405b; the dimensions tell whether it is that.
    words = re.sub(r"(\d)_(\d)(?!\d*b)", r"\1.\2", last[-1].lower()).replace("_", "-") if last else name
    for text in (name, "/".join(last), *reversed(last), words):
        try:
            known = find_model(text).value.id
            model = architecture(known)
        except PlanError:
            continue
        widths = {block.ffn_width or block.expert_width for block in model.blocks}
        if (
            model.layers == numbers.get("num_layers")
            and model.hidden == numbers.get("hidden_size")
            and model.blocks[0].heads == numbers.get("num_attention_heads")
            and (numbers.get("ffn_hidden_size") is None or numbers["ffn_hidden_size"] in widths)
            and (model.experts or None) == (numbers.get("num_experts") or None)
        ):
            return text if text == name and "/" in name else known
    return None
