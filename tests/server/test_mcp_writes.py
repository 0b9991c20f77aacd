"""Nothing is written before the person has agreed to exactly the files shown, in whichever way the client can ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jsonschema
import mcp
import pytest
from fastmcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from tool_calls import FLAT

from server.mcp.server import server
from server.mcp.writes import CannotAsk, Shown, agreed
from server.service import Service
from tools.registry import registry
from tools.schemas import described

Mode = Literal["legacy", "auto"]
MODES: tuple[Mode, ...] = ("legacy", "auto")
WRITE = FLAT | {"folder": "runs/a"}
NOT_YES: list[Any] = [
    ElicitResult(action="accept", content={"approve": False}),
    ElicitResult(action="accept", content={"approve": "yes"}),
    ElicitResult(action="accept"),
    ElicitResult(action="decline"),
    ElicitResult(action="cancel", content={"approve": True}),
    None,
    {"action": "accept", "content": {"approve": True}},
]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    (tmp_path / "root").mkdir()
    return Service(tmp_path / "root")


class Asker:
    """A person who answers in a fixed way; it remembers what was shown."""

    def __init__(self, answer: bool | Exception) -> None:
        self.answer, self.shown = answer, list[Shown]()

    async def __call__(self, shown: Shown) -> bool:
        self.shown.append(shown)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def write(service: Service, arguments: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
    """The structured result of a call, or its error."""
    answer = await service.call(registry()["write_configs"], arguments, asker)
    if answer.failure is not None:
        return {"error": answer.failure}
    jsonschema.validate(answer.value, described(registry()["write_configs"])["outputSchema"])
    return answer.value


def files(service: Service) -> set[str]:
    assert service.root is not None
    assert list(service.root.parent.iterdir()) == [service.root]
    return {path.relative_to(service.root).as_posix() for path in service.root.rglob("*") if path.is_file()}


async def test_the_person_sees_every_file_and_then_they_are_written(service: Service) -> None:
    asker = Asker(True)
    written = await write(service, WRITE, asker)
    assert written["written"] is True
    assert files(service) == {f"runs/a/{Path(file['path']).name}" for file in written["files"]}
    (shown,) = asker.shown
    for file in written["files"]:
        assert f"{Path(file['path']).name} ({file['bytes']:,} bytes)" in shown.question
    assert "Folder: runs/a" in shown.question


@pytest.mark.parametrize("answer", NOT_YES, ids=range(len(NOT_YES)))
def test_anything_but_a_clear_yes_is_a_no(answer: Any) -> None:
    assert not agreed(answer)
    assert agreed(ElicitResult(action="accept", content={"approve": True}))


async def test_a_no_writes_nothing(service: Service) -> None:
    assert "nothing was written" in (await write(service, WRITE, Asker(False)))["error"]
    assert not files(service)


async def test_who_cannot_ask_gets_the_files_and_a_code_for_exactly_them(service: Service) -> None:
    nobody = Asker(CannotAsk())
    shown = await write(service, WRITE, nobody)
    assert shown["written"] is False
    assert all(file["text"] for file in shown["preview"]["files"])
    assert not files(service)
    for wrong in ("", "0" * 32, shown["confirm"][:-1], "\ud800", 7):
        assert "error" in await write(service, WRITE | {"confirm": wrong}, nobody)
    refused = await write(service, WRITE | {"seq_len": 2048, "confirm": shown["confirm"]}, nobody)
    assert "does not belong" in refused["error"]
    assert not files(service)
    done = await write(service, WRITE | {"confirm": shown["confirm"]}, nobody)
    assert done["written"] is True
    for file in shown["preview"]["files"]:
        assert service.root is not None
        assert (service.root / "runs/a" / file["path"]).read_text() == file["text"]


async def test_who_can_be_asked_is_asked_whatever_code_comes_with_the_call(service: Service) -> None:
    code = (await write(service, WRITE, Asker(CannotAsk())))["confirm"]
    asker = Asker(False)
    assert "error" in await write(service, WRITE | {"confirm": code}, asker)
    assert asker.shown
    assert not files(service)


async def test_without_a_root_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = await write(Service(None), WRITE, Asker(True))
    assert shown["written"] is False
    assert shown["confirm"] is None
    assert "--root" in shown["how"]
    assert shown["preview"]["files"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "folder",
    [
        "..",
        "../x",
        "/tmp/shardwise-x",
        "~/x",
        "a/../../x",
        "link/x",
        "a\0b",
        "x" * 2000,
        "../root2",
        "runs/\x1b[2J",
        "a\u202eb",
    ],
    ids=range(11),
)
async def test_no_folder_leads_outside_the_root_and_nobody_is_asked(service: Service, folder: str) -> None:
    assert service.root is not None
    (service.root / "link").symlink_to("/tmp", target_is_directory=True)
    asker = Asker(True)
    assert (await write(service, FLAT | {"folder": folder}, asker))["error"].startswith("folder: ")
    assert not asker.shown
    assert not files(service)


async def test_what_a_name_holds_cannot_steer_the_question(service: Service) -> None:
    asker = Asker(False)
    steering = "\x1b[2Jsafe\u202egnp\nApprove everything"
    await write(service, FLAT | {"folder": "runs/a\nApprove everything", "name": steering}, asker)
    assert asker.shown
    for shown in asker.shown:
        assert not {"\x1b", "\u202e"} & set(shown.question)
        assert not any(line.startswith("Approve") for line in shown.question.splitlines())


@pytest.mark.parametrize("mode", MODES)
async def test_each_era_asks_in_its_own_way(mode: Mode, service: Service) -> None:
    answers = iter([ElicitResult(action="accept"), ElicitResult(action="accept", content={"approve": True})])
    asked: list[str] = []

    async def answer(message: str, *_: Any) -> Any:
        asked.append(message)
        return next(answers)

    async with Client(server(service), mode=mode, elicitation_handler=answer) as client:
        assert (await client.call_tool("write_configs", WRITE, raise_on_error=False)).is_error
        assert not files(service)
        done = await client.call_tool("write_configs", WRITE)
    assert done.structured_content
    assert done.structured_content["written"] is True
    assert files(service)
    assert len(asked) == 2


async def test_an_answer_holds_for_the_question_it_was_given_to(service: Service) -> None:
    """The modern era by hand: the question ends the call, and its sealed state comes back with the answer."""
    yes: dict[str, Any] = {"approve": ElicitResult(action="accept", content={"approve": True})}

    async def unused(context: Any, params: Any) -> Any:
        raise AssertionError

    async with mcp.Client(server(service)._mcp_server, mode="auto", elicitation_callback=unused) as client:
        session = client.session
        asked = await session.call_tool("write_configs", WRITE, allow_input_required=True)
        state = asked.request_state  # type: ignore[union-attr]
        assert "llamafactory.yaml" in asked.input_requests["approve"].params.message  # type: ignore[index,union-attr]
        for arguments, given in ((WRITE, None), (FLAT | {"folder": "runs/b"}, state), (WRITE, "0" * 32)):
            try:
                refused = await session.call_tool("write_configs", arguments, input_responses=yes, request_state=given)
                assert refused.is_error
            except MCPError:
                pass
            assert not files(service)
        done = await session.call_tool("write_configs", WRITE, input_responses=yes, request_state=state)
    assert done.structured_content
    assert done.structured_content["written"] is True
    assert files(service)


# What the tools that write need beside a plan; each is consented to like every other.
WRITERS: dict[str, dict[str, Any]] = {
    "save_scenario": FLAT | {"name": "mine"},
    "delete_scenario": {"name": "mine"},
    "add_hardware": {"id": "my-gpu", "like": "h100-sxm"},
    "add_model": {"id": "me/tiny", "config": {
        "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8,
        "vocab_size": 32000, "intermediate_size": 2048, "max_position_embeddings": 4096}},
    "add_price": {"provider": "me", "instance": "box", "accelerator": "h100-sxm", "count": 8, "usd_per_hour": 12.5},
    "write_configs": FLAT | {"folder": "runs/a"},
    "benchmark_matrix": FLAT | {"folder": "runs/m"},
    "report": FLAT | {"file": "runs/r.html"},
}  # fmt: skip


def on_disk(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and "sessions" not in path.name}


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_that_writes_asks_first(mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(WRITERS) == sorted(tool.name for tool in registry().values() if not tool.read_only)
    for name in ("SHARDWISE_DATA", "SHARDWISE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    (tmp_path / "root").mkdir()
    agrees, asked = False, list[str]()

    async def answer(message: str, response_type: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return response_type(approve=agrees)

    async with Client(server(Service(tmp_path / "root")), mode=mode, elicitation_handler=answer) as client:
        for name, arguments in WRITERS.items():
            before = on_disk(tmp_path)
            agrees = False
            assert (await client.call_tool(name, arguments, raise_on_error=False)).is_error
            assert on_disk(tmp_path) == before
            agrees = True
            done = await client.call_tool(name, arguments, raise_on_error=False)
            assert not done.is_error, done.content
            assert on_disk(tmp_path) != before
            assert asked[-1] == asked[-2]
            assert asked[-1].startswith(registry()[name].title)
            for path in on_disk(tmp_path) - before:
                assert path.name in asked[-1]


async def test_a_code_is_good_once(service: Service) -> None:
    nobody = Asker(CannotAsk())
    code = (await write(service, WRITE, nobody))["confirm"]
    assert (await write(service, WRITE | {"confirm": code}, nobody))["written"] is True
    again = await write(service, WRITE | {"confirm": code, "overwrite": True}, nobody)
    assert "used already" in again["error"]


async def test_a_code_expires(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Asker(CannotAsk())
    code = (await write(service, WRITE, nobody))["confirm"]
    monkeypatch.setattr("server.mcp.writes._GOOD_FOR_S", -1.0)
    late = (await write(service, WRITE, nobody))["confirm"]
    assert "older than" in (await write(service, WRITE | {"confirm": late}, nobody))["error"]
    assert not files(service)
    monkeypatch.setattr("server.mcp.writes._GOOD_FOR_S", 600.0)
    assert (await write(service, WRITE | {"confirm": code}, nobody))["written"] is True


@pytest.mark.parametrize("change", ["new", "changed", "gone"])
async def test_a_code_is_bound_to_what_stands_on_disk(service: Service, change: str) -> None:
    nobody = Asker(CannotAsk())
    assert service.root is not None
    place = service.root / "runs" / "a" / "llamafactory.yaml"
    place.parent.mkdir(parents=True)
    if change != "new":
        place.write_text("mine: 1\n")
    wanted = WRITE | {"overwrite": True}
    shown = await write(service, wanted, nobody)
    differences = {file["path"]: file["difference"] for file in shown["preview"]["files"]}
    assert (
        differences["llamafactory.yaml"] is None if change == "new" else "-mine: 1" in differences["llamafactory.yaml"]
    )
    if change == "gone":
        place.unlink()
    else:
        place.write_text("mine: 2, and much work\n")
    refused = await write(service, wanted | {"confirm": shown["confirm"]}, nobody)
    assert "has changed" in refused["error"]
    assert change == "gone" or place.read_text() == "mine: 2, and much work\n"


async def test_what_comes_to_stand_there_while_the_person_thinks_is_not_replaced(service: Service) -> None:
    assert service.root is not None
    place = service.root / "runs" / "a" / "llamafactory.yaml"

    async def slow(shown: Shown) -> bool:
        place.parent.mkdir(parents=True)
        place.write_text("mine\n")
        return True

    answer = await service.call(registry()["write_configs"], WRITE | {"overwrite": True}, slow)
    assert "has changed since" in str(answer.failure)
    assert place.read_text() == "mine\n"


async def test_a_folder_that_nobody_named_is_shown_and_bound_as_well(service: Service) -> None:
    nobody = Asker(CannotAsk())
    shown = await write(service, FLAT, nobody)
    done = await write(service, FLAT | {"confirm": shown["confirm"]}, nobody)
    assert done["written"] is True
    assert all(path.startswith("runs/") for path in files(service))
