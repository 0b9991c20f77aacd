"""How long rows are that are not joined: as long as the data's, of which files say the most or nothing."""

from __future__ import annotations

from estimator.errors import PlanError
from knowledge.models.catalogue import architecture
from launchers.reading.documents import Item
from launchers.reading.findings import Findings
from launchers.reading.totals import serves

_OPEN = "rows are not packed, and no file says how long they are"


def longest_rows_of(findings: Findings, stage: str | None, unpacked: bool) -> None:
    """`unpacked`: the program joins no rows unless told."""
    packed = findings.values.get("workload.packing", getattr(findings.defaults.get("workload.packing"), "value", None))
    stated = any("workload.seq_len" in rows for rows in (findings.values, findings.defaults, findings.either))
    if findings.values.get("workload.packing") is False and not stated and not serves(findings):
        _up_to_positions(findings)
    if findings.longest or stage == "pretrain" or packed or not unpacked:
        return
    row = next((row for row in findings.read if row.field == "workload.seq_len"), None)
    if row is not None:
        findings.longest = f"{row.origin}: rows are at most {row.value} tokens and not packed"


def _up_to_positions(findings: Findings) -> None:
    """Rows have no more tokens than the model has positions."""
    row = next((row for row in findings.read if row.field == "model"), None)
    try:
        longest = architecture(findings.values["model"]).context if row is not None else None
    except (KeyError, PlanError):
        longest = None
    if row is None or longest is None or "workload.seq_len" in findings.blocked:
        findings.blocked.setdefault("workload.seq_len", _OPEN)
        return
    file, _, key = row.origin.rpartition(" ")
    item = Item(file, key, longest)
    findings.at_most("workload.seq_len", longest, item, f"{_OPEN}; the model has {longest} positions (--seq-len)")
