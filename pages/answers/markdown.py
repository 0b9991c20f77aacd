"""Tables and lists in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = (0,)) -> str:
    """A table; the columns at the places in `words` hold words, the others figures."""
    rule = "|".join(" --- " if place in words else " ---: " for place in range(len(heads)))
    return "\n".join([_row(heads), f"|{rule}|", *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|"


def bullets(head: str, lines: Iterable[str]) -> list[str]:
    """A list under its head as one block; none where there is no line."""
    items = [f"- {line}" for line in lines]
    return ["\n".join([head, *items] if head else items)] if items else []


def listed(parts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def label(field: str) -> str:
    """'workload.micro_batch' as 'micro batch'."""
    return field.rpartition(".")[2].replace("_", " ")


def sentence(words: str) -> str:
    """The words with a capital first; names within keep theirs."""
    return f"{words[:1].upper()}{words[1:]}"
