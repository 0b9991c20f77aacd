"""Options of vLLM's YAML as words of its command line, for what starts vLLM by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from estimator.errors import PlanError
from launchers.engines.vllm.write import CONFIG
from launchers.pieces import File


def options_of(files: Sequence[File], problem: str) -> dict[str, Any]:
    """The options of vLLM's YAML among the files of a set. Raises PlanError with the problem for another program."""
    import yaml

    config = next((file.text for file in files if file.path == CONFIG), None)
    if config is None:
        raise PlanError("targets", problem, ["vllm"])
    return yaml.safe_load(config)


def arguments(options: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for option, value in options.items():
        operand = [] if value is True else [json.dumps(value) if isinstance(value, dict) else str(value)]
        words += [f"--{option}", *operand]
    return words
