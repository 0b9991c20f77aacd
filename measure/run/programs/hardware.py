"""Measures a machine as settings.json beside it says: written by `shardwise measure hardware`.

It needs PyTorch 2.6 or newer and nothing else, and runs on CUDA, ROCm, MPS or CPU: matrix products over shapes and
types, memory bandwidth, attention, the link to the host, copies between devices and the disk into measured.json; and
with the word `collectives`, under torchrun, what several processes reach together into collectives.json. Each figure is
one line of rates.jsonl too. All of it, PyTorch's own start as well, is to be over at a time that settings.json has:
what is measured until then is written after each part, so that a run that is cut short has said it.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import math
import os
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

_STARTED = time.time()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402

_SQUARES = (256, 512, 1024, 2048, 4096, 8192, 16384)
# (rows, columns, depth) as layers of transformers have them: a wide and a narrow product of 1024 to 8192 tokens, and
# the product of few tokens with a whole weight matrix that decoding is made of.
_LAYERS = ((1024, 3072, 1024), (4096, 14336, 4096), (4096, 4096, 14336), (8192, 28672, 8192), (16, 4096, 4096),
           (16, 14336, 4096))  # fmt: skip
_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
_HEADS, _HEAD_DIM = 16, 128
_MOVED_BYTES = (2**26, 2**28, 2**30)
_SENT_BYTES = (2**12, 2**16, 2**20, 2**24, 2**26, 2**28)
# Of processes of one CPU, which all use the same memory.
_MOST_SENT_BY_CPUS = 2**24
_DISK_BLOCK, _DISK_BLOCKS = 2**24, 16
_REPEATS, _BATCHES = 20, 5
# Part of the time for each kind of product, and of what processes measure together.
_MATMUL_PART = 0.12
_TOGETHER_PART = 0.2
_PATIENCE = timedelta(minutes=2)


def kind_of(wanted):
    if wanted != "auto":
        return wanted
    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


class DeviceTimer:
    """Times functions on one device until its time is used up, and says what it found. The first size of each part is
    tried however late it is."""

    def __init__(self, kind, seconds, folder):
        self.kind, self.folder = kind, folder
        self.device = torch.device(kind, 0) if kind == "cuda" else torch.device(kind)
        self.end = time.perf_counter() + max(0.0, seconds)
        self.until = self.end
        self.rates, self.skipped = [], []

    def wait(self):
        if self.kind == "cuda":
            torch.cuda.synchronize()
        elif self.kind == "mps":
            torch.mps.synchronize()

    def share(self, part):
        """What follows may use this part of the time that is left."""
        now = time.perf_counter()
        self.until = now + max(0.0, self.end - now) * part

    @property
    def left(self):
        return self.until - time.perf_counter()

    def seconds_of(self, work):
        """Seconds of one call: the fastest of a few batches after one that warms up, as others only add to it; None
        where one call alone would take the time that is left."""
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        work()
        self.wait()
        once = (time.perf_counter() - start) / 2.0
        if once * 3 > self.left:
            return once if once < 0.5 else None
        count = max(1, min(_REPEATS, int(0.05 / max(once, 1e-7))))
        best = float("inf")
        stop = time.perf_counter() + min(1.0, self.left)
        for _ in range(_BATCHES):
            start = time.perf_counter()
            for _ in range(count):
                work()
            self.wait()
            best = min(best, (time.perf_counter() - start) / count)
            if time.perf_counter() > stop:
                break
        return best

    def tell(self, part, what, amount, seconds, **facts):
        """One figure: `amount` FLOP or bytes in so many seconds."""
        if seconds is None:
            return
        row = {"part": part, "what": what, "amount": amount, "seconds": seconds, **facts}
        self.rates.append(row)
        with (self.folder / "rates.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    def without(self, part, error):
        lines = str(error).strip().splitlines() or [type(error).__name__]
        self.skipped.append(f"{part}: {lines[0][:200]}")

    def event(self, event, **facts):
        with (self.folder / "events.jsonl").open("a") as file:
            file.write(json.dumps({"event": event, "at": time.time(), **facts}) + "\n")


def products(timer):
    """(Name, function that makes the product of (m, k) by (k, n)) of each type that the device multiplies."""

    def plain(dtype):
        def made(m, n, k):
            a = torch.randn(m, k, device=timer.device).to(dtype)
            b = torch.randn(n, k, device=timer.device).to(dtype).t()
            return lambda: a @ b

        return made

    def eight(m, n, k):
        a = torch.randn(m, k, device=timer.device).to(torch.float8_e4m3fn)
        b = torch.randn(n, k, device=timer.device).to(torch.float8_e4m3fn).t()
        scale = torch.ones((), device=timer.device)
        return lambda: torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)

    def integers(m, n, k):
        a = torch.randint(-8, 8, (m, k), dtype=torch.int8, device=timer.device)
        b = torch.randint(-8, 8, (n, k), dtype=torch.int8, device=timer.device).t()
        return lambda: torch._int_mm(a, b)

    def exact(m, n, k):
        torch.backends.cuda.matmul.allow_tf32 = False
        return plain(torch.float32)(m, n, k)

    def short(m, n, k):
        torch.backends.cuda.matmul.allow_tf32 = True
        return plain(torch.float32)(m, n, k)

    kinds = {"bf16": plain(torch.bfloat16), "fp16": plain(torch.float16), "fp32": exact}
    if timer.kind == "cuda":
        kinds |= {"tf32": short} if torch.version.hip is None else {}
        kinds |= {"fp8": eight, "int8": integers}
    elif timer.kind == "cpu":
        kinds.pop("fp16")
    return kinds


def matmuls(timer):
    kinds = products(timer)
    shapes = sorted([(size,) * 3 for size in _SQUARES] + list(_LAYERS), key=math.prod)
    for place, (name, made) in enumerate(kinds.items()):
        timer.share(_MATMUL_PART / (1 - _MATMUL_PART * place))
        for m, n, k in shapes:
            if timer.left <= 0 and (m, n, k) != shapes[0]:
                break
            try:
                work = made(m, n, k)
                seconds = timer.seconds_of(work)
            except Exception as error:  # whatever a device cannot do, the others of its figures stand
                timer.without(f"matmul {name}", error)
                break
            timer.tell("matmul", name, 2.0 * m * n * k, seconds, shape=[m, n, k])
            if seconds is None:
                break


def memory(timer):
    timer.share(0.3)
    for size in _MOVED_BYTES:
        if timer.left <= 0 and size > _MOVED_BYTES[0]:
            return
        try:
            x = torch.ones(size // 4, device=timer.device)
            y = torch.empty_like(x)
            for name, passes, work in (
                ("copy", 2, lambda x=x, y=y: y.copy_(x)),
                ("add", 3, lambda x=x, y=y: torch.add(x, y, out=y)),
                ("read", 1, lambda x=x: x.sum()),
            ):
                timer.tell("memory", name, float(passes * size), timer.seconds_of(work), size=size)
        except Exception as error:
            timer.without(f"memory of {size} bytes", error)
            return


def attention(timer):
    timer.share(0.5)
    dtype = torch.float32 if timer.kind == "cpu" else torch.bfloat16
    for length in _LENGTHS:
        if timer.left <= 0 and length > _LENGTHS[0]:
            return
        try:
            q, k, v = (torch.randn(1, _HEADS, length, _HEAD_DIM, device=timer.device, dtype=dtype) for _ in range(3))
            flop = 2.0 * _HEADS * length * length * _HEAD_DIM  # two products, of which a causal mask keeps half
            forward = timer.seconds_of(lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v, is_causal=True))
            name = str(dtype).removeprefix("torch.")
            timer.tell("attention", f"{name} forward", flop, forward, length=length)
            for each in (q, k, v):
                each.requires_grad_()

            def both(q=q, k=k, v=v):
                F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()

            # Gradients are five products to the two of the forward pass (FlashAttention-2, section 3.1).
            timer.tell("attention", f"{name} forward and backward", 3.5 * flop, timer.seconds_of(both), length=length)
            if forward is None:
                return
        except Exception as error:
            timer.without(f"attention over {length}", error)
            return


def links(timer):
    """The link to the host, and copies from the first device to the others."""
    if timer.kind == "cpu":
        return
    timer.share(0.5)
    size = 2**28
    try:
        there = torch.empty(size, dtype=torch.uint8, device=timer.device)
        host = torch.empty(size, dtype=torch.uint8, pin_memory=timer.kind == "cuda")
        for name, to, source in (("to the device", there, host), ("to the host", host, there)):
            work = partial(to.copy_, source, non_blocking=True)
            timer.tell("host link", name, float(size), timer.seconds_of(work))
    except Exception as error:
        timer.without("host link", error)
    for other in range(1, torch.cuda.device_count() if timer.kind == "cuda" else 0):
        if timer.left <= 0:
            return
        try:
            beside = torch.empty(size, dtype=torch.uint8, device=f"cuda:{other}")

            def copy(beside=beside, other=other):
                beside.copy_(there, non_blocking=True)
                torch.cuda.synchronize(other)

            timer.tell("peer", f"0 to {other}", float(size), timer.seconds_of(copy))
        except Exception as error:
            timer.without(f"copies from device 0 to {other}", error)


def disk(timer):
    """Of the folder that this runs in: written through to the disk, and read again without what memory kept of it."""
    path = timer.folder / "disk.bin"
    block = os.urandom(_DISK_BLOCK)
    timer.share(0.5)
    try:
        with path.open("wb") as file:
            # The first block alone, as it says how many there is time for.
            first = written(file, block, 1)
            count = max(1, min(_DISK_BLOCKS, int(timer.left / first)))
            seconds = written(file, block, count - 1) if count > 1 else 0.0
        size = float(len(block) * count)
        timer.tell("disk", "write", size, first + seconds)
        if hasattr(os, "posix_fadvise"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                start = time.perf_counter()
                while file.read(len(block)):
                    pass
            timer.tell("disk", "read", size, time.perf_counter() - start)
    except OSError as error:
        timer.without("disk", error)
    finally:
        path.unlink(missing_ok=True)


def written(file, block, count):
    """Seconds until so many blocks are on the disk."""
    start = time.perf_counter()
    for _ in range(count):
        file.write(block)
    file.flush()
    os.fsync(file.fileno())
    return time.perf_counter() - start


def together(timer):
    """What the processes of a run reach: as seconds of an operation over so many bytes."""
    kind = timer.kind
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if kind == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        timer.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if kind == "cuda" else "gloo", timeout=_PATIENCE)
    # What of the operation's bytes one device's links carry (NVIDIA nccl-tests, doc/PERFORMANCE.md).
    carried = {"all-reduce": 2 * (size - 1) / size, "all-gather": (size - 1) / size,
               "reduce-scatter": (size - 1) / size, "all-to-all": (size - 1) / size, "send": 1.0}  # fmt: skip
    for place, (name, share) in enumerate(carried.items()):
        timer.share(1.0 / (len(carried) - place))
        for bytes_sent in _SENT_BYTES:
            if kind == "cpu" and bytes_sent > _MOST_SENT_BY_CPUS:
                break
            try:
                seconds, late = _timed_together(timer, operation(name, timer, bytes_sent, rank, size))
            except (RuntimeError, NotImplementedError, ValueError) as error:
                timer.without(name, error)
                break
            if rank == 0:
                timer.tell("collective", name, float(bytes_sent), seconds, carried=share, processes=size)
            if late:
                break
    dist.destroy_process_group()
    return rank


def operation(name, timer, bytes_sent, rank, size):
    count = bytes_sent // 4 // size * size or size
    whole = torch.ones(count, device=timer.device)
    part = torch.ones(count // size, device=timer.device)
    if name == "all-reduce":
        return lambda: dist.all_reduce(whole)
    if name == "all-gather":
        return lambda: dist.all_gather_into_tensor(whole, part)
    if name == "reduce-scatter":
        return lambda: dist.reduce_scatter_tensor(part, whole)
    if name == "all-to-all":
        out = torch.empty_like(whole)
        return lambda: dist.all_to_all_single(out, whole)
    if rank == 0:
        return lambda: dist.send(whole, 1)
    return (lambda: dist.recv(whole, 0)) if rank == 1 else (lambda: None)


def _timed_together(timer, work):
    """Seconds of one call, by all processes alike, and whether the time is used up, which all hear from the first."""
    for _ in range(2):
        work()
    timer.wait()
    dist.barrier()
    start = time.perf_counter()
    work()
    timer.wait()
    plan = torch.tensor([time.perf_counter() - start, timer.left], device=timer.device)
    dist.broadcast(plan, 0)
    once, left = plan.tolist()
    if left <= 0:
        return once, True
    count = max(1, min(_REPEATS, int(min(0.3, left) / max(once, 1e-6))))
    best = float("inf")
    for _ in range(3):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(count):
            work()
        timer.wait()
        best = min(best, (time.perf_counter() - start) / count)
    return best, False


def about(timer):
    facts = {"kind": timer.kind, "threads": torch.get_num_threads(), "versions": {"torch": torch.__version__}}
    if timer.kind == "cuda":
        device = torch.cuda.get_device_properties(0)
        facts |= {"name": device.name, "memory_bytes": device.total_memory, "count": torch.cuda.device_count()}
        runtime = torch.version.hip or torch.version.cuda
        facts["versions"]["rocm" if torch.version.hip else "cuda"] = str(runtime)
    return facts


def put(timer, name):
    """What was measured so far: all of it or nothing."""
    text = json.dumps({"about": about(timer), "rates": timer.rates, "skipped": timer.skipped}, indent=1)
    (timer.folder / f"{name}.part").write_text(text)
    (timer.folder / f"{name}.part").replace(timer.folder / name)


def main():
    folder = Path(__file__).parent
    settings = json.loads((folder / "settings.json").read_text())
    left = settings["ends_at"] - time.time()
    if "collectives" in sys.argv[1:]:
        timer = DeviceTimer(kind_of(settings["device"]), left, folder)
        if together(timer) == 0:
            put(timer, "collectives.json")
        return
    # Processes that measure together come after, and take as long to start as this did, as does what starts them.
    start = 2.0 * (time.time() - _STARTED)
    later = start + _TOGETHER_PART * settings["seconds"] if settings["processes"] > 1 else 0.0
    timer = DeviceTimer(kind_of(settings["device"]), left - later, folder)
    timer.event("repeat")
    for part in (matmuls, memory, attention, links, disk):
        timer.event("part", name=part.__name__)
        part(timer)
        put(timer, "measured.json")
    timer.event("repeated")


main()
