"""`shardwise check --each`: every launch config of a repository, and against a revision what a change makes of it.

Exit code 1 says that one will not fit or run; against a revision, that one does so newly.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from pages.results.repository import OPEN, CheckedConfig, repository, status
from planner.files.importing import ImportedConfig
from tui.commands.plan import show
from tui.config_files import Folders, Revision, WorkingTree, read_whole
from tui.jsonout import write_json
from tui.progress import working


def run(arguments: argparse.Namespace, options: Mapping[str, Any]) -> int:
    tree = WorkingTree()
    before: dict[str, ImportedConfig] = {}
    with working("check"):
        now = _checked(_paths(arguments.files, tree), tree, options)
        if arguments.against:
            revision = Revision(arguments.against)
            before = _checked(_paths(arguments.files, revision), revision, options, now)
        names = list(dict.fromkeys([*now, *before]))
        rows = [CheckedConfig(name, now.get(name), before.get(name)) for name in names]
    if arguments.json:
        write_json({"configs": [_plain(row) for row in rows]})
    else:
        show(repository(rows, arguments.against), arguments)
    return int(any(row.fails and not row.failed_before for row in rows))


def _paths(names: Iterable[str], tree: Folders) -> list[Path]:
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_absolute() and path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
        paths += tree.configs(path) if path.is_dir() else [path]
    return list(dict.fromkeys(paths))


def _checked(
    paths: Iterable[Path], tree: Folders, options: Mapping[str, Any], wanted: Mapping[str, Any] | None = None
) -> dict[str, ImportedConfig]:
    """Configs by name, without those that another names, and without files of other kinds."""
    results: dict[str, ImportedConfig] = {}
    for path in paths:
        if tree.is_file(path) and (result := _read(path, tree, options)) is not None:
            results[str(path)] = result
    parts = {part for name, result in results.items() for part in result.formats if part != name}
    return {name: result for name, result in results.items() if name not in parts or (wanted and name in wanted)}


def _read(path: Path, tree: Folders, options: Mapping[str, Any]) -> ImportedConfig | None:
    """What a config runs, None of a file that is none. The options say only what it leaves open."""
    try:
        files = {str(path): tree.text(path)}
        result = read_whole(files, {}, tree)
        return read_whole(files, options, tree) if result.missing and options else result
    except PlanError:
        return None


def _plain(row: CheckedConfig) -> dict[str, Any]:
    return {
        "config": row.name,
        "status": row.status,
        "before": status(row.before) if row.before else None,
        "changes": row.changes,
        "remedies": [remedy.what for remedy in row.now.remedies] if row.now else [],
        "result": row.now.model_dump(mode="json") if row.now and row.status != OPEN else None,
    }
