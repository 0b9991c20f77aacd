"""What words do to the words beside them: refusals, alternatives, changes by a factor or an amount, suppositions.

A refusal reaches the next thing that is named behind it (or, where the language puts it there, the last one before it)
and what is joined to that by 'or', 'and' and commas; it ends with the clause, or where another thought begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from agent.offline.language.asking import is_asked
from agent.offline.language.measures import Found
from agent.offline.language.tokens import Glyphs

_JOINTS = ("or", "and")
_REACH = 9
# What a word of a refusal may begin instead.
_OTHERWISE = ("at_most", "at_least", "correct")
# Of which a run has one: two that are refused in one breath are none.
_ONE_OF = frozenset({"value:stage", "value:method", "value:optimizer", "value:precision", "value:schedule"})
# 'They kill us twice a day'
_HOW_OFTEN = "number:interruptions_per_day"
_NAMES = frozenset({"model", "accelerator", "instance", "provider", "path"})
FACTORS = {"times_half": 0.5, "times_third": 1 / 3, "times_quarter": 0.25, "times_fifth": 0.2, "times_tenth": 0.1,
           "times_two_thirds": 2 / 3, "times_three_quarters": 0.75, "times_half_more": 1.5, "times_double": 2.0,
           "times_triple": 3.0, "times_quadruple": 4.0}  # fmt: skip


@dataclass(frozen=True)
class Thing:
    """What a refusal or an alternative may be about, in tokens [start, end): a value, a name, a number. `key` is what
    kind of thing it is: two of one kind are alternatives."""

    start: int
    end: int
    key: str


@dataclass(frozen=True)
class Refusals:
    """Things that are refused, by their first token, and the tokens of the words that refuse them."""

    things: Mapping[int, str]
    """By the word that refuses them."""
    words: frozenset[int]
    unread: tuple[tuple[int, int], ...] = ()
    against: frozenset[int] = frozenset()
    """Things that are set against a run without them: 'with torch.compile or without'."""


def refusals(found: Found, things: Sequence[Thing]) -> Refusals:
    by_start = {thing.start: thing for thing in things}
    by_end = {thing.end: thing for thing in things}
    refused: dict[int, str] = {}
    words: set[int] = set()
    unread: list[tuple[int, int]] = []
    against: set[int] = set()
    inside = {at for start, end in found.names.items() for at in range(start, end)}
    inside |= {at for thing in things for at in range(thing.start + 1, thing.end)}
    at = 0
    while at < len(found.text):
        if at in inside or at in by_start:
            at += 1
            continue
        left, right = _refuses_left(found, at), found.does(at, "refuse_right")
        end = max(left or 0, right or 0)
        judged, behind = _judged(found, at, by_end, by_start)
        itself = _against_itself(found, at, end, by_start, by_end) if end else None
        if thing := judged or itself:
            if judged:
                refused[thing.start], end = found.text[at].norm, behind
            else:
                against.add(thing.start)
            words.update(range(at, end))
            at = end
            continue
        if not end or _refuses_nothing(found, at, end) or _supposes_it(found, at) or _stands_for_that(found, at):
            at += 1
            continue
        less = found.does(at, "minus") or 0
        if behind := _idle(found, at, end, less):
            at = behind
            continue
        again = None if right is None or _answers_no(found, at, end) else found.does(end, "refuse_right")
        if again and found.text[at].norm in ("n'", "ne"):
            # French says no in two words.
            end, right, again = again, again, None
        if again and found.text[end].norm != found.text[at].norm:
            # "Don't avoid", "not without": two refusals are none.
            words.update(range(at, again))
            at = again
            continue
        hit = _right(found, end, by_start) if right else None
        if hit and _brings_to(found, at, hit):
            # 'Drop to 2', 'drop to tp4' bring them there.
            at = end
            continue
        if hit and hit.key.startswith("number") and (hit.start > end + 1 or less or hit.key == _HOW_OFTEN):
            hit = None
        hit = hit or _pointed_at(found, at, end, by_end)
        if hit is None and not _of_a_verdict(found, end):
            hit = _named_before(found, at, end, left, by_end)
        if hit is not None:
            refused |= dict.fromkeys(_joined(found, hit, by_start, by_end, hit.start >= end), found.text[at].norm)
            words.update(range(at, end))
        elif right and not (_of_a_verdict(found, end) or _asks_why(found, at)):
            unread.append((at, end))
        at = end
    return _switched(found, things, Refusals(refused, frozenset(words), tuple(unread), frozenset(against)))


def _switched(heard: Found, things: Sequence[Thing], refusals: Refusals) -> Refusals:
    """The refusals where a setting that is named before is switched: 'checkpointing is off, turn it on'."""
    for at in range(len(heard.text)):
        on, off = heard.does(at, "turn_on"), heard.does(at, "turn_off")
        if not (on or off):
            continue
        before = [thing.start for thing in things if thing.end <= at and thing.key.startswith("value:")]
        if before and off:
            words = refusals.words | {*range(at, off)}
            unread = tuple(span for span in refusals.unread if span[0] != at)
            refusals = replace(
                refusals, things={**refusals.things, before[-1]: heard.text[at].norm}, words=words, unread=unread
            )
        elif before:
            refusals = replace(refusals, things={at: word for at, word in refusals.things.items() if at != before[-1]})
    return refusals


def _refuses_left(heard: Found, at: int) -> int | None:
    """The token behind words that refuse what stands before them; 'out of the question?' refuses nothing."""
    ruled = heard.does(at, "rules_out")
    ruled = None if ruled and is_asked(heard, at) else ruled
    return heard.does(at, "refuse_left") or _particle(heard, at) or ruled


def _idle(heard: Found, at: int, end: int, less: int) -> int:
    """The token behind words that refuse nothing, 0 where they do: 'no matter what', 'no more than 2 epochs', 'no, 16',
    'a node drops out', 'drop 5k samples'."""
    aside = heard.sense(at, "stop")
    if aside and aside[1] > end:
        return aside[1]
    counts = max(heard.does(at, *_OTHERWISE) or 0, less) > end or (less and _counts(heard, end))
    return end if counts else 0


def _against_itself(
    heard: Found, at: int, end: int, by_start: dict[int, Thing], by_end: dict[int, Thing]
) -> Thing | None:
    """What is set against a run without it: 'with torch.compile or without', 'with or without packing'."""
    joint = next((step for step in range(max(at - 2, 0), at) if heard.does(step, "or", "versus") == at), None)
    if joint is None:
        return None
    thing = by_end.get(joint)
    if thing is not None and end not in by_start:
        return thing
    has = joint > 0 and heard.text[joint - 1].norm in ("with", "mit", "con", "avec")
    return _right(heard, end, by_start) if has else None


def _stands_for_that(heard: Found, at: int) -> bool:
    """Whether what stands before is to be in the place of what was said: 'a DGX Spark instead of all that'."""
    end, points = heard.does(at, "in_place_of"), heard.lexicon.pointing
    while end and end < len(heard.text):
        if not (heard.does(end, "it") or heard.text[end].norm in points or heard.sense(end, "stop")):
            return False
        end += 1
        if _closes(heard, end):
            return True
    return False


def _supposes_it(heard: Found, at: int) -> bool:
    """Whether what seems to be refused is supposed: 'Why not LoRA?'"""
    return any((heard.does(before, "suppose") or 0) > at for before in range(max(at - 3, 0), at + 1))


def _refuses_nothing(found: Found, at: int, end: int) -> bool:
    """Whether a refusal is a part of words that refuse nothing: 'no idea', 能不能 (whether one can), 'it won't do', or
    asks for a yes: 'that's low, no?'."""
    if at > 0 and end < len(found.text) and found.text[end].text in "?？" and found.does(at - 1, "it") is None:
        return True
    longest = found.words[at][0]
    asked = any(sense.value == "focus" for sense in longest.all("asked"))
    # 'Never mind'
    lets_go = found.does(at, "back", "new", "dismiss") == longest.end
    whole = longest.end > end and (longest.get("stop") is not None or lets_go or asked)
    again = 0 < at < len(found.text) - 1 and found.text[at - 1].norm == found.text[at + 1].norm
    return whole or (again and found.text[at].kind == "single")


def _is_of_a_stranger(found: Found, at: int) -> bool:
    """Whether a refusal is of a word that nothing is known about: 'Llama without quanting' refuses no Llama."""
    if at >= len(found.text) or found.text[at].kind != "word" or found.text[at].norm in found.lexicon.between:
        return False
    return not any(word.all(kind) for word in found.words.get(at, ()) for kind in ("stop", "does", "asked", "apart"))


def _particle(found: Found, at: int) -> int | None:
    """The token behind a particle whose verb stands before it: the 'out' of 'leave LoRA out'."""
    verbs = (found.does(before, "apart") for before in range(max(at - _REACH, 0), at))
    return found.does(at, "particle") if any(verbs) else None


def _counts(heard: Found, at: int) -> bool:
    """Whether a number begins at a token."""
    return at < len(heard.text) and (heard.text[at].kind == "number" or heard.sense(at, "number") is not None)


def _judged(
    heard: Found, at: int, by_end: Mapping[int, Thing], by_start: Mapping[int, Thing]
) -> tuple[Thing | None, int]:
    """(The setting that a verdict is on, in a sentence that asks nothing, the token behind the verdict): 'ZeRO-3 for a
    7B is overkill', and where another is named instead, '32k is too long, make it 8k'."""
    end, excessive = heard.does(at, "judged"), heard.does(at, "excessive")
    if not (end or excessive) or is_asked(heard, at):
        return None, at
    if end:
        return _setting_before(heard, at, by_end, lambda token: token.ends_clause), end
    thing = next((by_end[start] for start in range(at, max(at - 3, 0), -1) if start in by_end), None)
    end = thing and excess_behind(heard, thing.end)
    if thing is None or end is None or at + 1 in by_start:
        return None, at
    instead = any(other.key == thing.key and other.start >= end for other in by_start.values())
    return (thing, end) if instead else (None, at)


def excess_behind(heard: Found, at: int) -> int | None:
    """The token behind words that say of what stands before a token that it is too much so: 'is too long'."""
    while not (end := heard.does(at, "excessive")) and any(heard.sense(at, kind) for kind in ("opens", "stop")):
        at += 1
    how = heard.text[end] if end and end < len(heard.text) else None
    return end + 1 if end and how and how.kind not in ("sign", "number") else None


def _named_before(heard: Found, at: int, end: int, left: int | None, by_end: dict[int, Thing]) -> Thing | None:
    """What a refusal behind it is about, unless that is of something unknown or a number."""
    following = end + (end < len(heard.text) and heard.text[end].norm in heard.lexicon.articles)
    placed = end < len(heard.text) and heard.text[end].norm in heard.lexicon.placing
    if _counts(heard, end + placed) and heard.does(at, "refuse_right"):
        # 'Qwen3-32B statt auf 8 auf 16 H200' refuses no model.
        return None
    if _is_of_a_stranger(heard, following) and (left is None or heard.sense(at, "away") is not None):
        return None
    hit = _left(heard, at, by_end)
    return None if hit and hit.key.startswith("number") else hit


def _pointed_at(heard: Found, at: int, end: int, by_end: dict[int, Thing]) -> Thing | None:
    """The setting that 'skip it' and 'leave it out' mean: the last one before."""
    particle = heard.does(at, "particle") is not None
    near = range(at - 2, at) if particle else range(end, end + 2)
    points = next((step for step in near if 0 <= step < len(heard.text) and heard.does(step, "it")), None)
    if points is not None and any(heard.is_asked(step, "write") for step in range(end, points)):
        # 'Don't save it' refuses no setting.
        return None
    if points is None or not (particle or heard.does(points, "it") == len(heard.text) or _closes(heard, points + 1)):
        return None
    return _setting_before(heard, at, by_end, lambda token: token.ends_sentence)


def _setting_before(
    heard: Found, at: int, by_end: Mapping[int, Thing], stops: Callable[[Glyphs], bool]
) -> Thing | None:
    for step in range(at, 0, -1):
        if (thing := by_end.get(step)) and thing.key.startswith(("value", "named", "field")):
            return thing
        if stops(heard.text[step - 1]):
            return None
    return None


def _answers_no(found: Found, at: int, end: int) -> bool:
    """Whether 'no' answers before something is let go: 'no, scrap the offload'."""
    follows = found.text[end].norm if end < len(found.text) else ""
    return found.text[at].norm == "no" and follows in found.lexicon.letting_go


def _brings_to(found: Found, at: int, number: Thing) -> bool:
    """Whether a number is what something is brought to: 'drop to 3 nodes' refuses none."""
    return found.text[at].norm in found.lexicon.letting_go and found.sense(number.start - 1, "onto") is not None


def _of_a_verdict(found: Found, at: int) -> bool:
    """Whether a refusal is of what is asked ('it does not fit', 'not enough'), not of something in the plan."""
    for step in range(at, min(at + 3, len(found.text))):
        if found.text[step].ends_clause:
            return False
        for word in found.words.get(step, ()):
            if any(
                sense.value == "focus" and sense.name in ("fit", "run", "time", "cost", "faster")
                for sense in word.all("asked")
            ):
                return True
    return False


def _asks_why(heard: Found, at: int) -> bool:
    """Whether a refusal is of what a reason is asked for: 'why is it not twice as fast?'"""
    for step in range(at - 1, max(at - _REACH, -1), -1):
        if heard.text[step].ends_clause:
            return False
        if heard.does(step, "why"):
            return True
    return False


def _right(found: Found, at: int, by_start: dict[int, Thing]) -> Thing | None:
    for step in range(at, min(at + _REACH, len(found.text))):
        if step in by_start:
            return by_start[step]
        token = found.text[step]
        if token.ends_clause or (
            token.kind != "sign"
            and token.norm not in found.lexicon.between | found.lexicon.placing
            and not _goes_on(found, step)
        ):
            return None
    return None


def _left(found: Found, at: int, by_end: dict[int, Thing]) -> Thing | None:
    for step in range(at, max(at - _REACH, 0), -1):
        if step in by_end:
            return by_end[step]
        token = found.text[step - 1]
        if token.ends_clause or (token.kind != "sign" and token.norm not in found.lexicon.between):
            return None
    return None


def _goes_on(found: Found, at: int) -> bool:
    """Whether a longer refusal, or a word of one, stands there ('do not want to use')."""
    return found.does(at, "refuse_right") is not None


def _joined(
    found: Found, first: Thing, by_start: dict[int, Thing], by_end: dict[int, Thing], forward: bool
) -> set[int]:
    """The things that are refused with one: those joined to it."""
    refused, at = {first.start}, first.end if forward else first.start
    while 0 < at < len(found.text) if not forward else at < len(found.text):
        if forward:
            end = found.does(at, *_JOINTS) or (at + 1 if found.text[at].text in (",", "/", "、", "+", "&") else None)
            if end is not None and found.does(end, *_JOINTS):
                end = found.does(end, *_JOINTS)
            thing = by_start.get(end) if end is not None else None
            if thing is None or (end is not None and _asserts(found, end)) or _is_apart(first, thing):
                break
            if _lists(found, at) and _is_another_thought(found, first, thing):
                break
            refused.add(thing.start)
            at = thing.end
        else:
            before = at - 1
            if not (found.text[before].text in (",", "/", "、", "+", "&") or found.does(before, *_JOINTS)):
                break
            thing = by_end.get(before)
            listed = (
                found.text[before].text == "、" or _lists(found, before) or (thing and thing.key.startswith("number"))
            )
            if thing is None or (listed and thing.key != first.key) or _is_apart(first, thing):
                # 'フルファインチューニング、オフロードなし': another thought.
                break
            refused.add(thing.start)
            at = thing.start
    return refused


def _lists(heard: Found, at: int) -> bool:
    """Whether a comma, or a stroke between spaces, stands at a token, which may set thoughts apart."""
    token = heard.text[at]
    apart = token.text == "/" and token.space and at + 1 < len(heard.text) and heard.text[at + 1].space
    return token.text == "," or apart


def _is_another_thought(heard: Found, first: Thing, thing: Thing) -> bool:
    """'No offload, 256 GPUs', 'not adam, and ep 4', 'no LoRA, full fine-tuning of Llama'."""
    unlike = thing.key.startswith(("number", "named")) and thing.key != first.key
    return unlike or not _closes(heard, thing.end) or _is_put_instead(heard, first, thing)


def _is_put_instead(heard: Found, first: Thing, thing: Thing) -> bool:
    """Whether the second of two things of one kind is what is taken: 'not dpo, orpo', 'not 16, 8'."""
    more = thing.end < len(heard.text) and (
        heard.text[thing.end].text in (",", "/", "、", "+", "&") or heard.does(thing.end, *_JOINTS)
    )
    one_of = first.key.startswith(("number", "named")) or first.key in _ONE_OF
    return thing.key == first.key and one_of and not more


def _closes(found: Found, at: int) -> bool:
    """Whether a list ends or goes on at a token: nothing is said of its last thing."""
    if at >= len(found.text):
        return True
    token = found.text[at]
    return token.kind == "sign" or found.does(at, *_JOINTS) is not None or found.sense(at, "courtesy") is not None


def _is_apart(first: Thing, other: Thing) -> bool:
    """Whether a name stands beside something of another kind: 'no fp8, Llama 70B on 16 H100' refuses no model."""
    return (first.key in _NAMES or other.key in _NAMES) and first.key != other.key


def _asserts(found: Found, at: int) -> bool:
    return found.text[at].norm in found.lexicon.turns


def alternatives(found: Found, things: Sequence[Thing], refused: Iterable[int]) -> list[list[Thing]]:
    """Things of one kind that are set against each other: 'LoRA or full', 'H100 vs MI300X', 'compare A, B and C'."""
    compares = [at for at in found.words if found.does(at, "compare", "versus", "all_before")]
    groups: list[list[Thing]] = []
    by_key: dict[str, list[Thing]] = {}
    standing = _standing(things, refused)
    inside = {at for thing in standing for at in range(thing.start, thing.end)}
    for thing in standing:
        by_key.setdefault(thing.key, []).append(thing)
    for key, same in by_key.items():
        if key.startswith(("field:", "path")):
            continue
        group, against = [same[0]], False
        for thing in same[1:]:
            if _against(found, group[-1], thing, bool(compares)):
                group, against = [*group, thing], True
            elif not against and _is_listed(found, group[-1], thing, inside):
                # 'L40S, A100 or H200': the last of a list says that one is chosen.
                group.append(thing)
            else:
                groups += [group] if against else []
                group, against = [thing], False
        groups += [group] if against else []
    return [_with_unlike(found, group, standing) for group in groups]


def _with_unlike(found: Found, group: list[Thing], standing: Sequence[Thing]) -> list[Thing]:
    """A group with things of other kinds that words of choice alone join to it: 'ZeRO-2 vs ZeRO-3 vs FSDP'."""
    for thing in standing:
        if thing.start >= group[-1].end and thing.key not in _NAMES and _only_chosen(found, group[-1], thing):
            group = [*group, thing]
    for thing in reversed(standing):
        if thing.end <= group[0].start and thing.key not in _NAMES and _only_chosen(found, thing, group[0]):
            group = [thing, *group]
    return group


def _only_chosen(found: Found, first: Thing, second: Thing) -> bool:
    between = range(first.end, second.start)
    return bool(between) and all(found.does(at, "or", "versus") for at in between)


# Operators that do more than list; words between two things of a list.
_JOINING = ("and", "or", "versus", "contrast", "correct", "swap", "refuse_right", "refuse_left")
_FEW_BETWEEN = 4


def _is_listed(heard: Found, first: Thing, second: Thing, inside: Set[int]) -> bool:
    """Whether one comma and hardly another word stand between two things, and what belongs to the first: 'tp 2 pp 4, tp
    4 pp 2', '2x H100 with LoRA, 4x A100 full'."""
    between = [at for at in range(first.end, second.start) if at not in inside]
    others = [at for at in between if heard.text[at].text not in (",", "、", "，")]
    apart = any(heard.text[at].ends_clause or heard.does(at, *_JOINING) for at in others)
    return len(between) == len(others) + 1 and len(others) <= _FEW_BETWEEN and not apart


def chosen_between(found: Found, things: Sequence[Thing], refused: Iterable[int]) -> list[list[Thing]]:
    """Things of unlike kinds with nothing but words of choice between them: 'tp 8 or ep 8', 'offload vs recompute'."""
    groups: list[list[Thing]] = []
    for first, second in pairwise(_standing(things, refused)):
        between = range(first.end, second.start)
        if not between or not all(found.does(at, "or", "versus") or found.text[at].text == "/" for at in between):
            continue
        if groups and groups[-1][-1] is first:
            groups[-1].append(second)
        else:
            groups.append([first, second])
    return groups


def _standing(things: Sequence[Thing], refused: Iterable[int]) -> list[Thing]:
    """Those that are not refused, in the order of the text."""
    left = set(refused)
    return sorted((thing for thing in things if thing.start not in left), key=lambda thing: thing.start)


def _against(found: Found, first: Thing, second: Thing, compares: bool) -> bool:
    between = range(first.end, second.start)
    if len(between) > 20:
        return False
    joined = False
    for at in between:
        if found.text[at].ends_sentence and found.text[at].text != "\n":
            return False
        against = bool(found.does(at, "or") and not found.does(at, "correct")) or (
            bool(found.does(at, "versus"))
            and not (first.key.startswith("number") and "than" in [one.norm for one in found.text[at : at + 3]])
        )
        joined |= against or found.text[at].text == "/"
    if joined and len(between) <= 14:
        return True
    near = len(between) <= 8 and any(
        found.does(at, "and", "beside") or found.text[at].text in (",", "、", "&", "+") for at in between
    )
    return compares and near


def supposes(found: Found) -> int | None:
    """The token where a supposition begins ('what if', 'would it', 'should I'), or None."""
    return next((at for at in sorted(found.words) if found.does(at, "suppose") and at not in found.names), None)
