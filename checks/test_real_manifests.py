"""The files by which GitHub, pre-commit, the MCP registry and other agents know us, against their published schemas."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Ask

ROOT = Path(__file__).parent.parent


def test_every_manifest_is_as_its_schema_wants_it_and_a_broken_one_is_refused(ask: Ask, tmp_path: Path) -> None:
    manifests = {
        "action": ROOT / "action.yml",
        "hooks": ROOT / ".pre-commit-hooks.yaml",
        "registry": ROOT / "server.json",
        "skill": ROOT / "skills",
    }
    told = json.loads(manifests["registry"].read_text(encoding="utf-8"))
    broken = {
        "action": (tmp_path / "action.yml", "name: x\n"),
        "hooks": (tmp_path / "hooks.yaml", "- id: x\n"),
        "registry": (tmp_path / "server.json", json.dumps({**told, "description": "x" * 101})),
    }
    for path, text in broken.values():
        path.write_text(text, encoding="utf-8")
    questions = [{"kind": kind, "path": str(path)} for kind, path in manifests.items()]
    questions += [{"kind": kind, "path": str(path)} for kind, (path, _) in broken.items()]
    answers = ask("manifests", "manifests", questions)
    assert [answer["error"] for answer in answers] == [None] * len(answers)
    valid, refused = answers[: len(manifests)], answers[len(manifests) :]
    assert [answer["said"] for answer in valid if not answer["is_valid"]] == []
    assert [answer["is_valid"] for answer in refused] == [False] * len(refused)
