"""The real command over standard input and output: nothing but the protocol on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tools.brief import assistants
from tools.registry import registry

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CODE = "from tui.cli import main; raise SystemExit(main(['mcp']))"
# Prints from inside a tool, as a careless library would.
NOISY = (
    "import planner.facts as f; from tools import registry as r; import dataclasses; t = r.find('describe_model');"
    "r._tools['describe_model'] = dataclasses.replace(t, function=lambda q: (print('noise'), t.function(q))[1]);"
)


@contextmanager
def process(code: str = CODE) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as found:
        alarm = threading.Timer(60, found.kill)
        alarm.start()
        try:
            yield found
        finally:
            alarm.cancel()
            found.kill()


def request(id: Any, method: str, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"


def test_a_conversation_leaves_nothing_else_on_standard_output() -> None:
    with process(NOISY + CODE) as found:
        assert found.stdin
        assert found.stdout
        lines = []
        for text in (
            request(1, "initialize", **HELLO),
            '{"jsonrpc":"2.0","method":"notifications/initialized"}\n',
            request(2, "tools/list"),
            "not json\n",
            request(3, "tools/call", name="describe_model", arguments={"model": "gpt2"}),
            request(4, "tools/call", name="describe_model", arguments={"model": "gpt3000"}),
            request(5, "tools/call", name="describe_model", arguments=["gpt2"]),
            request(6, "nope"),
        ):
            found.stdin.write(text)
            found.stdin.flush()
            if '"id"' in text:
                lines.append(json.loads(found.stdout.readline()))
        rest, errors = found.communicate(timeout=20)
    answers = {line["id"]: line for line in lines}
    assert list(answers) == [1, 2, 3, 4, 5, 6]
    assert answers[1]["result"]["serverInfo"]["name"] == "shardwise"
    listed = {tool["name"] for tool in answers[2]["result"]["tools"]}
    assert listed == {entry["name"] for entry in assistants(registry())}
    assert answers[3]["result"]["structuredContent"]["parameters"] == 124_439_808
    assert answers[4]["result"]["isError"]
    assert answers[5]["error"]["code"] == -32602
    assert answers[6]["error"]["code"] == -32601
    assert rest == ""
    assert "noise" in errors
    assert "Traceback" not in errors
    for line in lines:
        assert "pydantic" not in json.dumps(line.get("error", ""))
    assert found.returncode == 0
