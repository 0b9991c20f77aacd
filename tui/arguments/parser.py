"""The parser of every command: what is wrong is said in one line, with what may have been meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from estimator.errors import PlanError
from pages.rendering.clean import one_line

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
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
        choice = _CHOICE.search(message)
        near = meant(choice[1], choice[2].replace("'", "").split(", ")) if choice else ""
        self.exit(2, f"{self.prog}: {shortened(message)}{near}; see {self.prog} --help\n")


def commands_of(made: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    return next(action.choices for action in made._actions if isinstance(action, argparse._SubParsersAction))


def meant(word: str, names: Iterable[str]) -> str:
    """': did you mean fit?'; nothing where no name is like the word."""
    by_folded = {name.lower(): name for name in names}
    near = get_close_matches(word.lower(), by_folded, n=2, cutoff=0.6)
    return f": did you mean {' or '.join(by_folded[name] for name in near)}?" if near else ""


def shortened(text: str) -> str:
    """On one line, and without what steers a terminal. What was given may be a whole file; its start says which it
    is."""
    words = (word if len(word) <= _LONGEST else f"{word[: _LONGEST // 2]}…" for word in one_line(text).split(" "))
    return " ".join(words)
