"""From sets to features: str, bytes, whole numbers, or ready 64-bit hashes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from simindex import kernels
from simindex.errors import FeatureError
from simindex.types import ABSENT, EMPTY, I64, PRESENT, Array, Features


def set_features(values: Sequence[Iterable[str | bytes | int] | Array | None]) -> Features:
    """Return the member hashes of sets; None is ABSENT, an empty set EMPTY. Repeats and order do not count.

    str and bytes are hashed by h64/1 of their bytes (UTF-8; surrogates in three bytes) with different seeds,
    so "a" and b"a" are two members; whole numbers from 0 to 2**64 - 1 are mixed once, so ready hashes need no
    mark. An item may also be an integer array. Raises FeatureError, naming the position, for bool, float,
    negative or larger numbers, other types, and for a str or bytes where a set belongs.
    """
    if isinstance(values, str | bytes):
        raise FeatureError(f"values is one {type(values).__name__}: give a sequence of sets")
    hashes, ptr, absent = kernels.hash_sets(values)
    state = _states(ptr)
    state[absent != 0] = ABSENT
    return Features(hashes, ptr, state)


def set_features_csr(hashes: Array, ptr: Array) -> Features:
    """Return features of sets of ready hashes in compressed rows (set i: hashes[ptr[i]:ptr[i + 1]]).

    hashes: whole numbers, shape (m,), each mixed once as in `set_features`. ptr: shape (n + 1,), from 0 to m.
    """
    values, offsets = np.asarray(hashes), np.asarray(ptr)
    for name, array in (("hashes", values), ("ptr", offsets)):
        if array.ndim != 1 or (array.dtype.kind not in "ui" and array.size):
            raise FeatureError(
                f"{name} is {array.dtype} of {array.ndim} dimensions: it is one row of whole numbers"
            )
    if values.dtype.kind == "i" and values.size and values.min() < 0:
        raise FeatureError(f"hashes holds {values.min()}: whole numbers are 0 to 2**64 - 1")
    if not offsets.size:
        raise FeatureError("ptr is empty: n sets have n + 1 offsets")
    if offsets[0] != 0 or offsets[-1] != values.size:
        raise FeatureError(f"ptr goes from {offsets[0]} to {offsets[-1]}: it goes from 0 to {values.size}")
    rows: I64 = np.ascontiguousarray(offsets, np.int64)
    falls = np.flatnonzero(rows[1:] < rows[:-1])
    if falls.size:
        at = int(falls[0])
        raise FeatureError(f"ptr falls from {rows[at]} to {rows[at + 1]} at {at + 1}: offsets never fall")
    mixed = kernels.mix64(np.ascontiguousarray(values, np.uint64))
    return Features(mixed, rows.copy(), _states(rows))


def _states(ptr: I64) -> Any:
    return np.where(np.diff(ptr) > 0, PRESENT, EMPTY).astype(np.uint8)
