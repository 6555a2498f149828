# cython: language_level=3
"""Kernels of the row-indexed blocks: checksums, live bits, signature rows, heap values.

Address arrays are the tables of csrc/views.h: the caller vouches that every address that is not 0 points to a
block that stays readable (or, where the docstring says so, writable) during the call.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy

cdef extern from "blocks.h" nogil:
    uint32_t si_crc32c(uint32_t crc, const uint8_t *p, uint64_t n)
    void si_crc32c_select(int level)
    void si_seal(uint8_t *block, uint64_t size)
    int si_is_sealed(const uint8_t *block, uint64_t size)
    int si_is_live(const uint64_t *address, uint32_t row)
    uint64_t si_count_live(const uint64_t *address, uint64_t start, uint64_t stop)
    uint64_t si_list_live(const uint64_t *address, uint64_t start, uint64_t stop, uint32_t *out)
    void si_set_live(const uint64_t *address, uint64_t start, uint64_t stop)
    void si_clear_live(const uint64_t *address, const uint32_t *rows, int64_t n)
    void si_put_states(uint8_t *block, uint32_t at, const uint8_t *states, int64_t n)
    uint8_t si_row_state(uint64_t block_address, uint32_t at)
    void si_fill_heap(uint8_t *block, const uint8_t *data, const int64_t *offsets, int64_t start,
                      int64_t stop)
    int si_heap_is_sound(const uint8_t *block, uint64_t size)
    int64_t si_heap_block(const uint32_t *first_rows, int64_t n, uint32_t row)
    const uint8_t *si_heap_row(const uint32_t *first_rows, const uint64_t *addresses, int64_t n, uint32_t row,
                               uint32_t *length)
    const uint8_t *si_fixed_row(const uint64_t *address, uint32_t rows_per_block, uint32_t header,
                                uint32_t width,
                                uint32_t row)
    uint32_t LIVE_ROWS "SI_LIVE_ROWS"


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_crc32c_select(level)


def crc32c(const uint8_t[::1] data not None):
    """Return the CRC-32C (Castagnoli) of `data`, the checksum of every block and segment in the file."""
    cdef uint32_t crc
    if data.shape[0] == 0:
        return 0
    with nogil:
        crc = si_crc32c(0, &data[0], <uint64_t>data.shape[0])
    return crc


def seal(uint8_t[::1] block not None):
    """Store the checksum of bytes [8:] at byte 4 of `block`."""
    if block.shape[0] < 8:
        raise ValueError(f"a block has at least 8 bytes, not {block.shape[0]}")
    with nogil:
        si_seal(&block[0], <uint64_t>block.shape[0])


def is_sealed(const uint8_t[::1] block not None):
    """Return whether the checksum at byte 4 is that of bytes [8:]."""
    cdef int sound
    if block.shape[0] < 8:
        return False
    with nogil:
        sound = si_is_sealed(&block[0], <uint64_t>block.shape[0])
    return bool(sound)


def address_of(const uint8_t[::1] data not None):
    """Return the address of the first byte of `data`, which must not be empty."""
    if data.shape[0] == 0:
        raise ValueError("no bytes, no address")
    return <uint64_t><uintptr_t>&data[0]


# Which blocks must be fetched -------------------------------------------------------------------------------


def missing_blocks(const uint64_t[::1] addresses not None, const uint32_t[::1] rows not None,
                   uint32_t rows_per_block):
    """Return the sorted numbers of the blocks of `rows` whose address is 0, as a list.

    Raises IndexError when a row lies beyond the table.
    """
    cdef int64_t k, n = rows.shape[0], limit = addresses.shape[0], bad = -1, absent = 0
    if rows_per_block < 1:
        raise ValueError("blocks have at least 1 row")
    if n == 0:
        return []
    with nogil:
        for k in range(n):
            if rows[k] // rows_per_block >= limit:
                bad = k
                break
            absent += addresses[rows[k] // rows_per_block] == 0
    if bad >= 0:
        raise IndexError(f"row {rows[bad]} is beyond the table of {limit} blocks of {rows_per_block} rows")
    if absent == 0:
        return []
    return sorted({rows[k] // rows_per_block for k in range(n) if addresses[rows[k] // rows_per_block] == 0})


def missing_heap_blocks(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                        const uint32_t[::1] rows not None):
    """Return the sorted indexes of the heap blocks of `rows` whose address is 0, as a list."""
    cdef int64_t k, b, n = rows.shape[0], blocks = first_rows.shape[0], absent = 0
    if addresses.shape[0] != blocks:
        raise ValueError(f"{addresses.shape[0]} addresses for {blocks} heap blocks")
    if n == 0 or blocks == 0:
        return []
    with nogil:
        for k in range(n):
            b = si_heap_block(&first_rows[0], blocks, rows[k])
            absent += b >= 0 and addresses[b] == 0
    if absent == 0:
        return []
    missing = set()
    for k in range(n):
        b = si_heap_block(&first_rows[0], blocks, rows[k])
        if b >= 0 and addresses[b] == 0:
            missing.add(b)
    return sorted(missing)


# Live bits --------------------------------------------------------------------------------------------------


cdef int _check_live(const uint64_t[::1] addresses, uint64_t stop) except -1:
    if stop > <uint64_t>addresses.shape[0] * LIVE_ROWS:
        raise IndexError(f"row {stop - 1} is beyond the live bitmap of {addresses.shape[0]} blocks")
    return 0


cdef int _check_rows(const uint64_t[::1] addresses, const uint32_t[::1] rows) except -1:
    cdef int64_t k
    cdef uint32_t last = 0
    with nogil:
        for k in range(rows.shape[0]):
            last = rows[k] if rows[k] > last else last
    if rows.shape[0]:
        _check_live(addresses, <uint64_t>last + 1)
    return 0


def are_live(const uint64_t[::1] addresses not None, const uint32_t[::1] rows not None):
    """Return bool, shape (n,): which rows are live."""
    cdef int64_t k, n = rows.shape[0]
    _check_rows(addresses, rows)
    result = np.empty(n, np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        for k in range(n):
            out[k] = <uint8_t>si_is_live(&addresses[0], rows[k])
    return result.view(np.bool_)


def count_live(const uint64_t[::1] addresses not None, const int64_t[::1] starts not None,
               const int64_t[::1] stops not None):
    """Return int64, shape (n,): live rows in each range [starts[i], stops[i])."""
    cdef int64_t k, n = starts.shape[0]
    if stops.shape[0] != n:
        raise ValueError(f"{n} starts and {stops.shape[0]} stops")
    for k in range(n):
        if starts[k] < 0 or stops[k] < starts[k]:
            raise ValueError(f"range {starts[k]}..{stops[k]} is not one")
        if stops[k] > starts[k]:
            _check_live(addresses, <uint64_t>stops[k])
    result = np.zeros(n, np.int64)
    cdef int64_t[::1] out = result
    with nogil:
        for k in range(n):
            if stops[k] > starts[k]:
                out[k] = <int64_t>si_count_live(&addresses[0], <uint64_t>starts[k], <uint64_t>stops[k])
    return result


def list_live(const uint64_t[::1] addresses not None, int64_t start, int64_t stop):
    """Return the live rows of [start, stop) as uint32, ascending."""
    if start < 0 or stop <= start:
        return np.empty(0, np.uint32)
    _check_live(addresses, <uint64_t>stop)
    result = np.empty(stop - start, np.uint32)
    cdef uint32_t[::1] out = result
    cdef uint64_t n
    with nogil:
        n = si_list_live(&addresses[0], <uint64_t>start, <uint64_t>stop, &out[0])
    return result[:n]


def set_live(const uint64_t[::1] addresses not None, int64_t start, int64_t stop):
    """Set the bits of rows [start, stop); their blocks must be writable memory."""
    if start < 0 or stop <= start:
        return
    _check_live(addresses, <uint64_t>stop)
    with nogil:
        si_set_live(&addresses[0], <uint64_t>start, <uint64_t>stop)


def clear_live(const uint64_t[::1] addresses not None, const uint32_t[::1] rows not None):
    """Clear the bits of `rows`; their blocks must be writable memory."""
    if rows.shape[0] == 0:
        return
    _check_rows(addresses, rows)
    with nogil:
        si_clear_live(&addresses[0], &rows[0], rows.shape[0])


# Signature blocks -------------------------------------------------------------------------------------------


def put_signatures(uint8_t[::1] block not None, uint32_t header, uint32_t width, uint32_t at,
                   const uint8_t[:, ::1] signatures not None, const uint8_t[::1] states not None):
    """Write rows `at`, `at + 1`, ... of a signature block: signatures and two-bit states. No checksum."""
    cdef int64_t n = states.shape[0]
    if signatures.shape[0] != n or signatures.shape[1] != width:
        raise ValueError(
            f"signatures have shape ({signatures.shape[0]}, {signatures.shape[1]}), not ({n}, {width})"
        )
    if header + (at + n) * width > block.shape[0] or 48 + (at + n + 3) // 4 > header:
        raise ValueError(f"rows {at} to {at + n} do not fit in a block of {block.shape[0]} bytes")
    if n == 0:
        return
    with nogil:
        si_put_states(&block[0], at, &states[0], n)
        memcpy(&block[header + <uint64_t>at * width], &signatures[0, 0], <size_t>(n * width))


def gather_signatures(const uint64_t[::1] addresses not None, uint32_t rows_per_block, uint32_t header,
                      uint32_t width, const uint32_t[::1] rows not None):
    """Return (signatures uint8 (n, width), states uint8 (n,)) of `rows`, copied.

    Rows of blocks that are not there (address 0, or beyond the table) give zeros, state 0 (absent).
    """
    cdef int64_t k, n = rows.shape[0]
    cdef const uint8_t *row
    if rows_per_block < 1:
        raise ValueError("blocks have at least 1 row")
    signatures = np.zeros((n, width), np.uint8)
    states = np.zeros(n, np.uint8)
    cdef uint8_t[:, ::1] out = signatures
    cdef uint8_t[::1] out_states = states
    if n == 0 or addresses.shape[0] == 0:
        return signatures, states
    with nogil:
        for k in range(n):
            if rows[k] // rows_per_block >= addresses.shape[0]:
                continue
            row = si_fixed_row(&addresses[0], rows_per_block, header, width, rows[k])
            if row:
                memcpy(&out[k, 0], row, width)
                out_states[k] = si_row_state(addresses[rows[k] // rows_per_block], rows[k] % rows_per_block)
    return signatures, states


# Heap blocks ------------------------------------------------------------------------------------------------


def fill_heap(uint8_t[::1] block not None, const uint8_t[::1] data not None,
              const int64_t[::1] offsets not None, int64_t start, int64_t stop):
    """Write the offsets and bytes of values [start, stop) of (data, offsets) after the block's header.

    `block` has exactly 32 + 4 * (stop - start + 1) bytes and the values' own.
    """
    if not 0 <= start < stop < offsets.shape[0]:
        raise ValueError(f"values {start} to {stop} of {offsets.shape[0] - 1}")
    cdef int64_t k, before = 0
    for k in range(start, stop + 1):
        if offsets[k] < before or offsets[k] > data.shape[0]:
            raise ValueError(
                f"offset {k} is {offsets[k]}: offsets ascend and end inside {data.shape[0]} bytes"
            )
        before = offsets[k]
    if block.shape[0] != 32 + 4 * (stop - start + 1) + offsets[stop] - offsets[start]:
        raise ValueError(f"a block of {block.shape[0]} bytes does not hold these values exactly")
    with nogil:
        si_fill_heap(&block[0], &data[0] if data.shape[0] else NULL, &offsets[0], start, stop)


def heap_values(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                const uint32_t[::1] rows not None):
    """Return (data uint8, offsets int64 (n + 1,), missing): the values of `rows`, copied into one buffer.

    missing: how many rows no fetched block holds (their values are empty).
    """
    cdef int64_t k, n = rows.shape[0], blocks = first_rows.shape[0], missing = 0, total = 0
    cdef const uint8_t *value
    cdef uint32_t length
    if addresses.shape[0] != blocks:
        raise ValueError(f"{addresses.shape[0]} addresses for {blocks} heap blocks")
    offsets = np.zeros(n + 1, np.int64)
    cdef int64_t[::1] ends = offsets
    if n == 0 or blocks == 0:
        return np.empty(0, np.uint8), offsets, n
    with nogil:
        for k in range(n):
            length = 0
            value = si_heap_row(&first_rows[0], &addresses[0], blocks, rows[k], &length)
            missing += value == NULL
            total += length
            ends[k + 1] = total
    data = np.empty(total, np.uint8)
    if total == 0:
        return data, offsets, missing
    cdef uint8_t[::1] out = data
    with nogil:
        for k in range(n):
            value = si_heap_row(&first_rows[0], &addresses[0], blocks, rows[k], &length)
            if value != NULL and length:
                memcpy(&out[ends[k]], value, length)
    return data, offsets, missing


def heap_value(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None, uint32_t row):
    """Return the value of one row as bytes (a copy); None when no fetched block holds it."""
    cdef const uint8_t *value
    cdef uint32_t length = 0
    if addresses.shape[0] != first_rows.shape[0]:
        raise ValueError(f"{addresses.shape[0]} addresses for {first_rows.shape[0]} heap blocks")
    if first_rows.shape[0] == 0:
        return None
    value = si_heap_row(&first_rows[0], &addresses[0], first_rows.shape[0], row, &length)
    if value == NULL:
        return None
    return value[:length]


def heap_is_sound(const uint8_t[::1] block not None):
    """Return whether a heap block's offsets ascend, leave no gap and end at the block's end."""
    cdef int sound
    if block.shape[0] == 0:
        return False
    with nogil:
        sound = si_heap_is_sound(&block[0], <uint64_t>block.shape[0])
    return bool(sound)
