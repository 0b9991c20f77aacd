"""Which library holds a plan's data-parallel shards in the Hugging Face world: the framework and the ZeRO stage say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from estimator.plan.schema import Plan

Backend = Literal["none", "ddp", "deepspeed", "fsdp1", "fsdp2"]
_FSDP: dict[str, Backend] = {"fsdp1": "fsdp1", "fsdp2": "fsdp2", "axolotl": "fsdp2", "pytorch": "fsdp2"}


def backend_of(plan: Plan) -> Backend:
    """Stages 2 and 3 are FSDP without and with resharding after the forward pass, where the framework is FSDP's; stages
    of all others are DeepSpeed's. Whole replicas are DDP, and one device needs none."""
    stage, layout = plan.layout.zero_stage or 0, plan.layout
    framework = plan.training.framework
    if framework in ("deepspeed", "optimum-habana"):
        # Its engine holds 16-bit weights with fp32 copies in every stage.
        return "deepspeed"
    if framework in _FSDP and (stage >= 2 or (layout.cp or 1) > 1):
        return _FSDP[framework]
    if stage:
        return "deepspeed" if framework not in ("fsdp1", "fsdp2", "pytorch") else _FSDP[framework]
    return "none" if plan.cluster.count == 1 else "ddp"


def uses_fsdp(plan: Plan) -> bool:
    return backend_of(plan) in ("fsdp1", "fsdp2")
