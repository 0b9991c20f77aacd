"""Whether a turn is about training or serving."""

from __future__ import annotations

from agent.offline.language import act
from agent.offline.language.applied import is_worked_on
from agent.offline.language.assign import counts_stranger
from agent.offline.language.features.mode import Context
from agent.offline.language.measures import MONEY, Amount
from agent.offline.language.mentions import SERVING, TRAINING, Mentions, shows
from agent.offline.language.reading.observed import is_observed
from agent.offline.language.rows import Row
from knowledge.machines.catalogue import find_accelerator
from knowledge.machines.without_training import no_training
from knowledge.models.catalogue import find_model

# From this share on the classifier knows better than a single word.
_SURE = 0.7
# Of training; of serving they are said of many users, whom a card at home has not.
_BATCHES = ("batch", "micro_batch", "global_batch")
_MINUTE_S = 60
# From so many devices on a run is a training.
_LARGE_CLUSTER = 64
_CACHE = "memory.components.kv_cache"
# How weights are kept: of a training it is the base that adapters are trained on.
_FORMATS = ("weight_dtype", "weight_bits")
# Bytes a parameter of weights, gradients and Adam's states in mixed precision without a master copy.
_TRAINED_BYTES = 12.0
# Times of an answer, which no training has.
_LATENCIES = ("e2e_limit_s", "ttft_slo_ms", "tpot_slo_ms")


def mode_of(read: Mentions, context: Context) -> str:
    """Training or serving: by its verbs, else by what else is said, else by the classifier."""
    if context.plan and read.does("refuse_right", "refuse_left") and not read.asked("mode"):
        # What is let go is of what there is.
        return context.plan
    verbs = {
        at: name
        for at, end, name in read.asked_at("mode")
        if not (_is_refused(read, at) or _is_a_host(read, at) or _is_over(read, at, end))
    }
    if verbs:
        # 'Fine-tune it for inference': what is to be done is said first, and in the question, where something is told.
        asked = {at: name for at, name in verbs.items() if at not in read.telling}
        return next(iter((asked or verbs).values()))
    if not context.plan and _cannot_train(read):
        return SERVING
    if _is_for_people(read) and not shows(read, TRAINING):
        return SERVING
    beside = (*_FORMATS, "engine") if context.generates else _FORMATS
    if context.plan == TRAINING and not shows(read, SERVING, beside=beside):
        return TRAINING
    if not context.plan and len(read.asked("strategy")) > 1 and read.does("or", "versus", "compare"):
        return TRAINING
    assists = {"assistant", "home"} & set(read.asked("whose")) or "bought" in read.asked("wish")
    served = assists or any(told(read) for told in _OF_SERVING)
    both = [value.start for value in read.values if value.mode]
    # 'fp8' and 'mlx' are said of either.
    shown = {value.mode for value in read.values if both.count(value.start) < 2}
    if not context.plan and served and TRAINING not in shown:
        return SERVING
    if not context.plan and _CACHE in read.asked("figure") and TRAINING not in shown:
        # 'KV cache of Llama-3.1-70B at 128k': a training has none.
        return SERVING
    bare = all(row.amounts[-1].is_size for row in read.rows) and not shows(read, TRAINING)
    if not context.plan and bare and "need" in read.asked("focus"):
        # What a model needs, of which no more is said, is what it needs to run.
        return SERVING
    trained = read.says("ran")
    if not context.plan and "speed" in read.asked("judged") and (trained or not shows(read, SERVING)):
        # A speed that is judged is a training's where nothing says more: one of serving has a load.
        return TRAINING
    if not context.plan and _is_a_large_cluster(read):
        return TRAINING
    shares = act.mode_of(read, context)
    mode = max(shares, key=lambda name: shares[name])
    alone = [kind for kind in (TRAINING, SERVING) if shows(read, kind, beside=_FORMATS)]
    if len(shown) == 1 and (shares[mode] < _SURE or alone == list(shown)):
        mode = shown.pop() or mode
    elif len(alone) == 1 and shares[mode] < _SURE:
        mode = alone[0]
    stays = context.plan and (not shows(read, mode) or shows(read, context.plan))
    return context.plan if context.plan and stays else mode


def _is_a_host(read: Mentions, at: int) -> bool:
    """Whether what seems to be a verb is a machine: 'one 8xA100 host', 'host has only 128 GB'."""
    before = read.tokens[at - 1] if at else None
    words = read.found.lexicon
    counted = before is not None and (before.kind == "number" or before.norm in words.articles)
    behind = read.tokens[at + 1] if at + 1 < len(read.tokens) else None
    has = behind is not None and behind.norm in words.apiece
    return read.found.has_unit(at, "nodes") and (counted or has or at - 1 in read.named_tokens)


def _is_refused(read: Mentions, at: int) -> bool:
    """Whether a refusal stands right before a word: 'not training'."""
    return any(read.found.does(before, "refuse_right") == at for before in range(max(at - 3, 0), at))


def _is_over(read: Mentions, at: int, end: int) -> bool:
    """Whether what a word names is only what something else comes after: 'after training', '学習後'."""
    before = (read.found.sense(step, "behind") for step in range(max(at - 2, 0), at))
    return read.found.sense(end, "behind") is not None or any(behind is not None for behind in before)


def _is_for_people(read: Mentions) -> bool:
    """Whether so many people are to use it: '20 users'."""
    counted = (row.amounts[-1].unit("users") for row in read.rows if not read.found.sense(row.end - 1, "of_them"))
    return any(unit is not None and not read.found.sense(unit.start, "of_them") for unit in counted)


def _limits_latency(read: Mentions) -> bool:
    """Whether words name a time that only a deployment has: 'answers in under 3 seconds', 'under 400 ms'."""
    bounds = {end for _, end, limit in read.limits if limit == "at_most"}
    if any(row.start in bounds and _is_a_moment(row.amounts[-1]) for row in read.rows):
        return True
    return any(
        sense.name in _LATENCIES
        for at, words in read.found.words.items()
        if at not in read.named_tokens and at not in read.telling
        for sense in words[0].all("field")
    ) and any(row.amounts[-1].unit("time") for row in read.rows)


def _is_a_moment(amount: Amount) -> bool:
    """Whether a time is less than a second."""
    unit = amount.unit("time")
    return unit is not None and not amount.per and amount.value * unit.size < 1


def is_asked_by_many(read: Mentions) -> bool:
    return any(comes_in(row) for row in read.rows)


def comes_in(row: Row) -> bool:
    """Whether a number is one of requests in a time: '45.000 consultas al día'."""
    amount = row.amounts[-1]
    return amount.unit("requests", "rate") is not None and any(unit.name == "time" for unit in amount.per)


def _is_paid_by_tokens(read: Mentions) -> bool:
    """Whether tokens have a price, which those that are served have: '$0.30 per million tokens'."""
    amounts = [row.amounts[-1] for row in read.rows]
    return any(amount.unit(*MONEY) and any(unit.name == "tokens" for unit in amount.per) for amount in amounts)


def _is_worked_through(read: Mentions) -> bool:
    """Whether a model is to do something with so many texts, or tokens of them: 'summarize 10 million documents'."""
    texts = [row for row in read.rows if any(row.amounts[-1].unit(name) for name in ("samples", "requests", "tokens"))]
    if texts and "texts" in read.asked("applied"):
        return True
    return any(
        is_worked_on(read.found, row.start) for row in read.rows if row in texts or counts_stranger(read.found, row)
    )


def _is_at_home(read: Mentions) -> bool:
    """Whether all that is named to run it on is one person's, and nothing is said of training: 'qwen 32b on a 4090'."""
    devices = read.of("accelerator")
    personal = all(name.id and find_accelerator(str(name.id)).value.personal for name in devices)
    told = [row.amounts[-1] for row in read.rows]
    sizes = [amount for amount in told if amount.unit("bytes")]
    cards = len(sizes) == 1 and not any(amount.unit("devices", "nodes") for amount in told)
    return (personal if devices else cards) and not (_has_batches(read) or shows(read, TRAINING))


def _has_batches(read: Mentions) -> bool:
    """Whether batches are spoken of, which a training has."""
    return any(sense.kind == "field" and sense.name in _BATCHES for sense in read.senses())


def _is_too_large_to_train(read: Mentions) -> bool:
    """Whether the devices that are named hold no training of the model, whose words nobody says: '70B on 2 H100'."""
    models, devices = read.now("model"), read.now("accelerator")
    if len(models) != 1 or len(devices) != 1 or not (models[0].id and devices[0].id):
        return False
    if shows(read, TRAINING) or _has_batches(read) or _has_a_data_set(read):
        return False
    counts = [row.amounts[-1].value for row in read.rows if row.amounts[-1].names]
    counts += [row.amounts[-1].value for row in read.rows if row.amounts[-1].unit("devices", "nodes")]
    device = find_accelerator(str(devices[0].id)).value
    held = max(counts, default=1.0) * device.memory_bytes
    parameters = find_model(str(models[0].id)).value.parameters or 0
    return bool(counts) and held < _TRAINED_BYTES * parameters


def _has_a_data_set(read: Mentions) -> bool:
    """Whether what only a data set has is counted: '15k examples'."""
    return any(row.amounts[-1].unit("samples") and not row.amounts[-1].unit("requests") for row in read.rows)


def _cannot_train(read: Mentions) -> bool:
    """Whether no training framework runs on any device that is named: 'llama 3 8b on one Inferentia2'."""
    devices = [name.id for name in read.now("accelerator")]
    return bool(devices) and all(id and no_training(find_accelerator(id).value) for id in devices)


def _is_a_large_cluster(read: Mentions) -> bool:
    """Whether more devices are counted than serve a model to anybody who says nothing of users or requests: 'best
    layout for Llama 405B on 256 H100'."""
    if shows(read, SERVING):
        return False
    devices = [row.amounts[-1] for row in read.rows if row.amounts[-1].names or row.amounts[-1].unit("devices")]
    return len(read.now("model")) == 1 and any(amount.value >= _LARGE_CLUSTER for amount in devices)


def _is_read_along(read: Mentions) -> bool:
    """Whether a speed is wished for at which somebody reads: '30 tokens/s'; a training's is thousands."""
    usual = read.found.lexicon.quantities["user_rate"].usual
    rates = [row for row in read.rows if row.amounts[-1].unit("tokens") and per_second(row.amounts[-1])]
    return any(usual[0] <= per_second(row.amounts[-1]) <= usual[1] and not is_observed(read, row) for row in rates)


def per_second(amount: Amount, longest_s: float = _MINUTE_S) -> float:
    """How many there are a second, of an amount per second or minute, or up to a longest time; 0 of others."""
    return next(
        (amount.value / unit.size for unit in amount.per if unit.name == "time" and unit.size <= longest_s), 0.0
    )


def _goes_in_and_out(read: Mentions) -> bool:
    """Whether tokens are said to go in and to come out: '16k in 1k out'."""
    behind = {read.tokens[row.end].norm for row in read.rows if row.end < len(read.tokens)}
    return {"in", "out"} <= behind


# What says of a first question without a verb that a model is to be used.
_OF_SERVING = (_goes_in_and_out, _limits_latency, is_asked_by_many, _is_paid_by_tokens, _is_read_along,
               _is_worked_through, _is_at_home, _is_too_large_to_train)  # fmt: skip
