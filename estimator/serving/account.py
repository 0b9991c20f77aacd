"""What the figures of one deployment are made of, in the estimator's own numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from estimator.account import Account, Accounts, Term, over, product, times, total
from estimator.plan.serving.deployments import Deployments
from estimator.plan.serving.job import ServingJob
from estimator.serving.estimates import ServingEstimates
from estimator.serving.memory import COMPONENTS, pools_states, request_bytes, weights_by_kind
from estimator.serving.operators import cache_share
from estimator.serving.passes import PassTime
from estimator.units import GIB

_PARTS = ("matmul", "attention", "memory", "collective", "host")


def serving_accounts(job: ServingJob, estimates: ServingEstimates, entry: int) -> Accounts:
    """Of the memory, latency, throughput and passes of deployment `entry`."""
    these = estimates.deployments
    accounts: dict[str, Callable[[], Account]] = {}
    accounts |= _memory(job, estimates, these, entry)
    accounts |= _latency(job, estimates, these, entry)
    accounts |= _throughput(job, estimates, these, entry)
    for name, passes in (("generating", estimates.steady.generating), ("reading", estimates.steady.reading)):
        accounts[f"time.{name}.total_s"] = lambda name=name, passes=passes: total(
            *(Term(f"time.{name}.{part}_s", value) for part, value in _split(passes, entry).items())
        )
        for part, value in _split(passes, entry).items():
            accounts[f"time.{name}.{part}_s"] = lambda part=part, value=value: Account(
                "sum", (Term(f"pass.{part}" if value else "nothing", value),)
            )
    return accounts


def _split(passes: PassTime, entry: int) -> dict[str, float]:
    return {name: float(getattr(passes, name)[entry]) for name in _PARTS}


def _memory(
    job: ServingJob, estimates: ServingEstimates, these: Deployments, entry: int
) -> dict[str, Callable[[], Account]]:
    memory = estimates.memory

    def of(name: str) -> float:
        return float(memory.components[name][entry])

    fixed = sum(of(name) for name in COMPONENTS if name != "kv_cache")
    claimed = float(memory.claimed[entry])
    per_token, state = float(memory.per_token_bytes[entry]), float(memory.state_bytes[entry])
    lanes, room = float(these.lanes[entry]), float(memory.room[entry])
    length = float(these.input_len[entry] + these.output_len[entry])
    whole = float(request_bytes(job, per_token, state, length))
    accounts: dict[str, Callable[[], Account]] = {
        "memory.per_device_bytes": lambda: total(*(Term(f"memory.components.{name}", of(name)) for name in COMPONENTS)),
        "memory.claimed_bytes": lambda: total(Term("fixed_bytes", fixed), Term("cache_claimed_bytes", claimed - fixed)),
        "memory.capacity_bytes": lambda: _capacity(job),
        "memory.components.kv_cache": lambda: _cache(job, estimates, these, entry, whole),
        "memory.components.weights": lambda: _weights(job, these, entry),
        "memory.kv_bytes_per_token": lambda: _whole_per_token(job),
        "memory.kv_bytes_per_token_per_device": lambda: _per_token(job, these, entry),
        "memory.max_concurrency": lambda: Account(
            "product",
            (times("requests_per_lane", math.floor(room / max(whole, 1e-9))), times("lanes", lanes)),
        ),
        "max_concurrency": lambda: Account("sum", (Term("memory.max_concurrency", math.floor(room / whole) * lanes),)),
        "requests_per_lane": lambda: Account(
            "rounded_down",
            (times("cache_room_bytes", room), over("request_bytes", max(whole, 1e-9))),
            float(math.floor(room / max(whole, 1e-9))),
        ),
        "cache_room_bytes": lambda: total(
            Term("claimed_share_bytes", room + fixed), Term("fixed_bytes", fixed, "-"), value=room
        ),
        "fixed_bytes": lambda: total(
            *(Term(f"memory.components.{name}", of(name)) for name in COMPONENTS if name != "kv_cache"), value=fixed
        ),
        "request_bytes": lambda: _request(job, per_token, state, length, whole),
    }
    for name in ("activations", "cuda_graphs", "framework_and_context"):
        accounts[f"memory.components.{name}"] = lambda name=name: Account(
            "sum", (Term(f"serving_bytes.{name}" if of(name) else "nothing", of(name)),)
        )
    if per_token > 0.0:
        accounts |= _cache_lengths(room, per_token, state, lanes)
    return accounts


def _cache_lengths(room: float, per_token: float, state: float, lanes: float) -> dict[str, Callable[[], Account]]:
    by_token = over("memory.kv_bytes_per_token_per_device", per_token)
    left = max(0.0, room - state)
    return {
        "memory.kv_tokens": lambda: Account(
            "rounded_down", (times("cache_room_bytes", room), by_token, times("lanes", lanes))
        ),
        "memory.longest_request": lambda: Account("rounded_down", (times("cache_left_bytes", left), by_token)),
    }


def _capacity(job: ServingJob) -> Account:
    overrides = job.plan.overrides
    device = "usable_bytes" if overrides.usable_gib is None else "overrides.usable"
    usable = job.machine.accelerator.usable_bytes if overrides.usable_gib is None else overrides.usable_gib * GIB
    reserve = (overrides.reserve_gib or 0.0) * GIB
    if reserve > usable:
        return Account("inputs", (Term(device, usable), Term("overrides.reserve", reserve, "-")))
    return total(Term(device, usable), Term("overrides.reserve", reserve, "-"))


def _cache(job: ServingJob, estimates: ServingEstimates, these: Deployments, entry: int, whole: float) -> Account:
    """Running requests, half generated each, as far as there is room; at least one whole request."""
    memory = estimates.memory
    mean = job.mean_context(these.input_len, these.output_len)
    each = float(request_bytes(job, memory.per_token_bytes, memory.state_bytes, mean)[entry])
    running, value = float(estimates.steady.running[entry]), float(memory.components["kv_cache"][entry])
    wanted = running * each
    if math.isclose(wanted, value, rel_tol=1e-9):
        return product(times("running_per_lane", running), times("running_request_bytes", each))
    name = "cache_room_bytes" if value < wanted else "largest_request_bytes"
    note = "the cache is full" if value < wanted else "one request of the longest length wanted has to have room"
    return Account("least" if value < wanted else "most", (Term("running_bytes", wanted), Term(name, value)), note=note)


def _request(job: ServingJob, per_token: float, state: float, length: float, whole: float) -> Account:
    tokens = math.ceil(length / job.engine.block_tokens) * job.engine.block_tokens
    if pools_states(job):
        share, states = job.engine.state_share, job.engine.request_states
        kept = Term("states_of_pool_bytes", states * state / share)
        cached = Term("cache_of_pool_bytes", per_token * tokens / (1.0 - share))
        return Account("most", (kept, cached), whole, note=f"{states:g} states; {share:.0%} of the cache is for states")
    terms = (Term("cache_of_tokens_bytes", per_token * tokens), Term("request_state_bytes", state))
    note = f"{tokens} tokens in whole blocks of {job.engine.block_tokens:g}"
    return total(*terms, value=whole, note=note)


def _whole_per_token(job: ServingJob) -> Account:
    architecture = job.architecture
    if architecture.cache_bytes_per_token(1.0) == architecture.kv_elements_per_token:
        elements = times("model.kv_elements_per_token", float(architecture.kv_elements_per_token))
        return product(elements, times("kv_element_bytes", job.kv_bytes))
    kinds = enumerate(architecture.blocks)
    sizes = {
        kind: architecture.pattern.count(kind) * block.cache_bytes_per_token(job.kv_bytes) for kind, block in kinds
    }
    return total(*(Term(f"cache_of_layers.{kind}", size) for kind, size in sizes.items() if size))


def _per_token(job: ServingJob, these: Deployments, entry: int) -> Account:
    """By kind of layer whose cache grows with the request."""
    terms, tp = list[Term](), these.tp.astype(np.float64)
    share = np.ceil(job.architecture.layers / these.pp) / job.architecture.layers
    for kind, block in enumerate(job.architecture.blocks):
        if block.window is not None and job.engine.bounds_windows:
            continue
        size = block.cache_bytes_per_token(job.kv_bytes) * cache_share(block, tp, job.context_parts)
        value = float((job.architecture.pattern.count(kind) * share * size)[entry])
        if value:
            terms.append(Term(f"cache_of_layers.{kind}", value))
    return total(*(terms or [Term("nothing", 0.0)]))


def _weights(job: ServingJob, these: Deployments, entry: int) -> Account:
    parts = {name: float(size[entry]) for name, size in weights_by_kind(job, these).items()}
    return total(*(Term(f"weight_bytes.{name}", value) for name, value in parts.items()))


def _latency(
    job: ServingJob, estimates: ServingEstimates, these: Deployments, entry: int
) -> dict[str, Callable[[], Account]]:
    steady, factors = estimates.steady, job.factors
    ttft, tpot = float(steady.ttft_s[entry]), float(steady.tpot_s[entry])
    first, each = 1.0 + factors.ttft_spread, 1.0 + factors.tpot_spread
    generated = max(1.0, float(these.output_len[entry]) - 1.0)

    def parts(name: str) -> Account:
        return total(*(Term(f"{name}_part.{key}", float(size[entry])) for key, size in getattr(steady, name).items()))

    accounts: dict[str, Callable[[], Account]] = {
        "latency.tpot_s": lambda: parts("tpot"),
        "latency.tpot_low_s": lambda: product(times("latency.tpot_s", tpot), over("interval_factor.tpot", each)),
        "latency.tpot_high_s": lambda: product(times("latency.tpot_s", tpot), times("interval_factor.tpot", each)),
        "latency.tpot_p99_s": lambda: product(
            times("latency.tpot_s", tpot), times("p99_over_mean", float(steady.tpot_p99_s[entry]) / tpot)
        ),
    }
    if not math.isfinite(ttft):
        return accounts
    return accounts | {
        "latency.ttft_s": lambda: parts("ttft"),
        "latency.ttft_low_s": lambda: product(times("latency.ttft_s", ttft), over("interval_factor.ttft", first)),
        "latency.ttft_high_s": lambda: product(times("latency.ttft_s", ttft), times("interval_factor.ttft", first)),
        "latency.ttft_p99_s": lambda: product(
            times("latency.ttft_s", ttft), times("p99_over_mean", float(steady.ttft_p99_s[entry]) / ttft)
        ),
        "latency.e2e_s": lambda: total(Term("latency.ttft_s", ttft), Term("generation_s", generated * tpot)),
        "generation_s": lambda: product(
            times("generated_tokens", generated), times("latency.tpot_s", tpot), value=generated * tpot
        ),
        "latency.e2e_low_s": lambda: total(
            Term("latency.ttft_low_s", ttft / first), Term("generation_low_s", generated * tpot / each)
        ),
        "latency.e2e_high_s": lambda: total(
            Term("latency.ttft_high_s", ttft * first), Term("generation_high_s", generated * tpot * each)
        ),
    }


def _throughput(
    job: ServingJob, estimates: ServingEstimates, these: Deployments, entry: int
) -> dict[str, Callable[[], Account]]:
    requests, output = float(estimates.requests_per_s[entry]), float(estimates.output_tokens_per_s[entry])
    whole, devices = float(estimates.total_tokens_per_s[entry]), float(these.devices[entry])
    visual = float(job.inference.visual_tokens or 0)
    length, prompt = float(these.output_len[entry]), float(these.input_len[entry])
    rate = times("throughput.requests_per_s", requests)
    spread = 1.0 + job.factors.throughput_spread
    rate_is_met = job.inference.request_rate is not None and not bool(estimates.steady.saturated[entry])
    tpot = float(estimates.steady.tpot_s[entry])
    count = float(job.machine.count)

    def interval(enters: Callable[[str, float], Term]) -> Account:
        base = times("throughput.output_tokens_per_s", output)
        return product(base) if rate_is_met else product(base, enters("interval_factor.throughput", spread))

    accounts: dict[str, Callable[[], Account]] = {
        "throughput.output_tokens_per_s": lambda: product(rate, times("workload.output_len", length)),
        "throughput.output_tokens_low_per_s": lambda: interval(over),
        "throughput.output_tokens_high_per_s": lambda: interval(times),
        "throughput.total_tokens_per_s": lambda: product(rate, times("request_tokens", length + prompt)),
        "request_tokens": lambda: total(
            Term("workload.input_len", prompt - visual),
            *([Term("workload.visual_tokens", visual)] if visual else []),
            Term("workload.output_len", length),
            value=length + prompt,
        ),
        "throughput.requests_per_s": lambda: _requests(job, estimates, these, entry),
        "throughput.output_tokens_per_s_per_device": lambda: product(
            times("throughput.output_tokens_per_s", output), over("devices", devices)
        ),
        "throughput.total_tokens_per_s_per_device": lambda: product(
            times("throughput.total_tokens_per_s", whole), over("devices", devices)
        ),
        "throughput.tokens_per_s_per_user": lambda: product(over("latency.tpot_s", tpot)),
        "devices": lambda: product(
            times("layout.tp", float(these.tp[entry])), times("layout.pp", float(these.pp[entry])),
            times("layout.dp", float(these.dp[entry])), times("replicas", float(these.replicas[entry])),
            note=f"of {count:.0f} devices",
        ),
        "running": lambda: product(
            times("running_per_lane", float(estimates.steady.running[entry])), times("lanes", float(these.lanes[entry]))
        ),
    }  # fmt: skip
    if estimates.steady.cycle:
        cycle = {name: float(size[entry]) for name, size in estimates.steady.cycle.items()}
        accounts["request_cycle_s"] = lambda: total(
            *(Term(f"cycle_part.{name}", value) for name, value in cycle.items()), value=sum(cycle.values())
        )
    return accounts


def _requests(job: ServingJob, estimates: ServingEstimates, these: Deployments, entry: int) -> Account:
    """Little's law where clients wait for their answers; else what comes, as far as it can be served."""
    steady, requests = estimates.steady, float(estimates.requests_per_s[entry])
    if steady.cycle:
        cycle = sum(float(size[entry]) for size in steady.cycle.values())
        lanes = requests * cycle / float(steady.sent[entry])
        return product(
            times("requests_in_lane", float(steady.sent[entry])), over("request_cycle_s", cycle),
            times("busy_lanes", lanes),
        )  # fmt: skip
    if job.inference.request_rate is None:
        return Account("sum", (Term("highest_rate", requests),), note="the most that meets the latency limits")
    rate = float(job.inference.request_rate)
    if requests >= rate * (1.0 - 1e-9):
        return Account("sum", (Term("workload.request_rate", rate),))
    return Account("least", (Term("workload.request_rate", rate), Term("highest_rate", requests)))
