"""Pages of decisions about money and machines: cost, clusters, a whole configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estimator.plan.schema import Inference, Plan
from knowledge import figures
from knowledge.figures import NONE, hours, is_no_room, percent, plain, shown, usd, whole
from knowledge.prices.age import mark_old, price_day
from knowledge.prices.cluster_sizes import largest_words
from pages.blocks import Block, Chart, Headline, Prose, Table
from pages.results.basis import notes, tail
from pages.results.columns import Column, listed, table, yes
from pages.results.limits import doubt_words, limit_words, untold
from pages.results.plan import plan_figures
from planner.clusters.results import (
    AutoConfigured,
    ClusterOption,
    ClusterRejected,
    Considered,
    NearPlan,
    Reason,
    RecommendedCluster,
    WinnerChange,
)
from planner.money.offers import cheapest, of_strangers
from planner.money.results import ApiComparison, BreakEven, CarbonHours, CostEstimate, OwnedCost, Saving
from planner.result import ProviderCost

ORDERS = {"cost": "cheapest", "time": "fastest", "balanced": "best balance of cost and time"}
"""What comes first among clusters, by how they are sorted."""
LARGEST = "cluster of"
"""Head of the largest cluster that an offer has."""
CHEAPER, FASTER, BOUGHT = "Cheaper", "Faster", "What more money would buy"


def cost(result: CostEstimate) -> list[Block]:
    rows: list[Column] = [
        *([] if _goes_on(result) else ["hours", "device_hours"]), ("price", lambda _: _price(result)), "usd_per_hour",
        "usd_per_month", "usd_per_million_output_tokens", "usd_per_million_tokens", "usd_per_million_requests",
        "usd_per_device_hour", "usd_per_step", "usd_per_epoch", "kwh", "co2_kg",
    ]  # fmt: skip
    return [
        _cost_verdict(result),
        *plan_figures(result.plan),
        *listed(result, rows, "Figures (80 % interval)"),
        *table(result.parts, ["part", "usd", "what"], "Breakdown"),
        *cheaper(result.savings),
        *ways(result.faster, FASTER),
        *ways(result.bought, BOUGHT),
        *providers(result.by_provider),
        *owned(result.owned),
        *break_even(result.break_even, *([OWN_OR_RENT] if result.price == "owned" else [])),
        *carbon_hours(result.co2_by_hours),
        *carbon_elsewhere(result),
        *over_api(result.api, "Over an API"),
        *map(Chart, result.plots),
        *notes("Not included", result.not_included),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def providers(rows: Sequence[ProviderCost]) -> list[Block]:
    return _by_provider(rows, "spot_usd_with_interruptions")


def rented(rows: Sequence[ProviderCost]) -> list[Block]:
    """Of hardware without a run, which no interruption makes longer."""
    return _by_provider(rows, "spot_usd")


def _by_provider(rows: Sequence[ProviderCost], spot: str) -> list[Block]:
    columns: list[Column] = [
        ("from", "provider"), ("machines", lambda row: f"{row.instances} x {row.instance}"), "usd_per_hour", "usd",
        spot, "flex_start_usd", "reserved_usd", "reserved_3y_usd", ("price of", dated),
        (LARGEST, largest),
    ]  # fmt: skip
    strange = [row for row in rows if of_strangers(row.seller)]
    clouds = [row for row in rows if not of_strangers(row.seller)]
    return [
        *_old_marked(clouds, spot, table(clouds, columns, "By provider")),
        *_old_marked(
            strange, spot,
            table(strange, [("seller", "seller"), *columns], "Marketplaces and private machines (they come and go)"),
        ),
    ]  # fmt: skip


def largest(row: ProviderCost) -> str:
    return largest_words(row.most_devices, row.most_known_by)


def _old_marked(rows: Sequence[ProviderCost], spot: str, blocks: Sequence[Block]) -> list[Block]:
    """The tables of these rows with a mark at prices that are old: those of terms have days of their own, and that of a
    price on demand has no place in a narrow table."""
    ages = {"usd_per_hour": "stale", spot: "spot_stale"} | {
        f"{kind}_usd": f"{kind}_stale" for kind in ("flex_start", "reserved", "reserved_3y")
    }
    by_head = {figures.label(name): age for name, age in ages.items()}

    def cell(row: ProviderCost, head: str, text: str) -> str:
        return mark_old(text, head in by_head and text != NONE and getattr(row, by_head[head]))

    return [
        replace(block, rows=[[cell(row, *of) for of in zip(block.head, cells, strict=True)]
                             for row, cells in zip(rows, block.rows, strict=True)])
        if isinstance(block, Table) else block for block in blocks
    ]  # fmt: skip


def cheaper(rows: Sequence[Saving]) -> list[Block]:
    """What would cost less, what gives up least first."""
    return ways(rows, CHEAPER)


def ways(rows: Sequence[Saving], title: str) -> list[Block]:
    columns: list[Column] = [
        "what", ("gives up", "gives_up"), "usd", "hours", ("in budget", lambda row: yes(row.within_budget)),
        ("in time", lambda row: yes(row.within_deadline)),
    ]  # fmt: skip
    return table(rows, columns, title)


def over_api(api: ApiComparison | None, title: str = "") -> list[Block]:
    """The model over an API: what decides between the two, and the cheapest offers."""
    if api is None:
        return []
    columns: list[Column] = [
        ("from", "provider"), "usd_per_million_input_tokens", ("all, per 1M output", "usd_per_million_output_tokens"),
        ("list of", "price_date"),
    ]  # fmt: skip
    return [Prose(beside_api(api)), *table(api.offers, columns, title)]


def beside_api(api: ApiComparison) -> str:
    """From which volume on a deployment costs less than an API, and what that API costs."""
    told = f"{usd(api.median_usd_per_million_output_tokens)} per million output tokens, prompts included"
    if api.named_usd_per_million_tokens is not None:
        input_usd = api.named_usd_per_million_input_tokens
        of_prompts = "tokens" if input_usd is None else f"output tokens, {usd(input_usd)} of prompts"
        price = f"{usd(api.named_usd_per_million_tokens)} per million {of_prompts} ({told})"
    elif api.provider_count > 1:
        price = f"{told}: the median of {api.provider_count} providers"
    else:
        price = f"{told}: the one provider known"
    other = f"an API ({price})" if api.named_usd_per_million_tokens is None else f"an API at {price}"
    tokens, load = api.break_even_output_tokens_per_month, api.break_even_load
    if tokens is None or load is None:
        return f"No {'purchase ' if api.owned else ''}price of this deployment is known to set beside {other}."
    if api.run_usd is not None and api.api_run_usd is not None:
        return _beside_run(api, price)
    own, volume = _own_month(api), _million(tokens)
    if api.asked_output_tokens_per_month is not None:
        asked = _million(api.asked_output_tokens_per_month)
        over = f"{shown('usd_per_month', api.api_usd_per_month)} a month over an API ({price})"
        even = f"from {volume} on, {percent(load)} of the most that they generate" if load <= 1.0 else "at no load"
        if tokens > api.asked_output_tokens_per_month:
            return f"An API is cheaper for {asked}: {over} against {own}. Machines of your own are cheaper {even}."
        return f"Machines of your own are cheaper for {asked}: {own} against {over}. They are cheaper {even}."
    if load > 1.0:
        return f"An API is cheaper at any load: {price}, less than this deployment kept busy."
    return f"Cheaper than {other} from {volume} on: at {percent(load)} of its load, {own}."


def _beside_run(api: ApiComparison, price: str) -> str:
    """What all requests of a run cost either way."""
    run, over = shown("usd", api.run_usd), f"{shown('usd', api.api_run_usd)} over an API ({price})"
    asked = f"all requests, {whole((api.run_output_tokens or 0.0) / 1e6)} million output tokens"
    if (api.api_run_usd or 0.0) < (api.run_usd or 0.0):
        return f"An API is cheaper for {asked}: {over} against {run} here."
    return f"Machines of your own are cheaper for {asked}: {run} here against {over}."


def _million(tokens: float) -> str:
    return f"{whole(tokens / 1e6)} million output tokens a month"


def _own_month(api: ApiComparison) -> str:
    """'$569 a month to rent ($657 to own)'."""
    month = f"{shown('usd_per_month', api.usd_per_month)} a month"
    if api.other_usd_per_month is None:
        return f"{month}{' to own' if api.owned else ''}"
    ways = ("to own", "to rent") if api.owned else ("to rent", "to own")
    return f"{month} {ways[0]} ({shown('usd_per_month', api.other_usd_per_month)} {ways[1]})"


def dated(row: ProviderCost) -> str:
    return price_day(row.price_date, row.stale)


def _goes_on(result: CostEstimate) -> bool:
    """Whether it is of a deployment that serves on and on: its hours are those of a month."""
    workload = Plan.model_validate(result.plan).workload
    return isinstance(workload, Inference) and workload.requests is None


def _price(result: CostEstimate) -> str:
    where = " ".join(filter(None, (result.provider, result.instance)))
    return f"{result.price.replace('_', ' ')}{f', {where}' if where else ''}"


def _cost_verdict(result: CostEstimate) -> Headline:
    within = (result.within_budget, result.within_deadline, result.within_device_hours)
    limited = (*within, result.credits, result.elapsed_hours)
    has_limits = any(each is not None for each in limited)
    limits = limit_words(Plan.model_validate(result.plan).goal if has_limits else None, result)
    broken = list(limits.broken)
    if not limits.broken and result.within_budget is False:
        broken.append("Over budget.")
    good = False if broken else True if any(within) or result.credits else None
    old = f", at {_old(result)}" if result.stale else ""
    million, to_own = result.usd_per_million_output_tokens, ", owned" if result.price == "owned" else ""
    if result.usd_per_hour is not None and (result.usd is None or _goes_on(result)):
        each = f"{usd(million)} per million output tokens: " if million is not None else ""
        month = f", {usd(result.usd_per_month)} per month" if result.usd_per_month is not None else ""
        figure = f"{each}{usd(result.usd_per_hour)} per hour{month}{to_own}{old}."
    elif result.usd is not None:
        figure = f"{figures.held(result, 'usd')} in {hours(result.hours)}{to_own}{old}."
    else:
        takes = f"; the run takes {hours(result.hours)}" if result.hours else ""
        alike = _on_demand(result)
        if not alike and result.kin_low_usd is not None and result.kin_high_usd is not None:
            ends = dict.fromkeys(map(usd, (result.kin_low_usd, result.kin_high_usd)))
            alike = f"At the price of similar devices it would be {' to '.join(ends)}: an assumption, not an offer."
        return Headline(" ".join([*broken, f"{unpriced(result)}{takes}.", alike]).strip(), False)
    words = " ".join(filter(None, [*broken, *limits.doubtful, figure, _in_own_money(result), *limits.kept]))
    doubt = doubt_words(untold(result))
    return Headline(words, good, doubt, beware=bool(result.stale or limits.doubtful or doubt))


def _on_demand(result: CostEstimate) -> str:
    """What is paid where there is no price of the kind that was asked for, and machines that work as one have one."""
    row = cheapest([row for row in result.by_provider if row.joined is not False])
    if row is None or row.usd is None or result.price == "on_demand":
        return ""
    return f"On demand it is {usd(row.usd)} at {row.provider}."


def own_money(result: CostEstimate | None) -> list[Block]:
    """The cost in a person's own currency, at the rate that was given."""
    text = "" if result is None else _in_own_money(result)
    return [Prose(text)] if text else []


def _in_own_money(result: CostEstimate) -> str:
    own = result.own_money
    if own is None:
        return ""
    span = f" ({own.low_amount:,.2f}–{own.high_amount:,.2f})" if own.low_amount != own.high_amount else ""
    hourly = "" if own.per_hour is None else f", {own.per_hour:,.2f} an hour"
    return f"In {own.currency} at {usd(own.usd_each)} each: {own.amount:,.2f}{span}{hourly}."


def unpriced(result: CostEstimate) -> str:
    """'No spot price is known at Hyperstack', of a run or a deployment that has no price of the kind asked for."""
    if result.price == "owned":
        return "No purchase price is known for this hardware"
    kinds = {"spot": "spot ", "flex_start": "flex-start ", "reserved": "reserved ", "reserved_3y": "reserved "}
    kind = kinds.get(result.price, "")
    lent = [row.flex_start_most_hours for row in result.by_provider if row.flex_start_most_hours is not None]
    if result.price == "flex_start" and lent:
        return f"Flex-start machines can be had for {hours(max(lent))} at most"
    asked = Plan.model_validate(result.plan).goal.provider
    sellers = {row.provider for row in result.by_provider} or ({asked} if asked else set())
    return f"No {kind}price is known{f' at {sellers.pop()}' if len(sellers) == 1 else ' for this hardware'}"


def _old(result: CostEstimate) -> str:
    return f"a price of {result.price_date}" if result.price_date else "a price of unknown date"


def owned(cost: OwnedCost | None) -> list[Block]:
    """The same run on hardware of one's own."""
    if not cost:
        return []
    parts = ", ".join(f"{name} {usd(amount)}" for name, amount in cost.parts.items())
    rows: list[Column] = [
        "capex_usd", "years", "utilisation", "usd_per_device_hour", "usd", "usd_per_year", ("parts", lambda _: parts),
    ]  # fmt: skip
    return listed(cost, rows, f"Owned: {cost.machine}")


NEAREST, OWN_OR_RENT = "Nearest plans", "Owned or rented, by hours of use"


def break_even(rows: Sequence[BreakEven], title: str = "By hours of use") -> list[Block]:
    """From when on what is paid for a year costs less than by the hour."""
    if not rows:
        return []
    columns: list[Column] = [
        ("paid for", "what"), ("a year", "usd_per_year"), (f"costs less than {rows[0].than}", _from_when),
    ]  # fmt: skip
    return table(rows, columns, title)


def carbon_hours(rows: Sequence[CarbonHours]) -> list[Block]:
    columns: list[Column] = [
        ("hours of the day", lambda row: f"{row.from_hour}–{row.before_hour}"), "co2_kg",
        ("takes", lambda row: NONE if row.takes_days is None else hours(24.0 * row.takes_days)),
    ]  # fmt: skip
    return table(rows, columns, f"At these hours alone ({rows[0].source})") if rows else []


def carbon_elsewhere(result: CostEstimate) -> list[Block]:
    """The same energy from each grid that was asked for, where there are several."""
    return table([result, *result.co2_elsewhere], ["region", "co2_kg"], "By region") if result.co2_elsewhere else []


def _from_when(row: BreakEven) -> str:
    if row.hours_per_year is None or row.share is None:
        return "never"
    return f"from {whole(row.hours_per_year)} hours a year ({percent(row.share)})"


# ---------------------------------------------------------------------------------------------------------- clusters


def cluster_name(row: ClusterOption) -> str:
    return f"{row.count} x {row.accelerator}"


NOT_WRITTEN = "Shardwise writes no launch files for such a plan."


def _recommended(result: RecommendedCluster, sentence: str) -> Headline:
    first = result.options[0] if result.options else None
    doubt = " ".join(filter(None, (option_doubts(first) if first else "", doubt_words(result.warnings))))
    return Headline(sentence, bool(first) and result.satisfied, doubt, beware=bool(doubt))


def option_doubts(row: ClusterOption) -> str:
    """What is in doubt about the first option: files to start it, its memory, or a price that is not of these days."""
    written, tight = "" if row.launch_targets else NOT_WRITTEN, "It fits, but tightly." if row.tight else ""
    return " ".join(filter(None, (written, tight, _old_option(row))))


def _old_option(row: ClusterOption | None) -> str:
    if row is None or not row.stale:
        return ""
    return f"Price dated {row.price_date}." if row.price_date else "Price date unknown."


def clusters(result: RecommendedCluster) -> list[Block]:
    why = list(result.why)
    head = why.pop(0) if why else "No known cluster meets this."
    return [
        _recommended(result, head),
        *notes("Why", why),
        *options(result.options, result.sort),
        *near(result.nearest),
        *verdicts(result),
        *rejected(result.rejected),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]


def near(rows: Sequence[NearPlan]) -> list[Block]:
    columns: list[Column] = [
        ("instead", "what"), ("gives up", "gives_up"),
        ("on", lambda row: f"{row.count} x {row.accelerator}"), "provider", "usd", "usd_per_hour", "hours",
    ]  # fmt: skip
    return table(rows, columns, NEAREST)


def verdicts(result: RecommendedCluster) -> list[Block]:
    """The knee, and what would change the first."""
    told = []
    if result.knee is not None:
        took = "" if result.knee.hours is None else f" in {hours(result.knee.hours)}"
        cost = "" if result.knee.usd is None else f" for {usd(result.knee.usd)}"
        told.append(
            f"Best trade-off of cost and time: {cluster_name(result.knee)}{took}{cost}; each hour saved beyond it "
            "costs more."
        )
    return notes("What would change it", [*told, *map(winner_words, result.winner_changes)])


def winner_words(row: WinnerChange) -> str:
    """What would have to be otherwise for another cluster to come first."""
    doubt = " (within the uncertainty)" if row.within and row.assumption == "speed" else ""
    return f"If {row.what}{doubt}, {row.winner} comes first."


def options(rows: Sequence[ClusterOption], sort: str) -> list[Block]:
    """Of serving the hours are those of a month, and say nothing."""
    run: list[Column] = ["hours", "usd"] if any(row.step_s is not None for row in rows) else []
    served = not run and any(row.output_tokens_per_s is not None for row in rows)
    speed = "output_tokens_per_s" if served else "tokens_per_s"
    bought = any(row.capex_usd is not None for row in rows)
    columns: list[Column] = [
        ("cluster", cluster_name), *(["capex_usd"] if bought else ["provider"]), *run, "usd_per_hour", "kw",
        (figures.label("tokens_per_s"), speed), "ttft_s", "tpot_s", "instance", ("layout", "summary"),
        ("price of", lambda row: price_day(row.price_date, row.stale) if row.provider else ""),
        ("unbeaten", lambda row: "yes" if row.pareto else ""),
    ]  # fmt: skip
    return table(rows, columns, f"{ORDERS[sort].capitalize()} first (unbeaten: none is both cheaper and faster)")


# Accelerators of a reason that are told; the result has all.
_MOST_REJECTED = 8
_SIMILAR = "; similar devices cost "


def rejected(rows: Sequence[ClusterRejected]) -> list[Block]:
    """Those of a reason together, whatever similar devices cost, and the first of many."""
    groups: dict[str, list[ClusterRejected]] = {}
    for row in rows:
        groups.setdefault(row.why.partition(_SIMILAR)[0], []).append(row)
    told: list[ClusterRejected] = []
    for why, of_reason in groups.items():
        names = [name for row in of_reason for name in row.accelerators]
        # Their number is one of the result where they are of one row.
        many = f"{len(names)} in all" if len(of_reason) == 1 else "and others"
        more = [many] if len(names) > _MOST_REJECTED + 1 else []
        names = [*names[:_MOST_REJECTED], *more] if more else names
        why = of_reason[0].why if len(of_reason) == 1 else why
        told.append(of_reason[0].model_copy(update={"accelerators": names, "why": why}))
    return table(told, ["accelerators", "why"], "Not considered")


def _free(row: ClusterOption) -> str:
    # Such a layout fits since what is cached gives way, and would not be told otherwise.
    given_back = row.headroom_bytes is not None and is_no_room(row.headroom_bytes)
    return shown("headroom_bytes", row.headroom_bytes) + (", but cached blocks are freed" if given_back else "")


CLUSTER: tuple[Column, ...] = (
    "provider", "instance", "instances", "nodes", "per_node", "usd_per_hour", "hours", "usd", "usd_per_million_tokens",
    "tokens_per_s", "step_s", "mfu", "ttft_s", "tpot_s", "e2e_s", "output_tokens_per_s", "requests_per_s", "replicas",
    "framework", "engine", "weight_dtype", ("layout", "summary"), "micro_batch", "global_batch", "per_device_bytes",
    ("free at the upper end", _free), "meets_slo", "fits_deadline", "fits_budget", "measured", "price_date",
)  # fmt: skip


def configured_doubts(result: AutoConfigured) -> str:
    """What is in doubt about a plan that was configured as a whole."""
    unwritten = "" if result.launch_targets or not result.option else NOT_WRITTEN
    return " ".join(filter(None, (unwritten, _old_option(result.option), doubt_words(result.warnings))))


def auto(result: AutoConfigured) -> list[Block]:
    option = result.option
    sentence = "Nothing meets the goal"
    if option:
        price = f", {usd(option.usd_per_hour)} per hour" if option.usd_per_hour is not None else ""
        sentence = f"{cluster_name(option)}{price}: {option.summary}"
    serving = ((result.plan or {}).get("workload") or {}).get("kind") == "inference"
    run: list[Column] = [] if serving else ["hours"]
    limits = limit_words(Plan.model_validate(result.plan).goal if result.plan else None, result)
    doubt = configured_doubts(result)
    targets: Column = ("launch files", lambda _: plain(result.launch_targets) or NONE)
    return [
        Headline(
            " ".join([*limits.broken, *limits.doubtful, f"{sentence}.", *limits.kept]),
            bool(option) and result.satisfied, doubt, beware=bool(limits.doubtful or doubt),
        ),
        *plan_figures(result.plan),
        *listed(result, [*run, "usd", "usd_per_hour", "tokens_per_s", "per_device_bytes", targets],
                "Figures (80 % interval)"),
        *decisions(result.reasons),
        *considered(result.considered),
        *notes("To meet the goal", result.relax),
        *tail(result.warnings, result.assumptions, result.evidence),
    ]  # fmt: skip


def decisions(rows: Sequence[Reason]) -> list[Block]:
    return table(rows, ["field", ("value", lambda row: plain(row.value)), "why"], "Decisions")


def considered(rows: Sequence[Considered]) -> list[Block]:
    return table(rows, [("also", "choice"), "fits", "usd", "hours", ("why not", "why")], "Considered")
