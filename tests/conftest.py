"""Settings of the whole suite: property tests draw the same examples on every machine and have no clock."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "shardwise", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shardwise")
