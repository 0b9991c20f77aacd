"""The catalogues as files: each row has a source and a date, and their document is as they are."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from knowledge.data_files import FOLDER, rows

DOCS = Path(__file__).parents[2] / "docs"
TABLES = (
    "accelerators.csv",
    "instances.csv",
    "checkpoints.csv",
    "terms.csv",
    "other_models.csv",
    "unplanned_devices.csv",
    "unplanned_models.csv",
)
DATED = {"checkpoints.csv": "date", "instances.csv": "price_date", "terms.csv": "price_date"}
_DATE = re.compile(r"20\d\d(-\d\d(-\d\d)?)?")


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_source_and_a_date(name: str) -> None:
    """The date of a row where rows have one (a price may have none, and is called undated), else that of the file."""
    remarks = [line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    column = DATED.get(name)
    assert column or any(re.search(r"20\d\d-\d\d", line) for line in remarks)
    for row in rows(name):
        assert row["source"].strip(), row
        if column:
            assert _DATE.fullmatch(row[column]) or (not row[column] and column == "price_date"), row


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("catalogue_document", DOCS / "catalogue.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_is_what_the_catalogues_say() -> None:
    assert (DOCS / "catalogue.md").read_text(encoding="utf-8") == _generator().document()
