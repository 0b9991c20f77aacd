"""A quick start: pydantic builds what the models defined meanwhile need only once they are used.

The protocol has hundreds of models, of which a conversation uses a few dozen; building them all takes most of a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel


@contextmanager
def quick_start() -> Iterator[None]:
    before = BaseModel.model_config
    # No rich log handler, and no settings from a file that happens to lie in the working folder.
    os.environ.setdefault("FASTMCP_LOG_ENABLED", "false")
    BaseModel.model_config = {**before, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = before
