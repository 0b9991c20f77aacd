"""What one connection may take before a request is there to be judged: uvicorn sets no limit to a head.

The guard sees a request once its head is complete, and bounds the body; what comes before that, and what is sent beside
a body (extensions of chunks, trailers), is bounded here.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from server.http.guard import error_text

MOST_HEAD_BYTES = 64 * 1024
# More than any body that is still read to its end.
_MOST_BYTES = 48 * 2**20
_HEAD_S = 30.0
MOST_CONNECTIONS = 900


class BoundedHttp(HttpToolsProtocol):
    """HTTP/1.1 with a limit to the size of a head and to the time that it may take. Whoever opens connections and says
    nothing keeps nobody out: one too many closes that on which a client has been awaited the longest."""

    _bytes = 0
    _head_bytes = 0
    _in_head = True
    _due: asyncio.TimerHandle | None = None
    _awaited_since: float | None = None
    """Since when the client has owed us the rest of a request, or its next one."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._awaited_since = time.monotonic()
        self._expect()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def on_message_complete(self) -> None:
        self._awaited_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._awaited_since = time.monotonic()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._bytes += len(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._bytes > MOST_HEAD_BYTES:
            self.send_400_response("")
        elif self._bytes > _MOST_BYTES:
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._bytes, self._head_bytes, self._in_head = 0, 0, True
        self._expect()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MOST_HEAD_BYTES:
            raise ValueError  # to the parser, which gives the request up
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Says what is wrong in the form of every error; `msg`, the parser's words, does not."""
        large = max(self._bytes if self._in_head else 0, self._head_bytes) > MOST_HEAD_BYTES
        body = error_text("the head of the request is too long" if large else "this is not a request in HTTP/1.1")
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[400] + (head + body).encode("ascii"))
        self.transport.close()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._arrived()
        super().on_headers_complete()

    def _make_room(self) -> None:
        open_ = [each for each in self.connections if isinstance(each, BoundedHttp) and not each.transport.is_closing()]
        awaited = [(each._awaited_since, each) for each in open_ if each._awaited_since is not None]
        if len(open_) > MOST_CONNECTIONS and awaited:
            min(awaited, key=lambda pair: pair[0])[1].transport.close()

    def _expect(self) -> None:
        if self._due is None:
            self._due = self.loop.call_later(_HEAD_S, self.transport.close)

    def _arrived(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
