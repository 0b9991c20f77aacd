"""Pages of what was measured on a machine of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from estimator.units import MS_PER_S
from knowledge.figures import NONE, gib, number, percent, seconds, shown
from pages.blocks import Block, Chart, Figures, Folded, Headline, Note, Row, Text
from pages.results.basis import notes, tail
from pages.results.columns import Column, table, yes
from pages.results.matrix import MEASURED

if TYPE_CHECKING:  # each has the module of its own tool behind it
    from planner.measuring.hardware import HardwareMeasurement, MeasuredRate
    from planner.measuring.here import MachineDescription, MachineDevice, MachineHost
    from planner.measuring.serving import LoadPart, LoadSummary, ServingMeasurement
    from planner.measuring.training import RenderedBenchmark, TrainingMeasurement

_GHZ = _GIGA = 1e9
_TERA = 1e12


def machine(result: MachineDescription) -> list[Block]:
    return [
        Headline(_what(result)),
        Figures(list(_software(result)), ""),
        *_devices(result),
        Figures(list(_host(result.host)), "Host"),
        *notes("Watch out", result.warnings),
        *(
            [Note("", [f"As a cluster in plans: {_cluster(result)}, or accelerator=here"])]
            if result.plan_cluster
            else []
        ),
        Note("", [f"Asked: {', '.join(result.told_by)}."], quiet=True),
    ]


def _what(result: MachineDescription) -> str:
    names = Counter(device.name for device in result.devices)
    if not names:
        name = result.host.processor or "a processor of unknown name"
        known = f" ({result.accelerator})" if result.accelerator else ""
        return f"No accelerator with a working driver here; the processor is {name}{known}."
    named = " and ".join(f"{count} x {name}" for name, count in names.items())
    known = f", {result.accelerator} in the catalogue" if result.accelerator else ""
    return f"This machine has {named}{known}."


def _cluster(result: MachineDescription) -> str:
    return f"{result.count} x {result.accelerator}"


def _software(result: MachineDescription) -> list[Row]:
    links = ", ".join(f"{name} ({pairs} pair{'s' * (pairs > 1)})" for name, pairs in result.links.items())
    ports = ", ".join(f"{port.name} {shown('interconnect_bytes_per_s', port.bytes_per_s)}" for port in result.ports)
    torch = f"{result.torch}, computes on {result.torch_device}" if result.torch else "not installed for this Python"
    rows: list[Row] = [
        ("driver", result.driver or NONE), ("runtime", result.runtime or NONE), ("links", links or NONE),
        ("network ports", ports or NONE), ("network in plans", result.interconnect or NONE), ("PyTorch", torch),
    ]  # fmt: skip
    return [row for row in rows if row[1] != NONE]


def _devices(result: MachineDescription) -> list[Block]:
    def clock(row: MachineDevice) -> str:
        return _of(row.clock_hz and row.clock_hz / _GHZ, row.clock_limit_hz and row.clock_limit_hz / _GHZ, "GHz")

    columns: list[Column] = [
        ("device", "name"), ("in the catalogue", lambda row: row.accelerator or NONE),
        ("memory", lambda row: gib(row.memory_bytes) if row.memory_bytes else NONE),
        ("taken", lambda row: gib(row.memory_used_bytes) if row.memory_used_bytes is not None else NONE),
        ("power", lambda row: _of(row.power_w, row.power_limit_w, "W")), ("clock", clock),
        ("temperature", lambda row: f"{row.temperature_c:g} °C" if row.temperature_c is not None else NONE),
        ("PCIe", lambda row: row.pcie or NONE),
    ]  # fmt: skip
    return list(table(result.devices, columns, "Devices"))


def _of(value: float | None, limit: float | None, unit: str) -> str:
    """'68.5 of 700 W'."""
    if limit is None:
        return NONE if value is None else f"{number(value)} {unit}"
    return f"{number(limit)} {unit}" if value is None else f"{number(value)} of {number(limit)} {unit}"


def _host(host: MachineHost) -> list[Row]:
    cores = f"{host.cores} cores" if host.cores else ""
    sockets = f"{host.sockets} socket{'s' * (host.sockets > 1)}" if host.sockets else ""
    threads = f"{number(host.threads)} may be used" + (" (a container's limit)" if host.contained else "")
    disk = (
        f"{gib(host.free_disk_bytes)} of {gib(host.disk_bytes)} free"
        if host.disk_bytes and host.free_disk_bytes
        else NONE
    )
    memory = gib(host.memory_bytes) if host.memory_bytes else NONE
    free = f", {gib(host.free_memory_bytes)} free" if host.free_memory_bytes is not None else ""
    rows: list[Row] = [
        ("processor", host.processor or NONE),
        ("processors", ", ".join(part for part in (sockets, cores, threads) if part)),
        ("matrix instructions", ", ".join(host.features) or NONE),
        ("memory", memory + free),
        ("disk", disk),
        ("load", number(host.load) if host.load is not None else NONE),
        ("temperature", f"{host.temperature_c:g} °C" if host.temperature_c is not None else NONE),
        ("system", host.system),
    ]
    return [row for row in rows if row[1] != NONE]


def hardware(result: HardwareMeasurement) -> list[Block]:
    columns: list[Column] = [
        ("part", "part"), ("what", "what"), ("size", "size"), ("measured", lambda row: _rate(row, row.rate)),
        ("catalogue", lambda row: _rate(row, row.catalogue)),
        ("share", lambda row: NONE if row.share is None else percent(row.share)),
    ]  # fmt: skip
    own, sensed = result.profile, list[Row]()
    if own:
        named = f"Plans have it as {own.id}, or as here."
        kept = [f"Written to {own.file}. {named}"] if own.file else ["Not kept for plans; --keep keeps it."]
        sensed += [
            (name, f"{value:g}" if isinstance(value, float) else str(value)) for name, value in own.fields.items()
        ]
    else:
        kept = ["Too little was measured to plan with it: give it more --seconds."]
    return [
        Headline(_reached(result)),
        *table(result.best, columns, "The best of each"),
        Figures(_meanwhile(result), "The machine meanwhile"),
        *([Figures(sensed, f"Your own {own.id}")] if own else []),
        Note("", kept),
        *notes("Watch out", result.warnings),
        *notes("Not measured", result.skipped),
        *(Chart(plot) for plot in result.plots),
        Folded([*table(result.rates, columns, "All of them"), *notes("How the row was found", own.why if own else [])]),
        Note("", [f"In {result.folder}."], quiet=True),
    ]


def _reached(result: HardwareMeasurement) -> str:
    products = [row for row in result.best if row.part == "matmul"]
    copies = next((row for row in result.best if row.part == "memory" and row.what == "copy"), None)
    parts = []
    if products:
        best = max(products, key=lambda row: row.rate)
        parts.append(f"{_rate(best, best.rate)} in {best.what} matmuls")
    if copies:
        parts.append(f"{_rate(copies, copies.rate)} of memory")
    return f"{result.device} reaches {' and '.join(parts)}." if parts else f"{result.device}: nothing was measured."


def _rate(row: MeasuredRate, value: float | None) -> str:
    if value is None:
        return NONE
    flops = row.part in ("matmul", "attention")
    return f"{number(value / _TERA)} TFLOP/s" if flops else f"{number(value / _GIGA)} GB/s"


def _meanwhile(result: HardwareMeasurement) -> list[Row]:
    rows: list[Row] = [
        ("power of a device", f"{number(result.power_w)} W" if result.power_w else NONE),
        ("lowest clock", f"{number(result.lowest_clock_hz / _GHZ)} GHz" if result.lowest_clock_hz else NONE),
        ("highest temperature", f"{result.highest_temperature_c:g} °C" if result.highest_temperature_c else NONE),
        ("versions", ", ".join(f"{name} {version}" for name, version in result.versions.items()) or NONE),
    ]
    return [row for row in rows if row[1] != NONE]


def benchmark(result: RenderedBenchmark) -> list[Block]:
    fits = "" if result.fits else " It is predicted not to fit."
    return [
        Headline(f"A benchmark of {len(result.files)} files, started by {result.launch_command}.{fits}", result.fits),
        Figures([
            ("step, predicted", shown("step_s", result.predicted_step_s)),
            ("peak, predicted", gib(result.predicted_peak_bytes)),
        ]),
        *(Text(file.text, file.path) for file in result.files),
        *notes("You still have to fill in", result.needs_from_user),
        *tail(result.warnings, result.assumptions),
    ]  # fmt: skip


def training(result: TrainingMeasurement) -> list[Block]:
    columns: list[Column] = [*MEASURED, ("in interval", lambda row: yes(row.covered))]
    return [
        Headline(_outcome(result), result.outcome == "ran"),
        *table(result.figures, columns, "Predicted against measured"),
        Figures(list(_beside(result)), "The run"),
        *notes("Watch out", [*([result.problem] if result.problem else []), *result.warnings]),
        Note("", [f"shardwise measure add {result.folder} keeps it, and measure fit learns from what is kept."]),
    ]


def _count(result: TrainingMeasurement) -> str:
    return f"{result.devices} device{'s' if result.devices != 1 else ''}"


def _outcome(result: TrainingMeasurement) -> str:
    if result.outcome == "oom":
        return f"{result.model} on {_count(result)} ran out of memory."
    step = next((row for row in result.figures if row.figure == "step_s"), None)
    if step is None:
        return f"{result.model} on {_count(result)} measured nothing."
    off = f"; predicted {seconds(step.predicted)}" if step.predicted else ""
    return f"{result.model} on {_count(result)} takes {seconds(step.measured)} a step{off}."


def _beside(result: TrainingMeasurement) -> list[Row]:
    spread = NONE
    if result.step_low_s and result.step_high_s:
        spread = f"{seconds(result.step_low_s)} to {seconds(result.step_high_s)}"
    sizes = (("allocated", result.allocated_bytes), ("reserved", result.reserved_bytes))
    losses = NONE
    if result.first_loss is not None and result.last_loss is not None:
        losses = f"{number(result.first_loss)} to {number(result.last_loss)}"
    rows: list[Row] = [
        ("steps that counted", f"{result.steps} in {result.repeats} repeats"),
        ("medians of the repeats", spread),
        ("start-up", seconds(result.startup_s) if result.startup_s is not None else NONE),
        ("first step", seconds(result.first_step_s) if result.first_step_s is not None else NONE),
        *((f"peak {name}", gib(size) if size else NONE) for name, size in sizes),
        ("peak of a process in host memory", gib(result.resident_bytes) if result.resident_bytes else NONE),
        ("power of a device", f"{number(result.power_w)} W" if result.power_w else NONE),
        ("lowest clock", f"{number(result.lowest_clock_hz / _GHZ)} GHz" if result.lowest_clock_hz else NONE),
        ("highest temperature", f"{result.highest_temperature_c:g} °C" if result.highest_temperature_c else NONE),
        ("loss", losses),
        ("ran on", result.ran_on or NONE),
        ("versions", ", ".join(f"{name} {version}" for name, version in result.versions.items()) or NONE),
    ]
    return [row for row in rows if row[1] != NONE]


def serving(result: ServingMeasurement) -> list[Block]:
    whole, steady, *others = result.parts
    share = f", {steady.unanswered} failed" if steady.unanswered else ""
    columns: list[Column] = [
        ("latency", lambda row: row.latency.upper()),
        *((name, _milliseconds(f"{name}_ms")) for name in ("mean", "p50", "p90", "p95", "p99")),
        ("predicted mean", _milliseconds("predicted_ms")),
    ]
    rows: list[Row] = [
        ("load", result.load),
        ("requests in the steady part", f"{steady.requests} of {whole.requests}{share}"),
        ("seconds, all", seconds(whole.seconds)),
        ("output tokens/s, all", number(whole.output_tokens_per_s)),
        (
            "tokens of a request",
            f"{number(steady.mean_input_tokens or 0)} in, {number(steady.mean_output_tokens or 0)} out",
        ),
    ]
    doubts = [] if result.tokens_counted else ["the server reports no token counts: each streamed piece counts as one"]
    return [
        Headline(
            f"{result.served_model} answers {number(steady.requests_per_s)} requests and "
            f"{number(steady.output_tokens_per_s)} output tokens a second."
        ),
        *table(steady.latencies, columns, "Steady part"),
        *table(whole.latencies, columns, "All requests"),
        *[block for part in others for block in table(part.latencies, columns, _named(part))],
        Figures(rows, "The load"),
        *([Figures(_as_mlperf(result.summary), "As MLPerf reports it")] if result.summary else []),
        *([Figures([(name, f"{value:.2f}") for name, value in result.rouge.items()], "Against the references")]
          if result.rouge else []),
        *notes("Watch out", [*doubts, *result.problems]),
    ]  # fmt: skip


def _named(part: LoadPart) -> str:
    if part.part == "warm-up":
        return f"Warm-up, {part.requests} request{'s' if part.requests != 1 else ''}"
    return f"{part.part}, {number(part.output_tokens_per_s)} output tokens/s"


def _as_mlperf(summary: LoadSummary) -> list[Row]:
    shares = (("99th percentile of the first token", summary.ttft_p99_ms), ("of tokens after it", summary.tpot_p99_ms))
    return [
        ("scenario", summary.scenario),
        ("samples/s", number(summary.samples_per_s)),
        ("tokens/s", number(summary.tokens_per_s)),
        *((name, seconds(value / MS_PER_S)) for name, value in shares if value is not None),
        ("result", "VALID" if summary.valid else f"INVALID: {'; '.join(summary.why_not)}"),
    ]


def _milliseconds(name: str) -> Callable[[Any], str]:
    def cell(row: Any) -> str:
        value = getattr(row, name)
        return NONE if value is None else seconds(value / MS_PER_S)

    return cell
