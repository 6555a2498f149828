"""The kernels of row-indexed blocks against their plain twins, at every instruction-set level."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels.reference import blocks as plain

LEVELS = kernels.dispatch.available()
ROWS = plain.LIVE_ROWS


def addresses(blocks: list[np.ndarray | None]) -> np.ndarray:
    return np.array([0 if b is None else kernels.address_of(b) for b in blocks], np.uint64)


def at_any_alignment(size: int, shift: int) -> np.ndarray:
    return np.zeros(size + 8, np.uint8)[shift : shift + size]


@pytest.mark.parametrize("level", LEVELS)
def test_crc32c_equals_the_published_vectors(level: str) -> None:
    with kernels.dispatch.forced(level):
        assert kernels.crc32c(b"123456789") == 0xE3069283  # the check value of the catalogue of CRCs
        assert kernels.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4: 32 bytes of zeros
        assert kernels.crc32c(b"\xff" * 32) == 0x62A8AB43  # 32 bytes of ones
        assert kernels.crc32c(bytes(range(32))) == 0x46DD794E  # 32 ascending bytes
        assert kernels.crc32c(b"") == 0


@pytest.mark.parametrize("level", LEVELS)
def test_crc32c_equals_its_twin_at_every_level_length_and_alignment(level: str) -> None:
    data = np.random.default_rng(3).integers(0, 256, 400, dtype=np.uint8)
    for start in range(9):
        for length in (1, 7, 8, 9, 63, 64, 65, 300):
            part = data[start : start + length]
            with kernels.dispatch.forced(level):
                assert kernels.crc32c(part) == plain.crc32c(part.tobytes())


def test_a_sealed_block_is_whole_and_any_flip_of_a_bit_is_seen() -> None:
    block = np.random.default_rng(4).integers(0, 256, 100, dtype=np.uint8)
    kernels.seal(block)
    assert kernels.is_sealed(block)
    for bit in range(32, 800):  # the first four bytes are the magic number, compared by itself
        block[bit // 8] ^= 1 << bit % 8
        assert not kernels.is_sealed(block)
        block[bit // 8] ^= 1 << bit % 8
    assert not kernels.is_sealed(block[:7])


def live_blocks(rng: np.random.Generator, shift: int) -> list[np.ndarray | None]:
    blocks: list[np.ndarray | None] = []
    for density in (0.5, None, 1.0, 0.01):
        if density is None:
            blocks.append(None)
            continue
        block = at_any_alignment(4080, shift)
        block[16:] = np.packbits(rng.random(ROWS) < density, bitorder="little")
        blocks.append(block)
    return blocks


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), shift=st.integers(0, 7))
def test_live_bits_equal_their_twin(seed: int, shift: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = live_blocks(rng, shift)
    table = addresses(blocks)
    end = len(blocks) * ROWS
    ends = np.sort(rng.integers(0, end + 1, (20, 2)), axis=1)
    edges = [
        [0, end],
        [0, 0],
        [5, 5],
        [ROWS - 1, ROWS + 1],
        [2 * ROWS, 3 * ROWS],
        [3 * ROWS + 3, 3 * ROWS + 70],
    ]
    ranges = np.concatenate([ends, edges]).astype(np.int64)
    starts, stops = np.ascontiguousarray(ranges[:, 0]), np.ascontiguousarray(ranges[:, 1])
    assert (
        kernels.count_live(table, starts, stops).tolist() == plain.count_live(blocks, starts, stops).tolist()
    )
    for start, stop in ranges[-9:].tolist():
        assert kernels.list_live(table, start, stop).tolist() == plain.list_live(blocks, start, stop).tolist()
    rows = rng.integers(0, end, 200).astype(np.uint32)
    assert kernels.are_live(table, rows).tolist() == plain.are_live(blocks, rows).tolist()


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), shift=st.integers(0, 7))
def test_setting_and_clearing_touch_only_what_is_named(seed: int, shift: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [at_any_alignment(4080, shift) for _ in range(2)]
    table = addresses(blocks)
    expected = np.zeros(2 * ROWS, np.uint8)
    for _ in range(4):
        start, stop = sorted(rng.integers(0, 2 * ROWS + 1, 2).tolist())
        kernels.set_live(table, start, stop)
        expected[start:stop] = 1
        gone = rng.integers(0, 2 * ROWS, 50).astype(np.uint32)
        kernels.clear_live(table, gone)
        expected[gone] = 0
        assert (plain.live_bits(blocks) == expected).all()


def test_rows_beyond_the_bitmap_are_an_error() -> None:
    table = addresses(live_blocks(np.random.default_rng(1), 0))
    end = len(table) * ROWS
    with pytest.raises(IndexError, match=f"row {end} is beyond"):
        kernels.are_live(table, np.array([3, end], np.uint32))
    with pytest.raises(IndexError):
        kernels.clear_live(table, np.array([end], np.uint32))
    with pytest.raises(IndexError):
        kernels.list_live(table, 0, end + 1)
    with pytest.raises(IndexError):
        kernels.count_live(table, np.array([0], np.int64), np.array([end + 1], np.int64))
    with pytest.raises(ValueError, match="not one"):
        kernels.count_live(table, np.array([5], np.int64), np.array([4], np.int64))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), shift=st.integers(0, 7), width=st.sampled_from([1, 7, 16, 128]))
def test_signature_blocks_give_back_what_was_put(seed: int, shift: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    rows_per_block, header = 13, 64
    blocks: list[np.ndarray | None] = [at_any_alignment(header + 13 * width, shift) for _ in range(3)]
    signatures = rng.integers(0, 256, (39, width), dtype=np.uint8)
    states = rng.integers(0, 4, 39, dtype=np.uint8)
    for b, block in enumerate(blocks):
        assert block is not None
        cut = int(rng.integers(0, 14))
        for start, stop in ((0, cut), (cut, 13)):
            part = slice(b * 13 + start, b * 13 + stop)
            kernels.put_signatures(block, header, width, start, signatures[part], states[part])
    rows = rng.integers(0, 45, 60).astype(np.uint32)
    rows = rows[rows < 39]
    found, found_states = kernels.gather_signatures(addresses(blocks), rows_per_block, header, width, rows)
    assert (found == signatures[rows]).all()
    assert (found_states == states[rows]).all()
    blocks[1] = None
    rows = np.arange(45, dtype=np.uint32)
    found, found_states = kernels.gather_signatures(addresses(blocks), rows_per_block, header, width, rows)
    twin, twin_states = plain.gather_signatures(blocks, rows_per_block, header, width, rows)
    assert (found == twin).all()
    assert (found_states == twin_states).all()
    assert kernels.missing_blocks(addresses(blocks), np.array([0, 13, 14, 38, 20], np.uint32), 13) == [1]
    assert kernels.missing_blocks(addresses(blocks), np.array([0, 38], np.uint32), 13) == []


def test_signature_rows_that_do_not_fit_are_refused() -> None:
    block = np.zeros(64 + 13 * 4, np.uint8)
    with pytest.raises(ValueError, match="do not fit"):
        kernels.put_signatures(block, 64, 4, 10, np.zeros((4, 4), np.uint8), np.zeros(4, np.uint8))
    with pytest.raises(ValueError, match="shape"):
        kernels.put_signatures(block, 64, 4, 0, np.zeros((4, 3), np.uint8), np.zeros(4, np.uint8))
    with pytest.raises(IndexError, match="row 13 is beyond"):
        kernels.missing_blocks(np.zeros(1, np.uint64), np.array([13], np.uint32), 13)
    assert not block.any()


@settings(deadline=None, max_examples=50)
@given(
    values=st.lists(st.binary(max_size=40), min_size=1, max_size=30), cuts=st.sets(st.integers(1, 29)),
    shift=st.integers(0, 7), lead=st.integers(0, 5), absent=st.integers(0, 30),
)  # fmt: skip
def test_heap_blocks_give_back_what_was_put(
    values: list[bytes], cuts: set[int], shift: int, lead: int, absent: int
) -> None:
    data = np.frombuffer(b"x" * lead + b"".join(values) + b"y", np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.int64) + lead
    edges = [0, *sorted(c for c in cuts if c < len(values)), len(values)]
    first_rows, blocks = [], []
    for i, (start, stop) in enumerate(itertools.pairwise(edges)):
        size = 32 + 4 * (stop - start + 1) + int(offsets[stop] - offsets[start])
        block = at_any_alignment(size, shift)
        block[8:16] = np.array([start + 100, stop - start], "<u4").view(np.uint8)
        kernels.fill_heap(block, data, offsets, start, stop)
        assert kernels.heap_is_sound(block)
        assert not kernels.heap_is_sound(block[:-1])
        first_rows.append(start + 100)
        blocks.append(None if i == absent else block)
    firsts, table = np.array(first_rows, np.uint32), addresses(blocks)
    rows = np.array([99, *range(100, 100 + len(values)), 100 + len(values), 2**32 - 1], np.uint32)
    found, ends, missing = kernels.heap_values(firsts, table, rows)
    twin, twin_missing = plain.heap_values(firsts, blocks, rows)
    assert (found.tobytes(), ends.tolist(), missing) == (
        twin.data.tobytes(),
        twin.offsets.tolist(),
        twin_missing,
    )
    for row in rows.tolist():
        single = np.array([row], np.uint32)
        one, gone = plain.heap_values(firsts, blocks, single)
        assert kernels.heap_value(firsts, table, row) == (None if gone else one.data.tobytes())
        index = int(np.searchsorted(firsts, row, side="right")) - 1
        expected = [index] if index >= 0 and blocks[index] is None else []
        assert kernels.missing_heap_blocks(firsts, table, single) == expected


def test_heap_values_with_bad_offsets_are_refused() -> None:
    data = np.zeros(10, np.uint8)
    for offsets in ([0, 5, 3], [0, 5, 11], [-1, 5, 10]):
        with pytest.raises(ValueError, match="offset"):
            kernels.fill_heap(np.zeros(54, np.uint8), data, np.array(offsets, np.int64), 0, 2)
    with pytest.raises(ValueError, match="exactly"):
        kernels.fill_heap(np.zeros(53, np.uint8), data, np.array([0, 5, 10], np.int64), 0, 2)
