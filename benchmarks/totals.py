"""Whole training runs whose device-hours were published, beside what the estimate says of them: steps, failures, days.

`accuracy.py totals --write docs/accuracy.md` puts the table there. Nothing is fitted to these runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from estimator.plan.schema import Plan
from planner.results import RunLength
from planner.training.planned import plan_training
from planner.training.run import run_of

ROWS = Path(__file__).parent.parent / "knowledge" / "measurements" / "run_totals.yaml"
_HEAD = "| run | devices | published device-hours | estimate | 80 % interval | off by | goodput | the published total |"


def totals() -> Iterator[tuple[dict[str, Any], int, RunLength]]:
    """(row, devices, length of the run as estimated)."""
    for row in yaml.safe_load(ROWS.read_text(encoding="utf-8")):
        planned = plan_training(Plan.parse(row["plan"]))
        length = run_of(planned)
        assert length is not None, row["name"]
        yield row, planned.job.machine.count, length


def table() -> str:
    lines = [_HEAD, "| --- |" + " ---: |" * 6 + " --- |"]
    for row, devices, length in totals():
        hours, low, high = (end * devices for end in (length.hours, length.low_hours, length.high_hours))
        goodput = "" if length.goodput is None else f"{100 * length.goodput.share:.0f} %"
        cells = [
            row["name"], f"{devices:,}", f"{row['device_hours']:,}", f"{hours:,.0f}", f"{low:,.0f} to {high:,.0f}",
            f"{100 * (hours / row['device_hours'] - 1):+.0f} %", goodput, row["counts"],
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
