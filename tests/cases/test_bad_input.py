"""Bad input: a clear error at the call, or the documented state; nothing half-written."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.children import row
from cases.sets import words

import simindex
from simindex.api import Collection, Database
from simindex.errors import FeatureError, KeyTypeError, NotAStore, QueryError, SchemaError


@pytest.fixture
def items(db: Database) -> Collection:
    fields = {"tags": simindex.tokens(threshold=0.5), "body": simindex.text(threshold=0.8)}
    return db.create_collection("bad", fields)


@pytest.mark.parametrize("text", ["a\0b", "\0", b"\0\xff", "\udfff", b"\xc3", "\ufeffcat", "a" * 10_000])
def test_odd_texts_are_stored_and_found_or_empty(items: Collection, text: str | bytes) -> None:
    report = items.put_many([{"key": "k", "body": text}, {"key": "good", "body": words(0, 9)}])
    assert report.inserted == 2
    hits = items.search(body=text)
    assert [(h.key, h.score) for h in hits] == ([] if report.empty else [("k", 1.0)])
    assert [h.key for h in items.search(body=words(0, 9))] == ["good"]


@pytest.mark.parametrize("mb", [2, pytest.param(100, marks=pytest.mark.long)])
def test_a_very_long_document(items: Collection, mb: int) -> None:
    text = words(0, mb * 1_000_000 // 9)
    items.put("long", {"body": text})
    assert [(h.key, h.score) for h in items.search(body=text)] == [("long", 1.0)]
    assert items.compare("long", {"body": text}, field="body").features_a == mb * 1_000_000 // 9 - 2


@pytest.mark.parametrize("key", [1, True, 1.0, None, b"1", ("a",), "x" * 65_537, "é" * 32_769])
def test_wrong_keys_are_refused_and_nothing_is_stored(items: Collection, key: Any) -> None:
    for write in (items.put, items.insert):
        with pytest.raises(KeyTypeError, match="key"):
            write(key, {"tags": ["x"]})
    with pytest.raises(KeyTypeError, match="key"):
        items.put_many([{"key": "good", "tags": ["x"]}, {"key": key, "tags": ["x"]}])
    for read in (items.get, items.delete, items.__getitem__):
        with pytest.raises(KeyTypeError, match="key"):
            read(key)
    assert len(items) == 0
    assert items.search(tags=["x"]) == []


@pytest.mark.parametrize("key", ["", "x" * 65_536, "é" * 32_768, "a\0b", "\udfff"])
def test_odd_keys_are_keys(items: Collection, key: str) -> None:
    items.put(key, {"tags": ["x"], "n": 1})
    assert items[key] == {"n": 1}
    assert [h.key for h in items.search(tags=["x"])] == [key]
    assert items.delete(key)


@pytest.mark.parametrize("value", ["abc", 5, [1.5], [None], [True], [-1], [2**64], {"a": 1.0}.values()])
def test_wrong_values_are_refused_and_nothing_is_stored(items: Collection, value: Any) -> None:
    with pytest.raises(FeatureError):
        items.put("a", {"tags": value, "body": "fine"})
    with pytest.raises(FeatureError):
        items.put_many([{"key": "good", "tags": ["x"]}, {"key": "a", "tags": value}])
    assert len(items) == 0


@pytest.mark.parametrize("value", [5, ["a"], 1.5, {}])
def test_a_text_that_is_none_is_refused(items: Collection, value: Any) -> None:
    with pytest.raises(FeatureError):
        items.put("a", {"body": value})
    assert len(items) == 0


def test_a_record_without_key_is_named(items: Collection) -> None:
    with pytest.raises(simindex.SimindexError, match="key"):
        items.put_many([{"key": "a", "tags": ["x"]}, {"tags": ["x"]}])
    with pytest.raises(simindex.SimindexError, match="key"):
        items.put_many({"tags": [["x"]]})
    assert len(items) == 0


@pytest.mark.parametrize(
    ("make", "nearest"),
    [
        (lambda db: simindex.text(thresold=0.8), "threshold"),
        (lambda db: simindex.text(normalise="nfc"), "normalize"),
        (lambda db: simindex.tokens(verfy="exact"), "verify"),
        (lambda db: simindex.tokens(verify="exakt"), "exact"),
        (lambda db: simindex.tokens(family="fastsim"), "fastsim/1"),
        (lambda db: db.create_collection("n", {"t": simindex.tokens()}, key="string"), "str"),
        (lambda db: db["badd"], "bad"),
        (lambda db: db["bad"].search(tagz=["x"]), "tags"),
        (lambda db: db["bad"].search(tags=["x"], thresold=0.5), "threshold"),
        (lambda db: db["bad"].search(tags=["x"], plan="skan"), "scan"),
        (lambda db: db["bad"].explain(field="bodi"), "body"),
        (lambda db: db["bad"].put_many([], on_duplicate="skp"), "skip"),
    ],
)
def test_unknown_names_come_with_the_nearest(
    db: Database, items: Collection, make: Any, nearest: str
) -> None:
    with pytest.raises((SchemaError, QueryError)) as caught:
        make(db)
    assert f"'{nearest}'" in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("content", [b"hello, world\n" * 1000, b"x", bytes(100_000)])
def test_a_file_that_is_no_store_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for mode in ("w", "r"):
        with pytest.raises(NotAStore):
            simindex.open(path, mode)
    assert path.read_bytes() == content


def test_a_truncated_file_is_refused(path: Path) -> None:
    with simindex.open(path) as db:
        made = db.create_collection("d", {"tags": simindex.tokens()}, key="int")
        made.put_many([row(i) for i in range(2_000)])
    cut = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(cut)
    with pytest.raises(NotAStore):
        simindex.open(path)
    assert path.read_bytes() == cut


def test_a_read_only_folder_is_a_clean_error(tmp_path: Path) -> None:
    """As a user who may not write there; a file in it can still be read."""
    folder = tmp_path / "locked"
    folder.mkdir()
    with simindex.open(folder / "t.simdb") as db:
        made = db.create_collection("d", {"tags": simindex.tokens(threshold=0.5)}, key="int")
        made.put_many([row(i) for i in range(20)])
        made.search(tags=[1, 2])
    before = (folder / "t.simdb").read_bytes()
    for place in [*folder.iterdir(), folder]:
        place.chmod(0o555 if place.is_dir() else 0o444)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    tmp_path.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65_534)
            try:
                simindex.open(folder / "new.simdb")
                code = 2
            except (simindex.SimindexError, OSError):
                code = 0
            if code == 0:
                try:
                    simindex.open(folder / "t.simdb")["d"].put(1_000, {"tags": [1]})
                    code = 3
                except (simindex.SimindexError, OSError):
                    code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    folder.chmod(0o755)
    assert (folder / "t.simdb").read_bytes() == before
    assert not (folder / "new.simdb").exists()


def test_columns_of_unequal_length_are_refused(items: Collection) -> None:
    with pytest.raises(simindex.SimindexError):
        items.put_many({"key": ["a", "b"], "tags": [["x"]]})
    with pytest.raises(simindex.SimindexError):
        items.put_many({"key": ["a"], "tags": (np.arange(5, dtype=np.uint64), np.array([0, 9]))})
    assert len(items) == 0


def test_broken_json_is_named_or_skipped(command: Any, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a b c"}\n{"text": \n{"other": 1}\n{"text": "d e f"}\n')
    done = command("dedup", "in.jsonl", "-o", "out.jsonl", "--quiet")
    assert done.returncode in (2, 3)
    assert "2" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()
    assert not (tmp_path / "out.jsonl.partial").exists()  # nothing in the way of the corrected command
    options = ("--on-error", "skip", "--rejects", "r.jsonl", "--quiet", "--force")
    done = command("dedup", "in.jsonl", "-o", "out.jsonl", *options)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "out.jsonl").read_text() == (
        '{"text": "a b c"}\n{"other": 1}\n{"text": "d e f"}\n'  # a line without the field lacks it, and stays
    )
