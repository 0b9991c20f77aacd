"""MLX: the script that starts mlx_lm.server on a Mac, and mlx_lm.benchmark of the plan's lengths.

It listens without a key.
"""

from __future__ import annotations

from typing import Any

from launchers.engines import load
from launchers.engines.checkpoints import formats_of
from launchers.engines.scripts import HOST, PATH, PORT, Verbatim, command, notes, options, serve_file, start
from launchers.launch.names import last_part
from launchers.launch.placeholders import MODEL
from launchers.launch.serving import ServingLaunch
from launchers.pieces import Piece
from launchers.tables import table


def render(launch: ServingLaunch) -> Piece:
    needs = ["environment: pip install mlx-lm==0.32.2 on a Mac with Apple silicon"]
    serving, model = launch.serving, _model(launch, needs)
    server: dict[str, Any] = {
        "--model": model,
        "--decode-concurrency": serving.max_batch,
        "--prefill-step-size": serving.max_batched_tokens,
        "--host": Verbatim(HOST),
        "--port": Verbatim(PORT),
    }
    part = load.load_of(launch)
    bench = {
        "--model": model,
        "--prompt-tokens": part.fresh + part.shared,
        "--generation-tokens": part.output,
        "--batch-size": part.concurrency or 1,
        "--prefill-step-size": serving.max_batched_tokens,
    }
    remarks = ["requests in step, without the server; it is to be stopped before"]
    files = (
        serve_file(launch, "mlx", command("exec mlx_lm.server", options(server))),
        load.script(launch, "mlx", command("exec mlx_lm.benchmark", options(bench)), remarks),
    )
    return Piece(files, (*needs, *notes(launch, "mlx")), start(launch, "mlx"))


def _model(launch: ServingLaunch, needs: list[str]) -> str:
    """The checkpoint, or the folder that mlx_lm.convert makes of it in the plan's format."""
    wanted = launch.serving.weight_dtype
    if launch.model is None:
        needs.append(f"{PATH}: {MODEL}, a checkpoint of the planned architecture")
        return MODEL
    packs = table("engines/mlx/fields")["packs"].get(wanted)
    if packs is None or wanted in formats_of(launch.model):
        return launch.model
    folder = f"{last_part(launch.model)}-{wanted}"
    needs.append(f"{folder}: mlx_lm.convert --hf-path {launch.model} {packs} --mlx-path {folder}, once before")
    return f"./{folder}"
