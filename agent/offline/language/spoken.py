"""Numbers as they are dictated, as the digits that they stand for: 'two forty nineties' is '2 4090s', 'eight h one
hundreds' is '8 h100s', 'qwen three thirty two b' is 'qwen 3 32b'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.offline.catalogue import Catalogue
from agent.offline.language.lexicon import Lexicon, lexicon
from agent.offline.language.names.known import Known, known_names, walked
from agent.offline.language.tokens import Glyphs

_HUNDRED, _THOUSAND = 100, 1000
# Words of two letters at most that a card's number is said behind: the h of 'h one hundred', 'm i three hundred'.
_LONGEST_LETTERS = 2


@dataclass(frozen=True)
class _Spoken:
    """A number in tokens [start, end), `digits` as it is written; `many`: a plural stands at its end."""

    start: int
    end: int
    digits: str
    many: bool = False


def in_digits(text: Sequence[Glyphs], catalogue: Catalogue) -> list[Glyphs]:
    """The tokens with numbers of several words, and those that are parts of a name, as digits. A single word stays:
    'one of them', 'a pair'."""
    known, words = known_names(catalogue), lexicon()
    read: list[Glyphs] = []
    at = 0
    while at < len(text):
        run = _run(text, at, words)
        end = run[-1].end if run else at
        if not run or _is_phrase(text, at, end, words):
            read += text[at : max(end, at + 1)]
            at = max(end, at + 1)
            continue
        lettered = _letters(read, run[0], known)
        of_model = bool(read) and read[-1].norm in known.heads
        version = len(read) > 1 and len(read[-1].norm) == 1 and read[-2].norm in known.heads
        numbers = _put_together(run, lettered is not None or of_model or version)
        sized = _is_size_behind(text, end) and not (end + 1 < len(text) and _names_card(text, end, known, words))
        if lettered is not None:
            read[lettered:] = [_letters_of(read[lettered:])]
        elif end - at == len(run) == 1 and not (sized or of_model or version or _says_value(text, run[0], words)):
            read += text[at:end]
            at = end
            continue
        for place, one in enumerate(numbers):
            read += _written(text, one, space=place > 0 or not (lettered is not None or version))
        at = end
        if sized:
            read.append(replace(text[end], norm="b", text="b", space=False))
            at += 1
        elif lettered is not None and at < len(text) and len(text[at].norm) == 1 and text[at].kind == "word":
            # 'L forty S'
            glued = [*read, replace(text[at], space=False)]
            if max((stop for stop, _ in walked(known.accelerators, glued, lettered)), default=0) == len(glued):
                read, at = glued, at + 1
    return read


def _run(text: Sequence[Glyphs], start: int, words: Lexicon) -> list[_Spoken]:
    """Numbers in words that follow one another, each as long as it can be."""
    run: list[_Spoken] = []
    at = start
    while (one := _cardinal(text, at, words)) is not None:
        run.append(one)
        at = one.end
        if one.many:
            break
    return run


def _joins_ones(text: Sequence[Glyphs], at: int, words: Lexicon) -> bool:
    """Whether a hyphen joins ones to the tens before it: 'twenty-eight'."""
    joined = at + 1 < len(text) and text[at].text in ("-", "‑") and not (text[at].space or text[at + 1].space)
    ones = _word(text, at + 1, words) if joined else None
    return ones is not None and 0 < ones[0] < 10


def _is_one_of_more(text: Sequence[Glyphs], at: int, words: Lexicon) -> bool:
    """Whether an article counts the hundred behind it, which goes on: 'a hundred and twenty-eight'."""
    large = _word(text, at + 1, words) if text[at].norm == "a" else None
    if large is None or large[0] not in (_HUNDRED, _THOUSAND):
        return False
    behind = at + 2 + (at + 2 < len(text) and text[at + 2].norm == "and")
    return _word(text, behind, words) is not None


def _cardinal(text: Sequence[Glyphs], start: int, words: Lexicon) -> _Spoken | None:
    thousands, rest, at = 0, 0, start
    if start < len(text) and _is_one_of_more(text, start, words):
        rest, at = 1, start + 1
    # What the next word has to be less than.
    room = _THOUSAND
    many = False
    while (word := _word(text, at, words)) is not None and not many:
        number, many = word
        if number == _THOUSAND and rest and not thousands:
            thousands, rest, room = rest * _THOUSAND, 0, _THOUSAND
        elif number == _HUNDRED and 0 < rest < _HUNDRED:
            rest, room = rest * _HUNDRED, _HUNDRED
        elif number < min(room, _HUNDRED):
            rest, room = rest + number, 10 if number >= 20 else 1
        else:
            many = False
            break
        at += 1
        if room == 10 and _joins_ones(text, at, words):
            at += 1
        behind = _word(text, at + 1, words) if at < len(text) and text[at].norm == "and" else None
        at += room >= _HUNDRED and behind is not None and behind[0] < _HUNDRED
    if at == start:
        return None
    decimal = _word(text, at + 1, words) if at < len(text) and text[at].norm == "point" else None
    if decimal and not many:
        # 'Three point one'
        return _Spoken(start, at + 2, f"{thousands + rest}.{decimal[0]}", decimal[1])
    return _Spoken(start, at, str(thousands + rest), many)


def _word(text: Sequence[Glyphs], at: int, words: Lexicon) -> tuple[int, bool] | None:
    """(Value, whether it stands in the plural) of a number in one English word."""
    if at >= len(text) or text[at].kind != "word":
        return None
    norm = text[at].norm
    if norm in words.spoken:
        return words.spoken[norm], False
    one = norm.removesuffix("ies") + "y" if norm.endswith("ies") else norm.removesuffix("s")
    return (words.spoken[one], True) if one != norm and words.spoken.get(one, 0) >= 10 else None


def _is_phrase(text: Sequence[Glyphs], start: int, end: int, words: Lexicon) -> bool:
    """Whether the words are others than numbers together: 'twenty four seven'."""
    return any(word.end >= end > start + 1 and not word.get("number") for word in words.at(text, start))


def _says_value(text: Sequence[Glyphs], one: _Spoken, words: Lexicon) -> bool:
    """Whether a number begins a value's words where it is written in digits: 'four bit'."""
    behind = [*_written(text, one, True), *text[one.end : one.end + 2]]
    return any(word.end > 1 and word.all("value") for word in words.at(behind, 0))


def _letters(read: Sequence[Glyphs], number: _Spoken, known: Known) -> int | None:
    """Where letters begin that are a card's name with the number behind them: the h of 'h one hundred'."""
    start = len(read)
    while start and read[start - 1].kind == "word" and len(read[start - 1].norm) <= _LONGEST_LETTERS:
        start -= 1
    for begin in range(start, len(read)):
        tokens = [_letters_of(read[begin:]), Glyphs(number.digits, number.digits, 0, 0, "number", False)]
        if len(number.digits) > 1 and any(stop == 2 for stop, _ in walked(known.accelerators, tokens, 0)):
            return begin
    return None


def _letters_of(letters: Sequence[Glyphs]) -> Glyphs:
    """Letters that are said one by one as one word."""
    first, last = letters[0], letters[-1]
    norm = "".join(token.norm for token in letters)
    return Glyphs(norm.upper(), norm, first.start, last.end, "word", first.space)


def _put_together(run: Sequence[_Spoken], named: bool) -> list[_Spoken]:
    """Numbers that are said in parts as one: 'forty ninety', 'twenty forty eight', 'one twenty eight'; the first is
    `named` where it belongs to a name by itself."""
    rest = list(run)
    for at in range(len(run) - 2, named - 1, -1):
        if at + 1 < len(rest) and _are_halves(rest[at], rest[at + 1]):
            rest[at : at + 2] = [_one(rest[at], rest[at + 1])]
    if len(rest) == 2 and not named and len(rest[0].digits) == 1 and len(rest[1].digits) == 2 and not rest[1].many:
        return [_one(*rest)]
    return rest


def _one(first: _Spoken, second: _Spoken) -> _Spoken:
    return _Spoken(first.start, second.end, first.digits + second.digits, second.many)


def _are_halves(first: _Spoken, second: _Spoken) -> bool:
    return len(first.digits) == len(second.digits) == 2 and not first.many


def _is_size_behind(text: Sequence[Glyphs], end: int) -> bool:
    """Whether a model's size ends behind a number: 'seventy b'."""
    glued = end + 1 < len(text) and text[end + 1].kind == "number" and not text[end + 1].space
    return end < len(text) and text[end].norm == "b" and text[end].kind == "word" and not glued


def _names_card(text: Sequence[Glyphs], at: int, known: Known, words: Lexicon) -> bool:
    """Whether a letter is the first of a card's name: the b of 'sixteen b two hundreds'."""
    run = _run(text, at + 1, words)
    return bool(run) and _letters(text[at : at + 1], run[0], known) is not None


def _written(text: Sequence[Glyphs], one: _Spoken, space: bool) -> list[Glyphs]:
    start, end = text[one.start].start, text[one.end - 1].end
    digits = Glyphs(one.digits, one.digits, start, end, "number", space)
    return [digits, Glyphs("s", "s", end, end, "word", False)] if one.many else [digits]
