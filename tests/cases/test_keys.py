"""Keys: duplicates, replacing, deleting, adding again, a long random life, sizes 0 and 1 (K1 to K4, K6)."""

import random
import subprocess
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from cases.sets import jaccard, tok, words

import simindex
from simindex.api import Collection, Database
from simindex.errors import KeyExists

PLANS = ("scan", "buckets", None)


@pytest.fixture
def items(db: Database) -> Collection:
    return db.create_collection("k", {"tags": simindex.tokens(threshold=0.5)})


def found(items: Any, tags: list[str]) -> list[str]:
    """The keys that a search finds, the same by every plan."""
    answers = [[hit.key for hit in items.search(tags=tags, plan=plan)] for plan in PLANS]
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


def test_insert_of_a_key_twice_in_a_batch_stores_nothing(db: Database, items: Collection) -> None:
    """K1: elsewhere both are accepted, as the buffer is not in the store yet."""
    with pytest.raises(KeyExists, match="'p'"), db.write() as tx:  # noqa: PT012
        tx["k"].insert("other", {"tags": tok(50, 60)})
        tx["k"].insert("p", {"tags": tok(0, 10)})
        tx["k"].insert("p", {"tags": tok(20, 30)})
    assert len(items) == 0
    assert found(items, tok(0, 10)) == found(items, tok(50, 60)) == []
    assert db.check() == []


@pytest.mark.parametrize("how", ["transaction", "put_many"])
def test_put_of_a_key_twice_in_a_batch_keeps_the_last(db: Database, items: Collection, how: str) -> None:
    """K1: the first one's buckets hold no entry."""
    rows = [{"key": "p", "tags": tok(0, 10), "n": 1}, {"key": "p", "tags": tok(20, 30), "n": 2}]
    if how == "put_many":
        report = items.put_many(rows)
        assert (report.inserted, report.replaced) == (1, 1)
    else:
        with db.write() as tx:
            for row in rows:
                tx["k"].put("p", {name: row[name] for name in ("tags", "n")})
            assert found(tx["k"], tok(20, 30)) == ["p"]
            assert found(tx["k"], tok(0, 10)) == []
    assert found(items, tok(0, 10)) == []
    assert found(items, tok(20, 30)) == ["p"]
    assert items["p"] == {"n": 2}
    assert len(items) == 1
    assert db.check() == []


def test_replacing_moves_buckets(db: Database, items: Collection) -> None:
    """K2."""
    items.put("p", {"tags": tok(0, 10)})
    assert found(items, tok(0, 10)) == ["p"]
    items.put("p", {"tags": tok(20, 30)})
    assert found(items, tok(0, 10)) == []
    assert found(items, tok(20, 30)) == ["p"]
    assert db.check() == []


@pytest.mark.parametrize("order", list(permutations("123")))
def test_deleted_items_come_back(items: Collection, order: tuple[str, ...]) -> None:
    """K3: elsewhere only one of three is visible, or under a wrong key."""
    sets = {"1": tok(0, 20), "2": tok(0, 19), "3": tok(0, 18)}

    def all_three() -> None:
        for plan in PLANS:
            hits = items.search(tags=tok(0, 20), k=3, threshold=0.5, plan=plan)
            assert [(h.key, h.score) for h in hits] == [("1", 1.0), ("2", 0.95), ("3", 0.9)]
        assert [h.key for h in items.search(tags=tok(0, 20), k=3)] == ["1", "2", "3"]

    for key, tags in sets.items():
        items.put(key, {"tags": tags})
    assert items.delete("1")
    assert found(items, tok(0, 20)) == ["2", "3"]
    items.put("1", {"tags": sets["1"]})
    all_three()
    left = set(sets)
    for key in order:
        assert items.delete(key)
        assert not items.delete(key)
        left.remove(key)
        assert found(items, tok(0, 20)) == sorted(left)
    for key in order:
        items.put(key, {"tags": sets[key]})
    all_three()


def live(path: Path, operations: int, keys: int, restart: int, seed: int) -> None:
    """Random operations beside a dictionary; sets are equal or less than 0.3 alike, so buckets find them
    all.
    """
    rng = random.Random(seed)
    families = [frozenset(range(f * 9, f * 9 + 11)) for f in range(keys // 4)]
    assert jaccard(set(families[0]), set(families[1])) < 0.3
    model: dict[int, frozenset[int]] = {}
    holders: dict[frozenset[int], set[int]] = {f: set() for f in families}
    field = simindex.tokens(threshold=0.8)

    def forget(key: int) -> bool:
        old = model.pop(key, None)
        if old is not None:
            holders[old].discard(key)
        return old is not None

    def remember(key: int, tags: frozenset[int]) -> None:
        forget(key)
        model[key] = tags
        holders[tags].add(key)

    for first in range(0, operations, restart):
        with simindex.open(path, durability="relaxed") as db:
            items = db.create_collection("k4", {"tags": field}, key="int", exist_ok=True)
            for _ in range(restart):
                key, tags, what = rng.randrange(keys), rng.choice(families), rng.randrange(10)
                if what < 4:
                    items.put(key, {"tags": tags})
                    remember(key, tags)
                elif what < 5 and key in model:
                    with pytest.raises(KeyExists):
                        items.insert(key, {"tags": tags})
                elif what < 5:
                    items.insert(key, {"tags": tags})
                    remember(key, tags)
                elif what < 7:
                    assert items.delete(key) == forget(key)
                else:
                    hits = items.search(tags=tags, plan=rng.choice(PLANS))
                    assert [(h.key, h.score) for h in hits] == [(k, 1.0) for k in sorted(holders[tags])]
            assert len(items) == len(model)
            if operations <= 5_000 or first % (restart * 20) == 0:
                assert db.check() == []
    with simindex.open(path, durability="relaxed") as db:
        assert sorted(db["k4"]) == sorted(model)
        assert db.check() == []  # as many bucket entries as the live items make, and no others


@pytest.mark.parametrize(
    ("operations", "keys", "restart"),
    [(1_500, 60, 300), pytest.param(200_000, 5_000, 1_000, marks=pytest.mark.long)],
)
def test_a_random_life_agrees_with_a_dictionary(path: Path, operations: int, keys: int, restart: int) -> None:
    """K4."""
    live(path, operations, keys, restart, seed=2_004)


def test_an_empty_collection_finds_nothing(items: Collection) -> None:
    """K6."""
    assert found(items, tok(0, 5)) == []
    assert items.search(tags=tok(0, 5), k=10) == []
    assert items.search(tags=[]) == []
    assert [len(hits) for hits in items.search_many(tags=[tok(0, 5), []], k=3)] == [0, 0]
    assert list(items) == []
    assert items.put_many([]).inserted == 0


def test_a_collection_of_one_item_finds_it(items: Collection) -> None:
    """K6: elsewhere an index of one item matches nothing."""
    items.put("only", {"tags": ["x"]})
    assert found(items, ["x"]) == ["only"]
    assert [(h.key, h.score) for h in items.search(tags=["x"], k=5)] == [("only", 1.0)]
    assert found(items, ["y"]) == []


@pytest.mark.parametrize("n", [0, 1, 30])
def test_a_corpus_without_duplicates_passes_through_the_command(
    command: Callable[..., subprocess.CompletedProcess[str]],
    lines: Callable[..., Path],
    tmp_path: Path,
    n: int,
) -> None:
    """K6: elsewhere the pipeline crashes when there is nothing to remove."""
    source = lines("in.jsonl", [{"text": words(i * 20, i * 20 + 20)} for i in range(n)])
    done = command("dedup", source, "-o", "out.jsonl", "--clusters", "clusters.jsonl", "--index", "i.simdb")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()
    assert (tmp_path / "clusters.jsonl").read_bytes() == b""
    assert command("check", "i.simdb").returncode == 0


def test_every_item_finds_itself_first(db: Database) -> None:
    """Self-retrieval: elsewhere exact copies among many copies are missed."""
    rng = random.Random(41)
    for verify in ("exact", "estimate"):
        field = simindex.tokens(threshold=0.8, verify=verify)
        items = db.create_collection(verify, {"tags": field}, key="int")
        sets = [rng.sample(range(10_000), rng.choice([1, 2, 10, 100, 700])) for _ in range(150)]
        sets += [sets[i % 3] for i in range(100)]  # families of copies
        items.put_many([{"key": i, "tags": tags} for i, tags in enumerate(sets)], batch=60)
        for plan in ("scan", "buckets"):
            for i, hits in enumerate(items.search_many(tags=sets, plan=plan)):
                assert (i, 1.0) in hits
                assert hits[0][1] == 1.0
        for i in (3, 50, 149):
            assert items.search(tags=sets[i], k=1)[0].key == i


@pytest.mark.parametrize(
    ("n", "size", "growth"),
    [
        (20_000, 20, 1.8),  # merges work by whole segments, so small files breathe more
        pytest.param(100_000, 40, 1.3, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("verify", ["exact", "estimate"])
def test_twenty_rounds_of_replacing_do_not_grow_the_file(
    path: Path, n: int, size: int, growth: float, verify: str
) -> None:
    """At most 1.3 times the file's size after round 2, from 100,000 items on."""
    import numpy as np

    rng = np.random.default_rng(20)
    field = simindex.tokens(threshold=0.8, verify=verify)
    with simindex.open(path, durability="relaxed") as db:
        items = db.create_collection("r", {"tags": field}, key="int")
        sizes = []
        for _ in range(20):
            hashes = rng.integers(0, 2**63, n * size).astype(np.uint64)
            items.put_many(
                {"key": np.arange(n), "tags": (hashes, np.arange(0, n * size + 1, size))},
                batch=max(n // 10, 100),
            )
            sizes.append(db.stats().usage.file_bytes)
        assert len(items) == n
        assert max(sizes[2:]) <= growth * sizes[1], sizes
