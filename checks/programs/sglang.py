"""Each question is a command line of SGLang, `argv`; the answer is what SGLang's own parsers read from it.

`argv` begins with -m sglang.launch_server or -m sglang.bench_serving.
"""

# ruff: noqa: E402  (what programs look for is put in place before they are imported)
from __future__ import annotations

import argparse
import os
import sys
import types

# What the benchmark program imports for other data sets and servers, and what needs a GPU's packages.
for name, word in {"datasets": "load_dataset", "sglang.srt.disaggregation.utils": "FAKE_BOOTSTRAP_HOST"}.items():
    sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[name], word, "")

os.environ.update(VLLM_TARGET_DEVICE="cpu", CUDA_VISIBLE_DEVICES="")
from sglang.benchmark import serving
from sglang.srt.server_args import ServerArgs

SERVER = argparse.ArgumentParser(prog="sglang serve")
ServerArgs.add_cli_args(SERVER)


class Read(Exception):
    """Carries what the benchmark's parser read out of its main function."""


def served(argv: list[str]) -> dict:
    read = SERVER.parse_args(argv)
    if read.tp_size % read.attn_dp_size or (read.tp_size * read.pp_size) % read.nnodes or read.tp_size % read.ep_size:
        raise ValueError("sizes that check_server_args refuses")
    return {
        "model": read.model_path,
        "tp": read.tp_size,
        "pp": read.pp_size,
        "dp": read.dp_size,
        "lanes": read.attn_dp_size,
        "ep": read.ep_size,
        "nodes": read.nnodes,
        "rank": read.node_rank,
        "address": read.dist_init_addr,
        "port": read.port,
        "context": read.context_length,
        "batch": read.max_running_requests,
        "tokens": read.chunked_prefill_size,
        "share": read.mem_fraction_static,
        "kv": read.kv_cache_dtype,
        "dtype": read.dtype,
        "quantization": read.quantization,
        "mixed": read.enable_mixed_chunk,
        "graphs": read.cuda_graph_backend_decode,
        "looks": read.scheduler_recv_interval,
        "drafted": read.speculative_num_steps,
        "algorithm": read.speculative_algorithm,
    }


def measured(argv: list[str]) -> dict:
    real = argparse.ArgumentParser.parse_args

    def parse(self: argparse.ArgumentParser, *_: object) -> None:
        raise Read(real(self, argv))

    argparse.ArgumentParser.parse_args = parse  # type: ignore[assignment]
    try:
        serving.cli_main()
    except Read as found:
        read = found.args[0]
    finally:
        argparse.ArgumentParser.parse_args = real
    shared = read.dataset_name == "generated-shared-prefix"
    return {
        "model": read.model,
        "port": read.port,
        "requests": read.num_prompts,
        "concurrency": read.max_concurrency,
        "rate": None if read.request_rate == float("inf") else read.request_rate,
        "input": read.gsp_question_len if shared else read.random_input_len,
        "shared": read.gsp_system_prompt_len if shared else 0,
        "output": read.gsp_output_len if shared else read.random_output_len,
        "ratio": read.gsp_range_ratio if shared else read.random_range_ratio,
    }


def answer(question: dict) -> dict:
    argv = question["argv"]
    return measured(argv[2:]) if argv[1] == "sglang.bench_serving" else served(argv[2:])
