"""Completion scripts: made from the command line, accepted by their shells, and of use there.

bash, zsh and fish complete for real where they are installed. Where one is not, its script is read: what it declares
for a flag must hold the words.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tui.arguments.parser import commands_of
from tui.arguments.top import parser
from tui.cli import main
from tui.commands import completion
from tui.planning import PLANNING

script = cache(completion.script)
SHELLS = ("bash", "zsh", "fish")
TYPED: dict[str, set[str]] = {
    "sc": {"scaling", "scenarios"},
    "fit --meth": {"--method"},
    "fit --method q": {"qlora"},
    "fit --model llama-3.1-40": {"meta-llama/Llama-3.1-405B"},
    "fit llama-3.1-405b H100-s": {"h100-sxm", "h100-sxm-64gb", "h100-sxm-96gb-hbm2e"},
    "fit llama-3.1-405b 8xgh200-9": {"8xgh200-96gb"},
    "limit llama-3.1-8b h100 seq": {"seq_len"},
    "configs --targets deeps": {"deepspeed"},
    "call check_f": {"check_fit"},
    "check sft.yaml --accelerator h200-n": {"h200-nvl"},
    "completion z": {"zsh"},
    "scenarios di": {"diff"},
}

_BASH = """
for typed in "$@"; do
  COMP_WORDS=(shardwise $typed); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
  _shtab_shardwise
  echo "typed $typed"; printf '%s\\n' "${COMPREPLY[@]}"
done
"""
_FISH = """
for typed in $argv
  echo "typed $typed"; complete -C "shardwise $typed" | string replace -r '\\t.*' ''
end
"""
# zsh completes only where a line is edited. compadd, through which all words go, tells them; a count in front of an
# accelerator was taken off before (compset -P) and comes back.
_ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; fpath=('$1' $fpath); autoload -Uz compinit; compinit -u -D; bindkey "^I" complete-word
compadd() { local -a hits; builtin compadd -A hits "$@"; print -rl -- "HIT:"$IPREFIX${^hits}; builtin compadd "$@" }
print READY'
zpty -r shell line '*READY*READY*'
shift
for typed in "$@"; do
  zpty -w -n shell "shardwise $typed"$'\\t'
  zpty -w -n shell $'\\C-a\\C-kprint DO""NE\\n'
  zpty -r -m shell found '*DONE*'
  print -r -- "typed $typed"
  print -r -- "$found" | tr -d '\\r' | sed -n 's/.*HIT://p'
done
zpty -d shell
"""


def completed(shell: str, folder: Path, typed: Sequence[str]) -> dict[str, set[str]]:
    """What the shell offers for each of the lines."""
    name = {"bash": "shardwise", "zsh": "_shardwise", "fish": "shardwise.fish"}[shell]
    made = folder / name
    made.write_text(script(shell))
    words = {
        "bash": ["bash", "-c", f"source {made}\n{_BASH}", "bash", *typed],
        "zsh": ["zsh", "-f", "-c", _ZSH, "zsh", str(folder), *typed],
        "fish": ["fish", "--no-config", "-c", f"source {made}\n{_FISH}", *typed],
    }[shell]
    told = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=folder).stdout
    parts = re.split(r"^typed (.*)$", told, flags=re.MULTILINE)[1:]
    return {line: set(found.split()) for line, found in zip(parts[::2], parts[1::2], strict=True)}


def declared(shell: str, command: str, flag: str) -> set[str]:
    """The words that the script of zsh or fish declares for a flag, also by the function that it names."""
    text = script(shell)
    if shell == "fish":
        found = re.search(rf'using {command}\' -l {flag[2:]} -\w+ "([^"]*)"', text)
    else:
        options = text.partition(f"_shtab_shardwise_{command}_options=(")[2].partition("\n)")[0]
        found = re.search(rf'"\*?{flag}\[.*:(\([^"]*\)|_\w+)"', options)
    assert found
    if function := re.search(r"_shardwise_\w+", found[1]):
        body = re.search(rf"^(?:function )?{function[0]}\b.*", text, re.MULTILINE)
        assert body
        return set(re.split(r"[\s']+", body[0]))
    return set(found[1].strip("()").split())


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_flag_is_in_it(shell: str) -> None:
    text = script(shell)
    for name, command in commands_of(parser(every_flag=True)).items():
        assert name in text
        for flag in command._option_string_actions:
            if flag.startswith("--"):
                assert (f"-l {flag[2:]}" if shell == "fish" else flag) in text


@pytest.mark.parametrize("shell", SHELLS)
def test_its_shell_completes(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell):
        process = subprocess.run([shell, "-n"], input=script(shell), capture_output=True, text=True)
        assert (process.returncode, process.stderr) == (0, "")
        offered = completed(shell, tmp_path, list(TYPED))
        for line, words in TYPED.items():
            # What is typed may be any part of a word for bash and zsh, and the start of one for fish.
            assert offered[line] == words, line
        return
    assert shell != "bash"
    for line, words in TYPED.items():
        if flag := re.fullmatch(r"(\w+) .*(--[a-z-]+) \S+", line):
            assert words <= declared(shell, flag[1], flag[2]), line


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_what_the_script_declares_is_what_the_command_takes(shell: str) -> None:
    """Without any shell: the flags of a command with the values that the tool takes."""
    assert declared(shell, "fit", "--method") == {"full", "lora", "qlora", "dora", "pissa", "freeze"}
    assert {"meta-llama/Llama-3.1-405B", "Qwen/Qwen2.5-0.5B"} <= declared(shell, "fit", "--model")
    assert "h100-sxm" in declared(shell, "clusters", "--accelerators")


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (script("bash"), "")
    assert set(PLANNING) <= set(commands_of(parser()))
