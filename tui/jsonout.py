"""JSON for other programs: always valid, never able to control a terminal."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

from estimator.errors import STEERING


def to_json(value: Any, indent: int | None = None, ascii_only: bool = False) -> str:
    """`value` as JSON text. Infinities and NaN, which JSON does not have, become null as pydantic writes them."""
    text = json.dumps(_finite(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    # JSON may hold as they are what turns a line round and what is not seen.
    return STEERING.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def write_json(value: Any, indent: int | None = 2) -> None:
    """One JSON document and a newline on standard output, whatever the locale."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    sys.stdout.write(to_json(value, indent, ascii_only=encoding != "utf8") + "\n")
    sys.stdout.flush()


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value
