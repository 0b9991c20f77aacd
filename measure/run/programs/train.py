"""Times a training run with synthetic data, as benchmark.json beside it says: written by `shardwise measure training`.

It needs PyTorch 2.6 or newer and nothing else, and runs alone or under torchrun, on CUDA, ROCm, MPS or CPU. Rank 0 adds
a line to events.jsonl after each step and puts what was measured into measured.json at the end. No checkpoint is
written. Start-up and the first step, which compiles and warms up, are told apart from the steps that count.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import resource
import sys
import time
from datetime import timedelta
from pathlib import Path

_STARTED = time.time()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from decoder import Decoder, adapted, begun, local  # noqa: E402
from torch import nn  # noqa: E402

_CLIP = 1.0
_PATIENCE = timedelta(minutes=10)
_TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class Processes:
    """Who runs this: ranks, their device, and the groups that split tensors and data."""

    def __init__(self, settings):
        self.count, self.rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
        wanted = settings["benchmark"]["device"]
        kind = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        kind = kind if wanted == "auto" else wanted
        self.device = (
            torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device(kind)
        )
        if kind == "cuda":
            torch.cuda.set_device(self.device)
        layout = settings["layout"]
        self.tp, self.dp = layout["tp"], self.count // layout["tp"]
        self.mesh = None
        if self.count > 1 or layout["params_to_host"]:
            backend = "cpu:gloo,cuda:nccl" if kind == "cuda" else "gloo"
            alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
            dist.init_process_group(backend, timeout=_PATIENCE, **alone)
            shape = (self.dp // layout["shard_group"], layout["shard_group"], self.tp)
            self.mesh = dist.init_device_mesh(kind, shape, mesh_dim_names=("replicas", "dp", "tp"))
        assert self.tp * self.dp == self.count == layout["tp"] * layout["dp"], (
            "the plan is for another number of devices"
        )

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def meet(self):
        self.wait()
        if self.count > 1:
            dist.barrier()

    def most(self, values):
        """The most that any rank has of each number, which may be None of all. As tensors: objects need NumPy."""
        if self.count == 1:
            return values
        worst = torch.tensor([value or 0.0 for value in values], dtype=torch.float64, device=self.device)
        dist.all_reduce(worst, dist.ReduceOp.MAX)
        return [each if value is not None else None for value, each in zip(values, worst.tolist(), strict=True)]


def split_tensors(model, processes):
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = processes.mesh["tp"]
    columns, rows = ("q_proj", "k_proj", "v_proj"), ("o_proj",)
    for layer in model.layers:
        plan = {f"attention.{name}": ColwiseParallel() for name in columns}
        plan |= {f"attention.{name}": RowwiseParallel() for name in rows}
        plan |= {f"feed.{name}": ColwiseParallel() for name in ("gate_proj", "up_proj") if getattr(layer.feed, name)}
        plan["feed.down_proj"] = RowwiseParallel()
        parallelize_module(layer, mesh, plan)
    outside = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }
    parallelize_module(model, mesh, outside)


def sharded(model, processes, settings):
    """FSDP2, each layer by itself: weights and what belongs to them are spread over the data-parallel ranks."""
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    training = settings["training"]
    policy = MixedPrecisionPolicy()
    host = settings["layout"]["params_to_host"]
    if training["precision"] == "bf16" and not held_short(training):
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {
        "mesh": processes.mesh["replicas", "dp"] if processes.mesh["replicas"].size() > 1 else processes.mesh["dp"],
        "mp_policy": policy,
        "reshard_after_forward": settings["layout"]["zero_stage"] == 3,
        "offload_policy": CPUOffloadPolicy(pin_memory=processes.device.type == "cuda") if host else OffloadPolicy(),
    }
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    return model


def held_short(training):
    """Whether all weights are held in 16 bits."""
    return training["precision"] == "bf16" and (training["weights"] == "bf16" or training["method"] != "full")


def shards(settings, processes):
    """Whether weights are spread over processes, or wait in host memory."""
    layout = settings["layout"]
    return layout["params_to_host"] or (layout["zero_stage"] >= 2 and processes.dp > 1)


def built(settings, processes):
    """(The model as it is called, the bare one)."""
    model_settings, training, layout = settings["model"], settings["training"], settings["layout"]
    torch.manual_seed(1)
    spread = shards(settings, processes)
    with torch.device("meta"):
        pieces, to_host = training["loss_in_pieces"], layout["activations_to_host"]
        model = Decoder(model_settings, training["repeated_layers"], pieces, to_host)
        if training["method"] != "full":
            model = adapted(model, model_settings["pattern"], model_settings["blocks"], training["lora"])
    if held_short(training):
        model = model.to(torch.bfloat16)
    if processes.tp > 1:
        split_tensors(model, processes)
    if spread:
        model = sharded(model, processes, settings)
    model.to_empty(device="cpu" if layout["params_to_host"] else processes.device)
    if model_settings["tied"]:
        model.head.weight = model.embedding.weight
    begun(model)
    if training["compile"]:
        for layer in model.layers:
            layer.compile()
    if spread or processes.dp == 1:
        return model, model
    devices = [processes.device.index] if processes.device.type == "cuda" else None
    # Layers that read images have no part in a step.
    idle = any(layer.crosses for layer in model.layers)
    return nn.parallel.DistributedDataParallel(model, device_ids=devices, find_unused_parameters=idle), model


def kinds_of(model):
    """What is trained, those spread over devices apart from those that every device holds: one operation cannot take
    both."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    spread = [hasattr(parameter, "placements") for parameter in trained]
    kinds = [[row for row, over in zip(trained, spread, strict=True) if over == kind] for kind in (True, False)]
    return [kind for kind in kinds if kind]


class HostAdamW:
    """AdamW in host memory: gradients go there and weights come back; both in 32 bits there."""

    def __init__(self, trained):
        self.held = [row for kind in trained for row in kind["params"]]
        self.copies = [nn.Parameter(local(row).detach().float().cpu()) for row in self.held]
        self.inner = torch.optim.AdamW(self.copies, lr=1e-5, weight_decay=0.1, fused=True)

    def step(self):
        for row, copy in zip(self.held, self.copies, strict=True):
            copy.grad = None if row.grad is None else local(row.grad).float().cpu()
        self.inner.step()
        with torch.no_grad():
            for row, copy in zip(self.held, self.copies, strict=True):
                local(row).copy_(copy)

    def zero_grad(self, set_to_none):
        for row in self.held:
            row.grad = None


def optimizer_of(model, settings, processes):
    trained = [{"params": kind} for kind in kinds_of(model)]
    if settings["training"]["optimizer"] == "sgd":
        return torch.optim.SGD(trained, lr=1e-5)
    if settings["layout"]["states_to_host"]:
        return HostAdamW(trained)
    return torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.1, fused=processes.device.type == "cuda" or None)


class SteppedRun:
    def __init__(self, settings, processes):
        self.settings, self.processes = settings, processes
        self.called, self.model = built(settings, processes)
        self.kinds = kinds_of(self.model)
        self.optimizer = optimizer_of(self.model, settings, processes)
        training = settings["training"]
        self.accumulation = training["accumulation"]
        self.shape = (training["micro_batch"], training["seq_len"])
        # FSDP casts by itself.
        self.casts = not shards(settings, processes) and training["precision"] == "bf16" and not held_short(training)
        # Ranks that split tensors read the same data.
        self.random = torch.Generator(device=processes.device).manual_seed(17 + processes.rank // processes.tp)

    def step(self):
        """One optimizer step on new random tokens; returns its mean loss."""
        total = torch.zeros((), device=self.processes.device)
        for number in range(self.accumulation):
            last = number == self.accumulation - 1
            vocab = self.settings["model"]["vocab"]
            tokens = torch.randint(vocab, self.shape, device=self.processes.device, generator=self.random)
            with self.synchronised(last):
                with torch.autocast(self.processes.device.type, torch.bfloat16, enabled=self.casts):
                    loss = self.called(tokens, tokens.roll(-1, dims=1)) / self.accumulation
                loss.backward()
            total += loss.detach()
        for kind in self.kinds:
            nn.utils.clip_grad_norm_(kind, _CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def synchronised(self, last):
        """Gradients are summed over ranks in the last micro-step alone."""
        if isinstance(self.called, nn.parallel.DistributedDataParallel) and not last:
            return self.called.no_sync()
        if hasattr(self.called, "set_requires_gradient_sync"):
            self.called.set_requires_gradient_sync(last)
        return contextlib.nullcontext()

    def timed(self):
        self.processes.wait()
        start = time.perf_counter()
        loss = self.step()
        self.processes.wait()
        return time.perf_counter() - start, loss


def told(event, **facts):
    text = json.dumps({"event": event, "at": time.time(), **facts})
    # Where a run is on another machine its output is all that comes back.
    print(f"shardwise: {text}", flush=True)
    with open("events.jsonl", "a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def put(result):
    """All of it or nothing."""
    print(f"shardwise: {json.dumps({'event': 'measured', 'result': result})}", flush=True)
    text = json.dumps(result, indent=1) + "\n"
    new = Path("measured.json.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, "measured.json")


def peaks(processes):
    """Bytes of the fullest rank: torch's two counters, None where a device has none, and the process's own memory."""
    scale = 1 if sys.platform == "darwin" else 1024
    mine = [None, None, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale]
    if processes.device.type == "cuda":
        mine[:2] = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    elif processes.device.type == "mps":
        mine[1] = torch.mps.driver_allocated_memory()
    return processes.most(mine)


def profiled(run, processes):
    """A trace of one step, for chrome://tracing and Perfetto."""
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (processes.device.type == "cuda")
    with profile(activities=kinds, record_shapes=True, profile_memory=True, with_flops=True) as trace:
        run.timed()
    if processes.rank == 0:
        trace.export_chrome_trace("trace.json")


def counted(model, full):
    """Parameters of the model itself: of adapters what they are laid over, which is frozen; two weights a byte."""
    total = 0
    for name, row in model.named_parameters():
        scale = name.endswith((".scales", ".coarse"))
        total += 0 if scale or (row.requires_grad and not full) else row.numel() * (1 + (row.dtype == torch.uint8))
    return total


def measured(settings, processes, ready):
    """Runs it all and returns what was measured."""
    benchmark = settings["benchmark"]
    run = SteppedRun(settings, processes)
    processes.meet()
    built_s = time.time() - _STARTED
    tell = told if processes.rank == 0 else lambda *_, **__: None
    tell("built", seconds=built_s)
    first_s, loss = run.timed()
    tell("first_step", seconds=first_s, loss=float(loss))
    for _ in range(benchmark["warmup"]):
        run.timed()
    repeats, losses = [], []
    for repeat in range(benchmark["repeats"]):
        if repeat:
            time.sleep(benchmark["cooldown_s"])
        gc.collect()
        processes.meet()
        times = []
        tell("repeat", number=repeat)
        for number in range(benchmark["steps"]):
            seconds, loss = run.timed()
            times.append(seconds)
            losses.append(float(loss))
            tell("step", repeat=repeat, number=number, seconds=seconds, loss=losses[-1])
        # A step is over when its slowest rank is done.
        repeats.append(processes.most(times))
        tell("repeated", number=repeat)
    allocated, reserved, resident = peaks(processes)
    if benchmark["profile"]:
        profiled(run, processes)
    name = (
        torch.cuda.get_device_name() if processes.device.type == "cuda" else platform.processor() or platform.machine()
    )
    return {
        "outcome": "ran", "repeats": repeats, "losses": losses, "startup_s": built_s, "import_s": ready,
        "first_step_s": first_s, "allocated_bytes": allocated, "reserved_bytes": reserved, "resident_bytes": resident,
        "parameters": counted(run.model, settings["training"]["method"] == "full"),
        "device": processes.device.type, "device_name": name, "processes": processes.count,
        "versions": {"torch": torch.__version__, "python": platform.python_version()}
        | ({"cuda": torch.version.cuda} if torch.version.cuda else {})
        | ({"rocm": torch.version.hip} if torch.version.hip else {}),
    }  # fmt: skip


def main():
    ready = time.time() - _STARTED
    settings = json.loads(Path("benchmark.json").read_text(encoding="utf-8"))
    if settings["benchmark"]["threads"]:
        torch.set_num_threads(settings["benchmark"]["threads"])
    processes = Processes(settings)
    if processes.rank == 0:
        told("started", processes=processes.count)
    try:
        result = measured(settings, processes, ready)
    except torch.OutOfMemoryError as error:
        put({"outcome": "oom", "problem": str(error)[:500], "versions": {"torch": torch.__version__}})
        raise
    if processes.rank == 0:
        put(result)
        told("done")
    if processes.mesh is not None:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
