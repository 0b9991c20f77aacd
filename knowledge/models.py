"""The model catalogue, and the Architecture of any model: by name, by config file or by inline fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from estimator.architecture import Architecture
from estimator.configs import build
from estimator.errors import PlanError
from knowledge.data_files import FOLDER
from knowledge.model_fields import canonical
from knowledge.names import Catalogue, Entry, Found, model_tokens

_LARGEST_CONFIG_BYTES = 4_000_000


@dataclass(frozen=True)
class ModelFacts:
    """A catalogue row. `parameters` is counted from the fields (None where no independent count exists);
    `published_parameters` is the maker's rounded figure. `context` is in tokens."""

    id: str
    family: str
    source: str
    fields: Mapping[str, Any] = field(repr=False)
    aliases: tuple[str, ...] = ()
    parameters: int | None = None
    active_parameters: int | None = None
    published_parameters: float | None = None
    published_active_parameters: float | None = None
    context: int | None = None
    license: str | None = None
    gated: bool | None = None
    released: str | None = None
    confirmed_by: tuple[str, ...] = ()


def models() -> list[ModelFacts]:
    """Every model of the catalogue, in its order."""
    return list(_by_id().values())


def find_model(name: str) -> Found[ModelFacts]:
    """The catalogue row that a name means. Raises PlanError(field="model") when it is unknown or ambiguous."""
    found = _catalogue().find(name)
    return Found(_by_id()[found.value], found.said)


def architecture(spec: str | Mapping[str, Any]) -> Architecture:
    """The Architecture of a catalogue name, of a config.json (or the folder it is in), or of inline config fields.

    Values that were assumed, and how a name was read, are in `notes`. Raises PlanError.
    """
    found, said = find_architecture(spec)
    return replace(found, notes=(said, *found.notes)) if said else found


def find_architecture(spec: str | Mapping[str, Any]) -> tuple[Architecture, str | None]:
    """As `architecture`, with the sentence that says how a name was read beside it (None when it was exact)."""
    if isinstance(spec, Mapping):
        return _inline(spec), None
    if not isinstance(spec, str):
        raise PlanError("model", f"must be a name, a path or a mapping of config fields, not {type(spec).__name__}")
    if exact := _catalogue().exact(spec):
        return _of_catalogue(exact), None
    if path := _config_path(spec):
        return _of_file(path), None
    found = _catalogue().find(spec)
    return _of_catalogue(found.value), found.said


@cache
def _of_catalogue(id: str) -> Architecture:
    row = _by_id()[id]
    return replace(build(row.fields, id), family=row.family)


def _inline(fields: Mapping[str, Any]) -> Architecture:
    unusable = [key for key in fields if not isinstance(key, str)]
    if unusable:
        raise PlanError("model", f"config field names must be text, not {unusable[0]!r}")
    name = fields.get("_name_or_path") or fields.get("name") or fields.get("model_type")
    return build(canonical(fields), str(name) if name else "inline model")


def _of_file(path: Path) -> Architecture:
    try:
        if path.stat().st_size > _LARGEST_CONFIG_BYTES:
            raise PlanError("model", f"{path} is too large for a config.json")
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError("model", f"{path} cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:
        raise PlanError("model", f"{path} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise PlanError("model", f"{path} must hold a JSON object of config fields")
    name = config.get("_name_or_path")
    return build(canonical(config), str(name) if name else str(path.parent.name or path))


def _config_path(spec: str) -> Path | None:
    """The config file that `spec` points to, None when it is a name. Raises PlanError for a path to nothing."""
    if "\0" in spec or len(spec) > 4096:
        return None
    path = Path(spec)
    try:
        path = path.expanduser()
        if path.is_dir() and (path / "config.json").is_file():
            return path / "config.json"
        if path.is_file():
            return path
    except (OSError, RuntimeError):
        return None
    if spec.endswith(".json") or spec.startswith(("/", "./", "../", "~")):
        raise PlanError("model", f"there is no config.json at {spec!r}")
    return None


@cache
def _by_id() -> dict[str, ModelFacts]:
    with (FOLDER / "models.jsonl").open(encoding="utf-8") as file:
        next(file)  # the line that says what the columns mean
        return {row.id: row for row in map(_facts, file)}


def _facts(line: str) -> ModelFacts:
    row = json.loads(line)
    return ModelFacts(
        id=row["id"],
        family=row["family"],
        source=row["source"],
        fields=row["fields"],
        aliases=tuple(row.get("aliases", ())),
        parameters=row.get("parameters"),
        active_parameters=row.get("active_parameters"),
        published_parameters=_billions(row.get("published_b")),
        published_active_parameters=_billions(row.get("published_active_b")),
        context=row.get("context"),
        license=row.get("license"),
        gated=row.get("gated"),
        released=row.get("released"),
        confirmed_by=tuple(row.get("confirmed_by", ())),
    )


def _billions(value: float | None) -> float | None:
    return None if value is None else value * 1e9


@cache
def _catalogue() -> Catalogue:
    entries = [Entry(row.id, row.id, (row.id.rpartition("/")[2], *row.aliases)) for row in _by_id().values()]
    return Catalogue(entries, model_tokens, "model", "model")
