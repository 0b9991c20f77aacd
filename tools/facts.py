"""What the catalogues know of a model or an accelerator."""

from __future__ import annotations

from typing import Any

from planner.asked.facts import HardwareQuestion, ModelQuestion
from tools.registry import tool


@tool(title="Describe a model", read_only=True, by="planner.facts")
def describe_model(request: ModelQuestion) -> Any:
    """Exact parameter count and dimensions of a model from the catalogue or any Hugging Face config.json: active
    parameters, layers, heads, experts, context, KV cache per token and the tensor-parallel sizes that divide it."""


@tool(title="Describe an accelerator", read_only=True, by="planner.facts")
def describe_hardware(request: HardwareQuestion) -> Any:
    """Memory, bandwidth, dense peak rates, links, node size and prices of an accelerator in the catalogue, and what so
    many of it cost to rent, buy or power, on estimate_cost's terms of owning."""
