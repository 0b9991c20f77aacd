"""What an assistant's model gets: a short list that says enough, and answers short enough to be read.

The client here only sees the list and chooses by its words (how rare each is, no synonyms, no sense). That shows that
the words which people use stand with the right tool and nowhere better; a language model understands more than that,
and may still choose otherwise.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from fastmcp import Client
from mcp_questions import QUESTIONS, Fact
from tool_calls import FLAT, steady

from planner.requests import PlanRequest, ServingRequest
from server.mcp.brief import Results, brief
from server.mcp.server import server
from server.service import Service
from server.work import answered
from tools import call
from tools.brief import assistants
from tools.registry import registry

MODES: tuple[Literal["legacy", "auto"], ...] = ("legacy", "auto")
MOST_BYTES = 40_000
_WORD = re.compile(r"[a-z0-9]+")
# Words that say nothing about what is asked.
_NO_HELP = (
    "a an and any are as at be by can do does for get got have how i in is it its me my of on one or our out put show "
    "should that the them there this to too us want we what which will with would you your"
)
_EMPTY = set(_NO_HELP.split())


def words(text: str) -> list[str]:
    """Without endings, so that "fits" is "fit"."""
    found = [word for word in _WORD.findall(text.lower().replace("tokens/s", "throughput")) if word not in _EMPTY]
    return [re.sub(r"(?<=\w{3})(?:ing|es|ed|s|e)$", "", word) for word in found]


class ListReader:
    """A client that knows nothing but a list of tools."""

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        self.tools = {tool["name"]: tool for tool in tools}
        self.pages = {name: self._page(tool) for name, tool in self.tools.items()}
        held = Counter(word for page in self.pages.values() for word in page)
        self.rarity = {word: math.log(1 + len(tools) / count) for word, count in held.items()}
        self.meanings: dict[str, str] = {}
        for tool in tools:
            for name, field in tool["inputSchema"]["properties"].items():
                self.meanings.setdefault(name, field.get("description", ""))

    @staticmethod
    def _page(tool: dict[str, Any]) -> Counter[str]:
        """The words of a tool; those of its name and of what it says it is for count twice."""
        purpose = tool["description"].partition("Use it")[2]
        return Counter(words(f"{tool['name'].replace('_', ' ')} {tool['title']} {tool['description']} {purpose}"))

    def ranked(self, question: str) -> list[str]:
        asked = set(words(question))

        def score(name: str) -> float:
            page = self.pages[name]
            length = math.sqrt(sum(page.values()))
            return sum(self.rarity[word] * math.log1p(page[word]) for word in asked if word in page) / length**0.5

        return sorted(self.tools, key=score, reverse=True)

    def argument(self, tool: str, told: str, value: Any) -> str:
        """Of the arguments that take the value, the one that shares most words with what it is called; where two do,
        the one that says least else."""
        asked = set(words(told))
        best: tuple[float, str] = (-1.0, "")
        for name, field in self.tools[tool]["inputSchema"]["properties"].items():
            if not jsonschema.Draft202012Validator(field).is_valid(value):
                continue
            own, meaning = set(words(name.replace("_", " "))), set(words(self.meanings[name]))
            score = 2 * len(asked & own) + len(asked & meaning) - len(own - asked) - 0.01 * len(meaning)
            best = max(best, (score, name), key=lambda each: each[0])
        return best[1]


READER = ListReader(assistants(registry()))


def test_sixty_questions_find_their_tool_in_the_list_alone() -> None:
    assert len(QUESTIONS) == 60
    wrong = [(question, tool, READER.ranked(question)[:3]) for question, tool, _ in QUESTIONS
             if READER.ranked(question)[0] != tool]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize(("question", "tool", "facts"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_what_a_question_gives_is_filled_in_by_the_schema_alone(
    question: str, tool: str, facts: tuple[Fact, ...]
) -> None:
    filled = {READER.argument(tool, told, value): value for told, value, _ in facts}
    assert filled == {name: value for _, value, name in facts}
    jsonschema.validate(filled, READER.tools[tool]["inputSchema"])
    registry()[tool].parse(filled)


def test_of_which_tool_a_tool_takes_every_argument_is_true() -> None:
    homes = {"estimate_training": PlanRequest, "estimate_inference": ServingRequest}
    told = 0
    for name, entry in READER.tools.items():
        words = entry["inputSchema"]["properties"].get("plan", {}).get("description", "")
        if words.startswith("Also takes"):
            taken = registry()[name].request.model_fields.keys()
            assert {home for home, kind in homes.items() if kind.model_fields.keys() <= taken} == {
                home for home in homes if home in words
            }, name
            told += 1
    assert told > 15


def test_the_list_is_short_and_its_schemas_are_schemas() -> None:
    tools = assistants(registry())
    assert len(json.dumps(tools, separators=(",", ":"))) <= MOST_BYTES
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert registry()[tool["name"]].request.model_fields.keys() >= tool["inputSchema"]["properties"].keys() - {
            "confirm"
        }
        assert ("confirm" in tool["inputSchema"]["properties"]) is not registry()[tool["name"]].read_only


def test_the_documentation_says_how_long_the_lists_are() -> None:
    said = (Path(__file__).parent.parent.parent / "docs" / "mcp.md").read_text(encoding="utf-8")
    for told, tools in (
        (r"The list is (\d+) KB for the (\d+) tools", assistants(registry())),
        (r"()all (\d+) tools with the schemas", list(registry())),
    ):
        found = re.search(told, said)
        assert found
        assert int(found[2]) == len(tools)
        size_bytes = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode())
        assert not found[1] or abs(int(found[1]) - size_bytes / 1000) < 1


@pytest.mark.parametrize("mode", MODES)
async def test_the_list_on_the_wire_is_as_short(mode: Any) -> None:
    async with Client(server(Service()), mode=mode) as client:
        tools = await client.list_tools()
        sent = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert [tool["name"] for tool in sent] == list(READER.tools)
    assert len(json.dumps(sent, separators=(",", ":"))) <= MOST_BYTES


@pytest.mark.parametrize("mode", MODES)
async def test_a_long_answer_is_brief_and_its_details_can_be_read(mode: Any) -> None:
    async with Client(server(Service()), mode=mode) as client:
        answer = await client.call_tool("best_parallelism", FLAT)
        whole = steady(call("best_parallelism", FLAT))
        shown, text = answer.structured_content, answer.content[0].text  # type: ignore[union-attr]
        assert shown
        assert len(text) < 2000
        assert len(json.dumps(shown)) < 0.6 * len(json.dumps(whole))
        assert shown.keys() == whole.keys() | {"details", "seconds"}
        for key in ("plan", "best", "candidates"):
            assert shown[key] == whole[key]
        assert shown["pareto"] == whole["pareto"][: len(shown["pareto"])]
        assert shown["details"] in text
        (kept,) = await client.read_resource(shown["details"])
        assert steady(json.loads(kept.text)) == whole  # type: ignore[union-attr]
        small = await client.call_tool("describe_model", {"model": "gpt2"})
        assert small.structured_content == call("describe_model", {"model": "gpt2"})


def test_what_is_made_of_an_answer_is_kept_with_it_and_its_details_stay_readable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = registry()["best_parallelism"]
    answer, _ = answered("best_parallelism", FLAT, None)
    first = brief(tool, answer, Results())
    monkeypatch.setattr("pages.answers.page.page_of", None)  # called, it would fail
    # Where many other answers came between, the whole one has to be kept anew.
    later = Results()
    text, shown = brief(tool, answer, later)
    assert {**shown, "details": ""} == {**first[1], "details": ""}
    assert text.partition("Everything: ")[0] == first[0].partition("Everything: ")[0]
    assert later.read(shown["details"].rpartition("/")[2]) == answer.text


async def test_files_come_whole(tmp_path: Path) -> None:
    async with Client(server(Service(tmp_path))) as client:
        answer = await client.call_tool("render_configs", FLAT)
    assert answer.structured_content
    assert answer.structured_content["files"] == call("render_configs", FLAT)["files"]
    for file in answer.structured_content["files"]:
        assert file["text"].strip().splitlines()[-1] in answer.content[0].text  # type: ignore[union-attr]


async def test_a_tool_that_is_not_listed_can_be_called_and_read_about() -> None:
    async with Client(server(Service())) as client:
        assert "peak_throughput" not in [tool.name for tool in await client.list_tools()]
        arguments = {"models": ["llama-3.1-8b"], "accelerators": ["h100-sxm"], "precisions": ["bf16"]}
        answer = await client.call_tool("peak_throughput", arguments)
        assert answer.structured_content
        (described,) = await client.read_resource("shardwise://tools/peak_throughput")
        assert "models" in json.loads(described.text)["inputSchema"]["properties"]  # type: ignore[union-attr]
        (plan,) = await client.read_resource("shardwise://plan")
        for field in ("seq_len", "zero_stage", "input_len", "budget_usd", "accelerator", "rank"):
            assert f"| `{field}` |" in plan.text  # type: ignore[union-attr]
