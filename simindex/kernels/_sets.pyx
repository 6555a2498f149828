# cython: language_level=3
"""Packed sets: sorted shingle hashes of one item in a few bits each, and exact Jaccard between them.

The format and its width formula stand in csrc/setcode.h. Every read of a packed set is checked against its
length: broken bytes raise CorruptStore.
"""

import numpy as np

from simindex.errors import CorruptStore
from simindex.types import Packed

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cdef extern from "setmatch.h" nogil:
    ctypedef struct si_set:
        uint32_t n
        uint32_t width
    ctypedef struct si_query:
        si_set set
    ctypedef struct si_heap:
        const uint32_t *first_rows
        const uint64_t *addresses
        int64_t n
    const size_t SI_SORT_COUNTERS
    const size_t SI_SET_HEADER_MOST
    int SI_SETS_MISSING
    int SI_SETS_CORRUPT
    int SI_SETS_MEMORY
    uint32_t si_set_width(uint64_t n)
    uint64_t si_least_inter(uint64_t a, uint64_t b, double t)
    size_t SI_SET_BOUND(size_t n)
    int si_set_open(const uint8_t *bytes, size_t length, si_set *set)
    int si_set_decode(const si_set *set, uint64_t *out)
    size_t si_set_pack(uint64_t *a, uint64_t *spare, size_t m, uint32_t *counter, uint8_t *out,
                       uint32_t *n)
    void si_query_free(si_query *q)
    int si_query_set(si_query *q, const uint8_t *bytes, size_t length)
    int si_query_match(si_query *q, const uint8_t *bytes, size_t length, double t, uint32_t *inter,
                       uint32_t *size)
    ctypedef struct si_askers:
        const uint8_t *data
        const int64_t *offsets
        const int64_t *of
        const uint32_t *a
    int si_match_rows(si_query *q, const si_askers *by, const si_heap *heap, const uint32_t *rows, int64_t m,
                      double t, uint32_t *inter, uint32_t *sizes_q, uint32_t *sizes, int64_t *bad, int *side)
    void si_sets_select(int level)


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_sets_select(level)


cdef int64_t pack_all(const uint64_t *hashes, const int64_t *ptr, int64_t n, uint64_t *a, uint64_t *spare,
                      uint32_t *counter, uint8_t *out, int64_t *offsets, uint32_t *counts) noexcept nogil:
    cdef int64_t i, at = 0
    cdef size_t m
    offsets[0] = 0
    for i in range(n):
        m = <size_t>(ptr[i + 1] - ptr[i])
        if m:
            memcpy(a, hashes + ptr[i], m * sizeof(uint64_t))
        at += <int64_t>si_set_pack(a, spare, m, counter, out + at, &counts[i])
        offsets[i + 1] = at
    return at


def set_width(uint64_t n):
    """Return the width in bits at which a set of n distinct hashes is stored, 0 for the empty set.

    Chance that hashing alters the Jaccard of a pair whose union has at most 4.7 times the hashes of the
    smaller set (every pair of Jaccard 0.22 or more): below 1e-6 to 180 hashes, 1e-5 to 1,800, 1e-3 to
    158,000; beyond that below 1e-3 for unions of at most 2.36 times (Jaccard 0.43 or more).
    """
    return si_set_width(n) if n else 0


def least_inter(uint32_t size_a, uint32_t size_b, double threshold):
    """Return the smallest inter for which inter / (size_a + size_b - inter) >= threshold, as doubles divide.

    It may exceed the smaller size: then no pair of such sizes reaches the threshold. 0 for a threshold of 0.
    """
    check_threshold(threshold)
    return si_least_inter(size_a, size_b, threshold)


def pack_sets(const uint64_t[::1] hashes not None, const int64_t[::1] ptr not None):
    """Return the packed sets of n items and how many distinct hashes each holds.

    hashes:  uint64, shape (m,), uniform 64-bit hashes; those of item i are hashes[ptr[i]:ptr[i + 1]], any
             order, repeats allowed. Values that are not uniform sort slower, and those that agree in the top
             bits count as one.
    ptr:     int64, shape (n + 1,), ascending from 0 or more, at most m.
    returns: (Packed, counts uint32[n]). An item without hashes gives the empty string and count 0.

    Same bytes for the same set whatever the order and repetition. At most 4.3 bytes a distinct hash up to
    1,000,000 of them, plus 3 bytes. Raises ValueError for a ptr that descends or leaves `hashes`. Releases
    the GIL.
    """
    cdef int64_t n = ptr.shape[0] - 1, i, most = 0, m
    if n < 0:
        raise ValueError("ptr has no entries: it needs one more than there are items")
    cdef size_t bound = 0
    if ptr[0] < 0 or ptr[n] > hashes.shape[0]:
        raise ValueError(f"ptr runs from {ptr[0]} to {ptr[n]}, outside the {hashes.shape[0]} hashes")
    for i in range(n):
        m = ptr[i + 1] - ptr[i]
        if m < 0:
            raise ValueError(f"ptr descends after item {i}: {ptr[i]} to {ptr[i + 1]}")
        if m > most:
            most = m
        bound += SI_SET_BOUND(<size_t>m)
    if most >= 1 << 32:
        raise ValueError(f"a set of {most} hashes is too large: at most {(1 << 32) - 1} can be packed")
    buffer = np.empty(bound + 1, np.uint8)
    offsets = np.zeros(n + 1, np.int64)
    counts = np.zeros(n, np.uint32)
    if n == 0 or most == 0:
        return Packed(buffer[:0], offsets), counts
    cdef uint8_t[::1] out = buffer
    cdef int64_t[::1] off = offsets
    cdef uint32_t[::1] cnt = counts
    cdef uint64_t *a = <uint64_t *>malloc(2 * <size_t>most * sizeof(uint64_t))
    cdef uint32_t *counter = <uint32_t *>malloc(SI_SORT_COUNTERS * sizeof(uint32_t))
    cdef int64_t used = 0
    try:
        if a == NULL or counter == NULL:
            raise MemoryError(f"no memory to sort {most} hashes")
        with nogil:
            used = pack_all(&hashes[0], &ptr[0], n, a, a + most, counter, &out[0], &off[0], &cnt[0])
    finally:
        free(a)
        free(counter)
    return Packed(buffer[:used].copy() if used < 4096 else buffer[:used], offsets), counts


cdef object corrupt(str what):
    return CorruptStore(f"{what} is not a packed set: its bytes contradict each other")


def unpack_set(const uint8_t[::1] packed not None):
    """Return the values of one packed set and their width: (uint64[n] ascending, bits). (empty, 0) for b"".

    A value is the top `width` bits of a 64-bit hash. Raises CorruptStore if the bytes are not a packed set.
    """
    cdef si_set view
    cdef int bad
    if packed.shape[0] == 0:
        return np.empty(0, np.uint64), 0
    if si_set_open(&packed[0], <size_t>packed.shape[0], &view):
        raise corrupt(f"a value of {packed.shape[0]} bytes")
    values = np.empty(view.n, np.uint64)
    cdef uint64_t[::1] out = values
    with nogil:
        bad = si_set_decode(&view, &out[0])
    if bad:
        raise corrupt(f"a value of {packed.shape[0]} bytes")
    return values, <int>view.width


def packed_count(const uint8_t[::1] packed not None):
    """Return how many distinct hashes a packed set holds; raises CorruptStore if the bytes are not one."""
    cdef si_set view
    if packed.shape[0] == 0:
        return 0
    if si_set_open(&packed[0], <size_t>packed.shape[0], &view):
        raise corrupt(f"a value of {packed.shape[0]} bytes")
    return view.n


def intersect_packed(const uint8_t[::1] a not None, const uint8_t[::1] b not None):
    """Return (inter, size_a, size_b) of two packed sets: hashes shared at the smaller width, stored counts.

    Jaccard is inter / (size_a + size_b - inter). Raises CorruptStore if either is not a packed set.
    """
    cdef si_query query
    cdef uint32_t inter = 0, size = 0
    cdef int status
    cdef const uint8_t *first = &a[0] if a.shape[0] else NULL
    cdef const uint8_t *second = &b[0] if b.shape[0] else NULL
    memset(&query, 0, sizeof(query))
    try:
        with nogil:
            status = si_query_set(&query, first, <size_t>a.shape[0])
        if status == SI_SETS_MEMORY:
            raise MemoryError("no memory to decode a packed set")
        if status:
            raise corrupt("the first value")
        with nogil:
            status = si_query_match(&query, second, <size_t>b.shape[0], 0.0, &inter, &size)
        if status == SI_SETS_MEMORY:
            raise MemoryError("no memory to decode a packed set")
        if status:
            raise corrupt("the second value")
        return inter, query.set.n, size
    finally:
        si_query_free(&query)


def jaccard_packed(const uint8_t[::1] a not None, const uint8_t[::1] b not None):
    """Return the Jaccard similarity of two packed sets, 0.0 if both are empty."""
    inter, size_a, size_b = intersect_packed(a, b)
    return inter / (size_a + size_b - inter) if inter else 0.0


cdef check_heap(const uint32_t[::1] first_rows, const uint64_t[::1] addresses):
    if first_rows.shape[0] != addresses.shape[0]:
        raise ValueError(f"{first_rows.shape[0]} first rows but {addresses.shape[0]} block addresses")


cdef check_threshold(double t):
    if not 0.0 <= t <= 1.0:
        raise ValueError(f"min_jaccard is {t}: it must lie in 0 to 1")


cdef object failure(int status, uint32_t row):
    if status == SI_SETS_MEMORY:
        return MemoryError("no memory to decode a packed set")
    if status == SI_SETS_MISSING:
        return CorruptStore(f"row {row} has no original: no block at hand holds it")
    return corrupt(f"the original of row {row}")


def intersect_sets(const uint8_t[::1] query not None, const uint32_t[::1] first_rows not None,
                   const uint64_t[::1] addresses not None, const uint32_t[::1] rows not None,
                   double min_jaccard=0.0):
    """Return (inter uint32[m], size of the query, sizes uint32[m]): a packed set against stored ones.

    query:      one packed set. rows: uint32, shape (m,), whose originals lie in the heap blocks at
                `addresses` (csrc/heap.h), each beginning with the row in `first_rows` (ascending). The caller
                vouches for both.
    inter:      hashes shared at the smaller width of both; 0 where inter / (size_q + size - inter) is below
                min_jaccard, as Python divides, so equality counts. With min_jaccard 0 always exact.

    Raises CorruptStore for a row without an original and for broken bytes, ValueError for a bad threshold.
    Scratch memory: at most 170 bytes a hash of the query, 40 above a million. Releases the GIL.
    """
    check_heap(first_rows, addresses)
    check_threshold(min_jaccard)
    cdef int64_t m = rows.shape[0], bad = 0
    inter = np.zeros(m, np.uint32)
    sizes = np.zeros(m, np.uint32)
    cdef uint32_t[::1] out = inter, sz = sizes
    cdef si_query q
    cdef si_heap heap
    cdef si_askers by
    cdef int status, side = 0
    cdef const uint8_t *bytes = &query[0] if query.shape[0] else NULL
    memset(&by, 0, sizeof(by))
    heap.n = first_rows.shape[0]
    heap.first_rows = &first_rows[0] if heap.n else NULL
    heap.addresses = &addresses[0] if heap.n else NULL
    memset(&q, 0, sizeof(q))
    try:
        with nogil:
            status = si_query_set(&q, bytes, <size_t>query.shape[0])
        if status == SI_SETS_MEMORY:
            raise MemoryError("no memory to decode a packed set")
        if status:
            raise corrupt("the query")
        if m:
            with nogil:
                status = si_match_rows(&q, &by, &heap, &rows[0], m, min_jaccard, &out[0], NULL, &sz[0],
                                       &bad, &side)
            if status:
                raise failure(status, rows[bad])
        return inter, q.set.n, sizes
    finally:
        si_query_free(&q)


def intersect_pairs(const uint32_t[::1] first_rows not None, const uint64_t[::1] addresses not None,
                    const uint32_t[::1] rows_a not None, const uint32_t[::1] rows_b not None,
                    double min_jaccard=0.0):
    """Return (inter, sizes_a, sizes_b), each uint32[m], of m pairs of stored sets; see intersect_sets.

    Pairs that follow each other with the same row in rows_a decode that set once: sort by rows_a.
    """
    check_heap(first_rows, addresses)
    check_threshold(min_jaccard)
    cdef int64_t m = rows_a.shape[0], bad = 0
    if rows_b.shape[0] != m:
        raise ValueError(f"{m} rows on one side, {rows_b.shape[0]} on the other")
    inter = np.zeros(m, np.uint32)
    sizes_a = np.zeros(m, np.uint32)
    sizes_b = np.zeros(m, np.uint32)
    if m == 0:
        return inter, sizes_a, sizes_b
    cdef uint32_t[::1] out = inter, sa = sizes_a, sb = sizes_b
    cdef si_query q
    cdef si_heap heap
    cdef si_askers by
    cdef int status, side = 0
    memset(&by, 0, sizeof(by))
    by.a = &rows_a[0]
    heap.n = first_rows.shape[0]
    heap.first_rows = &first_rows[0] if heap.n else NULL
    heap.addresses = &addresses[0] if heap.n else NULL
    memset(&q, 0, sizeof(q))
    try:
        with nogil:
            status = si_match_rows(&q, &by, &heap, &rows_b[0], m, min_jaccard, &out[0], &sa[0], &sb[0],
                                   &bad, &side)
        if status:
            raise failure(status, rows_b[bad] if side else rows_a[bad])
        return inter, sizes_a, sizes_b
    finally:
        si_query_free(&q)


def jaccard_queries(const uint8_t[::1] data not None, const int64_t[::1] offsets not None,
                    const int64_t[::1] query not None, const uint32_t[::1] first_rows not None,
                    const uint64_t[::1] addresses not None, const uint32_t[::1] rows not None,
                    double min_jaccard=0.0):
    """Return float64, shape (m,): the Jaccard similarity of packed set query[i] and stored set rows[i].

    data, offsets: the packed sets of n queries, set j is data[offsets[j]:offsets[j + 1]]. query: int64, shape
    (m,); neighbours of the same query decode it once. first_rows, addresses: see intersect_sets. 0.0 where
    the similarity is below min_jaccard.

    Raises CorruptStore for a row without an original and for broken bytes, ValueError for a bad threshold,
    IndexError for a query that is not there. Releases the GIL.
    """
    check_heap(first_rows, addresses)
    check_threshold(min_jaccard)
    cdef int64_t m = rows.shape[0], n = offsets.shape[0] - 1, bad = 0, i, both
    if query.shape[0] != m:
        raise ValueError(f"{query.shape[0]} queries for {m} rows")
    scores = np.zeros(m, np.float64)
    if m == 0:
        return scores
    for i in range(m):
        if not 0 <= query[i] < n:
            raise IndexError(f"query {query[i]} is not in 0..{n - 1}")
        if not 0 <= offsets[query[i]] <= offsets[query[i] + 1] <= data.shape[0]:
            raise ValueError(
                f"query {query[i]} lies at {offsets[query[i]]}..{offsets[query[i] + 1]}, outside the "
                f"{data.shape[0]} bytes"
            )
    counts = np.empty((3, m), np.uint32)
    cdef uint32_t[:, ::1] c = counts
    cdef double[::1] score = scores
    cdef uint8_t nothing = 0
    cdef si_query q
    cdef si_heap heap
    cdef si_askers by
    cdef int status, side = 0
    memset(&by, 0, sizeof(by))
    by.data = &data[0] if data.shape[0] else &nothing
    by.offsets = &offsets[0]
    by.of = &query[0]
    heap.n = first_rows.shape[0]
    heap.first_rows = &first_rows[0] if heap.n else NULL
    heap.addresses = &addresses[0] if heap.n else NULL
    memset(&q, 0, sizeof(q))
    try:
        with nogil:
            status = si_match_rows(&q, &by, &heap, &rows[0], m, min_jaccard, &c[0, 0], &c[1, 0], &c[2, 0],
                                   &bad, &side)
        if status and not side:
            raise MemoryError("no memory") if status == SI_SETS_MEMORY else corrupt(f"query {query[bad]}")
        if status:
            raise failure(status, rows[bad])
    finally:
        si_query_free(&q)
    with nogil:
        for i in range(m):
            both = <int64_t>c[1, i] + c[2, i] - c[0, i]
            if c[0, i]:
                score[i] = <double>c[0, i] / <double>both
    return scores
