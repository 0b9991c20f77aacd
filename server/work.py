"""One tool call as it is computed, in whichever process."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own import database
from planner.files.below import writing_below
from tools.registry import Tool, find

_log = logging.getLogger("shardwise")


@dataclass(eq=False)
class CallAnswer:
    """What a call came to: its result as JSON text, or what the caller did wrong, or what we did (`bug`). `brief` is
    the result's page and what an assistant gets of it, once they were made (server.mcp.brief), `written` what was
    sent of it over MCP (server.http.again)."""

    text: str = ""
    error: PlanError | None = None
    bug: str | None = None
    brief: tuple[str, str] | None = None
    written: dict[Any, Any] = field(default_factory=dict)

    @property
    def failure(self) -> str | None:
        """What went wrong, as text that any encoding can carry."""
        sentence = self.bug or (str(self.error) if self.error else None)
        return sentence and sentence.encode(errors="backslashreplace").decode()

    @property
    def value(self) -> dict[str, Any]:
        return json.loads(self.text)


def answered(name: str, arguments: Mapping[str, Any], root: Path | None) -> tuple[CallAnswer, float]:
    """The answer of a tool by its name; folders that it reads are below `root`."""
    with writing_below(root) if root else nullcontext():
        return answer(find(name), arguments)


def answer(tool: Tool, arguments: Mapping[str, Any]) -> tuple[CallAnswer, float]:
    """The answer and the processor seconds it took. A bug of ours is logged under a reference; the caller learns only
    that."""
    # Not those of the clock: a short call beside many others would pass for a long one, and wait with these.
    started = time.thread_time()
    try:
        made = CallAnswer(dumps(tool(arguments)))
    except PlanError as error:
        made = CallAnswer(error=error)
    except MemoryError:
        made = CallAnswer(
            error=PlanError(tool.name, "took more memory than a call may and was stopped; ask for less at once")
        )
    except Exception:
        made = bug_of(tool)
    return made, time.thread_time() - started


def bug_of(tool: Tool) -> CallAnswer:
    """The answer for the error that is being handled, which is ours: the log has it under a reference."""
    reference = secrets.token_hex(4)
    _log.exception("tool %s failed (%s)", tool.name, reference)
    return CallAnswer(bug=f"{tool.name}: an error inside Shardwise (reference {reference} in the server's log)")


def outward(error: PlanError) -> PlanError:
    """What is wrong with the database is for whoever runs the server, in its log; others learn that it is."""
    if error.field != database.ADDRESS:
        return error
    _log.error("%s", error)
    return PlanError("database", "cannot be used at the moment; try again, or tell whoever runs this server")


def dumps(value: Any) -> str:
    """Compact JSON in ASCII. Infinities and NaN, which JSON does not have, become null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return dumps(json.loads(json.dumps(value), parse_constant=lambda _: None))
