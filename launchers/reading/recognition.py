"""What a file is, told by what stands in it: configs by their keys, scripts by how they begin."""

from __future__ import annotations

import re

from estimator.errors import PlanError
from launchers.engines.ollama.read import is_modelfile, modelfile_keys
from launchers.own_program import read as own_program
from launchers.reading.documents import Keys, json_keys, toml_keys, yaml_keys
from launchers.reading.findings import Findings
from launchers.reading.formats import Format
from launchers.reading.leftovers import NOT_KNOWN
from launchers.reading.programs import formats

# Next steps where a file says nothing of a run.
WHAT_HELPS = (
    "the script or config that starts the run, with the files that it names",
    "a plan in words or flags (--model, --accelerator, --count, --framework, --global-batch, --seq-len)",
)
_RATE = re.compile(r"(^|[._])(lr|learning[_-]rate)$")
_CONFIGS = (".yaml", ".yml", ".json", ".toml")
_SCRIPTS = (".sh", ".sbatch", ".slurm", ".bash", ".pbs")
_VALUES = re.compile(r"values([.-].*)?\.ya?ml$")
_COMMAND = re.compile(
    r"([A-Z_][A-Z0-9_]*=\S* +)*"
    r"(srun|torchrun|accelerate|deepspeed|llamafactory-cli|axolotl|tune|trl|vllm|python[0-9.]*|exec|export|set|"
    r"llama-server|trtllm-serve|litgpt|swift|megatron|primus-cli|docker|sglang|ollama|text-generation-launcher) "
)
_PYTHON = re.compile(r"^(import \w|from \w[\w.]* import |\w+ = [A-Za-z_][\w.]*\()", re.MULTILINE)


def _serves(form: Format) -> bool:
    """Whether a format is of an engine: what has a learning rate trains, whatever words of an engine it has besides."""
    return form.read.__module__.startswith("launchers.engines.")


def _is_strange(form: Format, keys: Keys) -> bool:
    """Whether a program does not know most of what the words of the field know of a file: it is of another one, though
    some words are this one's."""
    if form.read is own_program.read_settings or not own_program.score(keys):
        return False
    trial, words = Findings(), [name for name in keys.items if own_program.meaning_of(name) is not None]
    form.read(Keys(keys.file, dict(keys.items)), trial)
    left = {row.key for row in trial.not_read if NOT_KNOWN in row.why.replace("is not known", "not known")}
    unknown = [name for name in words if keys.items[name].origin in left]
    return len(unknown) > len(words) / 2 and len(unknown) > 2


def is_script(name: str, text: str) -> bool:
    if name.endswith(_SCRIPTS) or text.startswith("#!"):
        return not re.match(r"#!.*python", text)
    if name.endswith((".py", ".ipynb")):
        return False
    first = next((line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")), "")
    return bool(_COMMAND.match(first))


def is_python(name: str, text: str) -> bool:
    if name.endswith((".py", ".ipynb")):
        return True
    return not name.endswith(_CONFIGS) and bool(_PYTHON.search(text))


def config(name: str, text: str) -> tuple[Format, Keys] | None:
    """The config and its format; None for what may be a command line. Raises PlanError for what is no config that is
    read here, though its name or its text says that it is one."""
    errors: list[PlanError] = []
    parsers = (("modelfile", modelfile_keys), ("json", json_keys), ("toml", toml_keys), ("yaml", yaml_keys))
    for kind, parse in parsers:
        if kind == "modelfile" and not is_modelfile(text):
            continue
        if kind == "json" and not text.lstrip().startswith("{"):
            continue
        if kind == "toml" and not name.endswith(".toml"):
            continue
        try:
            keys = parse(name, text)
        except PlanError as error:
            errors.append(error)
            continue
        trains = any(_RATE.search(key) for key in keys.items)
        scores = [
            (form.score(keys), form) for form in formats() if kind in form.kinds and not (trains and _serves(form))
        ]
        for best, form in sorted(scores, key=lambda row: -row[0]):
            if best > 0 and not _is_strange(form, keys):
                return form, keys
        if _VALUES.match(name) or "image.repository" in keys:
            why = "holds the values of a Helm chart; give what the chart makes of them (helm template)"
            errors.append(PlanError("files", f"{name} {why}"))
        else:
            errors.append(PlanError("files", f"{name} is of no format that is read here", WHAT_HELPS))
        break
    if name.endswith(_CONFIGS):
        raise errors[-1]
    return None
