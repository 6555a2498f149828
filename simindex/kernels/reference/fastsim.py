"""Plain twin of _fastsim: every round in full, one document at a time."""

import numpy as np

from simindex.types import I64, U8, U32, U64

_OPEN = np.uint32(0xFFFFFFFF)
_MASK = (1 << 64) - 1


def splitmix(i: int, salt: int) -> int:
    """Return output i of the generator of constants."""
    x = (i * 0x9E3779B97F4A7C15 + salt) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _mixed(hashes: U64, entry: int) -> U64:
    salt = 0x73696D696E646578
    flip, multiplier = splitmix(2 * entry + 1, salt), splitmix(2 * entry + 2, salt) | 1
    mixed: U64 = (hashes ^ np.uint64(flip)) * np.uint64(multiplier)
    return mixed


def _slot_and_fraction(mixed: U64, k: int) -> tuple[I64, U64]:
    low = np.uint64(0xFFFFFFFF)
    thrown = (mixed >> np.uint64(32)) * np.uint64(k) + (((mixed & low) * np.uint64(k)) >> np.uint64(32))
    return (thrown >> np.uint64(32)).astype(np.int64), thrown & low


def fastsim_update(slots: U32, hashes: U64) -> None:
    """Lower the slots by more hashes, all rounds in full."""
    k = len(slots)
    if len(hashes) == 0:
        return
    tag_bits = (k - 1).bit_length()
    for r in range(k + 1):
        base = 0 if r == 0 else 0x80000000 | (r - 1) << (31 - tag_bits)
        if (slots < base).all():
            return
        shift = np.uint64(1 if r == 0 else tag_bits + 1)
        if r < k:
            where, fraction = _slot_and_fraction(hashes if r == 0 else _mixed(hashes, r), k)
            np.minimum.at(slots, where, (np.uint64(base) | fraction >> shift).astype(np.uint32))
            continue
        for j in np.flatnonzero(slots >= base):
            fraction = _mixed(hashes, 4096 + int(j)) >> np.uint64(32)
            values = np.uint64(base) | fraction >> shift
            slots[j] = min(int(slots[j]), min(int(values.min()), int(_OPEN) - 1))


def fastsim(hashes: U64, ptr: I64, k: int) -> U32:
    """Return the slots of n items: uint32, shape (n, k)."""
    out = np.full((len(ptr) - 1, k), _OPEN, np.uint32)
    for i, row in enumerate(out):
        fastsim_update(row, hashes[ptr[i] : ptr[i + 1]])
    return out


def pack_slots(slots: U32, bits: int) -> U8:
    """Return the low bits of each slot, little-endian."""
    cut = np.ascontiguousarray(slots.astype(f"<u{bits // 8}"))
    return cut.view(np.uint8).reshape(len(slots), slots.shape[1] * bits // 8)


def fastsim_packed(hashes: U64, ptr: I64, k: int, bits: int) -> U8:
    """Return packed signatures; items without hashes are zero."""
    out = pack_slots(fastsim(hashes, ptr, k), bits).copy()
    out[np.diff(ptr) == 0] = 0
    return out
