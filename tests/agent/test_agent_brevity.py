"""An answer says it first: few words and lines, its details folded behind them, and nothing lost by that."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import session
from pages.blocks import NEXT, READ_AS, Block, Details, Figures, Folded, Headline, Note, Prose, ranked
from pages.rendering import fold, html, markdown, terminal
from pages.rendering.first_lines import held
from planner.money.results import CostEstimate
from planner.results import TrainingEstimate
from planner.serving.results import ServingEstimate

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import brevity
from scoring import Said, talk

_LINES = 8
_MEDIAN, _DECILE = 90, 160


@pytest.fixture(scope="module")
def answers(scored: dict[str, tuple[dict[str, float], list[Said]]]) -> list[tuple[Said, str]]:
    """Each turn of the sets and what is told of it at first."""
    return brevity.leads_of(turn for _, turns in scored.values() for turn in turns)


def test_answers_are_short(answers: list[tuple[Said, str]]) -> None:
    told = [text for _, text in answers]
    counts = [brevity.words(text) for text in told]
    assert len(counts) > 150
    assert statistics.median(counts) <= _MEDIAN
    assert brevity.decile(counts) <= _DECILE
    for text in told:
        assert brevity.lines(text) <= _LINES or _stays(text), text


def _stays(text: str) -> bool:
    """Whether it is nothing but a verdict, what hurts, how words were read and what to do next, which are never cut."""
    _, *more = text.split("\n\n")
    return all(fold.tone_of(block) or block.startswith((READ_AS, NEXT)) for block in more)


def test_every_face_is_given_the_first_lines() -> None:
    """Whichever model answers: what a conversation tells is held to them."""
    answer = session.ask(
        "Full fine-tuning of Qwen2.5-72B on 12 H100 with 10M tokens on spot: what does it cost?", approve=False
    )
    lead = fold.folded(answer["answer"]).lead
    assert 1 < brevity.lines(lead) <= _LINES
    assert answer["answer"] == held(answer["answer"])


def test_what_hurts_colours_the_first_line(answers: list[tuple[Said, str]]) -> None:
    """Red where a run does not fit; amber at least where it is tight or its figures come with a warning."""
    seen: set[str] = set()
    hopeless = brevity.leads_of(talk(["Can I fully fine-tune Llama-3.1-70B on one 4090?"]))
    for turn, text in [*answers, *hopeless]:
        # The last: where no method was named, what does not fit comes before what does.
        estimates = (o.result for o in reversed(turn.outcomes))
        result = next((each for each in estimates if isinstance(each, TrainingEstimate | ServingEstimate)), None)
        first = next(line for line in text.splitlines() if line and not line.startswith("I could not place"))
        assert not first.startswith("Assumed:"), text
        # A search and a limit answer with what they found; what was refused beside a run, and files that are not of the
        # layout that was chosen or a run that moved to another framework, are told before it.
        told_first = ("I cannot do that", "⚠ **The files use another layout", "⚠ **Framework ", "**Framework ")
        refused = first.startswith(told_first)
        if (
            result is None
            or refused
            or {call.name for call in turn.calls} & {"best_serving", "size_serving", "find_limit", "import_config"}
        ):
            continue
        # What may be had of a provider is said beside what it costs.
        asked = any(isinstance(outcome.result, CostEstimate) and outcome.result.warnings for outcome in turn.outcomes)
        # A limit that is met by its middle alone is in doubt, too.
        doubtful = _is_doubtful(result) or "probably" in first.lower()
        expected = {"bad"} if not result.memory.fits else {"bad", "beware"} if doubtful else {"bad", "good"}
        expected |= {"beware"} if asked else set()
        assert fold.tone_of(first) in expected, text
        seen.add(fold.tone_of(first))
    assert seen == {"bad", "beware", "good"}


def _is_doubtful(result: TrainingEstimate | ServingEstimate) -> bool:
    return bool(result.warnings) or (isinstance(result, TrainingEstimate) and result.memory.tight)


_LEAF = st.one_of(
    st.builds(Headline, st.text("abc ", min_size=1).map(str.strip).filter(bool), st.sampled_from([True, False, None])),
    st.builds(Prose, st.sampled_from(["one", "two words", "```\n\n</details>x\n```"])),
    st.builds(Note, st.just("a title"), st.lists(st.sampled_from(["p", "q r"]), min_size=1)),
    st.builds(Figures, st.just([("label", "1 GiB", "0–2 GiB")])),
)
_BLOCKS = st.recursive(
    st.lists(_LEAF, min_size=1, max_size=4),
    lambda inner: st.lists(st.one_of(_LEAF, st.builds(Folded, inner), st.builds(Details, st.just("part"), inner))),
    max_leaves=8,
)


@given(_BLOCKS)
def test_ranking_keeps_every_block_and_folds_the_folded_alone(blocks: list[Block]) -> None:
    lead, details = ranked(blocks)
    assert not any(isinstance(block, Folded) for block in (*lead, *details))
    assert lead == [block for block in blocks if not isinstance(block, Folded)]
    assert len(lead) + len(details) == _size(blocks)


def _size(blocks: list[Block]) -> int:
    return sum(_size(list(block.blocks)) if isinstance(block, Folded) else 1 for block in blocks)


@given(
    st.lists(st.sampled_from(["It fits.", "| a |", "two\nlines"]), min_size=1), st.lists(st.sampled_from(["x", "y z"]))
)
def test_markdown_folds_and_unfolds(lead: list[str], details: list[str]) -> None:
    blocks: list[Block] = [*map(Prose, lead), Folded(list(map(Prose, details)))]
    parts = fold.folded(markdown.render(blocks))
    assert parts == fold.Fold("\n\n".join(lead), "\n\n".join(details))


@pytest.mark.parametrize(
    ("good", "beware", "tone"), [(False, False, "bad"), (True, True, "beware"), (True, False, "good")]
)
def test_every_face_shows_the_tone_and_the_lead_first(good: bool, beware: bool, tone: str) -> None:
    blocks = [Folded([Prose("behind")]), Headline("Said.", good, "More.", beware)]
    text = markdown.render(blocks)
    assert fold.tone_of(text) == tone
    assert text.index("Said.") < text.index("<details>") < text.index("behind")
    page = html.render(blocks)
    assert page.index("Said.") < page.index("<details>") < page.index("behind")
    assert (f"verdict {tone}" in page) == (tone != "good")
    code = {"bad": "31", "beware": "33", "good": "32"}[tone]
    shown = terminal.render(blocks, 80, colour=True)
    assert f"\x1b[1;{code}mSaid." in shown
    assert shown.index("Said.") < shown.index("behind")
    assert "behind" not in terminal.render(blocks, 80, details=False)


@given(st.lists(st.sampled_from(["", "Said."])))
def test_what_says_nothing_takes_no_line(texts: list[str]) -> None:
    blocks = [Prose(text) for text in texts]
    expected = "\n\n".join(filter(None, texts))
    assert terminal.render(blocks, 80) == markdown.render(blocks) == expected
