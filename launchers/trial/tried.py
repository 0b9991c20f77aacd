"""A run that is tried or looked at: on random tokens, under a profiler."""

from __future__ import annotations

from dataclasses import replace

from launchers.launch.of_plan import Launch
from launchers.pieces import Piece, Start
from launchers.trial import profiling, synthetic


def tried(launch: Launch) -> Launch:
    """The launch with what its site says of data and profiler made part of it. Raises PlanError."""
    profiling.check(launch)
    launch = synthetic.placed(launch)
    if launch.kind == "inference":
        return launch
    return replace(launch, before_start=synthetic.around(launch) + profiling.around(launch))


def beside(launch: Launch, start: Start) -> Piece:
    """What such a run has besides the program's own files."""
    if launch.kind == "inference":
        return Piece(())
    needs = (*synthetic.needs(launch), *profiling.needs(launch))
    return Piece(synthetic.generated(launch, start.command), needs)
