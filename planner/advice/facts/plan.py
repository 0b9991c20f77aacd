"""Facts of plans of both kinds: the complete plan, its model and its machine."""

from __future__ import annotations

from typing import Any

from estimator.machine.hardware import Machine
from estimator.model.architecture import Architecture
from estimator.plan.schema import Plan
from planner.fields import leaves

Facts = dict[str, Any]
"""By name: conditions and texts of the playbook name them."""


def plan_facts(plan: Plan) -> Facts:
    """Each field of the complete plan under its path."""
    return dict(leaves(plan.model_dump(mode="json", exclude={"name", "model", "overrides"})))


def model_facts(architecture: Architecture) -> Facts:
    mixers = sorted({block.mixer for block in architecture.blocks})
    return {
        "model.id": architecture.id,
        "model.parameters": architecture.parameters,
        "model.active_parameters": architecture.active_parameters,
        "model.layers": architecture.layers,
        "model.hidden": architecture.hidden,
        "model.vocab": architecture.vocab,
        "model.context": architecture.context or None,
        "model.experts": architecture.experts,
        "model.heads": architecture.heads,
        "model.kv_heads": architecture.kv_heads,
        "model.mixers": mixers,
        "model.head_share": architecture.vocab * architecture.hidden / architecture.active_parameters,
    }


def machine_facts(machine: Machine) -> Facts:
    device, kinds = machine.accelerator, machine.accelerator.peak_flops
    several = machine.nodes > 1
    return {
        "accelerator.id": device.id,
        "accelerator.name": device.name,
        "accelerator.vendor": device.vendor,
        "accelerator.family": device.family,
        "accelerator.memory_bytes": device.memory_bytes,
        "accelerator.precisions": sorted(kind for kind, rate in kinds.items() if rate),
        "accelerator.link": device.scaleup_link.partition(" ")[0],
        "accelerator.topology": device.topology,
        "machine.count": machine.count,
        "machine.nodes": machine.nodes,
        "machine.per_node": machine.per_node,
        "machine.fast_domain": machine.fast_domain,
        "machine.network": machine.network.name if several else None,
        "machine.network_kind": machine.network.name.partition("-")[0] if several else None,
        "machine.network_bytes_per_s_per_device": (
            machine.network.bandwidth_per_node / machine.per_node if several else None
        ),
        "machine.network_gbit_per_s_per_device": (
            8e-9 * machine.network.bandwidth_per_node / machine.per_node if several else None
        ),
    }


def plain(name: str) -> str:
    return name.replace("-parallel", "_parallel").replace(" ", "_")
