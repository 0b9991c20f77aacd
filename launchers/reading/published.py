"""Configs that a program ships and that a set names without giving them (data/published.yaml)."""

from __future__ import annotations

from launchers.accelerate import read as accelerate
from launchers.deepspeed import read as deepspeed
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings
from launchers.tables import table


def read_published(findings: Findings) -> None:
    """Reads those among the files that are named and not given, as their program ships them."""
    for path in list(findings.refers):
        rows = table("data/published").items()
        config = next((row for name, row in rows if path == name or path.endswith("/" + name)), None)
        if config is None:
            continue
        keys = Keys(path)
        for key, value in config.items():
            keys.put(key, value)
        (deepspeed if path.endswith(".json") else accelerate).read(keys, findings)
        findings.warn(f"{path} is not given, and is taken for what its program ships under that name")
        findings.formats.setdefault(path, "config that its program ships")
        del findings.refers[path]
