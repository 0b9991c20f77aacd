"""What the time of a candidate's step is made of, and the rates that follow from it, in the estimator's own numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimator.account import ROUNDING, Account, Accounts, Term, over, product, times, total
from estimator.kernels.collectives import Group, algorithm
from estimator.kernels.compute import memory_time, optimizer_time
from estimator.plan.layouts import Layouts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held, held_parameters
from estimator.plan.training.stages import StageShape, micro_batch_tokens, stage_shape
from estimator.training.estimates import least_of
from estimator.training.matrix_updates import matrix_update_time
from estimator.training.operators import Operator, operators
from estimator.training.schedule import (
    COMPONENTS,
    Message,
    Passes,
    Step,
    bubble_left,
    moved_by_data,
    passes,
    pipeline_sends,
    updated,
)
from estimator.units import FLOP_PER_TFLOP

# Components of a step that are built of operators, by the phase of these.
PHASES = ("forward", "backward", "recompute")
# Communication by the component of the step that holds what of it is not hidden.
_MESSAGES = {"tensor": "tensor_parallel", "context": "context_parallel", "expert": "expert_parallel"}


@dataclass(frozen=True)
class Collective:
    """Communication of one kind on one device over a step. `size_bytes` is the buffer of one call, `exposed_s` what of
    `seconds` the step waits for; None where several kinds share what is hidden."""

    component: str
    what: str
    group_size: int
    group_stride: int
    crosses_nodes: bool
    size_bytes: float
    calls: float
    algorithm: str
    link_bytes_per_s: float
    seconds: float
    exposed_s: float | None


@dataclass(frozen=True)
class StepParts:
    """A single candidate: `layout` and `step` have one entry."""

    job: Job
    layout: Layouts
    step: Step

    @cached_property
    def passes(self) -> Passes:
        return passes(self.job, self.layout)

    @cached_property
    def first(self) -> StageShape:
        return stage_shape(self.job.architecture, self.layout, np.zeros_like(self.layout.pp))

    @cached_property
    def held(self) -> Held:
        return held_parameters(self.job, self.layout, self.first)

    @cached_property
    def operators(self) -> list[Operator]:
        every = operators(self.job, self.layout, self.passes)
        return [replace(each, seconds=each.seconds * self.times) for each in every] if self.times != 1.0 else every

    @property
    def times(self) -> float:
        """As many times as long a machine of one's own takes for everything."""
        return float(self.job.calibration.device.step)

    @property
    def rounds(self) -> float:
        """Micro-batches of a step."""
        return float(self.layout.grad_accum[0])

    @property
    def seconds(self) -> float:
        return float(self.step.seconds[0])

    def component(self, name: str) -> float:
        return float(self.step.components[name][0])

    @cached_property
    def collectives(self) -> list[Collective]:
        """What the devices send each other in a step, by kind, the longest first."""
        candidates = [self._of_layers(kind, component) for kind, component in _MESSAGES.items()]
        rows = [row for row in candidates if row]
        for what, messages in moved_by_data(self.job, self.layout, self.passes.groups, self.held).items():
            rows += [self._of_data(what, message) for message in messages]
        if float(self.layout.pp[0]) > 1:
            rows.append(self._of_pipeline())
        return sorted((row for row in rows if row.seconds > 0.0), key=lambda row: -row.seconds)

    def _of_layers(self, kind: str, component: str) -> Collective | None:
        """Of the layers of the slowest stage; the largest buffer stands for all."""
        shape = stage_shape(self.job.architecture, self.layout, self.passes.stage)
        messages = [
            (float((count * shape.visited)[0]), traffic[kind])
            for count, traffic in zip(shape.layers, self.passes.traffic, strict=True)
            if kind in traffic
        ]
        if not messages:
            return None
        calls = self.rounds * sum(count * _first(message.times) for count, message in messages)
        seconds = self.times * self.rounds * sum(count * float(message.seconds[0]) for count, message in messages)
        largest = max((message for _, message in messages), key=lambda message: float(message.size[0]))
        exchanged = self.job.framework.gathering.exchanges_heads
        context = "all-to-all of heads" if exchanged else "ring of keys and values"
        what = {"tensor": "all-reduce", "context": context, "expert": "all-to-all"}[kind]
        # Forward passes that are made again send again.
        exposed = self.component(component)
        return self._row(component, what, largest, calls, seconds, exposed)

    def _of_data(self, what: str, message: Message) -> Collective:
        operation = {
            "gather": "all-gather of weights",
            "reduce": "reduce-scatter of gradients",
            "replicas": "all-reduce of gradients over replicas",
        }[what]
        seconds = self.times * float(message.seconds[0])
        return self._row("data_parallel", operation, message, _first(message.times), seconds, None)

    def _of_pipeline(self) -> Collective:
        sends = pipeline_sends(self.job, self.layout, self.passes.groups)
        seconds = self.component("pipeline")
        size = (
            micro_batch_tokens(self.job, self.layout) * float(self.job.architecture.hidden) * self.job.activation_bytes
        )
        message = Message(self.passes.groups.pipeline, size / self.layout.outside_split, self.rounds, sends)
        return self._row("pipeline", "send to the next stage", message, self.rounds, seconds, seconds)

    def _row(
        self, component: str, what: str, message: Message, calls: float, seconds: float, exposed: float | None
    ) -> Collective:
        members: Group = message.group
        crosses = bool(members.crosses[0])
        link = members.out if crosses else members.up
        return Collective(
            component=component,
            what=what,
            group_size=int(members.size[0]),
            group_stride=int(np.atleast_1d(members.stride)[0]),
            crosses_nodes=crosses,
            size_bytes=float(message.size[0]),
            calls=calls,
            algorithm=algorithm(members, message.size, what),
            link_bytes_per_s=_first(link),
            seconds=seconds,
            exposed_s=exposed,
        )


def _first(value: object) -> float:
    return float(np.atleast_1d(np.asarray(value, dtype=np.float64))[0])


def time_accounts(parts: StepParts) -> Accounts:
    """Of the step's time, and of the rates."""
    accounts: dict[str, Callable[[], Account]] = {}
    spread = parts.job.time_spread
    accounts["time.step_s"] = lambda: total(
        *(Term(f"time.components.{name}", parts.component(name)) for name in COMPONENTS)
    )
    step = times("time.step_s", parts.seconds)
    low = float(least_of(parts.step.seconds, parts.step.model_flop, parts.job)[0])
    accounts["time.low_s"] = lambda: product(step, over("interval_factor.time_spread", parts.seconds / low))
    accounts["time.high_s"] = lambda: product(step, times("interval_factor.time_spread", 1.0 + spread))
    for name in COMPONENTS:
        make = _MAKERS.get(name)
        accounts[f"time.components.{name}"] = (
            (lambda name=name: _by_operators(parts, name)) if make is None else (lambda make=make: make(parts))
        )
    accounts |= _rates(parts)
    accounts |= _work(parts)
    accounts["time.compute_s"] = lambda: total(
        *(Term(f"time.components.{name}", parts.component(name)) for name in PHASES),
        value=sum(parts.component(name) for name in PHASES),
    )
    accounts["time.micro_batch_s"] = lambda: _micro_batch(parts)
    return accounts


def _by_operators(parts: StepParts, phase: str) -> Account:
    """The operators of one phase, those that take little put together."""
    every = [each for each in parts.operators if each.phase == phase]
    named: dict[str, float] = {}
    for each in every:
        kind = _kind(each)
        named[kind] = named.get(kind, 0.0) + each.seconds
    if not named:
        return Account("sum", (Term("nothing", 0.0),))
    return total(*(Term(f"operators.{name}", seconds) for name, seconds in named.items()))


def _kind(each: Operator) -> str:
    """matmuls, attention, or what is bound by memory."""
    if each.shape:
        return "head" if each.name.startswith("output head") else "matmuls"
    return "attention" if each.name == "attention core" else "memory_bound"


def _extra(parts: StepParts) -> Account:
    return _per_micro(parts, "extra_models")


def _per_micro(parts: StepParts, name: str) -> Account:
    """What a micro-batch takes on the slowest stage, as often as there are micro-batches."""
    each = parts.times * float(parts.passes.micro[name][0])
    return product(times("micro_batches", parts.rounds), times(f"micro_batch_seconds.{name}", each))


def _communication(parts: StepParts, component: str) -> Account:
    """All that the kind sends, less what compute hides or more where recompute sends again."""
    rows = [row for row in parts.collectives if row.component == component]
    value = parts.component(component)
    terms = [Term("communication.all", row.seconds) for row in rows]
    more = value - sum(term.value for term in terms)
    if abs(more) > ROUNDING * value:
        name = "communication.again" if more > 0.0 else "communication.hidden"
        terms.append(Term(name, abs(more), "+" if more > 0.0 else "-"))
    return total(*(terms or [Term("nothing", 0.0)]))


def _data(parts: StepParts) -> Account:
    rows = [row for row in parts.collectives if row.component == "data_parallel"]
    value = parts.component("data_parallel")
    names = {
        "all-gather of weights": "communication.gather",
        "reduce-scatter of gradients": "communication.reduce",
        "all-reduce of gradients over replicas": "communication.replicas",
    }
    terms = [Term(names[row.what], row.seconds) for row in rows]
    hidden = sum(term.value for term in terms) - value
    if terms:
        terms.append(Term("communication.hidden", hidden, "-"))
    return total(*(terms or [Term("nothing", 0.0)]))


def _pipeline(parts: StepParts) -> Account:
    sends = parts.times * float(pipeline_sends(parts.job, parts.layout, parts.passes.groups)[0])
    return product(times("micro_batches", parts.rounds), times("micro_batch_seconds.sends", sends))


def _bubble(parts: StepParts) -> Account:
    """Narayanan et al. 2021, section 2.2: (p - 1) / v micro-batches, less what the schedule fills."""
    layout, passes = parts.layout, parts.passes
    stages, vpp = float(layout.pp[0]), float(layout.vpp[0])
    if stages <= 1.0:
        return Account("sum", (Term("nothing", 0.0),), note="there is no pipeline")
    sends = float(pipeline_sends(parts.job, layout, passes.groups)[0])
    others = max(0.0, stages * float(passes.even[0]) - float(passes.per_micro[0]))
    left = float(bubble_left(layout)[0]) * vpp
    return product(
        times("bubble_left", left),
        times("other_stages_s", parts.times * (others + (stages - 1.0) * sends)),
        over("layout.vpp", vpp),
        note=f"{stages:.0f} stages, {parts.rounds:.0f} micro-batches, {int(vpp)} parts of the model per stage: "
        f"without imbalance (p - 1) / (m v) = {(stages - 1) / (parts.rounds * vpp):.3f} of the work",
    )


def _optimizer(parts: StepParts) -> Account:
    job, layout = parts.job, parts.layout
    value = parts.component("optimizer")
    trained = float(updated(job, layout, parts.held)[0])
    if bool(layout.optimizer_offloaded[0]):
        return total(Term("optimizer_seconds.host", value), note="the step runs on the host")
    launches = float(memory_time(job, np.zeros(1), 4.0)[0])
    moving = float(optimizer_time(job, layout, np.full(1, trained))[0]) - launches
    size = moving * job.machine.accelerator.memory_bandwidth * job.calibration.device.memory
    moved = size / trained if trained else 0.0
    terms = [Term("optimizer_seconds.moving", moving), Term("optimizer_seconds.launches", launches)]
    if job.updates_matrices:
        iterations, gathered = matrix_update_time(job, layout, parts.passes.groups, parts.first, parts.held)
        kind = "eigenbases" if job.optimizer.square_bytes else "newton_schulz"
        terms += [
            Term(f"optimizer_seconds.{kind}", float(iterations[0])),
            Term("optimizer_seconds.gathering", float(gathered[0])),
        ]
    return total(
        *(replace(term, value=term.value * parts.times) for term in terms),
        note=f"{moved:.1f} bytes are read and written for each of {trained:.4g} parameters",
    )


def _host(parts: StepParts) -> Account:
    step = parts.times * parts.job.calibration.framework.step_host_s
    return total(Term("host_seconds.launches", parts.component("host") - step), Term("host_seconds.step", step))


def _single(parts: StepParts, name: str) -> Account:
    value = parts.component(name)
    return Account("sum", (Term(f"{name}_seconds" if value else "nothing", value),))


def _stragglers(parts: StepParts) -> Account:
    job = parts.job
    slack = job.calibration.framework.straggler * float(np.log2(max(1, job.machine.nodes)))
    return product(times("time.before_stragglers_s", parts.seconds / (1.0 + slack)), times("straggler_share", slack))


def _micro_batch(parts: StepParts) -> Account:
    micro = parts.passes.micro
    return total(
        *(Term(f"micro_batch_seconds.{name}", parts.times * float(seconds[0])) for name, seconds in micro.items()),
        value=parts.times * float(parts.passes.per_micro[0]),
    )


_MAKERS: dict[str, Callable[[StepParts], Account]] = {
    "extra_models": _extra,
    "tensor_parallel": lambda parts: _communication(parts, "tensor_parallel"),
    "context_parallel": lambda parts: _communication(parts, "context_parallel"),
    "expert_parallel": lambda parts: _communication(parts, "expert_parallel"),
    "data_parallel": _data,
    "pipeline": _pipeline,
    "bubble": _bubble,
    "optimizer": _optimizer,
    "host": _host,
    "offload": lambda parts: _single(parts, "offload"),
    "generation": lambda parts: _single(parts, "generation"),
    "stragglers": _stragglers,
}


def _rates(parts: StepParts) -> dict[str, Callable[[], Account]]:
    job, step = parts.job, parts.step
    count, seconds = float(job.machine.count), parts.seconds
    tokens = times("work.tokens_per_step", float(job.tokens_per_step))
    by_step = over("time.step_s", seconds)
    model, hardware = float(step.model_flop[0]), float(step.hardware_flop[0])
    return {
        "throughput.tokens_per_s": lambda: product(tokens, by_step),
        "throughput.tokens_per_s_per_device": lambda: product(tokens, by_step, over("cluster.count", count)),
        "throughput.samples_per_s": lambda: product(times("workload.global_batch", float(job.global_batch)), by_step),
        "throughput.model_tflops_per_device": lambda: product(
            times("work.model_flop", model), by_step, over("flop_per_tflop", FLOP_PER_TFLOP)
        ),
        "throughput.mfu": lambda: product(
            times("work.model_flop", model), by_step, over("peak_flops", float(job.peak_flops))
        ),
        "throughput.hfu": lambda: product(
            times("work.hardware_flop", hardware), by_step, over("peak_flops", float(job.peak_flops))
        ),
    }


def _work(parts: StepParts) -> dict[str, Callable[[], Account]]:
    job, step, layout = parts.job, parts.step, parts.layout
    model, hardware = float(step.model_flop[0]), float(step.hardware_flop[0])
    return {
        "work.tokens_per_step": lambda: product(
            times("workload.global_batch", float(job.global_batch)),
            times("sequences_per_sample", float(job.sequences_per_sample)),
            times("workload.seq_len", float(job.seq_len)),
            value=float(job.tokens_per_step),
        ),
        "work.model_flop": lambda: _model_flop(parts, model),
        "work.hardware_flop": lambda: total(
            Term("work.model_flop", model), Term("recompute_flop", hardware - model), value=hardware
        ),
        "micro_batches": lambda: product(
            times("workload.global_batch", float(job.global_batch)),
            over("workload.micro_batch", float(layout.micro_batch[0])),
            over("layout.dp", float(layout.dp[0])),
            value=parts.rounds,
        ),
        "time.before_stragglers_s": lambda: total(
            *(Term(f"time.components.{name}", parts.component(name)) for name in COMPONENTS if name != "stragglers"),
            value=parts.seconds - parts.component("stragglers"),
        ),
    }


def _model_flop(parts: StepParts, model: float) -> Account:
    """Forward once and backward twice, or once where weights are frozen (Chowdhery et al. 2022, appendix B)."""
    job, layout = parts.job, parts.layout
    blocks = sum(
        job.architecture.pattern.count(kind) * float(block.forward_flop[0])
        for kind, block in enumerate(parts.passes.blocks)
    )
    head = float((parts.passes.head.flop + np.zeros(1))[0])
    micro = blocks + head
    return product(
        times("forward_flop", micro),
        times("flop_passes", model * float(layout.pp[0]) / (micro * parts.rounds)),
        times("micro_batches", parts.rounds),
        over("layout.pp", float(layout.pp[0])),
        value=model,
    )
