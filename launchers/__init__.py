"""From a complete Plan to the files that start it, and back: training configs, engine commands, scheduler jobs.

A target is one folder and one row in `launchers.targets`; `launchers.render` writes, `launchers.reading.sets` reads.
Nothing here estimates: the figures in a file's heading come from the prediction that the caller passes. What a target
cannot say is refused with a PlanError that names what can (`launchers.rules`), never bent into a different plan.
"""
