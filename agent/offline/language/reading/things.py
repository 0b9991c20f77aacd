"""What refusals and alternatives may be about: the values, names, numbers and fields of a turn."""

from __future__ import annotations

from collections.abc import Sequence, Set

from agent.offline.language import scope
from agent.offline.language.assign import Filled
from agent.offline.language.measures import Named
from agent.offline.language.mentions import Mentions, Value
from planner.requests import ALL_PATHS

# Values that say less than others of their field beside them.
GENERAL = {"stage": ("sft", "rm"), "weight_dtype": ("int4", "int8", "gguf", "bf16", "fp16"),
            "quantisation": ("nf4",),
            # Where parameters are moved to the host the optimizer's states are, too.
            "offload": ("optimizer",)}  # fmt: skip
# What a number makes of a value that says the same without one: 'expert parallel 8'.
NUMBER_OF = {"expert_parallel": "ep"}


def things_said(read: Mentions, mode: str | None, filled: Sequence[Filled]) -> list[scope.Thing]:
    """What refusals and alternatives are about."""
    taken = {at for number in filled for amount in number.row.amounts for at in range(amount.start, amount.end)}
    numbered = number_names(filled)
    staged = any(value.field == "stage" and value.value not in GENERAL["stage"] for value in read.values)
    found = [
        scope.Thing(value.start, value.end, f"value:{value.field}")
        for value in read.values
        if (value.mode in (None, mode) or mode is None) and not of_a_number(value, numbered)
        if value.start not in taken and not (staged and value.field == "stage" and value.value in GENERAL["stage"])
    ]
    found += [scope.Thing(name.start, name.end, name.kind) for name in read.names]
    found += [
        scope.Thing(
            *named_span(number),
            f"{'number' if named_span(number)[0] == number.row.start else 'named'}:{number.field}",
        )
        for number in filled
    ]
    longest: dict[int, Named] = {}
    for one in free_names(read, filled):
        if read.found.does(one.start, "refuse_right", "refuse_left", "particle", "back"):
            continue
        if one.start not in longest or one.end > longest[one.start].end:
            longest[one.start] = one
    found += [scope.Thing(one.start, one.end, f"field:{one.field}") for one in longest.values()]
    unique = {(thing.start, thing.key): thing for thing in sorted(found, key=lambda thing: thing.end)}
    return sorted(unique.values(), key=lambda thing: (thing.start, -thing.end))


PLACES = ("first", "second", "third", "fourth")


def places_said(read: Mentions) -> list[tuple[int, scope.Thing]]:
    """(Which, its words) of the places of what was offered, which a refusal before a comma is not of: 'drop the
    second', 'not the first one'."""
    return [
        (place, scope.Thing(at, read.found.does(at, name) or at + 1, "offer"))
        for place, name in enumerate(PLACES)
        for at in read.does(name)
        if not any(token.kind == "sign" for token in read.tokens[max(at - 2, 0) : at])
    ]


def number_names(filled: Sequence[Filled]) -> Set[tuple[str, int]]:
    """(The field, the token where its name stands) of each number that has one."""
    return {(number.field, number.name[0]) for number in filled if number.name}


def of_a_number(value: Value, numbered: Set[tuple[str, int]]) -> bool:
    """Whether a value's words name the field of a number: 'no zero 3', 'expert parallel 8'."""
    field = NUMBER_OF.get(value.field, value.field)
    return any((field, at) in numbered for at in range(value.start, value.end))


def named_span(one: Filled) -> tuple[int, int]:
    """The tokens of a number with the name of its field, where that stands right before it: 'zero 3', 'tp=8', not
    'tp not 4'."""
    near = one.name is not None and 0 <= one.row.start - one.name[1] <= 1 and not one.refused
    return (one.name[0] if near and one.name else one.row.start), one.row.end


def free_names(read: Mentions, filled: Sequence[Filled]) -> list[Named]:
    """Names of fields that no number was said of; the 'on' of 'not on AWS' names none."""
    used = {at for number in filled if number.name for at in range(*number.name)}
    used |= {at for at, token in enumerate(read.tokens) if token.norm in read.found.lexicon.placing}
    return [name for name in read.found.fields if name.field in ALL_PATHS and name.start not in used]
