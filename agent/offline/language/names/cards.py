"""Names of accelerators in a text, known and unknown."""

from __future__ import annotations

from collections.abc import Sequence

from agent.offline.catalogue import Catalogue
from agent.offline.language.lexicon import lexicon
from agent.offline.language.names.known import (
    MOST_GLUED,
    Known,
    Looked,
    Name,
    counts,
    is_plural,
    is_strange,
    looked_up,
    makers,
    runs_on,
    said_of,
    tails,
    walked,
)
from agent.offline.language.tokens import Glyphs
from knowledge.machines.offered import cores_of

# Generations of TPUs that are called as versions of anything are.
_VERSIONS = ("2", "3", "4")
# Tokens between a card and the machine that it is in.
_BESIDE = 6
_GIGABYTES = ("gb", "g", "gib", "gi")


def card_at(text: Sequence[Glyphs], at: int, known: Known, catalogue: Catalogue, whole: str) -> Name | None:
    ends = [end for end, _ in walked(known.accelerators, text, at)]
    ends = [end for end in ends if not runs_on(text, end) or (len(text[end].norm) > 1 and text[end].norm in tails())]
    if not ends:
        return _unknown_accelerator(text, at, known, catalogue, whole)
    if _is_a_version(text, at, max(ends)):
        return None
    if text[at].kind == "number" and not _is_card(text, at, max(ends)):
        return None
    stop, said, looked = _card(text, at, max(ends), catalogue, max(walked(known.accelerators, text, at))[1])
    cores, stop = _slice(text, looked[0], stop)
    if cores is None and looked[3] is None and (more := _memory_behind(text, stop, said, catalogue)):
        stop, looked = more
    start, box = at, False
    if looked[3] is None and _is_in_a_laptop(text, at, stop):
        portable = looked_up(catalogue, "accelerator", f"{said} laptop")
        looked = portable if portable[0] == f"{looked[0]}-laptop" else looked
    if looked[3] is None and (lead := _memory_before(text, at)):
        fuller = looked_up(catalogue, "accelerator", f"{said} {lead[1]}gb")
        if fuller[3] is None:
            start, looked = lead[0], fuller
    while start and text[start - 1].norm in makers() and text[start].space:
        box |= text[start - 1].norm in ("dgx", "hgx")
        start -= 1
    stop += is_plural(text, stop)
    return Name("accelerator", start, stop, said_of(whole, text, start, stop), *looked, box=box, count=cores)


def _is_in_a_laptop(text: Sequence[Glyphs], start: int, end: int) -> bool:
    """Whether a laptop stands beside a card in its clause: 'my gaming laptop with a 4090', 'a 4090 in my laptop'."""
    before = next((at for at in range(start, max(start - _BESIDE, 0), -1) if _ends(text[at - 1])), start - _BESIDE)
    behind = next((at for at in range(end, min(end + _BESIDE, len(text))) if _ends(text[at])), end + _BESIDE)
    return any(token.norm in lexicon().portable for token in text[max(before, 0) : behind])


def _ends(token: Glyphs) -> bool:
    return token.ends_clause and token.text not in "()"


def _card(text: Sequence[Glyphs], start: int, least: int, catalogue: Catalogue, name: str) -> tuple[int, str, Looked]:
    """(Token behind, its words, what the catalogue says) of a card: the longest name that it knows, at least up to
    `least`, which the catalogue calls `name`."""
    end = _tail(text, least)
    for stop in range(end, least - 1, -1):
        said = _card_text(text, start, stop)
        looked = looked_up(catalogue, "accelerator", said)
        if looked[3] is None and (looked[0] or stop == least):
            # '5090 max' may be several others, of which none is a 5090.
            return stop, said, looked
    return least, name, looked_up(catalogue, "accelerator", name)


def _memory_behind(text: Sequence[Glyphs], end: int, said: str, catalogue: Catalogue) -> tuple[int, Looked] | None:
    """(Token behind, the card) of 'A100-80' and 'A100 40': a number that is a memory of the card that is named."""
    at = end + (end < len(text) and (text[end].text == "-" or text[end].norm in lexicon().holding))
    glued = at > end and not (text[end].space or text[min(at, len(text) - 1)].space)
    if at >= len(text) or text[at].kind != "number" or not text[at].norm.isdigit():
        return None
    plural = is_plural(text, at + 1)
    if counts(text, at) and not (plural or glued):
        return None
    found = looked_up(catalogue, "accelerator", f"{said} {text[at].norm}gb")
    named = f"{text[at].norm}gb" in (found[0] or "".join(found[2][:1]))
    # 'M4 Max 128': the largest of a line has no size in its name.
    has = not named and found[0] is not None and catalogue.memory_gb(found[0]) == float(text[at].norm)
    fits = found[3] is None and (named or has)
    return (at + 1 + plural, found) if fits else None


def _is_a_version(text: Sequence[Glyphs], at: int, end: int) -> bool:
    """Whether 'v3' alone is a version, of a network or a model, since nothing says that it is a TPU's."""
    bare = text[at].norm == "v" and end == at + 2 and text[at + 1].norm in _VERSIONS
    sliced = end < len(text) and text[end].text == "-" and not text[end].space
    return bare and not sliced and all(token.norm not in ("tpu", "tpus") for token in text)


def _slice(text: Sequence[Glyphs], id: str | None, end: int) -> tuple[int | None, int]:
    """(Chips, token behind) of 'v5p-128'."""
    if not (id or "").startswith("tpu") or end + 1 >= len(text) or text[end].text != "-" or text[end].space:
        return None, end
    number = text[end + 1]
    if number.kind != "number" or number.space or "." in number.norm:
        return None, end
    return max(int(number.norm) // cores_of(str(id)), 1), end + 2


_ORDINALS = ("st", "nd", "rd", "th")


def _says_which(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a word says which one is meant: 'the', 'that', 'used', 'second', the 'nd' of '2nd'."""
    which = lexicon().articles | lexicon().pointing | lexicon().described
    places = (sense.name for word in lexicon().at(text, at) for sense in word.all("does"))
    return text[at].norm in which or text[at].norm in _ORDINALS or any(name in _PLACES for name in places)


_PLACES = ("second", "third", "fourth", "other")


def _is_card(text: Sequence[Glyphs], at: int, end: int) -> bool:
    """Whether a number alone is a card's name: '4090', '2x3090', 'my 5090', not '4090 tokens'."""
    norm = text[at].norm
    if end > at + 1 or (at > 1 and text[at - 1].norm in ("x", "×", "*") and text[at - 2].kind == "number"):
        return True
    stroke = at > 0 and text[at - 1].text == "/" and text[at - 1].space and text[at].space
    if at and text[at - 1].text in "$€£=.:/" and not (stroke or _begins_a_list(text, at)):
        return False
    if at and len(norm) == 4 and _says_which(text, at - 1):
        # Of '4090 tokens' there is not one.
        return _is_card_number(norm)
    plural = is_plural(text, at + 1)
    if _is_counted(text, at):
        return _is_card_number(norm)
    for word in lexicon().at(text, at + 1) if not plural else ():
        if any(sense.name != "devices" for sense in word.all("unit")) or word.get("scale"):
            return False
        if any(sense.name in ("seq_len", "input_len", "output_len") for sense in word.all("field")):
            return False
    return _is_card_number(norm)


def _is_counted(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a number of devices stands right before a number: '8 4090 in one box', '8 pieces of 4090'."""
    step = at - 1
    if step > 1 and text[step].norm in lexicon().apiece:
        step -= 1
        if not any(sense.name == "devices" for word in lexicon().at(text, step) for sense in word.all("unit")):
            return False
        step -= 1
    if step < 0 or not text[at].space:
        return False
    if any(word.end == at and word.get("number") for word in lexicon().at(text, step)):
        # 'Due 5090'
        return True
    # The 16 of 'r16' counts nothing.
    alone = step == 0 or text[step].space or text[step - 1].kind != "word"
    return alone and text[step].kind == "number" and text[step].norm.isdigit() and len(text[step].norm) < 4


def _begins_a_list(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a colon and a space stand before a token, and no name of a field: 'rank these for a 7b: 4090, 5090'."""
    before = [word for step in range(max(at - 6, 0), at - 1) for word in lexicon().at(text, step)]
    named = any(word.end == at - 1 and (word.all("field") or word.all("unit")) for word in before)
    sized = at > 2 and text[at - 3].kind == "number" and not text[at - 2].space
    return text[at - 1].text == ":" and text[at].space and (sized or not named)


def _is_card_number(norm: str) -> bool:
    return len(norm) == 4 and norm[0] in "2345" and norm[1] == "0" and norm[2] in "6789" and norm[3] == "0"


def _tail(text: Sequence[Glyphs], end: int) -> int:
    """Where the words behind a card's name end that say which one it is: 'SXM5 80GB', 'NVL72', '(80GB)'."""
    at = end
    while at < len(text) and at - end < 6:
        token = text[at]
        if (token.joins and not token.space) or token.text in "()":
            at += 1
            continue
        memory = _is_size(text, at) and not text[at + 1].space
        if (token.norm in tails() and (len(token.norm) > 1 or not token.space)) or (
            token.kind == "number" and not token.space and at > end - 1 and text[at - 1].kind == "word"
        ):
            at, end = at + 1, at + 1
        elif memory:
            at, end = at + 2, at + 2
            end += end < len(text) and text[end].text == ")"
            at = end
        else:
            break
    return end


def _card_text(text: Sequence[Glyphs], start: int, end: int) -> str:
    """The words of a card's name, with a space where one was written, and before a word that says which: '3080Ti'."""
    parts: list[str] = []
    for at in range(start, end):
        token = text[at]
        if token.text in "()":
            continue
        which = token.norm in tails() and token.norm not in _GIGABYTES and text[at - 1].kind == "number"
        said = token.text if token.text.isascii() else token.norm
        parts.append(f" {said}" if at > start and (token.space or which) else said)
    return "".join(parts).strip(" -")


def _memory_before(text: Sequence[Glyphs], at: int) -> tuple[int, str] | None:
    """(Token, gigabytes) of '80GB A100'."""
    at -= at > 1 and text[at - 1].text == "-"
    if at >= 2 and _is_size(text, at - 2) and not text[at - 1].space:
        return at - 2, text[at - 2].norm
    return None


def _is_size(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a size of memory stands at a token: '64GB'."""
    return at + 1 < len(text) and text[at].kind == "number" and text[at + 1].norm in _GIGABYTES


def _is_part(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a number is a part of a name, not its memory."""
    return text[at].kind == "number" and not _is_size(text, at)


def _unknown_accelerator(
    text: Sequence[Glyphs], at: int, known: Known, catalogue: Catalogue, whole: str
) -> Name | None:
    """What is written like a card that the catalogue does not have: 'H300', 'RTX 6090', '8 Zorg Z900 cards'."""
    if end := _strange_card(text, at, known):
        said = _card_text(text, at, end)
        return Name("accelerator", at, end, said_of(whole, text, at, end), *looked_up(catalogue, "accelerator", said))
    token = text[at]
    if token.kind != "word" or at + 1 >= len(text):
        return None
    number = text[at + 1]
    family = token.norm in lexicon().lines
    times = at > 1 and text[at - 1].norm in ("x", "×") and text[at - 2].kind == "number"
    counts = (times or _is_counted(text, at)) and len(number.norm) < 4
    counts |= at > 0 and text[at - 1].norm in makers()
    letter = token.norm in ("a", "b", "h", "k", "l", "m", "p", "t", "v") and (token.text.isupper() or counts)
    if number.kind != "number" or "." in number.norm or len(number.norm) < 2 or len(number.norm) > 4:
        return None
    if not (family or (letter and not number.space)) or (token.norm in ("gb", "mi") and number.space):
        return None
    end = at + 2
    if runs_on(text, end) and text[end].norm in ("b", "k", "m"):
        return None
    end = _tail(text, end)
    said = _card_text(text, at, end)
    id, note, options, problem = looked_up(catalogue, "accelerator", said)
    return Name("accelerator", at, end, said_of(whole, text, at, end), id, note, options, problem)


def _strange_card(text: Sequence[Glyphs], at: int, known: Known) -> int | None:
    """Where words that nobody knows end that stand for a card: they are counted or follow a maker's name, are written
    as letters and digits in one, stand before a word such as 'cards' or beside a memory; two of these, or one of a
    family of devices."""
    before = text[at - 1] if at else None
    counted = before is not None and before.kind == "number" and before.norm.isdigit() and text[at].space
    end, last, glued = at, min(len(text), at + MOST_GLUED), False
    while end < last and (is_strange(text, end, known) or (end > at and _is_part(text, end))):
        glued |= end > at and text[end].kind == "number" and not text[end].space
        end += 1
    if end == at or (text[end - 1].kind == "number" and end == at + 1):
        return None
    if any(text[place].norm in lexicon().boards for place in range(at, end)):
        return end
    devices = any(sense.name == "devices" for word in lexicon().at(text, end) for sense in word.all("unit"))
    told = counted or (before is not None and before.norm in makers())
    sized = _memory_before(text, at) is not None or _is_size(text, end)
    return end if told + glued + devices + sized > 1 and (devices or len(text[end - 1].norm) > 1) else None
