"""Bands: which are legal, what their keys and postings are."""

import numpy as np
import pytest

from simindex import lsh, sketch
from simindex.errors import FeatureError, SchemaError
from simindex.types import ABSENT, EMPTY, PRESENT, SHORTENED, Features


def family(k: int = 128, slots: int = 8):
    return sketch.family("fastsim/1", {"k": k, "slots": slots})


@pytest.mark.parametrize(
    ("k", "b", "r", "unused"),
    [(128, 16, 8, 0), (128, 9, 13, 11), (128, 128, 1, 0), (128, 1, 128, 0), (300, 300, 1, 0)],
)
def test_legal_bands_state_what_they_leave_unused(k, b, r, unused):
    """Case P2: others drop slots in silence, fail above 256 bands or demand that bands divide k."""
    bands = lsh.Bands(b, r, family(k))
    assert bands.unused == unused
    assert isinstance(bands, lsh.Scheme)
    signatures = np.random.default_rng(1).integers(0, 256, (50, k), dtype=np.uint8)
    keys = bands.keys(signatures)
    assert keys.shape == (50, b)
    changed = signatures.copy()
    changed[:, b * r :] ^= 1
    assert np.array_equal(bands.keys(changed), keys)
    for slot in (0, b * r - 1):
        changed = signatures.copy()
        changed[:, slot] ^= 1
        differ = bands.keys(changed) != keys
        assert differ[:, slot // r].all()
        assert differ.sum() == 50


@pytest.mark.parametrize(
    ("b", "r", "message"),
    [
        (
            16,
            9,
            r"16 bands of 9 rows need 144 slots, the signature has k = 128: at most 14 bands of 9",
        ),
        (0, 5, "bands is 0: at least 1"),
        (5, 0, "rows is 0: at least 1"),
        (-1, 5, "bands is -1"),
        (4.0, 5, "bands is 4.0, not an integer"),
        (True, 5, "bands is True, not an integer"),
    ],
)
def test_illegal_bands_explain(b, r, message):
    with pytest.raises(SchemaError, match=message):
        lsh.Bands(b, r, family())


def test_equal_slots_in_different_bands_give_different_keys():
    keys = lsh.Bands(16, 8, family()).keys(np.zeros((1, 128), np.uint8))[0]
    assert len(set(keys.tolist())) == 16
    assert len(set((keys >> np.uint64(32)).tolist())) == 16


def test_only_present_rows_get_postings():
    states = np.array([PRESENT, EMPTY, ABSENT, SHORTENED], np.uint8)
    signatures = np.random.default_rng(2).integers(0, 256, (4, 128), dtype=np.uint8)
    bands = lsh.Bands(4, 8, family())
    postings = bands.postings(signatures, states, first_row=100)
    assert postings.shape == (4, 2)
    keys = bands.keys(signatures)
    for j in range(4):
        expected = sorted((int(keys[i, j]) >> 32) << 32 | (100 + i) for i in (0, 3))
        assert postings[j].tolist() == expected


@pytest.mark.parametrize("slots", [8, 16, 32])
def test_items_meet_in_exactly_the_bands_in_which_all_slots_agree(slots):
    made = family(64, slots)
    bands = lsh.Bands(10, 6, made)
    rng = np.random.default_rng(3)
    common, own = (
        rng.integers(0, 2**64, 80, dtype=np.uint64),
        rng.integers(0, 2**64, (2, 10), dtype=np.uint64),
    )
    hashes = np.concatenate([common, own[0], common, own[1]])
    signatures = made.sign(Features(hashes, np.array([0, 90, 180]), np.full(2, PRESENT, np.uint8)))
    same = (signatures[0] == signatures[1]).reshape(64, -1).all(axis=1)[:60].reshape(10, 6).all(axis=1)
    keys = bands.keys(signatures)
    assert np.array_equal(keys[0] == keys[1], same)
    assert 0 < same.sum() < 10


def test_signatures_of_another_width_are_refused():
    with pytest.raises(FeatureError, match=r"shape \(3, 64\): .* has 128 bytes a row"):
        lsh.Bands(16, 8, family()).keys(np.zeros((3, 64), np.uint8))
