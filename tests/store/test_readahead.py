"""A search of few blocks reads few: the map is not read in large pieces around each page."""

import os

import numpy as np
import pytest

import simindex
from simindex.store import residency


def read_bytes() -> int:
    with open("/proc/self/io", encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("read_bytes")).split()[1])


def test_reading_ahead_changes_no_answer(tmp_path) -> None:
    path = tmp_path / "a.simdb"
    rng = np.random.default_rng(4)
    signatures = rng.integers(0, 256, (120_000, 128), np.uint8)
    with simindex.open(path, durability="relaxed") as db:
        field = simindex.text(threshold=0.8, bands=(16, 8), verify="estimate")
        items = db.create_collection("i", {"body": field}, key="int")
        items.put_many({"key": np.arange(120_000), "body": signatures})
        before = items.search_many(body=signatures[:50], k=3)
        residency.read_ahead(path)
        after = items.search_many(body=signatures[:50], k=3)
        assert before.keys.tolist() == after.keys.tolist()


def test_one_search_of_a_cold_file_reads_a_part_of_it(tmp_path) -> None:
    # The story: with a device that reads 8 MB ahead, one search of a cold file read all of it.
    path = tmp_path / "b.simdb"
    rng = np.random.default_rng(5)
    n = 200_000
    signatures = rng.integers(0, 256, (n, 128), np.uint8)
    with simindex.open(path, durability="relaxed") as db:
        field = simindex.text(threshold=0.8, bands=(16, 8), verify="estimate")
        items = db.create_collection("i", {"body": field}, key="int")
        items.put_many({"key": np.arange(n), "body": signatures})
        db.compact()
    try:
        os.sync()
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        start = read_bytes()
    except (OSError, AttributeError, StopIteration):
        pytest.skip("this system does not tell what was read")
    with simindex.open(path, mode="r") as db:
        hits = db["i"].search_many(body=signatures[7:8], threshold=0.8, plan="buckets")
        read = read_bytes() - start
    assert hits.keys.tolist() == [7]
    assert read < path.stat().st_size // 2
