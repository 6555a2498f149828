"""What it takes to agree with datasketch 2.x to the bit: token hashes, permutations, attributes.

datasketch itself is never imported; tests/sketch/test_datasketch.py compares with the real package.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simindex.errors import FeatureError
from simindex.types import EMPTY, PRESENT, U8, U64, Array, Features

SCHEMES = ("affine32", "affine64", "legacy")
MAX_HASH = {
    "affine32": 2**32 - 1,
    "affine64": 2**64 - 1,
    "legacy": 2**32 - 1,
}  # also the value of an unused slot
_MERSENNE = 2**61 - 1


@dataclass(frozen=True, slots=True)
class Imported:
    """Minima of n datasketch sketches: values uint64 (n, k), states uint8 (n,), and what they share."""

    values: U64
    states: U8
    scheme: str
    seed: int


def permutations(k: int, seed: int, scheme: str) -> tuple[U64, U64]:
    """Return datasketch's constants (a, b), uint64, drawn from numpy's RandomState(seed) as it does."""
    random = np.random.RandomState(seed)
    if scheme == "legacy":
        drawn = [
            (random.randint(1, _MERSENNE, dtype=np.uint64), random.randint(0, _MERSENNE, dtype=np.uint64))
            for _ in range(k)
        ]
        pairs = np.array(drawn, dtype=np.uint64)
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    bits, dtype = (32, np.uint32) if scheme == "affine32" else (64, np.uint64)
    a = random.randint(0, 1 << (bits - 1), k, dtype=dtype) * dtype(2) + dtype(1)
    b = random.randint(0, 1 << bits, k, dtype=dtype)
    return a.astype(np.uint64), b.astype(np.uint64)


def token_hash(token: bytes, scheme: str) -> int:
    """Return datasketch's hash of a token: the first 4 bytes of SHA-1 (8 for affine64), little-endian."""
    return int.from_bytes(
        hashlib.sha1(token, usedforsecurity=False).digest()[: 8 if scheme == "affine64" else 4], "little"
    )


def features(items: Sequence[Iterable[bytes | str]], scheme: str) -> Features:
    """Return Features of sets of tokens, hashed as datasketch does; str is taken as UTF-8.

    Sign them with family("minhash/1", {"scheme": scheme, ...}). An item without tokens is EMPTY.
    """
    check_scheme(scheme)
    hashes: list[int] = []
    ptr = [0]
    for item in items:
        for token in item:
            if not isinstance(token, (bytes, str)):
                raise FeatureError(
                    f"item {len(ptr) - 1} has a token of type {type(token).__name__}: bytes or str"
                )
            hashes.append(token_hash(token.encode() if isinstance(token, str) else token, scheme))
        ptr.append(len(hashes))
    offsets = np.array(ptr, np.int64)
    state = np.where(np.diff(offsets) > 0, PRESENT, EMPTY).astype(np.uint8)
    return Features(np.array(hashes, np.uint64), offsets, state)


def check_scheme(scheme: object) -> str:
    """Return the scheme, or raise FeatureError if it is none of datasketch's."""
    if scheme not in SCHEMES:
        raise FeatureError(f"datasketch has no scheme {scheme!r}: it has {', '.join(SCHEMES)}")
    return str(scheme)


def read(objects: Any, scheme: str | None, seed: int | None) -> Imported:
    """Return the minima of MinHash or LeanMinHash objects or of an array of hashvalues."""
    if isinstance(objects, np.ndarray):
        if scheme is None or seed is None:
            raise FeatureError(
                "an array of hashvalues does not tell its scheme and seed: give both "
                "(scheme='legacy' for values made before datasketch 2.0)"
            )
        return _imported(objects, check_scheme(scheme), int(seed))
    rows: list[Array] = []
    for i, one in enumerate(objects):
        values, its_seed = getattr(one, "hashvalues", None), getattr(one, "seed", None)
        if values is None or its_seed is None:
            raise FeatureError(
                f"object {i} is a {type(one).__name__} without hashvalues and seed: not a MinHash"
            )
        its_scheme = getattr(one, "scheme", "legacy")  # objects pickled before 2.0 have no scheme
        scheme = its_scheme if scheme is None else scheme
        seed = int(its_seed) if seed is None else seed
        if its_scheme != scheme or int(its_seed) != seed or (rows and len(values) != len(rows[0])):
            raise FeatureError(
                f"object {i} has scheme {its_scheme!r}, seed {its_seed} and {len(values)} values: "
                f"{scheme!r}, {seed} and {len(rows[0]) if rows else len(values)} were expected"
            )
        rows.append(np.asarray(values))
    if not rows or scheme is None or seed is None:
        raise FeatureError("no MinHash objects: their scheme, seed and num_perm cannot be told from nothing")
    return _imported(np.stack(rows), check_scheme(scheme), seed)


def _imported(values: Array, scheme: str, seed: int) -> Imported:
    if values.ndim != 2 or values.dtype.kind != "u" or values.dtype.itemsize < 4:
        raise FeatureError(
            f"hashvalues are {values.dtype} of {values.ndim} dimensions: they are uint32 or uint64, "
            "one row an item"
        )
    minima = np.ascontiguousarray(values, dtype=np.uint64)
    above = np.argwhere(minima > np.uint64(MAX_HASH[scheme]))
    if len(above):
        i, j = (int(x) for x in above[0])
        raise FeatureError(
            f"item {i} has the value {int(minima[i, j])} in slot {j}: {scheme!r} has 32-bit values"
        )
    unused = (minima == np.uint64(MAX_HASH[scheme])).all(axis=1)
    return Imported(minima, np.where(unused, EMPTY, PRESENT).astype(np.uint8), scheme, seed)
