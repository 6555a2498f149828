"""Tables against a plain model: whatever is appended, removed, committed, aborted and reopened."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simindex.errors import SchemaError, WriteError
from simindex.store import CollectionLayout, FieldLayout, FieldRows, Geometry, Store, Table, layout, tails
from simindex.types import Packed

SMALL = CollectionLayout(
    (FieldLayout(0, 8, 2, True), FieldLayout(7, 16, 3, False)), Geometry(signatures=160, heap=400, tail=150)
)


def packed(values: list[bytes]) -> Packed:
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64)
    return Packed(np.frombuffer(b"".join(values), np.uint8), offsets)


@dataclass
class Row:
    record: bytes
    key_hash: int
    signatures: dict[int, bytes]
    states: dict[int, int]
    keys: dict[int, list[int]]
    original: bytes
    live: bool = True


@dataclass
class Model:
    rows: list[Row] = field(default_factory=list)
    count: int = 0

    def copy(self) -> "Model":
        return Model([Row(**vars(r)) for r in self.rows], self.count)


def make_rows(rng: np.random.Generator, n: int, plan: CollectionLayout = SMALL) -> list[Row]:
    rows = []
    for _ in range(n):
        states = {f.number: int(rng.integers(0, 4)) for f in plan.fields}
        rows.append(
            Row(
                record=rng.bytes(int(rng.choice([0, 3, 20, 90, 700], p=[0.1, 0.4, 0.4, 0.09, 0.01]))),
                key_hash=int(rng.integers(0, 40)) << 32 | int(rng.integers(0, 2**32)),
                signatures={
                    f.number: rng.bytes(f.width) if states[f.number] >= 2 else bytes(f.width)
                    for f in plan.fields
                },
                states=states,
                keys={f.number: [int(k) << 32 for k in rng.integers(0, 30, f.bands)] for f in plan.fields},
                original=rng.bytes(int(rng.integers(0, 60))),
            )
        )
    return rows


def field_rows(rows: list[Row], f: FieldLayout) -> FieldRows:
    present = [i for i, r in enumerate(rows) if r.states[f.number] >= 2]
    postings = np.array([[rows[i].keys[f.number][b] | i for i in present] for b in range(f.bands)], np.uint64)
    return FieldRows(
        np.frombuffer(b"".join(r.signatures[f.number] for r in rows), np.uint8).reshape(len(rows), f.width),
        np.array([r.states[f.number] for r in rows], np.uint8),
        np.sort(postings.reshape(f.bands, len(present)), axis=1),
        packed([r.original for r in rows]) if f.originals else None,
    )


def append(table, rows: list[Row], plan: CollectionLayout = SMALL) -> int:
    hashes = np.array([r.key_hash for r in rows], np.uint64)
    fields = {f.number: field_rows(rows, f) for f in plan.fields}
    return table.append(len(rows), hashes, packed([r.record for r in rows]), fields)


def assert_equal(table: Table, model: Model, plan: CollectionLayout = SMALL) -> None:
    live = np.array([i for i, r in enumerate(model.rows) if r.live], np.uint32)
    assert table.state.next_row == len(model.rows)
    assert table.state.live == len(live)
    assert table.state.counters.get("count", 0) == model.count
    assert np.concatenate([np.empty(0, np.uint32), *table.live_rows()]).tolist() == live.tolist()
    records = table.records.values(live)
    assert records.offsets.tolist() == np.cumsum([0, *(len(model.rows[i].record) for i in live)]).tolist()
    assert records.data.tobytes() == b"".join(model.rows[i].record for i in live)
    for f in plan.fields:
        signatures, states = table.signatures(f.number).rows(live)
        assert states.tolist() == [model.rows[i].states[f.number] for i in live]
        assert signatures.tobytes() == b"".join(model.rows[i].signatures[f.number] for i in live)
        if f.originals:
            originals = table.originals(f.number).values(live)
            assert originals.data.tobytes() == b"".join(model.rows[i].original for i in live)
        queries = [[(b * 7 + q) % 30 << 32 | 5 for b in range(f.bands)] for q in range(4)]
        ptr, rows = table.lookup(f.number, np.array(queries, np.uint64))
        for q, query in enumerate(queries):
            expected = [
                i for i in live.tolist()
                if model.rows[i].states[f.number] >= 2
                and any(k >> 32 == a >> 32 for k, a in zip(model.rows[i].keys[f.number], query, strict=True))
            ]  # fmt: skip
            assert rows[ptr[q] : ptr[q + 1]].tolist() == expected
        for band in range(f.bands):
            postings = np.concatenate([np.empty(0, np.uint64), *table.bucket_postings(f.number, band)])
            assert postings.tolist() == sorted(
                model.rows[i].keys[f.number][band] | i
                for i in live.tolist()
                if model.rows[i].states[f.number] >= 2
            )
    hashes = np.array([h << 32 for h in range(6)], np.uint64)
    ptr, rows = table.lookup_keys(hashes)
    for q in range(6):
        assert rows[ptr[q] : ptr[q + 1]].tolist() == [
            i for i in live.tolist() if model.rows[i].key_hash >> 32 == q
        ]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "append", "append", "remove", "remove", "sparse", "check", "commit", "abort", "reopen"]
        ),
        st.integers(0, 60),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, seed=st.integers(0, 2**32 - 1))
def test_tables_equal_a_model_through_any_history(steps: list[tuple[str, int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", durability="relaxed")
        with store.write() as tx:
            number = tx.create_collection(b"schema")
        stored = Model()
        old = store.read()
        while steps:
            model = stored.copy()
            tx = store.write()
            table = tx.collection(number, SMALL)
            action = "commit"
            while steps:
                action, n = steps.pop(0)
                if action == "append":
                    rows = make_rows(rng, n)
                    assert append(table, rows) == len(model.rows)
                    model.rows += rows
                elif action == "remove":
                    live = [i for i, r in enumerate(model.rows) if r.live]
                    gone = rng.choice(live, min(n, len(live)), replace=False) if live else []
                    table.remove(np.array(gone, np.uint32))
                    for i in gone:
                        model.rows[i].live = False
                    table.count("count", n)
                    model.count += n
                elif action == "sparse":
                    rows_moved = table.sparse_rows(n)
                    assert len(rows_moved) <= n
                    assert all(model.rows[i].live for i in rows_moved.tolist())
                elif action == "check":
                    assert_equal(table, model)
                else:
                    break
            if action == "abort":
                tx.abort()
            else:
                tx.commit()
                stored = model
            if action == "reopen":
                old.close()
                store.close()
                store = Store.open(Path(folder) / "store", durability="relaxed")
                old = store.read()
            with store.read() as snapshot:
                assert_equal(snapshot.collection(number, SMALL), stored)
                assert list(snapshot.verify()) == []
        old.close()
        store.close()


def test_blocks_let_go_by_a_long_transaction_are_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "_KEEP_BYTES", 500)
    rng = np.random.default_rng(6)
    store = Store.open(tmp_path / "store", durability="relaxed")
    with store.write() as tx:
        number = tx.create_collection(b"schema")
    model = Model()
    for _ in range(3):
        with store.write() as tx:
            table = tx.collection(number, SMALL)
            for _ in range(6):
                rows = make_rows(rng, 45)
                append(table, rows)
                model.rows += rows
                gone = rng.choice([i for i, r in enumerate(model.rows) if r.live], 20, replace=False)
                table.remove(gone.astype(np.uint32))
                for i in gone:
                    model.rows[i].live = False
                assert_equal(table, model)
        with store.read() as snapshot:
            assert_equal(snapshot.collection(number, SMALL), model)
            assert list(snapshot.verify()) == []
    store.close()


def test_old_snapshot_keeps_its_rows_while_newer_ones_change(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    store = Store.open(tmp_path / "store")
    with store.write() as tx:
        number = tx.create_collection(b"schema")
    models = [Model()]
    snapshots = [store.read()]
    for _ in range(12):
        model = models[-1].copy()
        with store.write() as tx:
            table = tx.collection(number, SMALL)
            rows = make_rows(rng, 40)
            append(table, rows)
            model.rows += rows
            gone = rng.choice([i for i, r in enumerate(model.rows) if r.live], 35, replace=False)
            table.remove(gone.astype(np.uint32))
            for i in gone:
                model.rows[i].live = False
        models.append(model)
        snapshots.append(store.read())
        if len(models) % 3 == 0:
            assert_equal(snapshots[-1].collection(number, SMALL), model)
    for snapshot, model in zip(snapshots, models, strict=True):
        assert_equal(snapshot.collection(number, SMALL), model)
        snapshot.close()
    store.close()


def test_collection_numbers_are_never_used_again(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    with store.write() as tx:
        first = tx.create_collection(b"a")
        second = tx.create_collection(b"b")
        append(tx.collection(second, SMALL), make_rows(np.random.default_rng(1), 50))
    with store.write() as tx:
        tx.drop_collection(second)
    with store.write() as tx:
        third = tx.create_collection(b"c")
        assert tx.catalog() == {first: b"a", third: b"c"}
        assert third not in (first, second)
        with pytest.raises(SchemaError, match="no collection"):
            tx.collection(second, SMALL)
    raw = store.environment.begin_read()
    with raw:
        kinds = ("records", "signatures", "originals", "live", "postings")
        assert sum(raw.txn.stat(raw.db(kind))["entries"] for kind in kinds) == 0
    store.close()


def test_another_layout_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    other = CollectionLayout((FieldLayout(0, 8, 2, True),))
    with store.write() as tx:
        number = tx.create_collection(b"a")
        append(tx.collection(number, SMALL), make_rows(np.random.default_rng(1), 3))
    with store.read() as snapshot, pytest.raises(SchemaError, match="was written with"):
        snapshot.collection(number, other)
    with store.read() as snapshot:
        snapshot.collection(number, SMALL)
        with pytest.raises(SchemaError, match="is open with"):
            snapshot.collection(number, other)
    store.close()


def test_bad_rows_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    rng = np.random.default_rng(1)
    with store.write() as tx:
        number = tx.create_collection(b"a")
        table = tx.collection(number, SMALL)
        append(table, make_rows(rng, 5))
        with pytest.raises(ValueError, match="2 rows, but 1 key hashes"):
            table.append(2, np.zeros(1, np.uint64), packed([b"", b""]), {})
        with pytest.raises(ValueError, match="fields"):
            table.append(1, np.zeros(1, np.uint64), packed([b""]), {})
        table.remove(np.array([3], np.uint32))
        with pytest.raises(ValueError, match="not live, for example 3"):
            table.remove(np.array([2, 3], np.uint32))
        with pytest.raises(ValueError, match="not live, for example 9"):
            table.remove(np.array([2, 9], np.uint32))
        with pytest.raises(ValueError, match="repeat"):
            table.remove(np.array([2, 2], np.uint32))
        assert table.state.live == 4
    store.close()


def test_used_up_row_ids_are_refused_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MAX_ROW", 99)
    rng = np.random.default_rng(2)
    store = Store.open(tmp_path / "store", durability="relaxed")
    model = Model(make_rows(rng, 60))
    with store.write() as tx:
        number = tx.create_collection(b"schema")
        append(tx.collection(number, SMALL), model.rows)
    with store.write() as tx:
        table = tx.collection(number, SMALL)
        with pytest.raises(WriteError, match="used 60 of 100 row ids, no room for 41"):
            append(table, make_rows(rng, 41))
        more = make_rows(rng, 40)
        append(table, more)
        model.rows += more
        table.remove(np.array([7], np.uint32))
        model.rows[7].live = False
    with store.read() as snapshot:
        assert_equal(snapshot.collection(number, SMALL), model)
        assert list(snapshot.verify()) == []
    store.close()


def test_an_append_that_fails_half_way_cannot_be_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(tmp_path / "store", durability="relaxed")
    rng = np.random.default_rng(2)
    with store.write() as tx:
        number = tx.create_collection(b"schema")

    def fail(*_: object) -> None:
        raise MemoryError

    tx = store.write()
    table = tx.collection(number, SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(tails.SignatureTail, "append", fail)
        with pytest.raises(MemoryError):
            append(table, make_rows(rng, 5))
    with pytest.raises(WriteError, match="failed half-way"):
        tx.commit()
    with store.read() as snapshot:
        assert snapshot.collection(number, SMALL).state.next_row == 0
        assert list(snapshot.verify()) == []
    store.close()
