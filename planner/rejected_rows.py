"""What the user's own files would have said, where they cannot be used: never left out in silence."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from estimator.errors import PlanError
from knowledge.machines.catalogue import accelerators_left_out, find_accelerator
from knowledge.models.known import models_left_out
from knowledge.own.rows import LeftOut
from knowledge.prices.book import left_out as prices_left_out


def rejected_rows_of(accelerator: str | None = None, model: str | None = None) -> list[str]:
    """Warnings for results about an accelerator or a model for which the user has a row of their own, but a bad one."""
    return [
        *_of(accelerators_left_out(), accelerator, "the catalogue's figures are used"),
        *_of(models_left_out(), model, "the catalogue's model is used"),
    ]


def rejected_prices_of(accelerator: str) -> list[str]:
    """Warnings for results about the price of an accelerator: of the user's prices that cannot be used, those that may
    be of it."""
    rows = [row for row in prices_left_out() if _may_mean(row, accelerator)]
    return [f"a price of yours is left out: {row}" for row in rows]


def _may_mean(row: LeftOut, accelerator: str) -> bool:
    """Whether a row names the accelerator, or none that is known."""
    known = set()
    for name in row.names:
        with suppress(PlanError):
            known.add(find_accelerator(name).value.id)
    return not known or accelerator in known


def _of(rows: Sequence[LeftOut], name: str | None, instead: str) -> list[str]:
    if name is None:
        return []
    return [f"a file of yours is left out, {instead}: {row}" for row in rows if name.casefold() in row.names]
