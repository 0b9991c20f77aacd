"""Questions that one tool answers beside the estimates: which tool it is, with which arguments of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.offline import wish_words as words
from agent.offline.figure_words import figure_of
from agent.offline.numbers import WHOLE, count
from agent.offline.page import ACCELERATOR, Page
from agent.offline.rules import NODES
from agent.offline.vocabulary import WHOSE
from knowledge.scenarios import scenarios

# Tools whose question is about no plan, or about a saved one.
FREE = frozenset(
    {
        "list_scenarios",
        "load_scenario",
        "delete_scenario",
        "search_playbook",
        "list_catalogue",
        "own",
        "add_price",
        "add_hardware",
        "import_config",
        "matrix_results",
    }
)
# Tools that look for the hardware themselves.
SEARCHES_HARDWARE = frozenset({"recommend_cluster", "auto_configure"})
# Follow-ups that ask nothing ask these again.
REPEATED = frozenset(
    {
        "recommend_cluster",
        "auto_configure",
        "compare",
        "apply_strategies",
        "project_scaling",
        "peak_throughput",
    }
)
_FILLER = re.compile(
    r"\b(?:in|by|the|my|our|please|now|then|of|from|you|know|do|have|is|are|all|any|a|what|which|me|list|made|"
    r"for)\b|[^\w. -]"
)
_STOP = re.compile(
    r"\b(?:how|do|does|should|can|could|would|to|i|we|you|my|our|the|a|an|is|are|on|in|for|of|with|what|which|when|"
    r"tell|more|explain|describe|teach|"
    r"any|some|tips?|"
    r"advice|about|set|me|it|please|there|best|practices?|playbook|entries|entry|show|give|and|or|plain|find|search|"
    r"look|up|why|env|vars?|ok|okay|so|well|btw|sorry|thanks)\b|[^\w. -]",
    re.IGNORECASE,
)
_CHECKS = (
    r"^\W*(?:(?:can|could) you |please |pls )?(?:check|import|review|look at|analy[sz]e|parse|validate)\b|"
    r"\b(?:does|will|would) (?:my |this |the |our )?[\ue000-\ue003]+ (?:fit|run|work)\b"
)
_KNOWN = r"\bdo you (?:know|have|support|cover|list)\b|\b(?:your|the) (?:catalogu?e|list|database)\b"
_NAMES_TAKEN = frozenset(
    [
        "it",
        "this",
        "that",
        "them",
        "a",
        "an",
        "the",
        "my",
        "our",
        "files",
        "file",
        "config",
        "configs",
        "plan",
        "plans",
        "scenario",
        "scenarios",
        "disk",
        "folder",
        "before",
        "previous",
        "first",
        "original",
        "last",
        "me",
        "you",
        "full",
        "lora",
        "qlora",
        "gpus",
        "h100",
        "yaml",
        "json",
        "instead",
        "of",
        "and",
        "or",
        "to",
        "with",
        "only",
        "fp8",
        "bf16",
        "flash",
        "compile",
        "less",
        "more",
        "both",
        "two",
        "all",
        "one",
        "here",
        "there",
        "now",
        "day",
        "yesterday",
        "today",
        "default",
        "full",
    ]
)


@dataclass(frozen=True)
class Wish:
    """`tool` is the tool that answers, with `own` arguments beside those of the plan. `own` has no plan in it.
    `once`: no follow-up asks it again."""

    tool: str
    own: dict[str, Any] = field(default_factory=dict)
    once: bool = False


def read_wish(
    named: str, text: str, page: Page, plan: Mapping[str, Any], *, models: int, devices: int, serving: bool
) -> Wish | None:
    """The wish in an utterance. `named` is the lower-case text with names blanked, `text` as it was said; `models` and
    `devices` are how many of them are named."""
    lowered = text.lower()
    if found := _file(text, named):
        return found
    own = re.search(words.OWN, named)
    if own and re.match(r"\W*(?:please )?(?:add|remember)\b", named):
        return _own(own)
    if found := _scenario(named, lowered, plan, models or devices):
        return found
    if found := _matrix(text, named):
        return found
    if re.search(words.REPORT, named):
        form = next(
            (
                name
                for name, pattern in (("pdf", r"\bpdf\b"), ("markdown", r"\bmarkdown\b|\bmd\b"), ("html", r"\bhtml\b"))
                if re.search(pattern, named)
            ),
            None,
        )
        return Wish("report", {"format": form} if form else {})
    if (match := re.search(words.EXPORT, named)) and (plan or models):
        return Wish("render_scenario", {"format": "json" if match[0].endswith("json") else "yaml"})
    if own:
        return _own(own)
    if re.search(words.PRICES, named) and not models and not plan.get("model"):
        names = page.of("accelerator", "instance")
        return Wish("list_catalogue", {"kind": "prices"} | ({"query": names[0].text} if names else {}))
    if re.search(words.KNOWN_DEVICE, named) and not models:
        return Wish("list_catalogue", {"kind": "hardware", "query": page.of("accelerator")[0].text})
    if (match := re.search(words.FAMILY, named)) and models == 1:
        return Wish("list_catalogue", {"kind": "models", "query": page.of("model", "path", "size")[0].text})
    if (found := _catalogue(named, lowered)) and (not (models or devices) or re.search(_KNOWN, named)):
        return found
    if (not serving and re.search(words.STRATEGY, named)) or re.search(
        r"\b(?:memory[- _]optimi[sz]ed|minimal[- _]comm\w*)\b", named
    ):
        names = [name for name, pattern in words.STRATEGIES if re.search(pattern, named)]
        if names or re.search(words.ALL_STRATEGIES, named):
            return Wish("apply_strategies", {"strategies": names} if names else {})
    if re.search(words.CONFIGURE, named):
        return Wish("auto_configure")
    known = bool(plan.get("model")) or models > 0
    if not serving and re.search(words.PEAK, named) and not re.search(r"\bmillion tokens\b", named):
        return Wish("peak_throughput")
    priced = devices and not known and re.search(rf"{WHOSE}|\bwhere\b", named)
    # The fastest way on devices that are named is a layout.
    laid_out = devices and re.search(r"\bway to\b|\bcheapest\W*$", named)
    recommends = re.search(words.RECOMMEND, named) and not re.search(words.NOT_RECOMMEND, named)
    # How many serve a load is sized; whom to rent what from is looked up.
    sized = serving and (devices or not re.search(r"\brent\w*\b|\bleas(?:e|ing)\b", named))
    if recommends and not (sized or priced or laid_out):
        # Whom to rent from is open where it is the question.
        return Wish("recommend_cluster", {"provider": None} if re.search(WHOSE, named) else {})
    if plan.get("model") and not (models or devices) and re.search(words.ELSE, named):
        return Wish("recommend_cluster")
    if not serving and (match := re.search(words.NODES_PAY, named)):
        return Wish("project_scaling", {"nodes": _nodes(named) or 64})
    if (known or not (models or devices)) and (found := _explained(named, page, plan)):
        return found
    if _for_playbook(named, models, devices, bool(plan)):
        return Wish("search_playbook", {"query": _query(lowered)})
    if known and re.search(words.ADVISE, named):
        return Wish("advise")
    return None


def _own(match: re.Match[str]) -> Wish:
    return Wish("own", {"kind": next(filter(None, match.groups()))})


def _file(text: str, named: str) -> Wish | None:
    """A file that is to be checked, by its path."""
    path = re.search(r"(?<![\w/])[~.\w/-]*[\w-]+\.(?:ya?ml|json|toml|sh|sbatch|py|log)\b", text)
    asks = re.search(words.IMPORT, named) or re.search(_CHECKS, named)
    if path and asks and not path[0].endswith("config.json"):
        return Wish("import_config", {"path": path[0]})
    return None


def _matrix(text: str, named: str) -> Wish | None:
    if re.search(words.MATRIX_RESULTS, named):
        folder = re.search(r"(?<![\w/])(?:~|\.{1,2})?/?[\w-][\w.-]*(?:/[\w.-]*[\w-])+/?", text)
        named_so = re.search(
            r"\b(?:in|from|under|folder|directory|dir)\s+[\"'`]?([\w.-]*[-_.\d][\w.-]*\w)[\"'`]?", text
        )
        path = folder[0] if folder else named_so[1] if named_so else None
        return Wish("matrix_results", {"folder": path} if path else {})
    if not re.search(words.MATRIX, named):
        return None
    strategies = [name for name, pattern in words.STRATEGIES if re.search(pattern, named)]
    return Wish("benchmark_matrix", {"strategies": strategies} if strategies else {})


def _scenario(named: str, lowered: str, plan: Mapping[str, Any], names_things: int) -> Wish | None:

    known = {scenario.name.lower(): scenario.name for scenario in scenarios()}
    if re.search(words.LIST, named):
        query = re.search(
            r"\b(?:with|about|for|named|called|containing|on)\s+(?:the |an? )?([\w.-]*\w)\s*[?.!]*$", lowered
        )
        return Wish("list_scenarios", {"query": query[1]} if query and query[1] not in _NAMES_TAKEN else {})
    if (match := re.search(words.DROP, lowered)) and match[1] in known:
        return Wish("delete_scenario", {"name": known[match[1]]})
    if match := re.search(words.DELETE, lowered):
        return Wish("delete_scenario", {"name": _as_saved(match["n1"] or match["n2"], known)})
    if (match := re.search(words.SAVE, lowered)) and not re.search(
        r"\b(?:files?|configs?|yamls?|scripts?) (?:as|to|under|in)\b", lowered
    ):
        name = match["n1"] or match["n2"] or match["n3"]
        # 'call it a day', 'name it' and 'save it to ./runs' are none.
        if name and name not in _NAMES_TAKEN and "/" not in lowered[match.end() : match.end() + 1]:
            return Wish("save_scenario", {"name": name})
        if re.search(r"\bsave (?:this|that|the|my|current) (?:plan|scenario)\b", lowered) and not name:
            return Wish("save_scenario")
    if re.search(words.DIFF_TWO, lowered):
        return Wish("diff_scenarios")
    for match in re.finditer(words.DIFF, lowered):
        first, second = match["a1"] or match["a2"] or match["a3"], match["b2"] or match["b3"]
        saved = first in known
        told = not second or first in known or second in known
        asked = told and match["a3"] is None and first and first not in _NAMES_TAKEN and not names_things
        if saved or (asked and not re.search(r"\d+b\b", first)):
            other = {"b": known.get(second, second)} if second and second not in _NAMES_TAKEN else {}
            return Wish("diff_scenarios", {"a": known.get(first, first)} | other)
    for match in re.finditer(words.LOAD, lowered):
        name = match["n1"]
        meant = match["said"] or match["after"] or match[0].startswith(("load", "open", "restore", "reload"))
        if name in known or (
            meant
            and name not in _NAMES_TAKEN
            and not names_things
            and not re.search(r"\bconfig|\bfile|curve|balanc", lowered)
        ):
            return Wish("load_scenario", {"name": known.get(name, name)})
    return None


def _as_saved(name: str | None, known: Mapping[str, str]) -> str:
    return known.get((name or "").lower(), name or "")


def _catalogue(named: str, lowered: str) -> Wish | None:
    match = re.search(words.CATALOGUE, lowered)
    if match is None or re.search(
        r"\b(?:plans|scenarios|files|best|cheapest|fit|fits|should|need|train|serve|list prices?)\b", named
    ):
        return None
    kind = match["k1"] or match["k2"]
    kind = "models" if kind.startswith(("model", "llm")) else "prices" if kind.startswith("price") else "hardware"
    parts = (match["q1"], match["r1"], match["t1"]) if match["k1"] else (match["q2"], match["t2"])
    query = " ".join(_FILLER.sub(" ", " ".join(filter(None, parts))).split())
    vendors = [name for pattern, name in words.VENDORS if re.search(pattern, query)]
    return Wish("list_catalogue", {"kind": kind} | ({"query": vendors[0] if vendors else query} if query else {}))


def _explained(named: str, page: Page, plan: Mapping[str, Any]) -> Wish | None:
    match = re.search(words.EXPLAIN, named)
    if match is None:
        return None
    said = next((value for name, value in match.groupdict().items() if value and name.startswith("f")), "")
    start = match.start() if not said else named.index(said, match.start())
    asks = match[0][:3] in ("how", "whe")
    figure = figure_of(said, page.text[start : start + len(said)], sure=asks)
    if figure is None and "," in said:
        # "How sure are you about that number, is any measured run close to it?"
        figure = figure_of(said.partition(",")[0], page.text[start : start + said.index(",")], sure=asks)
    if figure is None and match[0].startswith(("deriv", "walk", "show")):
        # "Activation memory looks off. Derive it."
        figure = figure_of(named, "")
    return Wish("explain", {"figure": figure}) if figure else None


def _for_playbook(named: str, models: int, devices: int, planned: bool) -> bool:
    if re.search(r"\bplaybook\b|\benv(?:ironment)?[- ]?var\w*|\btroubleshoot\w*|\bchecklist\b", named):
        return True
    if re.search(r"\b(?:nccl|rccl|cuda|pytorch|torch|vllm|hsa|fi|ucx|gloo|omp)_[a-z0-9_]+\b", named):
        return True
    technical = re.search(words.TECHNICAL, named)
    if models:
        return False
    if (
        not planned
        and not devices
        and re.search(words.WHAT_IS, named)
        and (technical or re.search(words.CONCEPT, named))
    ):
        return True
    if not (planned or devices) and re.search(words.NO_MEMORY, named) and re.search(words.HELPS, named):
        return True
    if re.search(words.TROUBLE, named) and re.search(r"\b(?:how|why|what|avoid|fix|stop|prevent|keeps?|any)\b", named):
        return True
    known = technical or re.search(words.SETTING, named) or re.search(words.CONCEPT, named)
    if not (planned or devices) and known and re.search(words.CHOOSING, named) and not re.search(words.OF_A_RUN, named):
        return True
    general = re.search(words.ADVISE, named) or (not planned and re.search(words.GENERAL, named))
    return bool(technical and (re.search(words.PLAYBOOK, named) or (general and not devices)))


def _query(lowered: str) -> str:
    words = (word.strip(".-") for word in _STOP.sub(" ", lowered.replace("'s ", " ")).split())
    return " ".join(filter(None, words))[:200] or lowered[:200]


def _nodes(named: str) -> int | None:
    match = re.search(rf"({WHOLE})\s*{NODES}", named)
    return count(match[1]) if match else None


_MOST_ALONE = re.compile(rf"(?:^|[,;]) *({WHOLE}) (?:at most|max(?:imum)?|tops)(?= *(?:[,.;!?]|$))", re.IGNORECASE)


def vendors_of(text: str) -> list[str]:
    """'NVIDIA only', 'only AMD': the vendors to restrict a choice to."""
    lowered = text.lower()
    left = [
        name
        for pattern, name in words.VENDORS
        if re.search(
            rf"\b(?:no|not|without|except|excluding|exclude|avoid|skip|anything but|other than|never) "
            rf"(?:on |any |for )?(?:{pattern})",
            lowered,
        )
    ]
    if left:
        return [name for _, name in words.VENDORS if name not in left]
    return [
        name
        for pattern, name in words.VENDORS
        if re.search(rf"\bonly (?:on |use |with )?(?:{pattern})|(?:{pattern})(?: (?:gpus?|cards?|hardware|"
        rf"chips?))?(?: only|,? please)\b|"
                     rf"\b(?:an?|any|which|what|on|from) (?:{pattern})(?: (?:gpus?|cards?|hardware|chips?|"
                     rf"accelerators?))?\b", lowered)
    ]  # fmt: skip


def most_devices(page: Page) -> tuple[int | None, int | None]:
    """('at most 16 GPUs', 'at most 2 nodes') where a choice is to stay below it; the words are blanked. A number alone
    ('8 at most') is one of devices where nodes have so many."""
    found: list[int | None] = []
    for noun in (
        rf"(?:gpus?|devices?|cards?|accelerators?|chips?|[{ACCELERATOR}]+s?)",
        r"(?:nodes?|machines?|servers?|boxes)",
    ):
        rule = re.compile(
            rf"\b(?:at most|max(?:imum)?(?: of)?|up to|no more than|not more than|<=?)\s*({WHOLE})\s*{noun}|"
            rf"({WHOLE})\s*{noun} (?:at most|max\w*|or (?:less|fewer))",
            re.IGNORECASE,
        )
        match = rule.search(page.rest)
        found.append(count(next(g for g in match.groups() if g)) if match else None)
        if match:
            page.take(match.start(), match.end())
    alone = _MOST_ALONE.search(page.rest)
    if found == [None, None] and alone and (most := count(alone[1])) and (most in (1, 2, 4) or most % 8 == 0):
        page.take(alone.start(1), alone.end())
        found[0] = most
    return found[0], found[1]
