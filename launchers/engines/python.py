"""Engines that Python starts by itself, as vLLM's LLM(...) and SGLang's Engine(...): what the call gives them.

A source is parsed and never run or imported. Names are those of vllm/__init__.py (0.11) and sglang/__init__.py (0.5).
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from launchers.engines.sglang import read as sglang
from launchers.engines.vllm import read as vllm
from launchers.python.names import constants, scopes
from launchers.python.source import parsed
from launchers.python.values import called, taken, value_of
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings

_CALLS: dict[str, dict[str, tuple[str, Callable[[Keys, Findings], None]]]] = {
    "vllm": dict.fromkeys(("LLM", "AsyncLLM", "EngineArgs", "AsyncEngineArgs"), ("model", vllm.read)),
    "sglang": dict.fromkeys(("Engine", "ServerArgs"), ("model_path", sglang.read)),
}


def read_python(name: str, text: str, findings: Findings) -> str | None:
    """What the source starts; None where it starts no engine that is known here."""
    tree = parsed(name, text)
    imported = {
        module.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    }
    engine = next((engine for engine in _CALLS if engine in imported), None)
    if engine is None:
        return None
    names = constants(tree)
    inside = scopes(tree, names)
    for node in taken(tree, names):
        if not isinstance(node, ast.Call) or (entry := _CALLS[engine].get(called(node).rpartition(".")[2])) is None:
            continue
        first, read = entry
        keys, known = Keys(name), inside.get(id(node), names)
        if node.args and not isinstance(node.args[0], ast.Starred):
            keys.put(first, value_of(node.args[0], known), node.lineno)
        for word in node.keywords:
            if word.arg is not None:
                keys.put(word.arg, value_of(word.value, known), node.lineno)
        read(keys, findings)
        return f"Python script that starts {'vLLM' if engine == 'vllm' else 'SGLang'}"
    return None
