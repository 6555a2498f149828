"""Cases from users of other tools, as they touch collections."""

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

import simindex
from simindex.api import Database
from simindex.errors import QuotaReached


def words(*numbers: int) -> str:
    return " ".join(f"w{n:07}" for n in numbers)


def test_shorter_than_the_shingle(db: Database) -> None:
    """T2."""
    items = db.create_collection("t2", {"body": simindex.text(shingle="words:5", threshold=0.9)})
    bodies = {"a": "cat", "b": "dog", "c": "cat", "d": "one two three four"}
    assert items.put_many([{"key": k, "body": b} for k, b in bodies.items()]).shortened == 4
    assert [(h.key, h.score) for h in items.search(body="cat")] == [("a", 1.0), ("c", 1.0)]
    assert [h.key for h in items.search(body="one two three four")] == ["d"]
    for n in (4, 5, 6):
        items.put(str(n), {"body": words(*range(n))})
        assert [h.key for h in items.search(body=words(*range(n)))] == [str(n)]
    assert db.stats().shortened == 5


@pytest.mark.parametrize("bad", ["abc \ud835 def", b"abc \xff\xfe def", "a\0b c d", "\udfff"])
def test_bad_bytes_in_the_middle_of_a_batch(db: Database, bad: str | bytes) -> None:
    """T6."""
    items = db.create_collection("t6", {"body": simindex.text(shingle="words:1", keep=True)}, key="int")
    rows = [{"key": i, "body": words(i, i + 1, i + 2)} for i in range(1000)]
    rows[500]["body"] = bad
    assert items.put_many(rows, batch=250).inserted == 1000
    items.put(2000, {"body": bad})
    assert items[500] == {"body": bad}
    hits = items.search(body=bad)
    assert [(h.key, h.score) for h in hits] == ([(500, 1.0), (2000, 1.0)] if bad != "\udfff" else [])
    assert [h.key for h in items.search(body=words(7, 8, 9))] == [7]


def test_set_or_bag(db: Database) -> None:
    """T9."""
    items = db.create_collection("t9", {"body": simindex.text(shingle="words:1"), "tags": simindex.tokens()})
    items.put("a", {"body": "apple " * 40 + "banana " * 2, "tags": ["apple"] * 40 + ["banana"] * 2})
    for hits in (
        items.search(body="apple " * 2 + "banana " * 40),
        items.search(tags=["apple"] * 2 + ["banana"] * 40),
    ):
        assert [h.score for h in hits] == [1.0]
        assert hits.measure == "jaccard"


def test_one_family_of_many(db: Database) -> None:
    """H1, a tenth of it: a template with one token replaced, beside unrelated documents."""
    n = 6_000
    items = db.create_collection("h1", {"tags": simindex.tokens(threshold=0.8)}, key="int")
    template = np.arange(400, dtype=np.uint64)
    family = np.tile(template, n)
    family[np.arange(n) * 400 + 7] = np.arange(n) + 10**6
    others = np.arange(n * 20, dtype=np.uint64) + np.uint64(10**9)
    rates = []
    for at in range(0, n, 1000):
        start = time.process_time()
        part = (family[at * 400 : (at + 1000) * 400], np.arange(0, 400 * 1001, 400))
        items.put_many({"key": np.arange(at, at + 1000), "tags": part}, threads=0)
        rates.append(1000 / (time.process_time() - start))
    items.put_many({"key": np.arange(n, 2 * n), "tags": (others, np.arange(0, 20 * n + 1, 20))})
    assert rates[-1] > min(rates[:2]) / 3
    query = family[400 * 5 : 400 * 6]
    hits = items.search(tags=query, k=10, threshold=0.8)
    assert hits[0].key == 5
    assert len({h.key for h in hits}) == 10
    assert hits.tie_cut
    cut = items.search(tags=query, k=10, threshold=0.8, budget=100)
    assert cut.truncated
    assert cut[0].key == 5
    with db.write() as tx:
        for key in range(1000):
            assert tx["h1"].delete(key)
    assert len(items.search(tags=query)) == n - 1000
    assert [h.key for h in items.search(tags=others[40:60])] == [n + 2]


def test_threshold_search_finds_the_planted_pairs(db: Database) -> None:
    """P4: candidates of b=16, r=8 follow 1 - (1 - s^r)^b. seed 11, n = 1,000 pairs a similarity, alpha about
    1e-4.
    """
    pairs, size = 1000, 400
    field = simindex.tokens(threshold=0.5, bands=(16, 8), verify="estimate", force=True)
    rng = np.random.default_rng(11)
    for s, chance in ((0.6, 0.237), (0.7, 0.613), (0.8, 0.947)):
        shared = round(2 * size * s / (1 + s))
        values = rng.integers(0, 2**63, (pairs, 2 * size - shared)).astype(np.uint64)
        items = db.create_collection(f"s{s}", {"tags": field}, key="int")
        ptr = np.arange(0, pairs * size + 1, size)
        items.put_many({"key": np.arange(pairs), "tags": (values[:, :size].reshape(-1), ptr)})
        queries = (np.ascontiguousarray(values[:, size - shared :]).reshape(-1), ptr)
        found = items.search_many(tags=queries, threshold=0.5, plan="buckets", accept="possible")
        own = int((found.keys == found.query.astype(np.uint64)).sum())
        true = shared / (2 * size - shared)
        expected = field.bucket_probability(true)
        assert expected == pytest.approx(chance, abs=0.03)
        assert abs(own / pairs - expected) < 4 * (expected * (1 - expected) / pairs) ** 0.5
        found = items.search_many(tags=queries, threshold=0.8, plan="scan")
        assert (found.score >= 0.8).all()
        db.drop_collection(f"s{s}")


def _search(path: str, out) -> None:  # type: ignore[no-untyped-def]
    with simindex.open(path, "r") as db:
        out.put([h.key for h in db["c"].search(tags=[3, 4, 5])])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes(tmp_path: Path, method: str) -> None:
    """D4: children of either kind read, the parent goes on reading and writing."""
    path = tmp_path / "t.simdb"
    with simindex.open(path, durability="relaxed") as db:
        items = db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)}, key="int")
        items.put_many([{"key": i, "tags": [i, i + 1, i + 2]} for i in range(100)])
        assert items.search(tags=[3, 4, 5])[0].key == 3
        context = multiprocessing.get_context(method)
        out = context.Queue()
        children = [context.Process(target=_search, args=(str(path), out)) for _ in range(3)]
        for child in children:
            child.start()
        answers = [out.get(timeout=60) for _ in children]
        for child in children:
            child.join(60)
            assert child.exitcode == 0
        assert all(answer[0] == 3 for answer in answers)
        items.put(1000, {"tags": [3, 4, 5]})
        assert [h.key for h in items.search(tags=[3, 4, 5])][:2] == [3, 1000]


def test_an_inherited_database_works_in_the_child(tmp_path: Path) -> None:
    """D4: a child that only inherits."""
    with simindex.open(tmp_path / "t.simdb", durability="relaxed") as db:
        items = db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)}, key="int")
        items.put(1, {"tags": [1, 2]})
        assert items.search(tags=[1, 2], plan="buckets")
        pid = os.fork()
        if pid == 0:
            right = False
            try:
                right = [h.key for h in items.search(tags=[1, 2], plan="buckets")] == [1]
                items.put(2, {"tags": [1, 2]})
                right = right and [h.key for h in items.search(tags=[1, 2], plan="buckets")] == [1, 2]
            finally:
                os._exit(0 if right else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert [h.key for h in items.search(tags=[1, 2], plan="buckets")] == [1, 2]
        items.put(3, {"tags": [1, 2]})
        assert len(items) == 3


def test_a_full_quota_leaves_everything_readable_and_deletable(tmp_path: Path) -> None:
    """D3: a clean error, whole batches, and room again after deletes."""
    with simindex.open(tmp_path / "t.simdb", durability="relaxed", max_bytes=8 << 20) as db:
        items = db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)}, key="int")
        stored = 0
        with pytest.raises(QuotaReached):  # noqa: PT012
            for at in range(0, 200_000, 500):
                items.put_many([{"key": at + i, "tags": [at + i, 1, 2]} for i in range(500)])
                stored = at + 500
        assert stored > 2000
        assert len(items) == stored
        assert items.search(tags=[7, 1, 2], threshold=1.0)[0].key == 7
        assert db.check() == []
        for at in range(0, stored, 500):
            with db.write() as tx:
                for i in range(0, 500, 2):
                    assert tx["c"].delete(at + i)
        assert len(items) == stored // 2
        items.put(10**6, {"tags": [5]})
        assert items.search(tags=[5], threshold=1.0)[0].key == 10**6
        assert os.path.getsize(tmp_path / "t.simdb") <= (8 << 20) * 1.2 + (1 << 20)


@pytest.mark.damages
def test_files_that_are_no_stores_are_refused_untouched(tmp_path: Path) -> None:
    from simindex.errors import NotAStore, OpenError

    text = tmp_path / "a.txt"
    text.write_text("hello " * 4000)
    cut = tmp_path / "cut.simdb"
    with simindex.open(cut) as db:
        db.create_collection("c", {"tags": simindex.tokens()}).put_many([{"key": str(i)} for i in range(500)])
    cut.write_bytes(cut.read_bytes()[:6000])
    for path in (text, cut):
        before = path.read_bytes()
        with pytest.raises(OpenError):
            simindex.open(path)
        assert path.read_bytes() == before
    with pytest.raises(NotAStore):
        simindex.open(text)
    with pytest.raises(OpenError):
        simindex.open(tmp_path / "no" / "folder.simdb")
    with pytest.raises(OpenError):
        simindex.open(tmp_path / "none.simdb", "r")
    for wrong in ({"mode": "a"}, {"durability": "none"}, {"max_bytes": 0}, {"timeout": -1}):
        with pytest.raises((simindex.SimindexError, ValueError)):
            simindex.open(tmp_path / "x.simdb", **wrong)
        assert not (tmp_path / "x.simdb").exists()
