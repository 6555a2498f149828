"""Kernels of the postings against their plain twins, at every instruction-set level."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels.reference import runs as reference
from simindex.store import layout

SKEWS = ("uniform", "hot", "narrow", "edges")


def some_postings(rng: np.random.Generator, n: int, skew: str, first_row: int = 0) -> np.ndarray:
    """Sorted unique postings of rows first_row .. first_row + n - 1."""
    keys = rng.integers(0, 2**32, n, dtype=np.uint64)
    if skew == "hot":
        keys[rng.integers(0, 3, n) > 0] = 7 << 20
    elif skew == "narrow":
        keys = np.uint64(123456) + keys % np.uint64(4)
    elif skew == "edges":
        keys = np.where(keys % np.uint64(2) == 0, np.uint64(0), np.uint64(2**32 - 1))
    return np.sort(keys << np.uint64(32) | np.arange(first_row, first_row + n, dtype=np.uint64))


def stored(postings: np.ndarray, shift: int = 0) -> tuple[np.ndarray, int]:
    """A block in memory, `shift` bytes off any alignment; return (memory, address)."""
    data = np.zeros(shift + kernels.block_bytes(len(postings)), np.uint8)
    data[shift : shift + 8 * len(postings)] = np.frombuffer(postings.tobytes(), np.uint8)
    kernels.fill_directory(data, shift, len(postings))
    return data, kernels.address_of(data) + shift


class Bits:
    """A live bitmap in memory."""

    def __init__(self, alive: np.ndarray) -> None:
        self.blocks = reference.live_blocks(alive, layout.LIVE_ROWS, layout.LIVE_HEADER)
        self.addresses = np.array([kernels.address_of(block) for block in self.blocks], np.uint64)


def flat_table(bands: list[list[list[np.ndarray]]], memory: list[np.ndarray], shift: int) -> np.ndarray:
    """The lookup kernel's table: bands of sources of blocks."""
    sources, first, blocks, starts = [], [], [], [0]
    for band in bands:
        for source in band:
            sources.append([0, len(first), len(source)])
            for postings in source:
                data, address = stored(postings, shift)
                memory.append(data)
                first.append(int(postings[0]) if len(postings) else 0)
                blocks.append((address, len(postings)))
        starts.append(len(sources))
    table = np.zeros(4 + len(starts) + 3 * len(sources) + 5 * len(first), np.uint64)
    table[:3] = len(bands), len(sources), len(first)
    table[4 : 4 + len(starts)] = starts
    at = 4 + len(starts)
    table[at : at + 3 * len(sources)] = np.array(sources, np.uint64).ravel()
    at += 3 * len(sources)
    table[at : at + len(first)] = first
    rows = table[at + len(first) :].reshape(-1, 4)
    for i, (address, count) in enumerate(blocks):
        kernels.place_block(rows, i, address, count)
    return table


@given(st.integers(0, 2**32 - 1), st.integers(0, 700), st.booleans())
@settings(max_examples=40, deadline=None)
def test_sorting_equals_the_twin(seed: int, n: int, given_rows: bool) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, n, dtype=np.uint64)
    keys[: n // 3] = keys[-1] if n else 0
    rows = rng.permutation(n).astype(np.uint32) if given_rows else None
    expected = reference.sort_postings(keys, rows, 5)
    assert np.array_equal(kernels.sort_postings(keys, rows, 5), expected)


def test_sorting_refuses_rows_beyond_32_bits() -> None:
    with pytest.raises(ValueError, match="pass 2\\^32"):
        kernels.sort_postings(np.zeros(2, np.uint64), first_row=2**32 - 1)
    with pytest.raises(ValueError, match="2 keys for 1 rows"):
        kernels.sort_postings(np.zeros(2, np.uint64), np.zeros(1, np.uint32))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 300), max_size=9))
@settings(max_examples=40, deadline=None)
def test_merging_arrays_equals_the_twin(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    arrays = [np.sort(rng.integers(0, 1000, n, dtype=np.uint64)) for n in sizes]
    assert np.array_equal(kernels.merge_sorted(arrays), reference.merge_sorted(arrays))


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 500, 65_536, 70_001])
def test_block_bytes_equal_the_twin(skew: str, n: int) -> None:
    postings = some_postings(np.random.default_rng(n), n, skew)
    data, _ = stored(postings)
    assert data.tobytes() == reference.block(postings)
    assert kernels.block_is_sound(data, 0, n)
    if n > 1:
        data[8 * n] ^= 1
        assert not kernels.block_is_sound(data, 0, n)


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("sizes", [[1], [0, 5], [3000, 10], [40_000, 300, 1, 20_000], [700] * 40, [3] * 300])
def test_merge_in_pieces_equals_the_twin(skew: str, sizes: list[int]) -> None:
    rng = np.random.default_rng(len(sizes))
    total = sum(sizes)
    whole = some_postings(rng, total, skew)
    owner = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    arrays = [whole[owner == i] for i in range(len(sizes))]
    alive = rng.integers(0, 4, total) > 0
    bits = Bits(alive)
    for live, mask, capacity in ((None, None, 999), (bits.addresses, alive, 4096), (None, None, 10**6)):
        # each array is cut into blocks, of which the kernel sees one at a time
        cuts = [np.array_split(array, int(rng.integers(1, 4))) for array in arrays]
        cuts = [[piece for piece in pieces if len(piece)] or [pieces[0]] for pieces in cuts]
        held = [[stored(piece, int(rng.integers(0, 8))) for piece in pieces] for pieces in cuts]
        at = [0] * len(cuts)
        start, done, parts = 0, False, []
        out = np.zeros(8 * capacity + 3, np.uint8)
        while not done:
            for i, pieces in enumerate(cuts):
                while at[i] + 1 < len(pieces) and int(pieces[at[i]][-1]) < start:
                    at[i] += 1
            written, read, following, done = kernels.merge_blocks(
                np.array([blocks[j][1] for blocks, j in zip(held, at, strict=True)], np.uint64),
                np.array([len(pieces[j]) for pieces, j in zip(cuts, at, strict=True)], np.uint64),
                np.array([j + 1 < len(pieces) for pieces, j in zip(cuts, at, strict=True)], np.uint8),
                start, live, out, 3, capacity,
            )  # fmt: skip
            assert written <= read
            assert done or following > start, "every call gets on"
            start = following
            parts.append(out[3 : 3 + 8 * written].copy().view(np.uint64))
        assert np.array_equal(np.concatenate(parts), reference.merge_blocks(arrays, 0, mask))


def test_merge_refuses_a_block_that_should_have_been_replaced() -> None:
    data, address = stored(np.array([1, 2, 3], np.uint64))
    one = np.ones(1, np.uint8)
    where, count = np.array([address], np.uint64), np.array([3], np.uint64)
    with pytest.raises(ValueError, match="ends below 9"):
        kernels.merge_blocks(where, count, one, 9, None, np.zeros(80, np.uint8), 0, 9)
    assert len(data)


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize("n_queries", [1, 3, 60, 700])
def test_lookup_equals_the_twin_at_every_level(isa: str, skew: str, n_queries: int) -> None:
    rng = np.random.default_rng(n_queries)
    n, n_bands = 5000, 3
    alive = rng.integers(0, 10, n) > 0
    bits = Bits(alive)
    memory: list[np.ndarray] = []
    bands, flat = [], []
    for _ in range(n_bands):
        whole = some_postings(rng, n, skew)
        owner = rng.choice([0, 0, 0, 0, 1, 1, 2], n)
        arrays = [whole[owner == i] for i in range(3)] + [np.empty(0, np.uint64)]
        flat.append(arrays)
        sources = [[piece for piece in np.array_split(array, 4) if len(piece)] for array in arrays]
        bands.append([source for source in sources if source])
    table = flat_table(bands, memory, shift=n_queries % 8)
    keys = rng.integers(0, 2**64, (n_queries, n_bands), dtype=np.uint64)
    hits = rng.integers(0, 2, n_queries) == 0
    for band, arrays in enumerate(flat):
        keys[hits, band] = rng.choice(np.concatenate(arrays), int(hits.sum()))
    ptr, rows, missing = kernels.lookup_runs(table, keys, bits.addresses)
    expected_ptr, expected = reference.lookup(flat, keys, alive)
    assert missing is None
    assert np.array_equal(ptr, expected_ptr)
    assert np.array_equal(rows, expected)


def test_lookup_names_missing_blocks_and_respects_the_lowest_posting() -> None:
    postings = np.arange(0, 100, dtype=np.uint64) << np.uint64(32) | np.arange(100, dtype=np.uint64)
    memory: list[np.ndarray] = []
    table = flat_table([[[postings[:50], postings[50:]]]], memory, 0)
    bits = Bits(np.ones(100, bool))
    keys = np.array([[10 << 32], [70 << 32]], np.uint64)
    assert kernels.lookup_runs(table, keys, bits.addresses)[1].tolist() == [10, 70]
    table[6] = 50 << 32  # the source's frontier
    assert kernels.lookup_runs(table, keys, bits.addresses)[1].tolist() == [70]
    table[-4] = 0  # not fetched
    assert kernels.lookup_runs(table, keys, bits.addresses)[2].tolist() == [1]
    with pytest.raises(ValueError, match="does not fit 2 bands"):
        kernels.lookup_runs(table, np.zeros((1, 2), np.uint64), bits.addresses)


def test_rows_beyond_the_live_bitmap_are_dead() -> None:
    postings = np.array([5, layout.LIVE_ROWS + 5], np.uint64)
    memory: list[np.ndarray] = []
    table = flat_table([[[postings]]], memory, 0)
    bits = Bits(np.ones(10, bool))
    assert kernels.lookup_runs(table, np.zeros((1, 1), np.uint64), bits.addresses)[1].tolist() == [5]
