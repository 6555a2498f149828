"""Key types are strict, numpy integers are ints, and every key survives the round trip."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import KeyTypeError, SchemaError
from simindex.index.keys import check_key, check_kind, key_column, take_packed
from simindex.index.records import pack_records, split_keys, stamp, unpack_record
from simindex.types import Packed

TEXTS = st.text(st.characters(codec=None), max_size=40)  # lone surrogates too


@pytest.mark.parametrize("kind", ["str", "bytes", "int"])
@given(data=st.data())
def test_keys_survive_packing_records_and_reading(kind: str, data: st.DataObject) -> None:
    one = {"str": TEXTS, "bytes": st.binary(max_size=40), "int": st.integers(0, 2**64 - 1)}[kind]
    given_keys = data.draw(st.lists(one, max_size=8))
    keys = key_column(kind, given_keys)  # type: ignore[arg-type]
    assert [keys.key(i) for i in range(len(keys))] == given_keys
    records = pack_records(keys)
    stamp(records, 5)
    ends = records.offsets.tolist()
    raw = [records.data[a:b].tobytes() for a, b in itertools.pairwise(ends)]
    assert [unpack_record(r) for r in raw] == [(key, 5 + i, {}) for i, key in enumerate(given_keys)]
    if keys.packed is not None:
        assert split_keys(keys.kind, keys.packed.data, keys.packed.offsets) == given_keys


@pytest.mark.parametrize(
    "key", [True, False, 1.0, "1", b"1", -1, 2**64, None, np.float64(1), np.bool_(True), [1]]
)
def test_int_collections_refuse_other_keys(key: object) -> None:
    with pytest.raises(KeyTypeError):
        check_key("int", key)
    with pytest.raises(KeyTypeError):
        key_column("int", [3, key])


def test_numpy_integers_are_the_same_key_as_ints() -> None:
    for value in (np.int64(1), np.uint8(1), np.uint64(1)):
        assert check_key("int", value) == 1
        assert type(check_key("int", value)) is int
    assert (key_column("int", [np.int64(7)]).hashes == key_column("int", [7]).hashes).all()
    assert (key_column("int", np.array([7, 9])).hashes == key_column("int", [7, 9]).hashes).all()


@pytest.mark.parametrize("array", [np.array([1.0]), np.array([-1]), np.array([[1]]), np.array([True])])
def test_key_arrays_of_other_types_are_refused(array: np.ndarray) -> None:
    with pytest.raises(KeyTypeError):
        key_column("int", array)


@pytest.mark.parametrize(
    ("kind", "key"), [("str", b"1"), ("str", 1), ("bytes", "1"), ("bytes", 1), ("str", None)]
)
def test_str_and_bytes_are_different_keys(kind: str, key: object) -> None:
    with pytest.raises(KeyTypeError, match=kind):
        check_key(kind, key)  # type: ignore[arg-type]


def test_keys_of_64_kib_are_accepted_and_longer_ones_refused() -> None:
    assert check_key("str", "a" * 65_536) == "a" * 65_536
    for kind, key in (("str", "a" * 66_560), ("bytes", b"a" * 66_560), ("str", "é" * 32_769)):
        with pytest.raises(KeyTypeError, match="65536"):
            check_key(kind, key)  # type: ignore[arg-type]
        with pytest.raises(KeyTypeError, match="65536"):
            key_column(kind, [key])  # type: ignore[arg-type]


def test_unknown_key_type_names_the_nearest() -> None:
    with pytest.raises(SchemaError, match="did you mean 'bytes'"):
        check_kind("byte")


@given(st.lists(st.binary(max_size=9), min_size=1, max_size=200), st.data())
def test_take_packed_takes(parts: list[bytes], data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    packed = Packed(np.frombuffer(b"".join(parts), np.uint8), offsets)
    index = data.draw(st.lists(st.integers(0, len(parts) - 1), max_size=100))
    taken = take_packed(packed, np.array(index, np.int64))
    ends = taken.offsets.tolist()
    assert [taken.data[a:b].tobytes() for a, b in itertools.pairwise(ends)] == [parts[i] for i in index]
