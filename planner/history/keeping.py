"""A run as it is kept: with all that its plan rests on, so that it can be rated when the files around it are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from estimator.errors import PlanError
from knowledge.models.catalogue import read_config
from knowledge.own.home import expanded


def with_config(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan whose model is a config.json, or the folder of one, with the fields of that in the path's place. Any other
    as it is: a name of the catalogue, weights, a file that is not there."""
    model = plan.get("model")
    if not isinstance(model, str):
        return dict(plan)
    try:
        path = expanded(model)
        called = path.name if path.is_dir() else path.stem
        path = path / "config.json" if path.is_dir() else path
        fields = read_config(path) if path.suffix == ".json" and path.is_file() else {}
    except (PlanError, OSError, ValueError):
        return dict(plan)
    return {**plan, "model": {"name": called, **fields}} if "model_type" in fields else dict(plan)
