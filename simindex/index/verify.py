"""Recomputing what can be recomputed of a collection: postings, key map, counters, signatures of kept values.

Yields findings, repairs nothing. The store's own checks (checksums, sizes, runs) come first:
`Snapshot.verify`.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import SimindexError, shown
from simindex.index.field import Field
from simindex.index.keys import key_column
from simindex.index.prepare import prepare_field
from simindex.index.records import keys_of, record_of
from simindex.index.schema import Schema
from simindex.index.values import column_features
from simindex.index.writer import gather
from simindex.store import Finding
from simindex.types import EMPTY, PRESENT, SHORTENED, U8, U32, U64

KEY_MAP = 0xFFFF
_CHUNK = 16_384
_MEMORY = 1 << 28  # bytes of bucket keys held at once: as many bands as fit are compared in one pass
_SHOWN = 5  # findings of one kind that are listed; the rest is counted


def verify_collection(table: Any, schema: Schema) -> Iterator[Finding]:
    """Yield every contradiction between a collection's items and what was derived from them."""
    where = f"collection {schema.name!r}"
    try:
        yield from _counters(table, schema, where)
        yield from _keys(table, schema, where)
        for name, field in schema.fields.items():
            yield from _field(table, schema, name, field, f"{where} field {name!r}")
    except (SimindexError, ValueError, IndexError) as error:
        yield Finding("unreadable", where, str(error))


def _rows(table: Any) -> Iterator[U32]:
    for rows in table.live_rows():
        for at in range(0, len(rows), _CHUNK):
            yield rows[at : at + _CHUNK]


def _counters(table: Any, schema: Schema, where: str) -> Iterator[Finding]:
    live = sum(len(rows) for rows in _rows(table))
    if live != table.state.live:
        yield Finding("count", where, f"{live} rows are live, {table.state.live} are counted")
    for name, number in schema.numbers.items():
        counts = np.zeros(4, np.int64)
        for rows in _rows(table):
            counts += np.bincount(gather(table, number, rows)[1], minlength=4)[:4]
        for label, state in (("empty", EMPTY), ("shortened", SHORTENED)):
            counted = table.state.counters.get(f"{label}:{number}", 0)
            if counted != counts[state]:
                detail = f"{int(counts[state])} items are {label}, {counted} are counted"
                yield Finding("count", f"{where} field {name!r}", detail)


def _keys(table: Any, schema: Schema, where: str) -> Iterator[Finding]:
    hashes = np.zeros(table.state.next_row, np.uint64)
    for rows in _rows(table):
        hashes[rows] = key_column(schema.key, keys_of(table, schema.key, rows)).hashes
    live = np.concatenate([np.zeros(0, np.uint32), *_rows(table)])
    order = live[np.argsort(hashes[live], kind="stable")]
    for i in np.nonzero(hashes[order[1:]] == hashes[order[:-1]])[0].tolist():
        one, other = record_of(table, int(order[i]))[0], record_of(table, int(order[i + 1]))[0]
        if one == other:
            yield Finding("extra", where, f"key {shown(one)} is live in rows {order[i]} and {order[i + 1]}")

    def keys(rows: U32) -> U64:
        return hashes[rows].reshape(-1, 1)

    yield from _postings(table, KEY_MAP, 1, keys, lambda rows: np.ones(len(rows), bool), f"{where} key map")


def _field(table: Any, schema: Schema, name: str, field: Field, where: str) -> Iterator[Finding]:
    number = schema.numbers[name]
    yield from _contents(table, schema, name, field, where)

    def keys(rows: U32) -> U64:
        made: U64 = field.scheme.keys(gather(table, number, rows)[0])
        return made

    def present(rows: U32) -> Any:
        return gather(table, number, rows)[1] >= PRESENT

    yield from _postings(table, number, field.bands, keys, present, f"{where} postings")


def _contents(table: Any, schema: Schema, name: str, field: Field, where: str) -> Iterator[Finding]:
    """Signatures of absent and empty items are zero, originals are there, kept values give the stored
    signature.
    """
    number = schema.numbers[name]
    column = field.source or name
    for rows in _rows(table):
        signatures, states = gather(table, number, rows)
        yield from _listed(
            "signature",
            where,
            rows[(states < PRESENT) & signatures.any(axis=1)],
            "is not zero, without features",
        )
        if field.is_exact:
            packed = table.originals(number).values(rows)
            counts = np.array(
                [kernels.packed_count(packed.data[a:b]) if b > a else 0 for a, b in _pairs(packed.offsets)],
                np.int64,
            )
            yield from _listed(
                "original", where, rows[(counts > 0) != (states >= PRESENT)], "has no matching shingle set"
            )
        if column in schema.kept:
            yield from _listed(
                "signature",
                where,
                _changed(table, field, column, rows, signatures, states),
                "does not follow from the kept value",
            )


def _pairs(offsets: Any) -> Iterator[tuple[int, int]]:
    ends = offsets.tolist()
    return itertools.pairwise(ends)


def _changed(table: Any, field: Field, column: str, rows: U32, signatures: U8, states: U8) -> U32:
    kept = [record_of(table, int(row))[2].get(column) for row in rows]
    which = [i for i, value in enumerate(kept) if value is not None and not isinstance(value, dict)]
    if not which:
        return rows[:0]
    part = prepare_field(field, column_features(field, [kept[i] for i in which], len(which)))
    at = np.array(which)
    same = (part.signatures == signatures[at]).all(axis=1) & (part.states == states[at])
    changed: U32 = rows[at[~same]]
    return changed


def _postings(
    table: Any, number: int, bands: int, keys: Callable[[U32], U64], present: Callable[[U32], Any], where: str
) -> Iterator[Finding]:
    """Compare the stored postings of every band with those of the rows: each there once, none beside."""
    n = table.state.next_row
    at_once = max(1, min(bands, _MEMORY // (4 * max(n, 1))))
    for start in range(0, bands, at_once):
        these = range(start, min(start + at_once, bands))
        wanted = np.zeros((len(these), n), np.uint32)
        due = np.zeros(n, bool)
        for rows in _rows(table):
            wanted[:, rows] = (keys(rows)[:, these.start : these.stop] >> np.uint64(32)).T.astype(np.uint32)
            due[rows] = present(rows)
        for i, band in enumerate(these):
            seen = np.zeros(n, np.uint8)
            name = f"{where}, band {band}"
            for postings in table.bucket_postings(number, band):
                rows = (postings & np.uint64(0xFFFFFFFF)).astype(np.int64)
                inside = rows < n
                yield from _listed("extra", name, rows[~inside], "does not exist")
                rows, postings = rows[inside], postings[inside]
                yield from _listed("extra", name, rows[~due[rows]], "has a posting, but no features")
                wrong = (postings >> np.uint64(32)).astype(np.uint32) != wanted[i, rows]
                yield from _listed(
                    "posting", name, rows[wrong & due[rows]], "is in another bucket than its signature says"
                )
                np.add.at(seen, rows, 1)
            yield from _listed("missing", name, np.nonzero(due & (seen == 0))[0], "has no posting")
            yield from _listed("extra", name, np.nonzero(seen > 1)[0], "has several postings")


def _listed(kind: str, where: str, rows: Any, detail: str) -> Iterator[Finding]:
    for row in rows[:_SHOWN].tolist():
        yield Finding(kind, where, f"row {row} {detail}")
    if len(rows) > _SHOWN:
        yield Finding(kind, where, f"{len(rows) - _SHOWN} more rows: {detail}")
