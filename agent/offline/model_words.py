"""Which model is meant: names, hub ids and paths, other sizes of the same family, names of quantised copies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.offline.catalogue import Catalogue, folded
from agent.offline.page import Page, Spotted
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
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?\s?[bBmM]\b")
_WHOLE = r"\d{1,3}(?:,\d{3})+|\d+"
# Fields of a configuration, as they are called; the more particular first.
_CONFIG = (
    ("num_key_value_heads", r"(?:kv|key[- ]value)[-_ ]?heads?"),
    ("num_attention_heads", r"(?:attention |query |q )?heads?"),
    ("hidden_size", r"hidden|d_model|model dim"),
    ("num_hidden_layers", r"(?:hidden )?layers?|blocks"),
    ("intermediate_size", r"ffn|intermediate|mlp|feed-?forward"),
    ("vocab_size", r"vocab(?:ulary)?"),
)
# 'Same OLMo? No: …', 'Coder isn't needed'.
_DISMISSED = re.compile(r"\s*(?:\?\s*no\b|(?:isn'?t|is not) (?:needed|required|wanted|meant)\b)", re.I)
# Before a model that another one takes the place of: 'not phi-4 but Qwen2.5-14B', 'instead of the 8B'.
_LEFT = re.compile(
    r"(?:(?<!why )(?<!or )\bnot|\b(?:instead of|rather than|in place of|replac(?:e|ing)|swap(?:ping)?(?: out)?))\s+"
    r"(?:using )?(?:the |my |our )?$",
    re.I,
)
_WEIGHED = re.compile(r"\b(?:compar\w+|difference|gain\w*|sav\w+|worth|cost\w*|cheaper|faster|slower|better)\b", re.I)
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
    earlier: Sequence[str] = (),
) -> list[str]:
    """The models that are named. `earlier` are those that the conversation was about, the latest first."""
    ids: list[str] = []
    family = plan.get("model") or next(iter(earlier), None)
    if not page.of("path", "model") and (config := _inline(page)):
        slots.append(Slot("model", config, "the figures of the model"))
        return []
    for name in page.of("path"):
        slots.append(Slot("model", name.text, name.text))
        ids.append(name.text)
    for name in _kept(page):
        wanted = name.value or name.text
        try:
            id, note = _look_up(wanted, catalogue, slots) if serving else catalogue.find_model(wanted)
        except PlanError as error:
            if _DISMISSED.match(page.rest, name.end):
                continue
            near = _narrowed(wanted, page, catalogue, earlier) or _sibling(family, wanted, catalogue)
            if near is None:
                questions.append(Question("model", str(error).removeprefix("model: ")))
                continue
            id, note = near, f"{name.text} read as {near}"
        if id not in ids:
            ids.append(id)
            slots.append(Slot("model", id, name.text, note))
    if ids:
        _other_sizes(page, catalogue, ids, slots)
    if ids or questions:
        return ids
    for match in page.find(_BARE_SIZE):
        if sibling := _sibling(family, match[0], catalogue):
            words = page.take(match.start(), match.end())
            slots.append(Slot("model", sibling, words, f"{words} read as {sibling}"))
            return [sibling]
    for model in earlier:
        # 'No wait, falcon was right': a family that is also a word means a model that was spoken of.
        head = re.match(r"(?:.*/)?([A-Za-z]{4,})", model)
        if model != plan.get("model") and head and re.search(rf"\b{head[1]}\b", page.text, re.IGNORECASE):
            slots.append(Slot("model", model, head[1], f"{head[1]} read as {model}"))
            return [model]
    for name in page.of("size"):
        size = re.search(r"\d+(?:\.\d+)?\s?[bm]", name.text, re.IGNORECASE)
        words = size[0] if size else name.text
        near = catalogue.models_of_size(name.value)
        if sibling := _sibling(family, words, catalogue) or _relative(family, near, words):
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


def _kept(page: Page) -> list[Spotted]:
    """The model names without those that another one takes the place of; all of them where they are set side by
    side."""
    names = page.of("model")
    kept = [name for name in names if not _LEFT.search(page.rest, 0, name.start)]
    return kept if kept and not _WEIGHED.search(page.text) else names


def _inline(page: Page) -> dict[str, int] | None:
    """'hidden 4096, 32 layers, 32 heads, 8 kv heads, ffn 14336, vocab 128256' as a configuration; its words are
    blanked."""
    found: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for name, words in _CONFIG:
        behind = rf"\b(?:{words})(?:[-_ ](?:size|dim(?:ension)?))?\s*(?:of|=|:|is)?\s*({_WHOLE})(?!\w)"
        rule = rf"{behind}|(?<![\w.])({_WHOLE})\s+(?:{words})\b"
        for match in page.find(rule):
            if not any(start < match.end() and match.start() < end for start, end in spans):
                found[name] = int((match[1] or match[2]).replace(",", ""))
                spans.append(match.span())
                break
    if not {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"} <= set(found):
        return None
    for span in spans:
        page.take(*span)
    return found


def _narrowed(name: str, page: Page, catalogue: Catalogue, earlier: Sequence[str]) -> str | None:
    """What a name that has no one meaning can only mean here: '405B pretraining (Llama 3.1)', 'back to the falcon'."""
    sizes = [*(size.text for size in page.of("size")), *(match[0] for match in page.find(_BARE_SIZE))]
    for text in sizes:
        if size := re.search(r"\d+(?:\.\d+)?\s?[bB]", text):
            try:
                return catalogue.find_model(f"{name} {size[0]}")[0]
            except PlanError:
                continue
    start = folded(name)
    same = [id for id in earlier if folded(id.rpartition("/")[2]).startswith(start)]
    if same:
        return same[0]
    begins = {known for known in catalogue.model_names if folded(known.rpartition("/")[2]).startswith(start)}
    ids = {catalogue.find_model(known)[0] for known in begins} if len(begins) < 4 else set()
    return ids.pop() if len(ids) == 1 else None


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


def _relative(model: Any, near: list[str], size: str) -> str | None:
    """The one model of the session's family among those of a size: Llama-3.2-3B for 'the 3B' after Llama-3.1-8B."""
    family = re.match(r"(?:.*/)?([A-Za-z]+)", model) if isinstance(model, str) else None
    same = [id for id in near if family and id.rpartition("/")[2].lower().startswith(family[1].lower())]
    named = [id for id in same if re.search(rf"(?<![\w.]){re.escape(size)}(?!\w)", id, re.IGNORECASE)]
    same = named if len(same) > 1 else same
    return same[0] if len(same) == 1 else None


def _sibling(model: Any, size: str, catalogue: Catalogue) -> str | None:
    """The session's model in another size ('what about the 70B?' after Llama-3.1-8B), where the catalogue has it."""
    if not isinstance(model, str):
        return None
    if not _SIZE.fullmatch(size):
        return None
    name = _SIZE.sub(re.sub(r"\s", "", size).upper().replace("X", "x"), model, count=1)
    try:
        return catalogue.find_model(name)[0]
    except PlanError:
        return None
