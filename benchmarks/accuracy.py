"""How close the estimates are to measured runs.

    python benchmarks/accuracy.py training|memory [--by source|framework|method|accelerator|all] [--json | --markdown]
    python benchmarks/accuracy.py memory --hold-out rows|source|none
    python benchmarks/accuracy.py inference --hold-out rows|source|none [--json]
    python benchmarks/accuracy.py training|memory|inference --write docs/accuracy.md
    python benchmarks/accuracy.py totals --write docs/accuracy.md
    python benchmarks/accuracy.py headline --write README.md
    python benchmarks/accuracy.py order [--json | --markdown]

Training compares tokens per second and device, memory the peak bytes of the fullest device, inference output tokens
per second, time per token and time to the first one. Every row is estimated with what was fitted without it, a tenth of
the rows at a time, or without its whole source. `--write` puts a table into a file, between its two markers; headline
is the means of docs/accuracy.md. Totals are whole runs whose device-hours were published.
Order asks of measured runs that differ in their layout only whether estimates put them in the measured order.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from benchmarks import headline, serving_accuracy, totals
from estimator.errors import PlanError
from measure.fit.training import held_out_times
from measure.fit.training.held_out_memory import predictions
from measure.fit.training.memory import Peak, peaks
from measure.history.order import Order, by_source, orders
from measure.history.order import summarise as summarise_orders
from measure.history.scores import (
    POOLED,
    SMALLEST_SOURCE,
    CasePrediction,
    Score,
    Summary,
    by_group,
    estimated,
    over_sources,
    summarise,
    worst,
)
from measure.history.training import RAN_OUT, Case, Kind, limits, memory_cases, training_cases

Predict = Callable[[Case], CasePrediction]

BASES = {
    "none": "as calibrated (in-sample)",
    "rows": "each row left out of the fit (ten folds)",
    "source": "each source left out of the fit",
}
MEASURED = {"training": "tokens/s and device of", "memory": "peak memory of"}


def markers(kind: str) -> tuple[str, str]:
    """The lines of a file that a table stands between."""
    return f"<!-- {kind} table -->", f"<!-- end of {kind} table -->"


GROUPS: dict[str, Callable[[Case], str]] = {
    "source": lambda case: case.source,
    "framework": lambda case: case.plan.training.framework if case.plan else "",
    "method": lambda case: case.plan.training.method if case.plan else "",
    "accelerator": lambda case: (case.plan.cluster.accelerator or "") if case.plan else "",
}
_COLUMNS = ("runs", "MAPE", "median", "bias", "in 10 %", "in 20 %", "covered")


@dataclass(frozen=True)
class Report:
    """What one benchmark found. `refused` are scored cases that the estimator has no answer for, with its words.

    `ran` counts runs that ran, measured peak or not, `ran_refused` those of them that are not said to fit, and
    `ran_over` those that are said not to: the others may not, by the upper end of their interval.
    """

    kind: Kind
    scores: list[Score]
    refused: list[tuple[Case, str]]
    unscored: list[Case]
    ran_out: int
    ran_out_seen: int
    basis: str = BASES["none"]
    ran: int = 0
    ran_refused: int = 0
    ran_over: int = 0

    @property
    def said_of_runs(self) -> tuple[str, str]:
        """Of the runs that ran, which part is said not to fit, and which that it may not."""
        over, close = self.ran_over / self.ran, (self.ran_refused - self.ran_over) / self.ran
        return f"{100.0 * over:.1f} %", f"{100.0 * close:.1f} %"


def predict_training(case: Case) -> CasePrediction:
    """Tokens per second and device. Raises PlanError where the plan cannot be estimated."""
    found = estimated(case)
    estimates, best = found.all, found.best
    tokens = estimates.job.tokens_per_step / estimates.job.machine.count
    return CasePrediction(
        value=float(tokens / estimates.step.seconds[best]),
        low=float(tokens / estimates.high_s[best]),
        high=float(tokens / estimates.low_s[best]),
        fits=bool(estimates.fits[best]),
    )


def predict_memory(case: Case) -> CasePrediction:
    """Peak bytes of the fullest device as the case's counter shows them. Raises PlanError as predict_training does."""
    found = estimated(case)
    peak, job = found.peak_bytes(case.observed["peak_kind"]), found.all.job
    low, high = peak / (1.0 + job.memory_below), peak * (1.0 + job.memory_above)
    over = bool(found.all.memory.total[found.best] > job.usable_bytes)
    return CasePrediction(value=peak, low=low, high=high, fits=bool(found.all.fits[found.best]), over=over)


def run(kind: Kind, cases: Sequence[Case], predict: Predict) -> Report:
    """Scores every case that counts; a run that went out of memory is seen when our estimate does not fit either."""
    scores: list[Score] = []
    refused: list[tuple[Case, str]] = []
    ran_out = seen = 0
    for case in cases:
        went_out = case.reason_unscored == RAN_OUT
        if case.reason_unscored is not None and not went_out:
            continue
        try:
            prediction = predict(case)
        except PlanError as error:
            refused.append((case, str(error)))
            continue
        if went_out:
            ran_out += 1
            seen += not prediction.fits
            continue
        measured = case.observed["tokens_per_s_per_device" if kind == "training" else "peak_bytes"]
        if measured:
            scores.append(Score(case, measured, prediction))
    unscored = [case for case in cases if case.reason_unscored not in (None, RAN_OUT)]
    return Report(kind, scores, refused, unscored, ran_out, seen)


def _ran() -> list[Case]:
    """Runs that ran, whether or not their peak was read."""
    return [case for case in training_cases() if case.reason_unscored is None]


@cache
def _peaks() -> tuple[list[Peak], list[Peak]]:
    """What is held out in turn: of the memory cases those that count or ran out, and of the runs that ran."""
    return peaks(case for case in memory_cases() if case.reason_unscored in (None, RAN_OUT)), peaks(_ran())


def _as_calibrated(cases: Sequence[Case]) -> dict[str, CasePrediction]:
    """By case id, what is said of the cases that there is an answer for."""
    found = {}
    for case in cases:
        if case.plan is not None:
            with suppress(PlanError):
                found[case.id] = predict_memory(case)
    return found


def run_memory(hold_out: str) -> Report:
    """The memory benchmark with estimates that `hold_out` says."""
    cases = memory_cases()
    if hold_out == "none":
        found, of_ran = (_as_calibrated(part) for part in (cases, _ran()))
    else:
        found, of_ran = predictions(*_peaks(), "source" if hold_out == "source" else "rows")

    def predict(case: Case) -> CasePrediction:
        if case.id not in found:
            raise PlanError("plan", "has no estimate")
        return found[case.id]

    report = run("memory", cases, predict)
    said = [*of_ran.values(), *(score.prediction for score in report.scores)]
    refused, over = (sum(test) for test in ([not each.fits for each in said], [each.over for each in said]))
    return replace(report, basis=BASES[hold_out], ran=len(said), ran_refused=refused, ran_over=over)


def run_training(hold_out: str) -> Report:
    """The benchmark of speeds with estimates that `hold_out` says."""
    cases = training_cases()
    if hold_out == "none":
        return run("training", cases, predict_training)
    found = held_out_times.predictions("source" if hold_out == "source" else "rows")

    def predict(case: Case) -> CasePrediction:
        return found[case.id] if case.id in found else predict_training(case)

    return replace(run("training", cases, predict), basis=BASES[hold_out])


def report_of(kind: Kind, hold_out: str) -> Report:
    return run_training(hold_out) if kind == "training" else run_memory(hold_out)


def table(kind: Kind) -> str:
    """The table of docs/accuracy.md: each source with rows left out, and its error when it is left out whole."""
    report, apart_report = report_of(kind, "rows"), report_of(kind, "source")
    rows, source = report.scores, apart_report.scores
    known = limits(kind)
    counts = Counter(score.case.source for score in rows)

    def group(case: Case) -> str:
        return case.source if counts[case.source] >= SMALLEST_SOURCE or case.source in known else POOLED

    apart = by_group(source, group)
    sources, mean = over_sources(rows)
    _, mean_apart = over_sources(source)
    lines = [
        f"| {MEASURED[kind]} | runs | mean error | median | bias | in 10 % | covered | mean, source unseen | covered |"
    ]
    lines.append("| --- |" + " ---: |" * 8)
    parts = [(f"**mean of {sources} sources**", mean, mean_apart)]
    parts += [(name, part, apart[name]) for name, part in by_group(rows, group).items()]
    for name, part, other in parts:
        note = f" ({known[name]})" if name in known else ""
        shares = [f"{value:.1%}" for value in (part.mape, part.median_error)]
        shares += [f"{part.bias:+.1%}", f"{part.within_10:.0%}", f"{part.coverage:.0%}"]
        shares += [f"{other.mape:.1%}", f"{other.coverage:.0%}"]
        lines.append(
            " | ".join([f"| {name}{note}", str(part.runs), *shares]).replace("%", " %").replace("  %", " %") + " |"
        )
    if kind == "memory":
        (over, close), (apart_over, apart_close) = report.said_of_runs, apart_report.said_of_runs
        ran = f"Of {report.ran} runs that ran, {over} are said not to fit and {close} that they may not (with whole"
        ran += f" sources left out {apart_over} and {apart_close}); of {report.ran_out} that ran out of memory,"
        lines += ["", f"{ran} {report.ran_out_seen} are not said to fit."]
    return "\n".join(lines)


def write_table(path: Path, kind: Kind | Literal["inference", "headline", "totals"]) -> None:
    """Puts a table between its two markers of a file. Raises ValueError where they are missing."""
    text = path.read_text(encoding="utf-8")
    first, last = markers(kind)
    start, end = re.escape(first), re.escape(last)
    if not re.search(f"{start}.*{end}", text, re.DOTALL):
        raise ValueError(f"{path} has no lines {first} and {last}")
    match kind:
        case "headline":
            made = headline.table()
        case "totals":
            made = totals.table()
        case "inference":
            made = serving_accuracy.table()
        case _:
            made = table(kind)
    whole = f"{first}\n{made}\n{last}"
    partial = path.with_suffix(".partial")
    partial.write_text(re.sub(f"{start}.*{end}", lambda _: whole, text, flags=re.DOTALL), encoding="utf-8")
    partial.replace(path)


def as_json(report: Report, by: str) -> str:
    sources, mean = over_sources(report.scores) if report.scores else (0, None)
    result = {
        "benchmark": report.kind,
        "basis": report.basis,
        "overall": asdict(summarise(report.scores)) if report.scores else None,
        "mean_over_sources": asdict(mean) | {"sources": sources} if mean else None,
        **{f"by_{name}": _as_dicts(by_group(report.scores, GROUPS[name])) for name in _groups(by)},
        "worst": [
            {"id": s.case.id, "observed": s.observed, "predicted": s.prediction.value, "error": s.error}
            for s in worst(report.scores)
        ],
        "ran_out_of_memory": {"runs": report.ran_out, "predicted_not_to_fit": report.ran_out_seen},
        "ran": {
            "runs": report.ran,
            "predicted_not_to_fit": report.ran_refused,
            "over_without_interval": report.ran_over,
        },
        "refused": [{"id": case.id, "reason": reason} for case, reason in report.refused],
        "unscored": [
            {"id": case.id, "source": case.source, "reason": case.reason_unscored} for case in report.unscored
        ],
    }
    return json.dumps(result, indent=1)


def _groups(by: str) -> list[str]:
    return list(GROUPS) if by == "all" else [by]


def _as_dicts(groups: dict[str, Summary]) -> dict[str, dict[str, float]]:
    return {name: asdict(group) for name, group in groups.items()}


def as_text(report: Report, by: str, markdown: bool) -> str:
    heading, item = ("## ", "- ") if markdown else ("", "  ")
    lines = [f"{heading}Accuracy of {report.kind} estimates, {report.basis}", ""]
    if report.scores:
        sources, mean = over_sources(report.scores)
        rows = [("all runs", summarise(report.scores)), (f"mean of {sources} sources", mean)]
        for name in _groups(by):
            rows += by_group(report.scores, GROUPS[name]).items()
            lines += [*_table(name, rows, markdown), ""]
            rows = []
        lines.pop()
        unit, scale = ("tokens/s/device", 1.0) if report.kind == "training" else ("GiB", 2.0**30)
        lines += ["", f"{heading}Furthest off ({unit}: measured, estimated)", ""]
        lines += [
            f"{item}{s.case.id}: {s.observed / scale:,.4g}, {s.prediction.value / scale:,.4g} ({s.error:+.0%})"
            for s in worst(report.scores)
        ]
    else:
        lines.append("Nothing was scored.")
    if report.ran_out:
        lines += ["", f"Ran out of memory: {report.ran_out}, of which {report.ran_out_seen} are estimated not to fit."]
    if report.ran:
        over, close = report.said_of_runs
        lines += ["", f"Ran: {report.ran}, of which {over} are said not to fit and {close} that they may not."]
    if report.refused:
        lines += ["", f"{heading}No estimate for {len(report.refused)} cases that count", ""]
        lines += [f"{item}{case.id}: {reason}" for case, reason in report.refused]
    counted = Counter((case.source, case.reason_unscored) for case in report.unscored)
    lines += ["", f"{heading}Not scored: {len(report.unscored)}", ""]
    lines += [f"{item}{count} of {source}: {reason}" for (source, reason), count in counted.most_common()]
    return "\n".join(lines)


def _table(by: str, rows: Sequence[tuple[str, Summary]], markdown: bool) -> list[str]:
    cells: list[tuple[str, ...]] = [(by, *_COLUMNS)]
    for name, part in rows:
        shares = (part.mape, part.median_error, part.bias, part.within_10, part.within_20, part.coverage)
        cells.append(
            (name, str(part.runs), *(f"{share:+.1%}" if i == 2 else f"{share:.1%}" for i, share in enumerate(shares)))
        )
    return _laid_out(cells, markdown)


def _laid_out(cells: Sequence[tuple[str, ...]], markdown: bool) -> list[str]:
    """The lines of a table whose first row is its head; all columns but the first are right-aligned."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in cells]
        return [lines[0], "|" + " --- |" + " ---: |" * (len(cells[0]) - 1), *lines[1:]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


def order_as_text(found: Sequence[Order], markdown: bool = False) -> str:
    """A table of the groups by source, and the groups with the lowest correlations."""
    heading, item = ("## ", "- ") if markdown else ("", "  ")
    lines = [f"{heading}Order of layouts of one job, as calibrated (in-sample)", ""]
    if not found:
        return "\n".join([*lines, "No two measured runs differ in their layout only."])
    cells: list[tuple[str, ...]] = [
        ("source", "groups", "layouts", "rank correlation", "groups of 4+", "best in top 3")
    ]
    for name, part in [("all groups", summarise_orders(found)), *by_source(found).items()]:
        share = "" if part.found is None else f"{part.found:.0%}"
        cells.append((name, str(part.groups), str(part.layouts), f"{part.correlation:.2f}", str(part.tops), share))
    lines += [*_laid_out(cells, markdown), "", f"{heading}Lowest correlations (best: measured, estimated)", ""]
    for order in sorted(found, key=lambda order: order.correlation)[:10]:
        best = " and ".join(order.cases[int(speeds.argmax())].id for speeds in (order.measured, order.estimated))
        lines.append(f"{item}{order.correlation:.2f} of {len(order.cases)} layouts: {best}")
    return "\n".join(lines)


def order_as_json(found: Sequence[Order]) -> str:
    result = {
        "benchmark": "order",
        "overall": asdict(summarise_orders(found)) if found else None,
        "by_source": {name: asdict(part) for name, part in by_source(found).items()},
        "groups": [
            {
                "source": order.source,
                "correlation": order.correlation,
                "found": order.best_is_near_top,
                "layouts": [
                    {"id": case.id, "observed": float(observed), "predicted": float(predicted)}
                    for case, observed, predicted in zip(order.cases, order.measured, order.estimated, strict=True)
                ],
            }
            for order in found
        ],
    }
    return json.dumps(result, indent=1)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kind", choices=["training", "memory", "inference", "order", "headline", "totals"])
    parser.add_argument("--by", choices=[*sorted(GROUPS), "all"], default="source")
    parser.add_argument(
        "--hold-out", choices=sorted(BASES), default="rows", help="what the fit was without (default: rows)"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--markdown", action="store_true", help="print Markdown tables")
    output.add_argument("--write", type=Path, metavar="FILE", help="put the table into FILE")
    chosen = parser.parse_args(arguments)
    if chosen.write:
        try:
            write_table(chosen.write, chosen.kind)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        return 0
    if chosen.kind in ("headline", "totals"):
        print(headline.table() if chosen.kind == "headline" else totals.table())
        return 0
    if chosen.kind == "order":
        found = orders(training_cases())
        print(order_as_json(found) if chosen.json else order_as_text(found, chosen.markdown))
        return 0
    if chosen.kind == "inference":
        hold_out = chosen.hold_out
        print(
            serving_accuracy.as_json(hold_out) if chosen.json else serving_accuracy.as_text(hold_out, BASES[hold_out])
        )
        return 0
    report = report_of(chosen.kind, chosen.hold_out)
    print(as_json(report, chosen.by) if chosen.json else as_text(report, chosen.by, chosen.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
