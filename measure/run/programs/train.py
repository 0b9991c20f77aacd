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
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

_LOSS_PIECES = 8
_CLIP = 1.0
_PATIENCE = timedelta(minutes=10)
_TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), 1e-5)


class LoraLinear(nn.Module):
    """A frozen matrix with a trained update of low rank beside it."""

    def __init__(self, plain, rank, alpha):
        super().__init__()
        self.plain = plain
        self.down = nn.Linear(plain.in_features, rank, bias=False)
        self.up = nn.Linear(rank, plain.out_features, bias=False)
        self.scale = alpha / rank

    def forward(self, x):
        return self.plain(x) + self.up(self.down(x)) * self.scale


def rotary(length, width, device):
    frequencies = 1.0 / (10_000.0 ** (torch.arange(0, width, 2, device=device).float() / width))
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    return angles.cos(), angles.sin()


def turned(x, tables):
    """Pairs of each head's halves turned by their place; x is (batch, heads, length, width)."""
    cos, sin = (table.to(x.dtype) for table in tables)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, hidden, block):
        super().__init__()
        self.width, self.values = block["head_dim"], block["v_head_dim"]
        heads, keys, biased = block["heads"], block["kv_heads"], block["biases"]
        self.q_proj = nn.Linear(hidden, heads * self.width, bias="q_proj" in biased)
        self.k_proj = nn.Linear(hidden, keys * self.width, bias="k_proj" in biased)
        self.v_proj = nn.Linear(hidden, keys * self.values, bias="v_proj" in biased)
        self.o_proj = nn.Linear(heads * self.values, hidden, bias="o_proj" in biased)
        self.norms = nn.ModuleList([RMSNorm(self.width), RMSNorm(self.width)] if block["qk_norm"] else [])
        self.window = block["window"]

    def forward(self, x, tables):
        batch, length, _ = x.shape
        q, k, v = (
            projection(x).view(batch, length, -1, width).transpose(1, 2)
            for projection, width in ((self.q_proj, self.width), (self.k_proj, self.width), (self.v_proj, self.values))
        )
        if len(self.norms):
            q, k = self.norms[0](q), self.norms[1](k)
        q, k = turned(q, tables), turned(k, tables)
        if q.shape[1] != k.shape[1] and q.device.type != "cuda":
            times = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
        grouped = q.shape[1] != k.shape[1]
        if self.window and self.window < length:
            far = torch.ones(length, length, dtype=torch.bool, device=x.device).tril().triu(1 - self.window)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=far, enable_gqa=grouped)
        else:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, hidden, width, gated):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, width, bias=False) if gated else None
        self.up_proj = nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        up = self.up_proj(x)
        return self.down_proj(F.gelu(up) if self.gate_proj is None else F.silu(self.gate_proj(x)) * up)


class Experts(nn.Module):
    """Every token goes to top_k of the experts; each expert takes its tokens in one piece."""

    def __init__(self, hidden, block):
        super().__init__()
        count, width = block["experts"], block["expert_width"]
        self.top_k = block["top_k"]
        self.router = nn.Linear(hidden, count, bias=False)
        self.gate_up = nn.Parameter(torch.empty(count, hidden, 2 * width))
        self.down = nn.Parameter(torch.empty(count, width, hidden))
        self.shared = FeedForward(hidden, block["shared_width"], True) if block["shared_width"] else None

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        shares, chosen = self.router(tokens).float().softmax(dim=-1).topk(self.top_k, dim=-1)
        shares = (shares / shares.sum(dim=-1, keepdim=True)).to(x.dtype)
        order = chosen.flatten().argsort()
        counts = chosen.flatten().bincount(minlength=self.router.out_features).tolist()
        rows = order // self.top_k
        gate_up, down = self.gate_up.to(x.dtype), self.down.to(x.dtype)
        pieces = []
        for expert, piece in enumerate(tokens[rows].split(counts)):
            gate, up = (piece @ gate_up[expert]).chunk(2, dim=-1)
            pieces.append((F.silu(gate) * up) @ down[expert])
        weighed = torch.cat(pieces) * shares.flatten()[order].unsqueeze(-1)
        out = torch.zeros_like(tokens).index_add(0, rows, weighed.to(tokens.dtype)).view_as(x)
        return out if self.shared is None else out + self.shared(x)


class Layer(nn.Module):
    def __init__(self, hidden, block):
        super().__init__()
        self.attention_norm, self.feed_norm = RMSNorm(hidden), RMSNorm(hidden)
        self.after = nn.ModuleList([RMSNorm(hidden), RMSNorm(hidden)] if block["norms"] > 2 else [])
        self.attention = Attention(hidden, block)
        self.feed = (
            Experts(hidden, block) if block["experts"] else FeedForward(hidden, block["ffn_width"], block["gated"])
        )

    def forward(self, x, tables):
        out = self.attention(self.attention_norm(x), tables)
        x = x + (self.after[0](out) if len(self.after) else out)
        out = self.feed(self.feed_norm(x))
        return x + (self.after[1](out) if len(self.after) else out)


class Decoder(nn.Module):
    """`repeated` layers are computed again in the backward pass."""

    def __init__(self, model, repeated, in_pieces):
        super().__init__()
        hidden = model["hidden"]
        self.embedding = nn.Embedding(model["vocab"], hidden)
        self.layers = nn.ModuleList([Layer(hidden, model["blocks"][kind]) for kind in model["pattern"]])
        self.norm = RMSNorm(hidden)
        self.head = nn.Linear(hidden, model["vocab"], bias=False)
        if model["tied"]:
            self.head.weight = self.embedding.weight
        self.repeated, self.in_pieces = repeated, in_pieces
        self.widths = sorted({block["head_dim"] for block in model["blocks"]})

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        tables = {width: rotary(tokens.shape[1], width, tokens.device) for width in self.widths}
        for number, layer in enumerate(self.layers):
            table = tables[layer.attention.width]
            again = number < self.repeated
            x = checkpoint(layer, x, table, use_reentrant=False) if again else layer(x, table)
        x = self.norm(x)
        if not self.in_pieces:
            return self.loss(x, labels)
        pieces = zip(x.chunk(_LOSS_PIECES, dim=1), labels.chunk(_LOSS_PIECES, dim=1), strict=True)
        losses = [
            checkpoint(self.loss, piece, wanted, use_reentrant=False) * wanted.numel() for piece, wanted in pieces
        ]
        return torch.stack(losses).sum() / labels.numel()

    def loss(self, x, labels):
        return F.cross_entropy(self.head(x).flatten(0, 1).float(), labels.flatten())


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
        if self.count > 1:
            dist.init_process_group("nccl" if kind == "cuda" else "gloo", timeout=_PATIENCE)
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


def adapted(model, lora):
    """The model with adapters on the matrices of its layers, and everything else frozen."""
    model.requires_grad_(False)
    targets = lora["targets"]
    for layer in model.layers:
        for part in (layer.attention, layer.feed, getattr(layer.feed, "shared", None)):
            for name, child in list(part.named_children()) if part is not None else []:
                attends = part is layer.attention
                wanted = targets in ("all-linear", "attention" if attends else "mlp") or name in targets.split(",")
                if isinstance(child, nn.Linear) and wanted and name != "router":
                    setattr(part, name, LoraLinear(child, lora["rank"], lora["alpha"]))
    return model


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
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    training = settings["training"]
    policy = MixedPrecisionPolicy()
    if training["precision"] == "bf16" and not held_short(training):
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {
        "mesh": processes.mesh["replicas", "dp"] if processes.mesh["replicas"].size() > 1 else processes.mesh["dp"],
        "mp_policy": policy,
        "reshard_after_forward": settings["layout"]["zero_stage"] == 3,
    }
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    return model


def held_short(training):
    """Whether all weights are held in 16 bits."""
    return training["precision"] == "bf16" and (training["weights"] == "bf16" or training["method"] == "lora")


def begun(model):
    """Random weights where a model was made without memory."""
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            if name.endswith("norm.weight") or ".norms." in name or ".after." in name:
                parameter.fill_(1.0)
            elif name.endswith((".up.weight", "bias")):
                parameter.zero_()
            else:
                parameter.normal_(0.0, 0.02)


def built(settings, processes):
    """(The model as it is called, the bare one)."""
    training, layout = settings["training"], settings["layout"]
    torch.manual_seed(1)
    shards = layout["zero_stage"] >= 2 and processes.dp > 1
    with torch.device("meta"):
        model = Decoder(settings["model"], training["repeated_layers"], training["loss_in_pieces"])
        if training["method"] == "lora":
            model = adapted(model, training["lora"])
    if held_short(training):
        model = model.to(torch.bfloat16)
    if processes.tp > 1:
        split_tensors(model, processes)
    if shards:
        model = sharded(model, processes, settings)
    model.to_empty(device=processes.device)
    if settings["model"]["tied"]:
        model.head.weight = model.embedding.weight
    begun(model)
    if training["compile"]:
        for layer in model.layers:
            layer.compile()
    if shards or processes.dp == 1:
        return model, model
    devices = [processes.device.index] if processes.device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=devices), model


def kinds_of(model):
    """What is trained, those spread over devices apart from those that every device holds: one operation cannot take
    both."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    spread = [hasattr(parameter, "placements") for parameter in trained]
    kinds = [[row for row, over in zip(trained, spread, strict=True) if over == kind] for kind in (True, False)]
    return [kind for kind in kinds if kind]


def optimizer_of(model, settings, processes):
    trained = [{"params": kind} for kind in kinds_of(model)]
    if settings["training"]["optimizer"] == "sgd":
        return torch.optim.SGD(trained, lr=1e-5)
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
        whole = settings["layout"]["zero_stage"] < 2 or processes.dp == 1
        self.casts = whole and training["precision"] == "bf16" and not held_short(training)
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
    # The model's own: of adapters what they are laid over, which is frozen.
    adapted_model = settings["training"]["method"] == "lora"
    counted = sum(row.numel() for row in run.model.parameters() if not (adapted_model and row.requires_grad))
    name = (
        torch.cuda.get_device_name() if processes.device.type == "cuda" else platform.processor() or platform.machine()
    )
    return {
        "outcome": "ran", "repeats": repeats, "losses": losses, "startup_s": built_s, "import_s": ready,
        "first_step_s": first_s, "allocated_bytes": allocated, "reserved_bytes": reserved, "resident_bytes": resident,
        "parameters": counted, "device": processes.device.type, "device_name": name, "processes": processes.count,
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
    if processes.count > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
