"""How the vision-language models of the catalogue, and those of raw configs, see images: data/vision.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from estimator.model.vision import ImageRule, TowerCount, VisionTower, count_parameters
from knowledge.data_files import document

# Names of the same sizes in vision configs (those of Qwen, of Kimi and the usual ones).
_LAYERS, _HIDDEN, _WIDTH = (
    ("depth", "num_hidden_layers", "vt_num_hidden_layers"),
    ("hidden_size", "vt_hidden_size"),
    ("intermediate_size", "vt_intermediate_size"),
)
_PLAIN_RATIO = 4
"""Width of an MLP over that of its layer where a config does not say (Vaswani et al. 2017)."""


@cache
def tower_of(id: str, text_hidden: int) -> VisionTower | None:
    """The tower of a model of the catalogue; None where it has none, or none is known."""
    row = _document()["towers"].get(id)
    if row is None:
        return None
    return _built(row["kind"], row, text_hidden, row.get("parameters"))


def tower_in(config: Mapping[str, Any], text_hidden: int) -> VisionTower | None:
    """The tower that a raw config describes; None where it has none, or no rule of its kind is known."""
    own = config.get("vision_config")
    described = own if isinstance(own, Mapping) else {}
    # The outer kind first: one encoder (SigLIP, CLIP) is cut in many ways.
    named = (str(config.get("model_type") or ""), str(described.get("model_type") or ""))
    kind = next((_by_type()[name] for name in named if name in _by_type()), None)
    vision = described or (_kind(kind).get("sizes") if kind else None)
    if kind is None or not vision:
        return None
    hidden = _number(vision, (_kind(kind).get("hidden", ""), *_HIDDEN))
    layers, width = _number(vision, _LAYERS), _number(vision, _WIDTH)
    layers += _number(vision, ("num_global_layers",))  # Llama 3.2 Vision
    if kind == "glm4v":
        width = _number(vision, ("out_hidden_size",)) or width
    if not layers or not hidden:
        return None
    row = {"layers": layers, "hidden": hidden, "width": width or _PLAIN_RATIO * hidden}
    built = _built(kind, row, text_hidden, None if "count" in _kind(kind) else _weighed(kind, row))
    patch, merge = _number(vision, ("patch_size",)), _number(vision, ("spatial_merge_size",))
    rule = replace(built.rule, patch=patch or built.rule.patch, merge=merge or built.rule.merge)
    if rule.queries and (queries := _number(config, ("query_num",))):
        rule = replace(rule, queries=queries)
    return replace(built, rule=rule)


def _built(kind: str, row: Mapping[str, Any], text_hidden: int, parameters: int | None) -> VisionTower:
    entry = _kind(kind)
    tower = VisionTower(
        rule=ImageRule(**entry["rule"]),
        parameters=parameters or 0,
        layers=row["layers"],
        hidden=row["hidden"],
        width=row["width"],
        gated=entry["gated"],
        source=entry["source"],
    )
    count = TowerCount(**entry.get("count", {}))
    return replace(tower, parameters=parameters or count_parameters(tower, count, text_hidden))


def _weighed(kind: str, sizes: Mapping[str, int]) -> int | None:
    """The weights of a tower of the catalogue of that kind and these sizes."""
    rows = _document()["towers"].values()
    same = (row for row in rows if row["kind"] == kind and all(row[name] == size for name, size in sizes.items()))
    return next((row.get("parameters") for row in same), None)


def _number(fields: Mapping[str, Any], names: tuple[str, ...]) -> int:
    values = (fields.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and 0 < value < 1_000_000), 0)


@cache
def _document() -> dict[str, Any]:
    return document("vision.yaml")


@cache
def _kind(kind: str) -> dict[str, Any]:
    """An entry with that of its `like` below it."""
    row = _document()["kinds"][kind]
    return {**_kind(row["like"]), **row} if "like" in row else row


@cache
def _by_type() -> dict[str, str]:
    return {name: kind for kind, row in _document()["kinds"].items() for name in row["types"]}
