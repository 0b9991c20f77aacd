"""When a candidate need not be estimated: enough others come before it even at the least that it can cost and take.

Candidates are clusters with a least time (from a bound) and the least money that follows from it; both grow in
proportion, but for money that is fixed. The functions say from which multiple of that least on a candidate is out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from estimator.plan.layouts import Floats

Order = Literal["cost", "time", "balanced"]
# A candidate that is beaten in money and time both is not on the front of the two. So many have to beat it before that
# is taken for sure, as the exact estimates of some may come out otherwise.
SURELY_BEATEN = 3


@dataclass(frozen=True)
class Promise:
    """The least that a candidate costs and takes; `money` is inf where no price is known, and `fixed` where it does not
    grow with the time (machines that are bought). Times below `unhurried` count alike where both are balanced."""

    money: float
    time: float
    fixed: bool = False
    unhurried: float = 0.0


def nearest_multiple(missed: Floats, reach: float, enough: int) -> float:
    """From where on `enough` others are nearer to the limits. `missed` (n,) is by what factor the others miss them (1
    or less where they are kept), `reach` the same of the candidate at its least. inf while fewer are known, or where it
    has no limits."""
    if not reach or len(missed) < enough:
        return math.inf
    return max(1.0, float(np.sort(missed)[enough - 1])) / reach


def outdone_multiple(order: Order, others: Floats, candidate: Promise, enough: int) -> float:
    """From where on `enough` others come before it in `order`, and some beat it in money and time both. `others` (n, 2)
    are money and time of those that keep to the limits."""
    if len(others) < max(enough, SURELY_BEATEN):
        return math.inf
    money, time, least = candidate.money, candidate.time, candidate.unhurried
    with np.errstate(all="ignore"):
        # By what factor it would have to be above its least to come behind each.
        dearer, slower = np.nan_to_num(others / (money, time), nan=np.inf, posinf=np.inf).T
        product = dearer * np.maximum(others[:, 1], least) / time
        if candidate.fixed:
            dearer = np.where(dearer <= 1.0, 0.0, np.inf)
            both = np.where(product * time <= least, 0.0, product)
        else:
            both = np.minimum(np.sqrt(product), product * time / least) if least else np.sqrt(product)
        multiples = {"cost": dearer, "time": slower, "balanced": both}[order]
    if not math.isfinite(money):
        # Whatever has a price comes before it, the others by time.
        dearer, multiples = np.zeros(len(others)), np.where(np.isfinite(others[:, 0]), 0.0, slower)
    behind, beaten = np.sort(multiples)[enough - 1], np.sort(np.maximum(dearer, slower))[SURELY_BEATEN - 1]
    return float(max(behind, beaten))
