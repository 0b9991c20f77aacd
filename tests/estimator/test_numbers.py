"""Numbers of the estimator stand under a name with their source beside it, but for structural ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "estimator"
# Counts, halves and guards against division by nothing. Units are in estimator/units.py; 3 and 4 count what a formula
# has as many of: projections of a gated MLP, vectors of a norm, stages of ZeRO.
STRUCTURAL = {0, 1, -1, 2, 3, 4, 0.5, 1e-9}
# A field of a plan has its bounds and its description in one call; a cache and a search in words have their size.
DECLARED = {"Field", "lru_cache", "get_close_matches", "nearest"}
MODULES = sorted(FOLDER.rglob("*.py"))


def numbers(node: ast.AST) -> Iterator[ast.Constant]:
    """Numbers under a node that are not structural, but for those of calls that declare what they are."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DECLARED:
        return
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in STRUCTURAL:
        yield node
    for child in ast.iter_child_nodes(node):
        yield from numbers(child)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_number_has_a_name_and_its_source_beside_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines, body = text.splitlines(), ast.parse(text).body
    for place, node in enumerate(body):
        for number in numbers(node):
            where = f"{path.relative_to(FOLDER)}:{number.lineno}: {number.value}"
            assert isinstance(node, ast.Assign | ast.AnnAssign), f"{where} stands in no named constant"
            after = body[place + 1] if place + 1 < len(body) else None
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            before = node.lineno - 2
            while before >= 0 and lines[before].strip() and not lines[before].startswith("#"):
                before -= 1
            own = any("# " in line for line in lines[node.lineno - 1 : node.end_lineno])
            assert told or own or lines[before].startswith("#"), f"{where} has no source beside it"
