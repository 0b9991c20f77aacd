"""What of a config of an unknown model_type nothing here reads: it may be what its layers have beside Llama's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from knowledge.data_files import document

_MOST = 6


class Watched(dict[str, Any]):
    """Fields of a config that remember which of them were asked for."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def unread(fields: Watched) -> str | None:
    """The sentence that names what was not asked for and may change the weights; None where there is nothing."""
    left = [name for name in fields if name not in fields.asked and not _idle().fullmatch(name)]
    left = [name for name in sorted(left) if dict.get(fields, name) not in (None, False, [], {}, "")]
    if not left:
        return None
    shown = ", ".join(name[:40] for name in left[:_MOST]) + (f" and {len(left) - _MOST} more" if left[_MOST:] else "")
    return f"its config has fields that nothing here reads: {shown}; if they are of its layers, its size is not known"


@cache
def _idle() -> re.Pattern[str]:
    return re.compile(re.sub(r"\s", "", document("model_types.yaml")["unknown"]["idle"]))
