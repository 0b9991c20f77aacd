"""Answers that need no tool: what is missing, what Shardwise is for, what it does not do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from estimator.plan.choices import valid_values
from estimator.plan.schema import Goal, Inference, Layout, Training
from knowledge import figures
from knowledge.engines import engines_known
from knowledge.fitted.training import framework_tables
from pages.answers.lead import without_others
from pages.blocks import Steps, capitalised
from planner.partial import get
from planner.requests import ALL_PATHS

HELP = (
    "I plan LLM training and serving. Name a model, accelerators and what you want to do: I work out whether it fits, "
    "how fast it runs, the best layout and what it costs, and write the launch files.\n\n"
    "- *Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens? What does it cost?*\n"
    "- *What is the longest context that fits? How many GPUs do I need at least?*\n"
    "- *How many users can Llama-3.1-70B serve on 8 H100s with vLLM, 2k tokens in and 500 out?*"
)
PLANNED = (
    "I plan the training, fine-tuning and serving of language models (memory, speed, layout, cost and launch files): "
    "name one and the accelerators you have, and I will start from there."
)
OUT_OF_SCOPE = f"That is outside what I can help with. {PLANNED}"
NOTHING_FOUND = (
    "I found nothing in that to change or to answer, so the plan stays as it was. Say a figure or a setting, for "
    "example *on 16 devices*, *with LoRA* or *what does it cost?*"
)
_OUTSIDE = {
    "images": "Image models are",
    "video": "Video models are",
    "sound": "Speech and audio models are",
    "embeddings": "Embedding models and rerankers are",
    "other": "That kind of model is",
}
WELCOME = "All right. Change anything about the plan (devices, method, context, data) and I will work it out again."
FRESH = "Done, I have set the earlier plan aside. What would you like to run, and on which accelerators?"

NO_IMPORT = (
    "I cannot read configuration files in this conversation. Tell me the model, the accelerators, the method, the "
    "sequence length and the batch that stand in it, and I check those."
)
NO_PLAN = (
    "There is no plan in this conversation yet. Say what you want to run, for example *full fine-tuning of "
    "Llama-3.1-8B on 8 H100s with 1B tokens*, or load a saved one: *load NAME*. Then I can change, compare, save and "
    "export it."
)
WHICH_FOLDER = (
    "Which folder are the results in? It is the one that the matrix was written to, such as ./runs/NAME-matrix."
)
NOTHING_TO_COMPARE = (
    "There is no plan here yet to compare it with. Describe a run, or name two saved scenarios: "
    "*difference between base and long-context*."
)


def outside(kind: str) -> str:
    """What is said of models that are planned nowhere here: they are not taken for a language model of a like name."""
    return f"{_OUTSIDE[kind]} outside what I plan, so nothing was worked out. {PLANNED}"


def values_of(name: str) -> str:
    """What a field may be, of those that are chosen by a word: 'which optimizers do you know?'; '' of others."""
    values = [value for value in _values(name) if value != "auto"]
    if not values:
        return ""
    what = name.replace("_", " ")
    return f"**{len(values)} values of {what}**: {', '.join(values)}. Name one, or leave it open, and I choose."


def _values(name: str) -> Sequence[str]:
    if name == "framework":
        return framework_tables()["searched"]
    if name == "engine":
        return engines_known()
    leaf = ALL_PATHS[name].rpartition(".")[2]
    rooms = (Training, Inference, Layout, Goal)
    return valid_values(next(room.model_fields[leaf].annotation for room in rooms if leaf in room.model_fields))


def missing(plan: Mapping[str, Any], asked: set[str], has_nodes: bool) -> list[str]:
    """Questions for the essentials that neither this turn nor an earlier one gave."""
    questions: list[str] = []
    if get(plan, "model") is None and "model" not in asked:
        questions.append("model: which model? A name such as Llama-3.1-8B, or the path of a config.json")
    if get(plan, "cluster.accelerator") is None and "cluster.accelerator" not in asked:
        many = "" if get(plan, "cluster.count") or has_nodes else ", and how many of them"
        questions.append(f"cluster.accelerator: which accelerator{many}?")
    return questions


# What people most often answer a question for a field with.
_ANSWERS = {
    "model": ["use Llama-3.1-8B", "use Qwen3-32B", "use Llama-3.3-70B", "use gpt-oss-20b"],
    "cluster.accelerator": ["8 H100", "one H100", "8 A100 80GB", "one RTX 4090"],
}


# Characters of what was said that an answer repeats, and of how many such words.
_LONGEST_SAID, _MOST_SAID = 200, 20


def ask(
    questions: list[str], plan: Mapping[str, Any], unread: list[str], assumed: Sequence[str], notes: Sequence[str] = ()
) -> str:
    """All open questions in one message, with what has been understood so far: `assumed` of what was read."""
    texts = [question.partition(": ")[2] for question in questions]
    lines = [not_placed(unread)] if unread else []
    if len(texts) == 1:
        lines.append(capitalised(texts[0]))
    else:
        lines.append("Before I can work that out I need to know:")
        lines.append("\n".join(f"- {text}" for text in texts))
    if understood := _understood(plan):
        lines.append(f"So far I have: {understood}.")
    if assumed:
        lines.append(f"Assumed: {'; '.join(without_others(text.rstrip('.')) for text in assumed)}.")
    if notes:
        lines.append("\n".join(f"- {note}" for note in notes))
    if answers := _answers(questions[0]):
        lines.append(Steps(answers).line)
    return "\n\n".join(lines)


def _answers(question: str) -> list[str]:
    """What can be answered to a question: the names that are nearest to one that is not known, else usual ones."""
    field, _, text = question.partition(": ")
    named = text.partition("; the nearest: ")[2].rpartition(". Which is it?")[0]
    return [f"use {name}" for name in named.split(", ")] if named else _ANSWERS.get(field, [])


def not_placed(unread: list[str]) -> str:
    shown = [repr(words if len(words) <= _LONGEST_SAID else f"{words[: _LONGEST_SAID - 1]}…") for words in unread]
    more = f" and {len(shown) - _MOST_SAID} more" if len(shown) > _MOST_SAID else ""
    return f"I could not place {', '.join(shown[:_MOST_SAID])}{more} and did not use it."


# Beside model and devices: the path, and how its value is told.
_TOLD = (
    ("workload.method", "{}"),
    ("workload.stage", "{}"),
    ("workload.framework", "{}"),
    ("workload.precision", "{}"),
    ("workload.engine", "{}"),
    ("workload.weight_dtype", "{} weights"),
    ("workload.input_len", "{} tokens in"),
    ("workload.output_len", "{} tokens out"),
    ("workload.concurrency", "{} client{s} at once"),
    ("workload.request_rate", "{} requests/s"),
    ("workload.seq_len", "sequences of {} tokens"),
)

_STAGES = {"sft": "fine-tuning", "pretrain": "pretraining", "dpo": "DPO", "ppo": "PPO", "grpo": "GRPO"}


def _understood(plan: Mapping[str, Any]) -> str:
    parts: list[str] = []
    if model := get(plan, "model"):
        parts.append(str(model) if isinstance(model, str) else "your model config")
    device, count = get(plan, "cluster.accelerator"), get(plan, "cluster.count")
    if device:
        parts.append(f"{count} x {device}" if count else str(device))
    elif count:
        parts.append(f"{count} devices")
    values = [(label, get(plan, path)) for path, label in _TOLD]
    parts += [
        label.format(_STAGES.get(value, figures.plain(value)), s="s" * (value != 1)) for label, value in values if value
    ]
    if tokens := get(plan, "workload.dataset_tokens"):
        parts.append(f"{_short(tokens)} tokens")
    for path, words in (("goal.budget_usd", "a budget of"), ("goal.credits_usd", "credits of")):
        if money := get(plan, path):
            parts.append(f"{words} ${figures.whole(money)}")
    return ", ".join(parts)


def _short(value: float) -> str:
    """1e9 as '1B', 1.5e12 as '1.5T', 4096 as '4,096'."""
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if value >= scale:
            return f"{value / scale:.4g}{letter}"
    return figures.number(value)
