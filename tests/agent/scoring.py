"""Scores the offline planner on the evaluation set: which tool it chose, which values it read, which it made up.

`python tests/agent/scoring.py [FILE ...]` prints every turn that missed and the shares; the form of the set is told in
tests/data/questions.yaml.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from agent.models import Thought, Turn
from agent.offline.catalogue import known
from agent.offline.planner import step
from agent.wire import Call, Outcome, answered, calls_of, said, text_of
from estimator.errors import PlanError
from planner.partial import get
from planner.requests import ALL_PATHS
from tools.registry import registry

DATA = Path(__file__).parents[1] / "data"
NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
# Searches over the whole catalogue take seconds each: what is scored is the call; the answer is about these devices.
_NARROWED = {"recommend_cluster", "auto_configure", "size_serving", "best_serving"}
_FEW = ["h100-sxm", "l40s", "mi300x"]
# What an answer may set without being told: which kind of plan it is, how much to show, what files are called.
_FREE_PLAN = {"kind", "name"}
_FREE_ARGUMENTS = {
    "improvements", "top", "limit", "depth", "nearest", "title", "file", "folder", "include_base", "baseline", "plan",
    "figures", "overwrite", "all", "format", "sort",
}  # fmt: skip


@dataclass
class Said:
    """One turn as it went: the calls it made, the plan it left, what it answered and asked."""

    words: str
    calls: list[Call]
    outcomes: list[Outcome]
    plan: dict[str, Any]
    answer: str
    asked: list[str]
    origins: list[str]


@dataclass
class Score:
    """How a turn did: whether the tool was right, of how many values how many were, and what is wrong."""

    tool: bool = True
    values: int = 0
    right: int = 0
    invented: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@cache
def conversations(file: Path) -> list[list[dict[str, Any]]]:
    import yaml

    # As `knowledge.data_files.document` reads, ten times faster.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(file.read_text(encoding="utf-8"), Loader=loader)


Step = Callable[[Turn, Any], Thought]


def talk(turns: list[str], planner: Step = step) -> Iterator[Said]:
    """The turns of one conversation, one after another, as a planner goes through them."""
    tools, messages = registry(), []
    plan: dict[str, Any] = {}
    topic: dict[str, Any] = {}
    for words in turns:
        messages.append(said(words))
        calls: list[Call] = []
        outcomes: list[Outcome] = []
        for _ in range(12):
            thought = planner(Turn(messages, plan, topic, tools, NOON), known())
            plan = thought.plan if thought.plan is not None else plan
            topic = thought.topic if thought.topic is not None else topic
            messages.append(thought.content)
            made = calls_of(thought.content)
            if not made:
                # A question is about what it supposes; the plan itself stays as it was.
                about = topic.get("supposed") or (topic.get("pending") or {}).get("plan") or plan
                yield Said(words, calls, outcomes, about, text_of(thought.content), thought.asked, thought.origins)
                break
            calls += made
            new = [Outcome(call, _response(call)) for call in made]
            outcomes += new
            messages.append(answered(new))


_responses: dict[str, dict[str, Any]] = {}


def _response(call: Call) -> dict[str, Any]:
    tool, arguments = registry()[call.name], call.arguments
    if call.name in _NARROWED and (call.name == "recommend_cluster" or not arguments.get("accelerator")):
        named = [name for name in arguments.get("accelerators", ()) if name in _FEW]
        arguments = arguments | {"accelerators": named or arguments.get("accelerators", _FEW)[:2]}
    if call.name == "report":
        # A page costs seconds to draw; its text is what is told.
        arguments = arguments | {"format": "markdown"}
    key = json.dumps([call.name, call.arguments], sort_keys=True, default=str)
    if key not in _responses or not tool.read_only or "scenario" in call.name:
        try:
            _responses[key] = tool(arguments)
        except PlanError as error:
            _responses[key] = {"error": str(error)}
    return _responses[key]


def score(turn: Mapping[str, Any], expected_plan: dict[str, Any], allowed: dict[str, Any], done: Said) -> Score:
    """`expected_plan` is what the conversation has said so far, `allowed` what may be read out of it; this turn's own
    are laid over both here."""
    found = Score()
    allowed |= turn.get("may") or {}
    names = [call.name for call in done.calls]
    for name, value in (turn.get("plan") or {}).items():
        expected_plan.pop(name, None) if value is None else expected_plan.__setitem__(name, value)
    expected = turn.get("call")
    accepted = expected if isinstance(expected, list) else [expected]
    if turn.get("ask"):
        asked = {question.partition(":")[0].rpartition(".")[2] for question in done.asked}
        found.tool = set(turn["ask"]) <= asked
        if not found.tool and not expected:
            found.wrong.append(f"asked {sorted(asked)}, not {turn['ask']}")
        if found.tool or not expected:
            # With a call beside it either will do.
            return found
        found.tool = True
    if turn.get("none") and (not names or None in accepted or not expected):
        found.tool = not set(names) - set(accepted)
        if not found.tool:
            found.wrong.append(f"called {names}")
        return found
    call = next((call for call in done.calls if call.name in accepted), None)
    if call is None:
        found.tool = False
        found.wrong.append(f"called {names}, asked {done.asked}")
        return found
    flat = {name: value for name, path in ALL_PATHS.items() if (value := get(done.plan, path)) is not None}
    flat = {name: value for name, value in flat.items() if name != "overrides"}
    if expected_plan or turn.get("plan"):
        _compare(found, expected_plan, allowed, flat, done.words)
    own, wanted = _own_arguments(turn, call), dict(turn.get("args") or {})
    if choices := wanted.pop("any_of", None):
        wanted |= next((choice for choice in choices if set(choice) <= set(own)), choices[0])
    for name, value in wanted.items():
        found.values += 1
        if _same(name, value, own.get(name)):
            found.right += 1
        else:
            found.wrong.append(f"{name}: {own.get(name)!r}, not {value!r}")
    extra = set(own) - set(wanted) - _FREE_ARGUMENTS - set(turn.get("may") or {})
    # Where no device is named, a deployment is chosen among common ones.
    extra -= {"accelerators"} if call.name in ("size_serving", "best_serving") else set()
    if "args" in turn or turn.get("plan"):
        found.invented += [f"{name}={own[name]!r}" for name in sorted(extra) if name not in _OPTIONAL_OWN]
    for name in ("model", "accelerator"):
        # The call is about the run that the conversation is about.
        told = name in call.arguments and name in expected_plan and not {name, "over"} & set(wanted)
        if told and not _same(name, expected_plan[name], call.arguments[name]):
            found.wrong.append(f"called with {name}={call.arguments[name]!r}")
            found.values += 1
    return found


def _own_arguments(turn: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """Arguments of the tool's own, besides the fields of a plan."""
    told = turn.get("args") or {}
    return {name: value for name, value in call.arguments.items() if name not in ALL_PATHS or name in told}


# Choices that follow from the words without being values of them.
_OPTIONAL_OWN = {
    "query", "values", "field", "family", "targets", "goal", "figure", "a", "b", "text", "kind", "topics", "topic",
    "price", "engines", "weight_dtypes", "efficiency_threshold", "over", "scenarios", "nodes", "models",
}  # fmt: skip


def _compare(
    found: Score, expected: Mapping[str, Any], may: Mapping[str, Any], flat: Mapping[str, Any], words: str
) -> None:
    for name, value in expected.items():
        found.values += 1
        if _same(name, value, flat.get(name)):
            found.right += 1
        else:
            found.wrong.append(f"{name}: {flat.get(name)!r}, not {value!r}")
    for name, value in flat.items():
        if name in expected or name in _FREE_PLAN or (name in may and _same(name, may[name], value)):
            continue
        if not _implied(name, value, expected):
            found.invented.append(f"{name}={value!r}")


def _implied(name: str, value: Any, expected: Mapping[str, Any]) -> bool:
    """What the words mean without saying it: fine-tuning is sft, a machine's name its provider, two chips a box."""
    return (
        (name == "stage" and value == "sft")
        or name == "provider"
        or (name == "objective" and value in ("cost", "time"))
        or (name == "framework" and value in ("deepspeed", "axolotl", "torchtune", "torchtitan"))
        or (
            name in ("accelerator", "model", "method", "count", "precision")
            and name not in expected
            and not expected.get("strict")
        )
        or (name == "engine" and value in ("vllm", "sglang"))
        or (
            name == "per_node"
            and isinstance(expected.get("count") or value, int)
            and not (expected.get("count") or 0) % value
        )
    )


def _same(name: str, expected: Any, given: Any) -> bool:
    if isinstance(expected, Mapping) and "any" in expected:
        choices = expected["any"]
        return any(
            given is not None
            if choice == "present"
            else given is None
            if choice == "absent"
            else _same(name, choice, given)
            for choice in choices
        )
    if isinstance(expected, Mapping) and isinstance(given, Mapping):
        return set(expected) == set(given) and all(_same(key, value, given[key]) for key, value in expected.items())
    if isinstance(expected, list):
        if not isinstance(given, list) or len(given) != len(expected):
            return False
        return all(any(_same(name, one, other) for other in given) for one in expected)
    if isinstance(expected, bool) or isinstance(given, bool):
        return expected is given
    if name == "field" and isinstance(given, str):
        return expected == given.rpartition(".")[2]
    if isinstance(expected, int | float) and isinstance(given, int | float):
        return abs(expected - given) <= 1e-6 * max(abs(expected), 1e-9)
    return (
        isinstance(expected, str) and isinstance(given, str) and _canonical(name, expected) == _canonical(name, given)
    )


@cache
def _canonical(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        if "model" in name or name == "name":
            return known().find_model(value)[0].lower().removesuffix("-instruct").removesuffix("-it")
        if "accelerator" in name:
            return known().find_accelerator(value)[0]
    except PlanError:
        pass
    try:
        return known().find_accelerator(value)[0] if name == "name" else value.lower()
    except PlanError:
        return value.lower()


@contextmanager
def home() -> Iterator[None]:
    """A home and a working folder that nothing has been kept in: no conversation finds what another one saved."""
    with (
        TemporaryDirectory() as folder,
        chdir(folder),
        patch.dict(os.environ, SHARDWISE_HOME=folder, SHARDWISE_CONFIG=folder),
    ):
        yield


def run(file: Path, show: bool = False, planner: Step = step, every: int = 1) -> tuple[dict[str, float], list[Said]]:
    """({turns, tool, values, invented, asked} as shares and counts, every turn as it went) of each `every`th
    conversation."""
    turns = hits = values = right = invented = 0
    went: list[Said] = []
    for conversation in conversations(file)[::every]:
        with home():
            took = list(talk([turn["say"] for turn in conversation], planner))
        expected: dict[str, Any] = {}
        allowed: dict[str, Any] = {}
        for turn, done in zip(conversation, took, strict=True):
            if turn.get("new"):
                expected, allowed = {}, {}
            result = score(turn, expected, allowed, done)
            turns, hits = turns + 1, hits + result.tool
            values, right = values + result.values, right + result.right
            invented += len(result.invented)
            went.append(done)
            if show and (not result.tool or result.wrong or result.invented):
                print(
                    f"- {turn['say'][:110]}\n    {[c.name for c in done.calls]} {'; '.join(result.wrong)}"
                    + (f" INVENTED {result.invented}" if result.invented else "")
                )
    shares = {"turns": turns, "tool": hits / turns, "values": right / max(values, 1), "invented": invented}
    return shares, went


if __name__ == "__main__":
    files = [Path(name).resolve() for name in sys.argv[1:] or [str(DATA / "questions.yaml")]]
    for file in files:
        print(run(file, show=True)[0])
