"""A model by its name, and the Architecture of any model: by name, by config file or by inline fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from estimator.model.architecture import Architecture
from estimator.model.configs import build
from estimator.model.vision import VisionTower
from knowledge.models.config_files import config_path, read_config
from knowledge.models.fields import TEXT_ALONE, canonical, model_types
from knowledge.models.gguf import is_gguf_file, read_gguf
from knowledge.models.held import WeightFile, held_bits
from knowledge.models.known import CHAT_MARKS, KnownModels, ModelFacts, known_models
from knowledge.models.naming import (
    model_form,
    own_mix,
    tag_format,
    words_of,
)
from knowledge.models.quantization import beside, published_format
from knowledge.models.safetensors import is_index, read_weights, weights_beside
from knowledge.models.unread import Watched, unread
from knowledge.models.vision import tower_in, tower_of
from knowledge.names import Match, UnknownName
from knowledge.own.rows import refuse_lost

_QUANTISED = "hf_quant_config.json"
_COUNTED_ALIKE = 0.01
"""Share by which two counts of weights may differ: converters leave out or add small tensors."""


def find_model(name: str) -> Match[ModelFacts]:
    """The checkpoint that a name means, or the row of the catalogue; a format that the name says and no checkpoint of
    it is known to hold is its `weight_format`. Raises PlanError(field="model") when it is unknown or ambiguous."""
    known = known_models()
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


_SIZED_END = re.compile(rf"(?i)\d[bm](-({'|'.join(sorted(CHAT_MARKS))}))?$")
SCORE_OF_A_TUNE = 0.5
"""Score of a name that nothing is called, taken for the model that it holds."""


def base_in_name(name: str) -> str | None:
    """The catalogue's model that a fine-tune's name holds whole ('Qwen3-0.6B-Reverse-Text-SFT'); the longest one, None
    where there is none or where the rest of the name may change its architecture."""
    return _base_held(known_models(), name)


def _base_held(known: KnownModels, name: str) -> str | None:
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


def _sure(known: KnownModels, name: str) -> str | None:
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
    known = known_models()
    if exact := known.names.exact(spec):
        built = _of_catalogue(known, exact)
        held = tag_format(spec, built.weight_format)
        return replace(built, weight_format=held), known.noted(exact, None)
    if path := config_path(spec):
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


def _named(known: KnownModels, name: str) -> Match[str]:
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


def _of_tuner(known: KnownModels, name: str) -> str | None:
    """The model that the name of an id, a file or a tag holds, where somebody tuned or quantised it; what people say
    in words is no such name."""
    copied = name.strip()
    if re.search(r"\s", copied) or not re.search(r"[-_]", copied):
        return None
    return _base_held(known, re.sub(r":.*|\.(gguf|bin|safetensors)$", "", copied.rpartition("/")[2]))


def _with_word(known: KnownModels, name: str, word: str) -> str | None:
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


def _of_told_size(known: KnownModels, name: str, near: Iterable[str]) -> str | None:
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


def _of_catalogue(known: KnownModels, id: str) -> Architecture:
    if id not in known.built:
        facts = known.facts(id)
        if facts.shares:
            built = replace(_of_catalogue(known, facts.shares), id=id, context=facts.context or 0)
        else:
            built = replace(build(facts.fields, id), family=facts.family)
            built = _seeing(built, facts.tower or tower_of(id, built.hidden))
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
    if path.suffix == ".gguf":
        raise PlanError("model", f"{path.name} does not begin as a GGUF file does")
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
            raise PlanError("model", f"{path.name}: {error.field}: {error.problem}", error.valid) from None
        built = replace(built, notes=(*built.notes, f"{path.name} taken as {built.id}, which has as many weights"))
    return _with_weights(replace(built, weight_format=file.weight_format), file)


def _counted_alike(name: str, file: WeightFile) -> Architecture | None:
    """The model of that name where it has the weights of a file."""
    try:
        like = _of_catalogue(known_models(), _named(known_models(), name).value)
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
