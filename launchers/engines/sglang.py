"""SGLang: the script that starts its server, and the plan's load for sglang.bench_serving.

SGLang counts all devices of a stage as tp_size; lanes that share experts (attention DP) and experts are parts of it.
Its limits of running requests and of tokens per step are those of all lanes together.
"""

from __future__ import annotations

from typing import Any

from launchers import Piece
from launchers.engines.checkpoints import checkpoint, drafts_itself
from launchers.engines.job import ServingJob, has_experts
from launchers.engines.load import bench_file
from launchers.engines.scripts import PATH, PORT, Word, claimed_share, command, notes, options, serve_file, start
from launchers.shell.quoting import NODE_RANK
from launchers.tables import table


def render(job: ServingJob) -> Piece:
    words, serving = table("sglang"), job.serving
    needs: list[str] = []
    reserve = job.plan.overrides.reserve_gib
    model, online = checkpoint(job, PATH, words["online"], needs)
    said: dict[str, Any] = {
        "--model-path": model,
        "--dtype": words["dtypes"].get(serving.weight_dtype),
        "--quantization": online,
        "--kv-cache-dtype": words["kv"].get(serving.kv_dtype, "auto") if serving.kv_dtype != "auto" else None,
        **_layout(job),
        "--context-length": job.context,
        # Left to SGLang unless said: it takes graphs and chunks into account.
        "--mem-fraction-static": claimed_share(job, "sglang") if serving.memory_share or reserve else None,
        "--max-running-requests": None if serving.max_batch is None else serving.max_batch * job.dp,
        "--chunked-prefill-size": None if serving.max_batched_tokens is None else serving.max_batched_tokens * job.dp,
        "--enable-mixed-chunk": serving.chunked_prefill is True,
        "--scheduler-recv-interval": serving.admission_steps if serving.admission_steps > 1 else None,
    }
    if serving.cuda_graph is False:
        said |= {"--cuda-graph-backend-decode": "disabled", "--cuda-graph-backend-prefill": "disabled"}
    if serving.speculative_tokens is not None:
        said |= _speculation(job, needs)
    said |= {"--host": "0.0.0.0", "--port": Word(PORT)}
    if job.nodes > 1:
        said |= {
            "--nnodes": job.nodes,
            "--node-rank": Word(NODE_RANK),
            "--dist-init-addr": Word('"$MASTER_ADDR:$MASTER_PORT"'),
        }
    body = command("exec python3 -m sglang.launch_server", options(said))
    files = (serve_file(job, "sglang", body), bench_file(job, "sglang", model))
    return Piece(files, (*needs, *notes(job, "sglang")), start(job, "sglang"))


def _layout(job: ServingJob) -> dict[str, Any]:
    """Lanes of a dense model share nothing: they are SGLang's own replicas (--dp-size)."""
    stages = job.pp if job.pp > 1 else None
    if not has_experts(job):
        return {"--tp-size": job.tp, "--pp-size": stages, "--dp-size": job.dp if job.dp > 1 else None}
    return {
        "--tp-size": job.tp * job.dp,
        "--pp-size": stages,
        "--attn-dp-size": job.dp if job.dp > 1 else None,
        "--ep-size": job.ep if job.ep > 1 else None,
    }


def _speculation(job: ServingJob, needs: list[str]) -> dict[str, Any]:
    """A chain of drafted tokens: SGLang counts the token that is checked with them."""
    drafted = job.serving.speculative_tokens or 0
    chain = {
        "--speculative-num-steps": drafted,
        "--speculative-eagle-topk": 1,
        "--speculative-num-draft-tokens": drafted + 1,
    }
    if drafts_itself(job.model):
        return {"--speculative-algorithm": "NEXTN", **chain}
    needs.append(f"{PATH}: SET_ME_DRAFT_MODEL, an EAGLE-3 head that was trained for this model")
    return {
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": "SET_ME_DRAFT_MODEL",
        **chain,
    }
