"""kill -9 while batches are put, replaced and deleted through the library (case D1): whole batches, nothing
to repair.
"""

import random
from pathlib import Path

from crash.victim import kill

import simindex

BATCH = 300
KEPT = 6  # each batch replaces some items of the one before and deletes the one KEPT earlier


def rows(number: int) -> list[dict]:
    fresh = [{"key": number * 1000 + i, "tags": [number, i, i + 1, i + 2], "n": number} for i in range(BATCH)]
    again = [{"key": (number - 1) * 1000 + i, "tags": [number, i], "n": number} for i in range(0, BATCH, 7)]
    return fresh + (again if number else [])


def write(path: Path, start: int, report) -> None:
    with simindex.open(path, durability="relaxed") as db:
        db.create_collection("c", {"tags": simindex.tokens(threshold=0.5)}, key="int", exist_ok=True)
        for number in range(start, start + 1000):
            with db.write() as tx:
                items = tx["c"]
                items.put_many(rows(number), batch=100, threads=0)
                for i in range(BATCH if number >= KEPT else 0):
                    items.delete((number - KEPT) * 1000 + i)
            report(number)


def expected(last: int) -> dict[int, int]:
    """Return key -> n after batches 0..last."""
    model: dict[int, int] = {}
    for number in range(last + 1):
        for row in rows(number):
            model[row["key"]] = number
        for i in range(BATCH):
            model.pop((number - KEPT) * 1000 + i, None)
    return model


def test_kills_leave_whole_batches(tmp_path: Path, rounds: int) -> None:
    path, rng, last = tmp_path / "k.simdb", random.Random(20_261_201), -1
    for _ in range(rounds):
        first = last + 1
        reported = kill(lambda report, first=first: write(path, first, report), rng, most=4, pause=0.02)
        sure = reported[-1] if reported else last
        if not path.exists():
            continue
        with simindex.open(path) as db:
            if "c" not in db:
                assert last < 0
                continue
            assert db.check() == []
            items = db["c"]
            have = {key: items[key]["n"] for key in items}
            last = next(n for n in (sure, sure + 1) if have == expected(n))
    assert last > rounds / 2
