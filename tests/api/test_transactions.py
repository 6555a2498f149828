"""Transactions and snapshots: all or nothing, own writes seen, others' commits not."""

import threading
from pathlib import Path

import pytest

import simindex
from simindex.api import Collection, Database
from simindex.errors import Closed, NoSuchCollection, ReadOnly, SimindexError, WriteError


def test_a_transaction_sees_its_own_writes_and_others_do_not(db: Database, sets: Collection) -> None:
    sets.put("old", {"tags": ["o"]})
    with db.write() as tx:
        mine = tx["sets"]
        mine.put("p", {"tags": ["a", "b"], "n": 1})
        mine.delete("old")
        assert [h.key for h in mine.search(tags=["a", "b"])] == ["p"]
        assert mine["p"] == {"n": 1}
        assert "old" not in mine
        assert (len(mine), list(mine)) == (1, ["p"])
        mine.put("p", {"tags": ["c"]})
        assert mine.search(tags=["a", "b"]) == []
        assert [h.key for h in mine.search_many(tags=[["c"]]).keys and mine.search(tags=["c"])] == ["p"]
        assert sets.search(tags=["c"]) == []
        assert list(sets) == ["old"]
    assert list(sets) == ["p"]
    assert [h.key for h in sets.search(tags=["c"])] == ["p"]


def test_an_exception_writes_nothing(db: Database, sets: Collection) -> None:
    """D2."""
    with pytest.raises(ZeroDivisionError), db.write() as tx:  # noqa: PT012
        for i in range(10):
            tx["sets"].put(str(i), {"tags": [str(i)]})
        raise ZeroDivisionError
    assert len(sets) == 0
    assert sets.search(tags=["3"]) == []
    sets.put("after", {"tags": ["3"]})
    assert [h.key for h in sets.search(tags=["3"])] == ["after"]


def test_transactions_do_not_nest_and_say_so(db: Database, sets: Collection) -> None:
    with db.write() as tx:
        tx["sets"].put("p", {})
        for call in (lambda: sets.put("q", {}), lambda: db.write().__enter__(), lambda: sets.delete("p")):
            with pytest.raises(WriteError, match="transaction is open in this thread"):
                call()
        tx["sets"].put("r", {})
    assert list(sets) == ["p", "r"]


def test_transactions_and_snapshots_end(db: Database, sets: Collection) -> None:
    with db.write() as tx:
        inside = tx["sets"]
    with pytest.raises(Closed):
        inside.put("p", {})
    with pytest.raises(Closed):
        tx["sets"]
    snapshot = db.snapshot()
    frozen = snapshot["sets"]
    snapshot.close()
    snapshot.close()
    with pytest.raises(Closed):
        len(frozen)
    with pytest.raises(Closed):
        snapshot["sets"]


def test_several_collections_in_one_transaction(db: Database, sets: Collection, numbers: Collection) -> None:
    with db.write() as tx:
        tx["sets"].put("p", {"tags": ["a"]})
        tx["numbers"].put(1, {"tags": ["a"]})
    assert (len(sets), len(numbers)) == (1, 1)
    with pytest.raises(NoSuchCollection), db.write() as tx:  # noqa: PT012
        tx["sets"].put("q", {})
        tx["number"]
    assert len(sets) == 1


def test_a_snapshot_stands_still(db: Database, sets: Collection) -> None:
    sets.put("p", {"tags": ["a"]})
    with db.snapshot() as then:
        frozen = then["sets"]
        sets.put("p", {"tags": ["b"]})
        sets.put_many([{"key": str(i), "tags": ["a"]} for i in range(3000)], batch=100)
        db.create_collection("later", {"tags": simindex.tokens()})
        assert [h.key for h in frozen.search(tags=["a"])] == ["p"]
        assert (len(frozen), list(frozen)) == (1, ["p"])
        assert then.collections() == ["sets"]
        with pytest.raises(AttributeError):
            frozen.put("q", {})  # type: ignore[attr-defined]
        assert db.stats().oldest is not None
        assert db.stats().oldest.lag >= 30  # type: ignore[union-attr]
    assert db.stats().oldest is None
    assert len(sets.search(tags=["a"])) == 3000


def test_a_snapshot_belongs_to_its_thread(db: Database, sets: Collection) -> None:
    caught: list[Exception] = []

    def use() -> None:
        try:
            snapshot["sets"]
        except SimindexError as error:
            caught.append(error)

    with db.snapshot() as snapshot:
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert "thread" in str(caught[0])


def test_readers_in_threads_see_whole_batches_only(db: Database, sets: Collection) -> None:
    stop, wrong, seen = threading.Event(), [], set()

    def read() -> None:
        while not stop.is_set():
            n = len(sets)
            hits = len(sets.search(tags=["same"], threshold=0.5))
            later = len(sets)
            seen.add(n)
            if n % 50 or hits % 50 or not n <= hits <= later:
                wrong.append((n, hits, later))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(40):
        sets.put_many([{"key": f"{i} {j}", "tags": ["same"]} for j in range(50)])
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(sets) == 2000


def test_writers_in_threads_wait_for_each_other(db: Database, sets: Collection) -> None:
    def write(name: int) -> None:
        for i in range(40):
            sets.put(f"{name} {i}", {"tags": [str(i)]})
            with db.write() as tx:
                tx["sets"].put("count", {"n": tx["sets"].get("count", {"n": 0})["n"] + 1})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sets["count"] == {"n": 160}
    assert len(sets) == 161


def test_opened_twice_and_read_only(tmp_path: Path) -> None:
    """D5."""
    path = tmp_path / "t.simdb"
    one = simindex.open(path)
    items = one.create_collection("c", {"tags": simindex.tokens()})
    items.put("p", {"tags": ["a"]})
    (tmp_path / "link.simdb").symlink_to(path)
    two = simindex.open(tmp_path / "link.simdb")
    reading = simindex.open(path, "r")
    assert [h.key for h in two["c"].search(tags=["a"])] == ["p"]
    with pytest.raises(ReadOnly):
        reading["c"].put("q", {})
    with pytest.raises(ReadOnly):
        reading.create_collection("d", {"tags": simindex.tokens()})
    one.close()
    two["c"].put("q", {"tags": ["a"]})
    assert len(reading["c"].search(tags=["a"])) == 2
    with pytest.raises(Closed):
        len(items)
    two.close()
    assert len(reading["c"]) == 2
    reading.close()
    reading.close()


def test_memory_databases_are_apart() -> None:
    with simindex.open(":memory:") as one, simindex.open(":memory:") as two:
        one.create_collection("c", {"tags": simindex.tokens()}).put("p", {"tags": ["a"]})
        assert two.collections() == []
        assert one.collections() == ["c"]


def test_reopened_files_answer_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.simdb"
    with simindex.open(path) as db:
        items = db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)})
        items.put_many([{"key": str(i), "tags": [i, i + 1, i + 2], "n": i} for i in range(500)])
        before = items.search_many(tags=[[i, i + 1] for i in range(500)], k=3)
    for mode in ("r", "w"):
        with simindex.open(path, mode) as db:  # type: ignore[arg-type]
            after = db["c"].search_many(tags=[[i, i + 1] for i in range(500)], k=3)
            assert after.keys == before.keys
            assert after.score.tolist() == before.score.tolist()
            assert db["c"]["7"] == {"n": 7}
