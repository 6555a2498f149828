# cython: language_level=3
"""One query in one call: what a search does when everything that it reads was fetched before (csrc/search.h).
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free

cdef extern from "search.h" nogil:
    int FINE "SI_SEARCH_FINE"
    int MISSING "SI_SEARCH_MISSING"
    int MEMORY "SI_SEARCH_MEMORY"
    uint32_t SI_FASTSIM_MAX_K
    ctypedef struct si_heap:
        const uint32_t *first_rows
        const uint64_t *addresses
        int64_t n
    ctypedef struct si_field:
        const uint64_t *runs
        const uint64_t *live
        uint64_t live_blocks
        const uint64_t *blocks
        uint64_t n_blocks
        uint32_t rows_per_block, header, width, slot_bytes, k, bands, rows
        int is_exact
        si_heap originals
    ctypedef struct si_hit:
        uint32_t row, equal
        double score
    ctypedef struct si_record:
        uint8_t mark
        const uint8_t *key
        uint32_t key_length
        const uint8_t *attributes
        uint32_t attributes_length
    int si_find(const si_field *f, const uint64_t *hashes, size_t m, const uint8_t *signature, uint32_t least,
                double threshold, si_hit **out, int64_t *n_out)
    int si_stored_record(const uint32_t *first_rows, const uint64_t *addresses, int64_t blocks, uint32_t row,
                         si_record *out)
    uint64_t si_load_be64(const uint8_t *p)
    void si_search_select(int level)
    void si_fastsim_init()
    uint8_t U64 "SI_RECORD_U64"
    uint8_t STR "SI_RECORD_STR"
    uint8_t NIL "SI_RECORD_NIL"


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_search_select(level)


si_fastsim_init()


@cython.final
cdef class Finder:
    """One field of one collection as one transaction sees it, ready for single queries.

    Holds the address tables that it was made of, and reads through them: calls are valid only while that
    transaction, or one that sees the same state, is open. Thread-safe; releases the GIL.

    runs: the lookup table of csrc/runlookup.h. live, blocks: addresses of the live bitmap and of signature
    blocks. record_rows, record_blocks and original_rows, original_blocks: heap tables (first rows,
    addresses); without originals nothing is verified.
    """

    cdef const uint64_t[::1] _runs, _live, _blocks, _original_blocks, _record_blocks
    cdef const uint32_t[::1] _original_rows, _record_rows
    cdef si_field _field

    def __init__(self, const uint64_t[::1] runs not None, const uint64_t[::1] live not None,
                 const uint64_t[::1] blocks not None, uint32_t rows_per_block, uint32_t header,
                 uint32_t width, uint32_t slot_bytes, uint32_t bands, uint32_t rows,
                 const uint32_t[::1] record_rows not None,
                 const uint64_t[::1] record_blocks not None, const uint32_t[::1] original_rows=None,
                 const uint64_t[::1] original_blocks=None):
        if runs.shape[0] < 4 or runs[0] != bands or <uint64_t>runs.shape[0] != (
                4 + runs[0] + 1 + 3 * runs[1] + 5 * runs[2]):
            raise ValueError(f"the table of runs does not fit {bands} bands")
        if slot_bytes not in (1, 2, 4) or width % slot_bytes \
                or not 1 <= width // slot_bytes <= SI_FASTSIM_MAX_K:
            raise ValueError(f"{width} bytes do not hold slots of {slot_bytes}")
        if rows_per_block < 1 or bands < 1 or <uint64_t>bands * rows > width // slot_bytes:
            raise ValueError(f"{bands} bands of {rows} rows in {width // slot_bytes} slots")
        if record_rows.shape[0] != record_blocks.shape[0] or record_rows.shape[0] < 1:
            raise ValueError(f"{record_rows.shape[0]} first rows, {record_blocks.shape[0]} blocks of records")
        if live.shape[0] < 1 or blocks.shape[0] < 1:
            raise ValueError("a collection without rows")
        self._runs, self._live, self._blocks = runs, live, blocks
        self._record_rows, self._record_blocks = record_rows, record_blocks
        self._field.runs = &runs[0]
        self._field.live = &live[0]
        self._field.live_blocks = <uint64_t>live.shape[0]
        self._field.blocks = &blocks[0]
        self._field.n_blocks = <uint64_t>blocks.shape[0]
        self._field.rows_per_block, self._field.header = rows_per_block, header
        self._field.width, self._field.slot_bytes, self._field.k = width, slot_bytes, width // slot_bytes
        self._field.bands, self._field.rows = bands, rows
        self._field.is_exact = original_rows is not None
        if original_rows is not None:
            if original_blocks is None or original_rows.shape[0] != original_blocks.shape[0]:
                raise ValueError("first rows and addresses of originals differ in length")
            self._original_rows, self._original_blocks = original_rows, original_blocks
            self._field.originals.n = original_rows.shape[0]
            if original_rows.shape[0]:
                self._field.originals.first_rows = &original_rows[0]
                self._field.originals.addresses = &original_blocks[0]

    def find(self, const uint64_t[::1] hashes not None, uint32_t least, double threshold,
             const uint8_t[::1] signature=None):
        """Return [(key, score, equal slots, attributes)] of all hits, in the order of their rows.

        hashes: the query's features (fastsim/1), at least one; or a ready signature, then hashes are not
        looked at (not with originals). least: fewest equal slots. threshold: least Jaccard, where there are
        originals; else score is 0. attributes: msgpack bytes, None for none. Returns None if something that
        was needed is not fetched, or cannot be read: then the long way answers, or says what is wrong.
        """
        cdef si_hit *hits = NULL
        cdef int64_t n = 0, i
        cdef int status
        cdef size_t m = <size_t>hashes.shape[0]
        cdef const uint64_t *h = &hashes[0] if m else NULL
        cdef const uint8_t *ready = NULL
        cdef si_record record
        cdef object key, attributes
        if signature is not None:
            if self._field.is_exact or signature.shape[0] != self._field.width:
                raise ValueError(f"a signature of {signature.shape[0]} bytes for this field")
            ready = &signature[0]
        elif m == 0:
            raise ValueError("a query without features matches nothing")
        with nogil:
            status = si_find(&self._field, h, m, ready, least, threshold, &hits, &n)
        if status == MEMORY:
            raise MemoryError("searching")
        if status != FINE:
            return None
        found = []
        try:
            for i in range(n):
                if not si_stored_record(&self._record_rows[0], &self._record_blocks[0],
                                        self._record_rows.shape[0], hits[i].row, &record):
                    return None
                if record.mark == U64:
                    key = si_load_be64(record.key)
                elif record.mark == STR:
                    key = PyUnicode_DecodeUTF8(<const char *>record.key, record.key_length, "surrogatepass")
                else:
                    key = PyBytes_FromStringAndSize(<const char *>record.key, record.key_length)
                attributes = None
                if record.attributes_length != 1 or record.attributes[0] != NIL:
                    attributes = PyBytes_FromStringAndSize(<const char *>record.attributes,
                                                           record.attributes_length)
                found.append((key, hits[i].score, hits[i].equal, attributes))
        finally:
            free(hits)
        return found
