"""Blocks as one HTML page that needs nothing else, neither network nor scripts. All text is escaped; plots are inline
SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from knowledge.prices.age import is_marked_old
from pages import blocks as page_blocks
from pages.blocks import Block, capitalised, ranked, value_of
from pages.rendering.drawing import svg


def page(title: str, blocks: Sequence[Block], footer: str) -> str:
    """A whole document; the titles of details are its sections, and what is folded its appendix."""
    lead, appendix = ranked(blocks)
    sections = [block for block in (*lead, *appendix) if isinstance(block, page_blocks.Details)]
    links = "".join(f'<a href="#{_slug(section.title)}">{escape(section.title)}</a>' for section in sections)
    nav = f'<nav aria-label="Sections">{links}</nav>' if sections else ""
    first = [block for block in lead if not isinstance(block, page_blocks.Details)]
    behind = ['<h1 class="appendix">Appendix</h1>', *map(_block, appendix)] if appendix else []
    body = "\n".join([*map(_first, first), nav, *(_block(block) for block in lead if block not in first), *behind])
    source = files("pages.rendering").joinpath("page.html").read_text(encoding="utf-8")
    return Template(source).substitute(title=escape(title), body=body, footer=escape(footer))


def render(blocks: Sequence[Block]) -> str:
    """The blocks as elements, for a page that has its own head: the lead, then the details in one fold."""
    lead, details = ranked(blocks)
    return "\n".join(map(_block, [*lead, *([page_blocks.Folded(details)] if details else [])]))


def fragment(blocks: Sequence[Block]) -> str:
    """The blocks as one element with a style of its own, for a page that is not ours, such as a notebook."""
    style = files("pages.rendering").joinpath("fragment.css").read_text(encoding="utf-8")
    return f'<div class="shardwise">\n<style>\n{style}</style>\n{render(blocks)}\n</div>'


def _first(block: Block) -> str:
    """At the top of a page figures are cards, each with its interval below it."""
    if not isinstance(block, page_blocks.Figures):
        return _block(block)
    cards = "\n".join(_card(row[0], row[1], row[2] if len(row) > 2 else "") for row in block.rows)
    return f'<dl class="cards">\n{cards}\n</dl>'


def _card(name: str, value: str, note: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><dd>{escape(note)}</dd></div>"


def _block(block: Block) -> str:
    match block:
        case page_blocks.Headline(text):
            tone = f" {block.tone}" if block.tone in ("bad", "beware") else ""
            return f'<p class="verdict{tone}">{escape(text)}</p>{f"<p>{escape(block.more)}</p>" if block.more else ""}'
        case page_blocks.Figures(rows, title):
            return _table(page_blocks.Table(("", ""), [(row[0], value_of(row)) for row in rows], title=title))
        case page_blocks.Table():
            return _table(block)
        case page_blocks.Note(title, items, quiet):
            return _note(title, items, quiet)
        case page_blocks.Text(text, title):
            return f"{_heading(title)}<pre>{escape(text)}</pre>"
        case page_blocks.Prose(markdown):
            return f"<pre>{escape(markdown)}</pre>"
        case page_blocks.Chart(plot, places):
            return f"<figure><figcaption>{escape(plot.title)}</figcaption>{svg(plot, places=places)}</figure>"
        case page_blocks.Details(title, inner):
            return f'<section>\n<h2 id="{_slug(title)}">{escape(title)}</h2>\n{render(inner)}\n</section>'
        case page_blocks.Steps():
            return f'<p class="next">{escape(block.line)}</p>'
        case page_blocks.Folded(inner) | page_blocks.Brief(inner):
            return f"<details><summary>Details</summary>\n{render(inner)}\n</details>"


def _note(title: str, items: Iterable[str], quiet: bool) -> str:
    lines = "\n".join(f"<p>{escape(item)}</p>" for item in items)
    if not title:
        return lines
    kind = "quiet" if quiet else "note"
    return f'<div class="{kind}" role="note">\n{_heading(title)}{lines}\n</div>'


def _heading(title: str) -> str:
    return f"<h3>{escape(title)}</h3>\n" if title else ""


def _table(table: page_blocks.Table) -> str:
    number = [name in table.right for name in table.head]
    head = _cells("th", [name if name in table.names else capitalised(name) for name in table.head], number)
    strong = [' class="strong"' if place in table.strong else "" for place in range(len(table.rows))]
    rows = "\n".join(
        f"<tr{mark}>{_cells('td', row, number)}</tr>" for mark, row in zip(strong, table.rows, strict=True)
    )
    caption = f"<caption>{escape(table.title)}</caption>\n" if table.title else ""
    start = f"<thead><tr>{head}</tr></thead>\n" if any(table.head) else ""
    return f'<div class="scroll"><table>\n{caption}{start}<tbody>\n{rows}\n</tbody>\n</table></div>'


def _cells(tag: str, cells: Sequence[str], number: Sequence[bool]) -> str:
    kinds = [
        [*(["number"] if right else []), *(["old"] if is_marked_old(cell) else [])]
        for cell, right in zip(cells, number, strict=True)
    ]
    marks = [f' class="{" ".join(kind)}"' if kind else "" for kind in kinds]
    scope = ' scope="col"' if tag == "th" else ""
    return "".join(f"<{tag}{scope}{mark}>{escape(cell)}</{tag}>" for cell, mark in zip(cells, marks, strict=True))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
