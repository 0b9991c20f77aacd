"""The playbook: every entry is well formed and says its source, and search finds what one looks for."""

from __future__ import annotations

import re
from collections import Counter
from threading import Thread
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import examples

from estimator.errors import PlanError
from estimator.plan.schema import Plan
from knowledge.playbook import PlaybookAdvice, entries, files, topics
from planner.advice.conditions import holes_in, names_in, problems
from planner.advice.facts.serving import serving_facts
from planner.advice.facts.training import training_facts
from planner.advice.gains import RULES, SERVING_OBJECTIVES, TRAINING_OBJECTIVES
from planner.fit import remedies
from planner.fit import serving as serving_fit
from planner.layouts import improvements
from planner.serving.planned import plan_serving
from planner.training.planned import plan_training
from server.mcp import resources as mcp_resources
from tools import call

_PLAN = {"model": "meta-llama/Llama-3.1-8B", "cluster": {"accelerator": "h100-sxm", "count": 8}}
TRAINED = training_facts(plan_training(Plan.parse(_PLAN)))
SERVED = serving_facts(plan_serving(Plan.parse(_PLAN | {"workload": {"kind": "inference"}})))
KNOWN = {"training": set(TRAINED), "serving": set(SERVED), "any": set(TRAINED) & set(SERVED)}
IDS = [entry.id for entry in entries()]


@pytest.mark.parametrize("entry", entries(), ids=IDS)
def test_an_entry_is_well_formed(entry: PlaybookAdvice) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", entry.id)
    assert problems(entry.when) == []
    assert set(names_in(entry.when)) <= KNOWN[entry.kind]
    assert set(holes_in(entry.advice)) <= KNOWN[entry.kind]
    assert len(entry.title) <= 80
    assert 1 <= len(re.findall(r"[.!?:](?= |$)", entry.advice)) <= 8
    assert 100 < len(entry.advice) < 700
    assert len(entry.source) > 15
    assert all(isinstance(text, str) and text for text in entry.settings.values())
    for text in entry.settings.values():
        assert set(holes_in(text)) <= KNOWN[entry.kind]


@pytest.mark.parametrize("entry", [entry for entry in entries() if entry.computable], ids=lambda entry: entry.id)
def test_a_patch_is_of_the_plan(entry: PlaybookAdvice) -> None:
    assert entry.kind in ("training", "serving")
    assert entry.objective in (TRAINING_OBJECTIVES if entry.kind == "training" else SERVING_OBJECTIVES)
    assert bool(entry.patches) != bool(entry.change)
    assert (entry.effect is not None) == bool(entry.patches)
    for patch in entry.patches:
        for path, value in patch.items():
            assert path in KNOWN[entry.kind], path
            assert path.partition(".")[0] in ("workload", "layout", "cluster", "overrides")
            if isinstance(value, dict):
                assert value.keys() == {"rule"}
                assert value["rule"] in RULES


def test_named_changes_exist() -> None:
    """Over a plan that has them all or nearly: every knob that an entry names is one that a tool turns."""
    knobs: set[str] = set()
    for tool in (improvements, remedies, serving_fit):
        knobs |= set(re.findall(r'Change\(\s*"(\w+)"', _source(tool)))
    knobs |= {"tp", "pp", "fewer_tp", "fewer_pp"}
    assert {entry.change for entry in entries() if entry.change} <= knobs


def _source(module: Any) -> str:
    import inspect

    return inspect.getsource(module)


def test_ids_are_unique_and_topics_have_entries() -> None:
    assert len(set(IDS)) == len(IDS) >= 60
    counts = Counter(entry.topic for entry in entries())
    assert set(counts) == {topic.id for topic in topics()}
    assert files() == sorted(counts)
    assert min(counts.values()) >= 3


def test_workplaces_are_no_source() -> None:
    for entry in entries():
        assert "/work" not in entry.source
        assert "shared/" not in entry.source


def found(query: str, **more: Any) -> list[str]:
    return [entry["id"] for entry in call("search_playbook", {"query": query, **more})["entries"]]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("allreduce slow ethernet", "dp-allreduce-slow-ethernet"),
        ("OOM", "oom-order"),
        ("out of memory", "oom-order"),
        ("NCCL timeout", "nccl-timeout"),
        ("AllGather", "zero-stage-for-speed"),
        ("NCCL_IB_HCA", "nccl-interfaces"),
        ("how do I set NCCL_SOCKET_IFNAME?", "nccl-interfaces"),
        ("my run hangs", "trouble-hang"),
        ("NaN loss", "trouble-nan"),
        ("speculative decoding", "serve-speculative"),
        ("gradient checkpointing", "recompute-more"),
        ("chunked prefill", "serve-chunked-prefill"),
        ("zero bubble", "pp-zero-bubble"),
        ("QLoRA 4 bit", "adapters-qlora"),
        ("cold starts", "serve-cold-start"),
        ("PYTORCH_CUDA_ALLOC_CONF", "oom-order"),
        ("all-to-all", "ep-dispatcher"),
        ("fragmentation", "oom-fragmentation"),
    ],
)
def test_search_finds_what_one_looks_for(query: str, wanted: str) -> None:
    assert wanted in found(query)[:6]


def test_spellings_of_a_compound_are_one() -> None:
    assert set(found("all-reduce", limit=50)) & set(found("allreduce", limit=50)) >= {"dp-allreduce-slow-ethernet"}
    assert set(found("AllReduce", limit=50)) >= {"dp-allreduce-slow-ethernet"}


def test_scores_fall_and_matches_are_counted() -> None:
    answer = call("search_playbook", {"query": "tensor parallel nvlink", "limit": 5})
    assert len(answer["entries"]) == 5 < answer["matches"]
    assert answer["topics"] == []
    one = call("search_playbook", {"query": "nvlink"})
    scores = [entry["score"] for entry in one["entries"]]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_a_topic_is_listed_and_searched() -> None:
    listed = call("search_playbook", {"topic": "oom", "limit": 100})
    assert {entry["id"] for entry in listed["entries"]} == {entry.id for entry in entries() if entry.topic == "oom"}
    assert found("memory", topic="OOM") == found("memory", topic="oom")
    within = call("search_playbook", {"query": "length", "topic": "packing"})["entries"]
    assert {entry["topic"] for entry in within} == {"packing"}
    with pytest.raises(PlanError, match=r"there is no topic 'nvlonk'"):
        call("search_playbook", {"topic": "nvlonk"})


def test_nothing_found_names_topics() -> None:
    missed = call("search_playbook", {"query": "zzqqx"})
    assert missed["entries"] == []
    assert missed["matches"] == 0
    assert 0 < len(missed["topics"]) <= 8
    every = call("search_playbook", {})
    assert {topic["id"] for topic in every["topics"]} == {topic.id for topic in topics()}
    assert sum(topic["entries"] for topic in every["topics"]) == len(entries())


@given(st.text(max_size=300))
@example('"')
@example('" OR id:* NEAR(a b)')
@example("'; DROP TABLE playbook; --")
@example("NOT AND OR *")
@example("\x00")
@example("(" * 200)
@example("^title : {advice}")
@example("日本語 αβγ 🙂")
@example("a" * 300)
@settings(max_examples=examples(60), deadline=None)
def test_any_query_is_answered(query: str) -> None:
    answer = call("search_playbook", {"query": query})
    assert answer["query"] == query
    assert len(answer["entries"]) <= 8
    assert bool(answer["entries"]) != bool(answer["topics"])


@pytest.mark.parametrize("arguments", [{"query": "x" * 2001}, {"query": 3}, {"limit": 0}, {"topic": ""}, {"q": "a"}])
def test_bad_arguments_are_errors(arguments: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        call("search_playbook", arguments)


def test_searches_from_several_threads() -> None:
    answers: list[list[str]] = []
    threads = [Thread(target=lambda: answers.append(found("nccl timeout"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)


def test_topics_can_be_read_by_address() -> None:
    kind = next(kind for kind in mcp_resources.KINDS if kind.name == "playbook")
    assert kind.template == "shardwise://playbook/{topic}"
    assert kind.ids(None) == [topic.id for topic in topics()]
    assert '"oom-order"' in kind.read("oom", None)
    with pytest.raises(PlanError, match="there is no topic"):
        kind.read("nothing", None)
    assert mcp_resources.matching("serving lat", kind.ids(None)) == ["serving-latency"]
