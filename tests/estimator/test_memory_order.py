"""Over the whole catalogue: training less takes less memory, and sharding more takes less, on the same layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from estimator.plan.layouts import RECOMPUTE, Layouts
from estimator.plan.schema import Plan
from estimator.plan.training.job import FREEZE_LAYERS
from estimator.plan.training.stages import Floats
from estimator.search.layouts import candidates
from estimator.training.memory import COMPONENTS, device_memory
from knowledge.jobs.training import job_of
from knowledge.models.catalogue import architecture
from knowledge.models.known import models

MODELS = [model.id for model in models()]
STATES = ("weights", "gradients", "optimizer")
ZERO_STAGES = (0, 1, 2, 3)
# Framework and devices. Samples are short, so that it is the states that decide and not the activations.
SETUPS = {"one device": ("hf-trainer", 1), "eight devices": ("deepspeed", 8)}
SEQ_LEN = 512
# Adapters of rank 16 on every matrix of a model with narrow layers are no small part of it, and two of a few layers
# are: below this many parameters freezing can take less than adapters do.
SIZABLE = 0.5e9
GIB = 2**30


@dataclass(frozen=True)
class Catalogue:
    """Every model under each layout: total bytes and the most that each component takes, shape (models, layouts)."""

    layouts: Layouts
    total: Floats
    component_peaks: dict[str, Floats]


@cache
def estimated(setup: str, method: str) -> Catalogue:
    """The layouts of a set-up (each ZeRO stage, recompute none and full), and what they take."""
    framework, count = SETUPS[setup]
    workload = {"framework": framework, "method": method, "seq_len": SEQ_LEN}
    plan = {
        "model": MODELS[0],
        "workload": workload | {"micro_batch": 1, "global_batch": count},
        "cluster": {"accelerator": "h100-sxm", "count": count},
        "layout": {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": count, "offload": "none"},
    }
    job = job_of(Plan.parse(plan))
    layouts = candidates(job)
    found = [device_memory(replace(job, architecture=architecture(model)), layouts)[0] for model in MODELS]
    most = {name: np.stack([memory.component_peaks[name] for memory in found]) for name in COMPONENTS}
    return Catalogue(layouts, np.stack([memory.total for memory in found]), most)


def total_bytes(setup: str, method: str, recompute: str, zero_stage: int) -> Floats:
    """Memory per device of every model under one layout; shape (models,)."""
    found = estimated(setup, method)
    (index,) = np.flatnonzero(here(found.layouts, recompute) & (found.layouts.zero_stage == zero_stage))
    return found.total[:, index]


def trained(setup: str, method: str) -> Floats:
    """Bytes of gradients of every model, which are as many as the parameters that are trained."""
    catalogue = estimated(setup, method)
    (index,) = np.flatnonzero(here(catalogue.layouts, "full") & (catalogue.layouts.zero_stage == 0))
    return catalogue.component_peaks["gradients"][:, index]


def here(layouts: Layouts, recompute: str) -> np.ndarray:
    return layouts.recompute == RECOMPUTE.index(recompute)


def wrong(more: Floats, less: Floats, at_least: float = 0.0) -> list[str]:
    """The models of `at_least` parameters for which `more` is not strictly above `less`, with both in GiB."""
    return [
        f"{MODELS[index]}: {more[index] / GIB:.3f} GiB is not above {less[index] / GIB:.3f} GiB"
        for index in np.flatnonzero(~(more > less))
        if architecture(MODELS[index]).parameters >= at_least
    ]


PLACES = [("one device", 0), *(("eight devices", stage) for stage in ZERO_STAGES)]


def test_the_whole_catalogue_is_here() -> None:
    assert len(MODELS) == len(set(MODELS)) >= 200
    for setup, count in (("one device", 2), ("eight devices", 8)):
        found = estimated(setup, "full")
        assert found.total.shape == (len(MODELS), len(found.layouts)) == (len(MODELS), count)


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize(("more", "less"), list(pairwise(["full", "freeze", "lora", "qlora"])))
def test_training_less_takes_less_of_every_sizable_model(setup: str, more: str, less: str) -> None:
    # Checkpointed, as fine-tuning is run: every method then keeps one hidden state a layer at the most. Where optimizer
    # states are sharded, those of frozen layers shrink while adapters cost as much as before, so ZeRO is off.
    larger, smaller = (total_bytes(setup, method, "full", 0) for method in (more, less))
    # Adapters of many narrow experts may be as many parameters as the last layers are, and need every layer's inputs.
    trained_more, trained_less = (trained(setup, method) for method in (more, less))
    clear = trained_more >= 2 * trained_less if (more, less) == ("freeze", "lora") else np.full(larger.shape, True)
    found = wrong(np.where(clear, larger, np.inf), smaller, SIZABLE)
    assert np.mean(clear) > 0.8
    assert not found, "\n".join(found)


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize(("setup", "zero_stage"), PLACES)
@pytest.mark.parametrize(("more", "less"), [("full", "freeze"), ("full", "lora"), ("lora", "qlora")])
def test_training_less_takes_less(setup: str, zero_stage: int, more: str, less: str, recompute: str) -> None:
    # Freezing is not set against adapters here: only the last layers then keep activations, adapters keep all of them.
    larger, smaller = (total_bytes(setup, method, recompute, zero_stage) for method in (more, less))
    found = wrong(larger, smaller)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("method", ["full", "freeze", "lora", "qlora"])
def test_each_zero_stage_holds_fewer_states_of_every_model(method: str) -> None:
    catalogue = estimated("eight devices", method)
    held = np.sum([catalogue.component_peaks[name] for name in STATES], axis=0)
    plain = here(catalogue.layouts, "none")
    columns = [np.flatnonzero(plain & (catalogue.layouts.zero_stage == stage))[0] for stage in ZERO_STAGES]
    for before, after in pairwise(columns):
        found = wrong(held[:, before], held[:, after])
        assert not found, "\n".join(found)


def test_freezing_trains_the_last_layers_and_nothing_else() -> None:
    catalogue = estimated("one device", "freeze")
    plain = int(np.flatnonzero(here(catalogue.layouts, "none"))[0])
    found = []
    for model, gradients in zip(MODELS, catalogue.component_peaks["gradients"][:, plain], strict=True):
        described = architecture(model)
        last = sum(described.blocks[kind].parameters for kind in described.pattern[-FREEZE_LAYERS:])
        if gradients != pytest.approx(4 * last, rel=1e-12):  # fp32
            found.append(f"{model}: {gradients / GIB:.3f} GiB for {4 * last / GIB:.3f} GiB")
    assert not found, "\n".join(found)
