"""Each question is a `trainer` of OpenRLHF and its `words`; the answer is what its own parser reads and checks of them.

The trainers' parsers stand below `if __name__ == "__main__"` in modules that import torch, Ray and vLLM. That part is
run by itself, up to where it trains.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

PACKAGE = Path(sys.prefix) / "wheels" / "openrlhf"


def _hierarchize():
    """openrlhf.utils.config without openrlhf.utils, which imports torch."""
    spec = importlib.util.spec_from_file_location("openrlhf_config", PACKAGE / "utils" / "config.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.hierarchize


def _parsing(trainer: str) -> ast.Module:
    """What the module does when it is started, without its import of openrlhf."""
    tree = ast.parse((PACKAGE / "cli" / f"{trainer}.py").read_text())
    (main,) = (part for part in tree.body if isinstance(part, ast.If) and "__main__" in ast.unparse(part.test))
    body = [part for part in main.body if not isinstance(part, ast.ImportFrom)]
    assert ast.unparse(body[-1]) == "train(args)", "it no longer ends with its training"
    return ast.Module(body, type_ignores=[])


def _flat(part: SimpleNamespace, before: str = "") -> dict:
    values = {}
    for name, value in vars(part).items():
        values |= _flat(value, f"{before}{name}.") if isinstance(value, SimpleNamespace) else {before + name: value}
    return values


def answer(question: dict) -> dict:
    trained: list[SimpleNamespace] = []
    names = {"argparse": argparse, "os": os, "datetime": datetime, "hierarchize": _hierarchize()}
    sys.argv = [question["trainer"], *question["words"]]
    exec(compile(_parsing(question["trainer"]), question["trainer"], "exec"), names | {"train": trained.append})
    (args,) = trained
    return {"read": _flat(args)}
