"""A server on this machine that answers what is posted to it from a script: what the fakes of both protocols share."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STREAM = "text/event-stream"


@dataclass
class Written:
    """A response. `cut` breaks it off before the end that was promised; `held` keeps that back until it is set."""

    data: bytes
    kind: str = STREAM
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    held: threading.Event | None = None

    @property
    def falls_short(self) -> bool:
        return self.cut or self.held is not None


Answer = Callable[[str, Message, dict[str, Any]], Written]
"""(path, headers, body) → the response."""


@contextmanager
def listening(answer: Answer) -> Iterator[str]:
    """The server's address, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            written = answer(self.path, self.headers, body)
            self.send_response(written.status)
            for name, value in written.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", written.kind)
            self.send_header("Content-Length", str(len(written.data) + (1000 if written.falls_short else 0)))
            self.end_headers()
            self.wfile.write(written.data)
            self.wfile.flush()
            if written.held:
                written.held.wait(20)
            self.close_connection = self.close_connection or written.falls_short

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
