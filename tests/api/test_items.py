"""put, insert, update, delete, get: what a user sees of single items."""

import numpy as np
import pytest

import simindex
from simindex.api import Collection, Database
from simindex.errors import FeatureError, KeyExists, KeyTypeError, NoSuchCollection, SchemaError

A, B = list("abcdef"), list("uvwxyz")


def keys(hits: simindex.Hits) -> list:
    return [hit.key for hit in hits]


def test_put_replaces_the_whole_item(sets: Collection) -> None:
    """K2: the old buckets hold nothing afterwards."""
    sets.put("p", {"tags": A, "lang": "en"})
    sets.put("p", {"tags": B})
    assert sets.search(tags=A) == []
    assert keys(sets.search(tags=B)) == ["p"]
    assert sets["p"] == {}
    assert len(sets) == 1


def test_insert_refuses_a_stored_key_and_changes_nothing(sets: Collection) -> None:
    sets.insert("p", {"tags": A})
    with pytest.raises(KeyExists, match="'p'"):
        sets.insert("p", {"tags": B})
    assert keys(sets.search(tags=A)) == ["p"]
    assert sets.search(tags=B) == []


def test_insert_of_one_key_twice_in_a_transaction_raises_and_stores_nothing(
    db: Database, sets: Collection
) -> None:
    """K1."""
    with pytest.raises(KeyExists), db.write() as tx:  # noqa: PT012
        tx["sets"].insert("p", {"tags": A})
        tx["sets"].insert("p", {"tags": B})
    assert len(sets) == 0
    with db.write() as tx:
        tx["sets"].put("p", {"tags": A})
        tx["sets"].put("p", {"tags": B})
    assert sets.search(tags=A) == []
    assert keys(sets.search(tags=B)) == ["p"]


@pytest.mark.parametrize("order", [(2, 1, 3), (1, 2, 3)])
def test_delete_and_add_again(db: Database, order: tuple[int, ...]) -> None:
    """K3."""
    items = db.create_collection("k3", {"tags": simindex.tokens()}, key="int")
    for key in (1, 2, 3):
        items.put(key, {"tags": [*A, str(key)]})
    assert items.delete(1) is True
    assert items.delete(1) is False
    items.put(1, {"tags": [*A, "1"]})
    assert keys(items.search(tags=[*A, "1"], k=3)) == [1, 2, 3]
    for key in order:
        assert items.delete(key)
    assert items.search(tags=A, k=3) == []
    for key in order:
        items.put(key, {"tags": [*A, str(key)]})
    assert keys(items.search(tags=[*A, "2"], k=3)) == [2, 1, 3]
    assert list(items) == list(order)


def test_update_changes_what_it_names_and_keeps_the_rest(db: Database) -> None:
    news = db.create_collection("u", {"a": simindex.tokens(), "b": simindex.tokens(keep=True)})
    news.put("p", {"a": A, "b": ["x"], "lang": "en", "n": 1})
    news.update("p", {"lang": "de"})
    assert news["p"] == {"b": ["x"], "lang": "de", "n": 1}
    news.update("p", {"a": B})
    assert news.search(a=A) == []
    assert keys(news.search(a=B)) == ["p"]
    assert keys(news.search(b=["x"])) == ["p"]
    news.update("p", {"b": None})
    assert news["p"] == {"lang": "de", "n": 1}
    assert news.search(b=["x"]) == []
    with pytest.raises(KeyError, match="'q'"):
        news.update("q", {"lang": "de"})
    assert "q" not in news


def test_get_in_len_and_iteration(sets: Collection) -> None:
    assert sets.get("p") is None
    assert sets.get("p", 7) == 7
    with pytest.raises(KeyError, match="'p'"):
        sets["p"]
    for key in ("c", "a", "b"):
        sets.put(key, {"tags": A, "n": key})
    assert sets["a"] == {"n": "a"}
    assert "a" in sets
    assert "z" not in sets
    assert list(sets) == ["c", "a", "b"]
    sets.put("c", {"tags": B})
    assert list(sets) == ["a", "b", "c"]
    assert len(sets) == 3


def test_iteration_is_a_snapshot_of_its_beginning(sets: Collection) -> None:
    for i in range(20):
        sets.put(f"{i:02}", {})
    seen = []
    for key in sets:
        sets.delete(key)
        sets.put("new" + key, {})
        seen.append(key)
    assert seen == [f"{i:02}" for i in range(20)]


def test_attributes_come_back_as_they_were(sets: Collection) -> None:
    given = {
        "i": -5,
        "big": 2**64 - 1,
        "f": 0.1,
        "s": "ü\ud835",
        "b": b"\xff",
        "n": None,
        "t": True,
        "l": [1, {"x": 2}],
    }
    sets.put("p", {"tags": A, **given})
    assert sets["p"] == given
    sets.put("q", {"x": np.float64(2.5), "y": np.arange(3), "z": (1, 2)})
    assert sets["q"] == {"x": 2.5, "y": [0, 1, 2], "z": [1, 2]}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"key": 1}, "key"),
        ({"x": object()}, "attribute 'x'"),
        ({"x": 2**64}, "attribute 'x'"),
        ({5: 1}, "attribute name 5"),
        ([1, 2], "mapping"),
        ({"tags": "abc"}, "iterable"),
        ({"tags": 5}, "iterable"),
        ({"tags": {"a": 1}}, "iterable"),
        ({"tags": [1.5]}, ""),
        ({"tags": [True]}, ""),
        ({"tags": [-1]}, ""),
        ({"tags": [None]}, ""),
        ({"tags": np.zeros(128, np.uint8)}, "verify"),
    ],
)
def test_bad_items_are_refused_and_nothing_is_written(sets: Collection, item: object, words: str) -> None:
    for call in (sets.put, sets.insert):
        with pytest.raises(FeatureError) as caught:
            call("p", item)  # type: ignore[arg-type]
        assert words in str(caught.value)
    assert len(sets) == 0


@pytest.mark.parametrize("kind", ["str", "bytes", "int"])
def test_keys_of_each_type_are_strict(db: Database, kind: str) -> None:
    """S5."""
    items = db.create_collection(kind, {"tags": simindex.tokens()}, key=kind)  # type: ignore[arg-type]
    good: dict[str, list] = {
        "str": ["1", "", "a\0b", "x" * 3000, "\ud800"],
        "bytes": [b"1", b"", b"a\0b", b"x" * 3000],
        "int": [1, 0, 2**64 - 1, 2**63],
    }
    every = [key for some in good.values() for key in some] + [True, 1.0, -1, 2**64, None]
    for key in good[kind]:
        items.put(key, {"n": repr(key)})
    for key in every:
        if any(key is one for one in good[kind]):
            assert items[key] == {"n": repr(key)}
            continue
        for call in (items.get, items.delete, items.__contains__, lambda k: items.put(k, {})):
            with pytest.raises(KeyTypeError):
                call(key)
    if kind == "int":
        items.put(np.int64(1), {"n": "again"})
        assert items[1] == {"n": "again"}
    assert len(items) == len(good[kind])
    assert list(items) == ([0, 2**64 - 1, 2**63, 1] if kind == "int" else good[kind])


def test_keys_with_equal_32_bit_hashes_are_kept_apart(db: Database) -> None:
    items = db.create_collection("many", {"tags": simindex.tokens(verify="estimate")}, key="int")
    n = 200_000  # about 5 pairs share the 32 bits that the key map keeps
    from simindex.index.keys import key_column

    top = key_column("int", np.arange(n, dtype=np.uint64)).hashes >> np.uint64(32)
    order = np.argsort(top, kind="stable")
    twins = order[np.nonzero(top[order[1:]] == top[order[:-1]])[0]].tolist()
    twins += order[np.nonzero(top[order[1:]] == top[order[:-1]])[0] + 1].tolist()
    assert len(twins) >= 2
    items.put_many([{"key": key, "n": key} for key in twins])
    assert [items[key] for key in twins] == [{"n": key} for key in twins]
    assert items.delete(twins[0])
    assert twins[0] not in items
    assert items[twins[len(twins) // 2]] == {"n": twins[len(twins) // 2]}


def test_an_item_may_lack_fields_and_is_absent_from_their_answers(db: Database) -> None:
    news = db.create_collection("n", {"a": simindex.tokens(), "b": simindex.tokens()})
    news.put("p", {"a": A})
    news.put("q", {"b": A, "a": None})
    assert keys(news.search(a=A)) == ["p"]
    assert keys(news.search(b=A)) == ["q"]
    assert keys(news.search(a=A, k=5)) == ["p"]


def test_collections_by_name(db: Database, sets: Collection) -> None:
    assert db.collections() == ["sets"]
    assert "sets" in db
    with pytest.raises(NoSuchCollection, match="did you mean 'sets'"):
        db["set"]
    with pytest.raises(KeyError):
        db["set"]
    with pytest.raises(SchemaError, match="exists already"):
        db.create_collection("sets", {"tags": simindex.tokens()})
    same = db.create_collection("sets", {"tags": simindex.tokens(threshold=0.5)}, exist_ok=True)
    same.put("p", {"tags": A})
    assert "p" in sets
    db.drop_collection("sets")
    assert db.collections() == []
    with pytest.raises(NoSuchCollection):
        len(sets)
    with pytest.raises(NoSuchCollection):
        sets.put("p", {})
    db.create_collection("sets", {"tags": simindex.tokens()})
    assert len(db["sets"]) == 0


@pytest.mark.parametrize(
    ("asked", "key", "words"),
    [
        ({"tags": simindex.tokens(threshold=0.5, k=256)}, "str", "128"),
        ({"tags": simindex.tokens(threshold=0.7)}, "str", "threshold"),
        ({"tags": simindex.tokens(threshold=0.5, verify="estimate")}, "str", "verify"),
        ({"tags": simindex.tokens(threshold=0.5, family="minhash/1")}, "str", "family"),
        ({"tags": simindex.text(threshold=0.5)}, "str", "kind"),
        ({"tags": simindex.tokens(threshold=0.5)}, "int", "key"),
        ({"tag": simindex.tokens(threshold=0.5)}, "str", "fields"),
    ],
)
def test_opening_with_other_settings_names_both_values_and_writes_nothing(
    db: Database, sets: Collection, asked: dict, key: str, words: str
) -> None:
    """S4."""
    before = db.stats().usage.last_txn
    with pytest.raises(SchemaError, match=words) as caught:
        db.create_collection("sets", asked, key=key, exist_ok=True)  # type: ignore[arg-type]
    assert "in the store" in str(caught.value)
    assert "was asked" in str(caught.value)
    assert db.stats().usage.last_txn == before
