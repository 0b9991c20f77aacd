"""Which model is meant: names, hub ids and paths, other sizes of the same family, names of quantised copies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent.offline.catalogue import Catalogue
from agent.offline.page import Page
from agent.offline.slots import Question, Relative, Slot
from estimator.errors import PlanError

# What people train that no plan here is for.
_NO_LANGUAGE = re.compile(
    r"\b(?:whisper|wav2vec\w*|stable diffusion(?: xl| \d(?:\.\d)?)?|sdxl|sd ?3(?:\.5)?|flux(?:\.1)?|yolo\w*|resnet\w*|"
    r"efficientnet\w*|u-?net|vit|clip|dall-?e|segment anything|alphafold|esm-?2?)\b",
    re.I,
)
# A size without a noun, in a session that has a model: that model in another size ("what about 70B?").
_BARE_SIZE = re.compile(r"(?<![\w.$-])\d+(?:\.\d+)?[bB]\b(?!\s*-?\s*(?:\w+ )?tok)")
_MORE_SIZES = re.compile(
    r"(?<=[\ue000\ue003])\s*(?:,|/|and|or|vs\.?|versus|&|against)\s*(?:the )?(\d+(?:\.\d+)?[bB])\b(?!\s*-?\s*(?:\w+ "
    r")?tok)"
)
# What names of quantised copies end in, by the weight format where it is called otherwise.
_QUANTISED = re.compile(r"[-_.](awq|gptq(?:-int[48])?|fp8|nvfp4|fp4|mxfp4|int4|int8|gguf|w4a16|w8a8)$", re.I)
_QUANTS = {"gptq-int4": "gptq", "gptq-int8": "int8", "fp4": "nvfp4", "w4a16": "int4", "w8a8": "int8"}


def read_models(
    page: Page,
    catalogue: Catalogue,
    plan: Mapping[str, Any],
    slots: list[Slot | Relative],
    questions: list[Question],
    serving: bool,
) -> list[str]:
    ids: list[str] = []
    for name in page.of("path"):
        slots.append(Slot("model", name.text, name.text))
        ids.append(name.text)
    for name in page.of("model"):
        try:
            wanted = name.value or name.text
            id, note = _look_up(wanted, catalogue, slots) if serving else catalogue.find_model(wanted)
        except PlanError as error:
            questions.append(Question("model", str(error).removeprefix("model: ")))
            continue
        if id not in ids:
            ids.append(id)
            slots.append(Slot("model", id, name.text, note))
    if ids:
        _other_sizes(page, catalogue, ids, slots)
    if ids or questions:
        return ids
    for match in page.find(_BARE_SIZE):
        if sibling := _sibling(plan.get("model"), match[0], catalogue):
            words = page.take(match.start(), match.end())
            slots.append(Slot("model", sibling, words, f"{words} read as {sibling}"))
            return [sibling]
    for name in page.of("size"):
        size = re.search(r"\d+(?:\.\d+)?\s?[bm]", name.text, re.IGNORECASE)
        words = size[0] if size else name.text
        near = catalogue.models_of_size(name.value)
        if sibling := _sibling(plan.get("model"), name.text, catalogue) or _relative(plan.get("model"), near):
            slots.append(Slot("model", sibling, name.text, f"{words} read as {sibling}"))
            return [sibling]
        such = f", such as {', '.join(near[:5])}" if near else ""
        questions.append(Question("model", f"which {words} model is it{such}?"))
        break
    if not questions and not plan.get("model") and (other := _NO_LANGUAGE.search(page.text)):
        questions.append(
            Question("model", f"I plan language models, and {other[0]!r} is none that I know; which model is it?")
        )
    return ids


def _other_sizes(page: Page, catalogue: Catalogue, ids: list[str], slots: list[Slot | Relative]) -> None:
    """'Llama 3.1 8B and 70B': the same model in the other sizes that stand beside its name."""
    for match in page.find(_MORE_SIZES):
        sibling = _sibling(ids[-1], match[1], catalogue)
        if sibling is None or sibling in ids:
            continue
        words = page.take(match.start(1), match.end(1))
        slots.append(Slot("model", sibling, words, f"{words} read as {sibling}"))
        ids.append(sibling)


def _look_up(name: str, catalogue: Catalogue, slots: list[Slot | Relative]) -> tuple[str, str | None]:
    """The model of that name; of a quantised copy ('Qwen2.5-7B-Instruct-AWQ') the model and the format."""
    match = _QUANTISED.search(name)
    if match is None:
        return catalogue.find_model(name)
    found, note = catalogue.find_model(name[: match.start()])
    slots.append(Slot("workload.weight_dtype", _QUANTS.get(match[1].lower(), match[1].lower()), match[0]))
    return found, note or f"{name} read as {found} with {match[1]} weights"


def _relative(model: Any, near: list[str]) -> str | None:
    """The one model of the session's family among those of a size: Llama-3.2-3B for 'the 3B' after Llama-3.1-8B."""
    family = re.match(r"(?:.*/)?([A-Za-z]+)", model) if isinstance(model, str) else None
    same = [id for id in near if family and id.rpartition("/")[2].lower().startswith(family[1].lower())]
    return same[0] if len(same) == 1 else None


def _sibling(model: Any, size: str, catalogue: Catalogue) -> str | None:
    """The session's model in another size ('what about the 70B?' after Llama-3.1-8B), where the catalogue has it."""
    if not isinstance(model, str):
        return None
    name = re.sub(r"\d+(?:\.\d+)?[bB]\b", re.sub(r"\s", "", size).upper(), model, count=1)
    try:
        return catalogue.find_model(name)[0]
    except PlanError:
        return None
