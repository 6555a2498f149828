"""fastsim: every level equals the twin; order, repetition, pieces and unions change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.errors import FeatureError
from simindex.kernels import dispatch
from simindex.kernels.reference import fastsim as plain

SLOTS = [1, 2, 3, 7, 16, 31, 32, 33, 64, 100, 128, 256, 300, 512, 600, 1024, 1500, 4096]


def batch(rng: np.random.Generator, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    hashes = rng.integers(0, 2**64, sum(sizes), dtype=np.uint64)
    return hashes, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@given(
    st.sampled_from(SLOTS),
    st.lists(st.one_of(st.integers(0, 40), st.integers(0, 1200)), max_size=4),
    st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_every_level_equals_the_twin(k, sizes, seed):
    hashes, ptr = batch(np.random.default_rng(seed), sizes)
    expected = plain.fastsim(hashes, ptr, k)
    for level in dispatch.available():
        with dispatch.forced(level):
            assert np.array_equal(kernels.fastsim(hashes, ptr, k), expected), level
            for bits in (8, 16, 32):
                packed = kernels.fastsim_packed(hashes, ptr, k, bits)
                assert np.array_equal(packed, plain.fastsim_packed(hashes, ptr, k, bits)), (level, bits)


@given(st.sampled_from([1, 48, 128, 256]), st.integers(1, 3000), st.integers(0, 2**32), st.data())
@settings(max_examples=50, deadline=None)
def test_order_repetition_and_pieces_change_nothing(k, n, seed, data):
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, n, dtype=np.uint64)
    expected = kernels.fastsim(hashes, np.array([0, n]), k)[0]
    mangled = rng.permutation(np.concatenate([hashes, rng.choice(hashes, data.draw(st.integers(0, 500)))]))
    for level in dispatch.available():
        with dispatch.forced(level):
            assert np.array_equal(kernels.fastsim(mangled, np.array([0, len(mangled)]), k)[0], expected)
            slots = np.full(k, 0xFFFFFFFF, np.uint32)
            at = 0
            while at < len(mangled):
                step = int(rng.integers(1, 1 + rng.choice([1, 20, 400])))
                kernels.fastsim_update(slots, mangled[at : at + step])
                at += step
            assert np.array_equal(slots, expected), level


@pytest.mark.parametrize("k", [16, 100, 128, 1024])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 40), (60, 700), (2000, 5)])
def test_union_is_the_minimum(isa, k, sizes):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(0, 2**64, n, dtype=np.uint64) for n in sizes)
    whole = kernels.fastsim(np.concatenate([a, b]), np.array([0, len(a) + len(b)]), k)[0]
    parts = [kernels.fastsim(x, np.array([0, len(x)]), k)[0] for x in (a, b)]
    assert np.array_equal(whole, np.minimum(*parts))


def test_hashes_that_share_all_slots_still_give_a_full_signature(isa):
    """Hashes that are not uniform (all in slot 0 of round 0) only cost time."""
    hashes = np.arange(1, 5001, dtype=np.uint64)
    slots = kernels.fastsim(hashes, np.array([0, 5000]), 128)[0]
    assert (slots < 0xFFFFFFFF).all()
    assert np.array_equal(slots, plain.fastsim(hashes, np.array([0, 5000]), 128)[0])


def test_no_hashes_leave_slots_open_and_packed_bytes_zero(isa):
    hashes, ptr = np.zeros(0, np.uint64), np.zeros(3, np.int64)
    assert (kernels.fastsim(hashes, ptr, 8) == 0xFFFFFFFF).all()
    assert (kernels.fastsim_packed(hashes, ptr, 8, 16) == 0).all()
    assert kernels.fastsim_packed(hashes, np.zeros(1, np.int64), 8, 16).shape == (0, 16)


def test_read_only_arrays_are_read():
    hashes = np.arange(10, dtype=np.uint64)
    hashes.flags.writeable = False
    assert kernels.fastsim(hashes, np.array([0, 10]), 4).shape == (1, 4)


def test_wrong_arguments_are_named():
    h = np.arange(4, dtype=np.uint64)
    with pytest.raises(ValueError, match="k is 0: a fastsim signature has 1 to 4096"):
        kernels.fastsim(h, np.array([0, 4]), 0)
    with pytest.raises(ValueError, match="k is 4097"):
        kernels.fastsim(h, np.array([0, 4]), 4097)
    for ptr, message in (
        ([1, 4], r"ptr\[0\] is 1"),
        ([0, 3, 2, 4], r"ptr\[2\] is 2"),
        ([0, 3], r"ptr\[1\] is 3"),
    ):
        with pytest.raises(FeatureError, match=message):
            kernels.fastsim(h, np.array(ptr), 4)
    with pytest.raises(FeatureError, match="ptr is empty"):
        kernels.fastsim(h, np.zeros(0, np.int64), 4)
    with pytest.raises(ValueError, match="bits is 12"):
        kernels.fastsim_packed(h, np.array([0, 4]), 4, 12)
