"""Fits few factors that are shared as far as they can be: what all have in common, what kin add, and each one's own.

A factor of an engine or of an accelerator family is a sum (in its fitted scale: logarithm or logit) over its lineage.
Each part has a prior of zero, so that measurements move what is shared before they move what is own, and what was
never measured gets what its kin have (random effects: Laird and Ware 1982). Damped Gauss-Newton on logarithms of
estimated over measured values with Huber weights. Deterministic, numpy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimator.plan.layouts import Floats

DEFAULT = "default"
# How far kin may differ from each other, as a part of how far all together may be from what is expected.
KIN_SIGMA = 0.6
NUDGE = 0.02
_LONGEST_STEP = 0.6


@dataclass(frozen=True)
class Factor:
    """One fitted number: `low` and `high` bound it, `expected` is its prior, `sigma` how far (in the fitted scale) the
    prior lets it go."""

    name: str
    low: float
    high: float
    expected: float
    sigma: float
    logit: bool = False
    shared: bool = True
    """Whether it has a part that all of a kind share; false where it is unlike theirs for a known reason."""

    def to_free(self, value: float) -> float:
        if self.logit:
            share = (value - self.low) / (self.high - self.low)
            return math.log(share / (1.0 - share))
        return math.log(value)

    def from_free(self, value: float) -> float:
        if self.logit:
            return self.low + (self.high - self.low) / (1.0 + math.exp(-value))
        return min(self.high, max(self.low, math.exp(value)))

    def nudged(self, value: float, by: float) -> float:
        """`value` a step `by` further in the fitted scale; beyond a bound too, so that a fit that has come to one still
        sees where the runs pull."""
        return self.from_free(self.to_free(value) + by) if self.logit else value * math.exp(by)

    def inside(self, value: float) -> float:
        """Within the bounds, and off them far enough for the scale to stay finite."""
        edge = 1e-3 * (self.high - self.low)
        return min(self.high - edge, max(self.low + edge, value)) if self.logit else value


Node = tuple[str, str]
"""(Kind, name): of an engine, of an accelerator family; the name `default` is what all of a kind share."""
Values = dict[Node, dict[str, float]]
Lineage = Callable[[Node], Sequence[Node]]
Factors = Mapping[Node, Sequence[Factor]]


class Design:
    """Which parts (node, factor) the factors of each leaf are the sum of."""

    def __init__(self, leaves: Factors, lineage: Lineage) -> None:
        self.lineage = lineage
        self.columns: list[tuple[Node, Factor]] = []
        self.index: dict[tuple[Node, str], int] = {}
        for leaf, factors in sorted(leaves.items()):
            for node in self.line(leaf):
                for factor in factors:
                    if node[1] == DEFAULT and not factor.shared:
                        continue
                    if (node, factor.name) not in self.index:
                        self.index[node, factor.name] = len(self.columns)
                        self.columns.append((node, factor))
        self.sigma = np.array([f.sigma * (1.0 if node[1] == DEFAULT else KIN_SIGMA) for node, f in self.columns])

    def line(self, node: Node) -> list[Node]:
        """The node, its kin, theirs, and last what all share."""
        return [node] if node[1] == DEFAULT else [*self.lineage(node), (node[0], DEFAULT)]

    def columns_of(self, leaf: Node, factor: Factor) -> list[int]:
        """The parts that one factor of a leaf is the sum of."""
        return [self.index[node, factor.name] for node in self._summed(leaf, factor)]

    def _summed(self, node: Node, factor: Factor) -> list[Node]:
        line = self.line(node)
        return line if factor.shared else line[:-1]

    def values(self, parts: Floats) -> Values:
        """The factors of every node, from the parts along its lineage."""
        by_node: Values = {}
        for node, factor in self.columns:
            line = [member for member in self._summed(node, factor) if (member, factor.name) in self.index]
            free = sum(parts[self.index[member, factor.name]] for member in line)
            value = factor.from_free(factor.to_free(factor.expected) + free)
            by_node.setdefault(node, {})[factor.name] = factor.inside(value)
        for node, factor in self.columns:
            if not factor.shared:
                by_node.setdefault((node[0], DEFAULT), {}).setdefault(factor.name, factor.expected)
        return by_node

    def parts(self, values: Values) -> Floats:
        """The parts that give `values`; nodes that `values` lacks add nothing."""
        parts = np.zeros(len(self.columns))
        for column, (node, factor) in enumerate(self.columns):
            line = self._summed(node, factor)
            above = self._free(values, line[1:], factor) if len(line) > 1 else factor.to_free(factor.expected)
            parts[column] = self._free(values, line, factor) - above
        return parts

    @staticmethod
    def _free(values: Values, line: Sequence[Node], factor: Factor) -> float:
        value = next((values[n][factor.name] for n in line if factor.name in values.get(n, {})), factor.expected)
        return factor.to_free(value)


def nearest(values: Values, line: Iterable[Node]) -> dict[str, float]:
    """The values of the first node of a lineage that has some."""
    return next((values[node] for node in line if node in values), {})


def step(
    design: Design, parts: Floats, misses: Floats, jacobian: Floats, weight: Floats, noise: float, huber: float
) -> Floats:
    """The parts after one step of Gauss-Newton; `misses` has shape (rows,), `jacobian` (rows, parts)."""
    pulled = np.minimum(1.0, huber / np.maximum(1e-9, np.abs(misses)))
    scale = weight * pulled / noise**2
    normal = jacobian.T @ (jacobian * scale[:, None]) + np.diag(1.0 / design.sigma**2)
    gradient = jacobian.T @ (scale * misses) + parts / design.sigma**2
    return parts - np.clip(np.linalg.solve(normal, gradient), -_LONGEST_STEP, _LONGEST_STEP)
