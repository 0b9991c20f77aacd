"""Stands in for the session and the tools: the faces are tested on what they show and ask, not on figures."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from fake_session import ANSWER, PLAN, WRITTEN, FakeSession
from pydantic import BaseModel, ConfigDict, Field

import tools.registry
from agent import session, store
from agent.store import SessionRow
from estimator.errors import PlanError
from tools.registry import Maker, Tool

SESSIONS = [
    SessionRow("new", "The \x1b[31mlatest", "2026-01-01T11:00:00", "2026-02-01T11:00:00", 2),
    SessionRow("old", "An older one", "2026-01-01T10:00:00", "2026-01-02T10:00:00", 1),
]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """agent.session, whose sessions follow a script; `opened` and `asked` tell how it was used."""
    monkeypatch.setenv("COLUMNS", "120")
    opened: list[FakeSession] = []
    asked: list[dict[str, Any]] = []

    def open_session(session_id: str | None = None, model: str = "auto", **given: Any) -> FakeSession:
        if session_id == "missing":
            raise PlanError("session", "there is no conversation 'missing'", ["new", "old"])
        opened.append(FakeSession(session_id, model, **given))
        return opened[-1]

    def ask(text: str, *, approve: bool, **given: Any) -> dict[str, Any]:
        asked.append({"text": text, "approve": approve} | given)
        files = [file.model_dump(exclude_unset=True) for file in WRITTEN] if approve else []
        told = {"plan": PLAN, "answer": ANSWER, "files": files, "ungrounded": [], "reading": {}, "failed": False}
        return {"session": "s-123", "tool_calls": []} | told

    for name, value in {"open_session": open_session, "ask": ask, "opened": opened, "asked": asked}.items():
        monkeypatch.setattr(session, name, value, raising=False)
    monkeypatch.setattr(store, "list_sessions", lambda query="": list(SESSIONS))
    return session


class _Ratio(BaseModel):
    model_config = ConfigDict(extra="forbid")
    above: float
    below: float = Field(1.0, description="What to divide by.")


class _Quotient(BaseModel):
    value: float
    note: str = "µs\x9b31m"


def _divide(request: _Ratio) -> _Quotient:
    if request.below == 0:
        raise PlanError("below", "must not be zero", [1, 2])
    if request.below < 0:
        raise RuntimeError("a bug")
    return _Quotient(value=request.above / request.below)


@pytest.fixture
def divide(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Ratio], _Quotient]:
    """One tool in the registry: it works, refuses zero, and has a bug below zero."""
    entry = Tool("divide", "Divide", "Divides.", True, _Ratio, Maker(__name__, "_divide"), _divide)
    monkeypatch.setattr(tools.registry, "_MODULES", {})
    monkeypatch.setattr(tools.registry, "_tools", {"divide": entry})
    monkeypatch.setattr(tools.registry, "_MODULE_OF", {})
    return _divide
