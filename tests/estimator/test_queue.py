"""Runs on one cluster never take more than it has, wait for what they must, and delay nothing that goes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from estimator.money.queue import QueuedRun, starts

RUNS = st.lists(
    st.builds(
        QueuedRun, nodes=st.integers(1, 5), hours=st.floats(0.1, 100.0), priority=st.integers(0, 3).map(float),
        ready_h=st.floats(0.0, 50.0),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@given(RUNS, st.integers(1, 6))
def test_no_moment_has_more_than_the_cluster_has(runs: list[QueuedRun], nodes: int) -> None:
    begins = starts(runs, nodes)
    for run, start in zip(runs, begins, strict=True):
        assert (start is None) == (run.nodes > nodes)
        if start is None:
            continue
        assert start >= run.ready_h
        together = [other.nodes for other, begun in zip(runs, begins, strict=True)
                    if begun is not None and begun <= start < begun + other.hours]  # fmt: skip
        assert sum(together) <= nodes


@given(RUNS, st.integers(5, 6))
def test_what_goes_first_is_as_early_as_without_the_rest(runs: list[QueuedRun], nodes: int) -> None:
    order = sorted(range(len(runs)), key=lambda place: (-runs[place].priority, place))
    begins = starts(runs, nodes)
    for taken in range(1, len(order)):
        kept = sorted(order[:taken])
        alone = starts([runs[place] for place in kept], nodes)
        assert alone == [begins[place] for place in kept]


def test_a_small_run_goes_beside_and_one_that_waits_comes_after() -> None:
    runs = [QueuedRun(3, 10.0), QueuedRun(4, 5.0), QueuedRun(1, 8.0), QueuedRun(1, 1.0, after=(1,))]
    assert starts(runs, 4) == [0.0, 10.0, 0.0, 15.0]
    assert starts([QueuedRun(1, 1.0, after=(1,)), QueuedRun(1, 1.0, after=(0,))], 4) == [None, None]
