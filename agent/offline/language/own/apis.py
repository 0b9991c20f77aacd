"""The prices of an API that a person names: of outputs, of prompts, of what its cache holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

PRICE = "usd_per_million"
# What a price is of, by the field whose name stands behind it.
_OF = {"output_len": PRICE, "input_len": f"{PRICE}_input", "prefix_hit": f"{PRICE}_cached"}
API_PRICES = tuple(_OF.values())


def api_prices(page: Page) -> dict[str, float]:
    """'$0.60 in and $0.80 out per million', '$3/M input, $15/M output, $0.30 cached'; one that says of nothing what it
    is of is that of all tokens, the last where there are several."""
    priced = sorted((number.row.start, number.values[-1]) for number in page.filled if number.field == PRICE)
    if not priced:
        return {}
    found = {PRICE: priced[-1][1]}
    ends = [start for start, _ in priced[1:]] + [len(page.read.tokens)]
    kinds = [_kind(page, start, end) for (start, _), end in zip(priced, ends, strict=True)]
    if "output_len" in kinds:
        found |= {_OF[kind]: value for kind, (_, value) in zip(kinds, priced, strict=True) if kind}
    return found


def _kind(page: Page, start: int, end: int) -> str | None:
    """What stands behind a price and before the next one, the nearest of these; nothing beyond its clause."""
    stop = next((at for at in range(start, end) if page.read.tokens[at].ends_clause), end)
    named = sorted((name.start, name.field) for name in page.read.found.fields if name.field in _OF)
    return next((field for at, field in named if start < at < stop), None)
