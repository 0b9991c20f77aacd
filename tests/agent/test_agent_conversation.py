"""Whole conversations with the offline planner and the real tools."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conversations import DEMO, Scripted, answer_approval, of, say, turns

from agent.events import Approval, Done, ToolCall
from agent.models import ModelFailed, Thought, Turn
from agent.session import Session, ask, list_sessions, open_session
from estimator.errors import PlanError
from pages.rendering.fold import folded

ROOT = Path(__file__).parents[2]


def plan_of(*texts: str) -> dict[str, Any]:
    return turns(*texts)[-1]["plan"]


def test_the_demo_question_is_answered_and_its_files_written() -> None:
    session = open_session(model="offline")
    events = say(session, DEMO)
    names = [event.call.name for event in of(events, ToolCall)]
    assert names[0] == "estimate_training"
    assert names[-1] == "write_configs"
    assert {"check_fit", "estimate_cost"} < set(names)
    assert isinstance(events[-1], Approval)
    call = events[-1].calls[0]
    assert call.preview.folder == call.arguments["folder"]
    assert {file.path for file in call.preview.files} >= {"llamafactory.yaml", "deepspeed.json"}
    assert not list(Path.cwd().rglob("*.yaml"))

    done = answer_approval(session, True)[-1]
    assert isinstance(done, Done)
    written = {path.name: path.stat().st_size for path in Path.cwd().rglob("*") if path.is_file()}
    assert written == {file.path: file.bytes for file in call.preview.files}
    assert len(done.files) == len(written)
    assert done.ungrounded == []
    assert done.asked == []
    assert done.plan["workload"]["framework"] == "deepspeed"
    for words in ("GiB", "tokens/s", "MFU", "hours", "$", "Assumed", "You still have to fill in"):
        assert words in done.answer
    # What stays with the framework is nothing to decide, so it takes no line.
    assert " auto: " not in done.answer


def test_every_call_after_the_layout_was_chosen_carries_it() -> None:
    calls = turns("Llama-3.1-8B on 8 H100, 1B tokens: does it fit and what does it cost?")[0]["tool_calls"]
    assert [call["name"] for call in calls] == ["estimate_training", "check_fit", "estimate_cost"]
    assert "dp" not in calls[0]["arguments"]
    for call in calls[1:]:
        assert call["arguments"]["dp"] == 8
        assert {"zero_stage", "micro_batch", "global_batch", "recompute"} <= set(call["arguments"])


def test_declining_writes_nothing() -> None:
    result = ask(DEMO, approve=False, model="offline")
    assert result["files"] == []
    assert "No files were written" in result["answer"]
    assert not list(Path.cwd().iterdir())


def test_follow_ups_are_patches_on_what_the_user_gave() -> None:
    first, *later = turns(
        "fine-tune llama-3.1-8b on 16 H100 with 100M tokens, how long?",
        "what about 32 GPUs?",
        "on H200",
        "with LoRA rank 64",
        "16k context",
        "go back to the first one",
        "double the GPUs",
    )
    assert first["plan"]["cluster"] == {"accelerator": "h100-sxm", "count": 16}
    assert "layout" not in first["plan"]
    assert [done["plan"]["cluster"]["count"] for done in later] == [32, 32, 32, 32, 16, 32]
    assert later[1]["plan"]["cluster"]["accelerator"] == "h200-sxm"
    assert later[2]["plan"]["workload"]["lora"] == {"rank": 64}
    assert later[2]["plan"]["workload"]["method"] == "lora"
    assert later[3]["plan"]["workload"]["seq_len"] == 16384
    assert later[4]["plan"] == first["plan"]
    assert all(done["ungrounded"] == [] for done in later)
    assert all("Assumed" in done["answer"] for done in later)


def test_essentials_are_asked_for_once_together_and_the_question_is_kept() -> None:
    first, second = turns("How long does a LoRA fine-tune on 1B tokens take?", "Llama-3.1-8B, 8 H100s")
    assert [question.partition(":")[0] for question in first["asked"]] == ["model", "cluster.accelerator"]
    assert first["tool_calls"] == []
    assert second["asked"] == []
    assert second["plan"]["workload"] == {"dataset_tokens": 1e9, "method": "lora", "stage": "sft"}
    assert re.match(r"\W*[\d.]+ hours \(", folded(second["answer"]).lead)


def test_nodes_wait_for_their_accelerator() -> None:
    assert plan_of("pretrain llama-3.1-8b on 4 nodes", "H100")["cluster"] == {
        "accelerator": "h100-sxm",
        "count": 32,
        "per_node": 8,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fine-tune llama-3.1-8b on 8 H900", "H900"),
        ("fine-tune Llama-9-8B on 8 H100", "Llama-9-8B"),
    ],
)
def test_a_name_that_is_unclear_is_passed_on_as_a_question(text: str, words: str) -> None:
    done = turns(text)[0]
    assert words in done["answer"]
    assert words in "".join(done["asked"])
    assert done["tool_calls"] == []


def test_a_tool_error_is_the_answer() -> None:
    done = turns("train llama-3.1-8b with tp 5 on 8 H100")[0]
    assert "tp" in done["answer"]
    assert "valid" in done["answer"].lower()
    assert done["asked"]


def test_what_does_not_fit_is_not_written_unless_insisted_on() -> None:
    session = open_session(model="offline")
    text = "fully fine-tune Llama-3.1-70B on 1 H100 with hf-trainer, write the files"
    done = say(session, text)[-1]
    assert isinstance(done, Done)
    assert "It does not fit" in folded(done.answer).lead
    assert "No files were written" in done.answer
    assert isinstance(say(session, "write them anyway")[-1], Approval)


def test_alternatives_are_compared_without_changing_the_plan() -> None:
    first, second = turns("llama-3.1-8b on 16 H100 with 100M tokens", "H100 or MI300X?")
    (call,) = second["tool_calls"]
    assert call["name"] == "compare"
    assert call["arguments"]["over"] == {"accelerator": ["h100-sxm", "mi300x"]}
    assert call["arguments"]["count"] == 16
    assert re.search(r"^\| \**h100-sxm\** \|.*\| \**yes\** \|", second["answer"], re.MULTILINE)
    assert second["plan"] == first["plan"]
    assert second["ungrounded"] == []


def test_how_many_devices_are_needed() -> None:
    done, after = turns("How many H100s do I need to fully fine-tune Llama-3.1-70B?", "how long does 1B tokens take?")
    limit, *runs = done["tool_calls"]
    assert limit["name"] == "find_limit"
    assert limit["arguments"]["goal"] == "devices"
    counts = [call["arguments"]["count"] for call in runs]
    assert counts == [counts[0], 2 * counts[0], 4 * counts[0]]
    assert f"At least {counts[0]} x h100-sxm" in done["answer"]
    assert all(f"| {count} devices | yes" in done["answer"] for count in counts)
    assert done["ungrounded"] == []
    assert "count" not in done["plan"]["cluster"]
    assert {call["arguments"]["count"] for call in after["tool_calls"]} == {counts[0]}
    assert "in host memory" in folded(done["answer"]).lead
    assert f"{counts[0]} devices taken" in after["answer"]
    assert re.search(r" (hours|days)\*{0,2} \(", folded(after["answer"]).lead)


def test_what_a_look_up_said_is_no_made_up_figure() -> None:
    for text in (
        "on H200",
        "tp=3 on llama-3.1-8b with 6 H100",
        "train 1B tokens on Foo-13B with 8 H100",
        "hi",
        "H200 specs",
    ):
        assert turns(text)[0]["ungrounded"] == []


def test_an_unknown_name_in_a_question_of_fact_is_all_that_is_asked() -> None:
    done = turns("tell me about the H900")[0]
    assert [question.partition(":")[0] for question in done["asked"]] == ["cluster.accelerator"]


def test_alternatives_keep_their_own_counts() -> None:
    done = turns("qlora of llama 3.3 70b with 50M tokens: 4x L40S or 1x H100?")[0]
    (call,) = done["tool_calls"]
    tried = {(row["accelerator"], row["count"]) for row in call["arguments"]["scenarios"]}
    assert tried == {("l40s", 4), ("h100-sxm", 1)}
    assert re.search(r"^\| \**4 x l40s\** \|.*\| \**yes\** \|", done["answer"], re.MULTILINE)
    assert done["ungrounded"] == []


def test_a_device_that_is_left_is_no_alternative() -> None:
    done = turns("llama-3.1-8b on 8 H100", "switch from H100 to H200")[1]
    assert done["plan"]["cluster"] == {"accelerator": "h200-sxm", "count": 8}


def test_one_device_without_a_count_is_answered() -> None:
    assert "QLoRA" in turns("unsloth qlora Mistral-7B-v0.3 on t4")[0]["answer"]


def test_facts_leave_the_plan_alone() -> None:
    done = turns("llama-3.1-8b on 16 H100", "how many parameters does Mixtral 8x7B have?", "H200 specs")
    assert done[1]["plan"] == done[2]["plan"] == done[0]["plan"]
    assert "46,702,792,704" in done[1]["answer"]
    assert [event["tool_calls"][0]["name"] for event in done[1:]] == ["describe_model", "describe_hardware"]
    assert done[1]["ungrounded"] == done[2]["ungrounded"] == []


def test_the_best_layout_is_shown_with_what_lost() -> None:
    done = turns("what's the best layout to pretrain Llama-3.1-70B on 64 H100s with megatron?")[0]
    assert [call["name"] for call in done["tool_calls"]] == ["best_parallelism", "estimate_training"]
    assert "Best layout: " in folded(done["answer"]).lead
    assert "| Neighbour | Why not |" in done["answer"]
    assert done["ungrounded"] == []


def test_the_clock_can_be_set() -> None:
    wednesday = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
    result = ask("llama-3.1-8b on 8 H100, 1B tokens, done by Friday", approve=False, model="offline", now=wednesday)
    assert result["plan"]["goal"]["deadline_h"] == 60


def test_own_price_is_used() -> None:
    done = turns("llama-3.1-8b on 8 H100, 1B tokens at $2/hr per gpu: what does it cost?")[0]
    cost = next(call for call in done["tool_calls"] if call["name"] == "estimate_cost")
    assert cost["arguments"]["usd_per_device_hour"] == 2.0


@pytest.mark.parametrize(
    "text", ["What is the weather in Paris?", "Can somebody recommend a good laptop under $1500?", "hi", "thanks"]
)
def test_what_needs_no_tool_calls_none(text: str) -> None:
    done = turns(text)[0]
    assert done["tool_calls"] == []
    assert done["answer"]


def test_new_question_forgets_the_plan() -> None:
    assert plan_of("llama-3.1-8b on 16 H100", "new question: qwen2.5-7b on 4 L40S") == {
        "cluster": {"accelerator": "l40s", "count": 4},
        "model": "Qwen/Qwen2.5-7B",
    }


def test_a_turn_tells_how_it_was_read() -> None:
    first, doubled, why = turns("fine-tune llama-3.1-8b on 8 H100, no FSDP", "double the GPUs", "why is it so slow?")
    shape = {"act", "focus", "edits", "options", "scope", "refs", "assumed", "unread"}
    assert all(shape <= done["reading"].keys() for done in (first, doubled, why))
    edits = {edit["field"]: edit for edit in first["reading"]["edits"]}
    assert edits["count"]["value"] == 8
    assert edits["framework"]["op"] == "refuse"
    assert [(edit["field"], edit["op"], edit["value"]) for edit in doubled["reading"]["edits"]] == [
        ("count", "times", 2)
    ]
    assert why["reading"]["act"] == "why"
    assert why["reading"]["edits"] == []
    assert json.loads(json.dumps(first["reading"])) == first["reading"]


def test_a_turn_that_another_model_answers_shows_no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(turn: Turn) -> Thought:
        raise ModelFailed("The model is away.")

    session = open_session(model="offline")
    assert of(say(session, "llama-3.1-8b on 8 H100"), Done)[0].reading["edits"]
    monkeypatch.setattr("agent.session.model_of", lambda name: Scripted(["Two.", failing]))
    session = open_session(session.id, model="auto")
    assert of(say(session, "and on 16?"), Done)[0].reading == {}
    fallen = of(say(session, "and on 32?"), Done)[0].reading
    assert [edit["value"] for edit in fallen["edits"]] == [32]


def test_an_approval_can_be_given_in_another_process() -> None:
    session = open_session(model="offline")
    assert isinstance(say(session, DEMO)[-1], Approval)
    program = (
        "import asyncio, json, sys\n"
        "from agent.events import done_data\n"
        "from agent.session import open_session\n"
        "async def main():\n"
        "    session = open_session(sys.argv[1], 'offline')\n"
        "    return [event async for event in session.resume(True)][-1]\n"
        "print(json.dumps(done_data(asyncio.run(main()))))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", program, session.id], capture_output=True, text=True, env=environment, check=True
    )
    done = json.loads(run.stdout)
    assert len(done["files"]) == 3
    assert len([path for path in Path.cwd().rglob("*") if path.is_file()]) == 3


def test_an_approval_is_good_only_for_the_bytes_that_were_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(model="offline")
    assert isinstance(say(session, DEMO)[-1], Approval)
    from launchers.render import render

    def other(*arguments: Any, **named: Any) -> Any:
        from dataclasses import replace

        found = render(*arguments, **named)
        return replace(found, files=tuple(replace(file, text=file.text + "\n") for file in found.files))

    monkeypatch.setattr("planner.files.render.render", other)
    fresh = Session(session.id, "offline", session.root)
    done = answer_approval(fresh, True)[-1]
    assert "no longer those that were approved" in done.answer
    assert done.files == []
    assert not [path for path in Path.cwd().rglob("*") if path.is_file()]


def test_output_moves_the_files_and_nothing_leaves_it(tmp_path: Path) -> None:
    result = ask(DEMO, approve=True, model="offline", output=tmp_path / "out")
    assert len([path for path in (tmp_path / "out").iterdir() if path.is_file()]) == 3
    assert not list(Path.cwd().iterdir())
    assert len(result["files"]) == 3


def test_resuming_nothing_is_an_error() -> None:
    session = open_session(model="offline")
    say(session, "hi")
    with pytest.raises(PlanError, match="nothing is waiting"):
        answer_approval(session, True)


def test_speaking_on_drops_an_open_approval() -> None:
    session = open_session(model="offline")
    assert isinstance(say(session, DEMO)[-1], Approval)
    done = say(session, "what about 16 GPUs?")[-1]
    assert isinstance(done, Done)
    assert done.plan["cluster"]["count"] == 16
    assert not [path for path in Path.cwd().rglob("*") if path.is_file()]


def test_sessions_are_kept_private_and_listed(tmp_path: Path) -> None:
    first = ask("llama-3.1-8b on 8 H100", approve=False, model="offline")
    second = ask("and on 16?", approve=False, model="offline", session_id=first["session"])
    assert second["plan"]["cluster"]["count"] == 16
    assert second["session"] == first["session"]
    ask("hi\x1b[31m there", approve=False, model="offline")
    listed = list_sessions()
    assert [row.title for row in listed] == ["hi there", "llama-3.1-8b on 8 H100"]
    assert set(vars(listed[0])) == {"id", "title", "created", "last_used", "turns"}
    for file in (tmp_path / "home").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    with pytest.raises(PlanError, match="no session 'nope'"):
        open_session("nope")


def test_a_data_folder_that_cannot_be_used_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "file" / "below"))
    with pytest.raises(PlanError, match="SHARDWISE_HOME"):
        list_sessions()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sessions.db").write_text("this is no database, however long it may be")
    monkeypatch.setenv("SHARDWISE_HOME", str(broken))
    with pytest.raises(PlanError, match="move it away"):
        list_sessions()


def test_conversations_are_traced_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "x")
    ask("hi", approve=False, model="offline")
    assert os.environ["LANGSMITH_TRACING"] == "false"


def test_bad_openings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PlanError, match="GEMINI_API_KEY"):
        open_session(model="gemini")
    with pytest.raises(PlanError, match="not a folder"):
        open_session(model="offline", output=tmp_path / "file")
    with pytest.raises(PlanError, match="nothing to answer"):
        say(open_session(model="offline"), "  \x1b[2J ")


def test_offline_imports_nothing_that_it_does_not_need() -> None:
    program = (
        "import sys\n"
        "from agent.session import ask\n"
        "ask('does llama-3.1-8b fit on 8 H100?', approve=False, model='offline')\n"
        "print(sorted(name for name in ('google.genai', 'fastmcp', 'textual', 'mcp', 'scipy') "
        "if name in sys.modules))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.strip() == "[]"
