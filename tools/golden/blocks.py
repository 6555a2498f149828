"""Golden bytes of the store: every entry of a small store but its identity and its postings."""

import struct
import tempfile
from pathlib import Path

import numpy as np

from simindex.store import CollectionLayout, FieldLayout, FieldRows, Geometry, Store, layout
from simindex.types import Packed

KINDS = (layout.META, layout.RECORDS, layout.LIVE, layout.SIGNATURES, layout.ORIGINALS)
PLAN = CollectionLayout((FieldLayout(0, 8, 2, True), FieldLayout(5, 16, 1, False)), Geometry(160, 400, 150))


def rows(first: int, n: int) -> tuple[np.ndarray, Packed, dict[int, FieldRows]]:
    """Return n rows made by whole-number arithmetic: key hashes, records, fields."""
    i = np.arange(first, first + n)
    lengths = i * i % 23
    data = (np.arange(int(lengths.sum())) * 7 + first) % 256
    values = Packed(data.astype(np.uint8), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    fields = {}
    for f in PLAN.fields:
        states = (i % 4).astype(np.uint8)
        signatures = ((i[:, None] * 31 + np.arange(f.width) * 3) % 256).astype(np.uint8)
        signatures[states < 2] = 0
        local = np.flatnonzero(states >= 2).astype(np.uint64)
        postings = np.tile(local | np.uint64(7 << 32), (f.bands, 1))
        fields[f.number] = FieldRows(signatures, states, postings, values if f.originals else None)
    return i.astype(np.uint64) << np.uint64(32), values, fields


def fill(store: Store) -> None:
    with store.write() as tx:
        number = tx.create_collection(b"a schema")
        tx.drop_collection(tx.create_collection(b"another"))
        tx.put_meta("name", b"value")
    with store.write() as tx:
        table = tx.collection(number, PLAN)
        table.append(50, *rows(0, 50))
        table.count("empty", 12)
        table.take_sequence(50)
    with store.write() as tx:
        table = tx.collection(number, PLAN)
        table.remove(np.arange(3, 30, dtype=np.uint32))
        table.append(20, *rows(50, 20))


def entries(store: Store) -> bytes:
    """Return every entry: kind, key and value, each after its length as u32."""
    parts = []
    with store.environment.begin_read() as raw:
        for kind in KINDS:
            with raw.txn.cursor(db=raw.db(kind)) as cursor:
                for key, value in cursor:
                    if bytes(key) != layout.IDENTITY:
                        for part in (kind.encode(), bytes(key), bytes(value)):
                            parts.append(struct.pack("<I", len(part)) + part)
    return b"".join(parts)


def files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(Path(folder) / "store", durability="relaxed") as store:
            fill(store)
            return {"store_entries_1.bin": entries(store)}
