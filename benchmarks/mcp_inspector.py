"""The MCP Inspector's command line and the Gemini CLI against the server: all tools listed and called both ways.

    python benchmarks/mcp_inspector.py            # needs npx; the first run downloads both programs

The Inspector gives exit code 0 even for a failed call, so its JSON is read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tools.registry import Tool, registry

_INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
_GEMINI = "@google/gemini-cli@0.61.0"
_PLAN = {"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8, "dataset_tokens": "1B"}
# What a tool needs beside the plan, or instead of it.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "find_limit": {"goal": "seq_len"},
    "sweep": {"field": "cluster.count", "values": "8,16"},
    "size_serving": {"request_rate": 10},
    "project_mlperf": {"benchmark": "llama2-70b"},
}


def arguments(tool: Tool) -> dict[str, Any]:
    known = tool.request.model_fields
    return {key: value for key, value in (_PLAN | _ARGUMENTS.get(tool.name, {})).items() if key in known}


def inspect(target: list[str], *words: str) -> dict[str, Any]:
    done = subprocess.run(
        ["npx", "--yes", "--package", _INSPECTOR, "mcp-inspector", "--cli", *target, *words],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr or done.stdout}")
    return json.loads(done.stdout)


def check(target: list[str], name: str) -> int:
    """Lists and calls every tool; returns how many failed."""
    listed = [tool["name"] for tool in inspect(target, "--method", "tools/list")["tools"]]
    failed = listed != list(registry())
    for tool in registry().values():
        words = ["--method", "tools/call", "--tool-name", tool.name]
        for key, value in arguments(tool).items():
            words += ["--tool-arg", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        answer = inspect(target, *words)
        good = not answer.get("isError") and "structuredContent" in answer
        print(
            f"{name}: {'called' if good else 'FAILED'} {tool.name}" + ("" if good else f" {answer}"[:300]), flush=True
        )
        failed += not good
    for method in ("resources/list", "resources/templates/list", "prompts/list"):
        inspect(target, "--method", method)
    return failed


@contextmanager
def served() -> Iterator[str]:
    command = [sys.executable, "-m", "tui.cli", "serve", "--port", "0", "--no-log"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+", line := server.stderr.readline())
            if found is None:
                raise SystemExit(line)
            yield found[0] + "/mcp"
        finally:
            server.terminate()


def gemini_connects() -> bool:
    cache = subprocess.run(["npm", "config", "get", "cache"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as home:
        settings = Path(home) / ".gemini" / "settings.json"
        settings.parent.mkdir()
        server = {"command": sys.executable, "args": ["-m", "tui.cli", "mcp"]}
        settings.write_text(json.dumps({"mcpServers": {"shardwise": server}}))
        trusted = os.environ | {"HOME": home, "GEMINI_CLI_TRUST_WORKSPACE": "true", "npm_config_cache": cache}
        command = ["npx", "--yes", "--package", _GEMINI, "gemini", "mcp", "list"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=trusted)
    # It lists on standard error.
    found = re.search(r"shardwise.*Connected", done.stdout + done.stderr)
    print(f"gemini mcp list: {found[0] if found else done.stderr}")
    return found is not None


def main() -> None:
    if shutil.which("npx") is None:
        raise SystemExit("npx is not here; install Node.js")
    failed = check([sys.executable, "-m", "tui.cli", "mcp"], "stdio")
    with served() as url:
        failed += check([url, "--transport", "http"], "http")
    failed += not gemini_connects()
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
