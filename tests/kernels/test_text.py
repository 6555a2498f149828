"""The text kernel against its plain twin and against Python's own text methods."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels.reference import text as twin

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
        "aZ_9 \t\n-.é É e\u0301\u0327\u0345ßẞİıŉΐΰᾳᾼΑΆάσςΣ\u0308\u0338<>кЙй\u0306\u00ad\u200b\u200c\u200d\u2060\ufeff"
        "東京、々〇かがカ\u3099ﾞｶー๑กำิ\u0e49ກໍາကာခ္កាំ្១\uac00\uac01\u1100\u1161\u11a8\u1160\u3164\uffa0ﷺﬁＡ１²½㌀"
        "\u00a0\u2028\x1c\x85\u09c7\u09be\U0001d15e\U00020000\U000e0041\u034f\u0f71\u0f72\u0f80\u1e9b\ud835\ud83d\ude00"
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
    """Whether this Python's tables must agree with the package's: always, or on characters of old standing only."""
    if SAME_UNICODE:
        return True
    points = twin.decode(raw)
    return all(c >= 0x110000 or unicodedata.ucd_3_2_0.category(chr(c)) != "Cn" for c in points)


@given(BYTES, st.integers(0, 1), st.sampled_from([1, 2, 3, 4, 5, 7, 64]), st.sampled_from(MODES))
@settings(max_examples=600, deadline=None)
def test_kernel_equals_its_twin(raw, kind, n, mode) -> None:
    if is_comparable(raw):
        assert shingles(raw, kind, n, *mode) == twin.shingle_text(raw, kind, n, *mode)


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
