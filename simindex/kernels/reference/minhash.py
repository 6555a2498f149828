"""Plain twin of _minhash, in Python integers where overflow matters."""

import numpy as np

from simindex.kernels.reference.fastsim import splitmix
from simindex.types import I64, U8, U64

_MASK = (1 << 64) - 1
_MERSENNE = (1 << 61) - 1


def minhash_constants(k: int) -> tuple[U64, U64]:
    """Return the own scheme's constants."""
    salt = 0x6D696E68617368
    first = [splitmix(2 * j + 1, salt) for j in range(k)]
    second = [splitmix(2 * j + 2, salt) | 1 for j in range(k)]
    return np.array(first, np.uint64), np.array(second, np.uint64)


def _fmix32(x: int) -> int:
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return x ^ (x >> 16)


def _fmix64(x: int) -> int:
    x = ((x ^ (x >> 33)) * 0xFF51AFD7ED558CCD) & _MASK
    x = ((x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53) & _MASK
    return x ^ (x >> 33)


def _value(scheme: str, h: int, first: int, second: int) -> int:
    if scheme == "affine32":
        return (first * _fmix32(h & 0xFFFFFFFF) + second) & 0xFFFFFFFF
    if scheme == "affine64":
        return (first * _fmix64(h) + second) & _MASK
    if scheme == "legacy":
        return ((first * (h & 0xFFFFFFFF) + second) & _MASK) % _MERSENNE & 0xFFFFFFFF
    return ((h ^ first) * second) & _MASK


def minhash(hashes: U64, ptr: I64, first: U64, second: U64, scheme: str = "simindex") -> U64:
    """Return the minima of n items: uint64, shape (n, k)."""
    largest = 0xFFFFFFFF if scheme in ("affine32", "legacy") else _MASK
    rows = []
    for i in range(len(ptr) - 1):
        own = [int(h) for h in hashes[ptr[i] : ptr[i + 1]]]
        constants = zip(first, second, strict=True)
        rows.append(
            [min([_value(scheme, h, int(f), int(s)) for h in own], default=largest) for f, s in constants]
        )
    return np.array(rows, np.uint64).reshape(len(ptr) - 1, len(first))


def pack_minima(minima: U64, scheme: str, bits: int) -> U8:
    """Return minima cut to `bits` a slot, little-endian."""
    own = {"simindex": 0, "affine64": 64}.get(scheme, 32)
    kept = [
        [int(v) if bits == own else _fmix64((int(v) + 0x9E3779B97F4A7C15) & _MASK) for v in row]
        for row in minima
    ]
    cut = [[v & ((1 << bits) - 1) for v in row] for row in kept]
    return (
        np.array(cut, f"<u{bits // 8}")
        .reshape(minima.shape)
        .view(np.uint8)
        .reshape(len(minima), minima.shape[1] * bits // 8)
    )


def minhash_packed(hashes: U64, ptr: I64, first: U64, second: U64, scheme: str, bits: int) -> U8:
    """Return packed signatures; items without hashes are zero."""
    out = pack_minima(minhash(hashes, ptr, first, second, scheme), scheme, bits).copy()
    out[np.diff(ptr) == 0] = 0
    return out
