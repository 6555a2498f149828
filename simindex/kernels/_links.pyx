# cython: language_level=3
"""Verified links between rows that share a bucket, and union-find over rows.

How buckets are worked through, and what is and is not lost, stands in csrc/links.h.
"""

import numpy as np

from simindex.errors import CorruptStore

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, memset

cdef extern from "links.h" nogil:
    ctypedef struct si_heap:
        const uint32_t *first_rows
        const uint64_t *addresses
        int64_t n
    ctypedef struct si_linker:
        uint32_t width, slot_bytes, slots, most_unequal, exact, rows_per_block, header, failed_bits, bad_row
        double threshold
        const uint64_t *signatures
        uint64_t blocks, n_rows
        si_heap heap
        const uint32_t *parent
        const uint8_t *copies
        uint64_t *link
        uint32_t *copy
        size_t links, copied
        uint64_t *failed
        uint64_t compared, candidates, verified, cut
        int status
    const uint32_t SI_LINK_FAILED_BITS
    int SI_SETS_MISSING
    int SI_SETS_MEMORY
    void si_equal_select(int level)
    void si_sets_select(int level)
    void si_linker_free(si_linker *L)
    void si_link_begin(si_linker *L)
    int si_link_run(si_linker *L, const uint64_t *posting, int64_t n)
    int si_join(uint32_t *parent, uint32_t a, uint32_t b)
    int64_t si_flatten(uint32_t *parent, int64_t n)


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_equal_select(level)
    si_sets_select(level)


@cython.final
cdef class BucketLinker:
    """Finds the links of one band at a time; holds an open bucket and scratch memory between runs.

    Memory: at most about 60 MB, reached only by a bucket of a million rows that are not alike.
    compared: signatures compared; candidates: pairs with enough equal slots; verified: pairs whose sets were
    intersected; cut: pairs left out to keep a bucket's work linear. Not for two threads at a time.
    """

    cdef si_linker linker

    def __cinit__(self, Py_ssize_t width, Py_ssize_t slot_bytes, Py_ssize_t min_equal, threshold=None):
        """
        width, slot_bytes: bytes of a signature and of one slot (1, 2, 4 or 8). min_equal: slots that a pair
        must share. threshold: least Jaccard of a link, 0 < threshold <= 1, decided on the originals; None:
        min_equal alone decides.
        """
        memset(&self.linker, 0, sizeof(si_linker))
        if slot_bytes not in (1, 2, 4, 8):
            raise ValueError(f"slots of {slot_bytes} bytes: 1, 2, 4 or 8 are known")
        if width < slot_bytes or width % slot_bytes or width > 1 << 20:
            raise ValueError(f"a signature of {width} bytes does not hold slots of {slot_bytes}")
        slots = width // slot_bytes
        if not 0 <= min_equal <= slots:
            raise ValueError(f"min_equal is {min_equal}: a signature has {slots} slots")
        if threshold is not None and not 0.0 < threshold <= 1.0:
            raise ValueError(f"threshold is {threshold}: it must lie above 0 and not above 1")
        self.linker.width = <uint32_t>width
        self.linker.slot_bytes = <uint32_t>slot_bytes
        self.linker.slots = <uint32_t>(width // slot_bytes)
        self.linker.most_unequal = self.linker.slots - <uint32_t>min_equal
        self.linker.exact = threshold is not None
        self.linker.threshold = 0.0 if threshold is None else threshold
        self.linker.failed_bits = SI_LINK_FAILED_BITS
        self.linker.failed = <uint64_t *>calloc(<size_t>1 << SI_LINK_FAILED_BITS, sizeof(uint64_t))
        if self.linker.failed == NULL:
            raise MemoryError("no memory for the cache of failed pairs")
        si_link_begin(&self.linker)

    def __dealloc__(self):
        si_linker_free(&self.linker)

    @property
    def compared(self):
        """Signatures compared so far."""
        return self.linker.compared

    @property
    def candidates(self):
        """Pairs with enough equal slots so far."""
        return self.linker.candidates

    @property
    def verified(self):
        """Pairs whose sets were intersected so far."""
        return self.linker.verified

    @property
    def cut(self):
        """Pairs left out so far to keep the work in a bucket linear."""
        return self.linker.cut

    def begin(self):
        """Start a band: no bucket is open."""
        si_link_begin(&self.linker)

    def run(self, const uint64_t[::1] postings not None, const uint32_t[::1] parent not None,
            const uint8_t[::1] copies not None, const uint64_t[::1] signatures not None,
            Py_ssize_t rows_per_block, Py_ssize_t header, const uint32_t[::1] first_rows=None,
            const uint64_t[::1] originals=None):
        """Return (links uint64[m], copies uint32[c]) found in the next postings of the band.

        postings:   uint64, ascending within the band, bucket << 32 | row. A bucket may go on in the next run.
        parent:     uint32, shape (n,): components as known, parent[i] <= i; not changed, nor may it change in
                    the run. Apply `join_links` to it between runs.
        copies:     uint8, shape (n / 8,): bit i % 8 of byte i // 8 leaves row i out; apply `mark_rows`.
        signatures: block addresses (csrc/views.h) with rows_per_block and header.
        first_rows, originals: heap blocks of packed sets (csrc/heap.h); needed if there is a threshold.
        links:      row a << 32 | row b; copies: rows whose set equals that of an earlier row of the bucket.

        Raises CorruptStore for rows that are not there and for broken originals. Releases the GIL.
        """
        cdef si_linker *L = &self.linker
        cdef int64_t n = postings.shape[0]
        cdef int status
        if copies.shape[0] * 8 < parent.shape[0]:
            raise ValueError(f"copies has {copies.shape[0] * 8} bits for {parent.shape[0]} rows")
        if rows_per_block < 1 or header < 0:
            raise ValueError(f"blocks of {rows_per_block} rows after {header} bytes cannot be")
        if L.exact and (first_rows is None or originals is None):
            raise ValueError("links by threshold need the originals")
        memset(&L.heap, 0, sizeof(si_heap))
        if first_rows is not None and originals is not None:
            if first_rows.shape[0] != originals.shape[0]:
                raise ValueError(f"{first_rows.shape[0]} first rows but {originals.shape[0]} block addresses")
            if first_rows.shape[0]:
                L.heap.n = first_rows.shape[0]
                L.heap.first_rows = &first_rows[0]
                L.heap.addresses = &originals[0]
        if n == 0 or parent.shape[0] == 0:
            if n:
                raise CorruptStore(f"{n} postings but no rows")
            return np.empty(0, np.uint64), np.empty(0, np.uint32)
        L.parent = &parent[0]
        L.copies = &copies[0]
        L.n_rows = <uint64_t>parent.shape[0]
        L.blocks = <uint64_t>signatures.shape[0]
        L.signatures = &signatures[0] if signatures.shape[0] else NULL
        L.rows_per_block = <uint32_t>rows_per_block
        L.header = <uint32_t>header
        L.status = 0
        with nogil:
            status = si_link_run(L, &postings[0], n)
        if status:
            si_link_begin(L)
            if status == SI_SETS_MEMORY:
                raise MemoryError("no memory to link a bucket")
            if status == SI_SETS_MISSING:
                raise CorruptStore(f"row {L.bad_row} is in a bucket but has no signature or no original")
            raise CorruptStore(
                f"row {L.bad_row} of a bucket is not a row, or its original is not a packed set"
            )
        links = np.empty(L.links, np.uint64)
        found = np.empty(L.copied, np.uint32)
        cdef uint64_t[::1] out = links
        cdef uint32_t[::1] rows = found
        if L.links:
            memcpy(&out[0], L.link, L.links * sizeof(uint64_t))
        if L.copied:
            memcpy(&rows[0], L.copy, L.copied * sizeof(uint32_t))
        return links, found


def join_links(uint32_t[::1] parent not None, const uint64_t[::1] links not None):
    """Join the components of both ends of each link (a << 32 | b) in place; return how many joins it took.

    parent: uint32, shape (n,), parent[i] <= i; np.arange(n) to begin with. The smaller root wins, so a root
    is the first row of its component. IndexError for a row that is not in parent: nothing changed then.
    """
    cdef int64_t i, m = links.shape[0]
    cdef uint64_t n = <uint64_t>parent.shape[0], largest = 0, joined = 0
    with nogil:
        for i in range(m):
            largest = max(largest, max(links[i] >> 32, links[i] & 0xffffffffu))
    if m and largest >= n:
        raise IndexError(f"a link names row {largest}, but there are {n} rows")
    cdef int one = 0
    with nogil:
        for i in range(m):
            one = si_join(&parent[0], <uint32_t>(links[i] >> 32), <uint32_t>links[i])
            if one < 0:
                break
            joined += <uint64_t>one
    if one < 0:
        raise ValueError(f"a parent of row {links[i] >> 32} or {links[i] & 0xffffffffu} is above its row")
    return joined


def flatten_components(uint32_t[::1] parent not None):
    """Point every row at the first row of its component, in place: parent becomes the labels."""
    cdef int64_t bad = -1
    if parent.shape[0]:
        with nogil:
            bad = si_flatten(&parent[0], parent.shape[0])
    if bad >= 0:
        raise ValueError(f"parent[{bad}] is {parent[bad]}: a parent is never above its row")


def mark_rows(uint8_t[::1] bits not None, const uint32_t[::1] rows not None):
    """Set bit row % 8 of byte row // 8 of each row, in place. IndexError for a row beyond the bits."""
    cdef int64_t i, m = rows.shape[0]
    cdef uint32_t largest = 0
    for i in range(m):
        largest = max(largest, rows[i])
    if m and largest >= 8 * bits.shape[0]:
        raise IndexError(f"row {largest} is beyond {8 * bits.shape[0]} bits")
    with nogil:
        for i in range(m):
            bits[rows[i] >> 3] |= <uint8_t>(1 << (rows[i] & 7))


def shared_rows(const uint64_t[::1] postings not None, uint64_t open_bucket):
    """Return the rows (uint32) of ascending postings that share a bucket with a neighbour.

    open_bucket: bucket of the posting before the first, or any number above 2^32 - 1. The last posting always
    counts: its bucket may go on.
    """
    cdef int64_t i, n = postings.shape[0], m = 0
    rows = np.empty(n, np.uint32)
    cdef uint32_t[::1] out = rows
    cdef uint64_t before = open_bucket, here
    with nogil:
        for i in range(n):
            here = postings[i] >> 32
            if here == before or i + 1 == n or postings[i + 1] >> 32 == here:
                out[m] = <uint32_t>postings[i]
                m += 1
            before = here
    return rows[:m]
