"""Blocks as GitHub's Markdown: of a report, and wherever an answer is Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pages import blocks as page_blocks
from pages.blocks import Block, capitalised, ranked, value_of
from pages.rendering import fold


def page(title: str, blocks: Sequence[Block], footer: str, pictures: Mapping[str, str] | None = None) -> str:
    """A whole document. `pictures` are files to show, by the plot's title; without it plots are left out."""
    lead, appendix = ranked(blocks)
    behind = f"\n\n# Appendix\n\n{render(appendix, pictures)}" if appendix else ""
    return f"# {_line(title)}\n\n{render(lead, pictures)}{behind}\n\n*{_line(footer)}*\n"


def render(blocks: Sequence[Block], pictures: Mapping[str, str] | None = None, level: int = 2) -> str:
    """The lead, a blank line between its blocks, then the details in one fold; titles of sections are headings of that
    level."""
    lead, details = ranked(blocks)
    told = [_block(block, pictures or {}, level) for block in lead]
    told += [fold.written(render(details, pictures, level))] if details else []
    return "\n\n".join(text for text in told if text)


def _block(block: Block, pictures: Mapping[str, str], level: int) -> str:
    match block:
        case page_blocks.Headline(text):
            return fold.marked(f"**{_line(text)}**{f' {block.more}' if block.more else ''}", block.tone)
        case page_blocks.Figures(rows, title):
            body = [[row[0], value_of(row)] for row in rows]
            return _titled(title, _table(page_blocks.Table(("", ""), body)))
        case page_blocks.Table(title=title):
            return _titled(title, _table(block))
        case page_blocks.Note(title, items):
            return _titled(title, "\n".join(f"- {_line(item)}" for item in items))
        case page_blocks.Text(text, verdict=verdict) if verdict:
            return text.rstrip()
        case page_blocks.Text(text, title):
            code = text.rstrip().replace("```", "'''")
            return _titled(title, f"```\n{code}\n```")
        case page_blocks.Prose(markdown):
            return markdown
        case page_blocks.Chart(plot):
            return f"![{_line(plot.title)}]({pictures[plot.title]})" if plot.title in pictures else ""
        case page_blocks.Details(title, inner):
            return f"{'#' * level} {_line(title)}\n\n{render(inner, pictures, level + 1)}"
        case page_blocks.Steps():
            return block.line
        case page_blocks.Folded(inner) | page_blocks.Brief(inner):
            return fold.written(render(inner, pictures, level))


def _titled(title: str, text: str) -> str:
    return f"**{_line(title)}**\n\n{text}" if title else text


def _table(table: page_blocks.Table) -> str:
    rule = ["---:" if name in table.right else "---" for name in table.head]
    rows = [[f"**{cell}**" if place in table.strong and cell else cell for cell in map(_line, row)]
            for place, row in enumerate(table.rows)]  # fmt: skip
    head = [_line(name if name in table.names else capitalised(name)) for name in table.head]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _line(text: str) -> str:
    """User text as one line that Markdown does not read as markup."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return re.sub(r"([\\`*\[\]<>|#~]|(?<!\w)_|_(?!\w))", r"\\\1", line)
