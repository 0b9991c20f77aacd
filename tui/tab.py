"""The app in a tab of a browser: it speaks over pipes with the server that shows it, and ends with that server."""

from __future__ import annotations

import os
import threading
from typing import ClassVar

from textual import messages
from textual.driver import Driver
from textual.drivers.web_driver import WebDriver

from tui.actions import BROWSER_KEYS, palette_key
from tui.app import ShardwiseApp

# For an end in good order, from which a pipe to nobody may keep it.
_ENDING_S = 3.0


class BrowserApp(ShardwiseApp):
    """The app in a page of a browser, which keeps some keys: what those do is said with a slash, or an action."""

    COMMAND_PALETTE_BINDING: ClassVar[str] = palette_key(in_browser=True)

    def on_load(self) -> None:
        for key in BROWSER_KEYS:
            self._bindings.key_to_bindings.pop(key, None)

    def get_driver_class(self) -> type[Driver]:
        return _TabDriver


class _TabDriver(WebDriver):
    """Textual's; where its input ends without a word, as of a server that was killed, nobody is there any more."""

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():
            forced = threading.Timer(_ENDING_S, os._exit, [1])
            forced.daemon = True
            forced.start()
            self._app.post_message(messages.ExitApp())
