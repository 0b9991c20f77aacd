"""Runs that ran out of device memory, or stopped for another reason: what the error says of it.

Messages are those of torch c10/cuda/CUDACachingAllocator.cpp (2.1 on, and before), and of XLA's allocator
(RESOURCE_EXHAUSTED, xla/tsl/framework/bfc_allocator.cc); of other ends those of Slurm 24.05 (slurmd/slurmstepd, common/
log of job steps), torch 2.9 (ProcessGroupNCCL.cpp, elastic/multiprocessing/errors), NCCL 2.27 (nccl.h ncclResult_t).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARKS = (b"out of memory", b"OutOfMemoryError", b"RESOURCE_EXHAUSTED")
_SIZE = r"([\d.]+) ?(bytes|[KMGT]i?B?)\b"
_FACTS = {
    "wanted": re.compile(rf"(?:Tried to allocate|[Oo]ut of memory (?:while trying to allocate|allocating)"
                         rf"|Attempting to allocate) {_SIZE}"),
    "capacity": re.compile(rf"total capacity of {_SIZE}|{_SIZE} total capacity"),
    "free": re.compile(rf"of which {_SIZE} is free|{_SIZE} free|There are {_SIZE} free"),
    "allocated": re.compile(rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated"),
    "cached": re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated"),
    "reserved": re.compile(rf"{_SIZE} reserved in total by PyTorch"),
}  # fmt: skip
_UNITS = {"B": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_DEVICE = re.compile(r"GPU (\d+)[; ]")
# Where in a step it happened, by what the traceback names; the last one counts.
_PLACES = (
    ("loss", re.compile(r"cross_entropy|compute_loss_func|ForCausalLMLoss|lm_head|log_softmax|\.logits")),
    ("optimizer step", re.compile(r"optimizer\.step|optim/\w+\.py|_init_group|step_and_update")),
    ("backward pass", re.compile(r"\.backward\(|autograd/__init__\.py|run_backward")),
    ("loading the model", re.compile(r"from_pretrained|load_state_dict|\.to\(device|model\.cuda\(")),
)  # fmt: skip
_BEFORE, _AFTER = 6000, 1500
# Why a run ended, the surest sign first: an exception of Python often only follows from it.
_ENDS = (
    ("Slurm ended the job at its time limit", re.compile(r"DUE TO TIME LIMIT")),
    ("the job was preempted", re.compile(r"DUE TO PREEMPTION")),
    ("host memory ran out and the kernel killed a process",
     re.compile(r"oom[-_]kill|cgroup out-of-memory handler|OOM Killed|OOMKilled", re.IGNORECASE)),
    ("the disk is full", re.compile(r"No space left on device")),
    ("shared memory ran out (/dev/shm of the container)", re.compile(r"Bus error|insufficient shared memory")),
    ("a device failed (ECC or Xid error)", re.compile(r"uncorrectable ECC|NVRM: Xid|fell off the bus")),
    ("a collective timed out, since a rank was stuck or had died before",
     re.compile(r"Watchdog caught collective operation timeout")),
    ("NCCL failed, by its network or since a rank had died",
     re.compile(r"ncclSystemError|ncclRemoteError|ncclInternalError|ncclUnhandledCudaError")),
    ("a process was killed (signal 9), most often since host memory ran out",
     re.compile(r"exitcode *: -9|Signal 9 \(SIGKILL\)|exit code 137")),
)  # fmt: skip
_EXCEPTION = re.compile(
    r"^(?:\[[^\]]*\]:? ?)*((?:\w+\.)*\w*(?:Error|Exception|Interrupt))(?:: (\S.{0,200}))?$", re.MULTILINE
)
# argparse's refusal of a command (Lib/argparse.py, parse_known_args and what it calls).
_REFUSED = re.compile(
    r"^[\w./-]+: error: ((?:argument |unrecognized arguments|the following arguments|ambiguous option).{0,200})$",
    re.MULTILINE,
)
# An exception that tells of another process's.
_OF_ANOTHER = "ChildFailedError"


@dataclass(frozen=True)
class OutOfMemory:
    """What the first such error said; bytes, None where it did not say. `place` is where in a step it happened,
    `log_at` where in the log."""

    wanted_bytes: float | None
    capacity_bytes: float | None
    free_bytes: float | None
    allocated_bytes: float | None
    reserved_bytes: float | None
    device: int | None
    place: str | None
    log_at: int = 0

    @property
    def needed_bytes(self) -> float | None:
        """What the allocator would have held with what was wanted: the peak was at least that."""
        if self.allocated_bytes is None or self.wanted_bytes is None:
            return None
        return self.allocated_bytes + self.wanted_bytes


def why_it_ended(text: str) -> str | None:
    """The reason that the end of a log gives for the run's; None where it tells of none."""
    for reason, pattern in _ENDS:
        if pattern.search(text):
            return reason
    raised = [match for match in _EXCEPTION.finditer(text) if not match[1].endswith(_OF_ANOTHER)]
    if not raised:
        refused = _REFUSED.findall(text)
        return f"its command was refused: {refused[-1]}" if refused else None
    name = raised[-1][1].rpartition(".")[2]
    return f"{name}: {raised[-1][2]}" if raised[-1][2] else name


def out_of_memory(text: str, at: int, log_at: int = 0) -> OutOfMemory:
    """What stands around position `at` of a part of a log, where a mark is; `log_at` is its place in the whole."""
    before, after = text[max(0, at - _BEFORE) : at], text[max(0, at - 200) : at + _AFTER]
    sizes = {name: _size(pattern, after) for name, pattern in _FACTS.items()}
    reserved, cached = sizes["reserved"], sizes["cached"]
    if reserved is None and sizes["allocated"] is not None and cached is not None:
        reserved = sizes["allocated"] + cached
    device = _DEVICE.search(after)
    # Only the traceback of this error: what was printed before it is of steps that went well.
    trace = before[before.rfind("Traceback (most recent call last)") :] if "Traceback (most" in before else ""
    places = [(match.start(), name) for name, pattern in _PLACES for match in pattern.finditer(trace)]
    return OutOfMemory(
        wanted_bytes=sizes["wanted"],
        capacity_bytes=sizes["capacity"],
        free_bytes=sizes["free"],
        allocated_bytes=sizes["allocated"],
        reserved_bytes=reserved,
        device=int(device[1]) if device else None,
        place=max(places)[1] if places else None,
        log_at=log_at,
    )


def _size(pattern: re.Pattern[str], text: str) -> float | None:
    if not (match := pattern.search(text)):
        return None
    number, unit = [group for group in match.groups() if group][:2]
    try:
        return float(number) * _UNITS["B" if unit == "bytes" else unit[0].upper()]
    except ValueError:
        return None
