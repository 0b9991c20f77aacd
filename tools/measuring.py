"""What a machine of one's own is, and what was measured on it."""

from __future__ import annotations

from typing import Any

from planner.asked.facts import MachineQuestion
from tools.registry import tool


@tool(title="Describe this machine", read_only=True, by="planner.measuring.here")
def describe_machine(request: MachineQuestion) -> Any:
    """What the machine that Shardwise runs on is: accelerators by their drivers' programs and which of the catalogue's
    they are, links, driver, processor, memory, disk, network ports, PyTorch, and what would disturb a measurement. Use
    it for "what GPU is in this machine", "what do I have here", and before plans for "here" or "this machine"."""
