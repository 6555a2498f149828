"""Thresholds, bands, S-curves (P1, P2, P4) and the accuracy of what is reported."""

import math

import numpy as np
import pytest
from cases.sets import tok

import simindex
from simindex import features, sketch
from simindex.api import Database
from simindex.errors import QueryError, SchemaError

WRONG = [-0.1, 1.1, math.nan, math.inf, "0.8", True, None]


@pytest.mark.parametrize("threshold", [1.0, 1])
@pytest.mark.parametrize("verify", ["exact", "estimate"])
def test_threshold_one_finds_equal_items(db: Database, threshold: float, verify: str) -> None:
    """P1: elsewhere it dies with "bands too small"."""
    field = simindex.tokens(threshold=threshold, verify=verify)
    items = db.create_collection("p1", {"tags": field})
    items.put_many(
        [{"key": k, "tags": t} for k, t in (("a", tok(0, 50)), ("b", tok(0, 30)), ("c", tok(0, 50)))]
    )
    for plan in ("scan", "buckets"):
        assert [(h.key, h.score) for h in items.search(tags=tok(0, 50), plan=plan)] == [
            ("a", 1.0),
            ("c", 1.0),
        ]


def test_threshold_zero_is_a_full_scan(db: Database) -> None:
    """P1: allowed only with k, or when it is asked for."""
    items = db.create_collection("p1", {"tags": simindex.tokens()})
    items.put_many(
        [{"key": k, "tags": t} for k, t in (("a", tok(0, 9)), ("b", tok(8, 20)), ("c", tok(50, 60)))]
    )
    with pytest.raises(QueryError, match="threshold=0"):
        items.search(tags=tok(0, 9), threshold=0.0)
    assert [h.key for h in items.search(tags=tok(0, 9), threshold=0.0, exact=True)] == ["a", "b", "c"]
    assert [h.key for h in items.search(tags=tok(0, 9), threshold=0.0, k=2)] == ["a", "b"]
    with pytest.raises(SchemaError, match="threshold is 0"):
        simindex.tokens(threshold=0.0)


@pytest.mark.parametrize("threshold", WRONG)
def test_other_thresholds_are_refused_by_name(db: Database, threshold: object) -> None:
    """P1."""
    items = db.create_collection("p1", {"tags": simindex.tokens()})
    items.put("a", {"tags": ["x"]})
    for make in (simindex.tokens, simindex.text):
        with pytest.raises(SchemaError, match="threshold is "):
            make(threshold=threshold)
    if threshold is not None:  # None is "the field's own" in a search
        with pytest.raises(QueryError, match="threshold is "):
            items.search(tags=["x"], threshold=threshold)
        with pytest.raises(QueryError, match="threshold is "):
            items.search_many(tags=[["x"]], threshold=threshold)
        with pytest.raises((QueryError, SchemaError), match="threshold is "):
            items.put_many([{"key": "b", "tags": ["x"]}], on_duplicate="skip", threshold=threshold)
        assert len(items) == 1


@pytest.mark.parametrize(
    ("k", "bands", "unused"),
    [(128, (16, 8), 0), (128, (9, 13), 11), (128, (128, 1), 0), (128, (1, 128), 0), (300, (300, 1), 0)],
)
def test_legal_bands_work_and_say_what_is_unused(
    db: Database, k: int, bands: tuple[int, int], unused: int
) -> None:
    """P2: elsewhere values are unused in silence, 256 bands are the limit, or bands must divide k."""
    field = simindex.tokens(threshold=0.8, k=k, bands=bands, force=True)
    items = db.create_collection("p2", {"tags": field})
    assert field.scheme.unused == unused
    assert ("unused" in items.describe()) == (unused > 0)
    if unused:
        assert f"{unused} slots unused" in items.describe()
    items.put_many([{"key": str(i), "tags": tok(i * 50, i * 50 + 40)} for i in range(20)])
    for i in range(20):
        assert [h.key for h in items.search(tags=tok(i * 50, i * 50 + 40), plan="buckets")] == [str(i)]


@pytest.mark.parametrize(
    ("bands", "words"),
    [
        ((16, 9), "16 bands of 9 rows need 144 slots: k is 128"),
        ((0, 5), "bands is 0"),
        ((5, 0), "rows of a band is 0"),
        ((-1, 5), "bands is -1"),
        ((16.0, 8), "bands is 16.0"),
        ((16,), "give \\(bands, rows\\)"),
        ("16,8", "give \\(bands, rows\\)"),
        (16, "give \\(bands, rows\\)"),
    ],
)
def test_illegal_bands_explain(bands: object, words: str) -> None:
    """P2."""
    with pytest.raises(SchemaError, match=words):
        simindex.tokens(threshold=0.8, bands=bands)


def test_bands_of_little_recall_need_force() -> None:
    """The usual optimum for (0.8, 128) finds 40 % of the pairs at 0.8; 13 x 60 swapped, none."""
    for k, bands in ((128, (9, 13)), (780, (13, 60))):
        with pytest.raises(SchemaError, match=r"0\.8 is required"):
            simindex.tokens(threshold=0.8, k=k, bands=bands)
        assert "forced" in simindex.tokens(threshold=0.8, k=k, bands=bands, force=True).describe()


def planted(similarity: float, pairs: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return pairs of sets (pairs, size) and their true Jaccard similarity."""
    shared = round(2 * size * similarity / (1 + similarity))
    values = np.random.default_rng(seed).integers(0, 2**63, (pairs, 2 * size - shared)).astype(np.uint64)
    return values[:, :size], values[:, size - shared :], shared / (2 * size - shared)


def csr(sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n, size = sets.shape
    return np.ascontiguousarray(sets).reshape(-1), np.arange(0, n * size + 1, size, dtype=np.int64)


@pytest.mark.parametrize("pairs", [400, pytest.param(2_000, marks=pytest.mark.long)])
def test_candidates_follow_the_s_curve(db: Database, pairs: int) -> None:
    """P4: b = 16, r = 8, k = 128, sets of 400; within 4 standard errors (seed 4; alpha 6e-5 a level)."""
    field = simindex.tokens(threshold=0.05, bands=(16, 8), force=True)
    levels = {0.5: 0.061, 0.6: 0.237, 0.7: 0.613, 0.8: 0.947, 0.9: 0.9999}
    for s, chance in levels.items():
        a, b, true = planted(s, pairs, 400, seed=4)
        items = db.create_collection(f"s{s}", {"tags": field}, key="int")
        items.put_many({"key": np.arange(pairs), "tags": csr(a)})
        found = items.search_many(tags=csr(b), threshold=0.05, plan="buckets")
        own = np.asarray(found.keys) == found.query.astype(np.uint64)
        assert found.score[own] == pytest.approx(true)  # verified: the true value
        expected = 1 - (1 - true**8) ** 16
        assert expected == pytest.approx(chance, abs=0.01)
        error = math.sqrt(max(expected * (1 - expected), 1e-3) / pairs)
        assert abs(own.sum() / pairs - expected) < 4 * error, s
        verified = items.search_many(tags=csr(b), threshold=0.8, plan="scan")
        assert (verified.score >= 0.8).all()
        db.drop_collection(f"s{s}")


@pytest.mark.parametrize("pairs", [400, pytest.param(2_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("verify", ["exact", "estimate"])
def test_recall_is_what_explain_states(db: Database, pairs: int, verify: str) -> None:
    """P4: within 4 standard errors below (it may be better); no hit below the threshold."""
    field = simindex.tokens(threshold=0.8, bands=(16, 8), verify=verify)
    items = db.create_collection("p4", {"tags": field}, key="int")
    a, b, true = planted(0.8, pairs, 400, seed=5)
    if true < 0.8:  # the nearest pair at or above the threshold
        a, b, true = planted(0.802, pairs, 400, seed=5)
    assert 0.8 <= true < 0.81
    items.put_many({"key": np.arange(pairs), "tags": csr(a)})
    found = items.search_many(tags=csr(b), plan="buckets")
    own = np.asarray(found.keys) == found.query.astype(np.uint64)
    assert (found.score >= 0.8).all()
    stated = items.explain(field="tags", threshold=0.8, plan="buckets").recall
    assert stated is not None
    error = math.sqrt(stated * (1 - stated) / pairs)
    assert own.sum() / pairs > stated - 4 * error
    assert stated > (0.9 if verify == "exact" else 0.4)


@pytest.mark.parametrize("pairs", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_estimates_are_unbiased(pairs: int) -> None:
    """P4: sd 0.0442 at J = 0.5, k = 128 (seed 6); bias below 0.005."""
    a, b, true = planted(0.5, pairs, 400, seed=6)
    field = simindex.tokens(threshold=0.5, k=128, slots=8)
    signed = [field.family.sign(features.set_features_csr(*csr(x))) for x in (a, b)]
    estimates = field.estimates[(signed[0] == signed[1]).sum(axis=1)]
    assert abs(estimates.mean() - true) < 0.005
    assert estimates.std() < 0.0442 * 1.1


@pytest.mark.parametrize("size", [1, 2, 10, 1_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["fastsim/1", "minhash/1"])
def test_estimates_hold_at_every_size(size: int, name: str) -> None:
    """P4: sets of this size that share half: within 4 standard deviations; equal ones 1, disjoint ones near
    0.
    """
    family = sketch.family(name, {"k": 128})
    shared = size // 2
    sets = [range(size), range(size - shared, 2 * size - shared), range(10 * size, 11 * size)]
    signed = family.sign(features.set_features([np.array(list(s), np.uint64) for s in sets]))
    true = shared / (2 * size - shared)
    width = family.width // 128

    def estimate(i: int, j: int) -> float:
        equal = (signed[i].reshape(-1, width) == signed[j].reshape(-1, width)).all(axis=1).sum()
        return float(np.asarray(family.estimate(np.array([equal], np.uint16)))[0])

    assert estimate(0, 0) == 1.0
    assert abs(estimate(0, 1) - true) <= 4 * math.sqrt(max(true * (1 - true), 0.01) / 128)
    assert estimate(0, 2) < 0.05


def test_a_small_set_inside_a_large_one_is_not_alike(db: Database) -> None:
    """P4: 104 of 20,777 tokens: Jaccard 0.005, whatever is contained."""
    items = db.create_collection("p4", {"tags": simindex.tokens(threshold=0.5, verify="estimate")})
    items.put("large", {"tags": tok(0, 20_777)})
    items.put("small", {"tags": tok(0, 104)})
    assert [h.key for h in items.search(tags=tok(0, 104))] == ["small"]
    by_key = {h.key: h.score for h in items.search(tags=tok(0, 104), k=2)}
    assert by_key["small"] == 1.0
    assert by_key["large"] < 0.04
