"""put_many: forms of input, batches, reports, bad records."""

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import simindex
from simindex.api import Collection, Database
from simindex.errors import FeatureError, KeyTypeError, SchemaError
from simindex.types import Packed


def rows(n: int, start: int = 0) -> list[dict]:
    return [{"key": f"k{i}", "tags": [f"a{i}", f"b{i}", f"c{i}"], "n": i} for i in range(start, start + n)]


def counts(report: simindex.PutReport) -> tuple[int, int, int, int]:
    return report.inserted, report.replaced, report.unchanged, report.skipped


@pytest.mark.parametrize("threads", [None, 0, 1, 3])
def test_rows_are_stored_in_order_and_counted(sets: Collection, threads: int | None) -> None:
    report = sets.put_many(iter(rows(95)), batch=10, threads=threads)
    assert counts(report) == (95, 0, 0, 0)
    assert report.stored == 95
    assert list(sets) == [f"k{i}" for i in range(95)]
    assert sets["k17"] == {"n": 17}
    assert [h.key for h in sets.search(tags=["a17", "b17", "c17"])] == ["k17"]


def test_the_same_rows_again_change_nothing(db: Database, sets: Collection) -> None:
    sets.put_many(rows(50))
    before = db.stats().collections[0]
    report = sets.put_many(rows(50))
    assert counts(report) == (0, 0, 50, 0)
    assert db.stats().collections[0] == before
    report = sets.put_many([*rows(10), *rows(5, 100), {"key": "k11", "tags": ["new"]}])
    assert counts(report) == (5, 1, 10, 0)


def test_of_a_key_given_twice_in_a_batch_the_last_stays(sets: Collection) -> None:
    report = sets.put_many(
        [{"key": "p", "tags": ["a"]}, {"key": "q", "tags": ["q"]}, {"key": "p", "tags": ["b"]}]
    )
    assert counts(report) == (2, 1, 0, 0)
    assert sets.search(tags=["a"]) == []
    assert [h.key for h in sets.search(tags=["b"])] == ["p"]


def test_an_error_stores_nothing_of_its_batch(sets: Collection) -> None:
    bad = [*rows(10), {"key": "bad", "tags": [1.5]}, *rows(4, 50)]
    with pytest.raises(FeatureError, match=r"record 10 \(key 'bad'\)"):
        sets.put_many(bad, batch=6)
    assert list(sets) == [f"k{i}" for i in range(6)]


@pytest.mark.parametrize(
    "bad",
    [
        {"tags": ["no key"]},
        {"key": 5, "tags": []},
        {"key": "x", "tags": [1.5]},
        {"key": "x", "tags": "a str"},
        {"key": "x", "other": object()},
        {"key": "x" * 66_000},
        "not a mapping",
        None,
        5,
    ],
)
def test_bad_records_are_skipped_and_listed(sets: Collection, bad: object) -> None:
    """D2."""
    given = [*rows(7), bad, *rows(2, 7)]
    report = sets.put_many(given, on_error="skip")
    assert counts(report) == (9, 0, 0, 0)
    assert [(r.position, r.key) for r in report.rejects] == [
        (7, bad.get("key") if isinstance(bad, dict) else None)
    ]
    assert report.rejects[0].error
    assert len(sets) == 9
    with pytest.raises(FeatureError, match=r"\b7\b"):
        sets.put_many(given)


def test_generators_among_the_values_are_read_once(sets: Collection) -> None:
    given = [
        {"key": "g", "tags": (t for t in ["a", "b"])},
        {"key": 5},
        {"key": "h", "tags": (t for t in ["x"])},
    ]
    report = sets.put_many(given, on_error="skip")
    assert report.inserted == 2
    assert [h.key for h in sets.search(tags=["a", "b"])] == ["g"]
    assert [h.key for h in sets.search(tags=["x"])] == ["h"]


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_input_is_read_lazily(sets: Collection, threads: int) -> None:
    read = []

    def source() -> Iterator[dict]:
        for row in rows(200):
            read.append(len(sets))
            yield row

    sets.put_many(source(), batch=10, threads=threads)
    assert len(sets) == 200
    behind = [i - stored for i, stored in enumerate(read)]
    assert max(behind) <= 10 * (threads + 2)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_thread_is_left_behind_by_an_error(sets: Collection, threads: int) -> None:
    given = [*rows(25), {"key": 5}, *rows(25, 100)]
    with pytest.raises(FeatureError) as caught:
        sets.put_many(given, batch=10, threads=threads)
    assert threading.active_count() == 1
    assert len(sets) == 20
    assert "record 25" in str(caught.value)


def test_an_error_of_the_source_leaves_whole_batches(sets: Collection) -> None:
    def source() -> Iterator[dict]:
        yield from rows(25)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        sets.put_many(source(), batch=10, threads=0)
    assert len(sets) == 20
    assert threading.active_count() == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "batch"),
        ({"batch": 1.5}, "batch"),
        ({"on_error": "ignore"}, "on_error"),
        ({"on_duplicate": "skp"}, "did you mean 'skip'"),
        ({"threads": -1}, "threads"),
        ({"field": "tags"}, "on_duplicate"),
        ({"threshold": 0.5}, "on_duplicate"),
        ({"on_duplicate": "skip", "threshold": 0}, "threshold"),
        ({"on_duplicate": "skip", "threshold": 2}, "threshold"),
        ({"on_duplicate": "skip", "field": "tag"}, "did you mean 'tags'"),
    ],
)
def test_bad_options_are_named_before_anything_is_read(sets: Collection, options: dict, words: str) -> None:
    source = iter(rows(3))
    with pytest.raises(SchemaError) as caught:
        sets.put_many(source, **options)
    assert words in str(caught.value)
    assert len(list(source)) == 3


@pytest.mark.parametrize("given", ["abc", b"abc", 5, None, {"key": "a", "tags": ["x"]}, {"key": 7}])
def test_other_inputs_are_refused(sets: Collection, given: object) -> None:
    with pytest.raises(FeatureError, match="put_many takes"):
        sets.put_many(given)


def test_arrow_tables(sets: Collection) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"key": ["a", "b", "c"], "tags": [["x", "y"], None, []], "n": [1, 2, None]})
    report = sets.put_many(table, batch=2)
    assert report.inserted == 3
    assert report.empty == 1
    assert sets["a"] == {"n": 1}
    assert [h.key for h in sets.search(tags=["x", "y"])] == ["a"]


def test_arrays_of_sets_texts_and_attributes(db: Database) -> None:
    items = db.create_collection("arrays", {"body": simindex.text(), "tags": simindex.tokens()}, key="int")
    bodies = [b"one two three four", b"five six seven eight", b"nine ten eleven twelve"]
    packed = Packed(np.frombuffer(b"".join(bodies), np.uint8), np.cumsum([0, *map(len, bodies)]))
    hashes, ptr = np.array([1, 2, 3, 4, 5], np.uint64), np.array([0, 2, 2, 5])
    report = items.put_many(
        {"key": np.array([7, 8, 9]), "body": packed, "tags": (hashes, ptr), "n": np.array([1, 2, 3])}, batch=2
    )
    assert counts(report) == (3, 0, 0, 0)
    assert report.empty == 1
    assert [h.key for h in items.search(body="five six seven eight")] == [8]
    assert [h.key for h in items.search(tags=[3, 4, 5])] == [9]
    assert items[9] == {"n": 3}
    again = items.put_many(
        {"key": [7, 8, 9], "body": [b.decode() for b in bodies], "tags": [[1, 2], [], [3, 4, 5]]}
    )
    assert again.replaced == 3  # the attributes are gone
    with pytest.raises(FeatureError, match="column 'tags' has 2 values for 3 keys"):
        items.put_many({"key": [1, 2, 3], "tags": [[1], [2]]})
    with pytest.raises(FeatureError, match="'key'"):
        items.put_many({"tags": [[1]]})
    with pytest.raises(KeyTypeError, match="float64"):
        items.put_many({"key": np.array([1.5])})


def test_bad_records_in_arrays_are_listed_by_position(db: Database) -> None:
    items = db.create_collection("arrays", {"tags": simindex.tokens()}, key="int")
    given = {"key": [1, 2, "x", 4], "tags": [[1], [2.5], [3], [4]]}
    report = items.put_many(given, on_error="skip")
    assert [(r.position, r.key) for r in report.rejects] == [(1, 2), (2, "x")]
    assert list(items) == [1, 4]


def test_ready_signatures(db: Database) -> None:
    field = simindex.tokens(threshold=0.5, verify="estimate")
    one = db.create_collection("one", {"tags": field}, key="int")
    two = db.create_collection("two", {"tags": field}, key="int")
    some = [list(range(i, i + 50)) for i in range(30)]
    one.put_many({"key": np.arange(30), "tags": some})
    from simindex.features import set_features

    signatures = field.family.sign(set_features(some))
    two.put_many({"key": np.arange(30), "tags": signatures}, batch=7)
    assert (
        one.search_many(tags=some, k=5).keys.tolist() == two.search_many(tags=signatures, k=5).keys.tolist()
    )
    two.put(99, {"tags": signatures[3]})
    assert [h.key for h in two.search(tags=signatures[3], threshold=1.0)] == [3, 99]
    with pytest.raises(FeatureError, match=r"\(n, 256\)"):
        two.put_many({"key": [1], "tags": np.zeros((1, 64), np.uint8)})
    with pytest.raises(FeatureError, match=r"\(256,\)"):
        two.put(1, {"tags": np.zeros(64, np.uint8)})


def test_source_columns_and_kept_values(db: Database) -> None:
    fields = {
        "words": simindex.text(source="body", keep=True),
        "chars": simindex.text(source="body", shingle="chars:5"),
        "tags": simindex.tokens(keep=True),
    }
    items = db.create_collection("s", fields)
    body = "the quick brown fox jumps over the lazy dog"
    items.put_many([{"key": "a", "body": body, "tags": {"x"}, "words": 3}])
    assert items["a"] == {"body": body, "tags": ["x"], "words": 3}
    assert [h.key for h in items.search(chars=body)] == ["a"]
    assert [h.key for h in items.search(words=body)] == ["a"]


def test_inside_a_transaction_all_batches_belong_to_it(db: Database, sets: Collection) -> None:
    with pytest.raises(RuntimeError), db.write() as tx:  # noqa: PT012
        tx["sets"].put_many(rows(50), batch=10)
        assert len(tx["sets"]) == 50
        raise RuntimeError
    assert len(sets) == 0
    with db.write() as tx:
        tx["sets"].put_many(rows(50), batch=10)
    assert len(sets) == 50


def test_empty_and_shortened_are_counted(db: Database) -> None:
    """T1, T2."""
    items = db.create_collection("t", {"body": simindex.text(shingle="words:5", threshold=0.9)})
    blank = {"e1": "", "e2": " \n\t", "e3": "!!!", "d1": "blue canal boat"}
    report = items.put_many([{"key": key, "body": body} for key, body in blank.items()])
    assert (report.empty, report.shortened) == (3, 1)
    for body in blank.values():
        assert [h.key for h in items.search(body=body)] == (["d1"] if "blue" in body else [])
    stats = db.stats()
    assert (stats.empty, stats.shortened) == (3, 1)
    items.delete("e1")
    items.put("e2", {"body": "now it has a few more words"})
    assert (db.stats().empty, db.stats().shortened) == (1, 1)
