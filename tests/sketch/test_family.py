"""The registry, identities and parameters of families; ready signatures; states."""

import json
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import sketch
from simindex.errors import FeatureError, QueryError, SchemaError
from simindex.types import ABSENT, EMPTY, PRESENT, SHORTENED, Features

FAMILIES = [
    ("fastsim/1", {}),
    ("fastsim/1", {"k": 100, "slots": 16}),
    ("fastsim/1", {"k": 64, "slots": 32}),
    ("minhash/1", {}),
    ("minhash/1", {"k": 33, "slots": 16}),
    ("minhash/1", {"scheme": "affine32"}),
    ("minhash/1", {"scheme": "affine64", "k": 64, "seed": 9}),
    ("minhash/1", {"scheme": "legacy", "slots": 8}),
]


def features(sizes: list[int], seed: int = 1, bits: int = 32) -> Features:
    hashes = np.random.default_rng(seed).integers(0, 2**bits, sum(sizes), dtype=np.uint64)
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Features(hashes, ptr, np.where(np.diff(ptr) > 0, PRESENT, EMPTY).astype(np.uint8))


@pytest.mark.parametrize(("name", "params"), FAMILIES)
def test_identity_survives_json(name, params):
    family = sketch.family(name, params)
    stored = json.loads(json.dumps(sketch.identity(family)))
    again = sketch.family(stored["name"], stored["params"])
    assert again == family
    assert again.params == family.params
    assert isinstance(family, sketch.SlotFamily)
    assert (family.measure.name, family.measure.direction, family.scheme) == (
        "jaccard",
        "similarity",
        "bands",
    )
    some = features([5, 300, 0])
    assert np.array_equal(family.sign(some), again.sign(some))
    assert family.sign(some).shape == (3, family.width)
    assert family.width == family.k * family.slot_bits // 8


@pytest.mark.parametrize(("name", "params"), FAMILIES)
def test_rows_without_features_are_zero_and_others_are_not(name, params):
    family = sketch.family(name, params)
    some = Features(
        np.array([5, 6, 7], np.uint64),
        np.array([0, 0, 2, 2, 3]),
        np.array([ABSENT, PRESENT, EMPTY, SHORTENED], np.uint8),
    )
    signatures = family.sign(some)
    assert not signatures[[0, 2]].any()
    assert signatures[1].any()
    assert signatures[3].any()


@pytest.mark.parametrize(("name", "params"), FAMILIES)
def test_batches_and_order_of_items_change_nothing(name, params):
    family = sketch.family(name, params)
    sizes = [3, 0, 200, 1, 17]
    whole = features(sizes)
    signatures = family.sign(whole)
    for i in range(len(sizes)):
        own = whole.hashes[whole.ptr[i] : whole.ptr[i + 1]]
        one = Features(own[::-1].copy(), np.array([0, len(own)]), whole.state[i : i + 1])
        assert np.array_equal(family.sign(one)[0], signatures[i])


def test_unknown_names_give_the_nearest():
    with pytest.raises(SchemaError, match=r"unknown family 'fastsim' \(did you mean 'fastsim/1'\?\)"):
        sketch.family("fastsim")
    with pytest.raises(SchemaError, match=r"no parameter 'slot' \(did you mean 'slots'\?\)"):
        sketch.family("fastsim/1", {"slot": 8})
    with pytest.raises(SchemaError, match=r"'afine32' \(did you mean 'affine32'\?\)"):
        sketch.family("minhash/1", {"scheme": "afine32"})


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("fastsim/1", {"k": 0}, "k is 0: it is 1 to 4096"),
        ("fastsim/1", {"k": 4097}, "k is 4097"),
        ("fastsim/1", {"k": True}, "k is True, not an integer"),
        ("fastsim/1", {"k": 128.0}, "k is 128.0, not an integer"),
        ("fastsim/1", {"k": "128"}, "k is '128', not an integer"),
        ("fastsim/1", {"slots": 12}, "slots is 12: it is one of 8, 16, 32"),
        ("fastsim/1", {"slots": True}, "slots is True"),
        ("minhash/1", {"slots": 64}, "slots is 64"),
        ("minhash/1", {"seed": 1}, "the own scheme has no seed"),
        ("minhash/1", {"scheme": "affine64", "k": 4096}, "4096 slots of 64 bits are 32768 bytes"),
        ("minhash/1", {"scheme": "legacy", "seed": -1}, "seed is -1"),
    ],
)
def test_parameters_out_of_range_are_named(name, params, message):
    with pytest.raises(SchemaError, match=message):
        sketch.family(name, params)


def test_a_second_registration_is_refused():
    with pytest.raises(SchemaError, match="'fastsim/1' is registered already"):

        @sketch.register("fastsim/1")
        class Impostor:
            name: ClassVar[str] = "fastsim/1"


def test_ready_signatures_are_checked():
    family = sketch.family("fastsim/1", {"k": 8, "slots": 16})
    words = np.arange(24, dtype=np.uint16).reshape(3, 8)
    accepted = family.accept(words)
    assert accepted.shape == (3, 16)
    assert np.array_equal(accepted.view("<u2"), words)
    assert np.array_equal(family.accept(words.astype(">u2")), accepted)
    assert np.array_equal(family.accept(accepted), accepted)
    for wrong in (words.astype(np.uint32), words[:, :7], accepted[:, :15], words.astype(np.int16), words[0]):
        with pytest.raises(FeatureError, match=r"uint8 with 16 or uint16 with 8|takes items by slots"):
            family.accept(wrong)


def test_states_that_contradict_features_are_refused():
    family = sketch.family("fastsim/1")
    hashes = np.arange(3, dtype=np.uint64)
    for state in ([PRESENT, PRESENT], [EMPTY, EMPTY]):
        with pytest.raises(FeatureError, match=r"item . has state . and . features"):
            family.sign(Features(hashes, np.array([0, 3, 3]), np.array(state, np.uint8)))
    with pytest.raises(FeatureError, match="1 states for 2 items"):
        family.sign(Features(hashes, np.array([0, 3, 3]), np.array([PRESENT], np.uint8)))


@given(st.integers(1, 2000), st.integers(0, 2**32), st.sampled_from([8, 16, 32]))
@settings(max_examples=40, deadline=None)
def test_a_stream_signs_as_one_call(n, seed, bits):
    family = sketch.family("fastsim/1", {"k": 64, "slots": bits})
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, n, dtype=np.uint64)
    stream, other = family.stream(), family.stream()
    cut = np.sort(rng.integers(0, n + 1, 3))
    for part in np.split(rng.permutation(hashes), cut):
        (stream if rng.random() < 0.5 else other).update(part)
    stream.merge(other)
    whole = family.sign(Features(hashes, np.array([0, n]), np.array([PRESENT], np.uint8)))[0]
    assert np.array_equal(stream.signature(), whole)


def test_an_untouched_stream_gives_zero_bytes():
    stream = sketch.family("fastsim/1", {"k": 16}).stream()
    stream.update(np.zeros(0, np.uint64))
    assert not stream.signature().any()


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.8", True, None])
def test_thresholds_outside_0_to_1_are_refused(value):
    family = sketch.family("fastsim/1")
    with pytest.raises(QueryError, match="threshold is"):
        family.min_equal(value)
