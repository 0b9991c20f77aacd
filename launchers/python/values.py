"""What names of a Python source stand for, told from its text: nothing is run or imported.

Known are literals, what is made of them by arithmetic, joining and format strings, names that are given one such value,
parameters by their defaults or by the calls of their function, parsed arguments and fields of dataclasses by theirs.
Anything else is `UNKNOWN`. Of a path whose folder is not known the known end stands for it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from launchers.reading.findings import as_truth
from launchers.shell.scripts import UNKNOWN

# Of a call that asks the device: bf16 = is_bfloat16_supported().
BF16 = "where the device has it"
_LONGEST = 10_000
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}
# Calls that give back what they are given, as far as a config goes.
_PLAIN = ("str", "Path", "pathlib.Path", "PurePath", "os.path.abspath", "os.path.expanduser", "os.fspath")
_NUMBERS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def constants(tree: ast.Module) -> dict[str, Any]:
    """Names that are given one value and nothing else; attributes of parsed arguments and dataclasses as '.name'."""
    values: dict[str, Any] = {}
    again: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]:
                    if name in values:
                        again.add(name)
                    simple = isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign)
                    values[name] = value_of(node.value, values) if simple and node.value is not None else UNKNOWN  # type: ignore[union-attr]
    values = {name: UNKNOWN if name in again else value for name, value in values.items()}
    values |= _defaults(tree, values)
    values |= {name: value for name, value in _parameters(tree, values).items() if name not in values}
    # What was made of arguments and parameters, now that they are known.
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name not in again and _is_unknown(values.get(name)):
                values[name] = value_of(node.value, values)
    return values


def _is_unknown(value: Any) -> bool:
    return isinstance(value, str) and UNKNOWN in value


def _defaults(tree: ast.Module, names: dict[str, Any]) -> dict[str, Any]:
    """What attributes of parsed arguments and of dataclasses are unless the command says otherwise, as '.name'; names
    with several defaults are not known."""
    values: dict[str, Any] = {}
    rows: list[tuple[str, Any]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node).endswith(".add_argument"):
            flags = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            words = {word.arg: value_of(word.value, names) for word in node.keywords if word.arg}
            flag = next((flag for flag in flags if flag.startswith("--")), None)
            if flag is not None:
                usual = False if words.get("action") == "store_true" else words.get("default", UNKNOWN)
                rows.append((str(words.get("dest", flag.lstrip("-").replace("-", "_"))), usual))
        elif isinstance(node, ast.ClassDef):
            fields = [
                part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
            rows += [(part.target.id, _field(part.value, names)) for part in fields
                     if part.value is not None and isinstance(part.target, ast.Name)]  # fmt: skip
    for name, value in rows:
        values[f".{name}"] = value if values.get(f".{name}", value) == value else UNKNOWN
    return values


def _field(node: ast.expr, names: dict[str, Any]) -> Any:
    """A field's default, also in dataclasses' own words: field(default=…)."""
    if isinstance(node, ast.Call) and called(node).rpartition(".")[2] in ("field", "Field"):
        usual = next((word.value for word in node.keywords if word.arg == "default"), None)
        usual = usual if usual is not None else next(iter(node.args), None)
        return UNKNOWN if usual is None else value_of(usual, names)
    return value_of(node, names)


def _parameters(tree: ast.Module, names: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the source's own functions: what the calls give them, or their default; several are not known."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)}
    arguments: dict[tuple[str, str], list[Any]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (function := functions.get(called(node))) is None:
            continue
        places = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        passed = dict(zip(places, node.args, strict=False)) | {
            word.arg: word.value for word in node.keywords if word.arg
        }
        for name, value in passed.items():
            arguments.setdefault((function.name, name), []).append(value_of(value, names))
    values: dict[str, Any] = {}
    for function in functions.values():
        for name, usual in _usual(function):
            known = [value for value in arguments.get((function.name, name), ()) if not _is_unknown(value)]
            if not known and usual is not None:
                known = [value_of(usual, names)]
            if not known:
                continue
            same = all(value == known[0] for value in known) and values.get(name, known[0]) == known[0]
            values[name] = known[0] if same else UNKNOWN
    return values


def _usual(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """A function's parameters with their defaults."""
    places = [*function.args.posonlyargs, *function.args.args]
    without = len(places) - len(function.args.defaults)
    for at, argument in enumerate(places):
        yield argument.arg, function.args.defaults[at - without] if at >= without else None
    for argument, usual in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        yield argument.arg, usual


def value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What an expression comes to; UNKNOWN for anything that is not told from literals."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, ast.Attribute):
        is_type = isinstance(node.value, ast.Name) and node.value.id == "torch"
        return node.attr if is_type else names.get(f".{node.attr}", UNKNOWN)
    if isinstance(node, ast.List | ast.Tuple):
        return [value_of(part, names) for part in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(value_of(key, names)): value_of(value, names) for key, value in pairs if key is not None}
    if isinstance(node, ast.JoinedStr):
        parts = [value_of(part.value if isinstance(part, ast.FormattedValue) else part, names) for part in node.values]
        return "".join(map(str, parts))[:_LONGEST]
    return _made(node, names)


def _made(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What is made of other values: by operators, by looking up, and by calls."""
    if isinstance(node, ast.UnaryOp):
        inner = value_of(node.operand, names)
        if isinstance(node.op, ast.Not):
            known = as_truth(inner)
            return inner if inner == BF16 else UNKNOWN if known is None else not known
        is_number = isinstance(inner, int | float) and not isinstance(inner, bool)
        return -inner if isinstance(node.op, ast.USub) and is_number else UNKNOWN
    if isinstance(node, ast.BinOp):
        return _combined(type(node.op), value_of(node.left, names), value_of(node.right, names))
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        values = [value_of(part, names) for part in node.values]
        return next((value for value in values if _is_unknown(value) or value), values[-1])
    if isinstance(node, ast.IfExp):
        test = value_of(node.test, names)
        taken, other = value_of(node.body, names), value_of(node.orelse, names)
        if taken == other or not (_is_unknown(test) or isinstance(test, list | dict)):
            return taken if taken == other or test else other
        return UNKNOWN
    if isinstance(node, ast.Subscript):
        whole, key = value_of(node.value, names), value_of(node.slice, names)
        return whole.get(key, UNKNOWN) if isinstance(whole, dict) and isinstance(key, str) else UNKNOWN
    return _returned(node, names) if isinstance(node, ast.Call) else UNKNOWN


def _combined(kind: type, left: Any, right: Any) -> Any:
    """Numbers by arithmetic, text by joining; of a path whose folder is not known its end."""
    if kind is ast.Div and isinstance(right, str) and isinstance(left, str):
        return right if _is_unknown(left) else f"{left}/{right}"[:_LONGEST]
    texts = isinstance(left, str) and isinstance(right, str) and kind is ast.Add
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (left, right))
    if kind not in _OPERATORS or not (texts or numbers):
        return UNKNOWN
    try:
        value = _OPERATORS[kind](left, right)
    except (ZeroDivisionError, OverflowError):
        return UNKNOWN
    too_much = len(value) > _LONGEST if isinstance(value, str) else abs(value) > 1e15
    return UNKNOWN if too_much else value


def _returned(node: ast.Call, names: Mapping[str, Any]) -> Any:
    name = called(node)
    values = [value_of(part, names) for part in node.args if not isinstance(part, ast.Starred)]
    if name.endswith(("is_bfloat16_supported", "is_bf16_supported")):
        return BF16
    if name in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
        return values[1] if len(values) > 1 else UNKNOWN
    if name == "os.path.join" and values:
        ends = [value for value in values if isinstance(value, str) and not _is_unknown(value)]
        return "/".join(ends) if ends and ends[-1] == values[-1] else UNKNOWN
    if name in _PLAIN and len(values) == 1:
        return str(values[0]) if isinstance(values[0], str) else UNKNOWN
    if name in _NUMBERS and len(values) == 1 and not _is_unknown(values[0]):
        try:
            return _NUMBERS[name](values[0])
        except (TypeError, ValueError, OverflowError):
            return UNKNOWN
    if name == "dict" and not node.args:
        return {word.arg: value_of(word.value, names) for word in node.keywords if word.arg}
    return UNKNOWN


def called(node: ast.expr) -> str:
    """The name of what is called, with its parts; '?' for one that is no name."""
    func = node.func if isinstance(node, ast.Call) else node
    parts: list[str] = []
    while isinstance(func, ast.Attribute):
        parts.append(func.attr)
        func = func.value
    return ".".join([func.id if isinstance(func, ast.Name) else "?", *reversed(parts)])
