"""From keys to rows and back to items, on any table (a snapshot's or a transaction's)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import CorruptStore
from simindex.index.keys import Key, Keys, check_key, key_column
from simindex.index.records import keys_of, record_of, sequences_of
from simindex.index.schema import Schema
from simindex.types import I64, U32, Packed

MISSING = -1
_CHUNK = 8_192


def rows_of(table: Any, keys: Keys, records: Packed) -> I64:
    """Return the live row of each key, MISSING (-1) where there is none; int64 (n,).

    records: the packed records of the same keys (what is compared is the key in them, byte for byte).
    """
    found = np.full(len(keys), MISSING, np.int64)
    if len(keys) == 0 or table.state.live == 0:
        return found
    ptr, rows = table.lookup_keys(keys.hashes)
    if len(rows) == 0:
        return found
    which = np.repeat(np.arange(len(keys), dtype=np.int64), np.diff(ptr))
    heap = table.records
    heap.need(rows)
    try:
        same = kernels.match_records(
            heap.first_rows, heap.addresses, rows, records.data, records.offsets, which, True
        )
    except ValueError as error:
        raise CorruptStore(str(error)) from error
    matching = same.view(bool)
    found[which[matching]] = rows[matching]
    return found


def row_of(table: Any, schema: Schema, key: object) -> int:
    """Return the live row of one key, or MISSING. Raises KeyTypeError for a key of another type."""
    checked = check_key(schema.key, key)
    if table.state.live == 0:
        return MISSING
    _ptr, rows = table.lookup_keys(key_column(schema.key, [checked]).hashes)
    for row in rows.tolist():
        if record_of(table, row)[0] == checked:
            return int(row)
    return MISSING


def get(table: Any, schema: Schema, key: object) -> dict[str, Any] | None:
    """Return the attributes of an item (kept values included), {} when it has none; None when it is not
    stored.
    """
    row = row_of(table, schema, key)
    return None if row == MISSING else record_of(table, row)[2]


def iterate_keys(table: Any, schema: Schema) -> Iterator[Key]:
    """Yield all keys in the order of their last write.

    Cost: keys are read 8,192 at a time; where rows have been moved, the sequence numbers are sorted first (16
    bytes an item).
    """
    for rows in rows_in_order(table):
        keys = keys_of(table, schema.key, rows)
        yield from keys.tolist() if isinstance(keys, np.ndarray) else keys


def rows_in_order(table: Any) -> Iterator[U32]:
    """Yield the live rows in the order of their last write, in chunks."""
    if not table.state.counters.get("moved"):
        for rows in table.live_rows():
            for at in range(0, len(rows), _CHUNK):
                yield rows[at : at + _CHUNK]
        return
    parts = list(table.live_rows())
    if not parts:
        return
    rows = np.concatenate(parts)
    sequences = np.concatenate(
        [sequences_of(table, rows[a : a + _CHUNK]) for a in range(0, len(rows), _CHUNK)]
    )
    rows = rows[np.argsort(sequences, kind="stable")]
    for at in range(0, len(rows), _CHUNK):
        yield rows[at : at + _CHUNK]
