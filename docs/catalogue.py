"""Writes docs/catalogue.md from the catalogues: `PYTHONPATH=. python docs/catalogue.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from estimator.machine.hardware import Accelerator
from estimator.units import GIB
from knowledge.data_files import rows
from knowledge.machines.catalogue import accelerators, aliases
from knowledge.models.catalogue import architecture
from knowledge.models.known import ModelFacts, checkpoints, models
from knowledge.prices.book import prices
from knowledge.prices.kin import kin_price, kin_purchase

DOCUMENT = Path(__file__).parent / "catalogue.md"


def document() -> str:
    """The text of docs/catalogue.md."""
    known, copies, devices = models(), checkpoints(), accelerators()
    shared = Counter(facts.shares for facts in copies)
    parts = [
        "# Catalogue",
        "<!-- Written by docs/catalogue.py; do not edit. -->",
        f"{len(known)} models with {len(copies)} more checkpoints that share their architecture, {len(devices)} "
        f"accelerators, {len(prices())} offers. Sources stand in `knowledge/data/`, beside each row.",
        "## Models",
        _gates(known),
        "Parameters are counted from the config, the text decoder alone; ~ where no independent count exists. Own "
        "weights: what the published checkpoint holds, where that is not 16 bits. Checkpoints: how many others have "
        "this architecture (`knowledge/data/checkpoints.csv`).",
        "Beside the totals that llmfit 1.1.17 (2026-10) lists of 449 of them, 326 are the same to the parameter, with "
        "the vision tower or without. 20 are off by under 0.005 %: tables of rotary positions (LLaMA, Llama 2, "
        "Phi-3-small, Moonlight; Kimi-K2-Instruct has 61 of 56 values, half of its width over its heads) and scales "
        "of FP8 (Devstral, Mistral Small 4) that a file holds and that are no parameters, or router corrections, which "
        "are counted here and not always there (Nemotron 3, LFM2-8B; A.X-K1: 11,520 less, and 7,168 more for the norm "
        "behind its one dense layer, which no code uses, add up). Kimi-K2-Thinking has 61 times 128 more, as "
        "K2-Instruct-0905 has beside its scales: which table that is was not read; Kimi-K2.5 and what MLX makes of all "
        "of them have none. The other 103 hold more than the decoder: layers of multi-token prediction (Qwen3.5, "
        "DeepSeek, GLM, MiniMax), scales of blocks, towers of sound, masks of attention (GPT-2, Pythia), a tied head "
        "stored twice (Qwen3-0.6B, Falcon). 17 of these totals are smaller: estimates of a formula without biases and "
        "positions (OPT, DeepSeek 67B), or formats that pack two weights in a byte (Inkling).",
        _table(
            ("model", "parameters", "active", "context", "own weights", "checkpoints", "as of"),
            (_of_model(facts, shared[facts.id]) for facts in known),
        ),
        "## Accelerators",
        "USD an hour: the median of the on-demand offers for one device; in brackets the range of devices like it "
        "where nobody is known to rent it out.",
        _table(
            ("accelerator", "name", "GiB", "GB/s", "bf16 TFLOP/s", "USD an hour", "also called"),
            (_of_device(device) for device in devices),
        ),
        "## Named, and refused",
        "Too little is known of these devices and models to plan with, and these words name models that are no "
        "language models.",
        _table(
            ("names", "why"),
            [
                (row["names"].replace(";", ", "), row["why"])
                for row in (*rows("unplanned_devices.csv"), *rows("unplanned_models.csv"))
            ]
            + [(row["words"].replace(";", ", "), row["kind"]) for row in rows("other_models.csv")],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _gates(known: Iterable[ModelFacts]) -> str:
    """How well it is known whether downloads are gated."""
    kinds = Counter(_known_gate(facts) for facts in known)
    return (
        f"Whether a download is gated was read in a source for {kinds['read']} of them, is recalled for "
        f"{kinds['recalled']}, is told by what their owner usually does for {kinds['usual']}, and is not known for "
        f"{kinds['unknown']}; {kinds['none']} are in papers alone: `shardwise model` says which."
    )


def _known_gate(facts: ModelFacts) -> str:
    if not facts.is_published:
        return "none"
    if facts.gated is None:
        return "unknown" if facts.usually_gated is None else "usual"
    return "recalled" if "recalled" in facts.gate_source else "read"


def _of_model(facts: ModelFacts, copies: int) -> tuple[str, ...]:
    built = architecture(facts.id)
    active = f"{built.active_parameters / 1e9:.2f} B" if built.is_moe else ""
    about = "" if facts.parameters else "~ "
    total = f"{about}{built.parameters / 1e9:.2f} B"
    return facts.id, total, active, f"{built.context:,}", facts.weight_format, str(copies or ""), facts.as_of


def _of_device(device: Accelerator) -> tuple[str, ...]:
    rate = device.peak_flops.get("bf16") or device.peak_flops.get("fp16")
    return (
        device.id,
        device.name,
        f"{device.memory_bytes / GIB:g}",
        f"{device.memory_bandwidth / 1e9:g}",
        f"{rate / 1e12:g}" if rate else "",
        _hourly(device),
        ", ".join(aliases(device.id)),
    )


def _hourly(device: Accelerator) -> str:
    offers = [
        price.usd_per_hour / price.count
        for price in prices(device.id)
        if price.usd_per_hour is not None and price.provider != "owned"
    ]
    if offers:
        return f"{median(offers):.2f}"
    kin = kin_price(device)
    if kin:
        return f"({kin.low_usd_per_hour:.2f} to {kin.high_usd_per_hour:.2f})"
    bought = kin_purchase(device)
    return f"(to buy: {bought.low_usd:,.0f} to {bought.high_usd:,.0f})" if bought else ""


def _table(heads: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    every = [heads, tuple("---" for _ in heads), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in every)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
