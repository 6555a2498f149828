# cython: language_level=3
"""Labels of JSON lines straight into the attributes of records (msgpack), without an object per label."""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from "jsonl.h" nogil:
    int SI_LABEL_ABSENT
    int SI_LABEL_STRING
    int SI_LABEL_NUMBER


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py): all alike here."""


def pack_labels(const uint8_t[::1] data not None, const int64_t[::1] start not None,
                const int64_t[::1] end not None, const uint8_t[::1] kind not None,
                bytes head not None, bytes tail not None, bytes bare not None):
    """Return (data uint8, offsets int64 (n + 1,)): msgpack attributes of n items; None if one is not plain.

    data, start, end, kind: labels as scan_jsonl returns them: strings without escapes become msgpack str,
    plain integers below 2^64 msgpack uint. head + label + tail are an item's attributes, `bare` those of one
    without a label. Plain are all but other numbers and LABEL_OTHER. Raises ValueError for ranges outside of
    data.
    """
    cdef int64_t i, n = start.shape[0], at = 0, total = 0, size = data.shape[0]
    cdef int64_t fixed = max(len(head) + len(tail) + 9, len(bare))
    cdef int plain = 1
    if end.shape[0] != n or kind.shape[0] != n:
        raise ValueError(f"{n} starts, {end.shape[0]} ends and {kind.shape[0]} kinds of labels")
    for i in range(n):
        if kind[i] == SI_LABEL_ABSENT:
            total += fixed
        elif not 0 <= start[i] <= end[i] <= size or (kind[i] == SI_LABEL_STRING and end[i] - start[i] < 2):
            raise ValueError(f"label {i} is at {start[i]} to {end[i]} of {size} bytes")
        else:
            total += fixed + end[i] - start[i]
    packed = np.empty(total, np.uint8)
    offsets = np.zeros(n + 1, np.int64)
    if total == 0:
        return packed, offsets
    cdef uint8_t[::1] out = packed
    cdef int64_t[::1] ends = offsets
    cdef const uint8_t *before = head
    cdef const uint8_t *after = tail
    cdef const uint8_t *alone = bare
    cdef int64_t before_n = len(head), after_n = len(tail), alone_n = len(bare)
    cdef uint8_t *p
    with nogil:
        for i in range(n):
            p = &out[at]
            if kind[i] == SI_LABEL_ABSENT:
                memcpy(p, alone, alone_n)
                p += alone_n
            else:
                memcpy(p, before, before_n)
                p += before_n
                if kind[i] == SI_LABEL_STRING:
                    p = put_str(p, &data[start[i] + 1] if end[i] - start[i] > 2 else NULL,
                                end[i] - start[i] - 2)
                elif kind[i] == SI_LABEL_NUMBER:
                    p = put_number(p, &data[start[i]], end[i] - start[i])
                else:
                    p = NULL
                if p == NULL:
                    plain = 0
                    break
                memcpy(p, after, after_n)
                p += after_n
            at = p - &out[0]
            ends[i + 1] = at
    return (packed[:at], offsets) if plain else None


cdef uint8_t *put_str(uint8_t *p, const uint8_t *text, int64_t n) noexcept nogil:
    if n < 32:
        p[0] = <uint8_t>(0xA0 | n)
        p += 1
    elif n < 256:
        p[0] = 0xD9
        p = put_big(p + 1, n, 1)
    elif n < 65536:
        p[0] = 0xDA
        p = put_big(p + 1, n, 2)
    else:
        p[0] = 0xDB
        p = put_big(p + 1, n, 4)
    if n:
        memcpy(p, text, n)
    return p + n


cdef uint8_t *put_number(uint8_t *p, const uint8_t *text, int64_t n) noexcept nogil:
    """Write a plain integer below 2^64; NULL for any other number."""
    cdef uint64_t value = 0, digit
    cdef int64_t i
    if n < 1 or n > 20:
        return NULL
    for i in range(n):
        digit = <uint64_t>text[i] - 48
        if digit > 9 or value > (<uint64_t>0xFFFFFFFFFFFFFFFF - digit) / 10:
            return NULL
        value = 10 * value + digit
    if value < 128:
        p[0] = <uint8_t>value
        return p + 1
    if value < 256:
        p[0] = 0xCC
        return put_big(p + 1, value, 1)
    if value < 65536:
        p[0] = 0xCD
        return put_big(p + 1, value, 2)
    if value < <uint64_t>1 << 32:
        p[0] = 0xCE
        return put_big(p + 1, value, 4)
    p[0] = 0xCF
    return put_big(p + 1, value, 8)


cdef uint8_t *put_big(uint8_t *p, uint64_t value, int width) noexcept nogil:
    cdef int i
    for i in range(width):
        p[i] = <uint8_t>(value >> (8 * (width - 1 - i)))
    return p + width
