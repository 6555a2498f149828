"""Postings of a write transaction that are not in its runs yet, for its own lookups.

A transaction of many small puts, each of which looks its key up, would write one delta block per put if
pending postings were flushed for each lookup. Small batches are searched here instead, in dictionaries.
"""

import numpy as np

from simindex.kernels import are_live
from simindex.types import I64, U32, U64

MOST_ROWS = 1024  # more pending rows than that are flushed before a lookup

_LOW = np.uint64(0xFFFFFFFF)


class Overlay:
    """Pending postings of one keyspace. rows: how many rows are pending."""

    __slots__ = ("_buckets", "_chunks", "rows")

    def __init__(self) -> None:
        self.rows = 0
        self._chunks: list[tuple[U64, int]] = []
        self._buckets: dict[int, list[int]] = {}

    def add(self, postings: U64, first_row: int, rows: int) -> None:
        """Add postings (bands, m) of local rows; they are indexed when a lookup comes."""
        self.rows += rows
        if postings.size and self.rows <= MOST_ROWS:
            self._chunks.append((postings, first_row))

    def clear(self) -> None:
        """Forget all: they were flushed."""
        self.rows = 0
        self._chunks.clear()
        self._buckets.clear()

    def lookup(self, keys: U64, live: U64, found: tuple[I64, U32]) -> tuple[I64, U32]:
        """Return `found` with the pending live rows added; pending rows are higher than all found."""
        self._index()
        if not self._buckets:
            return found
        ptr, rows = found
        buckets = self._buckets
        result: list[U32] = []
        added = np.zeros(len(ptr), np.int64)
        for i, query in enumerate(keys.tolist()):
            result.append(rows[ptr[i] : ptr[i + 1]])
            mine: set[int] = set()
            for band, key in enumerate(query):
                mine.update(buckets.get(band << 32 | key >> 32, ()))
            if mine:
                new = np.array(sorted(mine), np.uint32)
                new = new[are_live(live, new)]
                result.append(new)
                added[i + 1] = len(new)
        return ptr + np.cumsum(added), np.concatenate(result) if result else rows

    def _index(self) -> None:
        for postings, first_row in self._chunks:
            for band, line in enumerate(postings.tolist()):
                for posting in line:
                    bucket = self._buckets.setdefault(band << 32 | posting >> 32, [])
                    bucket.append((posting & 0xFFFFFFFF) + first_row)
        self._chunks.clear()
