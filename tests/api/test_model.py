"""Random operations against a dictionary and brute force (case K4), with the file reopened on the way."""

import tempfile
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

import simindex
from simindex.errors import KeyExists

Model = dict[Any, tuple[frozenset[int], dict[str, Any]]]


def expected(model: Model, query: frozenset[int], threshold: float) -> list[tuple[Any, float]]:
    """Brute force: every item whose set reaches the threshold, best first, then by key."""
    hits = []
    for key, (tags, _) in model.items():
        if tags and query:
            score = len(tags & query) / len(tags | query)
            if score >= threshold:
                hits.append((key, score))
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def operate(
    items: Any, model: Model, key: int, tags: frozenset[int], random: Random, plan: str | None, step: int
) -> None:
    action = random.random()
    if action < 0.4:
        items.put(key, {"tags": tags, "n": step})
        model[key] = (tags, {"n": step})
    elif action < 0.5:
        try:
            items.insert(key, {"tags": tags})
            assert key not in model
            model[key] = (tags, {})
        except KeyExists:
            assert key in model
    elif action < 0.7:
        assert items.delete(key) == (model.pop(key, None) is not None)
    elif action < 0.8:
        assert items.get(key) == (model[key][1] if key in model else None)
    else:
        hits = items.search(tags=tags, threshold=0.7, plan=plan)
        assert [(h.key, h.score) for h in hits] == expected(model, tags, 0.7)


def run(path: Path, steps: int, keys: int, reopen: int, plan: str | None, seed: int) -> None:
    """Sets of one of 60 families (equal within one, at most 0.3 alike across): buckets find them all."""
    random = Random(seed)
    families = [frozenset(range(f * 10, f * 10 + 12)) for f in range(60)]
    model: Model = {}
    db = simindex.open(path, durability="relaxed")
    items = db.create_collection("k4", {"tags": simindex.tokens(threshold=0.7)}, key="int")
    for first in range(0, steps, 20):
        if first and first % reopen == 0:
            db.close()
            db = simindex.open(path, durability="relaxed")
            items = db["k4"]
        with db.write() if random.random() < 0.8 else nullcontext({"k4": items}) as scope:
            for step in range(first, first + 20):
                operate(
                    scope["k4"], model, random.randrange(keys), random.choice(families), random, plan, step
                )
    assert len(items) == len(model)
    assert set(items) == set(model)
    db.close()  # checked: every posting belongs to a live item


@pytest.mark.parametrize("plan", ["buckets", None])
def test_random_operations_agree_with_a_dictionary(tmp_path: Path, plan: str | None) -> None:
    run(tmp_path / "k4.simdb", 1_500, 100, 500, plan, seed=4)


@pytest.mark.long
def test_200_000_random_operations_agree_with_a_dictionary(tmp_path: Path) -> None:
    run(tmp_path / "k4.simdb", 200_000, 5_000, 1_000, "buckets", seed=4)


KEYS = st.text("ab\0é", max_size=2)
SETS = st.frozensets(st.integers(0, 9), max_size=6)


class Machine(RuleBasedStateMachine):
    """Any small sets; below 10,000 items nothing may be missed, so every answer equals brute force."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model: Model = {}

    @initialize()
    def create(self) -> None:
        self.db = simindex.open(Path(self.folder.name) / "m.simdb")
        self.items = self.db.create_collection("m", {"tags": simindex.tokens(threshold=0.5)})

    @rule(target=keys, key=KEYS)
    def key(self, key: str) -> str:
        return key

    def _store(self, key: str, tags: frozenset[int], attributes: dict) -> None:
        if self.model.get(key) != (tags, attributes):
            self.model.pop(key, None)
        self.model[key] = (tags, attributes)

    @rule(key=keys, tags=SETS, n=st.integers(0, 2))
    def put(self, key: str, tags: frozenset[int], n: int) -> None:
        self.items.put(key, {"tags": tags, "n": n})
        self._store(key, tags, {"n": n})

    @rule(some=st.lists(st.tuples(KEYS, SETS), max_size=6))
    def put_many(self, some: list[tuple[str, frozenset[int]]]) -> None:
        report = self.items.put_many([{"key": key, "tags": tags} for key, tags in some], threads=0)
        last = dict(some)
        assert report.inserted == sum(key not in self.model for key in last)
        for i, (key, tags) in enumerate(some):
            if all(key != later for later, _ in some[i + 1 :]):
                self._store(key, tags, {})

    @rule(key=keys)
    def delete(self, key: str) -> None:
        assert self.items.delete(key) == (self.model.pop(key, None) is not None)

    @rule(key=keys, n=st.integers(0, 2))
    def update(self, key: str, n: int) -> None:
        if key in self.model:
            self.items.update(key, {"n": n})
            tags, attributes = self.model[key]
            self._store(key, tags, {**attributes, "n": n})
        else:
            with pytest.raises(KeyError):
                self.items.update(key, {"n": n})

    @rule(query=SETS, threshold=st.sampled_from([0.25, 0.5, 0.6, 1.0]), k=st.none() | st.integers(1, 4))
    def search(self, query: frozenset[int], threshold: float, k: int | None) -> None:
        hits = self.items.search(tags=query, threshold=threshold, k=k)
        wanted = expected(self.model, query, threshold)
        assert [(h.key, h.score) for h in hits] == wanted[:k]
        assert hits.tie_cut == (k is not None and len(wanted) > k and wanted[k - 1][1] == wanted[k][1])
        batch = self.items.search_many(tags=[query, query], threshold=threshold, k=k)
        assert batch[0] == batch[1] == wanted[:k]

    @rule(query=SETS, k=st.integers(1, 5))
    def best(self, query: frozenset[int], k: int) -> None:
        hits = self.items.search(tags=query, k=k)
        assert [(h.key, h.score) for h in hits] == expected(self.model, query, 0.0)[:k]

    @rule(key=keys, tags=SETS)
    def fail_in_a_transaction(self, key: str, tags: frozenset[int]) -> None:
        with pytest.raises(ZeroDivisionError), self.db.write() as tx:  # noqa: PT012
            tx["m"].put(key, {"tags": tags})
            tx["m"].delete(key)
            tx["m"].put("a", {"tags": tags})
            raise ZeroDivisionError

    @rule()
    def reopen(self) -> None:
        self.db.close()
        self.db = simindex.open(Path(self.folder.name) / "m.simdb")
        self.items = self.db["m"]

    @invariant()
    def keys_are_those_of_the_model(self) -> None:
        if hasattr(self, "items"):
            assert list(self.items) == list(self.model)
            assert len(self.items) == len(self.model)

    def teardown(self) -> None:
        if hasattr(self, "db"):
            assert self.db.check() == []
            self.db.close()
        self.folder.cleanup()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
