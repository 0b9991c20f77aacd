"""What only the person can do about the checkpoint of a plan: licences, code of its own, a chat template."""

from __future__ import annotations

import re

from estimator.errors import PlanError
from knowledge.models.catalogue import find_model
from knowledge.models.known import ModelFacts, architecture_row, checkpoints, facts_of
from launchers.launch.names import last_part
from launchers.launch.of_plan import Launch
from launchers.tables import table

# Stages whose samples are conversations.
_CHATS = ("sft", "dpo", "ipo", "orpo", "simpo", "kto", "grpo", "ppo", "rm")


def checkpoint_needs(launch: Launch) -> list[str]:
    """One sentence a need; none of a model that the plan describes inline."""
    chats = launch.kind == "training" and launch.training.stage in _CHATS
    if launch.model is None:
        return []
    is_built = any(name in table("data/checkpoints")["build_models"] for name in launch.targets)
    return [*model_needs(launch.model, chats, is_built), *_packed(launch, launch.model)]


def _packed(launch: Launch, model: str) -> list[str]:
    """A checkpoint that is stored in a format which does not train, for a program that loads it as it is stored."""
    stored, facts = table("data/checkpoints")["as_stored"], facts_of(model)
    held = facts.weight_format if facts is not None else ""
    programs = [name for name in launch.targets if held in stored.get(name, ())] if launch.kind == "training" else []
    if not programs:
        return []
    same = [row.id for row in checkpoints() if row.shares == architecture_row(model) and row.weight_format == "bf16"]
    copy = f"a copy in 16 bits, {same[0]}" if same else "a copy in 16 bits"
    packed = f"{model} is stored in {held}, which transformers does not train"
    return [f"weights: {packed}: name {copy} in the files of {programs[0]}"]


def model_needs(model: str, chats: bool, is_built: bool = False) -> list[str]:
    """The same of a checkpoint by its name; `chats`: conversations go through its template; `is_built`: the program
    builds the model by code of its own, and loads the tokenizer alone."""
    name, words = model.lower(), table("data/checkpoints")
    facts = _facts(model)
    needs: list[str] = []
    if facts is not None and not facts.is_published:
        needs.append(f"weights: those of {model} are not published: its shape is from a paper")
    elif facts is not None and facts.gated:
        needs.append(f"licence: accept that of {model} on huggingface.co, and give HF_TOKEN to every node")
    elif facts is not None and facts.gated is None and facts.usually_gated is not False and "/" in model:
        of_owner = " (what its owner publishes is usually gated)" if facts.usually_gated else ""
        needs.append(
            f"licence: whether the download of {model} is gated is not known here{of_owner}; its page on "
            "huggingface.co says so, and a gated one needs HF_TOKEN on every node"
        )
    if not is_built and facts is not None and facts.fields.get("model_type") in words["own_code"]:
        needs.append(
            f"code: {model} is loaded by code in its own repository (or by a newer transformers); read it, then set "
            "trust_remote_code"
        )
    elif any(re.match(pattern, name) for pattern in words["own_tokenizer"]):
        then = " before it is loaded" if is_built else ", then set trust_remote_code"
        needs.append(f"code: the tokenizer of {model} is code in its own repository; read it{then}")
    if chats and any(re.match(pattern, last_part(name)) for pattern in words["without_chat"]):
        needs.append(f"chat template: {model} is a base checkpoint without one; name one, or take its Instruct sibling")
    return needs


def _facts(model: str) -> ModelFacts | None:
    """The catalogue's row; of a checkpoint without facts of its own, that of its architecture."""
    try:
        facts = facts_of(model)
        return find_model(facts.shares).value if facts is not None and facts.shares and not facts.fields else facts
    except PlanError:
        return None
