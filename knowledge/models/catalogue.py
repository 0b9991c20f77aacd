"""The model catalogue, and the Architecture of any model: by name, by config file or by inline fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from estimator.errors import PlanError, unreadable
from estimator.model.architecture import Architecture
from estimator.model.configs import build
from estimator.model.vision import VisionTower
from knowledge.data_files import FOLDER, rows
from knowledge.models.fields import TEXT_ALONE, canonical, model_types
from knowledge.models.gguf import is_gguf_file, read_gguf
from knowledge.models.held import WeightFile, held_bits
from knowledge.models.naming import (
    SIZE,
    bare_size,
    maker_words,
    model_form,
    own_mix,
    refused_models,
    short_words,
    size_words,
    tag_format,
    words_of,
)
from knowledge.models.quantization import beside, published_format
from knowledge.models.safetensors import is_index, read_weights, weights_beside
from knowledge.models.unread import Watched, unread
from knowledge.models.vision import tower_in, tower_of
from knowledge.names import Language, Match, NameCatalogue, NamedEntry, UnknownName
from knowledge.own.files import Stamp, follow, may_read, read_text, stamp
from knowledge.own.home import expanded
from knowledge.own.mappings import json_value
from knowledge.own.rows import LeftOut, ModelRow, Own, read_rows, refuse_lost

_LARGEST_CONFIG_BYTES = 4_000_000
_QUANTISED = "hf_quant_config.json"
_CHAT_MARKS = {"it", "instruct", "chat"}
BASE_MARKS = {"pt", "base"}
"""Parts of the names of checkpoints that are only pretrained."""
_COUNTED_ALIKE = 0.01
"""Share by which two counts of weights may differ: converters leave out or add small tensors."""
_LANGUAGE = Language(model_form, words_of, SIZE, bare_size, refused_models(), short_words())


@dataclass(frozen=True)
class ModelFacts:
    """A catalogue row. `parameters` is counted from the fields (None where no independent count exists);
    `published_parameters` is the maker's rounded figure. `context` is in tokens. `as_of` is the date of the row,
    `check` what of it was inferred or recalled. A checkpoint `shares` the architecture of the row of that id. Its
    `weight_format` is an entry of data/weight_formats.yaml ('' for 16 bits, or where it is not known). `gate_source`
    is where it was read whether its download is `gated`, or what its owner publishes `usually_gated`. `like` is the
    row whose fields it has but for its own."""

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

    @property
    def is_published(self) -> bool:
        """Whether there are weights to download, or a paper alone says what it is."""
        return self.license != "paper-only"


@dataclass(frozen=True)
class _KnownModels:
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
    return list(_known().by_id.values())


def checkpoints() -> list[ModelFacts]:
    """Every other checkpoint that is known, each with the architecture that it shares."""
    return list(_known().checkpoints.values())


def facts_of(name: str) -> ModelFacts | None:
    """The row or checkpoint of exactly this name, in any case; None where there is none."""
    known = _known()
    id = known.names.exact(name)
    return known.facts(id) if id else None


def architecture_row(id: str) -> str:
    """The id of the row whose architecture a checkpoint has; any other id as it is."""
    facts = _known().checkpoints.get(id)
    return facts.shares if facts else id


def chat_checkpoint(id: str) -> str | None:
    """The checkpoint of the same maker, in 16 bits, that is named as one that is only pretrained but for following
    instructions; None where there is none."""
    alike = [row for row in checkpoints() if row.shares == architecture_row(id) and not row.weight_format]
    chats = [row.id for row in alike if row.id != id and _unmarked(row.id) == _unmarked(id)]
    return next((chat for chat in chats if _CHAT_MARKS & set(chat.lower().split("-"))), None)


def _unmarked(id: str) -> list[str]:
    """The parts of a name without those that say how the weights were trained."""
    return [part for part in id.lower().split("-") if part not in _CHAT_MARKS | BASE_MARKS]


def own_models() -> dict[str, Own[ModelRow]]:
    """The user's own rows by id."""
    return _known().own


def models_left_out() -> list[LeftOut]:
    """The user's own rows that cannot be used."""
    return _known().left_out


def find_model(name: str) -> Match[ModelFacts]:
    """The checkpoint that a name means, or the row of the catalogue; a format that the name says and no checkpoint of
    it is known to hold is its `weight_format`. Raises PlanError(field="model") when it is unknown or ambiguous."""
    known = _known()
    match = _named(known, name)
    facts = known.facts(match.value)
    if held := _format_said(match, name, facts.weight_format):
        facts = replace(facts, weight_format=held)
    elif facts.shares and _is_plain(match, name):
        facts = replace(facts, weight_format=known.facts(facts.shares).weight_format)
    return Match(facts, known.noted(match.value, match.note), match.score, match.runner_up)


_OTHER_SHAPE = re.compile(
    r"(?i)(?:moe|merge(?!d)|prun|reap|draft|specul|eagle|medusa|assistant|layers?|minitron|expand|pro$|vlm?$|vision|audio"
    r"|omni|x\d|mamba|hybrid|embed|rerank|reward|prm|lite$)"
)
"""Words beside a model's name that make another architecture of it."""


_SIZED_END = re.compile(rf"(?i)\d[bm](-({'|'.join(sorted(_CHAT_MARKS))}))?$")
SCORE_OF_A_TUNE = 0.5
"""Score of a name that nothing is called, taken for the model that it holds."""


def base_in_name(name: str) -> str | None:
    """The catalogue's model that a fine-tune's name holds whole ('Qwen3-0.6B-Reverse-Text-SFT'); the longest one, None
    where there is none or where the rest of the name may change its architecture."""
    return _base_held(_known(), name)


def _base_held(known: _KnownModels, name: str) -> str | None:
    words = re.split(r"[-_ ]+", name)
    spans = ((end - start, start, end) for start in range(len(words)) for end in range(start + 2, len(words) + 1))
    for length, start, end in sorted(spans, key=lambda span: -span[0]):
        part = "-".join(words[start:end])
        id = _sure(known, part) if length < len(words) and _SIZED_END.search(part) else None
        if id is not None:
            beside = [*words[:start], *words[end:]]
            sized = any(re.fullmatch(r"(?i)a?\d+(\.\d+)?[bm]", word) for word in beside)
            taught = any(re.match(r"(?i)distil", word) for word in words[:start])  # of it, not it
            version = end < len(words) and re.fullmatch(r"(?i)v?\d+(\.\d+)*", words[end])  # another one of it
            reshaped = any(_OTHER_SHAPE.match(word) for word in beside)
            return None if sized or taught or version or reshaped else id
    return None


def _sure(known: _KnownModels, name: str) -> str | None:
    """The model whose name says no more and no less than a name does, but for how it was tuned: '5-2B' is not
    MiniCPM5-2B, and no version is left open."""
    if id := known.names.exact(name):
        return id
    try:
        id = known.names.find(name).value
    except PlanError:
        return None
    wanted = model_form(name)
    forms = (model_form(each) for each in (id.rpartition("/")[2], *known.facts(id).aliases))
    return id if any((form.words, form.numbers) == (wanted.words, wanted.numbers) for form in forms) else None


def architecture(spec: str | Mapping[str, Any]) -> Architecture:
    """The Architecture of a catalogue name, of a config.json (or the folder it is in), or of inline config fields.

    Values that were assumed, and how a name was read, are in `notes`. Raises PlanError.
    """
    facts, sentence = find_architecture(spec)
    return replace(facts, notes=(sentence, *facts.notes)) if sentence else facts


def find_architecture(spec: str | Mapping[str, Any]) -> tuple[Architecture, str | None]:
    """As `architecture`, with the sentence that says how a name was read beside it (None when it was exact)."""
    if isinstance(spec, Mapping):
        return _inline(spec), None
    if not isinstance(spec, str):
        raise PlanError("model", f"must be a name, a path or a mapping of config fields, not {type(spec).__name__}")
    known = _known()
    if exact := known.names.exact(spec):
        built = _of_catalogue(known, exact)
        held = tag_format(spec, built.weight_format)
        return replace(built, weight_format=held), known.noted(exact, None)
    if path := _config_path(spec):
        return _of_file(path), None
    match = _named(known, spec)
    built = _of_catalogue(known, match.value)
    if held := _format_said(match, spec, built.weight_format):
        built = replace(built, weight_format=held)
    elif (facts := known.facts(match.value)).shares and _is_plain(match, spec):
        built = replace(built, weight_format=known.facts(facts.shares).weight_format)
    if mixed := own_mix(spec):
        built = replace(built, notes=(*built.notes, mixed))
    return built, known.noted(match.value, match.note)


def _named(known: _KnownModels, name: str) -> Match[str]:
    try:
        match = known.names.find(name)
        kinds = words_of(name) & {"moe", "dense"}
        if not kinds or kinds == {"moe" if _of_catalogue(known, match.value).is_moe else "dense"}:
            return match
        if "moe" in kinds and (id := _with_word(known, name, "moe")):
            return Match(id, f"{name!r} read as {id}")
        kind = "dense" if "moe" in kinds else "a mixture of experts"
        problem = f"there is no model {name!r} in the catalogue: {match.value} is {kind}"
        raise PlanError("model", problem, [match.value])
    except PlanError as error:
        refuse_lost(name, known.left_out, "model")
        # One version of a family may have it in its name, where 'qwen moe' would be any.
        if "moe" in words_of(name) and model_form(name).numbers and (id := _with_word(known, name, "moe")):
            return Match(id, f"{name!r} read as {id}")
        if id := _of_told_size(known, name, error.valid):
            return Match(id, f"{name!r} read as {id}")
        # What it is called behind its base may be its teacher, which nobody plans for: Qwen3.5-9B-Claude-4.6-Distill.
        is_open = isinstance(error, UnknownName) or "offered as a service" in error.problem
        if not is_open or not (id := _of_tuner(known, name)):
            raise
        sentence = f"{name!r} read as {id}, whose name it holds: what was made of it is not in the catalogue"
        return Match(id, sentence, SCORE_OF_A_TUNE, lacking=model_form(name).formats)


def _of_tuner(known: _KnownModels, name: str) -> str | None:
    """The model that the name of an id, a file or a tag holds, where somebody tuned or quantised it; what people say
    in words is no such name."""
    copied = name.strip()
    if re.search(r"\s", copied) or not re.search(r"[-_]", copied):
        return None
    return _base_held(known, re.sub(r":.*|\.(gguf|bin|safetensors)$", "", copied.rpartition("/")[2]))


def _with_word(known: _KnownModels, name: str, word: str) -> str | None:
    """The one model whose id says `word` as well, and all that the name does; the checkpoint of it that is marked as
    the name is, where there is one."""
    wanted = model_form(name)
    named = {id: model_form(id) for id in known.names.entries if word in words_of(id)}
    fits = [id for id, form in named.items() if wanted.words <= form.words and wanted.numbers <= form.numbers]
    bases = [id for id in fits if not known.facts(id).shares]
    marked = [id for id in fits if named[id].marks == wanted.marks]
    return (marked if len(marked) == 1 else bases)[0] if len(bases) == 1 else None


_SIZED = re.compile(r"(?i)(.+?)[-_ ]+(\d+(?:\.\d+)?)([mb])\b")
# How far a size that is told may be from the parameters that are counted.
_NEAR = 0.05


def _of_told_size(known: _KnownModels, name: str, near: Iterable[str]) -> str | None:
    """Of the `near` models the one of a family whose names tell no sizes, by its size: 'gpt-2 124M', 'gpt2 1.5b'."""
    if not (told := _SIZED.fullmatch(name.strip().lower())):
        return None
    stem, wanted = re.sub(r"\W", "", told[1]), float(told[2]) * (1e6 if told[3] == "m" else 1e9)
    tails = {id: re.sub(r"\W", "", id.rpartition("/")[2].lower()) for id in near if not _SIZED.search(id)}
    family = [id for id, tail in tails.items() if tail.startswith(stem)]
    sized = [id for id in family if abs(_of_catalogue(known, id).parameters / wanted - 1) <= _NEAR]
    return sized[0] if len(sized) == 1 else None


def _format_said(match: Match[str], name: str, published: str) -> str:
    """The format that a name says, or a tag loads, and the checkpoint that it means does not hold; '' where none is."""
    formats = model_form(name).formats & match.lacking if match.lacking else frozenset()
    held = min(formats, default="") or tag_format(name, published)
    return "" if held == published else held


def _is_plain(match: Match[str], name: str) -> bool:
    """Whether a name says no format, and only a copy in one is known of what it means: its weights are the base's."""
    return match.score < 1 and bool(model_form(match.value).formats) and not model_form(name).formats


def _of_catalogue(known: _KnownModels, id: str) -> Architecture:
    if id not in known.built:
        facts = known.facts(id)
        if facts.shares:
            built = replace(_of_catalogue(known, facts.shares), id=id, context=facts.context or 0)
        else:
            built = replace(build(facts.fields, id), family=facts.family)
            built = _seeing(built, tower_of(id, built.hidden))
        known.built[id] = replace(built, weight_format=facts.weight_format)
    return known.built[id]


def _inline(fields: Mapping[str, Any]) -> Architecture:
    unusable = [key for key in fields if not isinstance(key, str)]
    if unusable:
        raise PlanError("model", f"config field names must be text, not {unusable[0]!r}")
    name = fields.get("_name_or_path") or fields.get("name") or fields.get("model_type")
    return _of_config(fields, str(name) if name else "inline model")


def _of_file(path: Path) -> Architecture:
    if is_gguf_file(path):
        return _of_gguf(path)
    config_path = path
    if path.suffix == ".safetensors" or is_index(path):
        config_path = path.parent / "config.json"
        if not config_path.is_file():
            problem = f"{path.name} has the sizes of tensors, not what they do: put its config.json beside it"
            raise PlanError("model", problem)
    config = read_config(config_path)
    quantised = config_path.parent / _QUANTISED
    if "quantization_config" not in config and quantised.is_file():
        config["quantization_config"] = beside(read_config(quantised))
    built = _of_config(config, str(config.get("_name_or_path") or _folder_name(config_path)))
    file = weights_beside(path.parent, built.layers) if path is config_path else read_weights(path, built.layers)
    return _with_weights(built, file) if file else built


def _of_config(config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture of a config in the format that its quantization_config says."""
    fields = Watched(canonical(config))
    built = build(fields, name)
    beside = unread(fields) if fields.get("model_type") not in model_types() else None
    built = _seeing(built, tower_in(config, built.hidden))
    held, unheld = published_format(config)
    notes = (
        *built.notes[:1],
        beside,
        *built.notes[1:],
        unheld,
    )  # what is not read of an unknown kind stands behind what it was taken for
    return replace(built, weight_format=held, notes=tuple(filter(None, notes)))


def _seeing(built: Architecture, tower: VisionTower | None) -> Architecture:
    """With what reads images, where it is known."""
    if tower is None:
        return built
    return replace(built, vision=tower, notes=tuple(note for note in built.notes if note != TEXT_ALONE))


def _folder_name(config: Path) -> str:
    """What the model of a folder is called; of the cache of huggingface_hub, its id."""
    cached = (re.fullmatch(r"models--(.+)--(.+)", part) for part in reversed(config.parts))
    repository = next((match for match in cached if match), None)
    return f"{repository[1]}/{repository[2]}" if repository else str(config.parent.name or config)


def _of_gguf(path: Path) -> Architecture:
    """The architecture that the header of a GGUF file says; where that is not known here, the one that its name means,
    if it has as many weights."""
    file = read_gguf(path)
    fields = {field: value for field, value in file.fields.items() if value is not None}
    names = [path.stem, f"{fields['_gguf_name']} {fields['_gguf_size']}".strip()]
    try:
        if fields.get("model_type") not in model_types():
            raise PlanError(
                "model.general.architecture", f"{str(fields['model_type'])[:60]!r} is not known", ["a config.json"]
            )
        built = replace(build(canonical(fields), path.stem), id=path.stem)
    except PlanError as error:
        built = next((like for name in names if (like := _counted_alike(name, file))), None)
        if built is None:
            raise PlanError("model", f"{path.name}: {error}", error.valid) from None
        built = replace(built, notes=(*built.notes, f"{path.name} taken as {built.id}, which has as many weights"))
    return _with_weights(replace(built, weight_format=file.weight_format), file)


def _counted_alike(name: str, file: WeightFile) -> Architecture | None:
    """The model of that name where it has the weights of a file."""
    try:
        like = _of_catalogue(_known(), _named(_known(), name).value)
    except PlanError:
        return None
    return like if abs(like.parameters - file.text_weights) <= _COUNTED_ALIKE * like.parameters else None


def _with_weights(built: Architecture, file: WeightFile) -> Architecture:
    """With the bits that a file holds, and what does not agree."""
    notes = [*built.notes, f"weights of {file.text_bytes:,} bytes by the {file.source}"]
    counted, known = file.text_weights, built.parameters
    if counted and abs(counted - known) > _COUNTED_ALIKE * known:
        notes.append(f"its tensors have {counted:,} weights, the fields of its config come to {known:,}")
    if tower := file.bytes_of.get("tower"):
        notes.append(f"its vision or audio part has {tower:,} bytes more")
    return replace(built, held=held_bits(file, built), notes=tuple(notes))


def read_config(path: Path) -> dict[str, Any]:
    """The fields of a config.json. Raises PlanError(field="model")."""
    text = read_text(path, "model", _LARGEST_CONFIG_BYTES)
    try:
        config = json_value(text)
    except ValueError as error:
        raise PlanError("model", f"{path} is not JSON: {unreadable(error)}") from None
    if not isinstance(config, dict):
        raise PlanError("model", f"{path} must hold a JSON object of config fields")
    return config


def _config_path(spec: str) -> Path | None:
    """The config file that `spec` points to, None when it is a name. Raises PlanError for a path to nothing."""
    if "\0" in spec or len(spec) > 4096:
        return None
    path = Path(spec)
    try:
        path = expanded(path)
        if not may_read(path):
            return None
        if path.is_dir() and (path / "config.json").is_file():
            return path / "config.json"
        if path.is_file():
            return path
        if path.is_dir() and (files := sorted(path.glob("*.gguf"))):
            return files[0]
    except (OSError, RuntimeError):
        return None
    if spec.endswith(".json") or spec.startswith(("/", "./", "../", "~")):
        raise PlanError("model", f"there is no config.json, GGUF or safetensors file at {spec!r}")
    return None


def _known() -> _KnownModels:
    stamps = stamp("models")
    return _joined(stamps) if stamps else _shipped()


@cache
def _shipped() -> _KnownModels:
    with (FOLDER / "models.jsonl").open(encoding="utf-8") as file:
        head = json.loads(next(file))  # what the columns mean, and what stands for those that a row leaves out
        by_id: dict[str, ModelFacts] = {}
        for line in file:
            row = json.loads(line)
            if like := row.get("like"):
                row["fields"] = {**by_id[like].fields, **row["fields"]}
            by_id[row["id"]] = _facts(row, head)
    copies = _read_checkpoints(by_id)
    return _KnownModels(by_id, copies, _catalogue(by_id, copies), {}, [])


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
def _joined(_: Stamp) -> _KnownModels:
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
    return _KnownModels(by_id, copies, _catalogue(by_id, copies), kept, left_out)


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
