"""Bash as words. Only cut up, never run: what would need a shell to know stays unknown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from estimator.errors import PlanError

UNKNOWN = "\ufffc"
_OPERATORS = ("&&", "||", ";;", ";", "|&", "|", "&", "(", ")", "\n")
_DEEPEST = 20


@dataclass(frozen=True)
class TokenPart:
    """A piece of a word. `kind`: text; variable (`text` is what stands in ${…}); arithmetic; command ($(…)); process
    (<(…))."""

    kind: str
    text: str
    quoted: bool


@dataclass
class Token:
    """A word of parts, or an operator (`parts` empty). `array` holds the words of NAME=( … ) and NAME+=( … )."""

    line: int
    operator: str = ""
    parts: list[TokenPart] = field(default_factory=list)
    array: list[Token] | None = None
    document: str | None = None
    """What a redirection << reads."""
    literal: bool = False
    """Whether that text is taken as it stands (<< 'EOF')."""

    @property
    def plain(self) -> str | None:
        """The word's text where nothing in it is to be expanded."""
        if self.operator or any(part.kind != "text" for part in self.parts):
            return None
        return "".join(part.text for part in self.parts)


class Lexer:
    """Cuts a script into tokens. Raises PlanError where quotes or brackets stay open."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.at, self.line = name, text, 0, 1
        self.waiting: list[tuple[Token, str]] = []

    def tokens(self) -> list[Token]:
        return list(self._tokens(""))

    def _tokens(self, closing: str, depth: int = 0) -> Iterator[Token]:
        if depth > _DEEPEST:
            raise self._broken("brackets are nested too deeply")
        text = self.text
        while self.at < len(text):
            character = text[self.at]
            if character in " \t\r":
                self.at += 1
            elif text.startswith("\\\n", self.at) or text.startswith("\\\r\n", self.at):
                self.at = text.index("\n", self.at) + 1
                self.line += 1
            elif character == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            elif closing and character == closing:
                self.at += 1
                return
            elif text.startswith("<<", self.at) and not text.startswith("<<<", self.at):
                yield self._here()
            elif operator := next((word for word in _OPERATORS if text.startswith(word, self.at)), ""):
                self.at += len(operator)
                line = self.line
                if operator == "\n":
                    self.line += 1
                    self._documents()
                yield Token(line, operator)
            else:
                yield self._word(depth)
        if closing:
            raise self._broken(f"a bracket is not closed ({closing})")

    def _here(self) -> Token:
        self.at += 2
        if self.at < len(self.text) and self.text[self.at] == "-":
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        token, word = Token(self.line, "<<"), self._word(0)
        token.literal = any(part.quoted for part in word.parts)
        self.waiting.append((token, "".join(part.text for part in word.parts)))
        return token

    def _documents(self) -> None:
        """The texts of the << of the line that has just ended."""
        for token, end in self.waiting:
            lines: list[str] = []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line, self.at = self.text[self.at : stop], stop + 1
                self.line += 1
                if line.strip() == end:
                    break
                lines.append(line)
            token.document = "\n".join(lines)
        self.waiting = []

    def _process(self) -> list[TokenPart]:
        """What a word begins with that stands for another command's output: <(…)."""
        is_one = self.text.startswith(("<(", ">("), self.at)
        return [TokenPart("process", self._balanced("(", ")", 2, 1), False)] if is_one else []

    def _opens_array(self, token: Token, plain: str) -> bool:
        """Whether a bracket begins the values of an assignment; else it ends the word. Raises PlanError."""
        if plain.endswith("=") and not token.parts:
            return True
        if not plain and not token.parts:
            raise self._broken("a bracket stands where a word should")
        return False

    def _word(self, depth: int) -> Token:
        token, text, plain = Token(self.line, parts=self._process()), self.text, ""

        def keep(quoted: bool = False) -> None:
            nonlocal plain
            if plain or quoted:
                token.parts.append(TokenPart("text", plain, quoted))
            plain = ""

        while self.at < len(text):
            character = text[self.at]
            if character in " \t\r\n;|&)":
                break
            if character == "(":
                if not self._opens_array(token, plain):
                    break
                keep()
                self.at += 1
                token.array = [part for part in self._tokens(")", depth + 1) if not part.operator]
                return token
            if character == "\\":
                if text.startswith("\\\n", self.at):
                    self.at += 2
                    self.line += 1
                else:
                    plain += text[self.at + 1 : self.at + 2]
                    self.at += 2
            elif character == "'":
                keep()
                end = text.find("'", self.at + 1)
                if end < 0:
                    raise self._broken("a quote is not closed (')")
                plain, self.line = text[self.at + 1 : end], self.line + text.count("\n", self.at, end)
                self.at = end + 1
                keep(quoted=True)
            elif character == '"':
                keep()
                self.at += 1
                token.parts += self._double()
            elif character in "$`":
                keep()
                token.parts.append(self._expansion(False))
            elif character in "<>" and not plain and not token.parts:
                plain += character
                self.at += 1
                while self.at < len(text) and text[self.at] in "<>&":
                    plain += text[self.at]
                    self.at += 1
            else:
                plain += character
                self.at += 1
        keep()
        return token

    def _double(self) -> list[TokenPart]:
        """What stands in double quotes, up to the closing one."""
        parts: list[TokenPart] = []
        plain, text, start = "", self.text, self.line
        while self.at < len(text) and text[self.at] != '"':
            character = text[self.at]
            if character == "\\":
                escaped = text[self.at + 1 : self.at + 2]
                plain += "" if escaped == "\n" else escaped if escaped in '"\\$`' else "\\" + escaped
                self.line += escaped == "\n"
                self.at += 2
            elif character in "$`":
                if plain:
                    parts.append(TokenPart("text", plain, True))
                plain = ""
                parts.append(self._expansion(True))
            else:
                plain += character
                self.line += character == "\n"
                self.at += 1
        if self.at >= len(text):
            self.line = start
            raise self._broken('a quote is not closed (")')
        self.at += 1
        return [*parts, TokenPart("text", plain, True)]

    def _expansion(self, quoted: bool) -> TokenPart:
        """What $ or ` at the place starts."""
        text = self.text
        if text[self.at] == "`":
            return TokenPart("command", self._until("`", self.at + 1), quoted)
        if text.startswith("$((", self.at):
            return TokenPart("arithmetic", self._balanced("(", ")", 3, 2), quoted)
        if text.startswith("$(", self.at):
            return TokenPart("command", self._balanced("(", ")", 2, 1), quoted)
        if text.startswith("${", self.at):
            return TokenPart("variable", self._balanced("{", "}", 2, 1), quoted)
        end = self.at + 1
        if end < len(text) and text[end] in "@*#?$!-0123456789":
            end += 1
        else:
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        name, self.at = text[self.at + 1 : end], end
        return TokenPart("variable", name, quoted) if name else TokenPart("text", "$", quoted)

    def _until(self, mark: str, start: int) -> str:
        end = self.text.find(mark, start)
        if end < 0:
            raise self._broken(f"a quote is not closed ({mark})")
        self.line += self.text.count("\n", start, end)
        self.at = end + 1
        return self.text[start:end]

    def _balanced(self, opening: str, closing: str, skip: int, depth: int) -> str:
        """The text up to the bracket that closes `depth` open ones; quoted brackets count too, as they are rare."""
        start = self.at + skip
        wanted, at = depth, start
        while at < len(self.text):
            character = self.text[at]
            if character == "\\":
                at += 1
            elif character == opening:
                wanted += 1
            elif character == closing:
                wanted -= 1
                if wanted == 0:
                    inner = self.text[start : at - (depth - 1)]
                    self.line += self.text.count("\n", start, at)
                    self.at = at + 1
                    return inner
            at += 1
        raise self._broken(f"a bracket is not closed ({closing})")

    def _broken(self, what: str) -> PlanError:
        return PlanError("files", f"{self.name} line {self.line} is not a readable script: {what}")
