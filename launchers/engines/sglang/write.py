"""SGLang: the script that starts its server, and the plan's load for sglang.bench_serving.

SGLang counts all devices of a stage as tp_size; lanes that share experts (attention DP) and experts are parts of it.
Its limits of running requests and of tokens per step are those of all lanes together.
"""

from __future__ import annotations

from typing import Any

from knowledge.speculation import drafts_with
from launchers.engines.checkpoints import checkpoint
from launchers.engines.load import bench_file
from launchers.engines.scripts import (
    HOST,
    PATH,
    PORT,
    Verbatim,
    claimed_share,
    command,
    notes,
    options,
    serve_file,
    start,
)
from launchers.launch.placeholders import DRAFT_MODEL
from launchers.launch.serving import ServingLaunch, copied_experts, has_experts
from launchers.pieces import Piece
from launchers.shell.quoting import NODE_RANK
from launchers.tables import table


def render(launch: ServingLaunch) -> Piece:
    words, serving = table("engines/sglang/fields"), launch.serving
    needs: list[str] = []
    reserve = launch.plan.overrides.reserve_gib
    model, online = checkpoint(launch, PATH, words["online"], needs)
    arguments: dict[str, Any] = {
        "--model-path": model,
        "--dtype": words["dtypes"].get(serving.weight_dtype),
        "--quantization": online,
        "--kv-cache-dtype": words["kv"].get(serving.kv_dtype, "auto") if serving.kv_dtype != "auto" else None,
        **_layout(launch),
        "--context-length": launch.context,
        # Left to SGLang unless said: it takes graphs and chunks into account.
        "--mem-fraction-static": claimed_share(launch, "sglang") if serving.memory_share or reserve else None,
        "--max-running-requests": None if serving.max_batch is None else serving.max_batch * launch.dp,
        "--chunked-prefill-size": None
        if serving.max_batched_tokens is None
        else serving.max_batched_tokens * launch.dp,
        "--enable-mixed-chunk": serving.chunked_prefill is True,
        "--scheduler-recv-interval": serving.admission_steps if serving.admission_steps > 1 else None,
    }
    if serving.cuda_graph is False:
        arguments |= {"--cuda-graph-backend-decode": "disabled", "--cuda-graph-backend-prefill": "disabled"}
    if serving.speculative_tokens is not None:
        arguments |= _speculation(launch, needs)
    arguments |= {"--host": Verbatim(HOST), "--port": Verbatim(PORT)}
    if launch.nodes > 1:
        arguments |= {
            "--nnodes": launch.nodes,
            "--node-rank": Verbatim(NODE_RANK),
            "--dist-init-addr": Verbatim('"$MASTER_ADDR:$MASTER_PORT"'),
        }
    key = f'${{{words["key_variable"]}:+--api-key "${words["key_variable"]}"}}'
    body = command("exec python3 -m sglang.launch_server", [*options(arguments), key])
    files = (serve_file(launch, "sglang", body), bench_file(launch, "sglang", model))
    return Piece(files, (*needs, *notes(launch, "sglang")), start(launch, "sglang"))


def _layout(launch: ServingLaunch) -> dict[str, Any]:
    """Lanes of a dense model share nothing: they are SGLang's own replicas (--dp-size)."""
    stages = launch.pp if launch.pp > 1 else None
    if not has_experts(launch):
        return {"--tp-size": launch.tp, "--pp-size": stages, "--dp-size": launch.dp if launch.dp > 1 else None}
    return {
        "--tp-size": launch.tp * launch.dp,
        "--pp-size": stages,
        "--attn-dp-size": launch.dp if launch.dp > 1 else None,
        "--ep-size": launch.ep if launch.ep > 1 else None,
        "--moe-a2a-backend": _BACKENDS.get(launch.serving.expert_exchange),
        "--enable-two-batch-overlap": launch.serving.two_batch_overlap is True,
        "--enable-eplb": bool(copied_experts(launch)),
        "--ep-num-redundant-experts": copied_experts(launch) or None,
    }


_BACKENDS = {"all_to_all": "deepep", "gather": "none"}


def _speculation(launch: ServingLaunch, needs: list[str]) -> dict[str, Any]:
    """A chain of drafted tokens: SGLang counts the token that is checked with them."""
    drafted = launch.serving.speculative_tokens or 0
    chain = {
        "--speculative-num-steps": drafted,
        "--speculative-eagle-topk": 1,
        "--speculative-num-draft-tokens": drafted + 1,
    }
    way = drafts_with(launch.model, launch.serving.draft_method)
    if way == "ngram":
        return {"--speculative-algorithm": "NGRAM", "--speculative-num-draft-tokens": drafted + 1}
    if way == "mtp":
        return {"--speculative-algorithm": "NEXTN", **chain}
    needs.append(f"{PATH}: SET_ME_DRAFT_MODEL, an EAGLE-3 head that was trained for this model")
    return {
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": DRAFT_MODEL,
        **chain,
    }
