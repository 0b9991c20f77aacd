"""From a person's words to one form: tokens → mentions → one cheapest whole reading → scope → act → coverage."""

from __future__ import annotations

from agent.offline.language.reading import read

__all__ = ["read"]
