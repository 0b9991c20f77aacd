"""What a tool may be asked, drawn from the schema of its request: a new tool is covered as it is registered.

A word is one of those in the field's own description, which names examples; a number lies within the field's bounds, or
is one of the magnitudes that plans have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Values = st.SearchStrategy[Any]
_COUNTS = [0, 1, 2, 3, 4, 8, 16, 64, 100, 512, 4096, 131_072, 10**6, 10**9, 10**12]
_FRACTIONS = [1e-9, 0.05, 0.5, 0.9, 1.0, 2.5, 40.0, 1e3, 1e6, 1e12]
_MOST_ITEMS = 3


def fields_of(schema: Mapping[str, Any], named: Mapping[str, Values]) -> dict[str, Values]:
    """For each field of an object what it may hold: what `named` has for it, or what its schema allows."""
    definitions = schema.get("$defs", {})
    return {
        name: named[name] if name in named else _allowed(field, definitions, named)
        for name, field in schema.get("properties", {}).items()
    }


def _allowed(schema: Mapping[str, Any], definitions: Mapping[str, Any], named: Mapping[str, Values]) -> Values:
    if "$ref" in schema:
        return _allowed(definitions[schema["$ref"].rpartition("/")[2]], definitions, named)
    if "anyOf" in schema:
        words = {"description": schema.get("description", "")}
        return st.one_of([_allowed(words | each, definitions, named) for each in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "array":
        return st.lists(_allowed(schema.get("items", {}), definitions, named), max_size=_MOST_ITEMS)
    if kind == "object":
        return _object(schema, definitions, named)
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "boolean":
        return st.booleans()
    if kind == "string":
        return _text(schema)
    return st.none() if kind == "null" else st.one_of(st.sampled_from(_COUNTS), _text(schema))


def _object(schema: Mapping[str, Any], definitions: Mapping[str, Any], named: Mapping[str, Values]) -> Values:
    if "properties" in schema:
        return st.fixed_dictionaries({}, optional=fields_of({"$defs": definitions, **schema}, named))
    held = schema.get("additionalProperties")
    inner = _allowed(held, definitions, named) if isinstance(held, dict) else st.sampled_from(_COUNTS + _FRACTIONS)
    return st.dictionaries(_text(schema), inner, max_size=_MOST_ITEMS)


def _number(schema: Mapping[str, Any], whole: bool) -> Values:
    lowest = schema.get("minimum", schema.get("exclusiveMinimum"))
    highest = schema.get("maximum", schema.get("exclusiveMaximum"))
    usual = [*_COUNTS, *(() if whole else _FRACTIONS), *(bound for bound in (lowest, highest) if bound is not None)]
    within = [
        number for number in usual
        if (lowest is None or number >= lowest) and (highest is None or number <= highest)
    ]  # fmt: skip
    return st.sampled_from(within)


def _text(schema: Mapping[str, Any]) -> Values:
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    if schema.get("format") == "date":
        return st.dates().map(str)
    words = [word.strip(".:,;()") for word in re.findall(r"[\w./:*@-]+", schema.get("description", ""))]
    return st.sampled_from(words) if any(words) else st.text(max_size=12)
