"""Holds files by which others know us against their published schemas: {"kind": action, hooks, registry or skill,
"path": the file}. Nothing is fetched: the packages bring the schemas along."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import skillsaw

PROGRAMS = Path(sys.executable).parent
SCHEMAS = Path(skillsaw.__file__).parent / "schemas" / "mcp_registry"


def answer(question):
    path, kind = question["path"], question["kind"]
    commands = {
        "action": ["check-jsonschema", "--builtin-schema", "vendor.github-actions", path],
        "hooks": ["pre-commit", "validate-manifest", path],
        "registry": ["check-jsonschema", "--schemafile", str(SCHEMAS / "v2025_12_11" / "server.schema.json"), path],
        "skill": ["skillsaw", "lint", "--strict", path],
    }
    program, *words = commands[kind]
    done = subprocess.run([PROGRAMS / program, *words], capture_output=True, text=True, check=False)
    return {"is_valid": done.returncode == 0, "said": (done.stdout + done.stderr)[-500:]}
