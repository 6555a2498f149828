"""The short way of a single search answers what the long way answers."""

from typing import Any

import numpy as np
import pytest

import simindex
from simindex.api import Collection, Database
from simindex.index import searching

WORDS = [f"word{i}" for i in range(40)]


def sentences(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        text = [WORDS[i] for i in rng.integers(0, 40, int(rng.integers(0, 30)))]
        made.append(" ".join(text))
        if made and rng.random() < 0.5:
            copy = list(text)
            if copy:
                copy[int(rng.integers(len(copy)))] = "changed"
            made.append(" ".join(copy))
    return made


def both(items: Collection, db: Database, **arguments: Any) -> tuple[simindex.Hits, simindex.Hits]:
    """Return what the collection answers, and what it does where a budget, too large to cut, makes it go the
    long way.
    """
    with db.snapshot() as snapshot:
        short = items.search(**arguments)
        assert snapshot[items.name].search(**arguments) == short
        return short, items.search(**arguments, budget=10**9)


@pytest.mark.parametrize("verify", ["exact", "estimate"])
@pytest.mark.parametrize("key", ["str", "bytes", "int"])
def test_both_ways_agree(isa: None, verify: str, key: str) -> None:
    make = {
        "str": lambda i: f"ключ {i}\ud800",
        "bytes": lambda i: b"\xff%d" % i,
        "int": lambda i: 2**64 - 1 - i,
    }[key]
    texts = sentences(150, 3)
    with simindex.open(":memory:") as db:
        field = simindex.text(threshold=0.5, verify=verify)
        items = db.create_collection("c", {"body": field}, key=key)  # type: ignore[arg-type]
        rows = [{"key": make(i), "body": t, **({"n": i} if i % 3 else {})} for i, t in enumerate(texts)]
        items.put_many(rows, batch=40)
        for i in range(0, len(texts), 5):
            items.delete(make(i))
        for text in [*texts[:80], "", "nothing of it is here at all"]:
            for options in (
                {},
                {"threshold": 0.8},
                {"k": 1},
                {"k": 2, "threshold": 0.5},
                {"accept": "possible"},
            ):
                short, long = both(items, db, body=text, plan="buckets", **options)
                assert short == long
                assert (short.plan, short.tie_cut, short.truncated) == (
                    long.plan,
                    long.tie_cut,
                    long.truncated,
                )
                assert [type(hit) for hit in short] == [simindex.Hit] * len(long)


def test_the_short_way_is_taken_and_left_where_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    long_ways: list[str] = []
    whole = searching.search_value

    def counted(table: Any, schema: Any, search: Any, value: Any) -> simindex.Hits:
        long_ways.append(search.name)
        return whole(table, schema, search, value)

    monkeypatch.setattr(searching, "search_value", counted)
    with simindex.open(":memory:") as db:
        items = db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)})
        items.put_many([{"key": str(i), "tags": [i, i + 1, i + 2]} for i in range(300)])
        query = {"tags": [7, 8, 9], "plan": "buckets"}
        first = items.search(**query)  # fetches
        assert items.search(**query) == items.search(**query) == first
        assert len(long_ways) == 1
        items.put("300", {"tags": [7, 8, 9]})
        assert [h.key for h in items.search(**query)][:2] == ["300", "7"]
        taken = len(long_ways)
        assert [h.key for h in items.search(**query)][:2] == ["300", "7"]
        assert len(long_ways) == taken
        items.search(tags=[7, 8, 9])  # a scan, below 10,000 items
        items.search(**query, budget=1)
        assert len(long_ways) == taken + 2
        assert items.search(tags=(t for t in [7, 8, 9]), plan="buckets", threshold=1.0) != []


def test_ready_signatures_and_other_families() -> None:
    with simindex.open(":memory:") as db:
        for family in ("fastsim/1", "minhash/1"):
            field = simindex.tokens(threshold=0.5, verify="estimate", family=family)
            items = db.create_collection(family, {"tags": field}, key="int")
            items.put_many({"key": np.arange(50), "tags": [[i, i + 1, i + 2, i + 3] for i in range(50)]})
            from simindex.features import set_features

            signature = field.family.sign(set_features([[7, 8, 9, 10]]))[0]
            for value in (signature, [7, 8, 9, 10], {7, 8, 9, 10}):
                short, long = both(items, db, tags=value, plan="buckets")
                assert short == long
                assert short[0].key == 7


def test_searches_beside_writes_see_whole_commits() -> None:
    import threading

    with simindex.open(":memory:") as db:
        items = db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)}, key="int")
        items.put_many([{"key": i, "tags": ["same"]} for i in range(10)])
        stop, wrong = threading.Event(), []

        def read() -> None:
            while not stop.is_set():
                n = len(items.search(tags=["same"], plan="buckets"))
                if n % 10:
                    wrong.append(n)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for i in range(1, 60):
            items.put_many([{"key": 10 * i + j, "tags": ["same"]} for j in range(10)])
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(items.search(tags=["same"], plan="buckets")) == 600
