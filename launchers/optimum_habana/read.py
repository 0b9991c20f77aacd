"""Optimum Habana's arguments in a Python script: what differs from TRL's own. Words: fields.yaml."""

from __future__ import annotations

from launchers.reading.documents import Keys
from launchers.reading.findings import Findings, inverted
from launchers.tables import table

_HOW = ("use_habana", "use_lazy_mode", "use_hpu_graphs_for_training", "pad_max", "gaudi_config_name")


def settle(keys: Keys, findings: Findings) -> None:
    """Takes what TRL and the Trainer have not, before these are read."""
    findings.word(
        "workload.attention", keys.take("attn_implementation"), inverted(table("optimum_habana/fields")["attention"])
    )
    findings.default("workload.attention", "eager", "attn_implementation is eager unless given")
    for name in _HOW:
        if (item := keys.take(name)) is not None:
            findings.leave(item, "says how Gaudi runs it, and nothing of the plan")
    for field in ("layout.tp", "layout.pp", "layout.cp"):
        findings.default(field, 1, "DeepSpeed on Gaudi splits states alone here")
