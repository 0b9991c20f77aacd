"""Each question is the path of a MaxText file and the number of chips; the answer is what its configuration reads with
as many devices of JAX's CPU backend (XLA_FLAGS in the environment), so that its own rules of meshes and batches are
tried."""

from __future__ import annotations

import os

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1")
from maxtext.configs import pyconfig, types

KNOWN = set(types.MaxTextConfig.model_fields)


def answer(question: dict) -> dict:
    import omegaconf

    unknown = set(omegaconf.OmegaConf.load(question["path"])) - KNOWN
    if unknown:
        raise KeyError(f"not fields of MaxText: {sorted(unknown)}")
    # Slices are the hardware's: on CPUs there is one.
    words = ["train", question["path"], "skip_jax_distributed_system=true", "hardware=cpu", *question.get("words", [])]
    config = pyconfig.initialize_pydantic(words)
    axes = {
        name: getattr(config, name) for name in KNOWN if name.endswith("_parallelism") and name[:3] in ("ici", "dcn")
    }
    return {
        "model": config.model_name,
        "layers": config.num_decoder_layers,
        "batch": config.global_batch_size_to_train_on,
        "micro_batch": config.micro_batch_size_to_train_on,
        "accumulation": config.gradient_accumulation_steps,
        "length": config.max_target_length,
        "steps": config.steps,
        "remat": config.remat_policy,
        "dtype": str(config.dtype.value),
        "weights": str(config.weight_dtype.value),
        "quantization": str(config.quantization.value) if config.quantization else "",
        "optimizer": str(config.opt_type.value),
        "capacity": config.capacity_factor,
        "axes": {name: size for name, size in axes.items() if isinstance(size, int) and size != 1},
        "tokenizer": config.tokenizer_path,
    }
