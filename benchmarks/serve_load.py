"""How `shardwise serve` bears load on this machine: latency, throughput and memory, with and without a search beside.

    python benchmarks/serve_load.py                  # 200 clients, 10,000 estimates of 100 plans, REST and MCP
    python benchmarks/serve_load.py --plans 10000    # every call another plan, so none is answered from memory

Closed loop: each client sends its next call when it has read the last answer, so at 200 clients the mean latency is
200 / throughput whatever the server does; `--think 1` lets clients pause a second on average, as people do. Plans that
are asked more than once are each asked once before the clock starts: what is measured are answers that are kept.
Latency is what the client sees, with the client on the same cores; the server's own share is its processor time a call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_TOOL = "estimate_training"
_FIRST_CLIENTS = 8
_TOKEN = secrets.token_urlsafe(24)
_SEARCH = {"model": "deepseek-ai/DeepSeek-V3", "accelerator": "h100-sxm", "count": 2048, "global_batch": 8192}


_VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": _VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "serve_load", "version": "1"},
}
_MCP_HEADERS = (
    f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {_VERSION}\r\n"
    f"Mcp-Method: tools/call\r\nMcp-Name: {_TOOL}\r\n"
)


def bodies(plans: int, mcp: bool) -> list[bytes]:
    """Different plans of a run that fits, as request bodies; over MCP as calls of the modern era."""
    made = []
    for number in range(plans):
        arguments = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "count": 8, "seq_len": 256 * (1 + number % 64),
                     "global_batch": 64 + 8 * (number // 64)}  # fmt: skip
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": _TOOL, "arguments": arguments, "_meta": _META},
        }
        made.append(json.dumps(call if mcp else arguments).encode())
    return made


async def client(port: int, path: str, calls: Sequence[bytes], think_s: float, seconds: list[float]) -> int:
    """One client over one connection; appends each call's latency and returns how many failed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    failed = 0
    for body in calls:
        if think_s:
            await asyncio.sleep(random.expovariate(1 / think_s))
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {_TOKEN}\r\n"
        head += _MCP_HEADERS if path == "/mcp" else ""
        started = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer.lower())
        content = await reader.readexactly(int(length[1]) if length else 0)
        seconds.append(time.perf_counter() - started)
        failed += not answer.startswith(b"HTTP/1.1 200") or b'"isError":true' in content
    writer.close()
    return failed


async def load(port: int, pid: int, options: argparse.Namespace, mcp: bool) -> None:
    path = "/mcp" if mcp else f"/v1/tools/{_TOOL}"
    known = bodies(options.plans, mcp)
    calls = [known[number % len(known)] for number in range(options.calls)]
    random.Random(1).shuffle(calls)
    if len(known) < len(calls):
        await asyncio.gather(
            *(client(port, path, known[number::_FIRST_CLIENTS], 0.0, []) for number in range(_FIRST_CLIENTS))
        )
    seconds: list[float] = []
    before_cpu, before_mib, started = _cpu(pid), _memory(pid), time.perf_counter()
    parts = [calls[number :: options.clients] for number in range(options.clients)]
    failed = sum(await asyncio.gather(*(client(port, path, part, options.think, seconds) for part in parts)))
    took, seconds = time.perf_counter() - started, sorted(seconds)
    rank = {share: seconds[min(int(share * len(seconds)), len(seconds) - 1)] * 1e3 for share in (0.5, 0.99, 1.0)}
    print(
        f"{path}: {len(seconds)} calls by {options.clients} clients, {failed} failed, {len(seconds) / took:.0f} a "
        f"second; p50 {rank[0.5]:.1f}, p99 {rank[0.99]:.1f}, longest {rank[1.0]:.1f} ms; server "
        f"{(_cpu(pid) - before_cpu) / len(seconds) * 1e3:.2f} ms of processor time a call; memory {before_mib:.0f} -> "
        f"{_memory(pid):.0f} MiB"
    )


async def beside_a_search(port: int) -> None:
    """Short calls while a search over many layouts runs."""
    searching, done = [], []
    search = asyncio.create_task(
        client(port, "/v1/tools/best_parallelism", [json.dumps(_SEARCH).encode()], 0.0, searching)
    )
    await asyncio.sleep(0.01)
    plans = bodies(200, mcp=False)
    while not search.done():
        await client(port, f"/v1/tools/{_TOOL}", [plans[len(done) % 200]], 0.0, done)
    await search
    print(f"beside a search of {searching[0]:.2f} s: {len(done)} estimates, the longest {max(done) * 1e3:.0f} ms")


def _cpu(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    """Resident MiB of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


async def _run(port: int, pid: int, options: argparse.Namespace) -> None:
    for mcp in (False, True):
        await load(port, pid, options, mcp)
    await beside_a_search(port)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--clients", type=int, default=200)
    words.add_argument("--calls", type=int, default=10_000)
    words.add_argument("--plans", type=int, default=100, help="different plans among the calls")
    words.add_argument("--think", type=float, default=0.0, help="mean pause before each call in seconds")
    options = words.parse_args()
    command = [sys.executable, "-m", "tui.cli", "serve", "--port", "0", "--no-log"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ | {"SHARDWISE_TOKEN": _TOKEN}
    ) as server:
        try:
            assert server.stderr is not None
            found = re.search(r":(\d+) ", line := server.stderr.readline())
            if found is None:
                raise SystemExit(line)
            asyncio.run(_run(int(found[1]), server.pid, options))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
