"""Blocks as a PDF, laid out by fpdf2: plots stay vectors, sections are bookmarks, and no browser is needed."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

import matplotlib as mpl
from fpdf import FPDF
from fpdf.enums import Align, XPos, YPos
from fpdf.fonts import FontFace

from pages import blocks as page_blocks
from pages.blocks import Block, capitalised, ranked, value_of
from pages.rendering.clean import clean, one_line
from pages.rendering.pictures import outlined

Colour = tuple[int, int, int]

# The fonts that matplotlib brings, which know every sign that results use.
_FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"
_FACES = {("sans", ""): "DejaVuSans", ("sans", "B"): "DejaVuSans-Bold", ("mono", ""): "DejaVuSansMono"}
_INK, _SOFT, _LINE, _CARD = (29, 37, 48), (91, 102, 117), (213, 218, 225), (245, 247, 250)
_TONES: dict[str, Colour] = {"good": (10, 122, 75), "beware": (178, 92, 0), "bad": (179, 38, 30), "": _INK}
_MARGIN_MM, _CARDS_IN_A_ROW, _CARD_MM, _GAP_MM = 16.0, 4, 17.0, 3.0
_BODY_PT, _SMALL_PT, _LINE_MM = 8.5, 7.5, 4.3
# What must be left of a page below a heading, or it starts the next.
_KEPT_MM = 30.0
_PICTURE_MM = 150.0


def page(title: str, blocks: Sequence[Block], footer: str, made: date) -> bytes:
    """A whole document; what is folded is its appendix, on pages of its own. The same blocks give the same bytes."""
    document = _Document(one_line(title), made)
    lead, appendix = ranked(blocks)
    document.add_page()
    document.words(one_line(title), 16, bold=True)
    first = True
    for block in lead:
        first = first and not isinstance(block, page_blocks.Details)
        _block(document, block, cards=first)
    if appendix:
        document.add_page()
        document.start_section("Appendix")
        document.words("Appendix", 16, bold=True)
        for block in appendix:
            _block(document, block, level=1)
    document.ln(_GAP_MM)
    document.words(one_line(footer), _SMALL_PT, _SOFT)
    return bytes(document.output())


class _Document(FPDF):
    """An A4 page with its own way to write words; `level` of bookmarks follows the sections."""

    def __init__(self, title: str, made: date) -> None:
        super().__init__(format="A4")
        self.name = title
        self.set_title(title)
        self.set_creator("Shardwise")
        self.set_creation_date(datetime.combine(made, time(), UTC))
        self.set_margins(_MARGIN_MM, _MARGIN_MM)
        self.set_auto_page_break(True, _MARGIN_MM + 4)
        for (family, style), name in _FACES.items():
            self.add_font(family, style, _FONTS / f"{name}.ttf")
        self.set_draw_color(*_LINE)

    def footer(self) -> None:
        self.set_y(-_MARGIN_MM)
        self.set_font("sans", "", _SMALL_PT)
        self.set_text_color(*_SOFT)
        self.cell(self.epw / 2, 4, self.name[:80])
        self.cell(self.epw / 2, 4, str(self.page_no()), align=Align.R)

    def words(self, text: str, size: float = _BODY_PT, colour: Colour = _INK, bold: bool = False) -> None:
        """A paragraph over the whole width."""
        self.set_font("sans", "B" if bold else "", size)
        self.set_text_color(*colour)
        height = max(_LINE_MM, size * 0.48)
        self.multi_cell(0, height, text, align=Align.L, new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def room(self, height_mm: float) -> None:
        """Starts a new page where less than that is left of this one."""
        if self.will_page_break(height_mm):
            self.add_page()


def _block(document: _Document, block: Block, cards: bool = False, level: int = 0) -> None:
    match block:
        case page_blocks.Headline(text):
            document.ln(1)
            document.words(one_line(text), 11, _TONES[block.tone], bold=True)
            if block.more:
                document.words(one_line(block.more))
        case page_blocks.Figures(rows, title):
            _title(document, title)
            if cards:
                _cards(document, rows)
            else:
                _table(document, page_blocks.Table(("", ""), [(row[0], value_of(row)) for row in rows]))
        case page_blocks.Table(title=title):
            _title(document, title)
            _table(document, block)
        case page_blocks.Note(title, items, quiet):
            _title(document, title)
            for item in items:
                document.words(f"{'• ' if title else ''}{one_line(item)}", colour=_SOFT if quiet else _INK)
        case page_blocks.Text(text, title):
            _title(document, title)
            _kept(document, text)
        case page_blocks.Prose(markdown):
            document.words(clean(re.sub(r"[*`\\]", "", markdown)))
        case page_blocks.Chart(plot, places):
            _picture(document, plot.title, outlined(plot, places))
        case page_blocks.Details(title, inner):
            _section(document, title, inner, level)
        case page_blocks.Steps():
            document.words(block.line, colour=_SOFT)
        case page_blocks.Folded(inner) | page_blocks.Brief(inner):
            for part in inner:
                _block(document, part, level=level)


def _section(document: _Document, title: str, inner: Sequence[Block], level: int) -> None:
    document.room(_KEPT_MM)
    document.ln(_GAP_MM)
    document.start_section(one_line(title), level=level)
    document.words(one_line(title), 11, bold=True)
    document.line(document.l_margin, document.get_y() + 0.5, document.w - document.r_margin, document.get_y() + 0.5)
    document.ln(2)
    lead, details = ranked(inner)
    for block in (*lead, *details):
        _block(document, block, level=level + 1)


def _title(document: _Document, title: str) -> None:
    if title:
        document.room(_KEPT_MM / 2)
        document.ln(1)
        document.words(one_line(title), bold=True)


def _cards(document: _Document, rows: Sequence[page_blocks.Row]) -> None:
    """Figures in boxes, each with its interval below it."""
    document.ln(2)
    width = (document.epw - (_CARDS_IN_A_ROW - 1) * _GAP_MM) / _CARDS_IN_A_ROW
    top = document.get_y()
    for place, row in enumerate(rows):
        x = document.l_margin + place % _CARDS_IN_A_ROW * (width + _GAP_MM)
        y = top + place // _CARDS_IN_A_ROW * (_CARD_MM + _GAP_MM)
        document.set_fill_color(*_CARD)
        document.rect(x, y, width, _CARD_MM, style="F", round_corners=True, corner_radius=1.5)
        note = row[2] if len(row) > 2 else ""
        lines = ((row[0], 6.5, _SOFT, "", 2.0), (row[1], 11.0, _INK, "B", 5.5), (note, 6.0, _SOFT, "", 11.5))
        for text, size, colour, style, down in lines:
            document.set_xy(x + 2, y + down)
            document.set_font("sans", style, size)
            document.set_text_color(*colour)
            document.cell(width - 4, size * 0.45, _cut(document, one_line(text), width - 4))
    document.set_xy(document.l_margin, top + -(-len(rows) // _CARDS_IN_A_ROW) * (_CARD_MM + _GAP_MM))


def _cut(document: _Document, text: str, width_mm: float) -> str:
    """The text, or as much of it as one line of a card holds."""
    if document.get_string_width(text) <= width_mm:
        return text
    while text and document.get_string_width(f"{text}…") > width_mm:
        text = text[:-1].rstrip(" ,")
    return f"{text}…"


def _table(document: _Document, table: page_blocks.Table) -> None:
    head = [name if name in table.names else capitalised(name) for name in map(one_line, table.head)]
    rows = [[one_line(cell) for cell in row] for row in table.rows]
    document.set_font("sans", "", _SMALL_PT)
    document.set_text_color(*_INK)
    document.set_fill_color(255)
    widths = _widths(document, [*([head] if any(head) else []), *rows])
    document.set_font("sans", "", _SMALL_PT)
    with document.table(
        col_widths=widths, line_height=_LINE_MM - 0.4, padding=(0.5, 2.2, 0.5, 0), align=Align.L,
        text_align=tuple("RIGHT" if name in table.right else "LEFT" for name in table.head),
        borders_layout="HORIZONTAL_LINES", first_row_as_headings=any(head),
        headings_style=FontFace(emphasis="", color=_SOFT),
        width=min(document.epw, sum(widths)),
    ) as drawn:  # fmt: skip
        if any(head):
            drawn.row(head)
        for place, row in enumerate(rows):
            drawn.row(row, style=FontFace(emphasis="B") if place in table.strong else None)
    document.ln(1)


def _widths(document: _Document, rows: Sequence[Sequence[str]]) -> list[float]:
    """What each column needs. Where all are more than a page is wide, those that have more than an even part of it
    share what the others leave by the root of what they need: one twice as long takes fewer than twice the lines."""
    document.set_font("sans", "B", _SMALL_PT)
    needed = [max(document.get_string_width(cell) for cell in column) + 3.5 for column in zip(*rows, strict=True)]
    if sum(needed) <= document.epw:
        return needed
    long = [place for place, width in enumerate(needed) if width > document.epw / len(needed)]
    left = document.epw - sum(width for place, width in enumerate(needed) if place not in long)
    parts = sum(needed[place] ** 0.5 for place in long)
    return [left * width**0.5 / parts if place in long else width for place, width in enumerate(needed)]


def _kept(document: _Document, text: str) -> None:
    """Lines as they are, such as of a file."""
    document.set_font("mono", "", _SMALL_PT - 0.5)
    document.set_text_color(*_INK)
    document.set_fill_color(*_CARD)
    document.multi_cell(0, 3.4, clean(text).rstrip("\n"), align=Align.L, fill=True, padding=2,
                        new_x=XPos.LMARGIN, new_y=YPos.NEXT)  # fmt: skip


def _picture(document: _Document, title: str, drawn: str) -> None:
    """A plot with its title, both on one page."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    height = _PICTURE_MM * float(box[2]) / float(box[1]) if box else _PICTURE_MM / 2
    document.room(height + 8)
    document.ln(1)
    document.words(one_line(title), _SMALL_PT, _SOFT)
    document.image(io.BytesIO(drawn.encode()), w=_PICTURE_MM, h=height, alt_text=one_line(title))
    document.ln(1)
