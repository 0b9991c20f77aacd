"""Pages of what was read from existing launch files."""

from __future__ import annotations

from collections.abc import Sequence

from pages import units
from pages.blocks import Block, Facts, Grid, Notes, Verdict
from pages.clean import one_line
from pages.views import shared
from pages.views.shared import Data
from planner.requests import ALL_PATHS, flag_of

_SHOWN = 12
# As launchers.reading says of keys that the estimate does not need.
_NEUTRAL = "changes neither memory nor time as estimated"


def check(result: Data) -> list[Block]:
    """Of import_config: whether what the files run fits, how fast it goes, and what of them was read."""
    blocks: list[Block] = [_verdict(result), *_figures(result), Facts(list(result["formats"].items()), "Files")]
    rows = [[row["field"], _short(row["value"]), row["origin"]] for row in result["read"]]
    blocks += [Grid(("READ", "VALUE", "FROM"), rows)] if rows else []
    return [*blocks, *_left(result), *shared.tail(result)]


def plan(result: Data) -> list[Block]:
    """Of import_config: what is to be known of the plan that the files give."""
    formats = ", ".join(f"{one_line(name)} ({kind})" for name, kind in result["formats"].items())
    blocks: list[Block] = [Verdict(f"{len(result['read'])} values read from {formats}.")]
    if result["refused"]:
        blocks.append(Notes("It cannot be run", [result["refused"]]))
    return [*blocks, *_left(result), *shared.notes("Watch out", result["warnings"])]


def _verdict(result: Data) -> Verdict:
    if result["missing"]:
        return Verdict(f"not known: give {_listed([row['field'] for row in result['missing']])}")
    if result["refused"]:
        return Verdict(f"will not run: {result['refused']}", False)
    return Verdict("fits", True) if result["fits"] else Verdict("will not fit", False)


def _listed(fields: Sequence[str]) -> str:
    flags = {path: flag_of(name) for name, path in ALL_PATHS.items()}
    return ", ".join(dict.fromkeys(flags.get(field, field) for field in fields))


def _figures(result: Data) -> list[Block]:
    if result["per_device_bytes"] is None:
        return []
    span = ""
    if result["high_bytes"] is not None:
        span = f" ({units.memory_range(result['low_bytes'], result['high_bytes'])} with 80 % confidence)"
    memory = f"{units.memory(result['per_device_bytes'])}{span} of {units.memory(result['capacity_bytes'])}"
    rows = [
        ("per device", memory),
        ("step", shared.number("step_s", units.duration)(result)),
        ("tokens/s", shared.number("tokens_per_s", units.count)(result)),
        ("run", shared.number("hours", shared.hours)(result)),
        ("cost", shared.number("usd", units.usd)(result)),
        ("per hour", shared.number("usd_per_hour", units.usd)(result)),
    ]
    return [shared.known(rows)]


def _left(result: Data) -> list[Block]:
    """What of the files was not read, and what they do not say."""
    left = [row for row in result["not_read"] if row["why"] != _NEUTRAL]
    rows = [[row["key"], _short(row["value"]), row["why"]] for row in left[:_SHOWN]]
    neutral = len(result["not_read"]) - len(left)
    more = [f"{len(left) - _SHOWN} more keys were not read"] if len(left) > _SHOWN else []
    more += [f"{neutral} keys that change neither memory nor time were left aside"] if neutral else []
    more += [f"{name} is named and not given" for name in result["refers"]]
    missing = [f"{row['field']}: {row['why']}" for row in result["missing"]]
    return [
        *([Grid(("NOT READ", "VALUE", "WHY"), rows)] if rows else []),
        *([Notes("", more, True)] if more else []),
        *shared.notes("Missing", missing),
    ]


def _short(value: object) -> str:
    return one_line(shared.value(value), 60)
