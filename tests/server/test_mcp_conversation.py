"""The same conversation with the official clients, in both eras, over both transports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import mcp
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from live_server import Live, in_thread
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult as PlainElicitResult
from mcp_types import PromptReference, ResourceTemplateReference
from tool_calls import FLAT

from tools.brief import assistants
from tools.registry import registry

LISTED = [entry["name"] for entry in assistants(registry())]
Mode = Literal["legacy", "auto"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Path]]:
    root = tmp_path_factory.mktemp("root")
    with in_thread(root) as found:
        yield found, root


def target(transport: str, live: tuple[Live, Path]) -> Any:
    if transport == "http":
        return f"{live[0].url}/mcp"
    return StdioTransport(sys.executable, ["-m", "tui.cli", "mcp", "--root", str(live[1])])


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_fastmcp_talks_through_everything(mode: Mode, transport: str, live: tuple[Live, Path]) -> None:
    asked: list[str] = []
    told: list[str | None] = []

    async def agree(message: str, response_type: Any, params: Any, context: Any) -> Any:
        asked.append(message)
        return response_type(approve=True)

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    folder = f"runs/{mode}-{transport}"
    async with Client(target(transport, live), mode=mode, elicitation_handler=agree) as client:
        assert [tool.name for tool in await client.list_tools()] == LISTED
        found = await client.call_tool("best_parallelism", FLAT, progress_handler=note)
        assert found.structured_content
        assert found.structured_content["best"]["layout"]
        assert told[0] == "Find the best layout: started"
        error = await client.call_tool("describe_model", {"model": "gpt3000"}, raise_on_error=False)
        assert error.is_error
        with pytest.raises(ToolError, match="there is no tool 'nope'; valid: describe_model"):
            await client.call_tool("nope", {})
        assert {template.uri_template for template in await client.list_resource_templates()} >= {
            "shardwise://models/{id}", "shardwise://hardware/{id}", "shardwise://plans/{name}",
        }  # fmt: skip
        (content,) = await client.read_resource("shardwise://models/openai-community/gpt2")
        assert "124439808" in content.text  # type: ignore[union-attr]
        names = [prompt.name for prompt in await client.list_prompts()]
        assert names == ["plan_fine_tune", "size_cluster", "plan_serving", "explain_oom", "tune_mfu"]
        prompt = await client.get_prompt("tune_mfu", {"model": "gpt2"})
        assert "> gpt2" in prompt.messages[0].content.text  # type: ignore[union-attr]
        template = ResourceTemplateReference(type="ref/resource", uri="shardwise://hardware/{id}")
        assert "h100-sxm" in (await client.complete(template, {"name": "id", "value": "h100"})).values
        reference = PromptReference(type="ref/prompt", name="plan_fine_tune")
        assert "qlora" in (await client.complete(reference, {"name": "method", "value": "q"})).values
        written = await client.call_tool("write_configs", FLAT | {"folder": folder})
    assert written.structured_content
    assert written.structured_content["written"] is True
    assert len(asked) == 1
    assert (live[1] / folder / "llamafactory.yaml").is_file()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_sdk_client_asks_its_person(mode: Mode, agrees: bool, live: tuple[Live, Path]) -> None:
    async def answer(context: Any, params: Any) -> PlainElicitResult:
        return PlainElicitResult(action="accept", content={"approve": agrees})

    folder = f"runs/sdk-{mode}-{agrees}"
    url = f"{live[0].url}/mcp"
    async with mcp.Client(streamable_http_client(url), mode=mode, elicitation_callback=answer) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == LISTED
        found = await client.call_tool("estimate_training", FLAT)
        assert found.structured_content
        assert found.structured_content["memory"]["fits"] in (True, False)
        done = await client.call_tool("write_configs", FLAT | {"folder": folder})
    assert done.is_error is not agrees
    assert (live[1] / folder).exists() is agrees


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_without_a_person_confirms_by_code(mode: Mode, live: tuple[Live, Path]) -> None:
    arguments = FLAT | {"folder": f"runs/code-{mode}"}
    async with Client(f"{live[0].url}/mcp", mode=mode) as client:
        shown = (await client.call_tool("write_configs", arguments)).structured_content
        assert shown
        assert not (live[1] / "runs" / f"code-{mode}").exists()
        done = await client.call_tool("write_configs", arguments | {"confirm": shown["confirm"]})
    assert done.structured_content
    assert done.structured_content["written"] is True


async def test_declining_the_form_writes_nothing(live: tuple[Live, Path]) -> None:
    async def decline(message: str, response_type: Any, params: Any, context: Any) -> ElicitResult[Any]:
        return ElicitResult(action="decline")

    async with Client(f"{live[0].url}/mcp", mode="legacy", elicitation_handler=decline) as client:
        done = await client.call_tool("write_configs", FLAT | {"folder": "runs/declined"}, raise_on_error=False)
    assert done.is_error
    assert not (live[1] / "runs" / "declined").exists()
