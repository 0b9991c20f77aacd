"""Config files as flat keys with the line that each is from. Nothing of a file is ever executed or imported.

Readers take the keys that they know out of `Keys`; what is left over is what was not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from estimator.errors import PlanError, unreadable

LARGEST = 200_000
_MOST_VALUES = 20_000
_DEEPEST = 40
_OPEN = 200
_MERGE = "tag:yaml.org,2002:merge"
# A variable of Jinja, of what somebody fills in before the run: it is as unknown as one of a shell.
_FILLED_IN = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")


@dataclass(frozen=True)
class Item:
    """One value of a file; `line` counts from 1 (None where the format does not say)."""

    file: str
    key: str
    value: Any
    line: int | None = None

    @property
    def origin(self) -> str:
        return f"{self.file}:{self.line} {self.key}" if self.line else f"{self.file} {self.key}"


@dataclass
class Keys:
    """The keys of one file (nested ones joined by dots) that nothing has read yet. Null is the same as not there."""

    file: str
    items: dict[str, Item] = field(default_factory=dict)
    twice: list[str] = field(default_factory=list)
    nulls: set[str] = field(default_factory=set)
    """Keys that are null, where a program means something by that."""
    _heads: dict[str, dict[str, None]] = field(default_factory=dict)
    """All names that there ever were, by what they begin with: files of thousands of keys are asked key by key."""

    def __post_init__(self) -> None:
        for name in self.items:
            self._heads.setdefault(name.partition(".")[0], {})[name] = None

    def take(self, name: str) -> Item | None:
        return self.items.pop(name, None)

    def look(self, name: str) -> Any:
        """The value, which stays; None where there is none."""
        item = self.items.get(name)
        return None if item is None else item.value

    def __contains__(self, name: object) -> bool:
        return name in self.items

    def below(self, prefix: str) -> Iterator[str]:
        """The names that stand below `prefix`, itself included."""
        names = self._heads.get(prefix.partition(".")[0], ())
        here = [name for name in names if name == prefix or name.startswith(prefix + ".")]
        return iter([name for name in here if name in self.items])

    def put(self, key: str, value: Any, line: int | None = None) -> None:
        if value is None:
            self.items.pop(key, None)
            self.nulls.add(key)
        else:
            self.adopt(Item(self.file, key, value, line))

    def adopt(self, item: Item, name: str = "") -> None:
        """Keeps a value of this file or of one that it stands on, under another name where one is given."""
        name = name or item.key
        self.items[name] = item
        self._heads.setdefault(name.partition(".")[0], {})[name] = None


def check_size(name: str, text: str) -> None:
    if len(text) > LARGEST:
        raise PlanError("files", f"{name} is longer than any config", [f"up to {LARGEST:,} characters"])


@contextmanager
def _loader(name: str, text: str) -> Iterator[Any]:
    """A loader over `text`. What is wrong with the text becomes a PlanError."""
    import yaml

    check_size(name, text)
    if _nesting(text) > _OPEN:
        # The loader takes time of the square of it.
        raise PlanError("files", f"{name} is not readable YAML: brackets are nested {_OPEN} deep and more")
    loader = None
    try:
        loader = yaml.SafeLoader(_FILLED_IN.sub(r"${\1}", text))
        yield loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, PlanError):
            raise
        if re.search(r"\{\{[^{}]*\}\}", text):
            raise PlanError("files", f"{name} is a template; give what it makes (of a chart: helm template)") from None
        raise PlanError("files", f"{name} is not readable YAML: {_short(error)}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _nesting(text: str) -> int:
    """The most brackets that are open at once, those in quotes counted too."""
    depth = most = 0
    for mark in re.findall(r"[\[{\]}]", text):
        depth = depth + 1 if mark in "[{" else max(0, depth - 1)
        most = max(most, depth)
    return most


def yaml_keys(name: str, text: str) -> Keys:
    """Raises PlanError for what is not one mapping, and for aliases that would blow up."""
    import yaml

    keys = Keys(name)
    with _loader(name, text) as loader:
        node = loader.get_single_node()
        if isinstance(node, yaml.MappingNode):
            _Walk(loader, keys).mapping(node, "", 0)
            return keys
    raise PlanError("files", f"{name} is not a mapping of keys to values")


def nested_documents(name: str, text: str) -> list[dict[str, Any]]:
    """The mappings of a YAML file of one or more documents as plain data. Raises PlanError as `yaml_keys` does."""
    import yaml

    documents: list[dict[str, Any]] = []
    with _loader(name, text) as loader:
        walk = _Walk(loader, Keys(name))
        while loader.check_node():
            node = loader.get_node()
            if isinstance(node, yaml.MappingNode):
                documents.append(walk.plain(node, 0))
    return documents


class _Walk:
    """A YAML node tree as flat keys. Aliases are followed, and counted each time, so that a bomb ends the walk."""

    def __init__(self, loader: Any, keys: Keys) -> None:
        self.loader, self.keys, self.seen = loader, keys, 0

    def mapping(self, node: Any, prefix: str, depth: int) -> None:
        import yaml

        self._count(depth)
        names: set[str] = set()
        merged = [value for key, value in node.value if key.tag == _MERGE]
        for value in merged:
            for part in reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(part, yaml.MappingNode):
                    self.mapping(part, prefix, depth + 1)
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            name = prefix + str(key.value if isinstance(key, yaml.ScalarNode) else "?")
            if name in names:
                self.keys.twice.append(name)
            names.add(name)
            for old in list(self.keys.below(name)):
                del self.keys.items[old]
            line = key.start_mark.line + 1
            if isinstance(value, yaml.MappingNode) and value.value:
                self.mapping(value, name + ".", depth + 1)
            else:
                self.keys.put(name, self.plain(value, depth + 1), line)

    def plain(self, node: Any, depth: int) -> Any:
        """A node as plain data."""
        import yaml

        self._count(depth)
        if isinstance(node, yaml.ScalarNode):
            try:
                return self.loader.construct_object(node)
            except yaml.YAMLError:
                return node.value
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(part, depth + 1) for part in node.value]
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in reversed(parts):
                    if isinstance(part, yaml.MappingNode):
                        mapping |= self.plain(part, depth + 1)
        return mapping | {
            str(key.value): self.plain(value, depth + 1) for key, value in node.value if key.tag != _MERGE
        }

    def _count(self, depth: int) -> None:
        self.seen += 1
        if self.seen > _MOST_VALUES or depth > _DEEPEST:
            raise PlanError(
                "files", f"{self.keys.file} holds more values than any config (or aliases that repeat them)"
            )


def json_keys(name: str, text: str) -> Keys:
    check_size(name, text)
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PlanError("files", f"{name} is not readable JSON: {_short(error)}") from None
    if not isinstance(data, dict):
        raise PlanError("files", f"{name} is not a JSON object")
    return _flat(name, data, _lines_of(text))


def plain_data(name: str, text: str) -> Any:
    """A config as plain data, by the end of its name. Raises PlanError."""
    if name.endswith(".toml"):
        import tomllib

        check_size(name, text)
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise PlanError("files", f"{name} is not readable TOML: {_short(error)}") from None
    documents = nested_documents(name, text)
    if len(documents) != 1:
        raise PlanError("files", f"{name} is not a mapping of keys to values")
    return documents[0]


def toml_keys(name: str, text: str) -> Keys:
    import tomllib

    check_size(name, text)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError("files", f"{name} is not readable TOML: {_short(error)}") from None
    return _flat(name, data, _lines_of(text))


def _flat(name: str, data: Mapping[str, Any], lines: Mapping[str, int]) -> Keys:
    keys = Keys(name)

    def walk(part: Mapping[str, Any], prefix: str, depth: int) -> None:
        if depth > _DEEPEST or len(keys.items) > _MOST_VALUES:
            raise PlanError("files", f"{name} holds more values than any config")
        for key, value in part.items():
            if isinstance(value, Mapping) and value:
                walk(value, f"{prefix}{key}.", depth + 1)
            else:
                keys.put(f"{prefix}{key}", value, lines.get(key))

    walk(data, "", 0)
    return keys


def _lines_of(text: str) -> dict[str, int]:
    """The line of each word that stands where a key can, where it does so once."""
    lines: dict[str, int] = {}
    again: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        word = line.split("=")[0].split(":")[0].strip().strip("\"'{ ")
        if word in lines:
            again.add(word)
        elif word:
            lines[word] = number
    return {word: number for word, number in lines.items() if word not in again}


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _short(error: Exception) -> str:
    text = unreadable(error)
    return text if len(text) <= 200 else text[:197] + "..."
