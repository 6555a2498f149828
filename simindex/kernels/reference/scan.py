"""Plain twin of _scan. Instead of addresses, blocks are given as bytes (None: absent block)."""

from collections.abc import Sequence

import numpy as np

from simindex.types import I64, PRESENT, U8, U16, U32, U64

_MASK = (1 << 64) - 1
Blocks = Sequence[U8 | None]


def count_equal(rows: U8, query: U8, slot_bytes: int) -> U16:
    """Return the number of equal slots of each row and the query."""
    same = (rows == query).reshape(len(rows), -1, slot_bytes).all(axis=2)
    counts: U16 = same.sum(axis=1).astype(np.uint16)
    return counts


def row_of(blocks: Blocks, rows_per_block: int, header: int, width: int, row: int) -> U8 | None:
    """Return the bytes of a row, None in an absent block."""
    block = blocks[row // rows_per_block]
    start = header + row % rows_per_block * width
    return None if block is None else block[start : start + width]


def state_of(blocks: Blocks, rows_per_block: int, row: int) -> int:
    """Return the 2-bit state of a row in its block's header; 0 in an absent block."""
    block, i = blocks[row // rows_per_block], row % rows_per_block
    return 0 if block is None else int(block[48 + i // 4]) >> (2 * (i % 4)) & 3


def is_live(live: Blocks, row: int) -> bool:
    """Return the row's bit of the live bitmap."""
    block, i = live[row // 32512], row % 32512
    return block is not None and bool(int(block[16 + i // 8]) >> (i % 8) & 1)


def pair_equal(
    blocks: Blocks, rows_per_block: int, header: int, width: int, slot_bytes: int, rows_a: U32, rows_b: U32
) -> U16:
    """Return the number of equal slots of stored row pairs."""
    counts = []
    for a, b in zip(rows_a, rows_b, strict=True):
        x = row_of(blocks, rows_per_block, header, width, int(a))
        y = row_of(blocks, rows_per_block, header, width, int(b))
        counts.append(0 if x is None or y is None else int(count_equal(x.reshape(1, -1), y, slot_bytes)[0]))
    return np.array(counts, np.uint16)


def gather_equal(
    blocks: Blocks,
    rows_per_block: int,
    header: int,
    width: int,
    slot_bytes: int,
    queries: U8,
    query_of: U32,
    rows: U32,
) -> U16:
    """Return the number of equal slots of queries and stored rows."""
    counts = []
    for q, row in zip(query_of, rows, strict=True):
        x = row_of(blocks, rows_per_block, header, width, int(row))
        counts.append(0 if x is None else int(count_equal(x.reshape(1, -1), queries[q], slot_bytes)[0]))
    return np.array(counts, np.uint16)


def scan_equal(
    blocks: Blocks,
    rows_per_block: int,
    header: int,
    width: int,
    slot_bytes: int,
    queries: U8,
    n_rows: int,
    live: Blocks,
    min_equal: U16 | None = None,
    k: int | None = None,
) -> tuple[I64, U32, U16]:
    """Return the rows that reach min_equal, or the k best with all ties, per query."""
    usable = [r for r in range(n_rows) if is_live(live, r) and state_of(blocks, rows_per_block, r) >= PRESENT]
    ptr, rows, equal = [0], [], []
    for q, query in enumerate(queries):
        counts = {}
        for r in usable:
            stored = row_of(blocks, rows_per_block, header, width, r)
            if stored is not None:
                counts[r] = int(count_equal(stored.reshape(1, -1), query, slot_bytes)[0])
        if min_equal is not None:
            least = int(min_equal[q])
        else:
            least = min(sorted(counts.values(), reverse=True)[:k], default=0)
        kept = [r for r, c in counts.items() if c >= least]
        rows += kept
        equal += [counts[r] for r in kept]
        ptr.append(len(rows))
    return np.array(ptr, np.int64), np.array(rows, np.uint32), np.array(equal, np.uint16)


def _mix(x: int) -> int:
    x = ((x ^ (x >> 32)) * 0xD6E8FEB86659FD93) & _MASK
    x = ((x ^ (x >> 32)) * 0xD6E8FEB86659FD93) & _MASK
    return x ^ (x >> 32)


def band_keys(signatures: U8, bands: int, rows: int, slot_bytes: int) -> U64:
    """Return the bucket key of every band."""
    size = rows * slot_bytes
    out = np.empty((len(signatures), bands), np.uint64)
    for i, signature in enumerate(signatures):
        for j in range(bands):
            part = signature[j * size : (j + 1) * size].tobytes()
            key = _mix(((j + 1) * 0x9E3779B97F4A7C15) & _MASK)
            for at in range(0, size, 8):
                key = _mix(key ^ int.from_bytes(part[at : at + 8], "little"))
            out[i, j] = key
    return out


def key_postings(keys: U64, states: U8, first_row: int = 0) -> U64:
    """Return sorted postings per band of the rows with state >= PRESENT."""
    kept = np.flatnonzero(states >= PRESENT)
    rows = (kept + first_row).astype(np.uint64)
    postings = (keys[kept] >> np.uint64(32) << np.uint64(32)) | rows[:, None]
    return np.ascontiguousarray(np.sort(postings.T, axis=1))


def band_postings(
    signatures: U8, states: U8, bands: int, rows: int, slot_bytes: int, first_row: int = 0
) -> U64:
    """Return sorted postings per band, from signatures."""
    return key_postings(band_keys(signatures, bands, rows, slot_bytes), states, first_row)
