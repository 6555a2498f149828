"""Sets to features: kinds of members, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.errors import FeatureError
from simindex.features import set_features, set_features_csr
from simindex.kernels.reference import text as twin
from simindex.types import ABSENT, EMPTY, PRESENT

MEMBERS = st.one_of(st.text(), st.binary(), st.integers(0, 2**64 - 1))


def expected(member) -> int:
    if isinstance(member, int):
        return twin.mix64(member)
    if isinstance(member, str):
        return twin.hash64(member.encode("utf-8", "surrogatepass"), 0)
    return twin.hash64(member, 1)


@given(st.lists(st.one_of(st.none(), st.lists(MEMBERS, max_size=5)), max_size=6))
@settings(max_examples=200, deadline=None)
def test_members_are_hashed_as_documented(values) -> None:
    found = set_features(values)
    assert found.hashes.tolist() == [expected(m) for row in values for m in row or ()]
    assert np.diff(found.ptr).tolist() == [len(row or ()) for row in values]
    assert found.state.tolist() == [ABSENT if v is None else PRESENT if v else EMPTY for v in values]


def test_kinds_of_iterables_and_of_ready_hashes_agree() -> None:
    numbers = np.array([1, 5, 2**64 - 1], np.uint64)
    rows = [numbers, numbers.tolist(), tuple(numbers), iter(numbers.tolist()), numbers[::1]]
    found = set_features(rows)
    csr = set_features_csr(np.tile(numbers, 5), np.arange(0, 16, 3))
    assert np.array_equal(found.hashes, csr.hashes)
    assert np.array_equal(found.ptr, csr.ptr)
    assert np.array_equal(found.state, csr.state)
    assert set(set_features([{"a", "b"}]).hashes) == set(set_features([frozenset({"b", "a"})]).hashes)


def test_str_and_bytes_are_two_members() -> None:
    assert len(set(set_features([["a", b"a", "\ud835"]]).hashes.tolist())) == 3


@pytest.mark.parametrize(
    "bad", [True, -1, 2**64, 1.0, None, ("a",), np.float64(1), np.bool_(True), np.int64(-1)], ids=repr
)
def test_wrong_members_are_named_by_the_position_of_their_set(bad) -> None:
    with pytest.raises(FeatureError, match="set 1 holds"):
        set_features([["a"], ["b", bad]])


@pytest.mark.parametrize(
    "bad", ["abc", b"abc", 5, np.zeros((2, 2), np.uint64), np.array([1.5]), np.array([-1])], ids=str
)
def test_what_is_no_set_is_named(bad) -> None:
    with pytest.raises(FeatureError, match="set 1 "):
        set_features([["a"], bad])
    with pytest.raises(FeatureError):
        set_features("abc")


@pytest.mark.parametrize(
    ("hashes", "ptr"),
    [
        ([1, 2], [0, 1]),
        ([1, 2], [1, 2]),
        ([1, 2], [0, 2, 1, 2]),
        ([1, 2], []),
        ([-1], [0, 1]),
        ([0.5], [0, 1]),
    ],
)
def test_wrong_rows_are_refused(hashes, ptr) -> None:
    with pytest.raises(FeatureError):
        set_features_csr(np.array(hashes), np.array(ptr))
