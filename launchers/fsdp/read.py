"""The JSON of FSDP's settings that the Trainer (--fsdp_config FILE) and ms-swift (--fsdp FILE) are given."""

from __future__ import annotations

import re

from launchers.hf import read as hf
from launchers.reading.documents import Keys
from launchers.reading.findings import Findings
from launchers.reading.formats import Format
from launchers.reading.leftovers import leave_rest

# transformers 5.6 TrainingArguments.fsdp_config, with and without fsdp_ before them; fsdp_config of ms-swift 4.
_WORDS = (
    "transformer_layer_cls_to_wrap", "min_num_params", "backward_prefetch", "forward_prefetch", "limit_all_gathers",
    "use_orig_params", "sync_module_states", "cpu_ram_efficient_loading", "activation_checkpointing", "version",
    "reshard_after_forward", "offload_params", "sharding_strategy", "state_dict_type", "auto_wrap_policy",
)  # fmt: skip


def score(keys: Keys) -> int:
    told = [name.removeprefix("fsdp_config.") for name in keys.items if not re.search(r"(^|\.)_", name)]
    names = {name if name == "fsdp" else name.removeprefix("fsdp_") for name in told}
    return 4 * len(names & set(_WORDS)) if names <= {*_WORDS, "fsdp", "xla", "activation_cpu_offload"} else 0


def read(keys: Keys, findings: Findings) -> None:
    flat = Keys(keys.file)
    for name, item in list(keys.items.items()):
        if re.search(r"(^|\.)_", name):
            # What people write for each other.
            continue
        is_inside = name.startswith("fsdp_config.") or name == "fsdp"
        flat.put(name if is_inside else f"fsdp_config.{name}", item.value, item.line)
    known = findings.backend[0] if findings.backend else "fsdp2" if "ms-swift" in findings.programs else "fsdp1"
    hf.fsdp(flat, findings, version=2 if known == "fsdp2" else 1)
    leave_rest(flat, findings, "hf")


FORMATS = (Format("FSDP JSON", score, read, ("json",), order=1),)
