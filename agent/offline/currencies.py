"""Money that is not said in US dollars. Prices here are in dollars, and no exchange rate is known: a currency of which
one is worth a dollar and a bit more is taken one for one, which is said; of any other the dollars are asked for."""

from __future__ import annotations

import re

from agent.offline.slots import Question, Slot

_NUMBER = r"(?:\d{1,3}(?:[,_ ]\d{3})+|\d+)(?:\.\d+)?(?:\s?(?:k|m|thousand|million)(?![a-z]))?"
_NEAR_A_DOLLAR = r"(?:€|£|\b(?:eur|gbp|chf|euros?|pounds?(?: sterling)?|franken|francs?(?: suisses)?)\b)"
_OTHERS = (
    r"(?:[¥￥₹₩₽₪₫₺]|\b(?:[acs]|nz|hk|r)\$|"
    r"\b(?:cny|rmb|jpy|inr|krw|brl|mxn|cad|aud|sgd|hkd|twd|sek|nok|dkk|pln|czk|zar|yuan|renminbi|yen|rupees?|"
    r"lakhs?(?: rupees?)?|crores?(?: rupees?)?|reais|pesos|zloty|kronor|kroner|rubles?|"
    r"(?:canadian|australian|singapore|hong kong) dollars?)\b)"
)
_DOLLARS = re.compile(
    rf"\b(?:us ?\$|usd)\s?(?P<behind>{_NUMBER})|"
    rf"(?<![\w.$-])(?P<number>{_NUMBER})\s?(?:(?:us |u\.s\. )?(?:dollars?|usd|bucks)\b|(?:us)?\$(?!\s?\d))",
    re.IGNORECASE,
)


def _amounts(currency: str) -> re.Pattern[str]:
    """An amount behind its currency or before it, which may be said on both sides ('¥5000 RMB')."""
    before = rf"(?P<after>{currency}\s?(?P<behind>{_NUMBER}))"
    behind = rf"(?P<before>(?<![\w.$-])(?P<number>{_NUMBER})\s?{currency})"
    return re.compile(rf"(?:{before}|{behind})(?:\s*{currency})*", re.IGNORECASE)


_NEAR, _FAR = _amounts(_NEAR_A_DOLLAR), _amounts(_OTHERS)
_WHY = "prices here are in US dollars, and no exchange rate is known"
# What is asked in another currency, without an amount.
_ASKED = re.compile(rf"\b(?:in|as) (?:{_NEAR_A_DOLLAR}|{_OTHERS})", re.IGNORECASE)


def _dollars(match: re.Match[str]) -> str:
    return "$" + (match["behind"] or match["number"]).replace(" ", "")


def in_dollars(text: str) -> tuple[str, list[Slot], list[Question]]:
    """(`text` with its amounts in dollars, what was assumed for that, what must be asked)."""
    slots: list[Slot] = []
    questions: list[Question] = []

    def near(match: re.Match[str]) -> str:
        taken = _dollars(match)
        slots.append(Slot("note", None, match[0], f"{match['before'] or match['after']} taken as {taken}: {_WHY}"))
        return taken

    def far(match: re.Match[str]) -> str:
        words = match["before"] or match["after"]
        questions.append(Question("goal.budget_usd", f"{_WHY}: how many are {words}?"))
        return " "

    text = _FAR.sub(far, _NEAR.sub(near, _DOLLARS.sub(_dollars, text)))
    if (match := _ASKED.search(text)) and not slots:
        slots.append(Slot("note", None, match[0], f"no amount is given {match[0]}: {_WHY}"))
    return text, slots, questions
