"""The catalogues as files: each row has a source and a date, and their document is as they are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from knowledge.data_files import FOLDER, rows
from knowledge.models.known import checkpoints, models

DOCS = Path(__file__).parents[2] / "docs"
TABLES = sorted(path.name for path in FOLDER.glob("*.csv"))
DATES = ("date", "price_date")
_DATE = re.compile(r"20\d\d(-\d\d(-\d\d)?)?")


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_source_and_a_date(name: str) -> None:
    """The date of a row where rows have one (a price may have none, and is called undated), else that of the file; a
    table that one source gave names it above its rows."""
    remarks = [line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    table = list(rows(name))
    column = next((column for column in DATES if column in table[0]), None)
    assert column or any(re.search(r"20\d\d-\d\d", line) for line in remarks)
    assert "source" in table[0] or "Source: " in " ".join(remarks)
    for row in table:
        assert row.get("source", name).strip(), row
        if column:
            assert _DATE.match(row[column]) or (not row[column] and column == "price_date"), row


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.yaml")), ids=lambda path: path.name)
def test_no_key_of_a_file_hides_another(path: Path) -> None:
    """YAML keeps the last of two equal keys and says nothing: A.X-K2 had two entries, and lost the first."""

    def keys(node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            names = [key.value for key, _ in node.value]
            assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]
        for child in node.value if not isinstance(node, yaml.ScalarNode) else ():
            for each in child if isinstance(child, tuple) else (child,):
                keys(each)

    keys(yaml.compose(path.read_text(encoding="utf-8")))


def test_whether_a_download_is_gated_has_a_source_or_is_not_known() -> None:
    assert {facts.gated for facts in models()} == {True, False, None}
    for facts in (*models(), *checkpoints()):
        known = facts.gated is not None or facts.usually_gated is not None
        assert bool(facts.gate_source) == known, facts.id
        assert facts.gated is None or facts.usually_gated is None  # what is known of itself needs no rule of its owner
    mirrors = [facts for facts in checkpoints() if not _is_by_the_same(facts.id, facts.shares)]
    assert mirrors
    assert not any(facts.gated for facts in mirrors)  # another's copy has no gate of the original


def _is_by_the_same(id: str, other: str) -> bool:
    return id.partition("/")[0].casefold() == other.partition("/")[0].casefold()


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("catalogue_document", DOCS / "catalogue.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_is_what_the_catalogues_say() -> None:
    assert (DOCS / "catalogue.md").read_text(encoding="utf-8") == _generator().document()
