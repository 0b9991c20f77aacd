"""Units that are more than a power of ten."""

GIB = 2.0**30
"""Bytes of a gibibyte (IEC 80000-13)."""
