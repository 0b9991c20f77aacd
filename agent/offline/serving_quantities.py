"""Numbers of serving with a noun beside them: lengths of prompts and answers, clients, rates, limits of latency."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agent.offline.numbers import AMOUNT, FACTORS, NUMBER, START, WHOLE, amount, context_length, count
from agent.offline.page import Page
from agent.offline.slots import Question, Relative, Slot

_LENGTH = (
    rf"{START}((?:\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)\s?(?:[km]i?)?)\b"
    r"(?!\s*(?:%|(?:ms|m?sec(?:ond)?s?|s|min(?:ute)?s?|hours?|users?|clients?|people)\b))"
)
_OF = r"\s*(?:of|=|:|is|are|to|at|with)?\s*(?:about |around |up to |~ ?)?"
_TOK = r"(?:tok(?:en)?s?|t(?=/s))"
_PER = r"\s*(?:/|\bper\b|\ban?\b|\bevery\b|\beach\b)\s*"
_SPAN = r"(s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hrs?|hours?|d|days?|months?)\b"
_SPANS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "mo": 2_592_000.0}
_ONE = r"(?:users?|clients?|sessions?|streams?|requests?|person|customers?)"
_USERS = (
    r"(?:users?|clients?|sessions?|streams?|conversations?|connections?|chats?|people|persons?|customers?|"
    r"dev(?:eloper)?s?|agents|callers|visitors|players|members|subscribers|employees|colleagues|coworkers|lawyers|analysts|students)"
)
_REQUESTS = r"(?:requests?|reqs?|queries|query|prompts?|calls?|messages?|questions?|generations?)"
_WITH = r"(?:(?:concurrent|simultaneous|parallel|active|in-flight|end)\s+)"
_TOGETHER = (
    r"(?:at (?:once|a time|the same time)|in the same time|in[- ]flight|in parallel|concurrently|simultaneously)"
)
_ASKED = r"(?:prompts?|inputs?|questions?|isl)"
_ANSWERED = r"(?:answers?|outputs?|responses?|completions?|repl(?:y|ies)|generations?|summar(?:y|ies)|osl)"
_LONG = (
    r"(?:\s*(?:\(s\)|s|[-_ ]?len(?:gth)?s?|[-_ ]?tokens?|[-_ ]?sizes?|of|with|are|is|being|at|around|about|averaging|"
    r"like|=|:|~|up to|sequence))*\s*"
)
_ABOUT = r"(?:(?:in|us|it|maybe|perhaps|about|around|roughly|some|up to|on average) )*"
_UNIT = r"(ms|msec|milliseconds?|s|secs?|seconds?)\b"
_BELOW = (
    r"(?:\s*(?:slo|sla|limit|target|goal|budget|latency|time|of|is|at|in|to|be|must|should|has|have|stays?|kept|keep|"
    r"come|comes|arrives?|appears?|there|out|needs?|"
    r"under|below|less than|lower than|within|at most|max(?:imum)?|no more than|up to|above|over|exceeds?|past|not|ok|"
    r"fine|"
    r"<=?|>|≤|=|:|p\d\d|mean|average))*"
    r"\s*"
)
# 'The answer should start within a second.'
_STARTS = (
    r"\b(?:answers?|responses?|repl(?:y|ies)|output|text) (?:(?:should|must|ha(?:s|ve) to|needs? to|may|to) )?"
    r"(?:(?:start|begin|appear)s? |(?=within\b[^.?!]{0,16}\bstart))(?:coming )?(?:with)?in (?:under |less than )?"
)
_FIRST = r"\b(?:ttft|time[- ]to[- ](?:the )?first[- ]token|first[- ]token(?: latency| time)?)\b"
_NEXT = (
    r"\b(?:tpot|itl|tbt|inter-?token(?: latency)?|time[- ]per[- ](?:output[- ])?token|time between tokens|"
    r"(?:per-)?token latency|decode latency|(?:each|every) (?:output )?token)\b"
)
_WHOLE_REQUEST = (
    r"\b(?:e2e(?: latency)?|end[- ]to[- ]end(?: latency)?|(?:request |response |total |overall )?latency|"
    r"response times?|respond|answers? (?:come )?(?:with)?in)\b"
)
# Fewer tokens are those of one request, whatever is said of them.
_LEAST_TOTAL = 2**15


def _rule(pattern: str) -> str:
    # A number that was spelled out has more than one space behind it.
    expanded = re.sub(r"([ANF]_) ", r"\1\\s+", pattern)
    expanded = expanded.replace("A_", f"({AMOUNT})").replace("N_", f"({WHOLE})").replace("L_", _LENGTH)
    return expanded.replace("F_", f"({NUMBER})")


def _part(text: str) -> float | None:
    """A share as a part of one: '0.9', '90' and '90 %' alike."""
    value = amount(text)
    return None if value is None else value / 100.0 if value > 1 else value


# Lengths first, pairs before single ones; then what could be mistaken for clients. (rule, path, how it is read)
_PLAIN: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    (_rule(r"\bmax[-_ ]?model[-_ ]?len(?:gth)?\s*[=:]?\s*L_"), "workload.max_context", context_length),
    (_rule(r"\bmax[-_ ]?num[-_ ]?batched[-_ ]?tokens\s*[=:]?\s*A_"), "workload.max_batched_tokens", count),
    (_rule(r"\bmax[-_ ]?num[-_ ]?seqs\s*[=:]?\s*N_|\bmax[-_ ]batch(?:[-_ ]size)?\s*[=:]\s*N_"), "workload.max_batch",
     count),
    (_rule(r"\b(?:gpu[-_ ]memory[-_ ]utili[sz]ation|mem(?:ory)?[-_ ]fraction(?:[-_ ]static)?|"
           rf"free[-_ ]gpu[-_ ]mem\w*[-_ ]fraction){_OF}F_\s?%?"), "workload.memory_share", _part),
    (_rule(r"F_\s?% (?:of (?:the )?)?(?:gpu|device) memory(?: utili[sz]ation)?"), "workload.memory_share", _part),
    (_rule(r"F_\s?%\s*(?:of (?:the )?(?:prompts?|prompt tokens|tokens) )?(?:are |is )?(?:prefix[- ]?)?"
           r"(?:(?:cache[- ]?)?hits?(?:[- ]rate)?|cached|shared)\b(?: prefix(?:es)?)?(?: in the prefix cache)?"),
     "workload.prefix_hit", _part),
    (_rule(r"F_\s?% (?:of (?:the )?(?:prompts?|prompt tokens|tokens|requests) )?"
           r"(?:hit(?:s|ting)?|(?:com(?:ing|es?) )?(?:from|out of))(?: in)? (?:the )?(?:prefix[- ]?)?cache\b"),
     "workload.prefix_hit", _part),
    (_rule(rf"\b(?:prefix[- ]?)?cache[- ]hits?(?:[- ]rate)?{_OF}F_\s?%?"), "workload.prefix_hit", _part),
    (_rule(rf"\bprefix[- ]hits?(?:[- ]rate)?{_OF}F_\s?%?"), "workload.prefix_hit", _part),
    (_rule(rf"\bacceptance(?:[- ](?:rate|length))?{_OF}F_\s?%?|F_\s?% acceptance(?: rate)?"), "workload.acceptance",
     _part),
    (_rule(r"F_\s?(?:bpw|bits per weight)\b"), "workload.weight_bits", amount),
    (_rule(r"\bmtp(?:[- ]?(?:with|of|=|:|layers?))?[- =]*N_(?: (?:draft(?:ed)? )?tokens?)?"),
     "workload.speculative_tokens", count),
    (_rule(r"(?:speculative(?: decoding)?|speculation|spec(?:[- ]dec(?:oding)?)?|eagle(?:[- ]?[23])?|drafts?|drafting)"
           r"(?:,? (?:with|of|by|using))?:? N_(?: (?:draft(?:ed)?|speculative))?(?: tokens?)?"),
     "workload.speculative_tokens", count),
    (_rule(r"N_ (?:draft(?:ed)?|speculative) tokens?"), "workload.speculative_tokens", count),
    (_rule(r"A_[- ]?tokens? (?:shared|common|system)(?: system)? (?:prompt|prefix)"), "prefix_tokens", amount),
    (_rule(r"(?:shared|common|system)(?: system)? (?:prompt|prefix)(?:es)? of A_(?:[- ]?tokens?)?"), "prefix_tokens",
     amount),
    (_rule(rf"\b(?:isl|input[-_ ]?len(?:gth)?|input[-_ ]tokens?|prompt[-_ ]?(?:len(?:gth)?|tokens?|size)){_OF}L_"),
     "workload.input_len", context_length),
    (_rule(rf"\b(?:osl|output[-_ ]?len(?:gth)?|output[-_ ]tokens?|max[-_ ](?:new[-_ ])?tokens){_OF}L_"),
     "workload.output_len", context_length),
    (_rule(rf"\b{_ASKED}{_LONG}L_(?:[- ]?tokens?\b)?"), "workload.input_len", context_length),
    (_rule(rf"\b{_ANSWERED}{_LONG}L_(?:[- ]?tokens?\b)?"), "workload.output_len", context_length),
    (_rule(rf"L_[- ]?(?:tokens?|tok)[- ]*(?:long |of )?(?:system )?{_ASKED}\b"), "workload.input_len", context_length),
    (_rule(rf"L_[- ]?(?:tokens?|tok)[- ]*(?:long |of )?{_ANSWERED}\b"), "workload.output_len", context_length),
    (_rule(r"L_[- ]?(?:tok(?:en)?s? )?of (?:context|prompt|history) in\b"), "workload.input_len", context_length),
    (_rule(r"L_[- ]tok(?:en)?s?[- ]+(?:long )?"
           r"(?=(?:chats?|conversations?|requests?|sessions?|contexts?|documents?)\b)"),
     "workload.input_len", context_length),
    (_rule(rf"L_[- ]?(?:tok(?:en)?s?)(?: of context)?\s*(?:/|per|for each|each|an?)\s*{_ONE}\b"), "workload.input_len",
     context_length),
    (_rule(rf"(?<!of )(?<!process )(?<!run )(?<!through ){START}(\d{{1,2}}(?:\.\d+)?k) {_ASKED}\b"),
     "workload.input_len", context_length),
    (_rule(rf"{START}(\d+(?:\.\d+)?k) {_ANSWERED}\b"), "workload.output_len", context_length),
    (_rule(r"L_[- ]?(?:tokens? )?(?:in(?:put)?|prompt)(?: tokens?)?\b"
           r"(?=\s*(?:/|,|;|\+|&|and|->|\.|\?|\)|$|on\b|with\b|tokens?|\d+k? (?:tokens? )?out))"),
     "workload.input_len", context_length),
    (_rule(r"L_[- ]?(?:(?:new|generated|output) tokens?|tokens? (?:out(?:put)?|generated)|out(?:put)?\b)"),
     "workload.output_len", context_length),
    (_rule(rf"\b(?:typ|send|writ|past|enter|upload)(?:es?|s|ing)? {_ABOUT}L_[- ]?tok(?:en)?s?\b"), "workload.input_len",
     context_length),
    (_rule(rf"\b(?:get|receiv|read)(?:es?|s|ing)? {_ABOUT}L_(?:[- ]?tok(?:en)?s?)? (?:back|in return)\b"),
     "workload.output_len", context_length),
    (_rule(r"L_(?:[- ]?tok(?:en)?s?)? (?:back|in return|returned)\b"), "workload.output_len", context_length),
    (_rule(r"\bgenerat(?:e|es|ing) (?:about |up to )?L_[- ]?(?:tokens?|tok)\b(?!\s*(?:/|per|an?\b))"),
     "workload.output_len", context_length),
    (_rule(r"(?:context(?:[- ](?:length|window|size)s?)?|ctx|seq(?:uence)?s?(?:[_ -]?len(?:gth)?)?|window)"
           rf"{_OF}L_(?:[- ]?tokens?)?"), "workload.max_context", context_length),
    (_rule(r"L_(?:[- ]?tokens?)?[- ]*(?:long |max )?(?:of )?(?:context|ctx|sequences?|window)\b"
           r"(?: (?:length|window))?"),
     "workload.max_context", context_length),
)  # fmt: skip
_NAMED_PAIR = _rule(
    rf"L_[- ]?(?:tok(?:en)?s?[- ]*)?(?:of )?(?:{_ASKED}|in)\b(?:\s*(?:[,/+&]|and|with|then|->))*\s*"
    rf"L_[- ]?(?:tok(?:en)?s?[- ]*)?(?:of )?(?:{_ANSWERED}|out)\b"
)
_PAIR = _rule(
    r"L_(?:\s?(?:tokens?|tok))?\s*(?:/|->|=>|→|:)\s*((?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(?:[km]i?)?)\b"
    r"(?!\s*(?:x|%|ms|s\b|h\b|/))(?:\s?(?:tokens?|tok)\b)?(?:\s*(?:isl/osl|in/out|input/output))?"
)
_SHORTEST_PAIR = 16

_RATE = _rule(rf"A_\s*{_REQUESTS}{_PER}{_SPAN}")
_SHORT_RATE = _rule(r"A_\s?(?:(q|r)p(s|m)|req/(s|min))\b|\b(?:qps|rps|request[-_ ]?rate|rate)" + _OF + "A_")
_TOKEN_RATE = _rule(
    rf"A_\s?(?:(output|generated|generation|input|prompt|total)\s)?{_TOK}(?:\s(?:of )?(output|input|total))?"
    rf"{_PER}{_SPAN}"
)
_USER_SPEED = (
    _rule(rf"A_\s?(?:output )?{_TOK}{_PER}s(?:ec(?:ond)?)?\s*(?:(?:/|per|for (?:each|every)|each|an?)\s*{_ONE})\b"),
    _rule(rf"A_\s?(?:output )?{_TOK}{_PER}{_ONE}{_PER}s(?:ec(?:ond)?)?\b"),
    _rule(rf"A_\s?(?:output )?{_TOK}{_PER}s(?:ec(?:ond)?)? (?:each|apiece)\b"),
    _rule(
        rf"\b(?:each|every|per) {_ONE}(?: (?:gets?|(?:should|must) (?:get|see|have)|needs?|wants?|sees?|with|at))?"
        rf"(?: at least)? "
        rf"A_\s?{_TOK}{_PER}s(?:ec(?:ond)?)?\b"
    ),
)
_LEAST = re.compile(r"(?:at least|minimum(?: of)?|min|no less than|more than|over|>=?|≥)\s*$", re.IGNORECASE)
# A speed that is asked for without saying whose: people read no faster, and a whole deployment gives more.
_FASTEST_READER = 200.0
_SESSIONS_OF = _rule(r"(?<=[\ue003]) ?(?:of|with|at) L_[- ]?tok(?:en)?s?\b(?:(?: of)? context)?(?: each)?")
_CLIENTS = (
    _rule(rf"A_(?:\s*-|\s+)?{_WITH}*{_USERS}\b(?!{_PER}(?:s|m|h|d)\w*)(?:\s+{_TOGETHER})?"),
    _rule(rf"A_[- ]?{_WITH}+(?:{_REQUESTS}|sequences?|seqs?)\b(?:\s+{_TOGETHER})?"),
    _rule(rf"A_\s+(?:{_REQUESTS}|sequences?|seqs?)\s+{_TOGETHER}"),
    _rule(r"A_ (?:concurrent|simultaneous|parallel)\b"),
    _rule(rf"\b(?:max[-_ ])?concurrency{_OF}A_|A_(?:[- ]way)? concurrency\b|A_ {_TOGETHER}"),
    _rule(rf"N_ of us\b(?:\s+{_TOGETHER})?"),
    _rule(rf"\b(?:just|only|single) N_ {_REQUESTS}(?!{_PER})\b"),
    _rule(rf"\b(?:batch(?:[-_ ]size)?|bs){_OF}N_|\bbatch(?:es)? of N_|\bbs(\d+)\b"),
)
# The scenario of that name, which is read among the words.
_SINGLE_STREAM = re.compile(r"1[\s-]*stream", re.IGNORECASE)
_ITEMS = r"(?:documents?|docs|samples?|conversations?|rows|records|articles|reviews|e-?mails|tickets|transcripts)"
# '2M docs, 1200 tokens each'
_ITEMS_OF = _rule(
    rf"A_\s+{_ITEMS}\b(?:,|\s|\(|~|of|with|at|about|around|averaging)*L_[- ]?(?:tok(?:en)?s?)\b(?: each| apiece| long)?"
)
_TOTAL = _rule(rf"A_\s+(?:{_REQUESTS}|{_ITEMS})\b")
_TOTAL_TOKENS = _rule(
    rf"A_[- ]?{_TOK}\b(?!{_PER}(?:(?:s|m|h|d)\w*|{_ONE}))(?! each)(?![- ]{_USERS}|[- ]{_REQUESTS})(?: in total|"
    rf" of text)?"
)
_REPLICAS = _rule(r"N_ (?:independent )?(?:replicas?|copies)\b")
_EXPERTS = re.compile(
    r"\b(?:with |using |enable[-_ ]?)?expert[-_ ]parallel(?:ism)?\b(?!\s*(?:size|of|=|:)?\s*\d)", re.I
)
_SPECULATES = re.compile(r"\b(mtp|eagle(?:[- ]?[23])?|speculative(?: decoding)?)\b", re.IGNORECASE)
_DOUBLE = re.compile(
    rf"\b(double|twice|triple|quadruple|half|halve)(?: as many| the number of| of)?(?: the| our| my)? "
    rf"(?:{_USERS}|concurrency|load|traffic|demand|volume|request rate|rate|{_REQUESTS})\b",
    re.IGNORECASE,
)
_STEM = re.compile(r"(?<=[le])[sd]+$")
# "If traffic doubles", "with 3x the load".
_GROWS = (
    rf"\b(?:traffic|load|demand|volume|{_USERS}|concurrency|(?:request )?rate|{_REQUESTS})\b"
    r"(?: (?:is|are|were|was|gets?|goes?|grows?|should|would|will|to|up|be))* "
    r"(doubles?d?|triples?d?|quadruples?d?|hal(?:f|ve[sd]?)|twice)\b|"
    rf"\b(\d+(?:\.\d+)?)\s?x (?:as (?:much|many) |the |our |more )?"
    rf"(?:traffic|load|demand|volume|{_USERS}|{_REQUESTS})\b"
)
_GROWS_BY = (
    rf"\b(?:traffic|load|peak|demand|volume|{_USERS}|concurrency|(?:request )?rate|{_REQUESTS})\b(?: \w+){{0,2}}? "
    r"(grow|increas|ris|go(?:es)? up|climb|shrink|drop|fall|decreas)\w*(?: by)? (\d+(?:\.\d+)?)\s?(?:%|percent)"
)
_MILLION_TOKENS = r"(?:/|per|an?)\s*(?:1\s?)?(?:m|million)\s*(?:output |generated )?tok(?:en)?s?\b"
_MILLION = re.compile(
    rf"\$\s?(\d+(?:\.\d+)?)\s*{_MILLION_TOKENS}|{_MILLION_TOKENS}{_BELOW}\$\s?(\d+(?:\.\d+)?)", re.IGNORECASE
)
# The unit of a price, no number of tokens.
_PER_MILLION = re.compile(
    r"(?:/|\bper)\s*(?:1\s?)?(?:m|million)\s*(?:output |generated )?tok(?:en)?s?\b|"
    r"\b(?:1\s?|an? )(?:m|million) (?:output |generated |input )?tok(?:en)?s?(?= (?:would |will )?costs?\b)",
    re.IGNORECASE,
)
_NODE_SIZE = _rule(r"\bhow many (?:nodes|servers|machines|boxes|instances) (?:of|with) N_")


def read_serving(page: Page) -> tuple[list[Slot | Relative], list[Question]]:
    """Every number about requests. Some paths (token_rate, prefix_tokens, e2e_limit_s, …) are no Plan fields yet."""
    slots: list[Slot | Relative] = []
    questions: list[Question] = []
    _limits(page, slots)
    for match in page.find(_MILLION):
        slots.append(Slot("usd_per_million", amount(match[1] or match[2]), page.take(match.start(), match.end())))
    for match in page.find(_PER_MILLION):
        page.take(match.start(), match.end())
    _pairs(page, slots)
    _rates(page, slots)
    for rule, path, read in _PLAIN:
        for match in page.find(rule):
            value = read(next(group for group in match.groups() if group))
            words = page.take(match.start(), match.end()).strip()
            if value is None:
                questions.append(Question(path, f"{words!r} gives no number that can be used; what should it be?"))
            else:
                slots.append(Slot(path, value, words))
    _clients(page, slots)
    for match in page.find(_SPECULATES):
        drafts = 1 if match[1].lower() == "mtp" else 3
        words = page.take(match.start(), match.end())
        if not any(slot.path == "workload.speculative_tokens" for slot in slots):
            note = f"{words} taken with {drafts} drafted token{'s' if drafts > 1 else ''} per step"
            slots.append(Slot("workload.speculative_tokens", drafts, words, note))
    return slots, questions


def read_node_size(page: Page) -> list[Slot | Relative]:
    """'How many nodes of 8 H100': so many devices are a node, not all that there are."""
    found: list[Slot | Relative] = []
    for match in page.find(_NODE_SIZE):
        start = match.start(1)
        found.append(Slot("cluster.per_node", count(match[1]), page.take(start, match.end())))
    return found


def _limits(page: Page, slots: list[Slot | Relative]) -> None:
    """Limits of latency, value behind or before the name; p99 anywhere makes all of them such."""
    for names, path in ((_FIRST, "workload.ttft_slo_ms"), (_NEXT, "workload.tpot_slo_ms")):
        before = r"\s*(?:of |for |to )?(?:the )?(?:p\d\d )?(?:" + names.replace(r"\b", "") + r")\b"
        token = r"|F_\s?" + _UNIT + r"\s*(?:/|per|an?|each|between)\s*(?:output |generated |two |the )?tok(?:en)?s?\b"
        shape = rf"(?:p\d\d )?{names}{_BELOW}F_\s?{_UNIT}|F_\s?{_UNIT}{before}"
        shape += (
            token if path.endswith("tpot_slo_ms") else r"|F_\s?" + _UNIT + r" (?:to|for|until) (?:the )?first token"
        )
        shape += rf"|{_STARTS}F_\s?{_UNIT}(?: (?:start|begin|appear)\b)?" if path.endswith("ttft_slo_ms") else ""
        for match in page.find(_rule(shape)):
            groups = [group for group in match.groups() if group]
            scale = 1.0 if groups[1].lower().startswith("m") else 1000.0
            value = (amount(groups[0]) or 0.0) * scale
            if value > 0:
                slots.append(Slot(path, value, page.take(match.start(), match.end()).strip()))
    for match in page.find(_rule(rf"(?:p\d\d )?{_WHOLE_REQUEST}{_BELOW}F_\s?{_UNIT}")):
        groups = [group for group in match.groups() if group]
        value = (amount(groups[0]) or 0.0) * (1e-3 if groups[1].lower().startswith("m") else 1.0)
        words = page.take(match.start(), match.end()).strip()
        slots.append(Slot("e2e_limit_s", value, words, f"{words!r} read as a limit of whole requests, which are shown"))
    match = re.search(r"\bp(9\d)\b|\b(9\d)(?:th)?[- ]?(?:percentile|%-?ile)\b", page.text, re.IGNORECASE)
    if match:
        other = None if "99" in match[0] else f"{match[0]} taken as p99, which is what is estimated"
        slots.append(Slot("slo_statistic", "p99", match[0], other))
    for rule in _USER_SPEED:
        for match in page.find(rule):
            _user_speed(page, match, slots)


def _user_speed(page: Page, match: re.Match[str], slots: list[Slot | Relative]) -> None:
    speed = amount(match[1])
    words = page.take(match.start(), match.end()).strip()
    if speed:
        note = f"{words!r} read as a time per token of at most {1e3 / speed:.4g} ms"
        slots.append(Slot("workload.tpot_slo_ms", 1e3 / speed, words, note))


def _pairs(page: Page, slots: list[Slot | Relative]) -> None:
    """'1k/8k', '3k prompt 500 completion': prompt and answer."""
    for match in page.find(_NAMED_PAIR):
        first, second = context_length(match[1]), context_length(match[2])
        if first and second:
            words = page.take(match.start(), match.end()).strip()
            slots += [Slot("workload.input_len", first, words), Slot("workload.output_len", second, words)]
    for match in page.find(_PAIR):
        first, second = context_length(match[1]), context_length(match[2])
        if first and second and min(first, second) >= _SHORTEST_PAIR:
            words = page.take(match.start(), match.end()).strip()
            slots += [Slot("workload.input_len", first, words), Slot("workload.output_len", second, words)]


def _rates(page: Page, slots: list[Slot | Relative]) -> None:
    for match in page.find(_RATE):
        value = amount(match[1])
        if value:
            seconds = _span(match[2])
            words = page.take(match.start(), match.end()).strip()
            note = None if seconds == 1 else f"{words!r} read as {value / seconds:.4g} requests/s, evenly over the time"
            slots.append(Slot("workload.request_rate", value / seconds, words, note))
    for match in page.find(_SHORT_RATE):
        value = amount(match[1] or match[5])
        minutes = (match[3] or match[4] or "").lower().startswith("m")
        if value:
            words = page.take(match.start(), match.end()).strip()
            note = f"{words!r} read as {value / 60:.4g} requests/s" if minutes else None
            slots.append(Slot("workload.request_rate", value / (60 if minutes else 1), words, note))
    for match in page.find(_TOKEN_RATE):
        value, kind = amount(match[1]), (match[2] or match[3] or "").lower()
        least = _LEAST.search(page.rest, 0, match.start())
        if value and _span(match[4]) == 1 and not kind and least and value <= _FASTEST_READER:
            _user_speed(page, match, slots)
        elif value:
            words = page.take(match.start(), match.end()).strip()
            side = (
                "output"
                if kind in ("output", "generated", "generation")
                else "input"
                if kind in ("input", "prompt")
                else ""
            )
            side = side or ("output" if _span(match[4]) == 1 else "total")
            slots.append(Slot("token_rate", (value / _span(match[4]), side), words))


def _span(word: str) -> float:
    return _SPANS["mo" if word.lower().startswith("mo") else word[0].lower()]


def _clients(page: Page, slots: list[Slot | Relative]) -> None:
    for match in page.find(_GROWS):
        by = float(match[2]) if match[2] else FACTORS[_STEM.sub("", match[1].lower()) or "double"]
        counted = re.search(r"user|client|concurren", match[0], re.IGNORECASE)
        path = "workload.concurrency" if counted else "load"
        slots.append(Relative(path, by, page.take(match.start(), match.end())))
    for match in page.find(_GROWS_BY):
        share = float(match[2]) / 100 * (-1 if re.match(r"sh|dr|fa|de", match[1].lower()) else 1)
        path = "workload.concurrency" if re.search(r"user|client|concurren", match[0], re.IGNORECASE) else "load"
        slots.append(Relative(path, 1 + share, page.take(match.start(), match.end())))
    for match in page.find(_DOUBLE):
        word = match[0].lower()
        path = "workload.request_rate" if "rate" in word else "workload.concurrency"
        path = "load" if re.search(r"load|traffic|demand|volume", word) else path
        slots.append(Relative(path, FACTORS[match[1].lower()], page.take(match.start(), match.end())))
    for rule in _CLIENTS:
        for match in page.find(rule):
            value = amount(next(group for group in match.groups() if group))
            if value and value == int(value) and not _SINGLE_STREAM.fullmatch(match[0].strip()):
                slots.append(Slot("workload.concurrency", int(value), page.take(match.start(), match.end()).strip()))
                for long in page.find(_SESSIONS_OF):
                    # '150 sessions of 4,000 tokens each'
                    slots.append(Slot("workload.input_len", context_length(long[1]), page.take(*long.span()).strip()))
    for match in page.find(_ITEMS_OF):
        if (number := amount(match[1])) and number == int(number):
            words = page.take(match.start(), match.end()).strip()
            slots.append(Slot("workload.requests", int(number), words))
            slots.append(Slot("workload.input_len", context_length(match[2]), words))
    for rule, path in ((_REPLICAS, "replicas"), (_TOTAL, "workload.requests"), (_TOTAL_TOKENS, "total_tokens")):
        for match in page.find(rule):
            value = amount(match[1])
            if path == "total_tokens" and (value or 0) < _LEAST_TOTAL:
                continue
            if value and (path == "total_tokens" or value == int(value)):
                words = page.take(match.start(), match.end()).strip()
                slots.append(Slot(path, value if path == "total_tokens" else int(value), words))
    for match in page.find(_EXPERTS):
        slots.append(Slot("expert_parallel", True, page.take(match.start(), match.end()).strip()))
