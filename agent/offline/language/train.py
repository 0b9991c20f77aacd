"""Learns the weights of `act.py` from labelled conversations: `python -m agent.offline.language.train FILE ...`.

A file is a list of conversations, each a list of turns: `say`, `call` (tools that answer it), `plan` (fields that it
says), `none` (nothing is called), `new` (begins anew); see tests/data/questions.yaml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from agent.offline.catalogue import known
from agent.offline.language import act
from agent.offline.language.assign import value_of
from agent.offline.language.features.mode import Context, of_mode
from agent.offline.language.features.role import of_role
from agent.offline.language.features.tool import of_tool
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING, TRAINING, mentions, mode_of_field
from agent.offline.language.reading.page import Page, understood
from agent.offline.language.roles import NO_FIELD, may_fill, rows_of
from agent.offline.language.rows import Row
from agent.offline.language.sentences import sentences
from estimator.plan.schema import merge
from planner.requests import ALL_PATHS, ONLY_SERVING, ONLY_TRAINING

_NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
_EPOCHS, _RATE, _DECAY = 20, 0.5, 2e-5
# What only one author says, or two, tells little about others.
_AUTHORS = 3
# Values of a label that are none.
_NO_VALUES = ("absent", "present", None)
# How much a sentence out of the lexicon weighs beside one that somebody said.
_GENERATED = 0.3
# Examples that a process is handed together.
_AT_ONCE = 64


class Doubt(NamedTuple):
    """How little is believed of what is learnt from: the share of an example's features that is taken each time, the
    share of it that is dealt over all labels, since some are labelled otherwise than others would, and how far labels
    are not told by being usual (logit adjustment: Menon et al. 2021, eq. 10), since what is rare is what its words
    say."""

    kept: float = 1.0
    dealt: float = 0.0
    usual: float = 0.0


# Whether it is training or serving is hardly ever in doubt; which of many tools is meant, often.
_OF_MODE, _OF_TOOL, _OF_ROLE = Doubt(), Doubt(kept=0.7, dealt=0.1, usual=0.3), Doubt(kept=0.7, dealt=0.05)


class Example(NamedTuple):
    """A turn with what it is: its mode (None: unknown), and the tools that answer it (empty: not to be learnt)."""

    text: str
    context: Context
    mode: str | None
    tools: tuple[str, ...]
    source: str
    plan: Mapping[str, Any] = {}
    """The plan so far, and what of it was said last."""
    topic: Mapping[str, Any] = {}
    numbers: Mapping[str, tuple[float, ...]] | None = None
    """The numbers that it says, or may say, by their field; None where that is not known."""


def examples(files: Iterable[Path]) -> Iterator[Example]:
    for file in files:
        for talk in yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            yield from _of_talk(talk, file.stem)


def _of_talk(talk: Sequence[Mapping[str, Any]], source: str) -> Iterator[Example]:
    plan, mode, before = False, None, None
    held: dict[str, Any] = {}
    recent: str | None = None
    for turn in talk:
        if turn.get("new"):
            plan, mode, before, held, recent = False, None, None, {}, None
        calls = turn.get("call")
        named = [one for one in (calls if isinstance(calls, list) else [calls]) if one]
        context = Context((mode or TRAINING) if plan else None, before)
        mode = _mode_of(turn, named) or mode
        tools = tuple(named) or ((act.NO_TOOL,) if turn.get("none") else ())
        if turn.get("ask") and not named:
            # What is asked back is asked of a run that is to be estimated.
            tools = ("estimate_inference",) if mode == SERVING else ("estimate_training", "check_fit", "estimate_cost")
        shown = {**_plan(context), **held} if plan else {}
        yield Example(turn["say"], context, mode, tools, source, shown, {"recent": recent}, _numbers(turn))
        labels = {
            ALL_PATHS[name]: _first(value) for name, value in (turn.get("plan") or {}).items() if name in ALL_PATHS
        }
        held = merge(held, labels)
        recent = next((path for path in reversed(labels) if labels[path] is not None), recent)
        plan = plan or bool(labels)
        before = named[0] if named else before


def _choices(label: Any) -> list[Any]:
    """The values that will do."""
    match label:
        case {"any": list(values)}:
            return [value for value in values if value not in _NO_VALUES]
    return [label]


def _first(label: Any) -> Any:
    return next(iter(_choices(label)), None)


def _numbers(turn: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The numbers that a turn says, or may say, by their field."""
    numbers: dict[str, tuple[float, ...]] = {}
    for part in ("may", "args", "plan"):
        for name, label in (turn.get(part) or {}).items():
            values = (value for value in _choices(label) if isinstance(value, int | float))
            numbers[name] = (*numbers.get(name, ()), *(float(value) for value in values if not isinstance(value, bool)))
    return numbers


def _mode_of(turn: Mapping[str, Any], tools: Sequence[str]) -> str | None:
    fields = set(turn.get("plan") or {})
    if fields & ONLY_SERVING or (set(tools) <= act.OF_SERVING and tools):
        return SERVING
    if fields & ONLY_TRAINING or (set(tools) <= act.OF_TRAINING and tools):
        return TRAINING
    return None


def learnt(
    found: Sequence[Sequence[str]], sources: Sequence[str], labels: Sequence[tuple[str, ...]], doubt: Doubt
) -> act.Classifier:
    """Softmax regression by stochastic gradients with AdaGrad, each time over some of the features. `found`, `sources`
    and `labels` are the features, the author and the labels that will do of each example."""
    chance = np.random.default_rng(0)
    names = sorted({name for each in labels for name in each})
    targets = _targets(labels, names)
    weights = np.array([_GENERATED if source == "generated" else 1.0 for source in sources])
    usual = doubt.usual * _usual(targets, weights)
    keys = _shared(found, sources)
    none = act.Classifier(keys, np.zeros((len(keys) + 1, len(names)), dtype=np.float32), tuple(names))
    matrix, seen = none.matrix, np.full_like(none.matrix, 1e-6)
    rows = [none.rows(each) for each in found]
    norms = [1.0 / max(len(row), 1) ** 0.5 / doubt.kept for row in rows]
    for epoch in range(_EPOCHS):
        rate = _RATE * (1 - epoch / _EPOCHS)
        for index in chance.permutation(len(rows)):
            row, norm = rows[index], norms[index]
            row = row[chance.random(len(row)) < doubt.kept]
            scores = matrix[row].sum(axis=0) * norm + matrix[-1] + usual
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            wanted = targets[index]
            if wanted.sum() != 1.0:
                # Several will do: those that it prefers itself.
                open_ = (wanted > 0) * shares + 1e-9 * (wanted > 0)
                wanted = open_ / open_.sum()
            error = weights[index] * (shares - (1 - doubt.dealt) * wanted - doubt.dealt / len(names))
            step = error * norm
            seen[row] += step * step
            matrix[row] -= rate * (step + _DECAY * matrix[row]) / np.sqrt(seen[row])
            seen[-1] += error * error
            matrix[-1] -= rate * 0.1 * error / np.sqrt(seen[-1])
    return none


def _usual(targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How usual each label is: the logarithm of its share of the examples, (labels,)."""
    counted = (targets / targets.sum(axis=1, keepdims=True) * weights[:, None]).sum(axis=0)
    return np.log((counted + 1) / counted.sum())


def _shared(found: Sequence[Sequence[str]], sources: Sequence[str]) -> np.ndarray:
    """Hashes of the features that several authors use, sorted."""
    authors: dict[str, set[str]] = {}
    for each, source in zip(found, sources, strict=True):
        for one in each:
            authors.setdefault(one, set()).add(source)
    kept = {act.hashed(one) for one, using in authors.items() if len(using) >= _AUTHORS}
    return np.array(sorted(kept), dtype=np.uint32)


def _targets(labels: Sequence[tuple[str, ...]], names: Sequence[str]) -> np.ndarray:
    place = {name: index for index, name in enumerate(names)}
    targets = np.zeros((len(labels), len(names)), dtype=np.float32)
    for row, each in enumerate(labels):
        for name in each:
            targets[row, place[name]] = 1.0
    return targets


def generated() -> Iterator[Example]:
    """Sentences out of the lexicon: a field with a line there is understood when it is set, asked about or refused."""
    words = lexicon()
    for name, quantity in words.quantities.items():
        mode = mode_of_field(name)
        if name not in ALL_PATHS or mode is None:
            continue
        low, high = quantity.usual
        value = f"{min(max(low * 4, 4), high):g}"
        form = words.forms[name][0]
        for text in (
            f"set the {form} to {value}",
            f"{form} {value}",
            f"use {form} {value} instead",
            f"double the {form}",
            f"doubling the {form}",
            f"what if we had {form} {value}?",
            f"would {form} {value} help",
            f"suppose {form} {value}",
        ):
            yield _generated(text, mode)
    for name, values in words.values.items():
        mode = mode_of_field(name)
        if name not in ALL_PATHS or mode is None:
            continue
        for value in sorted(values, key=str):
            form = next(iter(words.forms.get(f"{name}={value}", ())), None)
            for way in ("use {}", "now with {}", "without {}", "switch to {}") if form else ():
                yield _generated(way.format(form), mode)
    for one in sentences():
        yield Example(one.text, Context(one.plan, one.before), one.mode, one.tools, "generated")
    for text in _ELSEWHERE:
        for plan, before in ((None, None), (TRAINING, _CHAIN[TRAINING][0]), (SERVING, _CHAIN[SERVING][0])):
            yield Example(text, Context(plan, before), None, (act.NO_TOOL,), "generated")
    for text, mode in (("train Llama-3.1-8B on 8 H100", TRAINING), ("Train Mixtral 8x7B on 16 A100s", TRAINING),
                       ("fine-tune qwen2.5-7b on 4 L40S", TRAINING), ("serve Llama-3.1-8B on 2 H100", SERVING),
                       ("serve qwen2.5-72b on 8 A100 with vLLM", SERVING)):  # fmt: skip
        yield Example(text, Context(), mode, _CHAIN[mode], "generated")


# What is about nothing that is planned here.
_ELSEWHERE = ("what is the weather in Rome?", "what time is it", "tell me a joke", "write a poem about autumn",
              "who won the election?", "translate this into French", "book a flight to Berlin", "what is 12 times 7?",
              "how old is the universe?", "recommend a restaurant", "draw a picture of a cat", "good morning",
              "who are you?", "play some music", "summarize this article", "what is the capital of Peru?",
              "who won the cup last night?", "who is the president of Chile", "how do I bake bread",
              "what should I cook tonight?", "who wrote Hamlet?", "where is my train", "is the shop open on Sunday?",
              "will it rain tomorrow", "set an alarm for six", "call my mother", "send a mail to Anna",
              "what is the news today?", "how tall is Mont Blanc", "do you like football?", "sing me a song",
              "which film should I watch?", "how are stocks today", "wie wird das Wetter?", "cuéntame un chiste",
              "raconte-moi une blague", "今天天气怎么样", "今日の天気は?")  # fmt: skip
# What answers where a plan is only changed: the chain of the question before.
_CHAIN = {TRAINING: ("estimate_training", "check_fit"), SERVING: ("estimate_inference",)}


def _generated(text: str, mode: str) -> Example:
    return Example(text, Context(mode, _CHAIN[mode][0]), mode, _CHAIN[mode], "generated")


class Lesson(NamedTuple):
    """What a turn shows: of its tool, and of each number of which it is known what was meant by it."""

    tool: Sequence[str]
    numbers: Sequence[tuple[Sequence[str], tuple[str, ...]]]


def train(told: Sequence[Example]) -> dict[str, act.Classifier]:
    unmarked = list(_unmarked(told))
    told = [*told, *generated()]
    of_modes = [example for example in told if example.mode]
    asked = [example for example in (*told, *unmarked) if example.tools]
    forms = list(_forms())
    with ProcessPoolExecutor() as pool:
        heard = list(pool.map(_of_mode, of_modes, chunksize=_AT_ONCE))
        sources = [example.source for example in of_modes]
        modes = learnt(heard, sources, [(str(example.mode),) for example in of_modes], _OF_MODE)
        shown = list(pool.map(partial(_lesson, modes=modes), [*asked, *forms], chunksize=_AT_ONCE))
    sources = [example.source for example in asked]
    tools = learnt([each.tool for each in shown[: len(asked)]], sources, [each.tools for each in asked], _OF_TOOL)
    numbers = [
        (*number, example.source)
        for example, each in zip([*asked, *forms], shown, strict=True)
        for number in each.numbers
    ]
    found, fields, sources = zip(*numbers, strict=True)
    return {"mode": modes, "tool": tools, "role": learnt(found, sources, fields, _OF_ROLE)}


def _forms() -> Iterator[Example]:
    """Every quantity of the lexicon under its names: what hardly anybody says is no other field for that."""
    words = lexicon()
    for name, quantity in words.quantities.items():
        low, high = quantity.usual
        for times in (2, 8):
            value = f"{min(max(low * times, times), high):g}"
            for form in words.forms[name][:3]:
                for text in (f"{form} {value}", f"{form}: {value}", f"with {value} {form}"):
                    numbers = {name: (float(value),)}
                    yield Example(text, Context(), mode_of_field(name), (), "generated", numbers=numbers)


def _of_mode(example: Example) -> Sequence[str]:
    return of_mode(mentions(example.text, known()), example.context)


def _lesson(example: Example, modes: act.Classifier) -> Lesson:
    page = _page(example, modes)
    return Lesson(of_tool(page, example.context), list(_numbers_shown(page, example)))


def _page(example: Example, modes: act.Classifier) -> Page:
    mode = example.mode
    if not mode:
        shares = act.likely(modes, _of_mode(example))
        mode = max(shares, key=lambda name: shares[name])
    plan = example.plan or _plan(example.context)
    return understood(example.text, known(), plan, example.topic, _NOON, mode, learnt=False)


def _numbers_shown(page: Page, example: Example) -> Iterator[tuple[Sequence[str], tuple[str, ...]]]:
    if example.numbers is None:
        return
    named = page.read.found.fields
    for row in rows_of(*page.first):
        filled = [each for each in page.first.filled if each.row is row]
        if meant := _meant(row, [each.field for each in filled], example.numbers):
            recent = example.topic.get("recent")
            yield of_role(page.read, row, filled, named, page.mode, recent, bool(example.plan)), meant


# What stands for a field that a label holds: whose batch or length it is is told later, a price is of all devices.
_STANDS_FOR = {"batch": {"micro_batch", "global_batch"}, "length": {"seq_len", "max_context", "input_len"},
               "credits_usd": {"budget_usd"}, "usd_per_node_hour": {"usd_per_device_hour"}}  # fmt: skip
_OF_MACHINES = {"count", "nodes", "per_node"}


def _meant(row: Row, shown: Sequence[str], numbers: Mapping[str, tuple[float, ...]]) -> tuple[str, ...]:
    """The fields that a number was meant for; empty where that is not known."""
    last = row.amounts[-1]
    meant: set[str] = set()
    for name in numbers:
        quantity = lexicon().quantities.get(name)
        if quantity is None or not (name in shown or may_fill(quantity, row)):
            continue
        told = {value_of(quantity, amount, last) for amount in row.amounts}
        told |= {amount.value for amount in row.amounts} if quantity.length else set()
        if any(abs(value - each) <= 1e-6 * max(abs(each), 1e-9) for value in told for each in numbers[name]):
            meant.add(name)
    meant |= {name for name in shown if _STANDS_FOR.get(name, set()) & set(numbers)}
    if meant or not shown:
        return tuple(meant) or (NO_FIELD,)
    if len(row.amounts) > 1:
        # Values of a range are the tool's.
        return tuple(shown)
    # What no label holds is as it was shown: machines that are counted together, what a number only says of another.
    unlabelled = [name for name in shown if name not in ALL_PATHS or name in _OF_MACHINES]
    return tuple(unlabelled) or (NO_FIELD,)


def _unmarked(told: Sequence[Example]) -> Iterator[Example]:
    """The same questions without their mark: many people leave it out."""
    for example in told:
        if example.text.rstrip().endswith(("?", "？")):
            yield example._replace(text=example.text.rstrip(" \n?？"))


def _plan(context: Context) -> dict[str, Any]:
    if context.plan is None:
        return {}
    return {"model": "?", "workload": {"kind": "inference"} if context.plan == SERVING else {}}


def save(weights: Mapping[str, act.Classifier], path: Path = act.WEIGHTS) -> None:
    """Eight bits a weight, with one scale for each classifier."""
    arrays: dict[str, Any] = {}
    for name, each in weights.items():
        scale = float(np.abs(each.matrix).max()) / 127
        arrays |= {f"{name}_keys": each.keys,
                   name: np.round(each.matrix / scale).astype(np.int8), f"{name}_scale": np.float32(scale),
                   f"{name}_labels": np.array(each.labels)}  # fmt: skip
    np.savez_compressed(path, **arrays)


if __name__ == "__main__":
    save(train(list(examples(map(Path, sys.argv[1:])))))
