"""TensorRT-LLM: options as YAML for `trtllm-serve --extra_llm_api_options`, the script, and the plan's load.

Lanes that share experts are attention data parallelism, which makes every device of the group a lane.
"""

from __future__ import annotations

from knowledge.speculation import drafts_with
from launchers.engines.checkpoints import checkpoint
from launchers.engines.load import bench_file
from launchers.engines.scripts import HOST, PORT, Verbatim, command, notes, options, serve_file, start, start_command
from launchers.launch.heading import heading
from launchers.launch.placeholders import DRAFT_MODEL
from launchers.launch.serving import ServingLaunch
from launchers.pieces import File, Piece
from launchers.tables import table
from launchers.yaml_text import Tree, document

CONFIG = "trtllm.yaml"
# Tokens of a step unless told (max_num_tokens).
_STEP = 8192
# Tokens of a key that is looked up in the text: most are kept with five (its blog 7).
_NGRAM = 5


def render(launch: ServingLaunch) -> Piece:
    needs: list[str] = []
    comments: dict[str, str] = {}
    model, _ = checkpoint(launch, "serve.sh", table("engines/trtllm/fields")["online"], needs)
    sections: dict[str, dict[str, Tree]] = {
        "devices": _layout(launch),
        "memory and batches": _batches(launch),
    }
    if launch.serving.max_context is None:
        comments["max_seq_len"] = "longer requests are refused (max_context)"
    speculation = _speculation(launch, needs)
    if speculation:
        sections["speculative decoding"] = {"speculative_config": speculation}
    if speculation.get("decoding_type") == "NGram":
        # Not beside the scheduler that overlaps steps (its blog 7, feature gaps).
        sections["speculative decoding"]["disable_overlap_scheduler"] = True
    address = {"--host": Verbatim(HOST), "--port": Verbatim(PORT), "--extra_llm_api_options": CONFIG}
    body = command("exec trtllm-serve", [*options({"serve": model}), *options(address)])
    files = (
        File(CONFIG, "trtllm", document(heading(launch, start_command(launch)), sections, comments)),
        serve_file(launch, "trtllm", body),
        bench_file(launch, "trtllm", model),
    )
    return Piece(files, (*needs, *notes(launch, "trtllm")), start(launch, "trtllm"))


def _layout(launch: ServingLaunch) -> dict[str, Tree]:
    group = launch.tp * launch.dp
    fields: dict[str, Tree] = {
        "tensor_parallel_size": group,
        "pipeline_parallel_size": launch.pp,
        "gpus_per_node": launch.node_devices,
    }
    if launch.ep > 1:
        fields |= {"moe_expert_parallel_size": launch.ep, "moe_tensor_parallel_size": group // launch.ep}
    if launch.dp > 1:
        fields["enable_attention_dp"] = True
    return fields


def _batches(launch: ServingLaunch) -> dict[str, Tree]:
    words, serving = table("engines/trtllm/fields"), launch.serving
    cache: dict[str, Tree] = {"free_gpu_memory_fraction": serving.memory_share or 0.9}
    if serving.kv_dtype in words["kv"]:
        cache["dtype"] = words["kv"][serving.kv_dtype]
    if serving.prefix_hit > 0:
        cache["enable_block_reuse"] = True
    fields: dict[str, Tree] = {"max_seq_len": launch.context}
    if serving.weight_dtype in words["dtypes"]:
        fields["dtype"] = words["dtypes"][serving.weight_dtype]
    if serving.max_batch is not None:
        fields["max_batch_size"] = serving.max_batch
    if serving.max_batched_tokens is not None:
        fields["max_num_tokens"] = serving.max_batched_tokens
    elif serving.chunked_prefill is not True and launch.context > _STEP:
        # Prompts are not cut, so a step must hold the longest.
        fields["max_num_tokens"] = launch.context
    if serving.chunked_prefill != "auto":
        fields["enable_chunked_prefill"] = serving.chunked_prefill
    if serving.cuda_graph is False:
        fields["cuda_graph_config"] = None
    return fields | {"kv_cache_config": cache}


def _speculation(launch: ServingLaunch, needs: list[str]) -> dict[str, Tree]:
    drafted = launch.serving.speculative_tokens
    if drafted is None:
        return {}
    way = drafts_with(launch.model, launch.serving.draft_method)
    if way == "ngram":
        return {"decoding_type": "NGram", "max_draft_len": drafted, "max_matching_ngram_size": _NGRAM}
    if way == "mtp":
        return {"decoding_type": "MTP", "num_nextn_predict_layers": drafted}
    needs.append(f"{CONFIG}: SET_ME_DRAFT_MODEL, an EAGLE-3 head that was trained for this model")
    return {"decoding_type": "Eagle", "max_draft_len": drafted, "speculative_model_dir": DRAFT_MODEL}
