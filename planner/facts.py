"""Fact tools: what the catalogues know of a model or an accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from estimator.errors import PlanError
from estimator.machine.hardware import Accelerator
from estimator.model.vision import image
from estimator.model.weight_format import weight_bytes
from estimator.search.layouts import valid_tp
from knowledge.engines import engine, engines_known
from knowledge.engines import runs_on as engine_runs_on
from knowledge.machines.catalogue import machine
from knowledge.machines.counted import find_devices
from knowledge.models.catalogue import find_architecture, find_model
from knowledge.models.known import ModelFacts, facts_of
from knowledge.models.weight_formats import plan_format, weight_format
from knowledge.names import Match
from knowledge.offers import frameworks_on
from knowledge.prices.age import is_stale
from knowledge.prices.book import prices
from knowledge.prices.kin import kin_price, kin_purchase
from launchers.needs import model_needs
from planner.asked.facts import HardwareQuestion, ModelQuestion
from planner.asked.money import CostTerms
from planner.clock import today
from planner.money.break_even import break_evens
from planner.money.choice import Chosen
from planner.money.hardware import hardware_bill
from planner.money.offers import offer, rentable
from planner.money.owned import owned_cost
from planner.money.purchase import SECOND_HAND, purchase
from planner.money.results import BreakEven, HardwareBill
from planner.money.terms import place_of
from planner.named import how_read
from planner.rejected_rows import rejected_prices_of, rejected_rows_of
from planner.results import Assumption, BoughtDevice, HardwareDescription, ModelDescription

_IMAGE = (1024, 1024)
"""Pixels of the image whose tokens are told."""


def describe_model(request: ModelQuestion) -> ModelDescription:
    """Describe a model."""
    architecture, why = find_architecture(request.model)
    facts = facts_of(architecture.id)
    match = _match(request.model) if facts else None
    widest = max(architecture.blocks, key=lambda block: (block.heads, block.ffn_width))
    tower = architecture.vision
    moe = max(architecture.blocks, key=lambda block: block.experts)
    published = architecture.weight_format or "bf16"
    return ModelDescription(
        id=architecture.id,
        family=architecture.family,
        parameters=architecture.parameters,
        active_parameters=architecture.active_parameters,
        embedding_parameters=architecture.embedding_parameters + architecture.head_parameters,
        layers=architecture.layers,
        hidden=architecture.hidden,
        heads=architecture.heads,
        kv_heads=architecture.kv_heads,
        head_dim=widest.head_dim,
        ffn_width=max((block.ffn_width for block in architecture.blocks), default=0) or moe.expert_width,
        experts=moe.experts,
        top_k=moe.top_k,
        vocab=architecture.vocab,
        context=architecture.context,
        kv_bytes_per_token=round(architecture.cache_bytes_per_token(2.0)),
        valid_tp=valid_tp(architecture),
        weights_bytes_bf16=2 * architecture.parameters,
        weights_bytes=round(weight_bytes(weight_format(published, architecture=architecture), architecture)),
        shares=facts.shares or None if facts else None,
        weight_format=plan_format(published),
        vision_parameters=tower.parameters if tower else None,
        image_tokens=image(tower.rule, *_IMAGE).tokens if tower else None,
        license=facts.license if facts else None,
        source=facts.source if facts else None,
        name_score=round(match.score, 2) if match else 1.0,
        name_runner_up=match.runner_up if match else None,
        assumptions=[Assumption(field="model", value=architecture.id, why=why)] if why else [],
        notes=[*_published(facts), *architecture.notes, *rejected_rows_of(model=architecture.id)],
    )


def _match(model: str | Mapping[str, Any]) -> Match[ModelFacts] | None:
    """How a name was read; None for what is no name."""
    with suppress(PlanError):
        return find_model(model) if isinstance(model, str) else None


def _published(facts: ModelFacts | None) -> list[str]:
    """When a checkpoint came out, what a person has to do about it before it loads, and what of its row is a doubt."""
    if facts is None:
        return []
    gate = ""
    if facts.gated is not None:
        gate = f"its download is {'' if facts.gated else 'not '}gated ({facts.gate_source})"
    elif facts.usually_gated is not None:
        owner = facts.id.partition("/")[0]
        gate = f"what {owner} publishes is usually {'' if facts.usually_gated else 'not '}gated ({facts.gate_source})"
    day = f"released {facts.released}" if facts.released else ""
    doubt = f"from its source: {facts.check}" if facts.check else ""
    return [note for note in (day, *model_needs(facts.id, chats=True), gate, doubt) if note]


def describe_hardware(request: HardwareQuestion) -> HardwareDescription:
    """Describe an accelerator."""
    named = find_devices(request.accelerator)
    match, device = named.match, named.match.value
    offers = [offer(price, price.count, 1.0) for price in prices(device.id) if price.provider != "owned"]
    kin, bought = kin_price(device), kin_purchase(device)
    return HardwareDescription(
        id=device.id,
        name=device.name,
        vendor=device.vendor,
        family=device.family,
        memory_bytes=device.memory_bytes,
        usable_bytes=device.torch_bytes,
        memory_bandwidth_bytes_per_s=device.memory_bandwidth,
        peak_tflops={name: rate / 1e12 for name, rate in device.peak_flops.items()},
        scaleup_link=device.scaleup_link,
        scaleup_bytes_per_s=device.scaleup_bandwidth,
        peer_bytes_per_s=device.peer_bandwidth,
        scaleup_domain=device.scaleup_domain,
        topology=device.topology,
        per_node=device.per_node,
        host_link_bytes_per_s=device.host_bandwidth,
        tdp_w=device.tdp_w,
        prices=sorted(offers, key=lambda row: (row.usd is None, row.usd or 0.0)),
        cores=device.cores,
        announced=device.announced,
        bought=_sold(device),
        break_even=_bought_or_rented(device),
        bill=_bill(device, request, named.count),
        kin_low_usd_per_hour=kin.low_usd_per_hour if kin else None,
        kin_high_usd_per_hour=kin.high_usd_per_hour if kin else None,
        kin_low_usd=bought.low_usd if bought else None,
        kin_high_usd=bought.high_usd if bought else None,
        kin=[id for costs in (kin, bought) if costs for id in costs.kin],
        source=device.source,
        name_devices=named.count,
        name_score=round(match.score, 2),
        name_runner_up=match.runner_up,
        assumptions=how_read(match),
        notes=[
            *([device.notes] if device.notes else []),
            *_programs(device),
            *rejected_rows_of(device.id),
            *rejected_prices_of(device.id),
        ],
    )


def _programs(device: Accelerator) -> list[str]:
    """Which frameworks and engines run on it, the most used first."""
    engines = [name for name in engines_known() if engine_runs_on(engine(name, accelerator=device), device)]
    by_use = {"trains with": frameworks_on(device), "serves with": engines}
    return [f"{how} {', '.join(names)}" if names else f"nothing known {how}" for how, names in by_use.items()]


def _sold(device: Accelerator) -> BoughtDevice | None:
    sold = purchase(device)
    if sold is None:
        return None
    row = sold.price
    used = row.seller == SECOND_HAND
    return BoughtDevice(
        usd=sold.device_usd,
        what=row.instance,
        price_date=row.price_date,
        stale=is_stale(row.price_date, today()),
        second_hand=used,
        source=row.source,
    )


def _bill(device: Accelerator, request: HardwareQuestion, named: int | None) -> HardwareBill | None:
    """What so many devices cost for so long, where either is asked, or on what terms they are owned."""
    if not request.model_fields_set - {"accelerator", "region"}:
        return None
    return hardware_bill(device, request.count or named or 1, request)


def _bought_or_rented(device: Accelerator) -> list[BreakEven]:
    """From how many hours of use a year a node that is bought or reserved costs less than one by the hour."""
    terms, (node, _) = CostTerms.model_validate({}), machine(device.id, device.per_node)
    rows = [offer(price, device.per_node, 1.0) for price in rentable(prices(device.id), device.per_node)]
    owned = owned_cost(node, terms, place_of(terms), (1.0, 1.0, 1.0))
    return break_evens(rows, owned, Chosen("on_demand", None, 1.0, 1.0, 1.0))
