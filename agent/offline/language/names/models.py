"""Names of models in a text, known and unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.offline.catalogue import Catalogue
from agent.offline.language.lexicon import Phrase, lexicon, plain_words
from agent.offline.language.names.known import (
    MOST_GLUED,
    Known,
    Name,
    counts,
    goes_on,
    is_of_data,
    is_size,
    is_strange,
    looked_up,
    makers,
    said_of,
    tails,
    walked,
)
from agent.offline.language.tokens import Glyphs, folded
from knowledge.models.naming import refused_models

_MOST_WORDS = 9
# Tokens of a format's name from which on it is no part of a checkpoint's: 'q4_K_M', not 'FP8'.
_BITS = 2


def model_at(text: Sequence[Glyphs], at: int, known: Known, catalogue: Catalogue, whole: str) -> Name | None:
    exact = max((name for name in walked(known.models, text, at) if not _ends_counting(text, name[0])), default=None)
    head = text[at].norm
    if _is_a_card(text, at, known, exact[0] if exact else at + 1):
        return None
    if head in lexicon().particular and at + 1 < len(text) and text[at + 1].space and text[at + 1].norm in known.heads:
        # 'Distill Llama 70B into an 8B'
        return None
    if head not in known.heads:
        sized = exact is not None and is_size(text, exact[0])
        if exact and not _ends_glued(text, exact[0]) and (sized or _bears(text, at, exact[0])):
            return model_named(text, at, exact[0], exact[1], catalogue, whole)
        return _unknown_model(text, at, known, catalogue, whole)
    end = max(_extent(text, at, known), exact[0] if exact else at + 1)
    sized = any(is_size(text, one) for one in range(at, end))
    if not sized and (stop := _size_behind(text, end, known)):
        # 'Llama 9 Ultra 900B' is no Llama that is known.
        return model_named(text, at, stop, said_of(whole, text, at, stop), catalogue, whole)
    if not sized and end == at + 1 and (_is_no_family(text, at) or _of_a_program(text, end)):
        return None
    turned = None
    start = at
    if not sized and at >= 2 and is_size(text, at - 2) and at - 1 < len(text) and text[at].space:
        turned, start = f"{said_of(whole, text, at, end)} {said_of(whole, text, at - 2, at)}", at - 2
    for stop in range(end, at, -1):
        if sized and not any(is_size(text, one) for one in range(at, stop)):
            break
        if stop < end and _is_another(text, stop, end):
            # 'gpt-5' is no 'gpt', 'GLM-5-Air' no GLM-5.
            return model_named(text, start, end, said_of(whole, text, at, end), catalogue, whole)
        if text[stop - 1].joins or (
            stop < len(text) and not text[stop].space and text[stop].kind != "sign" and stop != end
        ):
            continue
        name = model_named(text, start, stop, turned or said_of(whole, text, at, stop), catalogue, whole)
        if name.id or (name.options and not name.problem):
            ordinary = head in plain_words() and stop == at + 1 and not sized
            return None if ordinary else name
        if turned:
            break
    if sized and (head not in plain_words() or any(text[one].joins for one in range(at + 1, end))):
        return model_named(text, start, end, turned or said_of(whole, text, at, end), catalogue, whole)
    return None


def _is_a_card(text: Sequence[Glyphs], at: int, known: Known, end: int) -> bool:
    """Whether a device is named that no shorter model is: 'NVIDIA A100-SXM4-80GB', the 'my-h100' of somebody who has a
    model 'my-8b', too."""
    cards = [stop for stop, _ in walked(known.accelerators, text, at)]
    return max(cards, default=0) > end or (text[at].norm in makers() and any(walked(known.accelerators, text, at + 1)))


def _ends_counting(text: Sequence[Glyphs], end: int) -> bool:
    """Whether the last token of a name counts what stands behind it: the 4 of 'Mistral Small 4 bit'."""
    last = text[end - 1]
    return last.kind == "number" and last.space and counts(text, end - 1)


def of_a_fine_tune(text: Sequence[Glyphs], name: Name, catalogue: Catalogue, whole: str) -> Name:
    """A model with an owner or an end of its own, 'myorg/Llama-3.1-8B-Instruct-medical': what it is called after, which
    is said."""
    if name.id is None or name.problem:
        return name
    start, end = _owner(text, name.start), name.end
    while end + 1 < len(text) and text[end].text in "-_" and not (text[end].space or text[end + 1].space):
        end += 2
    owned = start < name.start and end - name.start > 1
    if not owned or text[start].text in "./~" or said_of(whole, text, start, end).count("/") > 1:
        return name
    called = said_of(whole, text, start, end)
    id, note, options, problem = looked_up(catalogue, "model", called)
    if problem is None and id:
        return replace(name, start=start, end=end, text=called, id=id, note=note, options=options)
    note = f"{called!r} is not in the catalogue: read as {name.id}, which it is called after"
    return replace(name, start=start, end=end, text=called, note=note)


def _owner(text: Sequence[Glyphs], at: int) -> int:
    """Where the owner before a slash begins that ends right at a token; the token where there is none."""
    if at < 2 or text[at - 1].text != "/" or text[at].space or text[at - 1].space:
        return at
    start = at - 1
    while start > 0 and not text[start].space and (text[start - 1].joins or text[start - 1].kind in ("word", "number")):
        start -= 1
    return start


def _says_format(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a weight format begins that is no part of a checkpoint's name: the 'q4_K_M' of 'llama3.1:8b-q4_K_M'."""
    words = (word for word in lexicon().at(text, at) if word.end > at + _BITS)
    return any(sense.name == "weight_dtype" for word in words for sense in word.all("value"))


def _says_other_kind(text: Sequence[Glyphs], at: int, goes_on: bool) -> bool:
    """Whether a word of a name says that it is no language model's: 'qwen3-embedding-8b', 'qwen3 reranker'. One that
    stands apart, where the name is not over, says so if it means nothing else."""
    if text[at].norm not in refused_models():
        return False
    apart = text[at].space and not text[at - 1].joins
    means = {sense.kind for word in lexicon().at(text, at) for sense in word.senses}
    return not apart or (goes_on and means <= {"asked"})


def _says_stage(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a word says how a model is trained: 'sft', 'dpo'."""
    return any(sense.name == "stage" for word in lexicon().at(text, at) for sense in word.all("value"))


def _is_another(text: Sequence[Glyphs], start: int, end: int) -> bool:
    """Whether what a name is joined to, and no such model has, makes it another one: a number, a word behind a
    hyphen."""
    if any(token.kind == "number" and not token.space for token in text[start:end]):
        return True
    if any(token.norm in refused_models() for token in text[start:end]):
        return True
    glued = text[start].text == "-" and not text[start].space and start + 1 < end and not text[start + 1].space
    words = [token.norm for token in text[start:end] if token.kind == "word"]
    return glued and bool(words) and not set(words) & (lexicon().makings | tails())


def _size_behind(text: Sequence[Glyphs], end: int, known: Known) -> int | None:
    """Where a size ends that a version and words with a capital lead to: 'Llama' + '9 Ultra 900B'."""
    at = end
    while at < min(len(text), end + 3) and not is_size(text, at):
        if not (text[at].kind == "number" or text[at].text[:1].isupper()) or any(walked(known.accelerators, text, at)):
            return None
        at += 1
    sized = end < at and is_size(text, at) and not is_of_data(text, at)
    return at + 2 if sized and text[at + 1].norm == "b" else None


def _is_no_family(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a first word of models is an ordinary word by itself, or too short to be a family's name."""
    head = text[at].norm
    return head in plain_words() or len(head) < 3 or (len(head) == 3 and bool(lexicon().at(text, at)))


def _ends_glued(text: Sequence[Glyphs], end: int) -> bool:
    return end < len(text) and not text[end].space and text[end].kind in ("word", "number")


def _bears(text: Sequence[Glyphs], start: int, end: int) -> bool:
    """Whether a short alias ('R1', 'V3', '70b') is more than a letter and a digit that happen to stand together."""
    first = text[start]
    if first.text[:1].isupper() or len(first.norm) > 1 or end - start > 2:
        return True
    # 'Serve r1 on 8 h200'
    worked = start and any(word.end == start and _is_of_work(word) for word in lexicon().at(text, start - 1))
    return bool(worked) and not text[start + 1].space


def _is_of_work(phrase: Phrase) -> bool:
    """Whether words say that a model is trained or served."""
    return any(sense.value == "mode" for sense in phrase.all("asked"))


def _of_a_program(text: Sequence[Glyphs], end: int) -> bool:
    following = text[end].norm if end < len(text) else ""
    behind = text[end + 1].norm if end + 1 < len(text) and text[end].joins else following
    return behind in ("factory", "cpp", "board", "format", "trainer", "server")


def _extent(text: Sequence[Glyphs], start: int, names: Known) -> int:
    """Where a model name that begins with a family's word ends; behind an owner's a family's may follow."""
    at = end = start + 1
    known = names.heads[text[start].norm]
    sized = False
    while at < len(text) and at - start < 2 * _MOST_WORDS:
        token = text[at]
        joined = False
        while at < len(text) and (text[at].joins or text[at].text == ":") and not text[at].space:
            joined, at = True, at + 1
        if at >= len(text) or (joined and text[at].space):
            break
        token = text[at]
        if joined and _says_format(text, at):
            break
        if token.kind == "number":
            if is_size(text, at):
                if token.space and not joined and (sized or is_of_data(text, at)):
                    break
                sized = True
                at += 4 if text[at + 1].norm == "x" else 2
                end = at
                continue
            near = joined or not token.space
            version = token.norm in known or is_size(text, at + 1)
            if not near and (not version or counts(text, at) or any(walked(names.accelerators, text, at + 1))):
                break
            at += 1
            end = at
            continue
        if token.kind != "word" or (token.space and not joined and any(walked(names.accelerators, text, at))):
            # 'Llama 8B A100' names a device, too.
            break
        known |= names.heads.get(token.norm, frozenset())
        following = text[at + 1] if at + 1 < len(text) else None
        versioned = bool(following and following.kind == "number" and not following.space)
        glued = versioned and joined and not token.space
        other = _says_other_kind(text, at, goes_on=not sized)
        if token.norm not in known and not (versioned and token.norm in ("v", "a", "e")) and not (glued or other):
            break
        if token.space and not joined and token.norm in ("a", "v", "e", "it", "base", "with", "on") and not versioned:
            break
        if token.space and not joined and _says_stage(text, at):
            # 'Llama-3.1-8B SFT' says what is done with it, unless a checkpoint is called so.
            break
        at += 1
        end = at
    return end


def model_named(text: Sequence[Glyphs], start: int, end: int, said: str, catalogue: Catalogue, whole: str) -> Name:
    shown = said_of(whole, text, start, end)
    sized = any(is_size(text, one) for one in range(start, end))
    for token in text[start:end]:
        if token.kind == "word" and folded(token.text) != token.norm:
            # A slip of the finger that was put right.
            said = said.replace(token.text, token.norm, 1)
            # 'The gemmas' are the family.
            shown = said if folded(token.text) == f"{token.norm}s" else shown
    id, note, options, problem = looked_up(catalogue, "model", said)
    return Name("model", start, end, shown, id, note, options, problem, sized=sized)


def _ends_an_operator(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a word ends words that say what is done with what stands behind: the 'meant' of 'I meant 3.2 3B'."""
    return at > 0 and any(word.end == at + 1 and word.all("does") for word in lexicon().at(text, at - 1))


def _unknown_model(text: Sequence[Glyphs], at: int, known: Known, catalogue: Catalogue, whole: str) -> Name | None:
    """What is written like a model of no known family: 'SuperLM-13B', 'org/Name-7B', 'Hermes 3 8B'."""
    token = text[at]
    if token.kind != "word" or len(token.norm) < 3 or _is_a_verb(token) or _ends_an_operator(text, at):
        return None
    if end := _strange_model(text, at, known):
        said = said_of(whole, text, at, end)
        card = looked_up(catalogue, "accelerator", said)
        if card[3] and not card[3].startswith("there is no"):
            # 'Ascend 910B' is known, and is no model of 910 billion parameters.
            return Name("accelerator", at, end, said, *card)
        return model_named(text, at, end, said_of(whole, text, at, end), catalogue, whole)
    at_size = at + 1
    while (
        at_size < min(len(text), at + MOST_GLUED)
        and not text[at_size].space
        and (text[at_size].joins or text[at_size].kind == "word")
    ):
        at_size += 1
    glued = at_size > at + 1 and text[at_size - 1].text in "-_"
    if not glued or not is_size(text, at_size) or text[at_size].space or text[at_size + 1].norm != "b":
        return None
    if token.norm in plain_words() or lexicon().at(text, at):
        return None
    end = at_size + 2
    while end < len(text) and not text[end].space and (text[end].joins or text[end].kind in ("word", "number")):
        end += 1
    end -= text[end - 1].joins
    return model_named(text, at, end, said_of(whole, text, at, end), catalogue, whole)


def _is_a_verb(token: Glyphs) -> bool:
    """Whether a word is written as English writes what somebody did or does: 'we guessed 2.9B', 'debating R1'."""
    return token.text.islower() and token.text.endswith(("ed", "ing"))


def _strange_model(text: Sequence[Glyphs], at: int, known: Known) -> int | None:
    """Where words that nobody knows end together with the size that is said of them."""
    if len(text[at].norm) < 4:
        return None
    end, last = at, min(len(text), at + MOST_GLUED)
    while end < last and (is_strange(text, end, known) or (end > at and goes_on(text, end))):
        if is_size(text, end):
            # 'Push 2B tokens'
            counted = any(word.get("unit") for word in lexicon().at(text, end + 2))
            return end + 2 if text[end + 1].norm == "b" and not counted else None
        end += 1
    return None
