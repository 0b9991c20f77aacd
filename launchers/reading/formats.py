"""What a file is, told by what stands in it: configs by their keys, scripts by how they begin."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from estimator.errors import PlanError
from launchers.accelerate import read as accelerate
from launchers.axolotl import read as axolotl
from launchers.deepspeed import read as deepspeed
from launchers.engines import commands as serving
from launchers.engines import read as engines
from launchers.litgpt import read as litgpt
from launchers.llamafactory import read as llamafactory
from launchers.maxtext import read as maxtext
from launchers.nemo import read as nemo
from launchers.reading.documents import Keys, json_keys, toml_keys, yaml_keys
from launchers.reading.findings import Findings
from launchers.torchtitan import read as torchtitan
from launchers.torchtune import read as torchtune
from launchers.trl import read as trl


@dataclass(frozen=True)
class Format:
    """How a config is told from others (the highest score wins) and read. `order`: configs of programs come first, what
    they refer to later."""

    name: str
    score: Callable[[Keys], int]
    read: Callable[[Keys, Findings], None]
    kinds: tuple[str, ...] = ("yaml",)
    order: int = 0


FORMATS = (
    Format("LlamaFactory YAML", llamafactory.score, llamafactory.read, ("yaml", "json")),
    Format("LlamaFactory v1 YAML", llamafactory.score_v1, llamafactory.read_v1),
    Format("Axolotl YAML", axolotl.score, axolotl.read),
    Format("TRL or transformers Trainer arguments", trl.score, trl.read, ("yaml", "json")),
    Format("torchtune YAML", torchtune.score, torchtune.read),
    Format("torchtitan TOML", torchtitan.score, torchtitan.read, ("toml",)),
    Format("LitGPT YAML", litgpt.score, litgpt.read),
    Format("MaxText YAML", maxtext.score, maxtext.read),
    Format("Primus YAML", nemo.score_primus, nemo.read_primus),
    Format("NeMo YAML", nemo.score, nemo.read),
    Format("vLLM YAML", serving.score, serving.read_vllm),
    Format("TensorRT-LLM YAML", engines.score_trtllm, engines.read_trtllm),
    Format("accelerate YAML", accelerate.score, accelerate.read, ("yaml", "json"), order=1),
    Format("DeepSpeed JSON", deepspeed.score, deepspeed.read_deepspeed, ("json", "yaml"), order=2),
)
OTHERS = (
    "bash or sbatch script", "command line", "Python script on the Trainer, TRL or Unsloth", "Kubernetes objects",
    "SkyPilot task", "Compose file",
)  # fmt: skip
_CONFIGS = (".yaml", ".yml", ".json", ".toml")
_SCRIPTS = (".sh", ".sbatch", ".slurm", ".bash", ".pbs")
_COMMAND = re.compile(
    r"([A-Z_][A-Z0-9_]*=\S* +)*"
    r"(srun|torchrun|accelerate|deepspeed|llamafactory-cli|axolotl|tune|trl|vllm|python[0-9.]*|exec|export|set|"
    r"llama-server|trtllm-serve|litgpt|swift|megatron|primus-cli|docker|sglang) "
)


def names() -> list[str]:
    return [*(form.name for form in FORMATS), *OTHERS]


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
    return not name.endswith(_CONFIGS) and bool(re.search(r"^(import|from) \w+", text, re.MULTILINE))


def config(name: str, text: str) -> tuple[Format, Keys] | None:
    """The config and its format; None for what may be a command line. Raises PlanError for what is no config that is
    read here, though its name or its text says that it is one."""
    errors: list[PlanError] = []
    for kind, parse in (("json", json_keys), ("toml", toml_keys), ("yaml", yaml_keys)):
        if kind == "json" and not text.lstrip().startswith("{"):
            continue
        if kind == "toml" and not name.endswith(".toml"):
            continue
        try:
            keys = parse(name, text)
        except PlanError as error:
            errors.append(error)
            continue
        scores = [(form.score(keys), form) for form in FORMATS if kind in form.kinds]
        best, form = max(scores, key=lambda row: row[0])
        if best > 0:
            return form, keys
        errors.append(PlanError("files", f"{name} is of no format that is read here", names()))
        break
    if name.endswith(_CONFIGS):
        raise errors[-1]
    return None
