"""Names of models, accelerators, rentable machines, providers and files in a text, and what the catalogues say of
them."""

from __future__ import annotations

from agent.offline.language.names.known import Name, head_words
from agent.offline.language.names.text import names

__all__ = ["Name", "head_words", "names"]
