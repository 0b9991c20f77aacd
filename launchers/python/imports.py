"""What a source imports from sources of its own set, as if it stood in it: the functions, the dataclasses of arguments
and the constants that it names, and what these use. Nothing is run or imported."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator

from estimator.errors import PlanError
from launchers.python.source import parsed
from launchers.python.values import FUNCTIONS

Source = Callable[[str], str | None]
"""The text of a source of the set by its path ("pkg/args.py"); None where it is not given."""


def no_source(_path: str) -> str | None:
    """Of a set that has none."""
    return None


_DEEPEST = 4
_MOST = 32
# Packages whose own sources say nothing of one run, also where a copy of them lies beside it.
_LIBRARIES = re.compile(
    r"(transformers|trl|peft|accelerate|deepspeed|torch|datasets|unsloth|optimum|swift|ray|numpy|vllm|sglang|verl|wandb|"
    r"bitsandbytes|megatron|llamafactory|openrlhf|torchtune|torchtitan|axolotl|liger_kernel|modelscope)(\.|$)"
)


def _imports(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, str, str]]:
    """Each import as its module's path and the name that is taken of it ('': the module)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            rows = [(part.name, "") for part in node.names]
        elif isinstance(node, ast.ImportFrom):
            rows = [(node.module or "", part.name) for part in node.names]
        else:
            continue
        for module, name in rows:
            whole = module or name
            if whole.partition(".")[0] not in sys.stdlib_module_names and not _LIBRARIES.match(whole):
                yield node, module.replace(".", "/"), name


def with_imports(tree: ast.Module, source: Source) -> ast.Module:
    """`tree` behind what it imports of the set, whose lines are those of the import."""
    budget = [_MOST]
    added: list[ast.stmt] = []
    for node, module, name in _imports(tree):
        if isinstance(node, ast.ImportFrom) and name != "*":
            added += _taken(module, name, source, node.lineno, 0, budget)
    own = {statement.name for statement in tree.body if isinstance(statement, (*FUNCTIONS, ast.ClassDef))}
    added = [part for part in added if getattr(part, "name", None) not in own]
    return ast.Module([*_each_once(added), *tree.body], tree.type_ignores) if added else tree


def _taken(module: str, name: str, source: Source, line: int, depth: int, budget: list[int]) -> Iterator[ast.stmt]:
    """The definition of `name` in a module, and what it uses of that module and of others."""
    text = next((text for path in (f"{module}.py", f"{module}/__init__.py") if module and (text := source(path))), None)
    if text is None or depth > _DEEPEST or budget[0] <= 0:
        return
    try:
        tree = parsed(f"{module}.py", text)
    except PlanError:
        return
    defined, waiting, seen = _defined(tree), [name], {name}
    imported = {other: path for node, path, other in _imports(tree) if isinstance(node, ast.ImportFrom)}
    while waiting:
        wanted = waiting.pop()
        for statement in defined.get(wanted, ()):
            budget[0] -= 1
            if budget[0] < 0:
                return
            new = {part.id for part in ast.walk(statement) if isinstance(part, ast.Name)} - seen
            seen |= new
            waiting += sorted(new & {*defined, *imported})
            for part in ast.walk(statement):
                if hasattr(part, "lineno"):
                    part.lineno = line  # type: ignore[attr-defined]
            yield statement
        if wanted in imported and wanted not in defined:
            yield from _taken(imported[wanted], wanted, source, line, depth + 1, budget)


def _defined(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """What a module says of each name at its top: functions, classes of settings, and constants."""
    rows: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        names: list[ast.expr | str] = []
        if isinstance(statement, FUNCTIONS) or (isinstance(statement, ast.ClassDef) and _is_of_arguments(statement)):
            names = [statement.name]
        elif isinstance(statement, ast.Assign):
            names = [*statement.targets]
        elif isinstance(statement, ast.AnnAssign):
            names = [statement.target]
        for name in names:
            if isinstance(name, str | ast.Name):
                rows.setdefault(name if isinstance(name, str) else name.id, []).append(statement)
    return rows


def _is_of_arguments(node: ast.ClassDef) -> bool:
    """Whether a class holds settings: its fields say what they are where nothing else does."""
    decorated = any("dataclass" in ast.unparse(part) for part in node.decorator_list)
    return decorated or any(re.search(r"(Arguments|Config|NamedTuple|BaseModel)$", ast.unparse(b)) for b in node.bases)


def _each_once(statements: list[ast.stmt]) -> list[ast.stmt]:
    return list({ast.dump(part): part for part in statements}.values())
