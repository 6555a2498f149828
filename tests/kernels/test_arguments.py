"""Kernels refuse sizes that do not fit together; only addresses are trusted."""

import numpy as np
import pytest

from simindex import kernels

HUGE = 2**63 - 1


@pytest.mark.parametrize(
    ("bands", "rows"), [(16, HUGE), (HUGE, 2), (2**62, 4), (2**32, 2**32), (129, 1), (0, 1), (1, 0)]
)
def test_bands_that_do_not_fit_a_signature(bands: int, rows: int) -> None:
    signatures, states = np.zeros((3, 128), np.uint8), np.full(3, 2, np.uint8)
    with pytest.raises(ValueError, match="bands"):
        kernels.band_keys(signatures, bands, rows, 1)
    with pytest.raises(ValueError, match="bands"):
        kernels.band_postings(signatures, states, bands, rows, 1)


@pytest.mark.parametrize(
    ("at", "count"), [(0, HUGE), (2**64 - 8, 1), (0, 2**61), (800, 1), (0, 100), (2**63, 2**63)]
)
def test_posting_blocks_that_do_not_fit(at: int, count: int) -> None:
    data = np.zeros(800, np.uint8)
    with pytest.raises(ValueError, match="does not fit"):
        kernels.fill_directory(data, at, count)
    assert not kernels.block_is_sound(data, at, count)


def test_postings_out_of_order_stay_inside_their_block() -> None:
    rng = np.random.default_rng(1)
    for count in (2, 50, 249, 4000):
        size = kernels.block_bytes(count)
        data = np.full(size + 4096, 0xA5, np.uint8)
        data[: 8 * count] = rng.integers(0, 2**63, count, dtype=np.uint64).view(np.uint8)
        kernels.fill_directory(data, 0, count)
        assert (data[size:] == 0xA5).all()


def test_blocks_of_no_rows() -> None:
    rows, addresses = np.array([5], np.uint32), np.array([0], np.uint64)
    with pytest.raises(ValueError, match="at least 1 row"):
        kernels.missing_blocks(addresses, rows, 0)
    with pytest.raises(ValueError, match="at least 1 row"):
        kernels.gather_signatures(addresses, 0, 48, 128, rows)


@pytest.mark.parametrize("bad", [[1, 1, 2, 3], [0, 9, 2, 3], [0, 1, 2**32 - 1, 3], [0, 0, 3, 3]])
def test_parents_above_their_rows(bad: list[int]) -> None:
    parent = np.array(bad, np.uint32)
    row = int(np.flatnonzero(parent > np.arange(4))[0])
    with pytest.raises(ValueError, match=rf"parent\[{row}\]"):
        kernels.flatten_components(parent.copy())
    with pytest.raises(ValueError, match="above its row"):
        kernels.join_links(parent.copy(), np.array([row << 32 | 3], np.uint64))
