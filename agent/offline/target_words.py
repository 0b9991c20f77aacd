"""What launch files are asked for: the targets that are named, and what shows that files are the question."""

from __future__ import annotations

import re
from collections.abc import Mapping

from launchers.targets import TARGETS as TABLE

# Targets by the words that ask for them; the first that a word gives. Kubernetes and Docker depend on what is run.
TARGETS: tuple[tuple[str, str], ...] = (
    (r"\bllama[-_ ]?factory\b", "llamafactory"),
    (r"\bms-?swift\b", "ms-swift"),
    (r"\bdeep-?speed\b", "deepspeed"),
    (r"\bsky-?pilot\b", "skypilot"),
    (r"\bpytorchjob\b", "kubernetes-pytorchjob"),
    (r"\btrainjob\b", "kubernetes-trainjob"),
    (r"\bjobset\b", "kubernetes-jobset"),
    (r"\bleader-?worker-?set\b|\blws\b", "kubernetes-lws"),
    (r"\bkubernetes deployment\b|\bk8s deployment\b", "kubernetes-deployment"),
    (r"\bkubernetes\b|\bk8s\b|\bkubectl\b", "kubernetes"),
    (r"\bslurm\b|\bsbatch\b|\bsrun\b", "slurm"),
    (r"\btorchtitan\b", "torchtitan"),
    (r"\btorchtune\b", "torchtune"),
    (r"\bmegatron[- ]bridge\b", "megatron-bridge"),
    (r"\bmegatron(?:[- ]lm)?\b", "megatron-lm"),
    (r"\bnemo\b", "nemo"),
    (r"\baxolotl\b", "axolotl"),
    (r"\bunsloth\b", "unsloth"),
    (r"\btrl\b", "trl"),
    (r"\bmaxtext\b", "maxtext"),
    (r"\bprimus\b", "primus"),
    (r"\blitgpt\b", "litgpt"),
    (r"\bllm[- ]foundry\b", "llm-foundry"),
    (r"\bnanotron\b", "nanotron"),
    (r"\baccelerate\b(?! (?:it|the|my|training))", "accelerate"),
    (r"\btorchx\b", "torchx"),
    (r"\bray\b", "ray"),
    (r"\bssh\b", "ssh"),
    (r"\bdocker[- ]?compose\b|\bcompose (?:file|yaml)\b", "compose"),
    (r"\bdocker(?:file)?\b", "docker"),
    (r"\bvllm\b", "vllm"),
    (r"\bsg-?lang\b", "sglang"),
    (r"\btensor-?rt(?:[-_ ]?llm)?\b|\btrt-?llm\b", "trtllm"),
    (r"\bllama[-_. ]?cpp\b", "llamacpp"),
)
# 'The axolotl config', 'vllm command', 'sbatch for …', 'k8s yaml': the file is the question, with or without a verb.
_THING = (
    r"(?:configs?|configurations?|cfgs?|conf|ya?mls?|jsons?|tomls?|recipes?|scripts?|manifests?|files?|commands?|cmds?|"
    r"command ?lines?|"
    r"dockerfile|launch(?:er)?|job file|job|task|deployment|arg(?:ument)?s|flags|cli|invocation|version|variant|one)"
)
_NAMES = "|".join(pattern for pattern, _ in TARGETS)
ASKS = (
    rf"(?:{_NAMES})(?:[ ,+&/-]*(?:and )?(?:{_NAMES}))*(?:[- ]+[\w]+)?[- ]+{_THING}\b|"
    rf"\b{_THING} (?:for|of|in) (?:(?:the|an?) )?(?:{_NAMES})|"
    r"\bsbatch\b(?! (?:error|fail))|\bdocker[- ]?compose\b|\bdockerfile\b|"
    rf"\b(?:give|write|generate|create|prepare|send|produce)\b[^.?!]*(?:{_NAMES})|"
    r"\b(?:launch|start|run|serve) (?:command|cmd|script|line)s?\b|\bcommand (?:to|for) (?:launch|start|run|serv)\w*\b"
)
# Fields of the cluster's own that a file is to have.
FIELDS: tuple[tuple[str, str], ...] = (
    *(
        (rf"\b{name}\s*(?:(?:is|called|named)\b|[=:])?\s*([\w-]+)", name)
        for name in ("partition", "account", "namespace")
    ),
    (r"\bqueue\s*[=:]\s*([\w-]+)|\bkueue queue\s+([\w-]+)", "queue"),
    (r"\bimage\s*[=:]?\s*([\w.-]+(?:/[\w.-]+)+(?::[\w.-]+)?)", "image"),
)


def read_targets(lowered: str) -> list[str]:
    """Targets that are named, in the order of the text."""
    found: dict[str, int] = {}
    rest = lowered
    for pattern, target in TARGETS:
        if match := re.search(pattern, rest):
            found[target] = match.start()
            rest = re.sub(pattern, lambda m: " " * len(m[0]), rest)
    return sorted(found, key=lambda name: found[name])


# 'Write them to runs/medical'.
_FOLDER = re.compile(
    r"\b(?:to|in|into|under) (?:an? |the )?(?:folder |directory )?(?:called |named )?((?:\.{1,2}/|~/|"
    r"/)?[\w.-]+(?:/[\w.-]+)+|(?:(?<=folder )|(?<=directory )|(?<=called )|(?<=named ))[\w.-]+|[\w.-]{3,}(?=/))"
    r"/?(?=[\s,;.!?]|$)"
)


def folder_of(text: str) -> str | None:
    """The folder that files are to be written to."""
    match = _FOLDER.search(text)
    return match[1].rstrip(".") if match else None


def read_fields(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern, name in FIELDS:
        match = re.search(pattern, text, re.IGNORECASE)
        value = next((group for group in match.groups() if group), None) if match else None
        if value and value.lower() not in ("for", "is", "of", "and", "in", "the"):
            found[name] = value
    return found


def settled(targets: list[str], serving: bool, nodes: int) -> list[str]:
    """Targets as render_configs calls them: what Kubernetes and Docker mean depends on what is run."""
    kubernetes = ("kubernetes-lws" if nodes > 1 else "kubernetes-deployment") if serving else "kubernetes-trainjob"
    general: Mapping[str, str] = {"kubernetes": kubernetes, "docker": "compose"}
    known = _known()
    return list(dict.fromkeys(general.get(name, name) if name not in known else name for name in targets))


def _known() -> frozenset[str]:

    return frozenset(TABLE)
