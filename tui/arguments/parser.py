"""The parser of every command: what is wrong is said in one line, with what may have been meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from estimator.errors import PlanError
from estimator.plan.choices import about
from pages.rendering.clean import one_line

# argparse's own words for what is missing, wrong of its kind, and none of the values.
_REQUIRED = "the following arguments are required: "
_OF_ARGUMENT = re.compile(r"argument ([^:]+): (.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)
_KIND = re.compile(r"invalid (int|float) value: (.*)", re.DOTALL)
_KINDS = {"int": "a whole number", "float": "a number"}
_LONGEST = 300  # letters of one word of an error


class _Once(argparse._StoreAction):
    """A flag with one value, which has only one."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest, None)
        if option_string and before not in (None, self.default, values):
            raise PlanError(option_string, f"is given twice, as {before!r} and as {values!r}")
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as every other error of the command does."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED):
            told = self._missing(message.removeprefix(_REQUIRED).split(", "))
        elif named := _OF_ARGUMENT.fullmatch(message):
            told = f"{named[1].rpartition('/')[2]}: {self._wrong(named[1], named[2])}"
        else:
            told = message
        self.exit(2, f"{self.prog}: {shortened(told)}; see {self.prog} --help\n")

    def _missing(self, names: list[str]) -> str:
        """The first that is missing with what it takes, and the names of the others."""
        listed = [action for name in names if (action := self._argument(name)) and action.nargs not in ("*", "?")]
        first, *others = listed or [self._argument(names[0])]
        also = f", and so {'are' if len(others) > 1 else 'is'} {', '.join(map(_name, others))}" if others else ""
        return f"{_name(first)}: is required{also}{_takes(first)}"

    def _wrong(self, name: str, problem: str) -> str:
        if choice := _CHOICE.search(problem):
            values = choice[2].replace("'", "").split(", ")
            known = f"{' '.join(values)}{meant(choice[1], values, '; ')}"
            return f"{choice[1]!r} is not one of the known values; valid: {known}"
        if kind := _KIND.search(problem):
            return f"got {kind[2]}, but it should be {_KINDS[kind[1]]}"
        if problem.startswith("expected "):
            return f"{problem}{_takes(self._argument(name))}"
        return problem

    def _argument(self, name: str) -> argparse.Action | None:
        """By what argparse calls it in an error: its flags, its metavar or its name."""
        return next((each for each in self._actions if _name(each) == name or each.dest == name), None)


def _name(action: argparse.Action | None) -> str:
    return argparse._get_action_name(action) or "" if action else ""


def _takes(action: argparse.Action | None) -> str:
    """': the shell; valid: bash zsh fish'."""
    if action is None:
        return ""
    values = list(map(str, action.choices or getattr(action, "values", None) or ()))
    told = about((action.help or "").replace("%%", "%"))
    return f"{told}; valid: {' '.join(values)}" if values else told


def commands_of(made: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    return next(action.choices for action in made._actions if isinstance(action, argparse._SubParsersAction))


def meant(word: str, names: Iterable[str], mark: str = ": ") -> str:
    """': did you mean fit?'; nothing where no name is like the word."""
    by_folded = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_folded, n=2, cutoff=0.6)
    return f"{mark}did you mean {' or '.join(by_folded[name] for name in near)}?" if near else ""


def shortened(text: str) -> str:
    """On one line, and without what steers a terminal. What was given may be a whole file; its start says which it
    is."""
    words = (word if len(word) <= _LONGEST else f"{word[: _LONGEST // 2]}…" for word in one_line(text).split(" "))
    return " ".join(words)
