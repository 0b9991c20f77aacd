"""An answer is held to its first lines, and what has no room among them stands behind them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pages.rendering import fold
from pages.rendering.first_lines import LINES, WIDTH, held
from pages.rendering.prose import laid_out

_SENTENCE = st.builds("{} {}.".format, st.sampled_from(["It needs", "Then"]), st.text("abc ", min_size=20, max_size=90))
_PARAGRAPH = st.lists(_SENTENCE, min_size=1, max_size=4).map(" ".join)
_LIST = st.lists(_SENTENCE.map("- {}".format), min_size=2, max_size=6).map("\n".join)
_TABLE = st.integers(2, 9).map(
    lambda rows: "\n".join(["| Name | Cost |", "| --- | ---: |", *(f"| row{row} | ${row} |" for row in range(rows))])
)
_FILE = st.just("**job.sh**\n\n```\n# one\n\ntwo\n```")
_LAST = st.lists(st.sampled_from(["Assumed: 'H100' read as H100 SXM5.", "Next: “write the files”"]), unique=True)
_ANSWERS = st.builds(
    lambda first, blocks, last: "\n\n".join(["✗ **It does not fit.** More.", *first, *blocks, *last]),
    st.lists(_PARAGRAPH, max_size=1), st.lists(st.one_of(_PARAGRAPH, _LIST, _TABLE, _FILE), max_size=4), _LAST,
)  # fmt: skip


def _shown(text: str) -> list[str]:
    files = text.replace("```\n# one\n\ntwo\n```", "")
    return [line for line in laid_out(files, WIDTH, False).splitlines() if any(map(str.isalnum, line))]


@given(_ANSWERS)
def test_an_answer_has_a_few_lines_and_the_rest_behind_them(answer: str) -> None:
    parts = fold.folded(held(answer))
    files = answer.count("```\n# one")
    # A file that was asked for stays, whatever else there is.
    assert len(_shown(parts.lead)) <= max(LINES, files + 3)
    assert parts.lead.startswith("✗ **It does not fit.** More.")
    for block in answer.split("\n\n"):
        assert not block.startswith(("Assumed:", "Next:", "```")) or block in parts.lead
    assert held(held(answer)) == held(answer)


@given(_ANSWERS)
def test_nothing_is_lost(answer: str) -> None:
    whole = fold.folded(held(answer)).whole
    for line in answer.splitlines():
        for sentence in line.removeprefix("- ").split(". "):
            assert sentence.strip(" .") in whole


def test_a_short_answer_stays_as_it_is() -> None:
    answer = f"✓ **It fits.**\n\nOne line.\n\n{fold.written('More.')}"
    assert held(answer) == answer


def test_what_gives_way_is_what_stands_last() -> None:
    answer = "\n\n".join([*(f"Paragraph {number}." for number in range(12)), "Next: “on 16 devices”"])
    parts = fold.folded(held(answer))
    assert parts.lead.splitlines()[::2] == [*(f"Paragraph {number}." for number in range(7)), "Next: “on 16 devices”"]
    assert parts.details.startswith("Paragraph 7.")


def test_a_verdict_is_never_cut_and_what_is_told_with_it_has_the_lines_that_are_left() -> None:
    bold = "⚠ **" + " ".join(["It fits with a doubt."] * 30) + "**"
    parts = fold.folded(held(f"{bold} A warning.\n\nMore."))
    assert (parts.lead, parts.details) == (bold, "A warning.\n\nMore.")
    told = " ".join(f"A warning that matters, number {number}." for number in range(30))
    changed = "Before → now: 3 → 4 hours. Changed: method full → LoRA."
    parts = fold.folded(held(f"⚠ **It fits.** {told}\n\n{changed}\n\nMore."))
    assert len(_shown(parts.lead)) == LINES
    assert parts.lead.startswith("⚠ **It fits.** A warning that matters, number 0.")
    assert parts.lead.endswith(changed)
    assert "number 29." in parts.details


def test_of_a_table_the_best_row_stays() -> None:
    rows = [f"| row{row} | ${row} |" for row in range(9)]
    table = "\n".join(["| Name | Cost |", "| --- | ---: |", *rows, "| **best** | **$9** |"])
    parts = fold.folded(held(f"**best costs the least.**\n\n{table}"))
    assert "| **best** |" in parts.lead
    assert "row8" not in parts.lead
    assert "row8" in parts.details


def test_of_a_range_both_ends_stay() -> None:
    rows = [f"| {2**power:,} | {power} s |" for power in range(12)]
    table = "\n".join(["| Devices | Step |", "| ---: | ---: |", *rows])
    parts = fold.folded(held(f"**2,048 devices are the fastest.**\n\n{table}"))
    assert rows[0] in parts.lead
    assert rows[-1] in parts.lead
    assert rows[5] in parts.details
    assert len(_shown(parts.lead)) <= LINES


def test_what_was_not_read_is_no_answer() -> None:
    long = "I cannot do that: " + "; ".join(f"engine{number} does not read these weights here" for number in range(20))
    parts = fold.folded(held(f"I could not place 'x' and did not use it.\n\n{long}.\n\nAssumed: two devices."))
    assert "I cannot do that: engine0 does not read" in parts.lead
    assert "engine19" in parts.details
    assert len(_shown(parts.lead)) <= LINES
