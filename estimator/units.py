"""Units, and how many of one another has."""

GIB = 2.0**30
"""Bytes of a gibibyte (IEC 80000-13)."""
BITS_PER_BYTE = 8.0
"""Formats of weights are known by their bits, memory and traffic by their bytes (definition)."""
FP32_BYTES = 4.0
"""Bytes of a number in single precision (IEEE 754, binary32)."""
BYTES_PER_GB = 1e9
"""As storage is sold, and link rates are given (SI)."""
FLOP_PER_TFLOP = 1e12
"""SI."""
MS_PER_S = 1e3
"""SI; limits of latency are given in milliseconds."""
W_PER_KW = 1e3
"""SI."""
PERCENT = 100.0
"""Percent of a whole (definition)."""
