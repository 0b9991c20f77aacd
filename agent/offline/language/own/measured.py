"""A speed that somebody measured: which figure of a run a number is of, by its units and what is named beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from agent.offline.language.asking import sentences
from agent.offline.language.assign import Filled, single
from agent.offline.language.mentions import SERVING
from agent.offline.language.reading.observed import is_observed
from agent.offline.language.rows import Row

if TYPE_CHECKING:
    from agent.offline.language.reading.page import Page

RATES = "rate_run"
# How far from a number its figure may be named.
_REACH = 5
_BATCHES = ("global_batch", "batch", "batch_tokens", "accumulation")
# In so many sentences from the number on it is asked how good it is.
_NEXT = 3
_HOUR_S = 3600.0
_NAMED = {"throughput.mfu": "mfu", "time.step_s": "step_s", "latency.tpot_s": "tpot_s"}
_OF_COMPUTE = {"throughput.mfu": "mfu", "throughput.model_tflops_per_device": "tflops_per_device"}
_SEEN = ("seen", "steps_rate", "assumed_mfu")
# What a speed of serving is wished with.
_WISHED = ("seen", "user_rate", "token_rate", "tpot_slo_ms")


# What is told again without its name, and how many times what it was it may be.
_AGAIN = ("step_s", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s")
_ANOTHER = 10.0


class MeasuredSpeed(NamedTuple):
    """An argument of rate_run, its value in SI, and the number that says it."""

    name: str
    value: float
    row: Row


def measured(page: Page) -> MeasuredSpeed | None:
    """The first speed that is said and that sets nothing of the plan; of serving what would else be a wish for it."""
    seen = _WISHED if page.mode == SERVING else _SEEN
    free = [*page.left, *(number.row for number in page.filled if number.field in seen or _is_once_more(page, number))]
    named = [(at, _NAMED[name]) for at, _, name in page.read.asked_at("figure") if name in _NAMED]
    for row in sorted(free, key=lambda row: row.start):
        if row.start in page.read.past:
            # 'The README says 14k tokens/s/GPU.'
            continue
        figure = _of_serving if page.mode == SERVING else _of_training
        if name := figure(row, named) or _as_before(page, row):
            name += "_per_device" if name == "tokens_per_s" and _is_of_each_device(page, row) else ""
            name = name.removesuffix("_per_device") if page.read.says("altogether") else name
            return MeasuredSpeed(name, _in_units(row, name), row)
    return _of_a_run(page) if page.mode != SERVING else _told_alone(page)


def _told_alone(page: Page) -> MeasuredSpeed | None:
    """A number alone that is told to be seen of a deployment: its tokens a second, as those of the answer before."""
    rows = [*page.left, *(number.row for number in page.filled if number.field == "seen")]
    bare = [row for row in rows if row.bare and len(row.amounts) == 1 and is_observed(page.read, row)]
    told = page.plan and len(bare) == 1 and page.read.asked("judged")
    return MeasuredSpeed("tokens_per_s", bare[0].amounts[0].value, bare[0]) if told else None


def _as_before(page: Page, row: Row) -> str | None:
    """The figure that was rated before as what a number alone, or a time, is once more: 'with 16 it's 9.8 s'."""
    tool, rated = page.last
    name = next((name for name in _AGAIN if name in rated), "") if tool == RATES else ""
    amount, unit = row.amounts[-1], row.amounts[-1].unit("time")
    alone = (unit is not None and not amount.per) if name == "step_s" else row.bare
    value = amount.value * (unit.size if unit else 1.0)
    # 'And for two weeks?' is the time of no step.
    return name if name and alone and 1 / _ANOTHER <= value / rated[name] <= _ANOTHER else None


def _is_once_more(page: Page, number: Filled) -> bool:
    """Whether a number alone that hardly is of the field it fills is a speed, as what was rated before."""
    tool, rated = page.last
    same = tool == RATES and number.row.amounts[-1].value in rated.values()
    unsure = number.row.bare and not number.name and (same or is_observed(page.read, number.row))
    return unsure and _as_before(page, number.row) is not None


def _is_of_each_device(page: Page, row: Row) -> bool:
    """Whether words before a rate say that every device has it: 'each card does 6200 tokens/s', '单卡6200 tokens/s'."""
    heard = page.read.found
    begin = max(row.start - _REACH, 0)
    begin = max([begin, *(at + 1 for at in range(begin, row.start) if heard.text[at].ends_clause)])
    counted = [at for at in range(begin, row.start) if heard.has_unit(at, "devices")][:1]
    return any(heard.does(at - 1, "per") or heard.sense(at - 1, "number") for at in counted if at > begin)


def _of_a_run(page: Page) -> MeasuredSpeed | None:
    """The speed of a run that is over: 'we trained it on 300B tokens in 9 days'."""
    tokens, times = single(page.filled, "dataset_tokens"), single(page.filled, "deadline_h")
    if not (tokens and times) or not page.read.says("ran"):
        return None
    return MeasuredSpeed("tokens_per_s", tokens[0].values[0] / (times[0].values[0] * _HOUR_S), times[0].row)


def is_judged(page: Page, before: str | None) -> bool:
    """Whether a measured speed is judged, or a reason asked for; behind such a question another one is asked about."""
    judged = [at for at, _, name in page.read.asked_at("judged") if name == "speed"]
    judged += [at for at, _, name in page.read.asked_at("focus") if name == "why"]
    judged += page.read.does("why")
    judged += _asked_in_another_unit(page)
    if page.read.of("run"):
        # 'Is run 29e48b7797 good?'
        rated = any(token.norm in page.read.found.lexicon.rating for token in page.read.tokens[:3])
        return bool(judged or page.read.asked("judged") or rated)
    if before != RATES and not judged:
        return False
    speed = measured(page)
    if speed is None or before == RATES:
        return speed is not None
    parts = list(sentences(page.read.tokens))
    first = next(index for index, part in enumerate(parts) if speed.row.start in part)
    near = {at for part in parts[first : first + _NEXT] for at in part}
    return not near.isdisjoint(judged)


def _asked_in_another_unit(page: Page) -> list[int]:
    """Where the utilisation is asked that a measured speed comes to: 'at 20k tokens/s what MFU am I at?'."""
    speed = measured(page) if page.mode != SERVING and not page.plan else None
    if speed is None or speed.name in _OF_COMPUTE.values():
        return []
    return [at for at, _, name in page.read.asked_at("figure") if name in _OF_COMPUTE]


def is_of_a_known_batch(page: Page) -> bool:
    """Whether it is known how many sequences a step has: without that the time of one says nothing."""
    return "global_batch" in page.known or any(page.values(name) for name in _BATCHES)


def _of_serving(row: Row, named: Sequence[tuple[int, str]]) -> str | None:
    """Of what a number is in a text about serving."""
    last = row.amounts[-1]
    per = {unit.name for unit in last.per}
    if "time" in per and last.unit("tokens"):
        return "tpot_s" if "users" in per else "tokens_per_s_per_device" if "devices" in per else "tokens_per_s"
    if last.unit("time") and "tokens" in per:
        return "tpot_s"
    near = [name for at, name in named if row.start - _REACH <= at < row.end + _REACH]
    return "tpot_s" if last.unit("time") and "tpot_s" in near else None


def _of_training(row: Row, named: Sequence[tuple[int, str]]) -> str | None:
    """Of what a number is in a text about training; `named` are the figures of the text by their tokens."""
    last = row.amounts[-1]
    if last.value <= 0:
        return None
    per = {unit.name for unit in last.per}
    if "time" in per and last.unit("tokens"):
        return "tokens_per_s_per_device" if "devices" in per else "tokens_per_s"
    if "time" in per and last.unit("samples"):
        return "samples_per_s"
    if (last.unit("time") and "steps" in per) or (last.unit("steps") and "time" in per):
        return "step_s"
    if last.unit("flops"):
        return "tflops_per_device"
    if per or not (unit := last.unit("percent", "time")):
        return None
    near = [(abs(at - row.start), name) for at, name in named if row.start - _REACH <= at < row.end + _REACH]
    name = min(near)[1] if near else None
    return name if (name == "mfu") == (unit.name == "percent") else None


def _in_units(row: Row, name: str) -> float:
    """The last value of a row in tokens or samples a second, seconds, a share, or TFLOP/s."""
    last = row.amounts[-1]
    if name == "tpot_s" and last.unit("tokens"):
        return round(next(unit.size for unit in last.per if unit.name == "time") / last.value, 9)
    if name == "step_s" and last.unit("steps"):
        return round(next(unit.size for unit in last.per if unit.name == "time") / last.value, 9)
    wanted = {"step_s": "time", "tpot_s": "time", "mfu": "percent", "tflops_per_device": "flops"}.get(name)
    size = next((unit.size for unit in last.units if wanted in (None, unit.name)), 1.0)
    time = next((unit.size for unit in last.per if unit.name == "time"), 1.0)
    value = last.value * size / time
    return round(value / 1e12 if name == "tflops_per_device" else value, 9)
