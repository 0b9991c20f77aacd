"""JSON for other programs: always valid, never able to control a terminal."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

# Also what turns round the order in which a line is read, which JSON may hold as it is.
_UNSAFE = re.compile(r"[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def to_json(value: Any, indent: int | None = None, ascii_only: bool = False) -> str:
    """`value` as JSON text. Infinities and NaN, which JSON does not have, become null as pydantic writes them."""
    text = json.dumps(_finite(value), indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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
