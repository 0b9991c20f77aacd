"""What a machine of one's own is, and what was measured on it."""

from __future__ import annotations

from planner.measuring import here
from planner.measuring.here import MachineDescription, MachineQuestion
from tools.registry import tool


@tool(title="Describe this machine", read_only=True)
def describe_machine(request: MachineQuestion) -> MachineDescription:
    """What the machine that Shardwise runs on is: accelerators by their drivers' programs and which of the catalogue's
    they are, links, driver, processor, memory, disk, network ports, PyTorch, and what would disturb a measurement. Use
    it for "what GPU is in this machine", "what do I have here", and before plans for "here" or "this machine"."""
    return here.describe_machine(request)
