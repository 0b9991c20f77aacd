"""Blocks of a script: bodies of functions, and the branches of a case."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from launchers.shell.lexer import UNKNOWN, Token


@dataclass
class OpenCase:
    """A case that is open. `depth`: how many blocks are open in it; `choosing`: patterns come next, no commands."""

    value: str
    depth: int
    choosing: bool = True
    patterns: list[str] = field(default_factory=list)
    taken: bool | None = False
    """Whether one of the branches was taken; None where that is not known."""

    def chosen(self) -> bool | None:
        """Whether the branch of the patterns that were read is taken; None where that is not known."""
        self.choosing, patterns, self.patterns = False, self.patterns, []
        is_open = UNKNOWN in self.value or any(UNKNOWN in pattern for pattern in patterns)
        matches = None if is_open else any(fnmatchcase(self.value, pattern) for pattern in patterns)
        if self.taken or matches is False:
            return False
        if matches is None or self.taken is None:
            self.taken = None
            return None
        self.taken = True
        return True


def function_body(tokens: list[Token], at: int) -> int | None:
    """Where the body of a function opens that is defined here: name() { and function name {."""
    named = tokens[at].plain == "function"
    after = at + 2 if named else at + 1
    if not named and (tokens[at].operator or not re.fullmatch(r"[\w:.-]+", tokens[at].plain or "")):
        return None
    if at and not tokens[at - 1].operator:
        return None
    operators = [token.operator for token in tokens[after : after + 2]]
    if operators == ["(", ")"]:
        after += 2
    elif not named:
        return None
    while after < len(tokens) and tokens[after].operator == "\n":
        after += 1
    return after if after < len(tokens) and tokens[after].plain == "{" else None


def closing_brace(tokens: list[Token], begin: int) -> int | None:
    depth = 0
    for at in range(begin, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[at].plain or "", 0)
        if depth == 0:
            return at
    return None


def is_test(tokens: list[Token]) -> bool:
    words = [token.plain for token in tokens if token.plain not in ("if", "elif", "while", "!")]
    return bool(words) and words[0] in ("[", "[[", "test")
