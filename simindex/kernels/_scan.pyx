# cython: language_level=3
"""Comparing signatures: equal slots of rows in arrays and in the file, scans, bucket keys, postings."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

cdef extern from "equal.h" nogil:
    void si_equal_select(int level)
    uint32_t (*si_equal_rows)(const uint8_t *rows, uint32_t n, const uint8_t *query, uint32_t width,
                              uint32_t slot_bytes, uint16_t *counts)

cdef extern from "views.h" nogil:
    uint32_t SI_LIVE_ROWS

cdef extern from "scan.h" nogil:
    ctypedef struct si_signatures:
        const uint64_t *address
        uint64_t n_blocks
        uint32_t rows_per_block
        uint32_t header
        uint32_t width
        uint32_t slot_bytes
    ctypedef struct si_found:
        uint32_t *rows
        uint16_t *equal
        uint64_t size
    void si_pair_equal(si_signatures t, const uint32_t *a, const uint32_t *b, int64_t m, uint16_t *out)
    void si_gather_equal(si_signatures t, const uint8_t *queries, const uint32_t *query_of,
                         const uint32_t *rows,
                         int64_t m, uint16_t *out)
    int64_t si_first_beyond(const uint32_t *rows, int64_t m, uint64_t limit)
    si_found *si_found_new(uint32_t n, const uint16_t *min_equal, uint32_t slots)
    void si_found_free(si_found *f, uint32_t n)
    int si_scan_equal(si_signatures t, const uint8_t *queries, uint32_t n_queries, uint64_t n_rows,
                      const uint64_t *live, uint64_t k, si_found *found)

cdef extern from "bands.h" nogil:
    void si_band_keys(const uint8_t *signatures, int64_t n, uint64_t width, uint32_t bands,
                      uint32_t band_bytes,
                      uint64_t *keys)
    int64_t si_count_present(const uint8_t *states, int64_t n)
    int si_key_postings(const uint64_t *keys, int64_t n, uint32_t bands, const uint8_t *states,
                        uint32_t first_row,
                        int64_t m, uint64_t *out)
    int si_band_postings(const uint8_t *signatures, int64_t n, uint64_t width, uint32_t bands,
                         uint32_t band_bytes,
                         const uint8_t *states, uint32_t first_row, int64_t m, uint64_t *out)


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_equal_select(level)


cdef int _check_width(Py_ssize_t width, Py_ssize_t slot_bytes) except -1:
    if slot_bytes != 1 and slot_bytes != 2 and slot_bytes != 4 and slot_bytes != 8:
        raise ValueError(f"slot_bytes is {slot_bytes}: slots have 1, 2, 4 or 8 bytes")
    if width < 1 or width % slot_bytes or width // slot_bytes > 65535:
        raise ValueError(f"rows of {width} bytes do not consist of 1 to 65535 slots of {slot_bytes} bytes")
    return 0


cdef int _table(si_signatures *t, const uint64_t[::1] addresses, Py_ssize_t rows_per_block, Py_ssize_t header,
                Py_ssize_t width, Py_ssize_t slot_bytes) except -1:
    _check_width(width, slot_bytes)
    if rows_per_block < 1 or rows_per_block > 1 << 20:
        raise ValueError(f"rows_per_block is {rows_per_block}: a block has 1 to {1 << 20} rows")
    if header < 48 + (rows_per_block + 3) // 4:
        raise ValueError(f"header is {header} bytes: the states of {rows_per_block} rows end at "
                         f"{48 + (rows_per_block + 3) // 4}")
    t.address = &addresses[0] if addresses.shape[0] else NULL
    t.n_blocks = addresses.shape[0]
    t.rows_per_block = <uint32_t>rows_per_block
    t.header = <uint32_t>header
    t.width = <uint32_t>width
    t.slot_bytes = <uint32_t>slot_bytes
    return 0


cdef int _check_rows(si_signatures t, const uint32_t[::1] rows, str name) except -1:
    cdef uint64_t limit = t.n_blocks * t.rows_per_block
    cdef int64_t bad
    if rows.shape[0] == 0:
        return 0
    with nogil:
        bad = si_first_beyond(&rows[0], rows.shape[0], limit)
    if bad >= 0:
        raise IndexError(f"{name}[{bad}] is row {rows[bad]}: the table of blocks ends at row {limit}")
    return 0


cdef int _check_same(Py_ssize_t got, Py_ssize_t expected, str what) except -1:
    if got != expected:
        raise ValueError(f"{what}: {got} and {expected}, which should be equal")
    return 0


def count_equal(const uint8_t[:, ::1] rows not None, const uint8_t[::1] query not None,
                Py_ssize_t slot_bytes):
    """Return how many slots of each row equal the query's: uint16, shape (n,).

    rows: uint8, shape (n, width); query: uint8, shape (width,); slot_bytes: 1, 2, 4 or 8, a divisor of width.
    """
    cdef Py_ssize_t n = rows.shape[0], width = rows.shape[1]
    cdef Py_ssize_t at = 0, step
    _check_same(query.shape[0], width, "bytes of the query and of a row")
    _check_width(width, slot_bytes)
    out = np.empty(n, np.uint16)
    if n == 0:
        return out
    cdef uint16_t[::1] counts = out
    with nogil:
        while at < n:
            step = n - at if n - at < (1 << 20) else (1 << 20)
            si_equal_rows(&rows[at, 0], <uint32_t>step, &query[0], <uint32_t>width, <uint32_t>slot_bytes,
                          &counts[at])
            at += step
    return out


def pair_equal(const uint64_t[::1] addresses not None, Py_ssize_t rows_per_block, Py_ssize_t header,
               Py_ssize_t width, Py_ssize_t slot_bytes, const uint32_t[::1] rows_a not None,
               const uint32_t[::1] rows_b not None):
    """Return how many slots of rows_a[i] and rows_b[i] are equal: uint16, shape (m,).

    addresses: one per block of signatures (csrc/views.h); a row of an absent block (address 0) counts 0.
    Raises IndexError for a row beyond the table. States and live bits are not looked at.
    """
    cdef si_signatures table
    cdef Py_ssize_t m = rows_a.shape[0]
    _table(&table, addresses, rows_per_block, header, width, slot_bytes)
    _check_same(rows_b.shape[0], m, "lengths of rows_b and rows_a")
    _check_rows(table, rows_a, "rows_a")
    _check_rows(table, rows_b, "rows_b")
    out = np.empty(m, np.uint16)
    if m == 0:
        return out
    cdef uint16_t[::1] counts = out
    with nogil:
        si_pair_equal(table, &rows_a[0], &rows_b[0], m, &counts[0])
    return out


def gather_equal(const uint64_t[::1] addresses not None, Py_ssize_t rows_per_block, Py_ssize_t header,
                 Py_ssize_t width, Py_ssize_t slot_bytes, const uint8_t[:, ::1] queries not None,
                 const uint32_t[::1] query_of not None, const uint32_t[::1] rows not None):
    """Return how many slots of queries[query_of[i]] and stored row rows[i] are equal: uint16, shape (m,).

    As pair_equal, with one side given as an array uint8, shape (nq, width).
    """
    cdef si_signatures table
    cdef Py_ssize_t m = rows.shape[0]
    cdef int64_t bad
    _table(&table, addresses, rows_per_block, header, width, slot_bytes)
    _check_same(queries.shape[1], width, "bytes of a query and of a row")
    _check_same(query_of.shape[0], m, "lengths of query_of and rows")
    _check_rows(table, rows, "rows")
    out = np.empty(m, np.uint16)
    if m == 0:
        return out
    with nogil:
        bad = si_first_beyond(&query_of[0], m, queries.shape[0])
    if bad >= 0:
        raise IndexError(f"query_of[{bad}] is {query_of[bad]}: there are {queries.shape[0]} queries")
    cdef uint16_t[::1] counts = out
    with nogil:
        si_gather_equal(table, &queries[0, 0], &query_of[0], &rows[0], m, &counts[0])
    return out


def scan_equal(const uint64_t[::1] addresses not None, Py_ssize_t rows_per_block, Py_ssize_t header,
               Py_ssize_t width, Py_ssize_t slot_bytes, const uint8_t[:, ::1] queries not None,
               Py_ssize_t n_rows, const uint64_t[::1] live not None, min_equal=None, k=None):
    """Return (ptr int64[nq + 1], rows uint32[m], equal uint16[m]): rows that share enough slots.

    min_equal: uint16, shape (nq,): every row with at least that many equal slots; or
    k: the k largest counts of each query and all rows tied with the k-th (all rows if there are no more
    than k). Rows ascend within a query. Skipped: rows >= n_rows, of absent blocks, not live, or with a
    state below PRESENT.
    addresses, live: block addresses of signatures and of the live bitmap (csrc/views.h).
    Several queries share one pass over the memory: cost is max(memory, nq * compare) per row.
    """
    cdef si_signatures table
    cdef Py_ssize_t nq = queries.shape[0], i, total = 0
    cdef uint64_t top = 0
    cdef const uint16_t[::1] least
    cdef const uint16_t *least_of = NULL
    cdef si_found *found
    cdef int failed = 0
    cdef uint32_t[::1] row_view
    cdef uint16_t[::1] equal_view
    cdef int64_t[::1] ptr_view
    _table(&table, addresses, rows_per_block, header, width, slot_bytes)
    if nq:
        _check_same(queries.shape[1], width, "bytes of a query and of a row")
    if n_rows < 0 or n_rows > <Py_ssize_t>(table.n_blocks * table.rows_per_block):
        raise ValueError(f"n_rows is {n_rows}: the table of blocks ends at row "
                         f"{table.n_blocks * table.rows_per_block}")
    if n_rows > live.shape[0] * <Py_ssize_t>SI_LIVE_ROWS:
        raise ValueError(f"n_rows is {n_rows}: the live bitmap ends at row "
                         f"{live.shape[0] * <Py_ssize_t>SI_LIVE_ROWS}")
    if (min_equal is None) == (k is None):
        raise ValueError("give either min_equal (a threshold scan) or k (the k best)")
    if k is not None:
        if k < 1:
            raise ValueError(f"k is {k}: at least 1")
        top = <uint64_t>min(k, 1 << 62)
    else:
        least = min_equal
        _check_same(least.shape[0], nq, "lengths of min_equal and queries")
        if nq:
            least_of = &least[0]
    ptr = np.zeros(nq + 1, np.int64)
    if nq == 0 or n_rows == 0:
        return ptr, np.empty(0, np.uint32), np.empty(0, np.uint16)
    found = si_found_new(<uint32_t>nq, least_of, <uint32_t>(width // slot_bytes))
    if found == NULL:
        raise MemoryError(f"no memory for the hits of {nq} queries")
    try:
        with nogil:
            failed = si_scan_equal(table, &queries[0, 0], <uint32_t>nq, n_rows, &live[0], top, found)
        if failed:
            raise MemoryError(f"no memory for the hits of {nq} queries")
        ptr_view = ptr
        for i in range(nq):
            total += found[i].size
            ptr_view[i + 1] = total
        rows, equal = np.empty(total, np.uint32), np.empty(total, np.uint16)
        row_view, equal_view = rows, equal
        for i in range(nq):
            if found[i].size:
                memcpy(&row_view[ptr_view[i]], found[i].rows, found[i].size * 4)
                memcpy(&equal_view[ptr_view[i]], found[i].equal, found[i].size * 2)
        return ptr, rows, equal
    finally:
        si_found_free(found, <uint32_t>nq)


cdef int _check_bands(Py_ssize_t width, Py_ssize_t bands, Py_ssize_t rows, Py_ssize_t slot_bytes) except -1:
    _check_width(width, slot_bytes)
    if bands < 1 or rows < 1 or bands > width // slot_bytes // rows:
        raise ValueError(f"{bands} bands of {rows} rows do not fit a signature of "
                         f"{width // slot_bytes} slots")
    return 0


def band_keys(const uint8_t[:, ::1] signatures not None, Py_ssize_t bands, Py_ssize_t rows,
              Py_ssize_t slot_bytes):
    """Return the bucket key of every band: uint64, shape (n, bands). Frozen as bands/1 (csrc/bands.h).

    signatures: uint8, shape (n, width). Band j is the `rows` slots from slot j * rows on.
    """
    cdef Py_ssize_t n = signatures.shape[0]
    _check_bands(signatures.shape[1], bands, rows, slot_bytes)
    out = np.empty((n, bands), np.uint64)
    if n == 0:
        return out
    cdef uint64_t[:, ::1] keys = out
    with nogil:
        si_band_keys(&signatures[0, 0], n, signatures.shape[1], <uint32_t>bands,
                     <uint32_t>(rows * slot_bytes),
                     &keys[0, 0])
    return out


cdef int64_t _check_states(const uint8_t[::1] states, Py_ssize_t n, Py_ssize_t first_row) except -1:
    _check_same(states.shape[0], n, "numbers of states and of rows")
    if first_row < 0 or first_row + n > 1 << 32:
        raise ValueError(f"rows {first_row} to {first_row + n - 1} are not 32-bit row ids")
    return si_count_present(&states[0], n) if n else 0


def band_postings(const uint8_t[:, ::1] signatures not None, const uint8_t[::1] states not None,
                  Py_ssize_t bands,
                  Py_ssize_t rows, Py_ssize_t slot_bytes, Py_ssize_t first_row=0):
    """Return each band's sorted postings: uint64, shape (bands, m), of the m rows with state >= PRESENT.

    A posting is the upper 32 bits of the bucket key, then the 32-bit row id first_row + i.
    """
    cdef Py_ssize_t n = signatures.shape[0]
    cdef int64_t m
    cdef int failed
    _check_bands(signatures.shape[1], bands, rows, slot_bytes)
    m = _check_states(states, n, first_row)
    out = np.empty((bands, m), np.uint64)
    if m == 0:
        return out
    cdef uint64_t[:, ::1] postings = out
    with nogil:
        failed = si_band_postings(&signatures[0, 0], n, signatures.shape[1], <uint32_t>bands,
                                  <uint32_t>(rows * slot_bytes), &states[0], <uint32_t>first_row, m,
                                  &postings[0, 0])
    if failed:
        raise MemoryError(f"no memory to sort {m} postings")
    return out


def key_postings(const uint64_t[:, ::1] keys not None, const uint8_t[::1] states not None,
                 Py_ssize_t first_row=0):
    """Return sorted postings from ready bucket keys (uint64, shape (n, bands)), as band_postings does."""
    cdef Py_ssize_t n = keys.shape[0], bands = keys.shape[1]
    cdef int64_t m = _check_states(states, n, first_row)
    cdef int failed
    out = np.empty((bands, m), np.uint64)
    if m == 0 or bands == 0:
        return out
    cdef uint64_t[:, ::1] postings = out
    with nogil:
        failed = si_key_postings(&keys[0, 0], n, <uint32_t>bands, &states[0], <uint32_t>first_row, m,
                                 &postings[0, 0])
    if failed:
        raise MemoryError(f"no memory to sort {m} postings")
    return out
