"""What YAML, JSON and CSV of anybody may hold: names that are text and stand once, no anchors, no endless depth."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from estimator.errors import PlanError

_DEEPEST = 64
# Lists and objects of one document. Each takes some 100 bytes of memory and as few as two of text.
_MOST_PARTS = 2_000_000
# Digits of the longest whole number that every float can hold.
_LONGEST_WHOLE = 308


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_WHOLE else float(text)


_DECODER = json.JSONDecoder(parse_int=_whole)


def json_value(text: str) -> Any:
    """What JSON of anybody says; whole numbers that no float holds are infinite. Raises ValueError, also for what is
    nested too deeply to be read and for what would take gigabytes."""
    if text.count("[") + text.count("{") > _MOST_PARTS:
        raise ValueError(f"it has more than {_MOST_PARTS:,} lists and objects")
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def csv_rows(lines: Iterable[str], **form: Any) -> Iterator[list[str]]:
    """The rows of a table of anybody, read as `form` says. Raises ValueError."""
    try:
        yield from csv.reader(lines, **form)
    except csv.Error as error:
        raise ValueError(str(error)) from None


def csv_records(lines: Iterable[str], **form: Any) -> Iterator[dict[Any, Any]]:
    """The same as mappings by the names in the first row. Raises ValueError."""
    try:
        yield from csv.DictReader(lines, **form)
    except csv.Error as error:
        raise ValueError(str(error)) from None


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError where a name stands in it twice: one of the two would be lost."""
    if twice := _twice([name for name, _ in pairs]):
        raise ValueError(f"{quoted(twice)} is given twice")
    return dict(pairs)


def _twice(names: list[Any]) -> Any:
    return next(iter(Counter(names) - Counter(set(names))), None) if len(set(names)) < len(names) else None


@lru_cache(maxsize=1)
def loader() -> Any:
    """Of YAML in which every name stands once in its mapping."""
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Once(safe):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            if twice := _twice([str(key.value) for key, _ in node.value]):
                raise yaml.YAMLError(f"{quoted(twice)} is given twice")
            return super().construct_mapping(node, deep)

    return Once


def refuse_events(events: Iterable[Any], field: str) -> None:
    """PlanError for anchors that are used, and for what would be too deep for a reader that calls itself."""
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise PlanError(field, "has YAML anchors (&name, *name); write the values out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise PlanError(field, f"is nested deeper than {_DEEPEST} levels")


def refuse_odd(value: Any, field: str) -> None:
    """PlanError for keys that are no text and for containers that lie in each other too deeply; without recursion."""
    layer = [value]
    for _ in range(_DEEPEST):
        for each in layer:
            if isinstance(each, dict) and (odd := [key for key in each if not isinstance(key, str)]):
                raise PlanError(field, f"has the field name {quoted(odd[0])}, which is not text")
        inner = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list))
        if not (layer := [item for items in inner for item in items if isinstance(item, dict | list)]):
            return
    raise PlanError(field, f"is nested deeper than {_DEEPEST} levels")


def quoted(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        return "a number that is too large"
    return text if len(text) <= 60 else text[:57] + "..."
