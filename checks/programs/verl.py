"""Each question is a `trainer` of verl and its `words`; the answer is what Hydra composes of them over verl's own YAML.

verl itself imports torch and Ray, so that its YAML is found beside it and not through it.
"""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

_CONFIGS = {"main_ppo": "ppo_trainer", "sft_trainer": "sft_trainer_engine"}
FOLDER = next(
    Path(str(path.locate())).parent for path in files("verl") or () if str(path).endswith("config/ppo_trainer.yaml")
)


def answer(question: dict) -> dict:
    with initialize_config_dir(str(FOLDER), version_base=None):
        config = compose(_CONFIGS[question["trainer"]], overrides=question["words"])
    read = {}
    for name in question["keys"]:
        value = OmegaConf.select(config, name, throw_on_missing=True)
        read[name] = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
    return {"read": read}
