"""Each question is the `path` of a user.conf, `model` and `scenario`; the answer is what LoadGen reads from it.

A real test of a few queries follows, against a system that answers at once. Lines that LoadGen drops without a word are
refused.
"""

from __future__ import annotations

import array
import re
import tempfile
from pathlib import Path

import mlperf_loadgen as lg

KEYS = {"target_qps", "min_duration"}
SCENARIOS = {"Offline", "Server", "SingleStream"}


def checked(path: Path) -> None:
    for line in path.read_text().splitlines():
        said = line.split("#")[0].strip()
        if not said:
            continue
        found = re.fullmatch(r"(\S+)\s+=\s+\S+", said)
        parts = found[1].split(".") if found else []
        if len(parts) != 3 or parts[1] not in SCENARIOS or parts[2] not in KEYS:
            raise ValueError(f"LoadGen would drop {said!r}")


def settings_of(question: dict) -> lg.TestSettings:
    settings = lg.TestSettings()
    settings.scenario = getattr(lg.TestScenario, question["scenario"])
    settings.mode = lg.TestMode.PerformanceOnly
    if settings.FromConfig(question["path"], question["model"], question["scenario"]):
        raise ValueError("LoadGen cannot read the file")
    return settings


def answer(question: dict) -> dict:
    checked(Path(question["path"]))
    settings = settings_of(question)
    found = {
        "qps": settings.offline_expected_qps if question["scenario"] == "Offline" else settings.server_target_qps,
        "duration_ms": settings.min_duration_ms,
        "queries": settings.min_query_count,
        "tpot_ns": settings.tpot_latency,
    }
    # The same settings, made short, in a real test.
    settings.min_duration_ms, settings.max_duration_ms = 1, 2000
    settings.min_query_count, settings.max_query_count = 32, 64
    settings.server_target_qps, settings.offline_expected_qps = 500, 100
    settings.performance_sample_count_override = 32

    def issue(queries: list) -> None:
        for query in queries:
            address, length = array.array("B", [0] * 16).buffer_info()
            if settings.use_token_latencies and question["scenario"] == "Server":
                lg.FirstTokenComplete([lg.QuerySampleResponse(query.id, address, 4)])
            lg.QuerySamplesComplete([lg.QuerySampleResponse(query.id, address, length, 4)])

    system = lg.ConstructSUT(issue, lambda: None)
    samples = lg.ConstructQSL(32, 32, lambda _: None, lambda _: None)
    folder = tempfile.mkdtemp()
    output, log = lg.LogOutputSettings(), lg.LogSettings()
    output.outdir = folder
    log.log_output = output
    lg.StartTestWithLogSettings(system, samples, settings, log)
    summary = Path(folder, "mlperf_log_summary.txt").read_text()
    return found | {"summary": "MLPerf Results Summary" in summary}
