"""Writing prepared items into a table: new rows, old rows removed, nothing written for what is unchanged."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simindex import kernels
from simindex.errors import CorruptStore, DiskFull, KeyExists, MapFull, QuotaReached, shown
from simindex.index.keys import Keys, key_column
from simindex.index.prepare import Prepared, PreparedField
from simindex.index.records import keys_of, stamp
from simindex.index.rows import MISSING, rows_of
from simindex.index.schema import Schema
from simindex.store import FieldRows
from simindex.types import EMPTY, I64, SHORTENED, U32, Packed

Mode = Literal["put", "insert", "new"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a put did. rows: the row of each given item now, int64 (n,)."""

    inserted: int
    replaced: int
    unchanged: int
    rows: I64


class Writer:
    """Writes prepared items into one table of a write transaction. Not for use by two threads."""

    def __init__(self, table: Any, schema: Schema) -> None:
        self.table = table
        self.schema = schema

    def put(self, prepared: Prepared, mode: Mode = "put") -> Outcome:
        """Write n items; of equal keys the last one stays.

        mode "put": replace what is stored under a key, write nothing where it is the same. "insert": raise
        KeyExists if a key is stored or given twice; nothing is written then. "new": the caller knows that all
        keys are new and different (no lookup).
        """
        n = len(prepared)
        if mode == "new":
            return Outcome(n, 0, 0, self._append(prepared) + np.arange(n, dtype=np.int64))
        last = last_of_equal(prepared.keys)
        if mode == "insert":
            if len(last) < n:
                again = prepared.keys.key(int(_first_repeat(prepared.keys)))
                raise KeyExists(f"key {shown(again)} is given twice in one insert")
            stored = rows_of(self.table, prepared.keys, prepared.records)
            if (stored != MISSING).any():
                there = prepared.keys.key(int(np.argmax(stored != MISSING)))
                raise KeyExists(f"key {shown(there)} exists already: use put to replace it")
            return Outcome(n, 0, 0, self._append(prepared) + np.arange(n, dtype=np.int64))
        kept = prepared if len(last) == n else prepared.take(self.schema, last)
        stored = rows_of(self.table, kept.keys, kept.records)
        rows, counts = self._put_kept(kept, stored)
        if len(last) < n:
            rows = _rows_of_all(prepared.keys, last, rows)
        inserted, replaced, unchanged = counts
        return Outcome(inserted, replaced + n - len(last), unchanged, rows)

    def _put_kept(self, kept: Prepared, stored: I64) -> tuple[I64, tuple[int, int, int]]:
        there = np.nonzero(stored != MISSING)[0]
        if len(there) == 0:
            rows = self._append(kept) + np.arange(len(kept), dtype=np.int64)
            return rows, (len(kept), 0, 0)
        same = self._same(kept, there, stored[there].astype(np.uint32))
        rows = stored.copy()
        writes = np.ones(len(kept), bool)
        writes[there[same]] = False
        self.remove(stored[there[~same]].astype(np.uint32))
        index = np.nonzero(writes)[0]
        if len(index):
            first = self._append(kept.take(self.schema, index))
            rows[index] = first + np.arange(len(index), dtype=np.int64)
        replaced, unchanged = int((~same).sum()), int(same.sum())
        return rows, (len(index) - replaced, replaced, unchanged)

    def _append(self, prepared: Prepared) -> int:
        if len(prepared) == 0:
            return 0
        stamp(prepared.records, self.table.take_sequence(len(prepared)))
        first = self._append_rows(len(prepared), prepared.keys.hashes, prepared.records, prepared.fields)
        for name, part in prepared.fields.items():
            self._count_states(name, part.states, 1)
        return first

    def _append_rows(self, n: int, hashes: Any, records: Packed, fields: dict[str, PreparedField]) -> int:
        numbers = self.schema.numbers
        rows = {
            numbers[name]: FieldRows(part.signatures, part.states, part.postings, part.originals)
            for name, part in fields.items()
        }
        return int(self.table.append(n, hashes, records, rows))

    def remove(self, rows: U32) -> None:
        """Remove live rows, their counts included."""
        if len(rows) == 0:
            return
        for name, number in self.schema.numbers.items():
            _, states = gather(self.table, number, rows)
            self._count_states(name, states, -1)
        self.table.remove(rows)

    def _count_states(self, name: str, states: Any, sign: int) -> None:
        number = self.schema.numbers[name]
        for label, state in (("empty", EMPTY), ("shortened", SHORTENED)):
            count = int((states == state).sum())
            if count:
                self.table.count(f"{label}:{number}", sign * count)

    def _same(self, kept: Prepared, index: I64, rows: U32) -> Any:
        """Return bool: which of the items at `index` equal what is stored in `rows`, in all but the sequence
        number.
        """
        heap = self.table.records
        records = kept.records
        heap.need(rows)
        try:
            same = kernels.match_records(
                heap.first_rows, heap.addresses, rows, records.data, records.offsets, index, False
            ).view(bool)
        except ValueError as error:
            raise CorruptStore(str(error)) from error
        for name, part in kept.fields.items():
            number = self.schema.numbers[name]
            signatures, states = gather(self.table, number, rows)
            same = same & (states == part.states[index]) & (signatures == part.signatures[index]).all(axis=1)
            if part.originals is not None and same.any():
                likely = np.nonzero(same)[0]
                stored = self.table.originals(number).values(rows[likely])
                same[likely] = _equal_strings(stored, part.originals, index[likely])
        return same

    def move_sparse_rows(self, limit: int | None = None) -> int:
        """Append the live rows of nearly dead blocks anew, so that their space comes back; return how many.

        Postings are made anew from the signatures; nothing about the items changes, their sequence numbers
        included. limit: the most rows to move; None = as many as were removed.
        """
        rows = self.table.sparse_rows(limit)
        if len(rows) == 0:
            return 0
        copied = self._read(self.table, rows)
        try:
            self._append_rows(len(rows), *copied)
        except (QuotaReached, DiskFull, MapFull):
            return (
                0  # refused before anything was appended: a delete in a full store must not fail for tidiness
            )
        self.table.remove(rows)
        self.table.count("moved", len(rows))
        return len(rows)

    def copy(self, source: Any, rows: U32) -> None:
        """Append rows of another table of the same schema, as they are. Counters are left to the caller."""
        self._append_rows(len(rows), *self._read(source, rows))

    def _read(self, table: Any, rows: U32) -> tuple[Any, Packed, dict[str, PreparedField]]:
        """Return (key hashes, records, fields) of rows, ready to be appended."""
        records = table.records.values(rows)
        fields: dict[str, PreparedField] = {}
        for name, number in self.schema.numbers.items():
            field = self.schema.fields[name]
            signatures, states = gather(table, number, rows)
            originals = table.originals(number).values(rows) if field.is_exact else None
            postings = field.scheme.postings(signatures, states)
            fields[name] = PreparedField(signatures, states, postings, originals)
        return _hashes_of(self.schema, table, rows), records, fields


def gather(table: Any, number: int, rows: U32) -> tuple[Any, Any]:
    """Return (signatures, states) of rows, copied."""
    signatures = table.signatures(number)
    signatures.need(rows)
    return kernels.gather_signatures(
        signatures.addresses, signatures.rows_per_block, signatures.header, signatures.width, rows
    )


def _hashes_of(schema: Schema, table: Any, rows: U32) -> Any:
    keys = keys_of(table, schema.key, rows)
    return key_column(schema.key, keys).hashes


def _equal_strings(stored: Packed, given: Packed, index: I64) -> Any:
    lengths = np.diff(given.offsets)[index]
    equal = np.diff(stored.offsets) == lengths
    for i in np.nonzero(equal)[0].tolist():
        a, b = int(stored.offsets[i]), int(given.offsets[index[i]])
        n = int(lengths[i])
        equal[i] = np.array_equal(stored.data[a : a + n], given.data[b : b + n])
    return equal


def last_of_equal(keys: Keys) -> I64:
    """Return the positions that stay when of equal keys only the last one does, ascending."""
    n = len(keys)
    if n < 2:
        return np.arange(n, dtype=np.int64)
    order = np.argsort(keys.hashes, kind="stable")
    hashes = keys.hashes[order]
    equal = hashes[1:] == hashes[:-1]
    if not equal.any():
        return np.arange(n, dtype=np.int64)
    last = {
        keys.key(int(i)): int(i)
        for i in np.sort(order[np.concatenate([[False], equal]) | np.concatenate([equal, [False]])])
    }
    staying = np.ones(n, bool)
    staying[order[np.concatenate([[False], equal]) | np.concatenate([equal, [False]])]] = False
    staying[list(last.values())] = True
    return np.nonzero(staying)[0].astype(np.int64)


def _first_repeat(keys: Keys) -> int:
    seen = set()
    for i in range(len(keys)):
        key = keys.key(i)
        if key in seen:
            return i
        seen.add(key)
    return 0


def _rows_of_all(keys: Keys, last: I64, rows: I64) -> I64:
    """Return the row of every given item, those that gave way to a later one included."""
    order = np.argsort(keys.hashes[last], kind="stable")
    at = np.searchsorted(keys.hashes[last][order], keys.hashes)
    result = rows[order[np.minimum(at, len(order) - 1)]]
    result[last] = rows
    return result
