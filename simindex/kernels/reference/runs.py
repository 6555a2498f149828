"""Plain twins of the posting kernels."""

from collections.abc import Sequence

import numpy as np

from simindex.types import I64, U8, U16, U32, U64, Array

_LOW = np.uint64(0xFFFFFFFF)


def sort_postings(keys: U64, rows: U32 | None = None, first_row: int = 0) -> U64:
    """Return sorted postings."""
    if rows is None:
        rows = np.arange(first_row, first_row + len(keys)).astype(np.uint32)
    result: U64 = np.sort((keys & ~_LOW) | rows.astype(np.uint64))
    return result


def merge_sorted(arrays: Sequence[U64]) -> U64:
    """Return one sorted array."""
    result: U64 = np.sort(np.concatenate([np.empty(0, np.uint64), *arrays]))
    return result


def directory(postings: U64) -> U16:
    """Return the directory of a block, in integers of any size."""
    count = len(postings)
    buckets = max(1, -(-count // 8))
    shift = 0
    while count >> shift > 65535:
        shift += 1
    below = [0] * (buckets + 1)
    if count:
        first, last = int(postings[0]), int(postings[-1])
        scale = min((buckets << 64) // (last - first + 1), 2**64 - 1)
        for posting in postings.tolist():
            below[((posting - first) * scale >> 64) + 1] += 1
    return (np.cumsum(below) >> shift).astype(np.uint16)


def block(postings: U64) -> bytes:
    """Return the bytes of a block: postings, then the directory."""
    return postings.astype("<u8").tobytes() + directory(postings).astype("<u2").tobytes()


def merge_blocks(arrays: Sequence[U64], start: int, alive: Array | None) -> U64:
    """Return the postings >= start of some sorted arrays; alive: bool per row, None = all live."""
    merged = merge_sorted(arrays)
    merged = merged[merged >= np.uint64(start)]
    return merged if alive is None else merged[alive[(merged & _LOW).astype(np.int64)]]


def lookup(bands: Sequence[Sequence[U64]], keys: U64, alive: Array) -> tuple[I64, U32]:
    """Return (ptr, rows); bands: per band, the sorted arrays to search."""
    ptr = np.zeros(len(keys) + 1, np.int64)
    found: list[U32] = [np.empty(0, np.uint32)]
    for i, query in enumerate(keys):
        rows = [np.empty(0, np.uint64)]
        for arrays, key in zip(bands, query, strict=True):
            rows += [array[(array >> np.uint64(32)) == (key >> np.uint64(32))] & _LOW for array in arrays]
        unique = np.unique(np.concatenate(rows)).astype(np.uint32)
        found.append(unique[alive[unique]])
        ptr[i + 1] = ptr[i] + len(found[-1])
    return ptr, np.concatenate(found)


def live_blocks(alive: Array, rows_per_block: int, header: int) -> list[U8]:
    """Return the blocks of a live bitmap."""
    blocks = []
    for start in range(0, max(len(alive), 1), rows_per_block):
        bits = np.zeros(rows_per_block, np.uint8)
        part = alive[start : start + rows_per_block]
        bits[: len(part)] = part
        blocks.append(np.concatenate([np.zeros(header, np.uint8), np.packbits(bits, bitorder="little")]))
    return blocks
