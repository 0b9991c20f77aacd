"""Pydantic models of others that are built when they are first used, as most of a large library's never are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel


@contextmanager
def built_when_used() -> Iterator[None]:
    """Defers the building of every model that is defined meanwhile; nothing else about it changes."""
    before = BaseModel.model_config
    BaseModel.model_config = {**before, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = before
