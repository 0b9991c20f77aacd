"""A session as agent.session gives it, with a fixed script: what the faces show must not depend on any estimate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from filled import filled
from pydantic import BaseModel

from agent.events import Approval, Done, Event, PlannedWrite, Preview, ShownFile, TextPiece, ToolCall, ToolResult
from agent.store import FileWritten
from agent.wire import Call, Outcome
from estimator.errors import PlanError
from planner.money.results import CostEstimate
from planner.results import TrainingEstimate

GIB = 2**30
PLAN: dict[str, Any] = {
    "name": None,
    "model": "meta-llama/Llama-3.1-8B",
    "workload": {
        "kind": "training", "framework": "deepspeed", "stage": "sft", "method": "full", "precision": "bf16",
        "optimizer": "adamw", "seq_len": 4096, "micro_batch": 2, "global_batch": 128, "dataset_tokens": 1e9,
        "epochs": 1.0,
    },
    "cluster": {"accelerator": "h100-sxm", "count": 8, "per_node": 8, "interconnect": "auto"},
    "layout": {"tp": 1, "pp": 1, "dp": 8, "zero_stage": 3, "recompute": "selective", "offload": "none"},
    "goal": {"objective": "throughput"},
}  # fmt: skip
GIVEN: dict[str, Any] = {"model": PLAN["model"], "cluster": {"accelerator": "h100-sxm", "count": 8}}
"""The partial plan that the person gave."""
COMPONENTS = {
    "weights": 15.0 * GIB, "gradients": 15.0 * GIB, "optimizer": 12.0 * GIB, "activations": 14.5 * GIB,
    "logits": 4.0 * GIB, "buffers": 1.5 * GIB, "context": 1.0 * GIB, "slack": 2.0 * GIB,
}  # fmt: skip
ESTIMATE = filled(TrainingEstimate, {
    "plan": PLAN,
    "memory": {
        "per_device_bytes": sum(COMPONENTS.values()), "low_bytes": 60 * GIB, "high_bytes": 70 * GIB,
        "capacity_bytes": 79.6 * GIB, "fits": True, "components": COMPONENTS,
        "host": {"per_node_bytes": 52 * GIB},
    },
    "time": {
        "step_s": 12.34, "low_s": 11.0, "high_s": 13.5,
        "components": {"forward": 3.1, "backward": 7.0, "data_parallel": 1.24, "optimizer": 1.0},
    },
    "throughput": {
        "tokens_per_s": 42500.0, "tokens_per_s_per_device": 5312.5, "samples_per_s": 10.4,
        "model_tflops_per_device": 412.0, "mfu": 0.4166, "hfu": 0.45,
    },
    "run": {"tokens": 1e9, "steps": 1907, "hours": 6.54, "low_hours": 5.9, "high_hours": 7.2},
    "bottleneck": "compute",
})  # fmt: skip
COST = filled(CostEstimate, {
    "plan": PLAN, "hours": 6.54, "low_hours": 5.9, "high_hours": 7.2, "device_hours": 52.32, "price": "on_demand",
    "usd": 130.8, "low_usd": 118, "high_usd": 144,
})  # fmt: skip
ANSWER = """✓ **Yes, it fits.** Each H100 needs 65.0 GiB of 79.6 GiB.

The run takes 6.54 h and costs $131.

<details>
<summary>Details</summary>

| component | GiB |
|---|---|
| weights | 15.0 |
| optimizer | 12.0 |

</details>
"""
TEXTS = {
    "train.yaml": "model: llama\nseq_len: 4096\n",
    "ds.json": '{"zero": 3}\n',
    "job.slurm": "#!/bin/bash\nsrun x\n",
}
BEFORE = {"train.yaml": "model: llama\nseq_len: 2048\n", "ds.json": TEXTS["ds.json"]}
FILES = [
    ShownFile(path=path, bytes=size, text=TEXTS[path], before=BEFORE.get(path))
    for path, size in (("train.yaml", 1234), ("ds.json", 567), ("job.slurm", 890))
]
WRITTEN = [FileWritten(path=f"runs/llama/{file.path}", bytes=file.bytes) for file in FILES]


def estimator(plan: Mapping[str, Any]) -> list[BaseModel]:
    """What any plan comes to. One with 13 devices cannot be."""
    cluster = plan.get("cluster") or {}
    if str(cluster.get("count")) == "13":
        raise PlanError("cluster.count", "13 devices do not fill whole nodes of 8", [8, 16])
    whole = PLAN | {"model": plan["model"], "cluster": PLAN["cluster"] | cluster}
    return [result.model_copy(update={"plan": whole}) for result in (ESTIMATE, COST)]


def _told(call: Call, result: BaseModel, seconds: float) -> ToolResult:
    return ToolResult(Outcome(call, result.model_dump(mode="json")), seconds)


def done(answer: str, plan: dict[str, Any] = GIVEN, **more: Any) -> Done:
    """The end of a turn that called and wrote nothing, but for what `more` says."""
    lists: dict[str, Any] = {name: [] for name in ("asked", "files", "ungrounded", "tool_calls")}
    nothing = {"session": "s-123", "reading": {}} | lists
    return Done(answer=answer, plan=plan, **nothing | more)


class FakeSession:
    """Answers any question; one with the word "write" asks for approval first, one with "hang" never ends,
    one with "which" asks back."""

    def __init__(self, session_id: str | None = None, model: str = "auto", **given: Any) -> None:
        self.id = session_id or "s-123"
        self.model = model
        self.given = given
        self.sent: list[str] = []
        self.resumed: list[bool] = []
        self.stopped = False
        self.plans: list[dict[str, Any]] = []

    async def set_plan(self, plan: dict[str, Any], chosen: Mapping[str, Any] | None = None) -> None:
        self.plans.append(dict(plan))

    async def plan(self) -> dict[str, Any]:
        return self.plans[-1] if self.plans else dict(GIVEN)

    async def waiting(self) -> Approval | None:
        return None

    async def send(self, text: str) -> AsyncIterator[Event]:
        self.sent.append(text)
        if "hang" in text:
            yield TextPiece("Thinking about it")
            try:
                await asyncio.sleep(3600)
            finally:
                self.stopped = True
        if "explode" in text:
            raise KeyError("boom")
        if "which" in text:
            yield done("Which model?\n\nNext: “use Llama-3.1-8B” · “use gpt2”", {}, asked=["model: which model?"])
            return
        arguments = {"model": "llama-3.1-8b", "accelerator": "h100", "count": 8, "plan": {"layout": {"tp": 1}}}
        estimate, cost = Call("c1", "estimate_training", arguments), Call("c2", "estimate_cost", {"count": 8})
        yield ToolCall(estimate)
        yield ToolCall(cost)
        yield _told(estimate, ESTIMATE, 0.12)
        yield _told(cost, COST, 0.03)
        if "nasty" in text:
            fit = Call("c3", "check_fit", {"model": "[red]\x1b[31mx\x07"})
            yield ToolCall(fit)
            yield ToolResult(Outcome(fit, {"error": "model: \x1b]0;t\x07no"}), 0)
        if "write" in text:
            preview = Preview(folder="runs/llama", files=FILES)
            folder = {"folder": preview.folder}
            write = PlannedWrite(id="c4", name="write_configs", arguments=folder, preview=preview, digest="")
            yield Approval("a1", [write])
            return
        async for event in self._answer([]):
            yield event

    async def resume(self, approved: bool) -> AsyncIterator[Event]:
        self.resumed.append(approved)
        async for event in self._answer(WRITTEN if approved else []):
            yield event

    async def _answer(self, files: list[FileWritten]) -> AsyncIterator[Event]:
        for start in range(0, len(ANSWER), 20):
            yield TextPiece(ANSWER[start : start + 20])
        yield done(ANSWER, files=files, session=self.id)
