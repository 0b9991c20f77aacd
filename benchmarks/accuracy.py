"""How close the estimates are to measured runs, as calibrated (in-sample: calibration was fitted on these runs).

    python benchmarks/accuracy.py training|memory [--by source|framework|method|accelerator] [--json | --markdown]

Training compares tokens per second and device, memory the peak bytes of the fullest device.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from estimator.errors import PlanError
from measure.cases import RAN_OUT, Case, Kind, memory_cases, training_cases
from measure.scores import Prediction, Score, Summary, by_group, estimated, over_sources, summarise, worst

Predict = Callable[[Case], Prediction]

BASIS = "as calibrated (in-sample)"
GROUPS: dict[str, Callable[[Case], str]] = {
    "source": lambda case: case.source,
    "framework": lambda case: case.plan.training.framework if case.plan else "",
    "method": lambda case: case.plan.training.method if case.plan else "",
    "accelerator": lambda case: (case.plan.cluster.accelerator or "") if case.plan else "",
}
_COLUMNS = ("runs", "MAPE", "median", "bias", "in 10 %", "in 20 %", "covered")


@dataclass(frozen=True)
class Report:
    """What one benchmark found. `refused` are scored cases that the estimator has no answer for, with its words."""

    kind: Kind
    scores: list[Score]
    refused: list[tuple[Case, str]]
    unscored: list[Case]
    ran_out: int
    ran_out_seen: int


def predict_training(case: Case) -> Prediction:
    """Tokens per second and device. Raises PlanError where the plan cannot be estimated."""
    found = estimated(case)
    estimates, best = found.all, found.best
    tokens = estimates.job.tokens_per_step / estimates.job.machine.count
    return Prediction(
        value=float(tokens / estimates.step.seconds[best]),
        low=float(tokens / estimates.high_s[best]),
        high=float(tokens / estimates.low_s[best]),
        fits=bool(estimates.fits[best]),
    )


def predict_memory(case: Case) -> Prediction:
    """Peak bytes of the fullest device as the case's counter shows them. Raises PlanError as predict_training does."""
    found = estimated(case)
    peak = found.peak_bytes(case.observed["peak_kind"])
    spread = 1.0 + found.all.job.calibration.memory_spread
    return Prediction(value=peak, low=peak / spread, high=peak * spread, fits=bool(found.all.fits[found.best]))


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


def as_json(report: Report, by: str) -> str:
    sources, mean = over_sources(report.scores) if report.scores else (0, None)
    result = {
        "benchmark": report.kind,
        "basis": BASIS,
        "overall": asdict(summarise(report.scores)) if report.scores else None,
        "mean_over_sources": asdict(mean) | {"sources": sources} if mean else None,
        f"by_{by}": {name: asdict(group) for name, group in by_group(report.scores, GROUPS[by]).items()},
        "worst": [
            {"id": s.case.id, "observed": s.observed, "predicted": s.prediction.value, "error": s.error}
            for s in worst(report.scores)
        ],
        "ran_out_of_memory": {"runs": report.ran_out, "predicted_not_to_fit": report.ran_out_seen},
        "refused": [{"id": case.id, "reason": reason} for case, reason in report.refused],
        "unscored": [
            {"id": case.id, "source": case.source, "reason": case.reason_unscored} for case in report.unscored
        ],
    }
    return json.dumps(result, indent=1)


def as_text(report: Report, by: str, markdown: bool) -> str:
    heading, item = ("## ", "- ") if markdown else ("", "  ")
    lines = [f"{heading}Accuracy of {report.kind} estimates, {BASIS}", ""]
    if report.scores:
        sources, mean = over_sources(report.scores)
        rows = [("all runs", summarise(report.scores)), (f"mean of {sources} sources", mean)]
        rows += by_group(report.scores, GROUPS[by]).items()
        lines += _table(by, rows, markdown)
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
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in cells]
        return [lines[0], "|" + " --- |" + " ---: |" * len(_COLUMNS), *lines[1:]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kind", choices=["training", "memory"])
    parser.add_argument("--by", choices=sorted(GROUPS), default="source")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON object")
    output.add_argument("--markdown", action="store_true", help="print Markdown tables")
    chosen = parser.parse_args(arguments)
    if chosen.kind == "training":
        report = run("training", training_cases(), predict_training)
    else:
        report = run("memory", memory_cases(), predict_memory)
    print(as_json(report, chosen.by) if chosen.json else as_text(report, chosen.by, chosen.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
