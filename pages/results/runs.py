"""Pages of measured runs: one that was read, how good one is, the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from knowledge.figures import NONE, gib, label, percent, rate, ratio, seconds, shown
from pages.blocks import Aside, Block, Chart, Figures, Headline, Note, Row, Table, capitalised
from pages.results.basis import notes, tail
from pages.results.columns import Column, table

if TYPE_CHECKING:  # has the module of its own tools behind it
    from planner.history.fitting import LocalCalibration
    from planner.history.results import HistoryRow, LikelyCause, RunHistory, RunRating, RunReading

_VERDICTS = {"good": True, "as expected": True, "low": False, "impossible": False}


# What no plan says and runs lose time to, the most usual first.
_BESIDE_THE_PLAN = (
    "No setting of the plan explains it: look at short samples that are padded, the data loader, evaluation and "
    "checkpoints within the time, another job on the devices, clocks and temperature."
)
_BESIDE_A_DEPLOYMENT = (
    "No setting of the plan explains it: look at longer prompts than were said, fewer requests under way, a client "
    "that waits, another program on the devices, clocks and temperature."
)
_TOLD = 2
_WANTED = {"model": "the model", "cluster.accelerator": "the accelerator", "cluster.count": "how many there are",
           "workload.seq_len": "the sequence length", "workload.global_batch": "the global batch"}  # fmt: skip
# How findings begin that say why a run ended (measure.logs).
_ENDS = ("out of memory", "it stopped")


def rating(result: RunRating) -> list[Block]:
    return [
        verdict(result),
        Aside(_reasons(result)[1]),
        *rated(result),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def verdict(result: RunRating) -> Headline:
    """The answer in one sentence."""
    words = {
        "good": "Yes: that is more than expected",
        "as expected": "Yes: that is as expected",
        "low": "No: that is low",
        "impossible": "That cannot be",
    }[result.verdict]
    expected = f"{rate(result.tokens_low_per_s)} to {rate(result.tokens_high_per_s)} tokens/s are expected"
    measured = f"{rate(result.tokens_per_s)} tokens/s"
    measured += "" if result.mfu is None else f" ({percent(result.mfu)} MFU)"
    return Headline(
        f"{words}. {measured}; {expected}.",
        _VERDICTS[result.verdict],
        beware=bool(result.findings),
        more=_reasons(result)[0],
    )


def _reasons(result: RunRating) -> tuple[str, str]:
    """(Why a run is slow, as far as a plan says, what would help most): nothing of one that is as fast as expected."""
    if result.verdict != "low":
        return "", ""
    beside = _BESIDE_THE_PLAN if result.mfu is not None else _BESIDE_A_DEPLOYMENT
    likely = "Likely: " + "; ".join(map(_cause, result.causes[:_TOLD])) + "." if result.causes else beside
    gains = " · ".join(f"{row.what} ({percent(row.gain)} more)" for row in result.gains[:_TOLD])
    return likely, f"Faster in any case: {gains}." if gains else ""


def rated(result: RunRating) -> list[Block]:
    """A rating below its verdict."""
    rows: list[Row] = [
        ("measured over expected", ratio(result.ratio)),
        ("per device", f"{rate(result.tokens_per_s_per_device)} tokens/s"),
        *([] if result.step_s is None else [("step", seconds(result.step_s))]),
    ]
    if result.percentile is not None:
        rows.append(("percentile", f"{100 * result.percentile:.0f} of {result.alike} measured runs like it"))
    if result.mfu_lower is not None and result.mfu_upper is not None and result.mfu_median is not None:
        quarters = f"{percent(result.mfu_lower)} to {percent(result.mfu_upper)}, median {percent(result.mfu_median)}"
        rows.append(("MFU of good runs", f"{quarters} ({result.reached_by})"))
    return [
        Figures(rows, "How good"),
        *notes("What would explain it", [_cause(row) for row in result.causes]),
        *notes("What would make it faster", [_gain(row) for row in result.gains]),
        *notes("Watch out", result.findings),
    ]


def _cause(row: LikelyCause) -> str:
    return (
        f"{row.what} (with it {rate(row.explained_tokens_per_s)} tokens/s are expected, without it {percent(row.gain)} "
        "more)"
    )


def _gain(row: LikelyCause) -> str:
    return f"{row.what}: {percent(row.gain)} more, {rate(row.explained_tokens_per_s)} tokens/s from where it is"


def reading(result: RunReading) -> list[Block]:
    judged = result.rating
    return [
        _lead(result, judged and verdict(judged)),
        *([Aside(f"One of {result.runs:,} runs there: shardwise measure add keeps all.")] if result.runs > 1 else []),
        *_latencies(result),
        Figures(_figures(result), "Measured"),
        *([Figures(plan_rows(result.plan), "Plan, as far as the log says")] if result.plan else []),
        *(rated(judged) if judged else []),
        *([] if judged else notes("What stands out", result.findings)),
        *notes("Needed to rate it", [f"--set {path}=…" for path in result.missing]),
        *([Note("Software", [f"{name} {version}" for name, version in result.software.items()], True)]
          if result.software else []),
        *[Chart(plot) for plot in result.plots],
        *(tail(judged.warnings, judged.assumptions, judged.evidence) if judged else ()),
    ]  # fmt: skip


def _lead(result: RunReading, judged: Headline | None) -> Headline:
    """What a run reached, why it ended, and whether that is good."""
    if judged is None:
        return Headline(_headline(result), False if result.outcome != "ran" else None, more=_end(result))
    more = " ".join(filter(None, (_end(result), judged.text, judged.more)))
    good = judged.good if result.outcome == "ran" else False
    return Headline(_headline(result), good, more=more, beware=judged.beware)


def _headline(result: RunReading) -> str:
    where = result.name or result.source
    if result.outcome == "oom":
        return f"{where}: it ran out of device memory."
    if result.outcome == "failed":
        return f"{where}: no step of it is in the log."
    if result.kind == "serving" or result.tokens_per_s_per_device is result.step_s is None:
        told = ", ".join(_in_words(result)) or next((row for row in result.findings if not row.startswith(_ENDS)), "")
        return f"{where}: {told or 'no figure'}."
    parts = [seconds(result.step_s) + " a step"] if result.step_s else []
    if result.tokens_per_s_per_device:
        parts.append(f"{rate(result.tokens_per_s_per_device)} tokens/s per device")
    else:
        parts += _rates(result)
    return f"{where}: {', '.join(parts)}.{_wanted(result)}"


# What is first told of a deployment: its rates, then its mean latencies, as the field calls them.
_RATES = {"output_tokens_per_s": "output tokens/s", "requests_per_s": "requests/s",
          "tokens_per_s": "tokens/s on all devices"}  # fmt: skip
_LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E"}
_SHARES = {"mean": "", "p50": "_p50", "p90": "_p90", "p95": "_p95", "p99": "_p99"}


def _rates(result: RunReading) -> list[str]:
    return [f"{rate(result.figures[name])} {words}" for name, words in _RATES.items() if name in result.figures]


def _in_words(result: RunReading) -> list[str]:
    """The figures of a deployment, or of a run that has neither steps nor a rate."""
    figures = result.figures
    rates = _rates(result)
    means = [f"{words} {seconds(figures[f'{name}_s'])}" for name, words in _LATENCIES.items() if f"{name}_s" in figures]
    other = [] if rates or means else [f"{label(name)} {shown(name, value)}" for name, value in figures.items()]
    return [*rates, *means, *other]


def _latencies(result: RunReading) -> list[Block]:
    """Mean and percentiles, a row for each latency."""
    named = {words: [result.figures.get(f"{name}{share}_s") for share in _SHARES.values()]
             for name, words in _LATENCIES.items()}  # fmt: skip
    rows = [(words, *(NONE if value is None else seconds(value) for value in values))
            for words, values in named.items() if any(value is not None for value in values[1:])]  # fmt: skip
    return [Table(("latency", *_SHARES), rows, tuple(_SHARES), "Latency")] if rows else []


def _wanted(result: RunReading) -> str:
    """What is to be said so that it can be rated."""
    names = [_WANTED.get(path, path) for path in result.missing]
    if not names:
        return ""
    return f" To rate that I need {', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]}."


def _end(result: RunReading) -> str:
    """What the log says of why the run ended."""
    reasons = [row for row in result.findings if row.startswith(_ENDS)]
    return " ".join(f"{row[:1].upper()}{row[1:]}." for row in reasons[:_TOLD])


def _figures(result: RunReading) -> list[Row]:
    rows: list[Row] = []
    if result.step_s and result.step_low_s and result.step_high_s:
        span = f"{seconds(result.step_low_s)} to {seconds(result.step_high_s)}"
        rows.append(("step, middle and quartiles", seconds(result.step_s), span))
    told: list[tuple[str, str | None]] = [
        ("steady steps", f"{result.steps:,}" if result.steps else None),
        ("start-up beyond a step", _if(result.start_s, seconds)),
        ("TFLOP/s per device, as printed", _if(result.tflops_per_device, rate)),
        ("MFU, as printed", _if(result.mfu, percent)),
        (f"peak memory ({result.peak_kind})", _if(result.peak_bytes, gib)),
        ("last loss", _if(result.last_loss, lambda value: f"{value:.4g}")),
        ("day", result.date),
        ("id", result.id),
    ]
    rows += [(label, value) for label, value in told if value is not None]
    return rows


def _if(value: float | None, write: Callable[[float], str]) -> str | None:
    return None if value is None else write(value)


def plan_rows(plan: dict[str, object]) -> list[Row]:
    rows: list[Row] = []
    for name, value in plan.items():
        if isinstance(value, dict) and name != "model":
            rows += [(str(key), str(each)) for key, each in value.items() if not isinstance(each, dict)]
        else:
            rows.append((name, str(value) if not isinstance(value, dict) else "its config"))
    return rows


# What a run reached stands first: of a list in a conversation the first columns are shown.
_COLUMNS: Sequence[Column] = (
    "id", "model", ("tokens/s per device", "tokens_per_s_per_device"),
    ("error", lambda row: "" if row.error is None else f"{100 * row.error:+.0f} %"),
    ("expected", "expected_tokens_per_s_per_device"), "platform", "software", "date", "name", "outcome",
    "step_s", "peak_bytes", ("tags", lambda row: ", ".join(row.tags)),
)  # fmt: skip


def history(result: RunHistory) -> list[Block]:
    count = len(result.runs)
    if not count:
        none = "No run of your own is kept yet: shardwise measure add train.log keeps one"
        return [Headline(f"{capitalised(next(iter(result.warnings), none))}.")]
    return [
        Headline(f"{count} run{'s' * (count > 1)} of your own."),
        *_listed(result.runs),
        *([Table(("software", "runs", "bias", "mean error", "from", "to"),
                 [(row.software, str(row.runs), f"{100 * row.bias:+.0f} %", percent(row.mape), row.first_day or "",
                   row.last_day or "") for row in result.drift], ("runs", "bias", "mean error"),
                 "Estimates against them by software")] if result.drift else []),
        *[Chart(plot) for plot in result.plots],
        *tail(result.warnings, ()),
    ]  # fmt: skip


def _listed(rows: Sequence[HistoryRow]) -> list[Block]:
    return table(rows, list(_COLUMNS))


def calibration(result: LocalCalibration) -> list[Block]:
    if not result.families:
        return [
            Headline(
                "No run of your own can be fitted to: one needs its model, accelerator, devices, framework, length, "
                "batch and speed.",
                False,
            )
        ]
    used = [row for row in result.families if row.helps]
    head = (
        "Nothing was changed: held-out runs are not estimated better."
        if not used
        else (
            f"Estimates on {', '.join(row.family for row in used)} rest on your own runs"
            + (f" ({result.file})." if result.file else " once this is written.")
        )
    )
    rows = [
        (
            row.family,
            ", ".join(f"{name} ({count})" for name, count in row.frameworks.items()),
            percent(row.error_before),
            NONE if row.error_after is None else percent(row.error_after),
            f"{row.step:.2f} times",
            "yes" if row.helps else "no",
        )
        for row in result.families
    ]
    return [
        Headline(head, bool(used)),
        Table(
            ("family", "frameworks (runs)", "error before", "error after", "a step takes", "used"),
            rows,
            ("error before", "error after", "a step takes"),
            "Errors of runs that were left out of the fit",
        ),
    ]
