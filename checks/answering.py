"""Asks a script of checks/programs, with the Python of its program: `python -P checks/answering.py NAME`.

Reads a JSON list of questions and prints the list of answers as its last line. A script has `answer(question)`, which
gives what its program reads; what it raises is the answer's `error`. What programs print themselves goes nowhere, but
for the end of what one says when it exits.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def silent() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


def script(name: str) -> ModuleType:
    """The script under a name of its own: that of its program must stay the program's."""
    spec = importlib.util.spec_from_file_location(f"asked_{name}", Path(__file__).parent / "programs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def answered(asked: ModuleType, question: dict[str, Any]) -> dict[str, Any]:
    with silent() as said:
        try:
            return {"error": None, **asked.answer(question)}
        except SystemExit as end:
            return {"error": f"exit {end.code}: {said.getvalue().strip()[-300:]}"}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    questions = json.load(sys.stdin)
    with silent() as said:
        try:
            asked = script(sys.argv[1])
        except BaseException:
            print(said.getvalue(), file=sys.__stderr__)
            raise
    answers = [answered(asked, question) for question in questions]
    # Libraries written in C print to the same place.
    print("\n" + json.dumps(answers), flush=True)
    # Some programs leave threads behind that would not end.
    os._exit(0)


main()
