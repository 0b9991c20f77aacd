"""A bash script as the commands that it would start, with variables put in where their value is certain.

Nothing is run. What depends on the machine, on arguments, on other commands or on a condition becomes `UNKNOWN` inside
the word, and a value with that mark is never read.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from estimator.errors import PlanError
from launchers.reading.documents import check_size
from launchers.shell.blocks import OpenCase, closing_brace, function_body, is_test
from launchers.shell.lexer import UNKNOWN, Lexer, Token, TokenPart
from launchers.shell.texts import counts_devices, cut, handed_on, number, sliced, told, written

_MOST_WORDS = 50_000
_LONGEST = 100_000
_MOST_CALLS = 6
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
_RANK = re.compile(r"(^|_)(RANK|NODEID|PROCID)$")
# Where JSON has a value.
_OPEN_VALUE = re.compile(rf"(?<=[:\[,\s]){UNKNOWN}(?=[\s,\]}}])")
_SETS = {"export", "declare", "local", "readonly", "typeset"}


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
    templates: set[str] = field(default_factory=set)
    """Files of which it makes others by putting words in."""
    unset: set[str] = field(default_factory=set)
    """Variables that it never sets and that stood for no words."""


def script(
    name: str, text: str, known: dict[str, str] | None = None, others: Mapping[str, str] | None = None
) -> Script:
    """The script's commands; `known` are variables that something outside sets (Slurm), `others` files by name that it
    may take in (source models/8b.sh) or make others of (sed … ds.json > mine.json). Raises PlanError."""
    check_size(name, text)
    return _Reader(name, known or {}, others or {}).read(text)


# Of the devices of a node, where whoever asks says it, among what is known.
DEVICES = "devices of a node"
# Files that set up a shell and name nothing of a run.
_SETS_UP = re.compile(r"bashrc|profile|activate|conda\.sh|lmod|modules?\b|setvars")
_OPTION = re.compile(r"--?[A-Za-z][^=]*$")
# Variables for options that whoever starts a script may add.
_MORE = re.compile(r"ARGS|ARGUMENTS|OPTS|OPTIONS|FLAGS|EXTRA|OVERRIDES", re.IGNORECASE)


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
        self.sides: list[list[dict[str, list[str]]]] = []
        """Of each what its sides set, an if's and its else's, where it is not known which is taken."""
        self.words = 0
        self.text = ""
        self.functions: dict[str, list[Token]] = {}
        self.called: set[str] = set()
        self.depth = 0
        """Calls of functions inside each other."""
        self.piped: str | None = None
        """A text that goes on to the next command (cat << EOF | tee FILE)."""
        self.piped_from: set[str] = set()
        """The files that it was made of."""
        self.templates: set[str] = set()
        self.unset: set[str] = set()
        self.is_open = False
        """Whether it takes in a file that is not there, which may set anything."""
        self.heard: list[str] | None = None
        """What a function prints whose output is taken."""
        self.cases: list[OpenCase] = []
        self.tested = self.after_test = False
        """Whether the statement decides about the next one, and whether the one before did so about it."""

    @property
    def conditional(self) -> bool:
        return None in self.branches or self.after_test

    @property
    def _conditional_outside(self) -> bool:
        return None in self.branches[:-1]

    @property
    def _skipped(self) -> bool:
        return False in self.branches

    def _test(self, tokens: list[Token]) -> bool | None:
        """What a single test of known words comes to: [[ $A == b ]], [ -z $A ] and their like; None if unknown."""
        words = [
            text
            for token in tokens
            for text in ([""] if self._is_argument(token) else ["0"] if self._is_rank(token) else self._expanded(token))
            or [""]
        ]
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
            self.sides.append([{}])
            self._run(self.functions[name])
            self.branches.pop()
            self.sides.pop()
        return Script(self.commands, self.exported, self.files, self.defaults, self.sourced, self.templates, self.unset)

    def _defined(self, tokens: list[Token]) -> list[Token]:
        """The tokens without the functions among them, which are kept until they are called."""
        kept: list[Token] = []
        at = 0
        while at < len(tokens):
            begin = function_body(tokens, at)
            end = closing_brace(tokens, begin) if begin is not None else None
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
                self.tested = token.operator in ("&&", "||") and (token.operator == "||" or is_test(statement))
                if not self._chooses(statement, token.operator):
                    self._statement(statement)
                    self._chooses(None, token.operator)
                self.after_test = self.tested
                if token.operator not in ("|", "|&"):
                    self.piped, self.piped_from = None, set()
                statement = []
            else:
                statement.append(token)

    def _chooses(self, tokens: list[Token] | None, ended: str) -> bool:
        """Whether a statement is patterns of the case that is open, by which its next branch is taken or not."""
        case = self.cases[-1] if self.cases else None
        if case is None or case.depth != len(self.branches) or (tokens and tokens[0].plain == "esac"):
            return False
        if not case.choosing:
            case.choosing = ended == ";;" and tokens is None
            return False
        case.patterns += ["".join(self._expanded(token)) for token in tokens or ()]
        if ended == ")" and case.patterns:
            self.branches[-1] = case.chosen()
        return True

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
        del self.branches[branches:], self.sides[branches:]
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
                    self._settle_sides(tokens[0].plain == "fi")
                    self.cases = [case for case in self.cases if case.depth <= len(self.branches)]
            elif word in _OPENING:
                self._open(word, tokens)
                if word in ("for", "case", "select"):
                    return None
            elif word in ("else", "elif") and self.branches:
                self.sides[-1] += [{}] if word == "else" else [{}, {}]
                before = self.branches[-1]
                self.branches[-1] = None if before is None else not before
                if word == "elif":
                    self.branches[-1] = self._test(tokens[1:]) if before is False else None if before is None else False
            elif word not in _MIDDLE:
                break
            tokens = tokens[1:]
        return tokens

    def _settle_sides(self, is_test: bool) -> None:
        """Gives a variable that an if and its else set alike that value."""
        sides = self.sides.pop()
        if not is_test or len(sides) != 2 or self.conditional:
            return
        for name, values in sides[0].items():
            if sides[1].get(name) == values and not any(UNKNOWN in value for value in values):
                self.variables[name] = values

    def _open(self, word: str, tokens: list[Token]) -> None:
        taken = self._test(tokens[1:]) if word in ("if", "while") and not self._skipped else None
        if word == "while":
            # One that goes through the script's own arguments has none to go through.
            taken = False if taken is False or (len(tokens) > 1 and tokens[1].plain == "getopts") else None
        if word == "{":
            taken = True
        self.branches.append(taken)
        self.sides.append([{}])
        if word == "for" and len(tokens) > 1 and (name := tokens[1].plain):
            self._loop(name, tokens[2:])
        if word == "case" and not self._skipped:
            value = "".join(self._expanded(tokens[1])) if len(tokens) > 1 else UNKNOWN
            self.cases.append(OpenCase(value, len(self.branches)))
            self.cases[-1].patterns += ["".join(self._expanded(token)) for token in tokens[3:]]

    def _loop(self, name: str, tokens: list[Token]) -> None:
        """A loop over one word that is known is that word; one over the script's own arguments has none."""
        words = [text for token in tokens[1:] for text in self._expanded(token)]
        is_known = (
            bool(tokens) and tokens[0].plain == "in" and not any(UNKNOWN in word or "*" in word for word in words)
        )
        if is_known and not words:
            self.branches[-1] = False
        elif is_known and len(words) == 1 and not self._conditional_outside:
            self.branches[-1] = True
            self.variables[name] = words
        else:
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
        if words[0].text in ("mapfile", "readarray") and len(words) > 1:
            process = next((part.text for token in tokens for part in token.parts if part.kind == "process"), None)
            text = UNKNOWN if process is None else self._output(process)
            self.variables[words[-1].text] = None if UNKNOWN in text or self.conditional else text.splitlines()
            return
        if words[0].text in self.functions:
            self._call(words[0].text, words[1:])
            return
        if words[0].text in ("source", ".") and len(words) > 1:
            if self._take_in(words[1].text):
                return
            self.is_open = self.is_open or not _SETS_UP.search(words[1].text)
        if self.heard is not None:
            self._hear([word.text for word in words], redirected)
            return
        if words[0].text == "shift" and self.depth:
            self._shift(words[1:])
            return
        self._write([*words, *redirected], here)
        self.commands.append(ShellCommand(words, environment, self.conditional))

    def _hear(self, words: list[str], redirected: list[Word]) -> None:
        """Keeps what a command prints inside a function whose output is taken."""
        quiet = any(re.match(r"(1|&)?>", word.text) for word in redirected)
        if words[0] in ("return", "exit", ":", "true", "set", "shift", "cd") or quiet or self.heard is None:
            return
        self.heard.append(UNKNOWN if self.conditional else told(words))

    def _output(self, text: str) -> str:
        """What $(…) gives, UNKNOWN where that cannot be told."""
        if counts_devices(text):
            return " ".join(self.variables.get(DEVICES) or [UNKNOWN])
        try:
            tokens = Lexer(self.name, re.sub(r"2>\s*/dev/null", "", text)).tokens()
        except PlanError:
            return UNKNOWN
        if any(token.operator for token in tokens):
            return UNKNOWN
        words = [word for token in tokens for word in self._expanded(token)]
        if not words or words[0] not in self.functions:
            return told(words)
        kept = dict(self.variables), self.heard, self.branches, self.sides, len(self.commands), self.after_test
        self.heard, self.branches, self.sides, self.after_test = [], [], [], False
        self._call(words[0], [Word(word, 0) for word in words[1:]])
        text = "\n".join(self.heard)
        self.variables, self.heard, self.branches, self.sides, commands, self.after_test = kept
        del self.commands[commands:]
        return text

    def _take_in(self, path: str) -> bool:
        """Runs another script in this one's place, as source does; whether it is there."""
        name = re.split(r"[/\\]", path)[-1]
        if name not in self.others or name in self.sourced:
            return False
        self.sourced.add(name)
        self.text += "\n" + self.others[name]
        self._run(self._defined(Lexer(name, self.others[name]).tokens()))
        return True

    def _words_and_redirections(self, tokens: list[Token]) -> tuple[list[Word], list[Word]]:
        words: list[Word] = []
        redirected: list[Word] = []
        for token in tokens:
            if not token.operator and not (words and self._stands_for_nothing(token, words[-1].text)):
                expanded = [Word(text, token.line) for text in self._expanded(token)]
                # What follows a bare > or < is a file, not an argument.
                bare = bool(token.parts) and not token.parts[0].quoted and _REDIRECTION.match(token.parts[0].text)
                if bare or (redirected and redirected[-1].text in _OPEN_REDIRECTIONS):
                    redirected += expanded
                else:
                    words += expanded
        return words, redirected

    def _stands_for_nothing(self, token: Token, before: str) -> bool:
        """Whether a word is a variable for more options that nothing sets ($EXTRA_ARGS), and no option's value: none,
        as it stands."""
        names = {part.text for part in token.parts if part.kind == "variable"}
        if not all(_MORE.search(name) and not self._may_be_set(name) for name in names) or _OPTION.match(before):
            return False
        nothing = self._is_unset(token)
        self.unset |= names if nothing else set()
        return nothing

    def _may_be_set(self, name: str) -> bool:
        """Whether the script or a file that it takes in says a variable in any other place than where it is used."""
        return self.is_open or name in self.variables or bool(re.search(rf"(?<![$\w{{]){name}\b", self.text))

    def _write(self, words: list[Word], here: Token | None) -> None:
        """Keeps the text that a command puts into a file, or that sbatch and shells are given to run."""
        first, texts = words[0].text, [word.text for word in words]
        target = written(texts)
        text = self._document(here) if here is not None else self._made(texts)
        self.piped = None if target else text
        if target and text is not None:
            self.files[target] = text
            self.templates |= self.piped_from
        elif target and first in ("echo", "printf") and len(words) > 1:
            self.files[target] = texts[1]
        elif here is not None and first in ("sbatch", "bash", "sh"):
            self.files[f"{first} of line {words[0].line}"] = "#!/bin/bash\n" + self._document(here)

    def _made(self, texts: list[str]) -> str | None:
        """What a command hands on of a text that is known, and keeps what it puts into a file."""
        made = handed_on(texts, self.piped, self._text)
        if made is None or self.conditional:
            return None
        text = re.sub(_OPEN_VALUE, f'"{UNKNOWN}"', made.text) if made.text.lstrip().startswith("{") else made.text
        self.piped_from |= {re.split(r"[/\\]", made.template)[-1]} if made.template else set()
        if made.into:
            self.files[made.into] = text
            self.templates |= self.piped_from
        return text

    def _text(self, path: str) -> str | None:
        """A file that the script wrote, or one of the set."""
        return self.files.get(path, self.others.get(re.split(r"[/\\]", path)[-1]))

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
        return re.sub(_OPEN_VALUE, f'"{UNKNOWN}"', whole)

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

    def _expanded(self, token: Token) -> list[str]:
        """The words that a word becomes: unquoted variables are split, quoted arrays give a word each."""
        words, open_word, started, empty = [], "", False, False
        for part in token.parts:
            values = self._values(part)
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
        match = re.fullmatch(rf"({_NAME}|[0-9@*])(\[[@*]\])?(?:(:?[-=])(.*))?", text, re.DOTALL)
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
        """What bash makes of a variable: its length, one of its words, the other word where it is set (:+), or what is
        left without a beginning or an end (#, ##, %, %%)."""
        if part := re.fullmatch(rf"({_NAME})?(?(1)\[)[@*](?(1)\]):([0-9]{{1,4}})(?::([0-9]{{1,4}}))?", text):
            # Without a name those that the script is given, of which the first is itself.
            values = self.variables.get(part[1] or "@", [] if part[1] is None else None)
            begin = int(part[2]) - (part[1] is None)
            return [UNKNOWN] if values is None else sliced(values, begin, part[3])
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
        plain = re.sub(rf"\$?\{{([^}}]+)\}}|\$?({_NAME})", put_in, text).replace("/", "//").strip()
        if UNKNOWN in plain or len(plain) > 200:
            return UNKNOWN
        try:
            return str(number(ast.parse(plain, mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, OverflowError):
            return UNKNOWN
