"""Scripts are cut into commands with certain variables put in, and nothing is ever run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from launchers.reading.documents import json_keys, yaml_keys
from launchers.shell.scripts import UNKNOWN, script


def words(text: str, **known: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in script("x.sh", text, known).commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N=2\ntorchrun --nnodes $N a.py", ["torchrun", "--nnodes", "2", "a.py"]),
        ("N=2; G=8\nrun $((N * G)) ${N}x", ["run", "16", "2x"]),
        ('A=(--x 1 "two words")\nA+=(--y)\nrun "${A[@]}" z', ["run", "--x", "1", "two words", "--y", "z"]),
        ('A="--x 1"\nrun $A', ["run", "--x", "1"]),
        ('A=()\nrun "${A[@]}" z', ["run", "z"]),
        ("run ${N:-8} # said later", ["run", "8"]),
        ("run $(hostname) $N", ["run", UNKNOWN, UNKNOWN]),
        ("run 'a $N b' \\\n  --last", ["run", "a $N b", "--last"]),
        ('D=fp8\nA=()\nif [[ "$D" == "fp8" ]]; then\nA+=(--fp8)\nelse\nA+=(--bf16)\nfi\nrun ${A[@]}', ["run", "--fp8"]),
        ("if [ -f x ]; then\nN=2\nfi\nrun $N", ["run", UNKNOWN]),
        ("cat > ds.json <<EOF\n{}\nEOF\nrun", ["run"]),
        # What is not set by the script, and what it is not given, is not there as it stands.
        ('A=(--x)\nif [ -n "$MORE" ]; then\nA+=(--y $MORE)\nfi\nrun "${A[@]}"', ["run", "--x"]),
        ("N=2\nwhile [[ $# -gt 0 ]]; do\ncase $1 in\n-n) N=$2;;\nesac\nshift\ndone\nrun $N", ["run", "2"]),
        ('N=2\nwhile getopts "n:" o; do\nN=$OPTARG\ndone\nrun $N', ["run", "2"]),
        ("N=2\nwhile [ -f x ]; do\nN=3\ndone\nrun $N", ["run", UNKNOWN]),
        ('A=(--x 1)\nrun ${#A[@]} ${A[1]} "${A[@]+"${A[@]}"}"', ["run", "2", "1", "--x", "1"]),
        (
            "P=/a/b.v1.gz\nrun ${P##*/} ${P%.gz} ${P%%.*} ${P#/a/} ${P:+set}",
            ["run", "b.v1.gz", "/a/b.v1", "/a/b", "b.v1.gz", "set"],
        ),
        ("run ${SLURM_JOB_ID%%_*}", ["run", UNKNOWN]),
    ],
)
def test_words_of_a_command(text: str, expected: list[str]):
    assert words(text)[-1] == expected


def test_known_variables_and_files_of_a_script():
    parsed = script("x.sh", 'export A=$N\ncat > ds.json <<EOF\n{"a": 1}\nEOF\nrun', {"N": "4"})
    assert parsed.environment["A"].text == "4"
    assert parsed.files == {"ds.json": '{"a": 1}'}


@pytest.mark.parametrize("text", ["run 'open", 'run "open', "run $(open", "A=(open", "run ${open"])
def test_open_quotes_are_said_with_their_line(text: str):
    with pytest.raises(PlanError, match="line 1"):
        script("x.sh", text)


def test_variables_that_double_themselves_end():
    text = "A=aaaaaaaaaaaaaaaa\n" + "A=$A$A\n" * 60 + "run $A"
    assert len(words(text)[-1][1]) < 200_000


def test_a_yaml_bomb_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(PlanError, match="more values"):
        yaml_keys("bomb.yaml", "\n".join(lines))


@pytest.mark.parametrize(
    "text", ["a: !!python/object/apply:os.system [ls]", "[" * 5000, "a: [1", "- 1", "a: &x\n  b: *x"]
)
def test_yaml_that_is_no_config_is_refused(text: str):
    try:
        keys = yaml_keys("x.yaml", text)
    except PlanError:
        return
    # A tag of Python stays text: nothing is made of it.
    assert all(isinstance(item.value, str | list | dict) for item in keys.items.values())


def test_keys_have_their_lines_and_merges_give_way():
    keys = yaml_keys("x.yaml", "base: &b {x: 1, y: 2}\nover:\n  y: 3\n  <<: *b\nnone: null\n")
    assert (keys.look("over.x"), keys.look("over.y"), "none" in keys) == (1, 3, False)
    assert keys.items["over.y"].line == 3
    assert json_keys("x.json", '{"a": {\n"b": 1}}').items["a.b"].line == 2


@settings(max_examples=examples(150), deadline=None)
@given(st.text(alphabet="ab $\"'\\(){}[]=;|&<>\n#-+*0N`@:", max_size=60))
def test_any_text_is_words_or_a_plan_error(text: str):
    try:
        parsed = script("x.sh", text)
    except PlanError:
        return
    assert all(command.words for command in parsed.commands)


def test_a_function_runs_with_the_words_of_its_call() -> None:
    text = """
train() {
    local model="$1" batch=$2; shift 2
    torchrun --nproc_per_node 8 train.py --model_name_or_path "$model" --per_device_train_batch_size $batch "$@"
}
unused() { torchrun other.py --model_name_or_path none; }
train Qwen/Qwen2.5-7B 4 --learning_rate 1e-5
"""
    commands = [command for command in script("run.sh", text).commands if not command.conditional]
    words = [word.text for command in commands for word in command.words]
    options = [
        "--model_name_or_path",
        "Qwen/Qwen2.5-7B",
        "--per_device_train_batch_size",
        "4",
        "--learning_rate",
        "1e-5",
    ]
    assert words[-6:] == options
    assert "none" not in words


@pytest.mark.parametrize(
    ("text", "words"),
    [("seq 3", "1 2 3"), ("seq 2 4", "2 3 4"), ("seq 16 8 40", "16 24 32 40"), ("seq 5 -2 1", "5 3 1")],
)
def test_what_seq_prints_is_known(text: str, words: str) -> None:
    (command,) = script("run.sh", f"train $({text})").commands
    assert [word.text for word in command.words[1:]] == words.split()
    assert not script("run.sh", "train $(date)").commands[0].words[1].known
