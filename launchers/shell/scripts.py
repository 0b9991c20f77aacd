"""A bash script as the commands that it would start, with variables put in where their value is certain.

Nothing is run. What depends on the machine, on arguments, on other commands or on a condition becomes `UNKNOWN` inside
the word, and a value with that mark is never read.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from estimator.errors import PlanError
from launchers.reading.documents import check_size
from launchers.shell.blocks import OpenCase, closing_brace, function_body, is_test
from launchers.shell.expansion import NAME, Expansion
from launchers.shell.lexer import UNKNOWN, Lexer, Token
from launchers.shell.texts import counts_devices, handed_on, told, written

_MOST_WORDS = 50_000
_MOST_CALLS = 6
_OPENING = {"if", "for", "while", "until", "case", "{", "select"}
_CLOSING = {"fi", "done", "esac", "}"}
_MIDDLE = {"then", "do", "!", "time"}
_REDIRECTION = re.compile(r"(&|[0-9])?[<>]")
_OPEN_REDIRECTIONS = (">", ">>", "<", "1>", "2>", "&>", "&>>", "2>>", "1>>", "<<<")
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


class _Reader(Expansion):
    def __init__(self, name: str, known: dict[str, str], others: Mapping[str, str]) -> None:
        super().__init__(name, known)
        self.others = others
        self.sourced: set[str] = set()
        self.exported: dict[str, Word] = {}
        self.commands: list[ShellCommand] = []
        self.files: dict[str, str] = {}
        self.words = 0
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
        self.heard: list[str] | None = None
        """What a function prints whose output is taken."""
        self.cases: list[OpenCase] = []
        self.tested = False
        """Whether the statement decides about the next one."""
        self.joined = ""
        """What joins it to the one before it: && or ||."""
        self.condition: str | None = None
        """The keyword whose condition is being read."""

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
                self.after_test, self.joined = self.tested, token.operator
                if self.condition and token.operator in ("(", ")"):
                    # Tests in brackets.
                    self.branches[-1], self.condition = None, None
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
        if rest and self.condition and self.joined in ("&&", "||"):
            self.branches[-1] = self._joined_test(self.branches[-1], tokens)
        if not rest or rest[0].plain in ("[", "[["):
            return
        if not self._skipped:
            self._command(rest)

    def _joined_test(self, before: bool | None, tokens: list[Token]) -> bool | None:
        """What a condition of several tests comes to, `before` being that of those before this one."""
        if before is None or before is (self.joined == "||"):
            return before
        return self._test(tokens) if self.condition in ("if", "elif") else None

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
                    self.condition = word
                    self.branches[-1] = self._test(tokens[1:]) if before is False else None if before is None else False
            elif word not in _MIDDLE:
                break
            elif word in ("then", "do"):
                self.condition = None
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
        self.condition = word if word in ("if", "while", "until") else None
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
            elif not (name := token.plain) or not re.fullmatch(NAME, name):
                continue
            values = self.variables.get(name)
            if exported and name in self.variables:
                self.exported[name] = Word(UNKNOWN if values is None else " ".join(values), token.line)
