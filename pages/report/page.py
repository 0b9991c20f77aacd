"""A report as data, and as HTML, Markdown: one page that needs nothing else, neither network nor scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

    from planner.plots import Plot


@dataclass(frozen=True)
class Card:
    """One of the figures at the top: `note` is its interval, or what it is set against."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of text below a head. Columns in `numbers` are aligned to the right; rows in `strong` stand out."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()
    strong: Sequence[int] = ()
    title: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    text: Sequence[str] = ()
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    code: str = ""


@dataclass(frozen=True)
class Report:
    """`verdict` is the answer in a sentence; `good` whether it is what the user hopes for."""

    title: str
    verdict: str
    good: bool
    made: str
    cards: Sequence[Card] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=tuple)


def html(report: Report) -> str:
    """A whole HTML document. All text is escaped; pictures are inline SVG."""
    from pages.report.drawing import svg

    def pictures(section: Section) -> list[tuple[str, str]]:
        return [(plot.title, svg(plot)) for plot in section.plots]

    return _environment().get_template("report.html").render(report=report, pictures=pictures, slug=_slug)


def markdown(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """GitHub's Markdown. `pictures` are files to show, by the plot's title; without it plots are left out."""
    lines = [f"# {_md(report.title)}", "", f"**{_md(report.verdict)}**", ""]
    if report.cards:
        rows = [[card.name, card.value, card.note] for card in report.cards]
        lines += [*_md_table(Table(["Figure", "Value", ""], rows)), ""]
    lines += [f"> {_md(warning)}\n" for warning in report.warnings]
    for section in report.sections:
        lines += [f"## {_md(section.title)}", ""]
        lines += [f"{_md(text)}\n" for text in section.text]
        for plot in section.plots:
            if pictures and plot.title in pictures:
                lines += [f"![{_md(plot.title)}]({pictures[plot.title]})", ""]
        for table in section.tables:
            lines += [*([f"**{_md(table.title)}**", ""] if table.title else []), *_md_table(table), ""]
        if section.code:
            lines += ["```yaml", section.code.rstrip().replace("```", "'''"), "```", ""]
    return "\n".join([*lines, f"*{_md(report.made)}*", ""])


def _md_table(table: Table) -> list[str]:
    rule = ["---:" if column in table.numbers else "---" for column in range(len(table.head))]
    rows = [[f"**{cell}**" if number in table.strong and cell else cell for cell in map(_md, row)]
            for number, row in enumerate(table.rows)]  # fmt: skip
    return ["| " + " | ".join(row) + " |" for row in (list(map(_md, table.head)), rule, *rows)]


def _md(text: str) -> str:
    """User text as one line that Markdown does not read as markup."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", line)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@cache
def _environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    source = files("pages.report").joinpath("page.html").read_text(encoding="utf-8")
    options: dict[str, Any] = {
        "autoescape": True,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
    }
    return Environment(loader=DictLoader({"report.html": source}), **options)
