"""The ways a person goes through the screens: keys, then what came of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from screen_driving import PLAN, opened

from agent.store import begin_turn, end_turn, list_sessions
from tools.registry import find
from tui.actions import ACTIONS
from tui.screens import ScreenResult


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHARDWISE_HOME", "SHARDWISE_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "user"))


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["small", "large"])
async def test_hardware_is_searched_sorted_marked_compared_and_chosen(size: tuple[int, int]) -> None:
    async with opened("hardware", size=size) as at:
        everything = len(at.names())
        assert everything > 100
        await at.press("h", "1", "0", "0")
        assert 0 < len(at.names()) < 10
        assert all("h100" in name for name in at.names())
        await at.press("down", "s", "s")
        sizes = [row.usable_bytes for row in at.screen.shown]
        assert sizes == sorted(sizes, reverse=True)
        await at.press("r")
        assert [row.usable_bytes for row in at.screen.shown] == sorted(sizes)
        await at.press("home", "space", "space")
        first, second = at.screen.marked
        await at.press("c")
        assert first in at.text()
        assert second in at.text()
        await at.press("escape", "home", "enter")
    (outcome,) = at.outcomes
    assert outcome is not None
    assert outcome.changes is not None
    assert outcome.changes["cluster.accelerator"] == first


async def test_escape_leaves_the_search_first_and_then_the_screen() -> None:
    async with opened("models") as at:
        everything = at.names()
        await at.press("q", "x", "z")
        assert at.names() == []
        assert "nothing matches" in at.text()
        await at.press("escape")
        assert at.names() == everything
        await at.press("escape")
    assert at.outcomes == [None]


async def test_a_vendor_is_chosen_by_its_filter() -> None:
    async with opened("hardware") as at:
        await at.press("down", "v")
        vendors = {row.vendor for row in at.screen.shown}
        assert len(vendors) == 1
        await at.press("V")
        assert len({row.vendor for row in at.screen.shown}) > 5


async def test_a_model_is_taken_into_the_plan_and_what_is_there_describes_it() -> None:
    async with opened("models", size=(120, 40)) as at:
        await at.type("mixtral 8x7b")
        assert "46.7B" in at.text()
        chosen = at.names()[0]
        await at.press("enter")
    assert at.outcomes == [ScreenResult(changes={"model": chosen})]


async def test_a_plan_is_saved_renamed_exported_brought_in_and_deleted(tmp_path: Path) -> None:
    async with opened("scenarios") as at:
        examples = set(at.names())
        await at.press("down", "a")
        await at.type("mine")
        await at.press("enter")
        assert set(at.names()) == examples | {"mine"}
        assert "yes" in at.text()
        await at.press("slash", *"mine", "down")
        await at.press("n")
        await at.type("other")
        await at.press("enter")
        await at.press("slash", "escape", "down")
        assert set(at.names()) == examples | {"other"}
        await at.press("slash", *"other", "down", "e")
        await at.type(str(tmp_path / "out.json"))
        await at.press("enter")
        assert '"model"' in (tmp_path / "out.json").read_text()
        (tmp_path / "third.yaml").write_text("model: gpt2\ncluster: {accelerator: a100-80gb, count: 1}\n")
        await at.press("i")
        await at.type(str(tmp_path / "third.yaml"))
        await at.press("enter", "slash", "escape", "down")
        assert "third" in at.names()
        await at.press("slash", *"other", "down", "d", "n")
        assert at.names() == ["other"]
        await at.press("d", "y")
        assert at.names() == []
        await at.press("slash", "escape")
        assert set(at.names()) == examples | {"third"}


async def test_examples_stay() -> None:
    async with opened("scenarios") as at:
        before = at.names()
        await at.press("down", "d")
        assert "cannot be deleted" in at.text()
        assert at.names() == before


async def test_a_scenario_is_compared_with_the_plan_and_loaded() -> None:
    find("save_scenario")({"plan": {**PLAN, "cluster": {"accelerator": "h200", "count": 8}}, "name": "faster"})
    async with opened("scenarios") as at:
        await at.press(*"faster", "down", "c")
        assert "the plan" in at.text()
        assert "Speed" in at.text() or "SPEED" in at.text()
        await at.press("escape", "enter")
    (outcome,) = at.outcomes
    assert outcome is not None
    assert outcome.plan is not None
    assert outcome.plan["cluster"]["accelerator"].startswith("h200")


async def test_sweeps_are_drawn_and_a_bad_field_is_told() -> None:
    async with opened("sweep") as at:
        await at.press("2")
        assert "GiB per device" in at.text()
        await at.press("slash")
        await at.type("micro_batsh 1,2")
        await at.press("enter")
        assert "micro_batch" in at.text()
        await at.type("micro_batch 1,2")
        await at.press("enter")
        assert "over micro-batch" in at.text()


async def test_the_playbook_is_searched_and_advises_on_the_plan() -> None:
    async with opened("playbook") as at:
        everything = len(at.names())
        await at.type("nccl hang")
        assert 0 < len(at.names()) < everything
        assert "trouble-hang" in at.names()
        await at.press("down", "p")
        gaining = [row for row in at.screen.shown if getattr(row, "patch", None)]
        assert gaining
        while at.screen.row.id != gaining[0].id:
            await at.press("down")
        await at.press("enter")
    assert at.outcomes == [ScreenResult(changes=gaining[0].patch)]


async def test_a_cluster_is_chosen_among_those_that_nothing_beats() -> None:
    async with opened("clusters", PLAN | {"model": "gpt2", "workload": {"kind": "training", "seq_len": 1024}}) as at:
        everything = len(at.names())
        await at.press("down", "p")
        assert 0 < len(at.names()) <= everything
        assert "COST" not in at.text()  # as nothing is said of the data
        for column in at.screen.listing.columns:
            assert any(column.value(row) is not None for row in at.screen.listing.rows), column.title
        assert all(row.pareto for row in at.screen.shown)
        row = at.screen.row
        await at.press("enter")
    (outcome,) = at.outcomes
    assert outcome is not None
    assert outcome.changes is not None
    assert outcome.changes["cluster.accelerator"] == row.accelerator
    assert outcome.changes["layout.zero_stage"] is None


def said(text: str, answer: str) -> str:
    id = f"s{abs(hash(text)) % 10**6}"
    number = begin_turn(id, text, datetime(2026, 1, 2, tzinfo=UTC))
    end_turn(id, number, "done", {"answer": answer})
    return id


async def test_a_session_is_found_by_what_was_said_renamed_forked_deleted_and_resumed() -> None:
    said("Does it fit?", "It does, by a hair.")
    other = said("What does it cost?", "About as much as a zebra.")
    async with opened("sessions", {}) as at:
        assert len(at.names()) == 2
        await at.type("zebra")
        assert at.names() == [other]
        assert "as a zebra" in at.text()
        await at.press("down", "n")
        await at.type("The animal")
        await at.press("enter")
        assert "The animal" in at.text()
        await at.press("f")
        assert len(at.names()) == 2
        fork = next(name for name in at.names() if name != other)
        while at.screen.row.id != fork:
            await at.press("down" if at.screen.table.cursor == 0 else "up")
        await at.press("d", "enter")
        assert len(list_sessions()) == 3
        await at.press("d", "y")
        assert len(list_sessions()) == 2
        await at.press("enter")
    assert at.outcomes == [ScreenResult(session=other)]


async def test_settings_are_changed_refused_and_taken_back() -> None:
    async with opened("settings", {}) as at:
        await at.press("down", "enter")
        await at.type("nobody")
        await at.press("enter")
        assert "is not one of its values" in at.text()
        await at.press("enter")
        await at.type("offline")
        await at.press("enter")
        assert at.screen.row.value == "offline"
        await at.press("d")
        assert at.screen.row.value == "auto"


async def test_help_tells_every_command_and_leads_to_screens() -> None:
    async with opened("help", {}) as at:
        names = [row.name for row in at.screen.rows]
        assert {f"/{command.name}" for command in ACTIONS} <= set(names)
        assert len(names) == len(set(names))
        told = at.text()
        for title in at.screen.groups:
            assert title in told
        # All of it is in sight at once.
        for row in at.screen.rows:
            assert row.name in told, row.name
            assert row.meaning[1:20] in told, row.name
        await at.type("catalogue model")
        assert [row.name for row in at.screen.rows] == ["/models"]
        await at.press("enter")
        assert at.screen.heading == "Models"


async def test_without_a_plan_screens_say_what_is_missing() -> None:
    for name in ("clusters", "sweep"):
        async with opened(name, {}) as at:
            assert "there is no" in at.text().lower() or "there is none" in at.text()


async def test_the_keys_of_a_screen_are_told() -> None:
    async with opened("hardware") as at:
        await at.press("down", "f1")
        assert "Compare" in at.text()
        await at.press("escape")
        assert at.screen.heading == "Hardware"
