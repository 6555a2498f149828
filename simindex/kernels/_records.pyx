# cython: language_level=3
"""Kernels of records: packing, stamping, and reading keys without an object per row (layout: csrc/records.h).

A stored record is named by (first_rows, addresses, row): the heap table of csrc/heap.h, whose blocks the
caller has fetched and keeps readable during the call.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef extern from "records.h" nogil:
    ctypedef struct si_record:
        uint8_t mark
        const uint8_t *key
        uint32_t key_length
        const uint8_t *sequence
        const uint8_t *attributes
        uint32_t attributes_length
    int si_read_record(const uint8_t *p, uint32_t length, si_record *out)
    int si_stored_record(const uint32_t *first_rows, const uint64_t *addresses, int64_t blocks,
                         uint32_t row, si_record *out)
    uint64_t si_write_record(uint8_t *p, uint8_t mark, uint64_t number, const uint8_t *key,
                             uint32_t key_length, const uint8_t *attributes, uint64_t attributes_length)
    uint64_t si_load_be64(const uint8_t *p)
    void si_store_be64(uint8_t *p, uint64_t v)
    uint8_t U64 "SI_RECORD_U64"
    uint8_t STR "SI_RECORD_STR"
    uint8_t BIN "SI_RECORD_BIN"


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py): one for all here.
    """


cdef int _check_offsets(const int64_t[::1] offsets, int64_t size) except -1:
    cdef int64_t i, n = offsets.shape[0]
    if n == 0 or offsets[0] < 0 or offsets[n - 1] > size:
        raise ValueError(f"offsets do not lie inside {size} bytes")
    for i in range(n - 1):
        if offsets[i + 1] < offsets[i]:
            raise ValueError(f"offset {i + 1} is {offsets[i + 1]}, after {offsets[i]}")
    return 0


def pack_records(keys not None, key_offsets, bint text, attributes=None, attribute_offsets=None):
    """Return (data uint8, offsets int64 (n + 1,)): records with sequence 0.

    keys: uint64 (n,) for int keys (key_offsets None); else their bytes with int64 offsets, str when `text`,
    else bytes. attributes: the packed attributes of each, with offsets; an empty one, or None for all, stands
    for no attributes.
    """
    cdef const uint64_t[::1] numbers = None
    cdef const uint8_t[::1] names = None, extra = None
    cdef const int64_t[::1] name_at = None, extra_at = None
    cdef int64_t i, n, total
    cdef uint8_t mark = U64
    cdef const uint8_t *no_bytes = b""
    cdef const uint8_t *name_bytes = no_bytes
    cdef const uint8_t *extra_bytes = no_bytes
    if key_offsets is None:
        numbers = keys
        n = numbers.shape[0]
        total = 20 * n
    else:
        names, name_at = keys, key_offsets
        _check_offsets(name_at, names.shape[0])
        n = name_at.shape[0] - 1
        total = 16 * n + name_at[n] - name_at[0]
        mark = STR if text else BIN
        if names.shape[0]:
            name_bytes = &names[0]
    if attributes is not None:
        extra, extra_at = attributes, attribute_offsets
        _check_offsets(extra_at, extra.shape[0])
        if extra_at.shape[0] != n + 1:
            raise ValueError(f"attributes of {extra_at.shape[0] - 1} items for {n} keys")
        total += extra_at[n] - extra_at[0]
        if extra.shape[0]:
            extra_bytes = &extra[0]
    data = np.empty(total, np.uint8)
    offsets = np.zeros(n + 1, np.int64)
    if n == 0:
        return data, offsets
    cdef uint8_t[::1] out = data
    cdef int64_t[::1] ends = offsets
    cdef int64_t at = 0, a = 0, a_length = 0
    with nogil:
        for i in range(n):
            if extra_at is not None:
                a = extra_at[i]
                a_length = extra_at[i + 1] - a
            if mark == U64:
                at += si_write_record(&out[at], mark, numbers[i], NULL, 0, extra_bytes + a, a_length)
            else:
                at += si_write_record(&out[at], mark, 0, name_bytes + name_at[i],
                                      <uint32_t>(name_at[i + 1] - name_at[i]), extra_bytes + a, a_length)
            ends[i + 1] = at
    return data[:at], offsets


def stamp_records(uint8_t[::1] data not None, const int64_t[::1] offsets not None,
                  const uint64_t[::1] sequences not None):
    """Write the sequence of each record into it, in place. Raises ValueError where the bytes are no record.
    """
    cdef int64_t i, n = offsets.shape[0] - 1, bad = -1
    cdef si_record record
    _check_offsets(offsets, data.shape[0])
    if sequences.shape[0] != n:
        raise ValueError(f"{sequences.shape[0]} sequences for {n} records")
    with nogil:
        for i in range(n):
            if offsets[i] == offsets[i + 1] or not si_read_record(
                    &data[offsets[i]], <uint32_t>(offsets[i + 1] - offsets[i]), &record):
                bad = i
                break
            si_store_be64(<uint8_t *>record.sequence, sequences[i])
    if bad >= 0:
        raise ValueError(f"record {bad} cannot be read")


cdef int _check_table(const uint32_t[::1] first_rows, const uint64_t[::1] addresses, int64_t n) except -1:
    if addresses.shape[0] != first_rows.shape[0]:
        raise ValueError(f"{addresses.shape[0]} addresses for {first_rows.shape[0]} heap blocks")
    if n and first_rows.shape[0] == 0:
        raise ValueError(f"{n} rows of a heap without blocks")
    return 0


def record_int_keys(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                    const uint32_t[::1] rows not None):
    """Return the int keys of stored rows, uint64 (n,). Raises ValueError that names a row without such a
    record.
    """
    cdef int64_t i, n = rows.shape[0], bad = -1
    cdef si_record record
    _check_table(first_rows, addresses, n)
    keys = np.empty(n, np.uint64)
    cdef uint64_t[::1] out = keys
    with nogil:
        for i in range(n):
            if not si_stored_record(&first_rows[0], &addresses[0], first_rows.shape[0], rows[i], &record) \
                    or record.mark != U64:
                bad = i
                break
            out[i] = si_load_be64(record.key)
    if bad >= 0:
        raise ValueError(f"row {rows[bad]} has no record with an int key")
    return keys


def record_keys(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                const uint32_t[::1] rows not None):
    """Return (data, offsets): the str or bytes keys of stored rows as their bytes. Raises ValueError as
    above.
    """
    cdef int64_t i, n = rows.shape[0], bad = -1, total = 0
    cdef si_record record
    _check_table(first_rows, addresses, n)
    offsets = np.zeros(n + 1, np.int64)
    cdef int64_t[::1] ends = offsets
    with nogil:
        for i in range(n):
            if not si_stored_record(&first_rows[0], &addresses[0], first_rows.shape[0], rows[i], &record) \
                    or record.mark == U64:
                bad = i
                break
            total += record.key_length
            ends[i + 1] = total
    if bad >= 0:
        raise ValueError(f"row {rows[bad]} has no record with a str or bytes key")
    data = np.empty(total, np.uint8)
    cdef uint8_t[::1] out = data
    with nogil:
        for i in range(n):
            if si_stored_record(&first_rows[0], &addresses[0], first_rows.shape[0], rows[i], &record) \
                    and record.key_length:
                memcpy(&out[ends[i]], record.key, record.key_length)
    return data, offsets


def record_sequences(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                     const uint32_t[::1] rows not None):
    """Return the sequences of stored rows, uint64 (n,). Raises ValueError that names a row without a record.
    """
    cdef int64_t i, n = rows.shape[0], bad = -1
    cdef si_record record
    _check_table(first_rows, addresses, n)
    sequences = np.empty(n, np.uint64)
    cdef uint64_t[::1] out = sequences
    with nogil:
        for i in range(n):
            if not si_stored_record(&first_rows[0], &addresses[0], first_rows.shape[0], rows[i], &record):
                bad = i
                break
            out[i] = si_load_be64(record.sequence)
    if bad >= 0:
        raise ValueError(f"row {rows[bad]} has no record")
    return sequences


def match_records(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                  const uint32_t[::1] rows not None, const uint8_t[::1] data not None,
                  const int64_t[::1] offsets not None, const int64_t[::1] which not None, bint key_only):
    """Return uint8 (n,): whether the record of rows[i] equals record which[i] of (data, offsets) but for its
    sequence.

    key_only: compare keys alone. A row without a record raises ValueError.
    """
    cdef int64_t i, w, n = rows.shape[0], bad = -1, records = offsets.shape[0] - 1
    cdef si_record a, b
    _check_table(first_rows, addresses, n)
    _check_offsets(offsets, data.shape[0])
    if which.shape[0] != n:
        raise ValueError(f"{which.shape[0]} records for {n} rows")
    matches = np.zeros(n, np.uint8)
    cdef uint8_t[::1] out = matches
    with nogil:
        for i in range(n):
            w = which[i]
            if w < 0 or w >= records or offsets[w] == offsets[w + 1] or not si_stored_record(
                    &first_rows[0], &addresses[0], first_rows.shape[0], rows[i], &a) or not si_read_record(
                    &data[offsets[w]], <uint32_t>(offsets[w + 1] - offsets[w]), &b):
                bad = i
                break
            out[i] = (a.mark == b.mark and a.key_length == b.key_length
                      and memcmp(a.key, b.key, a.key_length) == 0
                      and (key_only or (a.attributes_length == b.attributes_length
                                        and memcmp(a.attributes, b.attributes, a.attributes_length) == 0)))
    if bad >= 0:
        raise ValueError(f"row {rows[bad]} or record {which[bad]} cannot be read")
    return matches
