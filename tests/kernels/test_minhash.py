"""Classic minima: every level and scheme equals the twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels import dispatch
from simindex.kernels.reference import minhash as plain

WIDTHS = {
    "simindex": (8, 16, 32),
    "affine32": (8, 16, 32),
    "affine64": (8, 16, 32, 64),
    "legacy": (8, 16, 32),
}


@given(
    st.sampled_from(sorted(kernels.MINHASH_SCHEMES)),
    st.integers(1, 70),
    st.lists(st.integers(0, 30), max_size=3),
    st.integers(0, 2**32),
)
@settings(max_examples=120, deadline=None)
def test_every_level_equals_the_twin(scheme, k, sizes, seed):
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, sum(sizes), dtype=np.uint64)
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    first, second = rng.integers(0, 2**64, (2, k), dtype=np.uint64)
    if scheme == "legacy":
        first, second = first >> np.uint64(3), second >> np.uint64(3)
    if scheme == "affine32":
        first, second = first & np.uint64(0xFFFFFFFF), second & np.uint64(0xFFFFFFFF)
    expected = plain.minhash(hashes, ptr, first, second, scheme)
    for level in dispatch.available():
        with dispatch.forced(level):
            assert np.array_equal(kernels.minhash(hashes, ptr, first, second, scheme), expected), level
            for bits in WIDTHS[scheme]:
                got = kernels.minhash_packed(hashes, ptr, first, second, scheme, bits)
                assert np.array_equal(got, plain.minhash_packed(hashes, ptr, first, second, scheme, bits))
    assert np.array_equal(kernels.pack_minima(expected, scheme, 8), plain.pack_minima(expected, scheme, 8))


def test_long_items_equal_the_minimum_of_their_parts(isa):
    """An item of several internal chunks; edge values of the modulus among the hashes."""
    rng = np.random.default_rng(3)
    hashes = rng.integers(0, 2**32, 2000, dtype=np.uint64)
    hashes[:4] = [0, 1, 2**32 - 1, 2**31]
    for scheme in kernels.MINHASH_SCHEMES:
        first, second = kernels.minhash_constants(40)
        first, second = (
            (first >> np.uint64(3), second >> np.uint64(3)) if scheme == "legacy" else (first, second)
        )
        whole = kernels.minhash(hashes, np.array([0, 2000]), first, second, scheme)[0]
        parts = kernels.minhash(hashes, np.array([0, 700, 701, 2000]), first, second, scheme)
        assert np.array_equal(whole, parts.min(axis=0))


def test_constants_are_the_twins():
    for got, expected in zip(kernels.minhash_constants(50), plain.minhash_constants(50), strict=True):
        assert np.array_equal(got, expected)


def test_wrong_arguments_are_named():
    h, ptr = np.arange(4, dtype=np.uint64), np.array([0, 4])
    first, second = kernels.minhash_constants(8)
    with pytest.raises(ValueError, match="unknown MinHash scheme 'affine'"):
        kernels.minhash(h, ptr, first, second, "affine")
    with pytest.raises(ValueError, match="8 first constants and 7 second"):
        kernels.minhash(h, ptr, first, second[:7])
    with pytest.raises(ValueError, match="bits is 64"):
        kernels.minhash_packed(h, ptr, first, second, "simindex", 64)
    with pytest.raises(ValueError, match="k is 5000"):
        kernels.minhash_constants(5000)
