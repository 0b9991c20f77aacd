"""A real llama.cpp server thinks: what is sent is what it takes, and what it streams is read, with tools and without.
Our own script starts it, with what the plan says.

The model is made here (checks/programs/llamacpp.py) and says nothing that makes sense: this is about the wire.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Ask

from estimator.plan.schema import Plan
from launchers.render import render
from tools.registry import registry

QUESTION = "Does gpt2 fit on one H100?"
KEY = "sk-of-a-server-of-ours"


@pytest.fixture(scope="module")
def model(ask: Ask, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that serves the model."""
    path = tmp_path_factory.mktemp("model") / "random.gguf"
    (made,) = ask("llamacpp", "llamacpp", [{"path": str(path)}])
    assert made["error"] is None, made["error"]
    return [made["server"], "--model", str(path), "--device", "none", *made["flags"]]


@contextmanager
def serving(command: list[str], log: Path, *words: str) -> Iterator[str]:
    """The server's address, once it answers."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("w") as file, subprocess.Popen(
        [*command, "--port", str(port), *words], stdout=file, stderr=file, env=os.environ | {"PORT": str(port)}
    ) as server:  # fmt: skip
        try:
            until = time.monotonic() + 60
            while not _is_ready(port):
                assert server.poll() is None, log.read_text()[-2000:]
                assert time.monotonic() < until, log.read_text()[-2000:]
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.TransportError:
        return False


def shardwise(home: Path, url: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    own = {"SHARDWISE_HOME": str(home), "SHARDWISE_CONFIG": str(home), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY}
    own |= {"SHARDWISE_OPENAI_MODEL": "random", "SHARDWISE_GEMINI_ATTEMPTS": "1", "SHARDWISE_GEMINI_TIMEOUT_S": "300"}
    env = os.environ | own | settings
    command = [sys.executable, "-m", "tui.cli", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


def tried(home: Path, url: str) -> dict[str, Any]:
    done = shardwise(home, url, "models", "test", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def asked(home: Path, url: str, *words: str, **settings: str) -> dict[str, Any]:
    done = shardwise(home, url, "ask", "--json", "--model", "openai", *words, QUESTION, **settings)
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


def test_its_tool_calls_are_run_and_what_they_gave_is_read_back(model: list[str], tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", "--api-key", KEY) as url:
        first = asked(tmp_path, url)
        assert (first["answer"], first["failed"]) == ("Ok.", "")
        assert [call["name"] in registry() for call in first["tool_calls"]] == [True]
        # The server counts: the first request has the list of tools, the second what the tool gave besides.
        used = first["usage"]["turn"]
        assert used["requests"] == 2
        assert used["input_tokens"] > 2 * 30_000
        again = asked(tmp_path, url, "--session", first["session"])
        assert (again["answer"], again["session"]) == ("Ok.", first["session"])
        result = tried(tmp_path, url)
        assert result["abilities"]["tool calls"] == "native"
        assert result["abilities"]["thoughts kept apart"] == "yes"
        assert [row["failure"] for row in result["answers"]] == [None] * 20
        assert all(name in registry() for row in result["answers"] for name in row["calls"])
        refused = shardwise(tmp_path, url, "ask", "--model", "openai", QUESTION, OPENAI_API_KEY="another")
        assert "did not accept the key: check OPENAI_API_KEY" in refused.stdout + refused.stderr


# The token that begins a call is kept from the model, and what it then says the server cannot read.
UNREAD = ["--logit-bias", "259-1000", "--predict", "200"]


@pytest.mark.parametrize(
    ("flags", "how"),
    [(["--no-jinja"], "auto"), (["--jinja"], "json"), (UNREAD, "auto")],
    ids=["none", "told", "unread"],
)
def test_where_it_takes_no_tools_it_answers_by_a_schema(
    model: list[str], flags: list[str], how: str, tmp_path: Path
) -> None:
    with serving(model, tmp_path / "log", *flags) as url:
        stopped = asked(tmp_path, url, SHARDWISE_OPENAI_TOOLS=how)
    assert all(call["name"] in registry() for call in stopped["tool_calls"])
    # What it calls is refused each time, which ends the turn.
    assert "more tool calls than one answer should" in stopped["answer"]


def test_a_context_shorter_than_the_list_of_tools_is_said(model: list[str], tmp_path: Path) -> None:
    with serving(model, tmp_path / "log", "--ctx-size", "4096") as url:
        done = shardwise(tmp_path, url, "ask", "--model", "openai", QUESTION)
        assert re.search(r"longer than this model takes.*give the server a\s+longer context", done.stdout + done.stderr)


ONE = {"cluster": {"accelerator": "cpu-epyc-9654", "count": 1, "per_node": 1}, "layout": {"tp": 1, "pp": 1}}
SERVED = {
    "processor": (ONE, {"max_batch": 3, "max_context": 1024}),
    "steps": ({}, {"max_batch": 2, "max_batched_tokens": 64}),
    "layers": ({}, {"max_batch": 2, "device_layers": 1}),
}


@pytest.mark.parametrize(("changes", "load"), SERVED.values(), ids=SERVED)
def test_our_script_starts_it_as_the_plan_says(
    model: list[str], changes: dict[str, Any], load: dict[str, Any], tmp_path: Path
) -> None:
    server, _, path, *_ = model
    workload = {"kind": "inference", "engine": "llamacpp", "input_len": 256, "output_len": 256, "max_context": 512}
    cluster = {"accelerator": "h100-sxm", "count": 2, "per_node": 2}
    fields = {"workload": workload | load, "cluster": cluster, "layout": {"tp": 1, "pp": 2}} | changes
    plan = Plan.parse({"model": "meta-llama/Llama-3.1-8B"} | fields)
    (text,) = (file.text for file in render(plan, ["llamacpp"], model_id=path).files if file.path == "serve.sh")
    (tmp_path / "llama-server").symlink_to(server)
    (tmp_path / "serve.sh").write_text(text)
    with_it = ["env", f"PATH={tmp_path}:{os.environ['PATH']}", f"LLAMA_API_KEY={KEY}", "sh", str(tmp_path / "serve.sh")]
    with serving(with_it, tmp_path / "log") as url:
        said = httpx.get(url.replace("/v1", "/props"), headers={"Authorization": f"Bearer {KEY}"}).json()
        assert httpx.post(f"{url}/completions", json={"prompt": "m"}).status_code == 401
    assert said["total_slots"] == load["max_batch"]
    assert said["default_generation_settings"]["n_ctx"] == load.get("max_context", 512)
    (tmp_path / "serve.sh").write_text(text.replace("--ctx-size", "--ctx-sizes"))
    broken = subprocess.run(with_it, capture_output=True, text=True, timeout=60, check=False)
    assert broken.returncode
    assert "--ctx-sizes" in broken.stderr
