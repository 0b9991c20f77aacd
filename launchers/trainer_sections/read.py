"""Configs of one's own that keep the Trainer's words in sections of their own (training_args, peft_config …)."""

from __future__ import annotations

import re

from launchers.own_program import read as own_program
from launchers.reading.documents import Item, Keys
from launchers.reading.findings import Findings, is_set
from launchers.reading.formats import Format
from launchers.tables import table
from launchers.trl import read as trl


def score(keys: Keys) -> int:
    """Less than any program's own: it is taken where nothing else knows the file."""
    nested = [name.rpartition(".")[2] for name in keys.items if "." in name]
    return 2 if "per_device_train_batch_size" in nested else 0


def read(keys: Keys, findings: Findings) -> None:
    """Each key by its last name; those of adapters by the section that they stand in."""
    words = table("trainer_sections/fields")
    own_program.stop(keys, findings, words["read"])
    flat, first = Keys(keys.file), Item(keys.file, "settings", None)
    tops = {name.partition(".")[0] for name in keys.items if "." in name}
    for name, item in keys.items.items():
        section, _, leaf = name.rpartition(".")
        if tops.intersection(section.split(".")[1:]):
            findings.leave(item, "is of a variant, which whoever starts it chooses")
            continue
        if re.search(r"eval|infer|generat|test", section):
            findings.leave(item, "is of another part than the training")
            continue
        own = words["adapters"] if re.search(r"lora|peft|adapter", section) else words["names"]
        meaning = own_program.meaning_of(name)
        known = own.get(leaf, words["names"].get(leaf, words["meanings"].get(meaning, leaf)))
        if leaf in ("name", "id", "name_or_path") and re.search(r"(^|\.)model$", section):
            known = "model_name_or_path"
        if known in flat.items and flat.look(known) != item.value:
            findings.leave(item, f"another section says {known}")
        else:
            flat.put(known, item.value, item.line)
    if (kind := flat.take("torch_dtype_str")) is not None:
        # Oumi's: what the model is loaded in, and trained in without autocast where no bf16 or fp16 asks for it.
        flat.put("torch_dtype", kind.value, kind.line)
        if "bf16" not in flat and "fp16" not in flat:
            flat.put("bf16", False, kind.line)
    switch, strategy = flat.take("enable_fsdp"), flat.take("sharding_strategy")
    if switch is not None and is_set(switch):
        kind = str(strategy.value) if strategy is not None else next(iter(words["sharding"]))
        flat.put("fsdp", words["sharding"].get(kind, kind), switch.line)
    if (packed := flat.take("use_qlora")) is not None and is_set(packed):
        for name in ("use_peft", "load_in_4bit"):
            flat.put(name, True, packed.line)
    if "lora_r" in flat and "use_peft" not in flat:
        flat.put("use_peft", True, flat.items["lora_r"].line)
    packing = next((item for name, item in flat.items.items() if name.startswith("bnb_4bit_")), None)
    if packing is not None and "load_in_4bit" not in flat:
        why = "says how weights are packed, and nothing says that they are (load_in_4bit; --method qlora)"
        findings.block("workload.method", packing, why)
    findings.warn(f"{first.file}: a layout of its own, read by the Trainer's words in it")
    trl.read(flat, findings, defaults=trl.OWN)


FORMATS = (Format("Trainer arguments in sections of their own", score, read, ("yaml", "json", "toml"), order=1),)
