"""Space comes back: replacing everything again and again does not let the file grow without end.

The story: a commit's postings were one value of up to 4 MB, for which no run of free pages was long enough.
"""

import numpy as np
import pytest

import simindex


def replace_all(path, items: int, rounds: int, verify: str) -> list[int]:
    sizes = []
    rng = np.random.default_rng(11)
    batch = items // 10
    with simindex.open(path, durability="relaxed") as db:
        field = simindex.tokens(threshold=0.8, bands=(16, 8), verify=verify)
        rows = db.create_collection("rows", {"tokens": field}, key="int")
        ptr = np.arange(0, batch * 30 + 1, 30, dtype=np.int64)
        for _ in range(rounds):
            order = rng.permutation(items).astype(np.uint64)
            for s in range(0, items, batch):
                hashes = rng.integers(0, 2**63, size=batch * 30, dtype=np.uint64)
                rows.put_many({"key": order[s : s + batch], "tokens": (hashes, ptr)})
            sizes.append(path.stat().st_size)
        assert len(rows) == items
    return sizes


def test_replacing_everything_twenty_times_keeps_the_file_small(tmp_path) -> None:
    sizes = replace_all(tmp_path / "rounds.simdb", 20_000, 20, "estimate")
    assert max(sizes) <= 1.5 * sizes[1], sizes  # merges of small stores are coarser than those of large ones


@pytest.mark.long
@pytest.mark.parametrize("verify", ["exact", "estimate"])
def test_replacing_100_000_items_twenty_times_keeps_the_file_within_1_3(tmp_path, verify) -> None:
    sizes = replace_all(tmp_path / "rounds.simdb", 100_000, 20, verify)
    assert sizes[-1] <= 1.3 * sizes[1], sizes
