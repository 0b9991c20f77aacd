"""Config files of models: where one is, and its fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from estimator.errors import PlanError, unreadable
from knowledge.own.files import may_read, read_text
from knowledge.own.home import expanded
from knowledge.own.mappings import json_value

_LARGEST_CONFIG_BYTES = 4_000_000


def read_config(path: Path) -> dict[str, Any]:
    """The fields of a config.json. Raises PlanError(field="model")."""
    text = read_text(path, "model", _LARGEST_CONFIG_BYTES)
    try:
        config = json_value(text)
    except ValueError as error:
        raise PlanError("model", f"{path} is not JSON: {unreadable(error)}") from None
    if not isinstance(config, dict):
        raise PlanError("model", f"{path} must hold a JSON object of config fields")
    return config


def config_path(spec: str) -> Path | None:
    """The config file that `spec` points to, None when it is a name. Raises PlanError for a path to nothing."""
    if "\0" in spec or len(spec) > 4096:
        return None
    path = Path(spec)
    try:
        path = expanded(path)
        if not may_read(path):
            return None
        if path.is_dir() and (path / "config.json").is_file():
            return path / "config.json"
        if path.is_file():
            return path
        if path.is_dir() and (files := sorted(path.glob("*.gguf"))):
            return files[0]
    except (OSError, RuntimeError):
        return None
    if spec.endswith(".json") or spec.startswith(("/", "./", "../", "~")):
        raise PlanError("model", f"there is no config.json, GGUF or safetensors file at {spec!r}")
    return None
