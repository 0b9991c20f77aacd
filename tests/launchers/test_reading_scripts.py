"""Scripts are cut into commands with certain variables put in, and nothing is ever run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from launchers.reading.documents import json_keys, yaml_keys
from launchers.reading.sets import read
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
        ("N=2\nrun $(($((N * 3)) * 2))", ["run", "12"]),
        ("run 'a $N b' \\\n  --last", ["run", "a $N b", "--last"]),
        ('D=fp8\nA=()\nif [[ "$D" == "fp8" ]]; then\nA+=(--fp8)\nelse\nA+=(--bf16)\nfi\nrun ${A[@]}', ["run", "--fp8"]),
        ("if [ -f x ]; then\nN=2\nfi\nrun $N", ["run", UNKNOWN]),
        ("cat > ds.json <<EOF\n{}\nEOF\nrun", ["run"]),
        ("if [ -f x ]; then\nN=2\nelse\nN=2\nfi\nrun $N", ["run", "2"]),
        ("if [ -f x ]; then\nN=2\nelse\nN=3\nfi\nrun $N", ["run", UNKNOWN]),
        # What functions and basename print is known where their words are.
        (
            "f() {\nif [ -n \"$S\" ]; then\necho --steps 1\nelse\nprintf '%s\\n' --epochs $1\nfi\n}\n"
            'mapfile -t A < <(f 3)\nrun "${A[@]}" $(f 4) $(basename /a/b.sh .sh) $(f | head -1)',
            ["run", "--epochs", "3", "--epochs", "4", "b", UNKNOWN],
        ),
        ("f() {\nfind /a\necho 1\n}\nrun $(f)", ["run", UNKNOWN, "1"]),
        # An array that nothing sets has no words; a variable for more options neither, unless an option takes it.
        ("run ${MORE[@]} --x 1 $EXTRA_ARGS", ["run", "--x", "1"]),
        ("source other.sh\nrun ${MORE[@]} --x 1", ["run", UNKNOWN, "--x", "1"]),
        ("run --model $EXTRA_ARGS", ["run", "--model", UNKNOWN]),
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


_TEMPLATE = (
    '{"train_batch_size": GLOBAL, "train_micro_batch_size_per_gpu": MICRO, "zero_optimization": {"stage": STAGE}}'
)


@pytest.mark.parametrize(
    "made",
    [
        'sed "s/GLOBAL/$G/" ds_template.json | sed "s/MICRO/2/" | sed "s/STAGE/3/" > $OUT/ds.json',
        'sed -e "s/GLOBAL/$G/" -e "s|MICRO|2|g" -e s/STAGE/3/ conf/ds_template.json > $OUT/ds.json',
        'cp conf/ds_template.json ds.json\nsed -i "s/GLOBAL/$G/; s/MICRO/2/; s/STAGE/3/" ds.json',
        'cat ds_template.json | sed "s/GLOBAL/$G/" | sed "s/MICRO/2/" | sed "s/STAGE/3/" | tee ds.json',
    ],
)
def test_a_config_made_of_a_template_is_read_as_it_comes_out(made: str):
    start = (
        "deepspeed --num_gpus 8 train.py --deepspeed_config ds.json --model_name_or_path Qwen/Qwen3-8B --max_steps 9"
    )
    found = read({"run.sh": f"G=64\n{made}\n{start}\n", "ds_template.json": _TEMPLATE})
    assert found.plan["layout"]["zero_stage"] == 3
    assert found.plan["workload"]["micro_batch"] == 2
    assert found.plan["workload"]["global_batch"] == 64
    open_value = read({"run.sh": f"{made}\n{start}\n", "ds_template.json": _TEMPLATE})
    assert "global_batch" not in open_value.plan["workload"]
    assert "workload.global_batch" in open_value.blocked


def test_what_sed_does_besides_is_not_guessed():
    for program in ("2d", "s/GLOBAL/&1/", r"s/\(GLOBAL\)/\1/", "y/abc/def/"):
        assert not script("run.sh", f"sed '{program}' a.json > b.json", others={"a.json": _TEMPLATE}).files


def test_the_branch_of_a_case_is_the_first_that_its_word_is_like():
    text = 'SIZE={}\ncase "$SIZE" in\n 8b|8B) TP=1 ;;\n 70*)\n  TP=8\n  ;;\n *) TP=4;;\nesac\ntorchrun --x $TP\n'
    for size, expected in (("8B", "1"), ("70b", "8"), ("3b", "4"), ("$1", UNKNOWN)):
        (command,) = script("run.sh", text.format(size)).commands
        assert command.words[-1].text == expected
        assert not command.conditional


def test_what_a_script_would_be_given_besides_is_nothing_as_it_stands():
    text = 'A=(x y z)\nfor word in "$@"; do python other.py; done\n'
    text += 'for one in big; do torchrun train.py $one "${@:2}" ${A[@]:1:1}; done'
    (command,) = script("run.sh", text).commands
    assert [word.text for word in command.words] == ["torchrun", "train.py", "big", "y"]
    assert not command.conditional


def test_a_branch_that_an_argument_decides_is_that_of_none():
    text = 'if [ "$1" = "convert" ]; then\n  A="python convert.py"\nelse\n  A="python train.py"\nfi\n$A --x "$1"\n'
    (command,) = script("run.sh", text).commands
    assert [word.text for word in command.words[:3]] == ["python", "train.py", "--x"]
    assert command.words[3].text == UNKNOWN
    inside = "go() {\n" + text + "}\ngo convert\n"
    (command,) = script("run.sh", inside).commands
    assert [word.text for word in command.words] == ["python", "convert.py", "--x", "convert"]


_INNER = """
MODEL=${MODEL:-Qwen/Qwen2.5-0.5B}
LENGTH=${LENGTH:-1024}
swift sft --model $MODEL --max_length $LENGTH --deepspeed zero2 --per_device_train_batch_size 1
"""


def test_what_a_script_is_started_with_is_what_it_has():
    for before, model, length in (
        ("", "Qwen/Qwen2.5-0.5B", 1024),
        ("LENGTH=8192 ", "Qwen/Qwen2.5-0.5B", 8192),
        ("MODEL=Qwen/Qwen2.5-7B LENGTH=$((2 * 4096)) ", "Qwen/Qwen2.5-7B", 8192),
    ):
        found = read({"outer.sh": f"{before}bash scripts/inner.sh\n", "inner.sh": _INNER})
        assert (found.plan["model"], found.plan["workload"]["seq_len"]) == (model, length), before


def test_one_device_that_is_visible_is_the_one_that_there_is():
    train = "python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --max_length 512 "
    train += "--gradient_accumulation_steps 16 --learning_rate 1e-5 --dataset_name x"
    for before in ("export CUDA_VISIBLE_DEVICES=3\n", "CUDA_VISIBLE_DEVICES=0 "):
        found = read({"run.sh": before + train})
        assert found.plan["cluster"]["count"] == 1
        assert found.plan["workload"]["global_batch"] == 16
    assert "count" not in read({"run.sh": "export CUDA_VISIBLE_DEVICES=0,1\n" + train}).plan.get("cluster", {})


def test_a_config_that_stands_on_another_gives_no_verdict_without_it():
    text = "training_config:\n  {}per_device_train_batch_size: 2\n  max_length: 512\nmodel_name: Qwen/Qwen2.5-7B\n"
    assert "workload" not in read({"job.yaml": text.format("")}).blocked
    assert "workload" in read({"job.yaml": text.format("extends: DEFAULT_SFT\n  ")}).blocked


def test_the_engine_of_a_config_of_somebodys_own_is_read_from_its_section():
    text = "server: {port: 8000}\nvllm:\n  model: Qwen/Qwen2.5-14B-Instruct\n  tensor_parallel_size: 2\n"
    text += "  max_model_len: 4096\n  max_num_seqs: 64\nlogging: {level: INFO}\n"
    found = read({"serving.yaml": text})
    assert found.plan["model"] == "Qwen/Qwen2.5-14B-Instruct"
    assert (found.plan["layout"]["tp"], found.plan["workload"]["max_batch"]) == (2, 64)
    assert any("of its own" in warning for warning in found.warnings)


def test_verls_sft_trainer_on_megatron_has_its_layout():
    text = "torchrun --nnodes=1 --nproc_per_node=16 -m verl.trainer.sft_trainer data.train_batch_size=32 "
    text += "data.micro_batch_size_per_gpu=1 data.max_length=4096 model.path=Qwen/Qwen3-32B engine=megatron "
    text += "engine.tensor_model_parallel_size=4 engine.pipeline_model_parallel_size=2 "
    text += "engine.override_transformer_config.recompute_granularity=full "
    text += "+optim.override_optimizer_config.optimizer_cpu_offload=true"
    found = read({"sft.sh": text})
    assert found.blocked == {}
    layout = found.plan["layout"]
    assert (layout["tp"], layout["pp"], layout["recompute"], layout["offload"]) == (4, 2, "full", "optimizer")
    other = read({"sft.sh": text.replace("engine=megatron", "engine=veomni")})
    assert "workload.framework" in other.blocked


@pytest.mark.parametrize(
    ("head", "start", "devices"),
    [
        ("#SBATCH --nodes=2 --exclusive --gpus-per-node=4", "srun torchrun --nproc_per_node 4 --nnodes 2", 8),
        ("#SBATCH <OPTIONS> --nodes=4 --ntasks-per-node=8 --job-name=a", "srun -l python", 32),
        ("", "torchrun", 1),
        ("", "deepspeed --include localhost:1,3,5", 3),
    ],
)
def test_processes_are_counted_as_they_are_started(head: str, start: str, devices: int) -> None:
    text = f"#!/bin/bash\n{head}\n{start} pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4\n"
    assert read({"a.sh": text}).plan["cluster"]["count"] == devices


@pytest.mark.parametrize("count", ["nvidia-smi -L | wc -l", "echo $CUDA_VISIBLE_DEVICES | tr ',' '\\n' | wc -l"])
def test_devices_that_a_script_counts_are_those_that_are_given(count: str) -> None:
    text = f"N=$({count})\naccelerate launch --num_processes $N train.py --per_device_train_batch_size 1\n"
    found = read({"run.sh": text}, {"cluster.count": 4, "cluster.accelerator": "h100-sxm"})
    assert [row.value for row in found.read if row.field == "devices"] == [4]


def test_a_script_that_nobody_knows_gets_no_verdict_on_a_common_batch() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:8\npython train.py --model Qwen/Qwen3-8B{}\n"
    for more in ("", " --batch-size 4 --seq-len 4096"):
        found = read({"job.sbatch": text.format(more)})
        assert found.plan["model"] == "Qwen/Qwen3-8B"
        assert {"workload.seq_len", "workload.global_batch"} <= set(found.blocked)
    given = read({"job.sbatch": text.format("")}, {"workload.seq_len": 4096, "workload.global_batch": 64})
    assert not given.blocked


def test_runs_of_one_script_that_say_different_things_are_told_apart() -> None:
    run = "accelerate launch --num_processes 8 train.py --model_name_or_path {} --per_device_train_batch_size {}\n"
    two = read({"run.sh": run.format("Qwen/Qwen3-8B", 1) + run.format("Qwen/Qwen3-4B", 2)})
    assert (
        two.blocked["workload"]
        == "run.sh starts runs at lines 1 and 2 that say different things; give the lines of one"
    )
    assert two.blocked["model"] == two.blocked["workload"]
    same = read({"run.sh": run.format("Qwen/Qwen3-8B", 1) * 2})
    assert "workload" not in same.blocked
