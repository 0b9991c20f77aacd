"""The list of all actions, found by a few letters."""

from __future__ import annotations

from dataclasses import replace

from textual.command import Hit, Hits
from textual.system_commands import SystemCommandsProvider

# More than letters that stand apart ever score.
_NAMED = 1000.0


class ActionSearch(SystemCommandsProvider):
    """An action whose whole name is typed comes before those that have the letters somewhere."""

    async def search(self, query: str) -> Hits:
        name = f"/{query.strip().lower().removeprefix('/')}"
        async for hit in super().search(query):
            named = isinstance(hit, Hit) and name in str(hit.text).split()
            yield replace(hit, score=hit.score + _NAMED) if isinstance(hit, Hit) and named else hit
