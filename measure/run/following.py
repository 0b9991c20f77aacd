"""Starts a benchmark from its folder, follows it to its end, and watches the machine meanwhile.

The program adds a line to events.jsonl after each step; power, clocks and temperature are sampled beside it, and kept
in samples.jsonl. What is started is ended with us: nothing of it stays behind.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimator.errors import PlanError
from knowledge.own.files import open_regular
from knowledge.own.mappings import json_value
from measure.logs.benchmark import MEASURED
from measure.logs.faults import why_it_ended
from measure.machine import amd, nvidia
from measure.machine.devices import DeviceGroup

EVENTS, SAMPLES, LOG = "events.jsonl", "samples.jsonl", "run.log"
_LOOK_S, _SAMPLE_S, _END_S = 0.3, 1.0, 10.0
_LAST_LINES, _END_BYTES = 3, 1 << 16
_MOST_BYTES = 64 * 2**20
# As our program prints it, behind what ssh or Kubernetes puts before it.
_TOLD = re.compile(r"shardwise: (\{.*\})\s*$", re.MULTILINE)
Watch = Callable[[Mapping[str, Any]], None]
Sensor = Callable[[], "DeviceGroup | None"]


def sensors() -> DeviceGroup | None:
    """The machine's devices as they are now, where a driver's program says so."""
    return nvidia.devices() or amd.devices()


def run_to_end(
    folder: Path,
    command: str,
    watch: Watch = lambda event: None,
    sensor: Sensor | None = sensors,
    environment: Mapping[str, str] | None = None,
    most_s: float = math.inf,
    *,
    elsewhere: bool = False,
) -> int | None:
    """Runs `command` of `bash` in `folder`, its output in run.log, and returns its exit code; None where it was ended
    after `most_s`. `watch` is told each event. `elsewhere`: it runs on other machines, and what it tells is taken from
    what it prints. Whatever stops us stops the run, its children and all."""
    for name in (EVENTS, SAMPLES, MEASURED):
        (folder / name).unlink(missing_ok=True)
    with (folder / LOG).open("ab") as log:
        printed = _Printed(folder, log.tell()) if elsewhere else None
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=None if environment is None else dict(environment),
        )
    over = threading.Event()
    sampler = threading.Thread(target=_sample, args=(folder / SAMPLES, sensor, over), daemon=True) if sensor else None
    if sampler:
        sampler.start()
    try:
        offset, end = 0, time.monotonic() + most_s
        while (code := process.poll()) is None and time.monotonic() < end:
            if printed:
                printed.take()
            offset = _new_events(folder / EVENTS, offset, watch)
            time.sleep(_LOOK_S)
        if printed:
            printed.take()
        _new_events(folder / EVENTS, offset, watch)
        return code
    finally:
        over.set()
        stop(process)
        if sampler:
            sampler.join(_END_S)


class _Printed:
    """What a program on another machine prints of its events and its result, put into the files that it would have
    here. A line may come again, where the output is asked for as a whole."""

    def __init__(self, folder: Path, offset: int) -> None:
        self.folder, self.offset = folder, offset
        self.known: set[str] = set()

    def take(self) -> None:
        with contextlib.suppress(OSError, PlanError), open_regular(self.folder / LOG, "folder") as log:
            log.seek(self.offset)
            text = log.read(_MOST_BYTES)
            whole = text.rfind(b"\n") + 1
            self.offset += whole
            for told in _TOLD.findall(text[:whole].decode(errors="replace")):
                if told not in self.known:
                    self.known.add(told)
                    self._put(told)

    def _put(self, told: str) -> None:
        with contextlib.suppress(ValueError):
            event = json_value(told)
            if event.get("event") == "measured" and isinstance(event.get("result"), dict):
                (self.folder / MEASURED).write_text(json.dumps(event["result"], indent=1) + "\n", encoding="utf-8")
            else:
                with (self.folder / EVENTS).open("a", encoding="utf-8") as file:
                    file.write(f"{told}\n")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a process that was started as the head of a session, and all of that."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)


def last_lines(folder: Path) -> str:
    """Why the run ended, where what it printed says so, else the end of that: torchrun's own account of which rank
    failed stands behind what failed there."""
    with contextlib.suppress(OSError, PlanError), open_regular(folder / LOG, "folder") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - _END_BYTES))
        text = log.read().decode(errors="replace")
        return why_it_ended(text) or "\n".join(text.splitlines()[-_LAST_LINES:])
    return ""


def _new_events(path: Path, offset: int, watch: Watch) -> int:
    """Tells the whole lines behind `offset`, and where the next begins."""
    with contextlib.suppress(OSError, PlanError), open_regular(path, "folder") as file:
        file.seek(offset)
        text = file.read(_MOST_BYTES)
        whole = text.rfind(b"\n") + 1
        for line in text[:whole].splitlines():
            with contextlib.suppress(ValueError):
                watch(json_value(line.decode(errors="replace")))
        return offset + whole
    return offset


def _sample(path: Path, sensor: Sensor, over: threading.Event) -> None:
    """A line a second of what the sensors say, until `over`; none where there is no sensor."""
    while not over.wait(_SAMPLE_S):
        group = sensor()
        if group is None:
            return
        devices = [(row.power_w, row.clock_hz, row.temperature_c, row.utilisation) for row in group.devices]
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"at": time.time(), "devices": devices}) + "\n")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; a line that was cut off is left out."""
    rows: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, PlanError), open_regular(path, "folder") as file:
        for line in file.read(_MOST_BYTES).decode(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                row = json_value(line)
                if isinstance(row, dict):
                    rows.append(row)
    return rows


@dataclass(frozen=True)
class Sensed:
    """Of one device, over the seconds in which steps counted: mean power, lowest clock, highest temperature."""

    watts: float | None
    hertz: float | None
    celsius: float | None


def sampled(folder: Path) -> Sensed:
    """What the sensors said of a run; None where they say nothing."""
    spans: list[list[float]] = []
    for event in lines_of(folder / EVENTS):
        if event.get("event") == "repeat":
            spans.append([float(event["at"]), float("inf")])
        elif event.get("event") == "repeated" and spans:
            spans[-1][1] = float(event["at"])
    rows = [
        device
        for sample in lines_of(folder / SAMPLES)
        if any(start <= sample.get("at", 0.0) <= end for start, end in spans)
        for device in sample.get("devices", ())
    ]
    watts, hertz, celsius = ([row[place] for row in rows if row[place] is not None] for place in range(3))
    mean = sum(watts) / len(watts) if watts else None
    return Sensed(mean, min(hertz, default=None), max(celsius, default=None))
