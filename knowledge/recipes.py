"""What models were pretrained with, by their makers: batch and length (`knowledge/data/recipes.yaml`)."""

from __future__ import annotations

from functools import cache

from estimator.plan.training.defaults import UsualRun
from knowledge.data_files import document


def usual_run(model: str, stage: str) -> UsualRun | None:
    """The batch and length of the maker's own run of a stage; None where they are not known."""
    return _runs().get((stage, model))


@cache
def _runs() -> dict[tuple[str, str], UsualRun]:
    return {
        (stage, model): UsualRun(row["batch"], row["seq_len"], row["source"])
        for stage, rows in document("recipes.yaml").items()
        for row in rows
        for model in row["models"]
    }
