"""vLLM: a YAML for `vllm serve --config`, the script that starts it, and the plan's load for `vllm bench serve`.

Options that the plan leaves open stay vLLM's own. The YAML holds no address: port and nodes are the script's.
"""

from __future__ import annotations

from knowledge.speculation import drafts_with
from launchers.engines.checkpoints import checkpoint
from launchers.engines.load import bench_file
from launchers.engines.scripts import (
    HOST,
    PORT,
    Verbatim,
    claimed_share,
    command,
    notes,
    options,
    serve_file,
    start,
    start_command,
)
from launchers.launch.heading import heading
from launchers.launch.placeholders import DRAFT_MODEL
from launchers.launch.serving import ServingLaunch, copied_experts
from launchers.pieces import File, Piece
from launchers.shell.quoting import MASTER_ADDR, MASTER_PORT, NODE_RANK
from launchers.tables import table
from launchers.yaml_text import Tree, document

CONFIG = "vllm.yaml"


def render(launch: ServingLaunch) -> Piece:
    words, serving = table("engines/vllm/fields"), launch.serving
    needs: list[str] = []
    model, online = checkpoint(launch, CONFIG, words["online"], needs)
    comments: dict[str, str] = {}
    if model != launch.model:
        comments["model"] = f"set this: a checkpoint with {serving.weight_dtype} weights"
    weights: dict[str, Tree] = {"model": model}
    if serving.weight_dtype in words["dtypes"]:
        weights["dtype"] = words["dtypes"][serving.weight_dtype]
    if online is not None:
        weights["quantization"] = online
        comments["quantization"] = "quantises the 16-bit checkpoint while it is loaded"
    if serving.kv_dtype != "auto":
        weights["kv-cache-dtype"] = words["kv"][serving.kv_dtype]
    layout: dict[str, Tree] = {"tensor-parallel-size": launch.tp, "pipeline-parallel-size": launch.pp}
    if (launch.plan.layout.cp or 1) > 1:
        layout["decode-context-parallel-size"] = launch.plan.layout.cp
    if launch.dp > 1:
        layout["data-parallel-size"] = launch.dp
    if launch.ep > 1:
        layout["enable-expert-parallel"] = True
        comments["enable-expert-parallel"] = f"experts over {launch.ep} devices"
    layout |= _exchange(launch)
    if launch.nodes > 1:
        layout["distributed-executor-backend"] = "mp"
    sections = {
        "model": weights,
        "devices": layout,
        "memory and batches": _batches(launch),
    }
    if serving.max_context is None:
        comments["max-model-len"] = "longer requests are refused (max_context)"
    speculation = _speculation(launch, needs, comments)
    if speculation:
        sections["speculative decoding"] = {"speculative-config": speculation}
    files = (
        File(CONFIG, "vllm", document(heading(launch, start_command(launch)), sections, comments)),
        serve_file(launch, "vllm", _serve(launch)),
        bench_file(launch, "vllm", model),
    )
    return Piece(files, (*needs, *notes(launch, "vllm")), start(launch, "vllm"))


def _exchange(launch: ServingLaunch) -> dict[str, Tree]:
    """All-to-all between lanes, halves of a step that take turns, and experts that are held more than once."""
    serving, fields = launch.serving, dict[str, Tree]()
    if serving.expert_exchange != "auto":
        direct = serving.expert_exchange == "all_to_all"
        fields["all2all-backend"] = "deepep_low_latency" if direct else "allgather_reducescatter"
    if serving.two_batch_overlap is True:
        fields["enable-dbo"] = True
    if copies := copied_experts(launch):
        fields |= {"enable-eplb": True, "eplb-config": {"num_redundant_experts": copies}}
    return fields


def _batches(launch: ServingLaunch) -> dict[str, Tree]:
    serving = launch.serving
    fields: dict[str, Tree] = {"max-model-len": launch.context, "gpu-memory-utilization": claimed_share(launch, "vllm")}
    if serving.max_batch is not None:
        fields["max-num-seqs"] = serving.max_batch
    if serving.max_batched_tokens is not None:
        fields["max-num-batched-tokens"] = serving.max_batched_tokens
    if serving.chunked_prefill is True:
        fields["enable-chunked-prefill"] = True
    if serving.prefix_hit > 0:
        fields["enable-prefix-caching"] = True
    if serving.cuda_graph is False:
        fields["enforce-eager"] = True
    return fields


def _speculation(launch: ServingLaunch, needs: list[str], comments: dict[str, str]) -> dict[str, Tree]:
    drafted = launch.serving.speculative_tokens
    if drafted is None:
        return {}
    way = drafts_with(launch.model, launch.serving.draft_method)
    if way != "eagle3":
        return {"method": way, "num_speculative_tokens": drafted}
    comments["speculative-config"] = "set its model: an EAGLE-3 head that was trained for this model"
    needs.append(f"{CONFIG}: SET_ME_DRAFT_MODEL, an EAGLE-3 head that was trained for this model")
    return {"method": "eagle3", "model": DRAFT_MODEL, "num_speculative_tokens": drafted}


def _serve(launch: ServingLaunch) -> list[str]:
    """All nodes run the same but for the first, which answers requests; the others have no server (--headless).

    What is to be off is said here: a false in the YAML is dropped (utils/argparse_utils.py load_config_file looks for
    --no-... among the options of `vllm`, not of `serve`).
    """
    off = {"--no-enable-chunked-prefill": launch.serving.chunked_prefill is False}
    address = {"--host": Verbatim(HOST), "--port": Verbatim(PORT), **off}
    if launch.nodes == 1:
        return command(f"exec vllm serve --config {CONFIG}", options(address))
    meeting = {
        "--nnodes": launch.nodes,
        "--node-rank": Verbatim(NODE_RANK),
        "--master-addr": Verbatim(MASTER_ADDR),
        "--master-port": Verbatim(MASTER_PORT),
    }
    program = f"exec vllm serve --config {CONFIG}"
    return [
        f"if [ {NODE_RANK} != 0 ]; then",
        *command(program, options({**meeting, **off, "--headless": True}), "  "),
        "fi",
        *command(program, options({**meeting, **address})),
    ]
