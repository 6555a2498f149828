"""Records: an item's key, its sequence number and its attributes, as bytes (msgpack [key, sequence,
attributes]).
"""

import itertools
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np

from simindex import kernels
from simindex.errors import CorruptStore, FeatureError, shown
from simindex.index.keys import Key, KeyKind, Keys, pack_bytes
from simindex.types import I64, U8, U32, U64, Packed

_SCALARS = frozenset([type(None), bool, int, float, str, bytes])
_REFUSED = (TypeError, ValueError, OverflowError, RecursionError, msgpack.UnpackException)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(
        f"{type(value).__name__} cannot be stored: use None, bool, int, float, str, bytes, lists or dicts"
    )


def pack_attributes(attributes: dict[str, Any] | None) -> bytes:
    """Return attributes as msgpack; b"" for none. Raises FeatureError that names the attribute at fault."""
    if not attributes:
        return b""
    for name in attributes:
        if not isinstance(name, str):
            raise FeatureError(f"attribute name {shown(name)} is {type(name).__name__}: names are str")
    if "key" in attributes:
        raise FeatureError("an attribute cannot be called 'key'")
    try:
        return _packed(attributes)
    except _REFUSED as error:
        for name, value in attributes.items():
            try:
                _packed({name: value})
            except _REFUSED as inner:
                raise FeatureError(f"attribute {shown(name)}: {inner}") from None
        raise FeatureError(f"attributes: {error}") from None


def _packed(attributes: dict[str, Any]) -> bytes:
    packed: bytes = msgpack.packb(
        attributes, use_bin_type=True, default=_plain, unicode_errors="surrogatepass"
    )
    if not _SCALARS.issuperset(map(type, attributes.values())):
        _unpacked(packed)  # a map inside may have keys that no dict takes back, such as lists
    return packed


def _unpacked(data: bytes) -> Any:
    return msgpack.unpackb(
        data, raw=False, strict_map_key=False, unicode_errors="surrogatepass", use_list=True
    )


def pack_records(keys: Keys, attributes: Sequence[bytes] | None = None) -> Packed:
    """Return one record per key with sequence 0 (see stamp). attributes: pack_attributes of each, None when
    no item has any.
    """
    extra = None if attributes is None or not any(attributes) else pack_bytes(attributes)
    extra_data, extra_offsets = (None, None) if extra is None else (extra.data, extra.offsets)
    if keys.values is not None:
        return Packed(*kernels.pack_records(keys.values, None, False, extra_data, extra_offsets))
    assert keys.packed is not None
    return Packed(
        *kernels.pack_records(
            keys.packed.data, keys.packed.offsets, keys.kind == "str", extra_data, extra_offsets
        )
    )


def stamp(records: Packed, first_sequence: int) -> None:
    """Number the records from first_sequence on, in place."""
    n = len(records)
    sequences = np.arange(first_sequence, first_sequence + n, dtype=np.uint64)
    kernels.stamp_records(records.data, records.offsets, sequences)


def unpack_record(data: bytes) -> tuple[Key, int, dict[str, Any]]:
    """Return (key, sequence, attributes). Raises CorruptStore."""
    try:
        key, sequence, attributes = _unpacked(data)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptStore(f"a record cannot be read: {error}") from error
    return key, sequence, attributes or {}


def record_of(table: Any, row: int) -> tuple[Key, int, dict[str, Any]]:
    """Return (key, sequence, attributes) of a stored row."""
    return unpack_record(bytes(table.records.value(row)))


def keys_of(table: Any, kind: KeyKind, rows: U32) -> U64 | list[str] | list[bytes]:
    """Return the keys of stored rows: a uint64 array for int keys, else a list."""
    heap = table.records
    if len(rows):
        heap.need(rows)
    try:
        if kind == "int":
            return kernels.record_int_keys(heap.first_rows, heap.addresses, rows)
        data, offsets = kernels.record_keys(heap.first_rows, heap.addresses, rows)
    except ValueError as error:
        raise CorruptStore(str(error)) from error
    return split_keys(kind, data, offsets)


def split_keys(kind: KeyKind, data: U8, offsets: I64) -> list[str] | list[bytes]:
    """Return packed str or bytes keys as a list."""
    raw = data.tobytes()
    ends = offsets.tolist()
    parts = [raw[a:b] for a, b in itertools.pairwise(ends)]
    if kind == "bytes":
        return parts
    return [part.decode("utf-8", "surrogatepass") for part in parts]


def sequences_of(table: Any, rows: U32) -> U64:
    """Return the sequence numbers of stored rows."""
    heap = table.records
    if len(rows) == 0:
        return np.zeros(0, np.uint64)
    heap.need(rows)
    try:
        return kernels.record_sequences(heap.first_rows, heap.addresses, rows)
    except ValueError as error:
        raise CorruptStore(str(error)) from error
