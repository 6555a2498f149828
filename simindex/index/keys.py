"""Item keys: str, bytes or int, chosen once per collection, checked strictly, hashed by our own hash.

A key's hash leads to its row through the key map; the key itself is stored in the record and compared, so
equal hashes of different keys do no harm.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simindex import kernels
from simindex.errors import KeyTypeError, SchemaError, shown
from simindex.index.spelling import unknown
from simindex.types import I64, U8, U64, Packed

KeyKind = Literal["str", "bytes", "int"]
Key = str | bytes | int
KINDS: tuple[KeyKind, ...] = ("str", "bytes", "int")
MAX_KEY_BYTES = 65_536
MAX_INT_KEY = 2**64 - 1


def check_kind(kind: object) -> KeyKind:
    """Return the key type named; raises SchemaError for any other name."""
    for known in KINDS:
        if isinstance(kind, str) and kind == known:
            return known
    raise SchemaError(unknown("key type", kind, KINDS))


def check_key(kind: KeyKind, key: object) -> Key:
    """Return the key in its canonical form (a numpy integer becomes int, a numpy str becomes str).

    Raises KeyTypeError: another type (bool and float included), an integer outside 0..2**64 - 1, or more than
    65,536 bytes of UTF-8.
    """
    if kind == "int":
        if isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_):
            value = int(key)
            if 0 <= value <= MAX_INT_KEY:
                return value
            raise KeyTypeError(f"key {shown(value)} is outside 0 to 2**64 - 1")
    elif kind == "str":
        if isinstance(key, str):
            check_length(len(key) if key.isascii() else len(key.encode("utf-8", "surrogatepass")))
            return str(key)
    elif isinstance(key, bytes | bytearray | memoryview):
        value_bytes = bytes(key)
        check_length(len(value_bytes))
        return value_bytes
    raise KeyTypeError(f"key {shown(key)} is {type(key).__name__}: this collection's keys are {kind}")


def check_length(length: int) -> None:
    if length > MAX_KEY_BYTES:
        raise KeyTypeError(f"key of {length} bytes: the longest key has {MAX_KEY_BYTES}")


@dataclass(frozen=True, slots=True)
class Keys:
    """n checked keys of one kind, in the forms that the kernels want.

    values: int keys as uint64 (n,), else None. packed: UTF-8 or raw bytes of str and bytes keys, else None.
    hashes: uint64 (n,).
    """

    kind: KeyKind
    values: U64 | None
    packed: Packed | None
    hashes: U64

    def __len__(self) -> int:
        return len(self.hashes)

    def key(self, i: int) -> Key:
        """Return key i as the Python value that the user gave."""
        if self.values is not None:
            return int(self.values[i])
        assert self.packed is not None  # one of the two is always there
        raw = self.packed.data[self.packed.offsets[i] : self.packed.offsets[i + 1]].tobytes()
        return raw.decode("utf-8", "surrogatepass") if self.kind == "str" else raw

    def take(self, index: I64) -> "Keys":
        """Return the keys at these positions."""
        values = None if self.values is None else self.values[index]
        packed = None if self.packed is None else take_packed(self.packed, index)
        return Keys(self.kind, values, packed, self.hashes[index])


def take_packed(packed: Packed, index: I64) -> Packed:
    """Return the byte strings at these positions, in a new buffer."""
    starts = packed.offsets[index]
    lengths = packed.offsets[np.asarray(index) + 1] - starts
    offsets = np.zeros(len(index) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if len(index) < 64:  # a few slices cost less than an index per byte
        view = packed.data
        parts = [view[a : a + n] for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
        return Packed(np.concatenate(parts) if parts else np.zeros(0, np.uint8), offsets)
    positions = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1], dtype=np.int64)
    return Packed(packed.data[positions], offsets)


def pack_bytes(parts: Sequence[bytes]) -> Packed:
    """Return byte strings in one buffer."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return Packed(np.frombuffer(b"".join(parts), np.uint8), offsets)


def int_keys(values: U64) -> Keys:
    return Keys("int", values, None, kernels.mix64(values))


def _check_utf8(packed: Packed) -> None:
    raw, ends = packed.data.tobytes(), packed.offsets.tolist()
    for i in range(len(packed)):
        try:
            raw[ends[i] : ends[i + 1]].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            key = shown(raw[ends[i] : ends[i + 1]])
            raise KeyTypeError(
                f"key {i} of packed keys, {key}, is not UTF-8: this collection's keys are str"
            ) from error


def packed_keys(kind: KeyKind, packed: Packed) -> Keys:
    longest = int(np.diff(packed.offsets).max(initial=0))
    check_length(longest)
    data: U8 = packed.data
    return Keys(kind, None, packed, kernels.hash_bytes(data, packed.offsets))


def key_column(kind: KeyKind, keys: Any) -> Keys:
    """Return the checked keys of a batch: a sequence of keys, an integer array (int keys), or Packed (str and
    bytes keys).

    Raises KeyTypeError that names the first key at fault.
    """
    if isinstance(keys, Packed):
        if kind == "int":
            raise KeyTypeError("keys are packed byte strings: this collection's keys are int")
        if kind == "str":
            _check_utf8(packed=keys)
        return packed_keys(kind, keys)
    if isinstance(keys, np.ndarray):
        return _array_keys(kind, keys)
    if not isinstance(keys, list | tuple):
        keys = list(keys)
    types = set(map(type, keys))
    if kind == "int":
        if types == {int}:
            try:
                return int_keys(np.frombuffer(array("Q", keys), np.uint64))
            except (OverflowError, TypeError):
                pass  # the loop below names the key
        checked = [int(check_key(kind, key)) for key in keys]
        return int_keys(np.array(checked, np.uint64))
    if kind == "str":
        if types != {str}:
            keys = [check_key(kind, key) for key in keys]
        return packed_keys(kind, pack_bytes([key.encode("utf-8", "surrogatepass") for key in keys]))
    if types != {bytes}:
        keys = [check_key(kind, key) for key in keys]
    return packed_keys(kind, pack_bytes(keys))


def _array_keys(kind: KeyKind, keys: np.ndarray[Any, Any]) -> Keys:
    if keys.ndim != 1:
        raise KeyTypeError(f"keys have shape {keys.shape}: a batch takes one dimension")
    if kind != "int":
        if keys.dtype.kind in "USO":
            return key_column(kind, keys.tolist())
        raise KeyTypeError(f"keys are an array of {keys.dtype}: this collection's keys are {kind}")
    if keys.dtype.kind == "O":
        return key_column(kind, keys.tolist())
    if keys.dtype.kind not in "ui":
        raise KeyTypeError(f"keys are an array of {keys.dtype}: this collection's keys are int")
    if keys.dtype.kind == "i" and len(keys) and int(keys.min()) < 0:
        raise KeyTypeError(f"key {int(keys.min())} is outside 0 to 2**64 - 1")
    return int_keys(np.ascontiguousarray(keys, dtype=np.uint64))
