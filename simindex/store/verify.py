"""Reads everything that a store holds and says what contradicts itself. Repairs nothing, raises nothing.

What cannot be told here, because the store does not know what a band means: whether postings are those of the
signatures. The index floor compares them (`Table.bucket_postings`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simindex.errors import CorruptStore, SimindexError
from simindex.store import catalog, layout
from simindex.store.changes import ChangeLog
from simindex.store.collection import CollectionLayout, CollectionState, check
from simindex.store.finding import Finding
from simindex.store.verify_blocks import heap_findings, live_findings, signature_findings
from simindex.store.view import CollectionView
from simindex.types import PRESENT, U8, Array


def verify(raw: Any) -> Iterator[Finding]:
    """Yield every finding of the store that transaction `raw` sees."""
    schemas: dict[int, bytes] = {}
    try:
        schemas = catalog.read(raw)
        for number in schemas:
            if number >= catalog.next_number(raw):
                yield Finding(
                    "count", f"collection {number}", f"the next new number is {catalog.next_number(raw)}"
                )
    except CorruptStore as error:
        yield Finding("checksum", "catalog", str(error))
        schemas = dict.fromkeys(_numbers(raw), b"")
    plans: dict[int, CollectionLayout | None] = {}
    for number in schemas:
        found = _state(raw, number)
        if isinstance(found, Finding):
            yield found
            plans[number] = None
            continue
        plans[number] = found.layout or CollectionLayout(())
        yield from verify_collection(raw, number, found)
    yield from _unknown_keys(raw, plans)


def verify_collection(raw: Any, number: int, state: CollectionState) -> Iterator[Finding]:
    """Yield every finding of one collection."""
    where = f"collection {number}"
    plan = state.layout
    if plan is None:
        if state.next_row or state.live:
            yield Finding("shape", where, f"{state.next_row} rows, but no layout")
        return
    yield from _change_log(raw, number, state)
    bits, findings = live_findings(raw, number, state)
    yield from findings
    view = CollectionView(raw, number, plan, state)
    records = layout.collection_prefix(number)
    yield from heap_findings(
        raw, layout.RECORDS, records, f"{where} records", number, layout.HEAP_RECORDS, state, bits
    )
    for f in plan.fields:
        prefix = layout.field_prefix(number, f.number)
        name = f"{where} field {f.number}"
        states, findings = signature_findings(raw, view, f.number, f"{name} signatures", bits)
        yield from findings
        if f.originals:
            name_of = f"{name} originals"
            yield from heap_findings(raw, layout.ORIGINALS, prefix, name_of, number, f.number, state, bits)
        yield from _postings(raw, view, f.number, f"{name} postings", states, bits)
    yield from _postings(raw, view, layout.KEY_MAP, f"{where} key map", None, bits)


def _state(raw: Any, number: int) -> CollectionState | Finding:
    value = raw.txn.get(layout.STATE + layout.collection_prefix(number), db=raw.db(layout.META))
    if value is None:
        return Finding("missing", f"collection {number}", "no state")
    try:
        return CollectionState.decode(value)
    except CorruptStore as error:
        return Finding("checksum", f"collection {number}", str(error))


def _numbers(raw: Any) -> list[int]:
    """Return the collection numbers that have a schema key, whatever its value."""
    found = []
    with raw.txn.cursor(db=raw.db(layout.META)) as cursor:
        more = cursor.set_range(layout.SCHEMA)
        while more and bytes(cursor.key()).startswith(layout.SCHEMA):
            found.append(int.from_bytes(cursor.key()[1:], "big"))
            more = cursor.next()
    return found


def _change_log(raw: Any, number: int, state: CollectionState) -> Iterator[Finding]:
    where = f"collection {number} change log"
    try:
        value = raw.txn.get(layout.CHANGES + layout.collection_prefix(number), db=raw.db(layout.META))
        log = ChangeLog.decode(value)
    except CorruptStore as error:
        yield Finding("checksum", where, str(error))
        return
    newest = int(log.entries[-1, 0]) if len(log.entries) else 0
    if (newest or state.logged) != state.logged or state.logged > state.change:
        yield Finding("count", where, f"ends at {newest}, the state says {state.logged} of {state.change}")


def _postings(
    raw: Any, view: CollectionView, number: int, where: str, states: U8 | None, bits: Array
) -> Iterator[Finding]:
    """Every live row with features is in every band once; no other row is.

    states: uint8, one per row; None = every live row is meant. bits: bool, one per row: the live rows.
    """
    try:
        reader = view.postings(raw, number)
        broken = False
        for finding in reader.verify(raw.txn):
            broken = True
            yield finding if isinstance(finding, Finding) else Finding("shape", where, str(finding))
        if broken:
            return
        expected = bits if states is None else bits & (states >= PRESENT)
        live = view.live(raw).addresses
        for band in range(view.bands(number)):
            seen = np.zeros(len(bits), np.uint8)
            last = 0
            for postings in reader.band(raw.txn, band, live):
                if not len(postings):
                    continue
                if int(postings[0]) < last or bool((postings[1:] < postings[:-1]).any()):
                    yield Finding("shape", f"{where} band {band}", "postings do not ascend")
                last = int(postings[-1])
                rows = (postings & np.uint64(0xFFFFFFFF)).astype(np.int64)
                beyond = rows >= len(bits)
                if beyond.any():
                    yield Finding("extra", f"{where} band {band}", f"row {rows[beyond][0]} of {len(bits)}")
                    rows = rows[~beyond]
                np.add.at(seen, rows, 1)
            wrong = np.flatnonzero(seen != expected)
            if len(wrong):
                row = int(wrong[0])
                kind = "missing" if seen[row] < expected[row] else "extra"
                detail = f"{len(wrong)} rows, for example row {row}: {seen[row]} of {int(expected[row])}"
                yield Finding(kind, f"{where} band {band}", detail)
    except SimindexError as error:
        yield Finding("checksum", where, str(error))


def _unknown_keys(raw: Any, plans: dict[int, CollectionLayout | None]) -> Iterator[Finding]:
    """Yield every key that belongs to nothing."""
    tags = {layout.SCHEMA: 5, layout.STATE: 5, layout.CHANGES: 5}
    with raw.txn.cursor(db=raw.db(layout.META)) as cursor:
        more = cursor.first()
        while more:
            key = bytes(cursor.key())
            where = f"meta {key!r}"
            if key[:1] == layout.USER and len(key) > 1:
                try:
                    check(cursor.value(), layout.USER_MAGIC, "named value")
                except CorruptStore as error:
                    yield Finding("checksum", where, str(error))
            elif len(key) == tags.get(key[:1]):
                if int.from_bytes(key[1:], "big") not in plans:
                    yield Finding("unknown", where, "no such collection")
            elif key not in (layout.IDENTITY, layout.NUMBERS):
                yield Finding("unknown", where, "no such key")
            more = cursor.next()
    for db in (layout.LIVE, layout.RECORDS, layout.SIGNATURES, layout.ORIGINALS, layout.POSTINGS):
        yield from _unknown_prefixes(raw, db, plans)


def _unknown_prefixes(raw: Any, db: str, plans: dict[int, CollectionLayout | None]) -> Iterator[Finding]:
    """Visit each prefix once: what stands below a known one is looked at by its own check."""
    with raw.txn.cursor(db=raw.db(db)) as cursor:
        more = cursor.first()
        while more:
            key = bytes(cursor.key())
            number = int.from_bytes(key[:4], "big")
            plan = plans.get(number)
            shortest = 7 if db == layout.POSTINGS else 8  # a keyspace without runs has its manifest alone
            if len(key) < shortest or number not in plans:
                yield Finding("unknown", f"{db} {key!r}", "no such collection")
                more = cursor.next()
                continue
            if db in (layout.LIVE, layout.RECORDS) or plan is None:
                prefix = key[:4]
            else:
                prefix = key[:6]
                field = int.from_bytes(key[4:6], "big")
                known = {f.number for f in plan.fields if f.originals or db != layout.ORIGINALS}
                if field not in known and not (db == layout.POSTINGS and field == layout.KEY_MAP):
                    yield Finding(
                        "unknown", f"{db} {key!r}", f"collection {number} has no such field {field}"
                    )
            more = _past(cursor, prefix)


def _past(cursor: Any, prefix: bytes) -> bool:
    """Move to the first key after all that begin with `prefix`."""
    following = int.from_bytes(prefix, "big") + 1
    if following >> 8 * len(prefix):
        return False
    return bool(cursor.set_range(following.to_bytes(len(prefix), "big")))
