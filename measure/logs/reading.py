"""Reads whatever a run left behind: a log, a tracker's folder, a results file, or a folder of these."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from estimator.errors import PlanError
from knowledge.own import files as own_files
from knowledge.own.files import open_regular
from measure.history import exchange
from measure.history.run import MeasuredRun
from measure.logs import benchmark, documents, mlflow, sampled, served, tensorboard, wandb
from measure.logs.assembling import LATE, assembled
from measure.logs.facts import HeaderFacts
from measure.logs.faults import why_it_ended
from measure.logs.lines import bars_of, columns_of
from measure.logs.lines import rows_of as steps_of
from measure.logs.mlperf import plan_of, rows_of
from measure.logs.scan import Scan, scanned

_FIELD = "path"
_MOST_FILES = 500
_DEEPEST = 6
_MOST_SHARED = 64_000_000
_END_BYTES, _MOST_SAMPLED_BYTES = 1 << 16, 256 * 2**20
_TEXTS = (".log", ".out", ".txt", ".err", ".stdout", ".stderr")
KINDS = (
    "logs of Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed, Primus, NeMo, DeepSpeed, the HF Trainer (LlamaFactory, "
    "TRL, Axolotl, Unsloth, ms-swift), torchtitan, torchtune, MaxText, verl, Lightning, NeMo AutoModel, nanotron, "
    "litgpt, nanoGPT, Composer, MLPerf, and others that number their steps and tell a loss",
    "TensorBoard event files, wandb and MLflow folders, mlflow.db, trainer_state.json, metrics as JSONL or CSV, "
    "TPrimat results; folders of measure training",
    "CSV of nvidia-smi --query-gpu and rocm-smi --showmeminfo vram",
    "results of vllm bench serve, sglang.bench_serving, trtllm-bench, GuideLLM and MLPerf LoadGen",
)


def read(path: Path) -> list[MeasuredRun]:
    """The runs that stand at a path, the one with the most to say first. Raises PlanError where there are none."""
    if not path.exists():
        raise PlanError(_FIELD, f"there is no {path}")
    if path.name == benchmark.MEASURED and benchmark.is_run(path.parent):
        path = path.parent
    if path.suffix in exchange.ENDS and path.is_file() and (runs := _shared(path)):
        return runs
    files = list(_files(path)) if path.is_dir() else [path]
    runs = [run for file in files for run in _runs(file, alone=file == path)]
    if not runs:
        raise PlanError(_FIELD, f"nothing in {path} was read as a run", list(KINDS))
    return sorted(runs, key=_says, reverse=True)


def _shared(path: Path) -> list[MeasuredRun]:
    """The runs of a file that `measure export` wrote, in its order; none of any other."""
    try:
        text = own_files.read_text(path, _FIELD, _MOST_SHARED)
    except PlanError:
        return []
    return exchange.read(text) if exchange.is_written(text) else []


def read_text(text: str, name: str = "text") -> MeasuredRun:
    """The run of a log that was pasted. Raises PlanError where it holds none."""
    run = sampled.run_in(text, name) if sampled.is_sampled(text) else None
    if run is None:
        run = _of_stream(io.BytesIO(text.encode(errors="replace")), name)
    if run is None:
        run = next(iter(served.runs_in(text, name)), None)
    if run is None:
        raise PlanError("text", "nothing in it was read as a run", list(KINDS))
    return run


def _end_of(stream: BinaryIO, scan: Scan) -> str:
    """The last lines of what was read, behind all but the last steps: what stands before them ended nothing."""
    begins = [lines[-1 - LATE][0] for lines in (scan.rows, scan.bars) if len(lines) > LATE]
    stream.seek(max(0, stream.tell() - _END_BYTES, *begins))
    return stream.read().decode(errors="replace")


# What no person begins a line with: a program's banner, its logger's file or its time.
_OF_A_PROGRAM = re.compile(
    r"\s*(?:\*{3,} .+ \*{3,}\s*$|-{8,} .+ -{8,}\s*$|\[[A-Z]+\|[\w.]+:\d+\] |"
    r"(?:\[[\w.-]+\]:? ?){0,2}\[?20\d\d-\d\d-\d\d[ T]\d\d:)"
)


def is_log(text: str) -> bool:
    """Whether a text holds lines of steps, the settings that a program lists before them, that memory ran out, or what
    a load generator measured; a single line also where a program begins it so."""
    if "\n" not in text and _OF_A_PROGRAM.match(text):
        return True
    stream = io.BytesIO(text.encode(errors="replace"))
    return sampled.is_sampled(text) or _of_stream(stream, "") is not None or bool(served.runs_in(text, ""))


def log_span(lines: Sequence[str]) -> tuple[int, int] | None:
    """(First line, line behind the last) of the log in a message: lines of steps, and what a program prints before and
    behind them, up to somebody's own words. None where there is none."""
    if not is_log("\n".join(lines)):
        return None
    sure = [at for at, line in enumerate(lines) if not _asks(line) and (_is_step(line) or is_log(line))]
    # Whoever has said something before a log may have said nothing behind it, and the other way round.
    last = len(lines) - 1
    begins = int(last in sure or bool(_PRINTED.match(lines[last])))
    ends = last - _is_printed(lines[0], inside=True)

    def printed(at: int) -> bool:
        return _is_printed(lines[at], inside=begins <= at <= ends)

    sure = sure or [at for at in range(len(lines)) if printed(at)]
    if not sure:
        return None
    start, end = sure[0], sure[-1] + 1
    while start and printed(start - 1):
        start -= 1
    while end < len(lines) and printed(end):
        end += 1
    return start, end


def _asks(line: str) -> bool:
    return line.rstrip().endswith("?")


def _is_step(line: str) -> bool:
    """Whether a line tells at least two quantities, its number among them, or several steps."""
    rows = steps_of(line)
    return len(rows) > 1 or any(len(row) > 1 for row in rows) or any(bars_of(line))


# How lines begin that nobody types: indented, with a sign, a name and its value.
_PRINTED = re.compile(r"[ \t]+\S|['\"]\w+['\"]: |[^\w\s'\"¿¡(]|\w[\w.-]*(?: ?[:=]|['\"]:)\s*\S*\s*$")


def _is_printed(line: str, inside: bool) -> bool:
    """Whether a line is none of somebody's own words but a program's: a setting, a rule, a fact. People say facts, too,
    but last, or first where a log is last: not `inside` of a message."""
    if _asks(line):
        return False
    if _PRINTED.match(line) or not line.strip():
        return True
    facts = HeaderFacts()
    facts.read(line)
    return inside and bool(facts.plan or facts.values or facts.software or steps_of(line) or columns_of(line))


def is_record(path: Path) -> bool:
    """Whether a file's name is one of those that runs leave behind, not one of those that start them; of a folder,
    whether it is one run of a tracker or of ours."""
    if path.is_dir():
        return mlflow.is_run(path) or benchmark.is_run(path)
    ends = (*_TEXTS, ".wandb", ".jsonl", ".csv", mlflow.DATABASE)
    return path.is_file() and (path.suffix in ends or documents.is_named_so(path) or tensorboard.is_named_so(path))


def _says(run: MeasuredRun) -> tuple[bool, bool, int]:
    return run.outcome == "ran", bool(run.figures), len(run.series.step)


def _files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """What may hold a run below a folder; links that leave it are passed over. A tracker's folder is one run."""
    if depth > _DEEPEST:
        return
    if mlflow.is_run(folder) or benchmark.is_run(folder):
        yield folder
        return
    try:
        entries = sorted(folder.iterdir())[:_MOST_FILES]
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files(entry, depth + 1)
        elif (
            entry.suffix in (*_TEXTS, ".wandb")
            or served.is_named_so(entry)
            or documents.is_named_so(entry)
            or tensorboard.is_named_so(entry)
            or mlflow.is_database(entry)
        ):
            yield entry


def _runs(path: Path, alone: bool) -> list[MeasuredRun]:
    """The runs of one file: one of training, or those that a load generator measured. What cannot be opened is told
    where it is all that was asked."""
    try:
        of_mlflow = mlflow.is_database(path)
        runs = mlflow.read_database(path) if of_mlflow else served.read(path) if path.suffix in served.OBJECTS else []
        if not runs and not of_mlflow:
            run = _read_as(path)(path)
            runs = [run] if run else served.read(path) if path.is_file() else []
    except PlanError:
        if alone:
            raise
        return []
    return [run if run.date else run.model_copy(update={"date": _day(path)}) for run in runs]


def _read_as(path: Path) -> Callable[[Path], MeasuredRun | None]:
    if path.is_dir():
        return mlflow.read if mlflow.is_run(path) else benchmark.read
    if path.suffix == ".wandb":
        return wandb.read
    if tensorboard.is_named_so(path):
        return tensorboard.read
    if documents.is_document(path):
        return documents.read
    return _text


def _day(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()


def _text(path: Path) -> MeasuredRun | None:
    return read_log(path)


def read_log(path: Path, steps: int | None = None) -> MeasuredRun | None:
    """The run of a text log; None where it holds none. `steps` is how many there were, where that is known. Raises
    PlanError."""
    with open_regular(path, _FIELD) as stream:
        if sampled.is_sampled(stream.read(_END_BYTES).decode(errors="replace")):
            stream.seek(0)
            return sampled.run_in(stream.read(_MOST_SAMPLED_BYTES).decode(errors="replace"), path.name)
        stream.seek(0)
        return _of_stream(stream, path.name, steps, is_file=True)


def _of_stream(stream: BinaryIO, name: str, steps: int | None = None, *, is_file: bool = False) -> MeasuredRun | None:
    """The run of a log. That it ended makes a file a log, and nothing else that may only speak of errors."""
    scan = scanned(stream)
    if steps:
        scan.facts.note("steps", str(steps))
    rows, events = scan.rows, scan.events
    source = f"log {name}".strip()
    if events:
        plan_of(scan.facts, events)
        rows = rows or rows_of(events, scan.facts.plan.get("workload", {}).get("global_batch"))
        source = f"MLPerf {source}"
    trains = rows or scan.facts.frameworks or any(bar[3].lower().startswith("train") for _, bar in scan.bars)
    bars = scan.bars if trains else []
    ended = None if scan.faults else why_it_ended(_end_of(stream, scan))
    # The head of a log says what the run was to be.
    begun = scan.facts.lists or (is_file and bool(scan.facts.framework and scan.facts.plan))
    if not rows and not bars and not scan.faults and not (begun or (is_file and ended)):
        return None
    run = assembled(scan.facts, rows, source, bars, [at for at, _ in scan.saves.rows], scan.faults)
    if not (ended or run.figures or run.findings or run.series.step):
        if not begun:
            return None
        run = run.model_copy(update={"findings": ["no step is in it: the plan is all that it tells"]})
    if ended:
        done = any("runtime_s" in row for _, row in rows)
        told = f"after the training: {ended}" if done else f"it stopped: {ended}"
        run = run.model_copy(update={"findings": [told, *run.findings]})
    if scan.thinned:
        note = f"of {scan.bytes / 1e6:,.0f} MB every so many steps were read"
        run = run.model_copy(update={"note": note})
    return run
