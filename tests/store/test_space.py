"""Space comes back: dead blocks are freed by the commit that kills them, sparse regions are emptied."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simindex.store import CollectionLayout, FieldLayout, FieldRows, Store, Table, WriteTable, layout
from simindex.types import Packed

PLAN = CollectionLayout((FieldLayout(3, 16, 2, True),))


def numbered(values: np.ndarray) -> Packed:
    """Values that can be told apart: eight bytes of the number, some more often."""
    repeats = 1 + values % 3
    data = np.repeat(values, repeats).astype("<u8").view(np.uint8)
    return Packed(data, np.concatenate([[0], np.cumsum(8 * repeats)]).astype(np.int64))


def append_numbers(table: WriteTable, values: np.ndarray) -> int:
    n = len(values)
    signatures = np.ascontiguousarray(np.repeat(values.astype("<u8")[:, None], 2, axis=1)).view(np.uint8)
    local = np.arange(n, dtype=np.uint64)
    postings = np.sort(np.stack([values.astype(np.uint64) << np.uint64(32) | local] * 2), axis=1)
    rows = FieldRows(signatures, np.full(n, 2, np.uint8), postings, numbered(values))
    return table.append(n, values.astype(np.uint64) << np.uint64(32), numbered(values), {3: rows})


def numbers(table: Table) -> np.ndarray:
    """Return the numbers of all live rows, read from every place that holds them."""
    rows = np.concatenate([np.empty(0, np.uint32), *table.live_rows()])
    signatures, _ = table.signatures(3).rows(rows)
    found = signatures[:, :8].copy().view("<u8").ravel().astype(np.int64)
    for values in (table.records.values(rows), table.originals(3).values(rows)):
        expected = numbered(found)
        assert values.offsets.tolist() == expected.offsets.tolist()
        assert (values.data == expected.data).all()
    return found


def entries(store: Store, kind: str) -> int:
    with store.environment.begin_read() as raw:
        return int(raw.txn.stat(raw.db(kind))["entries"])


def pages(store: Store, kind: str) -> int:
    with store.environment.begin_read() as raw:
        stat = raw.txn.stat(raw.db(kind))
        return int(stat["overflow_pages"] + stat["leaf_pages"] + stat["branch_pages"])


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = Store.open(tmp_path / "store", durability="relaxed")
    with store.write() as tx:
        tx.create_collection(b"schema")
    yield store
    with store.read() as snapshot:
        assert list(snapshot.verify()) == []
    store.close()


def test_blocks_without_a_live_row_are_freed_in_the_same_commit(store: Store) -> None:
    n = 2 * layout.LIVE_ROWS + 100
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(n))
    old = store.read()
    old_table = old.collection(1, PLAN)
    assert len(numbers(old_table)) == n
    before = {kind: entries(store, kind) for kind in ("live", "signatures", "records", "originals")}
    with store.write() as tx:
        tx.collection(1, PLAN).remove(np.arange(layout.LIVE_ROWS, dtype=np.uint32))
    after = {kind: entries(store, kind) for kind in before}
    assert after["live"] == before["live"] - 1
    assert after["signatures"] == before["signatures"] - layout.LIVE_ROWS // layout.signature_rows(16)
    assert after["records"] < before["records"]
    assert after["originals"] < before["originals"]
    with store.read() as snapshot:
        assert (numbers(snapshot.collection(1, PLAN)) == np.arange(layout.LIVE_ROWS, n)).all()
    assert len(numbers(old_table)) == n  # an older snapshot keeps what it sees
    old.close()


def test_everything_removed_leaves_only_the_tails(store: Store) -> None:
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(40_000))
    with store.write() as tx:
        tx.collection(1, PLAN).remove(np.arange(40_000, dtype=np.uint32))
    for kind in ("live", "signatures", "records", "originals"):
        assert entries(store, kind) == 1
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(60_000))
    for kind in ("live", "records", "originals"):
        assert entries(store, kind) > 1
    with store.read() as snapshot:
        table = snapshot.collection(1, PLAN)
        assert table.state.live == 60_000
        assert (numbers(table) == np.arange(60_000)).all()


def test_a_tail_that_dies_is_freed_when_it_is_whole(store: Store) -> None:
    rows = layout.signature_rows(16)
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(rows - 5))
    with store.write() as tx:
        tx.collection(1, PLAN).remove(np.arange(rows - 5, dtype=np.uint32))
    with store.write() as tx:
        table = tx.collection(1, PLAN)
        first = append_numbers(table, np.arange(5))
        table.remove(np.arange(first, first + 5, dtype=np.uint32))
        append_numbers(table, np.arange(7))
    assert entries(store, "signatures") == 1


def test_sparse_regions_are_emptied_a_few_rows_a_commit(store: Store) -> None:
    rng = np.random.default_rng(8)
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(50_000))
    kept = np.sort(rng.choice(50_000, 4_000, replace=False))
    with store.write() as tx:
        table = tx.collection(1, PLAN)
        table.remove(np.setdiff1d(np.arange(50_000), kept).astype(np.uint32))
        assert len(table.sparse_rows(limit=0)) == 0
    full = entries(store, "signatures")
    moved = 0
    for _ in range(40):
        with store.write() as tx:
            table = tx.collection(1, PLAN)
            rows = table.sparse_rows(limit=300)
            assert len(rows) <= 300
            if len(rows) == 0:
                break
            assert (np.diff(rows.astype(np.int64)) > 0).all()
            values, _ = table.signatures(3).rows(rows)
            table.remove(rows)
            append_numbers(table, values[:, :8].copy().view("<u8").ravel().astype(np.int64))
            moved += len(rows)
    assert 0.9 * len(kept) < moved <= len(kept)
    assert entries(store, "signatures") < full / 5
    with store.read() as snapshot:
        assert sorted(numbers(snapshot.collection(1, PLAN)).tolist()) == kept.tolist()


def test_a_dense_collection_is_left_alone(store: Store) -> None:
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(50_000))
    with store.write() as tx:
        table = tx.collection(1, PLAN)
        table.remove(np.arange(0, 50_000, 10, dtype=np.uint32))
        assert len(table.sparse_rows()) == 0


def test_idle_merges_leave_one_run_and_the_same_answers(store: Store) -> None:
    for start in range(0, 40_000, 1000):
        with store.write(bulk=True) as tx:
            append_numbers(tx.collection(1, PLAN), np.arange(start, start + 1000))
    hashes = np.arange(0, 40_000, 37, dtype=np.uint64) << np.uint64(32)
    with store.read() as snapshot:
        before = snapshot.collection(1, PLAN).lookup_keys(hashes)
    runs = entries(store, "postings")
    assert store.idle_merge()
    with store.write() as tx:
        assert tx.merge(single=True)
        after = tx.collection(1, PLAN).lookup_keys(hashes)
        assert [a.tolist() for a in after] == [b.tolist() for b in before]
    assert entries(store, "postings") < runs
    with store.read() as snapshot:
        after = snapshot.collection(1, PLAN).lookup_keys(hashes)
        assert [a.tolist() for a in after] == [b.tolist() for b in before]
        assert (np.diff(after[0]) == 1).all()


@pytest.mark.parametrize("share", [10, 1])
def test_replacing_again_and_again_does_not_grow_the_file(store: Store, share: int) -> None:
    n, step, rounds = 60_000, 3_000, 20 if share > 1 else 8
    rng = np.random.default_rng(9)
    row_of = np.arange(n)
    number_of = np.arange(n)
    with store.write() as tx:
        append_numbers(tx.collection(1, PLAN), np.arange(n))
    sizes = []
    for _ in range(rounds):
        chosen = rng.permutation(n)[: n // share]
        for start in range(0, len(chosen), step):
            with store.write() as tx:
                table = tx.collection(1, PLAN)
                mine = chosen[start : start + step]
                table.remove(row_of[mine].astype(np.uint32))
                row_of[mine] = append_numbers(table, mine) + np.arange(len(mine))
                number_of = np.concatenate([number_of, mine])
                rows = table.sparse_rows()
                if len(rows):
                    again = number_of[rows]
                    table.remove(rows)
                    row_of[again] = append_numbers(table, again) + np.arange(len(again))
                    number_of = np.concatenate([number_of, again])
        sizes.append(sum(pages(store, kind) for kind in ("signatures", "records", "originals")))
    assert sizes[-1] <= 1.3 * sizes[1]
    assert max(sizes) <= 1.6 * sizes[1]  # on the way: a region of 8,192 rows is a seventh of all here
    with store.read() as snapshot:
        assert sorted(numbers(snapshot.collection(1, PLAN)).tolist()) == list(range(n))
