"""What the catalogues know of a model or an accelerator."""

from __future__ import annotations

from planner import facts as planner_facts
from planner.facts import HardwareQuestion, ModelQuestion
from planner.results import HardwareDescription, ModelDescription
from tools.registry import tool


@tool(title="Describe a model", read_only=True)
def describe_model(request: ModelQuestion) -> ModelDescription:
    """Exact parameter count and dimensions of a model from the catalogue or any Hugging Face config.json: active
    parameters, layers, heads, experts, context, KV cache per token and the tensor-parallel sizes that divide it."""
    return planner_facts.describe_model(request)


@tool(title="Describe an accelerator", read_only=True)
def describe_hardware(request: HardwareQuestion) -> HardwareDescription:
    """Memory, bandwidth, dense peak rates, links, node size and prices of an accelerator in the catalogue, and what so
    many of it cost to rent, buy or power."""
    return planner_facts.describe_hardware(request)
