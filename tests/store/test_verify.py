"""`verify` finds nothing in a sound store, and something in whatever is changed behind its back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store.test_table import SMALL, append, make_rows

from simindex.store import Store, layout

BLOCKS = (layout.LIVE, layout.RECORDS, layout.SIGNATURES, layout.ORIGINALS)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = Store.open(tmp_path / "store", durability="relaxed")
    rng = np.random.default_rng(11)
    with store.write() as tx:
        number = tx.create_collection(b"schema")
        tx.put_meta("name", b"value")
    for _ in range(3):
        with store.write() as tx:
            table = tx.collection(number, SMALL)
            first = append(table, make_rows(rng, 30))
            table.remove(np.arange(first, first + 30, 4, dtype=np.uint32))
            if first == 60:  # whole blocks go, which the change log names
                table.remove(np.setdiff1d(np.arange(28), np.arange(0, 28, 4)).astype(np.uint32))
    with store.read() as snapshot:
        assert list(snapshot.verify()) == []
    yield store
    store.close()


def entries(store: Store, db: str) -> list[tuple[bytes, bytes]]:
    with store.read() as snapshot, snapshot._raw.txn.cursor(db=snapshot._raw.db(db)) as cursor:
        return [(bytes(key), bytes(value)) for key, value in cursor]


def change(store: Store, db: str, key: bytes, value: bytes | None) -> None:
    raw = store.environment.begin_write()
    if value is None:
        raw.txn.delete(key, db=raw.db(db))
    else:
        raw.txn.put(key, value, db=raw.db(db))
    raw.commit()


def kinds(store: Store) -> set[str]:
    with store.read() as snapshot:
        return {finding.kind for finding in snapshot.verify()}


@pytest.mark.parametrize("db", [*BLOCKS, layout.POSTINGS])
def test_any_changed_byte_of_a_block_is_found(store: Store, db: str) -> None:
    rng = np.random.default_rng(2)
    for key, value in entries(store, db)[:3]:
        places = {0, 4, 8, 12, len(value) - 1, *rng.integers(0, len(value), 12).tolist()}
        for at in places:
            broken = bytearray(value)
            broken[at] ^= 1 << int(rng.integers(0, 8))
            change(store, db, key, bytes(broken))
            assert kinds(store) & {"checksum", "shape"}, (key, at)
        change(store, db, key, value)
    assert kinds(store) == set()


@pytest.mark.parametrize("tag", [layout.SCHEMA, layout.STATE, layout.CHANGES, layout.USER])
def test_any_changed_byte_of_the_meta_database_is_found(store: Store, tag: bytes) -> None:
    rng = np.random.default_rng(3)
    (key, value) = next((k, v) for k, v in entries(store, layout.META) if k.startswith(tag))
    for at in {0, 4, len(value) - 1, *rng.integers(0, len(value), 6).tolist()}:
        broken = bytearray(value)
        broken[at] ^= 0x40
        change(store, layout.META, key, bytes(broken))
        assert kinds(store), at
    change(store, layout.META, key, value)
    assert kinds(store) == set()


@pytest.mark.parametrize("db", BLOCKS)
def test_missing_and_shortened_blocks_are_found(store: Store, db: str) -> None:
    for key, value in entries(store, db)[:4]:
        change(store, db, key, None)
        assert kinds(store) & {"missing", "count"}
        change(store, db, key, value[:-3])
        assert kinds(store) & {"checksum", "shape"}
        change(store, db, key, b"")
        assert "shape" in kinds(store)
        change(store, db, key, value)
    assert kinds(store) == set()


@pytest.mark.parametrize("db", BLOCKS)
def test_a_block_in_another_blocks_place_is_found(store: Store, db: str) -> None:
    (first, one), (second, two) = (entries(store, db) * 2)[:2]
    if first == second:
        second = first[:-1] + bytes([first[-1] + 1])
        change(store, db, second, one)
        assert kinds(store)
        return
    change(store, db, first, two)
    change(store, db, second, one)
    assert "shape" in kinds(store)


@pytest.mark.parametrize("field", [0, 7, layout.KEY_MAP])
def test_missing_postings_are_found(store: Store, field: int) -> None:
    prefix = layout.field_prefix(1, field)
    mine = [(key, value) for key, value in entries(store, layout.POSTINGS) if key.startswith(prefix)]
    for key, _ in mine:
        change(store, layout.POSTINGS, key, None)
    assert "missing" in kinds(store)
    for key, value in mine:
        change(store, layout.POSTINGS, key, value)
    assert kinds(store) == set()


@pytest.mark.parametrize(
    ("db", "key"),
    [
        (layout.META, b"z"),
        (layout.META, layout.STATE + layout.collection_prefix(9)),
        (layout.META, layout.SCHEMA + b"\x01"),
        (layout.LIVE, layout.block_key(9, 0)),
        (layout.RECORDS, b"\x00"),
        (layout.SIGNATURES, layout.field_block_key(1, 5, 0)),
        (layout.ORIGINALS, layout.field_block_key(1, 7, 0)),
        (layout.POSTINGS, layout.field_block_key(1, 5, 0)),
    ],
)
def test_unknown_keys_are_found(store: Store, db: str, key: bytes) -> None:
    change(store, db, key, b"x")
    assert kinds(store)
    change(store, db, key, None)
    assert kinds(store) == set()


def test_wrong_counts_are_found(store: Store) -> None:
    from simindex.store.collection import CollectionState

    key = layout.STATE + layout.collection_prefix(1)
    value = dict(entries(store, layout.META))[key]
    state = CollectionState.decode(value)
    state.live += 1
    change(store, layout.META, key, state.encode())
    assert "count" in kinds(store)
    state.live -= 1
    state.next_row += 1
    change(store, layout.META, key, state.encode())
    assert kinds(store)
    change(store, layout.META, key, None)
    assert "missing" in kinds(store)
    change(store, layout.META, key, value)
    assert kinds(store) == set()
