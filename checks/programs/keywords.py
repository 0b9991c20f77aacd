"""What classes of Optimum Habana and Optimum Neuron take, told from their text. A question is {"path": our script,
"folder": what is installed for it}; the answer names the calls that were looked at and the keywords that none takes."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

# Where the classes stand that our scripts call, and those that they build on.
FILES = {
    "gaudi": (
        "optimum/habana/trl/trainer/sft_config.py",
        "optimum/habana/trl/trainer/sft_trainer.py",
        "optimum/habana/transformers/training_args.py",
        "optimum/habana/transformers/gaudi_configuration.py",
        "transformers/training_args.py",
    ),
    "trainium": (
        "optimum/neuron/trainers/sft_config.py",
        "optimum/neuron/trainers/sft_trainer.py",
        "optimum/neuron/trainers/training_args.py",
        "trl/trainer/sft_config.py",
        "transformers/training_args.py",
    ),
}


def classes(folder):
    found = {}
    for file in FILES[folder]:
        tree = ast.parse((Path(sys.prefix) / folder / file).read_text())
        found |= {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return found


def taken(name, known):
    """Fields and parameters of a class and of what it builds on."""
    if name not in known:
        return set()
    names = set()
    for node in known[name].body:
        if isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
            names |= {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    return names.union(*(taken(base.id, known) for base in known[name].bases if isinstance(base, ast.Name)))


def answer(question):
    known, looked, unknown = classes(question["folder"]), set(), set()
    for node in ast.walk(ast.parse(Path(question["path"]).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            looked.add(node.func.id)
            unknown |= {f"{node.func.id}.{word.arg}" for word in node.keywords} - {
                f"{node.func.id}.{name}" for name in taken(node.func.id, known)
            }
    return {"looked": sorted(looked), "unknown": sorted(unknown)}
