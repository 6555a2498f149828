"""A collection as one transaction sees it: rows by number, rows by bucket.

Addresses that these classes give out are good until the transaction ends (in a write transaction: until its
next append, remove or lookup). They never leave it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from simindex.kernels import (
    are_live,
    gather_signatures,
    heap_value,
    heap_values,
    list_live,
    missing_blocks,
    missing_heap_blocks,
)
from simindex.store import layout
from simindex.store.addresses import BlockTable, HeapBlocks
from simindex.store.collection import CollectionLayout, CollectionState
from simindex.store.view import CollectionView, missing_rows
from simindex.types import I64, U8, U32, U64, Packed

_STEP = 32 * layout.LIVE_ROWS  # rows per array of live_rows


class SignatureTable:
    """Signature blocks of one field, for the kernels that compare stored signatures.

    rows_per_block, header, width: as those kernels want them. `need` what you are going to read.
    """

    __slots__ = ("_blocks", "_raw", "header", "rows_per_block", "width")

    def __init__(self, raw: Any, blocks: BlockTable, rows_per_block: int, header: int, width: int) -> None:
        self._raw = raw
        self._blocks = blocks
        self.rows_per_block = rows_per_block
        self.header = header
        self.width = width

    @property
    def addresses(self) -> U64:
        """uint64, one per block; 0 = not fetched, or all its rows are dead."""
        return self._blocks.addresses

    def need(self, rows: U32) -> None:
        """Fetch the blocks of `rows`. Cost: half a microsecond, and one more per block not there yet."""
        raw = self._raw
        _ = raw.txn  # raises Closed after the end
        missing = missing_blocks(self._blocks.addresses, rows, self.rows_per_block)
        if missing:
            self._blocks.fetch(raw, missing)

    def need_all(self) -> None:
        """Fetch every block. Cost: about 2 microseconds per block not seen before, and reading it."""
        _ = self._raw.txn
        self._blocks.fetch_all(self._raw)

    def rows(self, rows: U32) -> tuple[U8, U8]:
        """Return (signatures uint8 (n, width), states uint8 (n,)) of `rows`, copied."""
        rows = np.ascontiguousarray(rows, np.uint32)
        self.need(rows)
        return gather_signatures(self._blocks.addresses, self.rows_per_block, self.header, self.width, rows)


class HeapTable:
    """Values of any length by row: the records, or the originals of one field."""

    __slots__ = ("_blocks", "_raw", "_what")

    def __init__(self, raw: Any, blocks: HeapBlocks, what: str) -> None:
        self._raw = raw
        self._blocks = blocks
        self._what = what

    @property
    def first_rows(self) -> U32:
        """uint32, ascending: the first row of each block."""
        return self._blocks.first_rows

    @property
    def addresses(self) -> U64:
        """uint64, one per block; 0 = not fetched."""
        return self._blocks.addresses

    def need(self, rows: U32) -> None:
        """Fetch the blocks of `rows`."""
        raw = self._raw
        _ = raw.txn
        blocks = self._blocks
        missing = missing_heap_blocks(blocks.first_rows, blocks.addresses, rows)
        if missing:
            blocks.fetch(raw, missing)

    def need_all(self) -> None:
        """Fetch every block."""
        _ = self._raw.txn
        self._blocks.fetch_all(self._raw)

    def value(self, row: int) -> bytes:
        """Return the value of one row, copied. CorruptStore when no block holds it."""
        self.need(np.array([row], np.uint32))
        value = heap_value(self._blocks.first_rows, self._blocks.addresses, row)
        if value is None:
            raise missing_rows(self._what, 1)
        return value

    def values(self, rows: U32) -> Packed:
        """Return the values of `rows`, copied into one buffer. CorruptStore when one is not there."""
        rows = np.ascontiguousarray(rows, np.uint32)
        self.need(rows)
        data, offsets, missing = heap_values(self._blocks.first_rows, self._blocks.addresses, rows)
        if missing:
            raise missing_rows(self._what, missing)
        return Packed(data, offsets)


class Table:
    """One collection, read-only. state: its counters as of this transaction; number: its collection
    number."""

    __slots__ = ("_raw", "_view", "number", "state")

    def __init__(self, raw: Any, view: CollectionView) -> None:
        self._raw = raw
        self._view = view
        self.number = view.number
        self.state: CollectionState = view.state

    @property
    def layout(self) -> CollectionLayout:
        """The layout that the table was opened with."""
        return self._view.layout

    @property
    def live(self) -> U64:
        """Addresses of the live bitmap's blocks of 32,512 rows: uint64, complete; 0 = no row of it lives."""
        raw = self._raw
        _ = raw.txn
        return self._view.live(raw).addresses

    @property
    def view(self) -> CollectionView:
        """What snapshots of one state share: the same object means the same rows at the same addresses."""
        return self._view

    def runs(self, number: int) -> U64:
        """Return the table that lookups of a field read (csrc/runlookup.h); it fills up with use."""
        return self._view.postings(self._raw, number).table

    def signatures(self, number: int) -> SignatureTable:
        """Return the signatures of field `number`."""
        field, rows_per_block, header = self._view.shapes[number]
        blocks = self._view.signatures(self._raw, number)
        return SignatureTable(self._raw, blocks, rows_per_block, header, field.width)

    @property
    def records(self) -> HeapTable:
        """The records, by row."""
        return HeapTable(self._raw, self._view.records(self._raw), "record")

    def originals(self, number: int) -> HeapTable:
        """Return the originals of field `number` by row; rows without one have an empty value."""
        if not self._view.shapes[number][0].originals:
            raise KeyError(f"field {number} keeps no originals")
        return HeapTable(self._raw, self._view.originals(self._raw, number), "original")

    def lookup(self, number: int, keys: U64) -> tuple[I64, U32]:
        """Return (ptr int64 (nq + 1,), rows uint32): the live rows that share a bucket with each query.

        keys: uint64, shape (nq, bands). Rows ascend within a query, each once.
        """
        bands = self._view.bands(number)
        if keys.ndim != 2 or keys.shape[1] != bands:
            raise ValueError(f"bucket keys of field {number} have shape {keys.shape}, not (n, {bands})")
        return self._lookup(number, keys)

    def lookup_keys(self, hashes: U64) -> tuple[I64, U32]:
        """Return (ptr, rows) as `lookup` does: live rows whose key's hash has the same upper 32 bits."""
        return self._lookup(layout.KEY_MAP, hashes.reshape(-1, 1))

    def _lookup(self, number: int, keys: U64) -> tuple[I64, U32]:
        raw = self._raw
        return self._view.postings(raw, number).lookup(raw.txn, keys, self.live)

    def bucket_postings(self, number: int, band: int) -> Iterator[U64]:
        """Yield all live postings of one band, ascending, as arrays of bounded size."""
        bands = self._view.bands(number)
        if not 0 <= band < bands:
            raise ValueError(f"band {band} is not in 0..{bands - 1}")
        raw = self._raw
        if band == 0 and self.state.next_row > 100_000:
            raw.read_ahead()
        return self._view.postings(raw, number).band(raw.txn, band, self.live)

    def are_live(self, rows: U32) -> npt.NDArray[np.bool_]:
        """Return bool, shape (n,): which of `rows` are live. Rows at or beyond next_row are an IndexError."""
        return are_live(self.live, np.ascontiguousarray(rows, np.uint32))

    def live_rows(self, start: int = 0) -> Iterator[U32]:
        """Yield the live rows from `start` on, ascending, in arrays of about a million."""
        for first in range(start, self.state.next_row, _STEP):
            rows = list_live(self.live, first, min(first + _STEP, self.state.next_row))
            if len(rows):
                yield rows
