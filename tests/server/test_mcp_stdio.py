"""The real command over standard input and output: quick to list its tools, and nothing but the protocol on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.registry import registry

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CODE = "from tui.cli import main; raise SystemExit(main(['mcp']))"
# Prints from inside a tool, as a careless library would.
NOISY = (
    "import planner.facts as f; from tools import registry as r; import dataclasses; t = r.find('describe_model');"
    "r._tools['describe_model'] = dataclasses.replace(t, function=lambda q: (print('noise'), t.function(q))[1]);"
)
# What the first list of tools may cost in processor time; on the clock it is to be there after 1.5 s.
_LIST_CPU_S = 0.5


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


def processor_s(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():  # only Linux has it
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    assert len(answers[2]["result"]["tools"]) == len(registry())
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


def test_the_first_list_of_tools_is_there_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path))  # nothing of an earlier process
    with process() as found:
        assert found.stdin
        assert found.stdout
        found.stdin.write(request(1, "initialize", **HELLO))
        found.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n' + request(2, "tools/list"))
        found.stdin.flush()
        lines = [json.loads(found.stdout.readline()) for _ in range(2)]
        taken = processor_s(found.pid)
    assert len(lines[1]["result"]["tools"]) == len(registry())
    assert taken < _LIST_CPU_S
