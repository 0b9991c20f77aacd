"""A turn read: its page, the edits of each kind, its act and scope, and what was left unread."""

from __future__ import annotations

from agent.offline.language.reading.turn import read

__all__ = ["read"]
