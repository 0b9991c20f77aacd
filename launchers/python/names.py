"""What names of a Python source stand for, and what it is given: the options of a command, and files that it opens."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchers.python.imports import Source, no_source
from launchers.python.values import (
    FUNCTIONS,
    LOAD,
    assigned,
    assigned_in,
    called,
    is_unknown,
    usual_parameters,
    value_of,
)
from launchers.shell.scripts import UNKNOWN

_PASSES = 3
# The Trainer's switch without which its scripts do nothing: a source that is given alone is there to train.
_SWITCHED_ON = "do_train"


def _nothing(_path: str) -> Any:
    return UNKNOWN


@dataclass
class Invocation:
    """What a source is started with: `options` by name, `words` that belong to none, variables of the environment,
    `load`, which gives the data of a config by its path, and `source`, which gives the text of one that it imports."""

    options: Mapping[str, Any] = field(default_factory=dict)
    words: Sequence[Any] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    load: Callable[[str], Any] = _nothing
    source: Source = no_source


def constants(tree: ast.Module, start: Invocation | None = None) -> dict[str, Any]:
    """Names that are given one value and nothing else. Attributes of parsed arguments and dataclasses stand as
    '.name', functions as 'name()', variables of the environment as '$NAME'."""
    start = start or Invocation()
    names: dict[str, Any] = {LOAD: start.load, "sys.argv": ["", *start.words]}
    names |= {f"${name}": value for name, value in start.environment.items()}
    names |= {f"{node.name}()": node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
    own = assigned(((node, False) for node in ast.walk(tree)), names)
    names |= own
    names |= _arguments(tree, names, start)
    names |= {name: value for name, value in _parameters(tree, names, start).items() if name not in own}
    for _ in range(_PASSES):
        # What was made of arguments, parameters and files, now that they are known, in the branches that are taken.
        names |= assigned_in(tree, names)
        names |= {name: value for name, value in _parameters(tree, names, start).items() if name not in own}
    return names


def scopes(tree: ast.Module, names: Mapping[str, Any], start: Invocation | None = None) -> dict[int, Mapping[str, Any]]:
    """The names that hold inside each function's body, by the identity of its nodes; elsewhere `names` do."""
    inside: dict[int, Mapping[str, Any]] = {}
    for _ in range(_PASSES):
        # What one function hands on to the next is known once its own names are.
        passed, before = _passed(tree, names, start or Invocation(), inside), inside
        inside = {}
        for function in ast.walk(tree):
            if isinstance(function, FUNCTIONS):
                own = {name: value for (of, name), value in passed.items() if of == function.name}
                own |= {name: UNKNOWN for name, _ in usual_parameters(function) if name not in own}
                within = ChainMap(own, inside.get(id(function), names))  # type: ignore[arg-type]
                own |= assigned_in(function, within)
                inside |= {id(node): within for node in ast.walk(function)}
        if not before and not inside:
            break
    return inside


def _arguments(tree: ast.Module, names: Mapping[str, Any], start: Invocation) -> dict[str, Any]:
    """What attributes of parsed arguments and of dataclasses are, as '.name': as the command says, else their default;
    names with several defaults are not known."""
    values: dict[str, Any] = {}
    rows: list[tuple[str, Any]] = []
    words = list(start.words)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node).endswith(".add_argument"):
            flags = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            settings = {word.arg: value_of(word.value, names) for word in node.keywords if word.arg}
            flag = next((flag for flag in flags if flag.startswith("--")), None)
            if flag is None and flags and not flags[0].startswith("-"):
                rows.append((flags[0], words.pop(0) if words else settings.get("default", UNKNOWN)))
            if flag is not None:
                name = flag.lstrip("-").replace("-", "_")
                usual = settings.get("action") == "store_false" if "action" in settings else settings.get("default")
                usual = settings.get("default", usual) if settings.get("required") is not True else UNKNOWN
                usual = UNKNOWN if name == _SWITCHED_ON and not start.options else usual
                rows.append((str(settings.get("dest", name)), start.options.get(name, usual)))
        elif isinstance(node, ast.ClassDef):
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            rows += [(part.target.id, start.options.get(part.target.id, _field(part.value, names))) for part in fields
                     if part.value is not None and isinstance(part.target, ast.Name)]  # fmt: skip
    # Where another file declares arguments, those that the command gives are known.
    declared = {name for name, _ in rows}
    for name, value in (*rows, *(row for row in start.options.items() if row[0] not in declared)):
        values[f".{name}"] = value if values.get(f".{name}", value) == value else UNKNOWN
    return values


def _field(node: ast.expr | None, names: Mapping[str, Any]) -> Any:
    """A field's default, also in dataclasses' own words: field(default=…)."""
    if isinstance(node, ast.Call) and called(node).rpartition(".")[2] in ("field", "Field"):
        usual = next((word.value for word in node.keywords if word.arg == "default"), None)
        made = next((word.value for word in node.keywords if word.arg == "default_factory"), None)
        usual = made.body if isinstance(made, ast.Lambda) else usual
        usual = usual if usual is not None else next(iter(node.args), None)
        return UNKNOWN if usual is None else value_of(usual, names)
    return UNKNOWN if node is None else value_of(node, names)


def _parameters(tree: ast.Module, names: Mapping[str, Any], start: Invocation) -> dict[str, Any]:
    """Parameters of all functions as one: those of which several have other values are not known."""
    values: dict[str, Any] = {}
    for (_, name), value in _passed(tree, names, start).items():
        values[name] = value if values.get(name, value) == value else UNKNOWN
    return values


def _passed(
    tree: ast.Module, names: Mapping[str, Any], start: Invocation, inside: Mapping[int, Mapping[str, Any]] | None = None
) -> dict[tuple[str, str], Any]:
    """Parameters of the source's own functions: what the calls give them, or their default; several are not known.
    Those of a function that fire starts are options of the command. `inside`: names that hold where a call stands."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
    arguments: dict[tuple[str, str], list[Any]] = {}
    fired: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if called(node) in ("fire.Fire", "Fire", "typer.run"):
            fired |= {part.id for part in node.args if isinstance(part, ast.Name)}
        here = (inside or {}).get(id(node), names)
        for function, value in _on_workers(node, functions, here):
            arguments.setdefault((function.name, function.args.args[0].arg), []).append(value)
        if (function := functions.get(called(node))) is None:
            continue
        places = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        passed = dict(zip(places, node.args, strict=False)) | {
            word.arg: word.value for word in node.keywords if word.arg
        }
        for name, value in passed.items():
            arguments.setdefault((function.name, name), []).append(value_of(value, here))
    values: dict[tuple[str, str], Any] = {}
    for function in functions.values():
        for name, usual in usual_parameters(function):
            known = [value for value in arguments.get((function.name, name), ()) if not is_unknown(value)]
            if function.name in fired and name in start.options:
                known = [start.options[name]]
            if not known and usual is not None:
                known = [value_of(usual, names)]
            if known:
                same = all(value == known[0] for value in known)
                values[(function.name, name)] = known[0] if same else UNKNOWN
    return values


def _on_workers(
    call: ast.Call, functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef], names: Mapping[str, Any]
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, Any]]:
    """The function that Ray Train starts on its workers, with the config that it gives each."""
    words = {word.arg: word.value for word in call.keywords if word.arg}
    loop = words.get("train_loop_per_worker", call.args[0] if call.args else None)
    function = functions.get(loop.id) if isinstance(loop, ast.Name) else None
    config = words.get("train_loop_config")
    if called(call).endswith("Trainer") and config is not None and function is not None and function.args.args:
        yield function, value_of(config, names)
