"""What a trainer must know of a model's family and the plan does not say: chat template, layer names, fused kernels.

All follow from the model's name (data/families.yaml); an unknown family gives None, which the caller must say.
"""

from __future__ import annotations

import re

from launchers.tables import table


def template_of(model: str | None) -> str | None:
    """LlamaFactory's chat template for a model name or path; None for base models without one and unknown families."""
    return _first_match(model, "templates")


def linear_layers_of(model: str | None) -> dict[str, str] | None:
    """Comma-separated module names of the `attention` and `mlp` projections; None for an unknown family."""
    return _first_match(model, "linear_layers")


def embedding_modules_of(model: str | None) -> str | None:
    """Comma-separated module names of the input embedding and the output head; None for an unknown family."""
    return _first_match(model, "embeddings")


def layer_class_of(model: str | None) -> str | None:
    """The class of the decoder layers in transformers' code; None for an unknown family and where there are several."""
    return _first_match(model, "layers")


def is_known_to_liger(model: str | None) -> bool:
    """Whether LlamaFactory's Liger switch knows the family; others it runs without the kernels, with a warning only."""
    return bool(_first_match(model, "liger"))


def _first_match(model: str | None, kind: str):
    if model is None:
        return None
    name = model.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1].lower()
    for pattern, value in table("data/families")[kind]:
        if re.match(pattern, name):
            return value
    return None
