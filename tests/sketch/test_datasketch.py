"""minhash/1 agrees with the real datasketch package to the bit, in all its schemes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import sketch
from simindex.errors import FeatureError
from simindex.types import EMPTY, PRESENT

datasketch = pytest.importorskip("datasketch")
SCHEMES = ("affine32", "affine64", "legacy")


def made(tokens: list[bytes], k: int, seed: int, scheme: str):
    one = datasketch.MinHash(num_perm=k, seed=seed, scheme=scheme)
    one.update_batch(tokens)
    return one


@given(
    st.lists(st.lists(st.binary(max_size=12), max_size=40), min_size=1, max_size=4),
    st.sampled_from([1, 7, 64, 128]),
    st.sampled_from([0, 1, 42, 2**32 - 1]),
    st.sampled_from(SCHEMES),
)
@settings(max_examples=60, deadline=None)
def test_signatures_are_datasketchs_hashvalues(items, k, seed, scheme):
    theirs = [made(tokens, k, seed, scheme) for tokens in items]
    family = sketch.family("minhash/1", {"k": k, "scheme": scheme, "seed": seed})
    mine = family.sign(sketch.datasketch.features(items, scheme))
    dtype = "<u8" if scheme == "affine64" else "<u4"
    for row, tokens, one in zip(mine.view(dtype), items, theirs, strict=True):
        assert np.array_equal(row, one.hashvalues) if tokens else not row.any()
    imported, signatures, states = sketch.from_datasketch(theirs)
    assert imported == family
    assert np.array_equal(signatures, mine)
    assert list(states) == [PRESENT if tokens else EMPTY for tokens in items]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_narrow_slots_made_from_objects_equal_narrow_slots_made_from_tokens(scheme):
    items = [[b"%d" % i for i in range(n)] for n in (3, 100, 1000)]
    objects = [made(tokens, 96, 3, scheme) for tokens in items]
    for bits in (8, 16):
        family, signatures, _ = sketch.from_datasketch(objects, slots=bits)
        assert family.width == 96 * bits // 8
        assert np.array_equal(signatures, family.sign(sketch.datasketch.features(items, scheme)))


def test_lean_objects_and_arrays_give_the_same():
    objects = [made([b"a", b"b", b"c%d" % i], 32, 1, "affine32") for i in range(5)]
    family, signatures, states = sketch.from_datasketch(objects)
    lean = [datasketch.LeanMinHash(one) for one in objects]
    array = np.stack([one.hashvalues for one in objects])
    for other in (
        sketch.from_datasketch(lean),
        sketch.from_datasketch(array, scheme="affine32", seed=1),
        sketch.from_datasketch(array.astype(np.uint64), scheme="affine32", seed=1),
    ):
        assert other[0] == family
        assert np.array_equal(other[1], signatures)
        assert np.array_equal(other[2], states)
    assert np.array_equal(family.accept(array), signatures)


def test_estimates_are_datasketchs():
    a = made([b"%d" % i for i in range(300)], 128, 1, "affine32")
    b = made([b"%d" % i for i in range(100, 400)], 128, 1, "affine32")
    family, signatures, _ = sketch.from_datasketch([a, b])
    equal = int((signatures[0].view("<u4") == signatures[1].view("<u4")).sum())
    assert family.estimate(equal) == pytest.approx(a.jaccard(b), abs=1e-9)


def test_text_tokens_are_utf8():
    a = sketch.datasketch.features([["Zürich"]], "affine32")
    b = sketch.datasketch.features([["Zürich".encode()]], "affine32")
    assert a.hashes[0] == b.hashes[0]


def test_what_does_not_fit_is_named():
    a, b = made([b"x"], 16, 1, "affine32"), made([b"x"], 16, 2, "affine32")
    with pytest.raises(
        FeatureError, match=r"object 1 has scheme 'affine32', seed 2 .* 1 and 16 were expected"
    ):
        sketch.from_datasketch([a, b])
    with pytest.raises(FeatureError, match=r"object 1 has scheme 'legacy'"):
        sketch.from_datasketch([a, made([b"x"], 16, 1, "legacy")])
    with pytest.raises(FeatureError, match=r"object 1 .* 8 values"):
        sketch.from_datasketch([a, made([b"x"], 8, 1, "affine32")])
    with pytest.raises(FeatureError, match="object 0 is a str"):
        sketch.from_datasketch(["x"])
    with pytest.raises(FeatureError, match="does not tell its scheme"):
        sketch.from_datasketch(np.zeros((1, 4), np.uint32))
    with pytest.raises(FeatureError, match="no scheme 'affine'"):
        sketch.from_datasketch(np.zeros((1, 4), np.uint32), scheme="affine", seed=1)
    with pytest.raises(FeatureError, match="item 0 has the value 4294967296 in slot 2"):
        sketch.from_datasketch(np.array([[1, 2, 2**32]], np.uint64), scheme="legacy", seed=1)
    with pytest.raises(FeatureError, match="hashvalues are float64"):
        sketch.from_datasketch(np.zeros((1, 4)), scheme="legacy", seed=1)
    with pytest.raises(FeatureError, match="no MinHash objects"):
        sketch.from_datasketch([])
    with pytest.raises(FeatureError, match="token of type int"):
        sketch.datasketch.features([[5]], "legacy")
    family = sketch.family("minhash/1", {"scheme": "affine32"})
    wide = sketch.datasketch.features([[b"a"], [b"b"]], "affine64")
    with pytest.raises(FeatureError, match=r"item . has the hash"):
        family.sign(wide)
