"""A quick start of the protocol's library.

It has hundreds of models, of which a conversation uses a few dozen; building them all takes most of a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tools.deferral import built_when_used


@contextmanager
def quick_start() -> Iterator[None]:
    # No rich log handler, and no settings from a file that happens to lie in the working folder.
    os.environ.setdefault("FASTMCP_LOG_ENABLED", "false")
    with built_when_used():
        yield
