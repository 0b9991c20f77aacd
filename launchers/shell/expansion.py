"""What words of a bash script become: variables, defaults, arrays and arithmetic, where their value is certain."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod

from launchers.shell.lexer import UNKNOWN, Lexer, Token, TokenPart
from launchers.shell.texts import cut, number, sliced, swapped

_LONGEST = 100_000
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# Of schedulers and launchers, which set them where a script runs.
_SCHEDULED = (
    "SLURM",
    "PBS",
    "LSB_",
    "PMI",
    "OMPI",
    "MASTER_",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_",
    "NODE",
    "CUDA_",
    "HOME",
    "USER",
)
_RANK = re.compile(r"(^|_)(RANK|NODEID|PROCID)$")


class Expansion(ABC):
    """The variables of a script while it is read, and the branches that what it sets may stand in."""

    def __init__(self, name: str, known: dict[str, str]) -> None:
        self.name = name
        self.variables: dict[str, list[str] | None] = {key: [value] for key, value in known.items()}
        self.defaults: set[str] = set()
        self.text = ""
        self.is_open = False
        """Whether it takes in a file that is not there, which may set anything."""
        self.branches: list[bool | None] = []
        """Of each open branch or loop: taken, not taken, or unknown."""
        self.sides: list[list[dict[str, list[str]]]] = []
        """Of each what its sides set, an if's and its else's, where it is not known which is taken."""
        self.after_test = False
        """Whether the statement before decides about this one."""

    @abstractmethod
    def _output(self, text: str) -> str:
        """What $(…) gives, UNKNOWN where that cannot be told."""

    @property
    def conditional(self) -> bool:
        return None in self.branches or self.after_test

    def _set(self, name: str, values: list[str], appended: bool) -> None:
        if sum(map(len, values)) + sum(map(len, self.variables.get(name) or ())) > _LONGEST:
            self.variables[name] = None
        elif self.conditional:
            if self.sides and not appended:
                self.sides[-1][-1][name] = values
            # A branch that may not be taken: what was there, or what is set here.
            before = self.variables.get(name)
            if not (before == values and not appended):
                self.variables[name] = [*before, UNKNOWN] if appended and before is not None else None
        elif appended:
            before = self.variables.get(name)
            if before is None:
                self.variables[name] = None if name in self.variables else values
            elif len(before) == 1 and len(values) == 1:
                # Text or an array of one: with a space between both readings hold the same words.
                self.variables[name] = [before[0], values[0]] if values[0].startswith("-") else [before[0] + values[0]]
            else:
                self.variables[name] = [*before, *values]
        else:
            self.variables[name] = values

    def _assigned(self, token: Token) -> tuple[str, list[str], bool] | None:
        """(name, values, appended) of a token that is an assignment."""
        if token.operator or not token.parts or token.parts[0].kind != "text" or token.parts[0].quoted:
            return None
        match = re.match(rf"({NAME})(\+?)=", token.parts[0].text)
        if not match:
            return None
        if token.array is not None:
            return match[1], [text for word in token.array for text in self._expanded(word)], bool(match[2])
        rest = [TokenPart("text", token.parts[0].text[match.end() :], False), *token.parts[1:]]
        return match[1], ["".join(" ".join(self._values(part)) for part in rest)], bool(match[2])

    def _is_argument(self, token: Token) -> bool:
        """Whether a word is one of the script's own arguments, of which it is given none as it stands."""
        parts = [part for part in token.parts if part.kind != "text" or part.text]
        names = [part.text for part in parts if part.kind == "variable"]
        return len(parts) == len(names) == 1 and names[0] in "123456789" and names[0] not in self.variables

    def _is_rank(self, token: Token) -> bool:
        """Whether a word is the rank of a node or process, of which the script is read as the first one runs it."""
        parts = [part for part in token.parts if part.kind != "text" or part.text]
        names = [part.text for part in parts if part.kind == "variable"]
        return len(parts) == len(names) == 1 and bool(_RANK.search(names[0])) and names[0] not in self.variables

    def _is_unset(self, token: Token) -> bool:
        """Whether a word is one variable that the script never sets and no scheduler does: empty, as it stands."""
        parts = [part for part in token.parts if part.kind != "text" or part.text]
        part = parts[0] if len(parts) == 1 else None
        if part is None or part.kind != "variable" or not re.fullmatch(NAME, part.text):
            return False
        if part.text in self.variables or part.text.startswith(_SCHEDULED):
            return False
        self.defaults.add(part.text)
        return True

    def _may_be_set(self, name: str) -> bool:
        """Whether the script or a file that it takes in says a variable in any other place than where it is used."""
        return self.is_open or name in self.variables or bool(re.search(rf"(?<![$\w{{]){name}\b", self.text))

    def _expanded(self, token: Token) -> list[str]:
        """The words that a word becomes: unquoted variables are split, quoted arrays give a word
        each ("${WORDS[@]}") or one of all ("${WORDS[*]}")."""
        words, open_word, started, empty = [], "", False, False
        for part in token.parts:
            values = self._values(part)
            if part.kind == "variable" and part.quoted and re.search(r"\[\*\]|^\*$", part.text):
                values = [" ".join(values)]
            if part.kind == "text" or part.quoted:
                if part.kind == "variable" and re.search(r"\[@\]|^@|@$", part.text) and not any(values):
                    empty = True
                    continue
                started = True
                open_word += values[0] if values else ""
                for value in values[1:]:
                    words.append(open_word)
                    open_word = value
                continue
            pieces = " ".join(values).split()
            if not pieces:
                continue
            open_word += pieces[0]
            started = True
            for piece in pieces[1:]:
                words.append(open_word)
                open_word = piece
        return [*words, open_word] if started and (open_word or not empty) else words

    def _values(self, part: TokenPart) -> list[str]:
        """What a part stands for, UNKNOWN where that cannot be told."""
        if part.kind == "text":
            return [part.text]
        if part.kind == "arithmetic":
            return [self._arithmetic(part.text)]
        if part.kind == "variable":
            return self._variable(part.text)
        return [UNKNOWN if part.kind == "process" else self._output(part.text)]

    def _variable(self, text: str) -> list[str]:
        if text == "#":
            # What the script is given besides: nothing, as it stands.
            return [str(len(self.variables.get("@") or ()))]
        match = re.fullmatch(rf"({NAME}|[0-9@*])(\[[@*]\])?(?:(:?[-=])(.*))?", text, re.DOTALL)
        if not match:
            return self._changed(text)
        name, index, mark, default = match.groups()
        if index and mark is None and not self._may_be_set(name):
            # Nothing outside of a script can set an array.
            return []
        if name in ("@", "*") and mark is None:
            return self.variables.get(name) or []
        if name in self.variables:
            values = self.variables[name]
            if values is None:
                return [UNKNOWN]
            if any(values) or not mark:
                return values
        if mark is None or default is None:
            return [UNKNOWN]
        self.defaults.add(name)
        tokens = Lexer(self.name, default).tokens()
        if not tokens:
            return [""]
        values = ["".join(self._expanded(token)) for token in tokens if not token.operator]
        if mark.endswith("=") and name not in self.variables:
            self._set(name, [" ".join(values)], False)
        return [" ".join(values)]

    def _changed(self, text: str) -> list[str]:
        """What bash makes of a variable: its length, one of its words, the other word where it is set (:+), what is
        left without a beginning or an end (#, ##, %, %%), or the text with one put in another's place (/, //)."""
        if part := re.fullmatch(rf"({NAME})?(?(1)\[)[@*](?(1)\]):([0-9]{{1,4}})(?::([0-9]{{1,4}}))?", text):
            # Without a name those that the script is given, of which the first is itself.
            values = self.variables.get(part[1] or "@", [] if part[1] is None else None)
            begin = int(part[2]) - (part[1] is None)
            return [UNKNOWN] if values is None else sliced(values, begin, part[3])
        if places := re.fullmatch(rf"!({NAME})\[[@*]\]", text):
            values = self.variables.get(places[1])
            return [UNKNOWN] if values is None else [str(place) for place in range(len(values))]
        if named := re.fullmatch(rf"({NAME})\[\$?\{{?({NAME})\}}?\]", text):
            values, place = self.variables.get(named[1]), " ".join(self._variable(named[2]))
            known = values is not None and re.fullmatch("[0-9]{1,4}", place) is not None
            return values[int(place) : int(place) + 1] if known and values is not None else [UNKNOWN]
        if swap := re.fullmatch(rf"({NAME})/(/?)((?:[^/\\]|\\.)+)(?:/(.*))?", text, re.DOTALL):
            values = self.variables.get(swap[1])
            if values is None or any(UNKNOWN in value for value in values):
                return [UNKNOWN]
            return [swapped(value, swap[3], swap[4] or "", every=bool(swap[2])) for value in values]
        match = re.fullmatch(rf"(#?)({NAME})(?:\[([@*]|[0-9]{{1,4}})\])?(?:(:?\+|##?|%%?)(.*))?", text, re.DOTALL)
        if not match:
            return [UNKNOWN]
        length, name, index, mark, word = match.groups()
        values = self.variables.get(name, [])
        if values is None or any(UNKNOWN in value for value in values):
            return self._perhaps(mark, word)
        if length:
            return [UNKNOWN] if mark else [str(len(values) if index in ("@", "*") else len(" ".join(values)))]
        if mark in ("+", ":+"):
            is_there = any(values) if mark == ":+" else name in self.variables and bool(values)
            return (
                [text for token in Lexer(self.name, word).tokens() for text in self._expanded(token)]
                if is_there
                else [""]
            )
        if name not in self.variables:
            return [UNKNOWN]
        if index is not None and index.isdigit():
            values = values[int(index) : int(index) + 1]
        return values if mark is None else [cut(value, mark, word) for value in values]

    def _perhaps(self, mark: str | None, word: str | None) -> list[str]:
        """Words that are there or not, as a variable that is known only where it runs says: an option whose value is
        not known either is read as one."""
        if mark not in ("+", ":+") or word is None:
            return [UNKNOWN]
        option, *rest = [text for token in Lexer(self.name, word).tokens() for text in self._expanded(token)] or [""]
        is_open = bool(rest) and all(UNKNOWN in text for text in rest)
        return [option, *rest] if option.startswith("-") and is_open else [UNKNOWN]

    def _arithmetic(self, text: str) -> str:
        """The whole number that `text` comes to: + - * / % of numbers and known variables."""

        def put_in(match: re.Match[str]) -> str:
            value = " ".join(self._variable(match[1] or match[2]))
            return value if re.fullmatch(r"-?[0-9]{1,15}", value) else UNKNOWN

        while inner := re.search(r"\$\(\(([^()]*)\)\)", text):
            text = f"{text[: inner.start()]}({self._arithmetic(inner[1])}){text[inner.end() :]}"
        plain = re.sub(rf"\$?\{{([^}}]+)\}}|\$?({NAME})", put_in, text).replace("/", "//").strip()
        if UNKNOWN in plain or len(plain) > 200:
            return UNKNOWN
        try:
            return str(number(ast.parse(plain, mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, OverflowError):
            return UNKNOWN
