"""The text kernel against its plain twin and against Python's own text methods."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.errors import FeatureError
from simindex.kernels.reference import text as twin
from simindex.types import SHORTENED

SAME_UNICODE = unicodedata.unidata_version == kernels.UNICODE_VERSION
same_unicode = pytest.mark.skipif(not SAME_UNICODE, reason="this Python has another Unicode version")
MODES = [(form, fold) for form in (0, 1, 2) for fold in (False, True)]


def pack(items: list[bytes]):
    data = np.frombuffer(b"".join(items), np.uint8)
    return data, np.cumsum([0, *map(len, items)]).astype(np.int64)


def shingles(text: str | bytes, kind: int = 0, n: int = 3, normalize: int = 1, casefold: bool = True):
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    hashes, _, state = kernels.shingle_texts(*pack([raw]), kind, n, normalize, casefold)
    return hashes.tolist(), int(state[0])


AWKWARD = st.sampled_from(
    list(
        "aZ_9 \t\n-.é É e\u0301\u0327\u0345ßẞİıŉΐΰᾳᾼΑΆάσςΣ\u0308\u0338<>кЙй"
        "\u0306\u00ad\u200b\u200c\u200d\u2060\ufeff"
        "東京、々〇かがカ\u3099ﾞｶー๑กำิ\u0e49ກໍາကာခ္កាំ្១"
        "\uac00\uac01\u1100\u1161\u11a8\u1160\u3164\uffa0ﷺﬁＡ１²½㌀"
        "\u00a0\u2028\x1c\x85\u09c7\u09be\U0001d15e\U00020000\U000e0041\u034f"
        "\u0f71\u0f72\u0f80\u1e9b\ud835\ud83d\ude00"
    )
)
TEXTS = st.text(st.one_of(AWKWARD, AWKWARD, st.characters()), max_size=40)
BYTES = st.one_of(
    TEXTS.map(lambda t: t.encode("utf-8", "surrogatepass")),
    st.lists(
        st.one_of(TEXTS.map(lambda t: t.encode("utf-8", "surrogatepass")), st.binary(max_size=4)), max_size=6
    ).map(b"".join),
)


def is_comparable(raw: bytes) -> bool:
    """Whether this Python's tables must agree with the package's: always, or on characters of old standing
    only."""
    if SAME_UNICODE:
        return True
    points = twin.decode(raw)
    return all(c >= 0x110000 or unicodedata.ucd_3_2_0.category(chr(c)) != "Cn" for c in points)


@given(BYTES, st.integers(0, 1), st.sampled_from([1, 2, 3, 4, 5, 7, 64]), st.sampled_from(MODES))
@settings(max_examples=600, deadline=None)
def test_kernel_equals_its_twin(raw, kind, n, mode) -> None:
    if is_comparable(raw):
        want = twin.shingle_text(raw, kind, n, *mode)
        for level in kernels.dispatch.available():
            with kernels.dispatch.forced(level):
                assert shingles(raw, kind, n, *mode) == want


@given(st.lists(BYTES, max_size=5), st.integers(0, 1), st.integers(1, 6), st.sampled_from(MODES), st.data())
@settings(max_examples=250, deadline=None)
def test_any_division_of_a_stream_gives_the_hashes_of_the_whole(parts, kind, n, mode, data) -> None:
    raw = b"".join(parts)
    stream = kernels.TextStream(kind, n, *mode)
    found = []
    at = 0
    while at < len(raw):
        step = data.draw(st.integers(1, 9))
        found += stream.feed(raw[at : at + step]).tolist()
        at += step
    rest, state = stream.finish()
    assert (found + rest.tolist(), state) == shingles(raw, kind, n, *mode)


@same_unicode
@pytest.mark.parametrize("mode", MODES)
def test_every_code_point_alone_and_beside_others(mode) -> None:
    texts = []
    for c in range(0x110000):
        if unicodedata.category(chr(c)) in ("Cn", "Co", "Lo") and c % 97:
            continue
        texts.append(f"a{chr(c)}\u0301\u0323b".encode("utf-8", "surrogatepass"))
    for kind in (0, 1):
        got = kernels.shingle_texts(*pack(texts), kind, 1, *mode)
        want = [twin.tokens(t, kind, *mode) for t in texts]
        flat = [twin.mix64(h) for row in want for h in row]
        assert got[1].tolist() == np.cumsum([0, *map(len, want)]).tolist()
        assert got[0].tolist() == flat


@given(
    st.lists(BYTES, min_size=1, max_size=4), st.integers(0, 1), st.sampled_from(MODES), st.integers(50, 900)
)
@settings(max_examples=60, deadline=None)
def test_texts_of_several_pieces_equal_the_twin_at_every_level(parts, kind, mode, times) -> None:
    raw = b" plain Words ".join(parts) * times
    if is_comparable(raw) and len(raw) < 60_000:
        want = twin.shingle_text(raw, kind, 3, *mode)
        for level in kernels.dispatch.available():
            with kernels.dispatch.forced(level):
                assert shingles(raw, kind, 3, *mode) == want


@given(st.lists(BYTES, max_size=6), st.integers(0, 1), st.integers(1, 5), st.sampled_from(MODES))
@settings(max_examples=100, deadline=None)
def test_a_batch_is_its_texts_one_by_one(texts, kind, n, mode) -> None:
    hashes, ptr, state = kernels.shingle_texts(*pack(texts), kind, n, *mode)
    for i, text in enumerate(texts):
        assert (hashes[ptr[i] : ptr[i + 1]].tolist(), int(state[i])) == shingles(text, kind, n, *mode)


def test_the_hash_equals_its_twin_at_every_length(isa) -> None:
    items = [bytes(range(7, 7 + n)) for n in range(80)]
    for seed in (0, 1, 2**64 - 1):
        assert kernels.hash_bytes(*pack(items), seed).tolist() == [twin.hash64(x, seed) for x in items]
    values = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    assert kernels.mix64(values).tolist() == [twin.mix64(int(v)) for v in values]


@pytest.mark.parametrize("length", [4, 8, 9, 16, 17, 40])
def test_every_input_bit_reaches_every_output_bit(length) -> None:
    # Avalanche: each of 64 output bits flips in half of 2,000 trials (seed 5), within 6 standard errors
    # (0.067).
    rng = np.random.default_rng(5)
    base = rng.integers(0, 256, (2000, length), np.uint8)
    offsets = np.arange(2001, dtype=np.int64) * length
    before = kernels.hash_bytes(base.ravel(), offsets)
    for bit in range(0, 8 * length, 3):
        flipped = base.copy()
        flipped[:, bit // 8] ^= 1 << bit % 8
        changed = kernels.hash_bytes(flipped.ravel(), offsets) ^ before
        share = np.unpackbits(changed.view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
        assert np.abs(share - 0.5).max() < 6 * 0.5 / 2000**0.5


def test_no_collisions_and_even_buckets_among_a_million_short_words() -> None:
    # 10^6 distinct words: a 64-bit collision has chance 3e-8; top and low 10 bits by chi-squared, 1,023
    # degrees of
    # freedom, alpha 1e-6 (bound 1,250).
    words = [b"w%07d" % i for i in range(1_000_000)]
    for hashes in (kernels.hash_bytes(*pack(words)), shingles_of(words)):
        assert len(np.unique(hashes)) == len(hashes)
        for part in (hashes >> np.uint64(54), hashes & np.uint64(1023)):
            counts = np.bincount(part.astype(np.int64), minlength=1024)
            expected = len(hashes) / 1024
            assert ((counts - expected) ** 2 / expected).sum() < 1250


def shingles_of(words: list[bytes]) -> np.ndarray:
    return kernels.shingle_texts(*pack([b" ".join(words)]), 0, 3, 1, True)[0]


def test_shingles_know_their_order() -> None:
    assert len(set(shingles("a b a a b b a", n=2)[0])) == 4
    assert shingles("one two three")[0] != shingles("three two one")[0]
    assert len({h for c in "abcd" for n in range(1, 65) for h in shingles(c * 64, 1, n)[0]}) == 4 * 64


def test_a_hundred_megabytes_stay_in_bounded_memory() -> None:
    # One token of 20 MB and 20 MB of marks: only the shingle itself comes out.
    for raw in (b"a" * 20_000_000, b"e" + b"\xcc\x81" * 10_000_000):
        hashes, state = shingles(raw)
        assert (len(hashes), state) == (1, SHORTENED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 3, 1, True), "kind is 2"),
        ((0, 0, 1, True), "n is 0"),
        ((0, 65, 1, True), "n is 65"),
        ((0, 3, 3, True), "normalize is 3"),
    ],
)
def test_wrong_settings_are_named(arguments, message) -> None:
    with pytest.raises(FeatureError, match=message):
        kernels.shingle_texts(*pack([b"x"]), *arguments)


@pytest.mark.parametrize("offsets", [[], [0, 9], [2, 1], [-1, 2]])
def test_wrong_offsets_are_named(offsets) -> None:
    with pytest.raises(FeatureError, match="offsets"):
        kernels.shingle_texts(np.zeros(3, np.uint8), np.array(offsets, np.int64), 0, 3, 1, True)
    with pytest.raises(FeatureError, match="offsets"):
        kernels.hash_bytes(np.zeros(3, np.uint8), np.array(offsets, np.int64))


def test_golden_hashes(isa, golden) -> None:
    import importlib.util
    from pathlib import Path

    path = Path(__file__).parents[2] / "tools" / "golden" / "text.py"
    spec = importlib.util.spec_from_file_location("golden_text", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    raw = golden("text_1.bin")
    found = [kernels.hash_bytes(*pack(module.STRINGS), seed).astype("<u8").tobytes() for seed in (0, 1)]
    for kind, n, *mode in module.SETTINGS:
        found.append(kernels.shingle_texts(*pack(module.TEXTS), kind, n, *mode)[0].astype("<u8").tobytes())
    assert b"".join(found) == raw
