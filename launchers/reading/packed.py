"""Micro-steps that are filled up to a number of tokens."""

from __future__ import annotations


def longest_rows(tokens: float, length: float, share: int | None) -> int:
    """As many of the longest rows, of `length` tokens, as go into a micro-step, such that they divide the `share` of a
    step that a replica has, where that is known."""
    most = max(1, int(tokens // length))
    return most if not share else max(rows for rows in range(1, min(most, share) + 1) if share % rows == 0)
