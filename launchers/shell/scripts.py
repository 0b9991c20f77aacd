"""A bash script as the commands that it would start, with variables put in where their value is certain.

Nothing is run. What depends on the machine, on arguments, on other commands or on a condition becomes `UNKNOWN` inside
the word, and a value with that mark is never read.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from estimator.errors import PlanError
from launchers.reading.documents import check_size
from launchers.shell.lexer import Lexer, Token, TokenPart

UNKNOWN = "\ufffc"
_MOST_WORDS = 50_000
_LONGEST = 100_000
_MOST_CALLS = 6
_MOST_COUNTED = 1000
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OPENING = {"if", "for", "while", "until", "case", "{", "select"}
_CLOSING = {"fi", "done", "esac", "}"}
_MIDDLE = {"then", "do", "!", "time"}
_REDIRECTION = re.compile(r"(&|[0-9])?[<>]")
_OPEN_REDIRECTIONS = (">", ">>", "<", "1>", "2>", "&>", "&>>", "2>>", "1>>", "<<<")
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
_SETS = {"export", "declare", "local", "readonly", "typeset"}
_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True)
class Word:
    text: str
    line: int

    @property
    def known(self) -> bool:
        return UNKNOWN not in self.text


@dataclass
class ShellCommand:
    """One simple command. `conditional`: it stands in a branch or loop."""

    words: list[Word]
    environment: dict[str, Word] = field(default_factory=dict)
    conditional: bool = False


@dataclass
class Script:
    """`files` are those that the script writes from texts in itself (cat > ds.json << EOF)."""

    commands: list[ShellCommand]
    environment: dict[str, Word]
    files: dict[str, str]
    defaults: set[str]
    """Variables whose default was taken, which the environment could change."""
    sourced: set[str] = field(default_factory=set)
    """Other scripts that it took in."""


def script(
    name: str, text: str, known: dict[str, str] | None = None, others: Mapping[str, str] | None = None
) -> Script:
    """The script's commands; `known` are variables that something outside sets (Slurm), `others` scripts by file name
    that it may take in (source models/8b.sh). Raises PlanError."""
    check_size(name, text)
    return _Reader(name, known or {}, others or {}).read(text)


class _Reader:
    def __init__(self, name: str, known: dict[str, str], others: Mapping[str, str]) -> None:
        self.name = name
        self.others = others
        self.sourced: set[str] = set()
        self.variables: dict[str, list[str] | None] = {key: [value] for key, value in known.items()}
        self.exported: dict[str, Word] = {}
        self.commands: list[ShellCommand] = []
        self.files: dict[str, str] = {}
        self.defaults: set[str] = set()
        self.branches: list[bool | None] = []
        """Of each open branch or loop: taken, not taken, or unknown."""
        self.words = 0
        self.text = ""
        self.functions: dict[str, list[Token]] = {}
        self.called: set[str] = set()
        self.depth = 0
        """Calls of functions inside each other."""
        self.piped: Token | None = None
        """A << whose text goes on to the next command (cat << EOF | tee FILE)."""
        self.tested = self.after_test = False
        """Whether the statement decides about the next one, and whether the one before did so about it."""

    @property
    def conditional(self) -> bool:
        return None in self.branches or self.after_test

    @property
    def _skipped(self) -> bool:
        return False in self.branches

    def _test(self, tokens: list[Token]) -> bool | None:
        """What a single test of known words comes to: [[ $A == b ]], [ -z $A ] and their like; None if unknown."""
        words = [text for token in tokens for text in (self._expanded(token) or [""])]
        if len(words) == 4 and words[1] in ("-z", "-n") and self._is_unset(tokens[2]):
            words[2] = ""
        if len(words) < 4 or words[0] not in ("[", "[[") or words[-1] not in ("]", "]]"):
            return None
        words = words[1:-1]
        if any(UNKNOWN in word or "*" in word for word in words):
            return None
        if len(words) == 2 and words[0] in ("-z", "-n"):
            return (words[1] == "") == (words[0] == "-z")
        if len(words) == 3 and words[1] in ("=", "==", "!="):
            return (words[0] == words[2]) == (words[1] != "!=")
        compare = {"-eq": operator.eq, "-ne": operator.ne, "-gt": operator.gt, "-ge": operator.ge, "-lt": operator.lt,
                   "-le": operator.le}  # fmt: skip
        if len(words) == 3 and words[1] in compare and all(re.fullmatch(r"-?[0-9]{1,15}", words[at]) for at in (0, 2)):
            return compare[words[1]](int(words[0]), int(words[2]))
        return None

    def _is_unset(self, token: Token) -> bool:
        """Whether a word is one variable that the script never sets and no scheduler does: empty, as it stands."""
        parts = [part for part in token.parts if part.kind != "text" or part.text]
        part = parts[0] if len(parts) == 1 else None
        if part is None or part.kind != "variable" or not re.fullmatch(_NAME, part.text):
            return False
        if part.text in self.variables or part.text.startswith(_SCHEDULED):
            return False
        self.defaults.add(part.text)
        return True

    def read(self, text: str) -> Script:
        self.text = text
        self._run(self._defined(Lexer(self.name, text).tokens()))
        for name in [name for name in self.functions if name not in self.called]:
            # What calls it, if anything does, is not in the script.
            self.branches.append(None)
            self._run(self.functions[name])
            self.branches.pop()
        return Script(self.commands, self.exported, self.files, self.defaults, self.sourced)

    def _defined(self, tokens: list[Token]) -> list[Token]:
        """The tokens without the functions among them, which are kept until they are called."""
        kept: list[Token] = []
        at = 0
        while at < len(tokens):
            begin = _function_body(tokens, at)
            end = _closing_brace(tokens, begin) if begin is not None else None
            if begin is None or end is None:
                kept.append(tokens[at])
                at += 1
                continue
            name = tokens[at + 1] if tokens[at].plain == "function" else tokens[at]
            self.functions[name.plain or ""] = self._defined(tokens[begin + 1 : end])
            at = end + 1
        return kept

    def _run(self, tokens: list[Token]) -> None:
        statement: list[Token] = []
        for token in [*tokens, Token(0, "\n")]:
            if token.operator and token.operator != "<<":
                self.tested = token.operator in ("&&", "||") and (token.operator == "||" or _is_test(statement))
                self._statement(statement)
                self.after_test = self.tested
                statement = []
            else:
                statement.append(token)

    def _call(self, name: str, words: list[Word]) -> None:
        """Runs a function's body with the words of a call as its arguments."""
        self.called.add(name)
        if self.depth >= _MOST_CALLS:
            return
        outside = {key: value for key, value in self.variables.items() if not key[0].isalpha() and key[0] != "_"}
        for key in outside:
            del self.variables[key]
        texts = [word.text for word in words]
        self.variables |= {str(at): [text] for at, text in enumerate(texts, 1)}
        self.variables |= {"@": texts, "*": texts}
        self.depth += 1
        branches = len(self.branches)
        self._run(self.functions[name])
        del self.branches[branches:]
        self.depth -= 1
        for key in [key for key in self.variables if not key[0].isalpha() and key[0] != "_"]:
            del self.variables[key]
        self.variables |= outside

    def _shift(self, words: list[Word]) -> None:
        texts = self.variables.get("@") or []
        by = int(words[0].text) if words and words[0].text.isdigit() else 1
        for key in [key for key in self.variables if key.isdigit()]:
            del self.variables[key]
        self.variables |= {str(at): [text] for at, text in enumerate(texts[by:], 1)}
        self.variables |= {"@": texts[by:], "*": texts[by:]}

    def _statement(self, tokens: list[Token]) -> None:
        rest = self._after_keywords(tokens)
        if rest is None:
            return
        if not rest or rest[0].plain in ("[", "[["):
            if self.tested and self.branches:
                # A condition of several tests.
                self.branches[-1] = None
            return
        if not self._skipped:
            self._command(rest)

    def _after_keywords(self, tokens: list[Token]) -> list[Token] | None:
        """Opens and closes branches by the keywords that a statement begins with; what comes after them, None after the
        head of a loop or a case."""
        while tokens and (word := tokens[0].plain) is not None:
            if word in _CLOSING:
                if self.branches:
                    self.branches.pop()
            elif word in _OPENING:
                self._open(word, tokens)
                if word in ("for", "case", "select"):
                    return None
            elif word in ("else", "elif") and self.branches:
                before = self.branches[-1]
                self.branches[-1] = None if before is None else not before
                if word == "elif":
                    self.branches[-1] = self._test(tokens[1:]) if before is False else None if before is None else False
            elif word not in _MIDDLE:
                break
            tokens = tokens[1:]
        return tokens

    def _open(self, word: str, tokens: list[Token]) -> None:
        taken = self._test(tokens[1:]) if word in ("if", "while") and not self._skipped else None
        if word == "while":
            # One that goes through the script's own arguments has none to go through.
            taken = False if taken is False or (len(tokens) > 1 and tokens[1].plain == "getopts") else None
        if word == "{":
            taken = True
        self.branches.append(taken)
        if word == "for" and len(tokens) > 1 and (name := tokens[1].plain):
            self.variables[name] = None

    def _command(self, tokens: list[Token]) -> None:
        environment: dict[str, Word] = {}
        assignments: list[tuple[str, list[str], bool]] = []
        for token in tokens:
            if (assigned := self._assigned(token)) is None:
                break
            assignments.append(assigned)
            environment[assigned[0]] = Word(" ".join(assigned[1]), token.line)
        tokens = tokens[len(assignments) :]
        if not tokens:
            for name, values, appended in assignments:
                self._set(name, values, appended)
            return
        words, redirected = self._words_and_redirections(tokens)
        if not words:
            return
        self.words += len(words)
        if self.words > _MOST_WORDS:
            words = words[:1]
        if words[0].text in _SETS:
            self._export(tokens[1:], words[0].text == "export")
            return
        here = next((token for token in tokens if token.operator == "<<"), None)
        if words[0].text == "read" and here is not None:
            self._set(words[-1].text, [re.sub(r"\\\n", " ", self._document(here))], False)
            return
        if words[0].text in self.functions:
            self._call(words[0].text, words[1:])
            return
        if words[0].text in ("source", ".") and len(words) > 1 and self._take_in(words[1].text):
            return
        if words[0].text == "shift" and self.depth:
            self._shift(words[1:])
            return
        self._write([*words, *redirected], here)
        self.commands.append(ShellCommand(words, environment, self.conditional))

    def _take_in(self, path: str) -> bool:
        """Runs another script in this one's place, as source does; whether it is there."""
        name = re.split(r"[/\\]", path)[-1]
        if name not in self.others or name in self.sourced:
            return False
        self.sourced.add(name)
        self._run(self._defined(Lexer(name, self.others[name]).tokens()))
        return True

    def _words_and_redirections(self, tokens: list[Token]) -> tuple[list[Word], list[Word]]:
        words: list[Word] = []
        redirected: list[Word] = []
        for token in tokens:
            if not token.operator:
                expanded = [Word(text, token.line) for text in self._expanded(token)]
                # What follows a bare > or < is a file, not an argument.
                bare = bool(token.parts) and not token.parts[0].quoted and _REDIRECTION.match(token.parts[0].text)
                if bare or (redirected and redirected[-1].text in _OPEN_REDIRECTIONS):
                    redirected += expanded
                else:
                    words += expanded
        return words, redirected

    def _write(self, words: list[Word], here: Token | None) -> None:
        """Keeps the text that a command puts into a file, or that sbatch and shells are given to run."""
        first, target = words[0].text, _written(words)
        text = here or (self.piped if first == "tee" else None)
        self.piped = None if target else here
        if target and text is not None:
            self.files[target] = self._document(text)
        elif target and first in ("echo", "printf") and len(words) > 1:
            self.files[target] = words[1].text
        elif here is not None and first in ("sbatch", "bash", "sh"):
            self.files[f"{first} of line {words[0].line}"] = "#!/bin/bash\n" + self._document(here)

    def _document(self, here: Token) -> str:
        """The text of a << with its variables put in. What is not known stands as text where JSON has a value."""
        text = here.document or ""
        if here.literal or not ("$" in text or "`" in text):
            return text
        quoted = re.sub(r'\\?"', lambda mark: '\\\\\\"' if len(mark[0]) > 1 else '\\"', text)
        try:
            token = Lexer(self.name, f'"{quoted}"').tokens()[0]
        except PlanError:
            return text
        whole = "".join(" ".join(self._values(part)) for part in token.parts)
        return re.sub(rf"(?<=[:\[,\s]){UNKNOWN}(?=[\s,\]}}])", f'"{UNKNOWN}"', whole)

    def _export(self, tokens: Iterable[Token], exported: bool) -> None:
        for token in tokens:
            if assigned := self._assigned(token):
                self._set(*assigned)
                name = assigned[0]
            elif not (name := token.plain) or not re.fullmatch(_NAME, name):
                continue
            values = self.variables.get(name)
            if exported and name in self.variables:
                self.exported[name] = Word(UNKNOWN if values is None else " ".join(values), token.line)

    def _assigned(self, token: Token) -> tuple[str, list[str], bool] | None:
        """(name, values, appended) of a token that is an assignment."""
        if token.operator or not token.parts or token.parts[0].kind != "text" or token.parts[0].quoted:
            return None
        match = re.match(rf"({_NAME})(\+?)=", token.parts[0].text)
        if not match:
            return None
        if token.array is not None:
            return match[1], [text for word in token.array for text in self._expanded(word)], bool(match[2])
        rest = [TokenPart("text", token.parts[0].text[match.end() :], False), *token.parts[1:]]
        return match[1], ["".join(" ".join(self._values(part)) for part in rest)], bool(match[2])

    def _set(self, name: str, values: list[str], appended: bool) -> None:
        if sum(map(len, values)) + sum(map(len, self.variables.get(name) or ())) > _LONGEST:
            self.variables[name] = None
        elif self.conditional:
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

    def _expanded(self, token: Token) -> list[str]:
        """The words that a word becomes: unquoted variables are split, quoted arrays give a word each."""
        words, open_word, started, empty = [], "", False, False
        for part in token.parts:
            values = self._values(part)
            if part.kind == "text" or part.quoted:
                if part.kind == "variable" and part.text.endswith(("[@]", "@")) and not any(values):
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
        return _counted(part.text)

    def _variable(self, text: str) -> list[str]:
        if text == "#":
            # What the script is given besides: nothing, as it stands.
            return [str(len(self.variables.get("@") or ()))]
        match = re.fullmatch(rf"({_NAME}|[0-9@*])(\[[@*]\])?(?:(:?[-=])(.*))?", text, re.DOTALL)
        if not match:
            return self._changed(text)
        name, _, mark, default = match.groups()
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
        """What bash makes of a variable: its length, one of its words, the other word where it is set (:+), or what is
        left without a beginning or an end (#, ##, %, %%)."""
        match = re.fullmatch(rf"(#?)({_NAME})(?:\[([@*]|[0-9]{{1,4}})\])?(?:(:?\+|##?|%%?)(.*))?", text, re.DOTALL)
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
        return values if mark is None else [_cut(value, mark, word) for value in values]

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

        plain = re.sub(rf"\$?\{{([^}}]+)\}}|\$?({_NAME})", put_in, text).replace("/", "//").strip()
        if UNKNOWN in plain or len(plain) > 200:
            return UNKNOWN
        try:
            return str(_number(ast.parse(plain, mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, OverflowError):
            return UNKNOWN


def _function_body(tokens: list[Token], at: int) -> int | None:
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


def _closing_brace(tokens: list[Token], begin: int) -> int | None:
    depth = 0
    for at in range(begin, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[at].plain or "", 0)
        if depth == 0:
            return at
    return None


def _cut(value: str, mark: str, pattern: str) -> str:
    """Without the shortest or longest (## and %%) beginning or end of that pattern."""
    if re.search(r"[\[\]$`\\\"']", pattern):
        return UNKNOWN
    ends = range(len(value) + 1)
    cuts = [value[:at] if mark[0] == "#" else value[at:] for at in ends]
    order = cuts if (mark == "#") or (mark == "%%") else cuts[::-1]
    cut = next((part for part in order if fnmatchcase(part, pattern)), "")
    return value[len(cut) :] if mark[0] == "#" else value[: len(value) - len(cut)]


def _counted(command: str) -> list[str]:
    """What $(seq 16 8 256) prints, which is arithmetic; of all other commands nothing is known."""
    name, *words = command.split() or [""]
    if name != "seq" or not 1 <= len(words) <= 3 or not all(re.fullmatch(r"-?[0-9]{1,6}", word) for word in words):
        return [UNKNOWN]
    first, *middle, last = map(int, words if len(words) > 1 else ["1", *words])
    step = middle[0] if middle else 1
    numbers = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
    return [" ".join(map(str, numbers))] if len(numbers) <= _MOST_COUNTED else [UNKNOWN]


def _is_test(tokens: list[Token]) -> bool:
    words = [token.plain for token in tokens if token.plain not in ("if", "elif", "while", "!")]
    return bool(words) and words[0] in ("[", "[[", "test")


def _number(node: ast.expr) -> int:
    """The value of a parsed sum of whole numbers. Raises ValueError for anything else."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        value = _ARITHMETIC[type(node.op)](_number(node.left), _number(node.right))
        if abs(value) < 10**15:
            return value
    raise ValueError("not a sum of whole numbers")


def _written(words: list[Word]) -> str | None:
    """The file that a command's > or a tee writes."""
    texts = [word.text for word in words]
    if texts[0] == "tee":
        return next((text for text in texts[1:] if not text.startswith(("-", ">"))), None)
    for place, text in enumerate(texts):
        if text == ">" and place + 1 < len(texts):
            return texts[place + 1]
        if text.startswith(">") and not text.startswith(">>") and len(text) > 1:
            return text[1:]
    return None
