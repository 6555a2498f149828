"""Texts to features: what users of other tools lost, and what is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import FeatureError, SchemaError
from simindex.features import TextSettings, text_features, text_features_packed
from simindex.kernels import pack_texts
from simindex.types import ABSENT, EMPTY, PRESENT, SHORTENED, Packed


def of(text, **options) -> set[int]:
    return set(text_features([text], TextSettings(**options)).hashes.tolist())


def test_blank_texts_are_empty_and_none_is_absent() -> None:
    found = text_features(["", " \n\t", "!!!", None, "blue canal boat"], TextSettings())
    assert found.state.tolist() == [EMPTY, EMPTY, EMPTY, ABSENT, PRESENT]
    assert found.ptr.tolist() == [0, 0, 0, 0, 0, 1]
    assert text_features(["", " \n\u00a0"], TextSettings("chars:5")).state.tolist() == [EMPTY, EMPTY]


def test_short_texts_are_one_shingle_of_their_whole_content() -> None:
    texts = ["cat", "dog", "cat", "one two three four", "1 2 3 4 5", "1 2 3 4 5 6"]
    found = text_features(texts, TextSettings("words:5"))
    assert found.state.tolist() == [SHORTENED] * 4 + [PRESENT] * 2
    assert np.diff(found.ptr).tolist() == [1, 1, 1, 1, 1, 2]
    assert found.hashes[0] == found.hashes[2]
    assert len(set(found.hashes.tolist())) == 5  # "1 2 3 4 5" occurs twice


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_equivalent_spellings_are_one(form) -> None:
    assert of("Cafe\u0301 Zu\u0308rich x", normalize=form) == of("Caf\u00e9 Z\u00fcrich x", normalize=form)
    assert of("STRASSE", normalize=form) == of("straße", normalize=form)
    assert of("Zei\u00adtung", normalize=form) == of("Zeitung", normalize=form)
    assert of("a\u200bb", normalize=form, shingle="words:1") == of("a b", normalize=form, shingle="words:1")
    same = of("ＡＢＣ１２３", normalize=form) == of("ABC123", normalize=form)
    assert same == (form == "nfkc")


def test_without_normalisation_spellings_differ() -> None:
    assert of("Cafe\u0301", normalize="none") != of("Caf\u00e9", normalize="none")
    assert of("Zei\u00adtung", normalize="none") != of("Zeitung", normalize="none")
    assert of("STRASSE", casefold=False) != of("strasse", casefold=False)


def test_scripts_without_spaces_give_a_token_a_letter() -> None:
    for text, tokens in [
        ("東京abc都", 4),
        ("สวัสดี", 4),
        ("か\u3099き", 2),
        ("привет мир", 2),
        ("مرحبا", 1),
        ("१२३ हिन्दी", 2),
    ]:
        assert len(text_features([text], TextSettings("words:1")).hashes) == tokens, text


def test_bad_texts_are_stored_like_others() -> None:
    bad = ["abc \ud835 def ghi", b"abc \xff\xfe def ghi", b"nul \x00 byte \x00 x"]
    found = text_features(
        [*["fine text number"] * 500, *bad, *bad, *["fine text number"] * 494], TextSettings()
    )
    rows = [found.hashes[a:b].tolist() for a, b in zip(found.ptr[:-1], found.ptr[1:], strict=True)]
    assert rows[500:503] == rows[503:506]
    assert set(found.state.tolist()) == {PRESENT}
    assert of("abc \ud835 def", shingle="chars:5") != of("abc \ud836 def", shingle="chars:5")
    assert of(b"abc \xff def", shingle="chars:5") != of(b"abc \xfe def", shingle="chars:5")


@given(
    st.lists(st.one_of(st.none(), st.text(), st.binary()), max_size=8),
    st.sampled_from(["words:2", "chars:3"]),
)
@settings(max_examples=100, deadline=None)
def test_str_bytes_and_packed_texts_agree(texts, shingle) -> None:
    chosen = TextSettings(shingle)
    raw = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else t for t in texts]
    a, b = text_features(texts, chosen), text_features(raw, chosen)
    c = text_features_packed(Packed(*pack_texts(texts)[:2]), chosen)
    assert np.array_equal(a.hashes, b.hashes)
    assert np.array_equal(a.hashes, c.hashes)
    assert a.ptr.tolist() == b.ptr.tolist() == c.ptr.tolist()
    assert [s == ABSENT for s in a.state] == [t is None for t in texts]


def test_any_division_of_a_text_gives_the_same_hashes() -> None:
    text = "Ünï, die Straße 東京 und e\u0301in langes, langes Wort: Donaudampfschifffahrt!".encode()
    chosen = TextSettings("words:2")
    whole = text_features([text], chosen)
    for cut in range(len(text)):
        stream = chosen.stream()
        parts = [stream.feed(text[:cut]), stream.feed(text[cut:])]
        rest, state = stream.finish()
        assert np.array_equal(np.concatenate([*parts, rest]), whole.hashes)
        assert state == whole.state[0]


def test_a_wrong_text_is_named_by_position() -> None:
    with pytest.raises(FeatureError, match="text 1 is int"):
        text_features(["a", 5], TextSettings())
    with pytest.raises(FeatureError, match="sequence of texts"):
        text_features("abc", TextSettings())


@pytest.mark.parametrize(
    "shingle", ["", "words", "words:", "words:0", "words:65", "words:03", "lines:3", "chars:٣", 3]
)
def test_wrong_shingles_are_named(shingle) -> None:
    with pytest.raises(SchemaError, match="shingle is"):
        TextSettings(shingle)


def test_settings_round_trip_and_refuse_what_they_do_not_know() -> None:
    chosen = TextSettings("chars:5", "nfkc", False)
    assert TextSettings.from_dict(chosen.to_dict()) == chosen
    for wrong in ({"unicode": "1.0"}, {"shingles": "words:3"}, {"normalize": "NFC"}, {"casefold": 1}):
        with pytest.raises(SchemaError):
            TextSettings.from_dict(wrong)


def test_hashes_do_not_depend_on_the_process() -> None:
    code = (
        "from simindex.features import *\n"
        "print(text_features(['a b c d'], TextSettings()).hashes.tolist())\n"
        "print(set_features([['x', 1]]).hashes.tolist())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(found) == 1
