"""Numbers that are dictated read as the digits that they stand for."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.offline.catalogue import known
from agent.offline.language.lexicon import lexicon
from agent.offline.language.spoken import in_digits
from agent.offline.language.tokens import tokens


def _word(number: int) -> str:
    return next(word for word, value in lexicon().spoken.items() if value == number)


ONES = [_word(number) for number in range(1, 20)]
TENS = [_word(number) for number in range(20, 100, 10)]


def written(text: str) -> str:
    return "".join(f" {one.text}" if one.space else one.text for one in in_digits(tokens(text), known())).strip()


def below_hundred(number: int) -> str:
    if number < 20:
        return ONES[number - 1]
    return TENS[number // 10 - 2] + (f" {ONES[number % 10 - 1]}" if number % 10 else "")


def in_words(number: int) -> str:
    parts = [f"{in_words(number // 1000)} thousand"] if number >= 1000 else []
    parts += [f"{ONES[number % 1000 // 100 - 1]} hundred"] if number % 1000 >= 100 else []
    return " ".join([*parts, *([below_hundred(number % 100)] if number % 100 else [])])


@given(st.integers(21, 999_999).filter(lambda number: " " in in_words(number)))
def test_every_number_of_several_words(number: int) -> None:
    assert written(f"batch of {in_words(number)} please") == f"batch of {number} please"
    joined = re.sub(" hundred (?!thousand)", " hundred and ", in_words(number), count=1)
    assert written(joined) == str(number)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("qwen three thirty two b on two forty ninety", "qwen 3 32b on 2 4090"),
        ("a seventy b on eight h one hundreds", "a 70b on eight H100s"),
        ("two hundred fifty six B two hundreds", "256 B200s"),
        ("llama three point one eight b on sixteen a one hundreds", "llama 3.1 8b on sixteen A100s"),
        ("deepseek v three on eight m i three hundred x", "deepseek v3 on eight MI300x"),
        ("four l forty s for a thirteen b in four bit", "four L40s for a 13b in 4 bit"),
        ("twenty forty eight tokens, batch one twenty eight", "2048 tokens, batch 128"),
        ("one point five trillion tokens", "1.5 trillion tokens"),
    ],
)
def test_names_and_lengths(said: str, meant: str) -> None:
    assert written(said) == meant


@pytest.mark.parametrize("said", ["is one enough", "one or two nodes of eight", "a hundred users", "the first of two"])
def test_what_is_no_number_of_several_words_stays(said: str) -> None:
    assert written(said) == said
