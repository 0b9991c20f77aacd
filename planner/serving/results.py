"""The results of tools for serving. Numbers have their unit in their name; bytes are of one device unless said."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.result import Assumption, Decisive, Evidence, ProviderCost, Result, TimeLimit, Warned


class ServingMemoryEstimate(Result):
    """`per_device_bytes` is what the requests of the plan need, `claimed_bytes` what the engine takes: engines give the
    rest of their share to the cache."""

    per_device_bytes: float
    claimed_bytes: float
    capacity_bytes: float = Field(description="What a device can allocate, less what is to stay free.")
    fits: bool = Field(description="Whether at least one request of the longest length wanted has room.")
    components: dict[str, float]
    decided_by: str = Field(description="The largest component.")
    kv_tokens: int | None = Field(description="Tokens that all caches have room for; null where nothing grows.")
    kv_bytes_per_token: float = Field(description="Of the whole model, over the devices that hold a sequence.")
    kv_bytes_per_token_per_device: float
    request_bytes: float = Field(description="Cache of one whole request, prompt and output, on one device.")
    request_model_bytes: float = Field(description="That of the whole model, over the devices that hold a sequence.")
    clients_bytes: float | None = Field(
        default=None, description="Per device, with one whole request of every client at once."
    )
    clients_cache_bytes: float | None = Field(default=None, description="The cache's part of clients_bytes.")
    max_concurrency: int = Field(description="Whole requests, prompt and output, that fit at once over all devices.")
    longest_request: int | None = Field(description="Tokens of the longest that fits; null where nothing grows.")


class ServingLatency(Result):
    """Means and their 80 % intervals. Null where a queue grows without end."""

    ttft_s: float | None = Field(description="From sending a request to its first token, waiting included.")
    ttft_low_s: float | None
    ttft_high_s: float | None
    ttft_p99_s: float | None
    tpot_s: float = Field(description="Between two tokens of a request.")
    tpot_low_s: float
    tpot_high_s: float
    tpot_p99_s: float
    e2e_s: float | None = Field(description="From sending a request to its last token.")
    e2e_low_s: float | None
    e2e_high_s: float | None


class ServingThroughput(Result):
    """Over all devices, with the 80 % interval of output tokens."""

    output_tokens_per_s: float
    output_tokens_low_per_s: float
    output_tokens_high_per_s: float
    total_tokens_per_s: float = Field(description="Prompt and output tokens.")
    requests_per_s: float
    output_tokens_per_s_per_device: float
    total_tokens_per_s_per_device: float
    tokens_per_s_per_user: float = Field(description="Output tokens that one request gets: 1 / tpot_s.")


class PassSplit(Result):
    """Seconds of one pass through the model by what they are spent on."""

    matmul_s: float
    attention_s: float
    memory_s: float = Field(description="Operators bound by memory, and gaps between small kernels.")
    collective_s: float
    host_s: float
    total_s: float


class ServingTime(Result):
    step_s: float = Field(description="Mean time between two steps of a sequence.")
    generating: PassSplit = Field(description="A pass that only generates.")
    reading: PassSplit = Field(description="A pass that reads prompts, with what generates beside it.")
    reading_share: float = Field(description="Passes that read prompts, per step of a sequence.")
    prompt_utilisation: float = Field(description="Part of the time in which prompts are read; near 1 they queue up.")


class LatencyLimit(Result):
    """A limit of latency that the user set, and how it is met."""

    limit: str = Field(description="ttft or tpot.")
    statistic: str = Field(description="mean or p99.")
    limit_s: float
    value_s: float | None
    met: bool
    sure: bool = Field(description="Whether the whole interval is on the same side.")


class ServingCost(Result):
    """At the user's own price, or at the cheapest on-demand offer (of the named provider) for these devices."""

    usd_per_hour: float
    usd_per_month: float = Field(description="Of 730 hours, or those in which machines are free.")
    usd_per_million_output_tokens: float
    usd_per_million_tokens: float = Field(description="Prompt and output tokens.")
    usd_per_million_requests: float
    provider: str | None = Field(description="Null at the user's own price.")
    instance: str | None
    price_date: str | None
    stale: bool | None = Field(default=None, description="Whether that is over 90 days ago, or not known.")


class ServingEstimate(Warned):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    devices: int
    replicas: int = Field(description="Independent copies of the model.")
    memory: ServingMemoryEstimate
    latency: ServingLatency
    throughput: ServingThroughput
    running: float = Field(description="Requests that generate at once, over all devices.")
    waiting: float | None = Field(description="Requests that wait for room at once; null where all came at once.")
    time: ServingTime
    bottleneck: str = Field(
        description="reading weights, reading the KV cache, compute, communication, host, prompts or KV cache."
    )
    limits: list[TimeLimit] = Field(description="What a step waits for, the most first.")
    meets_slo: bool | None = Field(description="Null where no latency limit was set.")
    slo: list[LatencyLimit]
    cost: ServingCost | None = Field(description="Null where no price is known.")
    decides: list[Decisive] = Field(
        default_factory=list, description="What was assumed and moves the figures most when it is otherwise, first."
    )
    layout_chosen: bool = Field(description="True when the search chose what the layout left open.")
    why: list[str]
    warnings: list[str]
    evidence: list[Evidence]


class ServingChoice(Result):
    """One deployment under one load."""

    accelerator: str
    devices: int
    replicas: int
    engine: str
    weight_dtype: str
    kv_dtype: str
    layout: dict[str, int]
    concurrency: int | None = Field(description="Requests in flight over all devices; null for a rate or all at once.")
    request_rate: float | None
    running: float
    per_device_bytes: float
    fits: bool
    max_concurrency: int
    ttft_s: float | None
    tpot_s: float
    e2e_s: float | None
    ttft_p99_s: float | None
    tpot_p99_s: float
    output_tokens_per_s: float
    output_tokens_per_s_per_device: float
    total_tokens_per_s: float
    requests_per_s: float
    tokens_per_s_per_user: float
    meets_slo: bool | None
    usd_per_hour: float | None
    usd_per_million_output_tokens: float | None
    usd_per_million_tokens: float | None
    measured: bool = Field(description="Whether runs of this engine on this kind of device are behind the factors.")
    summary: str


class ServingRejected(Result):
    choice: ServingChoice
    rule: str


class BestServing(Warned):
    plan: dict[str, Any] = Field(description="The complete plan of the best deployment, with its load.")
    assumptions: list[Assumption]
    goal: str
    best: ServingChoice
    meets_slo: bool | None
    why: list[str]
    alternatives: list[ServingChoice]
    pareto: list[ServingChoice] = Field(
        description="None of the others has both more tokens/s per device and less time per token; fastest token first."
    )
    pareto_cost: list[ServingChoice] = Field(
        description="None of the others has both cheaper tokens and less time per token; fastest token first."
    )
    rejected: list[ServingRejected] = Field(description="The best with another value of each field, and why it lost.")
    by_accelerator: list[ServingChoice] = Field(description="The best of each accelerator, the best first.")
    candidates: int = Field(description="Deployments and loads that were estimated.")
    feasible: int = Field(description="Those that fit and meet the latency limits.")
    skipped: list[str] = Field(description="What was not estimated, and why.")
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


class ServingSize(ServingChoice):
    """So many equal replicas under the whole load; figures are those at their share of it."""

    devices_per_replica: int
    replica_limit: float = Field(description="Most load that one replica takes: requests/s, or requests in flight.")
    limited_by: str = Field(description="ttft, tpot, throughput or KV cache.")
    utilisation: float = Field(description="Load over the most that these replicas take.")
    usd_per_month: float | None
    provider: str | None
    instance: str | None


class SizedServing(Warned):
    plan: dict[str, Any] = Field(description="The complete plan of the best size.")
    assumptions: list[Assumption]
    best: ServingSize | None = Field(description="Null where nothing serves the load within the limits.")
    sizes: list[ServingSize] = Field(description="By cost, then devices; the best of each kind of deployment.")
    by_accelerator: list[ServingSize]
    offers: list[ProviderCost] = Field(description="What the price book has for the best size, for an hour.")
    why: list[str]
    candidates: int
    skipped: list[str]
    seconds: float
    warnings: list[str]
    evidence: list[Evidence]


class MlperfNodes(Result):
    """A scenario on so many nodes."""

    nodes: int
    devices: int
    samples_per_s: float
    tokens_per_s: float
    dataset_s: float = Field(description="Seconds for the whole data set once.")
    run_s: float = Field(description="Seconds of a valid run: whole passes that last as long as the rules ask.")
    scaling_efficiency: float = Field(description="Samples/s per node over those of one node.")


class MlperfProjection(Warned):
    plan: dict[str, Any]
    assumptions: list[Assumption]
    benchmark: str
    model: str
    scenario: str
    accelerator: str
    devices: int
    nodes: int
    samples: int
    mean_input_tokens: float
    mean_output_tokens: float
    limits_ms: dict[str, float] = Field(description="What 99 % of the queries have to keep to.")
    samples_per_s: float = Field(description="Offline: all at once. Else the most at which the limits hold.")
    samples_low_per_s: float
    samples_high_per_s: float
    tokens_per_s: float = Field(description="Output tokens, as MLPerf counts.")
    tokens_per_s_per_device: float
    dataset_s: float
    run_s: float
    offline_tokens_per_s: float
    share_of_offline: float
    ttft_p99_s: float | None
    tpot_p99_s: float | None
    limited_by: str
    choice: ServingChoice
    by_nodes: list[MlperfNodes] = Field(description="One node, and doubling up to as many as asked for.")
    why: list[str]
    warnings: list[str]
    evidence: list[Evidence]
