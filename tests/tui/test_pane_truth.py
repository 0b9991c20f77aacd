"""The pane shows the plan and the figures of the answer above it: of what was only supposed, of what was recommended,
at the price that was asked for; and it is never empty once there was a plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from screen_driving import settle
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static

from knowledge import figures
from pages.results.overview import same_run
from planner.partial import get
from tui.app import ShardwiseApp
from tui.widgets.prompt import Prompt


async def asked(pilot: Pilot[None], text: str) -> str:
    """The whole answer, once everything has come to rest."""
    app = pilot.app
    assert isinstance(app, ShardwiseApp)
    app.query_one(Prompt).post_message(Prompt.Submitted(text))
    await pilot.pause(0.3)
    for _ in range(1500):
        await pilot.pause(0.02)
        if app.turns.current is None:
            break
    await settle(pilot)
    return app.conversation.last_answer


def written(app: Any, key: str) -> str:
    return app.pane.overview.figures[figures.label(key)].partition(" (")[0]


@pytest.mark.parametrize(
    ("texts", "shown", "keys"),
    [
        (("full fine-tune Qwen3-8B on 8 H100 spot with deepspeed, 100M tokens: cost?",), {}, ("usd", "hours", "mfu")),
        (
            ("full fine-tune Qwen3-8B on 8 H100, 100M tokens", "what if it were LoRA?"),
            {"workload.method": "lora"},
            ("step_s", "tokens_per_s"),
        ),
        (("serve Llama-3.3-70B on 2 H200 in fp8",), {"workload.weight_dtype": "fp8"}, ("ttft_s", "tpot_s")),
        (
            ("cheapest cluster to train Llama-3.1-70B on 10B tokens in 3 days",),
            {"workload.dataset_tokens": 1e10},
            ("hours", "usd"),
        ),
    ],
)
async def test_the_pane_has_the_plan_and_figures_of_the_answer(
    texts: tuple[str, ...], shown: dict[str, Any], keys: tuple[str, ...]
) -> None:
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        answer = ""
        for text in texts:
            answer = await asked(pilot, text)
        overview = app.pane.overview
        assert overview.memory is not None
        for path, value in shown.items():
            section, _, name = path.partition(".")
            assert (overview.plan or {})[section][name] == value
        for key in keys:
            assert written(app, key) in answer, key
        device = (overview.plan or {})["cluster"]
        assert re.search(rf"{device['count']} x {device['accelerator']}", answer)


async def test_what_answers_of_no_plan_leaves_the_pane_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, "LoRA fine-tune Llama-3.1-8B on 8 H100, 1B tokens")
        before = app.pane.overview
        for text in ("thanks", "list my scenarios", "/save base", "/export"):
            await asked(pilot, text)
            assert app.pane.overview.figures == before.figures, text
            assert app.pane.overview.memory == before.memory, text


@pytest.mark.parametrize("text", ["/sweep seq_len 512,1024", "sweep seq_len 512,1024"])
async def test_after_a_range_the_pane_is_whole(text: str) -> None:
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, "LoRA fine-tune Qwen2.5-0.5B on 4 H100 with 500M tokens")
        before = app.pane.overview.figures
        await asked(pilot, text)
        assert app.pane.overview.memory is not None
        spread = {name for name, value in app.pane.overview.figures.items() if " (" in value}
        assert spread >= {name for name, value in before.items() if " (" in value}


TRAINED = (
    "LoRA fine-tune Qwen2.5-0.5B on 4 H100 with 500M tokens",
    "what does it cost on spot?",
    "what is the longest context that fits?",
    "compare h100 and h200",
    "the second",
)
SERVED = ("serve Qwen2.5-7B on one H100 to 64 users", "and on H200?", "explain TTFT")
# How an answer writes what the pane has, by its key.
_NAMED = {
    "step_s": "per step", "tokens_per_s": r"\d tokens/s", "mfu": "MFU", "ttft_s": "TTFT", "tpot_s": "TPOT",
    "output_tokens_per_s": "output tokens/s", "hours": r"\d (hours|days|min)\b", "usd": r"\$\d",
}  # fmt: skip


@pytest.mark.parametrize("texts", [TRAINED, SERVED], ids=["trained", "served"])
async def test_after_every_kind_of_turn_the_pane_has_what_the_answer_says(texts: tuple[str, ...]) -> None:
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        heard = ""
        for text in texts:
            answer = await asked(pilot, text)
            overview = app.pane.overview
            assert overview.plan is not None, text
            assert overview.memory is not None, text
            shown = {key: written(app, key) for key in _NAMED if figures.label(key) in overview.figures}
            assert shown, text
            # What the answer says of money and time is what the pane has, or was said of it before.
            heard += answer
            if "on spot" in heard:
                assert shown.get("usd", "") in heard, text
            for key, value in shown.items():
                assert value in heard or not re.search(_NAMED[key], answer.partition("<details>")[0]), (text, key)


async def test_a_timer_that_rings_late_does_not_say_that_it_still_estimates() -> None:
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, "LoRA of Llama-3.1-8B on one A100")
        app.pane._tell_working()  # pyright: ignore[reportPrivateUsage]
        assert app.pane.query_one("#pane-title", Static).content == "Plan"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("full fine-tune Qwen2.5-0.5B on 4 H100, 1B tokens", ("workload.framework", "layout.tp", "layout.zero_stage")),
        ("serve Qwen2.5-7B on 2 H100 to 64 users", ("workload.engine", "layout.tp", "workload.weight_dtype")),
    ],
)
async def test_what_the_best_command_finds_is_the_plan_from_then_on(text: str, found: tuple[str, ...]) -> None:
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, text)
        asked_for = dict(app.pane.plan)
        await asked(pilot, "/best")
        best = dict(app.pane.plan)
        told = app.pane.overview.plan or {}
        for path in found:
            assert get(best, path) == get(told, path) is not None, path
        assert await app.talk.session.plan() == best
        await asked(pilot, "/cost")
        assert same_run(told, app.pane.overview.plan or {})
        # Looked for again it is open again, and gone with an edit of the model or with /undo.
        assert {path for path in found if get(app.pane.unsearched(), path) is None} == {
            path for path in found if get(asked_for, path) is None
        }
        await asked(pilot, "/undo")
        assert get(app.pane.plan, "layout.tp") == get(asked_for, "layout.tp")


async def test_the_pane_says_first_what_hurts() -> None:
    app = ShardwiseApp(model="offline")
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, "full fine-tune Llama-3.1-70B on 64 H100, 10B tokens, deadline 24 hours, budget $5000")
        limits = app.pane.overview.limits
        assert [text.partition(" by ")[0] for text in limits.broken] == ["Late", "Over budget"]
        shown = app.pane.query_one("#fit", Static).content
        assert isinstance(shown, Content)
        red = {shown.plain[span.start : span.end] for span in shown.spans if "error" in str(span.style)}
        assert red == set(limits.broken)
        await asked(pilot, "/best")
        shown = app.pane.query_one("#fit", Static).content
        assert app.pane.overview.tight
        assert str(shown).startswith("FITS TIGHTLY")
