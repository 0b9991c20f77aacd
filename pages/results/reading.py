"""Pages of what was read from existing launch files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knowledge import figures
from pages.blocks import Block, Figures, Headline, Note, Table
from pages.rendering.clean import one_line
from pages.results.basis import notes, tail
from pages.results.columns import listed
from pages.results.estimate import remedies
from planner.fields import leaves
from planner.requests import ALL_PATHS, flag_of

if TYPE_CHECKING:  # has the readers of all programs behind it
    from planner.files.importing import ImportedConfig
    from planner.result import Assumption

_SHOWN = 12
_ASSUMED = {
    "workload.input_len": "prompts of {} tokens",
    "workload.output_len": "answers of {} tokens",
    "workload.concurrency": "{} at once",
    "workload.response_len": "answers of {} tokens",
    "workload.group_size": "{} samples of a prompt",
    "workload.rollout": "samples made {}",
    "workload.micro_batch": "{} rows at once",
    "workload.optimizer": "{}",
    "workload.precision": "{}",
    "layout.recompute": "recompute {}",
    "layout.offload": "offload {}",
}
# As launchers.reading says of keys that the estimate does not need.
_NEUTRAL = "affects neither memory nor time"


def check(result: ImportedConfig) -> list[Block]:
    """Whether what the files run fits, how fast it goes, and what of them was read."""
    rows = [[row.field, _short(row.value), row.origin] for row in result.read]
    return [
        verdict(result),
        *notes("It hangs on what no file says", [_hinge(row) for row in result.hangs_on]),
        *estimated(result),
        *remedies(result.remedies, "What would make it fit", "why"),
        Figures(list(result.formats.items()), "Files"),
        *([Table(("read", "value", "from"), rows)] if rows else []),
        *_left(result),
        *tail(result.warnings, result.assumptions),
    ]


def plan(result: ImportedConfig) -> list[Block]:
    """What is to be known of the plan that the files give."""
    formats = ", ".join(f"{one_line(name)} ({kind})" for name, kind in result.formats.items())
    return [
        Headline(f"{len(result.read)} values read from {formats}."),
        *notes("It cannot be run", [result.refused] if result.refused else []),
        *_left(result),
        *notes("Watch out", result.warnings),
    ]


def verdict(result: ImportedConfig) -> Headline:
    """'It fits: 34.1 GiB (29.0–40.2) of 79.7 GiB per device.'"""
    if (whole := next((row for row in result.missing if row.field == "workload"), None)) is not None:
        return Headline(f"No verdict: {whole.why}.")
    if result.missing:
        return Headline(f"Not known: give {_listed([row.field for row in result.missing])}.")
    if result.refused:
        return Headline(f"It will not run: {result.refused}.", False)
    words = f": {_memory(result)} per device{_assumed_load(result)}" if result.per_device_bytes is not None else ""
    return Headline(f"{'It fits' if result.fits else 'It does not fit'}{words}.", bool(result.fits))


def _assumed_load(result: ImportedConfig) -> str:
    """What the estimate has a server answer, and a training do, as far as no file and no program says it."""
    told = dict(leaves(result.implied))
    values = {row.field: figures.plain(row.value) for row in result.assumptions if row.field not in told}
    load = [words.format(values[field]) for field, words in _ASSUMED.items() if field in values]
    return f", assuming {', '.join(load)}" if load else ""


def _hinge(row: Assumption) -> str:
    return f"{row.field} {figures.plain(row.value)}: {row.why}"


def _memory(result: ImportedConfig) -> str:
    return f"{figures.held(result, 'per_device_bytes')} of {figures.shown('capacity_bytes', result.capacity_bytes)}"


def _listed(fields: Sequence[str]) -> str:
    flags = {path: flag_of(name) for name, path in ALL_PATHS.items()}
    return ", ".join(dict.fromkeys(flags.get(field, field) for field in fields))


def estimated(result: ImportedConfig) -> list[Block]:
    """What the plan that was read comes to, as far as it is known."""
    if result.per_device_bytes is None:
        return []
    keys = ("step_s", "tokens_per_s", "hours", "usd", "usd_per_hour")
    return listed(result, [(figures.label("per_device_bytes"), _memory), *keys])


def _left(result: ImportedConfig) -> list[Block]:
    """What of the files was not read, and what they do not say."""
    left = [row for row in result.not_read if row.why != _NEUTRAL]
    rows = [[row.key, _short(row.value), row.why] for row in left[:_SHOWN]]
    neutral = len(result.not_read) - len(left)
    more = [f"{len(left) - _SHOWN} more keys were not read"] if len(left) > _SHOWN else []
    more += [f"{neutral} keys that affect neither memory nor time were ignored"] if neutral else []
    more += [f"{name} is named and not given" for name in result.refers]
    return [
        *([Table(("not read", "value", "why"), rows)] if rows else []),
        *([Note("", more, True)] if more else []),
        *notes("Missing", [f"{row.field}: {row.why}" for row in result.missing]),
    ]


def _short(value: object) -> str:
    """As the file has it, so that it is found there."""
    return one_line(str(value) if isinstance(value, int) and not isinstance(value, bool) else figures.plain(value), 60)
