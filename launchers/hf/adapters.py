"""Checkpoints and adapters as the trainers of the Hugging Face world name them: by the modules of the model's code."""

from __future__ import annotations

import re

from estimator.errors import PlanError
from launchers.families import embedding_modules_of, linear_layers_of
from launchers.launch.placeholders import MODEL
from launchers.launch.training import TrainingLaunch

_USUAL = {"attention": "q_proj,k_proj,v_proj,o_proj", "mlp": "gate_proj,up_proj,down_proj"}
_VALID = ["all-linear", "attention", "mlp"]


def checkpoint(launch: TrainingLaunch, path: str, key: str, needs: list[str], comments: dict[str, str]) -> str:
    """The model's name, or a placeholder under `key` of the file `path`: of an inline model, and of a 4-bit GPTQ plan
    whose model is not such a checkpoint."""
    name = launch.model
    if name is None:
        comments[key] = "set this: a checkpoint of the planned architecture"
        needs.append(f"{path}: {key}, a checkpoint of the planned architecture")
    elif launch.quantisation == "gptq" and "gptq" not in name.lower():
        comments[key] = "set this: a 4-bit GPTQ checkpoint of the model"
        needs.append(f"{path}: {key}, a 4-bit GPTQ checkpoint of {name}")
        name = None
    return name or MODEL


def target_modules(launch: TrainingLaunch, path: str, key: str, needs: list[str]) -> list[str] | None:
    """The modules that get adapters, None for all linear layers. Groups are looked up by family, other names go through
    as given. Raises PlanError."""
    words = [word.strip() for word in launch.training.lora.targets.split(",") if word.strip()]
    if "all-linear" in words or "all" in words:
        return None
    return modules_named(words, launch, path, key, needs)


def modules_named(words: list[str], launch: TrainingLaunch, path: str, key: str, needs: list[str]) -> list[str]:
    """The modules of groups (attention, mlp) and names. Raises PlanError."""
    names: list[str] = []
    for word in words:
        if word in _USUAL:
            layers = linear_layers_of(launch.model)
            if layers is None:
                layers = _USUAL
                needs.append(f"{path}: {key}, check the module names against this model")
            names += layers[word].split(",")
        elif re.fullmatch(r"[A-Za-z0-9_.]+", word):
            names.append(word)
        else:
            raise PlanError("workload.lora.targets", f"{word!r} is not a module name", _VALID)
    if not names:
        raise PlanError("workload.lora.targets", "names no module", _VALID)
    return list(dict.fromkeys(names))


def embedding_modules(launch: TrainingLaunch, path: str, key: str, needs: list[str]) -> list[str]:
    """Input embedding and output head, which are trained in full besides the adapters."""
    modules = embedding_modules_of(launch.model)
    if modules is None:
        modules = "embed_tokens,lm_head"
        needs.append(f"{path}: {key}, check the names of embedding and head against this model")
    return modules.split(",")


def whole_alpha(launch: TrainingLaunch, program: str) -> int:
    """The adapter scale, where a program takes whole numbers only. Raises PlanError."""
    alpha = launch.training.lora.alpha
    if alpha != int(alpha):
        whole = max(1, int(alpha))
        raise PlanError("workload.lora.alpha", f"{program} takes whole numbers, not {alpha}", [whole, whole + 1])
    return int(alpha)
