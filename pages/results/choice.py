"""Pages of searches: the best layout or deployment, limits, the size of a serving cluster, MLPerf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from estimator.plan.schema import Plan
from knowledge import figures
from knowledge.figures import count, rate, usd
from pages.blocks import Block, Headline, capitalised
from pages.results.basis import notes, tail
from pages.results.columns import Column, listed, table, yes
from pages.results.estimate import memory, memory_words
from pages.results.limits import in_doubt, limit_words, untold
from pages.results.money import dated
from pages.results.plan import plan_figures
from planner.results import BestParallelism, LayoutChoice, Limit, LimitProbe
from planner.serving.patience import beside, taken
from planner.serving.results import BestServing, MlperfProjection, ServingChoice, ServingSize, SizedServing

LAYOUTS: list[Column] = [
    ("layout", "summary"), "framework", "step_s", "tokens_per_s", "mfu", "per_device_bytes", "headroom_bytes",
]  # fmt: skip
# What a deployment was chosen by, for each goal.
MEASURES = {"throughput": "output_tokens_per_s_per_device", "latency": "e2e_s", "cost": "usd_per_million_output_tokens"}
_LIMITS: Column = ("limits met", lambda row: yes(row.meets_slo))
# What holds a deployment back, by its name in a result.
_HOLDS = {"tpot": "TPOT", "ttft": "TTFT"}


def _held_by(row: Any) -> str:
    return _HOLDS.get(row.limited_by, str(row.limited_by))


_BOTTLENECK: Column = ("limited by", _held_by)
_MONEY: list[Column] = ["usd_per_hour", "usd_per_million_output_tokens"]
_SERVED: list[Column] = ["output_tokens_per_s", "ttft_s", "tpot_s"]
_WHERE: list[Column] = [("deployment", "summary"), "accelerator", "devices"]
DEPLOYMENTS: list[Column] = [*_WHERE, *_SERVED, *_MONEY, _LIMITS]
# Rows of a table that may be long; --json has them all.
_MOST = 8


def best(result: BestParallelism | BestServing) -> list[Block]:
    return [
        _best_verdict(result),
        *plan_figures(result.plan),
        *notes("Why", beside(result.why, result.assumptions)),
        *ranked([result.best, *result.alternatives], result.goal if isinstance(result, BestServing) else ""),
        *table(result.pareto[:_MOST], columns_of(result.best), "Nothing is better in every way (Pareto)"),
        *neighbours(result, _MOST),
        *notes("Left out", result.skipped if isinstance(result, BestServing) else ()),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def ranked(choices: Sequence[LayoutChoice | ServingChoice], goal: str = "") -> list[Block]:
    """The column that they are ranked by comes before other figures."""
    columns = columns_of(choices[0])
    if isinstance(choices[0], ServingChoice) and (measure := MEASURES.get(goal)):
        columns = [*_WHERE, measure, *(column for column in columns if column not in (*_WHERE, measure))]
    return table(choices, columns, "Best first")


def neighbours(result: BestParallelism | BestServing, most: int) -> list[Block]:
    """What was not taken, and the rule that says why."""
    summary: Column = ("neighbour", "choice.summary" if isinstance(result, BestServing) else "summary")
    return table(result.rejected[:most], [summary, ("why not", "rule")], "Neighbours")


def columns_of(choice: LayoutChoice | ServingChoice) -> list[Column]:
    return LAYOUTS if isinstance(choice, LayoutChoice) else DEPLOYMENTS


def _best_verdict(result: BestParallelism | BestServing) -> Headline:
    if isinstance(result, BestParallelism):
        best = result.best
        speed = f"{rate(best.tokens_per_s)} tokens/s, MFU {figures.shown('mfu', best.mfu)}"
        if not result.feasible:
            least = f"Least memory: {best.summary} with {best.framework}, {figures.gib(best.per_device_bytes)} each."
            return Headline("No layout fits.", False, least)
        tight = f" It fits, but tightly: {memory_words(result.memory)}." if result.memory.tight else ""
        limits = limit_words(Plan.model_validate(result.plan).goal, result.run)
        told = " ".join([*limits.broken, *limits.doubtful, f"{best.summary} with {best.framework}: {speed}.{tight}"])
        head = in_doubt(told, not limits.broken, untold(result), " ".join(limits.kept))
        return replace(head, beware=bool(head.beware or tight or limits.doubtful))
    told = f"{result.best.summary}: {rate(result.best.output_tokens_per_s)} output tokens/s."
    if not result.best.fits or result.meets_slo is False:
        why = "No deployment meets the latency limits." if result.best.fits else "No deployment fits."
        return Headline(why, False, " ".join(filter(None, (f"The closest: {told}", taken(result.assumptions)))))
    return in_doubt(told, True, untold(result), taken(result.assumptions))


def limit(result: Limit) -> list[Block]:
    goal = result.goal.replace("_", " ")
    most = "Fewest" if goal == "devices" else "Largest"
    told = f"No {goal} fits."
    if result.value is not None:
        told = f"{most} {goal}: {figures.plain(result.value)}{', but tightly' * result.tight}."
    head = in_doubt(told, result.value is not None, untold(result))
    probes: list[Column] = [("value", _probed), "fits", "per_device_bytes", ("why not", "why")]
    return [
        replace(head, beware=head.beware or result.tight),
        *plan_figures(result.plan),
        *notes("Why not more", [result.why] if result.why else []),
        *table([result.chosen], columns_of(result.chosen), "With"),
        *memory(result.memory),
        *table(result.probes, probes, "Tried"),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def _probed(row: LimitProbe) -> str:
    return figures.plain(row.value)


def size(result: SizedServing) -> list[Block]:
    best = result.best
    sentence = "Nothing serves this load within the limits."
    if best:
        price = f", {usd(best.usd_per_hour)} per hour" if best.usd_per_hour is not None else ""
        replicas = f"{best.replicas} replica{'s' if best.replicas != 1 else ''}"
        size_words = f"{best.devices} x {best.accelerator} in {replicas}{price}: {best.summary}."
        sentence = size_words
    offers: list[Column] = ["provider", "instance", "usd_per_hour", ("price of", dated)]
    return [
        in_doubt(sentence, bool(best), untold(result), taken(result.assumptions)),
        *plan_figures(result.plan),
        *notes("Why", beside(result.why, result.assumptions)),
        *sizes(result.sizes),
        *table(result.offers[:_MOST], offers, "Where to rent"),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def sizes(rows: Sequence[ServingSize]) -> list[Block]:
    columns = [
        ("deployment", "summary"), "accelerator", "devices", *_MONEY, "ttft_s", "utilisation", "replicas",
        "replica_limit", _BOTTLENECK, "tpot_s", "output_tokens_per_s",
    ]  # fmt: skip
    return table(rows, columns, "Cheapest first")


def mlperf(result: MlperfProjection) -> list[Block]:
    rows: list[Column] = [
        "samples_per_s", "tokens_per_s", "tokens_per_s_per_device", "dataset_s", "run_s", "ttft_p99_s", "tpot_p99_s",
        _BOTTLENECK,
    ]  # fmt: skip
    # Offline all samples wait from the start: how long the last one does says nothing of latency.
    deployments = [column for column in DEPLOYMENTS if result.scenario != "offline" or column != "ttft_s"]
    where = f"{count(result.devices)} x {result.accelerator}"
    span = figures.held(result, "samples_per_s")
    if no_run := unserved(result):
        return [Headline(no_run, False), *notes("Why", result.why), *tail([], result.assumptions, result.evidence)]
    return [
        in_doubt(f"{result.benchmark}, {result.scenario}, on {where}: {span} samples/s.", None, untold(result)),
        *listed(result, rows, "Figures (80 % interval)"),
        *table([result.choice], deployments, "With"),
        *by_nodes(result),
        *notes("Why", result.why),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def unserved(result: MlperfProjection) -> str:
    """Why there is no score: the model fits nowhere, or no rate keeps to the limits; '' where there is one."""
    where = f"{count(result.devices)} x {result.accelerator}"
    if not result.choice.fits:
        need = next((text for text, kind in result.warning_kinds.items() if kind == "fit"), "does not fit")
        return f"{result.benchmark} on {where} {need.partition(';')[0]}."
    no_rate = next((text for text in result.warnings if text.startswith("no deployment meets")), "")
    return f"{capitalised(no_rate)}." if no_rate else ""


def by_nodes(result: MlperfProjection) -> list[Block]:
    columns: list[Column] = ["nodes", "devices", "samples_per_s", "tokens_per_s", "scaling_efficiency"]
    return table(result.by_nodes, columns, "By nodes")
