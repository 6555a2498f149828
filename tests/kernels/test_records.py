"""Record kernels agree with msgpack, read what is stored, and refuse what is not a record."""

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex import kernels
from simindex.kernels.reference import records as plain

KEYS: dict[str, Any] = {
    "int": st.integers(0, 2**64 - 1),
    "str": st.text(st.characters(codec=None), max_size=30),
    "bytes": st.binary(max_size=30),
}
ATTRIBUTES = st.none() | st.dictionaries(
    st.text(max_size=3), st.integers(-5, 2**63) | st.text(max_size=9), min_size=1
)


def packed(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum([0, *map(len, parts)], dtype=np.int64)


def pack(kind: str, keys: list, attributes: list) -> tuple[np.ndarray, np.ndarray]:
    extra: tuple = ()
    if any(a is not None for a in attributes):
        extra = packed([b"" if a is None else msgpack.packb(a) for a in attributes])
    if kind == "int":
        return kernels.pack_records(np.array(keys, np.uint64), None, False, *extra)
    raw = [key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key for key in keys]
    return kernels.pack_records(*packed(raw), kind == "str", *extra)


def split(data: np.ndarray, offsets: np.ndarray) -> list[bytes]:
    return [data[a:b].tobytes() for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def heap(records: list[bytes], first: int, unaligned: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return (first_rows, addresses, the memory) of one heap block that begins `unaligned` bytes off."""
    data, offsets = packed(records)
    body = np.zeros(32 + 4 * (len(records) + 1) + len(data), np.uint8)
    kernels.fill_heap(body, data, offsets, 0, len(records))
    body[8:12] = np.frombuffer(np.uint32(first).tobytes(), np.uint8)
    body[12:16] = np.frombuffer(np.uint32(len(records)).tobytes(), np.uint8)
    memory = np.zeros(len(body) + 8, np.uint8)
    memory[unaligned : unaligned + len(body)] = body
    address = kernels.address_of(memory[unaligned:])
    return np.array([first], np.uint32), np.array([address], np.uint64), memory


@pytest.mark.parametrize("kind", ["int", "str", "bytes"])
@given(data=st.data(), first=st.integers(0, 2**32 - 50), unaligned=st.integers(0, 7))
def test_records_agree_with_their_twin_and_are_read_back(
    kind: str, data: Any, first: int, unaligned: int
) -> None:
    items = data.draw(st.lists(st.tuples(KEYS[kind], ATTRIBUTES), min_size=1, max_size=9))
    keys, attributes = [key for key, _ in items], [a for _, a in items]
    raw, offsets = pack(kind, keys, attributes)
    sequences = np.array(
        data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=len(keys), max_size=len(keys))), np.uint64
    )
    kernels.stamp_records(raw, offsets, sequences)
    made = split(raw, offsets)
    wanted = zip(keys, sequences.tolist(), attributes, strict=True)
    assert made == [plain.pack_record(k, s, None if a is None else msgpack.packb(a)) for k, s, a in wanted]
    assert [plain.unpack_record(r) for r in made] == list(
        zip(keys, sequences.tolist(), attributes, strict=True)
    )
    table = heap(made, first, unaligned)
    rows = np.arange(first, first + len(keys), dtype=np.uint32)[::-1].copy()
    assert kernels.record_sequences(*table[:2], rows).tolist() == sequences.tolist()[::-1]
    if kind == "int":
        assert kernels.record_int_keys(*table[:2], rows).tolist() == keys[::-1]
        with pytest.raises(ValueError, match="str or bytes key"):
            kernels.record_keys(*table[:2], rows)
    else:
        found = split(*kernels.record_keys(*table[:2], rows))
        assert [f.decode("utf-8", "surrogatepass") if kind == "str" else f for f in found] == keys[::-1]
        with pytest.raises(ValueError, match="int key"):
            kernels.record_int_keys(*table[:2], rows)
    which = data.draw(st.lists(st.integers(0, len(keys) - 1), min_size=len(keys), max_size=len(keys)))
    for key_only in (True, False):
        same = kernels.match_records(*table[:2], rows, raw, offsets, np.array(which, np.int64), key_only)
        assert same.tolist() == plain.match(made[::-1], [made[i] for i in which], key_only)


@given(st.binary(max_size=40))
def test_bytes_that_are_no_record_are_refused(junk: bytes) -> None:
    table = heap([junk, plain.pack_record("ok", 1)], 0, 0)
    rows = np.array([0], np.uint32)
    data, offsets = packed([plain.pack_record("ok", 1)])
    try:
        key = plain.unpack_record(junk)[0]
        is_record = plain.pack_record(key, 0)[:2] == junk[:2]  # msgpack reads other heads too
    except Exception:  # whatever msgpack says of junk
        is_record = False
    if not is_record:
        with pytest.raises(ValueError, match="row 0"):
            kernels.match_records(*table[:2], rows, data, offsets, np.zeros(1, np.int64), True)


def test_rows_and_records_that_are_not_there_are_refused() -> None:
    made = [plain.pack_record(7, 1)]
    table = heap(made, 5, 0)
    data, offsets = packed(made)
    for row in (0, 4, 6, 2**32 - 1):
        with pytest.raises(ValueError, match="no record"):
            kernels.record_int_keys(*table[:2], np.array([row], np.uint32))
    with pytest.raises(ValueError, match="cannot be read"):
        kernels.match_records(*table[:2], np.array([5], np.uint32), data, offsets, np.array([1]), True)
    with pytest.raises(ValueError, match="offset"):
        kernels.stamp_records(data.copy(), np.array([0, 99]), np.array([1], np.uint64))
    with pytest.raises(ValueError, match="without blocks"):
        kernels.record_sequences(np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.array([5], np.uint32))
    with pytest.raises(ValueError, match="3 keys"):
        kernels.pack_records(np.arange(3, dtype=np.uint64), None, False, *packed([b"x"]))
