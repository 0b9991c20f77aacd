"""Units that are more than a power of ten."""

GIB = 2.0**30
"""Bytes of a gibibyte (IEC 80000-13)."""
BITS_PER_BYTE = 8.0
"""Formats of weights are known by their bits, memory and traffic by their bytes (definition)."""
