"""An event loop in a thread of its own, where sessions run: whatever a turn computes, keys are still read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_LEAVING_S = 5.0


class Background:
    """Started with its first work. What was cancelled is waited for at the end, so that a turn is kept as it stands."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts `work` there. Cancelling the future cancels it."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="sessions", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Ends what is still going on, and waits for it, but not for ever."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(_end_all(), loop).result(_LEAVING_S)
        except TimeoutError:
            return
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_LEAVING_S)
        if not self._thread.is_alive():
            loop.close()


async def _end_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
