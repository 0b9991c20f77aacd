"""Whole training runs whose device-hours were published, beside what the estimate says of them: steps, failures, days.

`accuracy.py totals --write docs/accuracy.md` puts the table there. Nothing is fitted to these runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from estimator.plan.schema import Plan
from knowledge.run_totals import RunTotal, run_totals
from planner.results import RunLength
from planner.training.planned import plan_training
from planner.training.run import run_of

ROWS = Path(__file__).parent.parent / "knowledge" / "measurements" / "run_totals.yaml"
_HEAD = "| run | devices | published device-hours | estimate | 80 % interval | off by | goodput | the published total |"


def totals() -> Iterator[tuple[RunTotal, str, int, RunLength]]:
    """(What was published, what that counts, devices, length of the run as estimated)."""
    published = {row.model: row for row in run_totals() if row.stage == "pre-training" and row.device_hours}
    for row in yaml.safe_load(ROWS.read_text(encoding="utf-8")):
        planned = plan_training(Plan.parse(row["plan"]))
        length = run_of(planned)
        assert length is not None, row["run"]
        yield published[row["run"]], row["counts"], planned.job.machine.count, length


def table() -> str:
    lines = [_HEAD, "| --- |" + " ---: |" * 6 + " --- |"]
    for run, counts, devices, length in totals():
        total = run.device_hours or 0.0
        hours, low, high = (end * devices for end in (length.hours, length.low_hours, length.high_hours))
        goodput = "" if length.goodput is None else f"{100 * length.goodput.share:.0f} %"
        cells = [
            run.model, f"{devices:,}", f"{total:,.0f}", f"{hours:,.0f}", f"{low:,.0f} to {high:,.0f}",
            f"{100 * (hours / total - 1):+.0f} %", goodput, counts,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
