"""The models that are known: rows of the catalogue, checkpoints that share an architecture, and the user's own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.model.configs import build
from estimator.model.vision import VisionTower
from knowledge.data_files import FOLDER, rows
from knowledge.models.config_files import read_config
from knowledge.models.fields import canonical
from knowledge.models.naming import (
    SIZE,
    bare_size,
    maker_words,
    model_form,
    refused_models,
    short_words,
    size_words,
    words_of,
)
from knowledge.models.quantization import published_format
from knowledge.models.vision import tower_in
from knowledge.names import Language, NameCatalogue, NamedEntry
from knowledge.own.files import Stamp, follow, stamp
from knowledge.own.home import expanded
from knowledge.own.rows import LeftOut, ModelRow, Own, read_rows

CHAT_MARKS = {"it", "instruct", "chat"}
BASE_MARKS = {"pt", "base"}
"""Parts of the names of checkpoints that are only pretrained."""
_LANGUAGE = Language(model_form, words_of, SIZE, bare_size, refused_models(), short_words())


@dataclass(frozen=True)
class ModelFacts:
    """A catalogue row. `parameters` is counted from the fields (None where no independent count exists);
    `published_parameters` is the maker's rounded figure. `context` is in tokens. `as_of` is the date of the row,
    `check` what of it was inferred or recalled. A checkpoint `shares` the architecture of the row of that id. Its
    `weight_format` is an entry of data/weight_formats.yaml ('' for 16 bits, or where it is not known). `gate_source`
    is where it was read whether its download is `gated`, or what its owner publishes `usually_gated`. `like` is the
    row whose fields it has but for its own; `tower` what reads images by the config of a row of the user's."""

    id: str
    family: str
    source: str
    fields: Mapping[str, Any] = field(repr=False)
    aliases: tuple[str, ...] = ()
    like: str = ""
    parameters: int | None = None
    active_parameters: int | None = None
    published_parameters: float | None = None
    published_active_parameters: float | None = None
    context: int | None = None
    license: str | None = None
    gated: bool | None = None
    usually_gated: bool | None = None
    gate_source: str = ""
    released: str | None = None
    as_of: str = ""
    check: str = ""
    shares: str = ""
    weight_format: str = ""
    readings: tuple[str, ...] = ()
    confirmed_by: tuple[str, ...] = ()
    tower: VisionTower | None = None

    @property
    def is_published(self) -> bool:
        """Whether there are weights to download, or a paper alone says what it is."""
        return self.license != "paper-only"


@dataclass(frozen=True)
class KnownModels:
    """The catalogue with the user's own rows in it; `own` by id, and what of them cannot be used. `checkpoints` are
    those that share the architecture of a row, by id."""

    by_id: dict[str, ModelFacts]
    checkpoints: dict[str, ModelFacts]
    names: NameCatalogue
    own: dict[str, Own[ModelRow]]
    left_out: list[LeftOut]
    built: dict[str, Architecture] = field(default_factory=dict)

    def facts(self, id: str) -> ModelFacts:
        return self.by_id.get(id) or self.checkpoints[id]

    def noted(self, id: str, sentence: str | None) -> str | None:
        if id not in self.own:
            return sentence
        return f"{sentence}; {self.own[id].source}" if sentence else self.own[id].source


def models() -> list[ModelFacts]:
    """Every architecture of the catalogue, by the checkpoint that it is named after, and the user's own."""
    return list(known_models().by_id.values())


def checkpoints() -> list[ModelFacts]:
    """Every other checkpoint that is known, each with the architecture that it shares."""
    return list(known_models().checkpoints.values())


def facts_of(name: str) -> ModelFacts | None:
    """The row or checkpoint of exactly this name, in any case; None where there is none."""
    known = known_models()
    id = known.names.exact(name)
    return known.facts(id) if id else None


def architecture_row(id: str) -> str:
    """The id of the row whose architecture a checkpoint has; any other id as it is."""
    facts = known_models().checkpoints.get(id)
    return facts.shares if facts else id


def chat_checkpoint(id: str) -> str | None:
    """The checkpoint of the same maker, in 16 bits, that is named as one that is only pretrained but for following
    instructions; None where there is none."""
    alike = [row for row in checkpoints() if row.shares == architecture_row(id) and not row.weight_format]
    chats = [row.id for row in alike if row.id != id and _unmarked(row.id) == _unmarked(id)]
    return next((chat for chat in chats if CHAT_MARKS & set(chat.lower().split("-"))), None)


def _unmarked(id: str) -> list[str]:
    """The parts of a name without those that say how the weights were trained."""
    return [part for part in id.lower().split("-") if part not in CHAT_MARKS | BASE_MARKS]


def own_models() -> dict[str, Own[ModelRow]]:
    """The user's own rows by id."""
    return known_models().own


def models_left_out() -> list[LeftOut]:
    """The user's own rows that cannot be used."""
    return known_models().left_out


def known_models() -> KnownModels:
    stamps = stamp("models")
    return _joined(stamps) if stamps else _shipped()


@cache
def _shipped() -> KnownModels:
    with (FOLDER / "models.jsonl").open(encoding="utf-8") as file:
        head = json.loads(next(file))  # what the columns mean, and what stands for those that a row leaves out
        by_id: dict[str, ModelFacts] = {}
        for line in file:
            row = json.loads(line)
            if like := row.get("like"):
                row["fields"] = {**by_id[like].fields, **row["fields"]}
            by_id[row["id"]] = _facts(row, head)
    copies = _read_checkpoints(by_id)
    return KnownModels(by_id, copies, _catalogue(by_id, copies), {}, [])


def _read_checkpoints(by_id: dict[str, ModelFacts]) -> dict[str, ModelFacts]:
    """The published checkpoints by name; what rows of `by_id` hold themselves is put into them."""
    listed = list(rows("checkpoints.csv"))
    for row in listed:
        if row["name"] == row["architecture"]:
            by_id[row["name"]] = replace(by_id[row["name"]], weight_format=row["format"])
    copies = {}
    for row in listed:
        base = by_id[row["architecture"]]
        if row["name"] != base.id:
            is_its_makers = row["name"].partition("/")[0].casefold() == base.id.partition("/")[0].casefold()
            copies[row["name"]] = replace(
                base,
                id=row["name"],
                shares=base.id,
                weight_format=row["format"] or base.weight_format,
                context=int(row["context"]) if row["context"] else base.context,
                license=row["license"] or base.license,
                # another's has its own
                **_gate(
                    row["name"], base if is_its_makers else None, row["license"] or base.license, row["gated"] == "no"
                ),
                source=row["source"],
                as_of=row["date"],
                aliases=tuple(filter(None, (row["aliases"] or "").split(";"))),
                readings=(),
                released=None,
            )
    return copies


@lru_cache(maxsize=2)
def _joined(_: Stamp) -> KnownModels:
    """The user's rows after the catalogue's, or in place of them where they say so."""
    entries, left_out = read_rows("models", ModelRow)
    shipped, added, kept = _shipped(), dict[str, ModelFacts](), dict[str, Own[ModelRow]]()
    taken: dict[str, str] = {}
    for each in entries:
        try:
            facts = own_facts(each)
            for name in (facts.id, *facts.aliases):
                if (other := taken.setdefault(name.casefold(), facts.id)) != facts.id:
                    raise PlanError(f"{each.path}: aliases", f"{name!r} is a name of {other} already")
            added[facts.id], kept[facts.id] = facts, each
        except PlanError as error:
            named = (each.row.id, *(each.row.aliases or ()), each.path.stem)
            left_out.append(LeftOut(each.path, tuple(name.casefold() for name in named), error))
    by_id = shipped.by_id | added
    copies = {id: facts for id, facts in shipped.checkpoints.items() if id not in added and facts.shares not in added}
    return KnownModels(by_id, copies, _catalogue(by_id, copies), kept, left_out)


def own_facts(entry: Own[ModelRow]) -> ModelFacts:
    """The catalogue row that a row of the user's makes. Raises PlanError, also where it clashes with another."""
    row, place, names = entry.row, f"{entry.path}: ", _shipped().names
    same = names.exact(row.id)
    if same and not row.replaces:
        problem = f"{row.id!r} names {same} of the catalogue; choose another, or say replaces: true"
        raise PlanError(f"{place}id", problem)
    if row.replaces and same != row.id:
        raise PlanError(f"{place}replaces", f"the catalogue has no {row.id!r} to replace", [same] if same else [])
    for alias in row.aliases or ():
        if (other := names.exact(alias)) and other != row.id:
            raise PlanError(f"{place}aliases", f"{alias!r} is a name of {other} in the catalogue")
    try:
        config = row.config if isinstance(row.config, dict) else _followed_config(row.config, entry.path.parent)
        fields = canonical(config)
        built = build(fields, row.id)
        held, _ = published_format(config)
    except PlanError as error:
        raise PlanError(f"{place}config ({error.field})", error.problem, error.valid) from None
    kept = _shipped().by_id[same].aliases if same else ()
    return ModelFacts(
        id=row.id,
        family=row.family or str(fields.get("model_type") or ""),
        source=entry.source,
        fields=fields,
        aliases=(*kept, *(row.aliases or ())),
        parameters=built.parameters,
        active_parameters=built.active_parameters,
        context=built.context or None,
        license=row.license,
        weight_format=held,
        tower=tower_in(config, built.hidden),
    )


def _followed_config(place: str, folder: Path) -> dict[str, Any]:
    """The config that a row of the user's names, from the folder of its file."""
    try:
        path = folder / expanded(place)
        path = path / "config.json" if path.is_dir() else path
    except (OSError, RuntimeError, ValueError):
        raise PlanError("model", f"{place[:60]!r} is not a path") from None
    follow("models", path)
    return read_config(path)


@cache
def _publishers() -> dict[tuple[str, str], dict[str, str]]:
    """What is known of all that somebody publishes ('' behind the name), or of what is under a license."""
    return {(row["publisher"].casefold(), row["license"] or ""): row for row in rows("publishers.csv")}


_IS_OPEN = "its config.json is downloaded without an accepted licence (checkpoints.csv)"


def _gate(id: str, known: ModelFacts | None, license: str | None, is_open: bool = False) -> dict[str, Any]:
    """Whether the download of a model is gated, which each repository decides for itself, and who says so; where that
    is not known, whether those of its owner usually are."""
    if is_open:
        return {"gated": False, "gate_source": _IS_OPEN, "usually_gated": None}
    if known is not None and (known.gated or (known.gated is not None and known.id == id)):
        return {"gated": known.gated, "gate_source": known.gate_source, "usually_gated": None}
    if known is not None and known.gated is not None:
        return {"gated": None, "gate_source": f"{known.id} is not: {known.gate_source}", "usually_gated": False}
    owner = id.partition("/")[0].casefold()
    rule = _publishers().get((owner, license or "")) or _publishers().get((owner, ""))
    if rule is None:
        return {"gated": None, "gate_source": "", "usually_gated": None}
    return {"gated": None, "gate_source": rule["source"], "usually_gated": rule["gated"] == "yes"}


def _facts(row: Mapping[str, Any], head: Mapping[str, str]) -> ModelFacts:
    facts = _row_facts(row, head)
    return replace(facts, **_gate(facts.id, facts, facts.license))


def _row_facts(row: Mapping[str, Any], head: Mapping[str, str]) -> ModelFacts:
    gated = row.get("gated")
    return ModelFacts(
        id=row["id"],
        family=row["family"],
        source=row["source"],
        fields=row["fields"],
        aliases=tuple(row.get("aliases", ())),
        like=row.get("like", ""),
        parameters=row.get("parameters"),
        active_parameters=row.get("active_parameters"),
        published_parameters=_billions(row.get("published_b")),
        published_active_parameters=_billions(row.get("published_active_b")),
        context=row.get("context"),
        license=row.get("license"),
        gated=gated,
        gate_source="" if gated is None else row.get("gate_source", head["gate_source"]),
        released=row.get("released"),
        as_of=row.get("as_of", head["as_of"]),
        check=row.get("check", ""),
        readings=tuple(row.get("readings", ())),
        confirmed_by=tuple(row.get("confirmed_by", ())),
    )


def _billions(value: float | None) -> float | None:
    return None if value is None else value * 1e9


def _catalogue(by_id: Mapping[str, ModelFacts], copies: Mapping[str, ModelFacts]) -> NameCatalogue:
    entries: list[NamedEntry] = []
    tails = set[str]()
    for facts in (*by_id.values(), *copies.values()):
        tail = facts.id.rpartition("/")[2]
        is_mirror = bool(facts.shares) and tail.casefold() in tails  # another maker's copy of the same name
        tails.add(tail.casefold())
        # What stands for the usual size of a model says nothing of which that is.
        whole = () if is_mirror else tuple(name for name in facts.aliases if name.endswith(":latest"))
        names = () if is_mirror else (tail, *(name for name in facts.aliases if name not in whole))
        scale = float(facts.parameters or facts.published_parameters or 0)
        sizes = frozenset() if is_mirror else size_words(facts.id, facts.parameters, facts.published_parameters)
        entry = NamedEntry(facts.id, facts.id, names, facts.readings, base=facts.shares, sizes=sizes, whole=whole)
        entries.append(replace(entry, makers=maker_words(facts.id), scale=scale))
    return NameCatalogue(entries, _LANGUAGE, "model", "model", "models")
