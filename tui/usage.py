"""`shardwise --help`: the commands by what people want of them, each with a line, and examples."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Ask in plain words": ("ask", "chat", "web"),
    "Does it fit, how fast, what does it cost": ("fit", "estimate", "cost", "limit"),
    "What to choose": ("best", "clusters", "auto", "portfolio", "size", "advise", "playbook"),
    "Side by side": ("compare", "sweep", "scaling", "strategies", "peak", "mlperf"),
    "Why": ("explain", "model", "accelerator"),
    "Files": ("configs", "report", "check", "import", "matrix", "matrix-results"),
    "What it knows": ("models", "hardware", "prices", "measure", "trust"),
    "What you keep": ("scenarios", "sessions", "config"),
    "For other programs": ("call", "mcp", "serve", "database", "completion"),
}
_EXAMPLES = """\
examples:
  shardwise
  shardwise ask "Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences?"
  shardwise fit llama-3.1-8b 8xh100 --seq-len 8192
  shardwise estimate llama-3.1-70b 4xh200 --concurrency 64 --input-len 2000 --output-len 500
  shardwise compare llama-3.1-8b 8xh100 --over method=full,lora,qlora --plot
  shardwise check sft.yaml job.sbatch
  shardwise configs llama-3.1-8b 8xh100 --targets torchtitan,slurm --write runs/8b
  shardwise call estimate_training '{"model": "meta-llama/Llama-3.1-8B", "accelerator": "h100-sxm", "count": 8}'

shardwise COMMAND --help has every flag of one. Planning commands say the verdict first; --why has the rest, --brief one
line, --json and --md are for scripts and documents. Options without a command are those of chat. docs/cli.md has more.

exit codes:
  0    done
  1    an error inside Shardwise (SHARDWISE_DEBUG=1 shows where); of check and fit --strict: it does not fit
  2    the command or its input, or a file, cannot be used; one line on standard error says why
  3    of ask: the model that was asked for by name could not answer; the offline planner did
  130  stopped by Ctrl-C
"""
_HEAD = """\
usage: shardwise [-h] [--version] COMMAND ...

Plans LLM training, fine-tuning and serving: does it fit, how fast, at what cost; launch files.
"""
_INDENT, _LEAST_WIDTH = 18, 50


def top(meanings: Mapping[str, str], width: int) -> str:
    """`meanings` has a line for each command."""
    told = [_HEAD]
    for title, names in GROUPS.items():
        rows = [_row(name, meanings[name], max(width, _LEAST_WIDTH)) for name in names if name in meanings]
        told.append("\n".join([f"{title}:", *rows, ""]))
    return "\n".join([*told, _EXAMPLES])


def _row(name: str, meaning: str, width: int) -> str:
    return textwrap.fill(meaning, width, initial_indent=f"  {name:<{_INDENT - 2}}", subsequent_indent=" " * _INDENT)
