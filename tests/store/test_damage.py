"""Damaged bytes end in CorruptStore: no write takes them over and seals them anew, no kernel follows them."""

from pathlib import Path

import numpy as np
import pytest
from store.test_verify import change, entries

import simindex
from simindex.errors import CorruptStore
from simindex.store import layout

pytestmark = pytest.mark.damages
TAILS = (layout.LIVE, layout.RECORDS, layout.SIGNATURES, layout.ORIGINALS)


@pytest.fixture
def db(tmp_path: Path):
    with simindex.open(tmp_path / "a.simdb", durability="relaxed") as db:
        c = db.create_collection("c", {"body": simindex.text(threshold=0.8)})
        c.put_many([{"key": f"k{i}", "body": f"one two three {i} four", "n": i} for i in range(50)])
        yield db


@pytest.mark.parametrize("kind", TAILS)
def test_a_write_does_not_make_damage_look_sound(db: simindex.Database, kind: str) -> None:
    key, value = entries(db._store, kind)[-1]
    broken = bytearray(value)
    broken[-1] ^= 1
    change(db._store, kind, key, bytes(broken))
    before = [str(finding) for finding in db.check()]
    assert before
    with pytest.raises(CorruptStore, match="run check"):
        db["c"].put("new", {"body": "a b c d e f"})
    with pytest.raises(CorruptStore):
        db.compact()
    assert [str(finding) for finding in db.check()] == before


@pytest.mark.parametrize("kind", TAILS)
def test_a_missing_tail_is_named(db: simindex.Database, kind: str) -> None:
    for key, _ in entries(db._store, kind):
        change(db._store, kind, key, None)

    def use() -> None:
        db["c"].put_many([{"key": f"new{i}", "body": "a b c d e f"} for i in range(3)])
        db["c"].search(body="one two three 1 four")
        raise CorruptStore(str(db.check()[0]))  # a missing live block reads as dead rows: check tells

    with pytest.raises(CorruptStore):
        use()


@pytest.mark.parametrize("kind", [layout.RECORDS, layout.ORIGINALS])
def test_kernels_do_not_follow_damaged_offsets(db: simindex.Database, kind: str) -> None:
    rng = np.random.default_rng(5)
    key, value = entries(db._store, kind)[-1]
    refused = 0
    for _ in range(60):
        broken = bytearray(value)
        at = int(rng.integers(8, layout.HEAP_HEADER + 4 * 51))  # the header's counts and the offsets
        broken[at] ^= int(rng.integers(1, 256))
        change(db._store, kind, key, bytes(broken))
        try:
            for plan in ("scan", "buckets"):
                db["c"].search(body="one two three 7 four", plan=plan)
            [db["c"].get(f"k{i}") for i in range(50)]
        except CorruptStore:
            refused += 1
        assert db.check()
    assert refused > 30
