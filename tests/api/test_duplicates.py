"""on_duplicate: near-duplicates of what is stored and inside the batch."""

import numpy as np
import pytest

import simindex
from simindex.api import Collection, Database


def tags(*parts: object) -> list[str]:
    return [f"t{i}" for i in range(18)] + [str(p) for p in parts]


def row(key: str, *parts: object) -> dict:
    return {"key": key, "tags": tags(*parts)}


def found(report: simindex.PutReport) -> list[tuple]:
    return [(d.key, d.other, round(d.score, 4)) for d in report.duplicates]


@pytest.fixture(params=["exact", "estimate"])
def items(db: Database, request: pytest.FixtureRequest) -> Collection:
    return db.create_collection("d", {"tags": simindex.tokens(threshold=0.7, verify=request.param)})


def test_skip_stores_no_duplicates_and_lists_them(items: Collection) -> None:
    items.put("old", {"tags": tags("a", "b")})
    report = items.put_many(
        [row("x", "a", "b"), {"key": "y", "tags": ["q"]}, {"key": "z", "tags": ["q"]}], on_duplicate="skip"
    )
    assert found(report) == [("x", "old", 1.0), ("z", "y", 1.0)]
    assert (report.inserted, report.skipped) == (1, 2)
    assert list(items) == ["old", "y"]


def test_keep_stores_and_lists(items: Collection) -> None:
    report = items.put_many([row("a", "a", "b"), row("b", "a", "b"), row("c", "a", "b")], on_duplicate="keep")
    assert found(report) == [("b", "a", 1.0), ("c", "a", 1.0)]
    assert (report.inserted, report.skipped) == (3, 0)
    assert len(items) == 3


def test_report_stores_nothing(db: Database, items: Collection) -> None:
    items.put("old", {"tags": tags("a", "b")})
    before = db.stats().usage.last_txn
    report = items.put_many(
        [row("x", "a", "b"), {"key": "y", "tags": ["q"]}, {"key": "z", "tags": ["q"]}], on_duplicate="report"
    )
    assert found(report) == [("x", "old", 1.0), ("z", "y", 1.0)]
    assert (report.inserted, report.skipped) == (0, 3)
    assert db.stats().usage.last_txn == before


@pytest.mark.parametrize("policy", ["skip", "keep"])
def test_the_same_batch_again_changes_nothing(db: Database, items: Collection, policy: str) -> None:
    batch = [row("a", "a", "b"), row("b", "a", "b"), {"key": "c", "tags": ["q"]}, row("d", "a", "b")]
    items.put_many(batch, on_duplicate=policy)
    before, listed = db.stats().collections, list(items)
    report = items.put_many(batch, on_duplicate=policy)
    assert (report.inserted, report.replaced) == (0, 0)
    assert db.stats().collections == before
    assert list(items) == listed
    if policy == "skip":
        assert found(report) == [("b", "a", 1.0), ("d", "a", 1.0)]


def test_an_item_is_no_duplicate_of_its_own_older_version(items: Collection) -> None:
    items.put("a", {"tags": tags("a", "b")})
    report = items.put_many([row("a", "a", "b", "c")], on_duplicate="skip")
    assert report.duplicates == []
    assert report.replaced == 1
    assert [h.score for h in items.search(tags=tags("a", "b", "c"))] == [1.0]


def test_a_version_that_gave_way_earlier_in_the_batch_counts_no_more(items: Collection) -> None:
    items.put("a", {"tags": tags("a", "b")})
    report = items.put_many([{"key": "a", "tags": ["new"]}, row("b", "a", "b")], on_duplicate="skip")
    assert report.duplicates == []
    assert list(items) == ["a", "b"]


def test_a_chain_is_cut_where_its_links_are_skipped(db: Database) -> None:
    items = db.create_collection("chain", {"tags": simindex.tokens(threshold=0.8)})
    tok = [f"w{i}" for i in range(120)]
    chain = [{"key": k, "tags": tok[a : a + 100]} for k, a in (("A", 0), ("B", 10), ("C", 20))]
    report = items.put_many(chain, on_duplicate="skip")
    assert found(report) == [("B", "A", 0.8182)]
    assert list(items) == ["A", "C"]
    other = db.create_collection("kept", {"tags": simindex.tokens(threshold=0.8)})
    assert found(other.put_many(chain, on_duplicate="keep")) == [("B", "A", 0.8182), ("C", "B", 0.8182)]


def test_the_best_other_is_named(db: Database) -> None:
    items = db.create_collection("best", {"tags": simindex.tokens(threshold=0.6)})
    tok = [f"w{i}" for i in range(100)]
    items.put_many([{"key": "far", "tags": tok[:70]}, {"key": "near", "tags": tok[:95]}])
    assert found(items.put_many([{"key": "x", "tags": tok}], on_duplicate="skip")) == [("x", "near", 0.95)]
    given = [{"key": "p", "tags": tok[:96]}, {"key": "y", "tags": tok}]
    assert found(items.put_many(given, on_duplicate="keep"))[1] == ("y", "p", 0.96)


def test_a_lower_threshold_than_the_fields_is_answered_by_a_scan(items: Collection) -> None:
    items.put("old", {"tags": [f"w{i}" for i in range(400)]})
    half = {"key": "x", "tags": [f"w{i}" for i in range(200)]}
    assert items.put_many([half], on_duplicate="report").duplicates == []
    assert [d.other for d in items.put_many([half], on_duplicate="report", threshold=0.4).duplicates] == [
        "old"
    ]


def test_empty_items_are_no_duplicates(items: Collection) -> None:
    report = items.put_many(
        [{"key": "a", "tags": []}, {"key": "b", "tags": []}, {"key": "c"}], on_duplicate="skip"
    )
    assert report.duplicates == []
    assert len(items) == 3


def test_one_family_of_many_members_in_a_batch(db: Database) -> None:
    items = db.create_collection("f", {"tags": simindex.tokens(threshold=0.7)}, key="int")
    base = np.arange(100, dtype=np.uint64)
    flat = np.concatenate([np.append(base, np.uint64(1000 + i)) for i in range(2000)])
    report = items.put_many(
        {"key": np.arange(2000), "tags": (flat, np.arange(0, 101 * 2000 + 1, 101))}, on_duplicate="skip"
    )
    assert len(items) + report.skipped == 2000
    assert len(items) <= 3
    assert report.skipped == len(report.duplicates)
