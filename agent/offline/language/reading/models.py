"""The edits of the models that a turn names, or of their sizes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from agent.offline.catalogue import called_by_size
from agent.offline.form import Edit, Need
from agent.offline.language.asking import sentences
from agent.offline.language.lexicon import lexicon
from agent.offline.language.mentions import SERVING
from agent.offline.language.names import Name
from agent.offline.language.reading.alone import OFFERS
from agent.offline.language.reading.page import Page
from agent.offline.language.rows import Row
from estimator.errors import PlanError
from knowledge.models.catalogue import architecture, find_model
from knowledge.models.known import BASE_MARKS, ModelFacts, chat_checkpoint, checkpoints
from planner.partial import get

# Models before that are named where they are meant.
_NEW = "2024"
_USUAL_SIZE = 8e9
_GENERATION_MONTHS = 12
# How far a size in words may be from a model's parameters (as a logarithm).
_ABOUT = 0.35
# Whose models are taken first where only a size is said.
_MAKERS = ("meta-llama/", "Qwen/", "mistralai/", "google/")


def of_models(page: Page) -> list[tuple[int, list[Edit]]]:
    pieces: list[tuple[int, list[Edit]]] = []
    for name in page.read.of("model"):
        span = page.read.span(name.start, name.end)
        unknown = not (name.id or (name.options and not name.problem))
        if unknown and (meant := _meant_instead(page, name)):
            page.assumed.append(f"{name.text!r} is only told of: the question is about {meant}")
            continue
        if name.start in page.refused.things:
            pieces.append((name.start, [Edit("model", "refuse", name.id or name.text, span)]))
        elif known := _spoken_of(page, name):
            pieces.append((name.start, [Edit("model", "set", known, span, name.note)]))
        elif name.id:
            later = _later(page, name.text, name.id)
            taken = later and f"{name.text!r} taken as {later.rpartition('/')[2]} (it may also be {name.id})"
            pieces.append((name.start, [Edit("model", "set", later or name.id, span, taken or name.note)]))
        elif name.options and not name.problem:
            family = page.catalogue.family(name.text) if not name.sized else []
            chosen = _usual_of_family(family, _sizes_before(page)) if family else _usual_model(name.options)
            others = ", ".join(
                other.rpartition("/")[2] for other in _newest(family)[:6] or name.options if other != chosen
            )
            note = f"{name.text!r} taken as {chosen.rpartition('/')[2]} (it may also be {others})"
            pieces.append((name.start, [Edit("model", "set", chosen, span, note)]))
        else:
            nearest = f"; the nearest: {', '.join(name.options[:3])}" if name.options else ""
            page.needs.append(
                Need("model", f"{name.problem}{nearest}. Which is it? A path to its config.json will do, too")
            )
    for name in page.read.of("path"):
        if (
            not pieces
            and name.text not in page.files
            and not name.text.endswith((".yaml", ".yml", ".sh", ".py", ".log"))
        ):
            pieces.append((name.start, [Edit("model", "set", name.text, page.read.span(name.start, name.end))]))
    if not page.needs:
        sized = _of_size(page, [edit.value for _, edits in pieces for edit in edits if edit.op == "set"])
        families = {name.start for name in page.read.of("model") if not name.sized and name.options}
        if len(pieces) == len(sized) == 1 and pieces[0][0] in families:
            # 'Llama, the 70B one'
            pieces = []
        pieces += sized
    pieces = _of_the_student(page, pieces)
    if page.mode == SERVING:
        return [
            (start, [_to_talk_to(edit, page.read.text[slice(*edit.span)]) for edit in each]) for start, each in pieces
        ]
    return pieces


def _spoken_of(page: Page, name: Name) -> str | None:
    """The model of a family that was offered last, or that the plan has, where the family alone is named: 'gemma it
    is'."""
    if name.sized or any(letter.isdigit() for letter in name.text):
        return None
    family = name.text.lower()
    tails = [(str(id), str(id).rpartition("/")[2].lower()) for id in (*_offered(page), get(page.plan, "model")) if id]
    alike = {id for id, tail in tails if tail.startswith(family)}
    return alike.pop() if len(alike) == 1 else None


def _of_the_student(page: Page, pieces: list[tuple[int, list[Edit]]]) -> list[tuple[int, list[Edit]]]:
    """Of 'distill Llama 70B into an 8B' the model that is trained."""
    verbs = page.read.does("distils")
    both = sorted((piece for piece in pieces if verbs and piece[0] > verbs[0]), key=lambda piece: piece[0])
    if len(both) != 2 or page.read.does("or", "versus", "compare"):
        return pieces
    teacher, student = (str(edits[0].value).rpartition("/")[2] for _, edits in both)
    page.assumed.append(f"{student} is what is trained; the passes of its teacher, {teacher}, are not modelled")
    return [piece for piece in pieces if piece is not both[0]]


def _to_talk_to(edit: Edit, words: str) -> Edit:
    """Of a model that is served, and that was not named to the letter, the checkpoint that follows instructions."""
    base = (BASE_MARKS & set(str(edit.value).lower().split("-"))) - set(words.lower().replace(" ", "-").split("-"))
    assumed = edit.note is not None and " taken as " in edit.note
    if edit.op != "set" or not (base or assumed) or not (chat := chat_checkpoint(str(edit.value))):
        return edit
    short, chosen = (id.rpartition("/")[2] for id in (str(edit.value), chat))
    note = edit.note.replace(short, chosen, 1) if edit.note and short in edit.note else f"{chosen} is served"
    return replace(edit, value=chat, note=note)


def _later(page: Page, text: str, id: str) -> str | None:
    """The newest generation of that size where a family and a size alone are said, and a model of old is called so:
    'qwen 7b'. Who writes its id means it."""
    words = text.lower().split()
    facts = find_model(id).value
    if len(words) != 2 or (facts.released or "") >= _NEW:
        return None
    family, size = words
    billions = size.removesuffix("b")
    if not billions.replace(".", "", 1).isdecimal():
        return None
    alike = [find_model(other).value for other in page.catalogue.models_of_size(float(billions) * 1e9)]
    parts = [(row, row.id.rpartition("/")[2].lower().split("-")) for row in alike]
    # A generation stands before the size ('Qwen2.5-7B', 'Llama-2-13b'), a version behind it.
    same = [
        row
        for row, name in parts
        if name[0].rstrip("0123456789.") == family and size in name[1:] and (name[0] != family or name.index(size) > 1)
    ]
    newest = max(_plain(same), key=_month) if same else None
    return newest.id if newest and _month(newest) > _month(facts) else None


def _meant_instead(page: Page, unknown: Name) -> str | None:
    """What another sentence names, where a model that nobody knows is only told of."""
    if unknown.start not in page.read.telling:
        return None
    inside = next(token for token in sentences(page.read.tokens) if unknown.start in token)
    named = [name.text for name in page.read.of("model") if name.id and name.start not in inside]
    sizes = [number.row for number in page.filled if number.field == "model_size" and number.row.start not in inside]
    named += [page.read.said(row.start, row.end) for row in sizes]
    return named[0] if named else None


def _usual_model(options: Sequence[str]) -> str:
    """Of models that share a name or a size the one that an expert takes where nothing else is said: of the plainest
    those that most others were made of, of these the newest of the usual makers."""
    known = _much_copied(_plain([find_model(option).value for option in options]))
    usual = next(
        (same for makers in (_MAKERS[:1], _MAKERS) if (same := [row for row in known if row.id.startswith(makers)])),
        known,
    )
    return max(usual, key=lambda row: row.released or "").id


def _much_copied(rows: Sequence[ModelFacts]) -> list[ModelFacts]:
    """Those of which at least half as many others were made as of the one that most were made of."""
    copies = Counter(row.shares for row in checkpoints())
    most = max(copies[row.id] for row in rows)
    return [row for row in rows if 2 * copies[row.id] >= most]


def _sizes_before(page: Page) -> list[float]:
    """Parameters of the models that were offered last, or of the plan's."""
    models = {*_offered(page)} or {get(page.plan, "model")} - {None}
    sizes: list[float] = []
    for model in models:
        with suppress(PlanError):
            sizes.append(float(architecture(model).parameters))
    return sizes


def _offered(page: Page) -> list[str]:
    """The models of what was offered last."""
    return [model for offer in page.topic.get(OFFERS) or () if (model := get(offer, "model"))]


def _newest(ids: Sequence[str]) -> list[str]:
    """The newest first; models of one day as they were."""
    return sorted(ids, key=lambda id: find_model(id).value.released or "", reverse=True)


def _usual_of_family(options: Sequence[str], beside: Sequence[float] = ()) -> str:
    """Of a family that is named alone its maker's newest generation, and there the size that is run most, about 8B;
    where none is near that the smallest, the newest of that. Behind models of other sizes the one that is nearest to
    the smallest of these. Models without a date are left to be named."""
    makers = Counter(option.partition("/")[0] for option in options).most_common(1)
    every = [find_model(option).value for option in options if option.startswith(f"{makers[0][0]}/")]
    rows = _plain([row for row in every if row.released] or every)
    newest = max(_month(row) for row in rows)
    new = [row for row in rows if row.parameters and _month(row) >= newest - _GENERATION_MONTHS]
    size = min(beside, default=_USUAL_SIZE)
    far = {row.id: abs(math.log((row.parameters or 1) / size)) for row in new}
    least = min(far.values(), default=0.0) if beside else 0.0
    if near := [row for row in new if far[row.id] < least + math.log(1.5 if beside else 2)]:
        return max(_much_copied(near), key=lambda row: (row.released or "", -far[row.id])).id
    return min(new or rows, key=lambda row: (row.parameters or math.inf, -_month(row))).id


def _month(row: ModelFacts) -> int:
    """Months until a model was released; 0 where that is not known."""
    year, _, month = (row.released or "0-1")[:7].partition("-")
    return 12 * int(year) + int(month or 1)


def _plain(rows: Sequence[ModelFacts]) -> list[ModelFacts]:
    plain = [row for row in rows if not any(word in row.id.lower() for word in lexicon().particular)]
    return plain or list(rows)


def _of_size(page: Page, named: Sequence[str]) -> list[tuple[int, list[Edit]]]:
    """'A 70B' as the usual model of that size: of the family that was named, or that the plan has, before others."""
    edits: list[tuple[int, list[Edit]]] = []
    for one in page.filled:
        if one.field != "model_size" or one.row.start in page.refused.things:
            continue
        size = one.values[0]
        near = page.catalogue.models_of_size(size) if size > 0 else []
        near = _of_version(page, one.row, near)
        # 'A dense 30B' is of that kind before it is called so.
        named_so = [id for id in near if called_by_size(find_model(id).value, size)]
        near = _of_kind(page, near, size) or named_so or near
        span = page.read.span(one.row.start, one.row.end)
        model = str(page.plan.get("model") or "")
        if one.name is None and not named and _counts_tokens(page, model, size, near):
            note = f"{page.read.said(one.row.start, one.row.end)!r} read as tokens, as those of before"
            edits.append((one.row.start, [Edit("dataset_tokens", "set", size, span, note)]))
            continue
        compared = (page.topic.get("alternatives") or {}).get("model") or []
        kin = _kin(near, named or [model, *map(str, compared)])
        if kin:
            edits.append((one.row.start, [Edit("model", "set", kin, span)]))
        elif named:
            known = [id for id in named if not _is_path(id)]
            if known and not any(_is_about(id, size) for id in known):
                # 'A 1.3B, GPT-NeoX style' is no GPT-NeoX-20B.
                page.lost.append((one.row.start, one.row.end))
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


def _of_version(page: Page, size: Row, near: Sequence[str]) -> Sequence[str]:
    """Of models of one size those of the generation right before it, whose number is used then: '3.2 3b'."""
    before = page.read.tokens[size.start - 1] if size.start else None
    if before is None or before.kind != "number" or "." not in before.text:
        return near
    same = [id for id in near if before.text in re.split(r"[-/]|(?<=[a-z])(?=[0-9])", id.lower())]
    if same:
        page.left = [row for row in page.left if row.start != size.start - 1]
        page.filled = [number for number in page.filled if number.row.start != size.start - 1]
    return same or near


def _of_kind(page: Page, near: Sequence[str], size: float) -> list[str]:
    """Of models of one size the dense ones, or those of experts, where that is said: 'a dense 30B'."""
    dense, sparse = map(page.read.says, ("dense", "sparse"))
    if dense == sparse:
        return []
    same = [id for id in near if _has_experts(id) == sparse]
    return [id for id in same if f"{size / 1e9:g}b" in id.lower() and id.startswith(_MAKERS)] or same


def _has_experts(model: str) -> bool:
    facts = find_model(model).value
    return bool(facts.active_parameters) and facts.active_parameters != facts.parameters


def _is_path(name: str) -> bool:
    """Whether a model is named by its config."""
    return name.startswith((".", "/", "~")) or name.endswith(".json")


def _is_about(model: str, size: float) -> bool:
    """Whether a model has about so many parameters, of which its active ones may be told."""
    facts = find_model(model).value
    told = [count for count in (facts.parameters, facts.active_parameters) if count]
    return not told or any(abs(math.log(count / size)) < _ABOUT for count in told)


def _counts_tokens(page: Page, model: str, size: float, near: Sequence[str]) -> bool:
    """Whether so many billions are tokens again: the run has some, and its model none of that size beside it: 'and
    200B?' of Llama-3.1-8B on 100B tokens."""
    if "dataset_tokens" not in page.known or not model:
        return False
    exact = [id for id in near if f"{size / 1e9:g}b" in id.lower().rpartition("/")[2].split("-")]
    return _kin(exact, [model]) is None


def _kin(near: Sequence[str], named: Sequence[str]) -> str | None:
    """Of models of one size that of a named model's own line: the longest beginning in common, past the maker."""

    def shared(id: str, other: str) -> int:
        pairs = zip(id.lower(), other.lower(), strict=False)
        return next((index for index, (one, two) in enumerate(pairs) if one != two), min(len(id), len(other)))

    best = max(((shared(id, other), -len(id), id) for id in near for other in named if other), default=None)
    return best[2] if best and best[0] > best[2].find("/") + 3 else None
