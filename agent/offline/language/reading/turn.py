"""A turn as the form that the executor acts on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent.offline.calls.wishes import ROWS
from agent.offline.catalogue import Catalogue
from agent.offline.form import Edit, Need, Reading
from agent.offline.language.asking import clauses, is_question
from agent.offline.language.assign import single
from agent.offline.language.choice import about_the_answer, chosen, control_of, is_of_what_was, values_asked
from agent.offline.language.features.signs import SWITCHES, asks_what_it_is, weighs_an_api
from agent.offline.language.labelled import choices, without_labels_behind
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING, TRAINING
from agent.offline.language.own.files import of_settings, settings
from agent.offline.language.own.measured import RATES, is_of_a_known_batch, measured
from agent.offline.language.own.pricing import pricing_of
from agent.offline.language.own.searches import hours_of_use
from agent.offline.language.own.tool import FREE, edits_left, own_of
from agent.offline.language.pasted import apart as apart_
from agent.offline.language.reading.act import act_of, is_of_a_kind, ranked_one, references_of, scope_of
from agent.offline.language.reading.alone import value_alone
from agent.offline.language.reading.edits import edits_of
from agent.offline.language.reading.named_files import NamedFiles, describes_a_model, files_named, left_to_ask
from agent.offline.language.reading.page import Page, context_of, understood
from agent.offline.language.reading.unread import (
    lost_words,
    says_nothing,
    unknown_words,
    unused_names,
    unused_numbers,
)
from planner.requests import ALL_PATHS

# Of a longer message the beginning is read, and the rest is told to be unread.
_LONGEST = 8_000
_OF_A_RUN = ("estimate_training", "estimate_cost", "check_fit")
_LENGTHS = ("dataset_tokens", "dataset_samples", "steps", "epochs")
_FACTS = ("describe_model", "describe_hardware")
# Signs and spaces between two questions.
_PLACES = ("put", "create")
_BETWEEN = " ,;-\n"


def read(
    text: str,
    catalogue: Catalogue,
    plan: Mapping[str, Any] | None = None,
    topic: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> Reading:
    """The form of one turn, said in a conversation that has a partial plan and a topic."""
    now = now or datetime.now().astimezone()
    parts = apart_(text)
    said, data = without_labels_behind(parts.said[:_LONGEST]), parts.data[:_LONGEST]
    mode = {True: TRAINING, False: SERVING, None: None}[parts.trains]
    page = understood(said, catalogue, plan or {}, topic or {}, now, mode, data=data)
    page.pasted = parts.config
    rows = [_of_row(page, row) for row in parts.rows]
    if not (parts.rows or parts.config or parts.log) and (labelled := _labelled(page, data)):
        page, rows = labelled
    if not (data or page.pasted or parts.rows or parts.log) and (two := _two_questions(page)):
        return replace(read(two[0], catalogue, plan, topic, now), then=two[1])
    if len(parts.said) > _LONGEST:
        page.assumed.append(f"only the first {_LONGEST:,} characters of the message were read")
    tool, shares = chosen(page, context_of(page.plan, page.topic))
    page.log = parts.log
    page.files = files_named(page.read, page.plan, tool) if not (page.pasted or page.log) else NamedFiles()
    then = ""
    if ROWS.get(tool or "") == "model":
        page.files = NamedFiles()
    elif page.pasted or page.files.configs:
        # A model alone runs nothing: what is said of it is asked once it is known.
        alone = tool and describes_a_model(page.pasted)
        then = said if alone else left_to_ask(said, page.files, tool)
        tool = "import_config"
    elif page.log or page.files.records:
        tool = "read_run"
    if tool == RATES and (speed := measured(page)):
        page.speed = speed
        if speed.name == "step_s" and not is_of_a_known_batch(page):
            page.needs.append(Need("workload.global_batch", "how many sequences are in a step?"))
        page.left = [row for row in page.left if row is not speed.row]
        page.filled = [number for number in page.filled if number.row is not speed.row]
    page.use_h = hours_of_use(page)
    if page.use_h and page.devices and tool in _OF_A_RUN and not any(map(page.values, _LENGTHS)) and not page.plan:
        # 'Rent or buy 8 H100 to fine-tune …, 10 hours a day?' is decided by the hours, whatever they train.
        tool = "describe_hardware"
    page.rows = rows
    if page.rows:
        tool = "compare"
    return replace(_form(page, tool, shares), then=then)


def _weighed(page: Page, scoped: str, edits: Sequence[Edit]) -> tuple[list[Edit], list[list[Edit]]]:
    """(What stands, what is compared with the run without it) where nothing is set against it."""
    if scoped == "hypothetical":
        # 'Would 16 B200 be cheaper?': than the plan as it is.
        supposed = [edit for edit in edits if not edit.settled]
        return [edit for edit in edits if edit.settled], [supposed] if supposed else []
    against = {page.read.tokens[at].start for at in page.refused.against}
    if weighed := [edit for edit in edits if edit.op == "set" and edit.span[0] in against]:
        return [edit for edit in edits if edit not in weighed], [weighed]
    # 'Is fp8 worth it for …?': the first setting that a run could be without.
    switches = [] if page.plan else [edit for edit in edits if edit.op == "set" and edit.field in SWITCHES][:1]
    return [edit for edit in edits if edit not in switches], [switches] if switches else []


# Questions of a turn that are read one by one.
_MOST_QUESTIONS = 16


def _two_questions(page: Page) -> tuple[str, str] | None:
    """A turn of which one question is about nothing that is planned, as that and the rest, in their order: 'what is
    ZeRO-3, and does it fit?'"""
    found, text = page.read.found, page.read.text
    asks = (part for part in clauses(found) if is_question(found, part))
    asked = [part for part in asks if any(found.text[at].kind != "sign" for at in part)][:_MOST_QUESTIONS]
    for part in asked if len(asked) > 1 else ():
        inside = [
            one for one in (*page.read.names, *page.kept, *(each.row for each in page.filled)) if one.start in part
        ]
        start, end = page.read.span(part.start, part.stop)
        alone = understood(text[start:end].strip(_BETWEEN), page.catalogue, page.plan, page.topic, page.now)
        tool, _ = chosen(alone, context_of(page.plan, page.topic))
        # What is only wondered about beside a run is no question of practice.
        if not (asks_what_it_is(alone) or (tool == "list_catalogue" and not inside)):
            continue
        rest = f"{text[:start].rstrip(_BETWEEN)} {text[end:].lstrip(_BETWEEN)}".strip()
        return (alone.read.text, rest) if part is asked[0] else (rest, alone.read.text)
    return None


# What is run, not how: said of one of several choices, it is said of all.
_OF_ALL = ("model", "stage", "dataset_tokens", "dataset_samples", "sample_tokens", "epochs", "steps", "concurrency",
           "request_rate", "input_len", "output_len", "deadline_h", "budget_usd")  # fmt: skip


def _labelled(page: Page, data: str) -> tuple[Page, list[list[Edit]]] | None:
    """(The page of what is said of all choices, what each sets) where a text gives its choices letters or numbers, and
    each sets something else."""
    if (apart := choices(page.read.text, page.read.tokens)) is None:
        return None
    common = understood(apart.common, page.catalogue, page.plan, page.topic, page.now, page.mode, data=data)
    rows = [_of_row(common, row) for row in apart.rows]
    if not all(rows) or len({str(row) for row in rows}) < len(rows):
        return None
    fields = [edit.field for row in rows for edit in row]
    of_all = [edit for row in rows for edit in row if edit.field in _OF_ALL and fields.count(edit.field) == 1]
    return common, [[*(edit for edit in row if edit not in of_all), *of_all] for row in rows]


def _of_row(page: Page, row: str) -> list[Edit]:
    """What a row of a table sets."""
    of_row = understood(row, page.catalogue, page.plan, page.topic, page.now, page.mode)
    # 'TP 8 plus PP 2' is both.
    edits = [replace(edit, op="set", span=(0, 0)) for edit in edits_of(of_row, None)[0] if edit.op in ("set", "plus")]
    page.beside += lost_words(of_row)
    page.beside += [of_row.read.said(seen.row.start, seen.row.end) for seen in of_row.filled if seen.field == "seen"]
    return edits


def _other_providers(page: Page, lost: Sequence[str]) -> list[str]:
    """Those who rent devices out, of whom no prices are known, as they are named."""
    free = [token for at, token in enumerate(page.read.tokens) if at not in page.read.named_tokens]
    return [token.text for token in free if token.norm in lexicon().other_providers and token.text not in lost]


def _of_another_kind(page: Page, tool: str | None) -> list[str]:
    """What is not planned here, beside what is: of 'whisper and a 7B' the first."""
    return [page.read.said(at, end) for at, end, _ in page.read.asked_at("outside")] if tool else []


def _figures_named(page: Page) -> list[str]:
    # 'Tokens' of '1B tokens' names no figure.
    units = {at for row in page.read.rows for at in range(row.start, row.end)}
    units |= {at for number in page.filled if number.name for at in range(*number.name)}
    # 'If the optimizer goes to cpu' asks for none.
    units |= {at for value in page.read.values if value.field == "offload" for at in range(value.start, value.end)}
    bought = ["break_even"] if "buying" in page.read.asked("topic") else []
    bought += ["api"] if weighs_an_api(page) else []
    return [name for at, _, name in page.read.asked_at("figure") if at not in units] + bought


def _asked_for(page: Page) -> list[str]:
    """What is asked for; of a speed that is told to reckon with nothing is."""
    told = {at for number in single(page.filled, "assumed_mfu") if number.name for at in range(*number.name)}
    rates = {at for at, _, name in page.read.asked_at("focus") if name in ("time", "throughput")}
    # 'How many tokens/s' asks for no number of devices.
    told |= {at for at, end, name in page.read.asked_at("focus") if name == "size" and end in rates}
    asked, ranked = page.read.asked_at("focus"), ranked_one(page)
    # 'Partition gpu-long' names where jobs are queued.
    named = settings(page)
    told |= {at for at, _, _ in asked if page.read.tokens[at].norm in named}
    told |= set(range(*ranked[1:])) if ranked else set()
    files = page.read.asked("target") or page.read.of("path") or any(name == "files" for _, _, name in asked)
    if not files:
        # 'Put Qwen3-32B in its place' writes nothing.
        told |= {at for at, _, name in asked if name == "write" and page.read.tokens[at].norm in _PLACES}
    if not ({"write", "show_only"} & {*page.read.asked("wish"), *(name for _, _, name in asked)}):
        # 'My config says micro-batch 4' asks for none.
        mine = lexicon().of_ones_own
        told |= {at for at, _, name in asked if name == "files" and at and page.read.tokens[at - 1].norm in mine}
    return list(dict.fromkeys(name for at, _, name in asked if at not in told))


def _begins_anew(page: Page) -> bool:
    """Whether what was spoken of is set aside, which nothing behind points to or changes: not 'forget it, serve it
    instead' or 'forget it, try 256'."""
    begun = [page.read.found.does(at, "new", "dismiss") or at for at in page.read.does("new", "dismiss")]
    named = page.read.of("model") or page.values("model_size")
    if page.plan and not (page.read.does("new") or named) and (page.filled or page.kept):
        return False
    points = any(at >= begun[-1] for at in page.read.does("it")) if begun else False
    return bool(begun) and not (points and page.plan and not page.read.of("model"))


def _of_words(page: Page) -> list[str]:
    """What a word is taken as, where data is told in words."""
    units = (unit for number in page.filled for unit in number.row.amounts[-1].units)
    return ["a word taken as 4/3 tokens"] if any(unit.name == "tokens" and 1 < unit.size < 2 for unit in units) else []


def _of_talk(page: Page) -> dict[str, Any]:
    """What a turn asks that no tool answers: of the answer before, of a field's values, for help."""
    own: dict[str, Any] = {}
    if about := about_the_answer(page):
        own["about"] = about
    if field := values_asked(page):
        own["values_of"] = field
    wished = [name for name in ("help", "thanks") if name in page.read.asked("wish")]
    if control := control_of(page) or next(iter(wished), None):
        own["control"] = control
    return own


def _form(page: Page, tool: str | None, shares: dict[str, float]) -> Reading:
    edits, options = edits_of(page, tool)
    if page.rows:
        shared = [edit for edit in page.rows[0] if all(edit in row for row in page.rows)]
        options = [[edit for edit in row if edit not in shared] for row in page.rows]
        edits += [edit for edit in shared if not any(one.field == edit.field for one in edits)]
    focus = _asked_for(page)
    scoped, edits = scope_of(page, edits)
    refs = references_of(page, edits)
    edits = edits or value_alone(page)
    if tool == "compare" and edits and not (options or is_of_what_was(page)):
        edits, options = _weighed(page, scoped, edits)
    reading = Reading(
        text=page.read.text,
        act=act_of(page, tool, edits, options, scoped, refs),
        tool=tool,
        shares={name: round(share, 3) for name, share in shares.items() if share > 0.02},
        focus=focus,
        figures=_figures_named(page),
        serving=page.mode == SERVING if page.mode and is_of_a_kind(page, tool, [edits, *options], refs) else None,
        edits=edits,
        options=options,
        pricing=pricing_of(page),
        scope=scoped,
        refs=refs,
        assumed=[*page.assumed, *_of_words(page)],
        needs=page.needs,
        new=_begins_anew(page) and not refs,
    )
    if tool == "project_mlperf" and not any(edit.field == "scenario" for edit in edits):
        named = [token.norm for token in page.read.tokens if token.norm in ("server", "offline", "interactive")]
        edits += [Edit("scenario", "set", name) for name in named[:1]]
    own = own_of(page, tool or page.again, reading)
    own |= _of_talk(page) if tool is None else {}
    if tool == "sweep":
        swept = {own.get("field"), own.get("second_field"), "nodes" if own.get("nodes") else None, "batch"}
        edits = [edit for edit in edits if edit.field not in swept]
    if tool == "recommend_cluster":
        # 'Our server room has 12 kW: what is the fastest box?'
        reading = replace(reading, needs=[need for need in reading.needs if need.field != "cluster.accelerator"])
    if (tool in FREE and tool not in _FACTS) or tool == "save_scenario":
        # Of a run that they are not about nothing is asked.
        paths = set(ALL_PATHS.values())
        reading = replace(reading, needs=[need for need in reading.needs if need.field not in paths])
    edits = [edit for edit in edits if edit.span[0] not in page.taken or edit.span == (0, 0)]
    edits, options = edits_left(page, tool, edits, own), options if tool not in FREE else []
    reading = replace(reading, own=own, edits=edits, options=options)
    lost = [*lost_words(page, tool), *page.beside, *unused_numbers(page, reading), *unused_names(page, reading)]
    named = {str(value) for value in own.values()}
    named |= {page.read.text[slice(*edit.span)] for edit in edits if edit.field == "accelerator"}
    unknown = [words for words in unknown_words(page) if not (words in named or of_settings(own, words))]
    lost = [words for words in lost if not of_settings(own, words)]
    lost += [words for words in unknown if any(one.isdigit() for one in words)]
    lost += unknown if page.plan and says_nothing(reading) else ()
    lost += [*_other_providers(page, lost), *_of_another_kind(page, tool)]
    return replace(reading, lost=list(dict.fromkeys(lost)), unread=list(dict.fromkeys([*lost, *unknown])))
