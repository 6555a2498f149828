"""Writing row-indexed data: full blocks at once, the tail with each commit.

A writer keeps its tail in memory of its own, where kernels can read it; a block that is full is put and never
written again. Tables are those of a write transaction's view, and are kept true.
"""

from typing import Any

import numpy as np

from simindex.errors import CorruptStore
from simindex.kernels import (
    address_of,
    clear_live,
    distinct,
    fill_heap,
    heap_is_sound,
    is_sealed,
    put_signatures,
    seal,
    set_live,
)
from simindex.store import layout
from simindex.store.addresses import BlockTable, HeapBlocks
from simindex.types import I64, U8, U32, Array, Packed

_KEEP_BYTES = 64 << 20  # blocks written by this transaction that stay at hand; more are read back when needed
_PADDING = 64  # kernels may load a whole vector at a row's end


def _sealed(what: str, value: memoryview | None, size: int | None = None) -> memoryview:
    """Return a stored block that a write takes over. CorruptStore unless it is as it was written: sealed
    anew, damage would look sound.
    """
    if value is None or len(value) < 16 or (size is not None and len(value) != size):
        found = "nothing" if value is None else f"{len(value)} bytes"
        raise CorruptStore(f"{what}: {found} stored, {size or 'more'} expected: run check")
    if not is_sealed(value):
        raise CorruptStore(f"{what}: its bytes contradict their checksum: run check")
    return value


class LiveBits:
    """The live bitmap of a write transaction: blocks are copied when first changed, and put by `flush`."""

    def __init__(self, raw: Any, collection: int, table: BlockTable) -> None:
        self._raw = raw
        self._collection = collection
        self.table = table
        self._mine: dict[int, Array] = {}

    def append(self, first_row: int, n: int) -> None:
        """Rows first_row .. first_row + n - 1 live from now on."""
        last = (first_row + n - 1) // layout.LIVE_ROWS
        self.table.resize(last + 1)
        for block in range(first_row // layout.LIVE_ROWS, last + 1):
            self._own(block)
        set_live(self.table.addresses, first_row, first_row + n)

    def remove(self, rows: U32) -> None:
        """These rows, which live, are dead from now on."""
        for block in distinct(rows // layout.LIVE_ROWS).tolist():
            self._own(block)
        clear_live(self.table.addresses, rows)

    def _own(self, block: int) -> None:
        if block in self._mine:
            return
        copy = np.zeros(layout.LIVE_BYTES + _PADDING, np.uint8)
        if self.table.addresses[block]:
            key = self.table.prefix + layout.BLOCK_SUFFIX.pack(block)
            value = self._raw.txn.get(key, db=self._raw.db(layout.LIVE))
            copy[: layout.LIVE_BYTES] = np.frombuffer(
                _sealed(f"live block {block}", value, layout.LIVE_BYTES), np.uint8
            )
        else:
            copy[:4] = np.frombuffer(layout.LIVE_MAGIC, np.uint8)
            copy[layout.LIVE_BLOCK_AT : layout.LIVE_HEADER].view("<u4")[:] = block, self._collection
        self._mine[block] = copy
        self.table.place(block, copy, address_of(copy))

    def flush(self, dead: list[int]) -> None:
        """Put the changed blocks; `dead` ones are deleted."""
        txn, db = self._raw.txn, self._raw.db(layout.LIVE)
        for block in dead:
            txn.delete(self.table.prefix + layout.BLOCK_SUFFIX.pack(block), db=db)
            self._mine.pop(block, None)
            self.table.drop(block)
        for block, bits in self._mine.items():
            value = bits[: layout.LIVE_BYTES]
            seal(value)
            txn.put(self.table.prefix + layout.BLOCK_SUFFIX.pack(block), value, db=db)


class SignatureTail:
    """Appends the signatures and states of one field."""

    def __init__(
        self, raw: Any, collection: int, number: int, width: int, rows: int, header: int, table: BlockTable,
        next_row: int,
    ) -> None:  # fmt: skip
        self._raw = raw
        self._fields = (width, rows, collection, number)
        self.width, self.rows, self.header = width, rows, header
        self.table = table
        self.first_tail = next_row // rows  # blocks below were whole when the transaction began
        self.table.volatile = self.first_tail
        self._block = self.first_tail
        self._filled = next_row % rows
        self._tail: Array | None = None
        self._written: list[int] = []
        self._dirty = False

    def append(self, signatures: U8, states: U8) -> None:
        """Append one row per state."""
        at, n = 0, len(states)
        while at < n:
            tail = self._open_tail()
            take = min(n - at, self.rows - self._filled)
            stop = at + take
            put_signatures(tail, self.header, self.width, self._filled, signatures[at:stop], states[at:stop])
            self._filled += take
            self._dirty = True
            at = stop
            if self._filled == self.rows:
                self._put(self._block, tail)
                self._written.append(self._block)
                self._block += 1
                self._filled, self._tail, self._dirty = 0, None, False
        if len(self._written) * self.rows * self.width > _KEEP_BYTES:
            for block in self._written:
                self.table.forget(block)
            self._written.clear()

    def flush(self) -> None:
        """Put the tail."""
        if self._dirty and self._tail is not None:
            self._put(self._block, self._tail)
            self._dirty = False

    @property
    def block(self) -> int:
        """The tail's number: blocks below are whole."""
        return self._block

    def _open_tail(self) -> Array:
        if self._tail is None:
            tail = np.empty(self.header + self.rows * self.width + _PADDING, np.uint8)
            tail[: self.header] = 0
            if self._filled:
                key = self.table.prefix + layout.BLOCK_SUFFIX.pack(self._block)
                value = self._raw.txn.get(key, db=self._raw.db(layout.SIGNATURES))
                size = self.header + self._filled * self.width
                value = _sealed(f"signature block {self._block}", value, size)
                tail[:size] = np.frombuffer(value, np.uint8)
            self._tail = tail
            self.table.resize(self._block + 1)
            self.table.place(self._block, tail, address_of(tail))
        return self._tail

    def _put(self, block: int, tail: Array) -> None:
        width, rows, collection, number = self._fields
        value = tail[: self.header + self._filled * width]
        layout.SIGNATURES_HEADER.pack_into(
            value.data, 0, layout.SIGNATURES_MAGIC, 0, block, self._filled, width, rows, collection, number
        )
        seal(value)
        key = self.table.prefix + layout.BLOCK_SUFFIX.pack(block)
        self._raw.txn.put(key, value, db=self._raw.db(layout.SIGNATURES))


class HeapTail:
    """Appends values of any length: records, or the originals of one field.

    Closed blocks fill whole pages as nearly as their values allow; what is left is a tail of a few pages at
    most.
    """

    def __init__(
        self,
        raw: Any,
        db: str,
        collection: int,
        number: int,
        most: int,
        tail: int,
        table: HeapBlocks,
        next_row: int,
    ) -> None:
        self._raw = raw
        self.db = db
        self._fields = (collection, number)
        self._most, self._tail_bytes = most, tail
        self.table = table
        self._first, self._data, self._offsets = next_row, np.empty(0, np.uint8), np.zeros(1, np.int64)
        self._dirty = False
        self._written: dict[int, int] = {}  # first row -> bytes of closed blocks at hand
        self.first_tail = int(table.first_rows[-1]) if len(table.first_rows) else 0
        table.volatile = self.first_tail
        if len(table.first_rows):
            self._reopen(next_row)

    def _reopen(self, next_row: int) -> None:
        """Take the last block back as the tail, if it is small."""
        first = int(self.table.first_rows[-1])
        key = self.table.prefix + layout.BLOCK_SUFFIX.pack(first)
        value = self._raw.txn.get(key, db=self._raw.db(self.db))
        if value is None or not heap_is_sound(value):
            raise CorruptStore(
                f"last {self.db} block, of row {first}: it is not a block of values: run check"
            )
        count = int.from_bytes(value[layout.HEAP_COUNT_AT : layout.HEAP_COUNT_AT + 4], "little")
        if first + count != next_row:
            raise CorruptStore(
                f"last {self.db} block: rows {first} to {first + count}, not {next_row}: run check"
            )
        if len(value) <= self._tail_bytes:
            _sealed(f"last {self.db} block, of row {first}", value)
            start = layout.HEAP_HEADER + 4 * (count + 1)
            offsets = np.frombuffer(value, "<u4", count + 1, layout.HEAP_HEADER).astype(np.int64)
            self._first, self._offsets = first, offsets - start
            self._data = np.frombuffer(value, np.uint8, offset=start).copy()

    def append(self, values: Packed) -> None:
        """Append one row per value."""
        low, high = int(values.offsets[0]), int(values.offsets[-1])
        data: U8 = np.concatenate([self._data, values.data[low:high]])
        offsets: I64 = np.concatenate([self._offsets, values.offsets[1:] + (len(self._data) - low)])
        sizes = offsets + 4 * np.arange(
            len(offsets)
        )  # a block of values i..j takes 36 + sizes[j] - sizes[i] bytes
        start, n = 0, len(offsets) - 1
        fixed = layout.HEAP_HEADER + 4
        while start < n:
            total = fixed + int(sizes[n] - sizes[start])
            if total <= self._tail_bytes:
                break
            limit = min(
                self._most,
                (total + layout.OVERFLOW_HEADER) // layout.PAGE * layout.PAGE - layout.OVERFLOW_HEADER,
            )
            limit = max(limit, self._tail_bytes)
            stop = int(np.searchsorted(sizes, sizes[start] + limit - fixed, side="right")) - 1
            stop = min(max(stop, start + 1), n)
            self._place(self._first + start, data, offsets, start, stop, put=True)
            start = stop
        self._first += start
        self._data, self._offsets = data[offsets[start] :], offsets[start:] - offsets[start]
        self._dirty = start < n
        if self._dirty:
            self._place(self._first, self._data, self._offsets, 0, n - start, put=False)
        if sum(self._written.values()) > _KEEP_BYTES:
            self._let_go()

    def _let_go(self) -> None:
        table = self.table
        for first in self._written:
            table.kept.pop(first, None)
        table.addresses[np.isin(table.first_rows, np.array(list(self._written), np.uint32))] = 0
        table.complete = False
        self._written.clear()

    def _place(self, first: int, data: U8, offsets: I64, start: int, stop: int, put: bool) -> None:
        """Build a block, make it readable, and put it unless it is the tail."""
        size = layout.HEAP_HEADER + 4 * (stop - start + 1) + int(offsets[stop] - offsets[start])
        block = np.empty(size + _PADDING, np.uint8)
        block[: layout.HEAP_HEADER] = 0
        value = block[:size]
        layout.HEAP_FIELDS.pack_into(value.data, 0, layout.HEAP_MAGIC, 0, first, stop - start, *self._fields)
        fill_heap(value, data, offsets, start, stop)
        table = self.table
        if not len(table.first_rows) or int(table.first_rows[-1]) != first:
            table.extend([first])
        table.addresses[-1] = address_of(block)
        table.kept[first] = block
        if put:
            self._put(first, value)
            self._written[first] = size

    def _put(self, first: int, value: Array) -> None:
        seal(value)
        key = self.table.prefix + layout.BLOCK_SUFFIX.pack(first)
        self._raw.txn.put(key, value, db=self._raw.db(self.db))

    def flush(self) -> None:
        """Put the tail."""
        if self._dirty:
            block = self.table.kept[self._first]
            self._put(self._first, block[: len(block) - _PADDING])
            self._dirty = False
