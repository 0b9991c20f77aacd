"""What a deployment has room for, against what engines print when they start with the same settings."""

from __future__ import annotations

from benchmarks.serving_accuracy import cache_error, cache_logs, cache_room


def test_deployments_have_the_room_that_engines_print() -> None:
    room = cache_room()
    assert room.logs == len(cache_logs()) >= 24
    assert room.median < 0.03
    assert room.ninth < 0.08
    assert room.most < 0.1


def test_room_of_another_share_is_off() -> None:
    row = next(row for row in cache_logs() if row["memory_share"] == "0.9" and row["tokens"])
    assert cache_error(row | {"memory_share": "0.7"}) < -0.15
