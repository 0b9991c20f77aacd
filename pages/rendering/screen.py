"""Text that is safe to show on a terminal: other people's words never move the cursor or colour the screen."""

from __future__ import annotations

import re
from typing import Any

# Halves of a pair: bytes of a command line that are no text, or an escape in JSON. Nothing can print or store them.
SURROGATE = re.compile(r"[\ud800-\udfff]")
# ESC sequences first (so that their visible tails go as well), then every other control character but tab and newline,
# and the marks that reorder text on screen (bidirectional overrides and isolates).
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def plain(text: str) -> str:
    """`text` without terminal control characters and sequences."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def plain_data(value: Any) -> Any:
    """JSON-like data with every string made plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return value
