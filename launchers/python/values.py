"""What names of a Python source stand for, told from its text: nothing is run or imported.

Known are literals, what is made of them by arithmetic, joining and format strings, names that are given one such value,
parameters by their defaults or by the calls of their function, parsed arguments and fields of dataclasses by theirs.
Anything else is `UNKNOWN`. Of a path whose folder is not known the known end stands for it.
"""

from __future__ import annotations

import ast
import operator
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
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
_TEXTS = ("lower", "upper", "strip")
# Arguments of a mapping that is not known: f(**settings).
SPREAD = "**"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# The name of what gives a config's data by its path, among the names of a source.
LOAD = "load a config"
# Calls that read a config: of a file that is open, of its text, or of its path.
_LOADERS = ("yaml.safe_load", "yaml.load", "yaml.full_load", "safe_load", "json.load", "json.loads", "tomllib.load",
            "tomllib.loads", "toml.load", "OmegaConf.load")  # fmt: skip
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right, ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
_DEPTH = "calls inside calls"
_DEEPEST = 3
_LARGEST_FUNCTION = 600  # parts


@dataclass(frozen=True)
class Opened:
    """A file that a source opens."""

    path: str


def is_unknown(value: Any) -> bool:
    return isinstance(value, str) and UNKNOWN in value


def walked(tree: ast.AST, names: Mapping[str, Any]) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes of a tree in their order, without the branches that a test of known values does not take; whether a
    node is certain to be come to where its function is."""
    left = [(tree, True)]
    while left:
        node, certain = left.pop()
        yield node, certain
        test = value_of(node.test, names) if isinstance(node, ast.If | ast.IfExp) else UNKNOWN
        if isinstance(node, ast.If | ast.IfExp) and not (is_unknown(test) or test == BF16 or isinstance(test, Opened)):
            branch = node.body if test else node.orelse
            left += [(part, certain) for part in reversed(branch if isinstance(branch, list) else [branch])]
        else:
            certain = certain and not isinstance(node, ast.If | ast.For | ast.While | ast.Try)
            left += [(part, certain) for part in reversed(list(ast.iter_child_nodes(node)))]


def taken(tree: ast.AST, names: Mapping[str, Any]) -> Iterator[ast.AST]:
    return (node for node, _ in walked(tree, names))


def assigned_in(tree: ast.AST, known: Mapping[str, Any]) -> dict[str, Any]:
    """What assignments give names in the branches that are taken, by what the names before them are."""
    values: dict[str, Any] = {}
    return assigned(walked(tree, ChainMap(values, known)), known, values)  # type: ignore[arg-type]


def assigned(
    nodes: Iterable[tuple[ast.AST, bool]], known: Mapping[str, Any], values: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What assignments give names; one that is given several values is not known. `values`: where they are kept."""
    values = {} if values is None else values
    again: set[str] = set()
    names = ChainMap(values, known)  # type: ignore[arg-type]
    for node, certain in nodes:
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    _give(values, again, item.optional_vars.id, value_of(item.context_expr, names))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            _update(node.value, names, certain)
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.NamedExpr):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript | ast.Attribute):
                _put(target, node, values, names, certain)
                continue
            if isinstance(target, ast.Tuple) and isinstance(node, ast.Assign):
                _unpack(target, value_of(node.value, names), values, again)
                continue
            simple = isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign)
            for name in [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]:
                source = node.value if simple and not isinstance(node, ast.For) else None
                value = UNKNOWN if source is None else value_of(source, names)
                _give(values, again, name, value)
    return {name: UNKNOWN if name in again else value for name, value in values.items()}


def _unpack(target: ast.Tuple, whole: Any, values: dict[str, Any], again: set[str]) -> None:
    """model, tokenizer, cfg = …: each its own where all of them are told."""
    parts = whole if isinstance(whole, list) and len(whole) == len(target.elts) else [UNKNOWN] * len(target.elts)
    for element, value in zip(target.elts, parts, strict=True):
        for name in [part.id for part in ast.walk(element) if isinstance(part, ast.Name)]:
            _give(values, again, name, value if isinstance(element, ast.Name) else UNKNOWN)


def _give(values: dict[str, Any], again: set[str], name: str, value: Any) -> None:
    if name in values and not (value == values[name] and not is_unknown(value)):
        again.add(name)
    values[name] = value


def _put(
    target: ast.Subscript | ast.Attribute,
    node: ast.AST,
    values: dict[str, Any],
    names: Mapping[str, Any],
    certain: bool,
) -> None:
    """cfg["key"] = value, args.key = value and os.environ["KEY"] = value; what stands there is known no more where it
    may be so or not."""
    whole = value_of(target.value, names)
    value = value_of(node.value, names) if isinstance(node, ast.Assign) else UNKNOWN
    if isinstance(target, ast.Subscript) and called(target.value) == "os.environ":
        values[f"${value_of(target.slice, names)}"] = value if certain else UNKNOWN
    if isinstance(whole, dict):
        key = target.attr if isinstance(target, ast.Attribute) else str(value_of(target.slice, names))
        whole[key] = value if certain or whole.get(key, value) == value else UNKNOWN
    elif isinstance(target, ast.Attribute) and called(target.value) != "self":
        key = f".{target.attr}"
        if key in names:
            values[key] = value if names[key] == value else UNKNOWN


def _update(call: ast.Call, names: Mapping[str, Any], certain: bool) -> None:
    """cfg.update(more): keys that are not known stand as one that is not."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "update":
        return
    whole = value_of(call.func.value, names)
    if isinstance(whole, dict):
        words = dict(arguments_of(call, names))
        more = words.pop("0", {})
        more = {**(more if isinstance(more, dict) else {UNKNOWN: UNKNOWN}), **words}
        whole |= more if certain else dict.fromkeys(more, UNKNOWN)


def usual_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """A function's parameters with their defaults."""
    places = [*function.args.posonlyargs, *function.args.args]
    without = len(places) - len(function.args.defaults)
    for at, argument in enumerate(places):
        yield argument.arg, function.args.defaults[at - without] if at >= without else None
    for argument, usual in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        yield argument.arg, usual


@lru_cache(maxsize=4096)
def _gives_back(function: ast.AST) -> bool:
    """Whether a function gives back anything, and is not of the size of a program: what that gives is not told."""
    parts = list(ast.walk(function))
    return len(parts) < _LARGEST_FUNCTION and any(isinstance(p, ast.Return) and p.value is not None for p in parts)


def _called_own(function: ast.AST, call: ast.Call, names: Mapping[str, Any]) -> Any:
    """What a function of the source gives back for a call: the value of its only return."""
    depth = names.get(_DEPTH, 0)
    if not isinstance(function, FUNCTIONS) or depth >= _DEEPEST or not _gives_back(function):
        return UNKNOWN
    places = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    inside = {name: value_of(usual, names) for name, usual in usual_parameters(function) if usual is not None}
    inside |= {name: value_of(value, names) for name, value in zip(places, call.args, strict=False)}
    inside |= {word.arg: value_of(word.value, names) for word in call.keywords if word.arg}
    inside[_DEPTH] = depth + 1
    within = ChainMap(inside, names)  # type: ignore[arg-type]
    inside |= assigned_in(function, within)
    values = [value_of(part.value, within) for part in taken(function, within)
              if isinstance(part, ast.Return) and part.value is not None]  # fmt: skip
    return values[0] if values and all(value == values[0] for value in values) else UNKNOWN


def value_of(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What an expression comes to; UNKNOWN for anything that is not told from literals."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            return node.attr
        if called(node) in names:
            return names[called(node)]
        whole = value_of(node.value, names)
        return whole.get(node.attr, UNKNOWN) if isinstance(whole, dict) else names.get(f".{node.attr}", UNKNOWN)
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
    if isinstance(node, ast.BoolOp):
        values = [value_of(part, names) for part in node.values]
        if isinstance(node.op, ast.Or):
            return next((value for value in values if is_unknown(value) or value), values[-1])
        # One that is off decides, whatever the others are.
        off = [value for value in values if not is_unknown(value) and not value]
        return off[0] if off else next(filter(is_unknown, values), values[-1])
    if isinstance(node, ast.IfExp):
        test = value_of(node.test, names)
        taken, other = value_of(node.body, names), value_of(node.orelse, names)
        if taken == other or not (is_unknown(test) or isinstance(test, list | dict)):
            return taken if taken == other or test else other
        return UNKNOWN
    if isinstance(node, ast.Subscript):
        return _looked_up(node, names)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = value_of(node.left, names), value_of(node.comparators[0], names)
        compare = _COMPARISONS.get(type(node.ops[0]))
        try:
            return UNKNOWN if compare is None or is_unknown(left) or is_unknown(right) else compare(left, right)
        except TypeError:
            return UNKNOWN
    return _returned(node, names) if isinstance(node, ast.Call) else UNKNOWN


def _looked_up(node: ast.Subscript, names: Mapping[str, Any]) -> Any:
    if called(node.value) == "os.environ":
        return names.get(f"${value_of(node.slice, names)}", UNKNOWN)
    whole, key = value_of(node.value, names), value_of(node.slice, names)
    if isinstance(whole, dict):
        return whole.get(str(key), UNKNOWN)
    if isinstance(whole, list) and type(key) is int and -len(whole) <= key < len(whole):
        return whole[key]
    return UNKNOWN


def _combined(kind: type, left: Any, right: Any) -> Any:
    """Numbers by arithmetic, text by joining; of a path whose folder is not known its end."""
    if kind is ast.Div and isinstance(right, str) and isinstance(left, str):
        return right if is_unknown(left) else f"{left}/{right}"[:_LONGEST]
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
    if name == "torch.cuda.is_available":
        # A plan is of devices.
        return True
    if name in ("os.environ.get", "os.getenv", "environ.get", "getenv") and values:
        return names.get(f"${values[0]}", values[1] if len(values) > 1 else UNKNOWN)
    if name in ("open", "io.open") and values:
        return Opened(str(values[0]))
    if name in _LOADERS and values:
        return _loaded(values[0], names)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "open", "read", "read_text", "expanduser"):
        return _asked(node.func, values, names)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _TEXTS and not values:
        whole = value_of(node.func.value, names)
        return getattr(whole, node.func.attr)() if isinstance(whole, str) and not is_unknown(whole) else UNKNOWN
    if f"{name}()" in names:
        return _called_own(names[f"{name}()"], node, names)
    if name == "os.path.join" and values:
        ends = [value for value in values if isinstance(value, str) and not is_unknown(value)]
        return "/".join(ends) if ends and ends[-1] == values[-1] else UNKNOWN
    if name in _PLAIN and len(values) == 1:
        return str(values[0]) if isinstance(values[0], str) else UNKNOWN
    if name in _NUMBERS and len(values) == 1 and not is_unknown(values[0]):
        try:
            return _NUMBERS[name](values[0])
        except (TypeError, ValueError, OverflowError):
            return UNKNOWN
    if name == "dict" and (not values or isinstance(values[0], dict)):
        return {
            **(values[0] if values else {}),
            **{key: value for key, value in arguments_of(node, names) if key != "0"},
        }
    return UNKNOWN


def _asked(function: ast.Attribute, values: list[Any], names: Mapping[str, Any]) -> Any:
    """What a mapping or a path is asked for: cfg.get("lora", {}), Path(name).open()."""
    whole = value_of(function.value, names)
    if function.attr == "get":
        if isinstance(whole, dict) and values:
            return whole.get(str(values[0]), values[1] if len(values) > 1 else None)
        return UNKNOWN
    if function.attr == "expanduser" or isinstance(whole, Opened):
        return whole
    return Opened(whole) if isinstance(whole, str) and not is_unknown(whole) else UNKNOWN


def _loaded(value: Any, names: Mapping[str, Any]) -> Any:
    path = value.path if isinstance(value, Opened) else value
    return names[LOAD](path) if LOAD in names and isinstance(path, str) and not is_unknown(path) else UNKNOWN


def called(node: ast.expr) -> str:
    """The name of what is called, with its parts; '?' for one that is no name."""
    func = node.func if isinstance(node, ast.Call) else node
    parts: list[str] = []
    while isinstance(func, ast.Attribute):
        parts.append(func.attr)
        func = func.value
    return ".".join([func.id if isinstance(func, ast.Name) else "?", *reversed(parts)])


def arguments_of(node: ast.Call, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values of a call's arguments; the first one without a name is called 0. Those of a mapping that is
    not known stand as SPREAD."""
    if node.args and not isinstance(node.args[0], ast.Starred):
        yield "0", value_of(node.args[0], names)
    for word in node.keywords:
        if word.arg is None:
            spread = value_of(word.value, names)
            yield from spread.items() if isinstance(spread, dict) else [(SPREAD, UNKNOWN)]
        else:
            yield word.arg, value_of(word.value, names)
