"""`shardwise call`: the typed tools for scripts. JSON in, JSON out; what cannot be done is a line on standard error."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from estimator.errors import PlanError, unreadable
from knowledge.own.files import LARGEST_BYTES, open_regular, read_stream
from knowledge.own.mappings import each_once
from pages.rendering.clean import one_line
from tools import call
from tools.registry import find, registry
from tui.jsonout import to_json, write_json
from tui.progress import working

_EXAMPLE = '{"model": "meta-llama/Llama-3.1-8B"}'


def run(arguments: argparse.Namespace) -> int:
    if arguments.jsonl is not None:
        if arguments.tool is not None or arguments.schema:
            raise PlanError("--jsonl", "takes the tools' names from the file; give it alone")
        return _call_lines(arguments.jsonl)
    if arguments.tool is None:
        if arguments.schema:
            raise PlanError("--schema", "needs a tool's name", ["shardwise call NAME --schema"])
        return _list_tools()
    if arguments.schema:
        write_json(find(arguments.tool).request.model_json_schema())
        return 0
    text = read_stream(sys.stdin, "arguments") if arguments.arguments == "-" else arguments.arguments
    parameters = {} if text is None else _parse(text)
    with working(one_line(arguments.tool)):
        result = call(arguments.tool, parameters)
    write_json(result)
    return 0


def _list_tools() -> int:
    described = {
        name: {"title": tool.title, "description": tool.description, "read_only": tool.read_only}
        for name, tool in registry().items()
    }
    if not sys.stdout.isatty():
        write_json([{"name": name} | entry for name, entry in described.items()])
        return 0
    width = max(map(len, described), default=0)
    for name, entry in described.items():
        print(f"{name:<{width}}  {entry['title']}")
    print("\nshardwise call NAME --schema shows a tool's arguments.")
    return 0


def _call_lines(path: str) -> int:
    """Every line is answered, in order and at once. 2 when any of them failed, 1 when one met a bug of ours."""
    code = 0
    with _opened(path) as lines:
        for line in iter(lambda: lines.readline(LARGEST_BYTES + 1), ""):
            if not line.strip():
                continue
            try:
                answer = _call_line(line)
            except PlanError as error:
                code = code or 2
                answer = {"error": str(error)}
            except Exception as error:
                code = 1
                answer = {"error": f"internal error: {type(error).__name__}: {error}"}
            sys.stdout.write(to_json(answer, ascii_only=True) + "\n")
            sys.stdout.flush()
    return code


def _call_line(line: str) -> dict[str, Any]:
    if len(line) > LARGEST_BYTES:
        raise PlanError("line", f"is longer than {LARGEST_BYTES:,} characters; what is left of it counts as another")
    entry = _parse(line, "line")
    unknown = [key for key in entry if key not in ("name", "tool", "arguments")]
    if unknown:
        raise PlanError(unknown[0], "there is no such key in a line", ["name", "tool", "arguments"])
    name, arguments = entry.get("name", entry.get("tool")), entry.get("arguments", {})
    if not isinstance(name, str):
        raise PlanError("name", "is required: the tool to call")
    if not isinstance(arguments, dict):
        raise PlanError("arguments", "must be a JSON object", [_EXAMPLE])
    return call(name, arguments)


@contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    """The lines of a file, or of standard input for '-'; PlanError when it cannot be opened."""
    if path == "-":
        yield sys.stdin
        return
    with io.TextIOWrapper(open_regular(Path(path), "--jsonl"), encoding="utf-8", errors="replace") as file:
        yield file


def _parse(text: str, what: str = "arguments") -> dict[str, Any]:
    value = parse_value(text, what, [_EXAMPLE])
    if not isinstance(value, dict):
        raise PlanError(what, "must be a JSON object", [_EXAMPLE])
    return value


def parse_value(text: str, what: str, valid: Sequence[str] = ()) -> Any:
    """Any JSON value. Raises PlanError about `what`."""

    def refuse(name: str) -> float:
        raise PlanError(what, f"{name} is not a JSON number")

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=each_once)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise PlanError(what, f"is not valid JSON ({error.msg} at {where})", valid) from None
    except PlanError:
        raise
    except (RecursionError, ValueError) as error:
        raise PlanError(what, f"is not usable JSON: {unreadable(error)}") from None
