"""Options of vLLM's YAML as words of its command line, for what starts vLLM by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def arguments(options: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for option, value in options.items():
        operand = [] if value is True else [json.dumps(value) if isinstance(value, dict) else str(value)]
        words += [f"--{option}", *operand]
    return words
