"""The catalogues as files: each row has a source and a date, and their document is as they are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from knowledge.data_files import FOLDER, rows

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


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("catalogue_document", DOCS / "catalogue.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_is_what_the_catalogues_say() -> None:
    assert (DOCS / "catalogue.md").read_text(encoding="utf-8") == _generator().document()
