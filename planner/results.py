"""The results that tools share. Every number has its unit in its name; bytes are per device unless said otherwise."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.money.results import BreakEven, HardwareBill
from planner.result import Assumption, Decisive, Evidence, ProviderCost, Result, TimeLimit, Warned
from planner.serving.results import ServingChoice, ServingMemoryEstimate


class StageMemory(Result):
    stage: int
    layers: int
    per_device_bytes: float
    components: dict[str, float]


class MomentMemory(Result):
    moment: str = Field(description="generation, loss, backward_start, backward_end or optimizer_step.")
    per_device_bytes: float
    components: dict[str, float]


class StageTime(Result):
    """What a pipeline stage does in a step: its components are the whole step, waiting (bubble) included."""

    stage: int
    components: dict[str, float]


OWN_HOST = "overrides.host_gib"
"""Source of a capacity that a plan names."""


class HostMemoryEstimate(Result):
    """Host (CPU) memory of the fullest node that cannot be reclaimed."""

    per_node_bytes: float
    phase: str = Field(description="The worst phase: loading, steady or saving.")
    capacity_bytes: float | None = Field(description="What a node of these accelerators usually has; None: not known.")
    capacity_low_bytes: float | None = Field(description="The least among machines of this kind.")
    capacity_source: str | None
    fits: bool | None
    components: dict[str, float] = Field(description="Of the worst phase.")
    phases: dict[str, float]
    page_cache_bytes: float = Field(description="What loading reads through besides; given back under pressure.")

    @property
    def is_named(self) -> bool:
        """Whether the capacity is the person's own figure."""
        return self.capacity_source == OWN_HOST


class SaveEstimate(Result):
    """Saving a checkpoint: what is on the fullest device then, and the sizes on disk."""

    device_bytes: float
    fits: bool
    checkpoint_bytes: float = Field(description="The trained weights.")
    resumable_bytes: float = Field(description="All that it takes to resume the run.")


class Overridden(Result):
    """A figure that the user gave in place of the estimate."""

    field: str
    value_bytes: float
    estimated_bytes: float


class MemoryEstimate(Result):
    per_device_bytes: float
    low_bytes: float
    high_bytes: float
    capacity_bytes: float = Field(description="What a device can allocate, less what is to stay free.")
    fits: bool
    tight: bool = Field(False, description="It fits, but the upper end leaves less than 3 % of capacity_bytes free.")
    components: dict[str, float] = Field(description="At the worst moment.")
    own_peaks: dict[str, float] = Field(description="Each component at its own worst moment.")
    stages: list[StageMemory]
    moments: list[MomentMemory] = Field(
        default_factory=list, description="The fullest stage over a step, in order; the largest is per_device_bytes."
    )
    fullest_stage: int
    decided_by: str = Field(description="The largest component of the fullest stage.")
    peak: str = Field(description="The worst moment: loss, backward_start, backward_end, optimizer_step or generation.")
    overridden: list[Overridden] = Field(description="What the user set, each beside its estimate.")
    host: HostMemoryEstimate
    save: SaveEstimate


class TimeEstimate(Result):
    step_s: float
    low_s: float
    high_s: float
    components: dict[str, float]
    stages: list[StageTime] = Field(default_factory=list, description="Of a pipeline, its first and its last stage.")


class Throughput(Result):
    tokens_per_s: float
    tokens_per_s_per_device: float
    samples_per_s: float
    model_tflops_per_device: float
    mfu: float
    hfu: float
    expected_mfu: float | None = Field(default=None, description="What is estimated, where the plan names its own MFU.")


class Goodput(Result):
    """What failures of machines add to a run: of its hours by the clock, those that are no steps of it."""

    interruptions: float = Field(description="Expected during the run.")
    share: float = Field(description="Part of the hours in which steps are made: effective training time.")
    mfu: float = Field(description="Effective MFU: of all hours by the clock.")
    checkpoint_interval_minutes: float | None = Field(
        description="Of work between two checkpoints, the one that loses least (Young); null where none is needed."
    )
    checkpoint_hours: float
    redone_hours: float = Field(description="Work lost since the last checkpoint and done again.")
    restart_hours: float = Field(description="From failures until it trains again.")


class RunLength(Result):
    """The whole run, when the size of the data is known. Runs of a day or more, or on 64 devices or more, have the
    failures of machines in their hours."""

    tokens: float
    steps: int
    hours: float = Field(description="By the clock.")
    low_hours: float
    high_hours: float
    step_hours: float = Field(description="Of the steps alone, undisturbed.")
    device_hours: float
    goodput: Goodput | None = Field(description="Null for shorter and smaller runs.")
    elapsed_hours: float | None = Field(
        default=None, description="Where machines are free a part of the week: until it is done, from its start."
    )
    low_elapsed_hours: float | None = None
    high_elapsed_hours: float | None = None


class LayoutChoice(Result):
    framework: str
    layout: dict[str, Any]
    micro_batch: int
    grad_accum: int
    per_device_bytes: float
    headroom_bytes: float
    step_s: float
    tokens_per_s: float
    mfu: float
    summary: str


class Rejected(Result):
    layout: dict[str, Any]
    rule: str
    summary: str


class Roofline(Result):
    """The forward and backward passes of a step on one device, against arithmetic and device memory."""

    arithmetic_intensity_flop_per_byte: float
    ridge_flop_per_byte: float = Field(description="The intensity from which arithmetic binds and memory does not.")
    attainable_flops: float = Field(description="FLOP/s that this intensity allows.")
    achieved_flops: float = Field(description="FLOP/s over the whole step, with recompute, waiting included.")
    peak_flops: float
    memory_bandwidth_bytes_per_s: float
    traffic_bytes: float = Field(description="Read from and written to device memory.")
    bound: str = Field(description="compute or memory bandwidth.")


class Improvement(Result):
    """A change that makes the plan faster, estimated as a plan of its own."""

    patch: dict[str, Any]
    what: str
    why: str
    kind: str = Field(
        description="setting, framework, training (what is trained changes) or hardware (it has to be bought)."
    )
    step_s_before: float
    step_s: float
    tokens_per_s: float
    gain: float = Field(description="Tokens/s more, as a fraction: 0.1 is 10 % more.")
    speedup: float = Field(description="Tokens/s over those of the plan asked about.")
    mfu: float
    per_device_bytes: float
    fits: bool


class TrainingEstimate(Warned):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    memory: MemoryEstimate
    time: TimeEstimate
    throughput: Throughput
    run: RunLength | None
    bottleneck: str = Field(description="What most of the step goes to; the first of limits.")
    limits: list[TimeLimit] = Field(description="What the step waits for, the most first.")
    roofline: Roofline
    improvements: list[Improvement] | None = Field(
        description="What would be faster and fits, the most gain first; null unless asked for."
    )
    decides: list[Decisive] = Field(
        default_factory=list, description="What was assumed and moves the figures most when it is otherwise, first."
    )
    layout_chosen: bool = Field(description="True when the search chose what the layout left open.")
    why: list[str] = Field(description="Why this layout, in sentences.")
    warnings: list[str]
    evidence: list[Evidence]


class Remedy(Result):
    patch: dict[str, Any]
    what: str
    why: str = Field(description="What it saves, and at what price.")
    in_host_memory: bool = Field(default=False, description="Of serving: whether the host's memory then holds weights.")
    per_device_bytes: float
    saves_bytes: float = Field(description="Less per device than the plan asked about; negative for more.")
    fits: bool
    slowdown: float = Field(description="Time per token over that of the plan asked about; 1.1 is 10 % slower.")


class FitCheck(Result):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    fits: bool
    tight: bool = Field(False, description="Of training: it fits, but with less than 3 % of the memory to spare.")
    headroom_bytes: float = Field(
        description="Capacity minus the upper end of the memory interval; of serving, room for more requests."
    )
    memory: MemoryEstimate | ServingMemoryEstimate
    largest_micro_batch: int | None = Field(description="Of training.")
    largest_seq_len: int | None = Field(description="The longest sequence; of serving, prompt and output together.")
    max_concurrency: int | None = Field(default=None, description="Of serving: whole requests that fit at once.")
    meets_slo: bool | None = Field(default=None, description="Of serving: null where no latency limit was set.")
    remedies: list[Remedy]
    relaxations: list[Remedy] = Field(description="For a plan that fits: what its headroom could buy in speed.")
    warnings: list[str]
    evidence: list[Evidence]


class LimitProbe(Result):
    """One value tried, with the memory of the layout that needs least of those tried."""

    value: int | str
    fits: bool
    per_device_bytes: float | None = Field(description="None where no layout is valid; `why` says why.")
    why: str | None


class NextValue(Result):
    """The nearest value that does not fit, and the memory of the layout that needs least there."""

    value: int | str
    per_device_bytes: float | None
    high_bytes: float | None
    components: dict[str, float]
    stage: int | None
    why: str | None = Field(description="Why no layout is valid there; None where memory decides.")


class Limit(Result):
    goal: str
    value: int | str | None = Field(
        description="The last value that fits; an id for goals model and accelerator. None: none does."
    )
    alike: list[str] = Field(default=[], description="Of goal accelerator: others with the same memory that hold it.")
    on_devices: int | str | None = Field(
        default=None, description="The last that fits with nothing in host memory; null where that was not looked for."
    )
    low_value: int | None = Field(default=None, description="Of tokens: the ends of the 80 % interval.")
    high_value: int | None = None
    plan: dict[str, Any] = Field(description="The complete plan at that value, or at the least value where none fits.")
    assumptions: list[Assumption]
    parameters: int = Field(description="Parameters of the plan's model.")
    memory: MemoryEstimate | ServingMemoryEstimate
    chosen: LayoutChoice | ServingChoice = Field(description="The best layout that fits at that value.")
    limited_by: str = Field(
        description="The largest memory component where it no longer fits; or global_batch, range, catalogue, a field."
    )
    why: str
    next_value: NextValue | None
    tried: int = Field(description="How many values were tried.")
    probes: list[LimitProbe] = Field(description="Those nearest to the limit.")
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]

    @property
    def tight(self) -> bool:
        """Of what is bought for a limit, devices or a model: whether hardly anything is free there. The longest
        sequence and the largest micro-batch are limits of what is free themselves."""
        need = self.memory
        return self.goal in ("devices", "model", "accelerator") and isinstance(need, MemoryEstimate) and need.tight


class BestParallelism(Result):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    best: LayoutChoice
    memory: MemoryEstimate
    run: RunLength | None
    why: list[str]
    alternatives: list[LayoutChoice]
    pareto: list[LayoutChoice]
    rejected: list[Rejected]
    candidates: int = Field(description="Valid layouts.")
    estimated: int = Field(description="Those of them that were estimated: the others cannot fit or cannot be best.")
    feasible: int = Field(description="Those of the estimated ones that fit.")
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


class ModelDescription(Result):
    id: str
    family: str
    parameters: int
    active_parameters: int
    embedding_parameters: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_width: int
    experts: int
    top_k: int
    vocab: int
    context: int
    kv_bytes_per_token: int = Field(description="KV cache bytes per token at 16 bits.")
    valid_tp: list[int] = Field(description="Tensor parallel sizes that the attention and key/value heads allow.")
    weights_bytes_bf16: int
    weights_bytes: int = Field(0, description="Of the published checkpoint, in `weight_format`.")
    shares: str | None = Field(None, description="The model of the catalogue whose architecture this checkpoint has.")
    weight_format: str = Field("bf16", description="What the published checkpoint holds its weights in.")
    vision_parameters: int | None = Field(None, description="Of what reads images, beside the parameters.")
    image_tokens: int | None = Field(None, description="Tokens of one image of 1024x1024 pixels.")
    license: str | None
    source: str | None
    name_score: float = Field(1.0, description="How surely the name means it: 1 for an exact name.")
    name_runner_up: str | None = Field(None, description="What the name could mean else.")
    assumptions: list[Assumption]
    notes: list[str]


class BoughtDevice(Result):
    """What a device is sold for: in USD, of one, with its host where that comes with it."""

    usd: float
    what: str
    price_date: str | None
    stale: bool = Field(description="Older than 90 days or undated.")
    second_hand: bool
    source: str


class HardwareDescription(Result):
    id: str
    name: str
    vendor: str
    family: str
    memory_bytes: float
    usable_bytes: float
    memory_bandwidth_bytes_per_s: float
    peak_tflops: dict[str, float]
    scaleup_link: str
    scaleup_bytes_per_s: float
    peer_bytes_per_s: float
    scaleup_domain: int
    topology: str
    per_node: int
    host_link_bytes_per_s: float
    tdp_w: float | None
    prices: list[ProviderCost]
    cores: int | None = Field(None, description="Streaming multiprocessors, compute units or the maker's kind of core.")
    announced: bool = Field(False, description="Whether its figures are from before release.")
    kin_low_usd_per_hour: float | None = Field(
        None, description="Where nobody is known to rent it out: the cheapest of the devices like it, in USD an hour."
    )
    kin_high_usd_per_hour: float | None = Field(None, description="The dearest of them. An assumption, no offer.")
    kin_low_usd: float | None = Field(None, description="The same of a machine that is bought as a whole, in USD.")
    kin_high_usd: float | None = None
    kin: list[str] = Field(default_factory=list, description="The devices that the range is of.")
    bought: BoughtDevice | None = Field(None, description="The cheapest that is sold new with its host, else used.")
    break_even: list[BreakEven] = Field(default_factory=list, description="Of a node, bought or reserved.")
    bill: HardwareBill | None = Field(None, description="Of the count and hours that were asked about.")
    source: str
    name_devices: int | None = Field(None, description="How many of it the name stands for.")
    name_score: float = Field(1.0, description="How surely the name means it: 1 for an exact name.")
    name_runner_up: str | None = Field(None, description="What the name could mean else.")
    assumptions: list[Assumption]
    notes: list[str]


class RenderedFile(Result):
    path: str
    target: str
    text: str


class RenderedConfigs(Result):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    files: list[RenderedFile]
    launch_command: str
    needs_from_user: list[str]
    warnings: list[str]


class WrittenFile(Result):
    path: str
    target: str
    bytes: int


class WrittenConfigs(Result):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    folder: str
    files: list[WrittenFile]
    launch_command: str
    needs_from_user: list[str]
    warnings: list[str]
