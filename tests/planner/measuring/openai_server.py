"""A tiny server that answers as an OpenAI-compatible endpoint does, with fixed times of its tokens."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

FIRST_S, BETWEEN_S = 0.05, 0.01


async def _completions(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if body["model"] == "full":
        return web.json_response({"error": "no room"}, status=503)
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    for number in range(body["max_tokens"]):
        await asyncio.sleep(BETWEEN_S if number else FIRST_S)
        event = {"choices": [{"delta": {"content": "a "}} if "messages" in body else {"text": "a "}]}
        await answer.write(f"data: {json.dumps(event)}\n\n".encode())
    if body["model"] != "uncounted":
        said = body.get("prompt") or " ".join(message["content"] for message in body["messages"])
        usage = {"prompt_tokens": len(said.split()), "completion_tokens": body["max_tokens"]}
        await answer.write(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n".encode())
    await answer.write(b"data: [DONE]\n\n")
    return answer


@contextmanager
def openai_server() -> Iterator[str]:
    """Its address, while it runs."""
    loop = asyncio.new_event_loop()
    app = web.Application()
    app.router.add_post("/v1/completions", _completions)
    app.router.add_post("/v1/chat/completions", _completions)
    runner = web.AppRunner(app)

    async def start() -> int:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner.addresses[0][1]

    port = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
