"""`shardwise prices age` and `prices update`: how old prices are, and published price lists taken over."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict

from estimator.errors import PlanError
from knowledge.prices.age import FRESH_DAYS
from pages.rendering.clean import one_line
from pages.rendering.table import table
from pages.rendering.terminal import screen_width
from planner.records.price_lists import PriceAges, PricesUpdated, price_ages, update_prices
from tui.jsonout import write_json

_MOST_CHANGES = 20


def age(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    """Words narrow it to providers."""
    ages = price_ages()
    wanted = [word.casefold() for word in words]
    if wanted:
        ages = PriceAges([row for row in ages.providers if all(word in row.provider.casefold() for word in wanted)])
        if not ages.providers:
            raise PlanError("prices age", f"no provider has {' '.join(words)!r} in its name")
    if arguments.json:
        write_json(asdict(ages))
    else:
        print(_ages(ages))
        kinds = ", ".join(f"{old} of {count} {kind}" for kind, (count, old) in ages.kinds.items())
        told = f"{ages.stale} of {ages.prices} prices are over {FRESH_DAYS} days old or undated ({kinds})"
        print(f"{told}; shardwise prices update FILE|URL takes over a newer list", file=sys.stderr)
    return 0


def update(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    if len(words) != 1:
        raise PlanError("prices update", "needs one file, folder or https address", ["prices update vms.csv"])
    updated = update_prices(
        words[0],
        arguments.provider,
        arguments.region or (),
        project=arguments.project,
        write=not arguments.dry_run,
    )
    if arguments.json:
        write_json(asdict(updated))
    else:
        print(_told(updated))
    return 0


def _ages(ages: PriceAges) -> str:
    headers = ("PROVIDER", "PRICES", "NEWEST", "DAYS", "OLDEST", "UNDATED", "OLD", "KINDS")
    lines = [
        (
            row.provider,
            str(row.prices),
            row.newest or "–",
            "–" if row.newest_age_days is None else str(row.newest_age_days),
            row.oldest or "–",
            str(row.undated or "–"),
            str(row.stale or "–"),
            ", ".join(f"{count} {kind}" for kind, count in row.kinds.items()),
        )
        for row in ages.providers
    ]
    width = screen_width() if sys.stdout.isatty() else None
    told = table(headers, lines, ("PRICES", "DAYS", "UNDATED", "OLD"), width, optional=("OLDEST", "UNDATED", "KINDS"))
    sources = [
        (row.provider, str(each.prices), each.newest or "–", one_line(each.source, 300))
        for row in ages.providers for each in row.sources
    ]  # fmt: skip
    return f"{told}\n\n{table(('PROVIDER', 'PRICES', 'NEWEST', 'SOURCE'), sources, ('PRICES',), width)}"


def _told(updated: PricesUpdated) -> str:
    plural = updated.rows != 1
    verb = ("are in" if plural else "is in") if updated.written else "would be in"
    lines = [
        f"{updated.rows} price{'s' * plural} of {', '.join(updated.formats)} {verb} {updated.path}",
        f"{updated.replaced} {'stands' if updated.replaced == 1 else 'stand'} in place of the price book's; "
        f"regions: {', '.join(updated.regions) or 'none named'}",
    ]
    lines += [f"left out: {count} row{'s' * (count != 1)} {why}" for why, count in updated.left_out.items()]
    lines += [
        one_line(
            f"{row.provider} {row.instance} {row.region or ''}: {row.before_usd_per_hour:.2f} -> "
            f"{row.usd_per_hour:.2f} USD an hour", 200,
        )
        for row in updated.changes[:_MOST_CHANGES]
    ]  # fmt: skip
    return "\n".join(lines)
