"""Threshold, top-k, ties, plans, promises: what searches return, compared with brute force."""

import math

import numpy as np
import pytest

import simindex
from simindex.api import Collection, Database
from simindex.errors import FeatureError, QueryError, SchemaError


def tok(*ranges: tuple[int, int]) -> list[str]:
    return [f"w{i:07}" for a, b in ranges for i in range(a, b)]


def jaccard(a: set, b: set) -> float:
    return len(a & b) / len(a | b)


@pytest.fixture
def graded(db: Database) -> Collection:
    """100 sets whose similarity to tok(0, 100) is 1.00, 0.98, ... exactly (200 - 2i) / (200 + 2i)... of 100
    tokens.
    """
    items = db.create_collection("graded", {"tags": simindex.tokens(threshold=0.5)}, key="int")
    items.put_many([{"key": i, "tags": tok((i, 100 + i))} for i in range(100)])
    return items


def truth(i: int) -> float:
    return jaccard(set(range(100)), set(range(i, 100 + i)))


@pytest.mark.parametrize("threshold", [0.05, 0.5, 0.6, 0.8, 0.9, 1.0, 1])
def test_threshold_search_returns_exactly_what_reaches_it(graded: Collection, threshold: float) -> None:
    hits = graded.search(tags=tok((0, 100)), threshold=threshold)
    wanted = [(i, truth(i)) for i in range(100) if truth(i) >= threshold]
    assert [(h.key, h.score) for h in hits] == wanted
    assert all(h.exact and h.low == h.high == h.score for h in hits)
    assert not hits.truncated
    assert not hits.tie_cut
    assert hits.measure == "jaccard"


def test_equality_with_the_threshold_counts(sets: Collection) -> None:
    sets.put("p", {"tags": list("abcd")})
    assert [h.score for h in sets.search(tags=list("abcde"), threshold=0.8)] == [0.8]
    assert sets.search(tags=list("abcde"), threshold=np.nextafter(0.8, 1)) == []


def test_neither_k_nor_threshold_takes_the_fields_own(graded: Collection) -> None:
    assert [h.key for h in graded.search(tags=tok((0, 100)))] == [i for i in range(100) if truth(i) >= 0.5]


@pytest.mark.parametrize("k", [1, 7, 99, 100, 101, 1_000_000])
def test_k_alone_returns_the_k_best_of_all_items(graded: Collection, k: int) -> None:
    hits = graded.search(tags=tok((0, 100)), k=k)
    assert [h.key for h in hits] == list(range(min(k, 100)))
    assert [h.score for h in hits] == [truth(i) for i in range(min(k, 100))]


def test_k_and_threshold_return_the_k_best_that_reach_it(graded: Collection) -> None:
    assert [h.key for h in graded.search(tags=tok((0, 100)), k=3, threshold=0.9)] == [0, 1, 2]
    assert len(graded.search(tags=tok((0, 100)), k=50, threshold=0.9)) == sum(
        truth(i) >= 0.9 for i in range(100)
    )


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, math.inf, "x", True])
def test_thresholds_outside_are_refused_by_name(graded: Collection, threshold: object) -> None:
    with pytest.raises(QueryError, match="threshold"):
        graded.search(tags=["a"], threshold=threshold)


def test_threshold_zero_needs_k_or_exact(graded: Collection) -> None:
    with pytest.raises(QueryError, match="threshold=0"):
        graded.search(tags=tok((0, 100)), threshold=0.0)
    assert len(graded.search(tags=tok((0, 100)), threshold=0.0, exact=True)) == 100
    assert len(graded.search(tags=tok((0, 100)), threshold=0.0, k=5)) == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": -1}, "k is -1"),
        ({"k": 2.5}, "k is 2.5"),
        ({"k": True}, "k is True"),
        ({"plan": "bucket"}, "did you mean 'buckets'"),
        ({"plan": "buckets", "exact": True}, "give one of them"),
        ({"exact": 1}, "exact is 1"),
        ({"budget": 0}, "budget is 0"),
        ({"recall": 2}, "recall is 2"),
        ({"accept": "maybe"}, "accept"),
        ({"where": "lang = 'en'"}, "where"),
        ({"radius": 3}, "radius"),
        ({"treshold": 0.5}, "did you mean 'threshold'"),
        ({"tag": ["a"]}, "did you mean 'tags'"),
    ],
)
def test_bad_options_are_named(graded: Collection, options: dict, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        graded.search(tags=["a"], **options)
    assert words in str(caught.value)
    with pytest.raises(QueryError):
        graded.search_many(tags=[["a"]], **options)


def test_exactly_one_field_is_searched(db: Database) -> None:
    items = db.create_collection("two", {"a": simindex.tokens(), "b": simindex.tokens()})
    with pytest.raises(QueryError, match="a, b"):
        items.search(threshold=0.5)
    with pytest.raises(QueryError, match="were named"):
        items.search(a=["x"], b=["x"])
    with pytest.raises(SchemaError, match="did you mean"):
        items.explain(field="aa")


@pytest.mark.parametrize("value", [None, "abc", 5, [1.5]])
def test_bad_values_are_refused(graded: Collection, value: object) -> None:
    with pytest.raises(FeatureError):
        graded.search(tags=value)
    with pytest.raises((FeatureError, QueryError)):
        graded.search_many(tags=[["a"], value] if value is not None else None)


def test_empty_queries_match_nothing(graded: Collection) -> None:
    graded.put(1000, {"tags": []})
    for options in ({}, {"k": 5}, {"threshold": 0.0, "exact": True}):
        assert graded.search(tags=[], **options) == []
    batch = graded.search_many(tags=[[], tok((0, 100)), None])
    assert np.diff(batch.offsets).tolist()[::2] == [0, 0]


def test_an_empty_collection_answers_nothing(sets: Collection) -> None:
    """K6."""
    assert sets.search(tags=["a"]) == []
    assert sets.search(tags=["a"], k=3) == []
    assert len(sets.search_many(tags=[["a"], ["b"]])) == 2
    sets.put("only", {"tags": ["a"]})
    assert [h.key for h in sets.search(tags=["a"])] == ["only"]
    assert sets.search(tags=["b"]) == []


@pytest.mark.parametrize("k", [30, 60, 100])
def test_ties_are_cut_by_key_and_said(db: Database, k: int) -> None:
    """V6, for Jaccard: 50 items at one similarity and 50 at another, in several orders of insertion."""
    base = tok((0, 20))
    items = {f"{i:03}": [*base, f"x{i}"] if i % 2 else [*base, f"x{i}", f"y{i}"] for i in range(100)}
    wanted = sorted(items, key=lambda key: (-jaccard(set(base), set(items[key])), key))[:k]
    for turn, step in enumerate((1, 7, 99)):
        some = db.create_collection(f"ties{turn}", {"tags": simindex.tokens(threshold=0.5)})
        order = [f"{i * step % 100:03}" for i in range(100)]
        some.put_many([{"key": key, "tags": items[key]} for key in order], batch=30)
        hits = some.search(tags=base, k=k)
        assert [h.key for h in hits] == wanted
        assert hits.tie_cut == (k in (30, 60))
        batch = some.search_many(tags=[base, base], k=k)
        assert batch.keys[:k] == batch.keys[k:] == wanted
        assert batch.tie_cut.tolist() == [k in (30, 60)] * 2


@pytest.mark.parametrize("kind", ["str", "int", "bytes"])
def test_search_many_agrees_with_search(db: Database, kind: str) -> None:
    rng = np.random.default_rng(5)
    items = db.create_collection(kind, {"tags": simindex.tokens(threshold=0.3)}, key=kind)  # type: ignore[arg-type]
    make = {"str": str, "int": int, "bytes": lambda i: str(i).encode()}[kind]
    some = [rng.integers(0, 12, 6).tolist() for _ in range(300)]
    items.put_many([{"key": make(i), "tags": tags, "n": i} for i, tags in enumerate(some)])
    for options in ({}, {"k": 4}, {"threshold": 0.6}, {"threshold": 0.6, "k": 2}, {"plan": "buckets"}):
        batch = items.search_many(tags=some[:40], **options)
        for i in range(40):
            hits = items.search(tags=some[i], **options)
            assert batch[i] == [(h.key, h.score) for h in hits]
            assert all(h.attributes == {"n": int(h.key)} for h in hits)
        assert batch.query.tolist() == np.repeat(np.arange(40), np.diff(batch.offsets)).tolist()


def test_estimates_carry_their_interval(numbers: Collection) -> None:
    numbers.put_many([{"key": i, "tags": tok((i * 10, 400 + i * 10))} for i in range(40)])
    query = tok((0, 400))
    hits = numbers.search(tags=query, k=20)
    assert all(not h.exact and 0 <= h.low <= h.score <= h.high <= 1 for h in hits)
    likely = numbers.search(tags=query, threshold=0.8)
    possible = numbers.search(tags=query, threshold=0.8, accept="possible")
    assert all(h.score >= 0.8 for h in likely)
    assert all(h.high >= 0.8 for h in possible)
    assert {h.key for h in likely} < {h.key for h in possible}
    batch = numbers.search_many(tags=[query], k=20)
    assert batch.low.tolist() == [h.low for h in hits]
    assert batch.high.tolist() == [h.high for h in hits]
    assert batch.keys.dtype == np.uint64


def test_budget_cuts_and_says_so(db: Database) -> None:
    items = db.create_collection("one", {"tags": simindex.tokens(threshold=0.5)}, key="int")
    items.put_many([{"key": i, "tags": [*tok((0, 50)), f"x{i}"]} for i in range(300)])
    hits = items.search(tags=tok((0, 50)), budget=10)
    assert hits.truncated
    assert 0 < len(hits) <= 10
    assert not items.search(tags=tok((0, 50)), budget=300).truncated
    assert items.search_many(tags=[tok((0, 50)), ["z"]], budget=10).truncated.tolist() == [True, False]


def test_a_stored_item_is_first_in_its_own_search(db: Database) -> None:
    rng = np.random.default_rng(7)
    items = db.create_collection(
        "self", {"tags": simindex.tokens(threshold=0.9, verify="estimate")}, key="int"
    )
    some = [rng.integers(0, 2**63, int(rng.integers(1, 300))).tolist() for _ in range(200)]
    items.put_many([{"key": i, "tags": tags} for i, tags in enumerate(some)])
    for plan in ("scan", "buckets"):
        batch = items.search_many(tags=some, plan=plan)
        assert [batch[i][0] for i in range(200)] == [(i, 1.0) for i in range(200)]


def test_results_as_arrow(graded: Collection) -> None:
    pytest.importorskip("pyarrow")
    table = graded.search(tags=tok((0, 100)), k=3).to_arrow()
    assert table.column("key").to_pylist() == [0, 1, 2]
    assert table.column_names == ["key", "score", "low", "high", "exact"]
    batch = graded.search_many(tags=[tok((0, 100)), ["none"]], k=3, threshold=0.5).to_arrow()
    assert batch.column("query").to_pylist() == [0, 0, 0]
    assert graded.search(tags=["none"]).to_arrow().num_rows == 0


def test_plans_above_ten_thousand_items(db: Database) -> None:
    """Buckets at and above the field's threshold, a scan below it; both agree with brute force here."""
    items = db.create_collection("big", {"tags": simindex.tokens(threshold=0.7)}, key="int")
    n = 12_000
    keys = np.arange(n, dtype=np.uint64)
    flat = (np.repeat(keys, 50) * np.uint64(1000) + np.tile(np.arange(50, dtype=np.uint64), n)).astype(
        np.uint64
    )
    ptr = np.arange(0, 50 * n + 1, 50)
    items.put_many({"key": keys, "tags": (flat, ptr)})
    query = flat[:50].copy()
    query[:10] = np.arange(10) + 10**9
    near = 40 / 60
    assert items.search(tags=flat[:50]).plan == "buckets"
    assert [h.key for h in items.search(tags=flat[:50])] == [0]
    assert items.search(tags=query, threshold=0.7) == []
    low = items.search(tags=query, threshold=0.6)
    assert low.plan == "scan"
    assert [(h.key, h.score) for h in low] == [(0, near)]
    assert [(h.key, h.score) for h in items.search(tags=query, k=1)] == [(0, near)]
    assert items.search(tags=flat[:50], recall=0.9999999).plan == "scan"
    assert items.search(tags=flat[:50], exact=True).plan == "scan"
    text = str(items.explain(tags=query))
    assert "buckets" in text
    assert items.explain(field="tags", threshold=0.6).plan == "scan"


def test_explain_states_two_recalls_with_estimates(numbers: Collection) -> None:
    numbers.put_many(
        {
            "key": np.arange(20_000, dtype=np.uint64),
            "tags": (np.arange(20_000, dtype=np.uint64), np.arange(20_001)),
        }
    )
    plan = numbers.explain(field="tags", threshold=0.5)
    assert plan.plan == "buckets"
    assert plan.candidate_recall is not None
    assert plan.recall is not None
    assert plan.candidate_recall >= 0.99
    assert 0.4 < plan.recall < 0.6
    assert f"{plan.recall:.4f}" in str(plan)
    top = numbers.explain(field="tags", k=3)
    assert top.recall is None
    assert "guarantee" in str(top)


def test_compare_tells_all_about_a_pair(graded: Collection) -> None:
    both = graded.compare(0, 10)
    assert (both.features_a, both.features_b, both.shared) == (100, 100, 90)
    assert both.score == 90 / 110
    assert both.low <= both.estimate <= both.high  # type: ignore[operator]
    assert 0 < both.shared_bands <= both.bands
    assert both.chance > 0.99
    assert graded.compare(0, {"tags": tok((10, 110))}) == both
    assert "0.8182" in str(both)
    graded.put(500, {"tags": []})
    assert graded.compare(0, 500).score is None
    with pytest.raises(KeyError, match="777"):
        graded.compare(0, 777)
    with pytest.raises(QueryError):
        graded.compare(0, {"tags": ["a"], "x": 1})


@pytest.mark.parametrize("verify", ["exact", "estimate"])
def test_the_k_best_of_many_are_those_of_brute_force(db: Database, verify: str) -> None:
    """12,000 sets, above the size where everything is looked at anyway; similarities from 0 to 1."""
    rng = np.random.default_rng(9)
    n, size = 12_000, 60
    base = np.arange(size, dtype=np.uint64)
    rows = rng.integers(1000, 2**63, (n, size)).astype(np.uint64)
    shared = rng.integers(0, size + 1, n)
    shared[2000:] = 0
    for i in range(2000):
        rows[i, : shared[i]] = base[: shared[i]]
    field = simindex.tokens(threshold=0.5, verify=verify)
    items = db.create_collection("many", {"tags": field}, key="int")
    items.put_many({"key": np.arange(n), "tags": (rows.reshape(-1), np.arange(0, n * size + 1, size))})
    assert items.explain(field="tags", k=5).plan == "scan"
    if verify == "exact":
        score = shared / (2 * size - shared)
    else:
        from simindex.features import set_features_csr

        signed = field.family.sign(set_features_csr(rows.reshape(-1), np.arange(0, n * size + 1, size)))
        query = field.family.sign(set_features_csr(base, np.array([0, size])))
        slots = np.dtype(f"u{field.family.slot_bits // 8}")
        score = field.estimates[(signed.view(slots) == query.view(slots)).sum(axis=1)]
    order = np.lexsort((np.arange(n), -score))
    for k in (1, 10, 300):
        for options in ({}, {"exact": True}):
            hits = items.search(tags=base, k=k, **options)
            assert [(h.key, h.score) for h in hits] == [(int(i), float(score[i])) for i in order[:k]]
    batch = items.search_many(tags=[base, base[:10], base], k=7)
    assert batch.keys[:7].tolist() == batch.keys[14:].tolist() == order[:7].tolist()
