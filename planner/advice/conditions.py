"""When advice applies: conditions over the facts of a plan, as plain data, and how they are judged.

A condition maps names of facts to tests, all of which must hold. A test is

- a value: the fact equals it, or contains it where the fact is a list (the axes that cross nodes);
- a list: the fact equals (or contains) one of them;
- a mapping of bounds: `above`, `at_least`, `below`, `at_most` (numbers) and `is_not` (a value or a list).

`any_of` holds a list of conditions of which one must hold. A fact that is not known (None) passes no test but null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

ANY = "any_of"
Facts = Mapping[str, Any]
_BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "above": lambda fact, bound: fact > bound,
    "at_least": lambda fact, bound: fact >= bound,
    "below": lambda fact, bound: fact < bound,
    "at_most": lambda fact, bound: fact <= bound,
}
_HOLE = re.compile(r"\{([a-z0-9_.]+)\}")


def holds(when: Mapping[str, Any], facts: Facts) -> bool:
    """Whether all tests of a condition pass. Raises KeyError for a fact that `facts` does not name."""
    return all(
        any(holds(part, facts) for part in test) if name == ANY else _passes(test, facts[name])
        for name, test in when.items()
    )


def names_in(when: Mapping[str, Any]) -> Iterator[str]:
    """The facts that a condition asks for."""
    for name, test in when.items():
        if name == ANY:
            for part in test:
                yield from names_in(part)
        else:
            yield name


def holes_in(text: str) -> list[str]:
    """The facts that a text has a place for, written as {name}."""
    return _HOLE.findall(text)


def filled(text: str, facts: Facts, in_words: Callable[[str, Any], str]) -> str:
    """The text with each {name} replaced by `said(name, fact)`."""
    return _HOLE.sub(lambda match: in_words(match[1], facts.get(match[1])), text)


def problems(when: object) -> list[str]:
    """What is wrong with a condition's form, in words; nothing where it is well formed."""
    if not isinstance(when, Mapping):
        return ["a condition is a mapping of facts to tests"]
    faults: list[str] = []
    for name, test in when.items():
        if name == ANY:
            parts = test if isinstance(test, list) and test else [None]
            faults += [problem for part in parts for problem in problems(part)]
        elif isinstance(test, Mapping):
            faults += [f"{name}: {bound!r} is no bound" for bound in test if bound not in (*_BOUNDS, "is_not")]
            faults += [
                f"{name}: {bound} needs a number"
                for bound, value in test.items()
                if bound in _BOUNDS and (isinstance(value, bool) or not isinstance(value, int | float))
            ]
            faults += [] if test else [f"{name}: an empty test"]
    return faults


def _passes(test: Any, fact: Any) -> bool:
    if not isinstance(test, Mapping):
        return _is(test, fact)
    if fact is None:
        return False
    return all(
        not _is(value, fact) if bound == "is_not" else _is_number(fact) and _BOUNDS[bound](fact, value)
        for bound, value in test.items()
    )


def _is(wanted: Any, fact: Any) -> bool:
    """Whether the fact is what is wanted, or one of it; a fact that is a list holds what it contains."""
    choices = wanted if isinstance(wanted, list) else [wanted]
    if isinstance(fact, Sequence) and not isinstance(fact, str):
        return any(choice in fact for choice in choices)
    return any(choice == fact and isinstance(choice, bool) == isinstance(fact, bool) for choice in choices)


def _is_number(fact: Any) -> bool:
    return isinstance(fact, int | float) and not isinstance(fact, bool)
