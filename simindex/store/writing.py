"""The write side of a collection's table: rows in, rows out, all in memory and blocks until the commit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simindex.errors import WriteError
from simindex.kernels import are_live, count_live, distinct, list_live
from simindex.store import layout
from simindex.store.changes import ChangeLog
from simindex.store.overlay import MOST_ROWS, Overlay
from simindex.store.postings import PostingsWriter
from simindex.store.table import Table
from simindex.store.tails import HeapTail, LiveBits, SignatureTail
from simindex.store.view import CollectionView
from simindex.types import I64, U8, U32, U64, Packed

_REGION = 8192  # rows; the grain in which sparse regions are looked for: about a block of records
_FEW = 256  # fewer removals than that are not worth a look
_CROWDED = 0.7  # keeps the file below 1.3 times its size when random rows are replaced again and again
_KEY_BITS = np.uint64(0xFFFFFFFF00000000)


@dataclass(frozen=True, slots=True)
class FieldRows:
    """One field of n rows to append.

    signatures: uint8 (n, width); states: uint8 (n,); postings: uint64 (bands, m), sorted within each band,
    key bits in the upper half and the row's number within this batch (0 to n - 1) in the lower; originals: n
    byte strings, or None when the field keeps none.
    """

    signatures: U8
    states: U8
    postings: U64
    originals: Packed | None = None


class WriteTable(Table):
    """A collection inside a write transaction: sees its own changes; nothing is stored before the commit."""

    __slots__ = (
        "_broken", "_bulk", "_heaps", "_live_bits", "_merged", "_overlays", "_removed", "_signatures",
        "_start", "_writers",
    )  # fmt: skip

    def __init__(self, raw: Any, view: CollectionView, bulk: bool) -> None:
        super().__init__(raw, view)
        self._bulk = bulk
        self._broken = False  # an append or remove began and did not end
        self._merged = False  # postings were merged beyond what the commit does by itself
        self._start = self.state.copy()
        self._live_bits: LiveBits | None = None
        self._signatures: dict[int, SignatureTail] = {}
        self._heaps: dict[int, HeapTail] = {}
        self._writers: dict[int, PostingsWriter] = {}
        self._overlays: dict[int, Overlay] = {}
        self._removed: list[U32] = []

    # Rows in and out
    # -------------------------------------------------------------------------------------------

    def append(self, n: int, key_hashes: U64, records: Packed, fields: Mapping[int, FieldRows]) -> int:
        """Append n rows, live from now on, and return the first one's id.

        key_hashes: uint64 (n,), of which the upper 32 bits are kept; records: n byte strings; fields: one
        entry per field of the layout. ValueError when a shape is wrong, WriteError when the row ids are used
        up, QuotaReached or DiskFull when there is no room; then nothing is appended.
        """
        self._check_append(n, key_hashes, records, fields)
        first = self.state.next_row
        if n == 0:
            return first
        if first + n - 1 > layout.MAX_ROW:
            raise WriteError(
                f"collection {self.number} used {first} of {layout.MAX_ROW + 1} row ids, no room for {n}: "
                "compact gives used ones back"
            )
        self._raw.reserve(_size(records, fields))
        self._broken = True
        self._bits().append(first, n)
        self._heap(layout.HEAP_RECORDS).append(records)
        for number, rows in fields.items():
            self._signature_tail(number).append(rows.signatures, rows.states)
            if rows.originals is not None:
                self._heap(number).append(rows.originals)
            self._add_postings(number, rows.postings, first, n)
        self._add_postings(layout.KEY_MAP, _key_postings(key_hashes), first, n)
        self.state.next_row += n
        self.state.live += n
        self._broken = False
        return first

    def _check_append(
        self, n: int, key_hashes: U64, records: Packed, fields: Mapping[int, FieldRows]
    ) -> None:
        _ = self._raw.txn
        if len(key_hashes) != n or len(records) != n:
            raise ValueError(f"{n} rows, but {len(key_hashes)} key hashes and {len(records)} records")
        if set(fields) != set(self._view.shapes):
            raise ValueError(f"fields {sorted(fields)} given, the layout has {sorted(self._view.shapes)}")
        _check_values("records", records)
        for number, rows in fields.items():
            field = self._view.shapes[number][0]
            if rows.signatures.shape != (n, field.width) or rows.states.shape != (n,):
                raise ValueError(
                    f"field {number}: signatures of shape {rows.signatures.shape} and states of shape "
                    f"{rows.states.shape} for {n} rows of {field.width} bytes"
                )
            if rows.postings.ndim != 2 or rows.postings.shape[0] != field.bands:
                raise ValueError(
                    f"field {number}: postings of shape {rows.postings.shape} for {field.bands} bands"
                )
            if (rows.originals is not None) != field.originals:
                raise ValueError(
                    f"field {number}: originals {'missing' if field.originals else 'not asked for'}"
                )
            if rows.originals is not None:
                if len(rows.originals) != n:
                    raise ValueError(f"field {number}: {len(rows.originals)} originals for {n} rows")
                _check_values(f"originals of field {number}", rows.originals)

    def remove(self, rows: U32) -> None:
        """Make `rows` dead. ValueError when one repeats or is not live; then nothing is removed."""
        _ = self._raw.txn
        rows = np.ascontiguousarray(rows, np.uint32)
        if not len(rows):
            return
        ordered = distinct(rows)
        if len(ordered) != len(rows):
            raise ValueError(f"{len(rows) - len(ordered)} of {len(rows)} rows to remove repeat")
        dead = ordered if int(ordered[-1]) >= self.state.next_row else ordered[~are_live(self.live, ordered)]
        if len(dead):
            raise ValueError(
                f"{len(dead)} of {len(rows)} rows to remove are not live, for example {int(dead[-1])}"
            )
        self._broken = True
        self._bits().remove(ordered)
        self._removed.append(ordered)
        self.state.live -= len(ordered)
        self.state.examined += len(ordered)
        self._broken = False

    def count(self, name: str, delta: int) -> None:
        """Add `delta` to the counter `name`."""
        self.state.counters[name] = self.state.counters.get(name, 0) + delta

    def take_sequence(self, n: int) -> int:
        """Reserve n consecutive sequence numbers and return the first."""
        first = self.state.sequence
        self.state.sequence += n
        return first

    def sparse_rows(self, limit: int | None = None) -> U32:
        """Return live rows whose neighbourhood is mostly dead, for appending anew and removing here.

        limit: the most to return; None = as many as this transaction removed, at least 256. Usually returns
        nothing, at once: looks only when 1/64 of the rows died since.

        Blocks go when their last row dies; so the emptiest regions of 8,192 rows are emptied, one after the
        other. A region is sparse below a quarter live, and below _CROWDED when less than three quarters of
        the rows in all regions live.
        """
        if limit is None:
            limit = max(sum(map(len, self._removed)), _FEW)
        state = self.state
        if limit <= 0 or state.examined * 64 < state.live or state.examined < _FEW:
            return np.empty(0, np.uint32)
        end = (
            min(self._start.next_row, state.next_row) // _REGION
        )  # this transaction's rows stay where they are
        starts = np.arange(end, dtype=np.int64) * _REGION
        counts = count_live(self.live, starts, starts + _REGION)
        held = int(np.count_nonzero(counts))
        bar = _REGION // 4 if 4 * int(counts.sum()) >= 3 * _REGION * held else int(_REGION * _CROWDED)
        sparse = np.flatnonzero((counts > 0) & (counts < bar))
        sparse = sparse[np.argsort(counts[sparse], kind="stable")]
        if int(counts[sparse].sum()) <= limit:
            state.examined = 0
        rows: list[U32] = []
        for region in sparse.tolist():
            rows.append(list_live(self.live, region * _REGION, (region + 1) * _REGION)[:limit])
            limit -= len(rows[-1])
            if limit <= 0:
                break
        return np.sort(np.concatenate(rows)) if rows else np.empty(0, np.uint32)

    # Lookups see what is pending
    # -------------------------------------------------------------------------------

    def _lookup(self, number: int, keys: U64) -> tuple[I64, U32]:
        overlay = self._overlays.get(number)
        if overlay is None or overlay.rows == 0:
            return super()._lookup(number, keys)
        if overlay.rows > MOST_ROWS:
            self._flush_postings(number)
            return super()._lookup(number, keys)
        keys = np.ascontiguousarray(keys, np.uint64)
        return overlay.lookup(keys, self.live, super()._lookup(number, keys))

    def bucket_postings(self, number: int, band: int) -> Iterator[U64]:
        """Yield all live postings of one band, ascending, as arrays of bounded size."""
        self._flush_postings(number)
        return super().bucket_postings(number, band)

    def _add_postings(self, number: int, postings: U64, first_row: int, rows: int) -> None:
        self._writer(number).append(postings, first_row)
        overlay = self._overlays.get(number)
        if overlay is None:
            overlay = self._overlays[number] = Overlay()
        overlay.add(postings, first_row, rows)

    def finish_merges(self, budget: int | None = None, single: bool = False) -> bool:
        """Finish open merges, or merge each keyspace of postings into one run; return whether all is done.

        budget: the most postings to read in each keyspace, about; None = no limit.
        """
        done = True
        for number in (*self._view.shapes, layout.KEY_MAP):
            self._flush_postings(number)
            done = self._writer(number).finish(self.live, budget, single) and done
            self._view.replace_postings(number, None)
        self._merged = True
        return done

    def _flush_postings(self, number: int) -> None:
        writer = self._writers.get(number)
        if writer is not None and writer.pending:
            writer.flush()
            self._view.replace_postings(number, None)
            self._overlays[number].clear()

    # Writers, made when first needed
    # ---------------------------------------------------------------------------

    def _bits(self) -> LiveBits:
        if self._live_bits is None:
            self._live_bits = LiveBits(self._raw, self.number, self._view.live(self._raw))
        return self._live_bits

    def _signature_tail(self, number: int) -> SignatureTail:
        tail = self._signatures.get(number)
        if tail is None:
            field, rows, header = self._view.shapes[number]
            table = self._view.signatures(self._raw, number)
            tail = SignatureTail(
                self._raw, self.number, number, field.width, rows, header, table, self._start.next_row
            )  # fmt: skip
            self._signatures[number] = tail
        return tail

    def _heap(self, number: int) -> HeapTail:
        heap = self._heaps.get(number)
        if heap is None:
            g = self._view.layout.geometry
            if number == layout.HEAP_RECORDS:
                db, table = layout.RECORDS, self._view.records(self._raw)
            else:
                db, table = layout.ORIGINALS, self._view.originals(self._raw, number)
            heap = HeapTail(
                self._raw, db, self.number, number, g.heap, g.tail, table, self._start.next_row
            )  # fmt: skip
            self._heaps[number] = heap
        return heap

    def _writer(self, number: int) -> PostingsWriter:
        writer = self._writers.get(number)
        if writer is None:
            prefix = layout.field_prefix(self.number, number)
            writer = PostingsWriter(
                self._raw.txn, self._raw.db(layout.POSTINGS), prefix, self._view.bands(number)
            )  # fmt: skip
            self._writers[number] = writer
        return writer

    # Commit
    # ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is pending into the transaction: blocks, postings, merges, the state."""
        state = self.state
        if self._broken:
            raise WriteError(
                f"collection {self.number}: an append or remove failed half-way: nothing is stored"
            )
        if self._unchanged():
            return
        if state.change >= layout.MAX_CHANGES:
            raise WriteError(f"collection {self.number} was changed {state.change} times: compact it")
        state.change += 1
        for tail in self._signatures.values():
            tail.flush()
        for heap in self._heaps.values():
            heap.flush()
        logged = self._free_dead_blocks()
        for number, writer in self._writers.items():
            self._flush_postings(number)
            if not self._bulk:
                writer.merge(None if state.live == state.next_row else self.live)
            writer.save()
        txn, meta = self._raw.txn, self._raw.db(layout.META)
        prefix = layout.collection_prefix(self.number)
        if logged:
            key = layout.CHANGES + prefix
            log = ChangeLog.decode(txn.get(key, db=meta)).add(state.change, logged)
            txn.put(key, log.encode(), db=meta)
            state.logged = state.change
        txn.put(layout.STATE + prefix, state.encode(), db=meta)
        self._start = state.copy()
        self._removed.clear()
        self._merged = False

    def _unchanged(self) -> bool:
        a, b = self.state, self._start
        same = (a.next_row, a.live, a.sequence, a.counters) == (b.next_row, b.live, b.sequence, b.counters)
        return same and not self._removed and not self._merged

    def _free_dead_blocks(self) -> dict[int, list[int]]:
        """Delete blocks without a live row; return what goes into the change log."""
        if not self._removed and self._start.live == self._start.next_row:
            if self._live_bits is not None:
                self._live_bits.flush([])
            return {}
        rows = distinct(np.concatenate(self._removed)) if self._removed else np.empty(0, np.uint32)
        logged: dict[int, list[int]] = {}
        next_row = self.state.next_row
        for number, tail in self._all_signature_tails(rows):
            shape = self._view.shapes[number]
            dead = self._dead(rows, shape[1], tail.first_tail, tail.block)
            self._delete(layout.SIGNATURES, tail.table.prefix, dead)
            for block in dead:
                tail.table.drop(block)
            _note(logged, layout.SPACE_SIGNATURES + number, dead, tail.first_tail)
        for number, heap in self._all_heaps(rows):
            space = layout.SPACE_RECORDS if number == layout.HEAP_RECORDS else layout.SPACE_ORIGINALS + number
            firsts = self._free_heap(rows, heap)
            _note(logged, space, firsts, heap.first_tail)
        first_tail = self._start.next_row // layout.LIVE_ROWS
        if self._live_bits is not None:
            dead = self._dead(rows, layout.LIVE_ROWS, first_tail, next_row // layout.LIVE_ROWS)
            self._live_bits.flush(dead)
            touched = distinct(rows // layout.LIVE_ROWS).tolist()
            _note(logged, layout.SPACE_LIVE, touched, first_tail)
        return logged

    def _all_signature_tails(self, rows: U32) -> list[tuple[int, SignatureTail]]:
        if len(rows):
            for number in self._view.shapes:
                self._signature_tail(number)
        return list(self._signatures.items())

    def _all_heaps(self, rows: U32) -> list[tuple[int, HeapTail]]:
        if len(rows):
            self._heap(layout.HEAP_RECORDS)
            for number, (field, _, _) in self._view.shapes.items():
                if field.originals:
                    self._heap(number)
        return list(self._heaps.items())

    def _dead(self, rows: U32, rows_per_block: int, first_tail: int, tail: int) -> list[int]:
        """Return the whole blocks without a live row, of those that lost one now, or were the tail before."""
        blocks = distinct(np.append(rows // rows_per_block, first_tail).astype(np.int64))
        blocks = blocks[blocks < tail]
        counts = count_live(self.live, blocks * rows_per_block, (blocks + 1) * rows_per_block)
        return [int(block) for block in blocks[counts == 0]]

    def _free_heap(self, rows: U32, heap: HeapTail) -> list[int]:
        table = heap.table
        firsts = table.first_rows
        if len(firsts) < 2:
            return []
        touched = np.append(rows, np.uint32(heap.first_tail))
        indexes = distinct(np.searchsorted(firsts, touched, side="right") - 1)
        indexes = indexes[(indexes >= 0) & (indexes < len(firsts) - 1)]
        starts = firsts[indexes].astype(np.int64)
        stops = firsts[indexes + 1].astype(np.int64)
        gone = indexes[count_live(self.live, starts, stops) == 0]
        dead: list[int] = firsts[gone].tolist()
        if dead:
            self._delete(heap.db, table.prefix, dead)
            table.first_rows = np.delete(firsts, gone)
            table.addresses = np.delete(table.addresses, gone)
            for first in dead:
                table.kept.pop(first, None)
        return dead

    def _delete(self, db: str, prefix: bytes, blocks: list[int]) -> None:
        txn, handle = self._raw.txn, self._raw.db(db)
        for block in blocks:
            txn.delete(prefix + layout.BLOCK_SUFFIX.pack(block), db=handle)


def _note(logged: dict[int, list[int]], space: int, blocks: list[int], first_tail: int) -> None:
    """Log what readers of earlier transactions may hold: whole blocks of then."""
    known = [block for block in blocks if block < first_tail]
    if known:
        logged[space] = known


def _key_postings(hashes: U64) -> U64:
    postings = (np.ascontiguousarray(hashes, np.uint64) & _KEY_BITS) | np.arange(len(hashes), dtype=np.uint64)
    postings.sort()
    return postings.reshape(1, -1)


def _size(records: Packed, fields: Mapping[int, FieldRows]) -> int:
    """Return about how many bytes of the file new rows take."""
    size = len(records) * 24 + int(records.offsets[-1] - records.offsets[0])
    for rows in fields.values():
        size += rows.signatures.nbytes + rows.postings.nbytes
        if rows.originals is not None:
            size += int(rows.originals.offsets[-1] - rows.originals.offsets[0])
    return size


def _check_values(what: str, values: Packed) -> None:
    offsets, size = values.offsets, len(values.data)
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"{what}: offsets descend")
    if offsets[0] < 0 or offsets[-1] > size:
        raise ValueError(f"{what}: offsets {offsets[0]} to {offsets[-1]} of {size} bytes")
    if size > layout.MAX_VALUE and (offsets[1:] - offsets[:-1]).max() > layout.MAX_VALUE:
        raise ValueError(f"{what}: a value has more than the {layout.MAX_VALUE} bytes allowed")
