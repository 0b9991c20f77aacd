"""What a figure is made of: its terms, and how they make it, so that the arithmetic can be done again by hand.

Terms have names; what a name means, its unit and its symbol is data (`knowledge/data/figures.yaml`). A term that is a
figure itself has an account of its own under the same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Enters = Literal["+", "-", "*", "/"]
Rule = Literal["sum", "product", "rounded_up", "rounded_down", "least", "most", "inputs"]


# Part of a value below which a difference is rounding of double precision (IEEE 754, binary64: 2.2e-16).
ROUNDING = 1e-12


@dataclass(frozen=True)
class Term:
    """One input of a figure, in SI units; `enters` says how it comes into a sum or a product."""

    name: str
    value: float
    enters: Enters = "+"


@dataclass(frozen=True)
class Account:
    """The terms of a figure.

    `rule`: `sum` of the terms (those with '-' taken off), `product` (those with '/' divide), such a product
    `rounded_up` or `rounded_down` to a whole number, the `least` or the `most` of the terms; `inputs` where the figure
    follows from the terms by more than one operation, which cannot be done again from them alone. `value` is given for
    figures that no result has.
    """

    rule: Rule
    terms: tuple[Term, ...]
    value: float | None = None
    note: str = ""

    @property
    def recomputed(self) -> float | None:
        """The figure, made again from the terms; None where they are inputs only."""
        values = [term.value for term in self.terms]
        if self.rule == "inputs" or not values:
            return None
        if self.rule == "sum":
            return math.fsum(-term.value if term.enters == "-" else term.value for term in self.terms)
        if self.rule in ("least", "most"):
            return min(values) if self.rule == "least" else max(values)
        made = 1.0
        for term in self.terms:
            made = made / term.value if term.enters == "/" else made * term.value
        if self.rule == "product":
            return made
        return float(math.ceil(made - 1e-9) if self.rule == "rounded_up" else math.floor(made + 1e-9))


Accounts = Mapping[str, Callable[[], Account]]
"""Accounts by the dotted name of their figure, each made when it is asked for."""


def total(*terms: Term, value: float | None = None, note: str = "") -> Account:
    """A sum; terms that are nothing are left out, unless all are."""
    some = tuple(term for term in terms if term.value) or terms[:1]
    return Account("sum", some, value, note)


def product(*terms: Term, value: float | None = None, note: str = "") -> Account:
    return Account("product", terms, value, note)


def times(name: str, value: float) -> Term:
    return Term(name, value, "*")


def over(name: str, value: float) -> Term:
    return Term(name, value, "/")


def rest(value: float, terms: list[Term], name: str) -> list[Term]:
    """The terms, and under `name` what is left of `value` where they do not make up all of it."""
    left = value - math.fsum(-term.value if term.enters == "-" else term.value for term in terms)
    largest = max([abs(value), *(abs(term.value) for term in terms)])
    return [*terms, Term(name, left)] if abs(left) > 1e-9 * largest else terms
