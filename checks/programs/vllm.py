"""Each question is a command line of vLLM, `folder` and `argv`; the answer is what vLLM's own parsers read from it.

`argv` begins with serve or bench serve. What argparse lets through is looked up in vLLM's own lists.
"""

from __future__ import annotations

import os
import typing

os.environ.update(
    VLLM_TARGET_DEVICE="cpu", VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1", CUDA_VISIBLE_DEVICES=""
)
from vllm.benchmarks.serve import add_cli_args
from vllm.config.cache import CacheDType
from vllm.config.parallel import ParallelConfig
from vllm.config.speculative import SpeculativeConfig, SpeculativeMethod
from vllm.entrypoints.common.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
from vllm.utils.argparse_utils import FlexibleArgumentParser

# As vllm/entrypoints/cli builds them.
TOP = FlexibleArgumentParser(prog="vllm")
COMMANDS = TOP.add_subparsers(dest="subparser")
make_arg_parser(COMMANDS.add_parser("serve"))
BENCH = FlexibleArgumentParser(prog="vllm bench serve")
add_cli_args(BENCH)


def names(literal: object) -> set[str]:
    """The strings of a Literal, those of Literals inside it too."""
    found: set[str] = set()
    for part in typing.get_args(literal):
        found |= {part} if isinstance(part, str) else names(part)
    return found


def among(what: str, value: object, valid: object) -> None:
    if value is not None and value not in valid:
        raise ValueError(f"{what} {value!r} is not among {sorted(valid)}")


def served(argv: list[str]) -> dict:
    read = TOP.parse_args(argv)
    validate_parsed_serve_args(read)
    among("kv_cache_dtype", read.kv_cache_dtype, names(CacheDType))
    among("quantization", read.quantization, QUANTIZATION_METHODS)
    speculation = read.speculative_config or {}
    among("speculative method", speculation.get("method"), names(SpeculativeMethod))
    unknown = set(speculation) - set(SpeculativeConfig.__dataclass_fields__)
    among("speculative fields", next(iter(unknown), None), ())
    lane = read.tensor_parallel_size * read.pipeline_parallel_size
    nodes, lanes = read.nnodes, read.data_parallel_size
    if nodes > 1:
        # What EngineArgs.create_engine_config makes of it, checked by vLLM's own rule.
        local = max(lane * lanes // nodes // lane, 1)
        config = ParallelConfig.__new__(ParallelConfig)
        for name, value in {"nnodes": nodes, "data_parallel_size": lanes, "data_parallel_size_local": local,
                            "data_parallel_external_lb": False}.items():  # fmt: skip
            object.__setattr__(config, name, value)
        assert config.nnodes_within_dp >= 1
    return {
        "model": read.model_tag or read.model,
        "tp": read.tensor_parallel_size,
        "pp": read.pipeline_parallel_size,
        "dp": lanes,
        "ep": bool(read.enable_expert_parallel),
        "nodes": nodes,
        "rank": read.node_rank,
        "address": [read.master_addr, read.master_port],
        "headless": read.headless,
        "port": read.port,
        "context": read.max_model_len,
        "batch": read.max_num_seqs,
        "tokens": read.max_num_batched_tokens,
        "share": read.gpu_memory_utilization,
        "kv": read.kv_cache_dtype,
        "dtype": read.dtype,
        "quantization": read.quantization,
        "chunked": read.enable_chunked_prefill,
        "prefixes": read.enable_prefix_caching,
        "eager": bool(read.enforce_eager),
        "drafted": speculation.get("num_speculative_tokens"),
    }


def measured(argv: list[str]) -> dict:
    read = BENCH.parse_args(argv)
    return {
        "model": read.model,
        "port": read.port,
        "requests": read.num_prompts,
        "concurrency": read.max_concurrency,
        "rate": None if read.request_rate == float("inf") else read.request_rate,
        "input": read.random_input_len,
        "shared": read.random_prefix_len,
        "output": read.random_output_len,
        "ratio": read.random_range_ratio,
        "goodput": read.goodput,
        "ignore_eos": read.ignore_eos,
    }


def answer(question: dict) -> dict:
    os.chdir(question["folder"])
    argv = question["argv"]
    return measured(argv[2:]) if argv[0] == "bench" else served(argv)
