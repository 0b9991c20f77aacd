"""What models were pretrained with, by their makers: batch, length and tokens (`knowledge/data/recipes.yaml`)."""

from __future__ import annotations

from functools import cache

from estimator.plan.training.defaults import UsualRun
from knowledge.data_files import document


def usual_run(model: str, stage: str) -> UsualRun | None:
    """The batch and length of the maker's own run of a stage; None where they are not known."""
    return _runs().get((stage, model))


# Tokens a parameter of compute-optimal training (Hoffmann et al. 2022, arXiv 2203.15556, table 3).
_OPTIMAL_TOKENS = 20.0


def usual_tokens(model: str, parameters: float) -> tuple[float, str]:
    """Tokens that a model is pretrained on where nobody says how many, and why: its maker's, or 20 a parameter."""
    if model in _tokens():
        tokens, source = _tokens()[model]
        return tokens, f"what its maker trained it on ({source})"
    return _OPTIMAL_TOKENS * parameters, "20 a parameter, compute-optimal (arXiv 2203.15556)"


@cache
def _tokens() -> dict[str, tuple[float, str]]:
    return {
        model: (row["tokens_b"] * 1e9, row["source"])
        for row in document("recipes.yaml")["tokens"]
        for model in row["models"]
    }


@cache
def _runs() -> dict[tuple[str, str], UsualRun]:
    return {
        ("pretrain", model): UsualRun(row["batch"], row["seq_len"], row["source"])
        for row in document("recipes.yaml")["pretrain"]
        for model in row["models"]
    }
