"""A turn as the form that the executor acts on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from agent.offline.beside import MEANT
from agent.offline.catalogue import Catalogue
from agent.offline.form import BESIDE, Edit, Need, Reading, Reference
from agent.offline.language import act, scope
from agent.offline.language.asking import clauses, sentences, supposing
from agent.offline.language.assign import COUNTING, Filled, Named, Row, assigned, fields_named, strange, value_of
from agent.offline.language.calendar import deadline, iso_tokens
from agent.offline.language.choice import about_the_answer, chosen
from agent.offline.language.devices import Devices, Pair, apart, devices, of_those, pairs
from agent.offline.language.features import Context
from agent.offline.language.lexicon import Sense, lexicon
from agent.offline.language.mentions import SERVING, TRAINING, Mentions, Value, mentions, network, shows
from agent.offline.language.names import Name
from agent.offline.language.own import FREE, edits_left, own_of, pricing_of
from agent.offline.language.pasted import apart as apart_
from agent.offline.language.relative import Mark, differences, factors, known_fields, marks, parts
from agent.offline.usual import card_of
from estimator.errors import PlanError
from knowledge.models.catalogue import find_model
from planner.partial import get
from planner.requests import ALL_PATHS

# Of a longer message the beginning is read, and the rest is told to be unread.
_LONGEST = 12_000
_BYTES_PER_TOKEN = 4
# Reinforcement learning's own quantities, hardly ever meant of other runs.
_ROLLOUTS = ("group_size", "response_len", "prompt_len", "engine_share")
_RL_STAGES = ("grpo", "ppo")
# Values that say less than others of their field beside them.
_GENERAL = {"stage": ("sft", "rm"), "weight_dtype": ("int4", "int8", "gguf", "bf16", "fp16"),
            "quantisation": ("nf4",)}  # fmt: skip
# Tools that take several of what is named as they are.
NO_OPTIONS = ("apply_strategies", "benchmark_matrix", "peak_throughput", *FREE)
# Fields whose names stand beside numbers that are none of theirs: 'rank 0', 'version 2.5'.
_FEW_WORDS, _FEWEST_WORDS = 8, 3
_FACTS = ("describe_model", "describe_hardware")
_LATIN = ("word", "number")
_MARKS = " ,;:.!?'\"()，。？！；：、"
# How far what is sold as so many GB may be from what a table says.
_SAME_MEMORY = 0.08
# From this cost on a number is hardly of the field that it fills.
_UNSURE = 2.0
# Up to this cost the words beside a number say which field it fills.
_SURELY = 0.7
# From here on a value is unusual for a field.
_UNUSUAL = 0.4
# From this share on the classifier knows better than a single word.
_SURE = 0.7
# What a number makes of a value that says the same without one: 'expert parallel 8'.
_NUMBER_OF = {"expert_parallel": "ep"}
# Fields that are limits from above; loads, which may be said either way.
_LIMITED = ("deadline_h", "budget_usd", "ttft_slo_ms", "tpot_slo_ms", "max_context", "max_batch", "max_batched_tokens")
_LOADS = ("concurrency", "request_rate", "requests", "reserve_gib", "load", "token_rate")
# What 'without' makes of a field that a number says.
_NONE = {"zero_stage": 0, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "vpp": 1, "lora_dropout": 0.0, "prefix_hit": 0.0}
_IDIOMS = ("lora_rank", "dp", "batch", "group_size")
# Rates that may as well be what was measured, and how many words before them say so.
_MEASURED = ("token_rate", "request_rate", "user_rate", "load")
_REACH = 7
_WHOLE = ("count", "per_node", "nodes", "tp", "pp", "cp", "ep", "etp", "dp", "vpp", "zero_stage", "micro_batch",
          "global_batch", "batch", "group_size", "lora_rank", "accumulation", "steps", "concurrency", "seq_len",
          "input_len", "output_len", "response_len", "max_batch", "speculative_tokens", "requests", "max_context",
          "max_batched_tokens", "shard_group", "recompute_block", "replicas", "length", "prompt_len",
          "prefix_tokens")  # fmt: skip


@dataclass
class Page:
    """A turn while it is being understood."""

    read: Mentions
    plan: Mapping[str, Any]
    topic: Mapping[str, Any]
    now: datetime
    catalogue: Catalogue
    mode: str | None
    filled: list[Filled]
    left: list[Row]
    made: list[Pair]
    refused: scope.Refusals
    devices: list[Devices]
    marks: list[Mark] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    """Words of a change that nothing was found to change by."""
    pasted: str | None = None
    named: list[Edit] = field(default_factory=list)
    """Every model and device that is named and not refused."""
    assumed: list[str] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)

    def values(self, name: str) -> list[float]:
        return [value for number in self.filled if number.field == name for value in number.values]

    @cached_property
    def known(self) -> frozenset[str]:
        """Flat names of the numbers that the plan holds, or the one that is supposed."""
        return known_fields(self.topic.get("supposed") or self.plan)

    @cached_property
    def sized(self) -> bool:
        """Whether a size in bytes is said."""
        return any(row.amounts[-1].unit("bytes") for row in self.read.rows)

    @property
    def kept(self) -> list[Value]:
        """Values of the page's mode that are not refused."""
        return [value for value in self.read.values if self.fits(value) and value.start not in self.refused.things]

    def fits(self, value: Value) -> bool:
        return value.mode in (None, self.mode) or self.mode is None


def read(
    text: str,
    catalogue: Catalogue,
    plan: Mapping[str, Any] | None = None,
    topic: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> Reading:
    """The form of one turn, said in a conversation that has a partial plan and a topic."""
    parts = apart_(text)
    said, data = parts.said[:_LONGEST], parts.data[:_LONGEST]
    page = understood(said, catalogue, plan or {}, topic or {}, now or datetime.now().astimezone(), data=data)
    page.pasted = parts.config
    if len(parts.said) > _LONGEST:
        page.assumed.append(f"only the first {_LONGEST:,} characters of the message were read")
    tool, shares = chosen(page, context_of(page.plan, page.topic))
    if page.pasted:
        tool = "import_config"
    return _form(page, tool, shares)


def context_of(plan: Mapping[str, Any], topic: Mapping[str, Any]) -> Context:
    kind = None
    if plan:
        kind = SERVING if (plan.get("workload") or {}).get("kind") == "inference" else TRAINING
    return Context(kind, _asked_before(topic, kind))


# Tools of a chain by the last of their intents that is no figure.
_OF_INTENT = {"size": "size_serving", "best": "best_serving", "write": "write_configs", "render": "render_configs"}


def _asked_before(topic: Mapping[str, Any], kind: str | None) -> str | None:
    """The tool that answered the turn before, or was to; of one that went on with a question the tool of that one."""
    asked = {**topic, **(topic.get("pending") or {}).get("topic", {})}
    if last := asked.get("last") or asked.get("wish"):
        return last[0]
    if asked.get("limit") or asked.get("sweep"):
        return "find_limit" if asked.get("limit") else "sweep"
    if tool := (topic.get("reading") or {}).get("tool"):
        return tool
    named = [_OF_INTENT[name] for name in asked.get("intents") or () if name in _OF_INTENT]
    return named[0] if named else {None: None, SERVING: "estimate_inference"}.get(kind, "estimate_training")


def understood(
    text: str,
    catalogue: Catalogue,
    plan: Mapping[str, Any],
    topic: Mapping[str, Any],
    now: datetime,
    mode: str | None = None,
    data: str = "",
) -> Page:
    """The page of a text: mentions, whether it is about training or serving, what each number fills, what is
    refused. `data` was pasted beside it."""
    read = mentions(text, catalogue, data)
    mode = mode or _mode(read, plan, topic)
    dated = iso_tokens(read)
    numbers = [row for row in read.rows if row.start not in dated]
    numbers = parts(read, numbers, plan)
    changes, numbers = marks(read, numbers) if plan else ([], numbers)
    made, rest = pairs(read.found, numbers)
    halves, rest = _in_and_out(rest) if mode == SERVING else ([], rest)
    filled, left = assigned(read.found, rest, mode, _likely(read, plan, mode))
    filled += halves
    filled, left = _of_the_last(read, filled, left, plan, topic)
    filled = [value for value in filled if not (value.field in _MEASURED and _is_observed(read, value.row))]
    lasting = [number for number in filled if _has_lasted(read, number) or _broke_off(read, number)]
    filled, left = [number for number in filled if number not in lasting], [*left, *(one.row for one in lasting)]
    filled = sorted(apart(read, filled), key=lambda one: one.row.start)
    refused = scope.refusals(read.found, _things(read, mode, filled))
    filled, machines = (filled, None) if plan else of_those(read, filled)
    named = devices(read, filled, made, frozenset(refused.things), machines)
    return Page(read, plan, topic, now, catalogue, mode, filled, left, made, refused, named, changes)


def _has_lasted(read: Mentions, time: Filled) -> bool:
    """Whether a time is told of as one that has gone by: 'I have been at it for three days'."""
    start = time.row.start
    if time.field != "deadline_h":
        return False
    sentence = next(token for token in sentences(read.tokens) if start in token)
    return start in read.telling and any(read.found.sense(at, "lasted") for at in sentence)


def _broke_off(read: Mentions, steps: Filled) -> bool:
    """Whether steps are told of as those that a run got through: 'OOM after 20 steps'."""
    start = steps.row.start
    if steps.field not in ("steps", "epochs") or not start or not read.found.sense(start - 1, "behind"):
        return False
    sentence = next(token for token in sentences(read.tokens) if start in token)
    return any(at in sentence and name == "fit" for at, _, name in read.asked_at("focus"))


def _is_refused(read: Mentions, at: int) -> bool:
    """Whether a refusal stands right before a word: 'not training'."""
    return any(read.found.does(before, "refuse_right") == at for before in range(max(at - 3, 0), at))


def _is_observed(read: Mentions, row: Row) -> bool:
    """Whether a rate is what somebody measured, not what is wished: 'gives 13 tokens/s', 'it runs, at 20 tokens/s'."""
    for at in range(row.start - 1, max(row.start - _REACH, -1), -1):
        if read.tokens[at].ends_sentence or any(sense.kind == "wants" for sense in _senses(read, at)):
            return False
        if any(sense.kind == "observes" for sense in _senses(read, at)):
            return True
    return False


def _senses(read: Mentions, at: int) -> list[Sense]:
    return [sense for word in read.found.words.get(at, ()) for sense in word.senses]


def _mode(read: Mentions, plan: Mapping[str, Any], topic: Mapping[str, Any]) -> str:
    if verbs := [name for at, _, name in read.asked_at("mode") if not _is_refused(read, at)]:
        # 'Fine-tune it for inference': what is to be done is said first.
        return verbs[0]
    context = context_of(plan, topic)
    shares = act.mode_of(read, context)
    mode = max(shares, key=lambda name: shares[name])
    shown = {value.mode for value in read.values}
    alone = [kind for kind in (TRAINING, SERVING) if shows(read, kind)]
    if len(shown) == 1 and shares[mode] < _SURE:
        mode = shown.pop() or mode
    elif len(alone) == 1 and shares[mode] < _SURE:
        mode = alone[0]
    return context.plan if context.plan and not shows(read, mode) else mode


def _of_the_last(
    read: Mentions, filled: list[Filled], left: list[Row], plan: Mapping[str, Any], topic: Mapping[str, Any]
) -> tuple[list[Filled], list[Row]]:
    """A number alone as another value of what was changed last ('hm, 4?'), or as what it is brought back to."""
    for sentence in clauses(read.found) if plan else ():
        unsure = [number for number in filled if number.row.start in sentence]
        loose = [*(row for row in left if row.start in sentence), *(one.row for one in unsure)]
        bare = len(loose) == 1 and not (loose[0].amounts[-1].units or loose[0].amounts[-1].names)
        if not bare or any((one.cost < _UNSURE or one.name) and one.field != "seen" for one in unsure):
            continue
        row = loose[0]
        name = _brought_back(read, row, plan, topic.get("plans") or ()) or _stands_for(read, plan, topic, row, sentence)
        if name is None:
            continue
        quantity = lexicon().quantities[name]
        values = tuple(value_of(quantity, amount, row.amounts[-1]) for amount in row.amounts)
        filled = [*(number for number in filled if number.row is not row), Filled(name, values, row, 1.0)]
        left = [one for one in left if one is not row]
    return filled, left


def _stands_for(
    read: Mentions, plan: Mapping[str, Any], topic: Mapping[str, Any], row: Row, sentence: range
) -> str | None:
    """The field that a number alone is another value of, in a sentence of a few words."""
    quantities = lexicon().quantities
    recent = next(
        (name for name, path in ALL_PATHS.items() if path == topic.get("recent") and name in quantities), None
    )
    corrects = any(read.found.does(at, "refuse_right", "correct") for at in sentence)
    recent = recent if topic.get("followed", True) or corrects else None
    few = len(sentence) <= _FEWEST_WORDS
    if len(sentence) > _FEW_WORDS or any(read.found.sense(at, "excess") for at in sentence):
        return None
    if recent and strange(quantities[recent], row) <= _UNUSUAL:
        return recent
    if recent and not (few and get(plan, "cluster.count")):
        return None
    name = (None if recent else _nearest(plan, row)) or "count"
    return name if strange(quantities[name], row) <= _UNUSUAL else None


def _brought_back(read: Mentions, row: Row, plan: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> str | None:
    """The field that had a number in an earlier plan and has another now: 'back to 4'."""
    onto = [
        at for at in range(max(row.start - 2, 0), row.start) if (read.found.sense(at, "onto") or (0, 0))[1] == row.start
    ]
    if not onto or not any(read.found.does(at, "back") for at in range(max(onto[0] - 3, 0), onto[0])):
        return None
    value = row.amounts[-1].value
    for earlier in reversed(plans):
        for name in known_fields(earlier):
            before = get(earlier, ALL_PATHS[name])
            if before in (value, row.amounts[-1].length) and get(plan, ALL_PATHS[name]) != before:
                return name
        each = get(earlier, "cluster.per_node")
        if each and value * each == get(earlier, "cluster.count") != get(plan, "cluster.count"):
            return "nodes"
    return None


def _nearest(plan: Mapping[str, Any], row: Row) -> str | None:
    """Of the numbers that a plan holds the one that another is the likeliest to stand for: devices first."""
    value = row.amounts[-1].value
    near: list[tuple[float, str]] = []
    for name in known_fields(plan):
        held, quantity = get(plan, ALL_PATHS[name]), lexicon().quantities.get(name)
        if quantity and value > 0 and held > 0 and held != value and strange(quantity, row) <= _UNUSUAL:
            near.append((abs(math.log2(value / held)) - (name == "count"), name))
    return min(near)[1] if near else None


def _of_the_last_in_words(page: Page) -> list[Edit]:
    """A value alone as another one of what was changed last: 'none then'."""
    recent = next((name for name, path in ALL_PATHS.items() if path == page.topic.get("recent")), None)
    if not page.plan or recent is None or len(page.read.tokens) > _FEW_WORDS:
        return []
    meant = {*lexicon().values.get(recent, ()), lexicon().refused.get(recent)}
    for at, token in enumerate(page.read.tokens):
        if token.norm in meant:
            return [Edit(recent, "set", token.norm, page.read.span(at, at + 1))]
    return []


def _in_and_out(rows: Sequence[Row]) -> tuple[list[Filled], list[Row]]:
    """'1k/200' as tokens in and out, and the rest of the numbers."""
    found: list[Filled] = []
    rest: list[Row] = []
    for row in rows:
        last = row.amounts[-1]
        if len(row.amounts) == 1 and last.before == "/" and rest and not (last.units or last.names or last.per):
            first = rest[-1].amounts[-1]
            if (
                len(rest[-1].amounts) == 1
                and not (first.units or first.names)
                and first.value >= 16
                and last.value >= 16
            ):
                rest.pop()
                found.append(Filled("input_len", (first.length,), Row((first,)), 0.5))
                found.append(Filled("output_len", (last.length,), row, 0.5))
                continue
        rest.append(row)
    return found, rest


def _likely(read: Mentions, plan: Mapping[str, Any], mode: str | None) -> dict[str, float]:
    """What makes a field less (or more) likely than its words say."""
    stages = [value.value for value in read.values if value.field in ("stage", "rollout")]
    planned = (plan.get("workload") or {}).get("stage")
    rl = planned in _RL_STAGES or any(stage in (*_RL_STAGES, "separate", "colocated", "trainer") for stage in stages)
    found: dict[str, float] = dict.fromkeys(_ROLLOUTS, -0.1 if rl else 2.5)
    if not any(sense.name == "nodes" for sense in read.senses() if sense.kind == "unit"):
        found["per_node"] = 1.2
    found["model_size"] = 0.6 if any(name.kind == "model" for name in read.names) else 0.0
    return found


def _things(read: Mentions, mode: str | None, filled: Sequence[Filled]) -> list[scope.Thing]:
    """What refusals and alternatives are about."""
    taken = {at for number in filled for amount in number.row.amounts for at in range(amount.start, amount.end)}
    staged = any(value.field == "stage" and value.value not in _GENERAL["stage"] for value in read.values)
    found = [
        scope.Thing(value.start, value.end, f"value:{value.field}")
        for value in read.values
        if (value.mode in (None, mode) or mode is None) and not _of_a_number(value, filled)
        if value.start not in taken and not (staged and value.field == "stage" and value.value in _GENERAL["stage"])
    ]
    found += [scope.Thing(name.start, name.end, name.kind) for name in read.names]
    found += [
        scope.Thing(
            *_named_span(number),
            f"{'number' if _named_span(number)[0] == number.row.start else 'named'}:{number.field}",
        )
        for number in filled
    ]
    longest: dict[int, Named] = {}
    for one in _free_names(read, filled):
        if read.found.does(one.start, "refuse_right", "refuse_left", "particle"):
            continue
        if one.start not in longest or one.end > longest[one.start].end:
            longest[one.start] = one
    found += [scope.Thing(one.start, one.end, f"field:{one.field}") for one in longest.values()]
    unique = {(thing.start, thing.key): thing for thing in sorted(found, key=lambda thing: thing.end)}
    return sorted(unique.values(), key=lambda thing: (thing.start, -thing.end))


def _of_versions(page: Page) -> list[tuple[int, list[Edit]]]:
    """Versions that stand right behind an engine: 'vllm 0.8.5'."""
    edits: list[tuple[int, list[Edit]]] = []
    for one in page.kept:
        end = one.end
        while end < len(page.read.tokens) and (
            page.read.tokens[end].kind == "number"
            or (page.read.tokens[end].text == "." and not page.read.tokens[end].space)
        ):
            end += 1
        said = page.read.said(one.end, end) if end > one.end else ""
        if one.field == "engine" and "." in said.strip("."):
            page.filled = [each for each in page.filled if not one.end <= each.row.start < end]
            page.left = [row for row in page.left if not one.end <= row.start < end]
            version = said.strip(".")
            edits.append((one.end, [Edit("software_version", "set", version, page.read.span(one.end, end))]))
    return edits


def _of_a_number(value: Value, filled: Sequence[Filled]) -> bool:
    """Whether a value's words name the field of a number: 'no zero 3', 'expert parallel 8'."""
    name = _NUMBER_OF.get(value.field, value.field)
    return any(number.field == name and number.name and value.start <= number.name[0] < value.end for number in filled)


def _named_span(one: Filled) -> tuple[int, int]:
    """The tokens of a number with the name of its field, where that stands right before it: 'zero 3', 'tp=8'."""
    near = one.name is not None and 0 <= one.row.start - one.name[1] <= 1
    return (one.name[0] if near and one.name else one.row.start), one.row.end


def _form(page: Page, tool: str | None, shares: dict[str, float]) -> Reading:
    edits, options = _edits(page, tool)
    focus = page.read.asked("focus")
    scoped, edits = _scoped(page, edits)
    refs = _references(page, edits)
    edits = edits or _of_the_last_in_words(page)
    if tool == "compare" and scoped == "hypothetical" and edits and not options:
        # 'Would 16 B200 be cheaper?': than the plan as it is.
        supposed = [edit for edit in edits if not edit.settled]
        edits, options = [edit for edit in edits if edit.settled], [supposed] if supposed else []
    reading = Reading(
        text=page.read.text,
        act=_act(page, tool, edits, options, scoped, refs),
        tool=tool,
        shares={name: round(share, 3) for name, share in shares.items() if share > 0.02},
        focus=focus,
        # 'Tokens' of '1B tokens' names no figure.
        figures=[
            name
            for at, _, name in page.read.asked_at("figure")
            if not any(row.start <= at < row.end for row in page.read.rows)
        ],
        serving=page.mode == SERVING if page.mode and _is_of_a_kind(page, tool, [edits, *options], refs) else None,
        edits=edits,
        options=options,
        pricing=pricing_of(page),
        scope=scoped,
        refs=refs,
        assumed=page.assumed,
        needs=page.needs,
        lost=_lost(page),
        new=bool(page.read.does("new")),
    )
    if tool == "project_mlperf":
        named = [token.norm for token in page.read.tokens if token.norm in ("server", "offline", "interactive")]
        edits += (
            [Edit("scenario", "set", named[0])] if named and not any(edit.field == "scenario" for edit in edits) else []
        )
    own = own_of(page, tool, reading)
    if tool is None and (about := about_the_answer(page)):
        own |= {"about": about}
    if control := next((name for name in ("help", "thanks") if tool is None and name in page.read.asked("wish")), None):
        own["control"] = control
    if tool == "sweep":
        swept = {own.get("field"), own.get("second_field"), "nodes" if own.get("nodes") else None, "batch"}
        edits = [edit for edit in edits if edit.field not in swept]
    if (tool in FREE and tool not in _FACTS) or tool == "save_scenario":
        # Of a run that they are not about nothing is asked.
        paths = set(ALL_PATHS.values())
        reading = replace(reading, needs=[need for need in reading.needs if need.field not in paths])
    edits, options = edits_left(tool, edits, own), options if tool not in FREE else []
    reading = replace(reading, own=own, edits=edits, options=options)
    lost = [*reading.lost, *_unused(page, reading)]
    unknown = _unknown(page)
    lost += [words for words in unknown if any(one.isdigit() for one in words)]
    return replace(reading, lost=lost, unread=list(dict.fromkeys([*lost, *unknown])))


def _unknown(page: Page) -> list[str]:
    """Runs of words that the lexicon does not have and no name is made of, with the numbers that touch them."""
    text, known = page.read.tokens, set(page.read.named_tokens)
    for at, words in page.read.found.words.items():
        known.update(range(at, words[0].end))
    known.update(at for row in page.read.rows for at in range(row.start, row.end))
    known.update(at for at, token in enumerate(text) if token.norm in lexicon().ordinary)
    found: list[str] = []
    at = 0
    while at < len(text):
        if at in known or text[at].kind not in ("word", "single"):
            at += 1
            continue
        start = at
        while start and not text[start].space and start - 1 not in known:
            start -= 1
        while at < len(text) and at not in known and (text[at].kind in ("word", "single") or not text[at].space):
            at += 1
        end = at
        inside = page.read.named_tokens
        while end < len(text) and not text[end].space and text[end].kind in _LATIN and end not in inside:
            end += 1
        found.append(page.read.said(start, end).strip(_MARKS))
    return [words for words in found if words]


def _unused(page: Page, reading: Reading) -> list[str]:
    """Numbers whose meaning was found and of which nothing was made: no field of a plan, no argument, no device."""
    spans = [edit.span for edits in (reading.edits, *reading.options) for edit in edits]
    made = {*reading.own, *reading.pricing, *(name for name in ("model_size", "active_size") if page.read.of("model"))}
    sizes = {size for device in _devices_meant(page) if (size := page.catalogue.memory_gb(device))}
    found: list[str] = []
    for one in page.filled:
        start, end = page.read.span(one.row.start, one.row.end)
        used = one.field in (*ALL_PATHS, *BESIDE, "user_rate", "text_bytes") or one.field in made
        used = used or any(first <= start and end <= last for first, last in spans)
        used = used or any(value in reading.own.values() for value in one.values)
        if one.field == "vram":
            used = used or any(abs(one.values[0] / size - 1) < _SAME_MEMORY for size in sizes)
        if not used:
            found.append(page.read.said(one.row.start, one.row.end))
    fitting = {at for value in page.read.values if page.fits(value) for at in range(value.start, value.end)}
    fitting |= {at for number in page.filled for at in range(number.row.start, number.row.end)}
    # What only the other kind of work has is not used.
    found += [
        page.read.said(value.start, value.end)
        for value in page.read.values
        if not page.fits(value) and value.field in ALL_PATHS and not fitting.intersection(range(value.start, value.end))
    ]
    return found


def _devices_meant(page: Page) -> list[str]:
    planned = get(page.plan, "cluster.accelerator")
    return [str(edit.value) for edit in page.named if edit.field == "accelerator"] + ([planned] if planned else [])


def _edits(page: Page, tool: str | None) -> tuple[list[Edit], list[list[Edit]]]:
    """(What is set, what is set side by side)."""
    said = _present(page, _said(page))
    things = [thing for thing in _things(page.read, page.mode, page.filled) if thing.start not in page.refused.things]
    page.named = [
        edit for _, each in said for edit in each if edit.field in ("model", "accelerator") and edit.op == "set"
    ]
    groups = scope.alternatives(page.read.found, things, page.refused.things)
    options: list[list[Edit]] = []
    together: set[int] = set()
    by_start = dict(said)
    by_start |= {
        _named_span(number)[0]: by_start[number.row.start] for number in page.filled if number.row.start in by_start
    }
    for group in groups:
        choices = [by_start.get(thing.start, []) for thing in group]
        if group[0].key in ("provider", "path", "instance") or tool in NO_OPTIONS:
            continue
        differ = len({str([(e.field, e.value) for e in one]) for one in choices}) > 1
        if not options and len(group) > 1 and all(choices) and differ:
            options = choices
            together |= {start for start, each in said if any(each is choice for choice in choices)}
    if tool == "compare" and not options:
        options = _side_by_side(said)
        together = {start for start, each in said if any(each is option for option in options)}
    for one in page.filled:
        if len(one.values) > 1 and not one.ranged and one.field in (*ALL_PATHS, *BESIDE) and not options:
            span = page.read.span(one.row.start, one.row.end)
            options = [[Edit(one.field, "set", _value(one.field, value), span)] for value in one.values]
            together.add(one.row.start)
    edits = [edit for start, each in said if start not in together for edit in each]
    if options:
        shared = [edit for edit in options[0][1:] if all(any(_same(edit, one) for one in option) for option in options)]
        edits += shared
        options = [[one for one in option if not any(_same(one, edit) for edit in shared)] for option in options]
    changes = factors(page)
    # 'Twice the speculative tokens': the words of the value name its field.
    changed = {one.field for one in changes}
    worded = {value.field for value in page.kept if changed & {value.field, *MEANT.get(value.field, ())}}
    worded -= {number.field for number in page.filled}
    edits = [edit for edit in edits if edit.field not in worded]
    edits += [edit for edit in changes if not any(one.field == edit.field for one in edits)]
    # What the question itself says goes before what is told beside it.
    told = {page.read.tokens[at].start for at in page.read.telling}
    edits = sorted(edits, key=lambda edit: edit.span[0] in told) if told else edits
    return _once(edits, bool(page.read.does("correct", "swap"))), options


# What is said of earlier runs, or by others, and of this one only where it is said of this one.
_OF_ONE_RUN = ("deadline_h", "budget_usd", "micro_batch", "global_batch", "batch", "accumulation", "group_size",
               "request_rate", "token_rate", "load")  # fmt: skip
_DEVICES = ("accelerator", "count", "nodes", "per_node")
_LAYOUT = tuple(name for name, path in ALL_PATHS.items() if path.startswith("layout."))


def _present(page: Page, said: Sequence[tuple[int, list[Edit]]]) -> list[tuple[int, list[Edit]]]:
    """What is said without what is told of earlier runs, or of others, that this one has otherwise: its devices are
    left out together."""
    old = page.read.past
    now = {edit.field for at, edits in said if at not in old for edit in edits}
    left_out = {edit.field for at, edits in said if at in old for edit in edits} & (now | set(_OF_ONE_RUN))
    left_out |= {*_DEVICES, *_LAYOUT} if now & set(_DEVICES) and left_out & set(_DEVICES) else set()
    kept: list[tuple[int, list[Edit]]] = []
    gone: list[str] = []
    for at, edits in said:
        stays = [edit for edit in edits if at not in old or edit.field not in left_out]
        gone += [page.read.text[slice(*edit.span)] for edit in edits if edit not in stays and edit.op == "set"]
        kept += [(at, stays)] if stays else []
    if gone := list(dict.fromkeys(filter(None, gone))):
        page.assumed.append(f"{', '.join(map(repr, gone))}: of earlier runs or of others, so not of this one")
    return kept


def _same(one: Edit, other: Edit) -> bool:
    return (one.field, one.op, one.value) == (other.field, other.op, other.value)


def _side_by_side(said: Sequence[tuple[int, list[Edit]]]) -> list[list[Edit]]:
    """Where a comparison is asked for: the things of one kind of which several are named."""
    for name in ("accelerator", "model", "method", "framework", "engine", "precision", "weight_dtype", "optimizer"):
        same = [each for _, each in said if each and each[0].field == name and each[0].op == "set"]
        if len({str([edit.value for edit in each]) for each in same}) > 1:
            return same
    return []


def _said(page: Page) -> list[tuple[int, list[Edit]]]:
    """[(token, edits)] of each thing that was said, in the order of the text."""
    pieces: list[tuple[int, list[Edit]]] = []
    pieces += _of_models(page)
    pieces += _of_devices(page)
    pieces += _of_values(page)
    pieces += _of_network(page)
    pieces += _of_versions(page)
    pieces += _of_numbers(page)
    pieces += _of_fields(page)
    pieces += [
        (name.start, [Edit("provider", "set", name.id, page.read.span(name.start, name.end))])
        for name in page.read.of("provider")
        if name.start not in page.refused.things
    ]
    return sorted(pieces, key=lambda one: one[0])


def _of_models(page: Page) -> list[tuple[int, list[Edit]]]:
    pieces: list[tuple[int, list[Edit]]] = []
    for name in page.read.of("model"):
        span = page.read.span(name.start, name.end)
        unknown = not (name.id or (name.options and not name.problem))
        if unknown and (meant := _meant_instead(page, name)):
            page.assumed.append(f"{name.text!r} is only told of: the question is about {meant}")
            continue
        if name.start in page.refused.things:
            pieces.append((name.start, [Edit("model", "refuse", name.id or name.text, span)]))
        elif name.id:
            pieces.append((name.start, [Edit("model", "set", name.id, span, name.note)]))
        elif name.options and not name.problem:
            chosen = _usual_model(name.options)
            others = ", ".join(other.rpartition("/")[2] for other in name.options if other != chosen)
            note = f"{name.text!r} taken as {chosen.rpartition('/')[2]} (it may also be {others})"
            pieces.append((name.start, [Edit("model", "set", chosen, span, note)]))
        else:
            nearest = f"; the nearest: {', '.join(name.options[:3])}" if name.options else ""
            page.needs.append(
                Need("model", f"{name.problem}{nearest}. Which is it? A path to its config.json will do, too")
            )
    for name in page.read.of("path"):
        if not pieces and not name.text.endswith((".yaml", ".yml", ".sh", ".py", ".log")):
            pieces.append((name.start, [Edit("model", "set", name.text, page.read.span(name.start, name.end))]))
    if not page.needs:
        pieces += _of_size(page, [edit.value for _, edits in pieces for edit in edits if edit.op == "set"])
    return pieces


def _meant_instead(page: Page, unknown: Name) -> str | None:
    """What another sentence names, where a model that nobody knows is only told of."""
    if unknown.start not in page.read.telling:
        return None
    inside = next(token for token in sentences(page.read.tokens) if unknown.start in token)
    named = [name.text for name in page.read.of("model") if name.id and name.start not in inside]
    sizes = [number.row for number in page.filled if number.field == "model_size" and number.row.start not in inside]
    named += [page.read.said(row.start, row.end) for row in sizes]
    return named[0] if named else None


# Models before that are named where they are meant.
_NEW = "2024"


def _usual_model(options: Sequence[str]) -> str:
    """Of models that share a name the newest of the plainest: what an expert takes where nothing else is said."""
    rows = [find_model(option).value for option in options]
    plain = [
        row
        for row in rows
        if not any(word in row.id.lower() for word in ("instruct", "distill", "coder", "-it", "vision", "math"))
    ]
    rank = {row.id: (row.released or "", -index) for index, row in enumerate(plain or rows)}
    for makers in (("meta-llama/",), ("meta-llama/", "Qwen/", "mistralai/", "google/")):
        same = [row for row in plain or rows if row.id.startswith(makers) and (row.released or "") >= _NEW]
        if same:
            return max(same, key=lambda row: rank.get(row.id, ("", 0))).id
    return max(plain or rows, key=lambda row: rank.get(row.id, ("", 0))).id


def _of_size(page: Page, named: Sequence[str]) -> list[tuple[int, list[Edit]]]:
    """'A 70B' as the usual model of that size: of the family that was named, or that the plan has, before others."""
    edits: list[tuple[int, list[Edit]]] = []
    for one in page.filled:
        if one.field != "model_size":
            continue
        size = one.values[0]
        near = page.catalogue.models_of_size(size) if size > 0 else []
        near = [id for id in near if f"{size / 1e9:g}b" in id.lower()] or near
        span = page.read.span(one.row.start, one.row.end)
        compared = (page.topic.get("alternatives") or {}).get("model") or []
        kin = _kin(near, named or [str(page.plan.get("model") or ""), *map(str, compared)])
        if kin:
            edits.append((one.row.start, [Edit("model", "set", kin, span)]))
        elif named:
            continue
        elif near:
            chosen = _usual_model(near)
            others = [id.rpartition("/")[2] for id in near if id != chosen][:3]
            also = f" (it may also be {', '.join(others)})" if others else ""
            note = f"{page.read.said(one.row.start, one.row.end)!r} taken as {chosen.rpartition('/')[2]}{also}"
            edits.append((one.row.start, [Edit("model", "set", chosen, span, note)]))
        else:
            page.needs.append(
                Need("model", f"which model of {size / 1e9:g}B parameters is it? None of that size is known")
            )
    return edits


def _kin(near: Sequence[str], named: Sequence[str]) -> str | None:
    """Of models of one size that of a named model's own line: the longest beginning in common, past the maker."""

    def shared(id: str, other: str) -> int:
        pairs = zip(id.lower(), other.lower(), strict=False)
        return next((index for index, (one, two) in enumerate(pairs) if one != two), min(len(id), len(other)))

    best = max(((shared(id, other), -len(id), id) for id in near for other in named if other), default=None)
    return best[2] if best and best[0] > best[2].find("/") + 3 else None


def _of_devices(page: Page) -> list[tuple[int, list[Edit]]]:
    pieces: list[tuple[int, list[Edit]]] = []
    for one in page.devices:
        name, span = one.name, page.read.span(one.name.start, one.name.end)
        id, note = _with_memory(page, one) or (name.id, name.note)
        if id is None and name.options and not name.problem:
            id = _usual_device(name.options)
            others = ", ".join(other for other in name.options if other != id)
            note = f"{name.text!r} taken as {id} (it may also be {others})"
        if id is None:
            nearest = f"; the nearest: {', '.join(name.options[:3])}" if name.options else ""
            page.needs.append(Need("cluster.accelerator", f"{name.problem}{nearest}. Which is it?"))
            continue
        edits = [Edit("accelerator", "set", id, span, note)]
        if one.count == 1 and any(other.count and other.name.id == id for other in page.devices if other is not one):
            # 'For an H100 that is slow', of the 16 that were counted.
            one = replace(one, count=None)
        if one.count:
            of_racks = _counts_racks(page, name) and page.catalogue.per_rack(id)
            edits.append(Edit("count", "set", one.count * (of_racks or 1), span))
        elif (rack := _names_rack(page, name) and page.catalogue.per_rack(id)) and not page.values("count"):
            edits.append(Edit("count", "set", rack, span, f"{name.text} taken as one rack of {rack}"))
        if name.instance:
            edits.append(Edit("provider", "set", name.instance.provider, span))
        racks = next((other for other in page.filled if other.field == "racks"), None)
        each = page.catalogue.per_rack(id)
        if racks and each and not one.count:
            said = page.read.span(racks.row.start, racks.row.end)
            edits.append(Edit("count", "set", int(racks.values[0]) * each, said))
        if one.nodes and not one.count:
            edits.append(Edit("nodes", "set", one.nodes, span))
        if one.per_node:
            edits.append(Edit("per_node", "set", one.per_node, span))
        pieces.append((name.start, edits))
    if not (page.devices or page.read.of("accelerator") or get(page.plan, "cluster.accelerator")):
        pieces += _of_memory(page)
        if not pieces and "mine" in page.read.asked("whose"):
            page.needs.append(Need("cluster.accelerator", "which accelerator is it, and how many?"))
    for name in page.read.of("accelerator"):
        if name.start in page.refused.things:
            pieces.append(
                (
                    name.start,
                    [Edit("accelerator", "refuse", name.id or name.text, page.read.span(name.start, name.end))],
                )
            )
    return pieces


def _of_memory(page: Page) -> list[tuple[int, list[Edit]]]:
    """A card by its memory alone, as the usual one of that size: 'on a 24 GB card', '8x48GB'."""
    rows = [*page.left, *(number.row for number in page.filled if number.field == "vram")]
    apple = "apple" in page.read.asked("maker")
    for row in sorted(rows, key=lambda row: row.start):
        unit = row.amounts[-1].unit("bytes")
        device = card_of(row.amounts[-1].value * unit.size / 1e9, apple) if unit else None
        if device is None:
            continue
        span, said = page.read.span(row.start, row.end), page.read.said(row.start, row.end)
        edits = [
            Edit("accelerator", "set", device, span, f"{'a Mac' if apple else 'a card'} of {said} taken as {device}")
        ]
        numbers = [*page.left, *(value.row for value in page.filled)] if row.amounts[0].before == "x" else []
        times = [other for other in numbers if other.end in (row.start, row.start - 1) and len(other.amounts) == 1]
        if times:
            edits.append(Edit("count", "set", int(times[0].amounts[0].value), page.read.span(times[0].start, row.end)))
        page.left = [other for other in page.left if other is not row and other not in times]
        page.filled = [value for value in page.filled if value.row not in times]
        return [(row.start, edits)]
    return []


def _names_rack(page: Page, name: Name) -> bool:
    """Whether a device is named as a rack of them: 'GB200 NVL72'."""
    inside = page.read.tokens[name.start : name.end]
    return any(token.norm == "nvl" and index + 1 < len(inside) for index, token in enumerate(inside)) and not (
        page.plan or page.values("nodes") or page.values("racks")
    )


def _counts_racks(page: Page, name: Name) -> bool:
    """Whether racks are counted: '2 GB200 NVL72 racks'."""
    return any(sense.name == "racks" for word in page.read.found.words.get(name.end, ()) for sense in word.all("unit"))


def _with_memory(page: Page, device: Devices) -> tuple[str, str | None] | None:
    """(Id, note) of a device whose memory is said apart: 'A100 mit 40 GB', '(8x40GB)'."""
    name = device.name
    if name.instance or name.problem or not page.sized:
        return None
    for one in [*page.filled, *page.left]:
        row = one.row if isinstance(one, Filled) else one
        unit = row.amounts[-1].unit("bytes")
        if unit is None or unit.size < 5e8 or abs(row.start - name.end) > 12:
            continue
        size = f"{row.amounts[-1].value * unit.size / 1e9:.0f}gb"
        near = page.read.tokens[name.end : row.end + 3]
        form = next((token.norm for token in near if token.norm in ("pcie", "sxm", "nvl")), "")
        try:
            id, note = page.catalogue.find_accelerator(f"{name.text.rstrip('s')} {form} {size}")
        except PlanError as error:
            if "ambiguous" not in error.problem or not error.valid:
                continue
            id, note = _usual_device([str(one) for one in error.valid]), None
        if size in id:
            page.filled = [other for other in page.filled if other is not one]
            page.left = [other for other in page.left if other is not one]
            return id, note
    return None


def _usual_device(options: Sequence[str]) -> str:
    """Of cards that share a name the one that is rented most: SXM before PCIe, the larger memory first."""

    def rank(id: str) -> tuple[bool, float]:
        sizes = [
            float(part.removesuffix("gb")) for part in id.split("-") if part.endswith("gb") and part[:-2].isdigit()
        ]
        return "sxm" in id, max(sizes, default=0.0)

    return max(options, key=rank)


def _of_values(page: Page) -> list[tuple[int, list[Edit]]]:
    edits: list[tuple[int, list[Edit]]] = []
    taken = {at for number in page.filled for amount in number.row.amounts for at in range(amount.start, amount.end)}
    for one in page.read.values:
        known = one.field in ALL_PATHS or one.field in BESIDE
        inside = one.field not in COUNTING and taken.intersection(range(one.start, one.end))
        if not (known and page.fits(one)) or inside:
            continue
        if _of_a_number(one, page.filled):
            continue
        span = page.read.span(one.start, one.end)
        if one.start in page.refused.things:
            edits.append((one.start, [_refused(one, span)]))
        else:
            edits.append((one.start, [Edit(one.field, "set", one.value, span)]))
    return edits


def _refused(one: Value, span: tuple[int, int]) -> Edit:
    if one.field in _NUMBER_OF:
        return Edit(_NUMBER_OF[one.field], "set", _NONE[_NUMBER_OF[one.field]], span)
    if isinstance(one.value, bool):
        return Edit(one.field, "set", not one.value, span)
    refused = lexicon().refused
    if refused.get(one.field) is not None:
        return Edit(one.field, "set", refused[one.field], span)
    return Edit(one.field, "refuse", one.value, span)


def _of_numbers(page: Page) -> list[tuple[int, list[Edit]]]:
    counted = any(device.count or device.nodes for device in page.devices)
    changed = differences(page, page.filled)
    edits: list[tuple[int, list[Edit]]] = []
    told = bool(page.values("dataset_tokens"))
    for one in page.filled:
        if told and one.field == "text_bytes":
            continue
        if one.field not in (*ALL_PATHS, *BESIDE, "user_rate", "text_bytes") or (
            one.field == "count" and counted and one.row.amounts[-1].names
        ):
            continue
        span = page.read.span(one.row.start, one.row.end)
        if (word := page.refused.things.get(_named_span(one)[0])) is not None and not _is_new(page, one, word):
            if _named_span(one)[0] < one.row.start:
                drops = word in lexicon().letting_go
                refused = None if drops else _value(one.field, one.values[-1])
                edits.append((one.row.start, [Edit(one.field, "drop" if drops else "refuse", refused, span)]))
            continue
        value = one.values[-1]
        if (problem := _impossible(one.field, value)) and (one.field in _IDIOMS or not _is_bound(page.read, one)):
            page.left = [*page.left, one.row]
            continue
        if problem:
            page.needs.append(
                Need(
                    ALL_PATHS.get(
                        {"nodes": "count", "batch": "global_batch", "length": "input_len"}.get(one.field, one.field),
                        one.field,
                    ),
                    f"{page.read.said(one.row.start, one.row.end)!r} {problem}: what is meant?",
                )
            )
            continue
        if one.row.start in changed:
            sign = -1 if changed[one.row.start] == "minus" else 1
            edits.append((one.row.start, [Edit(one.field, "plus", sign * _value(one.field, value), span)]))
            continue
        edits.append((one.row.start, [_set(page, one, value, span)]))
    page.needs += _of_other_money(page)
    page.needs += [
        Need("workload.engine", f"nothing is known about {page.read.said(value.start, value.end)}: which engine is it?")
        for value in page.read.values
        if value.field == "unknown_engine" and page.mode == SERVING
    ]
    if (until := deadline(page.read, page.now)) and not page.values("deadline_h"):
        hours, start, end = until
        page.left = [row for row in page.left if not start <= row.start < end]
        note = f"{page.read.said(start, end)!r} taken as {hours:g} hours from now"
        edits.append((start, [Edit("deadline_h", "set", hours, page.read.span(start, end), note)]))
    return edits


def _is_bound(read: Mentions, filled: Filled) -> bool:
    """Whether a number is said to be of its field: by the name beside it, or by what it counts."""
    return filled.row.amounts[-1].names or _stands_at(read, filled) or filled.cost < _SURELY


def _stands_at(read: Mentions, filled: Filled) -> bool:
    """Whether the name of its field stands right before a number, with no other thought between."""
    sign = read.tokens[filled.row.start - 1]
    apart_ = sign.ends_clause and sign.text not in (":", "(")
    return _named_span(filled)[0] < filled.row.start and not apart_


def _is_new(page: Page, one: Filled, word: str) -> bool:
    """Whether a number is what its field is brought to: 'drop zero to 1'."""
    start = one.row.start
    apart_by_word = one.name is not None and one.name[1] == start - 1 and page.read.tokens[start - 1].kind == "word"
    return word in lexicon().letting_go and apart_by_word


def _of_other_money(page: Page) -> list[Need]:
    """Money that is worth too little or too much to be taken for dollars."""
    return [
        Need(
            "goal.budget_usd",
            "prices here are in US dollars, and no exchange rate is known: how many are "
            f"{page.read.said(row.start, row.end)}?",
        )
        for row in (*page.left, *(number.row for number in page.filled))
        if row.amounts[-1].unit("money")
    ]


def _set(page: Page, one: Filled, value: float, span: tuple[int, int]) -> Edit:
    """The edit of a number; of some what the executor needs beside it."""
    if one.field == "user_rate":
        return Edit(
            "tpot_slo_ms",
            "set",
            1000 / value,
            span,
            f"{value:g} tokens/s for each user read as {1000 / value:.4g} ms a token",
        )
    if one.field == "text_bytes":
        tokens = value / _BYTES_PER_TOKEN
        said = page.read.said(one.row.start, one.row.end)
        return Edit(
            "dataset_tokens",
            "set",
            tokens,
            span,
            f"{said!r} of text taken as {tokens:.3g} tokens, at {_BYTES_PER_TOKEN} bytes a token",
        )
    if one.field.endswith("_gib") and not _binary(page, one):
        note = f"{page.read.said(one.row.start, one.row.end)!r} read as {value:g} GiB per device"
        return Edit(one.field, "set", _value(one.field, value), span, note)
    if one.row.amounts[-1].unit("eur", "gbp", "chf"):
        said = page.read.said(one.row.start, one.row.end)
        note = f"{said} taken as ${value:,.10g}: prices here are in US dollars, and no exchange rate is known"
        return Edit(one.field, "set", _value(one.field, value), span, note)
    if one.field == "token_rate":
        near = range(max(one.row.start - 4, 0), min(one.row.end + 4, len(page.read.tokens)))
        names = {sense.name for at in near for word in page.read.found.words.get(at, ()) for sense in word.all("field")}
        side = "output" if "output_len" in names else "input" if "input_len" in names else "total"
        return Edit("token_rate", "set", (value, side), span)
    return Edit(one.field, "set", _value(one.field, value), span, _as_said(page, one))


def _as_said(page: Page, one: Filled) -> str | None:
    """What is told of 'at least' and 'at most' beside a number of what a plan holds no limit of."""
    start = one.name[0] if one.name and one.name[0] < one.row.start else one.row.start
    for at, end, limit in page.read.limits:
        beside = end in (start, one.row.start) or at == one.row.end
        natural = one.field in _LOADS or (limit == "at_most" and one.field in _LIMITED)
        named = one.name is not None and one.name[0] <= at < one.name[1] and one.field not in _LIMITED
        if beside and not (natural or named):
            words = page.read.said(min(at, one.row.start), max(end, one.row.end))
            return f"{words!r} is read as {_value(one.field, one.values[-1]):,}: the plan holds no such limit"
    return None


def _binary(page: Page, one: Filled) -> bool:
    """Whether a size is said in GiB."""
    return any("i" in page.read.tokens[unit.start].norm[:2] for unit in one.row.amounts[-1].units)


def _of_network(page: Page) -> list[tuple[int, list[Edit]]]:
    found = network(page.read)
    if found is None:
        return []
    name, start, end = found
    page.filled = [number for number in page.filled if not start <= number.row.start < end]
    page.left = [row for row in page.left if not start <= row.start < end]
    return [(start, [Edit("interconnect", "set", name, page.read.span(start, end))])]


def _of_fields(page: Page) -> list[tuple[int, list[Edit]]]:
    """Fields that are let go: 'drop the tp', 'no deadline'."""
    edits: list[tuple[int, list[Edit]]] = []
    for one in _free_names(page.read, page.filled):
        word, span = page.refused.things.get(one.start), page.read.span(one.start, one.end)
        if word in lexicon().letting_go and one.field in page.known:
            edits.append((one.start, [Edit(one.field, "drop", None, span)]))
        elif word and one.field in _NONE:
            edits.append((one.start, [Edit(one.field, "set", _NONE[one.field], span)]))
        elif word and one.field in page.known:
            edits.append((one.start, [Edit(one.field, "drop", None, span)]))
    return edits


def _free_names(read: Mentions, filled: Sequence[Filled]) -> list[Named]:
    """Names of fields that no number was said of."""
    used = {at for number in filled if number.name for at in range(*number.name)}
    return [name for name in fields_named(read.found) if name.field in ALL_PATHS and name.start not in used]


def _impossible(name: str, value: float) -> str | None:
    if value < 0 or (value == 0 and name not in ("zero_stage", "lora_dropout", "prefix_hit", "acceptance")):
        return "cannot be"
    return "is no whole number" if name in _WHOLE and value != int(value) else None


def _value(name: str, value: float) -> float | int:
    return int(value) if value == int(value) and (name in _WHOLE or abs(value) < 1e15) else value


def _once(edits: Sequence[Edit], corrected: bool) -> list[Edit]:
    """Each field set once: the more particular stage, what was said last of a correction or a swap, else first."""
    found: list[Edit] = []
    for edit in edits:
        same = next((one for one in found if one.field == edit.field and one.op == edit.op == "set"), None)
        if same is None:
            found.append(edit)
        elif edit.field in _GENERAL:
            found[found.index(same)] = same if edit.value in _GENERAL[edit.field] else edit
        elif corrected:
            found[found.index(same)] = edit
    return found


def _scoped(page: Page, edits: Sequence[Edit]) -> tuple[str, list[Edit]]:
    """(Whether the turn only supposes what it says, since it asks about a plan that there is; its edits, with those
    settled that are said for good beside that)."""
    said = list(edits)
    if not page.plan.get("model") or not edits:
        return "assert", said
    at = {token.start: index for index, token in enumerate(page.read.tokens)}
    if any(edit.span == (0, 0) for edit in edits):
        # What was concluded from the whole is supposed where any of it is.
        whole = bool(supposing(page.read.found, list(at.values())))
        return ("hypothetical" if whole else "assert"), said
    starts = {edit.span[0]: at[edit.span[0]] for edit in edits}
    supposed = supposing(page.read.found, list(starts.values()))
    if not supposed:
        return "assert", said
    return "hypothetical", [replace(edit, settled=starts[edit.span[0]] not in supposed) for edit in said]


def _references(page: Page, edits: Sequence[Edit]) -> list[Reference]:
    found: list[Reference] = []
    said = {edit.span[0] for edit in edits}
    for at in page.read.does("back")[:1]:
        end = page.read.found.does(at, "back") or at + 1
        onto = page.read.found.sense(end, "onto")
        if onto and onto[1] < len(page.read.tokens) and page.read.tokens[onto[1]].start in said:
            # 'Back to 8k' brings one thing back, not all.
            continue
        first = page.read.does("first")
        found.append(Reference("first" if first else "before", page.read.span(at, at + 1)))
    for at in page.read.does("other")[:1]:
        found.append(Reference("other", page.read.span(at, at + 1)))
    for at in page.read.does("take")[:1]:
        place = next((index for index, name in enumerate(("second", "third", "fourth"), 1) if page.read.does(name)), 0)
        to = "offer" if page.topic.get("offers") else "supposed"
        found.append(Reference(to, page.read.span(at, at + 1), place))
    return found


def _act(
    page: Page, tool: str | None, edits: Sequence[Edit], options: Sequence[Any], scoped: str, refs: Sequence[Reference]
) -> str:
    if options or tool in ("compare", "diff_scenarios"):
        return "compare"
    if tool in ("write_configs", "render_configs", "save_scenario", "report", "benchmark_matrix"):
        return "write"
    if page.read.does("why"):
        return "why"
    if scoped == "hypothetical":
        return "what_if"
    if refs:
        return "recall"
    if edits and page.plan and "?" not in page.read.text:
        return "change"
    return "control" if tool is None else "ask"


def _leads_on(page: Page, row: Row) -> bool:
    """Whether an arrow leads from a number to one that was used."""
    return any(number.row.amounts[0].before == "->" and 0 < number.row.start - row.end <= 3 for number in page.filled)


def _is_of_a_kind(page: Page, tool: str | None, edits: Sequence[Sequence[Edit]], refs: Sequence[Reference]) -> bool:
    """Whether a turn is about training or serving at all; one that goes back is about what an earlier plan was."""
    goes_back = any(reference.to in ("before", "first", "other") for reference in refs)
    if goes_back and not page.read.asked("mode"):
        return False
    return tool not in FREE and (any(edits) or tool is not None)


def _lost(page: Page) -> list[str]:
    """Numbers and refusals that no meaning was found for."""
    # 'From 8 -> 512' is about 512.
    left = [row for row in page.left if not _leads_on(page, row)]
    found = [page.read.said(row.start, row.end) for row in left]
    found += [page.read.said(start, end) for start, end in (*page.refused.unread, *page.lost)]
    return list(dict.fromkeys(found))
