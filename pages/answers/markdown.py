"""Tables and lists in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pages import figures

_Write = Callable[[Any], str]
# What the columns of tables hold by their heads; of others the first ones hold words, the rest plain figures.
_COLUMNS: dict[str, _Write] = {
    **dict.fromkeys(("step", "time", "mean", "p99", "TTFT", "per token", "first token"), figures.seconds),
    **dict.fromkeys(("tokens/s", "output tokens/s", "tokens/s per device", "tokens/s per user", "samples/s", "TFLOPS"),
                    figures.rate),
    **dict.fromkeys(("MFU", "share", "used", "efficiency", "scaling efficiency"), figures.percent),
    **dict.fromkeys(("per device", "memory", "memory per device", "memory on each"), figures.gib),
    **dict.fromkeys(("cost", "per hour", "per instance-hour", "per million tokens", "per million output tokens",
                     "per M tokens", "owned", "rented"), figures.usd),
    **dict.fromkeys(("fits", "on", "layout", "limited by", "limit", "precision", "rating", "price of"), str),
    "run": figures.hours, "bandwidth": figures.bandwidth, "parameters": figures.whole,
    "tokens a day, all": figures.whole,
}  # fmt: skip


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], words: int = 1) -> str:
    """A table of values, each written as its column's are. So many first columns hold `words`."""
    writers = [_COLUMNS.get(head, str if place < words else figures.plain) for place, head in enumerate(heads)]
    rule = "|".join(" --- " if write is str else " ---: " for write in writers)
    cells = [[cell(head, value) for head, value in zip(heads, row, strict=True)] for row in rows]
    return "\n".join([_row(heads), f"|{rule}|", *map(_row, cells)])


def cell(head: str, value: Any) -> str:
    """A value as it stands under that head: nothing where it is not known; words stand as they are."""
    return "" if value is None else value if isinstance(value, str) else _COLUMNS.get(head, figures.plain)(value)


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
