"""Runs mlx-lm on what we write, on a processor. A question is {"folder": with mlx.yaml, a model and data} or {"server":
arguments}; an answer says the adapters of a run, or how the server's own parser reads them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import yaml
from mlx_lm import lora, server


def answer(question):
    if "server" in question:
        return _parsed(question["server"])
    folder = Path(question["folder"])
    known = set(lora.CONFIG_DEFAULTS)
    said = yaml.load((folder / "mlx.yaml").read_text(), lora.yaml_loader)
    if unknown := sorted(set(said) - known):
        raise ValueError(f"unknown keys: {unknown}")
    command = [str(Path(sys.executable).parent / "mlx_lm.lora"), "--config", "mlx.yaml"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | {"HF_HUB_OFFLINE": "1"}
    )
    if done.returncode:
        raise ValueError(done.stderr[-2000:])
    return {"saved": sorted(path.name for path in folder.glob("saves/*/*.safetensors"))}


def _parsed(words):
    """The server's arguments, read by its parser and no further."""
    found = {}

    def stop(parser, *_):
        found.update(vars(parser.parse_known_args(words)[0]))
        if unknown := parser.parse_known_args(words)[1]:
            raise ValueError(f"unknown: {unknown}")
        raise SystemExit

    kept, argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_args, stop
    try:
        server.main()
    except SystemExit:
        pass
    finally:
        argparse.ArgumentParser.parse_args = kept
    return {"model": found.get("model"), "concurrency": found.get("decode_concurrency"), "port": found.get("port")}
