"""NeMo RL's YAML, of either backend. Words: fields.yaml."""

from __future__ import annotations

from dataclasses import replace

from launchers.reading.documents import Keys
from launchers.reading.findings import Findings, as_number
from launchers.reading.formats import Format
from launchers.reading.mapped import mapped_format, read_mapped

_COLOCATED = "policy.generation.colocated"


# What its examples give for steps and passes that nothing ends.
_ENDLESS = 100_000


def read(keys: Keys, findings: Findings) -> None:
    _own_engine(keys, findings)
    for stage in ("sft", "dpo", "grpo", "ppo", "rm"):
        for name in (f"{stage}.max_num_steps", f"{stage}.max_num_epochs"):
            number = as_number(keys.look(name))
            if number is not None and not 0 < number < _ENDLESS and name in keys:
                findings.put("workload.stage", stage, keys.items[name])
                findings.leave(keys.items.pop(name), "ends no run")
    read_mapped("nemo_rl", keys, findings)


def _own_engine(keys: Keys, findings: Findings) -> None:
    """Takes the devices of an engine of its own off those of the cluster, which are of both."""
    if keys.look(f"{_COLOCATED}.enabled") is not False:
        return
    nodes, item = as_number(keys.look("cluster.num_nodes")), keys.items.get(f"{_COLOCATED}.resources.num_nodes")
    taken = as_number(item.value) if item is not None else None
    if nodes is not None and item is not None and taken and nodes > taken:
        keys.take("cluster.num_nodes")
        findings.put("nodes", int(nodes - taken), replace(item, value=int(nodes - taken)))
        return
    devices, item = (
        as_number(keys.look("cluster.gpus_per_node")),
        keys.items.get(f"{_COLOCATED}.resources.gpus_per_node"),
    )
    taken = as_number(item.value) if item is not None else None
    if devices is not None and item is not None and taken and devices > taken and nodes in (None, 1):
        keys.take("cluster.gpus_per_node")
        findings.put("per_node", int(devices - taken), replace(item, value=int(devices - taken)))
    else:
        engine = keys.items[f"{_COLOCATED}.enabled"]
        findings.block("cluster.count", engine, "gives engines some of the devices; give the training's own")


_FORM = mapped_format("nemo_rl")
FORMATS = (Format(_FORM.name, _FORM.score, read, _FORM.kinds),)
