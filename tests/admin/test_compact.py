"""compact: the same answers from a smaller file, or the old file untouched."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import simindex
from simindex.errors import CorruptStore, Locked, ReadOnly, WriteError
from simindex.index.layouts import layout_of
from simindex.store import Finding


def fill(db: simindex.Database) -> simindex.Collection:
    db.create_collection("gone", {"tags": simindex.tokens()})
    items = db.create_collection(
        "c", {"tags": simindex.tokens(threshold=0.5), "body": simindex.text(keep=True)}, key="int"
    )
    db.create_collection("empty", {"tags": simindex.tokens(verify="estimate")})
    db.drop_collection("gone")
    items.put_many([{"key": i, "tags": [i, i + 1, i + 2], "n": i} for i in range(4000)], batch=500)
    items.put_many(
        [{"key": i, "tags": [i, i + 1, i + 3], "body": f"some text of number {i}"} for i in range(0, 4000, 3)]
    )
    for i in range(0, 4000, 7):
        items.delete(i)
    items.put(4000, {"tags": []})
    return items


def answers(items: simindex.Collection) -> tuple:
    batch = items.search_many(tags=[[i, i + 1, i + 2] for i in range(0, 500, 5)], k=4)
    return batch.keys.tolist(), batch.score.tolist(), list(items), items.get(6), len(items)


def test_compact_keeps_every_answer_and_makes_the_file_smaller(tmp_path: Path) -> None:
    path = tmp_path / "t.simdb"
    db = simindex.open(path, durability="relaxed")
    items = fill(db)
    second = simindex.open(path, durability="relaxed")
    before, stats = answers(items), db.stats()
    done = db.compact()
    assert done.items == len(items)
    assert done.after < done.before / 2
    assert db.stats().usage.free_bytes < done.after / 20
    assert answers(items) == before
    assert answers(second["c"]) == before
    after = db.stats()
    assert [c.items for c in after.collections] == [c.items for c in stats.collections]
    assert (after.empty, after.shortened) == (stats.empty, stats.shortened)
    assert after.collections[0].rows == len(items)
    with db._store.read() as snapshot:
        table = snapshot.collection(items._number, layout_of(items.schema))
        for number, bands in ((1, 36), (2, 16), (0xFFFF, 1)):
            assert table.runs(number)[:2].tolist() == [bands, bands]  # one source a band: one run
    items.put(1, {"tags": ["new"]})
    assert list(items)[-1] == 1
    assert second["c"].search(tags=["new"])[0].key == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.simdb", "t.simdb-lock"]
    second.close()
    db.close()
    with simindex.open(path, durability="relaxed") as db:
        assert answers(db["c"])[4] == before[4]
        db.compact()
        db.compact()
        assert db["c"].get(1) == {}


def test_compact_refuses_while_another_process_has_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.simdb"
    with simindex.open(path, durability="relaxed") as db:
        items = fill(db)
        before = answers(items)
        code = (
            "import sys, simindex; db = simindex.open(sys.argv[1]); print(len(db['c']), flush=True); input()"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert int(child.stdout.readline()) == len(items)
        with pytest.raises(Locked, match="another process"):
            db.compact()
        assert answers(items) == before
        items.put(9999, {})
        child.communicate("\n")
        assert child.returncode == 0
        assert db.compact().items == len(items)
        assert 9999 in items


def test_compact_refuses_inside_a_snapshot_transaction_or_read_only(tmp_path: Path) -> None:
    path = tmp_path / "t.simdb"
    with simindex.open(path, durability="relaxed") as db:
        items = fill(db)
        with db.snapshot(), pytest.raises(Locked):
            db.compact()
        with db.write(), pytest.raises(WriteError):
            db.compact()
        assert len(items) > 0
        db.compact()
    with simindex.open(path, "r") as db, pytest.raises(ReadOnly):
        db.compact()


def test_a_copy_that_fails_its_check_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simindex.open(tmp_path / "t.simdb", durability="relaxed") as db:
        items = fill(db)
        before = answers(items)
        module = importlib.import_module("simindex.admin.compact")
        monkeypatch.setattr(module, "check", lambda store: iter([Finding("checksum", "here", "wrong")]))
        with pytest.raises(CorruptStore, match="checksum"):
            db.compact()
        monkeypatch.undo()
        assert answers(items) == before
        assert len(list(tmp_path.iterdir())) == 2


def test_what_a_killed_compaction_left_is_removed(tmp_path):
    with simindex.open(tmp_path / "a.simdb") as db:
        left = tmp_path / ".a.simdb.rewrite-12345678"
        left.mkdir()
        (left / "a.simdb").write_bytes(b"half a copy")
        other = tmp_path / "a.simdb.12345678"
        other.mkdir()
        db.compact()
        assert not left.exists()
        assert other.exists()
