"""Each question is a torchtune file, `path`, with its launch `command`; the answer is what OmegaConf reads, after every
component of it was found and its arguments fit the component's signature: `tune validate` without building any."""

# ruff: noqa: E402  (what programs look for is put in place before they are imported)
from __future__ import annotations

import inspect
import sys
import types
from typing import Any

# `tune download` takes models from there too; nothing is downloaded here.
sys.modules["torchtune._cli.download"] = types.ModuleType("torchtune._cli.download")
sys.modules["torchtune._cli.download"].Download = types.SimpleNamespace(create=lambda *_: None)  # type: ignore[attr-defined]
from omegaconf import OmegaConf
from torchtune._cli.tune import TuneCLIParser
from torchtune.config._utils import _get_component_from_path


def fits(node: Any) -> None:
    """Raises where a component does not exist or has no such argument."""
    if isinstance(node, dict):
        if path := node.get("_component_"):
            component = _get_component_from_path(path)
            parameters = inspect.signature(component).parameters
            open_ended = any(part.kind is part.VAR_KEYWORD for part in parameters.values())
            unknown = [name for name in node if name != "_component_" and name not in parameters]
            if unknown and not (open_ended and path.endswith("_dataset")):
                raise ValueError(f"{path} has no {unknown}")
        for part in node.values():
            fits(part)


def answer(question: dict) -> dict:
    read = OmegaConf.to_container(OmegaConf.load(question["path"]), resolve=True)
    assert isinstance(read, dict)
    fits(read)
    words = (
        question["command"].replace('"$NODE_RANK"', "1").replace('"$MASTER_ADDR"', "h").replace('"$MASTER_PORT"', "9")
    )
    sys.argv = words.split()
    arguments = TuneCLIParser()._parser.parse_args(sys.argv[1:])
    return {
        "recipe": arguments.recipe,
        "nodes": int(str(arguments.nnodes).split(":")[0]),
        "per_node": int(arguments.nproc_per_node or 1),
        "micro_batch": read["batch_size"],
        "accumulation": read["gradient_accumulation_steps"],
        "length": read["tokenizer"]["max_seq_len"],
        "packing": read["dataset"].get("packed"),
        "epochs": read["epochs"],
        "steps": read["max_steps_per_epoch"],
        "model": read["model"]["_component_"],
        "rank": read["model"].get("lora_rank"),
        "four_bits": bool(read["model"].get("quantize_base")),
        "dtype": read["dtype"],
        "checkpointing": read["enable_activation_checkpointing"],
        "reshard": read.get("fsdp_reshard_after_forward"),
        "offload": read.get("fsdp_cpu_offload"),
        "tp": read.get("tensor_parallel_dim", 1),
    }
