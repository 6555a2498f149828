"""Equal slots, scans, bucket keys: every level against the plain twin, over blocks at odd addresses."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels import dispatch
from simindex.kernels.reference import scan as plain
from simindex.types import ABSENT, EMPTY, PRESENT, SHORTENED

ROWS = 7  # rows a block


@dataclass
class Table:
    """Signature and live blocks in memory, as addresses for kernels and as arrays for the twin."""

    addresses: np.ndarray
    blocks: list[np.ndarray | None]
    header: int
    width: int
    slot_bytes: int
    n_rows: int
    live: np.ndarray
    live_blocks: list[np.ndarray | None]

    @property
    def layout(self) -> tuple[int, int, int, int]:
        return ROWS, self.header, self.width, self.slot_bytes


def shifted(data: np.ndarray, by: int) -> np.ndarray:
    """A copy of bytes that starts `by` bytes after an aligned address."""
    room = np.zeros(len(data) + 16, np.uint8)
    room[by : by + len(data)] = data
    return room[by : by + len(data)]


def table_of(
    rows: np.ndarray, slot_bytes: int, states: np.ndarray, live: np.ndarray, absent: set[int], by: int = 2
):
    n, width = rows.shape
    header = (48 + (ROWS + 3) // 4 + 15) // 16 * 16
    blocks: list[np.ndarray | None] = []
    for b in range((n + ROWS - 1) // ROWS):
        block = np.zeros(header + ROWS * width, np.uint8)
        for i, row in enumerate(rows[b * ROWS : (b + 1) * ROWS]):
            block[header + i * width : header + (i + 1) * width] = row
            block[48 + i // 4] |= states[b * ROWS + i] << (2 * (i % 4))
        blocks.append(None if b in absent else shifted(block, by))
    live_blocks: list[np.ndarray | None] = []
    for b in range(n // 32512 + 1):
        bits = np.packbits(live[b * 32512 : (b + 1) * 32512], bitorder="little")
        live_blocks.append(shifted(np.concatenate([np.zeros(16, np.uint8), bits, np.zeros(8, np.uint8)]), by))
    addresses = np.array([0 if x is None else x.ctypes.data for x in blocks], np.uint64)
    live_addresses = np.array([x.ctypes.data for x in live_blocks], np.uint64)
    return Table(addresses, blocks, header, width, slot_bytes, n, live_addresses, live_blocks)


@st.composite
def tables(draw):
    slot_bytes = draw(st.sampled_from([1, 2, 4, 8]))
    slots = draw(st.integers(1, 150))
    n = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    # Two values a byte: slots of every width agree often enough to matter.
    rows = rng.integers(0, 2, (n, slots * slot_bytes), dtype=np.uint8)
    states = rng.integers(0, 4, n).astype(np.uint8)
    live = rng.random(n) < 0.8
    absent = {b for b in range((n + ROWS - 1) // ROWS) if rng.random() < 0.15}
    return table_of(rows, slot_bytes, states, live, absent, draw(st.integers(0, 7))), rows, rng


@given(tables())
@settings(max_examples=120, deadline=None)
def test_counts_equal_the_twin_at_every_level(case):
    table, rows, rng = case
    queries = rows[rng.integers(0, len(rows), 3)]
    query_of = rng.integers(0, 3, 50).astype(np.uint32)
    some = rng.integers(0, len(rows), 50).astype(np.uint32)
    others = rng.integers(0, len(rows), 50).astype(np.uint32)
    for level in dispatch.available():
        with dispatch.forced(level):
            got = kernels.count_equal(rows, queries[0], table.slot_bytes)
            assert np.array_equal(got, plain.count_equal(rows, queries[0], table.slot_bytes)), level
            got = kernels.pair_equal(table.addresses, *table.layout, some, others)
            assert np.array_equal(got, plain.pair_equal(table.blocks, *table.layout, some, others)), level
            got = kernels.gather_equal(table.addresses, *table.layout, queries, query_of, some)
            assert np.array_equal(
                got, plain.gather_equal(table.blocks, *table.layout, queries, query_of, some)
            )


@given(tables(), st.integers(1, 60))
@settings(max_examples=120, deadline=None)
def test_scans_equal_the_twin_at_every_level(case, k):
    table, rows, rng = case
    queries = np.ascontiguousarray(rows[rng.integers(0, len(rows), 4)])
    least = rng.integers(0, rows.shape[1] // table.slot_bytes + 2, 4).astype(np.uint16)
    n_rows = int(rng.integers(0, len(rows) + 1))
    for wish in ({"min_equal": least}, {"k": k}):
        expected = plain.scan_equal(table.blocks, *table.layout, queries, n_rows, table.live_blocks, **wish)
        for level in dispatch.available():
            with dispatch.forced(level):
                got = kernels.scan_equal(table.addresses, *table.layout, queries, n_rows, table.live, **wish)
            for a, b in zip(got, expected, strict=True):
                assert a.dtype == b.dtype
                assert np.array_equal(a, b), (level, wish)


def plain_table(n: int = 300, width: int = 128, seed: int = 1) -> tuple[Table, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (n, width), dtype=np.uint8)
    return table_of(rows, 1, np.full(n, PRESENT, np.uint8), np.ones(n, bool), set()), rows


def test_top_k_returns_all_ties_with_the_kth():
    rows = np.zeros((20, 16), np.uint8)
    for i in range(20):
        rows[i, : i % 4] = 9  # four groups: 16, 15, 14 and 13 slots equal to a zero query
    table = table_of(rows, 1, np.full(20, PRESENT, np.uint8), np.ones(20, bool), set())
    query = np.zeros((1, 16), np.uint8)
    ptr, found, equal = kernels.scan_equal(table.addresses, *table.layout, query, 20, table.live, k=7)
    assert list(ptr) == [0, 10]
    assert list(found) == [i for i in range(20) if i % 4 < 2]
    assert sorted(equal, reverse=True) == [16] * 5 + [15] * 5
    ptr, found, _ = kernels.scan_equal(table.addresses, *table.layout, query, 20, table.live, k=1000)
    assert len(found) == 20


def test_scan_skips_dead_empty_absent_and_later_rows():
    rows = np.ones((30, 8), np.uint8)
    states = np.full(30, PRESENT, np.uint8)
    states[[3, 4, 5]] = [EMPTY, ABSENT, SHORTENED]
    live = np.ones(30, bool)
    live[[8, 20]] = False
    table = table_of(rows, 1, states, live, {2})
    query = np.ones((1, 8), np.uint8)
    _, found, _ = kernels.scan_equal(
        table.addresses, *table.layout, query, 29, table.live, min_equal=np.array([8], np.uint16)
    )
    gone = {3, 4, 8, 20, 29, *range(14, 21)}
    assert list(found) == [i for i in range(30) if i not in gone]


def test_top_k_over_many_rows_equals_a_sort():
    table, rows = plain_table(5000, 64)
    rows[::3, :20] = rows[0, :20]
    table = table_of(rows, 1, np.full(5000, PRESENT, np.uint8), np.ones(5000, bool), set())
    counts = (rows == rows[0]).sum(axis=1)
    for k in (1, 10, 700, 2500):
        least = np.sort(counts)[::-1][k - 1]
        _, found, equal = kernels.scan_equal(table.addresses, *table.layout, rows[:1], 5000, table.live, k=k)
        assert np.array_equal(found, np.flatnonzero(counts >= least))
        assert np.array_equal(equal, counts[found])


def test_wrong_arguments_are_named():
    table, rows = plain_table(20)
    row = np.array([21], np.uint32)
    layout = table.layout
    with pytest.raises(IndexError, match=r"rows_a\[0\] is row 21: the table of blocks ends at row 21"):
        kernels.pair_equal(table.addresses, *layout, row, row)
    with pytest.raises(IndexError, match=r"query_of\[0\] is 5: there are 2 queries"):
        kernels.gather_equal(
            table.addresses, *layout, rows[:2], np.array([5], np.uint32), np.array([0], np.uint32)
        )
    with pytest.raises(ValueError, match="slot_bytes is 3"):
        kernels.count_equal(rows, rows[0], 3)
    with pytest.raises(ValueError, match="127 and 128"):
        kernels.count_equal(rows, np.ascontiguousarray(rows[0, :127]), 1)
    with pytest.raises(ValueError, match="either min_equal"):
        kernels.scan_equal(table.addresses, *layout, rows[:1], 20, table.live)
    with pytest.raises(ValueError, match="k is 0"):
        kernels.scan_equal(table.addresses, *layout, rows[:1], 20, table.live, k=0)
    with pytest.raises(ValueError, match="n_rows is 22"):
        kernels.scan_equal(table.addresses, *layout, rows[:1], 22, table.live, k=1)
    with pytest.raises(ValueError, match="live bitmap ends at row 0"):
        kernels.scan_equal(table.addresses, *layout, rows[:1], 20, np.zeros(0, np.uint64), k=1)
    with pytest.raises(ValueError, match="header is 48"):
        kernels.scan_equal(table.addresses, ROWS, 48, 128, 1, rows[:1], 20, table.live, k=1)
    with pytest.raises(ValueError, match="16 bands of 9 rows"):
        kernels.band_keys(rows, 16, 9, 1)
    with pytest.raises(ValueError, match="not 32-bit row ids"):
        kernels.band_postings(rows, np.full(20, 2, np.uint8), 4, 4, 1, 2**32 - 10)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_band_keys_and_postings_equal_the_twin(data):
    slot_bytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    rows = data.draw(st.integers(1, 20))
    bands = data.draw(st.integers(1, 12))
    n = data.draw(st.integers(0, 150))
    spare = data.draw(st.integers(0, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    signatures = rng.integers(0, 3, (n, (rows * bands + spare) * slot_bytes), dtype=np.uint8)
    states = rng.integers(0, 4, n).astype(np.uint8)
    first = data.draw(st.sampled_from([0, 1, 2**32 - 1000]))
    keys = kernels.band_keys(signatures, bands, rows, slot_bytes)
    assert np.array_equal(keys, plain.band_keys(signatures, bands, rows, slot_bytes))
    expected = plain.band_postings(signatures, states, bands, rows, slot_bytes, first)
    assert np.array_equal(kernels.band_postings(signatures, states, bands, rows, slot_bytes, first), expected)
    assert np.array_equal(kernels.key_postings(keys, states, first), expected)


def test_postings_of_crowded_buckets_are_sorted_by_row_too():
    signatures = np.zeros((5000, 16), np.uint8)
    signatures[1::2] = 1
    postings = kernels.band_postings(signatures, np.full(5000, PRESENT, np.uint8), 4, 4, 1, 77)
    assert (postings[:, 1:] > postings[:, :-1]).all()
    assert set((postings[0] & np.uint64(0xFFFFFFFF)).tolist()) == set(range(77, 5077))


@pytest.mark.parametrize("per_block", [1, 2, 3, 7, 255, 1000, 4097])
def test_rows_are_found_in_their_blocks_for_any_number_of_rows_a_block(per_block):
    """The block number is computed by multiplication: rows around every boundary must stay in their block."""
    n = 3 * per_block
    rows = np.zeros((n, 8), np.uint8)
    rows.view("<u8")[:, 0] = np.arange(n) * 0x0101010101010101 % 251 + np.arange(n)
    header = (48 + (per_block + 3) // 4 + 15) // 16 * 16
    blocks = [
        np.concatenate([np.zeros(header, np.uint8), rows[b * per_block : (b + 1) * per_block].ravel()])
        for b in range(3)
    ]
    addresses = np.array([b.ctypes.data for b in blocks], np.uint64)
    wish = np.array([0, n - 1, per_block - 1, per_block, 2 * per_block - 1, 2 * per_block], np.uint32)
    of = np.arange(len(wish), dtype=np.uint32)
    got = kernels.gather_equal(addresses, per_block, header, 8, 8, np.ascontiguousarray(rows[wish]), of, wish)
    assert (got == 1).all()


def test_the_largest_row_ids_are_found():
    """2^32 - 1 is a row id: its block and place must be computed without overflow."""
    per_block, header = 65_536, 48 + 65_536 // 4
    block = np.zeros(header + per_block * 1, np.uint8)
    block[-1] = 7
    addresses = np.zeros(65_536, np.uint64)
    addresses[-1] = block.ctypes.data
    query, last = np.array([[7]], np.uint8), np.array([2**32 - 1, 2**32 - 2], np.uint32)
    got = kernels.gather_equal(addresses, per_block, header, 1, 1, query, np.zeros(2, np.uint32), last)
    assert got.tolist() == [1, 0]
