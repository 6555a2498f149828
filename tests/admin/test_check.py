"""check finds what is damaged, and says where; overview counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.index.layouts import layout_of
from simindex.index.writer import Writer


@pytest.fixture
def db(tmp_path: Path):
    with simindex.open(tmp_path / "t.simdb", durability="relaxed") as db:
        items = db.create_collection(
            "c", {"tags": simindex.tokens(threshold=0.5), "body": simindex.text(keep=True)}, key="int"
        )
        items.put_many(
            [{"key": i, "tags": [i, i + 1], "body": f"text of number {i} here"} for i in range(100)]
        )
        items.put(200, {"tags": [], "body": "short"})
        yield db


def tamper(db: simindex.Database, change: Any) -> list[str]:
    """Let `change(table, schema)` write something wrong; return the findings as text."""
    items = db["c"]
    with db._begin() as transaction:
        change(transaction.collection(items._number, layout_of(items.schema)), items.schema)
    return [str(finding) for finding in db.check()]


def test_a_sound_file_has_no_findings(db: simindex.Database) -> None:
    assert db.check() == []


@pytest.mark.damages
@pytest.mark.parametrize("label", ["empty:1", "shortened:2"])
def test_a_wrong_counter_is_found(db: simindex.Database, label: str) -> None:
    findings = tamper(db, lambda table, schema: table.count(label, 3))
    assert len(findings) == 1
    assert "4 are counted" in findings[0]


@pytest.mark.damages
@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("postings", "posting"),
        ("signatures", "another bucket"),
        ("kept", "kept value"),
        ("originals", "shingle set"),
        ("key", "key map"),
    ],
)
def test_rows_that_contradict_themselves_are_found(db: simindex.Database, part: str, words: str) -> None:
    def change(table: Any, schema: Any) -> None:
        writer = Writer(table, schema)
        hashes, records, fields = writer._read(table, np.array([7], np.uint32))
        tags, body = fields["tags"], fields["body"]
        if part == "postings":
            fields["tags"] = type(tags)(tags.signatures, tags.states, tags.postings[:, :0], tags.originals)
        elif part == "signatures":
            fields["tags"] = type(tags)(
                tags.signatures[:, ::-1].copy(), tags.states, tags.postings, tags.originals
            )
        elif part == "kept":
            other = writer._read(table, np.array([8], np.uint32))[2]["body"]
            fields["body"] = other
        elif part == "originals":
            empty = type(tags.originals)(np.zeros(0, np.uint8), np.zeros(2, np.int64))
            fields["body"] = type(body)(body.signatures, body.states, body.postings, empty)
        else:
            hashes = hashes + np.uint64(1 << 40)
        table.remove(np.array([7], np.uint32))
        writer._append_rows(1, hashes, records, fields)

    findings = tamper(db, change)
    assert findings
    assert any(words in finding for finding in findings)
    assert all("row" in finding for finding in findings)


@pytest.mark.damages
def test_two_live_rows_of_one_key_are_found(db: simindex.Database) -> None:
    def change(table: Any, schema: Any) -> None:
        writer = Writer(table, schema)
        writer.copy(table, np.array([7], np.uint32))

    findings = tamper(db, change)
    assert any("key 7 is live in rows 7 and 101" in finding for finding in findings)


def test_overview_counts_items_states_and_bytes(db: simindex.Database) -> None:
    stats = db.stats()
    assert (stats.items, stats.empty, stats.shortened) == (101, 1, 1)
    only = stats.collections[0]
    assert (only.name, only.key, only.items, only.rows) == ("c", "int", 101, 101)
    assert [field.name for field in only.fields] == ["tags", "body"]
    assert set(stats.by_kind) == {"meta", "records", "live", "signatures", "postings", "originals"}
    assert stats.bytes_per_item["all"] * 101 == pytest.approx(stats.usage.file_bytes)
    assert stats.usage.used_bytes + stats.usage.free_bytes <= stats.usage.file_bytes
    text = str(stats)
    assert "101 items" in text
    assert "expected recall" in text


def test_overview_of_an_empty_file() -> None:
    with simindex.open(":memory:") as db:
        assert db.stats().items == 0
        assert db.check() == []
        assert db.compact().items == 0
