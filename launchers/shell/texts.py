"""What bash and its usual commands make of texts: cuts, sums, sequences of numbers, replacements."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

from launchers.shell.lexer import UNKNOWN

_MOST_COUNTED = 1000
_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def cut(value: str, mark: str, pattern: str) -> str:
    """Without the shortest or longest (## and %%) beginning or end of that pattern."""
    if re.search(r"[\[\]$`\\\"']", pattern):
        return UNKNOWN
    ends = range(len(value) + 1)
    cuts = [value[:at] if mark[0] == "#" else value[at:] for at in ends]
    order = cuts if (mark == "#") or (mark == "%%") else cuts[::-1]
    gone = next((part for part in order if fnmatchcase(part, pattern)), "")
    return value[len(gone) :] if mark[0] == "#" else value[: len(value) - len(gone)]


def swapped(value: str, pattern: str, put: str, every: bool) -> str:
    """With `put` in the place of a text, the first or every one; of patterns nothing is known."""
    if re.search(r"[\[\]*?#%$`\\\"']", pattern + put):
        return UNKNOWN
    return value.replace(pattern, put, -1 if every else 1)


def told(words: Sequence[str]) -> str:
    """What seq, echo, printf, which and basename print of known words; of all other commands nothing is known."""
    name, *rest = words or [""]
    if name == "seq":
        return _sequence(rest)
    if any(UNKNOWN in word for word in rest):
        return UNKNOWN
    if name == "echo":
        return " ".join(rest[1:] if rest[:1] in (["-n"], ["-e"]) else rest)
    if name == "printf" and len(rest) > 1 and rest[0] in ("%s", "%s\\n", "%d", "%d\\n"):
        return ("\n" if rest[0].endswith("n") else "").join(rest[1:])
    if name == "which" or (name == "command" and rest[:1] == ["-v"]):
        # Where a program is: its own name says as much.
        return rest[-1] if rest else UNKNOWN
    if name == "basename" and 0 < len(rest) < 3:
        return rest[0].rstrip("/").rpartition("/")[2].removesuffix(rest[1] if len(rest) > 1 else "")
    return UNKNOWN


def _sequence(words: Sequence[str]) -> str:
    """$(seq 16 8 256), which is arithmetic."""
    if not 1 <= len(words) <= 3 or not all(re.fullmatch(r"-?[0-9]{1,6}", word) for word in words):
        return UNKNOWN
    first, *middle, last = map(int, words if len(words) > 1 else ["1", *words])
    step = middle[0] if middle else 1
    numbers = range(first, last + (1 if step > 0 else -1), step) if step else range(0)
    return " ".join(map(str, numbers)) if len(numbers) <= _MOST_COUNTED else UNKNOWN


def counts_devices(command: str) -> bool:
    """Whether a command prints how many devices a node has: of those that are listed, or that a process is let see."""
    counts = re.search(r"\bwc\s+-[lw]|\bgrep\s+-c|\bNF\b|device_count\(\)", command)
    return bool(counts and re.search(r"nvidia-smi|rocm-smi|amd-smi|device_count|VISIBLE_DEVICES", command))


def number(node: ast.expr) -> int:
    """The value of a parsed sum of whole numbers. Raises ValueError for anything else."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -number(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        value = _ARITHMETIC[type(node.op)](number(node.left), number(node.right))
        if abs(value) < 10**15:
            return value
    raise ValueError("not a sum of whole numbers")


def written(texts: Sequence[str]) -> str | None:
    """The file that a command's > or a tee writes."""
    if texts[0] == "tee":
        return next((text for text in texts[1:] if not text.startswith(("-", ">"))), None)
    for place, text in enumerate(texts):
        if text == ">" and place + 1 < len(texts):
            return texts[place + 1]
        if text.startswith(">") and not text.startswith(">>") and len(text) > 1:
            return text[1:]
    return None


def sliced(values: Sequence[str], begin: int, length: str | None) -> list[str]:
    """The words from one place on: ${WORDS[@]:1:3}."""
    begin = max(begin, 0)
    return list(values[begin : None if length is None else begin + int(length)])


@dataclass(frozen=True)
class HandedOn:
    """A text that a command hands on: what it puts it into, and the file that it is made of."""

    text: str
    into: str | None = None
    template: str | None = None


def handed_on(words: Sequence[str], piped: str | None, find: Callable[[str], str | None]) -> HandedOn | None:
    """What tee, cat, cp and sed make of a text that is known, which `find` gives by a file's path; None for others."""
    command = words[0].rpartition("/")[2]
    if command == "tee":
        return HandedOn(piped) if piped is not None else None
    if command not in ("cat", "cp", "sed"):
        return None
    end = next((at for at, word in enumerate(words) if at and word.startswith(">")), len(words))
    programs = [after for before, after in pairwise(words[:end]) if before == "-e"]
    files = [word for word in words[1:end] if not word.startswith("-") and word not in programs]
    if command == "sed" and not programs:
        programs, files = files[:1], files[1:]
    text = find(files[0]) if files else piped
    if text is None:
        return None
    source = files[0] if files else None
    if command == "cp":
        # A copy whose name is not known is found under none, and what it is of is no template.
        known = len(files) == 2 and UNKNOWN not in files[1]
        return HandedOn(text, files[1], source) if known else None
    if command == "cat":
        return HandedOn(text, None, source)
    edited = _edited(text, programs)
    in_place = any(word.startswith("-i") for word in words[:end])
    return None if edited is None else HandedOn(edited, source if in_place else None, source)


_REPLACES = re.compile(
    r"s(?P<mark>[/|#,@:%~!])(?P<old>(?:\\.|(?!(?P=mark)).)*)(?P=mark)(?P<new>(?:\\.|(?!(?P=mark)).)*)(?P=mark)(?P<all>g?)"
)


def _edited(text: str, programs: Sequence[str]) -> str | None:
    """What sed makes of a text by s/old/new/; None for another program, and for patterns that Python has in other
    words."""
    for line in (
        part for program in programs for part in re.split(r";(?=\s*s[/|#,@:%~!])|\n", program) if part.strip()
    ):
        match = _REPLACES.fullmatch(line.strip())
        if match is None or re.search(r"\\[\w(){}+?<>|]", match["old"]) or re.search(r"&|\\\w", match["new"]):
            return None
        # These stand for themselves in sed.
        old = re.sub(r"[(){}+?|]", lambda mark: "\\" + mark[0], match["old"])
        new = re.sub(r"\\(.)", r"\1", match["new"])
        try:
            pattern = re.compile(old)
        except re.error:
            return None
        count = 0 if match["all"] else 1
        text = "\n".join(pattern.sub(lambda _, new=new: new, row, count=count) for row in text.split("\n"))
    return text
