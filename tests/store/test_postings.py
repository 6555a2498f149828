"""Postings against a dictionary: whatever was appended, deleted, merged, aborted and reopened."""

from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest

from simindex.kernels import address_of
from simindex.store import layout
from simindex.store.postings import PostingsReader, PostingsWriter

PREFIX = bytes([0, 0, 0, 1, 0, 2])
BANDS = 3
LOW = np.uint64(0xFFFFFFFF)
SMALL = 4096 - 16


class Live:
    """A live bitmap in private memory, as the kernels see one."""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def set(self, rows: np.ndarray, alive: bool) -> None:
        for block in np.unique(rows // layout.LIVE_ROWS).tolist():
            while len(self._blocks) <= block:
                self._blocks.append(np.zeros(layout.LIVE_BYTES, np.uint8))
            own = rows[rows // layout.LIVE_ROWS == block] % layout.LIVE_ROWS
            bits = self._blocks[block][layout.LIVE_HEADER :]
            if alive:
                np.bitwise_or.at(bits, own >> 3, (1 << (own & 7)).astype(np.uint8))
            else:
                np.bitwise_and.at(bits, own >> 3, ~(1 << (own & 7)).astype(np.uint8))

    @property
    def addresses(self) -> np.ndarray:
        return np.array([address_of(block) for block in self._blocks] or [0], np.uint64)


class Store:
    """An LMDB file and a model of what is in it."""

    def __init__(self, path: Path, segment_bytes: int) -> None:
        self.path, self.segment_bytes = path, segment_bytes
        self.keys = np.empty((0, BANDS), np.uint64)  # row -> its bucket keys
        self.alive = np.empty(0, bool)
        self.live = Live()
        self.reader: PostingsReader | None = None
        self.open()

    def open(self) -> None:
        self.env = lmdb.open(
            str(self.path),
            subdir=False,
            max_dbs=2,
            map_size=1 << 30,
            lib_version=0,
            sync=False,
            metasync=False,
        )
        self.db = self.env.open_db(b"postings")
        self.reader = None

    def close(self) -> None:
        self.reader = None
        self.env.close()

    def writer(self, txn: Any) -> PostingsWriter:
        return PostingsWriter(txn, self.db, PREFIX, BANDS, self.segment_bytes)

    def append(self, writer: PostingsWriter, keys: np.ndarray) -> None:
        local = np.arange(len(keys), dtype=np.uint64)
        postings = np.sort((keys.T & ~LOW) | local, axis=1)
        writer.append(np.ascontiguousarray(postings), len(self.keys))
        rows = np.arange(len(self.keys), len(self.keys) + len(keys))
        self.keys = np.concatenate([self.keys, keys])
        self.alive = np.concatenate([self.alive, np.ones(len(keys), bool)])
        self.live.set(rows, True)

    def remove(self, rows: np.ndarray) -> None:
        self.alive[rows] = False
        self.live.set(rows, False)

    def expected(self, queries: np.ndarray) -> list[list[int]]:
        heads = self.keys >> np.uint64(32)
        wanted = queries >> np.uint64(32)
        return [np.flatnonzero((heads == query).any(axis=1) & self.alive).tolist() for query in wanted]

    def check(self, txn: Any, rng: np.random.Generator, writable: bool = False) -> None:
        self.reader = PostingsReader.open(txn, self.db, PREFIX, BANDS, self.reader, writable)
        live = self.live.addresses
        picked = self.keys[rng.integers(0, max(len(self.keys), 1), 12)] if len(self.keys) else self.keys
        queries = np.concatenate([picked, some_keys(rng, 4)])
        ptr, rows = self.reader.lookup(txn, queries, live)
        found = [part.tolist() for part in np.split(rows, ptr[1:-1])]
        assert found == self.expected(queries)
        for i, query in enumerate(queries[:4]):
            _, rows = self.reader.lookup(txn, query.reshape(1, -1), live)
            assert rows.tolist() == found[i]
        for band in range(BANDS):
            parts = list(self.reader.band(txn, band, live))
            got = np.concatenate(parts) if parts else np.empty(0, np.uint64)
            own = np.flatnonzero(self.alive).astype(np.uint64)
            want = np.sort((self.keys[self.alive, band] & ~LOW) | own)
            assert np.array_equal(got, want)
        assert list(self.reader.verify(txn)) == []


def some_keys(rng: np.random.Generator, n: int) -> np.ndarray:
    """Random bucket keys; one in three from a few hot buckets."""
    keys = rng.integers(0, 2**64, (n, BANDS), dtype=np.uint64)
    hot = rng.integers(0, 3, (n, BANDS)) == 0
    keys[hot] = (rng.integers(0, 4, int(hot.sum())) * 0x55555555_00000000).astype(np.uint64)
    return keys


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("segment_bytes", [SMALL, 3 * 4096 - 16])
def test_answers_equal_a_model_whatever_happens(tmp_path: Path, seed: int, segment_bytes: int) -> None:
    rng = np.random.default_rng([seed, segment_bytes])
    store = Store(tmp_path / "p.db", segment_bytes)
    sizes = [1, 1, 2, 30, 70, 300, 600, 1500]
    for _ in range(60):
        action = rng.integers(0, 12)
        before = (len(store.keys), store.alive.copy())
        txn = store.env.begin(write=True, buffers=True)
        writer = store.writer(txn)
        n = int(rng.choice(sizes))
        for part in np.array_split(some_keys(rng, n), rng.integers(1, 3)):
            store.append(writer, part)
        if action < 4 and len(before[1]):
            rows = np.flatnonzero(store.alive)
            store.remove(rng.choice(rows, min(len(rows), int(rng.integers(1, 200))), replace=False))
        if action == 5:
            writer.flush()
            reader = store.reader
            store.check(txn, rng, writable=True)
            store.reader = reader
        writer.flush()
        if action != 6:
            writer.merge(store.live.addresses, None if action < 9 else int(rng.integers(1, 20_000)))
        if action == 11 and rng.integers(0, 3) == 0:
            writer.finish(store.live.addresses, None if rng.integers(0, 2) else 5_000)
        writer.save()
        if action == 7:
            txn.abort()
            gone = np.arange(before[0], len(store.keys))
            store.live.set(gone, False)
            store.keys, store.alive = store.keys[: before[0]], before[1]
        else:
            txn.commit()
        if action == 8:
            store.close()
            store.open()
        with store.env.begin(buffers=True) as txn:
            store.check(txn, rng)
    store.close()


def loaded(path: Path, seed: int = 3) -> Store:
    """A store with deltas, segments and an open job."""
    rng = np.random.default_rng(seed)
    store = Store(path, SMALL)
    for _ in range(40):
        with store.env.begin(write=True, buffers=True) as txn:
            writer = store.writer(txn)
            store.append(writer, some_keys(rng, 300))
            writer.flush()
            writer.merge(None, 500)
            stats = PostingsReader.open(txn, store.db, PREFIX, BANDS, None, True).stats()
        if stats["jobs"] and stats["segments"] > 5 and stats["runs"] > 10:
            break
    assert stats["jobs"] > 0
    for rows in (70, 80):  # small enough to be deltas
        with store.env.begin(write=True, buffers=True) as txn:
            writer = store.writer(txn)
            store.append(writer, some_keys(rng, rows))
            writer.flush()
            writer.merge(None, 0)
    return store


def values(store: Store) -> list[tuple[bytes, bytes]]:
    with store.env.begin() as txn, txn.cursor(db=store.db) as cursor:
        return [(bytes(key), bytes(value)) for key, value in cursor]


@pytest.mark.parametrize("damage", ["flip", "delete", "add", "swap"])
def test_verify_finds_every_damaged_value(tmp_path: Path, damage: str) -> None:
    store = loaded(tmp_path / "p.db")
    stored = [(key, value) for key, value in values(store) if key[6] != layout.TAG_MANIFEST]
    assert {key[6] for key, _ in stored} == {layout.TAG_DELTA, layout.TAG_SEGMENT}
    rng = np.random.default_rng(1)
    for key, value in stored[:: max(1, len(stored) // 25)]:
        with store.env.begin(write=True, buffers=True) as txn:
            if damage == "flip":
                at = int(rng.integers(0, len(value)))
                txn.put(key, value[:at] + bytes([value[at] ^ 4]) + value[at + 1 :], db=store.db)
            elif damage == "delete":
                txn.delete(key, db=store.db)
            elif damage == "add":
                txn.put(key[:6] + bytes([9]) + key[7:], value, db=store.db)
            else:
                other = next(v for k, v in stored if k[6] == key[6] and v != value)
                txn.put(key, other, db=store.db)
            reader = PostingsReader.open(txn, store.db, PREFIX, BANDS, None, True)
            assert list(reader.verify(txn)), f"{damage} of {key.hex()} goes unnoticed"
            txn.abort()
    store.close()


def test_merges_drop_dead_postings_and_rewrite_mostly_dead_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    store = Store(tmp_path / "p.db", SMALL)
    with store.env.begin(write=True, buffers=True) as txn:
        writer = store.writer(txn)
        store.append(writer, some_keys(rng, 4000))
        writer.flush()
    store.remove(np.arange(3000))
    for _ in range(30):
        with store.env.begin(write=True, buffers=True) as txn:
            writer = store.writer(txn)
            store.append(writer, some_keys(rng, 70))
            writer.flush()
            writer.merge(store.live.addresses)
    with store.env.begin(buffers=True) as txn:
        store.check(txn, rng)
        assert store.reader is not None
        assert store.reader.stats()["postings"] < BANDS * (store.alive.sum() + 300)
    store.close()


def test_compaction_leaves_one_run_and_no_dead_posting(tmp_path: Path) -> None:
    store = loaded(tmp_path / "p.db")
    store.remove(np.arange(0, len(store.keys), 2))
    done, turns = False, 0
    while not done:
        with store.env.begin(write=True, buffers=True) as txn:
            done = store.writer(txn).finish(store.live.addresses, 3000)
        with store.env.begin(buffers=True) as txn:
            store.check(txn, np.random.default_rng(turns))
        turns += 1
    assert turns > 3, "the budget spreads the work"
    assert store.reader is not None
    stats = store.reader.stats()
    assert (stats["runs"], stats["jobs"], stats["postings"]) == (1, 0, BANDS * int(store.alive.sum()))
    store.close()


def test_postings_of_another_shape_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "p.db", SMALL)
    with store.env.begin(write=True, buffers=True) as txn:
        with pytest.raises(ValueError, match=r"shape \(2, 5\) for 3 bands"):
            store.writer(txn).append(np.zeros((2, 5), np.uint64))
    store.close()


def test_a_keyspace_whose_rows_all_died_stays_sound(tmp_path: Path) -> None:
    """Its manifest is kept without runs, so that no run number is used twice."""
    rng = np.random.default_rng(6)
    store = Store(tmp_path / "p.db", SMALL)
    for n in (5, 900):
        with store.env.begin(write=True, buffers=True) as txn:
            store.append(writer := store.writer(txn), some_keys(rng, n))
            writer.flush()
        store.remove(np.flatnonzero(store.alive))
        with store.env.begin(write=True, buffers=True) as txn:
            assert store.writer(txn).finish(store.live.addresses)
        with store.env.begin(buffers=True) as txn:
            store.check(txn, rng)
            store.reader = None
            store.check(txn, rng)
    store.close()
