"""Page of the configs of a repository: which will not fit, and what a change makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from estimator.plan.schema import merge
from knowledge import figures
from pages.blocks import Block, Headline, Note, Table
from pages.results.reading import verdict
from planner.fields import leaves

if TYPE_CHECKING:  # has the readers of all programs behind it
    from planner.files.importing import ImportedConfig

OPEN, REFUSED, FITS, TOO_BIG = "not known", "will not run", "fits", "will not fit"
_MOST_CHANGES, _MOST_REMEDIES, _LEAST_CHANGE = 4, 2, 0.01
_FIGURES = ("per_device_bytes", "tokens_per_s", "usd")


@dataclass(frozen=True)
class CheckedConfig:
    """One config with what it names: now, and as it was; None where it is not there."""

    name: str
    now: ImportedConfig | None
    before: ImportedConfig | None = None

    @property
    def status(self) -> str:
        return status(self.now) if self.now else "removed"

    @property
    def fails(self) -> bool:
        return self.status in (REFUSED, TOO_BIG)

    @property
    def failed_before(self) -> bool:
        return self.before is not None and status(self.before) in (REFUSED, TOO_BIG)

    @property
    def changes(self) -> list[str]:
        """What the plan says otherwise than before, 'seq_len 4096 → 8192'."""
        if not self.now or not self.before:
            return []
        now, before = _said(self.now), _said(self.before)
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        return [f"{name.rpartition('.')[2]} {_word(before.get(name))} → {_word(now.get(name))}" for name in names]

    @property
    def is_changed(self) -> bool:
        if not self.now or not self.before:
            return True
        return status(self.before) != self.status or bool(self.changes) or any(
            _differ(getattr(self.before, key), getattr(self.now, key)) for key in _FIGURES
        )  # fmt: skip


def status(result: ImportedConfig) -> str:
    if result.missing:
        return OPEN
    return REFUSED if result.refused else FITS if result.fits else TOO_BIG


def repository(configs: Sequence[CheckedConfig], against: str | None) -> list[Block]:
    known = [row for row in configs if row.status != OPEN]
    shown = [row for row in known if row.fails or row.is_changed] if against else known
    if against is None:
        shown = sorted(shown, key=lambda row: not row.fails)
    rest = len(known) - len(shown)
    still = [f"{_counted(rest)} as in {against}."] if against and rest else []
    return [
        _headline(configs, known),
        *([_table(shown, against)] if shown else []),
        *(_reason(row) for row in shown if row.fails),
        *_left_open(configs),
        *([Note("", still)] if still else []),
    ]


def _headline(configs: Sequence[CheckedConfig], known: Sequence[CheckedConfig]) -> Headline:
    there = [row for row in known if row.now]
    failing = [row for row in there if row.fails]
    if failing:
        return Headline(f"{len(failing)} of {_counted(len(there))} will not fit or run.", False)
    if there:
        return Headline(f"{'The config fits' if len(there) == 1 else f'All {len(there)} configs fit'}.", True)
    return Headline("No config here says enough to be checked." if configs else "No launch config was found.")


def _table(rows: Sequence[CheckedConfig], against: str | None) -> Table:
    keys = [key for key in _FIGURES if any(row.now and getattr(row.now, key) is not None for row in rows)]
    head = ["config", "verdict", *(figures.label(key) for key in keys), *(["changed"] if against else [])]
    cells = [
        [row.name, _verdict(row, against), *(_figure(row, key) for key in keys), *([_changed(row)] if against else [])]
        for row in rows
    ]
    return Table(head, cells, right=head[2 : 2 + len(keys)])


def _verdict(row: CheckedConfig, against: str | None) -> str:
    if against and row.before is None:
        return f"{row.status} (new)"
    before = status(row.before) if row.before and row.now else row.status
    return row.status if before == row.status else f"{row.status} (was: {before})"


def _figure(row: CheckedConfig, key: str) -> str:
    now, before = (getattr(result, key) if result else None for result in (row.now, row.before))
    if now is None:
        return ""
    was = f" (was {figures.shown(key, before)})" if before is not None and _differ(before, now) else ""
    room = f" of {figures.shown('capacity_bytes', row.now.capacity_bytes)}" if row.now and key == _FIGURES[0] else ""
    return f"{figures.shown(key, now)}{room}{was}"


def _changed(row: CheckedConfig) -> str:
    changes = row.changes
    more = [f"{len(changes) - _MOST_CHANGES} more"] if len(changes) > _MOST_CHANGES else []
    return ", ".join([*changes[:_MOST_CHANGES], *more])


def _reason(row: CheckedConfig) -> Note:
    assert row.now
    helps = [remedy.what for remedy in row.now.remedies]
    return Note(row.name, [verdict(row.now).text, *([f"Would fit: {'; or '.join(helps)}."] if helps else [])])


def _left_open(configs: Sequence[CheckedConfig]) -> list[Block]:
    items = [f"{row.name}: {verdict(row.now).text}" for row in configs if row.now and row.status == OPEN]
    return [Note("Not checked", items, quiet=True)] if items else []


def _counted(count: int) -> str:
    return f"{count} config{'s' if count != 1 else ''}"


def _said(result: ImportedConfig) -> dict[str, object]:
    return dict(leaves(merge(result.implied, result.plan)))


def _word(value: object) -> str:
    return "–" if value is None else figures.count(value) if isinstance(value, float) else str(value)


def _differ(before: float | None, now: float | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) > _LEAST_CHANGE * abs(before)
