"""The first lines of an answer, held to what a person takes in at once, whichever model wrote it.

An answer says what matters most first, so what gives way is what stands last: it goes behind `details`, whole or, of a
list, a table or a paragraph, what has no room. The first paragraph, how words were read and what to do next stay.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from pages.blocks import BEFORE, CHANGED, DECIDES, NEXT, READ_AS, UNREAD
from pages.rendering import fold
from pages.rendering.prose import FENCE, split_blocks

LINES, WIDTH = 8, 80
# Lines that a verdict leaves to what a follow-up changed, which is cut before what hurts.
_OF_CHANGES = 2
# A table has two rows at least, as one row says what the verdict does, and says something of what its rows name.
_LEAST_ROWS, _LEAST_COLUMNS, _GAP = 2, 3, 2
_TITLE = re.compile(r"(#+ .+|\*\*[^*\n]+\*\*)")
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9“*`])")
_CLAUSE = re.compile(r"(?<=;) ")
_COUNT = re.compile(r"\|\s*([\d,]+)\s*\|")
_MARKUP = re.compile(r"\*\*|`|\\(?=[^\w\s])")


def held(answer: str) -> str:
    """The answer in Markdown with at most `LINES` lines of `WIDTH` columns before its fold. Files that it shows count
    as none: they were asked for."""
    parts = fold.folded(answer)
    blocks = _blocks(parts.lead)
    if sum(map(_lines, blocks)) <= LINES:
        return answer
    pairs = [_one_line(block) if block.startswith(READ_AS) else (block, "") for block in blocks]
    room = LINES - sum(_lines(block) for block, _ in pairs if _stays(block))
    # A verdict has room first, but leaves some to what a follow-up changed; all else comes as it stands.
    order = sorted(range(len(blocks)), key=lambda place: (not _is_verdict(blocks, place), not _changes(blocks[place])))
    changes = min(sum(_lines(block) for block in blocks if _changes(block)), _OF_CHANGES)
    for place in (place for place in order if not _stays(blocks[place])):
        block, verdict = blocks[place], _is_verdict(blocks, place)
        most = room - changes if verdict else room
        if _lines(block) > most:
            pairs[place] = _cut_verdict(block, most, parts.details) if verdict else _cut(block, room, parts.details)
        room -= _lines(pairs[place][0])
    if not any(_says(block) for block, _ in pairs if block):
        place = next(place for place, block in enumerate(blocks) if _says(block))
        pairs[place] = blocks[place], ""
    behind = "\n\n".join(filter(None, [*(rest for _, rest in pairs), parts.details]))
    kept = [first for first, _ in pairs]
    return "\n\n".join(filter(None, [*kept, fold.written(behind) if behind else ""]))


def _is_verdict(blocks: Sequence[str], place: int) -> bool:
    return not _stays(blocks[place]) and (place == 0 or bool(fold.tone_of(blocks[place])))


def _changes(block: str) -> bool:
    return block.startswith((BEFORE, CHANGED))


def _cut_verdict(block: str, room: int, details: str) -> tuple[str, str]:
    """The verdict itself, in bold, is left whole, and what is told with it as far as there is room."""
    if not fold.tone_of(block):
        first, rest = _cut(block, room, details)
        return (first, rest) if first else (block, "")
    mark, bold, more = [*block.split("**", 2), "", ""][:3]
    if not more.strip():
        return block, ""
    whole, told = f"{mark}**{bold}**", more.strip()
    return _beginning(whole, " ", _SENTENCE.split(told), " ", room) or (whole, told)


def _one_line(readings: str) -> tuple[str, str]:
    """How words were read in one line, and what is left of it."""
    first, rest = _beginning("", "", _CLAUSE.split(readings), " ", 1, " …") or (readings, "")
    return first, f"{READ_AS} {rest}" if rest else ""


def _says(block: str) -> bool:
    """Whether it is part of an answer and no notice of what was not read."""
    return not _stays(block) and not block.startswith(UNREAD)


def _stays(block: str) -> bool:
    return block.startswith((NEXT, READ_AS)) or FENCE.search(block) is not None


def _blocks(markdown: str) -> list[str]:
    """Paragraphs, lists, tables and files; a title is one with what it is of."""
    whole, last = split_blocks(markdown)
    blocks: list[str] = []
    for block in filter(None, (text.strip("\n") for text in (*whole, last))):
        if blocks and _TITLE.fullmatch(blocks[-1]):
            blocks[-1] += f"\n\n{block}"
        else:
            blocks.append(block)
    return blocks


def _lines(block: str) -> int:
    """Lines of a screen that say something."""
    if FENCE.search(block):
        return int(not FENCE.match(block))
    rows = [row for row in block.splitlines() if re.search(r"\w", row)]
    table = [row for row in rows if row.startswith("|")]
    if table:
        head, each = _taken(table)
        return len(rows) - len(table) + head + each * (len(table) - 1)
    return sum(
        len(textwrap.wrap(_MARKUP.sub("", row), WIDTH - _GAP * row.startswith("- "), break_on_hyphens=False))
        for row in rows
    )


def _taken(rows: Sequence[str]) -> tuple[int, int]:
    """Lines that the head of a table takes, and each of its rows: where it is too wide they are broken."""
    each = 1 + (_width(rows[1:]) > WIDTH)
    return max(each, 1 + (_width(rows) > WIDTH)), each


def _first_places(lines: Sequence[str], most: int) -> list[int]:
    """Of the rows below the head and its rule, those in bold before others; of a range both its ends, and what is
    evenly between."""
    starts = [_COUNT.match(line) for line in lines[2:]]
    values = [int(start[1].replace(",", "")) for start in starts if start]
    if len(values) == len(starts) > most > 1 and values == sorted(set(values)):
        return [2 + round((len(values) - 1) * step / (most - 1)) for step in range(most)]
    return sorted(range(2, len(lines)), key=lambda place: "**" not in lines[place])[:most]


def _narrow(rows: Sequence[str]) -> list[str]:
    """The rows without the last columns where a table is too wide for a screen; three stay."""
    cells = [row.strip("|").split("|") for row in rows]
    while len(cells[0]) > _LEAST_COLUMNS and _width(["|".join(row) for row in cells if any(map(_tells, row))]) > WIDTH:
        cells = [row[:-1] for row in cells]
    return [f"|{'|'.join(row)}|" for row in cells]


def _tells(cell: str) -> bool:
    return re.search(r"\w", cell) is not None


def _width(rows: Sequence[str]) -> int:
    """Columns of the rows of a table as they are laid out."""
    cells = [[_MARKUP.sub("", cell.strip()) for cell in row.strip("|").split("|")] for row in rows]
    return sum(max(map(len, column)) + _GAP for column in zip(*cells, strict=False))


def _cut(block: str, room: int, details: str) -> tuple[str, str]:
    """(What has room, what is left) of one block; a verdict is left whole, and only what is listed below it cut."""
    title, gap, body = block.rpartition("\n\n")
    lines = body.splitlines()
    listed = [place for place, line in enumerate(lines) if line.startswith("- ")]
    if all(line.startswith("|") for line in lines):
        table, rest = _fewer_rows(body, room - bool(title), details)
        return f"{title}{gap}{table}" if table else "", f"{title}{gap}{rest}" if rest else ""
    if listed:
        head, items = "\n".join(lines[: listed[0]]), lines[listed[0] :]
        title = f"{title}{gap}{head}" if head else title
        return _beginning(title, "\n", items, "\n", room) or ("", block)
    if fold.tone_of(body):
        return "", block
    clauses = _beginning(title, gap, _CLAUSE.split(body), " ", room, " …")
    if _changes(body) and clauses:
        # As much of what is set otherwise as there is room for.
        return clauses
    sentences = _beginning(title, gap, _SENTENCE.split(body), " ", room)
    if body.startswith(DECIDES):
        # Without what another value does it says nothing.
        return sentences or ("", block)
    return sentences or clauses or ("", block)


def _beginning(
    title: str, gap: str, parts: Sequence[str], between: str, room: int, end: str = ""
) -> tuple[str, str] | None:
    """The title with the first parts that there is room for, and the other parts; None where there is none."""
    for count in range(len(parts) - 1, 0 if not (title and between == "\n") else -1, -1):
        first, rest = between.join(parts[:count]), between.join(parts[count:])
        text = f"{title}{gap}{first}{end}".strip("\n")
        whole = text.count("(") == text.count(")") and not any(text.count(mark) % 2 for mark in ("**", "`"))
        if whole and _lines(text) <= room:
            return text, rest
    return None


def _fewer_rows(block: str, room: int, details: str) -> tuple[str, str]:
    """A table with as many columns and rows as there is room for, rows in bold before others; the whole of it behind,
    unless the details have it."""
    whole = block.splitlines()
    lines = _narrow(whole)
    head, each = _taken([line for line in lines if re.search(r"\w", line)])
    most = (room - head) // each
    left = [line.split("|")[1].strip() for line in lines[2:]]
    places = _first_places(lines, max(most, 0))
    rest = "" if lines == whole and all(name in details for name in left) else block
    # Below the head there is a rule.
    return ("\n".join(lines[place] for place in (0, 1, *sorted(places))) if most >= _LEAST_ROWS else "", rest)
