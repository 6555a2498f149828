"""Labels become msgpack as the plain twin makes them."""

import json
from itertools import pairwise

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels.reference import labels as plain

HEAD, TAIL, BARE = b"\x82\xa5label", b"\xa6source\xa1f", b"\x81\xa6source\xa1f"
PLAIN = st.text(
    st.characters(blacklist_characters='"\\', blacklist_categories=["Cs"], min_codepoint=32), max_size=300
)


def arrays(values: list[bytes], kinds: list[int]):
    data = np.frombuffer(b"".join(values), np.uint8)
    ends = np.cumsum([len(value) for value in values]).astype(np.int64)
    starts = ends - np.array([len(value) for value in values], np.int64)
    return data, starts, ends, np.array(kinds, np.uint8)


def both(values: list[bytes], kinds: list[int]):
    given_arrays = arrays(values, kinds)
    made = kernels.pack_labels(*given_arrays, HEAD, TAIL, BARE)
    want = plain.pack_labels(*given_arrays, HEAD, TAIL, BARE)
    if made is None or want is None:
        assert made is None
        assert want is None
        return None
    data, offsets = made
    found = [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
    assert found == want
    return found


@given(st.lists(st.one_of(st.none(), PLAIN, st.integers(0, 2**64 - 1)), min_size=1))
def test_labels_equal_the_plain_twin_and_read_back(labels: list[str | int | None]) -> None:
    values = [b"" if x is None else json.dumps(x, ensure_ascii=False).encode() for x in labels]
    kinds = [0 if x is None else 1 if isinstance(x, str) else 2 for x in labels]
    found = both(values, kinds)
    assert found is not None
    for attributes, label in zip(found, labels, strict=True):
        want = {"source": "f"} if label is None else {"label": label, "source": "f"}
        assert msgpack.unpackb(attributes) == want


@pytest.mark.parametrize("length", [0, 31, 32, 255, 256, 65535, 65536])
def test_every_width_of_string(length: int) -> None:
    assert both([b'"' + b"x" * length + b'"'], [1]) is not None


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
def test_every_width_of_number(number: int) -> None:
    assert both([str(number).encode()], [2]) is not None


@pytest.mark.parametrize(
    "number", [b"18446744073709551616", b"-1", b"1.5", b"1e3", b"99999999999999999999", b"9" * 30]
)
def test_other_numbers_are_left_to_the_caller(number: bytes) -> None:
    assert both([b'"a"', number], [1, 2]) is None
    assert both([b'"a"', b"null"], [1, 3]) is None


def test_ranges_are_checked() -> None:
    data, start, end, kind = arrays([b'"abc"'], [1])
    for a, b in [(-1, 3), (2, 1), (0, 6), (0, 1)]:
        with pytest.raises(ValueError, match="label 0"):
            kernels.pack_labels(data, start * 0 + a, end * 0 + b, kind, HEAD, TAIL, BARE)
    with pytest.raises(ValueError, match="kinds"):
        kernels.pack_labels(data, start, end, kind[:0], HEAD, TAIL, BARE)
