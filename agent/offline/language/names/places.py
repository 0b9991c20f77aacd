"""Rentable machines, providers, places and files in a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from agent.offline.language.lexicon import lexicon, plain_words
from agent.offline.language.names.known import MOST_GLUED, Known, Name, runs_on, said_of, walked
from agent.offline.language.tokens import Glyphs
from estimator.errors import PlanError
from knowledge.own.files import file_stem
from knowledge.scenarios import scenarios

# Places of a message that are looked at for the name of a saved plan, and words that a plan is kept with.
_MOST_PLACES, _WORDS = 40, 5
# Words of a saved plan's name, and what stands before the name.
_MOST_WORDS, _CALLED = 4, ("plan", "scenario")
# Machines of these series are rented card by card, others whole.
_OF_ONE_CARD, _SHORTEST_SERIES = ("g", "inf"), 2
_QUOTES = "'\"“”„«»「」"


def instance_at(text: Sequence[Glyphs], at: int, known: Known, whole: str) -> Name | None:
    """A rentable machine by its name, which is one run of characters without white space."""
    end = at + 1
    while (
        end < min(len(text), at + MOST_GLUED)
        and not text[end].space
        and (text[end].kind in ("word", "number") or text[end].joins)
    ):
        end += 1
    for stop in range(end, at + 1, -1):
        if machine := known.instances.get(said_of(whole, text, at, stop).lower()):
            return Name("instance", at, stop, said_of(whole, text, at, stop), machine.accelerator, instance=machine)
    return _series_at(text, at, end, known, whole)


def _series_at(text: Sequence[Glyphs], at: int, end: int, known: Known, whole: str) -> Name | None:
    """A series of rentable machines, as its whole machine: 'a3-ultragpu', 'p5', 'p4de'."""
    series = said_of(whole, text, at, end).lower()
    if len(series) < _SHORTEST_SERIES or not (series[0].isalpha() and any(character.isdigit() for character in series)):
        return None
    sizes = known.series.get(series, [])
    if len({row.accelerator for row in sizes}) != 1 or sizes[0].accelerator.startswith("cpu"):
        return None
    largest = max(sizes, key=lambda row: row.count)
    if series.startswith(_OF_ONE_CARD) and len(sizes) > 1:
        note = f"{series!r} read as one of its cards, {largest.accelerator}"
        return Name("accelerator", at, end, series, largest.accelerator, note)
    return Name("instance", at, end, series, largest.accelerator, instance=largest)


# Providers whose names are said of much else, too.
_ALSO_OTHERS = ("google", "one", "prime", "apple", "intel")


def provider_at(text: Sequence[Glyphs], at: int, known: Known, whole: str) -> Name | None:
    end, id = _provider(text, at, known)
    if id is None or runs_on(text, end) or text[at].norm == "owned":
        return None
    common = end == at + 1 and text[at].norm in plain_words()
    placed = (at > 0 and (text[at - 1].norm in lexicon().placing or _is_refused(text, at))) or _is_listed_with(
        text, at, end, known
    )
    if (
        common
        and not (text[at].text[:1].isupper() and (placed or at == 0))
        and not (placed and text[at].norm not in _ALSO_OTHERS)
    ):
        return None
    return Name("provider", at, end, said_of(whole, text, at, end), id)


def _is_refused(text: Sequence[Glyphs], at: int) -> bool:
    """Whether the word before a name refuses it: 'the cheapest, but not vast'."""
    words = lexicon().at(text, at - 1)
    return any(sense.name == "refuse_right" for word in words if word.end == at for sense in word.all("does"))


def _provider(text: Sequence[Glyphs], at: int, known: Known) -> tuple[int, str | None]:
    """(Token behind, provider) of the longest name of one that begins at a token."""
    if at < 0 or at >= len(text):
        return at, None
    aliases = (
        (word.end, sense.name)
        for word in lexicon().at(text, at)
        for sense in word.all("asked")
        if sense.value == "provider"
    )
    return max(walked(known.providers, text, at), default=None) or next(aliases, (at, None))


def _is_listed_with(text: Sequence[Glyphs], at: int, end: int, known: Known) -> bool:
    """Whether a word of choice joins a name to another provider's: 'vast or salad'."""
    beside = ((at - 1, at - 2), (end, end + 1))
    others = [other for joint, other in beside if 0 <= other < len(text) and text[joint].norm in lexicon().joints]
    return any(text[other].norm not in _ALSO_OTHERS and _provider(text, other, known)[1] for other in others)


def place_at(text: Sequence[Glyphs], at: int, known: Known, whole: str) -> Name | None:
    """A country, a state or a cloud region, where the words say that something is in it."""
    found = max(walked(known.places, text, at), default=None)
    if found is None or runs_on(text, found[0]):
        return None
    behind = text[at - 1].norm if at else ""
    region = "-" in said_of(whole, text, at, found[0]) and any(one.kind == "number" for one in text[at : found[0]])
    if text[at].kind == "single" and "\uac00" <= text[at].text <= "\ud7af" and not text[at].space:
        # The 가나 of 들어가나요 is no Ghana.
        return None
    short = len(text[at].norm) < 4 and text[at].norm.isascii()
    if not region and (short or (text[at].text[:1].islower() and behind not in ("in", "en", "em"))):
        return None
    return Name("place", at, found[0], said_of(whole, text, at, found[0]), found[1])


def saved_in(text: Sequence[Glyphs], whole: str) -> Iterator[Name]:
    """Plans by the name that they are kept under, or are to be, whatever it means elsewhere: 'remember this one as
    cheap', 'throw cheap away', 'compare plan A and plan B'."""
    begins = (at for at in range(len(text)) if text[at].kind == "word" and (at == 0 or _begins_name(text, at)))
    starts = [*islice(begins, _MOST_PLACES)]
    kept = {row.name.casefold(): row.name for row in scenarios()} if starts else {}
    behind = 0
    for at in starts:
        if at < behind:
            continue
        ends = [*islice(_chunk_ends(text, at), _MOST_WORDS)]
        stems = ((end, _stem(said_of(whole, text, at, end))) for end in reversed(ends))
        # A letter alone is a word of its own: the a of 'a model'.
        named = next(((end, kept[stem]) for end, stem in stems if len(stem) > 1 and stem in kept), None)
        if named is None and at and _is_to_be_saved(text, at):
            named = ends[0], said_of(whole, text, at, ends[0])
            if text[at - 1].norm in _CALLED and ends[0] == at + 1 and len(text[at].text) == 1:
                # 'Keep it as plan B'
                at -= 1
                named = ends[0], said_of(whole, text, at, ends[0])
        if named:
            behind = named[0]
            # That a plan is meant says the word before its letter.
            at += behind > at + 1 and text[at].norm in _CALLED
            yield Name("scenario", at, behind, said_of(whole, text, at, behind), named[1])


def _begins_name(text: Sequence[Glyphs], at: int) -> bool:
    return text[at].space or text[at - 1].space


def _chunk_ends(text: Sequence[Glyphs], at: int) -> Iterator[int]:
    """Where runs without white space end from a token on, up to the end of a clause."""
    for behind in range(at + 1, len(text) + 1):
        closed = behind < len(text) and _ends_name(text, behind)
        if behind == len(text) or text[behind].space or closed:
            yield behind
            if closed or (behind < len(text) and text[behind].kind == "sign"):
                return


def _stem(words: str) -> str:
    """Words as the file of a saved plan is called."""
    try:
        return file_stem(words, "name")
    except PlanError:
        return ""


def _ends_name(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a sign closes a name: a quotation mark, or one that ends a clause."""
    closes = text[at].text in _QUOTES or text[at].ends_clause
    return closes and (at + 1 == len(text) or text[at + 1].space or text[at + 1].ends_clause)


def _is_to_be_saved(text: Sequence[Glyphs], at: int) -> bool:
    """Whether a name stands behind words that keep a plan under it: 'save it as', 'call this one'."""
    # 'Keep that as plan 'x40''
    behind = at - (at > 1 and text[at - 1].text in _QUOTES)
    behind -= behind > 1 and text[behind - 1].norm in _CALLED
    no_names = lexicon().unnamed | lexicon().saving
    if text[behind - 1].norm not in lexicon().saving or text[at].norm in no_names:
        return False
    starts = range(max(behind - _WORDS, 0), behind)
    words = (word for start in starts for word in lexicon().at(text, start) if word.end == behind)
    return any(sense.value == "wish" and sense.name == "save" for word in words for sense in word.all("asked"))


def paths_in(text: Sequence[Glyphs], whole: str) -> Iterator[Name]:
    """Files and folders: '/data/cfg.json', './runs', 'config.json', '~/model'."""
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and not text[end].space and text[end].text not in "\n,;()\"'`":
            if text[end].text.isascii() != text[end - 1].text.isascii() and text[end - 1].kind != "sign":
                # '全部./runに': of another script words stand beside a path.
                break
            end += 1
        chunk = said_of(whole, text, at, end).rstrip(".?!:")
        stop = end
        while stop > at + 1 and text[stop - 1].end > text[at].start + len(chunk):
            stop -= 1
        named = chunk.lower().endswith(tuple(lexicon().endings)) and len(chunk) > 5 and not chunk.startswith("-")
        rooted = chunk.startswith(("/", "./", "../", "~/")) and len(chunk) > 2 and any(one.isalpha() for one in chunk)
        if rooted or named:
            yield Name("path", at, stop, chunk)
        at = max(end, at + 1)
