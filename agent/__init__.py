"""The agent: a graph that thinks, calls tools, asks before writing, checks its figures. `agent.session` is its face."""
