"""No text of a page moves the cursor, recolours the screen or turns round what is read, whatever block it is in."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from pages.blocks import Block, Details, Figures, Folded, Headline, Note, Prose, Table, Text
from pages.rendering.terminal import render

EVIL = "a\x1b[31mb\x1b]0;title\x07\u202egnp.yaml\u2066\x9b2J"
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
BLOCKS: Sequence[Block] = [
    Headline(EVIL, more=EVIL),
    Figures([(EVIL, EVIL), (EVIL, EVIL, EVIL)], EVIL),
    Table([EVIL, "other"], [[EVIL, EVIL]], title=EVIL),
    Note(EVIL, [EVIL]),
    Text(EVIL, EVIL),
    Prose(EVIL),
    Details(EVIL, [Figures([(EVIL, EVIL)])]),
    Folded([Note(EVIL, [EVIL])]),
]


@pytest.mark.parametrize("width", [20, 80])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: type(block).__name__)
def test_no_block_lets_a_text_steer_the_terminal(block: Block, width: int) -> None:
    shown = render([block], width)
    assert "ab" in shown
    assert not STEERING.search(shown)
