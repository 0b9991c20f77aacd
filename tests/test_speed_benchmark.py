"""The speed benchmark runs, and its searches stay within what it is there to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pace import within

from benchmarks.speed import SEARCHES, SIZES
from estimator.plan.schema import Plan
from estimator.search.layouts import search_whole
from knowledge.jobs.training import job_of

ROOT = Path(__file__).parent.parent


def test_whole_spaces_of_large_clusters_are_searched_in_about_a_second() -> None:
    """Processor time, as other processes may hold this one up; three times what a plain core needs."""
    for plan in SEARCHES.values():
        job = job_of(Plan.parse(plan))
        with within(3.0):
            found = search_whole(job)
        assert found.valid > 10_000
        assert found.estimates.fits.any()


_SCALING = """
import json
from benchmarks.speed import SEARCHES, SIZES, scaling_rows
from estimator.plan.schema import Plan
from knowledge.jobs.training import job_of
print(json.dumps(scaling_rows(job_of(Plan.parse(SEARCHES["DeepSeek-V3 on 2048 H100"])), SIZES[:2])))
"""


def test_batches_take_time_in_proportion_and_little_memory() -> None:
    """In a process of its own: the most memory of this one may be another test's."""
    done = subprocess.run([sys.executable, "-c", _SCALING], capture_output=True, text=True, check=True, cwd=ROOT)
    rows = json.loads(done.stdout)
    assert [row["layouts"] for row in rows] == list(SIZES[:2])
    assert rows[1]["seconds"] < 30 * rows[0]["seconds"]
    assert rows[1]["peak_rss_mib"] < 1280
