"""The space that is searched: every valid combination of what a plan leaves open, enumerated by arrays.

Rows grow one field at a time: the values of a field are crossed with all rows so far, and a mask of shape (rows,
values) says which combinations can be. A base is a split of the devices with its sharding, offloading and schedule;
micro-batch, virtual stages, sequence parallelism and recompute are varied within it, in rows that stand together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from estimator.errors import PlanError
from estimator.plan.layouts import OFFLOAD, RECOMPUTE, SCHEDULES, Ints, Layouts, recompute_code
from estimator.plan.training.job import Job
from estimator.plan.training.layout_checks import (
    check_given,
    divisors,
    given_recompute,
    splits_evenly,
    splits_sequences,
    valid_tp,
)
from estimator.plan.training.options import agreeing, asked_for

# Kernels prefer powers of two; in the whole space small batches may be anything.
_MICRO_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
_MORE_MICRO_BATCHES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128)
# Chunks of layers per device beyond which interleaving sends more than it saves.
_MOST_CHUNKS, _MORE_CHUNKS = 8, 16
# Tokens per rank below which context parallelism is not tried, and the most ranks of one sequence.
_LEAST_TOKENS, _FEWER_TOKENS, _MOST_CONTEXT = 4096, 1024, 128
# Ranks of one sequence that are usually tried: an assumption, powers of two as in published recipes.
_USUAL_CONTEXT = [2, 4, 8, 16, 32, 64]
# Quarters of a stage's layers that block:N recomputes; the best of them are refined to single layers afterwards.
_QUARTERS = (1, 2, 3)
# Schedules that give the wait of a stage to weight gradients, which have to be apart from those of inputs: autograd
# cannot split what torch.compile made one (torch.distributed.pipelining, stage_backward_weight).
_SPLIT_BACKWARD = ("zero-bubble", "v-half", "dualpipe")
Rows = dict[str, Ints]


@dataclass(frozen=True)
class Space:
    """What is tried where a plan leaves it open.

    Without `whole` a field that has a usual setting stays at it: sequence parallelism on wherever there is tensor
    parallelism, experts split like all else or not at all, sharding over all devices or one node, recompute of
    everything, of what is cheap, or of nothing. With `splits` tensors and sequences are split by frameworks too for
    which a plan usually has to ask (Limits, searches_splits). `schedules` are those of a pipeline beside interleaving
    (None: 1F1B, and in the whole space what else the framework has), `offloads` names of OFFLOAD. With `extremes` there
    are of each base the smallest and the largest micro-batch alone, and blocks are all recomputed or none.
    """

    whole: bool = False
    extremes: bool = False
    splits: bool = False
    offloads: tuple[str, ...] = ("none",)
    schedules: tuple[str, ...] | None = None


USUAL = Space()
WHOLE = Space(whole=True)


@dataclass(frozen=True)
class Modes:
    """The recompute modes of groups of layouts: codes (m,), the layers that each recomputes in each kind of group,
    (kinds, m), the kind of each group (n,), and which modes each group has, (n, m)."""

    codes: Ints
    layers: Ints
    kind: Ints
    allowed: np.ndarray

    def kept(self, mask: np.ndarray) -> Modes:
        """Without those that `mask` has not, of all that are allowed in their order."""
        allowed = self.allowed.copy()
        allowed[allowed] = mask
        return replace(self, allowed=allowed)

    def of(self, group: np.ndarray, mode: np.ndarray) -> Rows:
        return {"recompute": self.codes[mode], "recompute_layers": self.layers[self.kind[group], mode]}


@dataclass(frozen=True)
class Enumerated:
    """Valid layouts, not yet written out: `bases` has the columns of each base, `groups` those that vary within one
    beside recompute, `modes` that. A group has one layout in all its recompute modes."""

    bases: Rows
    groups: Rows
    modes: Modes

    def __len__(self) -> int:
        return int(self.modes.allowed.sum())

    def has(self, mode: int) -> bool:
        """Whether any recomputes so, by its number in RECOMPUTE."""
        return bool(self.modes.allowed[:, self.modes.codes == mode].any())

    @cached_property
    def rows(self) -> Rows:
        """All layouts with `base`, `group` and `place`, ascending numbers."""
        return self._rows(*np.nonzero(self.modes.allowed))

    def rows_of(self, groups: np.ndarray) -> Rows:
        """Those of `groups` (integers), in their order."""
        place, mode = np.nonzero(self.modes.allowed[groups])
        return self._rows(groups[place], mode)

    def heads(self) -> Rows:
        """Of each group that has any the first, whose mode is the fastest."""
        allowed = self.modes.allowed
        if allowed[:, 0].all():
            return self._rows(np.arange(len(allowed)), np.zeros(len(allowed), dtype=np.int64))
        group = np.flatnonzero(allowed.any(axis=1))
        return self._rows(group, allowed[group].argmax(axis=1))

    def _rows(self, group: np.ndarray, mode: np.ndarray) -> Rows:
        rows = {name: values[group] for name, values in self.groups.items()}
        place = group * len(self.modes.codes) + mode
        return rows | {"group": group, "place": place} | self.modes.of(group, mode)

    def written(self, rows: Rows) -> Layouts:
        """`rows` of these as layouts."""
        base = rows["base"]
        names = [field.name for field in fields(Layouts)]
        return Layouts(**{name: rows[name] if name in rows else self.bases[name][base] for name in names})

    def layouts(self, chosen: np.ndarray | None = None) -> Layouts:
        """All layouts, or those that `chosen` (integers or a mask of shape (n,)) selects."""
        return self.written(self.rows if chosen is None else taken(self.rows, chosen))

    def leanest(self) -> Layouts:
        """Each base with one micro-batch of one sequence a step, nothing else varied."""
        return _leanest(self.bases)


def taken(rows: Rows, chosen: np.ndarray) -> Rows:
    """Those rows that `chosen` (integers or a mask) selects."""
    return {name: values[chosen] for name, values in rows.items()}


def _leanest(bases: Rows) -> Layouts:
    count = len(bases["tp"])
    ones, none = np.ones(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    varied = dict.fromkeys(("vpp", "sequence_parallel", "micro_batch", "grad_accum"), ones)
    varied |= {"recompute": none, "recompute_layers": none} | bases
    return Layouts(**{field.name: varied[field.name] for field in fields(Layouts)})


def candidates(job: Job, space: Space = USUAL) -> Layouts:
    """All valid layouts of `space` that agree with what the plan fixes. Raises PlanError when there is none."""
    return enumerated(job, space).layouts()


def enumerated(job: Job, space: Space) -> Enumerated:
    """As `candidates`, by base and group."""
    bases = _bases(job, space)
    rows = {name: bases[name] for name in ("tp", "pp", "dp", "schedule")}
    rows["base"] = np.arange(len(rows["tp"]))
    rows = _micro_batches(job, space, rows)
    rows = _chunks(job, space, rows)
    rows = _sequence(job, space, rows)
    modes = _checkpoints(job, bases, rows, _recompute(job, space, rows))
    rows = {name: values for name, values in rows.items() if name != "pp"}
    if not modes.allowed.any():
        raise _none_valid(job, space)
    every = Enumerated(bases, rows, modes)
    return replace(every, modes=modes.kept(agreeing(job, every.layouts()))) if asked_for(job) else every


def leanest(job: Job, space: Space) -> Layouts:
    """Each base with one micro-batch of one sequence a step, nothing else varied. Raises PlanError when there is
    none."""
    return _leanest(_bases(job, space))


def _bases(job: Job, space: Space) -> Rows:
    """Sequences are cut shorter than is worth it only where nothing else deals a small batch to all devices."""
    check_given(job)
    bases = _dealt(job, _splits(job, space, _FEWER_TOKENS if space.whole else _LEAST_TOKENS))
    if not len(bases["dp"]):
        bases = _dealt(job, _splits(job, space, 1))
    if not len(bases["dp"]):
        raise _none_valid(job, space)
    bases = _offloads(job, space, bases)
    bases = _shardings(job, space, bases)
    return _schedules(job, space, bases)


def _units(job: Job, bases: Rows) -> Ints:
    """Sequences that each split deals at once."""
    return bases["dp"] * (job.training.micro_batch or 1)


def _dealt(job: Job, bases: Rows) -> Rows:
    """The splits that the batch can be dealt to evenly."""
    return _kept(bases, job.global_batch % _units(job, bases) == 0)


def _none_valid(job: Job, space: Space) -> PlanError:
    """Why nothing is valid."""
    batch, units = job.global_batch, _units(job, _splits(job, space, 1))
    if job.steps_in_backward and job.training.micro_batch:
        problem = (
            f"micro_batch={job.training.micro_batch} is not all of the {batch} sequences of a step, and gradients "
        )
        problem += "are not summed over micro-batches where weights are updated within the backward pass"
        return PlanError("workload.micro_batch", problem, ["global_batch / dp", "open"])
    if len(units) and (batch % units).all():
        unit = int(units.min())
        problem = f"{batch} sequences cannot be dealt evenly to the data-parallel ranks, {unit} at the least"
        valid = [value for value in (batch // unit * unit, batch // unit * unit + unit) if value]
        return PlanError("workload.global_batch", problem, valid)
    return PlanError(
        "layout", f"no layout of {job.machine.count} devices keeps to all the given sizes",
        ["leave tp, pp, cp, ep or dp open", "change cluster.count or workload.global_batch"],
    )  # fmt: skip


def _kept(rows: Rows, mask: np.ndarray) -> Rows:
    return rows if mask.all() else {name: values[mask] for name, values in rows.items()}


def _crossed(rows: Rows, new: Mapping[str, Sequence[int]], allowed: np.ndarray | None = None) -> Rows:
    """Every row with every entry of `new` (columns of equal length), or those that `allowed` (rows, entries) has."""
    columns = {name: np.asarray(values, dtype=np.int64) for name, values in new.items()}
    count, size = len(next(iter(rows.values()))), len(next(iter(columns.values())))
    if size == 1 and (allowed is None or allowed.all()):
        return rows | {name: np.full(count, values[0]) for name, values in columns.items()}
    if allowed is None:
        row, entry = np.divmod(np.arange(count * size), size)
    else:
        row, entry = np.nonzero(allowed)
    return {name: values[row] for name, values in rows.items()} | {name: v[entry] for name, v in columns.items()}


def _table(rows: Rows, name: str) -> np.ndarray:
    """A column in shape (rows, 1), to be compared with the values of a new field."""
    return rows[name][:, None]


def _choices(value: int | None, otherwise: Iterable[int]) -> list[int]:
    return [value] if value else list(otherwise)


def _splits(job: Job, space: Space, least_tokens: int) -> Rows:
    """Products of tp, pp, cp and dp that give the device count, with ep and etp inside; context parallelism that is
    not given leaves a rank `least_tokens`."""
    layout, framework, architecture, count = job.plan.layout, job.framework, job.architecture, job.machine.count
    inside = [size for size in valid_tp(architecture) if size <= job.machine.fast_domain]
    searches = framework.limits.searches_splits or space.splits
    tp = _choices(layout.tp, inside if framework.limits.tp and searches else [1])
    rows: Rows = {"tp": np.array([size for size in tp if count % size == 0], dtype=np.int64)}
    rows["rest"] = count // rows["tp"]
    pp = _choices(layout.pp, divisors(count) if framework.limits.pp else [1])
    rows = _divided(rows, "pp", [size for size in pp if size <= architecture.layers])
    contexts = _context_sizes(job, space, least_tokens) if splits_sequences(job) and searches else [1]
    rows = _divided(rows, "cp", _choices(layout.cp, contexts))
    rows["dp"] = rows.pop("rest")
    if layout.dp:
        rows = _kept(rows, rows["dp"] == layout.dp)
    return _expert_sizes(job, space, rows)


def _divided(rows: Rows, name: str, sizes: list[int]) -> Rows:
    """Crossed with the sizes of one kind of parallelism that divide the devices which are left."""
    rows = _crossed(rows, {name: sizes}, _table(rows, "rest") % np.array(sizes, dtype=np.int64) == 0)
    return rows | {"rest": rows["rest"] // rows[name]}


def _context_sizes(job: Job, space: Space, least_tokens: int) -> list[int]:
    """Context parallelism is worth trying for long sequences, which every rank has as much of."""
    sizes = divisors(job.machine.count) if space.whole else _USUAL_CONTEXT
    longest = [size for size in sizes if 1 < size <= _MOST_CONTEXT and job.seq_len // size >= least_tokens]
    return [1, *(size for size in longest if splits_evenly(job, size))]


def same_cuts(first: Job, second: Job) -> bool:
    """Whether the sequences of two jobs on as many devices can be cut in the same ways."""
    return all(
        _context_sizes(first, WHOLE, tokens) == _context_sizes(second, WHOLE, tokens) for tokens in (_FEWER_TOKENS, 1)
    )


def _expert_sizes(job: Job, space: Space, rows: Rows) -> Rows:
    """Expert-parallel sizes divide the experts; each expert is split over all tensor-parallel ranks, some or none."""
    layout, experts = job.plan.layout, job.architecture.experts
    if not experts:
        return _crossed(rows, {"ep": [1], "etp": [1]})
    if not job.framework.limits.ep:
        rows = _kept(rows, rows["tp"] == layout.etp) if layout.etp else rows
        return rows | {"ep": np.ones_like(rows["tp"]), "etp": rows["tp"]}
    if layout.etp:
        # Experts are split within the tensor ranks, unless a plan names another tp.
        within = rows["tp"] % layout.etp == 0
        rows = _crossed(_kept(rows, within) if within.any() else rows, {"etp": [layout.etp]})
    else:
        # Divisors of every tp: those of a named one too, or naming it would leave splits out.
        sizes = divisors(int(np.lcm.reduce(rows["tp"]))) if len(rows["tp"]) else [1]
        split = _table(rows, "tp") % np.array(sizes) == 0
        if not space.whole:
            split &= (np.array(sizes) == 1) | (_table(rows, "tp") == np.array(sizes))
        rows = _crossed(rows, {"etp": sizes}, split)
    sizes = _choices(layout.ep, divisors(experts))
    ranks = rows["tp"] * rows["cp"] * rows["dp"]
    rows = _crossed(rows, {"ep": sizes}, ranks[:, None] % (_table(rows, "etp") * np.array(sizes)) == 0)
    match job.framework.limits.etp:
        case "unspread":
            return _kept(rows, rows["etp"] == np.where(rows["ep"] == 1, rows["tp"], 1))
        case "tp":
            return _kept(rows, rows["etp"] == rows["tp"])
        case "none":
            return _kept(rows, rows["etp"] == 1)
    return rows


def _offloads(job: Job, space: Space, rows: Rows) -> Rows:
    """What the plan asks for, or more where the space has that; else what the space has. Nothing is gained where device
    and host have one memory, unless it is asked for."""
    offload = job.plan.layout.offload
    names = dict.fromkeys((*space.offloads, job.framework.recipe.offload))
    if offload:
        names = [offload] if space.offloads == USUAL.offloads else space.offloads
    elif job.machine.accelerator.form_factor == "SoC":
        names = ["none"]
    return _crossed(rows, {"offload": [OFFLOAD.index(name) for name in names]})


def _shardings(job: Job, space: Space, rows: Rows) -> Rows:
    """ZeRO stages, and over how many devices they shard: all data-parallel ranks, or for hybrid sharding a part.

    Groups of hybrid sharding fill a node, or in the whole space also a scale-up domain and any power of two times
    either. Weights can only be offloaded where they are sharded, so that 'params' stays with ZeRO-3 unless another
    stage is given with it.
    """
    layout, machine = job.plan.layout, job.machine
    stages = [layout.zero_stage] if layout.zero_stage is not None else list(job.framework.limits.zero_stages)
    held = None
    if (layout.offload is None or layout.zero_stage is None) and max(job.framework.limits.zero_stages) >= 3:
        params = np.array(["params" in name for name in OFFLOAD])[rows["offload"]]
        held = ~params[:, None] | (np.array(stages) >= 3)
    if layout.zero_stage is None and job.framework.limits.splits_sharded:
        split = (rows["tp"] > 1) | (rows["cp"] > 1)
        sharded = ~split[:, None] | (np.array(stages) >= 2)
        held = sharded if held is None else held & sharded
    rows = _crossed(rows, {"zero_stage": stages}, held)
    everyone = rows["dp"] * rows["cp"]
    if layout.shard_group:
        return _crossed(_kept(rows, everyone % layout.shard_group == 0), {"shard_group": [layout.shard_group]})
    if 3 not in stages:
        return rows | {"shard_group": everyone}
    sizes = [machine.per_node]
    if space.whole:
        most = int(machine.count).bit_length()
        sizes = sorted({size << power for size in (machine.per_node, machine.fast_domain) for power in range(most)})
        sizes = [size for size in sizes if size < machine.count]
    # 0 stands for everyone; the others are devices, tensor-parallel ones included.
    groups = np.array(sizes, dtype=np.int64) // _table(rows, "tp")
    inside = (groups > 1) & (groups < everyone[:, None]) & (everyone[:, None] % np.maximum(1, groups) == 0)
    inside &= (np.array(sizes) % _table(rows, "tp") == 0) | (np.array(sizes) == machine.per_node)
    inside &= _table(rows, "zero_stage") == 3
    rows = _crossed(rows, {"span": [0, *sizes]}, np.column_stack([np.ones(len(inside), dtype=bool), inside]))
    span = rows.pop("span")
    return rows | {"shard_group": np.where(span > 0, span // rows["tp"], rows["dp"] * rows["cp"])}


def _schedules(job: Job, space: Space, rows: Rows) -> Rows:
    """The schedule of a pipeline; interleaving comes in with the virtual stages."""
    schedule = job.plan.layout.schedule
    names = [SCHEDULES.index(name) for name in ([schedule] if schedule else _tried(job, space))]
    plain = np.array(names) == SCHEDULES.index("1f1b")
    return _crossed(rows, {"schedule": names}, None if schedule or plain.all() else (_table(rows, "pp") > 1) | plain)


def _tried(job: Job, space: Space) -> Sequence[str]:
    """Schedules that are tried. GPipe waits as long as 1F1B and holds more, so that it is taken only where given."""
    if space.schedules is not None:
        return space.schedules
    if not space.whole:
        return ("1f1b",)
    left_out = ("gpipe", *(_SPLIT_BACKWARD if job.training.compile else ()))
    return [name for name in job.framework.limits.schedules if name not in left_out]


def _micro_batches(job: Job, space: Space, rows: Rows) -> Rows:
    per_replica = job.global_batch // rows["dp"]
    sizes = _choices(job.training.micro_batch, _MORE_MICRO_BATCHES if space.whole else _MICRO_BATCHES)
    singly = job.framework.limits.packs_singly and job.training.packing and job.training.stage != "pretrain"
    most = 1 if singly and not job.training.micro_batch else int(per_replica.max(initial=0))
    sizes = [size for size in sizes if size <= most] or [1]
    dealt = per_replica[:, None] % np.array(sizes) == 0
    if job.steps_in_backward:
        # Gradients that are freed at once are not summed over micro-batches (torchtune, full_finetune_distributed.py).
        sizes = _choices(job.training.micro_batch, np.unique(per_replica).tolist() or [1])
        dealt = per_replica[:, None] == np.array(sizes)
    if space.extremes:
        place = np.arange(len(sizes))
        first, last = dealt.argmax(axis=1), len(sizes) - 1 - dealt[:, ::-1].argmax(axis=1)
        dealt = dealt & ((place == first[:, None]) | (place == last[:, None]))
    rows = _crossed(rows, {"micro_batch": sizes}, dealt)
    return rows | {"grad_accum": job.global_batch // (rows.pop("dp") * rows["micro_batch"])}


def _chunks(job: Job, space: Space, rows: Rows) -> Rows:
    """Virtual stages: layers dealt out evenly, micro-batches in multiples of the stages (Megatron).

    In the whole space embedding and head may count as a layer each (account_for_embedding_in_pipeline_split). With
    interleaving asked for by name a pipeline that can be interleaved is; virtual stages that are asked for may be
    uneven where no split makes them even.
    """
    layout, layers = job.plan.layout, job.architecture.layers
    if layout.vpp == 1:
        rows = _crossed(rows, {"vpp": [1]})
    elif layout.vpp:
        rows = _kept(rows, rows["pp"] > 1)
        dealt = _dealt_out(rows, space, layers, np.array([layout.vpp]))[:, 0]
        rows = _crossed(_kept(rows, dealt) if dealt.any() else rows, {"vpp": [layout.vpp]})
    elif (
        layout.schedule not in (None, "interleaved")
        or not job.framework.limits.interleaves
        or int(rows["pp"].max(initial=1)) == 1
    ):
        rows = _crossed(rows, {"vpp": [1]})
    else:
        chunks = np.arange(1, (_MORE_CHUNKS if space.whole else _MOST_CHUNKS) + 1)
        dealt = _dealt_out(rows, space, layers, chunks)
        dealt[:, 0] = ~dealt[:, 1:].any(axis=1) if layout.schedule else True
        rows = _crossed(rows, {"vpp": chunks.tolist()}, dealt)
    if layout.schedule is None:
        rows["schedule"] = np.where(rows["vpp"] > 1, SCHEDULES.index("interleaved"), rows["schedule"])
    return rows


def _dealt_out(rows: Rows, space: Space, layers: int, chunks: Ints) -> np.ndarray:
    """Which numbers of virtual stages (m,) deal layers and micro-batches of each row out evenly, shape (n, m)."""
    depths, place = np.unique(rows["pp"], return_inverse=True)
    parts = depths[:, None] * chunks
    even = np.zeros(parts.shape, dtype=bool)
    for counted in (layers, layers + 1, layers + 2) if space.whole else (layers,):
        even |= counted % parts == 0
    even &= (depths[:, None] > 1) & (parts <= layers)
    able = (rows["grad_accum"] % rows["pp"] == 0) & (rows["schedule"] <= SCHEDULES.index("interleaved"))
    return even[place] & able[:, None]


def _sequence(job: Job, space: Space, rows: Rows) -> Rows:
    choice = job.plan.layout.sequence_parallel
    split = rows.pop("tp") > 1
    if choice is not None:
        return _crossed(rows, {"sequence_parallel": [int(choice)]})
    if not job.framework.limits.sequence_parallel:
        return rows | {"sequence_parallel": np.zeros_like(split, dtype=np.int64)}
    if not space.whole or not split.any():
        return rows | {"sequence_parallel": split.astype(np.int64)}
    return _crossed(rows, {"sequence_parallel": [1, 0]}, np.column_stack([split, np.ones_like(split)]))


def _checkpoints(job: Job, bases: Rows, rows: Rows, modes: Modes) -> Modes:
    """Without activations in host memory that are no checkpoints, where a framework's recipe offloads those alone."""
    if given_recompute(job) or job.framework.recipe.offload != "activations":
        return modes
    activations = bases["offload"][rows["base"]] == OFFLOAD.index("activations")
    unkept = activations[:, None] & (modes.codes == RECOMPUTE.index("none"))
    return replace(modes, allowed=modes.allowed & ~unkept)


def _recompute(job: Job, space: Space, rows: Rows) -> Modes:
    """Recompute modes. Frameworks that choose what to recompute within a layer also choose layers (block:N)."""
    recompute, partly = given_recompute(job), job.framework.recompute.selective != "none"
    modes = [recompute] if recompute else ["none", *(["selective"] if partly else []), "full"]
    codes, layers = np.array([recompute_code(mode) for mode in modes]).T
    pp = rows["pp"]
    allowed = np.ones((len(pp), len(modes)), dtype=bool)
    if recompute and job.framework.recompute.by_virtual_stage and job.plan.layout.vpp is None:
        # As many in each virtual stage.
        allowed &= layers % rows["vpp"][:, None] == 0
    if recompute or space.extremes or not (space.whole and partly):
        return Modes(codes, layers[None, :], np.zeros_like(pp), allowed)
    # Both are the same for all groups of as many stages in as many parts.
    split = pp * (int(rows["vpp"].max(initial=1)) + 1) + rows["vpp"]
    _, firsts, place = np.unique(split, return_index=True, return_inverse=True)
    pp, vpp = pp[firsts], rows["vpp"][firsts]
    quarters = block_quarters(job, pp, vpp)
    new = (np.diff(quarters, axis=1, prepend=0) > 0) & (quarters < -(-job.architecture.layers // pp)[:, None])
    codes = np.append(codes, [RECOMPUTE.index("block")] * len(_QUARTERS))
    layers = np.hstack([np.tile(layers, (len(pp), 1)), quarters])
    return Modes(codes, layers, place, np.hstack([allowed, new[place]]))


def block_quarters(job: Job, pp: Ints, vpp: Ints) -> Ints:
    """A quarter, half and three quarters of the layers of a stage, as many in each of its virtual stages where the
    framework has it so. Shape (n, 3)."""
    layers = -(-job.architecture.layers // pp)[:, None] * np.array(_QUARTERS) // 4
    return -(-layers // vpp[:, None]) * vpp[:, None] if job.framework.recompute.by_virtual_stage else layers
