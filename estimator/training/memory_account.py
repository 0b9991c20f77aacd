"""What the memory of one candidate is made of, by stage and by component, in the estimator's own numbers.

States are linear in the parameters that a device holds, so the part of one kind of parameter is what the same function
says when there is no other kind. Sizes are bytes of one device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimator.account import ROUNDING, Account, Accounts, Term, over, product, rest, times, total
from estimator.kernels.activations import boundary_bytes, bytes_by_operator
from estimator.kernels.adapters import leaked_bytes
from estimator.plan.layouts import Floats, Layouts
from estimator.plan.training.framework import OptimizerFacts
from estimator.plan.training.job import Job
from estimator.plan.training.shards import Held, held_parameters, reached, world_size
from estimator.plan.training.stages import StageShape, recomputed_share, stage_shape
from estimator.training.activations_held import activations_held, block_activations, in_flight
from estimator.training.extra_models import extra_models
from estimator.training.memory import (
    COMPONENTS,
    MOMENTS,
    Memory,
    allocator_slack,
    loss_parts,
    resident_buffers,
    stage_memory,
)
from estimator.training.optimizers import states_held
from estimator.training.states import States, buffers_held, gradients_held, model_states, weights_held
from estimator.units import GIB

# What stands where a figure of the user's own, or host memory, takes the place of what is estimated.
OWN, AWAY = "own_figure", "kept_elsewhere"


@dataclass(frozen=True)
class StageParts:
    """One pipeline stage of a single candidate (`layout` has one entry)."""

    job: Job
    layout: Layouts
    stage: int

    @cached_property
    def shape(self) -> StageShape:
        return stage_shape(self.job.architecture, self.layout, np.array([self.stage]))

    @cached_property
    def held(self) -> Held:
        return held_parameters(self.job, self.layout, self.shape)

    @cached_property
    def states(self) -> States:
        return model_states(self.job, self.layout, self.shape)

    @cached_property
    def memory(self) -> Memory:
        return stage_memory(self.job, self.layout, np.array([self.stage]))

    @cached_property
    def moment(self) -> str:
        return MOMENTS[int(self.memory.moment[0])]

    @cached_property
    def activations(self) -> tuple[float, float]:
        """(Kept for backward, needed by the block at work)."""
        kept, working = activations_held(self.job, self.layout, self.shape)
        return float(kept[0]), float(working[0])

    def component(self, name: str) -> float:
        return float(self.memory.components[name][0])

    def only(self, **kept: Floats) -> Held:
        """What the device holds, of one kind of parameter alone."""
        zero = self.layout.zeros()
        nothing = dict.fromkeys(
            ("dense", "experts", "adapters", "outside", "head", "copied", "trained_dense", "trained_experts"), zero
        )
        return replace(self.held, **(nothing | kept))


def memory_accounts(job: Job, layout: Layouts, fullest: int) -> Accounts:
    """Of everything under `memory.` that is on the device; `fullest` is the stage that the totals are of."""
    accounts: dict[str, Callable[[], Account]] = {}
    parts = {stage: StageParts(job, layout, stage) for stage in range(int(layout.pp[0]))}
    accounts["memory.per_device_bytes"] = lambda: _total(parts[fullest], "memory.components")
    accounts["memory.low_bytes"] = lambda: product(
        times("memory.per_device_bytes", float(parts[fullest].memory.total[0])),
        over("interval_factor.memory_below", 1.0 + job.memory_below),
    )
    accounts["memory.high_bytes"] = lambda: product(
        times("memory.per_device_bytes", float(parts[fullest].memory.total[0])),
        times("interval_factor.memory_above", 1.0 + job.memory_above),
    )
    accounts["memory.capacity_bytes"] = lambda: _capacity(job)
    accounts["headroom_bytes"] = lambda: total(
        Term("memory.capacity_bytes", job.usable_bytes),
        Term("memory.high_bytes", float(parts[fullest].memory.total[0]) * (1.0 + job.memory_above), "-"),
    )
    accounts |= _of_stage(parts[fullest], "memory.components")
    for stage, part in parts.items():
        prefix = f"memory.stages.{stage}.components"
        accounts[f"memory.stages.{stage}.per_device_bytes"] = lambda part=part, prefix=prefix: _total(part, prefix)
        accounts |= _of_stage(part, prefix)
    return accounts


_WHEN = {
    "loss": "while the loss is computed", "backward_start": "as the backward pass begins",
    "backward_end": "as the backward pass ends", "optimizer_step": "in the optimizer step",
    "generation": "while samples are generated",
}  # fmt: skip


def _total(parts: StageParts, prefix: str) -> Account:
    note = f"memory peaks {_WHEN[parts.moment]}"
    return total(*(Term(f"{prefix}.{name}", parts.component(name)) for name in COMPONENTS), note=note)


def _capacity(job: Job) -> Account:
    overrides = job.plan.overrides
    device = "usable_bytes" if overrides.usable_gib is None else "overrides.usable"
    usable = job.machine.accelerator.torch_bytes if overrides.usable_gib is None else overrides.usable_gib * GIB
    reserve = (overrides.reserve_gib or 0.0) * GIB
    if reserve > usable:
        return Account("inputs", (Term(device, usable), Term("overrides.reserve", reserve, "-")))
    return total(Term(device, usable), Term("overrides.reserve", reserve, "-"))


def _of_stage(parts: StageParts, prefix: str) -> dict[str, Callable[[], Account]]:
    accounts: dict[str, Callable[[], Account]] = {}
    for name in COMPONENTS:
        make = _MAKERS[name]
        accounts[f"{prefix}.{name}"] = lambda make=make, name=name: make(parts, f"{prefix}.{name}")
    for kind in _KINDS:
        accounts[f"{prefix}.weights.{kind}"] = lambda kind=kind: _weights_of(parts, kind)
    accounts[f"{prefix}.activations.kept"] = lambda: _kept(parts, f"{prefix}.activations")
    for kind in range(len(parts.job.architecture.blocks)):
        at = f"{prefix}.activations.layers_{kind}"
        accounts[at] = lambda kind=kind, at=at: _layers(parts, kind, at)
        accounts[f"{at}.layer"] = lambda kind=kind: _layer(parts, kind)
    accounts[f"{prefix}.logits_and_loss.logits"] = lambda: _logits(parts)
    return accounts


# Kinds of parameters, and the fields of Held that hold them.
_KINDS = ("blocks", "embedding", "head", "experts", "adapters", "trained_copies")


def _kind(parts: StageParts, kind: str) -> tuple[Held, float, float]:
    """(A device that holds only this kind, its parameters before ZeRO shards them, what is left of one after that)."""
    held = parts.held
    inside, table = held.dense - held.outside, held.outside - held.head
    only, count = {
        "blocks": ({"dense": inside}, inside),
        "embedding": ({"dense": table, "outside": table}, table),
        "head": ({"dense": held.head, "outside": held.head, "head": held.head}, held.head),
        "experts": ({"experts": held.experts}, held.experts),
        "adapters": ({"adapters": held.adapters}, held.adapters),
        "trained_copies": ({"copied": held.copied}, held.copied),
    }[kind]
    ones, zero = parts.layout.ones(), parts.layout.zeros()
    stage = 2 if _gathered_stage_two(parts) else 3
    share = held.sharded(stage, zero, ones) if kind == "experts" else held.sharded(stage, ones, zero)
    return parts.only(**only), float(count[0]), float(share[0])


def _gathered_stage_two(parts: StageParts) -> bool:
    return bool(parts.job.framework.gathering.live_units) and int(parts.layout.zero_stage[0]) == 2


def _weights(parts: StageParts, prefix: str) -> Account:
    job, layout, terms = parts.job, parts.layout, list[Term]()
    for kind in _KINDS:
        held, count, _ = _kind(parts, kind)
        if count:
            terms.append(Term(f"{prefix}.{kind}", float(weights_held(job, layout, held)[0])))
    value = parts.component("weights")
    return _closed(parts, "weights", value, terms)


def _weights_of(parts: StageParts, kind: str) -> Account:
    held, count, share = _kind(parts, kind)
    value = float(weights_held(parts.job, parts.layout, held)[0])
    if not count:
        return total(Term("held_parameters", 0.0), value=0.0)
    each = value / (count * share)
    return product(
        times("held_parameters", count), times("bytes_per_parameter", each), over("zero_shards", 1.0 / share),
        value=value,
    )  # fmt: skip


def _closed(parts: StageParts, component: str, value: float, terms: list[Term]) -> Account:
    """The sum, with what a figure of the user's own or host memory changes as a term of its own."""
    name = OWN if component in parts.job.overridden_bytes else AWAY
    note = "" if value or not any(term.value for term in terms) else _none(parts)
    away = parts.layout.max_of("offload") or parts.job.pages_states
    if not value and not away and component not in parts.job.overridden_bytes:
        return Account("sum", (Term("nothing", 0.0),), note=note or _none(parts))
    return total(*(rest(value, terms, name) or [Term("nothing", 0.0)]))


def _none(parts: StageParts) -> str:
    return f"there is none at the worst moment of a step, which is {parts.moment}"


def _gradients(parts: StageParts, prefix: str) -> Account:
    job, layout, held = parts.job, parts.layout, parts.held
    if job.training.optimizer_in_backward:
        term = Term("gradient_bytes.at_once", float(gradients_held(job, layout, parts.shape, held)[0]))
        return _closed(parts, "gradients", parts.component("gradients"), [term])
    zero = layout.zeros()
    bare = replace(held, adapters=zero)
    dense = replace(bare, trained_experts=zero)
    every, without, alone = (float(gradients_held(job, layout, parts.shape, each)[0]) for each in (held, bare, dense))
    terms = [
        Term("gradient_bytes.dense", alone),
        Term("gradient_bytes.experts", without - alone),
        Term("gradient_bytes.adapters", every - without),
    ]
    value, whole = parts.component("gradients"), float(held.trained_dense[0]) * job.framework.gradients.held_bytes
    shards = whole / alone if alone else 0.0
    if value == alone == every and abs(shards - round(shards)) < ROUNDING and shards >= 1.0 - ROUNDING:
        return product(
            times("held_parameters", whole / job.framework.gradients.held_bytes),
            times("bytes_per_parameter", job.framework.gradients.held_bytes), over("zero_shards", shards), value=value,
        )  # fmt: skip
    return _closed(parts, "gradients", value, [term for term in terms if term.value])


def _optimizer(parts: StageParts, prefix: str) -> Account:
    """By state: an optimizer without the state in question, told apart from the one as it is."""
    job, layout = parts.job, parts.layout
    facts = job.optimizer

    def bytes_with(facts: OptimizerFacts) -> float:
        return float(states_held(replace(job, optimizer=facts), layout, parts.shape, parts.held)[0])

    plain = replace(facts, matrix_elements=None, side_bytes=0.0, rank=0.0)
    master = bytes_with(replace(plain, state_elements=0.0, state_bytes=0.0))
    first = bytes_with(replace(plain, state_bytes=0.0)) - master
    second = bytes_with(replace(plain, state_elements=0.0)) - master
    whole = float(states_held(job, layout, parts.shape, parts.held)[0])
    terms = [
        Term("optimizer_bytes.master", master),
        Term("optimizer_bytes.states", first),
        Term("optimizer_bytes.fixed", second),
        Term("optimizer_bytes.by_shape", _small(whole - master - first - second, whole)),
    ]
    return _closed(parts, "optimizer", parts.component("optimizer"), [term for term in terms if term.value])


def _small(value: float, of: float) -> float:
    """Nothing where only rounding is left."""
    return 0.0 if abs(value) <= ROUNDING * abs(of) else value


def _activations(parts: StageParts, prefix: str) -> Account:
    kept, working = parts.activations
    there = {"loss": (kept, 0.0), "backward_start": (kept, working), "backward_end": (0.0, working)}
    held, at_work = there.get(parts.moment, (0.0, 0.0))
    terms = [Term(f"{prefix}.kept", held), Term("activations_at_work", at_work)]
    return _closed(parts, "activations", parts.component("activations"), [term for term in terms if term.value])


def _kept(parts: StageParts, prefix: str) -> Account:
    """What is kept of all layers, for all micro-batches in flight."""
    job, layout = parts.job, parts.layout
    terms = []
    for kind in range(len(job.architecture.blocks)):
        if value := _layers(parts, kind, f"{prefix}.layers_{kind}").value:
            terms.append(Term(f"{prefix}.layers_{kind}", value))
    if int(layout.pp[0]) > 1 and job.framework.activations.stage_buffers:
        buffers = (
            job.framework.activations.stage_buffers
            * float(layout.grad_accum[0])
            * float(boundary_bytes(job, layout)[0])
        )
        terms.append(Term("stage_buffers", buffers))
    kept = parts.activations[0]
    account = total(*(rest(kept, terms, AWAY) or [Term("nothing", 0.0)]))
    return replace(account, value=kept)


def _layers(parts: StageParts, kind: int, prefix: str) -> Account:
    """Layers of one kind: what one keeps, times the layers, times the micro-batches in flight."""
    count = float(reached(parts.job, parts.shape).layers[kind][0])
    flying = float(in_flight(parts.layout, parts.shape.stage)[0])
    each = _one_layer(parts, kind)
    return product(
        times("stage_layers", count), times(f"{prefix}.layer", each), times("in_flight", flying),
        value=count * each * flying,
    )  # fmt: skip


def _one_layer(parts: StageParts, kind: int) -> float:
    job, layout, block = parts.job, parts.layout, parts.job.architecture.blocks[kind]
    _, kept, _ = block_activations(job, block, layout)
    again = float(recomputed_share(layout, parts.shape)[0])
    per_layer = float(kept[0]) * (1.0 - again) + float(boundary_bytes(job, layout)[0]) * again
    return per_layer + float((leaked_bytes(job, block, layout) + layout.zeros())[0])


def _layer(parts: StageParts, kind: int) -> Account:
    """Operator by operator what is saved, less what recompute makes again."""
    job, layout, block = parts.job, parts.layout, parts.job.architecture.blocks[kind]
    terms = [
        Term(f"saved_by.{name}", float((size + layout.zeros())[0]))
        for name, size in bytes_by_operator(job, block, layout).items()
    ]
    terms.append(Term("saved_by.leaked", float((leaked_bytes(job, block, layout) + layout.zeros())[0])))
    each = _one_layer(parts, kind)
    everything = sum(term.value for term in terms)
    dropped = _small(everything - each, everything)
    terms.append(Term("dropped_by_recompute", dropped, "-"))
    terms = [term for term in terms if term.value]
    return total(*(terms or [Term("nothing", 0.0)]), value=each)


def _loss(parts: StageParts, prefix: str) -> Account:
    value = parts.component("logits_and_loss")
    if not value:
        why = "the head is on another stage" if not float(parts.shape.has_head[0]) else _none(parts)
        return Account("sum", (Term("nothing", 0.0),), note=why)
    _, _, norm = loss_parts(parts.job, parts.layout)
    logits = _logits(parts).value or 0.0
    terms = [Term(f"{prefix}.logits", logits), Term("saved_by.final_norm", float(norm[0]))]
    return _closed(parts, "logits_and_loss", value, terms)


def _logits(parts: StageParts) -> Account:
    each, tokens, _ = loss_parts(parts.job, parts.layout)
    job, tp = parts.job, float(parts.layout.tp[0])
    outputs, name = float(job.head_outputs), "head_outputs" if job.training.stage == "rm" else "model.vocab"
    return product(
        times("bytes_per_logit", float(each[0])),
        times("logit_tokens", float(tokens[0])),
        times(name, outputs),
        over("layout.tp", tp),
        value=float((each * tokens * outputs / tp)[0]),
    )


def _extra(parts: StageParts, prefix: str) -> Account:
    kept = activations_held(parts.job, parts.layout, parts.shape)[0]
    extra = extra_models(parts.job, parts.layout, parts.states, parts.shape, kept)
    terms = [Term("extra_models.resident", float((extra.resident + parts.layout.zeros())[0]))]
    if parts.moment in ("loss", "backward_start"):
        terms.append(Term("extra_models.working", float((extra.working + parts.layout.zeros())[0])))
    if parts.moment == "generation":
        terms.append(Term("extra_models.generation", float((extra.generation + parts.layout.zeros())[0])))
    return _closed(parts, "extra_models", parts.component("extra_models"), [term for term in terms if term.value])


def _buffers(parts: StageParts, prefix: str) -> Account:
    job, layout = parts.job, parts.layout
    at_head, backward = buffers_held(job, layout, parts.shape, parts.held)
    terms = [
        Term(f"buffer.{name}", float((size + layout.zeros())[0]))
        for name, size in (at_head if parts.moment == "loss" else backward).items()
    ]
    value = parts.component("communication_buffers")
    if parts.moment == "optimizer_step" and not float(resident_buffers(job, layout, parts.states)[0]):
        terms = []
    return _closed(parts, "communication_buffers", value, [term for term in terms if term.value])


def _step(parts: StageParts, prefix: str) -> Account:
    step = float(parts.states.step[0])
    terms = [Term("step_bytes", step)] if parts.moment == "optimizer_step" and step else []
    return _closed(parts, "step_temporaries", parts.component("step_temporaries"), terms)


def _context(parts: StageParts, prefix: str) -> Account:
    job = parts.job
    several = bool((world_size(parts.layout) > 1)[0])
    device = job.framework.context_bytes or job.calibration.context_bytes
    terms = [Term("context_bytes", device), Term("collective_bytes", several * job.calibration.collective_bytes)]
    if not parts.component("framework_and_context"):
        terms = []
    return _closed(parts, "framework_and_context", parts.component("framework_and_context"), terms)


def _slack(parts: StageParts, prefix: str) -> Account:
    busy = parts.component("activations") + parts.component("step_temporaries")
    value = parts.component("allocator_slack")
    own = min(allocator_slack(parts.job) * busy, value)
    terms = [Term("slack_bytes.activations", own), Term("slack_bytes.cached", value - own)]
    return _closed(parts, "allocator_slack", value, terms)


_MAKERS: dict[str, Callable[[StageParts, str], Account]] = {
    "weights": _weights,
    "gradients": _gradients,
    "optimizer": _optimizer,
    "activations": _activations,
    "logits_and_loss": _loss,
    "extra_models": _extra,
    "communication_buffers": _buffers,
    "step_temporaries": _step,
    "framework_and_context": _context,
    "allocator_slack": _slack,
}
