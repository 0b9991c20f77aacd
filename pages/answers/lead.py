"""The first lines of an answer: what hurts, the verdict with the figures asked for, what decides them, what to do next.

Everything else of an answer is folded behind these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from estimator.plan.schema import Training
from knowledge import figures
from pages.answers import cost as money
from pages.answers import memory
from pages.answers.plan import complete, hardware_words, layout_words, run_words
from pages.blocks import READ_AS, Aside, Block, Folded, Headline, Note, Prose, Steps, Table, capitalised, ranked
from pages.results.estimate import host_runs_out, memory_words, misfit
from pages.results.limits import doubt_words, in_doubt, limit_words, untold
from pages.results.money import unpriced
from pages.results.needs import needs
from planner.money.results import CostEstimate
from planner.results import FitCheck, Remedy, Throughput, TrainingEstimate
from planner.serving.results import ServingEstimate

# Rows of a range, of which no next steps are told: both ends, and what is between them.
_ROWS_OF_A_RANGE = 5
# Rows of a table and readings that stand at first; the whole is behind them.
MOST_ROWS, _MOST_READINGS = 3, 2
# Figures of a run that the answer before was about too.
_MOST_AGAIN = 2
# Figures that were asked for in the first sentence.
_MOST_WISHED = 2
# Characters of a cell that stands at first; before the first figure, where it says what that is of, and elsewhere.
_LONGEST_NAME, _LONGEST = 36, 24
# Characters of a row of it, which a narrow screen beside the pane has.
_WIDEST = 72
# Between two columns, as Markdown is shown.
_GAP, _SHORT_TITLE = 3, 12
_STEP = ("step_s", "tokens_per_s", "mfu")
_ALWAYS = ("hours", "usd", *_STEP)
# What people name, by the question that it belongs to.
_ORDERS = {"time": _STEP, "faster": _STEP, "run": ("hours", *_STEP), "cost": ("usd", "hours", *_STEP),
           "device_hours": ("device_hours", "usd", "hours")}  # fmt: skip


def training(
    estimate: TrainingEstimate, bill: CostEstimate | None, fit: FitCheck | None, asked: Sequence[str],
    best: bool = False, again: bool = False, elsewhere: Collection[str] = (),
) -> list[Block]:  # fmt: skip
    """`asked` are the intents and the figures that were named, those that matter most first; `best` says that a search
    chose the layout that the estimate was given, `again` that the answer before was about the same run, of which only
    what is asked now is told. `elsewhere` are the figures that are told beside the answer before."""
    plan, need = complete(estimate.plan), estimate.memory
    run = f"{run_words(plan)} on {hardware_words(plan)}"
    if not need.fits:
        text = f"It {misfit(need)}: {memory_words(need)}."
        return [Headline(text, False, f"{capitalised(run)}."), *_ways(fit)]
    decides = f"Bottleneck: {estimate.bottleneck}"
    if estimate.limits:
        decides += f", {figures.percent(estimate.limits[0].share)} of a step"
    framework = plan.workload.framework if isinstance(plan.workload, Training) else ""
    title = f"Best layout: {framework}," if best else f"Layout: {framework},"
    if estimate.layout_chosen and not best:
        # Another framework may be faster.
        title = f"Best layout with {framework}:"
    layout = f"{title} {layout_words(plan)}."
    values = _figures(estimate, bill, asked, _MOST_AGAIN if again else len(_ALWAYS))
    first, *names = values
    more = [values[name] for name in names if name not in elsewhere]
    told = f"{capitalised(run)}: {', '.join([f'**{values[first]}**', *more])}."
    if "usd" in names and "usd" not in {*_wished(asked), *elsewhere}:
        told = " ".join([told, doubt_words(_price_doubts(estimate, bill)[:1])]).strip()
    beside, sought = (money.beside(bill), money.sought(bill)) if bill else ([], "")
    sought = sought or (_faster(estimate) if "faster" in asked and "why" not in asked else "")
    if bill and "co2_kg" in _wished(asked):
        beside = [Prose(money.carbon_by_hours(bill)), *beside]
    if "layout" in asked:
        head = _verdict(estimate, bill, asked, layout, "fit" not in asked)
        left = [told] if layout in head.text else [layout, told]
        return [head, *map(Prose, left), *beside, Aside(f"{decides}.")]
    wished = [values[name] for name in _wished(asked) if name in values][:_MOST_WISHED]
    if "why" in asked and not set(map(_last, asked)) & _OF_LEAD:
        # What binds it is the figure asked for.
        wished = [decides]
    figure = " ".join(filter(None, (sought, f"{', '.join(wished)}: {run}." if wished else "")))
    # A figure that is named before it comes before whether it fits, which is told in any case.
    led = "fit" not in asked or bool(sought) or ("." in asked[0] and _last(asked[0]) in _OF_LEAD)
    head = _verdict(estimate, bill, asked, figure, led)
    if bill and bill.usd is None and "usd" in _wished(asked):
        head = replace(head, text=f"{unpriced(bill)}. {head.text}", beware=True)
    if figure and figure in head.text:
        others = [text for name, text in values.items() if text not in wished and name not in elsewhere]
        told = f"{capitalised(', '.join(others))}." if others else ""
    how = [] if again else [Aside(layout if decides in head.text else f"{decides}. {layout}")]
    if sought and sought not in head.text:
        # Behind a verdict that comes first as something hurts.
        beside = [Prose(money.titled(sought)), *beside]
    return [head, *([Prose(told)] if told else []), *_roomier(fit), *beside, *how]


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _faster(estimate: TrainingEstimate) -> str:
    """The change that gains most of those that were tried."""
    if estimate.improvements is None:
        return ""
    best = max(estimate.improvements, key=lambda row: row.gain, default=None)
    if best is None:
        return "No change that fits makes it more than a percent faster."
    return f"Faster: {best.what}, {figures.percent(best.gain)} more tokens/s."


def _verdict(
    estimate: TrainingEstimate, bill: CostEstimate | None, asked: Sequence[str], wish: str, led: bool
) -> Headline:
    """Of a run that fits. `wish` answers what was asked, and comes first where it is to be `led` by that, unless
    something hurts."""
    need = estimate.memory
    limits, saving = limit_words(complete(estimate.plan).goal, bill, estimate.run), memory.besides(need)
    fits = f"It fits{', but tightly' * need.tight}"
    good = not (limits.broken or saving or need.host.fits is False)
    wish = wish if good and led else ""
    verdict = f"{fits}: {memory_words(need)}." if need.tight or not (wish or limits.broken) else f"{fits}."
    if need.host.fits is False:
        verdict = host_runs_out(need.host)
    how = needs(estimate)
    doubts = _doubts(estimate, bill, asked)
    more = filter(None, (verdict if wish else "", how, saving, doubt_words(doubts)))
    # A limit that was set says more than that it fits.
    first = not wish or _LIMITS & set(asked)
    answers = [*limits.kept, wish or verdict] if first else [wish, *limits.kept]
    text = " ".join([*limits.broken, *limits.doubtful, *answers])
    beware = need.tight or bool(doubts or estimate.warnings or limits.doubtful)
    return Headline(text, good, " ".join(more), beware=beware)


def _doubts(estimate: TrainingEstimate, bill: CostEstimate | None, asked: Sequence[str]) -> list[str]:
    """What a run is in doubt for, and its price before that where money was asked for."""
    priced = _price_doubts(estimate, bill) if "usd" in _wished(asked) else []
    return [*priced, *untold(estimate, "host memory")]


def _price_doubts(estimate: TrainingEstimate, bill: CostEstimate | None) -> list[str]:
    """What a price is in doubt for, where there is one."""
    if bill is None or bill.usd is None:
        return []
    return [text for text in bill.warnings if text not in estimate.warnings]


def _mfu(rate: Throughput) -> str:
    """The MFU, and where it is the person's own what would be estimated."""
    own = "" if rate.expected_mfu is None else f" as you say ({figures.percent(rate.expected_mfu)} is estimated)"
    return f"{figures.percent(rate.mfu)} MFU{own}"


def _generating(estimate: TrainingEstimate) -> str:
    """Of reinforcement learning, how much of a step writes the samples: it decides what is worth making faster."""
    seconds = estimate.time.components.get("generation", 0.0)
    return f", {figures.percent(seconds / estimate.time.step_s)} of it generation" if seconds else ""


def _step(estimate: TrainingEstimate, seconds: str) -> str:
    return f"{seconds} per step{_generating(estimate)}"


# From this part of the hours on what machines that fail take is told beside them.
_LOST = 0.02


def _mfu_of_hours(estimate: TrainingEstimate) -> str:
    """Of a run that loses time to machines that fail, how much, and the MFU of all its hours."""
    lost = estimate.run.goodput if estimate.run else None
    if lost is None or 1.0 - lost.share < _LOST:
        return ""
    return f", {figures.percent(lost.mfu)} with failures ({figures.percent(lost.share)} of the hours are steps)"


_OF_RUNS: Mapping[str, Callable[[TrainingEstimate], str]] = {
    "tokens_per_s": lambda estimate: f"{figures.rate(estimate.throughput.tokens_per_s)} tokens/s",
    "mfu": lambda estimate: f"{_mfu(estimate.throughput)}{_mfu_of_hours(estimate)}",
    "step_s": lambda estimate: _step(estimate, figures.held(estimate.time, "step_s")),
}
_OF_BILLS: Mapping[str, Callable[[CostEstimate], str]] = {
    "usd": money.priced,
    "device_hours": lambda bill: f"{figures.shown('device_hours', bill.device_hours)} device-hours",
    "co2_kg": money.carbon,
    "kwh": lambda bill: "" if bill.kwh is None else figures.shown("kwh", bill.kwh),
}
# Limits that are set in a question are what it asks about.
_LIMITS = frozenset({"goal.deadline_h", "goal.budget_usd", "goal.budget_device_hours"})
_OF_LEAD = frozenset({*_OF_RUNS, *_OF_BILLS, "hours"})
TOLD = _OF_LEAD | frozenset({"ttft_s", "tpot_s", "per_device_bytes"})
"""What the first lines of a run or a deployment say of themselves."""


def _wished(asked: Sequence[str]) -> list[str]:
    """The figures of a run that were asked for: those named, and the first that answers each question."""
    named = [_last(name) for name in asked]
    told = {name for name in named if name in _OF_LEAD}
    wished = [each if each in told else _ORDERS[each][0] for each in named if each in told or each in _ORDERS]
    answered = {_ORDERS[each][0] for each in named if each in _ORDERS and told & set(_ORDERS[each])}
    return [name for name in dict.fromkeys(wished) if name in told or name not in answered]


def _figures(estimate: TrainingEstimate, bill: CostEstimate | None, asked: Sequence[str], most: int) -> dict[str, str]:
    """The first figures of a run by name, those asked for first."""
    values = {name: write(estimate) for name, write in _OF_RUNS.items()}
    values["hours"] = figures.held(estimate.run or bill, "hours") if estimate.run or bill else ""
    if values["hours"] and "step_s" not in _wished(asked):
        # As wide an interval as that of the hours.
        values["step_s"] = _step(estimate, figures.shown("step_s", estimate.time.step_s))
    values |= {name: write(bill) if bill else "" for name, write in _OF_BILLS.items()}
    # Beside whether it fits, how long it takes and what it costs say more than a step does, which was not named.
    broad = "fit" in asked and estimate.run is not None
    wished = [name for name in _wished(asked) if not broad or name in map(_last, asked)]
    also = [name for each in asked if not broad for name in _ORDERS.get(each, ())]
    told = [name for name in dict.fromkeys([*wished, *also, *_ALWAYS]) if values[name]]
    return {name: values[name] for name in told[: max(most, len(wished))]}


def _ways(fit: FitCheck | None, timed: bool = True) -> list[Block]:
    """What would make a plan fit, the least slow first; `timed` where what does not fit has a speed to compare with."""
    if fit is None:
        return []
    working = [way for way in fit.remedies if way.fits][:2]
    if not working:
        return [Prose("No change tried makes it fit on these devices: take more or larger ones.")]
    return [Prose(f"It would fit with {_told(working, timed)}.")]


def _roomier(fit: FitCheck | None) -> list[Block]:
    """What would leave more room to a plan that hardly has any, the least slow first."""
    less = [way for way in fit.remedies if way.fits][:2] if fit and fit.tight else []
    return [Prose(f"Less memory: {_told(less, True)}.")] if less else []


def _told(ways: Sequence[Remedy], timed: bool) -> str:
    slower = [f", {_slower(way.slowdown)}" if timed else "" for way in ways]
    takes = (f"{figures.gib(way.per_device_bytes)}{how}" for way, how in zip(ways, slower, strict=True))
    return " or ".join(_with_room(way.what, each) for way, each in zip(ways, takes, strict=True))


def _with_room(what: str, takes: str) -> str:
    """'full recompute (6.8 GiB)', in the brackets that it ends in where it has some."""
    return f"{what[:-1]}; {takes})" if what.endswith(")") else f"{what} ({takes})"


def _slower(factor: float) -> str:
    if factor < 1:
        return f"{figures.percent(1 - factor)} faster"
    return f"{figures.percent(factor - 1)} slower" if factor >= 1.005 else "as fast"


def serving(
    estimate: ServingEstimate, verdict: Headline, fit: FitCheck | None, bill: CostEstimate | None = None,
    why: bool = False,
) -> list[Block]:  # fmt: skip
    """A deployment: its verdict, the limits that it misses, what binds it and its memory. `why` says that what binds it
    was asked."""
    need = estimate.memory
    if not need.fits:
        return [verdict, *_ways(fit, timed=False)]
    missed = any(not row.met for row in estimate.slo)
    limits = limit_words(complete(estimate.plan).goal, bill)
    told = " ".join([*limits.broken, *limits.doubtful, verdict.text, *limits.kept])
    doubt = doubt_words(untold(estimate, "rate", *(["latency"] if missed else [])))
    rate = estimate.throughput
    several = rate.output_tokens_per_s_per_device < rate.output_tokens_per_s
    more = [f"{figures.rate(rate.output_tokens_per_s_per_device)} output tokens/s per device"] if several else []
    if "room" not in estimate.warning_kinds.values():
        many = f"{figures.whole(need.max_concurrency)} request{'s' * (need.max_concurrency != 1)}"
        more.append(f"room for {many} of full length")
    binds, others = f"Bottleneck: {estimate.bottleneck}.", f"{capitalised('; '.join(more))}." if more else ""
    if why and verdict.good and not limits.broken:
        told, binds = f"{binds} {told}", ""
    return [
        replace(verdict, text=told, more=" ".join(filter(None, (doubt, verdict.more))),
                good=verdict.good and not limits.broken, beware=bool(estimate.warnings or limits.doubtful)),
        Prose(money.of_all_requests(bill) if bill else ""),
        Aside(" ".join(filter(None, (binds, others)))),
    ]  # fmt: skip


def priced_first(
    head: Block, rest: Sequence[Block], bill: CostEstimate, most_usd: float | None, asked: Sequence[str] = ()
) -> tuple[Block, list[Block]]:
    """The first line of a deployment with what it costs before how it serves, unless something hurts; `most_usd` is
    what a million output tokens may cost, `asked` are the figures that were named."""
    text, all_requests = money.first(bill, asked), Prose(money.of_all_requests(bill))
    if not (isinstance(head, Headline) and head.good and text):
        return head, list(rest)
    over = money.over(bill, most_usd)
    head = replace(
        head, text=" ".join(filter(None, (over, text))), more=" ".join((head.text, head.more)).strip(), good=not over,
        beware=head.beware or bill.usd is None,
    )  # fmt: skip
    return head, [block for block in rest if block != all_requests]


def verdict(sentence: str, good: bool | None, warnings: Sequence[str] = (), more: str = "") -> Headline:
    """The first line of an answer about anything but one run: how it ended, and what it is in doubt for. `sentence`
    may have its figures in bold; what follows its first sentence is `more`."""
    return in_doubt(sentence.replace("**", ""), good, warnings, more)


def short(blocks: Sequence[Block], sentences: int = 1, rows: int = MOST_ROWS) -> list[Block]:
    """The first blocks, the first `rows` of the first table, asides and what to do next at first; all else is
    folded."""
    lead, behind = ranked([block for block in blocks if not isinstance(block, Steps | Aside)])
    last = [block for block in blocks if isinstance(block, Steps | Aside)]
    front, rest = lead[:sentences], lead[sentences:]
    table = next((block for block in rest if isinstance(block, Table)), None)
    if rows and table and len((narrow := slim(table, rows, _WIDEST)).head) > 1:
        front.append(replace(narrow, title=""))
    return [*front, *last, Folded([*rest, *behind])]


def of_a_range(blocks: Sequence[Block]) -> list[Block]:
    """Like `short`, where rows are in the order of what they run over: both ends of it and what is evenly between."""
    *front, folded = short(blocks, rows=0)
    table = next((block for block in blocks if isinstance(block, Table)), None)
    if table is None:
        return [*front, folded]
    last, steps = len(table.rows) - 1, _ROWS_OF_A_RANGE - 1
    rows = [table.rows[place] for place in sorted({round(last * step / steps) for step in range(steps + 1)})]
    narrow = slim(replace(table, rows=rows, title="", strong=()), len(rows), _WIDEST)
    return [*front, *([narrow] if len(narrow.head) > 1 else []), folded]


def slim(table: Table, most: int, width: int) -> Table:
    """The first rows with the columns that tell them apart: what is the same for all of them, or long, is read among
    the details, and of lists what all of them have. The first column names the rows: it stays, and may be broken over
    lines."""
    rows = table.rows[:most]
    cells = [_apart([row[place] for row in rows]) for place in range(len(table.head))]
    kept = [0]
    room = width - min(_needed(table.head[0], cells[0]), width // 2) - _GAP
    for place, column in enumerate(cells):
        longest = _LONGEST if {*table.head[: place + 1]} & {*table.right} else _LONGEST_NAME
        repeats = column == cells[0] or (len(rows) > 1 and len(set(column)) == 1)
        if not place or max(map(len, column)) > longest or repeats:
            continue
        room -= _needed(table.head[place], column) + _GAP
        if room >= 0:
            kept.append(place)
    head = [table.head[place] for place in kept]
    return replace(table, head=head, rows=[[cells[place][row] for place in kept] for row in range(len(rows))])


def _needed(title: str, column: Sequence[str]) -> int:
    """Characters; only long titles are broken over lines."""
    return max(map(len, [*(title.split() if len(title) > _SHORT_TITLE else (title,)), *column]))


def _apart(names: Sequence[str]) -> list[str]:
    """Names of parts between commas, without the parts that all of them have."""
    parts = [name.split(", ") for name in names]
    shared = set(parts[0]).intersection(*parts[1:]) if len(parts) > 1 else set()
    short = [", ".join(part for part in name if part not in shared) for name in parts]
    return short if all(short) else list(names)


def read_as(readings: Sequence[str]) -> list[Block]:
    """How words were read, in one short line at the end of the lead; the rest of it is folded."""
    if not readings:
        return []
    words = [text.rstrip(".") for text in readings]
    short = [without_others(text) for text in words][:_MOST_READINGS]
    more = [Folded([Note("Read as", words)])] if short != words else []
    return [Prose(f"{READ_AS} {'; '.join(short)}."), *more]


def without_others(reading: str) -> str:
    """'h100' read as H100 SXM5 80GB: what else it may be stands among the details."""
    return reading.rpartition(" (")[0] if reading.endswith(")") and " (" in reading else reading
