"""llama.cpp: the script that starts llama-server, and the plan's load for llama-batched-bench.

A replica splits layers over its devices. The cache is divided into slots of one request each, so that what the server
holds is slots x context.
"""

from __future__ import annotations

from typing import Any

from knowledge.engines import engine
from knowledge.models.catalogue import architecture
from launchers.devices import is_cpu
from launchers.engines import load
from launchers.engines.scripts import HOST, PATH, PORT, Verbatim, command, notes, options, serve_file, start
from launchers.launch.serving import ServingLaunch
from launchers.pieces import Piece
from launchers.tables import table


def render(launch: ServingLaunch) -> Piece:
    needs: list[str] = []
    model = _file(launch, needs)
    server = {
        **_common(launch, model),
        "--ctx-size": _slots(launch) * launch.context,
        "--parallel": _slots(launch),
        "--no-kv-unified": True,
        "--fit": "off",
        "--host": Verbatim(HOST),
        "--port": Verbatim(PORT),
    }
    if launch.serving.speculative_tokens is not None:
        server |= {
            "--spec-type": "draft-simple",
            "--spec-draft-model": "SET_ME_DRAFT_MODEL.gguf",
            "--spec-draft-n-max": launch.serving.speculative_tokens,
        }
        needs.append(f"{PATH}: SET_ME_DRAFT_MODEL.gguf, a small model of the same family that drafts tokens")
    if launch.serving.max_context is None:
        room = f"--ctx-size, if requests are longer than {launch.context} tokens"
        needs.append(f"{PATH}: {room}: each slot sets as many aside, as estimated (max_context)")
    prepare = ["export GGML_CUDA_DISABLE_GRAPHS=1"] if launch.serving.cuda_graph is False else []
    files = (
        serve_file(launch, "llamacpp", command("exec llama-server", options(server)), prepare),
        _bench(launch, model, prepare),
    )
    return Piece(files, (*needs, *notes(launch, "llamacpp")), start(launch, "llamacpp"))


def _file(launch: ServingLaunch, needs: list[str]) -> str:
    """The GGUF file: the plan's model where it is one."""
    if launch.model is not None and launch.model.lower().endswith(".gguf"):
        return launch.model
    kind = table("engines/llamacpp/fields")["kinds"].get(
        launch.serving.weight_dtype, launch.serving.weight_dtype.upper()
    )
    name = f"SET_ME_{kind}.gguf"
    needs.append(f"{PATH}: {name}, a GGUF file of {launch.model or 'the model'} with {kind} weights")
    return name


def _slots(launch: ServingLaunch) -> int:
    return launch.serving.max_batch or engine("llamacpp", launch.serving.software_version).max_batch


def _common(launch: ServingLaunch, model: str) -> dict[str, Any]:
    """What server and benchmark take alike."""
    serving = launch.serving
    kind = None if serving.kv_dtype == "auto" else table("engines/llamacpp/fields")["kv"][serving.kv_dtype]
    step = serving.max_batched_tokens
    arguments: dict[str, Any] = {
        "--model": model,
        "--cache-type-k": kind,
        "--cache-type-v": kind,
        "--batch-size": None if step is None else max(2048, step),
        "--ubatch-size": step,
    }
    if is_cpu(launch):
        return arguments | {"--device": "none"}
    several = launch.replica_devices > 1 or bool(launch.plan.cluster.beside)
    return arguments | {
        "--n-gpu-layers": _device_layers(launch),
        "--n-cpu-moe": _first_layers(launch) or None,
        "--split-mode": "layer" if several else "none",
    }


def _device_layers(launch: ServingLaunch) -> int:
    """Layers on cards as the program counts them: the output is one more (llama-model.cpp, i_gpu_start)."""
    wanted = launch.serving.device_layers
    return 999 if wanted is None or wanted >= architecture(launch.plan.model).layers else wanted + 1


def _first_layers(launch: ServingLaunch) -> int:
    """Layers from the first on that hold as many layers with experts as a processor is to have."""
    wanted = launch.serving.host_experts or 0
    model = architecture(launch.plan.model) if wanted else None
    routed = [at for at, kind in enumerate(model.pattern) if model.blocks[kind].experts] if model else []
    return routed[min(wanted, len(routed)) - 1] + 1 if routed else 0


def _bench(launch: ServingLaunch, model: str, prepare: list[str]):
    """llama-batched-bench reads the prompts of a batch and generates, all requests in step."""
    part = load.load_of(launch)
    at_once = min(part.concurrency or _slots(launch), _slots(launch))
    flags = {
        **_common(launch, model),
        "--ctx-size": at_once * (part.fresh + part.shared + part.output),
        "-npp": part.fresh + part.shared,
        "-ntg": part.output,
        "-npl": at_once,
    }
    remarks = [f"{at_once} requests in step, without the server; it is to be stopped before"]
    return load.script(launch, "llamacpp", [*prepare, *command("exec llama-batched-bench", options(flags))], remarks)
