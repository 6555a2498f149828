# cython: language_level=3
"""Kernels of the postings: sort, merge and look up sorted u64 (key bits << 32 | row).

Blocks and tables are those of csrc/runblock.h and csrc/runlookup.h. Where a function takes addresses, the
caller vouches that they stay readable during the call.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

cdef extern from "runsort.h" nogil:
    void si_radix_sort64(uint64_t *a, uint64_t *tmp, int64_t n, int first_byte)
    uint64_t *si_merge_pieces(uint64_t *a, uint64_t *tmp, int64_t *ends, int64_t k)

cdef extern from "runblock.h" nogil:
    uint64_t si_block_bytes(uint64_t count)
    uint64_t si_buckets(uint64_t count)
    uint64_t si_scale(uint64_t buckets, uint64_t first, uint64_t last)
    void si_fill_directory(uint8_t *block, uint64_t count)
    uint64_t si_load64(const void *p)
    uint64_t si_lower(const uint8_t *block, uint64_t lo, uint64_t hi, uint64_t v)

cdef extern from "runmerge.h" nogil:
    ctypedef struct si_merged:
        uint64_t next
        int64_t written
        int64_t read
        int done
    int si_merge_blocks(const uint64_t *addresses, const uint64_t *counts, const uint8_t *more, int64_t k,
                        uint64_t start, const uint64_t *live, uint64_t live_blocks, uint8_t *out,
                        int64_t capacity, si_merged *result)

cdef extern from "runcount.h" nogil:
    void si_runs_select(int level)

cdef extern from "runlookup.h" nogil:
    ctypedef struct si_found:
        int64_t *missing
        int64_t n_missing
        uint32_t *rows
        int64_t n_rows
        int failed
    void si_lookup(const uint64_t *table, const uint64_t *keys, int64_t n_queries, const uint64_t *live,
                   uint64_t live_blocks, int64_t *ptr, si_found *f)
    void si_free_found(si_found *f)

cdef uint64_t NOTHING = 0


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_runs_select(level)


def sort_postings(const uint64_t[::1] keys not None, const uint32_t[::1] rows=None, uint64_t first_row=0):
    """Return sorted postings, uint64 (n,): the upper 32 bits of keys[i], then rows[i] (or first_row + i).

    keys: full 64-bit hashes. ValueError when rows has another length, or first_row + n passes 2^32.
    """
    cdef int64_t i, n = keys.shape[0]
    cdef int first_byte = 4
    if rows is not None and rows.shape[0] != n:
        raise ValueError(f"{n} keys for {rows.shape[0]} rows")
    if rows is None and first_row + <uint64_t>n > (<uint64_t>1 << 32):
        raise ValueError(f"{n} rows from {first_row} on pass 2^32")
    result = np.empty(n, np.uint64)
    if n == 0:
        return result
    tmp = np.empty(n, np.uint64)
    cdef uint64_t[::1] out = result
    cdef uint64_t[::1] room = tmp
    with nogil:
        if rows is None:
            for i in range(n):
                out[i] = (keys[i] & <uint64_t>0xFFFFFFFF00000000) | (first_row + <uint64_t>i)
        else:
            for i in range(n):
                out[i] = (keys[i] & <uint64_t>0xFFFFFFFF00000000) | rows[i]
                if i and rows[i] < rows[i - 1]:
                    first_byte = 0
        if n <= 48:
            first_byte = 0
        si_radix_sort64(&out[0], &room[0], n, first_byte)
    return result


def merge_sorted(arrays):
    """Return one sorted uint64 array of all values of some sorted ones (repeats are kept)."""
    cdef int64_t k = len(arrays), i, total = 0
    cdef const uint64_t[::1] piece
    cdef uint64_t[::1] a
    cdef uint64_t[::1] b
    cdef int64_t[::1] ends
    cdef uint64_t *where
    lengths = np.cumsum(np.array([len(array) for array in arrays], np.int64))
    total = int(lengths[k - 1]) if k else 0
    first, second = np.empty(total, np.uint64), np.empty(total, np.uint64)
    if total == 0:
        return first
    a, b, ends = first, second, lengths
    i = 0
    for array in arrays:
        piece = array
        if piece.shape[0]:
            memcpy(&a[i], &piece[0], <size_t>piece.shape[0] * 8)
        i += piece.shape[0]
    with nogil:
        where = si_merge_pieces(&a[0], &b[0], &ends[0], k)
    return first if where == &a[0] else second


def block_bytes(uint64_t count):
    """Return the bytes of a block of `count` postings with its directory."""
    return si_block_bytes(count)


def fill_directory(uint8_t[::1] data not None, uint64_t at, uint64_t count):
    """Write the directory behind the `count` sorted postings at data[at:]; return where the block ends."""
    cdef uint64_t size = <uint64_t>data.shape[0], end
    if at > size or count > size // 8 or si_block_bytes(count) > size - at:
        raise ValueError(f"a block of {count} postings at {at} does not fit in {size} bytes")
    end = at + si_block_bytes(count)
    if count == 0:
        return end
    with nogil:
        si_fill_directory(&data[at], count)
    return end


def block_is_sound(const uint8_t[::1] data not None, uint64_t at, uint64_t count):
    """Return whether the block at data[at:] is strictly ascending and has the directory of its postings."""
    cdef uint64_t i, end, size = <uint64_t>data.shape[0]
    cdef int sound = 1
    if at > size or count > size // 8 or si_block_bytes(count) > size - at:
        return False
    end = at + si_block_bytes(count)
    copy = np.array(data[at:end])
    cdef uint8_t[::1] again = copy
    with nogil:
        for i in range(1, count):
            if si_load64(&data[at + 8 * i]) <= si_load64(&data[at + 8 * (i - 1)]):
                sound = 0
                break
        if sound:
            si_fill_directory(&again[0], count)
            for i in range(8 * count, end - at):
                if again[i] != data[at + i]:
                    sound = 0
                    break
    return bool(sound)


def place_block(uint64_t[:, ::1] blocks not None, int64_t index, uint64_t address, uint64_t count):
    """Fill in row `index` of a table's blocks: address, count, first posting, scale of the directory."""
    cdef uint64_t first = 0, last = 0
    if not 0 <= index < blocks.shape[0] or blocks.shape[1] != 4:
        raise IndexError(f"block {index} of a table of {blocks.shape[0]} blocks")
    if count:
        first = si_load64(<const uint8_t *><uintptr_t>address)
        last = si_load64(<const uint8_t *><uintptr_t>(address + 8 * (count - 1)))
    blocks[index, 1] = count
    blocks[index, 2] = first
    blocks[index, 3] = si_scale(si_buckets(count), first, last)
    blocks[index, 0] = address  # last: another thread may look for it


def lower_posting(uint64_t address, uint64_t count, uint64_t value):
    """Return how many of the `count` sorted postings at `address` are below `value`."""
    return si_lower(<const uint8_t *><uintptr_t>address, 0, count, value)


def posting_at(uint64_t address, uint64_t index):
    """Return posting `index` of those at `address`."""
    return si_load64(<const uint8_t *><uintptr_t>(address + 8 * index))


def merge_blocks(const uint64_t[::1] addresses not None, const uint64_t[::1] counts not None,
                 const uint8_t[::1] more not None, uint64_t start, const uint64_t[::1] live,
                 uint8_t[::1] out not None, uint64_t at, int64_t capacity):
    """Merge the postings >= start of k blocks into out[at:]; return (written, read, next, done).

    more[i] != 0: block i is followed by a block that is not given, so postings above its last one wait.
    live: addresses of the live bitmap (dead rows are dropped), or None when every row lives. At most
    `capacity` postings are written; `next` is where to go on: then blocks with more[i] whose last posting is
    below it must have been replaced by the one that follows. done: there is nothing left.
    """
    cdef int64_t k = addresses.shape[0]
    cdef int status
    cdef si_merged result
    cdef const uint64_t *bits = NULL
    cdef uint64_t bit_blocks = 0
    if counts.shape[0] != k or more.shape[0] != k:
        raise ValueError(f"{k} addresses, {counts.shape[0]} counts and {more.shape[0]} marks")
    if k == 0:
        return 0, 0, start, True
    if capacity < 1 or at + 8 * <uint64_t>capacity > <uint64_t>out.shape[0]:
        raise ValueError(f"no room for {capacity} postings at {at} in {out.shape[0]} bytes")
    if live is not None:
        bits = &live[0] if live.shape[0] else &NOTHING
        bit_blocks = <uint64_t>live.shape[0]
    with nogil:
        status = si_merge_blocks(&addresses[0], &counts[0], &more[0], k, start, bits, bit_blocks, &out[at],
                                 capacity, &result)
    if status == -1:
        raise MemoryError(f"merging {k} blocks")
    if status == -2:
        raise ValueError(f"a block that is followed by another ends below {start}")
    return result.written, result.read, result.next, bool(result.done)


def lookup_runs(const uint64_t[::1] table not None, const uint64_t[:, ::1] keys not None,
                const uint64_t[::1] live not None):
    """Return (ptr int64 (nq + 1,), rows uint32 (m,), missing): live rows that share a bucket with each query.

    table: as csrc/runlookup.h says. Rows ascend within a query, each once. missing: None, or the blocks
    (int64, with repeats) that must be fetched first; then the rest means nothing.
    """
    cdef int64_t nq = keys.shape[0], bands = keys.shape[1], n
    cdef const uint64_t *bits = &live[0] if live.shape[0] else &NOTHING
    cdef uint64_t bit_blocks = <uint64_t>live.shape[0]
    cdef si_found found
    cdef uint32_t[::1] out
    cdef int64_t[::1] wanted
    if table.shape[0] < 4 or table[0] != <uint64_t>bands or <uint64_t>table.shape[0] != (
            4 + table[0] + 1 + 3 * table[1] + 5 * table[2]):
        raise ValueError(f"the table does not fit {bands} bands")
    ptr = np.zeros(nq + 1, np.int64)
    cdef int64_t[::1] offsets = ptr
    if nq == 0:
        return ptr, np.empty(0, np.uint32), None
    memset(&found, 0, sizeof(found))
    try:
        with nogil:
            si_lookup(&table[0], &keys[0, 0], nq, bits, bit_blocks, &offsets[0], &found)
        if found.failed:
            raise MemoryError(f"looking up {nq} queries")
        n = found.n_missing
        if n:
            missing = np.empty(n, np.int64)
            wanted = missing
            memcpy(&wanted[0], found.missing, <size_t>n * 8)
            return ptr, np.empty(0, np.uint32), missing
        rows = np.empty(found.n_rows, np.uint32)
        if found.n_rows:
            out = rows
            memcpy(&out[0], found.rows, <size_t>found.n_rows * 4)
        return ptr, rows, None
    finally:
        si_free_found(&found)
