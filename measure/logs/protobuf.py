"""Fields of a protobuf message without its description (protobuf.dev/programming-guides/encoding)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | float | bytes
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields_of(data: bytes) -> Iterator[tuple[int, Value]]:
    """(Number, value) of each field: whole numbers, floats (of 4 or 8 bytes), and bytes of texts and messages. Ends
    where the message is cut or none."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
            if at + size > len(data):
                return
            yield tag >> 3, struct.unpack_from("<d" if size == 8 else "<f", data, at)[0]
            at += size
        elif kind == _BYTES:
            size, at = _varint(data, at)
            if at + size > len(data):
                return
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; one that is cut is 0 and at the end."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, len(data)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, len(data)


def first(data: bytes, number: int) -> Value | None:
    """The first field of a number."""
    return next((value for key, value in fields_of(data) if key == number), None)


def text(value: Value | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
