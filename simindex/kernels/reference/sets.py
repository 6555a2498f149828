"""Plain twins of kernels._sets: the same bytes and counts from whole numbers and Python sets, slowly."""

from collections.abc import Sequence
from itertools import pairwise

from simindex.types import I64, U64


def set_width(n: int) -> int:
    """Twin of kernels.set_width: the formula in whole numbers."""
    if n == 0:
        return 0
    tight = (2800 * n * n - 1).bit_length()
    wide = min((11468800 * n * n - 1).bit_length(), (n - 1).bit_length() + 31)
    return min(max(tight, wide), 64)


def low_bits(width: int, n: int) -> int:
    """Return how many low bits of each value are stored as they are."""
    return min(56, max(0, width - (n - 1).bit_length()))


def encode(values: Sequence[int], width: int) -> bytes:
    """Return the packed set of ascending distinct values of `width` bits."""
    n = len(values)
    if n == 0:
        return b""
    head = [width]
    rest = n
    while rest >= 128:
        head.append(rest & 127 | 128)
        rest >>= 7
    head.append(rest)
    low = low_bits(width, n)
    fields = 0
    marks = 0
    for i, value in enumerate(values):
        fields |= (value & ((1 << low) - 1)) << (i * low)
        marks |= 1 << ((value >> low) + i)
    return (
        bytes(head)
        + fields.to_bytes((n * low + 7) // 8, "little")
        + marks.to_bytes((marks.bit_length() + 7) // 8, "little")
    )


def pack_set(hashes: Sequence[int]) -> bytes:
    """Return the packed set of one item's hashes, any order, repeats allowed."""
    distinct = set(hashes)
    width = set_width(len(distinct))
    return encode(sorted({h >> (64 - width) for h in distinct}), width)


def pack_sets(hashes: U64, ptr: I64) -> list[bytes]:
    """Twin of kernels.pack_sets, as a list of byte strings."""
    return [pack_set(hashes[a:b].tolist()) for a, b in pairwise(ptr.tolist())]


def unpack_set(packed: bytes) -> tuple[list[int], int]:
    """Twin of kernels.unpack_set for sound bytes."""
    if not packed:
        return [], 0
    width, n, shift, at = packed[0], 0, 0, 1
    while True:
        n |= (packed[at] & 127) << shift
        shift += 7
        at += 1
        if packed[at - 1] < 128:
            break
    low = low_bits(width, n)
    size = (n * low + 7) // 8
    fields = int.from_bytes(packed[at : at + size], "little")
    marks = int.from_bytes(packed[at + size :], "little")
    highs = [p - i for i, p in enumerate(p for p in range(marks.bit_length()) if marks >> p & 1)]
    return [high << low | fields >> (i * low) & ((1 << low) - 1) for i, high in enumerate(highs)], width


def intersect(a: bytes, b: bytes, min_jaccard: float = 0.0) -> tuple[int, int, int]:
    """Twin of one pair of kernels.intersect_sets: (inter, size_a, size_b)."""
    values_a, width_a = unpack_set(a)
    values_b, width_b = unpack_set(b)
    size_a, size_b = len(values_a), len(values_b)
    if not size_a or not size_b:
        return 0, size_a, size_b
    width = min(width_a, width_b)
    inter = len({v >> (width_a - width) for v in values_a} & {v >> (width_b - width) for v in values_b})
    return (inter if inter / (size_a + size_b - inter) >= min_jaccard else 0), size_a, size_b


def packed_bytes(data: bytes, offsets: I64) -> list[bytes]:
    """Return the byte strings of a Packed as a list."""
    return [data[a:b] for a, b in pairwise(offsets.tolist())]
