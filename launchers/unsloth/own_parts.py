"""What a Python source of the Trainer's or TRL's has of its own: makers of models, classes, stages and heads that no
Plan says, of which there is no verdict."""

from __future__ import annotations

import ast
import re
from collections.abc import Container

from launchers.python.loops import Call
from launchers.python.values import called
from launchers.reading.documents import Item
from launchers.reading.findings import Findings

# The script of TRL that a configuration or a trainer is of.
STAGES = {"SFT": "sft", "DPO": "dpo", "KTO": "kto", "ORPO": "orpo", "Reward": "reward", "GRPO": "grpo", "CPO": "cpo"}
# What classes' names begin with that are TRL's and the Trainer's on other makers' devices, and the libraries of these.
LIBRARIES = {"Gaudi": "optimum-habana", "Neuron": "optimum-neuron"}
# What makes a model, or gives back the one that it is given.
_MAKERS = (
    r"(^|\.)(from_\w+|get_peft_model|prepare_model_\w+|\w+For[A-Z]\w+|PeftModel\w*|to|cuda|half|bfloat16|float|train|eval|"
    r"compile|merge_and_unload|resize_token_embeddings|apply_\w+|prepare|DataParallel|\w*DistributedDataParallel)$"
)
# Models of transformers with heads of other tasks.
_HEADS = r"For(SequenceClassification|TokenClassification|QuestionAnswering|MaskedLM|MultipleChoice)\."
# Configurations of transformers that pack weights in other ways than bitsandbytes and GPTQ.
_PACKED_OTHERWISE = (
    r"(Quanto|Hqq|TorchAo|Aqlm|Awq|Eetq|FbgemmFp8|CompressedTensors|Vptq|Higgs|BitNet|FPQuant|FineGrainedFP8)\w*Config"
)
# Packages whose classes of models are no own ones.
_OF_MODELS = r"(transformers|unsloth|peft|trl|optimum|modelscope|liger_kernel|auto_gptq|gptqmodel|awq)\b"


def plain_name(name: str) -> str:
    """The name of a class as it is without a maker's word before it."""
    maker = next((word for word in LIBRARIES if name.startswith(word)), "")
    return name.removeprefix(maker)


def stage_of(name: str, ending: str) -> str | None:
    """The script of TRL that a configuration or a trainer is of."""
    return STAGES.get(plain_name(name).removesuffix(ending)) if name.endswith(ending) else None


def unused(tree: ast.Module, makers: Container[str]) -> bool:
    """Whether what `makers` make is put into names, and the source reads none of these."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)]
    made = [node for node in assigned if called(node.value).rpartition(".")[2] in makers]  # type: ignore[arg-type]
    names = {target.id for node in made for target in node.targets if isinstance(target, ast.Name)}
    calls = sum(isinstance(node, ast.Call) and called(node).rpartition(".")[2] in makers for node in ast.walk(tree))
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return bool(names) and len(made) == calls and not names & read


def made_elsewhere(tree: ast.Module, calls: list[Call], file: str, findings: Findings) -> None:
    """A trainer's model that something makes which the source has not and no library is, may be packed or adapted."""
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    trained = [
        word.value.id
        for name, node, _ in calls
        if re.search(r"Trainer$", name)
        for word in node.keywords
        if word.arg == "model" and isinstance(word.value, ast.Name)
    ]
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if not any(isinstance(target, ast.Name) and target.id in trained for target in node.targets):
            continue
        maker = called(node.value)
        if not re.search(_MAKERS, maker) and maker.rpartition(".")[2] not in functions | {trained[0]}:
            item = Item(file, maker, None, node.lineno)
            findings.block(
                "workload.method", item, "makes the trainer's model in another file, and may adapt or pack it: --method"
            )


def of_one_stage(calls: list[Call], file: str, findings: Findings) -> None:
    """A source that trains in several stages is no one run."""
    stages = {stage: node.lineno for name, node, _ in calls if (stage := stage_of(name.rpartition(".")[2], "Trainer"))}
    if len(stages) > 1:
        item = Item(file, " and ".join(stages), None, max(stages.values()))
        findings.block(
            "workload.stage", item, "are stages that it trains in, one after the other: give the one that is meant"
        )


def of_own_class(tree: ast.Module, calls: list[Call], file: str, findings: Findings) -> None:
    """A model of a class that the source imports from files of its own, or has itself, is one of its own."""
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or not re.match(_OF_MODELS, node.module or "")):
            own |= {part.asname or part.name for part in node.names}
    for name, node, _ in calls:
        owner, _, made = name.rpartition(".")
        if made.startswith("from_") and owner in own and re.search(r"ForCausalLM$", owner):
            findings.block(
                "model", Item(file, name, None, node.lineno), "is a class of one's own, whose model is not known"
            )


def untrained(file: str, calls: list[Call], stage: str | None, findings: Findings) -> None:
    """A source that makes a trainer and only evaluates, and one that trains a head which no stage of a Plan has."""
    names = {name: node for name, node, _ in calls}
    evaluates = next((name for name in names if re.search(r"(?i)trainer\.(evaluate|predict)$", name)), None)
    if evaluates is not None and not any(re.search(r"(?<!model)\.(train|fit)$", name) for name in names):
        item = Item(file, evaluates, None, names[evaluates].lineno)
        findings.block("workload", item, "is all that is done: nothing is trained")
    packed = next((name for name in names if re.fullmatch(_PACKED_OTHERWISE, name.rpartition(".")[2])), None)
    if packed is not None:
        item = Item(file, packed, None, names[packed].lineno)
        findings.block("workload.method", item, "packs weights in a way that no method of a Plan has")
    head = next((name for name in names if re.search(_HEADS, name)), None)
    if head is not None and stage != "reward":
        item = Item(file, head, None, names[head].lineno)
        findings.block("workload.stage", item, "loads a model with another head than that of a language model")
