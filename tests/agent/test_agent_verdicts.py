"""Whichever model speaks, verdicts and figures are the tools': told by code, and what denies them is marked."""

from __future__ import annotations

from typing import Any

import pytest
from conversations import Scripted, say
from pace import within

from agent.grounding.check import ungrounded
from agent.grounding.figures import figures_in
from agent.grounding.own import own_figures
from agent.grounding.verdicts import contradictions, marked
from agent.session import open_session
from agent.wire import Call, Outcome
from tools.registry import registry

BIG = {"model": "llama-3.1-70b", "accelerator": "h100", "count": 1, "method": "full"}
NO = Outcome(Call("a", "check_fit", {}), {"fits": False, "memory": {"fits": False}, "remedies": [{"fits": True}]})
YES = Outcome(Call("a", "check_fit", {}), {"fits": True, "memory": {"fits": True}})


def answer(monkeypatch: pytest.MonkeyPatch, words: str, calls: list[Any], asked: str = "does it fit?") -> str:
    monkeypatch.setattr("agent.session.model_of", lambda name: Scripted([calls, words, words]))
    return say(open_session(model="auto"), asked)[-1].answer


def test_a_false_yes_is_marked_below_the_verdict_of_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    text = answer(monkeypatch, "Yes, it fits comfortably. Start it today.", [("check_fit", BIG)])
    verdict, _, prose = text.partition("\n\nYes") if "\n\nYes" in text else text.partition("~~")
    assert "does not fit" in verdict
    assert "~~Yes, it fits comfortably.~~ (wrong: it does not fit) Start it today." in text
    assert prose


def test_a_true_verdict_stays_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    text = answer(monkeypatch, "No, it does not fit on one device.", [("check_fit", BIG)])
    assert text.endswith("\n\nNo, it does not fit on one device.")
    assert "does not fit" in text.partition("No, it")[0]


def test_what_no_rule_of_language_hears_stands_apart_from_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    text = answer(monkeypatch, "That is a snug but workable squeeze.", [("check_fit", BIG)])
    tools, _, model = text.partition("**What the model says of it**")
    assert "does not fit" in tools
    assert model.strip() == "That is a snug but workable squeeze."


@pytest.mark.parametrize(
    "text",
    ["Yes, it fits comfortably.", "Yes.", "It fits easily", "There is plenty of memory for this.", "- It **fits**.",
     "You have enough room.", "Good news: the model fits on your GPU!"],
)  # fmt: skip
def test_what_denies_that_it_does_not_fit(text: str) -> None:
    assert contradictions(text, [NO], "does it fit?")


@pytest.mark.parametrize(
    "text",
    ["It does not fit.", "No.", "It won't fit.", "It runs out of memory.", "It would fit with LoRA.",
     "With QLoRA it fits.", "It may fit if you shard it.", "It exceeds the memory.", "Does it fit?", "It cannot fit.",
     "To make it fit, take two.", "This is about cost."],
)  # fmt: skip
def test_what_agrees_that_it_does_not_fit(text: str) -> None:
    assert not contradictions(text, [NO], "does it fit?")


@pytest.mark.parametrize("text", ["It does not fit.", "No.", "This goes OOM.", "It exceeds the memory of the GPU."])
def test_what_denies_that_it_fits(text: str) -> None:
    assert contradictions(text, [YES], "does it fit?")
    assert not contradictions(text, [YES, NO], "does it fit?")


# What a sentence says of each verdict, however it puts it: yes, no, and what is none of it.
SAID_OF = {
    "fits": (
        """This sits within the card's memory.|It sits comfortably inside the 80 GB.|You're fine on memory.|Memory
is not a problem.|Memory won't be an issue.|The GPU can hold it.|One H100 is enough.|A single card
suffices.|This will work on your card.|The run is well below the limit of the device.|The job stays under
the card's capacity.|There's headroom to spare.|It squeezes in.|The model goes onto the card.|Your GPU
handles it.|The memory is sufficient.|Memory use stays below what the device has.|It leaves 10 % free.|No
memory problem here.|It isn't too large.|You will have memory left over.|This is feasible.|You won't run
out of VRAM.|The GPU's memory suffices for this.|It will not run out of memory.|80 GB covers it.|OOM is unlikely.|VRAM
is
adequate.|A lone H100 will do.|Your hardware is up to the task.|It is within reach of one H100.""",
        """It will not sit within the card's memory.|The memory is insufficient.|Memory is a problem.|It overflows
the card.|You'll need more than one GPU.|It needs more memory than the card has.|The card's memory is not
enough.|It is larger than the memory of the card.|It blows past the 80 GB.|There isn't room.|You run
short of memory.|The GPU cannot hold it.|This is infeasible.|It doesn't work on that card.|The model is
too big for the GPU.|It is impossible on this card.|One card does not suffice.|This crashes with an
out-of-memory error.|It is over the card's capacity, sadly.|The card is too small.|One card falls short.|It
needs a bigger GPU.|Memory runs out.|A single GPU is not up to it.""",
        """Memory is the bottleneck, not compute.|KV cache takes more memory than the weights.|The activations
exceed the weights.|It takes over 60 GiB of memory.|No offload is needed.|More than 8 sequences would not
fit.|That is a problem for latency.|It is not the memory that limits you.|The batch is too small for
tensor cores.|The optimizer states lie outside the GPU, in host memory.|It fits in the budget.|The speed
is fine.|That is possible with more cards.|The host memory is sufficient for offloading.|If you use
QLoRA, it fits.|Memory needed: 1,100 GiB.|It can handle 64 users.|Checkpointing works in 5 minutes.|The
weights are in the GPU's memory.|The H100 takes half the time.|Time runs out on Friday.""",
    ),
    "within_budget": (
        """It stays within budget.|You can afford it.|It costs less than the budget.|The budget is enough.|It is
affordable.|It comes in under budget.|It is not over budget.|You have budget left.|It's under what you
can spend.""",
        """It is over budget.|You cannot afford it.|It exceeds the budget.|It costs more than your budget.|The
budget is not enough.|It is too expensive.|It blows the budget.""",
        """Your budget is $500.|What is your budget?|Raise the budget or wait.|It would be over budget with 16 GPUs.""",
    ),
    "within_deadline": (
        """It finishes on time.|It will be done by Friday.|It makes the deadline.|The deadline is met.|It is ready
before the deadline.|It doesn't miss the deadline.""",
        """It misses the deadline.|It won't be done by Friday.|It finishes after the deadline.|It is too late.|It is
not in time.""",
        """The deadline is Friday.|A deadline was given.|It takes 3 days.""",
    ),
    "meets_slo": (
        """All SLOs are met.|The TTFT is within the target.|Latency stays under the limit.|p99 meets the goal.|TTFT
is fine.|It is fast enough.|The latency limits hold.|No SLO is violated.""",
        """The TTFT limit is missed.|TTFT exceeds the target.|The SLO is violated.|It is too slow.|Latency is over
the limit.|p99 does not meet the goal.|The latency target is broken.""",
        """The TTFT is 150 ms.|Latency is set by the prefill.|SLOs were given for p99.|Set a latency limit.|Die
Latenz ist 150 ms.""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("field", SAID_OF)
def test_a_verdict_is_heard_however_it_is_put(field: str) -> None:
    yes, no = (Outcome(Call("a", "t", {}), {field: value}) for value in (True, False))
    good, bad, neither = (text.replace("\n", " ").split("|") for text in SAID_OF[field])
    for sentence in good:
        assert contradictions(sentence, [no], "does it fit?"), sentence
    for sentence in bad:
        assert contradictions(sentence, [yes], "does it fit?"), sentence
    for sentences, outcome in ((bad + neither, no), (good + neither, yes)):
        assert [text for text in sentences if contradictions(text, [outcome], "does it fit?")] == []


UNDER = "is lower than|stays below|remains within|meets|respects|comes in ahead of|is as low as"
BEYOND = "is higher than|surpasses|tops|overshoots|lies above|runs past"
LIMITS = "your limit|the ceiling|what you asked for|what you can spend|the allowance|your target"


@pytest.mark.parametrize("limit", LIMITS.split("|"))
@pytest.mark.parametrize(("field", "what"), [("within_budget", "The bill"), ("meets_slo", "The p99 latency")])
def test_any_limit_is_heard_by_how_what_is_planned_stands_to_it(field: str, what: str, limit: str) -> None:
    yes, no = (Outcome(Call("a", "t", {}), {field: value}) for value in (True, False))
    for relations, denied, agreed in ((UNDER, no, yes), (BEYOND, yes, no)):
        for relation in relations.split("|"):
            sentence = f"{what} {relation} {limit}."
            assert contradictions(sentence, [denied], ""), sentence
            assert not contradictions(sentence, [agreed], ""), sentence


@pytest.mark.parametrize(
    "text",
    ["The bill is lower than that of a cloud.", "The cost is lower than with more cards.", "It ends sooner than LoRA.",
     "The latency is lower than for long prompts.", "What you asked for is a full fine-tune.", "Set a lower limit.",
     "The total is higher than last month.", "One step takes longer than you might expect."],
)  # fmt: skip
def test_what_is_compared_with_anything_else_is_no_verdict(text: str) -> None:
    for value in (True, False):
        verdicts: dict[str, Any] = {"fits": value, "within_budget": value, "within_deadline": value, "meets_slo": value}
        assert not contradictions(text, [Outcome(Call("a", "t", {}), verdicts)], "does it fit?")


def test_a_remedy_that_fits_is_none_of_the_verdict() -> None:
    result = registry()["check_fit"](BIG)
    assert any(remedy["fits"] for remedy in result["remedies"])
    outcome = Outcome(Call("a", "check_fit", BIG), result)
    assert not contradictions("QLoRA fits. It fits on 8 of them.", [outcome], "does it fit?")
    assert contradictions("It fits on one of them.", [outcome], "does it fit?")


def test_long_texts_take_no_longer_a_word() -> None:
    for piece in ("memory ", "not ", "within the ", "leaves a ", "more than ", "the card can ", "fits, ", "("):
        with within(1):
            contradictions(f"{piece * 6000}fits", [NO], "does it fit?")


FITS = """Ja, das passt problemlos.|Es passt.|Oui, ça tient largement.|Le modèle tient sur le GPU.|
Sí, cabe sin problema.|Cabe en la GPU.|可以，放得下。|显存足够。|はい、収まります。|このモデルは収まります。""".replace(
    "\n", ""
).split("|")
FITS_NOT = """Nein, das passt nicht.|Es passt nicht.|Non, ça ne tient pas.|Le modèle ne tient pas.|No cabe.|
No, no cabe en la GPU.|放不下。|显存不足。|いいえ、収まりません。|収まらない。""".replace("\n", "").split("|")
SUPPOSED = """Mit LoRA würde es passen.|Avec LoRA, cela pourrait tenir.|Con LoRA cabría.|如果用 LoRA，就放得下。|
LoRA なら収まります。|Das kostet 10 USD.""".replace("\n", "").split("|")


@pytest.mark.parametrize("text", FITS)
def test_other_languages_are_heard_too(text: str) -> None:
    assert contradictions(text, [NO], "")
    assert not contradictions(text, [YES], "")


@pytest.mark.parametrize("text", FITS_NOT)
def test_a_no_of_other_languages_is_heard_too(text: str) -> None:
    assert contradictions(text, [YES], "")
    assert not contradictions(text, [NO], "")


@pytest.mark.parametrize("text", SUPPOSED)
def test_what_is_supposed_in_other_languages_is_no_claim(text: str) -> None:
    assert not contradictions(text, [YES], "")
    assert not contradictions(text, [NO], "")


@pytest.mark.parametrize(
    ("asked", "text"), [("passt das?", "Ja."), ("ça tient ?", "Oui."), ("放得下吗？", "可以。"), ("収まる？", "はい。")]
)
def test_a_bare_yes_in_other_languages_is_a_verdict(asked: str, text: str) -> None:
    assert contradictions(text, [NO], asked)


def test_limits_budget_and_deadline_are_verdicts_too() -> None:
    late = Outcome(Call("a", "estimate_cost", {}), {"within_budget": False, "within_deadline": True})
    slow = Outcome(Call("b", "estimate_inference", {}), {"meets_slo": False, "slo": [{"met": False}]})
    assert contradictions("It stays within budget.", [late], "")
    assert not contradictions("It is over budget.", [late], "")
    assert contradictions("It misses the deadline.", [late], "")
    assert contradictions("All SLOs are met.", [slow], "")
    assert not contradictions("The TTFT limit is missed.", [slow], "")


def test_marking_strikes_the_sentence_alone() -> None:
    text = "Hello. It fits. Bye."
    assert marked(text, contradictions(text, [NO], "")) == "Hello. ~~It fits.~~ (wrong: it does not fit) Bye."


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("forty-two gigabytes", "bytes", 42e9),
        ("Memory:41.7GiB", "bytes", 41.7 * 2**30),
        ("peak-41.7GiB", "bytes", 41.7 * 2**30),
        ("about41.7GiB", "bytes", 41.7 * 2**30),
        ("a 42-gigabyte model", "bytes", 42e9),
        ("half a day", "seconds", 43200.0),
        ("half an hour", "seconds", 1800.0),
        ("two and a half days", "seconds", 216000.0),
        ("2 1/2 days", "seconds", 216000.0),
        ("a day and a half", "seconds", 129600.0),
        ("½ day", "seconds", 43200.0),
        ("three point five days", "seconds", 302400.0),
        ("two thirds of the memory", "fraction", 2 / 3),
        ("ninety percent", "fraction", 0.9),
        ("two hundred and forty-two thousand dollars", "usd", 242e3),
        ("a hundred tokens/s", "rate", 100.0),
        ("twelve GPUs", "count", 12.0),
        ("tokens/s:45000", "count", 45000.0),
        ("2x the speed", "ratio", 2.0),
        ("a **2.5x** speedup", "ratio", 2.5),
        ("twice as fast", "ratio", 2.0),
        ("three times as long", "ratio", 3.0),
        ("one and a half times the price", "ratio", 1.5),
        ("tenfold", "ratio", 10.0),
        ("a factor of three", "ratio", 3.0),
        ("two orders of magnitude faster", "ratio", 100.0),
        ("it doubles the throughput", "ratio", 2.0),
        ("half as fast", "fraction", 0.5),
        ("half the memory", "fraction", 0.5),
        ("a third cheaper", "fraction", 1 / 3),
        ("less by a quarter", "fraction", 0.25),
        ("nine out of ten", "fraction", 0.9),
        ("doppelt so schnell", "ratio", 2.0),
        ("trois fois plus cher", "ratio", 3.0),
        ("三倍", "ratio", 3.0),
        ("it takes a fortnight", "seconds", 1209600.0),
        ("two months", "seconds", 5259600.0),
        ("half a million tokens", "count", 500e3),
        ("forty-odd gigabytes", "bytes", 40e9),
        ("40+ GB", "bytes", 40e9),
        ("five grand", "usd", 5000.0),
        ("€40", "eur", 40.0),
        ("a few hundred dollars", "usd", 550.0),
        ("tens of thousands of tokens/s", "rate", 55e3),
        ("in the low thirties", "fraction", 0.35),
        ("most of a week", "seconds", 604800.0),
        ("under an hour", "seconds", 3600.0),
        ("cut the time in half", "fraction", 0.5),
        ("You need four GPUs", "count", 4.0),
    ],
)
def test_figures_in_words_fractions_and_glued_units(text: str, kind: str, value: float) -> None:
    (figure,) = figures_in(text)
    assert (figure.kind, figure.value) == (kind, pytest.approx(value))
    assert ungrounded(text, [], [])
    assert not ungrounded(text, [], [text])


@pytest.mark.parametrize(
    "text", ["A100-80GB", "Llama-3.1-8B", "ZeRO-3", "fp8", "cuda:0", "localhost:8000", "half precision", "Mixtral-8x7B",
             "one of the two options", "per second", "the other half", "double precision", "run it twice",
             "the two nodes", "three times a week", "Double the batch size", "one GPU"],
)  # fmt: skip
def test_names_and_ordinary_words_are_no_figures(text: str) -> None:
    assert not list(figures_in(text))


def test_how_many_times_as_much_is_no_number_of_anything_else() -> None:
    two = {"plan": {"workload": {"micro_batch": 2}}, "time": {"step_s": 4.0}}
    other = {"time": {"step_s": 2.0}}
    for text in ("2x the speed", "twice as fast", "half the time"):
        assert ungrounded(text, [two], [])
        assert not ungrounded(text, [two, other], [])
    assert not ungrounded("2x A100, 2 x h100s", [two], [])


def own(arguments: dict[str, Any], response: dict[str, Any], text: str) -> bool:
    return not ungrounded(text, own_figures([Outcome(Call("a", "t", arguments), response)]), [])


def test_what_a_call_brought_along_is_no_origin() -> None:
    assert not own({"budget_usd": 999}, {"plan": {"goal": {"budget_usd": 999.0}}}, "It costs $999.")
    assert not own({"ttft_slo_ms": 42_000}, {"slo": [{"limit_s": 42.0}]}, "It takes 42 s.")
    assert not own({"query": "needs 42 GiB"}, {"text": "searched for needs 42 GiB and more"}, "42 GiB")
    assert not own({}, {"error": "unknown model 'x-42 GiB'; 42 GiB"}, "42 GiB")
    assert not own({}, {"plan": {"name": "run of 42 GiB"}, "note": "the file says 'use 42 GiB'"}, "Use 43 GiB.")
    assert not own({}, {"files": [{"text": "# uses 42 GiB\nmore"}]}, "42 GiB")
    assert own({"budget_usd": 999}, {"usd": 640.0}, "It costs $640.")
    assert own({}, {"why": ["40 layouts were estimated"]}, "40 layouts")
    assert own({}, {"price_date": "2026-07-20"}, "as of 2026-07-20")


def test_a_budget_that_the_model_chose_is_not_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [("estimate_cost", {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "dataset_tokens": 1e9,
                                "budget_usd": 4321})]  # fmt: skip
    assert "4321" not in answer(monkeypatch, "It costs $4321.", calls)
    assert "4321" in answer(monkeypatch, "Your budget is $4321.", calls, "train it for at most $4321")
