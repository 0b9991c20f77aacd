"""The planning commands in this process: every one on a good path as a page and as JSON, and what they refuse."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pages.rendering import terminal as page
from pages.results.of_results import blocks_of
from tools.registry import Tool, find
from tui.cli import main
from tui.planning import PLANNING
from tui.progress import working

Capture = pytest.CaptureFixture[str]

SMALL = ("qwen2.5-0.5b", "2xh100", "--seq-len", "2048", "--dataset-tokens", "100M")
TRAINED = {
    "model": "qwen2.5-0.5b", "accelerator": "h100", "count": 2, "seq_len": 2048, "dataset_tokens": "100M",
}  # fmt: skip
SERVED = ("qwen2.5-0.5b", "h100", "--concurrency", "8")
SERVING = {"model": "qwen2.5-0.5b", "accelerator": "h100", "concurrency": 8}
# Of each command: words after its name, the tool, its arguments, and what the page must say.
PATHS: list[tuple[str, tuple[str, ...], str, dict[str, Any], str]] = [
    ("estimate", SMALL, "estimate_training", TRAINED, "It fits: "),
    ("estimate", SERVED, "estimate_inference", SERVING, "first token"),
    ("fit", SMALL, "check_fit", TRAINED, "What would make room"),
    ("fit", SERVED, "check_fit", SERVING, "users at once"),
    ("best", (*SMALL, "--top", "2"), "best_parallelism", TRAINED | {"top": 2}, "Best first"),
    ("best", (*SMALL, "--limit", "2"), "best_parallelism", TRAINED | {"top": 2}, "Best first"),
    ("estimate", (*SMALL, "--goal", "memory"), "estimate_training", TRAINED | {"objective": "memory"}, "It fits: "),
    ("best", SERVED, "best_serving", SERVING, "output tokens/s"),
    ("best", (*SMALL, "--goal", "time"), "best_parallelism", TRAINED | {"objective": "time"}, "Best first"),
    ("best", (*SERVED, "--goal", "latency"), "best_serving", SERVING | {"goal": "latency"}, "output tokens/s"),
    ("best", (*SERVED, "--objective", "time"), "best_serving", SERVING | {"goal": "latency"}, "output tokens/s"),
    ("strategies", (*SMALL, "--strategies", "custom", "--custom-layout", "tp=2,pp=1"), "apply_strategies",
     TRAINED | {"strategies": ["custom"], "custom_layout": {"tp": 2, "pp": 1}}, "custom"),
    ("limit", ("qwen2.5-0.5b", "h100", "micro_batch"), "find_limit",
     {"model": "qwen2.5-0.5b", "accelerator": "h100", "goal": "micro_batch"}, "Largest micro batch: "),
    ("size", ("qwen2.5-0.5b", "h100", "--request-rate", "20"), "size_serving",
     {"model": "qwen2.5-0.5b", "accelerator": "h100", "request_rate": 20}, "Cheapest first"),
    ("cost", SMALL, "estimate_cost", TRAINED, "By provider"),
    ("cost", SERVED, "estimate_cost", SERVING, "per hour"),
    ("clusters", ("qwen2.5-0.5b", "--dataset-tokens", "100M", "--accelerators", "h100,l40s", "--limit", "3"),
     "recommend_cluster",
     {"model": "qwen2.5-0.5b", "dataset_tokens": "100M", "accelerators": ["h100", "l40s"], "limit": 3}, "CLUSTER"),
    ("auto", SMALL, "auto_configure", TRAINED, "Decisions"),
    ("compare", (*SMALL, "--over", "method=full,lora"), "compare", TRAINED | {"over": {"method": ["full", "lora"]}},
     "Against full"),
    ("compare", (*SMALL, "--scenarios", "name=a,zero_stage=2", "--scenarios", '{"name": "b", "zero_stage": 3}'),
     "compare", TRAINED | {"scenarios": [{"name": "a", "zero_stage": 2}, {"name": "b", "zero_stage": 3}]},
     "What differs"),
    ("sweep", (*SMALL[:2], "count", "1,2"), "sweep",
     {"model": "qwen2.5-0.5b", "accelerator": "h100", "count": 2, "field": "count", "values": [1, 2]}, "DEVICES"),
    ("sweep", (*SERVED, "--field", "concurrency", "--values", "4..16"), "sweep",
     SERVING | {"field": "concurrency", "values": "4..16"}, "OUTPUT TOK/S"),
    ("scaling", (*SMALL, "--nodes", "1,2"), "project_scaling", TRAINED | {"nodes": [1, 2]}, "EFFICIENCY"),
    ("strategies", SMALL, "apply_strategies", TRAINED, "memory optimized"),
    ("peak", ("qwen2.5-0.5b", "h100", "--precisions", "bf16"), "peak_throughput",
     {"model": "qwen2.5-0.5b", "accelerator": "h100", "precisions": ["bf16"]}, "Fastest per device"),
    ("mlperf", ("llama2-70b", "h200"), "project_mlperf", {"benchmark": "llama2-70b", "accelerator": "h200"},
     "samples/s"),
    ("explain", (*SMALL, "--figure", "mfu"), "explain", TRAINED | {"figure": "mfu"}, "Formula: MFU"),
    ("advise", SMALL, "advise", TRAINED, "entries of the playbook apply"),
    ("model", ("mixtral-8x7b",), "describe_model", {"model": "mixtral-8x7b"}, "12.9B of them active"),
    ("accelerator", ("h100",), "describe_hardware", {"accelerator": "h100"}, "80GB"),
    ("matrix", (*SMALL, "--strategies", "balanced"), "render_matrix", TRAINED | {"strategies": ["balanced"]},
     "1 of 1 runs can be started"),
    ("playbook", ("nccl",), "search_playbook", {"query": "nccl"}, "source: "),
    ("configs", (*SMALL, "--targets", "deepspeed"), "render_configs", TRAINED | {"targets": ["deepspeed"]},
     "===== deepspeed.json"),
    ("report", SMALL, "render_report", TRAINED, "# "),
]  # fmt: skip
IDS = [f"{command}-{tool}" for command, _, tool, _, _ in PATHS]
# How long each run took differs from run to run.
_TIMES = ("seconds",)


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


_kept: dict[tuple[str, str], Any] = {}


@pytest.fixture
def kept_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is about how a result is shown: the same arguments are worked out once."""
    worked_out = Tool.run

    def kept(tool: Tool, arguments: Mapping[str, Any]) -> Any:
        key = tool.name, json.dumps(arguments, sort_keys=True, default=str)
        if key not in _kept:
            _kept[key] = worked_out(tool, arguments)
        return _kept[key]

    monkeypatch.setattr(Tool, "run", kept)


def refused(capsys: Capture, *words: str) -> str:
    """The one line that a user's mistake gets."""
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("shardwise")
    return err


@pytest.mark.usefixtures("kept_results")
def test_what_an_estimate_rests_on_is_a_flag_away(capsys: Capture) -> None:
    _, short, _ = run(capsys, "estimate", *SMALL)
    _, whole, _ = run(capsys, "estimate", *SMALL, "--why")
    assert whole.startswith(short.rstrip())
    for title in ("Assumed", "Evidence"):
        assert title not in short
        assert title in whole


# A page that people read before they scroll; what is asked for by name (a file, a formula, a row) is shown whole.
_MOST_LINES = 24
_WHOLE = ("explain", "model", "accelerator", "playbook", "configs", "report", "matrix")


@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize(("command", "words"), [(row[0], row[1]) for row in PATHS if row[0] not in _WHOLE], ids=str)
def test_a_page_says_the_verdict_first_and_fits_a_screen(capsys: Capture, command: str, words: tuple[str, ...]) -> None:
    _, page_text, _ = run(capsys, command, *words)
    _, brief, _ = run(capsys, command, *words, "--brief")
    _, whole, _ = run(capsys, command, *words, "--why")
    assert len(page_text.splitlines()) <= _MOST_LINES
    assert page_text.startswith(brief.rstrip())
    assert len(brief.splitlines()) <= 4
    assert len(whole) > len(page_text)


@pytest.mark.usefixtures("kept_results")
def test_markdown_is_printed_for_documents(capsys: Capture) -> None:
    _, text, _ = run(capsys, "fit", *SMALL, "--md")
    assert text.startswith("✓ **It fits: ")
    assert "| --- |" in text
    assert "expected" not in text
    assert "<details>" not in text
    _, whole, _ = run(capsys, "fit", *SMALL, "--md", "--why")
    assert whole.startswith(text.partition("\n")[0])
    assert all(line in whole.splitlines() for line in text.splitlines())
    assert "Assumed" in whole
    assert run(capsys, "fit", *SMALL, "--md", "--json")[0] == 2


def test_a_page_longer_than_the_terminal_goes_through_the_pager(
    capsys: Capture, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = own_folder / "reader"
    reader.write_text(f"#!/bin/sh\ncat > {own_folder}/read.txt\n")
    reader.chmod(0o755)
    monkeypatch.setenv("PAGER", str(reader))
    monkeypatch.setenv("LINES", "20")
    _, piped, _ = run(capsys, "fit", *SMALL, "--why")
    assert "Assumed" in piped
    assert not (own_folder / "read.txt").exists()
    monkeypatch.setenv("NO_COLOR", "1")
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    _, short, _ = run(capsys, "fit", *SMALL)
    assert short.startswith("It fits")
    _, rest, _ = run(capsys, "fit", *SMALL, "--why")
    assert rest == ""
    assert "Assumed" in (own_folder / "read.txt").read_text()


def test_who_waits_in_a_terminal_is_told_and_nobody_else(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    with working("Searching"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("tui.progress._QUIET_S", 0.05)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with working("Searching"):
        time.sleep(0.4)
    first = capsys.readouterr().err
    assert "Searching" in first
    assert "left" not in first
    # How long it took is known from now on.
    with working("Searching"):
        time.sleep(0.3)
    assert "s left" in capsys.readouterr().err


def timeless(result: Any) -> Any:
    if isinstance(result, dict):
        return {key: timeless(value) for key, value in result.items() if key not in _TIMES}
    return [timeless(value) for value in result] if isinstance(result, list) else result


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Saved plans and written files of a test stay in its folder."""
    monkeypatch.setenv("SHARDWISE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def test_every_command_is_walked() -> None:
    """Here, or where the files that a command reads are made (test_cli_reading.py, test_cli_matrix.py)."""
    elsewhere = {"check", "import", "matrix-results"}
    assert {command for command, *_ in PATHS} | elsewhere == set(PLANNING)


@pytest.mark.parametrize(("command", "words", "tool", "arguments", "said"), PATHS, ids=IDS)
def test_json_is_the_tools_result_and_the_page_shows_it(
    capsys: Capture, command: str, words: tuple[str, ...], tool: str, arguments: dict[str, Any], said: str
) -> None:
    code, out, err = run(capsys, command, *words, "--json")
    assert (code, err) == (0, "")
    result = find(tool).run(arguments)
    assert timeless(json.loads(out)) == timeless(json.loads(json.dumps(result.model_dump(mode="json"))))

    pictured = blocks_of(result)
    for width in (60, 100, 200):
        text = page.render(pictured, width)
        assert said.split()[0] in text
        assert "\x1b" not in text
        assert "None" not in re.sub(r"`[^`]*`", "", text)
        if command not in ("configs", "report"):  # texts of files keep their lines
            assert max(map(len, text.splitlines())) <= width
    assert said in page.render(pictured, 200)


@pytest.mark.parametrize("command", [name for name, planning in PLANNING.items() if not planning.files])
def test_the_example_of_its_help_works(capsys: Capture, command: str) -> None:
    if command == "matrix-results":
        main(["matrix", "qwen2.5-0.5b", "h100", "--strategies", "balanced", "--write", PLANNING[command].example])
    code, _, err = run(capsys, command, *shlex.split(PLANNING[command].example))
    assert (code, err) == (0, "")


def test_a_pipe_gets_no_colours_and_a_terminal_does(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in run(capsys, "fit", *SMALL, "--plot")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;32mIt fits" in run(capsys, "fit", *SMALL)[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run(capsys, "fit", *SMALL, "--plot")[1]


@pytest.mark.usefixtures("kept_results")
def test_strict_makes_what_does_not_fit_fail(capsys: Capture) -> None:
    large = ("llama-3.1-70b", "2xa100-sxm-80gb")
    code, out, _ = run(capsys, "fit", *large)
    assert code == 0
    assert out.startswith("It does not fit")
    assert run(capsys, "fit", *large, "--strict")[0] == 1
    assert run(capsys, "fit", *large, "--strict", "--json")[0] == 1
    assert run(capsys, "fit", *SMALL, "--strict")[0] == 0


@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize("command", ["estimate", "fit", "compare", "sweep", "scaling", "strategies", "peak"])
def test_pictures_are_drawn_when_asked_for(capsys: Capture, command: str) -> None:
    words = next(words for name, words, *_ in PATHS if name == command)
    plain = run(capsys, command, *words)[1]
    code, drawn, err = run(capsys, command, *words, "--plot")
    assert (code, err) == (0, "")
    assert len(drawn) > len(plain) + 200
    assert re.search("[█┤]", drawn)
    assert not re.search("[█┤]", plain)


def test_what_has_no_picture_says_so(capsys: Capture) -> None:
    code, _, err = run(capsys, "playbook", "nccl", "--plot")
    assert code == 0
    assert "nothing to draw" in err


class TestPlan:
    """Where the plan may come from: flags, a file, standard input, a saved plan, and changes to it."""

    def _asked(self, capsys: Capture, *words: str) -> dict[str, Any]:
        code, out, err = run(capsys, "fit", *words, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)["plan"]

    @pytest.mark.parametrize(("name", "text"), [
        ("plan.yaml", "model: qwen2.5-0.5b\ncluster: {accelerator: h100, count: 2}\nlayout: {zero_stage: 3}\n"),
        ("plan.json", '{"model": "qwen2.5-0.5b", "cluster": {"accelerator": "h100", "count": 2},'
                      ' "layout": {"zero_stage": 3}}'),
    ])  # fmt: skip
    def test_file_and_flags(self, capsys: Capture, own_folder: Path, name: str, text: str) -> None:
        (own_folder / name).write_text(text)
        plan = self._asked(capsys, "--plan", name, "--seq-len", "1024", "--set", "cluster.count=4")
        assert plan["layout"]["zero_stage"] == 3
        assert (plan["cluster"]["count"], plan["workload"]["seq_len"]) == (4, 1024)

    def test_standard_input(self, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("model: qwen2.5-0.5b\ncluster: {accelerator: h100}"))
        assert self._asked(capsys, "--plan", "-")["model"] == "qwen2.5-0.5b"

    @pytest.mark.parametrize("flag", ["--plan", "--scenario"])
    def test_saved_plan(self, capsys: Capture, flag: str) -> None:
        plan = self._asked(capsys, flag, "llama-3.1-8b-dp8", "--set", "seq_len=2048", "--set", "layout.zero_stage=3")
        assert plan["cluster"]["count"] == 8
        assert (plan["workload"]["seq_len"], plan["layout"]["zero_stage"]) == (2048, 3)

    def test_scenario_stays_a_field_of_serving(self, capsys: Capture) -> None:
        plan = self._asked(capsys, "qwen2.5-0.5b", "h100", "--scenario", "offline")
        assert plan["workload"]["scenario"] == "offline"

    def test_a_saved_serving_plan_is_served(self, capsys: Capture) -> None:
        code, out, _ = run(capsys, "estimate", "--plan", "llama-3.1-70b-serving", "--json")
        assert code == 0
        assert "latency" in json.loads(out)

    def test_serving_is_asked_for_without_a_load(self, capsys: Capture) -> None:
        plan = self._asked(capsys, "qwen2.5-0.5b", "h100", "--serving")
        assert plan["workload"]["kind"] == "inference"

    @pytest.mark.parametrize("words", [
        ("qwen2.5-0.5b", "2xh100", "--seq_len", "1024"),
        ("--seq-len=1024", "qwen2.5-0.5b", "--count", "2", "h100"),
        ("--model", "qwen2.5-0.5b", "--accelerator", "h100", "--count", "2", "--seq-len", "1024"),
        ("--set", "model=qwen2.5-0.5b", "--set", "cluster.accelerator=h100", "--set", "cluster.count=2",
         "--set", "workload.seq_len=1024"),
    ])  # fmt: skip
    def test_order_and_spelling_do_not_matter(self, capsys: Capture, words: tuple[str, ...]) -> None:
        plan = self._asked(capsys, *words)
        assert (plan["cluster"]["accelerator"], plan["cluster"]["count"]) == ("h100-sxm", 2)
        assert plan["workload"]["seq_len"] == 1024

    @pytest.mark.parametrize(("words", "packing"), [
        (("--packing",), True), (("--no-packing",), False), (("--packing", "false"), False),
        (("--packing=yes",), True), (("--set", "packing=no"), False),
    ])  # fmt: skip
    def test_truth_values(self, capsys: Capture, words: tuple[str, ...], packing: bool) -> None:
        assert self._asked(capsys, *words, *SMALL)["workload"]["packing"] is packing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fti",), "there is no command 'fti': did you mean fit"),
        (("fit",), "model: is required"),
        (("fit", "llama-9", "h100"), "model: there is no model 'llama-9'"),
        (("fit", *SMALL, "--seqlen", "4"), "--seqlen: there is no such flag: did you mean --seq-len"),
        (
            ("fit", *SMALL, "--custom-layout", "tp=4"),
            "--custom-layout: there is no such flag; flags of the layout: --tp",
        ),
        (("fit", *SMALL, "--method", "lorra"), "method: 'lorra' is not one of the known values; valid: full lora"),
        (("fit", *SMALL, "--method", "lorra"), "did you mean lora?"),
        (("fit", "nothere", "h100"), "none like it: `shardwise models WORD` lists them, `shardwise models add` adds"),
        (("fit", SMALL[0], "2xzzz"), "none like it: `shardwise hardware WORD` lists them"),
        (("fit", *SMALL, "--framework", "megatron"), "is not one of the known values; valid: megatron-lm,"),
        (("fit", *SMALL, "--framework", "slurm"), "slurm is a launch target, which starts any framework"),
        (("fit", *SMALL, "--framework", "vllm"), "vllm is a launch target, and not one for training"),
        (("fit", *SMALL, "--framework", "Torchrun"), "it runs on pytorch, and `shardwise configs` writes"),
        (("ask", "hi", "--model", "offlin"), "did you mean offline?"),
        (("fit", *SMALL, "--tp", "3"), "tp=3 does not divide"),
        (("fit", *SMALL, "--tp", "x"), "tp: got 'x'"),
        (("fit", *SMALL, "extra"), "does not know what 'extra' is for"),
        (("fit", *SMALL, "--model", "other"), "--model: is given twice"),
        (("fit", *SMALL, "--count", "4"), "--count: is 4, but the accelerator stands with 2"),
        (("fit", *SMALL, "--packing=maybe"), "--packing: 'maybe' is neither true nor false"),
        (("fit", *SMALL, "--set", "layout.tp"), "--set: 'layout.tp' is not KEY=VALUE"),
        (("fit", *SMALL, "--set", "fooo=1"), "--set: there is no field 'fooo'"),
        (("fit", *SMALL, "--set", "foo.bar=1"), "--set: there is no field 'foo.bar'"),
        (("fit", *SMALL, "--set", "layout.tpp=1"), "layout.tpp: there is no such field; valid: tp"),
        (("fit", *SMALL, "--overrides", "{"), "--overrides: is not valid JSON"),
        (("fit", *SMALL, "--overrides", "weights_gib"), "--overrides: 'weights_gib' is not KEY=VALUE"),
        (("fit", "--plan", "none.yaml"), "--plan: none.yaml cannot be read: No such file"),
        (("fit", "--plan", "nobody"), "--plan: there is no scenario 'nobody'"),
        (("fit", "--plan", "\0"), "--plan: "),
        (("fit", "--plan", "x" * 5000), "--plan: "),
        (("fit", "--scenario", "nobody"), "--scenario: there is no scenario 'nobody'"),
        (("fit", "--scenario", "llama-3.1-8b-dp8", "--plan", "llama-3.1-8b-dp8"), "--plan names another"),
        (("fit", *SMALL, "--model"), "--model: expected one argument: "),
        (("configs", *SMALL, "--overwrite"), "--overwrite: only goes with --write"),
        (("configs", *SMALL, "--write", "/outside"), "folder: '/outside' is outside the working folder"),
        (("report", *SMALL, "--write", "report.doc"), "file: 'report.doc' does not end as a report does"),
        (("compare", *SMALL, "--over", "method"), "--over: 'method' is not KEY=VALUE"),
        (("sweep", *SMALL, "--field", "seq_len"), "values: is required; valid: 4096,8192"),
        (("explain", *SMALL, "--figure", "mood"), "figure: "),
        (("--model", "offline", "ask", "x"), "options come after the command: shardwise ask"),
        (("--model", "offline"), "the app needs a terminal"),
        (("scenarios", "show", "nobody"), "name: there is no scenario 'nobody'"),
        (("scenarios", "save", "mine"), "--plan: is required"),
        (("scenarios", "delete", "llama-3.1-8b-dp8"), "--yes: is needed"),
        (("scenarios", "diff", "nobody", "llama-3.1-8b-dp8"), "a: there is no scenario 'nobody'"),
        (("scenarios", "rename"), "WHAT: 'rename' is not one of the known values; valid: list show"),
        (("completion", "tcsh"), "shell: 'tcsh' is not one of the known values; valid: bash zsh fish"),
        (("completion", "bsh"), "valid: bash zsh fish; did you mean bash or zsh?"),
        (("sessions", "rename"), "ID: is required, and so is TITLE: of the conversation"),
        (("web", "--port", "x"), "--port: got 'x', but it should be a whole number"),
        (("config", "set", "theme", "foo"), "theme: there is no theme 'foo'; valid: dark light"),
    ],
)
def test_says_what_is_wrong_in_one_line(
    capsys: Capture, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert said in refused(capsys, *words)


class TestWriting:
    def test_configs_are_written_below_the_working_folder(self, capsys: Capture, own_folder: Path) -> None:
        words = ("configs", *SMALL, "--targets", "deepspeed", "--write", "runs/small")
        code, out, err = run(capsys, *words)
        assert (code, err) == (0, "")
        assert out.startswith("1 file written to runs/small.")
        text = (own_folder / "runs/small/deepspeed.json").read_text()
        assert json.loads(text)["train_batch_size"] > 0
        (own_folder / "runs/small/deepspeed.json").write_text("mine")
        assert "overwrite" in refused(capsys, *words)
        assert run(capsys, *words, "--overwrite")[0] == 0
        assert (own_folder / "runs/small/deepspeed.json").read_text() == text

    def test_a_report_is_written(self, capsys: Capture, own_folder: Path) -> None:
        code, out, _ = run(capsys, "report", *SMALL, "--write", "small.html", "--title", "Small")
        assert code == 0
        assert out.startswith("small.html written (html, ")
        assert "Small" in (own_folder / "small.html").read_text()


class TestScenarios:
    def test_saved_listed_shown_compared_and_deleted(self, capsys: Capture, own_folder: Path) -> None:
        (own_folder / "plan.yaml").write_text("model: qwen2.5-0.5b\ncluster: {accelerator: h100, count: 2}\n")
        assert run(capsys, "scenarios", "save", "small", "--plan", "plan.yaml", "--set", "seq_len=1024")[0] == 0
        rows = json.loads(run(capsys, "scenarios", "list", "--json")[1])["scenarios"]
        assert "small" in [row["name"] for row in rows]
        assert "small" in run(capsys, "scenarios")[1]
        shown = run(capsys, "scenarios", "show", "small", "--format", "json")[1]
        assert json.loads(shown)["workload"]["seq_len"] == 1024
        code, out, _ = run(capsys, "scenarios", "diff", "small", "plan.yaml")
        assert code == 0
        assert "seq_len" in out
        assert run(capsys, "fit", "--plan", "small", "--json")[0] == 0
        assert "overwrite" in refused(capsys, "scenarios", "save", "small", "--plan", "plan.yaml")
        assert run(capsys, "scenarios", "delete", "small", "--yes")[0] == 0
        assert "there is no scenario" in refused(capsys, "scenarios", "show", "small")

    def test_a_person_is_asked_before_deleting(self, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
        assert run(capsys, "scenarios", "save", "mine", "--set", "model=qwen2.5-0.5b")[0] == 0
        for typed, left in (("\n", True), ("y\n", False)):
            stdin = io.StringIO(typed)
            monkeypatch.setattr(stdin, "isatty", lambda: True)
            monkeypatch.setattr(sys, "stdin", stdin)
            monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
            assert run(capsys, "scenarios", "delete", "mine")[0] == 0
            rows = json.loads(run(capsys, "scenarios", "--json")[1])["scenarios"]
            assert ("mine" in [row["name"] for row in rows]) is left


def _documented() -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    return re.findall(r"^    (shardwise .*)$", text, re.MULTILINE)


@pytest.mark.parametrize("line", _documented())
def test_every_line_of_the_documentation_can_be_read(line: str) -> None:
    from tui.cli import parsed

    words = shlex.split(line.partition(" > ")[0])[1:]
    assert parsed(words).run.startswith("tui.commands.")


def test_the_documentation_names_every_command() -> None:
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert {name for name in PLANNING if f"| `{name}` |" not in text} == set()
